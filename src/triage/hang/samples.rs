//! Which call eats the memory: of those under way, the innermost one that is in every sample.

use std::time::Duration;

use nix::unistd::Pid;

use super::recursion;
use super::stack::Stack;
use crate::exec::resident_memory;
use crate::triage::capture::Tracer;
use crate::triage::snapshot::{Event, Snapshot};

/// So many samples are taken.
const SAMPLES: usize = 5;
/// Time between two of them: long against one allocation, short against what a machine has.
const BETWEEN: Duration = Duration::from_millis(2);

impl Tracer<'_> {
    /// What names the blow-up; `None` where the run has ended before anything could be found out.
    pub(super) fn name_blow_up(&mut self) -> Option<Snapshot> {
        let tid = self.eater().ok().flatten()?;
        let (mut stack, mut level): (Option<Stack>, usize) = (None, 0);
        for _ in 0..SAMPLES {
            let Ok(halted) = self.halt(tid) else { break };
            let Some(sample) = Stack::of(tid, self.cache) else {
                break;
            };
            level = match &stack {
                None => 0,
                Some(before) => level.max(common(before, &sample)),
            };
            // Of the frames in common both tell the same.
            stack.get_or_insert(sample);
            halted.resume();
            if self.let_run(BETWEEN).is_err() {
                break;
            }
        }
        let stack = stack?;
        let level = recursion::outermost(&stack, level.min(stack.levels.len().saturating_sub(1)));
        Some(stack.snapshot(level, Event::OutOfMemory, tid, self.cache))
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

/// The innermost level of `first` that is under way in `later`, too: the same call of the same
/// function, which may have gone on.
fn common(first: &Stack, later: &Stack) -> usize {
    let pairs = first.levels.iter().rev().zip(later.levels.iter().rev());
    let mut shared = 0;
    for (one, other) in pairs {
        // The stack pointer behind a return is the call's own; where it stands inside may differ.
        if one.place == other.place {
            shared += 1;
        } else if one.function().is_some() && one.function() == other.function() {
            shared += 1;
            break;
        } else {
            break;
        }
    }
    first.levels.len() - shared.max(1).min(first.levels.len())
}
