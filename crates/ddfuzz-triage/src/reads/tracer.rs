//! Follows a run from system call to system call.

use std::os::unix::fs::MetadataExt;

use nix::sys::ptrace::{self, Options};
use nix::unistd::Pid;

use super::{DEPTH, ReadStack, Reads, calls};
use crate::maps::Maps;
use crate::memory::ProcessMemory;
use crate::modules::ModuleCache;
use crate::reading::frame;
use crate::registers::Registers;
use crate::source::Source;
use crate::unwind::{From, walk_up_to};
use ddfuzz_exec::tracing::{resume, wait};

/// Reads of the input that are looked at.
const READS: u32 = 256;
/// System calls that are stopped at: a program that writes without end is let go.
const CALLS: u32 = 4096;
/// Frames that are walked for those of the program's own modules.
const WALKED: usize = 64;

/// A run and what it has read so far.
pub(super) struct Tracer<'a> {
    pid: Pid,
    cache: &'a mut ModuleCache,
    /// Device and inode of the files that have the input.
    inputs: Vec<(u64, u64)>,
    /// Whether the process has come to its own program.
    executed: bool,
    looked_at: u32,
    calls: u32,
    reads: Reads,
}

impl<'a> Tracer<'a> {
    /// Seizes a process that waits before its `execve`, if it `executes`; else it is the target.
    ///
    /// # Errors
    /// The system's answer: `EPERM` where tracing is refused, `ESRCH` where the process is gone.
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

    /// Lets the process and its descendants run, with every signal delivered, until it has ended
    /// or cannot be waited for any more.
    pub(super) fn follow(mut self) -> Reads {
        while let Ok((tid, status)) = wait() {
            if libc::WIFSTOPPED(status) {
                self.stopped(tid, status);
            } else if tid == self.pid {
                break;
            }
        }
        self.reads
    }

    fn stopped(&mut self, tid: Pid, status: i32) {
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

    /// Lets a thread go on: to its next system call, as long as these are looked at.
    fn go_on(&self, tid: Pid, signal: i32) {
        let looks = self.executed && !self.reads.cut;
        let request = if looks {
            libc::PTRACE_SYSCALL
        } else {
            libc::PTRACE_CONT
        };
        resume(request, tid, signal);
    }

    /// A thread enters a system call, or leaves it.
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

    /// The innermost frames of the program's own modules.
    fn stack(&mut self, tid: Pid) -> ReadStack {
        let Ok(registers) = Registers::of(tid) else {
            return ReadStack::new();
        };
        let maps = Maps::of(tid);
        let mut memory = ProcessMemory::new(tid, registers.sp);
        let layout = self.cache.layout(&Source::Live(tid), &maps, &mut memory);
        let walk = walk_up_to(WALKED, From::registers(&registers), layout, &mut memory);
        let frames = walk.steps.iter().filter_map(|step| frame(*step, layout));
        let own = frames.filter(|frame| !frame.runtime).take(DEPTH);
        own.map(|frame| (frame.module, frame.offset)).collect()
    }
}

/// Where the call that a thread is about to make takes bytes from, if it does; `None` where it is
/// about to make none.
fn source_of(tid: Pid) -> Option<Option<i32>> {
    let info = ptrace::syscall_info(tid).ok()?;
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: at the entry of a call, as `op` says, this is what the union holds.
    let entry = unsafe { info.u.entry };
    Some(calls::source(entry.nr, entry.args))
}
