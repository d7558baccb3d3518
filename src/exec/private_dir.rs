//! A directory of this process for what it unpacks: the launcher, the runtime, the bundled
//! programs, and the targets' files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use nix::sys::statvfs::{FsFlags, statvfs};

use super::ExecError;

const LAUNCHER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/launcher"));
const RUNTIME: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ddfuzz-runtime.so"));
const PREFIX: &str = "ddfuzz-";

/// The private directory; removed when the last user of it is gone. One that a killed ddfuzz
/// left behind is removed by the next.
pub(crate) struct PrivateDir {
    path: PathBuf,
    /// Held locked as long as we live: so the next ddfuzz knows.
    _lock: File,
    names: AtomicU64,
}

impl PrivateDir {
    /// The directory of this process, made at the first call.
    pub(crate) fn get() -> Result<Arc<PrivateDir>, ExecError> {
        static CURRENT: Mutex<Weak<PrivateDir>> = Mutex::new(Weak::new());
        let mut current = CURRENT
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(dir) = current.upgrade() {
            return Ok(dir);
        }
        let root = root();
        let dir = PrivateDir::create(&root)
            .map(Arc::new)
            .map_err(|source| ExecError::System {
                what: format!("making a private directory in {}", root.display()),
                source,
            })?;
        *current = Arc::downgrade(&dir);
        Ok(dir)
    }

    fn create(root: &Path) -> io::Result<PrivateDir> {
        remove_stale(root);
        let path = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(root)?
            .keep();
        // Others may pass through to what they are told of, but not list it.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711))?;
        // Locked before it has its name: an unlocked one would look left behind.
        let lock = File::create(path.join("lock.new"))?;
        lock.lock()?;
        fs::rename(path.join("lock.new"), path.join("lock"))?;
        let dir = PrivateDir {
            path,
            _lock: lock,
            names: AtomicU64::new(0),
        };
        dir.unpack("launcher", LAUNCHER)?;
        dir.unpack("ddfuzz-runtime.so", RUNTIME)?;
        Ok(dir)
    }

    /// Writes an executable file, once.
    pub(crate) fn unpack(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        if path.exists() {
            return Ok(path);
        }
        // Under another name first: a second thread must not execute half a file.
        let half = self.fresh("unpacking");
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(&half)?;
        file.write_all(bytes)?;
        drop(file);
        fs::rename(&half, &path)?;
        Ok(path)
    }

    /// Path of the launcher.
    pub(crate) fn launcher(&self) -> PathBuf {
        self.path.join("launcher")
    }

    /// Path of the runtime that is injected.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.path.join("ddfuzz-runtime.so")
    }

    /// A path in it that was never given before.
    pub(crate) fn fresh(&self, what: &str) -> PathBuf {
        self.path.join(format!(
            "{what}-{}",
            self.names.fetch_add(1, Ordering::Relaxed)
        ))
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// tmpfs where programs may be executed, else the usual place for temporary files.
fn root() -> PathBuf {
    let shared = PathBuf::from("/dev/shm");
    let usable = statvfs(&shared).is_ok_and(|facts| !facts.flags().contains(FsFlags::ST_NOEXEC))
        && tempfile::tempfile_in(&shared).is_ok();
    if usable { shared } else { std::env::temp_dir() }
}

/// Removes the directories of processes that are gone.
fn remove_stale(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // No lock file: made this moment by another ddfuzz, or not ours.
        let Ok(lock) = File::open(entry.path().join("lock")) else {
            continue;
        };
        if lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
