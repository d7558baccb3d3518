//! The trimming of one entry of the AFL++ queue.

use ddfuzz_delta::{Cache, Caching, Outcome, Search, Seen, TextId};
use std::hash::{DefaultHasher, Hasher};

use crate::TrimSearch;

/// What the next run by AFL++ tells: whether the unchanged queue entry has the same coverage again,
/// or whether the search's candidate has the coverage of the entry; or that no run is needed.
enum Asked {
    /// The next run tells whether the unchanged queue entry has the same coverage again. If it does
    /// not (the outcome is not FAIL), the trimming ends.
    Whole,
    /// The next run tells whether the candidate that the search proposed has the same coverage as
    /// the queue entry.
    Candidate,
    /// No run is needed, because the trimming has ended.
    Nothing,
}

/// State of the trimming of one entry of the AFL++ queue: its search, the outcomes so far, and the
/// buffer that AFL++ reads.
pub(crate) struct Entry {
    searches: TrimSearch,
    /// Index of the current search in `searches`; a trimming makes one or two searches in sequence.
    stage: usize,
    search: Box<dyn Search>,
    cache: Cache,
    asked: Asked,
    /// Length of the queue entry as AFL++ gave it, in bytes; candidates are padded to it.
    untrimmed_len: usize,
    /// The text from which the current search deletes: the queue entry, or, in the second search,
    /// the result of the first.
    original: Vec<u8>,
    /// The shortest text so far that has the coverage of the queue entry.
    best: Vec<u8>,
    /// The current candidate, followed by zeros up to the length of the queue entry. The zeros are
    /// needed because AFL++ with the option `-g` reads its minimum length from this buffer, even if
    /// the candidate is shorter.
    buffer: Vec<u8>,
    /// Length in bytes of the candidate in `buffer`, without the zeros after it.
    len: usize,
    /// Maximum number of executions of the target that the trimming of this queue entry may take.
    steps: u32,
    /// Number of outcomes that AFL++ has reported so far for candidates of this queue entry.
    outcomes: u32,
}

impl Entry {
    /// Starts the trimming of the queue entry `original` with at most `steps` executions of the
    /// target; `None` if `steps` is 0, or the entry has fewer than two bytes.
    pub fn begin(original: &[u8], searches: TrimSearch, steps: u32) -> Option<Entry> {
        // An entry of one byte could only become empty, and AFL++ never runs empty entries.
        if original.len() < 2 || steps == 0 {
            return None;
        }
        Some(Entry {
            searches,
            stage: 0,
            search: searches.stage(0, original)?,
            cache: Cache::new(Caching::Text),
            asked: Asked::Whole,
            untrimmed_len: original.len(),
            original: original.to_vec(),
            best: original.to_vec(),
            buffer: original.to_vec(),
            len: original.len(),
            steps,
            outcomes: 0,
        })
    }

    /// Returns the maximum number of executions of the target that trimming this queue entry may
    /// take.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns a buffer and the length of the candidate: the buffer begins with the candidate,
    /// which is followed by zeros up to the length of the queue entry. After the end of trimming,
    /// the candidate is the shortest text that kept the coverage.
    pub fn candidate(&mut self) -> (&mut [u8], usize) {
        (&mut self.buffer, self.len)
    }

    /// Receives the outcome of the candidate that AFL++ has run; FAIL means the same coverage as
    /// the queue entry. The first candidate is the unchanged entry; if its outcome is not FAIL, the
    /// trimming ends. Returns the number of outcomes so far; at the end of trimming, returns the
    /// maximum number of steps, which tells AFL++ to stop.
    pub fn tell(&mut self, outcome: Outcome) -> u32 {
        self.outcomes += 1;
        match std::mem::replace(&mut self.asked, Asked::Nothing) {
            // The coverage varies from run to run, so no answer is reliable.
            Asked::Whole if outcome != Outcome::Fail => return self.end(),
            Asked::Whole => self.record(outcome),
            Asked::Candidate => {
                self.record(outcome);
                self.search.tell(outcome);
            }
            Asked::Nothing => return self.end(),
        }
        if self.outcomes >= self.steps || !self.ask() {
            return self.end();
        }
        self.outcomes
    }

    /// Ends the trimming: writes the shortest text that kept the coverage into the buffer. Returns
    /// the maximum number of steps, which tells AFL++ to stop.
    fn end(&mut self) -> u32 {
        self.asked = Asked::Nothing;
        self.buffer.clone_from(&self.best);
        self.pad();
        self.steps
    }

    /// Records the outcome of the candidate in the buffer, so that the same bytes are not run
    /// again. If the outcome is FAIL (same coverage), the candidate becomes the best text so far.
    fn record(&mut self, outcome: Outcome) {
        let text = &self.buffer[..self.len];
        let seen = Seen {
            outcome,
            test: None,
        };
        // Without a configuration, because the stages have different originals.
        self.cache.record(None, text_id(text), seen);
        if outcome == Outcome::Fail {
            self.best.clear();
            self.best.extend_from_slice(text);
        }
    }

    /// Finds the next candidate that AFL++ must run, and writes it into the buffer. Candidates of
    /// the search whose outcome is known without a run are answered on the way. Returns true if
    /// there is a candidate, and false if all searches of this trimming have ended.
    fn ask(&mut self) -> bool {
        loop {
            let Some(candidate) = self.search.next() else {
                if self.next_stage() {
                    continue;
                }
                return false;
            };
            candidate.write_into(&self.original, &self.best, &mut self.buffer);
            let Some(outcome) = self.known() else {
                self.pad();
                self.asked = Asked::Candidate;
                return true;
            };
            if outcome == Outcome::Fail {
                self.best.clone_from(&self.buffer);
            }
            self.search.tell(outcome);
        }
    }

    /// Begins the next search of the trimming, on the shortest text so far that kept the coverage.
    /// Returns true; false if there is no further search.
    fn next_stage(&mut self) -> bool {
        self.stage += 1;
        let Some(search) = self.searches.stage(self.stage, &self.best) else {
            return false;
        };
        self.search = search;
        self.original.clone_from(&self.best);
        true
    }

    /// Notes the length of the candidate in `buffer`, and fills the buffer with zeros up to the
    /// length of the queue entry.
    fn pad(&mut self) {
        self.len = self.buffer.len();
        self.buffer.resize(self.untrimmed_len, 0);
    }

    /// Returns the outcome of the candidate in the buffer if it is known without a run, else
    /// `None`. The empty text, and a text longer than the best one so far, have the outcome PASS.
    /// Any other text has the outcome of an earlier test of the same bytes, if there was one.
    fn known(&self) -> Option<Outcome> {
        // AFL++ runs no empty entries, and a longer text than the best is no progress.
        if self.buffer.is_empty() || self.buffer.len() > self.best.len() {
            return Some(Outcome::Pass);
        }
        let hit = self.cache.lookup(None, text_id(&self.buffer))?;
        Some(hit.outcome())
    }
}

/// Returns the id of a text in the cache of outcomes: two 64-bit hashes. An attacker could make two
/// texts with the same id, which would only keep one deletion from being tried.
pub(crate) fn text_id(text: &[u8]) -> TextId {
    let half = |which: u64| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(which);
        hasher.write(text);
        hasher.finish()
    };
    TextId((u128::from(half(0)) << 64 | u128::from(half(1))).to_le_bytes())
}
