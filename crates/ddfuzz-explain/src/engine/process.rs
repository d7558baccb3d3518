//! A stopped process under ptrace: registers, memory, breakpoints, system calls and function calls
//! that are injected into it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use ddfuzz_exec::inner_pid;
use ddfuzz_triage::memory::Memory;
use libc::user_regs_struct;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::ptrace::Options;
use nix::unistd::Pid;

pub use super::registers::{by_number, register_mut};
use super::watchdog::{Limit, Watchdog, clock, count_traced};
use crate::engine::open_files::OpenFiles;
use crate::engine::watchdog::TimeLimit;

/// Why a process has stopped (trap, system call, signal, ptrace event) or ended (exit, signal).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A breakpoint was hit, one step was made, or a watched address was written.
    Trap,
    /// The process is entering or leaving a system call.
    SystemCall,
    /// This signal is about to be delivered to the process.
    Signal(i32),
    /// An event of ptrace(2), such as a new process, with its number (`PTRACE_EVENT_…`).
    Event(i32),
    /// The process exited with this status.
    Exited(i32),
    /// The process died of this signal.
    Died(i32),
}

/// Number of stops of a process after which the CPU time that it has used is counted anew.
const UNCOUNTED: u32 = 1024;
/// Machine code of the instruction (`int3`) with which a breakpoint stops a program.
const BREAKPOINT: u8 = 0xcc;

/// A traced process of one thread. Dropping it kills the process.
pub struct Process {
    /// The process's id.
    pub pid: Pid,
    /// The process's id as the process itself sees it, which is another in a sandbox.
    pub own_id: Pid,
    memory: File,
    handle: OwnedFd,
    /// Addresses of the breakpoints, with the bytes that they replace.
    breakpoints: BTreeMap<u64, u8>,
    /// How the process ended; `None` until it was waited for after its end.
    end: Option<Stop>,
    /// CPU time of the process that is already included in the sum that `cpu_spent` returns.
    counted: Duration,
    /// Number of stops since the CPU time of the process was last counted.
    stops: u32,
    /// Events at which the process, and forks that are made of it later, stop.
    options: Options,
    watchdog: Watchdog,
}

impl Memory for Process {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            match self
                .memory
                .read_at(&mut buffer[filled..], address.wrapping_add(filled as u64))
            {
                Ok(0) | Err(_) => break,
                Ok(count) => filled += count,
            }
        }
        for (at, byte) in self
            .breakpoints
            .range(address..address.saturating_add(filled as u64))
        {
            buffer[(at - address) as usize] = *byte;
        }
        filled
    }
}

/// Returns the ptrace options: the events at which each traced process stops.
fn options() -> Options {
    Options::PTRACE_O_EXITKILL
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACESYSGOOD
}

fn error(errno: Errno) -> io::Error {
    errno.into()
}

impl Process {
    /// Starts to trace the process `pid`, which waits before its `execve`. `watchdog` ends the
    /// process when its time is over.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn seize(pid: Pid, watchdog: &Watchdog) -> io::Result<Process> {
        ptrace::seize(pid, options()).map_err(error)?;
        let mut process = Process::of(pid, watchdog)?;
        process.own_id = inner_pid(pid);
        Ok(process)
    }

    /// Makes the process, and its forks as well, stop with [`Stop::Event`] when it exits.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn watch_exit(&mut self) -> io::Result<()> {
        self.stop_at(Options::PTRACE_O_TRACEEXIT)
    }

    /// Makes the process, and its forks as well, stop at further events.
    pub(super) fn stop_at(&mut self, events: Options) -> io::Result<()> {
        self.options |= events;
        ptrace::setoptions(self.pid, self.options).map_err(error)
    }

    fn of(pid: Pid, watchdog: &Watchdog) -> io::Result<Process> {
        // SAFETY: the call takes two numbers and gives a new descriptor or an error.
        let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
        if handle < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and owned by nobody else.
        let handle = unsafe { OwnedFd::from_raw_fd(handle as i32) };
        Ok(Process {
            pid,
            own_id: pid,
            memory: Process::open_memory(pid)?,
            handle,
            breakpoints: BTreeMap::new(),
            end: None,
            counted: Duration::ZERO,
            stops: 0,
            options: options(),
            watchdog: watchdog.clone(),
        })
    }

    fn open_memory(pid: Pid) -> io::Result<File> {
        File::options()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))
    }

    /// Opens the process's memory again after `execve` has replaced it, and forgets all
    /// breakpoints.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn renew_memory(&mut self) -> io::Result<()> {
        self.memory = Process::open_memory(self.pid)?;
        self.breakpoints.clear();
        Ok(())
    }

    /// Returns the process's general registers.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn registers(&self) -> io::Result<user_regs_struct> {
        ptrace::getregs(self.pid).map_err(error)
    }

    /// Sets the process's general registers.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn set_registers(&self, registers: user_regs_struct) -> io::Result<()> {
        ptrace::setregs(self.pid, registers).map_err(error)
    }

    /// Returns the low 8 bytes of the vector register `number` (0…15); `None` if the process is
    /// gone or there is no such register.
    pub fn vector(&self, number: u16) -> Option<u64> {
        let all = ptrace::getregset::<ptrace::regset::NT_PRFPREG>(self.pid).ok()?;
        let at = usize::from(number) * 4;
        let low = u64::from(*all.xmm_space.get(at)?);
        Some(low | u64::from(*all.xmm_space.get(at + 1)?) << 32)
    }

    /// Sets the low 8 bytes of the vector register `number` (0…15).
    ///
    /// # Errors
    /// When the process is gone.
    pub fn set_vector(&self, number: u16, value: u64) -> io::Result<()> {
        let all = ptrace::getregset::<ptrace::regset::NT_PRFPREG>(self.pid);
        let mut all = all.map_err(error)?;
        let at = usize::from(number) * 4;
        (all.xmm_space[at], all.xmm_space[at + 1]) = (value as u32, (value >> 32) as u32);
        ptrace::setregset::<ptrace::regset::NT_PRFPREG>(self.pid, all).map_err(error)
    }

    /// Writes bytes to the process's memory, even to memory that the process itself can only read.
    ///
    /// # Errors
    /// When nothing is mapped at `address`.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, address)
    }

    /// Sets a breakpoint at an address; does nothing if there is one already.
    ///
    /// # Errors
    /// When there is no memory at `address`.
    pub fn set_breakpoint(&mut self, address: u64) -> io::Result<()> {
        if self.breakpoints.contains_key(&address) {
            return Ok(());
        }
        let mut byte = [0];
        self.memory.read_exact_at(&mut byte, address)?;
        self.write(address, &[BREAKPOINT])?;
        self.breakpoints.insert(address, byte[0]);
        Ok(())
    }

    /// Removes the breakpoint at an address, if one is there.
    ///
    /// # Errors
    /// When the memory is gone.
    pub fn remove_breakpoint(&mut self, address: u64) -> io::Result<()> {
        match self.breakpoints.remove(&address) {
            Some(byte) => self.write(address, &[byte]),
            None => Ok(()),
        }
    }

    /// Removes all breakpoints of the process.
    ///
    /// # Errors
    /// When memory is gone.
    pub fn remove_breakpoints(&mut self) -> io::Result<()> {
        for (address, byte) in std::mem::take(&mut self.breakpoints) {
            self.write(address, &[byte])?;
        }
        Ok(())
    }

    /// If a breakpoint caused the last [`Stop::Trap`], sets the program counter back to it and
    /// returns the registers; else returns `None` and changes nothing.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn at_breakpoint(&mut self) -> io::Result<Option<user_regs_struct>> {
        let mut registers = self.registers()?;
        let at = registers.rip.wrapping_sub(1);
        if !self.breakpoints.contains_key(&at) {
            return Ok(None);
        }
        registers.rip = at;
        self.set_registers(registers)?;
        Ok(Some(registers))
    }

    /// Executes the one instruction at `address`, where the process has stopped at a breakpoint,
    /// and sets the breakpoint again. Returns `None` if that succeeds, else why the process stopped
    /// or ended. Without a breakpoint at `address`, does nothing and returns `None`.
    ///
    /// If a signal stops the process, the breakpoint stays removed: when the process goes on, it
    /// executes the instruction again, and if this faults, its signal is seen then.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn step_over(&mut self, address: u64) -> io::Result<Option<Stop>> {
        let Some(byte) = self.breakpoints.get(&address).copied() else {
            return Ok(None);
        };
        self.write(address, &[byte])?;
        let stop = self.step()?;
        match stop {
            Stop::Signal(_) => drop(self.breakpoints.remove(&address)),
            _ if self.end.is_some() => {}
            _ => self.write(address, &[BREAKPOINT])?,
        }
        Ok(match stop {
            Stop::Trap => None,
            other => Some(other),
        })
    }

    /// Executes the instruction at `address`, under a breakpoint, and returns true if it has
    /// written to watched memory.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn step_over_writes(&mut self, address: u64) -> io::Result<bool> {
        self.step_over(address)?;
        // The lower bits of the status register: which watchpoints were hit.
        Ok(self.end.is_none() && self.debug_register(6)? & 0xf != 0)
    }

    /// Executes the instruction at the program counter if a breakpoint is there; else does nothing.
    /// How the process stopped is not reported.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn step_over_here(&mut self) -> io::Result<()> {
        let here = self.registers()?.rip;
        self.step_over(here).map(drop)
    }

    /// Lets the process execute one instruction, and returns why it then stopped or ended.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn step(&mut self) -> io::Result<Stop> {
        ptrace::step(self.pid, None).map_err(error)?;
        self.wait()
    }

    /// Lets the process run, delivers `signal` to it (0 for none), and returns why it stops or
    /// ends.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn go(&mut self, signal: i32) -> io::Result<Stop> {
        ddfuzz_exec::tracing::resume(libc::PTRACE_CONT, self.pid, signal);
        self.wait()
    }

    /// Lets the process run up to the next entry to or exit from a system call, delivers `signal`
    /// to it (0 for none), and returns why it stops or ends.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn go_to_system_call(&mut self, signal: i32) -> io::Result<Stop> {
        ddfuzz_exec::tracing::resume(libc::PTRACE_SYSCALL, self.pid, signal);
        self.wait()
    }

    /// Waits until the process stops or ends, and returns why. If the process has ended before,
    /// returns that end again: it may have been killed during a step whose result was ignored.
    ///
    /// # Errors
    /// When the process is no longer traced.
    pub fn wait(&mut self) -> io::Result<Stop> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        let mut status = 0;
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        loop {
            // SAFETY: both are valid places for the results; the call has no other effect on us.
            let pid = unsafe {
                let usage = usage.as_mut_ptr();
                libc::wait4(self.pid.as_raw(), &mut status, libc::__WALL, usage)
            };
            match Errno::result(pid) {
                Ok(_) => break,
                Err(Errno::EINTR) => {}
                // Killed by its time limit, it was waited for with another process that was killed.
                Err(Errno::ECHILD) => {
                    let end = Stop::Died(libc::SIGKILL);
                    self.end = Some(end);
                    return Ok(end);
                }
                Err(errno) => return Err(error(errno)),
            }
        }
        if libc::WIFSTOPPED(status) {
            self.stops += 1;
            if self.stops == UNCOUNTED {
                self.count_cpu();
            }
            let signal = libc::WSTOPSIG(status);
            return Ok(match (status >> 16, signal) {
                (0, libc::SIGTRAP) => Stop::Trap,
                (0, signal) if signal == libc::SIGTRAP | 0x80 => Stop::SystemCall,
                (0, signal) => Stop::Signal(signal),
                (event, _) => Stop::Event(event),
            });
        }
        // SAFETY: all bits zero are a valid value, and the call has set it.
        let usage = unsafe { usage.assume_init() };
        let [user, system] = [usage.ru_utime, usage.ru_stime]
            .map(|it| Duration::new(it.tv_sec as u64, it.tv_usec as u32 * 1000));
        self.count_until(user + system);
        let end = match libc::WIFEXITED(status) {
            true => Stop::Exited(libc::WEXITSTATUS(status)),
            false => Stop::Died(libc::WTERMSIG(status)),
        };
        self.end = Some(end);
        Ok(end)
    }

    /// Returns true if the process has writable memory that its forks would share with it.
    pub fn shares_memory(&self) -> bool {
        let path = format!("/proc/{}/maps", self.pid);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let permissions = text.lines().filter_map(|line| line.split(' ').nth(1));
        permissions
            .into_iter()
            .any(|it| it.contains('w') && it.ends_with('s'))
    }

    /// Sets a time limit, after which the process is killed. Dropping the result removes the limit.
    pub fn limit(&self, limit: TimeLimit) -> Limit {
        self.watchdog.arm(&self.handle, self.pid, limit)
    }

    /// Adds the CPU time that the process has used since the last count to the sum `cpu_spent`.
    pub fn count_cpu(&mut self) {
        let mut id = 0;
        // SAFETY: `id` is a valid place for the number of the clock; the call has no other effect.
        let failed = unsafe { libc::clock_getcpuclockid(self.pid.as_raw(), &mut id) };
        if failed == 0 {
            self.count_until(clock(id));
        }
    }

    fn count_until(&mut self, used: Duration) {
        self.stops = 0;
        count_traced(used.saturating_sub(self.counted));
        self.counted = used.max(self.counted);
    }

    /// Kills the process and waits for its end.
    pub fn kill(&mut self) {
        if self.end.is_some() {
            return;
        }
        self.count_cpu();
        // SAFETY: the call takes numbers and a null pointer, which stands for no details.
        unsafe {
            let none = std::ptr::null::<libc::siginfo_t>();
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.handle.as_raw_fd(),
                libc::SIGKILL,
                none,
                0,
            );
        }
        // The first thread is reaped only after all others, which are traced as well.
        while let Ok((tid, status)) = ddfuzz_exec::tracing::wait() {
            let is_over = libc::WIFEXITED(status) || libc::WIFSIGNALED(status);
            if tid == self.pid && is_over {
                break;
            }
            let exits = status >> 16 == libc::PTRACE_EVENT_EXIT;
            if !is_over && (tid == self.pid || exits) {
                // It has stopped once more, before its end.
                ddfuzz_exec::tracing::resume(libc::PTRACE_CONT, tid, 0);
            }
        }
        self.end = Some(Stop::Died(libc::SIGKILL));
    }

    /// Makes the process execute the system call `number` with `arguments`, and returns the call's
    /// result. `instruction` is the address of a `syscall` instruction. If the call creates a
    /// process, returns the new process as well, stopped.
    pub(super) fn system_call(
        &mut self,
        instruction: u64,
        number: u64,
        arguments: [u64; 5],
    ) -> io::Result<(u64, Option<Process>)> {
        let before = self.registers()?;
        let mut registers = before;
        registers.rip = instruction;
        registers.rax = number;
        registers.orig_rax = u64::MAX;
        let [rdi, rsi, rdx, r10, r8] = arguments;
        (registers.rdi, registers.rsi, registers.rdx) = (rdi, rsi, rdx);
        (registers.r10, registers.r8) = (r10, r8);
        self.set_registers(registers)?;
        let mut child = None;
        loop {
            match self.step()? {
                Stop::Trap => break,
                Stop::Event(libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK) => {
                    let pid = ptrace::getevent(self.pid).map_err(error)?;
                    let mut process = Process::of(Pid::from_raw(pid as i32), &self.watchdog)?;
                    process.breakpoints = self.breakpoints.clone();
                    process.options = self.options;
                    process.wait()?;
                    process.set_registers(user_regs_struct {
                        orig_rax: u64::MAX,
                        ..before
                    })?;
                    child = Some(process);
                }
                Stop::Exited(_) | Stop::Died(_) => return Err(io::ErrorKind::BrokenPipe.into()),
                // A signal that arrives now is lost; nobody but the target itself sends one.
                _ => {}
            }
        }
        let result = self.registers()?.rax;
        self.set_registers(user_regs_struct {
            orig_rax: u64::MAX,
            ..before
        })?;
        Ok((result, child))
    }

    /// Forks the process where it is stopped, and returns the new process, which is stopped at the
    /// same place, and whose end sends no signal.
    ///
    /// # Errors
    /// When the system refuses another process.
    pub fn fork(&mut self, instruction: u64) -> io::Result<Process> {
        const CLONE_CHILD_SETTID: u64 = 0x0100_0000;
        // Where glibc keeps the thread's id: what aborts sends itself a signal by it.
        let thread = self.registers()?.fs_base.wrapping_add(0x2d0);
        let kept = self.bytes(thread, 4);
        let is_there = kept == self.own_id.as_raw().to_le_bytes();
        let flags = if is_there { CLONE_CHILD_SETTID } else { 0 };
        let arguments = [flags, 0, 0, thread, 0];
        match self.system_call(instruction, libc::SYS_clone as u64, arguments)? {
            (own_id, Some(mut child)) => {
                child.own_id = Pid::from_raw(own_id as i32);
                Ok(child)
            }
            (result, None) => Err(io::Error::from_raw_os_error(
                (result as i64).wrapping_neg() as i32
            )),
        }
    }

    /// Makes the process reap a child that has ended; `child` is the child's id as the process sees
    /// it ([`Process::own_id`]).
    ///
    /// # Errors
    /// When the process is gone.
    pub fn reap(&mut self, instruction: u64, child: Pid) -> io::Result<()> {
        let options = (libc::__WALL | libc::WNOHANG) as u64;
        let arguments = [child.as_raw() as u64, 0, options, 0, 0];
        self.system_call(instruction, libc::SYS_wait4 as u64, arguments)
            .map(drop)
    }

    /// Returns `result` from a function that the process has just entered, without running it;
    /// `registers` are those at its entry. Does nothing if the return address cannot be read.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn return_at_once(&mut self, registers: user_regs_struct, result: u64) -> io::Result<()> {
        let Some(back) = self.word(registers.rsp) else {
            return Ok(());
        };
        self.set_registers(user_regs_struct {
            rax: result,
            rip: back,
            rsp: registers.rsp + 8,
            ..registers
        })
    }

    /// Calls a function of the process with one argument, and returns its result; `None` where the
    /// call does not return.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn call(&mut self, function: u64, argument: u64) -> io::Result<Option<u64>> {
        self.call_with(function, [argument, 0, 0, 0, 0])
    }

    /// Calls a function of the process with five arguments, and returns its result; `None` where
    /// the call does not return.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn call_with(&mut self, function: u64, arguments: [u64; 5]) -> io::Result<Option<u64>> {
        let [rdi, rsi, rdx, rcx, r8] = arguments;
        let before = self.registers()?;
        let had = self.breakpoints.contains_key(&before.rip);
        self.set_breakpoint(before.rip)?;
        // Below the red zone of the interrupted function, as at the entry of a called one.
        let stack = (before.rsp - 512) & !15;
        self.write(stack - 8, &before.rip.to_le_bytes())?;
        self.set_registers(user_regs_struct {
            rip: function,
            rsp: stack - 8,
            rdi,
            rsi,
            rdx,
            rcx,
            r8,
            rax: 0,
            orig_rax: u64::MAX,
            ..before
        })?;
        let result = loop {
            match self.go(0)? {
                Stop::Trap => {
                    let registers = self.registers()?;
                    if registers.rip == before.rip + 1 && registers.rsp == stack {
                        break Some(registers.rax);
                    }
                    return Ok(None);
                }
                Stop::Exited(_) | Stop::Died(_) | Stop::Signal(_) => return Ok(None),
                Stop::SystemCall | Stop::Event(_) => {}
            }
        };
        if !had {
            self.remove_breakpoint(before.rip)?;
        }
        self.set_registers(user_regs_struct {
            orig_rax: u64::MAX,
            ..before
        })?;
        Ok(result)
    }

    /// Sets the hardware watchpoint `slot` (0…3) to the `size` bytes (1, 2, 4 or 8, aligned) at
    /// `address`: the process stops after each instruction that writes them.
    ///
    /// # Errors
    /// When the processor has no register left, or the address is not aligned.
    pub fn watch(&self, slot: usize, address: u64, size: u64) -> io::Result<()> {
        let length = match size {
            1 => 0,
            2 => 1,
            4 => 3,
            _ => 2,
        };
        let base = std::mem::offset_of!(libc::user, u_debugreg) as u64;
        let set = |register: u64, value: u64| {
            // SAFETY: the request takes numbers and changes only the traced process.
            let result = unsafe {
                libc::ptrace(
                    libc::PTRACE_POKEUSER,
                    self.pid.as_raw(),
                    base + 8 * register,
                    value,
                )
            };
            Errno::result(result).map(drop).map_err(error)
        };
        set(slot as u64, address)?;
        // Enabled, on writes, of this length: for all slots up to this one.
        let mut control = self.debug_register(7)?;
        control |= 1 << (2 * slot) | (0b01 | length << 2) << (16 + 4 * slot);
        set(7, control)
    }

    /// Returns by which watchpoints the process was stopped last, as bits: that with slot 0 in the
    /// lowest.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn written_slots(&self) -> io::Result<u64> {
        Ok(self.debug_register(6)? & 0b1111)
    }

    /// Reads a debug register of the processor, by its number.
    fn debug_register(&self, number: usize) -> io::Result<u64> {
        let at = std::mem::offset_of!(libc::user, u_debugreg) + 8 * number;
        let word = ptrace::read_user(self.pid, at as ptrace::AddressType);
        word.map(|word| word as u64).map_err(error)
    }

    /// Returns duplicates of the regular files that the process has open, with their offsets.
    pub fn open_files(&self) -> OpenFiles {
        OpenFiles::of(self.pid, &self.handle)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::engine::watchdog::Allowance;

    #[test]
    fn an_end_that_was_waited_for_elsewhere_is_that_of_a_kill() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let watchdog = Watchdog::start(Allowance::of_budget(Duration::from_secs(600))).unwrap();
        let pid = Pid::from_raw(child.id() as i32);
        let mut process = Process::seize(pid, &watchdog).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        for _ in 0..2 {
            assert_eq!(process.wait().unwrap(), Stop::Died(libc::SIGKILL));
        }
    }
}
