//! The campaign file of an output directory (`ddfuzz.json`): the campaign, the builds of its
//! program, and whether a path is an output directory at all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Entry, Group, Kind, StoreError, json, layout, reader};
use ddfuzz_exec::{Limits, TargetRecord, Way};
use ddfuzz_model::files::{OsText, atomic};

/// A fuzzing campaign as recorded in `ddfuzz.json`: its target, limits, seed, start and machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// Id of the fuzzing campaign, unique among all campaigns; other files of the output directory
    /// refer to the campaign by it.
    #[serde(rename = "campaign")]
    pub id: String,
    /// The command line that started the campaign, one element for each argument.
    pub command_line: Vec<OsText>,
    /// Options that a settings file added to the campaign's command line; `None` without such a
    /// file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsFile>,
    /// The program that the campaign fuzzes, and how it is run; `None` for a campaign of `ddfuzz
    /// revisit`, which fuzzes several utilities.
    pub target: Option<TargetRecord>,
    /// Builds (by hash of the file) of the fuzzed program that the campaign has run, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<Build>,
    /// Limits on time and memory of each run; `None` if they are not recorded.
    pub limits: Option<Limits>,
    /// Ways of execution (fork server, `execve`, …) that the campaign has used.
    pub ways: Vec<Way>,
    /// Seed of the random generator from which the campaign's inputs come; `None` where the
    /// campaign has no generator.
    pub seed: Option<u64>,
    /// Start of the campaign, as RFC 3339 in UTC ([`super::rfc3339`]).
    pub started: String,
    /// Host name of the machine on which the campaign started.
    pub host: String,
}

impl Campaign {
    /// Returns true if the campaign fuzzes the target that `now` describes, even if in another way
    /// of execution; false if it fuzzes another target or records no target.
    pub fn is_of(&self, now: &TargetRecord) -> bool {
        self.target
            .as_ref()
            .is_some_and(|record| now.same_target(record))
    }

    /// Merges another record of the same campaign into this one: the lists of builds are united,
    /// and all other fields are those of the record whose JSON text without the builds sorts first.
    fn join(&mut self, mut other: Campaign) {
        let (ours, theirs) = (&mut self.builds, &mut other.builds);
        let builds = united(std::mem::take(ours), std::mem::take(theirs));
        let text = |campaign: &Campaign| serde_json::to_string(campaign).ok();
        if text(&other) < text(self) {
            *self = other;
        }
        self.builds = builds;
    }
}

/// Unites two lists of builds of one program, each sorted from the oldest to the newest, into one
/// list in the same order. Builds of one list keep their order, even if the clock was set back
/// between two of them. Builds of different lists that were first run in the same second are sorted
/// by their hashes. A build that both lists record as first run at the same time becomes one
/// record.
fn united(one: Vec<Build>, other: Vec<Build>) -> Vec<Build> {
    let mut joined = vec![false; one.len()];
    let place = |build: &Build| (build.seen.clone(), build.blake3.clone());
    // Each build with the last place, by time and hash, of all builds of its list up to it.
    let mut all: Vec<((String, String), Build)> = Vec::new();
    for build in one {
        let before = all.last().map(|(latest, _)| latest.clone());
        all.push((before.unwrap_or_default().max(place(&build)), build));
    }
    let mut latest = <(String, String)>::default();
    for build in other {
        let is_copy = |at: &usize| {
            let known = &all[*at].1;
            !joined[*at] && known.blake3 == build.blake3 && known.seen == build.seen
        };
        match (0..joined.len()).find(is_copy) {
            Some(at) => {
                let (known_latest, known) = &mut all[at];
                latest = latest.max(known_latest.clone());
                known_latest.clone_from(&latest);
                known.join(build);
                joined[at] = true;
            }
            None => {
                latest = latest.max(place(&build));
                all.push((latest.clone(), build));
            }
        }
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all.into_iter().map(|(_, build)| build).collect()
}

/// A settings file and the options that it adds to a command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsFile {
    /// Absolute path of the settings file that adds options to a command line.
    pub file: OsText,
    /// Options that the settings file adds, as command-line arguments; empty if the file has none
    /// for the command.
    pub arguments: Vec<OsText>,
}

impl std::fmt::Display for SettingsFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.file.0.to_string_lossy();
        if self.arguments.is_empty() {
            return write!(f, "{file} adds nothing to this command");
        }
        write!(f, "{file} adds")?;
        let all = self.arguments.iter();
        all.map(|argument| argument.0.to_string_lossy())
            .try_for_each(|argument| write!(f, " {argument}"))
    }
}

/// The content of `ddfuzz.json`. The fields of the directory's own campaign are at the top level of
/// the JSON; a directory made by [`super::merge()`] has no campaign of its own, only `campaigns`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CampaignFile {
    /// Version of the output directory's format ([`VERSION`]).
    pub version: u64,
    /// The output directory's own campaign, which `--resume` continues; `None` in a directory made
    /// by a merge.
    #[serde(flatten)]
    pub current: Option<Campaign>,
    /// The campaigns, other than the directory's own, whose findings the directory holds; sorted by
    /// id.
    #[serde(rename = "campaigns")]
    pub others: Vec<Campaign>,
}

impl CampaignFile {
    /// Reads `ddfuzz.json` of the directory `root`; `None` if the file does not exist. Fails if the
    /// file is damaged or of another format version.
    pub(super) fn read(root: &Path) -> Result<Option<CampaignFile>, StoreError> {
        let path = root.join(layout::CAMPAIGN);
        let Some(value) = json::read::<Value>(&path)? else {
            return Ok(None);
        };
        let damaged = |why: String| StoreError::Damaged {
            path: path.clone(),
            why,
        };
        // Check the version first: other versions may have other fields.
        let version = (value.get("version").and_then(Value::as_u64))
            .ok_or_else(|| damaged("it has no version".to_owned()))?;
        if version != VERSION {
            return Err(StoreError::OtherVersion {
                path: root.to_owned(),
                found: version,
                known: VERSION,
            });
        }
        let invalid = |error: serde_json::Error| damaged(error.to_string());
        let current = value.get("campaign").map(|_| Campaign::deserialize(&value));
        let current = current.transpose().map_err(invalid)?;
        let others = value.get("campaigns").map(Vec::deserialize);
        let others = others.transpose().map_err(invalid)?.unwrap_or_default();
        Ok(Some(CampaignFile {
            version,
            current,
            others,
        }))
    }

    pub(super) fn write(&self, root: &Path) -> Result<(), StoreError> {
        json::write(&root.join(layout::CAMPAIGN), self)
    }

    /// Adds the record of a campaign. If a record of the same campaign exists already, as in a copy
    /// of an output directory, the builds of both are united, and all other fields are those of one
    /// record: for the directory's own campaign, the existing record; for one of the `others`, the
    /// record whose JSON text sorts first, so that the order of the calls does not matter.
    pub(super) fn take(&mut self, campaign: Campaign) {
        if let Some(own) = self.current.as_mut().filter(|own| own.id == campaign.id) {
            own.builds = united(std::mem::take(&mut own.builds), campaign.builds);
            return;
        }
        match (self.others).binary_search_by(|other| other.id.cmp(&campaign.id)) {
            Err(at) => self.others.insert(at, campaign),
            Ok(at) => self.others[at].join(campaign),
        }
    }

    /// Iterates over all campaigns whose findings the output directory holds, its own campaign
    /// first.
    pub fn all(&self) -> impl Iterator<Item = &Campaign> {
        self.current.iter().chain(&self.others)
    }

    /// Returns the builds of a target's program, oldest first, from the records of all campaigns
    /// that fuzz the target, which `now` describes; `None` if no campaign fuzzes it. If several
    /// campaigns record the same build, the last of these records gets the highest [`Status`] that
    /// any of them gives a group, so that a group that one campaign has seen fail is not called
    /// fixed.
    pub fn builds(&self, now: &TargetRecord) -> Option<Vec<Build>> {
        let all = self.others.iter().chain(&self.current);
        let mut on_target = all.filter(|one| one.is_of(now)).peekable();
        on_target.peek()?;
        let mut builds = on_target.fold(Vec::new(), |all, one| united(all, one.builds.clone()));
        // Copies of a directory may have checked the groups with one build at different times.
        for at in 1..builds.len() {
            let (earlier, later) = builds.split_at_mut(at);
            later[0].raise(&earlier[at - 1]);
        }
        Some(builds)
    }

    /// Returns, for each campaign, the last build of its target's program; the statuses of groups
    /// (fixed, same, …) are taken from these builds.
    pub fn last_builds(&self) -> LastBuilds {
        let last = |one: &Campaign| self.builds(one.target.as_ref()?)?.pop();
        LastBuilds {
            of_campaigns: self.all().map(|one| (one.id.clone(), last(one))).collect(),
            own: self.current.as_ref().map(|own| own.id.clone()),
        }
    }

    /// Copies the set of unchecked groups (groups to be checked once more) from `build` to the
    /// records of the same build in all campaigns of the output directory that fuzz the target
    /// `now`.
    pub(super) fn set_unchecked(&mut self, now: &TargetRecord, build: &Build) {
        let all = self.others.iter_mut().chain(&mut self.current);
        for record in all
            .filter(|one| one.is_of(now))
            .flat_map(|one| &mut one.builds)
        {
            if record.blake3 == build.blake3 {
                record.unchecked.clone_from(&build.unchecked);
            }
        }
    }

    /// Returns the campaign in whose record the next build of the target `now` is to be stored: the
    /// output directory's own campaign, if it fuzzes this target; else, among the merged campaigns
    /// that fuzz it, the campaign with the latest recorded build. `None` if no campaign fuzzes the
    /// target.
    pub(super) fn recorder_of_builds(&mut self, now: &TargetRecord) -> Option<&mut Campaign> {
        match &mut self.current {
            Some(own) if own.is_of(now) => Some(own),
            _ => {
                let others = self.others.iter_mut().filter(|one| one.is_of(now));
                others.max_by_key(|one| one.builds.iter().map(|build| build.seen.clone()).max())
            }
        }
    }
}

/// The last builds of the programs of an output directory, one for each campaign's target.
#[derive(Default)]
pub struct LastBuilds {
    /// The last recorded build of the program that each campaign fuzzes, by the campaign's id;
    /// `None` for a campaign without a recorded build.
    of_campaigns: BTreeMap<String, Option<Build>>,
    /// Id of the output directory's own campaign; `None` if the directory has none.
    own: Option<String>,
}

impl LastBuilds {
    /// Returns the last build of the target on which an entry (stored input) was found; `None` if
    /// none is recorded. An entry whose record names no known campaign counts as found by the
    /// output directory's own campaign.
    pub fn of_entry(&self, entry: &Entry) -> Option<&Build> {
        let named = entry.crash.campaign();
        let known = named.filter(|id| self.of_campaigns.contains_key(*id));
        let id = known.or(self.own.as_deref())?;
        self.of_campaigns.get(id)?.as_ref()
    }

    /// Returns true if it is not known whether `entry` fails with the last build of its target,
    /// although another entry of its group does ([`Build::doubts`]).
    pub fn doubts(&self, entry: &Entry) -> bool {
        self.of_entry(entry)
            .is_some_and(|build| build.doubts(entry))
    }

    /// Returns the status (fixed, same, …) of a group of crashes: the highest status of the group
    /// in the last builds of all targets that the group's inputs were found on. So a group is fixed
    /// only if it is fixed in all of these builds. The status is [`Status::Unchecked`] if the group
    /// is to be checked once more with one of these builds, and `None` if it was not checked with
    /// one of them. An input whose record names no known campaign counts as found by the output
    /// directory's own campaign.
    ///
    /// # Errors
    /// When the group's entries cannot be read.
    pub fn status(&self, group: &Group) -> Result<Option<Status>, StoreError> {
        let major = group.record.major.short();
        let of = |build: &Build| match build.is_unchecked(group.kind, &major) {
            true => Some(Status::Unchecked),
            false => build.status(group.kind, &major),
        };
        if self
            .of_campaigns
            .values()
            .flatten()
            .all(|build| of(build).is_none())
        {
            return Ok(None);
        }
        let mut all = Vec::new();
        for entry in group.entries()? {
            all.push(self.of_entry(&entry).and_then(of));
        }
        if all.contains(&Some(Status::Unchecked)) {
            return Ok(Some(Status::Unchecked));
        }
        let all: Option<Vec<Status>> = all.into_iter().collect();
        Ok(all.and_then(|all| all.into_iter().max()))
    }
}

/// What became of a group of crashes after the program was rebuilt, that is, whether its inputs
/// still fail in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// None of the stored inputs of the group of crashes fails with the new build of the program.
    Fixed,
    /// It is not known whether the bug is fixed: no input of the group fails as before, but the
    /// crash may be invisible in the new runs, because the build has other sanitizers, for example,
    /// or the limits are different.
    #[serde(rename = "cannot tell")]
    CannotTell,
    /// The stored inputs of the group of crashes fail in some runs only, before or after the
    /// rebuild, so that it is not known whether the bug is fixed.
    Flaky,
    /// A stored input of the group of crashes fails with the new build, but with another crash than
    /// before.
    Other,
    /// A stored input of the group of crashes still fails with the new build, with the same crash
    /// as before.
    Same,
    /// The group is to be checked by the next ddfuzz command that minimizes: it has a minimization
    /// result that was not run with the last build, or a later run has contradicted the check. Only
    /// reports have this status; a build records such groups in `unchecked`.
    Unchecked,
}

impl Status {
    /// Returns true if a group of the kind `kind` with this status fails as it did before the
    /// rebuild: if the status is `Same` or, for a group of flaky crashes, `Flaky`. Else returns
    /// false.
    pub fn is_as_before(self, kind: Kind) -> bool {
        match kind {
            Kind::Flaky => matches!(self, Status::Same | Status::Flaky),
            Kind::Crash | Kind::Hang | Kind::Oom => self == Status::Same,
        }
    }

    /// Returns the name of the group's status, as in JSON: `fixed`, `cannot tell`, `flaky`,
    /// `other`, `same` or `unchecked`.
    pub fn name(self) -> &'static str {
        match self {
            Status::Fixed => "fixed",
            Status::CannotTell => "cannot tell",
            Status::Flaky => "flaky",
            Status::Other => "other",
            Status::Same => "same",
            Status::Unchecked => "unchecked",
        }
    }
}

/// A build of the fuzzed program, identified by the hash of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The blake3 hash of this build's program file, as 64 hex digits.
    pub blake3: String,
    /// Time when the campaign first ran this build of the program, as RFC 3339 in UTC.
    pub seen: String,
    /// Status (fixed, same, …) of each group of crashes found with earlier builds, after its inputs
    /// were run with this build: by kind, then by major key of the group; empty for the campaign's
    /// first build.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<Kind, BTreeMap<String, Status>>,
    /// For groups that fail as before with this build, the entry that has shown it: by kind, then
    /// by major key of the group, the entry's minor key and the hash of its input, as `MINOR/HASH`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failing: BTreeMap<Kind, BTreeMap<String, String>>,
    /// Groups to check once more with this build, by kind and major key: groups that got a
    /// minimization result not yet run with this build, and groups whose check a later run has
    /// contradicted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unchecked: BTreeMap<Kind, BTreeSet<String>>,
    /// Blake3 hashes of the logs of minimizations that were made with another build, but whose
    /// results failed as before when the groups were checked with this build.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub failing_results: BTreeSet<String>,
    /// Major keys that crashes of groups have with this build, where the build has given them
    /// another key than the group's: by kind, then by the major key of this build's crash, the
    /// group's major key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub moved: BTreeMap<Kind, BTreeMap<String, String>>,
    /// Locations in the user's code at which groups found with earlier builds fail with this build,
    /// for the groups whose location differs (in function, file or line) from the one in their
    /// crash record; by kind, then by major key of the group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<Kind, BTreeMap<String, String>>,
}

/// Adds the texts `theirs` to `own`, both by kind and by major key. If both have a text for a key,
/// the one that sorts first stays.
fn keep_first(
    own: &mut BTreeMap<Kind, BTreeMap<String, String>>,
    theirs: BTreeMap<Kind, BTreeMap<String, String>>,
) {
    for (kind, texts) in theirs {
        let own = own.entry(kind).or_default();
        for (major, text) in texts {
            let held = own.entry(major).or_insert_with(|| text.clone());
            *held = text.min(held.clone());
        }
    }
}

impl Build {
    /// Returns the status (fixed, same, …) that a group of crashes has with this build of the
    /// program; `None` if the group was not checked. `major` is the group's major key.
    pub fn status(&self, kind: Kind, major: &str) -> Option<Status> {
        self.groups.get(&kind)?.get(major).copied()
    }

    /// Records the entry (`minor`, `hash`) that has shown, when it was run with this build, that
    /// its group (`kind`, `major`) fails as before.
    pub fn add_failing(&mut self, kind: Kind, major: &str, minor: &str, hash: &str) {
        let of_kind = self.failing.entry(kind).or_default();
        of_kind.insert(major.to_owned(), format!("{minor}/{hash}"));
    }

    /// Returns true if it is not known whether an entry fails with this build, although another
    /// entry of its group does: an incomplete fix may have fixed only this entry. An entry is known
    /// to fail with this build if `failing` names it, or if it was minimized with this build.
    pub fn doubts(&self, entry: &Entry) -> bool {
        let id = &entry.id;
        let of_kind = self.failing.get(&id.kind());
        let Some(shown) = of_kind.and_then(|groups| groups.get(id.major())) else {
            return false;
        };
        let is_shown = *shown == format!("{}/{}", id.minor(), id.hash());
        !is_shown && entry.build() != Some(&self.blake3)
    }

    /// Records that the crash of the group `major` has the major key `now` with this build.
    pub fn add_moved(&mut self, kind: Kind, major: &str, now: &str) {
        let of_kind = self.moved.entry(kind).or_default();
        of_kind.insert(now.to_owned(), major.to_owned());
    }

    /// Records that the group with the major key `major` fails at the location `place` with this
    /// build.
    pub fn add_place(&mut self, kind: Kind, major: &str, place: &str) {
        let of_kind = self.places.entry(kind).or_default();
        of_kind.insert(major.to_owned(), place.to_owned());
    }

    /// Returns the major key of the group that is the same bug as crashes with the major key `now`:
    /// the inputs of that group, found with an earlier build, crash with the key `now` with this
    /// build. `None` if no check of this build has shown this.
    pub fn known_as(&self, kind: Kind, now: &str) -> Option<&str> {
        Some(self.moved.get(&kind)?.get(now)?)
    }

    /// Returns the location in the user's code at which the group with the major key `major` fails
    /// with this build; `None` if the location is the one in the group's crash record, or unknown.
    pub fn place(&self, kind: Kind, major: &str) -> Option<&str> {
        Some(self.places.get(&kind)?.get(major)?)
    }

    /// Records that a group is to be checked once more with this build.
    pub fn add_unchecked(&mut self, kind: Kind, major: &str) {
        let of_kind = self.unchecked.entry(kind).or_default();
        of_kind.insert(major.to_owned());
    }

    /// Returns whether a group is to be checked once more with this build.
    pub(super) fn is_unchecked(&self, kind: Kind, major: &str) -> bool {
        let of_kind = self.unchecked.get(&kind);
        of_kind.is_some_and(|all| all.contains(major))
    }

    /// Merges `other`, another record of the same build, into this one. The unchecked groups,
    /// failing results, moved keys and locations of both records stay. If both records have a
    /// status for a group, the status that comes last in [`Status`] stays (nearer to failing as
    /// before). If they name different failing entries or locations of a group, or different groups
    /// for a moved key, the one that sorts first stays.
    fn join(&mut self, other: Build) {
        keep_first(&mut self.failing, other.failing);
        keep_first(&mut self.moved, other.moved);
        keep_first(&mut self.places, other.places);
        for (kind, groups) in other.unchecked {
            self.unchecked.entry(kind).or_default().extend(groups);
        }
        self.failing_results.extend(other.failing_results);
        for (kind, groups) in other.groups {
            let own = self.groups.entry(kind).or_default();
            for (major, status) in groups {
                let held = own.entry(major).or_insert(status);
                *held = status.max(*held);
            }
        }
    }

    /// Updates the statuses of groups with those of `other`, if `other` is a record of the same
    /// program file: each group keeps the status that comes last in [`Status`] (nearer to failing
    /// as before). Groups without a status in this record get none, as they may have been found
    /// with this build.
    fn raise(&mut self, other: &Build) {
        for (kind, groups) in &mut self.groups {
            for (major, status) in groups {
                let known = other.status(*kind, major);
                let known = known.filter(|_| other.blake3 == self.blake3);
                *status = known.map_or(*status, |known| known.max(*status));
            }
        }
    }
}

/// Version of the output directory's format that this ddfuzz reads and writes.
pub const VERSION: u64 = 1;

/// Result of [`examine`]: whether a path is an output directory already, or can become one.
#[derive(Debug)]
pub(super) enum DirectoryState {
    /// The path does not exist or is an empty directory.
    Nothing,
    /// The path is an output directory with this campaign file.
    Ours(Box<CampaignFile>),
}

/// Examines whether `root` can be an output directory, without changing anything. Fails if `root`
/// holds other files, has another format version, or its campaign file is damaged.
pub(super) fn examine(root: &Path) -> Result<DirectoryState, StoreError> {
    if let Some(file) = CampaignFile::read(root)? {
        return Ok(DirectoryState::Ours(Box::new(file)));
    }
    // A killed writer leaves a lock and temporary files; the user may have made a `.gitignore`.
    let foreign = |name: &str| {
        let ours = [layout::LOCK, layout::IGNORE.0].contains(&name);
        !ours && !atomic::is_temporary(name.as_ref())
    };
    let empty = reader::sorted_names(root, foreign)?.is_empty() && !has_undecodable(root);
    if empty && (root.is_dir() || root.symlink_metadata().is_err()) {
        Ok(DirectoryState::Nothing)
    } else {
        Err(StoreError::NotOurs(root.to_owned()))
    }
}

/// Finds an output directory near `path`, for hints in error messages: `path/ddfuzz-out`, or a
/// parent of `path`; `None` if there is none.
pub(super) fn near(path: &Path) -> Option<PathBuf> {
    let is_ours = |folder: &Path| folder.join(layout::CAMPAIGN).is_file();
    let below = path.join(layout::DEFAULT_NAME);
    if is_ours(&below) {
        return Some(below);
    }
    let whole = std::fs::canonicalize(path).ok()?;
    let above = whole.ancestors().skip(1).find(|folder| is_ours(folder))?;
    Some(above.to_owned())
}

/// Returns whether `folder` contains a file whose name is not UTF-8, which [`reader::sorted_names`]
/// leaves out.
fn has_undecodable(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|entries| {
        (entries.flatten()).any(|entry| entry.file_name().into_string().is_err())
    })
}
