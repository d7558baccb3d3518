//! The regular files that a traced process has open, and their offsets, which its forks share.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::unistd::{Pid, Whence, lseek};

/// Duplicates of the regular files that a process has open, with the offset of each. A process and
/// its forks share offsets, so they are set back before each test.
#[derive(Default)]
pub struct OpenFiles {
    regular: Vec<(OwnedFd, i64)>,
    /// Number of sockets that the process has open.
    pub sockets: usize,
}

impl OpenFiles {
    /// Duplicates the files of the process `pid`; `handle` is its pidfd.
    pub fn of(pid: Pid, handle: &OwnedFd) -> OpenFiles {
        let mut files = OpenFiles::default();
        let folder = std::fs::read_dir(format!("/proc/{pid}/fd"));
        for entry in folder.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(number) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            if target.to_string_lossy().starts_with("socket:") {
                files.sockets += 1;
            }
            // SAFETY: the call takes numbers and gives a new descriptor or an error.
            let copy =
                unsafe { libc::syscall(libc::SYS_pidfd_getfd, handle.as_raw_fd(), number, 0) };
            if copy < 0 {
                continue;
            }
            // SAFETY: the descriptor is new and owned by nobody else.
            let copy = unsafe { OwnedFd::from_raw_fd(copy as i32) };
            if let Ok(offset) = lseek(&copy, 0, Whence::SeekCur) {
                files.regular.push((copy, offset));
            }
        }
        files
    }

    /// Seeks all files back to the offsets that they had when they were duplicated.
    pub fn seek_back(&self) {
        for (file, offset) in &self.regular {
            // A file that cannot be sought was not recorded.
            let _ = lseek(file, *offset, Whence::SeekSet);
        }
    }
}
