//! Shares of utilities and of runs with their intervals, and exact tests whether two rates differ
//! by more than chance.

use serde::Serialize;

use super::Row;
use super::rows::once_each;
use crate::Tally;

/// The quantile of the normal distribution for 95 % on two sides.
const Z: f64 = 1.959_963_984_540_054;

/// A share, with the 95 % confidence interval of Wilson's score (E. B. Wilson: Probable inference,
/// the law of succession, and statistical inference. Journal of the American Statistical
/// Association 22, 1927): for `k` of `n`, with z = 1.96, the two solutions `p` of
/// (k/n − p)² = z² p (1 − p) / n. It is right for few utilities and for rates near 0, where the
/// usual interval is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rate {
    /// How many.
    pub hits: u64,
    /// Of how many.
    pub of: u64,
    /// The share, from 0 to 1; `None` of nothing.
    pub share: Option<f64>,
    /// The interval's lower end.
    pub low: Option<f64>,
    /// The interval's upper end.
    pub high: Option<f64>,
}

impl Rate {
    /// The share of `hits` in `of`.
    pub fn new(hits: u64, of: u64) -> Rate {
        if of == 0 {
            return Rate {
                hits,
                ..Rate::default()
            };
        }
        // What is counted twice by mistake shall not become the root of a negative number.
        let hits = hits.min(of);
        let n = of as f64;
        let share = hits as f64 / n;
        let square = Z * Z;
        let centre = (share + square / (2.0 * n)) / (1.0 + square / n);
        let half =
            Z / (1.0 + square / n) * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
        // At both ends the formula is exact, and floating point is not.
        let low = match hits {
            0 => 0.0,
            _ => (centre - half).max(0.0),
        };
        let high = match hits == of {
            true => 1.0,
            false => (centre + half).min(1.0),
        };
        Rate {
            hits,
            of,
            share: Some(share),
            low: Some(low),
            high: Some(high),
        }
    }

    /// As text: `12.2 %, 95 % interval 6.5–21.5 %`; `no rate` of nothing.
    pub fn text(&self) -> String {
        match (self.share, self.interval()) {
            (Some(share), Some(interval)) => {
                format!("{} %, 95 % interval {interval} %", percent(share))
            }
            _ => "no rate".to_owned(),
        }
    }

    /// In a cell: `12.2 % (6.5–21.5)`; `–` of nothing.
    pub fn cell(&self) -> String {
        match (self.share, self.interval()) {
            (Some(share), Some(interval)) => format!("{} % ({interval})", percent(share)),
            _ => "–".to_owned(),
        }
    }

    fn interval(&self) -> Option<String> {
        let (low, high) = (self.low?, self.high?);
        Some(format!("{}–{}", percent(low), percent(high)))
    }
}

/// A share in percent, with as many digits as it takes not to look like nothing.
fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        0.0 => "0".to_owned(),
        ..0.1 => format!("{value:.4}"),
        _ => format!("{value:.1}"),
    }
}

/// The rates of failure (crash or hang) by one channel, or on one kind of input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateLine {
    /// The channel or kind.
    pub name: String,
    /// Over the utilities that were run so: each counts once, in however many versions and on
    /// however many machines, and fails if it fails in one of them.
    pub utilities: Rate,
    /// Over their runs. Those of one utility are not independent of each other, so that this
    /// interval says how well the runs were counted, and not what other utilities would do.
    pub runs: Rate,
}

/// The rates by channel; all names that inputs are copied under count as one channel.
pub fn by_channel(rows: &[Row]) -> Vec<RateLine> {
    by(rows, |tally| {
        let word = tally.channel.split_whitespace().next();
        word.unwrap_or(&tally.channel)
    })
}

/// The rates by kind of input.
pub fn by_kind(rows: &[Row]) -> Vec<RateLine> {
    by(rows, |tally| &tally.kind)
}

fn by(rows: &[Row], name: impl for<'a> Fn(&'a Tally) -> &'a str) -> Vec<RateLine> {
    let mut names: Vec<&str> = Vec::new();
    for tally in rows.iter().flat_map(|row| &row.tallies) {
        let name = name(tally);
        if tally.runs > 0 && !names.contains(&name) {
            names.push(name);
        }
    }
    let once = once_each(rows);
    let line = |wanted: &str| {
        let (mut utilities, mut failing) = (0, 0);
        let mut all = Tally::default();
        for row in &once {
            let mut own = Tally::default();
            let tallies = row.tallies.iter();
            tallies
                .filter(|tally| name(tally) == wanted)
                .for_each(|tally| own.add(tally));
            utilities += u64::from(own.runs > 0);
            failing += u64::from(own.crashes + own.hangs > 0);
            all.add(&own);
        }
        RateLine {
            name: wanted.to_owned(),
            utilities: Rate::new(failing, utilities),
            runs: Rate::new(all.crashes + all.hangs, all.runs),
        }
    };
    names.into_iter().map(line).collect()
}

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

/// A published rate: the share of the utilities that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The year that the study is known by.
    pub year: u16,
    /// What was tested.
    pub system: &'static str,
    /// The rate as published, in percent.
    pub rate: &'static str,
    /// What counted as a failure.
    pub failures: &'static str,
    /// Utilities that failed, and utilities tested, where they are published.
    pub counts: Option<(u64, u64)>,
    /// Authors, title and venue.
    pub source: &'static str,
}

const STUDY_1990: &str = "Miller, Fredriksen, So: An empirical study of the reliability of UNIX \
                          utilities, CACM 33(12), 1990";
const STUDY_1995: &str = "Miller, Koski, Lee, Maganty, Murthy, Natarajan, Steidl: Fuzz revisited, \
                          Univ. of Wisconsin–Madison, TR 1268, 1995; as the study of 2006 quotes it";
const STUDY_2006: &str = "Miller, Cooksey, Moore: An empirical study of the robustness of MacOS \
                          applications using random testing, 2006";
const STUDY_2020: &str = "Miller, Zhang, Heymann: The relevance of classic fuzz testing: have we \
                          solved this one?, IEEE TSE, 2020";

/// The published rates, by year.
pub const PUBLISHED: [Published; 8] = [
    published(
        1990,
        "versions of UNIX",
        "25–33",
        "crash or hang",
        None,
        STUDY_1990,
    ),
    published(
        1995,
        "commercial UNIX",
        "15–43",
        "crash or hang",
        None,
        STUDY_1995,
    ),
    published(1995, "Linux", "9", "crash or hang", None, STUDY_1995),
    published(
        1995,
        "GNU utilities",
        "6",
        "crash or hang",
        None,
        STUDY_1995,
    ),
    published(
        2006,
        "Mac OS X, command line",
        "7",
        "crash",
        None,
        STUDY_2006,
    ),
    published(
        2020,
        "Linux",
        "12",
        "crash or hang",
        Some((9, 74)),
        STUDY_2020,
    ),
    published(
        2020,
        "macOS",
        "16",
        "crash or hang",
        Some((12, 76)),
        STUDY_2020,
    ),
    published(
        2020,
        "FreeBSD",
        "19",
        "crash or hang",
        Some((15, 78)),
        STUDY_2020,
    ),
];

const fn published(
    year: u16,
    system: &'static str,
    rate: &'static str,
    failures: &'static str,
    counts: Option<(u64, u64)>,
    source: &'static str,
) -> Published {
    Published {
        year,
        system,
        rate,
        failures,
        counts,
        source,
    }
}

impl Published {
    /// The rate as published: `12 % (9 of 74)`.
    pub fn text(&self) -> String {
        match self.counts {
            Some((failing, of)) => format!("{} % ({failing} of {of})", self.rate),
            None => format!("{} %", self.rate),
        }
    }
}
