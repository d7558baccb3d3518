//! Replaces a folder by another one in a single step.

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::unistd::syncfs;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::files::atomic::TEMPORARY_PREFIX;
use crate::files::{FileError, folder};

/// A temporary folder that is filled next to the folder it will replace. If it is dropped before it
/// has replaced that folder, it is removed. If the process is killed, the next process that stages
/// a folder for the same path removes it.
#[derive(Debug)]
pub struct StagedFolder {
    place: PathBuf,
    at: PathBuf,
    taken: bool,
}

impl StagedFolder {
    /// Creates an empty temporary folder next to `place`, the path of the folder that it will
    /// replace, on the same file system.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn beside(place: &Path) -> Result<StagedFolder, FileError> {
        let parent = folder::parent(place);
        folder::create_all(parent)?;
        let mut name = std::ffi::OsString::from(TEMPORARY_PREFIX);
        name.push(place.file_name().unwrap_or_default());
        let at = parent.join(name);
        // Left behind by a killed process; it contains only copies.
        match fs::remove_dir_all(&at) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FileError::at("remove", &at)(error));
            }
            _ => {}
        }
        fs::create_dir(&at).map_err(FileError::at("make the folder", &at))?;
        Ok(StagedFolder {
            place: place.to_owned(),
            at,
            taken: false,
        })
    }

    /// Returns the path of the temporary folder; it is valid until this folder is moved to its
    /// final place.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Writes a file into the temporary folder, and creates missing parents of the file.
    ///
    /// # Errors
    /// If the file cannot be written or exists already.
    pub fn add(&self, name: &Path, bytes: &[u8]) -> Result<(), FileError> {
        let path = self.place_of(name)?;
        let mut file = File::create_new(&path).map_err(FileError::at("write", &path))?;
        file.write_all(bytes).map_err(FileError::at("write", &path))
    }

    /// Writes a file into the temporary folder, like [`StagedFolder::add`], and gives it the
    /// permissions `mode` once it is complete; before, only its owner can read it.
    ///
    /// # Errors
    /// If the file cannot be written or exists already.
    pub fn add_with_mode(&self, name: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
        let path = self.place_of(name)?;
        let mut options = File::options();
        let options = options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(&path).map_err(FileError::at("write", &path))?;
        let written = file.write_all(bytes);
        written
            .and_then(|()| file.set_permissions(fs::Permissions::from_mode(mode)))
            .map_err(FileError::at("write", &path))
    }

    /// Creates the file `name` in the temporary folder as a hard link to the file at `from`, and
    /// creates missing parents of `name`. Returns false, and changes nothing, if this is not
    /// possible, as on file systems without hard links.
    pub fn link(&self, name: &Path, from: &Path) -> bool {
        let linked = |path: PathBuf| fs::hard_link(from, path).is_ok();
        self.place_of(name).is_ok_and(linked)
    }

    /// Gives the temporary folder the owner, group and mode of the folder that it will replace. A
    /// subfolder gets those of the old subfolder at the same path or, if there is none, those of
    /// the old folder; files get the owner and group of the old folder. If this process may not set
    /// an owner or group, it stays as it is.
    ///
    /// # Errors
    /// If a folder cannot be read or its mode cannot be set.
    pub fn take_owner_and_mode(&self) -> Result<(), FileError> {
        let whole = fs::metadata(&self.place).map_err(FileError::at("look at", &self.place))?;
        let mut folders = vec![PathBuf::new()];
        while let Some(below) = folders.pop() {
            let to = self.at.join(&below);
            for entry in fs::read_dir(&to).map_err(FileError::at("list", &to))? {
                let entry = entry.map_err(FileError::at("list", &to))?;
                match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    true => folders.push(below.join(entry.file_name())),
                    false => take_owner(&entry.path(), &whole),
                }
            }
            let from = fs::metadata(self.place.join(&below));
            let from = from.ok().filter(fs::Metadata::is_dir);
            let from = from.as_ref().unwrap_or(&whole);
            take_owner(&to, from);
            // After the owner, whose change may clear bits of the mode.
            fs::set_permissions(&to, from.permissions())
                .map_err(FileError::at("set the mode of", &to))?;
        }
        Ok(())
    }

    /// Returns the path of the file `name` in this temporary folder, and creates the missing
    /// folders above the file.
    fn place_of(&self, name: &Path) -> Result<PathBuf, FileError> {
        let path = self.at.join(name);
        let parent = folder::parent(&path);
        if parent != self.at {
            fs::create_dir_all(parent).map_err(FileError::at("make", &path))?;
        }
        Ok(path)
    }

    /// Moves the temporary folder to the path of the folder that it replaces. That folder, if there
    /// is one, is moved to `aside`, which must not exist. At every moment one of the two folders is
    /// at the path. Returns true if a folder was replaced, false if there was none.
    ///
    /// # Errors
    /// If a step fails; what is at the path is then unchanged, unless only the sync of the parent
    /// folder, the last step, has failed.
    pub fn take_place(mut self, aside: &Path) -> Result<bool, FileError> {
        self.sync()?;
        let parent = folder::parent(&self.place);
        if self.place.symlink_metadata().is_err() {
            rename(&self.at, &self.place, RenameFlags::RENAME_NOREPLACE)?;
            self.taken = true;
            folder::sync(parent)?;
            return Ok(false);
        }
        // First moved to `aside`, so that the exchange is the last step.
        rename(&self.at, aside, RenameFlags::RENAME_NOREPLACE)?;
        self.at = aside.to_owned();
        rename(&self.at, &self.place, RenameFlags::RENAME_EXCHANGE)?;
        self.taken = true;
        folder::sync(parent)?;
        Ok(true)
    }

    /// Writes all changed data of the file system of the temporary folder through to the device,
    /// which is faster than a sync for each file.
    fn sync(&self) -> Result<(), FileError> {
        let at = || FileError::at("write through to the device", &self.at);
        let folder = File::open(&self.at).map_err(at())?;
        syncfs(folder).map_err(|errno| at()(errno.into()))
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        if !self.taken {
            // It contains only copies; the next one removes what remains.
            let _ = fs::remove_dir_all(&self.at);
        }
    }
}

/// Gives the file or folder at `path` the owner and group in `from`, or only the group if this
/// process may not set the owner. Errors are ignored.
fn take_owner(path: &Path, from: &fs::Metadata) {
    let is = fs::symlink_metadata(path).map(|is| (is.uid(), is.gid()));
    if is.is_ok_and(|is| is != (from.uid(), from.gid())) {
        let both = lchown(path, Some(from.uid()), Some(from.gid()));
        let _ = both.or_else(|_| lchown(path, None, Some(from.gid())));
    }
}

fn rename(from: &Path, to: &Path, how: RenameFlags) -> Result<(), FileError> {
    renameat2(AT_FDCWD, from, AT_FDCWD, to, how)
        .map_err(|errno| FileError::at("move a folder to", to)(errno.into()))
}
