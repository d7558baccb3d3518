//! The page of memory shared with a server while a run is under way.

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

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

    /// The last request that the server, or a child of its, has taken.
    pub(crate) fn started(&self) -> u64 {
        // SAFETY: the page starts with a 64-bit word that only whole stores change.
        unsafe { &*self.at.as_ptr().cast::<AtomicU64>() }.load(Ordering::Acquire)
    }

    /// Whether the last run had descendants.
    pub(crate) fn forked(&self) -> bool {
        self.half(20) != 0
    }

    /// Of what signal a descendant died whose end the target has taken; `None` where nobody
    /// knows of one.
    pub(crate) fn crashed(&self) -> Option<i32> {
        let signal = self.half(24);
        super::Ended::Signal(signal)
            .is_crash(None)
            .then_some(signal)
    }

    /// The 32-bit word at this offset.
    fn half(&self, offset: usize) -> i32 {
        // SAFETY: the offset is that of an aligned word of `struct page`, which only whole stores
        // change.
        unsafe { &*self.at.as_ptr().byte_add(offset).cast::<AtomicI32>() }.load(Ordering::Acquire)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped in `create` with this size, and not used after this.
        let _ = unsafe { munmap(self.at, SIZE.get()) };
    }
}
