//! The slips of a minimization: candidates that crash by another bug than the minimized one.

use std::collections::HashSet;

use ddfuzz_triage::{Class, Crash};

use crate::{CrashClassifier, OracleError, Slip, SlipKeys};

/// Maximum number of times that the input of a slip (a crash of another bug) is run under a tracer
/// until it crashes with the slip's keys again.
const MATCHING_TRIES: u32 = 5;

/// Makes the [`Slip`]s of a minimization, which record candidates that crash with other keys than
/// the minimized crash. Each distinct crash gets a whole crash record only once.
pub struct Slips {
    /// Runs crashing inputs under a tracer, and computes the keys and records of their crashes.
    pub classifier: Box<dyn CrashClassifier>,
    /// Keys of the crashes for which a crash record was made already.
    examined: HashSet<SlipKeys>,
}

impl Slips {
    /// Makes a `Slips` (crashes of other bugs) that has examined no crash yet; `classifier`
    /// computes the keys and records of crashes.
    pub fn new(classifier: Box<dyn CrashClassifier>) -> Slips {
        Slips {
            classifier,
            examined: HashSet::new(),
        }
    }

    /// Makes the slip for `input`, which crashes by another bug than the minimized one: with the
    /// class `class` and the keys `keys`. The first slip with these keys gets the whole crash
    /// record, made by runs under a tracer, if the crash occurs again in them.
    ///
    /// # Errors
    /// If the target cannot be run.
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

    /// Makes the crash record of a slip (a crash of another bug) by a run of its input under a
    /// tracer, repeated up to four times while the input crashes with other keys than the slip's.
    /// Marks the slip's keys as recorded, so that [`Slips::of`] makes no further record for them.
    /// Returns `None` if the crash did not occur again; the keys are then marked only for a hang,
    /// whose runs take long.
    ///
    /// # Errors
    /// If the target cannot be run.
    pub fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        let mut crash = self.classifier.examine(&slip.input)?;
        for _ in 1..MATCHING_TRIES {
            let is_other = |crash: &Crash| {
                (crash.keys.major, crash.keys.minor) != (slip.keys.major, slip.keys.minor)
            };
            if slip.class.is_hang() || !crash.as_deref().is_some_and(is_other) {
                break;
            }
            crash = self.classifier.examine(&slip.input)?.or(crash);
        }
        if crash.is_some() || slip.class.is_hang() {
            self.examined.insert(slip.keys);
        }
        Ok(crash)
    }

    /// Forgets for which crashes a record was made already, so that the next slip (crash of another
    /// bug) with each pair of keys gets a record again.
    pub fn forget(&mut self) {
        self.examined.clear();
    }
}
