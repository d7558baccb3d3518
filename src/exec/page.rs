//! The page of memory shared with a server while a run is under way.

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::Pid;

/// Size of the page, in bytes.
const SIZE: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// Our view of `struct page` of `runtime/protocol.h`.
pub(crate) struct Page {
    at: NonNull<libc::c_void>,
}

// SAFETY: the mapping belongs to this value alone and is read by atomic loads.
unsafe impl Send for Page {}

impl Page {
    /// Makes the memory file and maps it. The file is handed to the server.
    pub(crate) fn create() -> nix::Result<(Page, File)> {
        let file = File::from(super::input::memory_file(c"ddfuzz-page")?);
        nix::unistd::ftruncate(&file, SIZE.get() as i64)?;
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh shared mapping of a file that is as long as the mapping.
        let at = unsafe { mmap(None, SIZE, both, MapFlags::MAP_SHARED, file.as_fd(), 0)? };
        Ok((Page { at }, file))
    }

    /// The process that runs the input now, if any.
    pub(crate) fn running(&self) -> Option<Pid> {
        // SAFETY: the page starts with a 32-bit word that only whole stores change.
        let pid = unsafe { &*self.at.as_ptr().cast::<std::sync::atomic::AtomicU32>() }
            .load(std::sync::atomic::Ordering::Acquire);
        (pid != 0).then(|| Pid::from_raw(pid.cast_signed()))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped in `create` with this size, and not used after this.
        let _ = unsafe { munmap(self.at, SIZE.get()) };
    }
}
