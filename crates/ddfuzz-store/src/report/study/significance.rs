//! Whether two rates differ by more than chance: exact tests, because utilities are few.

/// The p value of Fisher's exact test, two-sided (R. A. Fisher: The logic of inductive inference,
/// Journal of the Royal Statistical Society 98, 1935): two samples of `n1` and `n2`, of which `k1`
/// and `k2` fail. It is the probability of all tables with these margins that are no likelier than
/// this one.
pub fn fisher(k1: u64, n1: u64, k2: u64, n2: u64) -> f64 {
    let (k1, k2) = (k1.min(n1), k2.min(n2));
    let failing = k1 + k2;
    let factorials = ln_factorials(n1 + n2);
    let choose = |n: u64, k: u64| {
        factorials[n as usize] - factorials[k as usize] - factorials[(n - k) as usize]
    };
    let all = choose(n1 + n2, failing);
    let probability = |k: u64| (choose(n1, k) + choose(n2, failing - k) - all).exp();
    let seen = probability(k1);
    let tables = failing.saturating_sub(n2)..=failing.min(n1);
    // Tables that are as likely shall not be lost by rounding.
    let extreme = tables
        .map(probability)
        .filter(|p| *p <= seen * (1.0 + 1e-7));
    extreme.sum::<f64>().min(1.0)
}

/// The p value of McNemar's test, exact and two-sided (Q. McNemar: Note on the sampling error of
/// the difference between correlated proportions or percentages, Psychometrika 12, 1947): of the
/// things that were looked at twice, `only_first` failed the first time alone, `only_second` the
/// second. It is how likely a fair coin is to divide them as unevenly.
pub fn mcnemar(only_first: u64, only_second: u64) -> f64 {
    let n = only_first + only_second;
    let factorials = ln_factorials(n);
    let half = std::f64::consts::LN_2 * n as f64;
    let probability = |k: u64| {
        let ways = factorials[n as usize] - factorials[k as usize] - factorials[(n - k) as usize];
        (ways - half).exp()
    };
    let tail: f64 = (0..=only_first.min(only_second)).map(probability).sum();
    (2.0 * tail).min(1.0)
}

/// The natural logarithms of the factorials up to that of `n`.
fn ln_factorials(n: u64) -> Vec<f64> {
    let mut sum = 0.0;
    let mut all = vec![0.0];
    for factor in 1..=n {
        sum += (factor as f64).ln();
        all.push(sum);
    }
    all
}
