//! The inputs below a directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::layout::Layout;
use super::name::CrashName;
use crate::{Reader, StoreError};

/// Directories below each other that are looked into: whoever made more of them made a trap.
const DEPTH: usize = 64;

/// One file to be run, or something that should have been one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Where it stands.
    pub path: PathBuf,
    /// What its name says, where a fuzzer gave it.
    pub named: Option<CrashName>,
}

/// What was recognised about one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Which.
    pub path: PathBuf,
    /// What it is.
    pub layout: Layout,
    /// Inputs that stand in it.
    pub inputs: u64,
    /// What was passed over in it, and why.
    pub passed_over: Vec<(PathBuf, &'static str)>,
}

/// All inputs below some paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The inputs, in the order of the paths, and in each in the order of their names.
    pub inputs: Vec<Input>,
    /// The directories that were looked into.
    pub directories: Vec<Directory>,
    /// Directories that could not be looked into, and why.
    pub unread: Vec<(PathBuf, String)>,
}

impl Inputs {
    /// Takes out what stands in the output directory `out`, which may be below a path that was
    /// looked into, and gives the directories that were taken out.
    pub fn pass_over(&mut self, out: &Path) -> Vec<PathBuf> {
        let Ok(out) = out.canonicalize() else {
            return Vec::new();
        };
        let inside = |path: &Path| path.canonicalize().is_ok_and(|real| real.starts_with(&out));
        let all = std::mem::take(&mut self.directories);
        let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| inside(&one.path));
        self.directories = others;
        let own: Vec<PathBuf> = own.into_iter().map(|one| one.path).collect();
        let is_own = |input: &Input| own.iter().any(|own| input.path.starts_with(own));
        self.inputs.retain(|input| !is_own(input));
        own
    }
}

/// Adds the inputs below `path` to `found`: the file itself, or those in a directory, as its
/// [`Layout`] says. Links to files are followed; links to directories only where they are named,
/// for below they might lead round in a circle. Nothing is opened but directories.
///
/// # Errors
/// When an output directory of ddfuzz cannot be read as one.
pub fn find(path: &Path, found: &mut Inputs) -> Result<(), StoreError> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match absolute.is_dir() {
        true => walk(&absolute, false, 0, found),
        false => {
            let named = Layout::Plain.read_name(&absolute);
            found.inputs.push(Input {
                path: absolute,
                named,
            });
            Ok(())
        }
    }
}

fn walk(path: &Path, in_afl: bool, depth: usize, found: &mut Inputs) -> Result<(), StoreError> {
    let names = match listed(path) {
        Ok(names) => names,
        Err(error) => {
            found.unread.push((path.to_owned(), error.to_string()));
            return Ok(());
        }
    };
    let layout = Layout::of(names.iter().filter_map(|name| name.to_str()), in_afl);
    let mut directory = Directory {
        path: path.to_owned(),
        layout,
        inputs: 0,
        passed_over: Vec::new(),
    };
    if layout == Layout::Ddfuzz {
        for id in Reader::open(path)?.originals()? {
            let path = id.original(path);
            found.inputs.push(Input { path, named: None });
            directory.inputs += 1;
        }
        found.directories.push(directory);
        return Ok(());
    }
    let at = found.directories.len();
    let mut below = Vec::new();
    for name in names {
        let entry = path.join(&name);
        let name = name.to_str();
        match entry.symlink_metadata() {
            Ok(facts) if facts.is_dir() => match layout.passes_over_directory(name) {
                Some(why) => directory.passed_over.push((entry, why)),
                None => below.push(entry),
            },
            Ok(facts) if facts.is_symlink() && entry.is_dir() => {
                directory.passed_over.push((entry, "a link to a directory"));
            }
            // A fifo, a dangling link or what vanished is told where it should have been read.
            _ => match layout.passes_over(name) {
                Some(why) => directory.passed_over.push((entry, why)),
                None => {
                    let named = layout.read_name(&entry);
                    let path = entry;
                    found.inputs.push(Input { path, named });
                    directory.inputs += 1;
                }
            },
        }
    }
    found.directories.insert(at, directory);
    for path in below {
        if depth == DEPTH {
            let why = format!("it is more than {DEPTH} directories deep");
            found.unread.push((path, why));
            continue;
        }
        walk(&path, layout == Layout::AflInstance, depth + 1, found)?;
    }
    Ok(())
}

fn listed(path: &Path) -> std::io::Result<Vec<OsString>> {
    let entries = std::fs::read_dir(path)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names = names.collect::<std::io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}
