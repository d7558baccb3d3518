//! `subset`: deletes only, in the order that takes the fewest tests.

use std::sync::Arc;

use super::dialogue::{Dialogue, is_search};
use super::script::{Plan, script, units};
use super::workpiece::Workpiece;

/// Minimizes by deleting, in any order. The result is a subsequence of the input, and 1-minimal
/// where no unit of it can go alone, which its last round of tests shows.
#[derive(Clone)]
pub struct Subset(Dialogue);

impl Subset {
    /// The name of this search on the command line and in logs.
    pub const NAME: &'static str = "subset";

    /// Begins with a text whose test must have been FAIL. What the text looks like decides which
    /// passes are worth trying: lines, brackets, runs of equal bytes.
    pub fn new(text: &[u8]) -> Subset {
        let text: Arc<[u8]> = text.into();
        Subset(Dialogue::new(text.len(), move |asker| {
            let work = Workpiece::new(asker, text.clone());
            Box::pin(script(work, Plan::Delete))
        }))
    }

    /// Begins with `c✗` of this many units of any kind, whose test must have been FAIL.
    ///
    /// ```
    /// use ddfuzz_delta::{Outcome, Subset, minimize};
    ///
    /// let events: Vec<u32> = (0..1000).collect();
    /// let fails = |kept: &[u32]| match kept.contains(&95) && kept.contains(&896) {
    ///     true => Outcome::Fail,
    ///     false => Outcome::Pass,
    /// };
    /// assert_eq!(minimize(&events, Subset::of_units, fails), Ok(vec![95, 896]));
    /// ```
    pub fn of_units(units: usize) -> Subset {
        Subset(Dialogue::new(units, move |asker| {
            Box::pin(self::units(Workpiece::of_units(asker, units)))
        }))
    }
}

is_search!(Subset);
