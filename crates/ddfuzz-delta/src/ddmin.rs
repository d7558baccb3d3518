//! `ddmin`, the minimizing delta debugging algorithm, in two published forms.

use std::ops::Range;

use crate::{Candidate, Config, Outcome, Rule, Search, part};

/// The test whose outcome the minimization by `ddmin` needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The test of the subset with this index, counted from 0: only one part of the failing
    /// configuration (set of kept units) is kept.
    Subset { index: usize },
    /// The test of the complement with this index, counted from 0: one part of the failing
    /// configuration (set of kept units) is removed.
    Complement { index: usize },
    /// No test is needed: the search has ended.
    Done,
}

/// `ddmin` as in Hildebrandt & Zeller, ISSTA 2000, figure 1 (*Why Programs Fail*, list 5.2).
///
/// Each round splits the failing configuration `c` into `n ≤ |c|` subsets. It tests the subsets,
/// and then, for `n > 2`, their complements, in order. A failing subset becomes `c`, with `n = 2`;
/// a failing complement becomes `c`, with `max(n − 1, 2)`. If nothing fails, `n` doubles, up to
/// `|c|`.
///
/// The result is 1-minimal (A.12). The search takes at most `|c|² + 3|c|` tests, and at most
/// `2⌈log2 |c|⌉` if a single unit decides every test (A.14). UNRESOLVED is treated like PASS.
///
/// If the smallest failing configuration consists of `r` ranges of units, choosing a test takes
/// O(log r) and a reduction O(r) time. A reduction at granularity `n` leaves O(n) ranges and is
/// followed by the tests of n − 1 subsets, so choosing a test is cheap on average.
#[derive(Clone, Debug)]
pub struct Ddmin {
    best: Config,
    parts: usize,
    step: Step,
}

impl Ddmin {
    /// Name of the search `ddmin` of ISSTA 2000 on command lines and in logs.
    pub const NAME: &'static str = "ddmin";

    /// Creates a search over all `units`, which together must have given FAIL.
    pub fn new(units: usize) -> Ddmin {
        let mut machine = Ddmin {
            best: Config::all(units),
            parts: 2,
            step: Step::Done,
        };
        machine.begin_round(2);
        machine
    }

    /// Returns the granularity `n`: the number of subsets into which the failing configuration (set
    /// of kept units) is now split.
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

    /// Returns the candidate that is to be tested now; `None` after the end of the search.
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

    /// After a test that did not fail, chooses the next test: that of the next subset or the next
    /// complement. After the last of them, splits the configuration (set of kept units) into twice
    /// as many subsets or, if each has one unit, ends the search.
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

/// The function `ddmin` of *The Debugging Book*, after Zeller & Hildebrandt, *Simplifying and
/// Isolating Failure-Inducing Input*, 2002: it tests complements only.
///
/// Each round splits the failing configuration `c` into chunks of `⌊|c| / n⌋` units, and tests `c`
/// without each of them, from the front. If `n` does not divide `|c|`, there are more than `n`
/// chunks, and the last one is shorter. A failing complement becomes `c`, with `max(n − 1, 2)`, and
/// a new round begins. If no complement fails, `n` doubles, up to `|c|`. The search ends when fewer
/// than two units remain.
///
/// The result is 1-minimal (A.11), because the last round removes each single unit. UNRESOLVED is
/// treated like PASS. Like the original program, the search may ask for a configuration more than
/// once; the caller decides which tests a cache answers.
#[derive(Clone, Debug)]
pub struct Ddmin2002 {
    best: Config,
    parts: usize,
    /// Start of the chunk whose complement is being tested, as a position among the kept units.
    start: usize,
    done: bool,
}

impl Ddmin2002 {
    /// Name of the search `ddmin` of *The Debugging Book* on command lines and in logs.
    pub const NAME: &'static str = "ddmin-2002";

    /// Creates a search over all `units`, which together must have given FAIL.
    pub fn new(units: usize) -> Ddmin2002 {
        Ddmin2002 {
            best: Config::all(units),
            parts: 2,
            start: 0,
            done: units < 2,
        }
    }

    /// Returns the granularity `n`: a chunk has `⌊|c| / n⌋` of the units of the failing
    /// configuration `c`.
    pub fn granularity(&self) -> usize {
        self.parts
    }

    /// Returns the chunk (a range of positions among the kept units) whose complement is tested. It
    /// is never empty, because there are at most as many chunks as units.
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
