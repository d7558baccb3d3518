//! Lists the inputs below some paths, one by one: no list of all of them stands in memory.
//!
//! Only directories are opened here. The corpora of AFL++, cargo-fuzz, honggfuzz and ddfuzz are
//! known by their [`Layout`]; of anything else each file is an input.

mod layout;

use std::collections::{BTreeMap, HashSet};
use std::fs::{DirEntry, Metadata, ReadDir};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::Excluded;
use ddfuzz_model::files::regular::{self, Unread};
use layout::{Marks, is_in_instance};

pub use layout::Layout;

/// The deepest nesting of directories that is followed.
const DEPTH: usize = 64;
/// Recognised directories that are reported at most.
const TOLD: usize = 64;

/// A file that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Its path, absolute.
    pub path: PathBuf,
}

/// A path of the command line that cannot be listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be cleaned: {why}", path.display())]
pub struct NotListed {
    /// The path.
    pub path: PathBuf,
    /// Why not.
    pub why: Unread,
}

/// What a listing has found that is no input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListingReport {
    /// Directories of known layouts; at most 64.
    pub recognised: BTreeMap<PathBuf, Layout>,
    /// What is no input, by its kind or by the layout of the directory: fifos, sockets, links to
    /// directories, dangling links, hidden directories, files that fuzzers write for themselves,
    /// the output directory.
    pub passed_over: Excluded,
    /// Directories that could not be listed whole.
    pub unread: Excluded,
}

/// A directory that is still to be listed.
struct PendingDirectory {
    path: PathBuf,
    depth: usize,
    in_instance: bool,
}

/// The directory that is being listed.
struct OpenDirectory {
    entries: ReadDir,
    path: PathBuf,
    layout: Layout,
    depth: usize,
}

/// Goes through the inputs below some paths, in whatever order the directories have.
pub struct Listing {
    /// Files of the command line that are still to be returned.
    files: Vec<PathBuf>,
    waiting: Vec<PendingDirectory>,
    current: Option<OpenDirectory>,
    /// Directories and files that were listed already, by device and inode.
    known: HashSet<(u64, u64)>,
    out: Option<(u64, u64)>,
    report: ListingReport,
}

impl Listing {
    /// The inputs at `roots`: files, and directories with what is below them. Links to files are
    /// followed; links to directories only where they are named, for below they might lead round
    /// in a circle. The output directory `out` is passed over where it stands below them.
    ///
    /// # Errors
    /// When a path that is named is not there, neither a file nor a directory, or `out`.
    pub fn new(roots: &[PathBuf], out: Option<&Path>) -> Result<Listing, NotListed> {
        let out = out.and_then(|out| out.metadata().ok()).as_ref().map(place);
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
        // They are taken from the end.
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
            // One that cannot be looked into is no cleaner for it.
            std::fs::read_dir(root).map_err(|error| refused(Unread::Refused(error.to_string())))?;
            if self.out == Some(place(&facts)) {
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
        if self.known.insert(place(&facts)) {
            self.files.push(path);
        }
        Ok(())
    }

    /// What is no input, so far.
    pub fn report(&self) -> &ListingReport {
        &self.report
    }

    /// What is no input.
    pub fn into_report(self) -> ListingReport {
        self.report
    }

    /// Opens the next directory; false where there is none left.
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
        let identity = place(&path.metadata()?);
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
        // What the directory is decides what its first entry is: it is read twice, so that its
        // names need not be kept.
        let layout = Marks::of(path)?.layout(*in_instance);
        if layout != Layout::Plain {
            let recognised = &mut self.report.recognised;
            recognised.insert(path.clone(), layout);
            if recognised.len() > TOLD {
                recognised.pop_last();
            }
        }
        self.current = Some(OpenDirectory {
            entries: std::fs::read_dir(path)?,
            path: path.clone(),
            layout,
            depth: *depth,
        });
        Ok(())
    }

    /// The entry as an input, if it is one.
    fn input_of(&mut self, layout: Layout, depth: usize, entry: &DirEntry) -> Option<FoundFile> {
        let (name, path) = (entry.file_name(), entry.path());
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            // It has vanished, or its kind is not told: who reads it will say.
            Err(_) => return Some(FoundFile { path }),
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
        } else if kind.is_symlink() {
            match path.metadata() {
                Ok(facts) if facts.is_dir() => "a link to a directory",
                Ok(facts) => match regular::special(facts.file_type()) {
                    None => return Some(FoundFile { path }),
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
                None => return Some(FoundFile { path }),
                Some(kind) => kind,
            }
        };
        passed_over.add(&path, 0, || why.to_owned());
        None
    }
}

impl Iterator for Listing {
    type Item = FoundFile;

    fn next(&mut self) -> Option<FoundFile> {
        if let Some(path) = self.files.pop() {
            return Some(FoundFile { path });
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

/// The identity of a file (device and inode), by whatever name it was reached.
fn place(facts: &Metadata) -> (u64, u64) {
    (facts.dev(), facts.ino())
}
