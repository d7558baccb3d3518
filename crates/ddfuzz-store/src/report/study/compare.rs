//! Several studies side by side: what is new, what is gone, whether the rates differ; and the same
//! as text.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Marks, Row, RowGroup, Summary, fisher, mcnemar};
use crate::Kind;
use crate::report::groups::render_columns;
use crate::report::text::printable;
use crate::report::{SameBy, size};

/// One of the directories to be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedStudy {
    /// The directory, as the user names it.
    pub name: String,
    /// Its rows ([`super::rows()`]).
    pub rows: Vec<Row>,
}

/// Studies side by side, in the order in which they were named.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The directories.
    pub directories: Vec<DirectoryResult>,
    /// The utilities of all of them, in the order of the first list that has them.
    pub utilities: Vec<ComparedUtility>,
    /// Each directory beside the one before it.
    pub tests: Vec<RateTest>,
}

/// What the study in one directory came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectoryResult {
    /// The directory, as the user names it.
    pub directory: String,
    /// Its rates. A utility that was run on several machines counts once, and fails if it fails on
    /// one of them.
    #[serde(flatten)]
    pub summary: Summary,
}

/// One utility in all studies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedUtility {
    /// What the lists call it.
    pub utility: String,
    /// What each directory has of it; null where it has nothing.
    pub studies: Vec<Option<UtilityInStudy>>,
    /// Its groups in all of them.
    pub groups: Vec<ComparedGroup>,
}

/// One utility in one study.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UtilityInStudy {
    /// Package and version, each once; empty where no package owns it.
    pub versions: Vec<String>,
    /// How its runs ended; null where there was none.
    pub marks: Option<Marks>,
    /// Runs.
    pub runs: u64,
    /// What is special about it.
    pub label: Option<String>,
}

/// One group of a utility in all studies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedGroup {
    /// The kind of finding.
    pub kind: Kind,
    /// What kind of death; null where no directory has an input of it.
    pub class: Option<String>,
    /// Where in the user's code.
    pub frame: Option<String>,
    /// The first 12 hex digits of its major keys in each directory; builds may differ in them.
    pub majors: Vec<Vec<String>>,
    /// By what the directories have it in common; null where only one has it.
    pub same_by: Option<SameBy>,
    /// What became of it in the last directory.
    pub change: Change,
    /// By stable key and build id, in what directories it is.
    #[serde(skip)]
    names: BTreeSet<(String, Option<String>)>,
}

/// What became of a group in the last of several studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Only the last study has it.
    New,
    /// An earlier one has it, and the last has not, although it ran the utility. It may be fixed,
    /// or not have been met.
    Gone,
    /// An earlier one has it, and the last did not run the utility.
    NotRun,
    /// The last one has it, and an earlier one.
    Same,
}

impl Change {
    /// The name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Change::New => "new",
            Change::Gone => "gone",
            Change::NotRun => "not-run",
            Change::Same => "same",
        }
    }
}

/// Whether the rates of failure of two studies differ by more than chance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateTest {
    /// The places of the two, from 0.
    pub studies: [usize; 2],
    /// The p value of Fisher's exact test, two-sided, over all utilities that each of them has run:
    /// right where these are different utilities.
    pub fisher: f64,
    /// Utilities that both have run.
    pub both_run: u64,
    /// Of these, those that failed in the first alone.
    pub only_first: u64,
    /// Those that failed in the second alone.
    pub only_second: u64,
    /// The p value of McNemar's exact test, two-sided, over these: right where they are the same
    /// utilities.
    pub mcnemar: f64,
}

/// Compares the studies; of a group it is asked whether an earlier directory has it by its major
/// key, else by the names of functions, where the program was built anew.
pub fn compare(studies: &[NamedStudy]) -> Comparison {
    let mut names: Vec<&str> = Vec::new();
    for row in studies.iter().flat_map(|study| &study.rows) {
        if !names.contains(&row.utility.as_str()) {
            names.push(&row.utility);
        }
    }
    let utilities: Vec<ComparedUtility> = names
        .into_iter()
        .map(|name| compared(name, studies))
        .collect();
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

/// Puts a group of the directory `at` to the same one of an earlier directory, else to the others.
fn place(groups: &mut Vec<ComparedGroup>, group: &RowGroup, at: usize, count: usize) {
    let by_key =
        (groups.iter()).position(|one| one.majors.iter().flatten().any(|m| *m == group.major));
    let found = group.found.as_ref();
    let names = found.and_then(|found| Some((found.stable.clone()?, found.build.clone())));
    let by_names = || {
        let (stable, build) = names.as_ref()?;
        // Within one build, two places in one function are two bugs.
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
                kind: group.kind,
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
    if !one.majors[at].contains(&group.major) {
        one.majors[at].push(group.major.clone());
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
    let fails = |cell: &Option<&UtilityInStudy>| cell.and_then(|cell| cell.marks).map(Marks::fails);
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

/// The comparison: the directories with their rates, a line for each utility, a line for each of
/// their groups, and whether the rates differ by more than chance. No line of a table is longer
/// than `width` characters (`None`: as long as need be).
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

/// The marks of a utility in one study, its label and its version.
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

/// `1 new, 2 gone, 1 same`.
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
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            group.change.name().to_owned(),
            utility.utility.clone(),
            group.kind.folder().to_owned(),
            or_none(&group.class),
            majors.join(" "),
            match group.same_by {
                Some(SameBy::Key) => "key".to_owned(),
                Some(SameBy::Names) => "names".to_owned(),
                None => "-".to_owned(),
            },
            or_none(&group.frame),
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
