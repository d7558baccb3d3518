//! Finds the function whose return address was overwritten, after its return has led control flow
//! astray.
//!
//! The stack of such a crash says little: the function has left it, and its caller's return address
//! may be overwritten, too. The run is made again with a hardware watchpoint on the stack slot of
//! the wrong return address. Each call that puts a return address there enters another function;
//! a write of something else is the overwriting, and the stack is sound up to that slot then. The
//! kernel's writes (`read` into a short array) stop no thread: the last call that has used the slot
//! names the function.

use std::collections::VecDeque;
use std::io::IoSliceMut;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::instruction::{LONGEST, ends_in_call};
use crate::memory::{Memory, ProcessMemory};
use crate::modules::{Layout, ModuleCache};
use crate::registers::Registers;
use crate::snapshot::{Control, End, RawFrame, Snapshot, Trust};
use crate::snapshot_reader::frame;
use crate::unwind::{Step, WalkStart, walk};
use crate::watchpoint::{self, Watched};

/// Maximum number of writes to the watched slot in a run; after more writes, the search in this run
/// is given up.
const MOST_WRITES: u32 = 20_000;
/// Maximum number of writes of other values than return addresses that are recorded after the last
/// call that used the slot; the oldest ones are dropped.
const REMEMBERED: usize = 16;
/// Maximum number of bytes of the stack, from the stack pointer up to the slot, that are recorded
/// with each write.
const KEPT: u64 = 64 << 10;

/// State of a thread right after a write to the watched slot: its registers, and the bytes of its
/// stack from the stack pointer up to and including the slot (the lowest [`KEPT`] and eight bytes
/// if there are more).
struct Written {
    registers: Registers,
    stack: Vec<u8>,
}

/// The watch over the stack slot of a return address in one run.
pub(crate) struct ReturnSlotWatch {
    /// Address of the stack slot; before the watch begins, this address minus the stack pointer at
    /// the program's entry.
    slot: u64,
    /// Whether the watch has begun: the watchpoint was set, or could not be set.
    pub is_begun: bool,
    /// Number of writes to the slot so far, calls included.
    writes: u32,
    /// Address of the first instruction of the function that was entered by the last call whose
    /// return address was written to the slot; `None` before the first such call.
    entered: Option<u64>,
    /// States of the thread after writes to the slot that were not calls, oldest first: those since
    /// the last call that used the slot, or since the beginning if there was none; the last
    /// [`REMEMBERED`] at most.
    written: VecDeque<Written>,
}

impl ReturnSlotWatch {
    /// Creates a watch over a stack slot; the watchpoint is set later, by
    /// [`begin`](ReturnSlotWatch::begin). `slot` is the address of the slot minus the stack pointer
    /// at the program's entry.
    pub fn new(slot: u64) -> ReturnSlotWatch {
        ReturnSlotWatch {
            slot,
            is_begun: false,
            writes: 0,
            entered: None,
            written: VecDeque::new(),
        }
    }

    /// Sets the watchpoint on the slot for the stopped thread `tid`. `entry_sp` is the stack
    /// pointer at the program's entry, which is added to the slot's relative address. If the
    /// watchpoint cannot be set, no writes are recorded.
    pub fn begin(&mut self, tid: Pid, entry_sp: u64) {
        self.is_begun = true;
        self.slot = self.slot.wrapping_add(entry_sp);
        let _ = watchpoint::set(tid, self.slot, Watched::Writes);
    }

    /// Returns true if the thread `tid` has stopped because it wrote to the watched slot; if so,
    /// records the write. After more than [`MOST_WRITES`] writes, removes the watchpoint and
    /// forgets all of them.
    pub fn was_written(&mut self, tid: Pid) -> bool {
        if !self.is_begun || !watchpoint::was_hit(tid) {
            return false;
        }
        self.writes += 1;
        if self.writes > MOST_WRITES {
            let _ = watchpoint::clear(tid);
            self.entered = None;
            self.written.clear();
        } else if let Ok(registers) = Registers::of(tid) {
            self.note(tid, registers);
        }
        true
    }

    /// Records a write to the slot, after which the thread `tid` has stopped with `registers`. If a
    /// call instruction wrote its return address, records the entered function and forgets the
    /// earlier writes; otherwise, records the state of the thread.
    fn note(&mut self, tid: Pid, registers: Registers) {
        let start = registers.sp.min(self.slot);
        let length = (self.slot - start).min(KEPT) as usize;
        let stack = read(tid, start, length + 8);
        let word = stack
            .last_chunk::<8>()
            .map(|bytes| u64::from_le_bytes(*bytes));
        let Some(word) = word.filter(|_| stack.len() == length + 8) else {
            return;
        };
        let before = word.wrapping_sub(LONGEST as u64);
        if registers.sp == self.slot && ends_in_call(&read(tid, before, LONGEST)) {
            self.entered = Some(registers.pc);
            self.written.clear();
            return;
        }
        if self.written.len() == REMEMBERED {
            self.written.pop_front();
        }
        self.written.push_back(Written { registers, stack });
    }

    /// Returns `snapshot`, taken of a crash of the thread `tid`, with a corrected stack if a
    /// function has returned to a wrong address from the watched slot: the only frame is then that
    /// of this function. `cache` has the modules of the process. Returns `snapshot` unchanged if
    /// the return was from another slot, or if the function is unknown or not in the user's code.
    pub fn corrected(&self, tid: Pid, snapshot: Snapshot, cache: &mut ModuleCache) -> Snapshot {
        if !snapshot.wrong_returns.contains(&self.slot) {
            return snapshot;
        }
        let is_last = snapshot.registers.sp == self.slot.wrapping_add(8);
        let (memory, layout) = cache.live(tid, snapshot.registers.sp);
        let Some(frame) = self.victim(is_last, memory, layout) else {
            return snapshot;
        };
        Snapshot {
            control: Control::Smashed,
            end: End::Smashed,
            frames: vec![frame],
            wrong_returns: Vec::new(),
            ..snapshot
        }
    }

    /// Returns the stack frame of the function whose return address was overwritten. This is the
    /// function that owns the slot according to the stack at the latest recorded write for which a
    /// stack walk ends at the slot. If no walk does, and `is_last` is true (the last wrong return
    /// was from this slot), it is the function entered by the last call that used the slot. `live`
    /// is the process's memory, `layout` its modules. `None` if the function is unknown, or belongs
    /// to the runtime and not to the user's code.
    fn victim(&self, is_last: bool, live: ProcessMemory, layout: &mut Layout) -> Option<RawFrame> {
        let mut memory = StackThen { stack: None, live };
        let mut written = self.written.iter().rev();
        let overwriting = written.find_map(|it| {
            memory.stack = Some((it.registers.sp.min(self.slot), it.stack.clone()));
            let walk = walk(WalkStart::registers(&it.registers), layout, &mut memory);
            let is_its_caller = walk.end_sp.wrapping_sub(8) == self.slot;
            let ends = walk.end == End::Untrusted && is_its_caller;
            walk.steps.last().copied().filter(|_| ends)
        });
        let entered = self.entered.filter(|_| is_last).map(|address| Step {
            address,
            trust: Trust::Pc,
        });
        let step = overwriting.or(entered)?;
        let found = frame(step, layout)?;
        (!found.runtime && found.function_start.is_some()).then_some(RawFrame {
            trust: Trust::Call,
            ..found
        })
    }
}

/// Memory of a process with the stack's content of an earlier moment.
struct StackThen {
    /// Address and bytes of the stack at the earlier moment; `None` for the present stack.
    stack: Option<(u64, Vec<u8>)>,
    live: ProcessMemory,
}

impl Memory for StackThen {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        if let Some((start, bytes)) = &self.stack
            && let Some(at) = address.checked_sub(*start).map(|at| at as usize)
            && let Some(kept) = bytes.get(at..at.saturating_add(buffer.len()))
        {
            buffer.copy_from_slice(kept);
            return kept.len();
        }
        self.live.read(address, buffer)
    }
}

/// Reads up to `length` bytes at `address` in the memory of the process of the thread `tid`;
/// returns fewer if not all of them can be read.
fn read(tid: Pid, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let remote = RemoteIoVec {
        base: address as usize,
        len: length,
    };
    let read = process_vm_readv(tid, &mut [IoSliceMut::new(&mut bytes)], &[remote]);
    bytes.truncate(read.unwrap_or(0));
    bytes
}
