//! Whether a run over its time limit would end after all: what is only slow on a large input is no
//! hang.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam::channel::{RecvTimeoutError, bounded};
use serde::{Deserialize, Serialize};

use ddfuzz_exec::{Ended, ExecError, Freshness, Limits, TimeLimit, start};
use ddfuzz_triage::{Crash, Key, Subject};

/// How many times its limit a run is given before it is called a hang.
const PATIENCE: u32 = 10;
/// How often it is looked whether somebody waits for the answer.
const GLANCE: Duration = Duration::from_millis(50);
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
    /// Whether `subject` hangs on `input`, on which it was over its limit as `crash` says. Nobody
    /// waits for the answer when `stop` is true.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub(super) fn is_real(
        &mut self,
        input: &[u8],
        crash: &Crash,
        subject: &Subject,
        stop: &AtomicBool,
    ) -> Result<bool, ExecError> {
        let place = self.places.entry(crash.keys.major).or_default();
        if place.is_real || self.asked >= MOST || place.slow >= MOST_AT_ONE {
            return Ok(place.is_real);
        }
        self.asked += 1;
        place.is_real = outlasts(input, crash.limits, subject, stop)?;
        place.slow += u32::from(!place.is_real);
        Ok(place.is_real)
    }
}

/// Whether the run does not end in many times its limits, as far as that is known when `stop`
/// becomes true.
fn outlasts(
    input: &[u8],
    limits: Limits,
    subject: &Subject,
    stop: &AtomicBool,
) -> Result<bool, ExecError> {
    let patient = TimeLimit::from(limits).times(PATIENCE).within(limits);
    let Some(target) = subject.target.target(patient) else {
        return Ok(false);
    };
    let (way, input) = (Some(subject.target.way), input.to_vec());
    let (tell, told) = bounded(1);
    std::thread::spawn(move || {
        let run = start(&target, way, Freshness::Fresh).and_then(|mut it| it.executor.run(&input));
        // Nobody listens any more where the call has been stopped.
        let _ = tell.send(run);
    });
    while !stop.load(Ordering::Relaxed) {
        match told.recv_timeout(GLANCE) {
            Ok(run) => return Ok(run?.ended == Ended::Timeout),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use ddfuzz_exec::{Program, Target, TargetRecord, Way};

    #[test]
    fn nobody_waits_for_the_answer_who_has_been_stopped() {
        let target = Target {
            args: vec!["1000".into()],
            ..Target::new(Program::Path("/bin/sleep".into()))
        };
        let subject = Subject {
            utility: "sleep".to_owned(),
            target: TargetRecord::new(&target, Way::Command),
        };
        let limits = Limits::with_cpu(Duration::from_secs(1000));
        let (stop, began) = (AtomicBool::new(true), Instant::now());
        assert!(!outlasts(b"", limits, &subject, &stop).unwrap());
        assert!(began.elapsed() < limits.cpu);
    }
}
