//! The stack of a thread that was interrupted: which calls are under way in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use crate::exported::exported_names;
use crate::hang::trap::Breakpoint;
use crate::maps::Maps;
use crate::memory::{Memory, ProcessMemory};
use crate::modules::ModuleCache;
use crate::modules::Source;
use crate::reading::frame;
use crate::registers::Registers;
use crate::snapshot::{End, Event, RawFrame, Snapshot};
use crate::unwind::{From, Place, Step, walk_up_to};

/// The most calls that are looked at: a recursion that takes long without using up its stack is
/// seen to its beginning.
const MOST: usize = 4096;

/// The most calls that are kept of those inside the one that names a hang.
const INSIDE: usize = 32;

/// One call that is under way.
#[derive(Clone, Debug)]
pub(super) struct Level {
    step: Step,
    /// Where it goes on.
    pub place: Place,
    /// `None` outside of all modules.
    pub frame: Option<RawFrame>,
}

impl Level {
    /// Module and start of the function.
    pub fn function(&self) -> Option<(Arc<str>, u64)> {
        let frame = self.frame.as_ref()?;
        let start = frame.function_start.unwrap_or(frame.offset);
        Some((frame.module.clone(), start))
    }

    /// The program counter, or the return address − 1.
    pub fn address(&self) -> u64 {
        self.step.address
    }

    /// A breakpoint at `pc`, which another place of its function is, in the stopped thread `tid`.
    pub fn breakpoint(&self, tid: Pid, pc: u64) -> Option<Breakpoint> {
        let place = Place { pc, ..self.place };
        Breakpoint::plant(tid, place).ok()
    }

    /// Takes in that it goes on at `pc` now.
    pub fn moved_to(&mut self, pc: u64) {
        if let Some(frame) = &mut self.frame {
            let distance = pc.wrapping_sub(self.step.address);
            frame.offset = frame.offset.wrapping_add(distance);
        }
        (self.step.address, self.place.pc) = (pc, pc);
    }

    /// Whether it is of the user's own code.
    pub fn is_own(&self) -> bool {
        self.frame.as_ref().is_some_and(|frame| !frame.runtime)
    }

    /// Whether a call has led here, so that its return address stands on the stack.
    pub fn has_called(&self) -> bool {
        self.step.address != self.place.pc
    }
}

/// The calls that are under way in a thread, innermost first.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    pub levels: Vec<Level>,
    pub end: End,
    registers: Registers,
    code: Vec<u8>,
    opaque_runtime: bool,
    took: Duration,
}

impl Stack {
    /// Reads it off a stopped thread.
    pub fn of(tid: Pid, cache: &mut ModuleCache) -> Option<Stack> {
        let began = Instant::now();
        let registers = Registers::of(tid).ok()?;
        let maps = Maps::of(tid);
        let mut memory = ProcessMemory::new(tid, registers.sp);
        let layout = cache.layout(&Source::Live(tid), &maps, &mut memory);
        let walk = walk_up_to(MOST, From::registers(&registers), layout, &mut memory);
        let levels = walk.steps.iter().zip(&walk.places);
        let levels = levels.map(|(step, place)| Level {
            step: *step,
            place: *place,
            frame: frame(*step, layout),
        });
        Some(Stack {
            levels: levels.collect(),
            end: walk.end,
            code: memory.bytes(registers.pc, 16),
            opaque_runtime: layout.has_opaque_runtime(),
            registers,
            took: began.elapsed(),
        })
    }

    /// What is known of the thread `tid`, with the calls from `level` outwards: those inside it
    /// come and go.
    pub fn snapshot(
        &self,
        level: usize,
        event: Event,
        tid: Pid,
        cache: &mut ModuleCache,
    ) -> Snapshot {
        let (inside, left) = self.levels.split_at(level.min(self.levels.len()));
        let inside = inside.iter().filter_map(|level| level.frame.clone());
        let known = left.iter().filter(|level| level.frame.is_some());
        let steps: Vec<Step> = known.clone().map(|level| level.step).collect();
        let mut frames: Vec<RawFrame> = known.filter_map(|level| level.frame.clone()).collect();
        let maps = Maps::of(tid);
        let mut memory = ProcessMemory::new(tid, self.registers.sp);
        let layout = cache.layout(&Source::Live(tid), &maps, &mut memory);
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
