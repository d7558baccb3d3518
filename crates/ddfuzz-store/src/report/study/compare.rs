//! Comparison of several studies: new and vanished groups, tests of their failure rates, and the
//! comparison as text.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{FailureKinds, Row, RowGroup, Summary, fisher, mcnemar, rows::distinct};
use crate::Kind;
use crate::report::groups::{or_dash, render_columns};
use crate::report::text::printable;
use crate::report::{SameBy, size};

/// A study (a campaign that fuzzes many utilities) to be compared with others: its directory, and
/// its results.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedStudy {
    /// Output directory of the study, as the user gave it.
    pub name: String,
    /// The study's results, a row for each utility, package version and machine
    /// ([`super::rows()`]).
    pub rows: Vec<Row>,
}

/// Result of comparing several studies of utilities, in the order given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Failure rates of the utilities of each compared study, with the study's directory.
    pub directories: Vec<DirectoryResult>,
    /// Results of all utilities of the compared studies, in the order of the first study that has
    /// them.
    pub utilities: Vec<ComparedUtility>,
    /// Statistical tests whether the failure rate of each compared study differs from that of the
    /// previous one.
    pub tests: Vec<RateTest>,
}

/// Failure rates of one of the compared studies, with the study's output directory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectoryResult {
    /// Output directory of the study, as the user gave it.
    pub directory: String,
    /// Rates of utilities that crashed, hung or ran out of memory. A utility that was run on
    /// several machines counts once.
    #[serde(flatten)]
    pub summary: Summary,
}

/// Results of one utility in all compared studies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedUtility {
    /// Name of the utility in the lists of utilities.
    pub utility: String,
    /// Result of the utility in each compared study, in the order of the studies; null if the study
    /// does not have the utility.
    pub studies: Vec<Option<UtilityInStudy>>,
    /// Groups of failures (bugs) of the utility that any of the compared studies has found.
    pub groups: Vec<ComparedGroup>,
}

/// Result of one utility in one of the compared studies.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UtilityInStudy {
    /// The packages, each with its version, in which the study ran the utility, without
    /// repetitions; empty if no package owns the program.
    pub versions: Vec<String>,
    /// Whether runs of the utility crashed, hung or ran out of memory; null if there were no runs.
    pub marks: Option<FailureKinds>,
    /// Number of runs of the utility in this study.
    pub runs: u64,
    /// Label that says what is special about the utility in this study, such as `missing` or
    /// `setuid`; null for a normal one.
    pub label: Option<String>,
}

/// One group of failures of a utility, matched across all compared studies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedGroup {
    /// Kind of failure that the group's inputs show: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// Class of the group's crashes, such as `segv`; null if no study has an input of the group.
    pub class: Option<String>,
    /// Location, in the user's code, of the group's crash; null if unknown.
    pub frame: Option<String>,
    /// Major keys of the group (12 hex digits), a list for each compared study, empty where the
    /// study does not have the group. Keys may differ between builds.
    pub majors: Vec<Vec<String>>,
    /// How the group was matched between the studies, by major key or by function names; null if
    /// only one study has it.
    pub same_by: Option<SameBy>,
    /// What became of the group in the last of the compared studies, such as new or gone.
    pub change: Change,
    /// Stable keys (made of function names) of the group's crashes, as pairs of the key and the
    /// build id of the program; `None` for a program without a build id.
    #[serde(skip)]
    names: BTreeSet<(String, Option<String>)>,
}

/// What became of a group of failures in the last of the compared studies: new, gone, the same, or
/// not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Of the compared studies, only the last one has the group of failures.
    New,
    /// An earlier study has the group of failures; the last study does not, although it ran the
    /// utility. The bug may be fixed, or not have been hit.
    Gone,
    /// An earlier study has the group of failures; the last study did not run the utility.
    NotRun,
    /// The last study and an earlier one have the group of failures.
    Same,
}

impl Change {
    /// Returns the name of the change, as in JSON: `new`, `gone`, `not-run` or `same`.
    pub fn name(self) -> &'static str {
        match self {
            Change::New => "new",
            Change::Gone => "gone",
            Change::NotRun => "not-run",
            Change::Same => "same",
        }
    }
}

/// Statistical tests whether the failure rates of two studies differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateTest {
    /// Indices of the two studies in the comparison, from 0.
    pub studies: [usize; 2],
    /// Two-sided p value of Fisher's exact test over all utilities that each study ran; it is the
    /// valid one if the studies ran different utilities.
    pub fisher: f64,
    /// Number of utilities that both compared studies ran.
    pub both_run: u64,
    /// Number of utilities that both studies ran and that failed (crash or hang) in the first study
    /// only.
    pub only_first: u64,
    /// Number of utilities that both studies ran and that failed (crash or hang) in the second
    /// study only.
    pub only_second: u64,
    /// Two-sided p value of McNemar's exact test over the utilities that both studies ran; it is
    /// the valid one if the studies ran the same utilities.
    pub mcnemar: f64,
}

/// Compares studies of utilities (runs of system utilities on random inputs) given in their order:
/// their rates of failing utilities, the outcome of each utility in each study, groups of crashes,
/// and a statistical test for each two successive studies. Groups of crashes of different studies
/// are matched by major key, or by stable key (a hash of function names) if the program was
/// rebuilt.
pub fn compare(studies: &[NamedStudy]) -> Comparison {
    let rows = studies.iter().flat_map(|study| &study.rows);
    let names = distinct(rows.map(|row| row.utility.as_str()));
    let utilities = names.iter().map(|name| compared(name, studies));
    let utilities: Vec<ComparedUtility> = utilities.collect();
    let of = |at: usize| -> Vec<Option<&UtilityInStudy>> {
        let all = utilities.iter();
        all.map(|utility| utility.studies[at].as_ref()).collect()
    };
    let directories = studies.iter().map(|study| DirectoryResult {
        directory: study.name.clone(),
        summary: Summary::of(&study.rows),
    });
    let directories: Vec<DirectoryResult> = directories.collect();
    let tests = (1..studies.len()).map(|at| tested(at, &directories, &of(at - 1), &of(at)));
    let tests = tests.collect();
    Comparison {
        directories,
        tests,
        utilities,
    }
}

fn compared(name: &str, studies: &[NamedStudy]) -> ComparedUtility {
    let mut groups: Vec<ComparedGroup> = Vec::new();
    let mut cells = Vec::new();
    for (at, study) in studies.iter().enumerate() {
        let rows = study.rows.iter().filter(|row| row.utility == name);
        let rows: Vec<&Row> = rows.collect();
        for group in rows.iter().flat_map(|row| &row.groups) {
            place(&mut groups, group, at, studies.len());
        }
        cells.push(utility_in(&rows));
    }
    let last_ran = cells.last().is_some_and(|cell: &Option<UtilityInStudy>| {
        cell.as_ref().is_some_and(|cell| cell.runs > 0)
    });
    for group in &mut groups {
        let Some((last, earlier)) = group.majors.split_last() else {
            continue;
        };
        group.change = match (last.is_empty(), earlier.iter().all(Vec::is_empty)) {
            (false, true) => Change::New,
            (false, false) => Change::Same,
            (true, _) if last_ran => Change::Gone,
            (true, _) => Change::NotRun,
        };
    }
    ComparedUtility {
        utility: name.to_owned(),
        studies: cells,
        groups,
    }
}

fn utility_in(rows: &[&Row]) -> Option<UtilityInStudy> {
    if rows.is_empty() {
        return None;
    }
    let mut cell = UtilityInStudy::default();
    for row in rows {
        let names = [row.package.as_deref(), row.version.as_deref()];
        let version = names.into_iter().flatten().collect::<Vec<_>>().join(" ");
        if !version.is_empty() && !cell.versions.contains(&version) {
            cell.versions.push(version);
        }
        if let Some(marks) = row.marks() {
            cell.marks = Some(cell.marks.unwrap_or_default().or(marks));
        }
        cell.runs += row.total().runs;
        cell.label = cell.label.or_else(|| row.label.clone());
    }
    Some(cell)
}

/// Adds `group`, from the study with the index `at`, to the list `groups`: to the element for the
/// same bug in an earlier study, matched by major key or by function names, or as a new element if
/// there is no match. `count` is the number of compared studies.
fn place(groups: &mut Vec<ComparedGroup>, group: &RowGroup, at: usize, count: usize) {
    let major = &group.tally.major;
    let by_key = (groups.iter()).position(|one| one.majors.iter().flatten().any(|m| m == major));
    let found = group.found.as_ref();
    let names = found.and_then(|found| Some((found.stable.clone()?, found.build.clone())));
    let by_names = || {
        let (stable, build) = names.as_ref()?;
        // In one build, two crash sites in one function are two bugs.
        let is_same = |one: &ComparedGroup| {
            let mut known = one.names.iter().filter(|(name, _)| name == stable);
            let other = |known: &Option<String>| known.is_none() || known != build;
            one.names.iter().any(|(name, _)| name == stable) && known.all(|(_, known)| other(known))
        };
        groups.iter().position(is_same)
    };
    let (to, same_by) = match by_key {
        Some(to) => (Some(to), SameBy::Key),
        None => (by_names(), SameBy::Names),
    };
    let to = match to {
        Some(to) => {
            let elsewhere = (groups[to].majors.iter().enumerate())
                .any(|(study, majors)| study != at && !majors.is_empty());
            if elsewhere && groups[to].same_by.is_none() {
                groups[to].same_by = Some(same_by);
            }
            to
        }
        None => {
            groups.push(ComparedGroup {
                kind: group.tally.kind,
                class: None,
                frame: None,
                majors: vec![Vec::new(); count],
                same_by: None,
                change: Change::Same,
                names: BTreeSet::new(),
            });
            groups.len() - 1
        }
    };
    let one = &mut groups[to];
    if !one.majors[at].contains(major) {
        one.majors[at].push(major.clone());
    }
    one.names.extend(names);
    if let Some(found) = found {
        one.class = Some(found.view.class.0.clone());
        one.frame = found.view.place.clone().or_else(|| one.frame.take());
    }
}

fn tested(
    at: usize,
    directories: &[DirectoryResult],
    first: &[Option<&UtilityInStudy>],
    second: &[Option<&UtilityInStudy>],
) -> RateTest {
    let fails =
        |cell: &Option<&UtilityInStudy>| cell.and_then(|cell| cell.marks).map(FailureKinds::fails);
    let pairs = first.iter().zip(second);
    let pairs: Vec<(bool, bool)> = pairs
        .filter_map(|(first, second)| Some((fails(first)?, fails(second)?)))
        .collect();
    let count = |wanted| pairs.iter().filter(|pair| **pair == wanted).count() as u64;
    let (only_first, only_second) = (count((true, false)), count((false, true)));
    let [a, b] = [at - 1, at].map(|at| directories[at].summary.failing);
    RateTest {
        studies: [at - 1, at],
        fisher: fisher(a.hits, a.of, b.hits, b.of),
        both_run: pairs.len() as u64,
        only_first,
        only_second,
        mcnemar: mcnemar(only_first, only_second),
    }
}

/// Formats the comparison of studies: the directories with their rates, a table of utilities, a
/// table of groups, and the statistical tests. Tables are at most `width` characters wide (`None`:
/// no limit).
pub fn comparison_text(comparison: &Comparison, width: Option<usize>) -> String {
    let mut text = String::new();
    for (at, directory) in comparison.directories.iter().enumerate() {
        let summary = &directory.summary;
        let on = match summary.hosts.is_empty() {
            true => String::new(),
            false => format!(" on {}", summary.hosts.join(", ")),
        };
        let line = format!(
            "[{}] {}{on}: {}",
            at + 1,
            directory.directory,
            summary.text()
        );
        text += &printable(&line);
        text.push('\n');
    }
    if comparison.utilities.is_empty() {
        return text;
    }
    text.push('\n');
    text += &utilities(comparison, width);
    let groups = groups(comparison, width);
    if !groups.is_empty() {
        text.push('\n');
        text += &groups;
    }
    text.push('\n');
    text += &totals(comparison);
    for test in &comparison.tests {
        text += &tested_text(test, comparison);
    }
    text
}

fn utilities(comparison: &Comparison, width: Option<usize>) -> String {
    let numbers: Vec<String> = (1..=comparison.directories.len())
        .map(|number| format!("[{number}]"))
        .collect();
    let mut header = vec!["UTILITY"];
    header.extend(numbers.iter().map(String::as_str));
    header.push("GROUPS");
    let rows = comparison.utilities.iter().map(|utility| {
        let mut row = vec![utility.utility.clone()];
        row.extend(
            utility
                .studies
                .iter()
                .map(|cell| cell.as_ref().map_or_else(String::new, shown)),
        );
        row.push(changes(utility));
        row
    });
    render_columns(&header, rows.collect(), width, &[])
}

/// Formats the result of a utility in one study: symbols for crash, hang and out of memory, label
/// and version.
fn shown(cell: &UtilityInStudy) -> String {
    let marks = match cell.marks {
        Some(marks) => marks.symbols(),
        None => "not run".to_owned(),
    };
    let mut parts = vec![marks];
    parts.extend(cell.label.clone());
    if !cell.versions.is_empty() {
        parts.push(format!("({})", cell.versions.join(", ")));
    }
    parts.join(" ")
}

/// Formats how many of a utility's groups of failures have each change between the compared
/// studies: `1 new, 2 gone, 1 same`.
fn changes(utility: &ComparedUtility) -> String {
    let all = [Change::New, Change::Gone, Change::NotRun, Change::Same];
    let parts = all.into_iter().filter_map(|change| {
        let of_it = utility.groups.iter().filter(|group| group.change == change);
        let count = of_it.count() as u64;
        (count > 0).then(|| format!("{} {}", size::grouped(count), change.name()))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn groups(comparison: &Comparison, width: Option<usize>) -> String {
    let header = [
        "CHANGE", "UTILITY", "KIND", "CLASS", "GROUP", "SAME BY", "WHERE",
    ];
    let of = |utility: &ComparedUtility, group: &ComparedGroup| {
        let majors = group.majors.iter().map(|majors| match majors.is_empty() {
            true => "–".to_owned(),
            false => majors.join("+"),
        });
        let mut majors: Vec<String> = majors.collect();
        if majors.iter().all(|major| *major == majors[0]) {
            majors.truncate(1);
        }
        vec![
            group.change.name().to_owned(),
            utility.utility.clone(),
            group.kind.folder().to_owned(),
            or_dash(&group.class),
            majors.join(" "),
            match group.same_by {
                Some(SameBy::Key) => "key".to_owned(),
                Some(SameBy::Names) => "names".to_owned(),
                None => "-".to_owned(),
            },
            or_dash(&group.frame),
        ]
    };
    let rows = comparison.utilities.iter();
    let rows: Vec<Vec<String>> = rows
        .flat_map(|utility| utility.groups.iter().map(move |group| of(utility, group)))
        .collect();
    match rows.is_empty() {
        true => String::new(),
        false => render_columns(&header, rows, width, &["KIND"]),
    }
}

fn totals(comparison: &Comparison) -> String {
    let groups = || {
        comparison
            .utilities
            .iter()
            .flat_map(|utility| &utility.groups)
    };
    let count =
        |change| size::grouped(groups().filter(|group| group.change == change).count() as u64);
    format!(
        "groups in [{}]: {} new, {} as before, {} gone, {} of utilities that were not run\n",
        comparison.directories.len(),
        count(Change::New),
        count(Change::Same),
        count(Change::Gone),
        count(Change::NotRun),
    )
}

fn tested_text(test: &RateTest, comparison: &Comparison) -> String {
    let [first, second] = test.studies;
    let rate = |at: usize| {
        let rate = comparison.directories[at].summary.failing;
        format!("{} of {}", size::grouped(rate.hits), size::grouped(rate.of))
    };
    format!(
        "[{}] {} and [{}] {} crash or hang: p = {} by Fisher's exact test, two-sided\n\
         of {} that both have run {} failed in [{}] alone, {} in [{}] alone: p = {} by McNemar's \
         exact test, two-sided\n",
        first + 1,
        rate(first),
        second + 1,
        rate(second),
        p_value(test.fisher),
        size::grouped(test.both_run),
        size::grouped(test.only_first),
        first + 1,
        size::grouped(test.only_second),
        second + 1,
        p_value(test.mcnemar),
    )
}

fn p_value(p: f64) -> String {
    match p {
        ..0.0001 => "less than 0.0001".to_owned(),
        _ => format!("{p:.4}"),
    }
}
