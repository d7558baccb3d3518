//! Studies side by side.

use ddfuzz::report::SameBy;
use ddfuzz::report::study::{
    Change, Comparison, NamedStudy, StudyGroup, compare, comparison_text, rows,
};
use ddfuzz::store::{GroupTally, Kind, StudyRecord};

use super::{HOSTILE, ended_in, group, small, study, tally, utility};

fn named(name: &str, studies: &[StudyRecord], groups: &[StudyGroup]) -> NamedStudy {
    NamedStudy {
        name: name.to_owned(),
        rows: rows(studies, groups),
    }
}

/// A study of `ul` that ended in these groups.
fn of_ul(name: &str, groups: &[StudyGroup]) -> NamedStudy {
    let mut record = utility(
        "ul",
        0,
        vec![tally("stdin", "all", 10, groups.len() as u64, 0)],
    );
    record.groups = groups
        .iter()
        .map(|group| GroupTally {
            kind: group.view.kind,
            major: group.view.major.short(),
            runs: 1,
            replayed: None,
        })
        .collect();
    named(name, &[study("c1", name, vec![record])], groups)
}

/// A crash of `ul` with the names of functions, in this build.
fn by_names(major: &str, stable: &str, build: &str) -> StudyGroup {
    StudyGroup {
        stable: Some(stable.to_owned()),
        build: Some(build.to_owned()),
        ..group("ul", Kind::Crash, major, 3)
    }
}

fn changes(comparison: &Comparison) -> Vec<(Change, Option<SameBy>)> {
    let groups = &comparison.utilities[0].groups;
    groups
        .iter()
        .map(|group| (group.change, group.same_by))
        .collect()
}

#[test]
fn groups_are_new_gone_or_the_same_by_key() {
    let first = of_ul("one", &["a", "b"].map(|major| by_names(major, major, "1")));
    let second = of_ul("two", &["b", "c"].map(|major| by_names(major, major, "1")));
    assert_eq!(
        changes(&compare(&[first, second])),
        [
            (Change::Gone, None),
            (Change::Same, Some(SameBy::Key)),
            (Change::New, None)
        ]
    );
}

#[test]
fn another_build_is_recognised_by_the_names_of_functions() {
    let first = of_ul("one", &[by_names("a", "names", "1")]);
    let other_build = of_ul("two", &[by_names("b", "names", "2")]);
    assert_eq!(
        changes(&compare(&[first.clone(), other_build])),
        [(Change::Same, Some(SameBy::Names))]
    );
    // Within one build, two places in one function are two bugs.
    let same_build = of_ul("two", &[by_names("b", "names", "1")]);
    assert_eq!(
        changes(&compare(&[first, same_build])),
        [(Change::Gone, None), (Change::New, None)]
    );
}

#[test]
fn a_history_of_three_knows_what_comes_back() {
    let with = |name: &str, majors: &[&str]| {
        let groups: Vec<_> = (majors.iter())
            .map(|major| by_names(major, major, "1"))
            .collect();
        of_ul(name, &groups)
    };
    let comparison = compare(&[with("1", &["a"]), with("2", &[]), with("3", &["a"])]);
    assert_eq!(changes(&comparison), [(Change::Same, Some(SameBy::Key))]);
    assert_eq!(comparison.tests.len(), 2);
    assert_eq!(comparison.tests[1].studies, [1, 2]);
}

#[test]
fn a_utility_that_was_not_run_again_is_not_mended() {
    let first = of_ul("one", &[by_names("a", "a", "1")]);
    let (studies, groups) = small();
    let comparison = compare(&[first, named("two", &studies, &groups)]);
    assert_eq!(changes(&comparison), [(Change::NotRun, None)]);
    assert_eq!(comparison.utilities[0].studies[1], None);
    let test = &comparison.tests[0];
    assert_eq!(
        (test.both_run, test.only_first, test.only_second),
        (0, 0, 0)
    );
    assert_eq!(test.mcnemar, 1.0);
}

#[test]
fn one_utility_with_the_key_of_another_is_another_bug() {
    let mut record = utility("vi", 1, vec![tally("stdin", "all", 10, 1, 0)]);
    record.groups = vec![ended_in(Kind::Crash, "a", 1)];
    let vi = named(
        "two",
        &[study("c2", "host", vec![record])],
        &[group("vi", Kind::Crash, "a", 2)],
    );
    let comparison = compare(&[of_ul("one", &[by_names("a", "a", "1")]), vi]);
    assert_eq!(comparison.utilities.len(), 2);
    assert_eq!(comparison.utilities[1].groups[0].change, Change::New);
}

#[test]
fn a_comparison_is_told_in_lines_that_fit() {
    let (studies, groups) = small();
    let (mut later, _) = small();
    later[0].utilities[0].version = Some("2.0".to_owned());
    let comparison = compare(&[
        named("out1", &studies, &groups),
        named("out2", &later, &groups[..1]),
    ]);
    let text = comparison_text(&comparison, None);
    for expected in [
        "[1] out1 on host: 2 utilities run, 1 crash",
        "\nboxes    ●○ (boxes-package 1.0)           ●○ (boxes-package 2.0)           2 same\n",
        "\nsame    boxes    crashes  segv ",
        "\ngroups in [2]: 0 new, 2 as before, 0 gone, 0 of utilities that were not run\n",
        "[1] 1 of 2 and [2] 1 of 2 crash or hang: p = 1.0000 by Fisher's exact test, two-sided\n",
        "of 2 that both have run 0 failed in [1] alone, 0 in [2] alone: p = 1.0000 by McNemar's",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
}

#[test]
fn a_hostile_name_is_escaped_in_a_comparison() {
    let record = utility(HOSTILE, 0, vec![tally("stdin", "all", 5, 1, 0)]);
    let one = [study("c1", HOSTILE, vec![record])];
    let comparison = compare(&[named(HOSTILE, &one, &[]), named("b", &one, &[])]);
    let text = comparison_text(&comparison, None);
    let bad = |character: char| character.is_control() && character != '\n';
    assert!(!text.contains(bad), "{text}");
}

#[test]
fn a_comparison_has_the_rates_beside_each_directory() {
    let (studies, groups) = small();
    let study = named("out", &studies, &groups);
    let value = serde_json::to_value(compare(&[study.clone(), study])).unwrap();
    let first = &value["directories"][0];
    assert_eq!(first["directory"], "out");
    assert_eq!(
        (&first["failing"]["hits"], &first["failing"]["of"]),
        (&1.into(), &2.into())
    );
    assert_eq!(first["not_run"]["setuid"], 1);
    let boxes = &value["utilities"][0];
    assert_eq!(boxes["studies"][0]["marks"]["crash"], true);
    assert_eq!(boxes["groups"][0]["change"], "same");
    assert_eq!(boxes["groups"][0]["same_by"], "key");
}
