//! The course of a campaign, read from `stats.jsonl`: rate, coverage and groups over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use maud::{Markup, html};

use crate::report::chart::{Axis, Curve, Scale};

/// Maximum number of points that a report keeps of a campaign's statistics over time; the last
/// point is kept in addition.
const MOST_POINTS: usize = 300;

/// State of a campaign at one moment, from a line of `stats.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StatsPoint {
    /// Time since the campaign began to fuzz, in ms; the time between two calls of ddfuzz is not
    /// counted.
    pub time_ms: u64,
    /// Number of runs of the campaign so far.
    pub runs: u64,
    /// Average number of runs per second since the present call of ddfuzz began to fuzz.
    pub runs_per_s: f64,
    /// Number of inputs in the campaign's corpus.
    pub corpus: u64,
    /// Number of groups of crashes that the campaign has found so far.
    pub groups: u64,
    /// Number of runs of the campaign so far that crashed.
    pub crashes: u64,
    /// Number of runs of the campaign so far that exceeded the time limit.
    pub hangs: u64,
    /// Number of runs of the campaign so far that exceeded the memory limit.
    pub ooms: u64,
    /// Number of groups whose minimization has not ended yet.
    pub minimizing: u64,
    /// Number of edges of the target reached so far; null if the target reports no coverage.
    pub edges: Option<u64>,
    /// Number of all edges of the target; null if it reports no coverage.
    pub edges_of: Option<u64>,
    /// Share of the workers' time spent on minimization, from 0 to 1.
    pub minimizer_share: f64,
}

/// Parses the lines of `stats.jsonl` that the last campaign in the directory has written; a new
/// campaign begins where the number of runs falls. Times, which count from 0 in each call of
/// ddfuzz, are added up over the calls. Keeps at most 301 points, evenly distributed, including the
/// last one. Lines that cannot be parsed are skipped.
pub(super) fn points(lines: &[u8]) -> Vec<StatsPoint> {
    let mut points: Vec<StatsPoint> = Vec::new();
    let (mut before, mut last) = (0_u64, 0);
    for line in lines.split(|byte| *byte == b'\n') {
        let Ok(mut point) = serde_json::from_slice::<StatsPoint>(line) else {
            continue;
        };
        if points
            .last()
            .is_some_and(|earlier| point.runs < earlier.runs)
        {
            // Another campaign began in the same directory.
            points.clear();
            (before, last) = (0, 0);
        }
        if point.time_ms < last {
            before = before.saturating_add(last);
        }
        last = point.time_ms;
        point.time_ms = point.time_ms.saturating_add(before);
        points.push(point);
    }
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    let end = points.len().saturating_sub(1);
    let mut at = 0;
    points.retain(|_| {
        let keep = at == end || at % every == 0;
        at += 1;
        keep
    });
    points
}

/// Draws curves of a campaign's statistics over time (runs per second, coverage, groups, corpus and
/// the minimizer's share); empty if there are no points.
pub(super) fn curves(points: &[StatsPoint]) -> Markup {
    // Every campaign begins with nothing.
    let is_late = points.first().is_some_and(|first| first.time_ms > 0);
    let begin = is_late.then(StatsPoint::default).into_iter();
    let points: Vec<StatsPoint> = begin.chain(points.iter().cloned()).collect();
    let points = &points[..];
    let curves = match points.len() {
        0 | 1 => Vec::new(),
        _ => vec![
            curve("runs per second", Scale::Linear, points, rates(points)),
            curve(
                "groups of crashes",
                Scale::Linear,
                points,
                series(points, |point| Some(point.groups)),
            ),
            curve(
                "minimizer's share of the workers' time",
                Scale::Percent,
                points,
                series(points, |point| {
                    Some((point.minimizer_share * 10_000.0) as u64)
                }),
            ),
            curve(
                "edges reached",
                Scale::Linear,
                points,
                series(points, |point| point.edges),
            ),
            curve(
                "inputs in the corpus",
                Scale::Linear,
                points,
                series(points, |point| (point.corpus > 0).then_some(point.corpus)),
            ),
        ],
    };
    html! {
        @if !curves.is_empty() {
            div class="charts" { @for curve in curves.into_iter().flatten() { (curve) } }
        }
    }
}

fn series(points: &[StatsPoint], of: impl Fn(&StatsPoint) -> Option<u64>) -> Vec<(u64, u64)> {
    let all = points
        .iter()
        .filter_map(|point| Some((point.time_ms, of(point)?)));
    all.collect()
}

/// Computes a curve of the runs per second between neighbouring points. For each two neighbouring
/// points the curve has two points, at the beginning and at the end of the time between them: (time
/// in ms, rate).
fn rates(points: &[StatsPoint]) -> Vec<(u64, u64)> {
    let pairs = points.windows(2).filter_map(|pair| {
        let (from, to) = (pair[0].time_ms, pair[1].time_ms);
        let ms = to.checked_sub(from).filter(|ms| *ms > 0)?;
        let runs = pair[1].runs.checked_sub(pair[0].runs)?;
        let rate = (runs as f64 * 1000.0 / ms as f64) as u64;
        Some([(from, rate), (to, rate)])
    });
    pairs.flatten().collect()
}

fn curve(
    title: &str,
    scale: Scale,
    points: &[StatsPoint],
    line: Vec<(u64, u64)>,
) -> Option<Markup> {
    let most = line.iter().map(|(_, value)| *value).max()?;
    let end = points.last()?.time_ms;
    let curve = Curve {
        title,
        across: Axis {
            most: end.max(1),
            scale: Scale::Time,
        },
        up: Axis {
            most: most.max(1),
            scale,
        },
        line,
        dots: Vec::new(),
        bands: Vec::new(),
        below: "",
    };
    Some(curve.markup())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_several_calls_follow_each_other() {
        let lines = b"{\"time_ms\":5,\"runs\":1}\n{\"time_ms\":9,\"runs\":2}\nbroken\n\
                      {\"time_ms\":4,\"runs\":7,\"edges\":null}\n{\"time_ms\"";
        let times: Vec<u64> = points(lines).iter().map(|point| point.time_ms).collect();
        assert_eq!(times, [5, 9, 13]);
    }

    #[test]
    fn a_later_campaign_in_the_same_directory_has_a_course_of_its_own() {
        let lines = b"{\"time_ms\":5,\"runs\":100}\n{\"time_ms\":3,\"runs\":40}\n";
        let points = points(lines);
        assert_eq!(
            (points.len(), points[0].time_ms, points[0].runs),
            (1, 3, 40)
        );
    }

    #[test]
    fn many_points_are_thinned_and_the_last_stays() {
        let lines: String = (0..10_000)
            .map(|at| format!("{{\"time_ms\":{at}}}\n"))
            .collect();
        let points = points(lines.as_bytes());
        assert!(points.len() <= MOST_POINTS + 1);
        assert_eq!(points.last().unwrap().time_ms, 9999);
    }
}
