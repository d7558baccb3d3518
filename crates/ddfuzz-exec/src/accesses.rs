//! Whether a file was read, told by its time of last access.

use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether the time of a file's last access tells if it was read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accesses {
    /// The time was not set.
    Unasked,
    /// The time was set, and each later reading changes it.
    Told,
    /// The file system does not record when files are read.
    Untold,
}

/// The time of last access of a file that was not read yet: older than all changes of files.
const NEVER: TimeSpec = TimeSpec::new(0, 0);

/// Sets the time of the last access of a file so that [`Accesses::show_none`] holds until it is read;
/// returns false where that fails.
pub(crate) fn set_unread(file: &File) -> bool {
    futimens(file, &NEVER, &TimeSpec::UTIME_OMIT).is_ok()
}

impl Accesses {
    /// Sets the time of the last access of a file; at first, tests by a reading of ddfuzz's own
    /// whether the next one changes it.
    pub(crate) fn forget(self, file: &File, path: &Path) -> Accesses {
        let set = || set_unread(file);
        if self == Accesses::Untold || !set() {
            return Accesses::Untold;
        }
        if self == Accesses::Unasked {
            let read = File::open(path).and_then(|mut file| file.read(&mut [0]));
            if read.is_err() || Accesses::Told.show_none(file) || !set() {
                return Accesses::Untold;
            }
        }
        Accesses::Told
    }

    /// Whether the file was certainly not read since its time of last access was set.
    pub(crate) fn show_none(self, file: &File) -> bool {
        let accessed = file
            .metadata()
            .map(|facts| (facts.atime(), facts.atime_nsec()));
        self == Accesses::Told && accessed.is_ok_and(|at| at == (0, 0))
    }
}
