//! The rows that all formats share (a utility of one version on one machine), the groups of a
//! study, and its summary in a line.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::Rate;
use crate::report::text::shell_word;
use crate::report::{GroupView, size};
use crate::{
    Entry, Group, Kind, Reader, Replayed, StoreError, StudyRecord, Tally, UtilityRecord, is_refusal,
};

/// A utility of one version on one machine, over all campaigns there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// What the list calls it.
    pub utility: String,
    /// The package that it is of.
    pub package: Option<String>,
    /// The package's version.
    pub version: Option<String>,
    /// The machine.
    pub host: String,
    /// Its place in the list, from 0.
    pub place: u64,
    /// Runs by channel and kind of input, in the order of the first of each.
    pub tallies: Vec<Tally>,
    /// What is special about it.
    pub label: Option<String>,
    /// More about that, for people.
    pub note: Option<String>,
    /// Its groups, crashes first.
    pub groups: Vec<RowGroup>,
}

/// One group of a utility.
#[derive(Clone, Debug, PartialEq)]
pub struct RowGroup {
    /// The kind of finding.
    pub kind: Kind,
    /// The first 12 hex digits of the major key.
    pub major: String,
    /// Runs of the utility that ended in it; 0 where it was met in a minimization only.
    pub runs: u64,
    /// How often the reproducer fails when it is run again.
    pub replayed: Option<Replayed>,
    /// What the directory has of it; `None` where it has no entry of this utility.
    pub found: Option<StudyGroup>,
}

/// The marks that the tables of the studies of 1990 and 2020 have for a utility: whether it
/// crashed, and whether it hung; and whether it ran out of memory, which they did not look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Marks {
    /// A run crashed.
    pub crash: bool,
    /// A run was over its time limit.
    pub hang: bool,
    /// A run was over its memory limit.
    pub memory: bool,
}

impl Marks {
    /// Whether it failed by what the published studies count: a crash or a hang.
    pub fn fails(self) -> bool {
        self.crash || self.hang
    }

    /// The marks in one word: `●` for a crash, `○` for a hang, `◆` for memory, `–` for none.
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

    /// Those that are set in either.
    pub fn or(self, other: Marks) -> Marks {
        Marks {
            crash: self.crash || other.crash,
            hang: self.hang || other.hang,
            memory: self.memory || other.memory,
        }
    }
}

impl Row {
    /// All runs.
    pub fn total(&self) -> Tally {
        Tally::total(&self.tallies)
    }

    /// The channels, each once.
    pub fn channels(&self) -> Vec<&str> {
        let mut channels: Vec<&str> = Vec::new();
        for tally in &self.tallies {
            if !channels.contains(&tally.channel.as_str()) {
                channels.push(&tally.channel);
            }
        }
        channels
    }

    /// How its runs ended; `None` where there was none.
    pub fn marks(&self) -> Option<Marks> {
        let total = self.total();
        (total.runs > 0).then_some(Marks {
            crash: total.crashes > 0,
            hang: total.hangs > 0,
            memory: total.ooms > 0,
        })
    }

    /// The group with the smallest reproducer: crashes before hangs, before memory, before what did
    /// not come again, because a hang on nothing would be the smallest of all.
    pub fn smallest(&self) -> Option<(&RowGroup, &StudyGroup)> {
        let found = self.groups.iter();
        found
            .filter_map(|group| Some((group, group.found.as_ref()?)))
            .min_by_key(|(group, found)| (rank(group.kind), found.view.size_after(), &group.major))
    }
}

impl RowGroup {
    /// One line for a shell that shows the failure, where there is a script for it.
    pub fn command(&self) -> Option<String> {
        let script = self.found.as_ref()?.view.script.as_ref()?;
        Some(format!("sh {}", shell_word(script)))
    }

    /// How often the reproducer failed again: `10/10`, `3/10, 10/10 at fixed addresses`.
    pub fn replay(&self) -> Option<String> {
        let replayed = self.replayed?;
        let tries = replayed.tries;
        let fixed = match replayed.fixed_hits {
            Some(hits) => format!(", {hits}/{tries} at fixed addresses"),
            None => String::new(),
        };
        Some(format!("{}/{tries}{fixed}", replayed.hits))
    }
}

/// The rows of each utility as one, whatever versions and machines they are of: a rate over
/// utilities counts each once, and it fails if it fails anywhere.
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

/// The rows of all studies of a directory, in the order of the list; the machines, where there are
/// several, by name. Campaigns of one machine on one version of a package are one row; `groups` are
/// those of the directory ([`super::study_groups`]).
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
    rows.sort_by(|a, b| {
        let order = |row: &Row| (row.place, row.utility.clone(), row.host.clone());
        order(a).cmp(&order(b))
    });
    give_groups(&mut rows, groups);
    rows
}

/// Gives each row what the directory has of its groups. A group that no run ended in was met while
/// another one was minimized: it goes to the first row of its utility.
fn give_groups(rows: &mut [Row], groups: &[StudyGroup]) {
    let mut given = BTreeSet::new();
    for row in rows.iter_mut() {
        for group in &mut row.groups {
            let ours = |found: &&StudyGroup| {
                found.utility == row.utility
                    && found.view.kind == group.kind
                    && found.view.major.short() == group.major
            };
            if let Some(found) = groups.iter().find(ours) {
                group.found = Some(found.clone());
                given.insert((found.utility.as_str(), group.kind, group.major.clone()));
            }
        }
    }
    for found in groups {
        let (kind, major) = (found.view.kind, found.view.major.short());
        if given.contains(&(found.utility.as_str(), kind, major.clone())) {
            continue;
        }
        if let Some(row) = rows.iter_mut().find(|row| row.utility == found.utility) {
            row.groups.push(RowGroup {
                kind,
                major,
                runs: 0,
                replayed: None,
                found: Some(found.clone()),
            });
        }
    }
    for row in rows {
        row.groups
            .sort_by(|a, b| (rank(a.kind), &a.major).cmp(&(rank(b.kind), &b.major)));
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

    /// Takes in what another campaign made of it; what a later one says of it stands.
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
            let same = |held: &&mut RowGroup| held.kind == group.kind && held.major == group.major;
            match self.groups.iter_mut().find(same) {
                Some(held) => {
                    held.runs += group.runs;
                    let tries = |replayed: Option<Replayed>| replayed.map(|it| it.tries);
                    if tries(group.replayed) > tries(held.replayed) {
                        held.replayed = group.replayed;
                    }
                }
                None => self.groups.push(RowGroup {
                    kind: group.kind,
                    major: group.major.clone(),
                    runs: group.runs,
                    replayed: group.replayed,
                    found: None,
                }),
            }
        }
    }
}

/// What a study looks for first.
fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Crash => 0,
        Kind::Hang => 1,
        Kind::Oom => 2,
        Kind::Flaky => 3,
    }
}

/// A group as far as one utility is in it, through that utility's best entry.
///
/// Of two utilities the crashes may have one key: in a library that both use, or where nothing but
/// the class is known. Such a group stands once for each of them.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyGroup {
    /// What the study calls the utility.
    pub utility: String,
    /// What is to be shown.
    pub view: GroupView,
    /// The stable key of the entry, whole; `None` without symbols.
    pub stable: Option<String>,
    /// The build id of the program, by which stable keys are compared or not.
    pub build: Option<String>,
}

/// All groups of a directory that are of utilities, by kind, major key and utility. Entries that do
/// not say what was run are of no study, and left out.
///
/// # Errors
/// When a file cannot be read.
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

/// The entry of each utility through which a group is shown: a minimized one, else that of the
/// least reproducer.
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

/// How many utilities failed in which way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The machines.
    pub hosts: Vec<String>,
    /// Of the utilities that were run, those that crashed.
    pub crash: Rate,
    /// Those that hung.
    pub hang: Rate,
    /// Those that ran out of memory.
    pub memory: Rate,
    /// Those that crashed or hung: what the published rates count.
    pub failing: Rate,
    /// Utilities that could not be run, by label.
    pub not_run: BTreeMap<String, u64>,
    /// Utilities whose turn has not come yet.
    pub waiting: u64,
}

impl Summary {
    /// That of these rows; those of one utility, in several versions or on several machines, count
    /// as one.
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

    /// In sentences, on one line.
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

/// The summary of all rows; where a utility was run on several machines, one for each machine
/// instead, because that is what the published rates are of.
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
