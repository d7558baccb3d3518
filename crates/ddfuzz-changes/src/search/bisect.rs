//! Bisection of a linear history with versions that do not build.

use ddfuzz_delta::Outcome;

/// The result of a bisection: where a linear history of versions, numbered from 0, begins to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bisected {
    /// Number, in the bisected history, of the last version that is known not to fail.
    pub passing: usize,
    /// Number, in the bisected history, of the first version after `passing` that is known to fail;
    /// `passing + 1` unless versions between them could not be tested.
    pub failing: usize,
}

impl Bisected {
    /// Returns the number of versions between `passing` and `failing`, which may fail or not,
    /// because they could not be tested.
    pub fn unknown(&self) -> usize {
        self.failing - self.passing - 1
    }
}

/// Bisects a linear history: returns an older version that does not fail and a newer one that
/// fails, as near to each other as possible. Version 0 is known not to fail, and the last version
/// to fail. `weights` has the number of changes from each version to the next; the interval is
/// halved by these numbers, so that a version with many changes, which take further tests, is
/// reached sooner.
///
/// `probe` tests a version; it also gets the versions that will be tested next, one for the case
/// that this version does not fail and one for the case that it fails. A version with the outcome
/// UNRESOLVED is skipped, and other versions in the interval are tried; once more than twice as
/// many were skipped as a bisection of the interval takes tests, the bisection ends.
///
/// This is the search that dd of ESEC 1999 makes with the predictor "each change implies all
/// earlier ones" (its table 7), with versions that may be UNRESOLVED.
///
/// # Errors
/// Those of `probe`.
pub fn bisect<E>(
    weights: &[u64],
    mut probe: impl FnMut(usize, &[usize]) -> Result<Outcome, E>,
) -> Result<Bisected, E> {
    let mut found = Bisected {
        passing: 0,
        failing: weights.len(),
    };
    let mut skipped: Vec<usize> = Vec::new();
    while let Some(version) = middle(weights, found, &skipped) {
        let next = |passing, failing| middle(weights, Bisected { passing, failing }, &skipped);
        let ahead: Vec<usize> = [next(found.passing, version), next(version, found.failing)]
            .into_iter()
            .flatten()
            .collect();
        match probe(version, &ahead)? {
            Outcome::Pass => found.passing = version,
            Outcome::Fail => found.failing = version,
            Outcome::Unresolved => skipped.push(version),
        }
        skipped.retain(|version| (found.passing + 1..found.failing).contains(version));
    }
    Ok(found)
}

/// Returns the version that a bisection tests next: between `found.passing` and `found.failing`,
/// the version nearest to the middle of the changes or, after versions were skipped, to another
/// fraction (1/4, 3/4, 1/8, …). `None` if no version remains, or too many were skipped.
fn middle(weights: &[u64], found: Bisected, skipped: &[usize]) -> Option<usize> {
    let open = found.failing - found.passing - 1;
    let most = 2 * (usize::BITS - open.leading_zeros()) as usize;
    if skipped.len() > most {
        return None;
    }
    let interval = &weights[found.passing..found.failing];
    let whole: u64 = interval.iter().sum();
    // 1/2, then 1/4, 3/4, 1/8, 3/8, …
    let denominator = (skipped.len() as u64 + 2).next_power_of_two();
    let numerator = 2 * (skipped.len() as u64 + 1 - denominator / 2) + 1;
    let target = whole * numerator / denominator;
    let mut before = 0;
    let mut best: Option<(u64, usize)> = None;
    for version in found.passing + 1..found.failing {
        before += weights[version - 1];
        let distance = before.abs_diff(target);
        if !skipped.contains(&version) && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, version));
        }
    }
    best.map(|(_, version)| version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn search(
        weights: &[u64],
        first_bad: usize,
        builds: impl Fn(usize) -> bool,
    ) -> (Bisected, usize) {
        let mut tests = 0;
        let found = bisect(weights, |version, _| {
            tests += 1;
            Ok::<_, Infallible>(match (builds(version), version < first_bad) {
                (false, _) => Outcome::Unresolved,
                (true, true) => Outcome::Pass,
                (true, false) => Outcome::Fail,
            })
        });
        (found.unwrap_or_else(|never| match never {}), tests)
    }

    #[test]
    fn each_culprit_of_a_history_that_builds_is_found_in_the_logarithm_of_its_length() {
        for culprit in 1..=50 {
            let (found, tests) = search(&[1; 50], culprit, |_| true);
            assert_eq!((found.passing, found.failing), (culprit - 1, culprit));
            assert!(tests <= 6, "{culprit}: {tests} tests");
        }
    }

    #[test]
    fn versions_that_do_not_build_widen_the_interval_around_the_culprit_only() {
        for culprit in 1..=60 {
            let (found, _) = search(&[1; 60], culprit, |version| !(20..24).contains(&version));
            assert!(found.passing < culprit && culprit <= found.failing);
            let wide = (20..=24).contains(&culprit);
            assert_eq!(found.unknown(), if wide { 4 } else { 0 }, "{culprit}");
        }
    }

    #[test]
    fn a_history_of_which_nothing_builds_is_given_up_after_few_tests() {
        let (found, tests) = search(&[1; 1000], 500, |_| false);
        assert_eq!((found.passing, found.failing), (0, 1000));
        assert!(tests <= 21, "{tests} tests");
    }

    #[test]
    fn a_version_with_most_of_the_changes_is_isolated_first() {
        let mut weights = [1; 64];
        weights[10] = 1000;
        let (found, tests) = search(&weights, 11, |_| true);
        assert_eq!((found.passing, found.failing), (10, 11));
        assert!(tests <= 3, "{tests} tests");
    }
}
