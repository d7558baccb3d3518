//! The trait [`Search`], which all searches implement, and the candidates that they ask to test.

use std::{fmt, ops::Range};

use crate::{Config, ConfigId, Hints, Outcome};

/// A search as a step machine: [`next`](Search::next) returns the candidate to test,
/// [`tell`](Search::tell) takes its outcome. The same outcomes give the same candidates in the same
/// order, so serial, parallel, resumed and replayed runs of a search agree.
///
/// Before the first step, the caller tests the whole input, which must give FAIL, and the empty
/// input.
///
/// To test ahead, a scheduler clones the search, tells the clone the likely outcome, and asks the
/// clone for the next candidate. Cloning a [`Subset`](super::Subset) or [`Full`](super::Full) takes
/// as long as the search so far, without its tests; other searches are cheap to clone.
pub trait Search: Send {
    /// Returns the candidate to test now; `None` if the search has ended. Calls without a
    /// [`tell`](Search::tell) in between return the same candidate.
    fn next(&mut self) -> Option<Candidate>;

    /// Receives the outcome of the test of the candidate that [`next`](Search::next) returned; only
    /// then `next` returns another candidate. Does nothing after the end of the search.
    fn tell(&mut self, outcome: Outcome);

    /// Receives the hints of a run: facts that the run reported besides its outcome. The caller
    /// passes the hints of a run of the whole input before the first step. For a candidate that is
    /// to be [observed](Candidate::observed), it passes the hints of the candidate's run before it
    /// calls [`tell`](Search::tell). Candidates depend on hints as they do on outcomes, so a replay
    /// must give the same hints. By default hints are ignored.
    fn hint(&mut self, _: &Hints) {}

    /// Says how many tests the search may make after its proof, which is the round of tests that
    /// shows its result to be 1-minimal. To be called before the first step or never; ignored by
    /// default.
    fn allow_extra_tests(&mut self, _: ExtraTests) {}

    /// Returns the outcome that the search predicts for the candidate of [`next`](Search::next);
    /// `None` if it predicts none. The caller need not run such a candidate: it may pass the
    /// predicted outcome to [`tell`](Search::tell). That outcome is not a part of a proof.
    fn predicted(&self) -> Option<Outcome> {
        None
    }

    /// Returns the smallest configuration so far whose test gave FAIL.
    ///
    /// If the search replaces bytes, these are the positions of the original input from which the
    /// bytes of its best text come; the best text may have other values at them.
    ///
    /// A search that only [cuts](super::Edit::Cut) its best makes each failing candidate the new
    /// best. Other searches also see larger configurations fail; among failing configurations of
    /// the smallest size, the first one is the best.
    fn best(&self) -> &Config;

    /// Returns a clone of the search in a box.
    fn boxed(&self) -> Box<dyn Search>;
}

/// How many tests the passes of a search may take after its proof, the round of tests that shows
/// its result to be 1-minimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExtraTests {
    /// As many extra tests as the search took before its proof, but at least 2,000.
    #[default]
    Many,
    /// Half as many extra tests as the search took before its proof, because tests take long.
    Few,
    /// No extra tests after the proof of 1-minimality.
    None,
}

impl Clone for Box<dyn Search> {
    fn clone(&self) -> Self {
        self.as_ref().boxed()
    }
}

/// The rule of a search that made a candidate. The step is named by this rule if the candidate
/// becomes the new best (smallest failing) or the new passing configuration (set of kept units).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Reduce to subset: one part of the failing configuration (set of kept units) becomes the
    /// failing one.
    Subset,
    /// Reduce to complement: the failing configuration (set of kept units) without one of its parts
    /// becomes the failing one.
    Complement,
    /// Increase to subset: the failing configuration (set of kept units) without one part becomes
    /// the passing one.
    IncreaseToSubset,
    /// Increase to complement: the passing configuration (set of kept units) together with one part
    /// of the difference becomes the passing one.
    IncreaseToComplement,
    /// The candidate is the final result of a search, which is tested last.
    Result,
    /// The candidate was made by the pass with this name, one of several in a search.
    Pass(&'static str),
}

impl Rule {
    /// Returns the name of this rule in logs.
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

/// A replacement of a range of the current best text by other bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The replaced bytes, as a range of the current best text.
    pub at: Range<usize>,
    /// The new bytes, which take the place of the replaced ones.
    pub with: Vec<u8>,
}

/// How the text of a candidate is made. Most edits apply to the current best (the smallest text so
/// far that failed), so that they are small even if the best consists of many ranges of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Deletes these ranges of positions (indices of bytes or other units), which ascend and do not
    /// overlap, from the current best text.
    Cut(Vec<Range<usize>>),
    /// Keeps the units of the original input that are in this configuration (set of kept units),
    /// whatever the current best text is.
    Keep(Config),
    /// Makes these replacements, which ascend and do not overlap, in the current best text.
    Set(Vec<Replacement>),
}

impl Edit {
    /// Returns the configuration (set of kept units) that this edit makes of the configuration
    /// `best`; `None` for [`Edit::Set`], whose text is not a subset of the original's units.
    pub fn apply(&self, best: &Config) -> Option<Config> {
        match self {
            Edit::Cut(cuts) => Some(best.without(cuts)),
            Edit::Keep(config) => Some(config.clone()),
            Edit::Set(_) => None,
        }
    }

    /// Returns the text that this edit makes of `best`, the current best text. The edit must not be
    /// [`Edit::Keep`].
    pub(super) fn of_best(&self, best: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(best.len());
        self.write_into(&[], best, &mut text);
        text
    }

    /// Appends to `text` the text that this edit makes of `best`, the current best text.
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

/// A candidate: an input that a search asks to test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The rule of the search by which the candidate was made.
    pub rule: Rule,
    /// The edit that makes the text of the candidate, mostly from the current best text.
    pub edit: Edit,
    /// Id of the set of units that the candidate keeps; `None` if its text is not a subset of the
    /// original's units.
    pub config: Option<ConfigId>,
    /// True if the test should also report which operands the program
    /// [compared](super::Comparison).
    pub observed: bool,
}

impl Candidate {
    /// Builds a candidate of the step `rule` of a search: the configuration `best` without the
    /// positions `cuts`.
    pub fn cut(rule: Rule, best: &Config, cuts: Vec<Range<usize>>) -> Candidate {
        let config = Some(best.id_without(&cuts));
        Candidate {
            rule,
            edit: Edit::Cut(cuts),
            config,
            observed: false,
        }
    }

    /// Builds a candidate that keeps exactly the units in `config`.
    pub fn keep(rule: Rule, config: Config) -> Candidate {
        Candidate {
            rule,
            config: Some(config.id()),
            edit: Edit::Keep(config),
            observed: false,
        }
    }

    /// Writes the text of the candidate into `text`, which is cleared first. `original` is the
    /// whole input and `best` the current best text of the search (the smallest that failed); units
    /// are bytes.
    pub fn write_into(&self, original: &[u8], best: &[u8], text: &mut Vec<u8>) {
        text.clear();
        self.edit.write_into(original, best, text);
    }
}
