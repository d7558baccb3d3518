//! Reads a snapshot from the copy that a dying process makes of itself in shared memory, where
//! ptrace is refused (docs/src/keys.md). The snapshot is computed as for a traced process, but
//! reads the copied memory.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Instant;

use crate::memory::{Mapping, Maps, Memory};
use crate::modules::{ModuleCache, Source};
use crate::registers::Registers;
use crate::snapshot::{Event, Snapshot};
use crate::snapshot_reader::{Cause, Stopped, has_address, interpret, is_aftermath};
use ddfuzz_exec::{CrashSnapshots, Ended};

/// Reads the copies of registers and stack that dying processes of a run made of themselves in
/// shared memory. Returns how the run ended, and a snapshot of the process that crashed. If some
/// processes have certainly died of a signal, the run counts as ended by the signal of the first of
/// them; else it ended as `ended` says. The snapshot is `None` if the run did not end by a crash
/// signal, or if there is no copy.
pub(crate) fn read_copies(
    copies: &CrashSnapshots,
    ended: Ended,
    cache: &mut ModuleCache,
) -> (Ended, Option<Box<Snapshot>>) {
    let mut slots: Vec<Slot> = (0..copies.slots())
        .filter_map(|number| Slot::read(copies, number))
        .collect();
    slots.sort_by_key(|slot| slot.number);
    let deadly = slots.iter().find(|slot| slot.deadly.is_some());
    // A target that has forbidden itself the system calls that make the copy dies of these calls,
    // and not of the signal at which the copy was begun.
    let signal = deadly.and_then(|slot| slot.deadly);
    let ended = signal.map_or(ended, Ended::Signal);
    if !matches!(ended, Ended::Signal(_)) || !ended.is_crash(None) {
        return (ended, None);
    }
    let process = deadly.or(slots.last()).map(|slot| slot.process);
    cache.know_copied_target(copies.target());
    let of_process = slots.iter().filter(|slot| Some(slot.process) == process);
    (ended, last(copies, of_process, cache).map(Box::new))
}

/// Returns the snapshot made from the last of the copies `slots`, all of which one dying process
/// has made of itself, one at each crash signal; `None` if there is no copy. Copies that show only
/// a consequence of an earlier signal (such as a signal handler that aborts) are left out.
fn last<'a>(
    copies: &CrashSnapshots,
    slots: impl Iterator<Item = &'a Slot>,
    cache: &mut ModuleCache,
) -> Option<Snapshot> {
    let mut last: Option<(&Slot, Snapshot)> = None;
    let mut dies = false;
    for slot in slots {
        dies |= slot.deadly.is_some();
        let snapshot = interpret_slot(copies, slot, cache);
        let follows = last.as_ref().is_some_and(|(before, earlier)| {
            before.thread == slot.thread && is_aftermath(earlier, &snapshot)
        });
        if !follows {
            last = Some((slot, snapshot));
        }
    }
    last.map(|(slot, snapshot)| Snapshot {
        // If the target handled the signal, it is unknown whether the process died of it.
        torn: !slot.is_complete || !dies,
        ..snapshot
    })
}

fn interpret_slot(copies: &CrashSnapshots, slot: &Slot, cache: &mut ModuleCache) -> Snapshot {
    let began = Instant::now();
    let (number, code) = (slot.signal, slot.code);
    let cause = Cause {
        event: Event::Signal { number, code },
        address: has_address(slot.signal, slot.code).then_some(slot.address),
    };
    let maps = Maps::parse(&slot.maps);
    let mut memory = CopiedMemory {
        copies,
        slot,
        maps: &maps,
        files: HashMap::new(),
    };
    let source = Source::Copied {
        entry: slot.entry,
        executable: slot.executable,
    };
    let stopped = Stopped {
        registers: slot.registers.clone(),
        maps: &maps,
        source: &source,
    };
    let snapshot = interpret(cause, stopped, &mut memory, cache);
    Snapshot {
        took: began.elapsed(),
        ..snapshot
    }
}

/// The readable memory of a process that copied itself and died: the address ranges that it copied
/// (stack and more), and the code of its mapped files.
struct CopiedMemory<'a> {
    copies: &'a CrashSnapshots,
    slot: &'a Slot,
    maps: &'a Maps,
    /// The opened files with mapped code, by the first address of their mapping; `None` for a file
    /// that cannot be read.
    files: HashMap<u64, Option<Code>>,
}

/// An opened file with the code of one mapping of a process that copied itself.
struct Code {
    file: File,
    /// Offset in the mapped file, in bytes, at which the mapping begins.
    at: u64,
}

impl CopiedMemory<'_> {
    fn read_window(&self, address: u64, buffer: &mut [u8]) -> usize {
        let mut windows = self.slot.windows.iter();
        let Some(window) = windows.find(|window| window.range.contains(&address)) else {
            return 0;
        };
        let left = usize::try_from(window.range.end - address).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let Some(at) = window.at.checked_add(address - window.range.start) else {
            return 0;
        };
        self.copies.read(self.slot.index, at, &mut buffer[..length])
    }

    /// Reads code at `address` of the copied process into `buffer`, from the mapped file, and
    /// returns the number of bytes; 0 for memory that is writable or not executable, because it may
    /// differ from the file.
    fn read_code(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let maps = self.maps;
        let mapping = maps.find(address);
        let Some(mapping) = mapping.filter(|it| it.executable && !it.writable) else {
            return 0;
        };
        let code = self.files.entry(mapping.start);
        let Some(Code { file, at }) = code.or_insert_with(|| code_of(mapping)) else {
            return 0;
        };
        let left = usize::try_from(mapping.end - address).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let place = at.checked_add(address - mapping.start);
        place.map_or(0, |place| {
            file.read_at(&mut buffer[..length], place).unwrap_or(0)
        })
    }
}

impl Memory for CopiedMemory<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            let Some(at) = address.checked_add(filled as u64) else {
                break;
            };
            let rest = &mut buffer[filled..];
            let count = match self.read_window(at, rest) {
                0 => self.read_code(at, rest),
                count => count,
            };
            if count == 0 {
                break;
            }
            filled += count;
        }
        filled
    }
}

fn code_of(mapping: &Mapping) -> Option<Code> {
    if mapping.path.as_os_str() == "[vdso]" {
        return own_vdso();
    }
    if !mapping.is_file() {
        return None;
    }
    let path = mapping.file_path();
    let facts = std::fs::metadata(&path).ok().filter(|it| it.is_file())?;
    let same = facts.ino() == mapping.inode || path == mapping.path;
    let file = same.then(|| File::open(&path).ok()).flatten()?;
    Some(Code {
        file,
        at: mapping.offset,
    })
}

/// Opens the vDSO (code that the kernel maps into each process) in this process's own memory: it
/// has no file, and is the same in all processes. `None` where this process has none.
fn own_vdso() -> Option<Code> {
    let maps = Maps::of(nix::unistd::Pid::this());
    let vdso = maps.iter().find(|it| it.path.as_os_str() == "[vdso]")?;
    Some(Code {
        file: File::open("/proc/self/mem").ok()?,
        at: vdso.start,
    })
}

/// Offset of the registers in the head of one copy that a dying process made of itself, in bytes.
/// The layout of a copy is defined by `runtime/snapshot.h` of ddfuzz-exec.
const REGISTERS: usize = 64;
/// Offset, in the head of a copy that a dying process made of itself, of the two numbers that say
/// where the text of `/proc/PID/maps` is: its offset and size, in bytes.
const MAPS: usize = 224;
/// Offset, in the head of a copy that a dying process made of itself, of the number of copied
/// memory ranges, in bytes; the descriptions of the ranges follow the number.
const WINDOWS: usize = 240;
/// Size in bytes of the description of one memory range that a dying process copied: start, length,
/// and offset in the copy.
const WINDOW: usize = 24;
/// Maximum number of memory ranges in one copy that a dying process makes of itself.
const MOST_WINDOWS: u64 = 48;
/// Size in bytes of the head of one copy that a dying process made of itself: all but the contents
/// of the memory map and of the copied memory ranges.
const HEAD: usize = WINDOWS + 8 + MOST_WINDOWS as usize * WINDOW;
/// Maximum number of bytes that are read of the text of `/proc/PID/maps` in a copy that a dying
/// process made of itself.
const LONGEST_MAPS: u64 = 1 << 20;

/// A range of memory that a dying process copied, and where the copied bytes are.
#[derive(Clone, Debug)]
struct Window {
    /// Addresses in the dead process from which the bytes were copied.
    range: Range<u64>,
    /// Offset in bytes at which the copied memory begins, in the part of the shared memory that
    /// belongs to its copy.
    at: u64,
}

/// One copy that a process made of itself at a signal: registers, memory map, memory ranges.
#[derive(Clone, Debug)]
struct Slot {
    /// Index of this copy of a process's state, among all copies in the shared memory of the run.
    index: u64,
    /// Sequence number of this copy of a process's state, among all copies that processes of the
    /// run made, from 1.
    number: u64,
    /// Id of the process that made this copy of its state; 0 if it died before it wrote its id.
    process: i32,
    thread: i32,
    signal: i32,
    code: i32,
    address: u64,
    /// Address of the entry point of the program that the copied process ran.
    entry: u64,
    /// Device and inode of the executable file that the copied process ran.
    executable: (u64, u64),
    /// Signal of which the copied process certainly died; `None` where the target may have handled
    /// the signal.
    deadly: Option<i32>,
    /// Whether the process copied all of its state before it died.
    is_complete: bool,
    registers: Registers,
    /// Text of `/proc/PID/maps` of the copied process.
    maps: Vec<u8>,
    windows: Vec<Window>,
}

impl Slot {
    /// Reads the copy with the index `index`, which a dying process made of itself, from the shared
    /// memory `copies`; `None` where no process made it.
    fn read(copies: &CrashSnapshots, index: u64) -> Option<Slot> {
        let mut head = [0; HEAD];
        if copies.read(index, 0, &mut head) != HEAD || word(&head, 0) == 0 {
            return None;
        }
        let registers: [u64; 20] = std::array::from_fn(|at| word(&head, REGISTERS + 8 * at));
        let length = word(&head, MAPS + 8).min(LONGEST_MAPS);
        let mut maps = vec![0; usize::try_from(length).unwrap_or(0)];
        let read = copies.read(index, word(&head, MAPS), &mut maps);
        maps.truncate(read);
        let count = word(&head, WINDOWS).min(MOST_WINDOWS) as usize;
        let windows = (0..count).filter_map(|number| {
            let at = WINDOWS + 8 + number * WINDOW;
            let start = word(&head, at);
            let end = start.checked_add(word(&head, at + 8))?;
            Some(Window {
                range: start..end,
                at: word(&head, at + 16),
            })
        });
        Some(Slot {
            index,
            number: word(&head, 0),
            process: half(&head, 8),
            thread: half(&head, 12),
            signal: half(&head, 16),
            code: half(&head, 20),
            address: word(&head, 24),
            entry: word(&head, 32),
            executable: (word(&head, 40), word(&head, 48)),
            deadly: Some(half(&head, 56)).filter(|it| Ended::Signal(*it).is_crash(None)),
            is_complete: half(&head, 60) != 0,
            registers: Registers::from_copy(&registers),
            maps,
            windows: windows.collect(),
        })
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

fn half(bytes: &[u8], at: usize) -> i32 {
    i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
