//! Whether a file was read, told by its time of last access.

use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether ddfuzz can tell by a file's time of last access if the file was read: not tried yet,
/// possible, or impossible.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accesses {
    /// ddfuzz has not set the file's time of last access yet.
    Untried,
    /// ddfuzz has set the file's time of last access, and each later reading changes that time.
    Recorded,
    /// The file system does not record when files are read.
    Unrecorded,
}

/// The time of last access that marks a file as unread: 1970, before every change of a file.
const NEVER: TimeSpec = TimeSpec::new(0, 0);

/// Sets the time of last access of `file` to a fixed one; a later change of it shows that the file
/// was read. Returns false if the time cannot be set.
pub(crate) fn set_unread(file: &File) -> bool {
    futimens(file, &NEVER, &TimeSpec::UTIME_OMIT).is_ok()
}

impl Accesses {
    /// Sets the time of last access of `file` to that of a file that was never read, so that a
    /// later reading can be noticed. Returns whether the file system tells readings in this way;
    /// the first call tries that out by reading the file at `path` itself.
    pub(crate) fn forget(self, file: &File, path: &Path) -> Accesses {
        let set = || set_unread(file);
        if self == Accesses::Unrecorded || !set() {
            return Accesses::Unrecorded;
        }
        if self == Accesses::Untried {
            let read = File::open(path).and_then(|mut file| file.read(&mut [0]));
            if read.is_err() || Accesses::Recorded.show_none(file) || !set() {
                return Accesses::Unrecorded;
            }
        }
        Accesses::Recorded
    }

    /// Returns true if `file` was certainly not read since [`forget`](Accesses::forget) marked it
    /// as unread; false if it was read, or if its time of last access does not tell.
    pub(crate) fn show_none(self, file: &File) -> bool {
        let accessed = file
            .metadata()
            .map(|facts| (facts.atime(), facts.atime_nsec()));
        self == Accesses::Recorded && accessed.is_ok_and(|at| at == (0, 0))
    }
}
