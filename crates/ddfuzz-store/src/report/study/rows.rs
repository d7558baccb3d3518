//! The rows of a study's tables (one for each utility, package version and machine), its groups,
//! and its summary, from which all formats are made.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::Rate;
use crate::{
    Entry, Group, GroupTally, Kind, Reader, Replayed, StoreError, StudyRecord, Tally,
    UtilityRecord, is_refusal,
    report::{GroupView, size, text::shell_word},
};

/// Result of one utility in one package version on one machine, over all campaigns on that machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Name of the utility in the list of utilities.
    pub utility: String,
    /// Package that contains the utility's program; `None` if unknown.
    pub package: Option<String>,
    /// Version of the package that contains the utility's program; `None` if unknown.
    pub version: Option<String>,
    /// Host name of the machine on which the utility was run.
    pub host: String,
    /// Index of the utility in the list of utilities, from 0.
    pub place: u64,
    /// Numbers of the utility's runs by channel (how inputs reached the program) and kind of input.
    pub tallies: Vec<Tally>,
    /// Label that says what is special about the utility, such as `missing` or `setuid`; `None` for
    /// a normal one.
    pub label: Option<String>,
    /// Explanation, for people, of the label that says what is special about the utility; `None` if
    /// the label needs none.
    pub note: Option<String>,
    /// Groups of failures (crashes, hangs, …) of the utility, crashes first.
    pub groups: Vec<RowGroup>,
}

/// One group of failures (crash, hang, …) of a utility.
#[derive(Clone, Debug, PartialEq)]
pub struct RowGroup {
    /// Kind, major key and number of runs of the group; 0 runs if the crash was met only while
    /// another input was minimized.
    pub tally: GroupTally,
    /// Report data of the stored group; `None` if the directory has no input of this utility in the
    /// group.
    pub found: Option<StudyGroup>,
}

/// Which kinds of failure the runs of a utility had: crashes and hangs as in the tables of the
/// published studies of 1990 and 2020, and also out of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FailureKinds {
    /// Whether any run of the utility crashed.
    pub crash: bool,
    /// Whether any run of the utility exceeded the time limit.
    pub hang: bool,
    /// Whether any run of the utility exceeded the memory limit.
    pub memory: bool,
}

impl FailureKinds {
    /// Returns whether the utility failed as the published studies count it: by a crash or a hang.
    pub fn fails(self) -> bool {
        self.crash || self.hang
    }

    /// Returns the kinds of failure as symbols: `●` crash, `○` hang, `◆` out of memory, `–` none.
    pub fn symbols(self) -> String {
        let all = [(self.crash, '●'), (self.hang, '○'), (self.memory, '◆')];
        let set: String = (all.iter().filter(|(set, _)| *set))
            .map(|(_, symbol)| symbol)
            .collect();
        match set.is_empty() {
            true => "–".to_owned(),
            false => set,
        }
    }

    /// Returns the kinds of failure (crash, hang, out of memory) that are marked in `self`, in
    /// `other`, or in both.
    pub fn or(self, other: FailureKinds) -> FailureKinds {
        FailureKinds {
            crash: self.crash || other.crash,
            hang: self.hang || other.hang,
            memory: self.memory || other.memory,
        }
    }
}

impl Row {
    /// Returns the utility's numbers of runs, summed over all channels and kinds of input.
    pub fn total(&self) -> Tally {
        Tally::total(&self.tallies)
    }

    /// Lists the channels by which inputs reached the utility (`stdin`, `file`, …), each once.
    pub fn channels(&self) -> Vec<&str> {
        distinct(self.tallies.iter().map(|tally| tally.channel.as_str()))
    }

    /// Returns the kinds of failure that the utility's runs had; `None` if there were no runs.
    pub fn marks(&self) -> Option<FailureKinds> {
        let total = self.total();
        (total.runs > 0).then_some(FailureKinds {
            crash: total.crashes > 0,
            hang: total.hangs > 0,
            memory: total.ooms > 0,
        })
    }

    /// Returns the utility's group with the smallest reproducer; `None` if it has no stored group.
    /// Crashes have priority over hangs, then out of memory, then flaky crashes, because a hang on
    /// an empty input would always be the smallest.
    pub fn smallest(&self) -> Option<(&RowGroup, &StudyGroup)> {
        let found = self.groups.iter();
        found
            .filter_map(|group| Some((group, group.found.as_ref()?)))
            .min_by_key(|(group, found)| {
                (
                    rank(group.tally.kind),
                    found.view.size_after(),
                    &group.tally.major,
                )
            })
    }
}

impl RowGroup {
    /// Returns the shell command that shows the failure of the group; `None` if there is no
    /// `reproduce.sh`.
    pub fn command(&self) -> Option<String> {
        let script = self.found.as_ref()?.view.script.as_ref()?;
        Some(format!("sh {}", shell_word(script)))
    }

    /// Formats how often the group's reproducer failed again: `10/10`, `3/10, 10/10 at fixed
    /// addresses`; `None` if it was not run again.
    pub fn replay(&self) -> Option<String> {
        let replayed = self.tally.replayed?;
        let tries = replayed.tries;
        let fixed = match replayed.fixed_hits {
            Some(hits) => format!(", {hits}/{tries} at fixed addresses"),
            None => String::new(),
        };
        Some(format!("{}/{tries}{fixed}", replayed.hits))
    }
}

/// Returns the texts without repetitions, in the order of their first occurrence.
pub(super) fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// Returns one row for each utility, in which the rows of its versions and machines are joined, so
/// that rates count each utility once.
pub(super) fn once_each<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<Row> {
    let mut all: Vec<Row> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for row in rows {
        match places.get(row.utility.as_str()) {
            Some(at) => {
                let one = &mut all[*at];
                one.tallies.extend(row.tallies.iter().cloned());
                one.label = one.label.take().or_else(|| row.label.clone());
            }
            None => {
                places.insert(&row.utility, all.len());
                all.push(row.clone());
            }
        }
    }
    all
}

/// Makes a row for each utility, package version and machine from all studies in a directory,
/// sorted by list index, then by machine. Campaigns on one machine with one package version share a
/// row. `groups` come from [`super::study_groups`].
pub fn rows(studies: &[StudyRecord], groups: &[StudyGroup]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut studies: Vec<&StudyRecord> = studies.iter().collect();
    studies.sort_by_key(|study| (&study.started, &study.campaign));
    for study in studies {
        for record in &study.utilities {
            let same = |row: &&mut Row| {
                row.utility == record.utility
                    && row.package == record.package
                    && row.version == record.version
                    && row.host == study.host
            };
            match rows.iter_mut().find(same) {
                Some(row) => row.take(record),
                None => rows.push(Row::of(record, &study.host)),
            }
        }
    }
    rows.sort_by_key(|row| (row.place, row.utility.clone(), row.host.clone()));
    give_groups(&mut rows, groups);
    rows
}

/// Attaches the stored groups of failures to the rows of the utilities that failed. A group
/// without runs, met only while another input was minimized, goes to the first row of its utility.
fn give_groups(rows: &mut [Row], groups: &[StudyGroup]) {
    let mut given = BTreeSet::new();
    for row in rows.iter_mut() {
        for group in &mut row.groups {
            let ours = |found: &&StudyGroup| {
                found.utility == row.utility
                    && found.view.kind == group.tally.kind
                    && found.view.major.short() == group.tally.major
            };
            if let Some(found) = groups.iter().find(ours) {
                group.found = Some(found.clone());
                given.insert((&found.utility, found.view.kind, found.view.major));
            }
        }
    }
    for found in groups {
        let (kind, major) = (found.view.kind, found.view.major);
        if given.contains(&(&found.utility, kind, major)) {
            continue;
        }
        if let Some(row) = rows.iter_mut().find(|row| row.utility == found.utility) {
            let tally = GroupTally {
                kind,
                major: major.short(),
                runs: 0,
                replayed: None,
            };
            let found = Some(found.clone());
            row.groups.push(RowGroup { tally, found });
        }
    }
    for row in rows {
        row.groups
            .sort_by_key(|group| (rank(group.tally.kind), group.tally.major.clone()));
    }
}

impl Row {
    fn of(record: &UtilityRecord, host: &str) -> Row {
        let mut row = Row {
            utility: record.utility.clone(),
            package: record.package.clone(),
            version: record.version.clone(),
            host: host.to_owned(),
            place: record.place,
            ..Row::default()
        };
        row.take(record);
        row
    }

    /// Adds the utility's result `record` of a further campaign to the row. If the record has a
    /// label (why the utility was not run, or what it did without input), that label and its note
    /// replace those of the row.
    fn take(&mut self, record: &UtilityRecord) {
        self.place = self.place.min(record.place);
        if record.label.is_some() {
            self.label.clone_from(&record.label);
            self.note.clone_from(&record.note);
        } else if record.is_run() && self.label.as_deref().is_some_and(is_refusal) {
            (self.label, self.note) = (None, None);
        }
        for tally in &record.tallies {
            let same = |held: &&mut Tally| held.channel == tally.channel && held.kind == tally.kind;
            match self.tallies.iter_mut().find(same) {
                Some(held) => held.add(tally),
                None => self.tallies.push(tally.clone()),
            }
        }
        for group in &record.groups {
            let held = (self.groups.iter_mut().map(|held| &mut held.tally))
                .find(|held| held.kind == group.kind && held.major == group.major);
            match held {
                Some(held) => {
                    held.runs += group.runs;
                    let tries = |replayed: Option<Replayed>| replayed.map(|it| it.tries);
                    if tries(group.replayed) > tries(held.replayed) {
                        held.replayed = group.replayed;
                    }
                }
                None => self.groups.push(RowGroup {
                    tally: group.clone(),
                    found: None,
                }),
            }
        }
    }
}

/// Returns the priority by which a utility's failures of this kind are chosen for display; a lower
/// number is more important.
fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Crash => 0,
        Kind::Hang => 1,
        Kind::Oom => 2,
        Kind::Flaky => 3,
    }
}

/// A stored group of failures, restricted to one utility and represented by its best stored input.
///
/// Several utilities may crash with one key, for example in a shared library. Such a group appears
/// once for each utility.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyGroup {
    /// Name of the utility in the study.
    pub utility: String,
    /// Data that reports show of the stored group: class, location, sizes, files and so on.
    pub view: GroupView,
    /// Stable key (made of function names) of the representative input's crash, all hex digits;
    /// `None` without symbols.
    pub stable: Option<String>,
    /// GNU build id of the program; `None` if it has none. Groups of the same build are not matched
    /// by stable keys (function names).
    pub build: Option<String>,
}

/// Reads all groups of failures of a study's utilities from an output directory, sorted by kind,
/// major key and utility. Stored inputs whose record does not name a utility are skipped.
pub fn study_groups(reader: &Reader) -> Result<Vec<StudyGroup>, StoreError> {
    let mut groups = Vec::new();
    for kind in Kind::ALL {
        for group in reader.groups(kind)? {
            for (utility, entry) in best_entries(reader, &group)? {
                groups.push(StudyGroup {
                    utility,
                    view: GroupView::load(&group, &entry)?,
                    stable: entry.crash.keys.stable.map(|key| key.to_string()),
                    build: entry.crash.build().map(str::to_owned),
                });
            }
        }
    }
    Ok(groups)
}

/// Selects, for each utility that crashed in a group, the best of its stored inputs: a minimized
/// one before others, then the smallest; keyed by the name of the utility.
fn best_entries(reader: &Reader, group: &Group) -> Result<BTreeMap<String, Entry>, StoreError> {
    let mut best = BTreeMap::new();
    for entry in reader.entries(group.kind, &group.record.major.short())? {
        let Some(subject) = &entry.crash.of else {
            continue;
        };
        let utility = subject.utility.clone();
        let size = entry
            .reproducer()
            .metadata()
            .map_or(u64::MAX, |it| it.len());
        let rank = (entry.minimized.is_none(), size, entry.id.clone());
        match best.get(&utility) {
            Some((held, _)) if *held <= rank => {}
            _ => drop(best.insert(utility, (rank, entry))),
        }
    }
    let entries = best.into_iter();
    Ok(entries
        .map(|(utility, (_, entry))| (utility, entry))
        .collect())
}

/// Rates and numbers of a study's utilities by how they failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Host names of the machines on which the summarized utilities were run.
    pub hosts: Vec<String>,
    /// Rate of utilities that crashed, among the utilities of the study that were run.
    pub crash: Rate,
    /// Rate of utilities that hung, among the utilities of the study that were run.
    pub hang: Rate,
    /// Rate of utilities that ran out of memory, among the utilities of the study that were run.
    pub memory: Rate,
    /// Rate of utilities that crashed or hung, among those that were run; the published studies
    /// count failures in the same way.
    pub failing: Rate,
    /// Number of utilities that could not be run, by the label that says why (`missing`, `setuid`,
    /// …).
    pub not_run: BTreeMap<String, u64>,
    /// Number of utilities that the study has not run yet.
    pub waiting: u64,
}

impl Summary {
    /// Returns a summary of the rows of utilities; a utility counts once, over all its versions and
    /// machines.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Summary {
        let (mut run, mut counts) = (0, [0; 4]);
        let mut hosts = BTreeSet::new();
        let mut not_run = BTreeMap::new();
        let mut waiting = 0;
        let rows = rows.into_iter().inspect(|row| {
            hosts.insert(row.host.clone());
        });
        for row in once_each(rows) {
            match (row.marks(), &row.label) {
                (Some(marks), _) => {
                    run += 1;
                    let all = [marks.crash, marks.hang, marks.memory, marks.fails()];
                    for (count, is_set) in counts.iter_mut().zip(all) {
                        *count += u64::from(is_set);
                    }
                }
                (None, Some(label)) => *not_run.entry(label.clone()).or_default() += 1,
                (None, None) => waiting += 1,
            }
        }
        let [crash, hang, memory, failing] = counts.map(|count| Rate::new(count, run));
        Summary {
            hosts: hosts.into_iter().collect(),
            crash,
            hang,
            memory,
            failing,
            not_run,
            waiting,
        }
    }

    /// Formats as one line the rates of utilities that failed in each way, and the numbers of
    /// utilities.
    pub fn text(&self) -> String {
        let run = match self.failing.of {
            1 => "1 utility run".to_owned(),
            count => format!("{} utilities run", size::grouped(count)),
        };
        let mut text = match self.failing.of {
            0 => run,
            _ => format!(
                "{run}, {} crash ({}), {} hang ({}), {} run out of memory; {} crash or hang ({})",
                size::grouped(self.crash.hits),
                self.crash.text(),
                size::grouped(self.hang.hits),
                self.hang.text(),
                size::grouped(self.memory.hits),
                size::grouped(self.failing.hits),
                self.failing.text(),
            ),
        };
        let not_run: u64 = self.not_run.values().sum();
        if not_run > 0 {
            let labels = self.not_run.iter();
            let labels: Vec<String> = labels
                .map(|(label, count)| format!("{label} {}", size::grouped(*count)))
                .collect();
            let count = size::grouped(not_run);
            text += &format!("; {count} could not be run ({})", labels.join(", "));
        }
        if self.waiting > 0 {
            text += &format!("; {} not run yet", size::grouped(self.waiting));
        }
        text
    }
}

/// Returns a summary of all rows of utilities, or one for each machine if a utility was run on
/// several.
pub fn summaries(rows: &[Row]) -> Vec<Summary> {
    let names: BTreeSet<&str> = rows.iter().map(|row| row.utility.as_str()).collect();
    let on_hosts: BTreeSet<(&str, &str)> = (rows.iter())
        .map(|row| (row.host.as_str(), row.utility.as_str()))
        .collect();
    if names.len() == on_hosts.len() {
        return vec![Summary::of(rows)];
    }
    let hosts: BTreeSet<&str> = rows.iter().map(|row| row.host.as_str()).collect();
    let of = |host: &str| Summary::of(rows.iter().filter(|row| row.host == host));
    hosts.into_iter().map(of).collect()
}
