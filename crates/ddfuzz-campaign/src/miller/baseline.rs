//! What a utility does with an empty input: the first thing to know of it.

use std::time::Duration;

use super::utility::{Circumstances, Course};
use ddfuzz_exec::{Ended, ExecError, Freshness, Limits, start};

/// How long runs without an end are watched for crashes.
const ENDLESS_CPU: Duration = Duration::from_millis(100);
const ENDLESS_WALL: Duration = Duration::from_millis(250);

/// How a course takes an empty input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Baseline {
    /// It ends.
    Ends,
    /// It goes on without end, computing: its runs have no end to wait for.
    Loops,
    /// It goes on without end, asleep.
    Waits,
    /// It kills itself, and so perhaps the others of its process group.
    Kills,
}

impl Baseline {
    /// The label in reports.
    pub(super) fn label(self) -> Option<&'static str> {
        match self {
            Baseline::Ends => None,
            Baseline::Loops => Some("loops-on-empty-input"),
            Baseline::Waits => Some("waits-on-empty-input"),
            Baseline::Kills => Some("kills-its-process-group"),
        }
    }

    /// The limits on the runs of a course that takes an empty input so: for the end of one that
    /// has none, nobody waits long.
    pub(super) fn within(self, limits: Limits) -> Limits {
        match self.is_endless() {
            true => Limits {
                cpu: limits.cpu.min(ENDLESS_CPU),
                wall: limits.wall.min(ENDLESS_WALL),
                ..limits
            },
            false => limits,
        }
    }

    /// Whether running over its time is nothing that its input does.
    pub(super) fn is_endless(self) -> bool {
        matches!(self, Baseline::Loops | Baseline::Waits)
    }
}

/// Runs a course on an empty input.
///
/// # Errors
/// When the program cannot be started.
pub(super) fn baseline(
    circumstances: &Circumstances,
    program: &std::path::Path,
    course: &Course,
) -> Result<Baseline, ExecError> {
    let target = circumstances.target(program.to_owned(), course, &[]);
    let mut executor = start(&target, None, Freshness::Fresh)?.executor;
    let run = executor.run(b"")?;
    Ok(match run.ended {
        Ended::Timeout if run.cpu >= target.limits.cpu => Baseline::Loops,
        Ended::Timeout => Baseline::Waits,
        // At a terminal a key may do that.
        ended if ended.is_killing() && !course.is_terminal() => Baseline::Kills,
        _ => Baseline::Ends,
    })
}
