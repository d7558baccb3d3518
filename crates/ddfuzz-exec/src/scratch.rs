//! A target's working directory, emptied after each run, and the directory of its sanitizer's
//! reports.

use nix::NixPath;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat, renameat};
use nix::sys::stat::{Mode, fchmod, fstat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fs::{File, OpenOptions, Permissions};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{ffi::CString, ffi::OsString, fs, io, io::Read};

use crate::prepared_target::Identity;

const MODE: u32 = 0o755;
/// Prefix of the names that nested directories get while they are moved to the top directory to be
/// deleted.
const MOVED: &str = ".ddfuzz-moved-";

/// A target's scratch directory: its working directory, which is emptied after runs.
pub(crate) struct Scratch {
    path: PathBuf,
    owner: Option<Identity>,
    listing: Dir,
    /// The directory that the target's sandbox has mounted at the path of the scratch directory,
    /// opened; `None` without such a mount.
    inside: Option<Dir>,
}

/// Minimum age of the last change of a directory at which the next change certainly gets a later
/// time: the kernel's clock for files goes in steps of up to 10 ms.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// The time of the last change of a working directory: of its entries or its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastChange {
    seconds: i64,
    nanos: i64,
}

impl LastChange {
    /// Returns true if this change is at least 20 ms old. The kernel's clock for files goes in
    /// steps of up to 10 ms, so the next change of the directory then certainly gets a later time
    /// stamp.
    pub(crate) fn is_past(self) -> bool {
        let at = u64::try_from(self.seconds)
            .ok()
            .zip(u32::try_from(self.nanos).ok());
        let at = at.map(|(seconds, nanos)| UNIX_EPOCH + Duration::new(seconds, nanos));
        at.and_then(|at| at.elapsed().ok())
            .is_some_and(|age| age >= CLOCK_STEP)
    }
}

/// Whether a target's working directory was replaced when it was emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cleaned {
    /// The target's working directory is the same as before it was emptied.
    Same,
    /// The target had removed its working directory, and a new one was created.
    Replaced,
}

impl Scratch {
    /// Creates the target's working directory at `path`, owned by the target's user `owner`.
    pub(crate) fn create(path: &Path, owner: Option<Identity>) -> io::Result<Scratch> {
        Ok(Scratch {
            path: path.to_owned(),
            owner,
            listing: make(path, owner)?,
            inside: None,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Stores `inside`, the opened directory that the sandbox of a new fork server has mounted at
    /// the path of the working directory; `None` without such a mount. Fails when the directory
    /// cannot be listed.
    pub(crate) fn enter(&mut self, inside: Option<OwnedFd>) -> io::Result<()> {
        self.inside = inside.map(Dir::from_fd).transpose()?;
        Ok(())
    }

    /// Returns the time of the working directory's last change; `None` if the system does not tell.
    pub(crate) fn last_change(&self) -> Option<LastChange> {
        let facts = fstat(self.inside.as_ref().unwrap_or(&self.listing)).ok()?;
        Some(LastChange {
            seconds: facts.st_ctime,
            nanos: facts.st_ctime_nsec,
        })
    }

    /// Deletes all files that a run has left in the working directory, or creates a new directory
    /// if the target has removed it; the result says which of the two was done. For an empty
    /// directory this takes three system calls. Fails when no new directory can be created.
    pub(crate) fn clean(&mut self) -> io::Result<Cleaned> {
        let listing = self.inside.as_mut().unwrap_or(&mut self.listing);
        let facts = fstat(&*listing).map_err(io::Error::from)?;
        if facts.st_nlink == 0 {
            self.replace()?;
            return Ok(Cleaned::Replaced);
        }
        if facts.st_mode & 0o7777 != MODE {
            // Allowed for the owner, and for root if the target is the owner.
            let _ = fchmod(&*listing, Mode::from_bits_truncate(MODE));
        }
        if has_entries(listing)
            && let Ok(top) = open_directory(&*listing, ".")
        {
            empty(top);
        }
        Ok(Cleaned::Same)
    }

    /// Whether the target's working directory is empty.
    pub(crate) fn is_empty(&mut self) -> bool {
        !has_entries(self.inside.as_mut().unwrap_or(&mut self.listing))
    }

    /// Replaces the scratch directory by an empty one at the same path. Processes still running in
    /// the old one do not see the new one. Fails when no other directory can be created.
    pub(crate) fn renew(&mut self) -> io::Result<()> {
        let old = self.path.with_extension("old");
        let _ = fs::rename(&self.path, &old);
        self.inside = None;
        self.replace()?;
        remove(&old);
        Ok(())
    }

    /// Creates the scratch directory again, at the same path, after a target has removed it.
    fn replace(&mut self) -> io::Result<()> {
        // The target may have put a file in its place.
        remove(&self.path);
        if let Some(above) = self.path.parent() {
            fs::create_dir_all(above)?;
        }
        self.listing = make(&self.path, self.owner)?;
        Ok(())
    }
}

fn has_entries(listing: &mut Dir) -> bool {
    let mut entries = listing.iter().flatten();
    entries.any(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."))
}

fn make(path: &Path, owner: Option<Identity>) -> io::Result<Dir> {
    fs::create_dir(path)?;
    fs::set_permissions(path, Permissions::from_mode(MODE))?; // whatever the umask
    if let Some(owner) = owner {
        std::os::unix::fs::chown(path, Some(owner.uid), Some(owner.gid))?;
    }
    Ok(Dir::from_fd(OwnedFd::from(fs::File::open(path)?))?)
}

/// Deletes the file, link or whole directory that a target has made at `path`. The folders above it
/// must not be under the target's control: a symbolic link at `path` is not followed, but a link
/// among the folders would be. Errors are ignored.
pub(crate) fn remove(path: &Path) {
    if let Ok(dir) = open_directory(AT_FDCWD, path) {
        empty(dir);
        let _ = fs::remove_dir(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

/// Maximum number of levels of nested directories that are deleted at once. A process that still
/// makes files would otherwise be followed without end.
const DEEPEST: usize = 1 << 17;

/// Maximum number of names that are read of a directory at a time, and of new names that are tried
/// for one file.
const MOST_ENTRIES: usize = 1 << 16;

/// Empties the directory `top`. Nesting may exceed what descriptors, stack or path lengths allow,
/// so the directories below are first moved to `top`, one level after the other. Processes of the
/// target may replace a directory by a link at any time, so every name is looked up in an opened
/// directory, and no link is followed. Errors are ignored.
fn empty(mut top: Dir) {
    let mut moved: u64 = 0;
    for _ in 0..DEEPEST {
        let mut removed = 0;
        for name in entries(&mut top) {
            let gone = unlinkat(&top, name.as_c_str(), UnlinkatFlags::NoRemoveDir).or_else(|_| {
                if let Ok(mut dir) = open_directory(&top, name.as_c_str()) {
                    removed += move_up(&mut dir, &top, &mut moved);
                }
                unlinkat(&top, name.as_c_str(), UnlinkatFlags::RemoveDir)
            });
            removed += usize::from(gone.is_ok());
        }
        if removed == 0 {
            return; // it is empty, or holds what we may not remove
        }
    }
}

/// Moves the directories in `from` to `top` under new names, which `moved` counts, and deletes the
/// files in `from`. Returns the number of files that it has deleted.
fn move_up(from: &mut Dir, top: &Dir, moved: &mut u64) -> usize {
    let mut removed = 0;
    for entry in entries(from) {
        let entry = entry.as_c_str();
        if unlinkat(&*from, entry, UnlinkatFlags::NoRemoveDir).is_ok() {
            removed += 1;
            continue;
        }
        // Moving a directory needs write permission in it, which opening it restores.
        if open_directory(&*from, entry).is_err() {
            continue;
        }
        for _ in 0..MOST_ENTRIES {
            let renamed = renameat(&*from, entry, top, name(*moved).as_os_str());
            *moved += 1;
            if !renamed.is_err_and(is_taken) {
                break;
            }
        }
    }
    removed
}

/// Returns the names in an opened directory, up to [`MOST_ENTRIES`].
fn entries(dir: &mut Dir) -> Vec<CString> {
    let entries = dir.iter().map_while(Result::ok);
    let names = entries.map(|it| it.file_name().to_owned());
    let own = names.filter(|name| !matches!(name.to_bytes(), b"." | b".."));
    own.take(MOST_ENTRIES).collect()
}

/// Opens the directory `name` in the directory `at`, and gives its owner back the permissions that
/// a target has removed. Fails for anything other than a directory, and so for links.
fn open_directory<N: NixPath + ?Sized>(at: impl AsFd, name: &N) -> nix::Result<Dir> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let opened = openat(&at, name, flags | OFlag::O_RDONLY, Mode::empty()).or_else(|error| {
        if error != Errno::EACCES {
            return Err(error);
        }
        let closed = openat(&at, name, flags | OFlag::O_PATH, Mode::empty())?;
        let path = format!("/proc/self/fd/{}", closed.as_raw_fd());
        let _ = fs::set_permissions(path, Permissions::from_mode(0o700));
        openat(&closed, ".", flags | OFlag::O_RDONLY, Mode::empty())
    })?;
    if fstat(&opened)?.st_mode & 0o700 != 0o700 {
        let _ = fchmod(&opened, Mode::S_IRWXU);
    }
    Dir::from_fd(opened)
}

fn name(number: u64) -> OsString {
    format!("{MOVED}{number}").into()
}

/// Whether `error`, the error of a rename, says that the new name exists already, because the
/// target has used it.
fn is_taken(error: Errno) -> bool {
    matches!(error, Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Maximum number of bytes read from a sanitizer's report.
const READ: u64 = 1 << 16;
/// Beginning of the names of sanitizer report files, before the process id.
const NAME: &str = "report";
/// Maximum number of files that are looked at in the directory of sanitizer reports.
const MOST: usize = 256;

/// A directory for sanitizer reports, emptied after each run. A fork server reads the path when it
/// starts; the sanitizer appends its process id, so that each run writes its own file.
pub(crate) struct Reports(Scratch);

impl Reports {
    /// Creates the directory for sanitizer reports at `path`, in which the target's user can write.
    pub(crate) fn create(path: &Path, owner: Option<Identity>) -> io::Result<Reports> {
        Ok(Reports(Scratch::create(path, owner)?))
    }

    /// Returns the value of the sanitizer option `log_path`, by which reports are written to this
    /// directory.
    pub(crate) fn log_path(&self) -> PathBuf {
        self.0.path().join(NAME)
    }

    /// Returns the first 64 KiB of a run's oldest sanitizer report: later reports are by parent
    /// processes that failed because of the first failure. A file without a report, in which a
    /// runtime has logged something else, is returned only if no other file has one. Complete once
    /// all processes of the run have ended; empty if there is no file.
    pub fn read(&self) -> Vec<u8> {
        let entries = std::fs::read_dir(self.0.path()).into_iter().flatten();
        let files = entries.flatten().take(MOST).filter_map(|entry| {
            let facts = entry.metadata().ok().filter(|facts| facts.len() > 0)?;
            let changed = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            facts.is_file().then(|| (changed, entry.path()))
        });
        let mut files: Vec<(SystemTime, PathBuf)> = files.collect();
        files.sort();
        let mut oldest = None;
        for text in files.iter().filter_map(|(_, path)| read(path).ok()) {
            if holds_report(&text) {
                return text;
            }
            oldest = oldest.or(Some(text));
        }
        oldest.unwrap_or_default()
    }

    pub(crate) fn clear(&mut self) {
        // If the target has removed the directory and no other can be created, there are no
        // reports.
        let _ = self.0.clean();
    }
}

/// Words that stand in the first line of each kind of sanitizer report, and not in what a runtime
/// logs beside reports (`WARNING: found 5 unrecognized flag(s)`).
const REPORT_WORDS: [&[u8]; 6] = [
    b"ERROR: ",
    b"FATAL: ",
    b"CHECK failed",
    b"WARNING: MemorySanitizer",
    b"WARNING: ThreadSanitizer",
    b"runtime error: ",
];

/// Whether the text that a sanitizer's runtime has written contains a report.
fn holds_report(text: &[u8]) -> bool {
    let has = |words: &&[u8]| memchr::memmem::find(text, words).is_some();
    REPORT_WORDS.iter().any(has)
}

/// Reads the first 64 KiB of a file that a target has written; fails or returns nothing if it is
/// not a regular file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(READ).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_dir::PrivateDir;
    use nix::fcntl::{RenameFlags, renameat2};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn what_still_runs_in_a_renewed_directory_leaves_nothing_there() {
        let private = PrivateDir::get().unwrap();
        let mut scratch = Scratch::create(&private.fresh("test"), None).unwrap();
        fs::write(scratch.path().join("file"), "x").unwrap();
        // A process holds its working directory like this.
        let old = fs::File::open(scratch.path()).unwrap();
        scratch.renew().unwrap();
        let late = format!("/proc/self/fd/{}/late", old.as_raw_fd());
        fs::write(late, "x").unwrap_err();
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn directories_nested_beyond_any_path_are_removed() {
        let private = PrivateDir::get().unwrap();
        let mut scratch = Scratch::create(&private.fresh("test"), None).unwrap();
        // Built from the bottom up, so that no path gets too long.
        let (top, other) = (scratch.path().join("d"), scratch.path().join("e"));
        fs::create_dir(&top).unwrap();
        for _ in 0..3000 {
            fs::create_dir(&other).unwrap();
            fs::rename(&top, other.join("d")).unwrap();
            fs::rename(&other, &top).unwrap();
        }
        fs::write(top.join("file"), "x").unwrap();
        fs::write(scratch.path().join(name(0)), "in the way").unwrap();
        assert_eq!(scratch.clean().unwrap(), Cleaned::Same);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn links_that_take_the_place_of_directories_are_not_followed() {
        let private = PrivateDir::get().unwrap();
        let victim = tempfile::tempdir().unwrap();
        fs::write(victim.path().join("precious"), "x").unwrap();
        fs::set_permissions(victim.path(), Permissions::from_mode(0o750)).unwrap();
        let mut scratch = Scratch::create(&private.fresh("test"), None).unwrap();
        let (path, link) = (scratch.path().join("d"), private.fresh("link"));
        std::os::unix::fs::symlink(victim.path(), &link).unwrap();
        open_directory(AT_FDCWD, &link).unwrap_err();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // What a process of the target that is still there can do.
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _ = fs::remove_dir(&link);
                    let _ = std::os::unix::fs::symlink(victim.path(), &link);
                    let flags = RenameFlags::RENAME_EXCHANGE;
                    let _ = renameat2(AT_FDCWD, &path, AT_FDCWD, &link, flags);
                }
            });
            for _ in 0..5000 {
                let _ = fs::create_dir(&path);
                scratch.clean().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        remove(&link);
        assert!(victim.path().join("precious").is_file());
        let mode = fs::metadata(victim.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
    }

    #[test]
    fn a_removed_directory_is_made_again_and_a_closed_one_opened() {
        let private = PrivateDir::get().unwrap();
        let mut scratch = Scratch::create(&private.fresh("test"), None).unwrap();
        fs::remove_dir(scratch.path()).unwrap();
        fs::write(scratch.path(), "in its place").unwrap();
        assert_eq!(scratch.clean().unwrap(), Cleaned::Replaced);
        fs::create_dir(scratch.path().join("inside")).unwrap();
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o0)).unwrap();
        assert_eq!(scratch.clean().unwrap(), Cleaned::Same);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn of_several_reports_the_first_is_read_and_links_are_not_followed() {
        let private = PrivateDir::get().unwrap();
        let mut reports = Reports::create(&private.fresh("test"), None).unwrap();
        assert_eq!(reports.read(), b"");
        let log = reports.log_path();
        let of = |id: u32| format!("{}.{id}", log.display());
        std::os::unix::fs::symlink("/proc/self/environ", of(1)).unwrap();
        for (id, text, second) in [(2, "later", 20), (3, "first", 10), (4, "", 5)] {
            std::fs::write(of(id), text).unwrap();
            let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second);
            File::options()
                .append(true)
                .open(of(id))
                .unwrap()
                .set_modified(at)
                .unwrap();
        }
        assert_eq!(reports.read(), b"first");
        // Not what the parent of all runs has logged when it started.
        let report = b"==2==ERROR: AddressSanitizer: heap-buffer-overflow";
        std::fs::write(of(2), report).unwrap();
        assert_eq!(reports.read(), report);
        std::fs::write(of(3), vec![b'x'; 1 << 20]).unwrap();
        std::fs::remove_file(of(2)).unwrap();
        assert_eq!(reports.read().len(), 1 << 16);
        reports.clear();
        assert_eq!(reports.read(), b"");
    }
}
