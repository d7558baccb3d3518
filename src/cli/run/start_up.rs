//! The time that a call of `run` or `watch` takes until its campaign begins: choosing the way of
//! execution and trial runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::campaign::{Deadline, Generator};
use crate::cli::behaviour::{self, TargetWarning};
use crate::cli::target::TargetArgs;
use crate::cli::{Exit, Failure, Output};
use crate::exec::{Channel, Started, Target, Way};

/// Part of the start-up's duration that is not subtracted from the time limit of the fuzzing.
const FREE: Duration = Duration::from_millis(500);

/// The start-up of a call of `run` or `watch`, which began when this value was made. The time that the
/// start-up takes beyond [`FREE`] is subtracted from the time limit of the fuzzing, so that the
/// call ends in time even if the target is slow.
pub struct StartUp {
    began: Instant,
    /// Time limit of the fuzzing; `None` means no limit.
    time: Option<Duration>,
    stop: Arc<AtomicBool>,
    deadline: Deadline,
}

impl StartUp {
    /// Begins the start-up of a call whose fuzzing has the time limit `time` (`None`: no
    /// limit). The call ends when `stop` turns true, which the user or its `deadline` causes.
    pub fn begin(time: Option<Duration>, stop: &Arc<AtomicBool>, deadline: &Deadline) -> StartUp {
        StartUp {
            began: Instant::now(),
            time,
            stop: Arc::clone(stop),
            deadline: deadline.clone(),
        }
    }

    /// Starts the target as the options `args` say, and returns it with its way of execution.
    pub fn start(
        &self,
        args: &TargetArgs,
        target: &Target,
        output: &Output,
    ) -> Result<(Started, Way), Failure> {
        self.in_time(args.start(&self.within_time(target), &self.stop, output))
    }

    /// Returns a copy of `target` whose runs are abandoned when the time limit of the fuzzing and
    /// [`FREE`] have passed since the start-up began. Without a time limit, the copy is equal to
    /// `target`.
    fn within_time(&self, target: &Target) -> Target {
        let time = self.time.map(|time| time.saturating_add(FREE));
        let end = time.and_then(|time| self.began.checked_add(time));
        Target {
            abandon_when: target.abandon_when.clone().or_at(end),
            ..target.clone()
        }
    }

    /// Returns `result`, the result of a step of the start-up. If `result` is a failure, no time is
    /// left for the fuzzing or the whole call, and the user has not stopped the call, returns another
    /// failure instead, which says that the time is over: the runs of the start-up were abandoned
    /// then.
    pub fn in_time<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        let is_late = self.deadline.is_over();
        let is_stopped = self.stop.load(Ordering::Relaxed) && !is_late;
        let is_late = is_late || self.left_after(self.began.elapsed()) == Some(Duration::ZERO);
        result.map_err(|failure| match is_late {
            true if !is_stopped => {
                let message = "the time was over before the target had been started";
                let failure = Failure::new(Exit::Baseline, "time", message);
                failure.hint("give more (--time, --total-time): the machine may be busy")
            }
            _ => failure,
        })
    }

    /// Returns the time that is left for the fuzzing if the start-up ends now; `None` means no
    /// limit.
    pub fn time_left(&self) -> Option<Duration> {
        self.left_after(self.began.elapsed())
    }

    /// Returns the time that is left for the fuzzing if the start-up has taken the time `spent`;
    /// `None` means no limit.
    fn left_after(&self, spent: Duration) -> Option<Duration> {
        let time = self.time?;
        Some(time.saturating_sub(spent.saturating_sub(FREE)))
    }
}

/// Makes trial runs of the target, and returns warnings if a campaign on it would find little, for
/// example because it reads no input. Targets at a terminal are not tried.
pub fn target_warnings(started: &mut Started, target: &Target) -> Vec<TargetWarning> {
    // Each run of a target at a terminal takes long, and says nothing of what it reads.
    if matches!(target.channel, Channel::Terminal(_)) {
        return Vec::new();
    }
    let seen = behaviour::observe(&mut *started.executor, target);
    let mut target_warnings = seen.target_warnings(target);
    target_warnings.extend(behaviour::unused_entry(target, started.executor.way()));
    target_warnings
}

/// Fails if an option (such as `--broker`) that needs a coverage-guided campaign is given for a
/// target without coverage.
pub fn needs_coverage(
    args: &super::RunArgs,
    generator: Generator,
    way: Way,
) -> Result<(), Failure> {
    match args.only_guided() {
        Some(name) if generator == Generator::Classic => {
            let message = format!(
                "{name} needs a coverage-guided campaign, but run by {way} this target reports no coverage"
            );
            Err(Failure::usage(message).hint(
                "build the target with afl-clang-fast or as a libFuzzer harness; to combine the \
                 results of several hosts afterwards, use `ddfuzz merge`",
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_start_up_takes_from_the_time_of_the_fuzzing() {
        let left = |time: Option<u64>, spent_ms| {
            let time = time.map(Duration::from_secs);
            let start_up = StartUp::begin(time, &Arc::default(), &Deadline::default());
            let left = start_up.left_after(Duration::from_millis(spent_ms));
            left.map(|left| left.as_millis())
        };
        assert_eq!(left(Some(5), 400), Some(5000));
        assert_eq!(left(Some(5), 3500), Some(2000));
        assert_eq!(left(Some(5), 60_000), Some(0));
        assert_eq!(left(None, 60_000), None);
    }

    #[test]
    fn a_failure_in_time_is_told_as_it_is() {
        let failed = |time, is_stopped| {
            let stop = Arc::new(AtomicBool::new(is_stopped));
            let start_up = StartUp::begin(Some(time), &stop, &Deadline::default());
            let began = start_up.began.checked_sub(Duration::from_secs(2)).unwrap();
            let failure = Failure::new(Exit::Baseline, "target", "it does not run");
            let told = StartUp { began, ..start_up }.in_time(Err::<(), _>(failure));
            told.unwrap_err().kind().to_owned()
        };
        assert_eq!(failed(Duration::from_secs(3600), false), "target");
        assert_eq!(failed(Duration::from_millis(500), false), "time");
        assert_eq!(failed(Duration::from_millis(500), true), "target");
    }
}
