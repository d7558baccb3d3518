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

/// Maximum number of writes to the watched slot in a run; after more, the search is given up.
/// Another run of the same input at the same addresses would write as often.
const MOST_WRITES: u32 = 20_000;
/// Maximum number of writes of something else than a return address that are remembered since the
/// last call that has used the slot.
const REMEMBERED: usize = 16;
/// Maximum number of bytes of the stack, from the stack pointer up, that are kept of each write.
const KEPT: u64 = 64 << 10;

/// State of the thread after a write to the watched slot: its registers, and the stack up to the
/// slot.
struct Written {
    registers: Registers,
    stack: Vec<u8>,
}

/// The watch over the stack slot of a return address in one run.
pub(crate) struct ReturnSlotWatch {
    /// Address of the stack slot; until the watch begins, minus the stack pointer with which the
    /// program is entered.
    slot: u64,
    /// Whether the watch has begun: the watchpoint was set, or it was tried in vain.
    pub is_begun: bool,
    /// Number of writes to the slot so far.
    writes: u32,
    /// Address of the first instruction of the function that the last call with its return address
    /// in the slot has entered; `None` before the first such call.
    entered: Option<u64>,
    /// States after the last writes of anything but a return address to the slot, since the call
    /// that `entered` tells, if there was one; oldest first, [`REMEMBERED`] at most.
    written: VecDeque<Written>,
}

impl ReturnSlotWatch {
    /// Creates the watch over a stack slot, without a watchpoint yet. `slot`: its address, minus
    /// the stack pointer with which the program is entered.
    pub fn new(slot: u64) -> ReturnSlotWatch {
        ReturnSlotWatch {
            slot,
            is_begun: false,
            writes: 0,
            entered: None,
            written: VecDeque::new(),
        }
    }

    /// Sets the watchpoint in the stopped thread `tid`, whose program was entered with the stack
    /// pointer `entry_sp`. Where that is impossible, nothing is found.
    pub fn begin(&mut self, tid: Pid, entry_sp: u64) {
        self.is_begun = true;
        self.slot = self.slot.wrapping_add(entry_sp);
        let _ = watchpoint::set(tid, self.slot, Watched::Writes);
    }

    /// Notes a write to the slot if the stopped thread `tid` has stopped at one, and returns
    /// whether it has.
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

    /// Notes the write to the slot that the thread `tid` has just made, with its `registers` after
    /// that: the call of a function, or a write of anything but a return address.
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

    /// Returns `snapshot`, of a crash of the thread `tid`, with the stack corrected if a function
    /// has returned to a wrong address from the watched slot: its only frame is that of this
    /// function. `cache` tells the modules of the process. Unchanged if the return was from another
    /// slot, or if the function is unknown or not the user's.
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

    /// Returns the frame of the function whose return address was overwritten: of the one that the
    /// stack shows at the overwriting write or, if none is known, of the one that the last call has
    /// entered which has used the slot. The latter counts only with `is_last`: the wrong return was
    /// surely from the watched slot. `live` and `layout` are the memory of the process and its
    /// modules. `None` if the function is unknown, or not the user's.
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

/// The memory of a process in which the stack is as it was at an earlier moment.
struct StackThen {
    /// Address and bytes of the stack at that moment.
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

/// Reads up to `length` bytes at `address` of the process of the thread `tid`, as far as they can
/// be read.
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
