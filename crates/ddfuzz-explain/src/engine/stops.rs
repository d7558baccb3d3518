//! Runs that are stopped each time that they come to given places of their code.

use std::collections::HashSet;

use ddfuzz_exec::Ended;

use super::mutated::MutantEnd;
use super::process::Process;
use super::run::{Next, Pace, STOPS};
use super::tests_at_point::Stand;
use super::{Engine, EngineError};

impl Engine {
    /// Runs a fork of the run that is stopped in `stand`, with breakpoints at the addresses
    /// `places`. At each stop there, calls `act` with the process and its registers; `act` must
    /// remove the breakpoint or step over it. Returns how the fork ends; `None` if it starts
    /// threads or processes.
    pub(super) fn stopped_at(
        &mut self,
        stand: &mut Stand,
        places: &HashSet<u64>,
        mut act: impl FnMut(&mut Process, &libc::user_regs_struct) -> Result<(), EngineError>,
    ) -> Result<Option<MutantEnd>, EngineError> {
        let limit = stand.limit().times(STOPS);
        self.in_new_fork(stand, |engine, child| {
            let _limit = child.limit(limit);
            for place in places {
                child.set_breakpoint(*place)?;
            }
            let (ended, output) = loop {
                let next = match engine.resume(child, Pace::Free) {
                    Ok(Next::Breakpoint(registers)) => act(child, &registers),
                    Ok(Next::Other(_)) => Ok(()),
                    Ok(Next::Ended(ending)) => break (ending.ended, ending.output),
                    Err(error) => Err(error),
                };
                match next {
                    Ok(()) => {}
                    Err(EngineError::System(_)) if engine.watchdog.has_fired() => {
                        break (Ended::Timeout, Vec::new());
                    }
                    Err(error) => return Err(error),
                }
            };
            Ok(Some(MutantEnd {
                ended,
                output,
                is_heap_damaged: false,
                written: None,
            }))
        })
    }
}
