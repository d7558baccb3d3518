//! Rows.

use ddfuzz::report::study::{Row, rows};
use ddfuzz::store::{Kind, UtilityRecord};

use super::{ended_in, group, refused, small, study, tally, utility};

#[test]
fn rows_stand_in_the_order_of_the_list_with_marks_and_groups() {
    let (studies, groups) = small();
    let rows = rows(&studies, &groups);
    let names: Vec<&str> = rows.iter().map(|row| row.utility.as_str()).collect();
    assert_eq!(names, ["boxes", "cat", "su"]);
    let marks = |row: &Row| row.marks().map(|marks| marks.symbols());
    assert_eq!(marks(&rows[0]).as_deref(), Some("●○"));
    assert_eq!(marks(&rows[1]).as_deref(), Some("–"));
    assert_eq!(marks(&rows[2]), None);
    assert_eq!(rows[0].channels(), ["stdin", "cp a.txt"]);
    assert_eq!(rows[0].total().runs, 1000);
    let kinds: Vec<Kind> = rows[0]
        .groups
        .iter()
        .map(|group| group.tally.kind)
        .collect();
    assert_eq!(kinds, [Kind::Crash, Kind::Hang]);
}

#[test]
fn a_crash_is_the_smallest_reproducer_before_a_hang_on_nothing() {
    let (studies, groups) = small();
    let rows = rows(&studies, &groups);
    let (least, found) = rows[0].smallest().unwrap();
    assert_eq!(found.view.size_after(), 1);
    assert_eq!(
        least.command().as_deref(),
        Some("sh /out/crash/reproduce.sh")
    );
    assert_eq!(least.replay().as_deref(), Some("10/10"));
    assert_eq!(rows[1].smallest(), None);
}

#[test]
fn campaigns_of_one_machine_and_version_are_one_row() {
    let one = |campaign: &str| {
        let mut record = utility("ul", 3, vec![tally("stdin", "all", 10, 1, 0)]);
        record.groups = vec![ended_in(Kind::Crash, "x", 1)];
        study(campaign, "host", vec![record])
    };
    let rows = rows(&[one("c1"), one("c2")], &[]);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].total().runs, rows[0].total().crashes), (20, 2));
    assert_eq!((rows[0].groups.len(), rows[0].groups[0].tally.runs), (1, 2));
    assert_eq!(rows[0].groups[0].found, None);
}

#[test]
fn another_machine_or_version_is_a_row_of_its_own() {
    let record = |version: &str| UtilityRecord {
        version: Some(version.to_owned()),
        ..utility("ul", 0, vec![tally("stdin", "all", 10, 0, 0)])
    };
    let studies = [
        study("c1", "b", vec![record("1")]),
        study("c2", "a", vec![record("1")]),
        study("c3", "a", vec![record("2")]),
    ];
    let rows = rows(&studies, &[]);
    let hosts: Vec<_> = rows
        .iter()
        .map(|row| (row.host.as_str(), row.version.as_deref().unwrap()))
        .collect();
    assert_eq!(hosts, [("a", "1"), ("a", "2"), ("b", "1")]);
}

#[test]
fn of_two_utilities_in_one_group_each_has_its_own_reproducer() {
    let with = |name: &str, place| {
        let mut record = utility(name, place, vec![tally("stdin", "all", 10, 1, 0)]);
        record.groups = vec![ended_in(Kind::Crash, "library", 1)];
        record
    };
    let studies = [study("c1", "host", vec![with("vi", 0), with("ex", 1)])];
    let groups = [
        group("ex", Kind::Crash, "library", 5),
        group("vi", Kind::Crash, "library", 7),
    ];
    let rows = rows(&studies, &groups);
    let sizes = rows
        .iter()
        .map(|row| row.smallest().unwrap().1.view.size_after());
    assert_eq!(sizes.collect::<Vec<_>>(), [7, 5]);
}

#[test]
fn a_group_that_only_a_minimization_met_is_no_mark() {
    let studies = [study(
        "c1",
        "host",
        vec![utility("ul", 0, vec![tally("stdin", "all", 10, 1, 0)])],
    )];
    let rows = rows(&studies, &[group("ul", Kind::Hang, "slip", 2)]);
    assert_eq!((rows[0].groups.len(), rows[0].groups[0].tally.runs), (1, 0));
    assert_eq!(rows[0].marks().unwrap().symbols(), "●");
}

#[test]
fn an_empty_study_has_no_rows() {
    assert_eq!(rows(&[], &[]), []);
    assert_eq!(rows(&[study("c1", "host", Vec::new())], &[]), []);
    let refused = study("c1", "host", vec![refused("su", 0, "setuid")]);
    assert_eq!(rows(&[refused], &[]).len(), 1);
}

#[test]
fn a_label_of_what_was_not_run_goes_with_the_first_run() {
    let mut denied = refused("ul", 0, "denied");
    denied.note = Some("it sends mail".to_owned());
    let run = utility("ul", 0, vec![tally("stdin", "all", 10, 0, 0)]);
    let label = |records: [UtilityRecord; 2]| {
        let [first, second] = records.map(|record| vec![record]);
        let studies = [study("c1", "host", first), study("c2", "host", second)];
        let row = rows(&studies, &[]).remove(0);
        (row.label, row.note)
    };
    assert_eq!(label([denied.clone(), run.clone()]), (None, None));
    // What a later study says stands.
    assert_eq!(label([run.clone(), denied]).0.as_deref(), Some("denied"));
    let mut loops = run.clone();
    loops.label = Some("loops-on-empty-input".to_owned());
    assert!(label([loops, run]).0.is_some());
}
