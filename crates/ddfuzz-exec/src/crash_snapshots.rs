//! The memory to which a crashing process writes snapshots of itself (`runtime/snapshot.h`).

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs::File, io, os::unix::fs::FileExt, sync::Arc};

use nix::errno::Errno;
use nix::unistd::{Whence, lseek64};

use crate::launch::{Inject, Launch, Role};
use crate::{
    ExecError, Target, Way, input::memory_file, prepared_target::PreparedTarget,
    shared_page::Mapping, shared_page::keep_length, ways,
};

/// The number with which the shared memory for crash snapshots begins (`SNAPSHOT_MAGIC` of
/// `runtime/snapshot.h`).
const MAGIC: u32 = 0x4444_6370;
/// Size in bytes of the header of the shared memory for crash snapshots; the snapshots follow it.
const HEAD: u64 = 4096;
/// Index, in words of 64 bits, of the number in the header of the shared memory that says how many
/// crash snapshots were taken.
const TAKEN: usize = 1;
/// Number of crash snapshots that the shared memory can hold, each in a slot.
const SLOTS: u64 = 4;
/// Size in bytes of a slot of the shared memory, which holds one crash snapshot.
const SLOT: u64 = 2 << 20;

/// Shared memory to which a crashing target process writes snapshots of itself, those of one run at
/// a time. The target can write to it at any time, so its content is untrusted.
#[derive(Debug)]
pub struct CrashSnapshots {
    file: File,
    /// The header of the shared memory.
    head: Mapping,
    /// Number of crash snapshots that the target had taken, by the count in the shared memory, when
    /// ddfuzz last cleared them.
    cleared: AtomicU64,
}

impl CrashSnapshots {
    /// Creates the memory file for crash snapshots, a bit larger than 8 MiB. A slot takes one page
    /// of memory until a snapshot is written to it. Fails when the memory file cannot be created,
    /// written or sealed.
    pub(crate) fn create() -> io::Result<CrashSnapshots> {
        let file = File::from(memory_file(c"ddfuzz-copies")?);
        file.set_len(HEAD + SLOTS * SLOT)?;
        keep_length(&file)?;
        let copies = CrashSnapshots {
            head: Mapping::shared(&file, HEAD as usize)?,
            cleared: AtomicU64::new(0),
            file,
        };
        copies.clear()?;
        Ok(copies)
    }

    /// Copies the crash snapshots of the last run to memory of their own, which no target changes.
    ///
    /// # Errors
    /// When the memory file cannot be created or written.
    pub fn copy(&self) -> io::Result<CrashSnapshots> {
        let copy = CrashSnapshots::create()?;
        self.copy_data(0..HEAD, &copy)?;
        for slot in 0..SLOTS {
            let at = HEAD + slot * SLOT;
            if self.word(at) != 0 {
                self.copy_data(at..at + SLOT, &copy)?;
            }
        }
        Ok(copy)
    }

    /// Copies the bytes of the shared memory in the offsets `range` to the same offsets of the file
    /// `copy`. Skips memory that was never written, since it is zero in both; most of the memory
    /// for a snapshot is never written.
    fn copy_data(&self, range: Range<u64>, copy: &CrashSnapshots) -> io::Result<()> {
        let mut at = range.start;
        while let Some(data) = self
            .next(at, Whence::SeekData)?
            .filter(|at| *at < range.end)
        {
            let hole = self.next(data, Whence::SeekHole)?;
            at = hole.unwrap_or(range.end).min(range.end);
            let mut bytes = vec![0; usize::try_from(at - data).unwrap_or(usize::MAX)];
            self.file.read_exact_at(&mut bytes, data)?;
            copy.file.write_all_at(&bytes, data)?;
        }
        Ok(())
    }

    /// Returns the first offset from `at` on where the shared memory has data (`what` is
    /// `SeekData`) or a hole that was never written (`SeekHole`), as `lseek` does; `None` if there
    /// is none before its end.
    fn next(&self, at: u64, what: Whence) -> io::Result<Option<u64>> {
        let at = i64::try_from(at).map_err(io::Error::other)?;
        match lseek64(&self.file, at, what) {
            Ok(at) => Ok(Some(at.cast_unsigned())),
            Err(Errno::ENXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Clears all crash snapshots and resets the header of their memory, before another process of
    /// the target is started.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let mut head = [0; 32];
        head[..4].copy_from_slice(&MAGIC.to_ne_bytes());
        self.file.write_all_at(&head, 0)?;
        self.cleared.store(0, Ordering::Relaxed);
        self.forget()
    }

    /// Clears all crash snapshots if the target has taken one since they were last cleared; a
    /// process that survives its crash signal takes one, too. Otherwise makes no system call.
    pub(crate) fn forget_new(&self) -> io::Result<()> {
        let taken = self.head.word(TAKEN).load(Ordering::Relaxed);
        if self.cleared.swap(taken, Ordering::Relaxed) == taken {
            return Ok(());
        }
        self.forget()
    }

    /// Clears all crash snapshots, but not the header of their memory.
    pub(crate) fn forget(&self) -> io::Result<()> {
        for slot in 0..SLOTS {
            self.file.write_all_at(&[0; 8], HEAD + slot * SLOT)?;
        }
        Ok(())
    }

    /// Returns true if the processes of the last run could write snapshots of crashes: the
    /// preloaded library was set up before `main`. False if the run ended before.
    pub fn ready(&self) -> bool {
        self.word(0) >> 32 != 0
    }

    /// Returns device and inode of the program file that the first process of the last run
    /// executed, as that process wrote them to the memory for crash snapshots.
    pub fn target(&self) -> (u64, u64) {
        (self.word(16), self.word(24))
    }

    /// Returns the number of slots, each for one crash snapshot.
    pub fn slots(&self) -> u64 {
        SLOTS
    }

    /// Reads crash snapshot number `slot`, from byte offset `at`, into `buffer`; returns the number
    /// of bytes read, 0 if the offset or the slot does not exist.
    pub fn read(&self, slot: u64, at: u64, buffer: &mut [u8]) -> usize {
        if slot >= SLOTS || at >= SLOT {
            return 0;
        }
        let room = usize::try_from(SLOT - at).unwrap_or(usize::MAX);
        let length = buffer.len().min(room);
        let read = self
            .file
            .read_exact_at(&mut buffer[..length], HEAD + slot * SLOT + at);
        read.map_or(0, |()| length)
    }

    fn word(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        let read = self.file.read_exact_at(&mut word, at);
        read.map_or(0, |()| u64::from_ne_bytes(word))
    }
}

/// How the fork server of a tracer starts runs: by `execve`, by fork, or with snapshots of crashes
/// instead of tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerMode {
    /// The fork server executes the program anew for each run, which a tracer follows.
    Executing,
    /// The fork server loads the program once and forks it at its `main` for each run.
    Forking,
    /// The fork server executes the program for each run, with the preloaded library that takes
    /// crash snapshots.
    Copying,
}

/// Prepares a launch of the target, by the method of execution `way`, in which it takes a snapshot
/// of itself when it crashes. Returns the launch and the memory for the snapshots; `None` if no
/// library can be preloaded. For a script, the library is preloaded into the interpreter.
pub(crate) fn copying(
    prepared: &PreparedTarget,
    target: &Target,
    way: Way,
) -> Result<Option<(Launch, Arc<CrashSnapshots>)>, ExecError> {
    if prepared.facts.is_some() && ways::not_injectable(prepared).is_some() {
        return Ok(None);
    }
    let inject = match way {
        Way::Harness => Inject::Once(ways::harness_entry(prepared)?),
        Way::Command | Way::Inject | Way::Snapshot | Way::Forkserver | Way::Mock => Inject::Pass,
    };
    let mut launch = prepared.launch(target, Role::Trace, Some(inject));
    let copies = launch.leave_snapshots()?;
    Ok(Some((launch, copies)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snapshot_of_a_process_that_its_run_has_survived_is_cleared_before_the_next_run() {
        let copies = CrashSnapshots::create().unwrap();
        let number = || {
            let mut number = [0; 8];
            assert_eq!(copies.read(0, 0, &mut number), 8);
            u64::from_ne_bytes(number)
        };
        let take = || {
            copies.head.word(TAKEN).fetch_add(1, Ordering::Relaxed);
            copies.file.write_all_at(&[1; 8], HEAD).unwrap();
        };
        take();
        copies.forget_new().unwrap();
        assert_eq!(number(), 0);
        take();
        copies.clear().unwrap();
        take();
        copies.forget_new().unwrap();
        assert_eq!(number(), 0, "the first of another process");
    }

    #[test]
    fn what_a_target_writes_is_read_within_its_slot() {
        let copies = CrashSnapshots::create().unwrap();
        assert!(!copies.ready());
        copies.file.write_all_at(&[7; 16], HEAD + SLOT - 8).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(copies.read(0, SLOT - 8, &mut buffer), 8);
        assert_eq!(copies.read(0, SLOT, &mut buffer), 0);
        assert_eq!(copies.read(0, u64::MAX, &mut buffer), 0);
        assert_eq!(copies.read(SLOTS, 0, &mut buffer), 0);
        copies.clear().unwrap();
        assert_eq!(copies.read(1, 0, &mut buffer), 16);
    }

    #[test]
    fn a_copy_stays_when_another_run_clears_the_snapshots() {
        let copies = CrashSnapshots::create().unwrap();
        copies.file.write_all_at(&[5; 64], HEAD + SLOT).unwrap();
        copies.file.write_all_at(&[1; 24], 8).unwrap();
        copies
            .file
            .write_all_at(&[6; 9], HEAD + 2 * SLOT - 9)
            .unwrap();
        let copy = copies.copy().unwrap();
        let (target, ready) = (copies.target(), copies.ready());
        copies.clear().unwrap();
        let mut buffer = [0; 64];
        assert_eq!(copy.read(1, 0, &mut buffer), 64);
        assert_eq!(buffer, [5; 64]);
        assert_eq!(copy.read(1, SLOT - 10, &mut buffer), 10);
        assert_eq!(buffer[..10], [0, 6, 6, 6, 6, 6, 6, 6, 6, 6]);
        assert_eq!((copy.target(), copy.ready()), (target, ready));
        assert_eq!(copy.read(0, 0, &mut buffer), 64);
        assert_eq!(buffer, [0; 64]);
        assert_eq!(buffer[..8], [0; 8], "the number of the copy");
    }
}
