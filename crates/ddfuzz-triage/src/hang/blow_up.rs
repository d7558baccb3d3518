//! Which call eats the memory: of those under way, the innermost own one that does not return.

use nix::unistd::Pid;

use super::recursion;
use super::step_out::{EATING, Stuck, Test};
use crate::capture::Tracer;
use crate::snapshot::{Event, Snapshot};
use ddfuzz_exec::resident_memory;

impl Tracer<'_> {
    /// What names the blow-up; `None` where the run has ended before anything could be found out.
    pub(super) fn name_blow_up(&mut self) -> Option<Snapshot> {
        let tid = self.eater().ok().flatten()?;
        let (halted, stack) = self.readable_stack(tid).ok()?;
        let first = stack.snapshot(0, Event::OutOfMemory, tid, self.cache);
        let test = Test {
            returns: EATING,
            loops: false,
        };
        let Ok(Stuck { stack, level, .. }) = self.step_out(halted, stack, test) else {
            return Some(first);
        };
        // In which function of the runtime it happens to be says nothing.
        let own = (level..stack.levels.len()).find(|level| stack.levels[*level].is_own());
        let level = recursion::outermost(&stack, own.unwrap_or(level));
        Some(stack.snapshot(level, Event::OutOfMemory, tid, self.cache))
    }

    /// Takes a crash for what it is in a process that has more memory than it may: the system has
    /// refused it more, and it gave up before anybody looked how much it has. Whether somebody
    /// looks in time is chance.
    pub(crate) fn blame_memory(&self, process: Pid, crash: &mut Snapshot) {
        if resident_memory(process) > self.order.memory() {
            crash.event = Event::OutOfMemory;
        }
    }

    /// The thread that runs, of the process that has the most memory.
    fn eater(&mut self) -> nix::Result<Option<Pid>> {
        let threads = self.family.threads();
        let processes = threads.iter().map(|(_, process)| *process);
        let Some(process) = processes.max_by_key(|process| resident_memory(*process)) else {
            return Ok(None);
        };
        if threads.iter().filter(|(_, of)| *of == process).count() == 1 {
            return Ok(Some(process));
        }
        let busiest = self.culprit(false)?;
        Ok(busiest
            .filter(|tid| threads.contains(&(*tid, process)))
            .or(Some(process)))
    }
}
