//! How an input shrank (`min`), and how a difference was found (`max`, `diff`), from the lines of
//! their logs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::size;
use ddfuzz_minimize::Claim;
use ddfuzz_minimize::log::{EditRecord, Line, Phase, Source, StartLine, TestLine, Units};

/// One reduction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Index of the test that failed.
    pub i: u64,
    /// Executed tests up to there, itself included.
    pub executed: u64,
    /// The rule that made its candidate.
    pub rule: String,
    /// Size of the new best, in bytes; of a part of a call, in units; of `max` and `diff`, the
    /// deltas that are left.
    pub size: u64,
}

/// An executed test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dot {
    /// Its number among the executed tests, from 1.
    pub executed: u64,
    /// Size of the candidate, in bytes; of a part of a call, in units.
    pub size: u64,
    /// Whether it failed, and so reduced the input or could have.
    pub failed: bool,
}

/// What one pass of the search did; a search without passes is one, and so is the proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pass {
    /// Its name.
    pub name: String,
    /// Tests, those that a cache or a predictor answered included.
    pub tests: u64,
    /// Tests that ran the target.
    pub executed: u64,
    /// Tests that made the best smaller, or put smaller bytes into it.
    pub reductions: u64,
    /// Bytes or units that went by them.
    pub removed: u64,
    /// Reductions by rule, where there are several rules.
    pub rules: BTreeMap<String, u64>,
}

/// How an input shrank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrinking {
    /// Name of the search.
    pub search: String,
    /// What sizes count: `byte`, `unit` of a part of a call, `edit` between two inputs.
    pub unit: &'static str,
    /// Size of the input; of `max` and `diff`, all deltas between the two inputs.
    pub size_before: u64,
    /// Size of the best.
    pub size_after: u64,
    /// Tests, those that a cache or a predictor answered included.
    pub tests: u64,
    /// Tests that ran the target.
    pub executed: u64,
    /// The reductions, in order.
    pub steps: Vec<Step>,
    /// The executed tests, in order; none of `max` and `diff`, whose candidates lie between two
    /// ends.
    pub dots: Vec<Dot>,
    /// The passes, in the order of their first test.
    pub passes: Vec<Pass>,
    /// The claim; `None` where the log has no end yet, or goes on behind it.
    pub claim: Option<Claim>,
}

impl Shrinking {
    /// Reads the lines of a log behind its first.
    pub fn of<'a>(start: &StartLine, lines: impl IntoIterator<Item = &'a Line>) -> Shrinking {
        let mut isolation = Isolation::of(start);
        let size = isolation.as_ref().map_or(start.size, Isolation::left);
        let mut shrinking = Shrinking {
            search: start.search.clone(),
            unit: match (&isolation, &start.call) {
                (Some(isolation), _) => isolation.unit,
                (None, Some(_)) => "unit",
                (None, None) => "byte",
            },
            size_before: size,
            size_after: size,
            tests: 0,
            executed: 0,
            steps: Vec::new(),
            dots: Vec::new(),
            passes: Vec::new(),
            claim: None,
        };
        let mut last = 0;
        for line in lines {
            shrinking.claim = None;
            match line {
                Line::Test(test) => {
                    last = shrinking.test(test, isolation.is_none());
                    isolation.iter_mut().for_each(|one| one.test(test));
                }
                Line::Reduce(step) => {
                    isolation
                        .iter_mut()
                        .for_each(|one| one.reduce(step.i, &step.rule));
                    let size = isolation.as_ref().map_or(step.size, Isolation::left);
                    shrinking.reduce(last, step.i, &step.rule, size);
                }
                Line::End(end) => {
                    // The empty input has no reduction.
                    shrinking.size_after = isolation.as_ref().map_or(end.size, Isolation::left);
                    shrinking.claim = Some(end.claim);
                }
                Line::Start(_) | Line::Check(_) => {}
            }
        }
        shrinking
    }

    /// Counts a test; gives the place of its pass.
    fn test(&mut self, test: &TestLine, dotted: bool) -> usize {
        let name = match (&test.pass, test.phase) {
            (_, Some(Phase::Proof)) => "proof",
            (Some(pass), None) => pass,
            (None, None) => &self.search,
        };
        let known = self.passes.iter().position(|pass| pass.name == name);
        let at = known.unwrap_or_else(|| {
            self.passes.push(Pass {
                name: name.to_owned(),
                ..Pass::default()
            });
            self.passes.len() - 1
        });
        self.tests += 1;
        self.passes[at].tests += 1;
        if test.source == Source::Run {
            self.executed += 1;
            self.passes[at].executed += 1;
            let dot = dotted.then(|| Dot {
                executed: self.executed,
                size: test.size,
                failed: test.has_failed(),
            });
            self.dots.extend(dot);
        }
        at
    }

    fn reduce(&mut self, pass: usize, i: u64, rule: &str, size: u64) {
        if let Some(pass) = self.passes.get_mut(pass) {
            pass.reductions += 1;
            pass.removed += self.size_after.saturating_sub(size);
            if rule != pass.name {
                *pass.rules.entry(rule.to_owned()).or_default() += 1;
            }
        }
        self.size_after = size;
        self.steps.push(Step {
            i,
            executed: self.executed,
            rule: rule.to_owned(),
            size,
        });
    }

    /// What sizes count, in the plural.
    pub fn units(&self) -> &'static str {
        match self.unit {
            "unit" => "units",
            "edit" => "edits",
            _ => "bytes",
        }
    }

    /// The sizes before and after: `40 → 6 bytes`.
    pub fn sizes(&self) -> String {
        let after = self.size_after;
        match self.unit {
            "byte" => size::reduction(self.size_before, after),
            unit => size::reduction_in(self.size_before, after, unit),
        }
    }

    /// Size of the best after so many executed tests.
    pub fn best_after(&self, executed: u64) -> u64 {
        let steps = self.steps.partition_point(|step| step.executed <= executed);
        match steps.checked_sub(1) {
            Some(last) => self.steps[last].size,
            None => self.size_before,
        }
    }

    /// Whether sizes are so far apart that only a logarithmic axis shows them.
    pub fn wants_log_sizes(&self) -> bool {
        self.size_before >= self.size_after.max(1).saturating_mul(20)
    }

    /// Whether nine tenths of the bytes went in the first tenth of many tests, so that only a
    /// logarithmic axis shows how.
    pub fn wants_log_tests(&self) -> bool {
        let all = self.size_before - self.size_after.min(self.size_before);
        let early = self.size_before - self.best_after(self.executed / 10).min(self.size_before);
        self.executed >= 100 && early * 10 >= all * 9
    }
}

/// The deltas between the two ends of a log of `max` or `diff`. The sizes of the ends in it tell
/// little: one of them grows, and edits may do either.
pub(super) struct Isolation {
    /// Deltas of the passing end.
    passing: u64,
    /// Deltas of the failing end.
    failing: u64,
    /// Deltas of the candidates, by the indices of their tests.
    kept: Vec<u64>,
    /// What one delta is.
    pub unit: &'static str,
}

impl Isolation {
    /// Before the first test; `None` for a log of `min`.
    pub fn of(start: &StartLine) -> Option<Isolation> {
        let difference = start.difference.as_ref()?;
        Some(Isolation {
            passing: 0,
            failing: difference.deltas,
            kept: Vec::new(),
            unit: match difference.units {
                Units::Bytes | Units::EditBytes => "byte",
                Units::Edits => "edit",
            },
        })
    }

    /// Deltas that only the failing end has.
    pub fn left(&self) -> u64 {
        self.failing.saturating_sub(self.passing)
    }

    /// Takes a test.
    pub fn test(&mut self, test: &TestLine) {
        self.kept.push(match &test.edit {
            EditRecord::Keep(kept) => kept
                .iter()
                .map(|[start, end]| end.saturating_sub(*start))
                .sum(),
            EditRecord::Cut(_) | EditRecord::Set(_) => 0,
        });
    }

    /// Takes the candidate of test `i` as an end; the rule tells which.
    pub fn reduce(&mut self, i: u64, rule: &str) {
        let kept = usize::try_from(i).ok().and_then(|i| self.kept.get(i));
        let Some(kept) = kept else { return };
        match rule.starts_with("increase-") {
            true => self.passing = *kept,
            false => self.failing = *kept,
        }
    }
}
