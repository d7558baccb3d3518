//! The stack of a thread that was interrupted: which calls are under way in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use crate::triage::exported::exported_names;
use crate::triage::maps::Maps;
use crate::triage::memory::{Memory, ProcessMemory};
use crate::triage::modules::ModuleCache;
use crate::triage::reading::frame;
use crate::triage::registers::Registers;
use crate::triage::snapshot::{End, Event, RawFrame, Snapshot};
use crate::triage::source::Source;
use crate::triage::unwind::{From, Place, Step, walk_up_to};

/// The most calls that are looked at: a recursion that takes long without using up its stack is
/// seen to its beginning.
const MOST: usize = 4096;

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
        let left = self.levels.get(level..).unwrap_or_default();
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
            registers: self.registers.clone(),
            code: self.code.clone(),
            end: self.end,
            opaque_runtime: self.opaque_runtime,
            took: self.took,
            ..Snapshot::bare(event)
        }
    }
}
