//! How an input shrank, from the lines of its log.

use std::collections::BTreeMap;

use serde::Serialize;

use super::size;
use crate::minimize::Claim;
use crate::minimize::log::{Line, Phase, Source, StartLine, TestLine};

/// One reduction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Index of the test that failed.
    pub i: u64,
    /// Executed tests up to there, itself included.
    pub executed: u64,
    /// The rule that made its candidate.
    pub rule: String,
    /// Size of the new best, in bytes; of a part of a call, in units.
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
    /// Whether it is a part of a call that shrank: sizes are in its units, and not in bytes.
    pub of_call: bool,
    /// Size of the input.
    pub size_before: u64,
    /// Size of the best.
    pub size_after: u64,
    /// Tests, those that a cache or a predictor answered included.
    pub tests: u64,
    /// Tests that ran the target.
    pub executed: u64,
    /// The reductions, in order.
    pub steps: Vec<Step>,
    /// The executed tests, in order.
    pub dots: Vec<Dot>,
    /// The passes, in the order of their first test.
    pub passes: Vec<Pass>,
    /// The claim; `None` where the log has no end yet, or goes on behind it.
    pub claim: Option<Claim>,
}

impl Shrinking {
    /// Reads the lines of a log behind its first.
    pub fn of<'a>(start: &StartLine, lines: impl IntoIterator<Item = &'a Line>) -> Shrinking {
        let mut shrinking = Shrinking {
            search: start.search.clone(),
            of_call: start.call.is_some(),
            size_before: start.size,
            size_after: start.size,
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
                Line::Test(test) => last = shrinking.test(test),
                Line::Reduce(step) => shrinking.reduce(last, step.i, &step.rule, step.size),
                Line::End(end) => {
                    // The empty input has no reduction.
                    shrinking.size_after = end.size;
                    shrinking.claim = Some(end.claim);
                }
                Line::Start(_) | Line::Check(_) => {}
            }
        }
        shrinking
    }

    /// Counts a test; gives the place of its pass.
    fn test(&mut self, test: &TestLine) -> usize {
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
            self.dots.push(Dot {
                executed: self.executed,
                size: test.size,
                failed: test.has_failed(),
            });
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

    /// What sizes count: `bytes` or `units`.
    pub fn units(&self) -> &'static str {
        match self.of_call {
            true => "units",
            false => "bytes",
        }
    }

    /// The sizes before and after: `40 → 6 bytes`.
    pub fn sizes(&self) -> String {
        let after = self.size_after;
        match self.of_call {
            true => size::reduction_in(self.size_before, after, "unit"),
            false => size::reduction(self.size_before, after),
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
