//! The rows that all formats share: a utility of one version on one machine.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::StudyGroup;
use crate::report::text::shell_word;
use crate::{Kind, Replayed, StudyRecord, Tally, UtilityRecord, is_refusal};

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
