//! A directory for inputs that lives as long as its user.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

const PREFIX: &str = "ddfuzz-corpus-";
/// Held locked by its user, and so free when that was killed.
const LOCK: &str = "lock";
const INPUTS: &str = "inputs";

/// A directory for inputs, empty at first; removed when it is dropped. One that a killed ddfuzz
/// left behind is removed by the next.
pub struct Scratch {
    inputs: PathBuf,
    // Removed while it is still locked.
    _dir: TempDir,
    _lock: File,
}

impl Scratch {
    /// Makes one where temporary files go.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> io::Result<Scratch> {
        Scratch::within(&std::env::temp_dir())
    }

    /// Makes one in this directory.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn within(root: &Path) -> io::Result<Scratch> {
        remove_stale(root);
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(root)?;
        // Locked before it has its name: an unlocked one would look left behind.
        let lock = File::create(dir.path().join("lock.new"))?;
        lock.lock()?;
        std::fs::rename(dir.path().join("lock.new"), dir.path().join(LOCK))?;
        let inputs = dir.path().join(INPUTS);
        std::fs::create_dir(&inputs)?;
        Ok(Scratch {
            inputs,
            _dir: dir,
            _lock: lock,
        })
    }

    /// Where the inputs are.
    pub fn path(&self) -> &Path {
        &self.inputs
    }
}

fn remove_stale(root: &Path) {
    let us = nix::unistd::geteuid().as_raw();
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        // Others may put here what they like.
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry
                .metadata()
                .is_ok_and(|facts| facts.is_dir() && facts.uid() == us);
        let lock = entry.path().join(LOCK);
        // No lock file: made this moment by another ddfuzz, or not ours.
        if is_ours
            && lock.symlink_metadata().is_ok_and(|facts| facts.is_file())
            && File::open(lock).is_ok_and(|lock| lock.try_lock().is_ok())
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_ddfuzz_left_is_removed_and_what_is_in_use_is_not() {
        let root = tempfile::tempdir().unwrap();
        let left = root.path().join("ddfuzz-corpus-left");
        std::fs::create_dir_all(left.join(INPUTS)).unwrap();
        std::fs::write(left.join(LOCK), "").unwrap();
        let one = Scratch::within(root.path()).unwrap();
        let other = Scratch::within(root.path()).unwrap();
        assert!(!left.exists() && one.path().is_dir() && other.path().is_dir());
        drop((one, other));
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
