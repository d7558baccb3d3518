//! Whether a result that is flaky where several tests run at a time fails each time when it is run
//! alone: a program or test that uses a fixed port, a lock or a fixed file disturbs others of its
//! kind.

use std::sync::atomic::Ordering;

use super::{MinArgs, MinScreen};
use crate::campaign::Finished;
use crate::cli::Failure;
use crate::cli::interestingness::Interestingness;
use crate::cli::run::workers;
use crate::delta::Outcome;
use crate::exec::Way;
use crate::minimize::{Kind, Oracle};
use crate::triage::{Quick, Triager};

/// Number of runs alone that must all fail for a result to count as steady.
const RUNS: u32 = 20;

/// What a user is told of tests that disturb each other.
const WARNING: &str = "warning: run alone, the result fails in each of 20 runs: it is flaky only while \
                       other tests run at the same time (do they use a fixed port, a lock or a fixed \
                       file?); minimize again with --jobs 1 --force";

/// Returns a warning if tests of the minimization `finished`, made by several workers, have disturbed
/// each other: its failure is flaky, and the result fails in each of twenty runs that are made one
/// after the other. `None` also if the user stops these runs.
pub(super) fn disturbance(
    args: &MinArgs,
    finished: &Finished,
    screen: &MinScreen<'_>,
) -> Result<Option<&'static str>, Failure> {
    let is_parallel = workers(args.jobs) > 1 && !args.args && !args.env_vars;
    if !is_parallel || finished.minimized.flaky().is_none() {
        return Ok(None);
    }
    let text = &finished.minimized.text;
    let mut fails: Box<dyn FnMut() -> Result<bool, Failure>> = match (&args.test, &args.input) {
        (Some(script), Some(path)) => {
            let mut oracle = Interestingness::find(script, &args.target, path)?.oracle()?;
            Box::new(move || Ok(oracle.ask_fresh(text, Kind::Deleting)?.outcome == Outcome::Fail))
        }
        _ => {
            let Some(key) = &finished.start.key else {
                return Ok(None);
            };
            let mut triager = alone(args, finished.start.target.way)?;
            Box::new(move || match triager.key(text)? {
                Quick::Crash { major, .. } => Ok(major == key.major),
                Quick::Ended(_) => Ok(false),
            })
        }
    };
    for _ in 0..RUNS {
        if screen.stop.load(Ordering::Relaxed) || !fails()? {
            return Ok(None);
        }
    }
    Ok(Some(WARNING))
}

fn alone(args: &MinArgs, way: Way) -> Result<Triager, Failure> {
    Ok(Triager::of_target(&args.target.target()?, way)?)
}
