//! Failure rates with confidence intervals, exact tests whether two rates differ by more than
//! chance, and the rates of published studies.

use serde::Serialize;

use super::Row;
use super::rows::{distinct, once_each};
use crate::{Tally, report::size::grouped};

/// The number z such that 95 % of the values of a normal distribution lie within z standard
/// deviations of the mean.
const Z: f64 = 1.959_963_984_540_054;

/// A failure rate with its 95 % confidence interval by Wilson's score (E. B. Wilson: Probable
/// inference, the law of succession, and statistical inference. Journal of the American Statistical
/// Association 22, 1927): for `k` of `n`, with z = 1.96, the two solutions `p` of (k/n − p)² = z² p
/// (1 − p) / n. Unlike the usual normal approximation it is also right for few utilities and for
/// rates near 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rate {
    /// Number of trials (utilities or runs) that failed.
    pub hits: u64,
    /// Number of all trials (utilities or runs), failed or not.
    pub of: u64,
    /// The rate of trials that failed, from 0 to 1; `None` without trials.
    pub share: Option<f64>,
    /// Lower end of the 95 % confidence interval of the rate, from 0 to 1; `None` without trials.
    pub low: Option<f64>,
    /// Upper end of the 95 % confidence interval of the rate, from 0 to 1; `None` without trials.
    pub high: Option<f64>,
}

impl Rate {
    /// Computes the rate of `hits` in `of` trials, and its confidence interval.
    pub fn new(hits: u64, of: u64) -> Rate {
        if of == 0 {
            return Rate {
                hits,
                ..Rate::default()
            };
        }
        // A failure counted twice by mistake must not lead to the root of a negative number.
        let hits = hits.min(of);
        let n = of as f64;
        let share = hits as f64 / n;
        let square = Z * Z;
        let centre = (share + square / (2.0 * n)) / (1.0 + square / n);
        let half =
            Z / (1.0 + square / n) * (share * (1.0 - share) / n + square / (4.0 * n * n)).sqrt();
        // At 0 and 1 the formula is exact, but floating point is not.
        let low = if hits == 0 {
            0.0
        } else {
            (centre - half).max(0.0)
        };
        let high = if hits == of {
            1.0
        } else {
            (centre + half).min(1.0)
        };
        Rate {
            hits,
            of,
            share: Some(share),
            low: Some(low),
            high: Some(high),
        }
    }

    /// Formats the rate: `12.2 %, 95 % interval 6.5–21.5 %`; `no rate` without trials.
    pub fn text(&self) -> String {
        match (self.share, self.interval()) {
            (Some(share), Some(interval)) => {
                format!("{} %, 95 % interval {interval} %", percent(share))
            }
            _ => "no rate".to_owned(),
        }
    }

    /// Formats the rate for a table cell: `12.2 % (6.5–21.5)`; `–` without trials.
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

/// Formats a rate from 0 to 1 in percent; a small rate gets more digits, so that it does not look
/// like 0.
fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        0.0 => "0".to_owned(),
        ..0.1 => format!("{value:.4}"),
        _ => format!("{value:.1}"),
    }
}

/// Rates of failure (crash or hang) over the utilities and over the runs, for one channel (way in
/// which inputs reach the program) or for one kind of input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateLine {
    /// Name of the channel (`stdin`, `file`, …) or of the kind of input.
    pub name: String,
    /// Failure rate over the utilities that were run over this channel, or with this kind of input.
    /// Each utility counts once, and fails if any of its versions fails on any machine.
    pub utilities: Rate,
    /// Failure rate over all runs over this channel, or with this kind of input. Runs of one
    /// utility are not independent of each other.
    pub runs: Rate,
}

impl RateLine {
    /// Formats the rates as seven table cells: name of the channel or kind of input; number,
    /// failures and rate of the utilities; number, failures and rate of the runs.
    pub(super) fn cells(&self) -> [String; 7] {
        let of = |rate: Rate| [grouped(rate.of), grouped(rate.hits), rate.cell()];
        let ([a, b, c], [d, e, f]) = (of(self.utilities), of(self.runs));
        [self.name.clone(), a, b, c, d, e, f]
    }
}

/// Computes the failure rates by channel (way in which inputs reach the program). Channels that
/// copy the input to a file are one channel, whatever the file's name.
pub fn by_channel(rows: &[Row]) -> Vec<RateLine> {
    by(rows, |tally| {
        let word = tally.channel.split_whitespace().next();
        word.unwrap_or(&tally.channel)
    })
}

/// Computes the failure rates by kind of input: a kind of the classic generator, `keys` or `empty`.
pub fn by_kind(rows: &[Row]) -> Vec<RateLine> {
    by(rows, |tally| &tally.kind)
}

fn by(rows: &[Row], name: impl for<'a> Fn(&'a Tally) -> &'a str) -> Vec<RateLine> {
    let tallies = rows.iter().flat_map(|row| &row.tallies);
    let names = distinct(tallies.filter(|tally| tally.runs > 0).map(&name));
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

/// Computes the two-sided p value of Fisher's exact test (R. A. Fisher: The logic of inductive
/// inference, Journal of the Royal Statistical Society 98, 1935) for two samples, with `k1`
/// failures in `n1` trials and `k2` failures in `n2` trials: the probability of all tables with the
/// same margins that are at most as likely as this table.
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
    // Equally likely tables must not be lost by rounding.
    let extreme = tables
        .map(probability)
        .filter(|p| *p <= seen * (1.0 + 1e-7));
    extreme.sum::<f64>().min(1.0)
}

/// Computes the two-sided p value of McNemar's exact test (Q. McNemar: Note on the sampling error
/// of the difference between correlated proportions or percentages, Psychometrika 12, 1947) for
/// trials that are made twice: `only_first` of them failed only the first time, `only_second` only
/// the second time. It is the probability that a fair coin divides these trials at least as
/// unevenly.
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

/// Returns the natural logarithms of the factorials of 0 to `n`.
fn ln_factorials(n: u64) -> Vec<f64> {
    let mut sum = 0.0;
    let mut all = vec![0.0];
    for factor in 1..=n {
        sum += (factor as f64).ln();
        all.push(sum);
    }
    all
}

/// A failure rate that an earlier study published. docs/decisions/0098 says where each figure comes
/// from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Year in which the failure rate was published.
    pub year: u16,
    /// Operating system whose utilities the published study tested.
    pub system: &'static str,
    /// Percentage of the tested utilities that failed, as the published study states it.
    pub rate: &'static str,
    /// What the published study counted as a failure: `crash` or `crash or hang`.
    pub failures: &'static str,
    /// Numbers of utilities that failed and that were tested in the published study; `None` if they
    /// were not published.
    pub counts: Option<(u64, u64)>,
    /// Authors, title and venue of the study that published the failure rate.
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

/// The failure rates that earlier studies of utilities published, by year.
pub const PUBLISHED: [Published; 8] = [
    published(1990, "versions of UNIX", "25–33", None),
    published(1995, "commercial UNIX", "15–43", None),
    published(1995, "Linux", "9", None),
    published(1995, "GNU utilities", "6", None),
    published(2006, "Mac OS X, command line", "7", None),
    published(2020, "Linux", "12", Some((9, 74))),
    published(2020, "macOS", "16", Some((12, 76))),
    published(2020, "FreeBSD", "19", Some((15, 78))),
];

const fn published(
    year: u16,
    system: &'static str,
    rate: &'static str,
    counts: Option<(u64, u64)>,
) -> Published {
    let (failures, source) = match year {
        1990 => ("crash or hang", STUDY_1990),
        1995 => ("crash or hang", STUDY_1995),
        2006 => ("crash", STUDY_2006),
        _ => ("crash or hang", STUDY_2020),
    };
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
    /// Formats the published rate as five table cells: year, system, rate, failures and source.
    pub(super) fn cells(&self) -> [String; 5] {
        let texts = [self.system, &self.text(), self.failures, self.source];
        let [system, rate, failures, source] = texts.map(str::to_owned);
        [self.year.to_string(), system, rate, failures, source]
    }

    /// Formats the published rate, with the numbers of utilities if they are known: `12 % (9 of
    /// 74)`.
    pub fn text(&self) -> String {
        match self.counts {
            Some((failing, of)) => format!("{} % ({failing} of {of})", self.rate),
            None => format!("{} %", self.rate),
        }
    }
}
