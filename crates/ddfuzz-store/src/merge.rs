//! Merging output directories.
//!
//! For each part of an entry (crash record, minimization, …), all possible contents have an order.
//! If both directories have the part, a merge keeps the content that comes first in this order. So
//! the result does not depend on the order of several merges or on their repetition.
//!
//! The files of new entries are not synced one by one: one sync of the whole file system is made
//! before the records of their groups are written, and another one after that. A power cut before
//! the first sync may leave damaged files, which a repeated merge replaces.

use std::cmp::Ordering;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::group::{self, GroupIndex};
use crate::merged_builds::{MergedBuilds, TargetBuilds};
use crate::merged_minimizations::{ArchiveChanges, CurrentMinimizations, Minimization};
use crate::{EntryId, Kind, Reader, Store, StoreError, filing, hash_of, json, layout, reader};
use ddfuzz_model::files::{FileError, atomic, folder};
use ddfuzz_triage::Crash;

/// Result of a merge of output directories: how many groups of failures the destination has, and
/// how many entries (stored inputs) are new there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Number of groups in the destination after the merge.
    pub groups: u64,
    /// Number of entries (stored inputs) that the merge has added to the destination.
    pub new_entries: u64,
}

/// Merges the output directories `inputs` into the output directory `into`, which is created if it
/// does not exist.
///
/// Entries, corpora and bundled programs are united. If several directories have an entry, the
/// crash record with the better origin stays, and the best minimization becomes the current one,
/// except that a result recorded in one of the directories as no longer failing is never chosen.
/// All other minimizations are archived, except earlier states of a kept one (their logs are the
/// beginning of its log). Of run counts, the larger one for each campaign stays. The result does
/// not depend on order, grouping or repetition. Checkpoint, statistics and the journal of `triage`
/// belong to one campaign and are not merged. The inputs are not changed; other processes may be
/// writing to them.
///
/// Fails if a directory cannot be opened, or `into` is one of `inputs` or lies inside one: nothing
/// is changed then. If a file cannot be written, or power fails, merging again continues.
pub fn merge(inputs: &[PathBuf], into: &Path) -> Result<Merged, StoreError> {
    let readers = inputs.iter().map(|input| Reader::open(input));
    let readers = readers.collect::<Result<Vec<_>, _>>()?;
    for input in inputs {
        if folder::real(into).starts_with(folder::real(input)) {
            return Err(StoreError::MergeIntoInput {
                input: input.clone(),
                into: into.to_owned(),
            });
        }
    }
    let mut store = Store::open(into, None)?;
    let mut merged = Merged::default();
    for input in &readers {
        let builds = MergedBuilds::of(&input.campaigns()?, store.campaigns());
        merge_programs(input.root(), into)?;
        for file in input.corpus()? {
            if let Some(bytes) = json::bytes(&file)? {
                store.add_to_corpus_unsynced(&bytes)?;
            }
        }
        let (from, all) = (input.root(), group::all(input.root())?);
        // Before the entries, so that no result which is to be checked is there without the record.
        store.set_campaigns(builds.united(from, into)?)?;
        merged.new_entries += merge_groups(from, into, all, &builds)?;
        // A writer may have moved crashes to the flaky ones meanwhile.
        let mut moved = group::all(input.root())?;
        moved.retain(|(kind, _)| *kind == Kind::Flaky);
        merged.new_entries += merge_groups(from, into, moved, &builds)?;
        for study in input.studies()? {
            store.take_study(study)?;
        }
        // A writer may have begun campaigns meanwhile.
        let mut file = store.campaigns().clone();
        for campaign in input.campaigns()?.all() {
            if !store.campaigns().all().any(|known| known.id == campaign.id) {
                file.take(campaign.clone());
            }
        }
        store.set_campaigns(file)?;
    }
    for kind in Kind::ALL {
        merged.groups += store.reader().groups(kind)?.len() as u64;
    }
    Ok(merged)
}

/// Merges groups (bugs) of the output directory `from` into the output directory `into`, and
/// returns the number of entries (stored inputs) that are new there: first the entries of all
/// groups, and, once these are on the device, the records of the groups.
fn merge_groups(
    from: &Path,
    into: &Path,
    groups: Vec<(Kind, String)>,
    builds: &MergedBuilds,
) -> Result<u64, StoreError> {
    let (mut new_entries, mut records) = (0, Vec::new());
    for (kind, major) in groups {
        let theirs = GroupIndex::read(from, kind, &major)?;
        // Read before copying, because copies have new modification times.
        let ours = GroupIndex::read(into, kind, &major)?;
        for id in group::entry_ids(from, kind, &major)? {
            new_entries += u64::from(merge_entry(&id, from, into, builds)?);
        }
        let record = match (ours.map(|ours| ours.record), theirs) {
            (_, None) => continue,
            (Some(mut record), Some(theirs)) => {
                record.join(theirs.record);
                record
            }
            (None, Some(theirs)) => theirs.record,
        };
        records.push((kind, major, record));
    }
    sync_all(into)?;
    let is_any = !records.is_empty();
    for (kind, major, record) in records {
        if let Some(index) = GroupIndex::with_record(Some(record), into, kind, &major)? {
            let path = layout::group_folder(into, kind, &major).join(layout::GROUP);
            create_folder(folder::parent(&path))?;
            let text = json::text_of(&path, &index.record)?;
            match path.is_file() {
                true => atomic::write(&path, &text)?,
                false => atomic::write_unsynced(&path, &text)?,
            }
        }
    }
    if is_any {
        sync_all(into)?;
    }
    Ok(new_entries)
}

/// Waits until everything written to the file system of the directory `root` is on the storage
/// device.
fn sync_all(root: &Path) -> Result<(), StoreError> {
    let at = || FileError::at("sync the file system of", root);
    let folder = fs::File::open(root).map_err(at())?;
    Ok(nix::unistd::syncfs(folder).map_err(|errno| at()(errno.into()))?)
}

/// Creates a folder and all missing parents, without a sync.
fn create_folder(folder: &Path) -> Result<(), StoreError> {
    let made = fs::create_dir_all(folder);
    Ok(made.map_err(FileError::at("make the folder", folder))?)
}

/// Copies the bundled programs (folder `bin`) of the directory `from` that the directory `into`
/// does not have. Each folder is named after the hash of its program; a program whose hash differs
/// from this name is left out, because scripts of `into` would run it.
fn merge_programs(from: &Path, into: &Path) -> Result<(), StoreError> {
    let programs = from.join(layout::PROGRAMS);
    for hash in reader::sorted_names(&programs, layout::is_hash_name)? {
        let folder = programs.join(&hash);
        for name in reader::sorted_names(&folder, |name| !atomic::is_temporary(name.as_ref()))? {
            let target = into.join(layout::PROGRAMS).join(&hash).join(&name);
            if target.is_file() {
                continue;
            }
            let source = folder.join(&name);
            let Some(bytes) = json::bytes(&source)?.filter(|bytes| hash_of(bytes) == hash) else {
                continue;
            };
            folder::create_all(folder::parent(&target))?;
            atomic::write_program(&target, &bytes)?;
        }
    }
    Ok(())
}

/// Merges the entry (stored input with its records) with this id of the output directory `from`
/// into the output directory `into`. Returns true if `into` gets the entry's input by this merge;
/// false if it had the input before, or if `from` lacks it. If `from` lacks the input, the entry's
/// other files are merged all the same.
fn merge_entry(
    id: &EntryId,
    from: &Path,
    into: &Path,
    builds: &MergedBuilds,
) -> Result<bool, StoreError> {
    let (from, into) = (&id.folder(from), &id.folder(into));
    let original = json::bytes(&from.join(layout::ORIGINAL))?;
    // Without its input an entry still has what else is known of the crash. A folder without files
    // is that of an entry which a writer has moved.
    if original.is_none() && !has_files(from) {
        return Ok(false);
    }
    let is_given = original.is_some();
    let new = !into.join(layout::ORIGINAL).is_file();
    create_folder(into)?;
    // Files beside others that are on the device already are synced one by one.
    let files = EntryFiles { from, into, new };
    // The input first: after an interruption the entry is incomplete, but not lost. One without
    // its hash is damaged, for example cut off by a copy that failed.
    let intact_first = |a: &[u8], b: &[u8]| {
        let order = |input| (hash_of(input) != id.hash(), input);
        order(a).cmp(&order(b))
    };
    files.keep_least(layout::ORIGINAL, original, intact_first)?;
    files.merge_minimizations(builds.target_of_entry(from, into)?)?;
    let script = json::bytes(&from.join(layout::REPRODUCE))?;
    files.keep_least(layout::REPRODUCE, script, |a, b| a.cmp(b))?;
    make_executable(&into.join(layout::REPRODUCE))?;
    let crash = json::bytes(&from.join(layout::CRASH))?;
    files.keep_least(layout::CRASH, crash, compare_records)?;
    let options = json::bytes(&from.join(layout::OPTIONS_LOG))?;
    // The longer log has more progress.
    let further = |a: &[u8], b: &[u8]| (b.len(), a).cmp(&(a.len(), b));
    files.keep_least(layout::OPTIONS_LOG, options, further)?;
    Ok(new && is_given)
}

/// Returns whether the folder exists and has a file whose writing is finished.
fn has_files(folder: &Path) -> bool {
    let is_whole = |name: &str| !atomic::is_temporary(name.as_ref());
    reader::sorted_names(folder, is_whole).is_ok_and(|names| !names.is_empty())
}

/// Makes a script executable for all who may read it; does nothing if the script does not exist, or
/// if its owner may already execute it.
fn make_executable(script: &Path) -> Result<(), StoreError> {
    let Ok(facts) = fs::metadata(script) else {
        return Ok(());
    };
    let mode = facts.permissions().mode();
    if !facts.is_file() || mode & 0o100 != 0 {
        return Ok(());
    }
    let set = fs::set_permissions(script, Permissions::from_mode(mode | (mode & 0o444) >> 2));
    Ok(set.map_err(FileError::at("make executable", script))?)
}

/// The folders of one entry (stored input with its records) in two output directories: `from` in
/// the directory that is merged, and `into` in the destination, to which files are copied.
struct EntryFiles<'a> {
    from: &'a Path,
    into: &'a Path,
    /// Whether the entry is new in `into`, so that its files need not be synced one by one.
    new: bool,
}

impl EntryFiles<'_> {
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.into.join(name);
        match self.new {
            true => atomic::write_unsynced(&path, bytes)?,
            false => atomic::write(&path, bytes)?,
        }
        Ok(())
    }

    /// Writes `bytes` to the file `name` in the destination's folder, unless the file has this
    /// content already; removes the file if `bytes` is `None`.
    fn put(&self, name: &str, bytes: Option<&Vec<u8>>) -> Result<(), StoreError> {
        let path = self.into.join(name);
        match bytes {
            Some(bytes) if json::bytes(&path)?.as_ref() == Some(bytes) => Ok(()),
            Some(bytes) => self.write(name, bytes),
            None => Ok(filing::remove(&path)?),
        }
    }

    /// Writes the bytes `theirs` to the file `name` in the destination's folder, if the file does
    /// not exist there, or if `theirs` comes before its content in the order `compare`. Does
    /// nothing if `theirs` is `None`. A file of nothing but zero bytes, as a power cut leaves it,
    /// counts as missing, unless it is the input as found.
    fn keep_least(
        &self,
        name: &str,
        theirs: Option<Vec<u8>>,
        compare: impl Fn(&[u8], &[u8]) -> Ordering,
    ) -> Result<(), StoreError> {
        let Some(theirs) = theirs else {
            return Ok(());
        };
        let is_written = |bytes: &Vec<u8>| name == layout::ORIGINAL || !is_blank(bytes);
        let ours = json::bytes(&self.into.join(name))?.filter(is_written);
        match ours.is_none_or(|ours| compare(&theirs, &ours).is_lt()) {
            true => self.write(name, &theirs),
            false => Ok(()),
        }
    }

    /// Merges the current and the archived minimizations of the entry, and its explanation. If the
    /// destination's current minimization is replaced by another one, it is archived first.
    /// `builds`: the builds of the entry's target, if there are several.
    fn merge_minimizations(&self, builds: Option<&TargetBuilds>) -> Result<(), StoreError> {
        let original = fs::metadata(self.into.join(layout::ORIGINAL));
        let original = original.map_or(0, |facts| facts.len());
        let current = CurrentMinimizations::read(self.from, self.into, original, builds)?;
        if current.has_new_rejected {
            let path = self.into.join(layout::PASSING);
            self.write(layout::PASSING, &json::text_of(&path, &current.rejected)?)?;
        }
        let changes = ArchiveChanges::of(&current);
        for (ending, one) in &changes.added {
            self.write_archived(ending, one)?;
        }
        if !current.is_kept {
            self.remove_explanation()?;
            self.replace_minimization(&current)?;
        }
        for ending in &changes.removed {
            for name in [layout::OUTCOME, layout::MINIMIZED, layout::LOG] {
                filing::remove(&self.into.join(format!("{name}.{ending}")))?;
            }
        }
        match current.are_same() {
            true => self.merge_explanations(),
            false => Ok(()),
        }
    }

    /// Writes the files of an archived minimization (an earlier one of the same entry, which is
    /// kept beside the current one) into the destination's folder, and replaces existing ones.
    /// `ending` is the ending of their names. At no time does the result file stand beside a log or
    /// a reproducer of another minimization.
    fn write_archived(&self, ending: &str, files: &Minimization) -> Result<(), StoreError> {
        let name = |name| format!("{name}.{ending}");
        let outcome = name(layout::OUTCOME);
        self.put(&name(layout::LOG), files.log.as_ref())?;
        if json::bytes(&self.into.join(&outcome))? != files.outcome {
            self.put(&outcome, None)?;
        }
        self.put(&name(layout::MINIMIZED), files.reproducer.as_ref())?;
        self.put(&outcome, files.outcome.as_ref())
    }

    /// Removes the explanation of the failure from the destination's folder, because it does not
    /// explain the reproducer that is written there next.
    fn remove_explanation(&self) -> Result<(), StoreError> {
        for name in layout::EXPLANATION_FILES {
            self.put(name, None)?;
        }
        Ok(())
    }

    /// Replaces the current minimization in the destination's folder (reproducer, log and result)
    /// by the one that `current` has chosen. The result file is removed first and written last, so
    /// that it never stands beside the reproducer or log of another minimization; but if the old
    /// result does not fit its reproducer, the reproducer is removed first. If the process is
    /// killed in between, the next merge prefers each of the two minimizations to the incomplete
    /// files.
    fn replace_minimization(&self, current: &CurrentMinimizations) -> Result<(), StoreError> {
        let mut removed = [layout::OUTCOME, layout::MINIMIZED];
        if current.ours.is_damaged() {
            removed.reverse();
        }
        for name in removed {
            self.put(name, None)?;
        }
        let chosen = current.chosen();
        match current.is_taken {
            true => self.take(layout::DEBUG)?,
            false => self.put(layout::DEBUG, chosen.and_then(Minimization::debug).as_ref())?,
        }
        self.put(layout::LOG, chosen.and_then(|one| one.log.as_ref()))?;
        let reproducer = chosen.and_then(|one| one.reproducer.as_ref());
        self.put(layout::MINIMIZED, reproducer)?;
        self.put(layout::OUTCOME, chosen.and_then(|one| one.outcome.as_ref()))
    }

    /// Copies the explanation of a failure from the folder that is merged to the destination, if
    /// the destination has no explanation, or one whose JSON text sorts later. The caller has
    /// checked that both folders have the same reproducer.
    fn merge_explanations(&self) -> Result<(), StoreError> {
        let record = |folder: &Path| json::bytes(&folder.join(layout::EXPLANATION_RECORD));
        let ours = record(self.into)?.filter(|ours| !is_blank(ours));
        let is_taken = match (record(self.from)?, ours) {
            (Some(theirs), Some(ours)) => theirs < ours,
            (theirs, _) => theirs.is_some(),
        };
        if is_taken {
            for name in layout::EXPLANATION_FILES {
                self.take(name)?;
            }
        }
        Ok(())
    }

    /// Replaces the file `name` in the destination's folder by the file of the same name in the
    /// folder that is merged; removes it if there is no such file.
    fn take(&self, name: &str) -> Result<(), StoreError> {
        self.put(name, json::bytes(&self.from.join(name))?.as_ref())
    }
}

/// Compares two crash records (JSON texts) of one input, of which a merge keeps the lesser one. A
/// readable record is less than a damaged one; then the better origin decides, then fewer arguments
/// of the program, and last the order of the texts.
pub(super) fn compare_records(a: &[u8], b: &[u8]) -> Ordering {
    let read = |text| serde_json::from_slice::<Crash>(text).ok();
    let arguments = |crash: &Crash| crash.of.as_ref().map(|of| of.target.args.len());
    let by_origin = match (read(a), read(b)) {
        (Some(a), Some(b)) => filing::compare_origins(a.found.as_ref(), b.found.as_ref())
            .then_with(|| arguments(&a).cmp(&arguments(&b))),
        (a, b) => a.is_none().cmp(&b.is_none()),
    };
    by_origin.then_with(|| a.cmp(b))
}

/// Returns true if there are no bytes, or if all of them are zero, as in a file that a power cut
/// has damaged.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}
