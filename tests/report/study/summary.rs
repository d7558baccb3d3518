//! Summaries.

use ddfuzz::report::study::{rows, summaries};
use ddfuzz::store::UtilityRecord;

use super::{refused, small, study, tally, utility};

#[test]
fn a_summary_counts_who_failed_and_who_was_not_run() {
    let (mut studies, groups) = small();
    let more = ["a", "b"].map(|name| refused(name, 5, "missing"));
    studies[0].utilities.extend(more);
    studies[0].utilities.push(utility("late", 9, Vec::new()));
    let summary = &summaries(&rows(&studies, &groups))[0];
    assert_eq!(
        summary.text(),
        "2 utilities run, 1 crash (50.0 %, 95 % interval 9.5–90.5 %), 1 hang (50.0 %, 95 % \
         interval 9.5–90.5 %), 0 run out of memory; 1 crash or hang (50.0 %, 95 % interval \
         9.5–90.5 %); 3 could not be run (missing 2, setuid 1); 1 not run yet"
    );
}

#[test]
fn one_utility_is_counted_as_one() {
    let studies = [study(
        "c1",
        "host",
        vec![utility("ul", 0, vec![tally("stdin", "all", 1, 0, 0)])],
    )];
    let text = summaries(&rows(&studies, &[]))[0].text();
    assert!(text.starts_with("1 utility run, 0 crash (0 %"), "{text}");
}

#[test]
fn an_empty_study_has_a_summary() {
    assert_eq!(summaries(&[])[0].text(), "0 utilities run");
}

#[test]
fn machines_that_share_a_utility_have_a_summary_each() {
    let of = |campaign: &str, host: &str, name: &str| {
        let record = utility(name, 0, vec![tally("stdin", "all", 5, 1, 0)]);
        study(campaign, host, vec![record])
    };
    let shards = [of("c1", "a", "ul"), of("c2", "b", "cat")];
    assert_eq!(summaries(&rows(&shards, &[])).len(), 1);
    let twice = [of("c1", "a", "ul"), of("c2", "b", "ul")];
    let both = summaries(&rows(&twice, &[]));
    let hosts: Vec<_> = both.iter().map(|one| one.hosts.join(",")).collect();
    assert_eq!(hosts, ["a", "b"]);
}

/// A utility of this version, whose runs crashed so often.
fn of_version(version: &str, crashes: u64) -> UtilityRecord {
    UtilityRecord {
        version: Some(version.to_owned()),
        ..utility("ul", 0, vec![tally("stdin", "all", 5, crashes, 0)])
    }
}

#[test]
fn two_versions_of_a_utility_on_one_machine_are_one_utility() {
    let studies = [
        study("c1", "host", vec![of_version("1", 1)]),
        study("c2", "host", vec![of_version("2", 0)]),
    ];
    let rows = rows(&studies, &[]);
    assert_eq!(rows.len(), 2);
    let all = summaries(&rows);
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].crash.hits, all[0].crash.of), (1, 1));
}

#[test]
fn what_was_missing_and_is_installed_now_was_run() {
    let missing = UtilityRecord {
        version: None,
        ..refused("ul", 0, "missing")
    };
    let studies = [
        study("c1", "host", vec![missing]),
        study("c2", "host", vec![of_version("1", 1)]),
    ];
    let summary = &summaries(&rows(&studies, &[]))[0];
    assert!(summary.not_run.is_empty(), "{summary:?}");
    assert_eq!(summary.crash.of, 1);
}
