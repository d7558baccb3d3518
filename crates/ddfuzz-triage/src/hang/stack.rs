//! The call stack of an interrupted thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use crate::called_functions::exported_names;
use crate::hang::breakpoint::Breakpoint;
use crate::memory::Memory;
use crate::modules::ModuleCache;
use crate::registers::Registers;
use crate::snapshot::{End, Event, RawFrame, Snapshot};
use crate::snapshot_reader::frame;
use crate::unwind::{Place, Step, WalkStart, walk_up_to};

/// Maximum number of frames that are read from the stack of a hanging thread: enough to see a long
/// recursion as a whole.
const MOST: usize = 4096;

/// Maximum number of calls, inside the call that does not return, that the crash record of a hang
/// keeps.
const INSIDE: usize = 32;

/// One active call on the stack of a thread: a stack frame.
#[derive(Clone, Debug)]
pub(super) struct ActiveCall {
    step: Step,
    /// Program counter and stack pointer with which the function of this call continues after the
    /// calls that it has made.
    pub place: Place,
    /// Module and function of the code that the call executes; `None` if it is in no module.
    pub frame: Option<RawFrame>,
}

impl ActiveCall {
    /// Returns the function that this call executes: the name of its module, and its start as an
    /// offset in the module, in bytes; `None` if the code is in no module.
    pub fn function(&self) -> Option<(Arc<str>, u64)> {
        let frame = self.frame.as_ref()?;
        let start = frame.function_start.unwrap_or(frame.offset);
        Some((frame.module.clone(), start))
    }

    /// Returns the address of the code that this call executes: for the innermost call the program
    /// counter, for a caller the return address − 1.
    pub fn address(&self) -> u64 {
        self.step.address
    }

    /// Sets a breakpoint at the address `pc` in the function that this call executes, in the
    /// process of the stopped thread `tid`, and returns it. The breakpoint keeps the stack pointer
    /// of this call, which distinguishes the call from deeper calls of the same function. `None`
    /// where it cannot be set.
    pub fn breakpoint(&self, tid: Pid, pc: u64) -> Option<Breakpoint> {
        let place = Place { pc, ..self.place };
        Breakpoint::plant(tid, place).ok()
    }

    /// Updates this stack frame after its thread has run on to the address `pc` in the same call:
    /// its code address, module offset, and the point at which it continues.
    pub fn moved_to(&mut self, pc: u64) {
        if let Some(frame) = &mut self.frame {
            let distance = pc.wrapping_sub(self.step.address);
            frame.offset = frame.offset.wrapping_add(distance);
        }
        (self.step.address, self.place.pc) = (pc, pc);
    }

    /// Checks whether the call is one of user code, and not of a runtime (C library, sanitizer).
    pub fn is_own(&self) -> bool {
        self.frame.as_ref().is_some_and(|frame| !frame.runtime)
    }

    /// Checks whether the function of this stack frame waits for a function that it has called: the
    /// stack then has a return address into it.
    pub fn has_called(&self) -> bool {
        self.step.address != self.place.pc
    }
}

/// The stack of a thread: its active calls, innermost first, and its registers.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    pub calls: Vec<ActiveCall>,
    pub end: End,
    registers: Registers,
    code: Vec<u8>,
    opaque_runtime: bool,
    took: Duration,
}

impl Stack {
    /// Reads the stack of the stopped thread `tid`; `None` where its registers cannot be read.
    pub fn of(tid: Pid, cache: &mut ModuleCache) -> Option<Stack> {
        let began = Instant::now();
        let registers = Registers::of(tid).ok()?;
        let (mut memory, layout) = cache.live(tid, registers.sp);
        let walk = walk_up_to(MOST, WalkStart::registers(&registers), layout, &mut memory);
        let calls = walk.steps.iter().zip(&walk.places);
        let calls = calls.map(|(step, place)| ActiveCall {
            step: *step,
            place: *place,
            frame: frame(*step, layout),
        });
        Some(Stack {
            calls: calls.collect(),
            end: walk.end,
            code: memory.bytes(registers.pc, 16),
            opaque_runtime: layout.has_opaque_runtime(),
            registers,
            took: began.elapsed(),
        })
    }

    /// Returns a snapshot of the hanging thread `tid` whose innermost frame is the call that does
    /// not return: the one with the index `level` in this stack (0 is the innermost). The calls
    /// inside of it, which change all the time, are kept apart, in [`Snapshot::inside`].
    pub fn snapshot(
        &self,
        level: usize,
        event: Event,
        tid: Pid,
        cache: &mut ModuleCache,
    ) -> Snapshot {
        let (inside, left) = self.calls.split_at(level.min(self.calls.len()));
        let inside = inside.iter().filter_map(|level| level.frame.clone());
        let known = left.iter().filter(|level| level.frame.is_some());
        let steps: Vec<Step> = known.clone().map(|level| level.step).collect();
        let mut frames: Vec<RawFrame> = known.filter_map(|level| level.frame.clone()).collect();
        let (mut memory, layout) = cache.live(tid, self.registers.sp);
        let names = exported_names(&steps, &frames, layout, &mut memory);
        for (frame, name) in frames.iter_mut().zip(names) {
            frame.exported = name;
        }
        Snapshot {
            frames,
            inside: inside.take(INSIDE).collect(),
            registers: self.registers.clone(),
            code: self.code.clone(),
            end: self.end,
            opaque_runtime: self.opaque_runtime,
            took: self.took,
            ..Snapshot::bare(event)
        }
    }
}
