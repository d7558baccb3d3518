//! `ddmin` as the 2002 paper's Python has it.

use std::ops::Range;

use super::{Candidate, Config, Outcome, Rule, Search};

/// The function `ddmin` of *The Debugging Book*, after Zeller & Hildebrandt (2002): complements
/// only.
///
/// Each round removes one chunk of `⌊|c| / n⌋` units after the other, beginning at 0; where `n`
/// does not divide `|c|`, these are more than `n` chunks, the last one shorter. A failing
/// complement is taken with `max(n − 1, 2)` and the round begins again; where none fails, `n`
/// doubles, up to `|c|`. It ends below two units.
///
/// The result is 1-minimal (A.11): the last round removed each unit alone, `test(∅)` being known.
/// UNRESOLVED is taken like PASS. The original has no cache and runs the same configuration again;
/// so does this machine, whose caller decides what is answered without a run.
#[derive(Clone, Debug)]
pub struct Ddmin2002 {
    best: Config,
    parts: usize,
    /// Where the chunk begins whose complement is being tested, in positions of `best`.
    start: usize,
    done: bool,
}

impl Ddmin2002 {
    /// The name of this search on the command line and in logs.
    pub const NAME: &'static str = "ddmin-2002";

    /// Begins with `c✗` of this many units, whose test must have been FAIL.
    pub fn new(units: usize) -> Ddmin2002 {
        Ddmin2002 {
            best: Config::all(units),
            parts: 2,
            start: 0,
            done: units < 2,
        }
    }

    /// The granularity `n`.
    pub fn granularity(&self) -> usize {
        self.parts
    }

    /// The chunk whose complement is being tested. It is never empty, because `n ≤ |c|`.
    fn chunk(&self) -> Range<usize> {
        let step = self.best.len() / self.parts;
        self.start..self.best.len().min(self.start + step)
    }
}

impl Search for Ddmin2002 {
    fn next(&mut self) -> Option<Candidate> {
        let cut = || vec![self.chunk()];
        (!self.done).then(|| Candidate::cut(Rule::Complement, &self.best, cut()))
    }

    fn tell(&mut self, outcome: Outcome) {
        if self.done {
            return;
        }
        let chunk = self.chunk();
        let len = self.best.len();
        if outcome == Outcome::Fail {
            self.best = self.best.without(&[chunk]);
            self.parts = (self.parts - 1).max(2);
            self.start = 0;
            self.done = self.best.len() < 2;
        } else if chunk.end < len {
            self.start = chunk.end;
        } else {
            self.done = self.parts == len;
            self.parts = len.min(2 * self.parts);
            self.start = 0;
        }
    }

    fn best(&self) -> &Config {
        &self.best
    }

    fn boxed(&self) -> Box<dyn Search> {
        Box::new(self.clone())
    }
}
