//! How an input reaches the target: a memory file on stdin, or a file on tmpfs for `@@`.

use std::ffi::CStr;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{Whence, lseek};

use super::scratch;

/// Everybody may read a named input, whatever our umask: the target may be another user.
const MODE: u32 = 0o644;

/// A new anonymous memory file.
pub(crate) fn memory_file(name: &CStr) -> nix::Result<OwnedFd> {
    memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)
}

/// The input as the target sees it. Written again for each run, never replaced, so that a fork
/// server can hold it open.
pub(crate) struct Input {
    writer: File,
    /// What stands on the target's stdin: its own read-only opening of the memory file, so that
    /// a target that writes to its stdin fails as it does elsewhere.
    stdin: File,
    length: u64,
    /// Where the input is a named file.
    path: Option<PathBuf>,
}

impl Input {
    /// An input on stdin.
    pub(crate) fn on_stdin() -> io::Result<Input> {
        let (writer, stdin) = read_only_file(c"ddfuzz-input")?;
        Ok(Input {
            writer,
            stdin,
            length: 0,
            path: None,
        })
    }

    /// An input in a new file at `path`; stdin is empty.
    pub(crate) fn in_file(path: &Path) -> io::Result<Input> {
        let (_, stdin) = read_only_file(c"ddfuzz-empty")?;
        Ok(Input {
            writer: create(path)?,
            stdin,
            length: 0,
            path: Some(path.to_owned()),
        })
    }

    /// Makes `bytes` the input of the next run.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(path) = &self.path {
            // The target may own the file: it may have changed, moved or removed it.
            if !is_at(&self.writer, path) {
                scratch::remove(path);
                self.writer = create(path)?;
            }
            self.length = self.writer.metadata()?.len();
        }
        self.writer.write_all_at(bytes, 0)?;
        if bytes.len() as u64 != self.length {
            self.writer.set_len(bytes.len() as u64)?;
            self.length = bytes.len() as u64;
        }
        Ok(())
    }

    /// Lets go of the files, which somebody may still hold open, for new ones.
    pub(crate) fn renew(&mut self) -> io::Result<()> {
        *self = match self.path.take() {
            None => Input::on_stdin()?,
            Some(path) => {
                scratch::remove(&path);
                Input::in_file(&path)?
            }
        };
        Ok(())
    }

    /// The last run may have changed the input: one that runs as root can, whatever its mode.
    pub(crate) fn distrust(&mut self) -> io::Result<()> {
        self.length = self.writer.metadata()?.len();
        Ok(())
    }

    /// What the server puts on the target's stdin.
    pub(crate) fn stdin(&self) -> &File {
        &self.stdin
    }

    /// Lets the next run read its stdin from the beginning, where no server of ours does that:
    /// the target shares this opening's offset.
    pub(crate) fn rewind(&self) -> io::Result<()> {
        lseek(&self.stdin, 0, Whence::SeekSet)?;
        Ok(())
    }

    /// How far the last run read its stdin, in bytes; `None` for a named file.
    pub(crate) fn read_so_far(&self) -> Option<u64> {
        if self.path.is_some() {
            return None;
        }
        let at = lseek(&self.stdin, 0, Whence::SeekCur).ok()?;
        Some(u64::try_from(at).ok()?.min(self.length))
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            scratch::remove(path);
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.set_permissions(Permissions::from_mode(MODE))?;
    Ok(file)
}

/// Whether `path` still names this file, readable as it was made.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(ours), Ok(named)) => {
            (ours.dev(), ours.ino()) == (named.dev(), named.ino()) && ours.mode() & 0o7777 == MODE
        }
        _ => false,
    }
}

/// A memory file to write, and its opening to read. Nobody can open it for writing again by
/// /dev/stdin: a memory file is born writable for everybody.
pub(crate) fn read_only_file(name: &CStr) -> io::Result<(File, File)> {
    let writer = File::from(memory_file(name)?);
    writer.set_permissions(Permissions::from_mode(0o444))?;
    let reader = File::open(format!("/proc/self/fd/{}", writer.as_raw_fd()))?;
    Ok((writer, reader))
}

#[cfg(test)]
mod tests {
    use super::super::private_dir::PrivateDir;
    use super::*;

    #[test]
    fn a_named_input_that_the_target_spoiled_is_whole_for_the_next_run() {
        let private = PrivateDir::get().unwrap();
        let (path, other) = (private.fresh("test"), private.fresh("test"));
        let mut input = Input::in_file(&path).unwrap();
        type Spoil<'a> = &'a dyn Fn();
        let spoils: [Spoil; 5] = [
            &|| std::fs::write(&path, "longer than it was").unwrap(),
            &|| std::fs::remove_file(&path).unwrap(),
            &|| std::fs::rename(&path, &other).unwrap(),
            &|| std::fs::set_permissions(&path, Permissions::from_mode(0o0)).unwrap(),
            &|| {
                std::fs::remove_file(&path).unwrap();
                std::fs::create_dir(&path).unwrap();
            },
        ];
        for spoil in spoils {
            input.write(b"four").unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"four");
            spoil();
        }
        input.write(b"four").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"four");
        drop(input);
        assert!(!path.exists());
    }

    #[test]
    fn who_holds_a_renewed_input_sees_nothing_of_the_next_one() {
        let private = PrivateDir::get().unwrap();
        let path = private.fresh("test");
        for mut input in [Input::on_stdin().unwrap(), Input::in_file(&path).unwrap()] {
            input.write(b"first").unwrap();
            let held = match input.path {
                Some(_) => File::open(&path).unwrap(),
                None => input.stdin.try_clone().unwrap(),
            };
            input.renew().unwrap();
            input.write(b"another").unwrap();
            assert_eq!(std::io::read_to_string(held).unwrap(), "first");
            assert_eq!(input.length, 7);
        }
    }

    #[test]
    fn the_input_on_stdin_cannot_be_opened_for_writing() {
        let input = Input::on_stdin().unwrap();
        let mode = input.stdin.metadata().unwrap().mode();
        assert_eq!(mode & 0o222, 0);
    }
}
