//! A process whose modules are looked at: one that lives, or one that has left a copy.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::unistd::Pid;

use super::maps::Mapping;

/// A process whose modules are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The process of this stopped thread.
    Live(Pid),
    /// One that is gone.
    Copied {
        /// Address of the program's entry point.
        entry: u64,
        /// Device and inode of the program.
        executable: (u64, u64),
    },
}

impl Source {
    /// Device and inode of what the process executes.
    pub(crate) fn executable(&self) -> Option<(u64, u64)> {
        match self {
            Source::Live(tid) => {
                let facts = std::fs::metadata(format!("/proc/{tid}/exe")).ok()?;
                Some((facts.dev(), facts.ino()))
            }
            Source::Copied { executable, .. } => Some(*executable),
        }
    }

    /// Address of the program's entry point, which the kernel names in the auxiliary vector.
    pub(crate) fn entry(&self) -> Option<u64> {
        const AT_ENTRY: u64 = 9;
        let tid = match self {
            Source::Live(tid) => tid,
            Source::Copied { entry, .. } => return Some(*entry),
        };
        let vector = std::fs::read(format!("/proc/{tid}/auxv")).ok()?;
        vector.chunks_exact(16).find_map(|pair| {
            let (tag, value) = pair.split_at(8);
            let tag = u64::from_le_bytes(tag.try_into().ok()?);
            (tag == AT_ENTRY).then_some(u64::from_le_bytes(value.try_into().ok()?))
        })
    }

    /// Where the kernel still keeps the file of a mapping whose path may be another's by now.
    pub(crate) fn kept(&self, mapping: &Mapping, is_main: bool) -> Option<PathBuf> {
        let Source::Live(tid) = self else {
            return None;
        };
        Some(PathBuf::from(if is_main {
            format!("/proc/{tid}/exe")
        } else {
            let (start, end) = (mapping.start, mapping.end);
            format!("/proc/{tid}/map_files/{start:x}-{end:x}")
        }))
    }
}
