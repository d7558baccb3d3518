//! The trimming of one entry.

use ddfuzz::delta::{Cache, Caching, Candidate, Outcome, Search, Seen};

use crate::TrimSearch;
use crate::name::name;

/// What AFL++ has to answer.
enum Asked {
    /// Whether the entry as it is has its coverage (the axiom `test(c✗) = FAIL`).
    Whole,
    /// What the search asks for.
    Candidate(Candidate),
    /// Nothing: the end.
    Nothing,
}

/// One entry while it is trimmed.
pub(crate) struct Entry {
    search: Box<dyn Search>,
    cache: Cache,
    asked: Asked,
    original: Vec<u8>,
    best: Vec<u8>,
    /// The candidate, and zeros behind it up to the length of the original: with `-g`, AFL++ reads
    /// its least length from here, whatever length it is told.
    buffer: Vec<u8>,
    /// Length of the candidate.
    len: usize,
    steps: u32,
    told: u32,
}

impl Entry {
    /// Begins to trim; `None` where nothing is to be asked.
    pub fn begin(original: &[u8], search: TrimSearch, steps: u32) -> Option<Entry> {
        // The one thing to try for a single byte is an empty entry, which AFL++ never runs.
        if original.len() < 2 || steps == 0 {
            return None;
        }
        Some(Entry {
            search: search.begin(original),
            cache: Cache::new(Caching::Text),
            asked: Asked::Whole,
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
            Asked::Whole => self.record(None, outcome),
            Asked::Candidate(candidate) => self.record(Some(&candidate), outcome),
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
    fn record(&mut self, candidate: Option<&Candidate>, outcome: Outcome) {
        let text = &self.buffer[..self.len];
        let config = candidate.and_then(|candidate| candidate.config);
        let seen = Seen {
            outcome,
            test: None,
        };
        self.cache.record(config, name(text), seen);
        if outcome == Outcome::Fail {
            self.best.clear();
            self.best.extend_from_slice(text);
        }
        if candidate.is_some() {
            self.search.tell(outcome);
        }
    }

    /// Puts the next candidate that has to be run into the buffer; says whether there is one.
    fn ask(&mut self) -> bool {
        while let Some(candidate) = self.search.next() {
            candidate.write_into(&self.original, &self.best, &mut self.buffer);
            match self.known(&candidate) {
                Some(outcome) => {
                    if outcome == Outcome::Fail {
                        self.best.clone_from(&self.buffer);
                    }
                    self.search.tell(outcome);
                }
                None => {
                    self.pad();
                    self.asked = Asked::Candidate(candidate);
                    return true;
                }
            }
        }
        false
    }

    /// Puts zeros behind the text that is the buffer.
    fn pad(&mut self) {
        self.len = self.buffer.len();
        self.buffer.resize(self.original.len(), 0);
    }

    /// The outcome of the candidate in the buffer where no run is needed to know it.
    fn known(&mut self, candidate: &Candidate) -> Option<Outcome> {
        // AFL++ runs no empty entry; and what is longer than the best is no trimming.
        if self.buffer.is_empty() || self.buffer.len() > self.best.len() {
            return Some(Outcome::Pass);
        }
        let text = name(&self.buffer);
        let hit = self.cache.lookup(candidate.config, text)?;
        let seen = Seen {
            outcome: hit.outcome(),
            test: None,
        };
        self.cache.record(candidate.config, text, seen);
        Some(seen.outcome)
    }
}
