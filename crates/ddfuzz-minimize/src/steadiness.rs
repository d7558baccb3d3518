//! Flaky failures: how many runs of the input, of a candidate and of the result are needed.
//!
//! One run that crashes with the right key proves that a candidate fails; runs that do not crash
//! prove less. So a candidate fails with its first failing run, and does not fail after n runs
//! without failure. The number n of votes follows from the failure rate of the input
//! (docs/decisions/0023).

use crate::Rate;

/// Number of runs of an input that must all fail for it to count as failing in every run; also the
/// number of runs that confirm a result that is not flaky.
pub const AGREEING_RUNS: u32 = 3;
/// The same number as [`AGREEING_RUNS`], in the integer type in which this file counts runs.
pub(super) const AGREEING: u64 = AGREEING_RUNS as u64;
/// Number of runs of the input that must all fail for it to count as failing in every run, after an
/// earlier run of it did not fail. It applies to older logs only, in which the runs that prove a
/// claim are not repeated. The original input is also run this many times if the smallest failing
/// text failed in none of its confirmations.
pub(super) const AGREEING_IN_DOUBT: u64 = 5;
/// Number of runs without failure after which the input counts as not failing: an input that fails
/// in 30 % of its runs is missed once in 70 times.
const NEVER: u64 = 12;
/// Number of runs without failure after which the input counts as not failing, if one of them
/// exceeded its time limit.
const NEVER_SLOW: u64 = 5;
/// Number of runs from which the failure rate of a flaky input, or of its result, is estimated.
pub(super) const ESTIMATING: u64 = 20;
/// A result is confirmed by one more run for each time that the search has made this many tests, up
/// to a limit.
const TESTS_PER_CONFIRMATION: u64 = 5;
/// Divisor of the number of tests of a long search: at its end, as many proven removals of single
/// bytes as the quotient are run again, to show whether they still make the failure go away.
const TESTS_PER_REPEAT: u64 = 20;
/// Maximum number of times that a text without one byte is run again. A text that fails in two of
/// three runs is then missed only once in 2000 times: its test and all of these runs would have to
/// pass.
const MOST_REPEATS: u64 = 6;
/// Maximum number of removals of single bytes that are each run again twice at the end, in a
/// minimization whose result is confirmed by three runs. If there are more, each is run again once.
/// A single further run of each of few removals would prove little: a program that fails in every
/// second run could pass in all of them.
const FEW: u64 = 5;
/// Maximum number of runs (votes) of one candidate of a flaky input. If the input fails so rarely
/// that it would take more runs, a candidate that fails as rarely is missed more often than once in
/// [`ODDS`] times.
const MOST: u64 = 100;
/// The number of runs of a candidate of a flaky input is chosen so that all of them miss the
/// failure at most once in this many candidates that fail as often as the input.
const ODDS: f64 = 1000.0;

/// What the runs of the input before the search have shown: more runs are needed, the input fails
/// (with how often a candidate must be run), or it does not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Baseline {
    /// It is still open whether the input fails: more runs of it are needed.
    Open,
    /// The input fails. A candidate takes up to `votes` runs: it counts as not failing if none of
    /// them fails.
    Fails { votes: u64 },
    /// The input failed in none of its runs, and enough were made to give up.
    Never,
}

/// Returns how many runs of the input before the search must all fail for the input to count as
/// failing in every run. That is 3, unless an earlier run of the input did not fail (`doubtful`);
/// then it is 20 if the runs on which a claim of minimality rests are repeated (`repeats`), else 5.
pub(super) fn agreeing(doubtful: bool, repeats: bool) -> u64 {
    match (doubtful, repeats) {
        (true, true) => ESTIMATING,
        (true, false) => AGREEING_IN_DOUBT,
        (false, _) => AGREEING,
    }
}

/// Decides from `rate`, the runs of the input before the search, whether it fails, or whether more
/// runs are needed. If all runs fail, `agreeing` runs are enough. If only some fail, 20 are needed,
/// to estimate how often the input fails. If none fails, it counts as not failing after 12 runs, or
/// after 5 if one was `slow` (ended by the time limit, unless a hang is minimized).
pub(super) fn judge(rate: Rate, slow: bool, agreeing: u64) -> Baseline {
    let never = if slow { NEVER_SLOW } else { NEVER };
    match rate {
        Rate { tries, .. } if tries < AGREEING => Baseline::Open,
        Rate { hits: 0, tries } if tries < never => Baseline::Open,
        Rate { hits: 0, .. } => Baseline::Never,
        Rate { hits, tries } if hits == tries && tries < agreeing => Baseline::Open,
        Rate { hits, tries } if hits == tries => Baseline::Fails { votes: 1 },
        Rate { tries, .. } if tries < ESTIMATING => Baseline::Open,
        _ => Baseline::Fails { votes: votes(rate) },
    }
}

/// Predicts how many more runs of the input are needed before the search, if they end like those
/// counted in `rate`. `slow`: whether one was ended by the time limit; `agreeing`: number of runs
/// that suffice if all of them fail.
pub(super) fn open_runs(rate: Rate, slow: bool, agreeing: u64) -> u64 {
    let all = match rate {
        Rate { hits: 0, tries: 0 } => agreeing,
        Rate { hits: 0, .. } if slow => NEVER_SLOW,
        Rate { hits: 0, .. } => NEVER,
        Rate { hits, tries } if hits == tries => agreeing,
        _ => ESTIMATING,
    };
    all.saturating_sub(rate.tries)
}

/// Returns how many runs confirm the result of a minimization of `executed` tests, if the runs on
/// which a claim rests are repeated: one for every five tests, at least `least` and at most 20.
pub(super) fn confirmations(executed: u64, least: u64) -> u64 {
    (executed / TESTS_PER_CONFIRMATION).clamp(least.min(ESTIMATING), ESTIMATING)
}

/// Returns how many of the `removals` (single bytes whose removal is proven to make the failure go
/// away) are tested again after the search, and how often each. These are as many as runs confirm
/// the result ([`confirmations`] of `executed` tests and `least`), or a twentieth of the tests if
/// that is more, but at most all. Each is tested once, or twice if at most five are chosen; if
/// `least` is more than three, up to six times, the more often the fewer they are.
pub(super) fn repeated_removals(removals: u64, executed: u64, least: u64) -> (u64, u64) {
    let most = confirmations(executed, least).max(executed / TESTS_PER_REPEAT);
    let chosen = removals.min(most);
    let times = match least {
        ..=AGREEING if chosen <= FEW => 2,
        ..=AGREEING => 1,
        _ => most.checked_div(chosen).unwrap_or(1).min(MOST_REPEATS),
    };
    (chosen, times)
}

/// Returns the number of runs that together miss a failure of the rate `rate` at most once in 1000
/// times, but at most 100.
fn votes(rate: Rate) -> u64 {
    (1..MOST)
        .find(|votes| odds(rate, *votes) >= ODDS)
        .unwrap_or(MOST)
}

/// Returns the number x such that `votes` runs of a failing text together miss the failure once in
/// x times on average. The failure rate of a run is taken as the lower end of the confidence
/// interval of `rate`.
pub(super) fn odds(rate: Rate, votes: u64) -> f64 {
    let silent = 1.0 - rate.lower_end();
    // Only products: logarithms differ between machines, and logs must not.
    let missed = (0..votes).fold(1.0, |missed, _| missed * silent);
    1.0 / missed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(hits: u64, tries: u64) -> Rate {
        Rate { hits, tries }
    }

    #[test]
    fn runs_of_the_input_are_judged_when_they_are_enough() {
        let steady = Baseline::Fails { votes: 1 };
        for (hits, tries, slow, doubtful, judged) in [
            (2, 2, false, false, Baseline::Open),
            (3, 3, false, false, steady),
            (3, 3, false, true, Baseline::Open),
            (5, 5, false, true, steady),
            (0, 11, false, false, Baseline::Open),
            (0, 12, false, false, Baseline::Never),
            (0, 4, true, false, Baseline::Open),
            (0, 5, true, false, Baseline::Never),
            (2, 3, false, false, Baseline::Open),
            (1, 5, true, false, Baseline::Open),
            (10, 20, false, false, Baseline::Fails { votes: 14 }),
        ] {
            let found = judge(rate(hits, tries), slow, agreeing(doubtful, false));
            assert_eq!(found, judged, "{hits} of {tries}");
        }
    }

    #[test]
    fn runs_that_go_on_as_they_began_are_as_many_as_foreseen() {
        for (hits, tries, slow) in [(0, 0, false), (2, 2, false), (0, 2, false), (0, 2, true)] {
            let open = open_runs(rate(hits, tries), slow, AGREEING);
            let next = |more| match hits == tries {
                true => rate(hits + more, tries + more),
                false => rate(0, tries + more),
            };
            assert_eq!(judge(next(open - 1), slow, AGREEING), Baseline::Open);
            assert_ne!(judge(next(open), slow, AGREEING), Baseline::Open);
        }
        assert_eq!(open_runs(rate(3, 5), false, AGREEING), 15);
        assert_eq!(open_runs(rate(3, 3), false, agreeing(true, false)), 2);
        assert_eq!(open_runs(rate(3, 3), false, agreeing(true, true)), 17);
    }

    #[test]
    fn longer_searches_have_more_removals_repeated_and_fewer_removals_more_often() {
        for (executed, least, removals, confirmed, repeated) in [
            (0, 3, 2, 3, (2, 2)),
            (17, 3, 9, 3, (3, 2)),
            (60, 3, 20, 12, (12, 1)),
            (100, 3, 90, 20, (20, 1)),
            (0, 20, 0, 20, (0, 1)),
            (0, 20, 2, 20, (2, 6)),
            (17, 20, 5, 20, (5, 4)),
            (100, 20, 90, 20, (20, 1)),
            (1000, 20, 90, 20, (50, 1)),
        ] {
            let counts = (
                confirmations(executed, least),
                repeated_removals(removals, executed, least),
            );
            assert_eq!(counts, (confirmed, repeated), "{executed} tests");
        }
    }

    #[test]
    fn rarer_failures_take_more_votes_up_to_a_hundred() {
        let votes: Vec<u64> = (1..20).rev().map(|hits| votes(rate(hits, 20))).collect();
        assert!(votes.is_sorted(), "{votes:?}");
        assert_eq!((votes[0], votes[18]), (4, 100));
        assert!(odds(rate(10, 20), 14) >= ODDS && odds(rate(1, 20), 100) < ODDS);
    }
}
