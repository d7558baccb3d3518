//! Memory that is read before it is set: a heap block since its allocation, a local variable since the
//! call of its function. The failing run is made again with the memory watched.

use ddfuzz_triage::memory::{Maps, Memory};

use super::prepared::library_symbol;
use super::process::Stop;
use super::run::{Next, Pace, Run};
use super::writer::Watched;
use super::writer::watch;
use super::{Engine, EngineError, Point, Side};

/// Largest number of stops of the run.
const MOST_STOPS: usize = 20_000;

/// Number of bytes below the stack pointer that a function may use.
const RED_ZONE: u64 = 128;

/// Where the life of some memory begins.
#[derive(Clone, Copy)]
enum Begins {
    /// With a call of this function, by which the frame has this address (the caller's stack pointer
    /// before the call).
    Call { entry: u64, cfa: u64 },
    /// When a function of the C library returns a heap block around it.
    Allocation,
}

/// A call of a function that allocates memory, which has not returned yet.
struct Pending {
    stack_pointer: u64,
    size: u64,
    /// Whether the function sets the block.
    is_set: bool,
}

/// What the run has shown up to now.
#[derive(Default)]
struct Life {
    pending: Vec<Pending>,
    /// The calls that led to where the life of the memory begins, innermost first; `None` where it was
    /// set since.
    unset: Option<Vec<u64>>,
}

impl Engine {
    /// Returns the addresses of the calls in the program's own code by which the life of some memory of
    /// the failing run begins, innermost first, where nothing sets any of it from there to the point
    /// `to`; `None` where it is set, or that is not known.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(super) fn unset_since(
        &mut self,
        (address, size): (u64, u64),
        to: Point,
    ) -> Result<Option<Vec<u64>>, EngineError> {
        let Some(begins) = self.life_of(address, to)? else {
            return Ok(None);
        };
        let Some(mut run) = self.at_entry(Side::Failing)? else {
            return Ok(None);
        };
        let mut allocators = Vec::new();
        match begins {
            Begins::Call { entry, .. } => run.process.set_breakpoint(entry)?,
            Begins::Allocation => {
                let names = ["malloc", "calloc", "realloc", "aligned_alloc", "memalign"];
                for name in names {
                    if let Some(at) = library_symbol(&run.process, name) {
                        run.process.set_breakpoint(at)?;
                        allocators.push((name, at));
                    }
                }
            }
        }
        let watched = Watched {
            address,
            size,
            frame: None,
        };
        watch(&run.process, watched)?;
        run.process.set_breakpoint(to.pc)?;
        let (mut life, mut left) = (Life::default(), to.nth);
        for _ in 0..MOST_STOPS {
            self.check_time()?;
            match self.resume(&mut run.process, Pace::SystemCalls)? {
                Next::Ended(_) => break,
                Next::Other(Stop::SystemCall) => {
                    if reads_into(&run, address, size)? {
                        life.unset = None;
                    }
                }
                // Memory was written.
                Next::Other(_) => life.unset = None,
                Next::Breakpoint(registers) => {
                    if registers.rip == to.pc {
                        left -= 1;
                        if left == 0 {
                            return Ok(life.unset.filter(|calls| !calls.is_empty()));
                        }
                    }
                    self.live(&mut run, (begins, &allocators), address, &mut life)?;
                    if run.process.step_over_writes(registers.rip)? {
                        life.unset = None;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns where the life of the memory at `address` begins that is alive at the point `to`.
    fn life_of(&mut self, address: u64, to: Point) -> Result<Option<Begins>, EngineError> {
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, to)?;
        let registers = run.process.registers()?;
        let maps = Maps::of(run.process.pid);
        let around = maps.iter().find(|it| (it.start..it.end).contains(&address));
        let Some(around) = around.filter(|it| it.writable) else {
            return Ok(None);
        };
        if !(around.start..around.end).contains(&registers.rsp) {
            // A global variable is set from the beginning.
            return Ok((!around.is_file() && around.base_name() != "[stack]")
                .then_some(Begins::Allocation));
        }
        let frames = self.frames(&mut run.process)?;
        let own = frames.iter().find(|it| address < it.cfa);
        let own = own.filter(|_| address + RED_ZONE >= registers.rsp);
        Ok(own.and_then(|frame| {
            let function = self.info.function(frame.code.wrapping_sub(self.bias))?;
            let entry = function.ranges[0].start.wrapping_add(self.bias);
            let cfa = frame.cfa;
            Some(Begins::Call { entry, cfa })
        }))
    }

    /// Records what the breakpoint shows at which a run is stopped: a begin of the memory's life.
    fn live(
        &mut self,
        run: &mut Run,
        (begins, allocators): (Begins, &[(&str, u64)]),
        address: u64,
        life: &mut Life,
    ) -> Result<(), EngineError> {
        let registers = run.process.registers()?;
        let allocator = allocators.iter().find(|(_, at)| *at == registers.rip);
        if let Begins::Call { entry, cfa } = begins {
            if (registers.rip, registers.rsp + 8) == (entry, cfa) {
                let mut frames = self.frames(&mut run.process)?;
                // Its first instruction has not been executed yet.
                if let Some(innermost) = frames.first_mut() {
                    innermost.code += 1;
                }
                life.unset = Some(self.own_calls(&frames));
            }
        } else if let Some((name, _)) = allocator {
            let size = match *name {
                "malloc" => registers.rdi,
                "calloc" => registers.rdi.saturating_mul(registers.rsi),
                _ => registers.rsi,
            };
            if let Some(back) = run.process.word(registers.rsp) {
                run.process.set_breakpoint(back)?;
                life.pending.push(Pending {
                    stack_pointer: registers.rsp + 8,
                    size,
                    is_set: ["calloc", "realloc"].contains(name),
                });
            }
        } else {
            life.pending.retain(|it| it.stack_pointer >= registers.rsp);
            let is_returned = |it: &mut Pending| it.stack_pointer == registers.rsp;
            if let Some(call) = life.pending.pop_if(is_returned)
                && (registers.rax..registers.rax.saturating_add(call.size)).contains(&address)
            {
                let frames = self.frames(&mut run.process)?;
                let calls = self.own_calls(&frames);
                life.unset = Some(calls).filter(|_| !call.is_set);
            }
        }
        Ok(())
    }
}

/// Returns true if the system call at which a run is stopped may write to some memory: one that reads a
/// file to a place before or in it.
fn reads_into(run: &Run, address: u64, size: u64) -> Result<bool, EngineError> {
    let registers = run.process.registers()?;
    let call = registers.orig_rax as i64;
    let to = registers.rsi..registers.rsi.saturating_add(registers.rdx);
    let is_plain = [libc::SYS_read, libc::SYS_pread64].contains(&call);
    let is_other = [libc::SYS_readv, libc::SYS_recvmsg, libc::SYS_preadv].contains(&call);
    Ok(is_other || is_plain && address < to.end && to.start < address + size)
}
