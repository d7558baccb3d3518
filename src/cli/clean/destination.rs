//! Where `ddfuzz clean` writes the kept files: checks that no other file is overwritten; `--onto`
//! adds them to another corpus, `--in-place` replaces the corpus.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::DirEntry;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::job::MAX_LEN;
use super::{CleanArgs, SkipArg};
use crate::cli::results::absolute;
use crate::cli::{Exit, Failure};
use crate::corpus::CleanPaths;
use crate::corpus::listing::{Layout, Listing};
use crate::files::swap::StagedFolder;
use crate::files::{FileError, atomic, folder};
use crate::report::clean::{CleanResult, StepName};
use crate::report::size::counted;

/// Checks four requirements before any input is run: `--delete-old` is given only with
/// `--in-place`, the output directory may be written, no corpus is inside it, and `--onto` is
/// another directory of inputs.
pub fn check_places(args: &CleanArgs) -> Result<(), Failure> {
    if args.delete_old && !args.in_place {
        return Err(Failure::usage("--delete-old works only with --in-place")
            .hint("add --in-place, or omit --delete-old"));
    }
    let place = CleanPaths::of(args.out());
    let folder = place.corpus();
    if !place.may_replace(&folder)? {
        let message = format!(
            "{} contains files that were not written by a cleanup",
            folder.display()
        );
        return Err(Failure::new(Exit::Usage, "exists", message)
            .path(&folder)
            .hint("give another output directory with -o"));
    }
    let out = folder::real(args.out());
    let in_out = |path: &Path| path.starts_with(&out);
    let onto = args.onto.as_deref().map(canonical).transpose()?;
    for corpus in &args.corpus {
        let real = canonical(corpus)?;
        if in_out(&real) {
            let message = format!("{} is in the output directory", corpus.display());
            return Err(Failure::usage(message)
                .path(corpus)
                .hint("give another output directory with -o"));
        }
        if onto.as_ref().is_some_and(|onto| real == *onto) {
            let message = format!("{} cannot be added to itself", corpus.display());
            return Err(Failure::usage(message).path(corpus));
        }
    }
    match &onto {
        Some(onto) if in_out(onto) => {
            let message = format!("--onto {} is in the output directory", onto.display());
            Err(Failure::usage(message)
                .path(onto)
                .hint("it would be replaced: give another output directory with -o"))
        }
        Some(onto) => check_onto(onto),
        None => Ok(()),
    }
}

/// Fails if `onto`, the value of `--onto`, is not a corpus directory in which files of any name are
/// inputs: a plain directory or one of Honggfuzz.
fn check_onto(onto: &Path) -> Result<(), Failure> {
    if !onto.is_dir() {
        let message = format!("--onto {} is not a directory", onto.display());
        return Err(Failure::usage(message).path(onto));
    }
    let layout = Layout::of(onto).map_err(|error| Failure::file(onto, "reading", &error))?;
    if matches!(layout, Layout::Plain | Layout::Honggfuzz) {
        return Ok(());
    }
    let message = format!(
        "--onto {} is a directory of {}, in which files with other names are not inputs",
        onto.display(),
        layout.name()
    );
    Err(Failure::usage(message)
        .path(onto)
        .hint("give a plain directory of inputs, such as corpus/ below it"))
}

pub(super) fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    (path.canonicalize()).map_err(|error| Failure::file(path, "reading", &error))
}

/// Copies the files that a cleanup kept into the corpus directory `onto`, each named by the hash of
/// its content; existing files of the corpus stay.
///
/// # Errors
/// When a file cannot be written; files that were copied before it stay.
pub fn add_to(result: &CleanResult, onto: &Path) -> Result<(), Failure> {
    for kept in &result.kept {
        let from = Path::new(&kept.file.0);
        let bytes = std::fs::read(from).map_err(FileError::at("read", from))?;
        let to = onto.join(crate::store::hash_of(&bytes));
        match atomic::create_new(&to, &bytes) {
            // An earlier call has copied this file before it was killed.
            Err(error) if error.is_existing() && std::fs::read(&to).is_ok_and(|it| it == bytes) => {
            }
            answer => answer?,
        }
    }
    Ok(())
}

/// The corpus directory that `ddfuzz clean --in-place` replaces by the kept files.
pub struct ReplacedCorpus {
    corpus: PathBuf,
    aside: PathBuf,
    /// What the corpus contained before the cleanup; `None` if the old corpus is not to be deleted.
    before: Option<CorpusDigest>,
    max_len: u64,
    /// Whether failing inputs (crash, hang, out of memory) are stored nowhere, because of `--skip
    /// groups`.
    skips_groups: bool,
    /// Paths in the output directory of the cleanup; the kept files are copied from there.
    place: CleanPaths,
}

impl ReplacedCorpus {
    /// Returns the corpus directory that `--in-place` replaces. Fails if not exactly one corpus is
    /// given, and if the corpus cannot be replaced safely. That is so if it is not a plain
    /// directory of inputs, or has a directory that cannot be listed; if `CORPUS.old` exists; if
    /// the output directory is inside the corpus or `CORPUS.old`; or if the old corpus is to be
    /// deleted and has files that the cleanup does not read.
    pub fn of(args: &CleanArgs) -> Result<ReplacedCorpus, Failure> {
        let [corpus] = &args.corpus[..] else {
            return Err(Failure::usage("--in-place takes one corpus")
                .hint("clean several into one output directory with -o"));
        };
        let corpus = canonical(corpus)?;
        if !corpus.is_dir() {
            let message = format!("{} is not a directory", corpus.display());
            return Err(Failure::usage(message).path(&corpus));
        }
        check_is_plain(&corpus, args.keep_names)?;
        let aside = old_name(&corpus);
        let out = folder::real(args.out());
        let why = match () {
            () if out.starts_with(&corpus) => "is in the corpus, and would be replaced with it",
            () if out.starts_with(&aside) => "is where the old corpus is moved to",
            () => "",
        };
        if !why.is_empty() {
            let message = format!("the output directory {} {why}", args.out().display());
            return Err(Failure::usage(message)
                .path(args.out())
                .hint("choose another directory with -o"));
        }
        check_listed(&corpus)?;
        let max_len = args.max_len.unwrap_or(MAX_LEN);
        let before = args.delete_old.then(|| digest(&corpus, max_len));
        let before = before
            .transpose()
            .map_err(|why| not_deleted(&corpus, &why))?;
        let old = ReplacedCorpus {
            aside,
            before,
            corpus,
            max_len,
            skips_groups: args.skip.contains(&SkipArg::Groups),
            place: CleanPaths::of(args.out()),
        };
        old.check_aside()?;
        Ok(old)
    }

    /// Fails if the path `CORPUS.old`, to which the replaced corpus is to be moved, exists, except
    /// in two cases: it is a copy of kept files that a killed call has left; or, with
    /// `--delete-old`, an earlier cleanup has moved it there, and it contains nothing but inputs.
    fn check_aside(&self) -> Result<(), Failure> {
        // What a killed call has left there is what the corpus was to be replaced by.
        if !self.is_aside() || self.place.is_incoming(&self.aside) {
            return Ok(());
        }
        if self.before.is_some() {
            if !self.place.has_replaced(&self.aside) {
                let out = self.place.root().display();
                let why = format!("no cleanup with `-o {out}` has moved it there as it is now");
                return Err(not_deleted(&self.aside, &why)
                    .hint("move it to another place, or remove it if you do not need it"));
            }
            let older = digest(&self.aside, self.max_len).map(drop);
            return older.map_err(|why| {
                not_deleted(&self.aside, &why).hint("move it to another place, or remove it")
            });
        }
        // A call that was killed just behind the exchange has come to its end all the same.
        let what = match self.place.is_incoming(&self.corpus) {
            true => "the corpus was cleaned already, and the old corpus is still there",
            false => "an older corpus is still there",
        };
        Err(Failure::usage(what)
            .path(&self.aside)
            .hint("remove it if you do not need it any more, or use --delete-old"))
    }

    fn is_aside(&self) -> bool {
        self.aside.symlink_metadata().is_ok()
    }

    /// Replaces the corpus by a copy of the kept files, which `result` lists. Returns the path of
    /// the old corpus; `None` if it was deleted.
    ///
    /// # Errors
    /// When a file or directory cannot be written or removed, a directory of the corpus cannot be
    /// listed, or the old corpus is to be deleted and has files that the cleanup did not read. The
    /// corpus is then unchanged, unless only the manifest could not be written, or the old corpus
    /// could not be deleted.
    pub fn replace(&self, result: &CleanResult) -> Result<Option<PathBuf>, Failure> {
        match self.before {
            Some(_) => self.check_read(result)?,
            None => check_listed(&self.corpus)?,
        }
        let kept = self.place.corpus();
        let fresh = StagedFolder::beside(&self.corpus)?;
        let found: HashMap<&Path, &Path> = (result.kept.iter())
            .map(|file| (Path::new(&file.file.0), Path::new(&file.from.0)))
            .collect();
        let mut folders = vec![PathBuf::new()];
        while let Some(below) = folders.pop() {
            let folder = kept.join(&below);
            let entries = std::fs::read_dir(&folder).map_err(FileError::at("list", &folder))?;
            for entry in entries {
                let entry = entry.map_err(FileError::at("list", &folder))?;
                let name = below.join(entry.file_name());
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(name);
                    continue;
                }
                let path = entry.path();
                let bytes = std::fs::read(&path).map_err(FileError::at("read", &path))?;
                let found = found.get(absolute(&path).as_path());
                let mode = found.and_then(|found| Some(found.metadata().ok()?.mode() & 0o777));
                match mode {
                    Some(mode) => fresh.add_with_mode(&name, &bytes, mode)?,
                    None => fresh.add(&name, &bytes)?,
                }
            }
        }
        fresh.take_owner_and_mode()?;
        self.check_aside()?;
        if self.is_aside() {
            self.remove_aside()?;
        }
        self.place.announce_exchange(fresh.path(), &self.corpus)?;
        fresh.take_place(&self.aside)?;
        self.place.end_exchange()?;
        // A fuzzer may have added a file until the exchange.
        if self.is_as_before(&self.aside) {
            self.remove_aside()?;
            return Ok(None);
        }
        Ok(Some(self.aside.clone()))
    }

    /// Returns true if the old corpus, now at `place`, has exactly the files that it had before the
    /// cleanup. Returns false if not, and also if its files before the cleanup were not recorded,
    /// since this is done only for a corpus that is to be deleted.
    fn is_as_before(&self, place: &Path) -> bool {
        let before = self.before.as_ref();
        before.is_some_and(|before| digest(place, self.max_len).is_ok_and(|now| now == *before))
    }

    /// Fails if the old corpus is to be deleted and something would be lost with it: files that the
    /// cleanup has not read, failing inputs that are stored nowhere else, or files that were added
    /// or changed during the cleanup. A directory that can no longer be listed counts as changed.
    fn check_read(&self, result: &CleanResult) -> Result<(), Failure> {
        let files = |of: &[StepName]| -> u64 {
            let steps = result.steps.iter().filter(|step| of.contains(&step.step));
            steps.map(|step| step.files).sum()
        };
        let unread = files(&[StepName::Unreadable, StepName::Oversized]);
        let failing = files(&[StepName::Crashes, StepName::Hangs, StepName::Ooms]);
        let why = match () {
            () if unread > 0 => format!("the cleanup did not read {}", counted(unread, "file")),
            () if result.not_inputs > 0 => "it has entries that are no inputs".to_owned(),
            () if self.skips_groups && failing > 0 => {
                let inputs = counted(failing, "failing input");
                let why = format!("it has {inputs}, of which --skip groups stores no copy");
                let failure = not_deleted(&self.corpus, &why);
                return Err(failure.hint("omit --delete-old or --skip groups"));
            }
            () if result.unstored > 0 => {
                let inputs = counted(result.unstored, "failing input");
                format!(
                    "it has {inputs} that no group stores, because another input fails in the same \
                     way"
                )
            }
            () if !self.is_as_before(&self.corpus) => {
                "files in it were added or changed during the cleanup".to_owned()
            }
            () => return Ok(()),
        };
        Err(not_deleted(&self.corpus, &why))
    }

    fn remove_aside(&self) -> Result<(), Failure> {
        std::fs::remove_dir_all(&self.aside)
            .map_err(|error| Failure::file(&self.aside, "removing", &error))
    }
}

/// Returns the path `CORPUS.old`, to which the replaced corpus is moved.
fn old_name(corpus: &Path) -> PathBuf {
    let mut name = corpus
        .file_name()
        .map_or_else(OsString::new, OsString::from);
    name.push(".old");
    corpus.with_file_name(name)
}

/// What identifies the content of a corpus directory: the number of its files, and a sum of hashes
/// of their names, inodes, sizes and times.
#[derive(PartialEq, Eq)]
struct CorpusDigest {
    files: u64,
    sum: u64,
}

/// Returns the digest of the corpus at `place`. The error is the reason why the corpus must not be
/// deleted: it has something that a cleanup does not read, such as a file of more than `max_len`
/// bytes or an entry that is not an input.
fn digest(place: &Path, max_len: u64) -> Result<CorpusDigest, String> {
    let mut digest = CorpusDigest { files: 0, sum: 0 };
    let mut listing = Listing::new(&[place.to_owned()], None).map_err(|error| error.to_string())?;
    for path in &mut listing {
        let unread = |error| format!("{}: {error}", path.display());
        let facts = path.symlink_metadata().map_err(unread)?;
        if path.metadata().map_err(unread)?.len() > max_len {
            return Err(format!("{} is longer than --max-len", path.display()));
        }
        let below = path.strip_prefix(place).unwrap_or(&path);
        let time = (facts.mtime(), facts.mtime_nsec());
        let mut hasher = DefaultHasher::new();
        (below, facts.ino(), facts.len(), time).hash(&mut hasher);
        digest.files += 1;
        digest.sum = digest.sum.wrapping_add(hasher.finish());
    }
    let report = listing.into_report();
    let mut others = report
        .passed_over
        .examples()
        .chain(report.unread.examples());
    match others.next() {
        Some((path, why)) => Err(format!("{} is no input: {why}", path.display())),
        None => Ok(digest),
    }
}

/// Fails if a directory of the corpus cannot be listed. Replacing the corpus would remove the files
/// in it, though no cleanup has read them.
fn check_listed(corpus: &Path) -> Result<(), Failure> {
    let mut listing = Listing::new(&[corpus.to_owned()], None)
        .map_err(|error| Failure::usage(error).path(corpus))?;
    listing.by_ref().for_each(drop);
    let report = listing.into_report();
    match report.unread.examples().next() {
        Some((path, why)) => {
            let (shown, corpus) = (path.display(), corpus.display());
            let message = format!("{corpus} must not be replaced: {shown} cannot be read: {why}");
            Err(Failure::usage(message)
                .path(path)
                .hint("make it readable or move it out of the corpus, or omit --in-place"))
        }
        None => Ok(()),
    }
}

fn not_deleted(corpus: &Path, why: &str) -> Failure {
    let message = format!("{} must not be deleted: {why}", corpus.display());
    Failure::usage(message)
        .path(corpus)
        .hint("omit --delete-old: the old corpus then stays beside the new one")
}

/// Fails if it would do harm to replace the directory `corpus` by the kept files. That is so in two
/// cases: `corpus`, or a directory directly in it, is a fuzzer's output directory or a project,
/// which contains more than inputs; or it is a queue of AFL++, where AFL++ takes only files with
/// certain names for inputs, and the kept files get other names (`keep_names` is false).
fn check_is_plain(corpus: &Path, keep_names: bool) -> Result<(), Failure> {
    let reading = |error| Failure::file(corpus, "reading", &error);
    let below = std::fs::read_dir(corpus).map_err(reading)?;
    let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    let below = below.flatten().filter(|entry| !is_file(entry));
    let below = below.map(|entry| entry.path());
    let layouts = std::iter::once(corpus.to_owned()).chain(below);
    let layouts: Vec<Layout> = layouts.filter_map(|path| Layout::of(&path).ok()).collect();
    let all_are = |fits: fn(&Layout) -> bool| layouts.iter().all(fits);
    if all_are(|layout| *layout == Layout::Plain) {
        return Ok(());
    }
    if all_are(|layout| matches!(layout, Layout::Plain | Layout::AflEntries)) {
        if keep_names {
            return Ok(());
        }
        let message = format!(
            "{} is a directory of AFL++, in which files with other names are not inputs",
            corpus.display()
        );
        return Err(Failure::usage(message)
            .path(corpus)
            .hint("add --keep-names, or omit --in-place"));
    }
    let message = format!(
        "{} is the output directory of a fuzzer, or a project, which contains more than a corpus",
        corpus.display()
    );
    Err(Failure::usage(message)
        .path(corpus)
        .hint("omit --in-place, and start the fuzzer with corpus/ of --out"))
}
