//! The union of several output directories.

mod entry;

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::survey::{self, Survey};
use super::writer::write_group;
use super::{CampaignFile, Kind, Reader, Store, StoreError, json, layout, listing};
use ddfuzz_model::files::{FileError, atomic, folder};

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Groups of all kinds in the directory after it.
    pub groups: u64,
    /// Entries that were not in the directory before.
    pub new_entries: u64,
}

/// Merges output directories into another one, which is made if it is not there.
///
/// Entries, corpus and programs are united; of an entry that several directories have, the
/// record with the better origin and the better minimization stay; per campaign id, the larger
/// count. What comes out depends neither on the order of the directories, nor on merging them
/// one by one or all at once, nor on merging one twice. Checkpoint, statistics and the journal of
/// `triage` belong to one campaign and are not merged. The inputs are not changed, and may have a writer at work.
///
/// # Errors
/// When a directory cannot be opened, or `into` is, or stands in, one of `inputs`: nothing is
/// changed then. When a file cannot be written: merging again goes on.
pub fn merge(inputs: &[PathBuf], into: &Path) -> Result<Merged, StoreError> {
    let readers = inputs.iter().map(|input| Reader::open(input));
    let readers = readers.collect::<Result<Vec<_>, _>>()?;
    for input in inputs {
        if resolved(into).starts_with(resolved(input)) {
            return Err(StoreError::MergeIntoInput {
                input: input.clone(),
                into: into.to_owned(),
            });
        }
    }
    let mut store = Store::open(into, None)?;
    let mut merged = Merged::default();
    for input in &readers {
        merge_programs(input.root(), into)?;
        for kind in Kind::ALL {
            for major in survey::majors(input.root(), kind)? {
                merged.new_entries += merge_group(input.root(), into, kind, &major)?;
            }
        }
        for file in input.corpus()? {
            if let Some(bytes) = json::bytes(&file)? {
                store.add_to_corpus(&bytes)?;
            }
        }
        for study in input.studies()? {
            store.take_study(study)?;
        }
        let file = with_campaigns(store.campaigns().clone(), &input.campaigns()?);
        store.set_campaigns(file)?;
    }
    for kind in Kind::ALL {
        merged.groups += store.reader().groups(kind)?.len() as u64;
    }
    Ok(merged)
}

fn with_campaigns(mut file: CampaignFile, input: &CampaignFile) -> CampaignFile {
    for campaign in input.all() {
        file.take(campaign.clone());
    }
    file
}

/// Unites one group, and gives the count of new entries.
fn merge_group(from: &Path, into: &Path, kind: Kind, major: &str) -> Result<u64, StoreError> {
    let theirs = Survey::read(from, kind, major)?;
    // Before anything is copied, for the copies' times say nothing of the first sight.
    let ours = Survey::read(into, kind, major)?;
    let mut new_entries = 0;
    for id in survey::entry_ids(from, kind, major)? {
        new_entries += u64::from(entry::merge(&id.folder(from), &id.folder(into))?);
    }
    let Some(theirs) = theirs else {
        return Ok(new_entries);
    };
    let record = match ours {
        Some(ours) => {
            let mut record = ours.record;
            record.join(theirs.record);
            record
        }
        None => theirs.record,
    };
    if let Some(survey) = Survey::with_record(Some(record), into, kind, major)? {
        folder::create_all(&layout::group_folder(into, kind, major))?;
        write_group(into, kind, &survey)?;
    }
    Ok(new_entries)
}

/// Copies the bundled programs that are not there yet.
fn merge_programs(from: &Path, into: &Path) -> Result<(), StoreError> {
    let programs = from.join(layout::PROGRAMS);
    for hash in listing::names(&programs, layout::is_hash_name)? {
        let folder = programs.join(&hash);
        for name in listing::names(&folder, |name| !atomic::is_temporary(name.as_ref()))? {
            let target = into.join(layout::PROGRAMS).join(&hash).join(&name);
            if target.is_file() {
                continue;
            }
            let source = folder.join(&name);
            let bytes = fs::read(&source).map_err(FileError::at("read", &source))?;
            folder::create_all(folder::parent(&target))?;
            atomic::write_program(&target, &bytes)?;
        }
    }
    Ok(())
}

/// The path without links and `..`. Of a part that does not exist each `..` takes back one name,
/// as it would once the folders are made.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let mut parts = path.components();
    let Some(last) = parts.next_back() else {
        return Path::new(".").canonicalize().unwrap_or_default();
    };
    let mut real = resolved(parts.as_path());
    match last {
        Component::ParentDir => drop(real.pop()),
        last => real.push(last),
    }
    real
}
