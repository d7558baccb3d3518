//! Exact tests.

use ddfuzz::report::study::{fisher, mcnemar};

fn is_near(p: f64, expected: f64) {
    assert!((p - expected).abs() < 1e-6, "{p} {expected}");
}

/// Fisher's own example (a lady tasting tea), and one that textbooks work out: 1 of 10 men and 9 of
/// 12 women study.
#[test]
fn fishers_test_gives_the_known_values() {
    is_near(fisher(3, 4, 1, 4), 34.0 / 70.0);
    is_near(fisher(4, 4, 0, 4), 2.0 / 70.0);
    is_near(fisher(1, 10, 11, 14), 0.002_759_456);
}

#[test]
fn fishers_test_does_not_care_which_is_first() {
    is_near(fisher(9, 74, 15, 78), fisher(15, 78, 9, 74));
    is_near(fisher(5, 50, 5, 50), 1.0);
    is_near(fisher(0, 0, 3, 9), 1.0);
}

#[test]
fn mcnemars_test_is_that_of_a_fair_coin() {
    is_near(mcnemar(0, 0), 1.0);
    is_near(mcnemar(1, 9), 22.0 / 1024.0);
    is_near(mcnemar(9, 1), 22.0 / 1024.0);
    is_near(mcnemar(5, 5), 1.0);
    is_near(mcnemar(0, 6), 2.0 / 64.0);
}
