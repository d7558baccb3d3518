//! Whether tests that run at the same time disturb each other. A program or test that uses a fixed
//! port, a lock or a fixed file may fail each time when it is run alone, but only sometimes or
//! never when several workers make tests.

use super::{MinArgs, MinScreen, read_input};
use crate::campaign::{Finished, fails_alone};
use crate::cli::interestingness::Interestingness;
use crate::cli::run::workers;
use crate::cli::{DISTURBED, Failure, signals};
use crate::delta::Outcome;
use crate::exec::Way;
use crate::minimize::{AGREEING_RUNS, Kind, Oracle, Rate};
use crate::triage::{Key, Triager};
use std::sync::atomic::Ordering;

/// Number of runs of a result while nothing else runs; the result counts as steady only if all of
/// them fail.
const RUNS: u32 = 20;

/// Returns a warning, in words, if tests of several workers have disturbed each other. This is so
/// if the failure of the minimization `finished` is flaky, but its result fails in each of twenty
/// runs made one after another, which chance does not explain. Returns `None` otherwise, and if the
/// user stops the twenty runs.
pub(super) fn disturbance(
    args: &MinArgs,
    finished: &Finished,
    screen: &MinScreen<'_>,
) -> Result<Option<String>, Failure> {
    let Some(rate) = finished.minimized.flaky() else {
        return Ok(None);
    };
    if !is_parallel(args) || may_agree_by_chance(rate) {
        return Ok(None);
    }
    let key = finished.start.key.as_ref().map(|key| key.major);
    if key.is_none() && args.test.is_none() {
        return Ok(None);
    }
    let way = finished.start.target.way;
    let fails = fails(args, &finished.minimized.text, (key, RUNS), way, screen);
    // The result stays, though the user stops the runs after it.
    let fails = signals::unless_interrupted(fails, false)?;
    Ok(fails.then(|| {
        format!(
            "warning: run alone, the result fails in each of {RUNS} runs: {DISTURBED}; minimize again \
             with --jobs 1 --force"
        )
    }))
}

/// Returns true if chance may explain that an input fails in all of [`RUNS`] runs that are made
/// alone. `rate`: how often it failed while other runs were made, too. Chance explains it if its
/// probability is greater than 1/1000, as for a rate of 15 in 20.
fn may_agree_by_chance(rate: Rate) -> bool {
    let chance = (rate.hits + 1) as f64 / (rate.tries + 2) as f64;
    chance.powi(RUNS as i32) > 0.001
}

/// Returns `failure`, with the hint to use `--jobs 1` if workers have disturbed each other. This is
/// so if the failure says that the input does not fail, several workers ran the input, and the
/// input fails in each of three runs made one after the other.
pub(super) fn hint_if_disturbed(
    failure: Failure,
    args: &MinArgs,
    screen: &MinScreen<'_>,
) -> Failure {
    if !is_parallel(args) || failure.kind() != "not-failing" {
        return failure;
    }
    let input = args.input.as_deref().map(read_input).transpose();
    let Ok(input) = input.map(Option::unwrap_or_default) else {
        return failure;
    };
    let way = args.target.asked_way().unwrap_or(Way::Command);
    match fails(args, &input, (None, AGREEING_RUNS), way, screen) {
        Ok(true) => failure.hint(format!(
            "run alone, it fails each time: {DISTURBED}; minimize with --jobs 1"
        )),
        Ok(false) | Err(_) => failure,
    }
}

fn is_parallel(args: &MinArgs) -> bool {
    workers(args.jobs) > 1 && !args.args && !args.env_vars
}

/// Makes `runs` runs of the input `text`, one after the other. Returns true if each fails, and if
/// `key` is given, each by a crash with this major key (hash that identifies the bug); false if
/// not, or if the user stops the runs. With `--test`, the interestingness test decides what fails,
/// and `key` and `way` are not used.
fn fails(
    args: &MinArgs,
    text: &[u8],
    (key, runs): (Option<Key>, u32),
    way: Way,
    screen: &MinScreen<'_>,
) -> Result<bool, Failure> {
    let (Some(script), Some(path)) = (&args.test, &args.input) else {
        let mut triager = Triager::of_target(&screen.target(args)?, way)?;
        return Ok(fails_alone(&mut triager, text, key, runs, screen.stop)?);
    };
    let test = Interestingness::find(script, &args.target, path)?;
    let test = test.abandoned_when(screen.abandon_when.clone());
    let mut oracle = test.oracle()?;
    for _ in 0..runs {
        let is_stopped = screen.stop.load(Ordering::Relaxed);
        if is_stopped || oracle.ask_fresh(text, Kind::Deleting)?.outcome != Outcome::Fail {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::may_agree_by_chance;
    use crate::minimize::Rate;

    #[test]
    fn a_seldom_failing_run_is_not_blamed_on_others() {
        let may = |hits| may_agree_by_chance(Rate { hits, tries: 20 });
        assert!(may(19) && may(17) && may(15));
        assert!(!may(14) && !may(0));
    }
}
