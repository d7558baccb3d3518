//! File systems of our own: in memory, small, or read-only.

use std::ffi::CString;
use std::io;
use std::path::Path;

use crate::needs;

/// A temporary directory, in memory where the machine has such a place: for tests that sync
/// thousands of files.
pub fn fast_tempdir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// Runs `test` with a file system of its own on `folder`: a tmpfs with these mount options, in a
/// mount namespace that ends with the test. Where the machine does not permit mounting, the test
/// is skipped.
pub fn with_tmpfs(folder: &Path, options: &str, test: impl FnOnce(&Mount<'_>) + Send) {
    std::thread::scope(|scope| {
        // In a thread, because the namespace is the thread's.
        let tested = scope.spawn(|| match Mount::new(folder, options) {
            Ok(mount) => test(&mount),
            Err(error) => needs::missing("mounting", &error.to_string()),
        });
        if let Err(panic) = tested.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// A tmpfs that only this thread sees.
pub struct Mount<'a> {
    folder: &'a Path,
}

impl Mount<'_> {
    fn new<'a>(folder: &'a Path, options: &str) -> io::Result<Mount<'a>> {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS)?;
        mount(None, Path::new("/"), libc::MS_REC | libc::MS_PRIVATE, "")?;
        mount(Some("tmpfs"), folder, 0, options)?;
        Ok(Mount { folder })
    }

    /// Mounts it again, read-only.
    pub fn make_read_only(&self) {
        mount(
            Some("tmpfs"),
            self.folder,
            libc::MS_REMOUNT | libc::MS_RDONLY,
            "",
        )
        .unwrap();
    }
}

fn mount(kind: Option<&str>, folder: &Path, flags: libc::c_ulong, options: &str) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let kind = CString::new(kind.unwrap_or("none"))?;
    let folder = CString::new(folder.as_os_str().as_bytes())?;
    let options = CString::new(options)?;
    // SAFETY: all pointers are to strings that end with NUL and outlive the call.
    let answer = unsafe {
        libc::mount(
            kind.as_ptr(),
            folder.as_ptr(),
            kind.as_ptr(),
            flags,
            options.as_ptr().cast(),
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
