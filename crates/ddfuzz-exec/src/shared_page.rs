//! The memory that ddfuzz shares with a server while a run is under way.

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// `runtime/protocol.h`: where the entries of a loop begin, how long each is, and where what all
/// runs have reached begins.
const ENTRIES: usize = 4096;
const ENTRY: usize = 32;
const COUNTERS: usize = 8192;

/// Inputs of one request to a loop, at most.
pub(crate) const MOST_INPUTS: usize = 128;

/// The layout of the shared memory: the page alone, or with the tables of a loop after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageLayout {
    /// One run a request.
    Single,
    /// Many runs a request, of a target with this many counters.
    Loop {
        /// Bytes.
        counters: usize,
    },
}

impl PageLayout {
    fn size(self) -> usize {
        match self {
            PageLayout::Single => ENTRIES,
            PageLayout::Loop { counters: 0 } => COUNTERS,
            PageLayout::Loop { counters } => COUNTERS + (1 + MOST_INPUTS) * stride(counters),
        }
    }

    /// How many counters there are.
    pub(crate) fn counters(self) -> usize {
        match self {
            PageLayout::Single => 0,
            PageLayout::Loop { counters } => counters,
        }
    }
}

fn stride(counters: usize) -> usize {
    counters.next_multiple_of(64)
}

/// Our view of `struct page` of `runtime/protocol.h`, and of the tables after it.
pub(crate) struct Page {
    file: File,
    header: Mapping,
    layout: PageLayout,
}

impl Page {
    /// Makes the memory file and maps its beginning. The rest is read and written as a file, so
    /// that whatever the target does to its contents or length is an error here.
    pub(crate) fn create(layout: PageLayout) -> io::Result<Page> {
        let file = File::from(crate::input::memory_file(c"ddfuzz-page")?);
        file.set_len(layout.size() as u64)?;
        keep_length(&file)?;
        let header = Mapping::shared(&file, ENTRIES)?;
        Ok(Page {
            file,
            header,
            layout,
        })
    }

    /// The file, for the server.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Its layout.
    pub(crate) fn layout(&self) -> PageLayout {
        self.layout
    }

    /// The last run that the server, or a child of its, has taken.
    pub(crate) fn started(&self) -> u64 {
        self.header.word(0).load(Ordering::Acquire)
    }

    /// Whether the last run had descendants.
    pub(crate) fn forked(&self) -> bool {
        self.header.half(5).load(Ordering::Acquire) != 0
    }

    /// The signal that a descendant died of, where the target has collected its status; `None` where
    /// none is known.
    pub(crate) fn crashed(&self) -> Option<i32> {
        let signal = self.header.half(6).load(Ordering::Acquire);
        crate::Ended::Signal(signal)
            .is_crash(None)
            .then_some(signal)
    }

    /// In a loop: the process that runs the inputs, by its id in its own namespace.
    pub(crate) fn child(&self) -> Pid {
        Pid::from_raw(self.header.half(7).load(Ordering::Acquire))
    }

    /// In a loop: where in that process the counters are; `None` where there are none.
    pub(crate) fn counters_at(&self) -> Option<usize> {
        let at = self.header.word(4).load(Ordering::Acquire);
        usize::try_from(at).ok().filter(|at| *at != 0)
    }

    /// Writes offsets and lengths of the inputs of the next request.
    pub(crate) fn put_inputs(&self, places: &[(u64, u64)]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(places.len() * ENTRY);
        for (offset, length) in places {
            bytes.extend_from_slice(&offset.to_ne_bytes());
            bytes.extend_from_slice(&length.to_ne_bytes());
            bytes.extend_from_slice(&[0; ENTRY - 16]);
        }
        self.file.write_all_at(&bytes, ENTRIES as u64)
    }

    /// The outcomes of the first `count` inputs of a request.
    pub(crate) fn outcomes(&self, count: usize) -> io::Result<Vec<RunOutcome>> {
        let mut bytes = vec![0; count.min(MOST_INPUTS) * ENTRY];
        self.file.read_exact_at(&mut bytes, ENTRIES as u64)?;
        let word = |entry: &[u8], at: usize| {
            u32::from_ne_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
        };
        let outcome = |entry: &[u8]| RunOutcome {
            status: word(entry, 16).cast_signed(),
            slot: CounterSlot(word(entry, 20)),
            cpu: Duration::from_micros(
                u64::from(word(entry, 24)) | u64::from(word(entry, 28)) << 32,
            ),
        };
        Ok(bytes.chunks_exact(ENTRY).map(outcome).collect())
    }

    /// The counters that were kept in a slot; `None` where none were.
    pub(crate) fn kept(&self, slot: CounterSlot) -> Option<Vec<u8>> {
        let number = usize::try_from(slot.0).ok()?;
        if number == 0 || number > MOST_INPUTS {
            return None;
        }
        self.read_counters(COUNTERS + number * stride(self.layout.counters()))
    }

    fn read_counters(&self, at: usize) -> Option<Vec<u8>> {
        let mut counters = vec![0; self.layout.counters()];
        self.file.read_exact_at(&mut counters, at as u64).ok()?;
        Some(counters)
    }

    /// Writes what earlier runs have reached, a byte for each counter, for the runs from here on.
    pub(crate) fn set_reached(&self, reached: &[u8]) -> io::Result<()> {
        let known = &reached[..reached.len().min(self.layout.counters())];
        self.file.write_all_at(known, COUNTERS as u64)
    }
}

/// The outcome of one run of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOutcome {
    /// Its status as wait(2) gives it.
    pub(crate) status: i32,
    /// Where its counters are kept.
    pub(crate) slot: CounterSlot,
    /// Its CPU time; zero where it was not measured.
    pub(crate) cpu: Duration,
}

/// Where the counters of a run are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterSlot(u32);

/// The mapped beginning of a memory file. Others may change it at any time, so it is read by atomic
/// loads only.
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

/// Seals the length of a file: an access to the mapping of a shortened file is deadly.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reached_is_no_longer_than_there_are_counters() {
        let page = Page::create(PageLayout::Loop { counters: 100 }).unwrap();
        page.set_reached(&[7; 300]).unwrap();
        assert_eq!(page.read_counters(COUNTERS).unwrap(), [7; 100]);
        assert_eq!(page.read_counters(COUNTERS + 128).unwrap(), [0; 100]);
    }

    #[test]
    fn what_a_target_does_to_the_page_does_no_harm() {
        let page = Page::create(PageLayout::Loop { counters: 100 }).unwrap();
        page.put_inputs(&[(0, 5)]).unwrap();
        assert_eq!(page.outcomes(1).unwrap().len(), 1);
        assert!(page.file.set_len(0).is_err());
        assert!(page.outcomes(usize::MAX).is_ok());
        for nonsense in [0, 129, u32::MAX] {
            assert_eq!(page.kept(CounterSlot(nonsense)), None);
        }
    }
}
