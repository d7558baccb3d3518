//! Finds memory that is read before anything sets it: a heap block since its allocation, a local
//! variable since the call of its function. The failing run is made again with a watchpoint on the
//! memory.

use ddfuzz_triage::memory::{Maps, Memory};

use super::process::Stop;
use super::run::{Next, Pace, Run};
use super::writer::Watched;
use super::writer::watch;
use super::{Engine, EngineError, Point, Side};

/// Largest number of times that a run is stopped in the search for unset memory.
const MOST_STOPS: usize = 20_000;

/// Number of bytes below the stack pointer that a function may use.
const RED_ZONE: u64 = 128;

/// The event with which the life of some memory begins: the content that it had before means
/// nothing.
#[derive(Clone, Copy)]
enum Begins {
    /// The function at `entry` is called, and its frame gets the canonical frame address `cfa`: the
    /// memory is a local variable of that call.
    Call { entry: u64, cfa: u64 },
    /// An allocating function returns a heap block that contains the memory.
    Allocation,
}

/// A call of a function that allocates memory, which has not returned yet.
struct Pending {
    stack_pointer: u64,
    size: u64,
    /// Whether the function itself sets the block, as `calloc` and `realloc` do.
    is_set: bool,
}

/// What a run has shown so far about the memory in question: whether anything has set it.
#[derive(Default)]
struct Life {
    pending: Vec<Pending>,
    /// Addresses of the calls that led to the last beginning of the memory's life, innermost first;
    /// `None` if something has set the memory since, or its life has not begun.
    unset: Option<Vec<u64>>,
}

impl Engine {
    /// Finds out whether memory (address and size) has not been set when the failing run arrives at
    /// the point `to`. If so, returns the calls that led to the allocation of its heap block, or to
    /// the function whose local variable it is: their addresses in the program's own code,
    /// innermost first. `None` if something has set any byte of the memory, or if that is not
    /// known.
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
                    if let Some(at) = self.runtime_symbol(&run.process, name) {
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
                    self.record_stop(&mut run, (begins, &allocators), address, &mut life)?;
                    if run.process.step_over_writes(registers.rip)? {
                        life.unset = None;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns the event with which the memory at `address`, which is used at the point `to` of the
    /// failing run, began its life: an allocation, or the call of the function whose local variable
    /// it is. `None` for a global variable, and where that is not known.
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

    /// Updates `life`, which says whether the memory at `address` was set since its life began,
    /// when `run` is stopped at a breakpoint. As `begins` says, the memory is a local variable,
    /// whose life begins when its function is called, or a part of a heap block. A call of one of
    /// the allocating functions `allocators` is recorded, since it may return this block.
    fn record_stop(
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

/// Returns true if the system call at which `run` is stopped may write to the `size` bytes at
/// `address`: it reads a file into a buffer that overlaps them, or it is a call with several
/// buffers, which are not looked at.
fn reads_into(run: &Run, address: u64, size: u64) -> Result<bool, EngineError> {
    let registers = run.process.registers()?;
    let call = registers.orig_rax as i64;
    let to = registers.rsi..registers.rsi.saturating_add(registers.rdx);
    let is_plain = [libc::SYS_read, libc::SYS_pread64].contains(&call);
    let is_other = [libc::SYS_readv, libc::SYS_recvmsg, libc::SYS_preadv].contains(&call);
    Ok(is_other || is_plain && address < to.end && to.start < address + size)
}
