//! `ddmin`, the minimizing delta debugging algorithm, in two published forms.

use std::ops::Range;

use crate::{Candidate, Config, Outcome, Rule, Search, part};

/// What the machine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Testing subset number `index`, from 0.
    Subset { index: usize },
    /// Testing complement number `index`, from 0.
    Complement { index: usize },
    /// Nothing: the search has ended.
    Done,
}

/// `ddmin` exactly as ISSTA figure 1 has it (*Why Programs Fail*, list 5.2).
///
/// With `test(c) = FAIL` and `n ≤ |c|` as its invariant, each round tests the `n` subsets, then
/// the `n` complements (at `n = 2` they are the subsets, and are skipped), in order. A failing
/// subset starts again with `n = 2`, a failing complement with `max(n − 1, 2)`; where none fails
/// the granularity doubles, up to `|c|`.
///
/// The result is 1-minimal (A.12). It takes at most `|c|² + 3|c|` tests, and at most
/// `2⌈log2 |c|⌉` where one unit decides every test (A.14). UNRESOLVED is taken like PASS.
///
/// A step takes O(log r) and a reduction O(r) for a best of `r` ranges; since a reduction at
/// granularity `n` leaves O(n) ranges and is followed by n − 1 subsets, steps are cheap on average.
#[derive(Clone, Debug)]
pub struct Ddmin {
    best: Config,
    parts: usize,
    step: Step,
}

impl Ddmin {
    /// The name of this search on the command line and in logs.
    pub const NAME: &'static str = "ddmin";

    /// Begins with `c✗` of this many units, whose test must have been FAIL.
    pub fn new(units: usize) -> Ddmin {
        let mut machine = Ddmin {
            best: Config::all(units),
            parts: 2,
            step: Step::Done,
        };
        machine.begin_round(2);
        machine
    }

    /// The granularity `n`.
    pub fn granularity(&self) -> usize {
        self.parts
    }

    fn begin_round(&mut self, parts: usize) {
        self.parts = parts;
        self.step = if self.best.len() <= 1 {
            Step::Done
        } else {
            Step::Subset { index: 0 }
        };
    }

    /// The candidate of a step of the current round.
    fn candidate(&self) -> Option<Candidate> {
        let len = self.best.len();
        let (rule, cuts) = match self.step {
            Step::Subset { index } => {
                let kept = part(len, self.parts, index);
                (Rule::Subset, vec![0..kept.start, kept.end..len])
            }
            Step::Complement { index } => (Rule::Complement, vec![part(len, self.parts, index)]),
            Step::Done => return None,
        };
        let cuts = cuts.into_iter().filter(|cut| !cut.is_empty()).collect();
        Some(Candidate::cut(rule, &self.best, cuts))
    }

    /// The step after one that did not fail.
    fn advance(&mut self) {
        let last = self.parts - 1;
        match self.step {
            Step::Subset { index } if index < last => {
                self.step = Step::Subset { index: index + 1 };
            }
            Step::Subset { .. } if self.parts > 2 => self.step = Step::Complement { index: 0 },
            Step::Complement { index } if index < last => {
                self.step = Step::Complement { index: index + 1 };
            }
            Step::Subset { .. } | Step::Complement { .. } if self.parts < self.best.len() => {
                self.begin_round(self.best.len().min(2 * self.parts));
            }
            _ => self.step = Step::Done,
        }
    }
}

impl Search for Ddmin {
    fn next(&mut self) -> Option<Candidate> {
        self.candidate()
    }

    fn tell(&mut self, outcome: Outcome) {
        if outcome != Outcome::Fail {
            self.advance();
        } else if let Some(config) = self
            .candidate()
            .and_then(|asked| asked.edit.apply(&self.best))
        {
            self.best = config;
            self.begin_round(match self.step {
                Step::Complement { .. } => (self.parts - 1).max(2),
                Step::Subset { .. } | Step::Done => 2,
            });
        }
    }

    fn best(&self) -> &Config {
        &self.best
    }

    fn boxed(&self) -> Box<dyn Search> {
        Box::new(self.clone())
    }
}

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
