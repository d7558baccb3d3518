//! How an input reaches the target: a memory file on stdin, or a file on tmpfs for `@@`.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{Whence, lseek};

/// A new anonymous memory file.
pub(crate) fn memory_file(name: &CStr) -> nix::Result<OwnedFd> {
    memfd_create(name, MFdFlags::MFD_CLOEXEC)
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
        let writer = File::from(memory_file(c"ddfuzz-input")?);
        let stdin = reopen_read_only(&writer)?;
        Ok(Input {
            writer,
            stdin,
            length: 0,
            path: None,
        })
    }

    /// An input in a new file at `path`; stdin is empty.
    pub(crate) fn in_file(path: &Path) -> io::Result<Input> {
        let writer = OpenOptions::new().write(true).create_new(true).open(path)?;
        let empty = File::from(memory_file(c"ddfuzz-empty")?);
        let stdin = reopen_read_only(&empty)?;
        Ok(Input {
            writer,
            stdin,
            length: 0,
            path: Some(path.to_owned()),
        })
    }

    /// Makes `bytes` the input of the next run.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all_at(bytes, 0)?;
        if bytes.len() as u64 != self.length {
            self.writer.set_len(bytes.len() as u64)?;
            self.length = bytes.len() as u64;
        }
        Ok(())
    }

    /// What the server puts on the target's stdin.
    pub(crate) fn stdin(&self) -> &File {
        &self.stdin
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
            let _ = std::fs::remove_file(path);
        }
    }
}

fn reopen_read_only(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
