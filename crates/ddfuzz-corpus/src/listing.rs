//! Lists the inputs below some paths, one by one, without a list of all of them in memory.
//!
//! The corpora of AFL++, cargo-fuzz, honggfuzz and ddfuzz are recognized by their [`Layout`]; in
//! any other directory each file is an input. Files are not opened.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::{DirEntry, Metadata, ReadDir};
use std::io;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Excluded;
use ddfuzz_model::files::regular::Unread;
use ddfuzz_model::files::{atomic, regular};
use ddfuzz_store::foreign::{CrashName, Fuzzer, is_of_search};

/// Maximum depth of nested directories that are listed below a path of the command line.
const DEPTH: usize = 64;
/// Maximum number of directories with a recognized layout (such as AFL++'s) that a listing reports.
const MAX_RECOGNISED: usize = 64;

/// Error: a path of the command line cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be cleaned: {why}", path.display())]
pub struct NotListed {
    /// The path that cannot be listed, as given on the command line.
    pub path: PathBuf,
    /// Why the path cannot be listed: it is missing, is not a regular file or directory, or was
    /// refused.
    pub why: Unread,
}

/// What a listing found beside inputs: directories of known fuzzers, entries that are not inputs,
/// and directories that could not be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListingReport {
    /// Directories whose layout shows which fuzzer wrote them; at most 64.
    pub recognised: BTreeMap<PathBuf, Layout>,
    /// Entries that are not inputs, because of their type or because of the layout of their
    /// directory: their number, and examples. They are fifos, sockets, links to directories,
    /// dangling links, hidden directories, other files of fuzzers, and the output directory.
    pub passed_over: Excluded,
    /// Number and examples of the directories that could not be listed completely, or that are
    /// nested too deeply to be listed.
    pub unread: Excluded,
}

/// A directory that was found while the inputs of a corpus are listed, and that is still to be
/// read.
struct PendingDirectory {
    path: PathBuf,
    depth: usize,
    in_instance: bool,
}

/// Maximum number of entries of a directory that a listing holds in memory (some 100 bytes each). A
/// directory with more entries is read a second time.
const MOST_HELD: usize = 1 << 16;

/// The entries of one directory that a listing has not visited yet.
enum Entries {
    /// The entries were read before, and are held in memory.
    Held(std::vec::IntoIter<DirEntry>),
    /// The entries are read one by one from the open directory.
    Read(ReadDir),
}

impl Entries {
    /// Returns the next entry of the directory, or an error if the directory cannot be read any
    /// further; `None` after the last entry.
    fn next(&mut self) -> Option<io::Result<DirEntry>> {
        match self {
            Entries::Held(entries) => entries.next().map(Ok),
            Entries::Read(entries) => entries.next(),
        }
    }
}

/// The directory that is being listed at present, with what is left of its entries.
struct OpenDirectory {
    entries: Entries,
    path: PathBuf,
    layout: Layout,
    depth: usize,
}

/// Iterates over the inputs at some paths: first the files that are named directly, then the files
/// in the named directories, in the order in which the system lists them.
pub struct Listing {
    /// Files that the command line names directly and that the listing has still to return.
    files: Vec<PathBuf>,
    waiting: Vec<PendingDirectory>,
    current: Option<OpenDirectory>,
    /// Device and inode of directories and files that were already listed.
    known: HashSet<(u64, u64)>,
    out: Option<(u64, u64)>,
    report: ListingReport,
}

impl Listing {
    /// Prepares to list the inputs at `roots`, which are files, or directories with all that is
    /// below them. Links to files are followed; links to directories only if they are roots, since
    /// they may form a loop. The output directory `out` is skipped below a root. Fails if a root
    /// does not exist, is neither a file nor a directory, or is `out` itself.
    pub fn new(roots: &[PathBuf], out: Option<&Path>) -> Result<Listing, NotListed> {
        let out = out
            .and_then(|out| out.metadata().ok())
            .as_ref()
            .map(file_identity);
        let mut listing = Listing {
            files: Vec::new(),
            waiting: Vec::new(),
            current: None,
            known: HashSet::new(),
            out,
            report: ListingReport::default(),
        };
        for root in roots {
            listing.add_root(root)?;
        }
        // Both lists are processed from the end.
        listing.files.reverse();
        listing.waiting.reverse();
        Ok(listing)
    }

    fn add_root(&mut self, root: &Path) -> Result<(), NotListed> {
        let refused = |why| NotListed {
            path: root.to_owned(),
            why,
        };
        let facts = root.metadata().map_err(|error| {
            refused(match error.kind() {
                ErrorKind::NotFound if root.is_symlink() => {
                    Unread::NotAFile("a link that leads nowhere")
                }
                ErrorKind::NotFound => Unread::Missing,
                _ => Unread::Refused(error.to_string()),
            })
        })?;
        let path = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        if facts.is_dir() {
            // An unreadable directory must not count as an empty corpus.
            std::fs::read_dir(root).map_err(|error| refused(Unread::Refused(error.to_string())))?;
            if self.out == Some(file_identity(&facts)) {
                let why = "it is the output directory, which cannot be cleaned into itself";
                return Err(refused(Unread::Refused(why.to_owned())));
            }
            let in_instance = is_in_instance(&path);
            self.waiting.push(PendingDirectory {
                path,
                depth: 0,
                in_instance,
            });
            return Ok(());
        }
        if let Some(kind) = regular::special(facts.file_type()) {
            return Err(refused(Unread::NotAFile(kind)));
        }
        if self.known.insert(file_identity(&facts)) {
            self.files.push(path);
        }
        Ok(())
    }

    /// Returns what the listing has found beside inputs: directories of known fuzzers, entries that
    /// are not inputs, and directories that could not be listed.
    pub fn into_report(self) -> ListingReport {
        self.report
    }

    /// Opens the next directory that waits to be listed, and skips those that cannot be opened.
    /// Returns true if one is open, and false if none is left.
    fn enter_next(&mut self) -> bool {
        while let Some(waiting) = self.waiting.pop() {
            if let Err(error) = self.enter(&waiting) {
                let unread = &mut self.report.unread;
                unread.add(&waiting.path, 0, || error.to_string());
            }
            if self.current.is_some() {
                return true;
            }
        }
        false
    }

    fn enter(&mut self, waiting: &PendingDirectory) -> std::io::Result<()> {
        let PendingDirectory {
            path,
            depth,
            in_instance,
        } = waiting;
        let identity = file_identity(&path.metadata()?);
        if self.out == Some(identity) {
            let passed_over = &mut self.report.passed_over;
            passed_over.add(path, 0, || "the output directory".to_owned());
            return Ok(());
        }
        if !self.known.insert(identity) {
            return Ok(());
        }
        if *depth > DEPTH {
            let why = || format!("it is more than {DEPTH} directories deep");
            self.report.unread.add(path, 0, why);
            return Ok(());
        }
        // The layout depends on all names.
        let (marks, entries) = Marks::and_entries(path, MOST_HELD)?;
        let layout = marks.layout(*in_instance);
        if layout != Layout::Plain {
            let recognised = &mut self.report.recognised;
            recognised.insert(path.clone(), layout);
            if recognised.len() > MAX_RECOGNISED {
                recognised.pop_last();
            }
        }
        self.current = Some(OpenDirectory {
            entries,
            path: path.clone(),
            layout,
            depth: *depth,
        });
        Ok(())
    }

    /// Decides what the directory entry `entry` is, in a directory with the layout `layout`.
    /// Returns its path if it is an input. Otherwise returns `None`, and queues a directory that is
    /// to be listed, or records why the entry is not an input.
    fn input_of(&mut self, layout: Layout, depth: usize, entry: &DirEntry) -> Option<PathBuf> {
        let (name, path) = (entry.file_name(), entry.path());
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            // It has vanished, or its type is unknown: reading it gives the reason.
            Err(_) => return Some(path),
        };
        let passed_over = &mut self.report.passed_over;
        let why = if kind.is_dir() {
            match layout.passes_over_directory(&name) {
                None => {
                    self.waiting.push(PendingDirectory {
                        path,
                        depth: depth + 1,
                        in_instance: layout == Layout::AflInstance,
                    });
                    return None;
                }
                Some(why) => why,
            }
        } else if let Some(why) = layout.passes_over(&name) {
            why
        } else if is_of_search(&path) {
            "a result or log of a search of ddfuzz"
        } else if kind.is_symlink() {
            match path.metadata() {
                Ok(facts) if facts.is_dir() => "a link to a directory",
                Ok(facts) => match regular::special(facts.file_type()) {
                    None => return Some(path),
                    Some(kind) => kind,
                },
                Err(error) => {
                    let why = match error.kind() {
                        ErrorKind::NotFound => "a link that leads nowhere".to_owned(),
                        _ => format!("a link: {error}"),
                    };
                    passed_over.add(&path, 0, || why);
                    return None;
                }
            }
        } else {
            match regular::special(kind) {
                None => return Some(path),
                Some(kind) => kind,
            }
        };
        passed_over.add(&path, 0, || why.to_owned());
        None
    }
}

impl Iterator for Listing {
    type Item = PathBuf;

    fn next(&mut self) -> Option<PathBuf> {
        if let Some(path) = self.files.pop() {
            return Some(path);
        }
        loop {
            let Some(current) = &mut self.current else {
                match self.enter_next() {
                    true => continue,
                    false => return None,
                }
            };
            let (layout, depth) = (current.layout, current.depth);
            match current.entries.next() {
                Some(Ok(entry)) => {
                    if let Some(found) = self.input_of(layout, depth, &entry) {
                        return Some(found);
                    }
                }
                Some(Err(error)) => {
                    let path = current.path.clone();
                    self.current = None;
                    self.report.unread.add(&path, 0, || error.to_string());
                }
                None => self.current = None,
            }
        }
    }
}

/// Returns the device and inode of a file, which identify it under any name.
fn file_identity(facts: &Metadata) -> (u64, u64) {
    (facts.dev(), facts.ino())
}

/// Kind of a directory, recognized by the names in it: which fuzzer wrote it, and so which of its
/// entries are inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Output directory of ddfuzz; the inputs in it are below `corpus`.
    Ddfuzz,
    /// Directory of an AFL++ instance; its inputs are in `queue`, `crashes*` and `hangs*`.
    AflInstance,
    /// Queue, crashes or hangs of AFL++; its inputs have AFL++'s names.
    AflEntries,
    /// Workspace of honggfuzz; all files except the report are inputs.
    Honggfuzz,
    /// cargo-fuzz project; its inputs are in `corpus`.
    CargoFuzz,
    /// Cargo package with a cargo-fuzz project in `fuzz`; nothing else in the package is searched.
    Package,
    /// A directory that no known fuzzer wrote: all files in it are inputs, except those in hidden
    /// directories.
    Plain,
}

/// Which of the names that show a layout (such as `fuzzer_stats` or `queue`) a directory contains.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    campaign: bool,
    afl_facts: bool,
    afl_folders: u8,
    afl_state: bool,
    afl_names: bool,
    honggfuzz: bool,
    manifest: bool,
    fuzz_targets: bool,
    fuzz: bool,
}

impl Marks {
    /// Reads the names of all entries of a directory, and records those that identify a layout.
    fn of(directory: &Path) -> io::Result<Marks> {
        let mut marks = Marks::default();
        for entry in std::fs::read_dir(directory)? {
            marks.see(&entry?.file_name());
        }
        Ok(marks)
    }

    /// Reads all entries of `directory`. Returns which of the names that identify a layout are
    /// among them, and an iterator over the entries. At most `most` entries are kept in memory for
    /// it; if there are more, the directory is opened again, and the iterator reads it a second
    /// time.
    fn and_entries(directory: &Path, most: usize) -> io::Result<(Marks, Entries)> {
        let (mut marks, mut held) = (Marks::default(), Vec::new());
        let mut is_held = true;
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            marks.see(&entry.file_name());
            is_held &= held.len() < most;
            match is_held {
                true => held.push(entry),
                false => held = Vec::new(),
            }
        }
        let entries = match is_held {
            true => Entries::Held(held.into_iter()),
            false => Entries::Read(std::fs::read_dir(directory)?),
        };
        Ok((marks, entries))
    }

    /// Records that the directory contains an entry of this name, if the name identifies a layout
    /// (which fuzzer wrote it).
    fn see(&mut self, name: &OsStr) {
        let Some(name) = name.to_str() else {
            return;
        };
        match name {
            "ddfuzz.json" => self.campaign = true,
            "fuzzer_stats" | "fuzzer_setup" => self.afl_facts = true,
            "queue" => self.afl_folders |= 1,
            "crashes" => self.afl_folders |= 2,
            "hangs" => self.afl_folders |= 4,
            ".state" | "README.txt" => self.afl_state = true,
            "HONGGFUZZ.REPORT.TXT" => self.honggfuzz = true,
            "Cargo.toml" => self.manifest = true,
            "fuzz_targets" => self.fuzz_targets = true,
            "fuzz" => self.fuzz = true,
            name if name.starts_with("id") && !self.afl_names => {
                self.afl_names = is_afl(name);
            }
            _ => {}
        }
    }

    /// Returns the layout of the directory: which fuzzer wrote it, as the names in it show.
    /// `in_instance`: whether the directory is a part of an AFL++ instance.
    fn layout(self, in_instance: bool) -> Layout {
        if self.campaign {
            Layout::Ddfuzz
        } else if self.afl_facts || self.afl_folders == 7 {
            Layout::AflInstance
        } else if in_instance || self.afl_names && self.afl_state {
            Layout::AflEntries
        } else if self.honggfuzz {
            Layout::Honggfuzz
        } else if self.manifest && self.fuzz_targets {
            Layout::CargoFuzz
        } else if self.manifest && self.fuzz {
            Layout::Package
        } else {
            Layout::Plain
        }
    }
}

impl Layout {
    /// Reads the names in a directory, and returns its layout: which fuzzer wrote it.
    pub fn of(directory: &Path) -> io::Result<Layout> {
        Ok(Marks::of(directory)?.layout(is_in_instance(directory)))
    }

    /// Returns the name of the layout (kind of directory), for messages.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Ddfuzz => "ddfuzz",
            Layout::AflInstance => "an AFL++ instance",
            Layout::AflEntries => "AFL++",
            Layout::Honggfuzz => "honggfuzz",
            Layout::CargoFuzz => "a cargo-fuzz project",
            Layout::Package => "a package with a cargo-fuzz project",
            Layout::Plain => "files",
        }
    }

    /// Returns the reason why the file called `name` is not an input in a directory of this layout
    /// (such as AFL++'s); `None` if it is an input.
    fn passes_over(self, name: &OsStr) -> Option<&'static str> {
        if atomic::is_temporary(name) {
            return Some("a file that ddfuzz was just writing");
        }
        match self {
            Layout::Plain => None,
            Layout::AflEntries if name.to_str().is_some_and(is_afl) => None,
            Layout::AflEntries => Some("not named like an input of AFL++"),
            Layout::Honggfuzz if name == "HONGGFUZZ.REPORT.TXT" => Some("a report of honggfuzz"),
            Layout::Honggfuzz => None,
            Layout::Ddfuzz | Layout::AflInstance | Layout::CargoFuzz | Layout::Package => {
                Some("not an input")
            }
        }
    }

    /// Returns the reason why the directory called `name`, in a directory of this layout (such as
    /// AFL++'s), is not listed; `None` if it is listed.
    pub(super) fn passes_over_directory(self, name: &OsStr) -> Option<&'static str> {
        let bytes = name.as_encoded_bytes();
        let fits = match self {
            Layout::Ddfuzz | Layout::CargoFuzz => name == "corpus",
            Layout::Package => name == "fuzz",
            Layout::AflInstance => {
                name == "queue" || bytes.starts_with(b"crashes") || bytes.starts_with(b"hangs")
            }
            Layout::AflEntries => return Some("a directory among AFL++'s entries"),
            Layout::Honggfuzz | Layout::Plain if bytes.starts_with(b".") => {
                return Some("a hidden directory");
            }
            Layout::Honggfuzz | Layout::Plain => true,
        };
        (!fits).then_some("not a corpus")
    }
}

/// Returns true if the name is one that AFL++ gives to its inputs; else false.
fn is_afl(name: &str) -> bool {
    CrashName::parse(name).is_some_and(|named| named.fuzzer == Fuzzer::Afl)
}

/// Returns true if the directory is the queue, or the crashes or hangs, of an AFL++ instance.
pub(super) fn is_in_instance(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.as_encoded_bytes());
    let fits = name.is_some_and(|name| {
        name == b"queue" || name.starts_with(b"crashes") || name.starts_with(b"hangs")
    });
    let beside = |name: &str| path.with_file_name(name).exists();
    fits && (beside("fuzzer_stats") || beside("fuzzer_setup"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(names: &[&str], in_instance: bool) -> Layout {
        let mut marks = Marks::default();
        names.iter().for_each(|name| marks.see(name.as_ref()));
        marks.layout(in_instance)
    }

    #[test]
    fn a_directory_with_many_entries_is_read_twice() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c", "ddfuzz.json"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        for (most, held) in [(3, false), (4, true)] {
            let (marks, mut entries) = Marks::and_entries(folder.path(), most).unwrap();
            assert_eq!(marks.layout(false), Layout::Ddfuzz);
            assert_eq!(matches!(entries, Entries::Held(_)), held);
            let names = std::iter::from_fn(|| entries.next());
            let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            assert_eq!(names, ["a", "b", "c", "ddfuzz.json"]);
        }
    }

    #[test]
    fn directories_are_known_by_the_names_in_them() {
        for (names, expected) in [
            (&["ddfuzz.json", "corpus", "crashes"][..], Layout::Ddfuzz),
            (&["cmdline", "fuzzer_stats", "queue"], Layout::AflInstance),
            (&["queue", "crashes", "hangs"], Layout::AflInstance),
            (
                &[".state", "id:000000,time:0,execs:0,orig:a"],
                Layout::AflEntries,
            ),
            (
                &["HONGGFUZZ.REPORT.TXT", "0123.00000004.honggfuzz.cov"],
                Layout::Honggfuzz,
            ),
            (&["Cargo.toml", "fuzz_targets", "corpus"], Layout::CargoFuzz),
            (&["Cargo.toml", "src", "fuzz"], Layout::Package),
            (&["Cargo.toml", "README.txt", "queue"], Layout::Plain),
            (&[], Layout::Plain),
        ] {
            assert_eq!(layout(names, false), expected, "{names:?}");
        }
        assert_eq!(layout(&["anything"], true), Layout::AflEntries);
    }

    #[test]
    fn what_a_fuzzer_keeps_beside_its_corpus_is_no_input() {
        let entries = Layout::AflEntries;
        assert_eq!(entries.passes_over("id:000001,src:000000".as_ref()), None);
        assert_eq!(entries.passes_over("id_000001,src_000000".as_ref()), None);
        assert!(entries.passes_over("README.txt".as_ref()).is_some());
        assert!(entries.passes_over_directory(".state".as_ref()).is_some());
        let instance = Layout::AflInstance;
        for inside in ["queue", "crashes", "hangs", "crashes.2026-01-01-00:00:00"] {
            assert_eq!(instance.passes_over_directory(inside.as_ref()), None);
        }
        assert!(instance.passes_over_directory(".synced".as_ref()).is_some());
        let temporary = ".ddfuzz-tmp-abc".as_ref();
        assert!(Layout::Plain.passes_over(temporary).is_some());
        assert_eq!(Layout::Plain.passes_over(".hidden".as_ref()), None);
    }
}
