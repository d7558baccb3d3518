//! The private directory of this process, for the unpacked launcher, runtime and bundled programs,
//! and for files of targets.

use nix::sys::statvfs::{FsFlags, statvfs};
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};
use std::{collections::HashMap, fs, io, io::Read, io::Write};

use crate::ExecError;

const LAUNCHER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/launcher"));
const RUNTIME: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ddfuzz-runtime.so"));
const OBSERVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ddfuzz-observe.so"));
const COPY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ddfuzz-copy.so"));
const PREFIX: &str = "ddfuzz-";

/// ddfuzz's private directory for unpacked programs, libraries and files of targets; removed when
/// its last handle is dropped. If ddfuzz was killed, the next ddfuzz removes it.
pub struct PrivateDir {
    path: PathBuf,
    /// A locked file, which shows other ddfuzz processes that the private directory is in use.
    _lock: File,
    names: AtomicU64,
    /// Paths of the copies of programs in the private directory, by path, length and modification
    /// time of the original.
    copies: Mutex<HashMap<(PathBuf, u64, SystemTime), PathBuf>>,
}

impl PrivateDir {
    /// Returns the private directory of this process, which the first call creates.
    pub fn get() -> Result<Arc<PrivateDir>, ExecError> {
        static CURRENT: Mutex<Weak<PrivateDir>> = Mutex::new(Weak::new());
        let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dir) = current.upgrade() {
            return Ok(dir);
        }
        let places = places();
        let root = root(&places).ok_or_else(|| ExecError::System {
            what: format!(
                "finding a directory from which programs can be executed, among {places:?} (set \
                 TMPDIR to one)"
            ),
            source: io::ErrorKind::PermissionDenied.into(),
        })?;
        let dir = PrivateDir::create(root)
            .map(Arc::new)
            .map_err(ExecError::system(format!(
                "creating a private directory in {}",
                root.display()
            )))?;
        *current = Arc::downgrade(&dir);
        Ok(dir)
    }

    fn create(root: &Path) -> io::Result<PrivateDir> {
        remove_stale(root);
        let path = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(root)?
            .keep();
        // Other users may open paths that they know, but not list the directory.
        fs::set_permissions(&path, Permissions::from_mode(0o711))?;
        let dir = PrivateDir {
            _lock: lock_directory(&path)?,
            path,
            names: AtomicU64::new(0),
            copies: Mutex::default(),
        };
        dir.unpack("launcher", LAUNCHER)?;
        dir.unpack("ddfuzz-runtime.so", RUNTIME)?;
        dir.unpack("ddfuzz-observe.so", OBSERVE)?;
        dir.unpack("ddfuzz-copy.so", COPY)?;
        Ok(dir)
    }

    /// Writes an executable file with the content `bytes` to the private directory, unless it
    /// exists already; returns its path.
    pub(crate) fn unpack(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        if path.exists() {
            return Ok(path);
        }
        // Written under another name first: a concurrent thread must not execute half a file.
        let half = self.fresh("unpacking");
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&half)?;
        file.write_all(bytes)?;
        // Independent of the umask: the target may run as another user.
        file.set_permissions(Permissions::from_mode(0o755))?;
        drop(file);
        fs::rename(&half, &path)?;
        Ok(path)
    }

    /// Copies `program` into the private directory, with the same file name, so that every user may
    /// execute it; a program that was copied before is not copied again. Returns the path of the
    /// copy.
    pub(crate) fn copy_of(&self, program: &Path) -> io::Result<PathBuf> {
        let facts = fs::metadata(program)?;
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (program.to_owned(), facts.len(), facts.modified()?);
        if let Some(copy) = copies.get(&key) {
            return Ok(copy.clone());
        }
        let folder = self.fresh("program");
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o755))?; // whatever the umask
        let copy = folder.join(program.file_name().unwrap_or_default());
        fs::copy(program, &copy)?;
        fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
        copies.insert(key, copy.clone());
        Ok(copy)
    }

    pub(crate) fn launcher(&self) -> PathBuf {
        self.path.join("launcher")
    }

    pub(crate) fn runtime(&self) -> PathBuf {
        self.path.join("ddfuzz-runtime.so")
    }

    /// Returns the path of the library that observes comparisons, preloaded after ddfuzz's runtime
    /// library.
    pub(crate) fn observe(&self) -> PathBuf {
        self.path.join("ddfuzz-observe.so")
    }

    /// Returns the path of the library `ddfuzz-copy.so`, by which a crashing process copies itself.
    /// It is preloaded after ddfuzz's runtime library.
    pub(crate) fn copy(&self) -> PathBuf {
        self.path.join("ddfuzz-copy.so")
    }

    /// Returns a new path in the private directory, unique even among forked processes. No file is
    /// created. All paths for the same `what` have the same length, so that a target that prints
    /// one aligns its output equally.
    pub fn fresh(&self, what: &str) -> PathBuf {
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        self.path
            .join(format!("{what}{}{number:06}", of_this_process()))
    }

    /// Returns the two parts of the names of ddfuzz's files that differ between processes and
    /// between workers: the name of the private directory, and the text before the number in a path
    /// made by [`fresh`](PrivateDir::fresh).
    pub(crate) fn unique_names(&self) -> (Vec<u8>, Vec<u8>) {
        let name = self.path.file_name().unwrap_or_default();
        (name.as_bytes().to_vec(), of_this_process().into_bytes())
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes the private directory at `path` with all that is in it, its lock file last: if this
/// process dies meanwhile, the next ddfuzz recognises the remains by the lock file, which nobody
/// has locked.
fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let _ = match entry.file_type() {
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
            _ if entry.file_name() == LOCK => Ok(()),
            _ => fs::remove_file(entry.path()),
        };
    }
    let _ = fs::remove_dir_all(path);
}

/// Returns the text with this process's id by which its paths of [`PrivateDir::fresh`] differ from
/// those of all other processes: `-0001234-`.
fn of_this_process() -> String {
    format!("-{:07}-", std::process::id())
}

/// Returns the directories in which the private directory may be created, the preferred one first:
/// tmpfs, then the usual places for temporary files.
fn places() -> [PathBuf; 3] {
    ["/dev/shm".into(), std::env::temp_dir(), "/var/tmp".into()]
}

/// Returns the first of the directories `places` where this process may write and execute programs;
/// `None` if there is none.
fn root(places: &[PathBuf]) -> Option<&Path> {
    places.iter().map(PathBuf::as_path).find(|place| {
        statvfs(*place).is_ok_and(|facts| !facts.flags().contains(FsFlags::ST_NOEXEC))
            && tempfile::tempfile_in(place).is_ok()
    })
}

/// Age from which a private directory without a lock file counts as abandoned. A younger one may
/// belong to a ddfuzz that is just creating it.
const OLD: Duration = Duration::from_secs(3600);

fn is_old(entry: &fs::DirEntry) -> bool {
    let changed = entry.metadata().and_then(|facts| facts.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > OLD))
}

/// Name of the lock file in a temporary directory of ddfuzz's.
const LOCK: &str = "lock";
/// Content of the lock file, by which a temporary directory of ddfuzz's is recognized.
const LOCK_CONTENT: &[u8] = b"a temporary directory of ddfuzz\n";
/// Number of random letters and digits at the end of the names of temporary directories.
const RANDOM: usize = 6;

/// Creates the lock file of a new temporary directory, locked by this process until the returned
/// file is closed. Fails when the file cannot be created.
pub fn lock_directory(dir: &Path) -> io::Result<File> {
    // Locked before it gets its name: an unlocked file would look abandoned.
    let new = dir.join("lock.new");
    let mut lock = File::create(&new)?;
    lock.lock()?;
    lock.write_all(LOCK_CONTENT)?;
    fs::rename(new, dir.join(LOCK))?;
    Ok(lock)
}

/// Returns the lock of the temporary directory `dir` that a killed ddfuzz has left, which this
/// process then holds; `None` if a ddfuzz still uses the directory, or `dir` is not a directory of
/// ddfuzz's.
pub fn lock_of_abandoned(dir: &Path) -> Option<File> {
    let lock = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(dir.join(LOCK));
    let mut lock = lock.ok().filter(|lock| {
        let facts = lock.metadata();
        facts.is_ok_and(|facts| facts.is_file() && facts.len() == LOCK_CONTENT.len() as u64)
    })?;
    let mut content = [0; LOCK_CONTENT.len()];
    let is_known = lock.read_exact(&mut content).is_ok() && content == LOCK_CONTENT;
    (is_known && lock.try_lock().is_ok()).then_some(lock)
}

/// Returns the directories in `root` that have the names of ddfuzz's temporary directories,
/// `prefix` and six random letters and digits, and belong to this process's user. Other programs
/// may have made some of them.
pub fn temporary_directories(root: &Path, prefix: &str) -> Vec<fs::DirEntry> {
    let us = nix::unistd::geteuid().as_raw();
    let is_name = |name: &str| {
        let random = name.strip_prefix(prefix);
        random
            .is_some_and(|it| it.len() == RANDOM && it.bytes().all(|it| it.is_ascii_alphanumeric()))
    };
    let is_ours = |entry: &fs::DirEntry| {
        let facts = || entry.metadata();
        entry.file_name().to_str().is_some_and(is_name)
            && facts().is_ok_and(|facts| facts.is_dir() && facts.uid() == us)
    };
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries.filter(is_ours).collect()
}

/// Removes, from the directory `root`, private directories that ddfuzz processes left when they
/// died.
fn remove_stale(root: &Path) {
    for entry in temporary_directories(root, PREFIX) {
        let path = entry.path();
        if let Some(_lock) = lock_of_abandoned(&path) {
            remove(&path);
        } else if is_old(&entry) && path.join(LOCK).symlink_metadata().is_err() {
            // ddfuzz was killed when only the directory was there.
            let _ = fs::remove_dir(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_missing_or_not_for_programs_is_passed_over() {
        let good = tempfile::tempdir().unwrap();
        let places = [
            PathBuf::from("/dev/shm/ddfuzz-is-not-here"),
            PathBuf::from("/proc"),
            good.path().to_owned(),
        ];
        assert_eq!(root(&places), Some(good.path()));
        assert_eq!(root(&places[..2]), None);
    }

    #[test]
    fn only_directories_whose_owner_is_gone_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let live = PrivateDir::create(root.path()).unwrap();
        let dead = root.path().join("ddfuzz-dead00");
        fs::create_dir(&dead).unwrap();
        drop(lock_directory(&dead).unwrap());
        let young = root.path().join("ddfuzz-young0");
        fs::create_dir(&young).unwrap();
        let trap = root.path().join("ddfuzz-trap00");
        fs::create_dir(&trap).unwrap();
        nix::unistd::mkfifo(&trap.join("lock"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let old = [
            root.path().join("ddfuzz-old000"),
            root.path().join("ddfuzz-full00"),
        ];
        for path in &old {
            fs::create_dir(path).unwrap();
        }
        fs::write(old[1].join("corpus"), "").unwrap();
        for path in &old {
            let long_ago = SystemTime::now() - 2 * OLD;
            File::open(path).unwrap().set_modified(long_ago).unwrap();
        }
        remove_stale(root.path());
        assert!(live.launcher().exists() && young.exists());
        assert!(!dead.exists());
        // A directory with something in it and no lock is a user's.
        assert!(!old[0].exists() && old[1].exists());
    }

    #[test]
    fn directories_of_the_user_that_look_like_ours_stay() {
        let root = tempfile::tempdir().unwrap();
        let made = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        // A directory as the lock, a lock of another program, and a name that is not ours.
        let (folder, other, name) = (
            made("ddfuzz-folder"),
            made("ddfuzz-other0"),
            made("ddfuzz-x"),
        );
        fs::create_dir(folder.join(LOCK)).unwrap();
        fs::write(other.join(LOCK), "").unwrap();
        drop(lock_directory(&name).unwrap());
        let link = made("ddfuzz-link00");
        std::os::unix::fs::symlink(name.join(LOCK), link.join(LOCK)).unwrap();
        remove_stale(root.path());
        assert!([folder, other, name, link].iter().all(|path| path.is_dir()));
    }
}
