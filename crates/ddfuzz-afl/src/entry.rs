//! The trimming of one queue entry.

use ddfuzz_delta::{Cache, Caching, Outcome, Search, Seen, TextId};
use std::hash::{DefaultHasher, Hasher};

use crate::TrimSearch;

/// What AFL++ has to answer.
enum Asked {
    /// Whether the entry as it is has its coverage (the axiom `test(c✗) = FAIL`).
    Whole,
    /// What the search asks for.
    Candidate,
    /// Nothing: the end.
    Nothing,
}

/// One entry while it is trimmed.
pub(crate) struct Entry {
    searches: TrimSearch,
    /// Number of the stage of `searches`.
    stage: usize,
    search: Box<dyn Search>,
    cache: Cache,
    asked: Asked,
    /// Length of the entry.
    whole: usize,
    /// What the stage has begun with.
    original: Vec<u8>,
    best: Vec<u8>,
    /// The candidate, and zeros behind it up to the length of the entry: with `-g`, AFL++ reads
    /// its least length from here, whatever length it is told.
    buffer: Vec<u8>,
    /// Length of the candidate.
    len: usize,
    steps: u32,
    told: u32,
}

impl Entry {
    /// Begins to trim; `None` where nothing is to be asked.
    pub fn begin(original: &[u8], searches: TrimSearch, steps: u32) -> Option<Entry> {
        // The one thing to try for a single byte is an empty entry, which AFL++ never runs.
        if original.len() < 2 || steps == 0 {
            return None;
        }
        Some(Entry {
            searches,
            stage: 0,
            search: searches.stage(0, original)?,
            cache: Cache::new(Caching::Text),
            asked: Asked::Whole,
            whole: original.len(),
            original: original.to_vec(),
            best: original.to_vec(),
            buffer: original.to_vec(),
            len: original.len(),
            steps,
            told: 0,
        })
    }

    /// The steps that it may take.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// What is to be run now: its bytes stand at the front of the buffer. After the end, the best.
    pub fn candidate(&mut self) -> (&mut [u8], usize) {
        (&mut self.buffer, self.len)
    }

    /// Takes the outcome of the candidate, and gives the number of the next step; that of all steps
    /// is the end.
    pub fn tell(&mut self, outcome: Outcome) -> u32 {
        self.told += 1;
        match std::mem::replace(&mut self.asked, Asked::Nothing) {
            // Its coverage is another in each run: no answer would say anything.
            Asked::Whole if outcome != Outcome::Fail => return self.end(),
            Asked::Whole => self.record(outcome),
            Asked::Candidate => {
                self.record(outcome);
                self.search.tell(outcome);
            }
            Asked::Nothing => return self.end(),
        }
        if self.told >= self.steps || !self.ask() {
            return self.end();
        }
        self.told
    }

    /// Ends, with the best in the buffer.
    fn end(&mut self) -> u32 {
        self.asked = Asked::Nothing;
        self.buffer.clone_from(&self.best);
        self.pad();
        self.steps
    }

    /// Takes the outcome of what stands in the buffer.
    fn record(&mut self, outcome: Outcome) {
        let text = &self.buffer[..self.len];
        let seen = Seen {
            outcome,
            test: None,
        };
        // By texts alone: configurations of two stages have different originals.
        self.cache.record(None, name(text), seen);
        if outcome == Outcome::Fail {
            self.best.clear();
            self.best.extend_from_slice(text);
        }
    }

    /// Puts the next candidate that has to be run into the buffer; says whether there is one.
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

    /// Begins the next stage with the best; says whether there is one.
    fn next_stage(&mut self) -> bool {
        self.stage += 1;
        let Some(search) = self.searches.stage(self.stage, &self.best) else {
            return false;
        };
        self.search = search;
        self.original.clone_from(&self.best);
        true
    }

    /// Puts zeros behind the text that is the buffer.
    fn pad(&mut self) {
        self.len = self.buffer.len();
        self.buffer.resize(self.whole, 0);
    }

    /// The outcome of the text that is the buffer where no run is needed to know it.
    fn known(&self) -> Option<Outcome> {
        // AFL++ runs no empty entry; and what is longer than the best is no trimming.
        if self.buffer.is_empty() || self.buffer.len() > self.best.len() {
            return Some(Outcome::Pass);
        }
        let hit = self.cache.lookup(None, name(&self.buffer))?;
        Some(hit.outcome())
    }
}

/// The name of a text: two hashes of it, each of 64 bits. Texts made to collide could be made by
/// who knows the hash, but all that comes of it is a deletion that is not tried.
pub(crate) fn name(text: &[u8]) -> TextId {
    let half = |which: u64| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(which);
        hasher.write(text);
        hasher.finish()
    };
    TextId((u128::from(half(0)) << 64 | u128::from(half(1))).to_le_bytes())
}
