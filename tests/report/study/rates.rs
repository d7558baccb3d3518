//! Rates and their intervals.

use ddfuzz::report::study::{Rate, by_channel, by_kind, rows};

use super::{small, study, tally, utility};

/// Known figures: 0 of 10, 1 of 10, 10 of 20, 9 of 74 and 10 of 10, by the formula of 1927.
#[test]
fn intervals_are_those_of_wilson() {
    let interval = |hits, of| {
        let rate = Rate::new(hits, of);
        format!("{:.4} {:.4}", rate.low.unwrap(), rate.high.unwrap())
    };
    assert_eq!(interval(0, 10), "0.0000 0.2775");
    assert_eq!(interval(1, 10), "0.0179 0.4042");
    assert_eq!(interval(10, 20), "0.2993 0.7007");
    assert_eq!(interval(9, 74), "0.0653 0.2153");
    assert_eq!(interval(10, 10), "0.7225 1.0000");
}

#[test]
fn a_rate_of_nothing_is_none() {
    let rate = Rate::new(0, 0);
    assert_eq!((rate.share, rate.low, rate.high), (None, None, None));
    assert_eq!(
        (rate.text().as_str(), rate.cell().as_str()),
        ("no rate", "–")
    );
}

#[test]
fn a_rate_is_told_in_percent() {
    assert_eq!(Rate::new(9, 74).text(), "12.2 %, 95 % interval 6.5–21.5 %");
    assert_eq!(Rate::new(0, 10).cell(), "0 % (0–27.8)");
    assert_eq!(Rate::new(3, 1_000_000).cell(), "0.0003 % (0.0001–0.0009)");
}

#[test]
fn utilities_and_runs_are_counted_by_channel_and_by_kind() {
    let (mut studies, groups) = small();
    let by_name = utility("ul", 9, vec![tally("cp b.c", "keys", 5, 0, 2)]);
    studies.push(study("c2", "host", vec![by_name]));
    let rows = rows(&studies, &groups);
    let counted: Vec<_> = by_channel(&rows)
        .into_iter()
        .map(|line| {
            let (utilities, runs) = (line.utilities, line.runs);
            (line.name, utilities.hits, utilities.of, runs.hits, runs.of)
        })
        .collect();
    assert_eq!(
        counted,
        [
            ("stdin".to_owned(), 1, 2, 4, 1200),
            ("cp".to_owned(), 1, 2, 2, 405)
        ]
    );
    let kinds: Vec<String> = by_kind(&rows).into_iter().map(|line| line.name).collect();
    assert_eq!(kinds, ["all", "keys"]);
}

#[test]
fn a_utility_on_two_machines_is_counted_once_and_fails_if_it_does_on_one() {
    let of = |campaign: &str, host: &str, crashes| {
        let record = utility("ul", 0, vec![tally("stdin", "all", 5, crashes, 0)]);
        study(campaign, host, vec![record])
    };
    let rows = rows(&[of("c1", "a", 0), of("c2", "b", 2)], &[]);
    assert_eq!(rows.len(), 2);
    for lines in [by_channel(&rows), by_kind(&rows)] {
        let (utilities, runs) = (lines[0].utilities, lines[0].runs);
        assert_eq!((utilities.hits, utilities.of), (1, 1));
        assert_eq!((runs.hits, runs.of), (2, 10));
    }
}
