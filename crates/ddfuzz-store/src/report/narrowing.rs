//! How `max` and `diff` come to a difference, from the lines of their logs.

use ddfuzz_minimize::log::{EditRecord, StartLine, TestLine, Units};

/// The deltas between the two ends of a log of `max` or `diff`. The sizes of the ends in it tell
/// little: one of them grows, and edits may do either.
pub(super) struct Narrowing {
    /// Deltas of the passing end.
    passing: u64,
    /// Deltas of the failing end.
    failing: u64,
    /// Deltas of the candidates, by the indices of their tests.
    kept: Vec<u64>,
    /// What one delta is.
    pub unit: &'static str,
}

impl Narrowing {
    /// Before the first test; `None` for a log of `min`.
    pub fn of(start: &StartLine) -> Option<Narrowing> {
        let difference = start.difference.as_ref()?;
        Some(Narrowing {
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
