//! Finds where in its code a program reads its input, by the stacks of its reads.
//!
//! The run is traced from system call to system call. At each call that reads the input, the stack
//! is unwound as for a crash, so stripped and static programs work. For programs with buffered
//! input, the stack is that of the call that refills the buffer.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, mpsc};

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::ptrace::Options;
use nix::unistd::Pid;

use crate::modules::ModuleCache;
use crate::registers::Registers;
use crate::snapshot_reader::frame;
use crate::unwind::{WalkStart, walk_up_to};
use ddfuzz_exec::tracing::{resume, wait};
use ddfuzz_exec::{ExecError, Run, Traced, lives};

/// The call stack of a program at the moment when it read from its input, innermost frame first.
/// Each frame is a module (`exe` for the main executable) and an offset from its load bias in
/// bytes. At most [`DEPTH`] frames, of the program's own modules only.
pub type ReadStack = Vec<(Arc<str>, u64)>;

/// Maximum number of stack frames that are kept of each call stack at which a program read its
/// input.
pub const DEPTH: usize = 8;

/// The call stacks at which a program read from its input in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// The call stacks at which the program read from its input, in the order of the reads; equal
    /// neighbours are stored once.
    pub stacks: Vec<ReadStack>,
    /// Whether tracing was ended before the end of the run, because the program made too many reads
    /// or other system calls; the later reads are missing then.
    pub cut: bool,
}

/// Traces runs of a target by ptrace to find the call stacks at which it reads its input.
pub struct ReadStacks {
    cache: ModuleCache,
    /// Whether the system has refused ptrace; if so, all further runs are made without tracing.
    refused: bool,
}

impl Default for ReadStacks {
    fn default() -> ReadStacks {
        ReadStacks {
            cache: ModuleCache::new(Vec::new()),
            refused: false,
        }
    }
}

impl ReadStacks {
    /// Lets a started run, which waits to be traced, continue to its end; returns its result and
    /// the call stacks at which it read its input. The stacks are `None` where the system refuses
    /// to trace, and where no file holds the input.
    ///
    /// # Errors
    /// When the server is gone, the run cannot be waited for, or tracing fails otherwise than by a
    /// refusal.
    pub fn follow(&mut self, run: &mut Traced) -> Result<(Run, Option<Reads>), ExecError> {
        let inputs = run.input_files();
        if self.refused || inputs.is_empty() {
            run.release()?;
            return Ok((run.wait_for_run()?, None));
        }
        let (pid, executes) = (run.pid(), run.executes());
        let (sender, seized) = mpsc::channel();
        let cache = &mut self.cache;
        let mut refused = false;
        let followed = std::thread::scope(|scope| {
            // The tracer has its own thread, because it waits for all that its thread traces, and
            // when the thread ends the kernel kills whatever it still traces.
            let tracer = scope.spawn(move || match Tracer::seize(pid, executes, inputs, cache) {
                Ok(tracer) => {
                    // Nobody listens only if the thread that started this one is gone.
                    let _ = sender.send(Ok(()));
                    Some(tracer.follow())
                }
                Err(error) => {
                    let _ = sender.send(Err(error));
                    None
                }
            });
            match seized.recv() {
                Ok(Ok(())) => {}
                // A refusal does not count if somebody has killed the process meanwhile.
                Ok(Err(Errno::EPERM | Errno::ENOSYS)) => refused = lives(pid),
                Ok(Err(error)) => return Err(tracing(error.into())),
                Err(_) => return Err(tracing(io::ErrorKind::BrokenPipe.into())),
            }
            run.release()?;
            let ended = run.wait_for_run()?;
            let reads = tracer.join();
            let reads = reads.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((ended, reads))
        });
        self.refused |= refused;
        followed
    }
}

fn tracing(source: io::Error) -> ExecError {
    ExecError::system("tracing the reads of a target")(source)
}

/// Maximum number of reads of the input in one run whose call stacks are recorded.
const READS: u32 = 256;
/// Maximum number of system calls that are traced in a run, to find those that read the input.
const CALLS: u32 = 4096;
/// Maximum number of stack frames that are unwound each time that a run reads its input.
const WALKED: usize = 64;

/// A ptrace tracer of one run of a target that records the call stacks at which the run reads its
/// input.
pub(super) struct Tracer<'a> {
    pid: Pid,
    cache: &'a mut ModuleCache,
    /// Device and inode of the files that hold the input.
    inputs: Vec<(u64, u64)>,
    /// Whether the first process of the run executes the target's program already; false until its
    /// `execve`.
    executed: bool,
    /// Number of times so far that the run has read its input.
    looked_at: u32,
    calls: u32,
    reads: Reads,
}

impl<'a> Tracer<'a> {
    /// Attaches by ptrace to the process `pid`, which waits to be traced, and returns its tracer.
    /// With `executes`, the process waits before its `execve` of the target's program; otherwise it
    /// was forked from the running target.
    ///
    /// # Errors
    /// `EPERM` where tracing is refused, `ESRCH` where the process is gone.
    pub(super) fn seize(
        pid: Pid,
        executes: bool,
        inputs: Vec<(u64, u64)>,
        cache: &'a mut ModuleCache,
    ) -> nix::Result<Tracer<'a>> {
        let options = Options::PTRACE_O_EXITKILL
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_TRACESYSGOOD;
        ptrace::seize(pid, options)?;
        if !executes {
            cache.know_target(pid);
            // It goes on from this stop to its first system call.
            ptrace::interrupt(pid)?;
        }
        Ok(Tracer {
            pid,
            cache,
            inputs,
            executed: !executes,
            looked_at: 0,
            calls: 0,
            reads: Reads::default(),
        })
    }

    /// Lets the traced process and its descendants run, with all signals delivered, until the
    /// process has ended; returns the call stacks at which the input was read.
    pub(super) fn follow(mut self) -> Reads {
        while let Ok((tid, status)) = wait() {
            if libc::WIFSTOPPED(status) {
                self.handle_stop(tid, status);
            } else if tid == self.pid {
                break;
            }
        }
        self.reads
    }

    fn handle_stop(&mut self, tid: Pid, status: i32) {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 if signal == libc::SIGTRAP | 0x80 => {
                self.call(tid);
                self.go_on(tid, 0);
            }
            0 => self.go_on(tid, signal),
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                // The target stopped itself: it stays so until it is continued or killed.
                resume(libc::PTRACE_LISTEN, tid, 0);
            }
            libc::PTRACE_EVENT_EXEC => {
                if tid == self.pid && !self.executed {
                    self.executed = true;
                    self.cache.know_target(tid);
                }
                self.go_on(tid, 0);
            }
            _ => self.go_on(tid, 0),
        }
    }

    /// Resumes a thread and delivers `signal` (0 for none). If the target's program runs and
    /// tracing has not ended early, the thread will stop at its next system call.
    fn go_on(&self, tid: Pid, signal: i32) {
        let request = match self.executed && !self.reads.cut {
            true => libc::PTRACE_SYSCALL,
            false => libc::PTRACE_CONT,
        };
        resume(request, tid, signal);
    }

    /// Handles the stop of thread `tid` at the entry or exit of a system call: at the entry of one
    /// that reads the input, records the thread's call stack.
    fn call(&mut self, tid: Pid) {
        let Some(source) = source_of(tid) else {
            return;
        };
        self.calls += 1;
        if self.calls > CALLS {
            self.reads.cut = true;
            return;
        }
        let Some(descriptor) = source else {
            return;
        };
        let file = std::fs::metadata(format!("/proc/{tid}/fd/{descriptor}"));
        let of_input =
            |facts: &std::fs::Metadata| self.inputs.contains(&(facts.dev(), facts.ino()));
        if !file.is_ok_and(|facts| of_input(&facts)) {
            return;
        }
        self.looked_at += 1;
        if self.looked_at > READS {
            self.reads.cut = true;
            return;
        }
        let stack = self.stack(tid);
        if self.reads.stacks.last() != Some(&stack) {
            self.reads.stacks.push(stack);
        }
    }

    /// Returns the call stack of a stopped thread: the innermost frames that are in the program's
    /// own modules, at most [`DEPTH`].
    fn stack(&mut self, tid: Pid) -> ReadStack {
        let Ok(registers) = Registers::of(tid) else {
            return ReadStack::new();
        };
        let (mut memory, layout) = self.cache.live(tid, registers.sp);
        let walk = walk_up_to(
            WALKED,
            WalkStart::registers(&registers),
            layout,
            &mut memory,
        );
        let frames = walk.steps.iter().filter_map(|step| frame(*step, layout));
        let own = frames.filter(|frame| !frame.runtime).take(DEPTH);
        own.map(|frame| (frame.module, frame.offset)).collect()
    }
}

/// Returns the file descriptor from which the stopped thread `tid` is about to read by a system
/// call. Returns `Some(None)` if the system call reads from no file, and `None` if the thread is
/// not at the entry of a system call.
fn source_of(tid: Pid) -> Option<Option<i32>> {
    let info = ptrace::syscall_info(tid).ok()?;
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: at the entry of a call, as `op` says, this is what the union holds.
    let entry = unsafe { info.u.entry };
    Some(source(entry.nr, entry.args))
}

/// Returns the file descriptor from which the system call `number` with the arguments `args` reads,
/// or which it maps into memory; `None` for other system calls.
pub(super) fn source(number: u64, args: [u64; 6]) -> Option<i32> {
    let first = args[0];
    let descriptor = match i64::try_from(number).ok()? {
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2
        | libc::SYS_splice
        | libc::SYS_copy_file_range => first,
        libc::SYS_sendfile => args[1],
        libc::SYS_mmap if args[3] & libc::MAP_ANONYMOUS as u64 == 0 => args[4],
        _ => return None,
    };
    // The kernel looks at its lower half only.
    let descriptor = descriptor as u32 as i32;
    (descriptor >= 0).then_some(descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_take_bytes_name_where_from() {
        let anonymous = libc::MAP_ANONYMOUS as u64;
        let read = |number: i64, args| source(number as u64, args);
        assert_eq!(read(libc::SYS_read, [0, 1, 2, 3, 4, 5]), Some(0));
        assert_eq!(read(libc::SYS_sendfile, [1, 7, 0, 9, 0, 0]), Some(7));
        assert_eq!(read(libc::SYS_mmap, [0, 9, 1, 2, 5, 0]), Some(5));
        assert_eq!(read(libc::SYS_mmap, [0, 9, 1, anonymous, 5, 0]), None);
        assert_eq!(read(libc::SYS_write, [1, 0, 0, 0, 0, 0]), None);
        assert_eq!(read(libc::SYS_read, [0xffff_ffff, 0, 0, 0, 0, 0]), None);
    }
}
