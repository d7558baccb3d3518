//! Last step of a cleanup: writes the kept files, named by their content or as in the corpus, has
//! them checked, and builds the result with the counts of all steps.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::check::Checked;
use super::subset::{KeptFile, KeptSet, Reserve, micros};
use super::{CleanError, CleanPhase, Engine};
use crate::measure::{Contents, read_input};
use crate::quarantine::{FailingInput, Quarantine};
use crate::{Amount, ContentId, Excluded, Features};
use ddfuzz_campaign::Screen;
use ddfuzz_exec::Ended;
use ddfuzz_model::files::swap::StagedFolder;
use ddfuzz_model::files::{OsText, folder};
use ddfuzz_store::hash_of;
use ddfuzz_store::report::clean;
use ddfuzz_store::report::clean::{
    CleanGroup, CleanResult, Distributions, GainedFeature, LostFeature, Step, StepName, UnreadFile,
};

/// If the final check misses more than one in this many features, flaky coverage does not explain
/// it, and the cleanup reports the features as missing.
const MISSING_DIVISOR: usize = 20;

impl Engine<'_> {
    /// Writes the kept files, runs them again as a check, and builds the result of the cleanup.
    /// Fails with [`CleanError::Empty`] if there are no kept files, unless they are to be added to
    /// another corpus (`--onto`).
    pub(super) fn finish(
        &self,
        mut kept: KeptSet,
        reserve: Option<&Reserve<'_>>,
        screen: &mut dyn Screen<CleanPhase>,
        mut totals: CleanTotals,
    ) -> Result<CleanResult, CleanError> {
        if kept.files.is_empty() && self.cleaning.onto.is_none() {
            let why =
                "no input ends normally, or none reaches the same coverage each time".to_owned();
            return Err(CleanError::Empty { why });
        }
        let reserve = reserve.filter(|_| self.cleaning.subset);
        if let Some(reserve) = reserve {
            self.count_by_own_fuzzer(&mut kept, reserve, screen)?;
        }
        let mut written = self.write(&mut kept)?;
        let mut checked = self.check(&kept, &written, screen)?;
        if let Some(reserve) = reserve {
            let was_steady = kept.is_steady();
            self.take_missing_back(&mut kept, reserve, &mut written, &mut checked, screen)?;
            // What was counted by stack depths alone needs a merge of all files now.
            if was_steady && !kept.is_steady() {
                self.count_by_own_fuzzer(&mut kept, reserve, screen)?;
                written = self.write(&mut kept)?;
            }
        }
        totals.runs += checked.runs;
        for file in &kept.files {
            totals.spread.sizes_after.add(file.size());
            totals.spread.times_after.add(micros(file.time));
        }
        Ok(self.result(kept, &written, &checked, totals))
    }

    /// If the final check missed features, keeps the inputs that reached them, too, and writes and
    /// checks all kept files again. Features that are missing even then count as flaky if they are
    /// at most 1 of 20 of the features that the kept files must reach; else they remain missing in
    /// `checked`.
    fn take_missing_back(
        &self,
        kept: &mut KeptSet,
        reserve: &Reserve<'_>,
        written: &mut Vec<PathBuf>,
        checked: &mut Checked,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<(), CleanError> {
        if checked.missing.is_empty() {
            return Ok(());
        }
        let why = "the check missed a feature that this file has reached";
        let holders = reserve.holders(&checked.missing, &kept.files, why)?;
        if !holders.is_empty() {
            kept.files.extend(holders);
            *written = self.write(kept)?;
            let again = self.check(kept, written, screen)?;
            *checked = Checked {
                runs: checked.runs + again.runs,
                ..again
            };
        }
        let universe = kept.universe.take().unwrap_or_default();
        let few = checked.missing.len() * MISSING_DIVISOR <= universe.len();
        kept.universe = Some(match few {
            true => universe.less(&std::mem::take(&mut checked.missing)),
            false => universe,
        });
        Ok(())
    }

    /// Sorts the kept files by size and hash, writes them into a new folder, which replaces the
    /// folder of the last cleanup, and returns their paths. Does nothing but return the paths if
    /// this cleanup has written all of them. Fails with [`CleanError::Occupied`] if the folder has
    /// files that no cleanup wrote.
    pub(super) fn write(&self, kept: &mut KeptSet) -> Result<Vec<PathBuf>, CleanError> {
        let written: Option<Vec<PathBuf>> =
            kept.files.iter().map(|file| file.written.clone()).collect();
        if let Some(written) = written.filter(|written| !written.is_empty()) {
            return Ok(written);
        }
        let corpus = self.paths.corpus();
        if !self.paths.may_replace(&corpus)? {
            return Err(CleanError::Occupied { path: corpus });
        }
        kept.files
            .sort_by_cached_key(|file| (file.size(), file.content.clone()));
        let fresh = StagedFolder::beside(&corpus)?;
        let mut names = FileNames::new(&self.cleaning.corpus, self.cleaning.keep_names);
        let mut given = Vec::with_capacity(kept.files.len());
        let mut bytes = Vec::new();
        for file in &kept.files {
            let text = match &file.bytes {
                Some(text) => text,
                None => {
                    let changed = || CleanError::Changed {
                        path: file.from.clone(),
                    };
                    read_input(&file.from, file.size_before, &mut bytes).map_err(|_| changed())?;
                    if ContentId::of(&bytes).to_string() != file.content {
                        return Err(changed());
                    }
                    &bytes
                }
            };
            let name = names.name(&file.from, text);
            let written = file.written.as_ref();
            if !written.is_some_and(|written| fresh.link(&name, written)) {
                fresh.add(&name, text)?;
            }
            given.push(name);
        }
        self.paths.announce(&given)?;
        let aside = self.paths.replaced_corpus();
        if aside.symlink_metadata().is_ok() {
            remove(&aside)?;
        }
        if fresh.take_place(&aside)? {
            remove(&aside)?;
        }
        let written: Vec<PathBuf> = given.iter().map(|name| corpus.join(name)).collect();
        for (file, path) in kept.files.iter_mut().zip(&written) {
            file.written = Some(path.clone());
        }
        Ok(written)
    }

    /// Returns two facts: all steps of the cleanup, each with the number and size of the files that
    /// it removed; and the number of bytes that trimming removed. `chosen` and `after` are the
    /// number and size of the kept files before and after trimming.
    fn steps(&self, totals: &CleanTotals, chosen: Amount, after: Amount) -> (Vec<Step>, u64) {
        let left = totals.remaining();
        let mut steps = totals.steps();
        steps.push(Step {
            step: match self.cleaning.onto {
                Some(_) => StepName::Onto,
                None => StepName::Subset,
            },
            files: left.files.saturating_sub(chosen.files),
            bytes: left.bytes.saturating_sub(chosen.bytes),
        });
        let trimmed = chosen.bytes.saturating_sub(after.bytes);
        steps.push(Step {
            step: StepName::Trimming,
            files: 0,
            bytes: trimmed,
        });
        (steps, trimmed)
    }

    fn result(
        &self,
        kept: KeptSet,
        written: &[PathBuf],
        checked: &Checked,
        totals: CleanTotals,
    ) -> CleanResult {
        let sum = |size: fn(&KeptFile) -> u64| {
            kept.files.iter().fold(Amount::default(), |mut sum, file| {
                sum.add(size(file));
                sum
            })
        };
        let (chosen, after) = (sum(|file| file.size_before), sum(KeptFile::size));
        let wanted = kept
            .universe
            .as_ref()
            .map(|universe| universe.or(&kept.covered));
        let (steps, trimmed_bytes) = self.steps(&totals, chosen, after);
        let corpus = self.cleaning.corpus.iter();
        CleanResult {
            before: totals.before,
            after,
            edges_before: wanted.as_ref().map(Features::edges),
            edges_after: wanted.as_ref().map(|_| checked.reached.edges()),
            features_before: wanted.as_ref().map(|wanted| wanted.len() as u64),
            features_after: wanted.as_ref().map(|_| checked.reached.len() as u64),
            flaky_features: wanted.map_or(0, |wanted| kept.seen.less(&wanted).len() as u64),
            flaky_files: kept.flaky_files,
            libfuzzer: kept.own_count.clone(),
            steps,
            duplicates: totals.duplicates.files,
            crashes: totals.crashes.files + totals.flaky.files,
            hangs: totals.hangs.files,
            ooms: totals.ooms.files,
            unstored: totals.unstored,
            trimmed_bytes,
            missing: missing(&kept, written, &checked.missing),
            gained: gained(&checked.gained),
            kept: kept_files(&kept, written),
            groups: totals.groups,
            cover: kept.cover,
            unread: totals.unread,
            not_inputs: totals.not_inputs,
            not_input_files: totals.not_input_files,
            spread: Some(totals.spread),
            runs: totals.runs,
            trim_runs: kept.trim_runs,
            known: totals.known,
            max_len: self.cleaning.max_len,
            exec: Some(self.cleaning.way),
            corpus: corpus.map(|path| absolute(path)).collect(),
            out: absolute(&self.paths.corpus()),
            onto: self.cleaning.onto.as_deref().map(absolute),
            journal: kept.journal.to_owned(),
            in_place: false,
            old: None,
            wall_ms: 0,
        }
    }
}

fn kept_files(kept: &KeptSet, written: &[PathBuf]) -> Vec<clean::KeptFile> {
    let files = kept.files.iter().zip(written);
    let files = files.map(|(file, path)| clean::KeptFile {
        file: absolute(path),
        from: absolute(&file.from),
        content: file.content.clone(),
        why: file.why.clone(),
        size: file.size(),
        size_before: file.size_before,
        us: micros(file.time),
        features: file.features.len() as u64,
        only_here: file.only_here,
        claim: file.claim.clone(),
    });
    files.collect()
}

fn missing(kept: &KeptSet, written: &[PathBuf], missing: &Features) -> Vec<LostFeature> {
    let held_by = |feature| {
        let mut files = kept.files.iter().zip(written);
        let found = files.find(|(file, _)| file.features.contains(feature));
        found.map(|(_, path)| absolute(path))
    };
    let missing = missing.as_slice().iter().map(|feature| LostFeature {
        edge: feature.place(),
        counts: feature.counts(),
        file: held_by(*feature),
    });
    missing.collect()
}

fn gained(gained: &Features) -> Vec<GainedFeature> {
    let gained = gained.as_slice().iter().map(|feature| GainedFeature {
        edge: feature.place(),
        counts: feature.counts(),
    });
    gained.collect()
}

fn absolute(path: &Path) -> OsText {
    OsText::from(&folder::absolute(path))
}

fn remove(folder: &Path) -> Result<(), CleanError> {
    let removed = std::fs::remove_dir_all(folder);
    Ok(removed.map_err(ddfuzz_model::files::FileError::at("remove", folder))?)
}

/// Chooses the names of kept files: the content hash, or the path below the corpus
/// (`--keep-names`).
pub(super) struct FileNames {
    /// The directories of the corpus, as absolute paths; `None` if kept files are named by their
    /// content hash.
    roots: Option<Vec<PathBuf>>,
    taken: HashSet<PathBuf>,
    /// Folders that contain files with chosen names; no file may get the name of such a folder.
    folders: HashSet<PathBuf>,
}

impl FileNames {
    /// Prepares names for files of the corpus `roots`: with `keep` the path below the corpus, else
    /// the content hash.
    pub fn new(roots: &[PathBuf], keep: bool) -> FileNames {
        FileNames {
            roots: keep.then(|| roots.iter().map(|root| folder::absolute(root)).collect()),
            taken: HashSet::new(),
            folders: HashSet::new(),
        }
    }

    /// Returns the name under which the cleanup writes the kept file `path` with the content
    /// `bytes`: the path below its corpus, or the hash of the content. If another kept file has
    /// this name, returns a longer or numbered one.
    pub fn name(&mut self, path: &Path, bytes: &[u8]) -> PathBuf {
        let hash = hash_of(bytes);
        let plain = match &self.roots {
            None => PathBuf::from(&hash),
            Some(roots) => below(roots, path),
        };
        // Two corpora may have files of the same path, or a file where the other has a folder.
        let mut longer = plain.clone().into_os_string();
        longer.push(format!("-{hash}"));
        let numbered = (1..).map(|more: u64| PathBuf::from(format!("{hash}-{more}")));
        let mut names = [plain, PathBuf::from(longer), PathBuf::from(&hash)]
            .into_iter()
            .filter(|name| fits(name))
            .chain(numbered);
        let free = names.find(|name| !self.is_taken(name));
        let name = free.unwrap_or_default();
        let folders = name.ancestors().skip(1).map(Path::to_owned);
        self.folders.extend(folders);
        self.taken.insert(name.clone());
        name
    }

    fn is_taken(&self, name: &Path) -> bool {
        let mut above = name.ancestors().skip(1);
        self.taken.contains(name)
            || self.folders.contains(name)
            || above.any(|above| self.taken.contains(above))
    }
}

/// Returns true if the file name of `path` is at most as long as file systems allow.
fn fits(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.len() <= LONGEST_NAME
}

/// Returns the path of a file relative to the directory of `roots` that contains it; its file name
/// if the file itself is in `roots`.
fn below(roots: &[PathBuf], path: &Path) -> PathBuf {
    let found = roots.iter().find_map(|root| path.strip_prefix(root).ok());
    match found {
        Some(below) if !below.as_os_str().is_empty() => below.to_owned(),
        _ => PathBuf::from(path.file_name().map_or_else(OsString::new, OsString::from)),
    }
}

/// Maximum length of a file name on Linux, in bytes.
const LONGEST_NAME: usize = 255;

/// Maximum number of unreadable files that the result of a cleanup names.
const NAMED: usize = 16;

/// Counts of files, runs and crash groups over all steps of a cleanup, for its result.
#[derive(Debug, Default)]
pub(super) struct CleanTotals {
    pub before: Amount,
    pub duplicates: Amount,
    pub unreadable: Amount,
    pub oversized: Amount,
    pub crashes: Amount,
    pub hangs: Amount,
    pub ooms: Amount,
    pub flaky: Amount,
    /// Number of failing contents that are not stored in any crash group of the output directory.
    pub unstored: u64,
    pub groups: Vec<CleanGroup>,
    pub unread: Vec<UnreadFile>,
    pub not_inputs: u64,
    pub not_input_files: Vec<UnreadFile>,
    pub runs: u64,
    pub known: u64,
    pub spread: Distributions,
}

impl CleanTotals {
    /// Adds the number of runs that measuring `contents` took to the cleanup's total number of
    /// runs.
    pub fn runs_of(&mut self, contents: &Contents) {
        self.runs += contents.progress.runs;
    }

    /// Takes the counts of the corpus's files from `contents`, with examples of unreadable and
    /// oversized ones; called before the inputs to keep are chosen.
    pub fn begin(&mut self, contents: &Contents) {
        self.runs_of(contents);
        self.known = contents.progress.reused;
        let counts = &contents.file_counts;
        // A file that vanished between listing and reading counts as part of the corpus, and so
        // does a directory that could not be listed, as one file: a step below subtracts both
        // again.
        let unlisted = counts.listing.unread.amount();
        self.before = counts.before + counts.vanished.amount() + unlisted;
        self.duplicates = counts.duplicates;
        self.oversized = counts.oversized.amount();
        self.unreadable = counts.unread.amount() + counts.vanished.amount() + unlisted;
        let unlisted = &counts.listing.unread;
        for aside in [
            unlisted,
            &counts.oversized,
            &counts.unread,
            &counts.vanished,
        ] {
            let room = NAMED.saturating_sub(self.unread.len());
            self.unread.extend(examples(aside).take(room));
        }
        let passed_over = &counts.listing.passed_over;
        self.not_inputs = passed_over.amount().files;
        self.not_input_files = examples(passed_over).collect();
    }

    /// Counts as unreadable a file of the corpus that was removed or changed during the cleanup.
    pub fn count_gone(&mut self, path: &std::path::Path, bytes: u64) {
        self.unreadable.add(bytes);
        if self.unread.len() < NAMED {
            self.unread.push(UnreadFile {
                file: OsText::from(path),
                why: "it was removed or changed".to_owned(),
            });
        }
    }

    /// Counts a failing input of `bytes` bytes that is not stored in a group (`--skip groups`), by
    /// how its run ended.
    pub fn unfiled(&mut self, ended: Ended, bytes: u64) {
        match ended {
            Ended::Timeout => self.hangs.add(bytes),
            Ended::OutOfMemory => self.ooms.add(bytes),
            _ => self.crashes.add(bytes),
        }
    }

    /// Adds to the result the failing inputs that were stored in crash groups (`filed`): counts
    /// them by kind, and lists their groups with their numbers of inputs. Inputs of `failing` whose
    /// files were removed or changed meanwhile count as unreadable.
    pub fn count_filed(&mut self, failing: &[FailingInput], filed: &Quarantine) {
        for input in failing
            .iter()
            .filter(|input| filed.gone.contains(&input.content))
        {
            self.count_gone(&input.path, input.size);
        }
        self.crashes = self.crashes + filed.crashes;
        self.hangs = self.hangs + filed.hangs;
        self.ooms = self.ooms + filed.ooms;
        self.flaky = self.flaky + filed.flaky;
        for held in &filed.groups {
            let folder = held.kind.folder().to_owned();
            let major = held.major.short();
            let count = held.amount.files;
            let class = held.class.to_string();
            self.add_group(CleanGroup {
                folder,
                major,
                class,
                count,
            });
        }
    }

    /// Adds a crash group to the result; if it is already counted, adds its number of inputs.
    fn add_group(&mut self, new: CleanGroup) {
        match self.groups.iter_mut().find(|known| is_same(known, &new)) {
            Some(known) => known.count += new.count,
            None => self.groups.push(new),
        }
    }

    /// Returns true if the result of the cleanup already contains the crash group: one with the
    /// same kind and major key (hash of the frames that identify the bug).
    pub fn has_group(&self, group: &CleanGroup) -> bool {
        self.groups.iter().any(|known| is_same(known, group))
    }

    /// Adds a group of crashes that occurred only while files were trimmed, with the count 0,
    /// because no input of the corpus itself belongs to it.
    pub fn add_slipped(&mut self, group: CleanGroup) {
        self.add_group(CleanGroup { count: 0, ..group });
    }

    /// Returns the steps of the cleanup that come before a subset of the inputs is chosen (such as
    /// removing duplicates), each with the number and size of the files that it removed.
    pub fn steps(&self) -> Vec<Step> {
        let crashes = self.crashes + self.flaky;
        let steps = [
            (StepName::Duplicates, self.duplicates),
            (StepName::Unreadable, self.unreadable),
            (StepName::Oversized, self.oversized),
            (StepName::Crashes, crashes),
            (StepName::Hangs, self.hangs),
            (StepName::Ooms, self.ooms),
        ];
        let steps = steps.map(|(step, Amount { files, bytes })| Step { step, files, bytes });
        steps.to_vec()
    }

    /// Returns the number and bytes of files that remain when duplicate, unreadable, oversized and
    /// failing files are left out.
    pub fn remaining(&self) -> Amount {
        let steps = self.steps().into_iter();
        steps.fold(self.before, |left, step| Amount {
            files: left.files.saturating_sub(step.files),
            bytes: left.bytes.saturating_sub(step.bytes),
        })
    }
}

/// Returns the example files that `excluded` holds, each with the reason why the file is not used.
fn examples(excluded: &Excluded) -> impl Iterator<Item = UnreadFile> {
    excluded.examples().map(|(path, why)| UnreadFile {
        file: OsText::from(path),
        why: why.to_owned(),
    })
}

fn is_same(one: &CleanGroup, other: &CleanGroup) -> bool {
    one.folder == other.folder && one.major == other.major
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_name_files_unless_names_are_kept() {
        let roots = [PathBuf::from("/corpus"), PathBuf::from("/single")];
        let mut by_content = FileNames::new(&roots, false);
        let path = Path::new("/corpus/a/id:000001");
        assert_eq!(by_content.name(path, b"x"), PathBuf::from(hash_of(b"x")));
        let mut kept = FileNames::new(&roots, true);
        assert_eq!(kept.name(path, b"x"), PathBuf::from("a/id:000001"));
        assert_eq!(
            kept.name(Path::new("/single"), b"x"),
            PathBuf::from("single")
        );
    }

    #[test]
    fn no_name_is_given_twice_nor_that_of_a_folder() {
        let roots = [PathBuf::from("/one"), PathBuf::from("/two")];
        let mut names = FileNames::new(&roots, true);
        assert_eq!(names.name(Path::new("/one/a"), b"x"), PathBuf::from("a"));
        let other = format!("a-{}", hash_of(b"y"));
        assert_eq!(names.name(Path::new("/two/a"), b"y"), PathBuf::from(&other));
        for expected in [hash_of(b"y"), format!("{}-1", hash_of(b"y"))] {
            let name = names.name(Path::new("/two/a"), b"y");
            assert_eq!(name, PathBuf::from(expected));
        }
        let below = names.name(Path::new("/two/a/b"), b"z");
        assert_eq!(below, PathBuf::from(hash_of(b"z")));
    }
}
