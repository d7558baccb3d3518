//! Traces one process with breakpoints, from its `execve` to its end.

use nix::{sys::ptrace, unistd::Pid};
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use crate::observe::breakpoints::operand::{after_compare, mask, memory, value};
use crate::observe::breakpoints::{BreakpointPlan, Site};
use crate::observe::history::{ComparisonRing, History};
use crate::observe::image::HookKind;
use crate::tracing::{resume, seize_tree, wait};

/// Maximum number of cases that are read of one `switch` statement.
const CASES: u64 = 16;
/// Decides when a breakpoint that is hit often is removed, so that loops do not displace what comes
/// at the end of a run. Each pair is (total, hits). The first pair applies whose `total` is larger
/// than the number of hits of all breakpoints in the run so far: the breakpoint that is hit now is
/// removed if it has more than `hits` hits of its own. When no pair applies, it is removed in any
/// case.
const MOST_HITS: [(u32, u32); 3] = [(4000, 500), (7000, 50), (9000, 5)];

fn most_hits(hits: u32) -> u32 {
    let found = MOST_HITS.iter().find(|(until, _)| hits < *until);
    found.map_or(0, |(_, most)| *most)
}

/// Traces a process with its threads, and records the comparisons at which it stops by a
/// breakpoint. Child processes that share its memory (`vfork`) are traced like threads; others run
/// without breakpoints and are not traced.
pub(crate) struct Tracer<'a> {
    pid: Pid,
    /// The breakpoints to set in the traced program, and what each of them observes.
    plan: &'a BreakpointPlan,
    /// The ring in shared memory by which the preloaded library reports comparisons; `None` if the
    /// library is not used.
    ring: Option<&'a mut ComparisonRing>,
    /// History of the comparisons that the traced run has made so far.
    history: &'a mut History,
    /// Load address of the program minus the address in its file; `None` before breakpoints are
    /// set.
    bias: Option<u64>,
    /// True once the traced process has executed (`execve`) the target's program.
    executed: bool,
    /// Number of hits of each breakpoint, by its address before loading.
    hits: HashMap<u64, u32>,
    /// Total number of breakpoint hits in the run so far.
    all_hits: u32,
    /// Addresses, before loading, of the breakpoints that were removed from the program during the
    /// run.
    removed: HashSet<u64>,
    /// Ids of the threads of the target that the tracer follows.
    followed: HashSet<Pid>,
    /// Ids of new processes with separate memory that have not yet made the first stop under the
    /// tracer.
    forked: HashSet<Pid>,
    /// Ids of new processes and threads whose first stop the tracer has seen before the event by
    /// which their parent announces them.
    stopped: HashSet<Pid>,
}

impl<'a> Tracer<'a> {
    /// Seizes a process that waits before its `execve`, and returns the tracer, which will set the
    /// breakpoints of `plan` in it. Fails as [`seize_tree`] does.
    pub(crate) fn seize(
        pid: Pid,
        plan: &'a BreakpointPlan,
        ring: Option<&'a mut ComparisonRing>,
        history: &'a mut History,
    ) -> nix::Result<Tracer<'a>> {
        seize_tree(pid)?;
        Ok(Tracer {
            pid,
            plan,
            ring,
            history,
            bias: None,
            executed: false,
            hits: HashMap::new(),
            all_hits: 0,
            removed: HashSet::new(),
            followed: HashSet::from([pid]),
            forked: HashSet::new(),
            stopped: HashSet::new(),
        })
    }

    /// Resumes the traced process, delivers its signals and records its comparisons, until it ends
    /// or cannot be waited for any more.
    pub(crate) fn follow(mut self) {
        while let Ok((tid, status)) = wait() {
            if libc::WIFSTOPPED(status) {
                self.handle_stop(tid, status);
            } else if tid == self.pid {
                break;
            } else {
                self.followed.remove(&tid);
            }
        }
        self.drain();
    }

    fn handle_stop(&mut self, tid: Pid, status: i32) {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 if signal == libc::SIGTRAP && self.hit(tid) => resume(libc::PTRACE_CONT, tid, 0),
            0 => resume(libc::PTRACE_CONT, tid, signal),
            libc::PTRACE_EVENT_STOP if !self.followed.contains(&tid) => self.handle_start(tid),
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                // The target has stopped itself and stays stopped until it is continued or killed.
                resume(libc::PTRACE_LISTEN, tid, 0);
            }
            libc::PTRACE_EVENT_EXEC => self.executed(tid),
            event @ (libc::PTRACE_EVENT_FORK
            | libc::PTRACE_EVENT_VFORK
            | libc::PTRACE_EVENT_CLONE) => {
                if let Ok(child) = ptrace::getevent(tid) {
                    self.handle_fork(Pid::from_raw(child as i32), event);
                }
                resume(libc::PTRACE_CONT, tid, 0);
            }
            _ => resume(libc::PTRACE_CONT, tid, 0),
        }
    }

    /// Handles the first stop of a new thread or process of the traced program. If its parent has
    /// announced it as a process, lets it run without breakpoints and untraced. Otherwise it stays
    /// stopped until its parent says what it is.
    fn handle_start(&mut self, tid: Pid) {
        if self.forked.remove(&tid) {
            self.detach_unobserved(tid);
        } else {
            self.stopped.insert(tid); // its parent is about to say what it is
        }
    }

    /// Handles the event by which a traced process announces the new thread or process `tid`. A
    /// process with memory of its own is left to run without breakpoints and untraced, from its
    /// first stop on; a thread, which shares the memory, is traced.
    fn handle_fork(&mut self, tid: Pid, event: i32) {
        let waits = self.stopped.remove(&tid);
        match (event, waits) {
            (libc::PTRACE_EVENT_FORK, true) => self.detach_unobserved(tid),
            (libc::PTRACE_EVENT_FORK, false) => drop(self.forked.insert(tid)),
            // The new thread shares memory, and so the breakpoints.
            _ => {
                self.followed.insert(tid);
                if waits {
                    resume(libc::PTRACE_CONT, tid, 0);
                }
            }
        }
    }

    /// Removes the breakpoints from a new process with its own memory, and stops tracing it.
    fn detach_unobserved(&self, tid: Pid) {
        if let (Some(bias), Some(memory)) = (self.bias, open_memory(tid)) {
            for code in &self.plan.code {
                let _ = memory.write_all_at(&code.original, code.address.wrapping_add(bias));
            }
        }
        let _ = ptrace::detach(tid, None);
    }

    fn executed(&mut self, tid: Pid) {
        if tid != self.pid {
            self.followed.remove(&tid);
            let _ = ptrace::detach(tid, None); // another program, which has no breakpoints
            return;
        }
        // A program that the target executes later is not observed.
        let first = !std::mem::replace(&mut self.executed, true);
        self.bias = if first { self.set_all(tid) } else { None };
        resume(libc::PTRACE_CONT, tid, 0);
    }

    /// Writes all planned breakpoints into the memory of the process `tid`, if the code in memory
    /// equals that of the program file. Returns the load address minus the address in the file;
    /// `None` if no breakpoints were set.
    fn set_all(&self, tid: Pid) -> Option<u64> {
        let bias = entry_of(tid)?.wrapping_sub(self.plan.entry);
        let memory = open_memory(tid)?;
        let mut there = Vec::new();
        for code in &self.plan.code {
            let at = code.address.wrapping_add(bias);
            there.resize(code.original.len(), 0);
            memory.read_exact_at(&mut there, at).ok()?;
            if there != code.original {
                return None;
            }
        }
        for code in &self.plan.code {
            let at = code.address.wrapping_add(bias);
            memory.write_all_at(&code.changed, at).ok()?;
        }
        Some(bias)
    }

    /// Handles a stop of the thread `tid` by SIGTRAP. Returns true if a breakpoint has caused it:
    /// then records the comparison or, if the breakpoint was hit too often, removes it. Returns
    /// false if the signal has another cause. The breakpoint is known by its address, one byte
    /// before the program counter.
    fn hit(&mut self, tid: Pid) -> bool {
        let (Some(bias), Ok(mut registers)) = (self.bias, ptrace::getregs(tid)) else {
            return false;
        };
        let address = registers.rip.wrapping_sub(1).wrapping_sub(bias);
        let Some(site) = self.plan.sites.get(&address) else {
            return false;
        };
        let seen = !self.is_exhausted(address) && {
            self.drain();
            match site {
                Site::Compare(instruction, width) => {
                    self.compare(instruction, *width, bias, (tid, &mut registers))
                }
                Site::Hook(kind) => self.call(*kind, (tid, &mut registers)),
            }
        };
        if !seen {
            // The instruction itself must run, and may fault.
            self.restore(tid, address, bias);
            registers.rip = registers.rip.wrapping_sub(1);
        }
        let _ = ptrace::setregs(tid, registers);
        true
    }

    /// Counts a hit of the breakpoint at `address`; returns true if it was hit so often that it
    /// must be removed.
    fn is_exhausted(&mut self, address: u64) -> bool {
        let hits = self.hits.entry(address).or_default();
        *hits += 1;
        self.all_hits += 1;
        *hits > most_hits(self.all_hits) || self.removed.contains(&address)
    }

    /// Emulates the compare instruction that a breakpoint has replaced, and records its operands,
    /// which are `width` bytes wide; returns false if an operand cannot be read. `bias`: the
    /// program's load address minus the address in its file.
    fn compare(
        &mut self,
        instruction: &iced_x86::Instruction,
        width: usize,
        bias: u64,
        (tid, registers): (Pid, &mut libc::user_regs_struct),
    ) -> bool {
        let thread = (tid, &*registers);
        let read = |operand| value(instruction, operand, width, bias, thread);
        let (Some(left), Some(right)) = (read(0), read(1)) else {
            return false;
        };
        registers.eflags = after_compare(registers.eflags, left, right, width);
        let length = instruction.len() as u64;
        registers.rip = registers.rip.wrapping_add(length - 1);
        self.note(instruction.ip(), (left, right), width);
        true
    }

    /// Emulates a comparison callback at whose first instruction the thread `tid` has stopped:
    /// records the operands, which are in its registers as the callback's `kind` says, and lets it
    /// return at once, since the callback does nothing else. Returns false if the return address
    /// cannot be read.
    fn call(
        &mut self,
        kind: HookKind,
        (tid, registers): (Pid, &mut libc::user_regs_struct),
    ) -> bool {
        let Some(back) = memory(tid, registers.rsp, 8) else {
            return false;
        };
        match kind {
            HookKind::Compare { width, .. } => {
                let operands = (registers.rdi & mask(width), registers.rsi & mask(width));
                self.note(back, operands, width);
            }
            HookKind::Switch => self.switch(back, (tid, registers)),
            HookKind::Function(_) => {}
        }
        registers.rip = back;
        registers.rsp = registers.rsp.wrapping_add(8);
        true
    }

    /// Records the comparison of a `switch` statement's value with each of its cases, made at the
    /// address `site`, unless the value equals one of the cases.
    fn switch(&mut self, site: u64, (tid, registers): (Pid, &libc::user_regs_struct)) {
        let (value, list) = (registers.rdi, registers.rsi);
        let word = |index: u64| memory(tid, list.wrapping_add(8 * index), 8);
        let (Some(count), Some(bits)) = (word(0), word(1)) else {
            return;
        };
        let width = bits as usize / 8;
        let cases: Vec<u64> = (2..2 + count.min(CASES)).map_while(word).collect();
        if matches!(width, 1 | 2 | 4 | 8) && !cases.contains(&value) {
            for case in cases {
                self.note(site, (value, case), width);
            }
        }
    }

    fn note(&mut self, site: u64, (left, right): (u64, u64), width: usize) {
        let (left, right) = (left.to_le_bytes(), right.to_le_bytes());
        self.history.push(site, &left[..width], &right[..width]);
    }

    /// Appends to the history the comparisons that the preloaded library has reported since this
    /// function was last called. It is called before a breakpoint's comparison is recorded, so that
    /// the history is in the order in which the program compares.
    fn drain(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.drain(self.history);
        }
    }

    /// Removes the breakpoint at `address` from the memory of a thread's process, so that the
    /// instruction there runs as it is.
    fn restore(&mut self, tid: Pid, address: u64, bias: u64) {
        self.removed.insert(address);
        if let (Some(byte), Some(memory)) = (self.plan.original(address), open_memory(tid)) {
            let _ = memory.write_all_at(&[byte], address.wrapping_add(bias));
        }
    }
}

/// Opens the memory of a stopped thread for reading and writing, code included; `None` if that
/// fails.
fn open_memory(tid: Pid) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.open(format!("/proc/{tid}/mem")).ok()
}

/// Returns the address of the program's entry point in memory, from the process's auxiliary vector;
/// `None` if that cannot be read.
fn entry_of(tid: Pid) -> Option<u64> {
    let vector = std::fs::read(format!("/proc/{tid}/auxv")).ok()?;
    vector.chunks_exact(16).find_map(|pair| {
        let (kind, value) = pair.split_at(8);
        let kind = u64::from_ne_bytes(kind.try_into().ok()?);
        (kind == libc::AT_ENTRY).then_some(u64::from_ne_bytes(value.try_into().ok()?))
    })
}
