//! A target's working directory, emptied after each run that left something in it.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::dir::Dir;

use super::identity::Identity;

/// A scratch directory.
pub(crate) struct Scratch {
    path: PathBuf,
    listing: Dir,
}

impl Scratch {
    /// Makes the directory `path`, owned by whom the target runs as.
    pub(crate) fn create(path: &Path, owner: Option<Identity>) -> std::io::Result<Scratch> {
        fs::create_dir(path)?;
        if let Some(owner) = owner {
            std::os::unix::fs::chown(path, Some(owner.uid), Some(owner.gid))?;
        }
        let listing = Dir::from_fd(OwnedFd::from(fs::File::open(path)?))?;
        Ok(Scratch {
            path: path.to_owned(),
            listing,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes whatever a run left behind. For a run that left nothing this costs two calls.
    pub(crate) fn clean(&mut self) {
        let left = self
            .listing
            .iter()
            .flatten()
            .any(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."));
        if !left {
            return;
        }
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open_up(&path);
                let _ = fs::remove_dir_all(&path);
            } else {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

/// Gives back the permissions that a target took away, so that its directories can be removed.
fn open_up(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.clean();
        let _ = fs::remove_dir(&self.path);
    }
}
