//! How often a flaky candidate is run.
//!
//! One run that crashes with the kept key proves that a candidate fails; runs that do not crash prove
//! less. So voting is 1 of n: a candidate FAILs with the first run that fails, and does not after n
//! runs that do not. n follows from the rate of the input itself (docs/decisions/0023).

use crate::Rate;

/// Runs of the input where all of them agree, and of a steady result.
pub(super) const AGREEING: u64 = 3;
/// The same of an input that did not fail once before.
const AGREEING_IN_DOUBT: u64 = 5;
/// Runs of an input that was not seen to fail before it counts as not failing: one that fails in
/// three runs of ten is missed once in seventy.
const NEVER: u64 = 12;
/// The same where a run was cut off in time.
const NEVER_SLOW: u64 = 5;
/// Runs from which a rate is taken: of an input that fails now and then, and of its result.
pub(super) const ESTIMATING: u64 = 20;
/// Runs of one candidate at most: a rarer failure is missed more often than [`ODDS`] say.
const MOST: u64 = 100;
/// One in this many candidates that fail as often as the input is missed.
const ODDS: f64 = 1000.0;

/// The result of the runs of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Baseline {
    /// Too little yet.
    Open,
    /// It fails; each candidate is run up to `votes` times.
    Fails { votes: u64 },
    /// No run failed.
    Never,
}

/// How many runs of the input must agree; `doubtful`: one before them did not fail.
pub(super) fn agreeing(doubtful: bool) -> u64 {
    match doubtful {
        true => AGREEING_IN_DOUBT,
        false => AGREEING,
    }
}

/// Judges the runs of the input: `agreeing` where they all fail, twenty where some do, twelve where none
/// does, or five where that takes long. `slow`: one of them was cut off in time.
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

/// Runs of the input that are to come, if the next ones end as those before.
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

/// Runs of one candidate that miss a failure of this rate once in a thousand, at most a hundred.
fn votes(rate: Rate) -> u64 {
    (1..MOST)
        .find(|votes| odds(rate, *votes) >= ODDS)
        .unwrap_or(MOST)
}

/// One in how many failures is missed by `votes` runs, at the lower end of `rate`.
pub(super) fn odds(rate: Rate, votes: u64) -> f64 {
    let silent = 1.0 - lower_end(rate);
    // Products, because a logarithm differs from machine to machine, and logs must not.
    let missed = (0..votes).fold(1.0, |missed, _| missed * silent);
    1.0 / missed
}

/// The lower end of Wilson's interval for a rate, at one standard deviation: five rates in six
/// are above it.
fn lower_end(rate: Rate) -> f64 {
    let tries = rate.tries as f64;
    let share = rate.hits as f64 / tries;
    let spread = share * (1.0 - share) / tries + 1.0 / (4.0 * tries * tries);
    (share + 1.0 / (2.0 * tries) - spread.sqrt()) / (1.0 + 1.0 / tries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(hits: u64, tries: u64) -> Rate {
        Rate { hits, tries }
    }

    #[test]
    fn an_input_that_always_fails_takes_three_runs_and_one_vote() {
        assert_eq!(judge(rate(2, 2), false, AGREEING), Baseline::Open);
        assert_eq!(
            judge(rate(3, 3), false, AGREEING),
            Baseline::Fails { votes: 1 }
        );
    }

    #[test]
    fn an_input_that_once_did_not_fail_takes_five_runs() {
        assert_eq!(judge(rate(3, 3), false, agreeing(true)), Baseline::Open);
        let steady = Baseline::Fails { votes: 1 };
        assert_eq!(judge(rate(5, 5), false, agreeing(true)), steady);
        assert_eq!(open_runs(rate(3, 3), false, agreeing(true)), 2);
    }

    #[test]
    fn an_input_that_never_fails_takes_twelve_runs_or_five_slow_ones() {
        assert_eq!(judge(rate(0, 11), false, AGREEING), Baseline::Open);
        assert_eq!(judge(rate(0, 12), false, AGREEING), Baseline::Never);
        assert_eq!(judge(rate(0, 4), true, AGREEING), Baseline::Open);
        assert_eq!(judge(rate(0, 5), true, AGREEING), Baseline::Never);
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
    }

    #[test]
    fn a_rate_is_taken_from_twenty_runs() {
        assert_eq!(judge(rate(2, 3), false, AGREEING), Baseline::Open);
        assert_eq!(judge(rate(1, 5), true, AGREEING), Baseline::Open);
        assert_eq!(
            judge(rate(10, 20), false, AGREEING),
            Baseline::Fails { votes: 14 }
        );
    }

    #[test]
    fn rarer_failures_take_more_votes_up_to_a_hundred() {
        let votes: Vec<u64> = (1..20).rev().map(|hits| votes(rate(hits, 20))).collect();
        assert!(votes.is_sorted(), "{votes:?}");
        assert_eq!((votes[0], votes[18]), (4, 100));
        assert!(odds(rate(10, 20), 14) >= ODDS && odds(rate(1, 20), 100) < ODDS);
    }
}
