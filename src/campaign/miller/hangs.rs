//! Whether a run over its time limit would end after all: what is only slow on a large input is no
//! hang.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::exec::{Ended, ExecError, Freshness, Limits, TimeLimit, start};
use crate::triage::{Crash, Key, Subject};

/// How many times its limit a run is given before it is called a hang.
const PATIENCE: u32 = 10;
/// So often is asked of one utility; what stands at further places is taken for slow.
const MOST: u32 = 6;
/// So often is asked at one place.
const MOST_AT_ONE: u32 = 3;

/// What is known of the hangs of a utility. It is asked in the order of the runs, about each of
/// them, and kept from call to call, so that what it says depends on nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hangs {
    places: BTreeMap<Key, Place>,
    asked: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    is_real: bool,
    slow: u32,
}

impl Hangs {
    /// Whether `subject` hangs on `input`, on which it was over its limit as `crash` says.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub(super) fn is_real(
        &mut self,
        input: &[u8],
        crash: &Crash,
        subject: &Subject,
    ) -> Result<bool, ExecError> {
        let place = self.places.entry(crash.keys.major).or_default();
        if place.is_real || self.asked >= MOST || place.slow >= MOST_AT_ONE {
            return Ok(place.is_real);
        }
        self.asked += 1;
        place.is_real = outlasts(input, crash.limits, subject)?;
        place.slow += u32::from(!place.is_real);
        Ok(place.is_real)
    }
}

/// Whether the run does not end in many times its limits.
fn outlasts(input: &[u8], limits: Limits, subject: &Subject) -> Result<bool, ExecError> {
    let patient = TimeLimit::from(limits).times(PATIENCE).within(limits);
    let Some(target) = subject.target.target(patient) else {
        return Ok(false);
    };
    let way = Some(subject.target.way);
    let mut executor = start(&target, way, Freshness::Fresh)?.executor;
    Ok(executor.run(input)?.ended == Ended::Timeout)
}
