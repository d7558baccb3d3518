//! What was measured.

use crate::bounds::Bounds;
use crate::cost::Cost;
use crate::families::{Case, family};
use crate::peers::Peer;

/// What is known of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Minimality {
    /// Any deletion of a byte makes the failure go away; `proved`: and the tool proved it.
    Minimal {
        /// Whether the tool claims it, with a proof.
        proved: bool,
    },
    /// The byte at this place can be deleted.
    Reducible(usize),
    /// It does not crash, or by another bug.
    OtherBug,
}

/// What one tool did with one case.
#[derive(Clone, Debug)]
pub struct Row {
    /// The tool.
    pub tool: String,
    /// Runs of the target; for ddfuzz without its checks.
    pub tests: u64,
    /// Runs aside from the search (ddfuzz).
    pub checks: u64,
    /// What it came to, with its size; nothing where the tool gave none.
    pub result: Option<(usize, Minimality)>,
    /// Whether it was ended at the limit.
    pub timed_out: bool,
    /// Why it gave nothing, or what went wrong.
    pub note: Option<String>,
    /// Whether this is a search of ours, by its name.
    pub search: Option<&'static str>,
    /// What it cost.
    pub cost: Cost,
}

impl Row {
    /// A row of which nothing is known yet.
    pub fn new(tool: &dyn Peer) -> Row {
        Row {
            tool: tool.name(),
            tests: 0,
            checks: 0,
            result: None,
            timed_out: false,
            note: None,
            search: tool.search(),
            cost: Cost::default(),
        }
    }

    /// The size of a result that fails by the right bug.
    pub fn size(&self) -> Option<usize> {
        match &self.result {
            Some((_, Minimality::OtherBug)) | None => None,
            Some((size, _)) => Some(*size),
        }
    }

    fn is_proved(&self) -> bool {
        matches!(self.result, Some((_, Minimality::Minimal { proved: true })))
    }
}

/// A case and what all tools did with it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The case.
    pub case: Case,
    /// The tools in the order they ran in.
    pub rows: Vec<Row>,
}

impl Measured {
    /// A case that nothing is known of yet.
    pub fn new(case: Case) -> Measured {
        Measured {
            case,
            rows: Vec::new(),
        }
    }

    /// What no tool can do without.
    pub fn bounds(&self) -> Bounds {
        Bounds::new(self.case.input.len(), &self.case.minimum)
    }

    /// Whether the row has a result: without an error, or of another tool that ended with an error
    /// when it had reduced the input.
    pub fn counts(&self, row: &Row) -> bool {
        let is_smaller = row.size().is_some_and(|size| size < self.case.input.len());
        row.note.is_none() || (row.search.is_none() && is_smaller)
    }

    /// The other tool that came to the smallest result; of several one that was not ended at the
    /// limit, with the fewest tests. One that stopped with fewer tests than a proof takes cannot
    /// know where it stands, and does not count; nor does one that failed.
    pub fn best_peer(&self) -> Option<&Row> {
        let proof = self.bounds().proof;
        let counts = |row: &&Row| row.search.is_none() && self.counts(row) && row.tests >= proof;
        let others = self.rows.iter().filter(counts);
        others
            .filter_map(|row| Some((row.size()?, row)))
            .min_by_key(|(size, row)| (*size, row.timed_out, row.tests))
            .map(|(_, row)| row)
    }

    /// What ddfuzz did not do as it should: errors, and claims that do not hold.
    pub fn failures(&self) -> impl Iterator<Item = String> {
        let ours = self.rows.iter().filter(|row| row.search.is_some());
        ours.filter_map(|row| {
            let note = row.note.as_ref()?;
            Some(format!("{}, {}: {note}", self.case.name(), row.tool))
        })
    }

    /// Tests in relation to those of the best other tool.
    pub fn ratio(&self, row: &Row) -> Option<f64> {
        let best = self.best_peer()?;
        Some(row.tests as f64 / best.tests.max(1) as f64)
    }
}

/// Whether what is promised for a search holds; `None` where nothing is.
pub fn keeps_promise(case: &Case, row: &Row) -> Option<bool> {
    let promised = family(case.family)?.promised(row.search?)?;
    let small = row.size().is_some_and(|size| size <= case.minimum.len());
    Some(row.tests <= promised && small && row.is_proved() && row.note.is_none())
}
