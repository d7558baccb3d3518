//! The crashes that candidates slip into, each examined once.

use std::collections::HashSet;

use super::{Keyer, OracleError, Slip, SlipKeys};
use ddfuzz_triage::{Class, Crash};

/// Makes [`Slip`]s of crashes that a keyer has named.
pub struct Slips {
    /// Names crashes.
    pub keyer: Box<dyn Keyer>,
    /// Those of which the whole crash is on record.
    examined: HashSet<SlipKeys>,
}

impl Slips {
    /// Those of crashes that this one names.
    pub fn new(keyer: Box<dyn Keyer>) -> Slips {
        Slips {
            keyer,
            examined: HashSet::new(),
        }
    }

    /// The slip into a crash of this name, with the whole crash the first time.
    ///
    /// # Errors
    /// When the target cannot be run.
    pub fn of(&mut self, class: Class, keys: SlipKeys, input: &[u8]) -> Result<Slip, OracleError> {
        let mut slip = Slip {
            class,
            keys,
            crash: None,
            input: input.to_vec(),
        };
        if !self.examined.contains(&keys) {
            slip.crash = self.record(&slip)?;
        }
        Ok(slip)
    }

    /// The whole crash of a slip; `None` where it did not come again.
    ///
    /// # Errors
    /// When the target cannot be run.
    pub fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        let crash = self.keyer.examine(&slip.input)?;
        if crash.is_some() {
            self.examined.insert(slip.keys);
        }
        Ok(crash)
    }

    /// From here on each crash is examined once more.
    pub fn forget(&mut self) {
        self.examined.clear();
    }
}
