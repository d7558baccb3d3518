//! Memory shared with other processes.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU64};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// The beginning of a memory file, mapped. Others may change it at any time: what is read of it is
/// read by atomic loads, and what is written is for others.
pub(crate) struct Mapping {
    at: NonNull<libc::c_void>,
    size: NonZeroUsize,
}

// SAFETY: the mapping belongs to this value alone, and is read by atomic loads only.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `size` bytes of a file that is as long, and that nobody can shorten (`keep_length`).
    pub(crate) fn shared(file: &File, size: usize) -> io::Result<Mapping> {
        let size = NonZeroUsize::new(size).ok_or(io::ErrorKind::InvalidInput)?;
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh shared mapping at an address of the kernel's choice.
        let at = unsafe { mmap(None, size, both, MapFlags::MAP_SHARED, file.as_fd(), 0)? };
        Ok(Mapping { at, size })
    }

    /// The 64-bit word of this number.
    pub(crate) fn word(&self, number: usize) -> &AtomicU64 {
        assert!(number < self.size.get() / 8, "beyond the mapping");
        // SAFETY: within the mapping, as was just asserted, and aligned, for a mapping begins at
        // a page.
        unsafe { &*self.at.as_ptr().cast::<AtomicU64>().add(number) }
    }

    /// The 32-bit word of this number.
    pub(crate) fn half(&self, number: usize) -> &AtomicI32 {
        assert!(number < self.size.get() / 4, "beyond the mapping");
        // SAFETY: as for whole words.
        unsafe { &*self.at.as_ptr().cast::<AtomicI32>().add(number) }
    }

    /// Writes `bytes` at `offset`.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset.checked_add(bytes.len());
        assert!(
            end.is_some_and(|end| end <= self.size.get()),
            "beyond the mapping"
        );
        // SAFETY: within the mapping, as was just asserted; `bytes` are elsewhere, for nobody
        // else has a reference into the mapping.
        unsafe {
            let to = self.at.as_ptr().cast::<u8>().add(offset);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }
}

/// Nobody can shorten the file from here on, which would make an access to its mapping deadly.
pub(crate) fn keep_length(file: &File) -> io::Result<()> {
    let seal = FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK);
    Ok(fcntl(file, seal).map(drop)?)
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `shared` with this size, and not used after this.
        let _ = unsafe { munmap(self.at, self.size.get()) };
    }
}
