//! A directory in which versions of the program are built, one after another.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use ddfuzz_exec::{Sandbox, sandbox};

use crate::ChangesError;
use crate::change_set::{is_link, is_written};
use crate::repository::Repository;
use crate::tree::{Content, EXECUTABLE, Entry, Tree};

/// Minimum time between the end of a build and the next change of a source file, so that the file's
/// time is later than those of the build's results: file systems note times in steps of some
/// milliseconds.
const STEP: Duration = Duration::from_millis(20);

/// Maximum size in bytes of a worktree that is copied after the build of a version; copying a
/// larger one would take longer than a compilation.
const MOST_COPIED: u64 = 64 << 20;
/// Maximum number of copies of the worktree that are kept.
const MOST_COPIES: usize = 12;
/// Maximum total size in bytes of the copies of the worktree that are kept; four copies are kept
/// even if they are larger.
const MOST_COPIED_TOGETHER: u64 = 256 << 20;

/// Names of files that say how a program is built. If one changes, the directory is made anew,
/// because most build tools do not notice the change.
const BUILD_FILES: [&str; 16] = [
    "Makefile",
    "makefile",
    "GNUmakefile",
    "configure",
    "configure.ac",
    "configure.in",
    "Makefile.am",
    "Makefile.in",
    "config.h.in",
    "CMakeLists.txt",
    "meson.build",
    "meson.options",
    "build.sh",
    "BUILD",
    "aclocal.m4",
    "autogen.sh",
];

/// A directory with the files of one version and the results of its build. For the next version,
/// only the files that differ are written, so that the build tool rebuilds only what depends on
/// them.
pub struct Worktree {
    root: PathBuf,
    sandbox: Sandbox,
    /// The version whose files are in the worktree; `None` if the next version has to be written
    /// into an emptied directory.
    state: Option<Tree>,
    /// Time at which the last build or test in the worktree ended.
    built: Instant,
    /// Copies of the worktree as it was after builds of other versions. The first copy is of the
    /// version that was built first.
    copies: Vec<Copy>,
    /// Whether the worktree was small enough so far to be copied after a build.
    is_small: bool,
    /// Cache of `#include` lines: for the content of each file, the names of the files that it
    /// includes.
    includes: HashMap<Content, Vec<Vec<u8>>>,
}

impl Worktree {
    /// Creates the description of a worktree in the directory `root`; the first
    /// [`update`](Worktree::update) creates the directory. `sandbox` says whether builds in it run
    /// in a sandbox, possibly as another user.
    pub fn new(root: PathBuf, sandbox: Sandbox) -> Worktree {
        Worktree {
            root,
            sandbox,
            state: None,
            built: Instant::now(),
            copies: Vec::new(),
            is_small: true,
            includes: HashMap::new(),
        }
    }

    /// Returns the path of the worktree, the directory in which versions are built.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Notes that a build or test in the worktree has ended now; the next update then waits until
    /// changed files get later modification times than the results of the build.
    pub fn note_build(&mut self) {
        self.built = Instant::now();
    }

    /// Marks the worktree as unusable, so that the next update begins with an empty directory; for
    /// example because a build was killed and may have left half-written files.
    pub fn discard(&mut self) {
        self.state = None;
    }

    /// Copies the worktree, with the files of its version and the results of the build, to restore
    /// it later. Does nothing if the worktree is large or a copy of this version exists. If there
    /// are too many copies, replaces the oldest one, but never the first one.
    ///
    /// # Errors
    /// If files cannot be copied.
    pub fn keep_copy(&mut self) -> Result<(), ChangesError> {
        let Some(state) = self.state.clone().filter(|_| self.is_small) else {
            return Ok(());
        };
        let size = size_of(&self.root);
        if size > MOST_COPIED {
            self.is_small = false;
            return Ok(());
        }
        if self.copies.iter().any(|copy| copy.state == state) {
            return Ok(());
        }
        let most = (MOST_COPIED_TOGETHER / size.max(1)).clamp(4, MOST_COPIES as u64) as usize;
        let free = (0..most).find(|number| self.copies.iter().all(|copy| copy.number != *number));
        let number = match free {
            Some(number) => number,
            None => {
                // The number of copies may have been larger while the directory was smaller.
                for copy in self.copies.drain(most..) {
                    let place = self.root.with_extension(format!("copy-{}", copy.number));
                    let _ = remove_folder(&place);
                }
                self.copies.remove(1).number
            }
        };
        let place = self.root.with_extension(format!("copy-{number}"));
        copy(&self.root, &place)?;
        self.copies.push(Copy { number, state });
        Ok(())
    }

    /// Replaces the contents of the worktree by the copy of the version `tree`, with its build, and
    /// returns true. If there is no copy of this version, returns false, and the next update begins
    /// with an empty directory.
    ///
    /// # Errors
    /// If files cannot be copied.
    pub fn restore_build(&mut self, tree: &Tree) -> Result<bool, ChangesError> {
        self.state = None;
        match self.copies.iter().position(|copy| copy.state == *tree) {
            Some(at) => self.restore(at).map(|()| true),
            None => Ok(false),
        }
    }

    /// Replaces the contents of the worktree by those of the copy whose version differs from `tree`
    /// in the fewest files; does nothing if the version in the worktree differs from `tree` in at
    /// most as many files.
    ///
    /// # Errors
    /// If files cannot be copied.
    pub fn restore_nearest(&mut self, tree: &Tree) -> Result<(), ChangesError> {
        let distance = |state: &Tree| differing(state, tree).len();
        let nearest = self
            .copies
            .iter()
            .enumerate()
            .min_by_key(|(_, copy)| distance(&copy.state));
        let Some((at, nearest)) = nearest.map(|(at, copy)| (at, distance(&copy.state))) else {
            return Ok(());
        };
        match self
            .state
            .as_ref()
            .is_some_and(|state| distance(state) <= nearest)
        {
            true => Ok(()),
            false => self.restore(at),
        }
    }

    fn restore(&mut self, at: usize) -> Result<(), ChangesError> {
        let place = self
            .root
            .with_extension(format!("copy-{}", self.copies[at].number));
        copy(&place, &self.root)?;
        self.state = Some(self.copies[at].state.clone());
        Ok(())
    }

    /// Changes the files in the worktree to those of the version `tree`, and leaves files made by
    /// earlier builds.
    ///
    /// If a build file (such as `Makefile` or `CMakeLists.txt`) changes, or the worktree is new or
    /// was discarded, it is emptied first; returns true if it was emptied.
    ///
    /// A file that includes a changed file gets a new modification time, because not every build
    /// tool tracks inclusions.
    ///
    /// # Errors
    /// If a content cannot be read, or a file cannot be written.
    pub fn update(&mut self, tree: &Tree, repository: &Repository) -> Result<bool, ChangesError> {
        std::thread::sleep(STEP.saturating_sub(self.built.elapsed()));
        let changed = self.state.as_ref().map(|state| differing(state, tree));
        let state = self.state.take();
        let is_anew = match (state, changed) {
            (Some(state), Some(changed)) if !changed.iter().any(|path| is_build_file(path)) => {
                self.change(&state, tree, &changed, repository)?;
                false
            }
            _ => {
                self.make_anew(tree, repository)?;
                true
            }
        };
        self.make_empty_folders(tree, repository)?;
        if self.sandbox == Sandbox::On {
            let given = sandbox::give(&self.root);
            given.map_err(ChangesError::at(
                "changing the owner of files in",
                &self.root,
            ))?;
        }
        self.state = Some(tree.clone());
        Ok(is_anew)
    }

    /// Removes the file at `path` in the worktree that an earlier build has made, and, if it is a
    /// link, also the file that the link leads to. Files of the version `tree`, directories, and
    /// files outside of the worktree stay.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove_made(&self, path: &OsStr, tree: &Tree) -> Result<(), ChangesError> {
        let Ok(root) = std::fs::canonicalize(&self.root) else {
            return Ok(());
        };
        let path = root.join(path);
        let folder = path.parent().map(std::fs::canonicalize);
        let named = match (folder, path.file_name()) {
            (Some(Ok(folder)), Some(name)) => Some(folder.join(name)),
            _ => None,
        };
        let target = std::fs::canonicalize(&path).ok();
        for file in named.into_iter().chain(target) {
            let is_made = |inside: &Path| tree.get(inside.as_os_str().as_bytes()).is_none();
            let is_file = std::fs::symlink_metadata(&file).is_ok_and(|facts| !facts.is_dir());
            if is_file && file.strip_prefix(&root).is_ok_and(is_made) {
                std::fs::remove_file(&file).map_err(ChangesError::at("removing", &file))?;
            }
        }
        Ok(())
    }

    fn make_anew(&mut self, tree: &Tree, repository: &Repository) -> Result<(), ChangesError> {
        empty(&self.root)?;
        for (path, entry) in tree.entries() {
            self.write(path, entry, repository)?;
        }
        Ok(())
    }

    /// Creates in the worktree the folders without files that the compared directories have, except
    /// where the version `tree` or an earlier build has a file in the way.
    fn make_empty_folders(&self, tree: &Tree, repository: &Repository) -> Result<(), ChangesError> {
        for path in repository.empty_folders() {
            let ends = (0..=path.len()).filter(|at| path.get(*at).is_none_or(|byte| *byte == b'/'));
            let is_free = |at: usize| {
                let place = std::fs::symlink_metadata(self.path(&path[..at]));
                tree.get(&path[..at]).is_none() && place.is_ok_and(|facts| facts.is_dir())
            };
            for at in ends {
                let folder = self.path(&path[..at]);
                match std::fs::create_dir(&folder) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                        return Err(ChangesError::at("creating", &folder)(error));
                    }
                    _ if is_free(at) => {}
                    _ => break,
                }
            }
        }
        Ok(())
    }

    fn change(
        &mut self,
        state: &Tree,
        tree: &Tree,
        changed: &[Vec<u8>],
        repository: &Repository,
    ) -> Result<(), ChangesError> {
        let was_written = |path: &[u8]| state.get(path).is_some_and(is_written);
        for path in changed.iter().filter(|path| tree.get(path).is_none()) {
            // Also the directory of a submodule, which a build from scratch does not have.
            self.remove(path, true)?;
        }
        for path in changed {
            if let Some(entry) = tree.get(path) {
                self.remove(path, was_written(path) || is_written(entry))?;
                self.write(path, entry, repository)?;
            }
        }
        for path in self.including(tree, changed, repository)? {
            let file = self.path(&path);
            self.clear_way(&path)?;
            if !std::fs::symlink_metadata(&file).is_ok_and(|facts| facts.is_file()) {
                continue; // a build has replaced it
            }
            let opened = std::fs::File::options().append(true).open(&file);
            let touched = opened.and_then(|file| file.set_modified(SystemTime::now()));
            touched.map_err(ChangesError::at("setting the time of", &file))?;
        }
        Ok(())
    }

    fn path(&self, path: &[u8]) -> PathBuf {
        self.root.join(OsStr::from_bytes(path))
    }

    /// Removes files and links that a build has put in place of the directories above `path`;
    /// through such a link, files would be written outside of the worktree.
    fn clear_way(&self, path: &[u8]) -> Result<(), ChangesError> {
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            let folder = self.path(&path[..at]);
            if std::fs::symlink_metadata(&folder).is_ok_and(|facts| !facts.is_dir()) {
                std::fs::remove_file(&folder).map_err(ChangesError::at("removing", &folder))?;
            }
        }
        Ok(())
    }

    /// Removes the file at `path` in the worktree, and the directories that become empty by this. A
    /// directory at this path is removed only if `is_file` is set: then a version has a file at the
    /// path, so that a build must have made the directory.
    fn remove(&self, path: &[u8], is_file: bool) -> Result<(), ChangesError> {
        let file = self.path(path);
        self.clear_way(path)?;
        match std::fs::symlink_metadata(&file) {
            Ok(facts) if facts.is_dir() && is_file => {
                remove_folder(&file).map_err(ChangesError::at("removing", &file))?;
            }
            Ok(facts) if !facts.is_dir() => {
                std::fs::remove_file(&file).map_err(ChangesError::at("removing", &file))?;
            }
            _ => {}
        }
        let mut folder = file.parent();
        while let Some(empty) = folder.filter(|folder| **folder != self.root) {
            if std::fs::remove_dir(empty).is_err() {
                break;
            }
            folder = empty.parent();
        }
        Ok(())
    }

    fn write(
        &self,
        path: &[u8],
        entry: &Entry,
        repository: &Repository,
    ) -> Result<(), ChangesError> {
        let file = self.path(path);
        self.clear_way(path)?;
        let folder = if is_written(entry) {
            file.parent().unwrap_or(&file)
        } else {
            &file
        };
        if std::fs::symlink_metadata(folder).is_ok_and(|facts| !facts.is_dir()) {
            // What a build has left where the version has a directory.
            std::fs::remove_file(folder).map_err(ChangesError::at("removing", folder))?;
        }
        std::fs::create_dir_all(folder).map_err(ChangesError::at("creating", folder))?;
        if !is_written(entry) {
            return Ok(());
        }
        let content = repository.content(&entry.content)?;
        if is_link(entry) {
            let made = symlink(OsStr::from_bytes(&content), &file);
            return made.map_err(ChangesError::at("creating", &file));
        }
        std::fs::write(&file, content).map_err(ChangesError::at("writing", &file))?;
        if entry.mode == EXECUTABLE {
            let set = std::fs::set_permissions(&file, Permissions::from_mode(0o755));
            set.map_err(ChangesError::at("setting the permissions of", &file))?;
        }
        let facts = std::fs::metadata(&file).map_err(ChangesError::at("reading", &file))?;
        if facts.mtime_nsec() == 0 {
            // Perhaps this file system notes whole seconds only.
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(())
    }

    /// Returns the paths of the files of the version `tree` that include one of the files `changed`
    /// by `#include`, directly or indirectly, and are not changed themselves. Included files are
    /// identified by their names only, without directories.
    fn including(
        &mut self,
        tree: &Tree,
        changed: &[Vec<u8>],
        repository: &Repository,
    ) -> Result<Vec<Vec<u8>>, ChangesError> {
        let mut users: HashMap<Vec<u8>, Vec<&Vec<u8>>> = HashMap::new();
        for (path, entry) in tree
            .entries()
            .filter(|(path, entry)| may_include(path) && is_written(entry))
        {
            if !self.includes.contains_key(&entry.content) {
                let text = repository.content(&entry.content)?;
                self.includes.insert(entry.content.clone(), included(&text));
            }
            for name in &self.includes[&entry.content] {
                users.entry(name.clone()).or_default().push(path);
            }
        }
        let mut found: HashSet<&Vec<u8>> = HashSet::new();
        let mut next: Vec<&[u8]> = changed.iter().map(|path| name_of(path)).collect();
        while let Some(name) = next.pop() {
            for path in users.get(name).into_iter().flatten() {
                if found.insert(path) {
                    next.push(name_of(path));
                }
            }
        }
        let is_old = |path: &&&Vec<u8>| changed.binary_search(path).is_err();
        Ok(found
            .iter()
            .filter(is_old)
            .map(|path| path.to_vec())
            .collect())
    }
}

/// A copy of the directory in which versions are built, as it was after the build of one version.
struct Copy {
    /// Number of this copy, which is part of the name of its directory (`copy-NUMBER`).
    number: usize,
    /// The files of the version of the program whose build is in the copy.
    state: Tree,
}

/// Removes all files and folders in the directory `folder`; creates it if it is missing.
fn empty(folder: &Path) -> Result<(), ChangesError> {
    std::fs::create_dir_all(folder).map_err(ChangesError::at("creating", folder))?;
    let failed = || ChangesError::at("emptying", folder);
    for entry in std::fs::read_dir(folder).map_err(failed())? {
        let path = entry.map_err(failed())?.path();
        let facts = std::fs::symlink_metadata(&path).map_err(failed())?;
        match facts.is_dir() {
            true => remove_folder(&path),
            false => std::fs::remove_file(&path),
        }
        .map_err(failed())?;
    }
    Ok(())
}

/// Removes a folder with all its contents, even if a build has made directories in it read-only.
///
/// # Errors
/// If the folder is missing, or a file in it cannot be removed.
pub fn remove_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::remove_dir_all(folder).or_else(|error| {
        if !std::fs::symlink_metadata(folder)?.is_dir() {
            return Err(error);
        }
        open_directories(folder);
        std::fs::remove_dir_all(folder)
    })
}

/// Gives the owner all permissions on the directory `folder` and all below it, so that they can be
/// removed; a build may have made them read-only. Errors are ignored.
fn open_directories(folder: &Path) {
    let _ = std::fs::set_permissions(folder, Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_directories(&entry.path());
        }
    }
}

/// Copies all files in the directory `from`, with their times and permissions, into the directory
/// `place`, which is emptied first.
fn copy(from: &Path, place: &Path) -> Result<(), ChangesError> {
    empty(place)?;
    let copied = Command::new("cp")
        .arg("-a")
        .arg("--")
        .arg(from.join("."))
        .arg(place)
        .stdin(Stdio::null())
        .output();
    let copied = copied.map_err(ChangesError::system("starting cp"))?;
    match copied.status.success() {
        true => Ok(()),
        false => {
            let message = String::from_utf8_lossy(&copied.stderr).trim().to_owned();
            let kind = match message.contains("No space left on device") {
                true => std::io::ErrorKind::StorageFull,
                false => std::io::ErrorKind::Other,
            };
            Err(ChangesError::at("copying", from)(std::io::Error::new(
                kind, message,
            )))
        }
    }
}

/// Returns the total size of all files in a folder and the folders below it, in bytes.
fn size_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => size_of(&entry.path()),
        Ok(facts) => facts.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

/// Returns the paths of the files that differ between the trees `old` and `new`, or are in one of
/// them only, in ascending order.
fn differing(old: &Tree, new: &Tree) -> Vec<Vec<u8>> {
    let gone = old.entries().filter(|(path, _)| new.get(path).is_none());
    let other = new
        .entries()
        .filter(|(path, entry)| old.get(path) != Some(entry));
    let mut paths: Vec<Vec<u8>> = gone.chain(other).map(|(path, _)| path.clone()).collect();
    paths.sort_unstable();
    paths
}

fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

fn is_build_file(path: &[u8]) -> bool {
    let name = name_of(path);
    let is_known = BUILD_FILES.iter().any(|known| known.as_bytes() == name);
    is_known || name.ends_with(b".mk") || name.ends_with(b".cmake") || name.ends_with(b".m4")
}

/// Checks by the ending of its name whether a file is C or C++ source, or the like, which can
/// include other files by `#include`.
fn may_include(path: &[u8]) -> bool {
    const ENDINGS: [&[u8]; 14] = [
        b".c", b".h", b".cc", b".cpp", b".cxx", b".hh", b".hpp", b".hxx", b".inc", b".def",
        b".inl", b".y", b".l", b".S",
    ];
    ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// Returns the names, without directories, of the files that a source text includes by `#include`.
fn included(text: &[u8]) -> Vec<Vec<u8>> {
    let name = |line: &[u8]| {
        let line = line
            .trim_ascii_start()
            .strip_prefix(b"#")?
            .trim_ascii_start();
        let line = line.strip_prefix(b"include")?.trim_ascii_start();
        let (begin, rest) = line.split_first()?;
        let end = match begin {
            b'"' => b'"',
            b'<' => b'>',
            _ => return None,
        };
        let path = rest.split(|byte| *byte == end).next()?;
        Some(name_of(path).to_vec())
    };
    text.split(|byte| *byte == b'\n').filter_map(name).collect()
}
