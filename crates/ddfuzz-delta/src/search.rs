//! The trait of all searches, and the candidates that they ask to test.

use std::{fmt, ops::Range};

use crate::{Config, ConfigId, Hints, Outcome};

/// A search as a step machine: [`next`](Search::next) says what to test, [`tell`](Search::tell)
/// takes the answer. The same outcomes give the same candidates in the same order, whoever runs
/// them: serial, parallel, resumed and replayed runs feed the same machine.
///
/// The axiom (`test(c✗) = FAIL`, `test(∅)` known) is tested by the caller before the first step.
///
/// A machine is cheap to clone. A scheduler that wants to test ahead clones it, tells the clone
/// the likely outcome, and asks it what comes next.
pub trait Search: Send {
    /// What to test now; `None` when the search has ended. Asking again before `tell` gives the
    /// same candidate.
    fn next(&mut self) -> Option<Candidate>;

    /// The outcome of the candidate that `next` gave. After the end it changes nothing.
    fn tell(&mut self, outcome: Outcome);

    /// What a run told besides its outcome: called before the first step with what the run of the
    /// input told, and before [`tell`](Search::tell) where the candidate asked to be
    /// [observed](Candidate::observed). The same hints belong to the same outcomes: they are part
    /// of what a search is a function of. Most searches need none.
    fn hint(&mut self, _: &Hints) {}

    /// The failing configuration that the search has come to, the smallest so far. Invariant: its
    /// test was FAIL.
    ///
    /// A search that also replaces bytes keeps the positions of the original that its best has
    /// descended from, whatever stands there now.
    ///
    /// Searches that only [cut](super::Edit::Cut) the best take each FAIL as the new best. Others
    /// also see larger configurations fail: the best is the first of the smallest.
    fn best(&self) -> &Config;

    /// A machine in the same state.
    fn boxed(&self) -> Box<dyn Search>;
}

impl Clone for Box<dyn Search> {
    fn clone(&self) -> Self {
        self.as_ref().boxed()
    }
}

/// By which rule of the search a candidate was made; a reduction or an increase is named by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Reduce to subset: one part is kept.
    Subset,
    /// Reduce to complement: one part is removed.
    Complement,
    /// Increase to subset: the passing side becomes the failing one without one part.
    IncreaseToSubset,
    /// Increase to complement: one part is added to the passing side.
    IncreaseToComplement,
    /// The result that the search came to, tested last.
    Result,
    /// A pass of a search that has several, by name.
    Pass(&'static str),
}

impl Rule {
    /// The name used in logs.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Subset => "subset",
            Rule::Complement => "complement",
            Rule::IncreaseToSubset => "increase-to-subset",
            Rule::IncreaseToComplement => "increase-to-complement",
            Rule::Result => "result",
            Rule::Pass(name) => name,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A range of the current best and the bytes that stand in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Positions in the current best, in bytes.
    pub at: Range<usize>,
    /// What stands there instead.
    pub with: Vec<u8>,
}

/// How a candidate's text is made. An edit is relative to the search's current best, so that it
/// stays small however scattered the best is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The current best without these ranges of it, which ascend without overlap.
    Cut(Vec<Range<usize>>),
    /// These ranges of the original, whatever the current best is.
    Keep(Config),
    /// The current best with these ranges of it replaced; they ascend without overlap.
    Set(Vec<Replacement>),
}

impl Edit {
    /// The configuration that it makes of the current best; `None` where the text it makes is not
    /// a subset of the original's units.
    pub fn apply(&self, best: &Config) -> Option<Config> {
        match self {
            Edit::Cut(cuts) => Some(best.without(cuts)),
            Edit::Keep(config) => Some(config.clone()),
            Edit::Set(_) => None,
        }
    }

    /// The text that it makes of that of the current best, which it is an edit of.
    pub(super) fn of_best(&self, best: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(best.len());
        self.write_into(&[], best, &mut text);
        text
    }

    /// Appends to `text` what it makes of the text of the current best.
    pub(super) fn write_into(&self, original: &[u8], best: &[u8], text: &mut Vec<u8>) {
        let mut from = 0;
        match self {
            Edit::Cut(cuts) => {
                for cut in cuts {
                    text.extend_from_slice(&best[from..cut.start]);
                    from = cut.end;
                }
                text.extend_from_slice(&best[from..]);
            }
            Edit::Keep(config) => config.write_into(original, text),
            Edit::Set(replacements) => {
                for replacement in replacements {
                    text.extend_from_slice(&best[from..replacement.at.start]);
                    text.extend_from_slice(&replacement.with);
                    from = replacement.at.end;
                }
                text.extend_from_slice(&best[from..]);
            }
        }
    }
}

/// One configuration to test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The rule that made it.
    pub rule: Rule,
    /// How its text is made.
    pub edit: Edit,
    /// The name of its set of units; `None` where it is not a subset of the original.
    pub config: Option<ConfigId>,
    /// Whether its run shall be observed, so that it tells what it [compared](super::Comparison).
    pub observed: bool,
}

impl Candidate {
    /// A candidate that removes ranges of the positions of `best`.
    pub fn cut(rule: Rule, best: &Config, cuts: Vec<Range<usize>>) -> Candidate {
        let config = Some(best.id_without(&cuts));
        Candidate {
            rule,
            edit: Edit::Cut(cuts),
            config,
            observed: false,
        }
    }

    /// A candidate that keeps these units of the original.
    pub fn keep(rule: Rule, config: Config) -> Candidate {
        Candidate {
            rule,
            config: Some(config.id()),
            edit: Edit::Keep(config),
            observed: false,
        }
    }

    /// Writes the candidate's text into `text`, which is cleared first: one pass of copies over
    /// ranges. `best` is the text of the search's current best, units being bytes.
    pub fn write_into(&self, original: &[u8], best: &[u8], text: &mut Vec<u8>) {
        text.clear();
        self.edit.write_into(original, best, text);
    }
}
