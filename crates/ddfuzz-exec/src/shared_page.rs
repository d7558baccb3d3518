//! The memory that ddfuzz shares with a server while a run is under way.

use crate::refusals::RefusalReason;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::unistd::Pid;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::{
    fs::File, io, num::NonZeroUsize, os::fd::AsFd, os::unix::fs::FileExt, ptr::NonNull,
    time::Duration,
};

/// Offset, in bytes, of the table of inputs in the memory shared with a fork server
/// (`runtime/protocol.h`).
const ENTRIES: usize = 4096;
/// Size, in bytes, of an entry in the table of inputs of the memory shared with a fork server.
const ENTRY: usize = 40;
/// Offset, in bytes, in the memory shared with a fork server, of the hit-count ranges that earlier
/// runs have reached; the slots for coverage counters follow them.
const COUNTERS: usize = ENTRIES + ENTRY * MOST_INPUTS;

/// Maximum number of inputs in one request to a fork server that runs many inputs in one process.
pub(crate) const MOST_INPUTS: usize = 1024;
/// Number of slots in the memory shared with a fork server, each for the coverage counters of one
/// run. A request ends early when all are used.
const SLOTS: usize = 128;

/// The layout of the memory shared with a fork server: one page, or a page and tables for many
/// inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageLayout {
    /// One page of shared memory, for fork servers that make one run per request.
    Single,
    /// A page and tables in shared memory, for fork servers that make many runs per request in one
    /// process.
    Loop {
        /// Number of coverage counters of the target, for which the tables have room.
        counters: usize,
    },
}

impl PageLayout {
    fn size(self) -> usize {
        match self {
            PageLayout::Single => ENTRIES,
            PageLayout::Loop { counters: 0 } => COUNTERS,
            PageLayout::Loop { counters } => COUNTERS + (1 + SLOTS) * stride(counters),
        }
    }

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

/// Memory that ddfuzz shares with a fork server: the Rust side of `struct page` in
/// `runtime/protocol.h`, and of the tables that follow it.
pub(crate) struct Page {
    pub(crate) file: File,
    header: Mapping,
    pub(crate) layout: PageLayout,
}

impl Page {
    /// Creates the memory file that is shared with a fork server, and maps its first page. What
    /// follows the page is read and written as a file, so that a target that changes the file's
    /// length causes an error, not a crash of ddfuzz.
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

    /// Returns the number of the last run that the fork server has begun.
    pub(crate) fn started(&self) -> u64 {
        self.header.word(0).load(Ordering::Acquire)
    }

    /// Whether the target has started other processes in the last run.
    pub(crate) fn forked(&self) -> bool {
        self.header.half(5).load(Ordering::Acquire) != 0
    }

    /// Returns the signal by which a child process of the target crashed, as the target has seen it
    /// by waiting for the child (`wait`); `None` if no such child has crashed.
    pub(crate) fn crashed(&self) -> Option<i32> {
        let signal = self.header.half(6).load(Ordering::Acquire);
        crate::Ended::Signal(signal)
            .is_crash(None)
            .then_some(signal)
    }

    /// Returns the id of the process that runs many inputs, in that process's own PID namespace.
    pub(crate) fn child(&self) -> Pid {
        Pid::from_raw(self.header.half(7).load(Ordering::Acquire))
    }

    /// Returns why the process that runs many inputs has refused the last run, which a fork of the
    /// server has made; `None` if it has not.
    pub(crate) fn refused(&self) -> Option<RefusalReason> {
        let reason = self.header.half(10).load(Ordering::Acquire);
        (reason != 0).then_some(RefusalReason::from_number(reason))
    }

    /// Returns the address of the coverage counters in the process that runs many inputs; `None`
    /// without counters.
    pub(crate) fn counters_at(&self) -> Option<usize> {
        let at = self.header.word(4).load(Ordering::Acquire);
        usize::try_from(at).ok().filter(|at| *at != 0)
    }

    /// Writes the offsets and lengths, in bytes, of the inputs of the next request to the fork
    /// server.
    pub(crate) fn put_inputs(&self, places: &[(u64, u64)]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(places.len() * ENTRY);
        for (offset, length) in places {
            bytes.extend_from_slice(&offset.to_ne_bytes());
            bytes.extend_from_slice(&length.to_ne_bytes());
            bytes.extend_from_slice(&[0; ENTRY - 16]);
        }
        self.file.write_all_at(&bytes, ENTRIES as u64)
    }

    /// Reads from the shared memory how the runs on the first `count` inputs of the last request
    /// ended.
    pub(crate) fn outcomes(&self, count: usize) -> io::Result<Vec<RunOutcome>> {
        let mut bytes = vec![0; count.min(MOST_INPUTS) * ENTRY];
        self.file.read_exact_at(&mut bytes, ENTRIES as u64)?;
        let word = |entry: &[u8], at: usize| {
            u32::from_ne_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
        };
        let long = |entry: &[u8], at: usize| {
            u64::from(word(entry, at)) | u64::from(word(entry, at + 4)) << 32
        };
        let outcome = |entry: &[u8]| RunOutcome {
            status: word(entry, 16).cast_signed(),
            slot: CounterSlot(word(entry, 20)),
            cpu: Duration::from_micros(long(entry, 24)),
            stack_depth: long(entry, 32).checked_sub(1),
        };
        Ok(bytes.chunks_exact(ENTRY).map(outcome).collect())
    }

    /// Prepares to read the coverage counters of the runs whose results are `outcomes`.
    pub(crate) fn kept(&self, outcomes: &[RunOutcome]) -> KeptCounters<'_> {
        let slots = outcomes.iter().map(|outcome| outcome.slot.number());
        KeptCounters {
            page: self,
            last: slots.max().unwrap_or(0),
            first: 0,
            bytes: Vec::new(),
        }
    }

    /// Tells the fork server which hit-count ranges of the coverage counters earlier runs have
    /// reached, one byte per counter.
    pub(crate) fn set_reached(&self, reached: &[u8]) -> io::Result<()> {
        let known = &reached[..reached.len().min(self.layout.counters())];
        self.file.write_all_at(known, COUNTERS as u64)
    }
}

/// How one of many runs in a process ended, as the fork server writes it to the shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOutcome {
    /// How the run ended, as a process status of `wait(2)`.
    pub(crate) status: i32,
    /// The slot of the shared memory that holds the coverage counters of the run.
    pub(crate) slot: CounterSlot,
    /// CPU time of the run; zero if it was not measured for the run.
    pub(crate) cpu: Duration,
    /// Bytes of stack that the instrumented code of the run has used; `None` if unknown.
    pub(crate) stack_depth: Option<u64>,
}

/// Number of a slot of the shared memory that holds the coverage counters of one run; 0 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterSlot(u32);

impl CounterSlot {
    /// Returns the number of the slot; 0 for none, and for a number that no slot has.
    fn number(self) -> usize {
        let number = usize::try_from(self.0).unwrap_or(0);
        if number > SLOTS { 0 } else { number }
    }
}

/// Number of bytes of slots that are read at once, if so many are in use.
const AT_ONCE: usize = 64 << 10;

/// Reads the slots of the shared memory that hold the coverage counters of the runs of a request,
/// many at a time.
pub(crate) struct KeptCounters<'a> {
    page: &'a Page,
    /// Number of the last slot in use.
    last: usize,
    /// Number of the first slot that was read, from 1.
    first: usize,
    /// The bytes of the slots that were read.
    bytes: Vec<u8>,
}

impl KeptCounters<'_> {
    /// Returns the coverage counters in a slot; `None` for an empty slot.
    pub(crate) fn get(&mut self, slot: CounterSlot) -> Option<&[u8]> {
        let (number, counters) = (slot.number(), self.page.layout.counters());
        let one = stride(counters);
        if number == 0 || number > self.last || one == 0 {
            return None;
        }
        if number < self.first || (number - self.first) * one >= self.bytes.len() {
            let count = (AT_ONCE / one).clamp(1, self.last + 1 - number);
            self.bytes.resize(count * one, 0);
            self.first = number;
            let at = (COUNTERS + number * one) as u64;
            if self.page.file.read_exact_at(&mut self.bytes, at).is_err() {
                self.bytes.clear();
                return None;
            }
        }
        let from = (number - self.first) * one;
        self.bytes.get(from..from + counters)
    }
}

/// The beginning of a memory file, mapped into ddfuzz. Other processes may change it at any time,
/// so it is read by atomic loads only.
#[derive(Debug)]
pub(crate) struct Mapping {
    at: NonNull<libc::c_void>,
    size: NonZeroUsize,
}

// SAFETY: the mapping belongs to this value alone, and is read by atomic loads only.
unsafe impl Send for Mapping {}
// SAFETY: the loads are atomic, and what writes has the mapping to itself.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `size` bytes of a file, which must be sealed against shrinking below that
    /// size (`keep_length`), into ddfuzz's memory; returns the mapping.
    pub(crate) fn shared(file: &File, size: usize) -> io::Result<Mapping> {
        let size = NonZeroUsize::new(size).ok_or(io::ErrorKind::InvalidInput)?;
        let both = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh shared mapping at an address of the kernel's choice.
        let at = unsafe { mmap(None, size, both, MapFlags::MAP_SHARED, file.as_fd(), 0)? };
        Ok(Mapping { at, size })
    }

    /// Returns the 64-bit word at index `number` of the mapping.
    pub(crate) fn word(&self, number: usize) -> &AtomicU64 {
        assert!(number < self.size.get() / 8, "beyond the mapping");
        // SAFETY: within the mapping, as was just asserted, and aligned, for a mapping begins at
        // a page.
        unsafe { &*self.at.as_ptr().cast::<AtomicU64>().add(number) }
    }

    /// Returns the 32-bit word of the shared memory with the index `number`, counted in words of 32
    /// bits.
    pub(crate) fn half(&self, number: usize) -> &AtomicI32 {
        assert!(number < self.size.get() / 4, "beyond the mapping");
        // SAFETY: as for whole words.
        unsafe { &*self.at.as_ptr().cast::<AtomicI32>().add(number) }
    }

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

/// Seals a memory file against shrinking: access to a mapping beyond the end of its file raises
/// SIGBUS.
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
        let mut bytes = [1; 128 + 100];
        page.file
            .read_exact_at(&mut bytes, COUNTERS as u64)
            .unwrap();
        assert_eq!(bytes[..100], [7; 100]);
        assert_eq!(bytes[100..], [0; 128]);
    }

    #[test]
    fn counters_are_read_from_their_slots_in_any_order() {
        const COUNT: usize = 3000;
        let page = Page::create(PageLayout::Loop { counters: COUNT }).unwrap();
        for slot in 1..=SLOTS {
            let at = COUNTERS + slot * stride(COUNT);
            page.file
                .write_all_at(&[slot as u8; COUNT], at as u64)
                .unwrap();
        }
        let outcomes: Vec<RunOutcome> = (0..=40)
            .map(|slot| RunOutcome {
                status: 0,
                slot: CounterSlot(slot),
                cpu: Duration::ZERO,
                stack_depth: None,
            })
            .collect();
        let mut kept = page.kept(&outcomes);
        for slot in [1, 2, 30, 40, 3, 3] {
            assert_eq!(kept.get(CounterSlot(slot)), Some(&[slot as u8; COUNT][..]));
        }
        for none in [0, 41, SLOTS as u32 + 1, u32::MAX] {
            assert_eq!(kept.get(CounterSlot(none)), None);
        }
    }

    #[test]
    fn what_a_target_does_to_the_page_does_no_harm() {
        let page = Page::create(PageLayout::Loop { counters: 100 }).unwrap();
        page.put_inputs(&[(0, 5)]).unwrap();
        assert_eq!(page.outcomes(1).unwrap().len(), 1);
        assert!(page.file.set_len(0).is_err());
        assert!(page.outcomes(usize::MAX).is_ok());
        let nonsense = RunOutcome {
            slot: CounterSlot(u32::MAX),
            ..page.outcomes(1).unwrap()[0]
        };
        assert_eq!(page.kept(&[nonsense]).get(nonsense.slot), None);
    }
}
