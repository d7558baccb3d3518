//! The figures that the search has to reach, on generated histories of other sizes and seeds than
//! those of its specification.

use crate::repositories::{create, settings};
use crate::{changes, executed, places, result};

/// Runs the search on generated histories; returns the greatest number of tests.
fn most_tests(
    seeds: std::ops::Range<u64>,
    sizes: (usize, usize),
    causes: usize,
    options: &[&str],
) -> u64 {
    let mut most = 0;
    for seed in seeds {
        let case = settings(seed, sizes.0, sizes.1, causes);
        let folder = tempfile::tempdir().unwrap();
        let repository = create(&folder.path().join("repository"), &case.commits);
        let words = [
            "A..B",
            "--repo",
            repository.to_str().unwrap(),
            "--run",
            &case.test,
        ];
        let found = result(changes(folder.path(), &words).args(options));
        let mut found_places = places(&found);
        found_places.sort();
        assert_eq!(found_places, case.causes, "seed {seed}");
        assert_eq!(found["claim"], "1-minimal", "seed {seed}");
        assert_eq!(
            found["interference"],
            causes > 1 && options.is_empty(),
            "seed {seed}"
        );
        most = most.max(executed(&found));
    }
    println!("{causes} causes {sizes:?} {options:?}: at most {most} tests");
    most
}

#[test]
fn one_cause_in_a_history_takes_at_most_twelve_tests() {
    let most = most_tests(1..9, (53, 207), 1, &[]);
    assert!(most <= 12, "{most} tests");
}

#[test]
fn two_interfering_causes_take_at_most_twenty_five_tests() {
    let most = most_tests(20..27, (47, 219), 2, &[]);
    assert!(most <= 25, "{most} tests");
}

#[test]
fn one_cause_without_a_history_takes_at_most_sixty_tests() {
    let most = most_tests(40..43, (5, 230), 1, &["--no-history"]);
    assert!(most <= 60, "{most} tests");
}

#[test]
fn two_causes_without_a_history_take_at_most_one_hundred_and_fifty_tests() {
    let most = most_tests(60..63, (5, 230), 2, &["--no-history"]);
    assert!(most <= 150, "{most} tests");
}
