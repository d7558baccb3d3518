//! Detects that a call returns: by a hardware watchpoint on its return address, else by a
//! breakpoint at the code to which it returns.
//!
//! The watchpoint distinguishes one call of a recursive function from the others, sees exceptions
//! and `longjmp`, and slows down nothing else. The breakpoint is used where no watchpoint can be
//! set, and for code that a signal interrupted.

use nix::sys::ptrace;
use nix::unistd::Pid;

use crate::hang::stack::ActiveCall;
use crate::registers::Registers;
use crate::unwind::Place;
use crate::watchpoint::{self, Watched};

#[cfg(target_arch = "x86_64")]
mod processor {
    /// The breakpoint instruction of x86-64: its machine code, and how many bytes behind its start
    /// the program counter is when a thread has stopped at it.
    pub const BREAKPOINT: (&[u8], u64) = (&[0xcc], 1);
    /// Distance in bytes from the stack slot with a call's return address up to the stack pointer
    /// that the caller has after the call.
    pub const SLOT: u64 = 8;

    pub fn set_pc(registers: &mut libc::user_regs_struct, pc: u64) {
        registers.rip = pc;
    }
}

#[cfg(target_arch = "aarch64")]
mod processor {
    /// The breakpoint instruction of AArch64: its machine code, and how many bytes behind its start
    /// the program counter is when a thread has stopped at it.
    pub const BREAKPOINT: (&[u8], u64) = (&[0x00, 0x00, 0x20, 0xd4], 0);
    /// Distance in bytes from the stack slot with a call's return address up to the stack pointer
    /// that the caller has after the call. The value has no effect: on AArch64, no watchpoint can
    /// be set on the slot.
    pub const SLOT: u64 = 8;

    pub fn set_pc(registers: &mut libc::user_regs_struct, pc: u64) {
        registers.pc = pc;
    }
}

/// A watchpoint or breakpoint that detects when a call returns.
#[derive(Debug)]
pub(super) enum ReturnTrap {
    /// A hardware watchpoint on the stack slot with the return address of the call; holds where the
    /// caller continues.
    Watch(Place),
    /// A breakpoint in the code at the return address of the call.
    Breakpoint(Breakpoint),
}

impl ReturnTrap {
    /// Sets a watchpoint or breakpoint that stops the thread `tid` when the call made by the stack
    /// frame `caller` returns. The thread must be stopped.
    pub fn set(tid: Pid, caller: &ActiveCall) -> nix::Result<ReturnTrap> {
        let slot = caller.place.sp.wrapping_sub(processor::SLOT);
        if caller.has_called() && watchpoint::set(tid, slot, Watched::Accesses).is_ok() {
            return Ok(ReturnTrap::Watch(caller.place));
        }
        Breakpoint::plant(tid, caller.place).map(ReturnTrap::Breakpoint)
    }

    /// Removes the watchpoint or breakpoint from the stopped thread `tid`.
    pub fn remove(&self, tid: Pid) {
        match self {
            ReturnTrap::Watch(_) => drop(watchpoint::clear(tid)),
            ReturnTrap::Breakpoint(breakpoint) => breakpoint.lift(tid),
        }
    }

    /// Checks whether the thread `tid`, which hit the watchpoint on a call's return address, has
    /// left the call, by a return, a jump or a tail call; false if it only read or overwrote the
    /// return address. `place` is where the caller continues.
    #[cfg(target_arch = "x86_64")]
    pub fn has_left_call(tid: Pid, place: Place) -> bool {
        // By its return, a jump out of it, or by another call in its place.
        ptrace::getregs(tid).is_ok_and(|registers| registers.rsp + processor::SLOT >= place.sp)
    }

    /// Checks whether a thread has left the call whose return address is watched; always false,
    /// because watchpoints are not used on AArch64.
    #[cfg(target_arch = "aarch64")]
    pub fn has_left_call(_: Pid, _: Place) -> bool {
        false
    }
}

/// A breakpoint instruction written into the code of a traced process, with the bytes that were
/// there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Breakpoint {
    pub place: Place,
    before: libc::c_long,
}

impl Breakpoint {
    /// Writes a breakpoint instruction into the code of the process of the stopped thread `tid`, at
    /// `place.pc`, where a caller continues after its call, and returns the breakpoint.
    pub fn plant(tid: Pid, place: Place) -> nix::Result<Breakpoint> {
        let before = ptrace::read(tid, place.pc as ptrace::AddressType)?;
        let breakpoint = Breakpoint { place, before };
        breakpoint.put_back(tid)?;
        Ok(breakpoint)
    }

    /// Writes the breakpoint instruction into the code again, after [`lift`](Breakpoint::lift)
    /// removed it.
    pub fn put_back(&self, tid: Pid) -> nix::Result<()> {
        let (instruction, _) = processor::BREAKPOINT;
        self.write(tid, instruction)
    }

    /// Writes the bytes `code` at the breakpoint's address, into the process of the stopped thread
    /// `tid`; the bytes after them stay as they are.
    fn write(&self, tid: Pid, code: &[u8]) -> nix::Result<()> {
        let at = self.place.pc as ptrace::AddressType;
        let mut bytes = ptrace::read(tid, at)?.to_ne_bytes();
        bytes[..code.len()].copy_from_slice(code);
        ptrace::write(tid, at, libc::c_long::from_ne_bytes(bytes))
    }

    /// Returns true if the thread that hit the breakpoint has returned from the call that is waited
    /// for; false if it has returned from a deeper call of the same function, as the stack pointer
    /// shows.
    pub fn has_left_call(&self, tid: Pid) -> bool {
        Registers::of(tid).is_ok_and(|registers| registers.sp >= self.place.sp)
    }

    /// Removes the breakpoint instruction from the code of the process of the stopped thread `tid`,
    /// and restores the original bytes.
    pub fn lift(&self, tid: Pid) {
        let (instruction, _) = processor::BREAKPOINT;
        // A thread that was killed meanwhile has no code any more.
        let _ = self.write(tid, &self.before.to_ne_bytes()[..instruction.len()]);
    }

    /// Checks whether the stopped thread `tid` hit this breakpoint; if so, resets the thread's
    /// program counter to the address of the breakpoint.
    pub fn was_met(&self, tid: Pid) -> bool {
        let Ok(mut registers) = ptrace::getregs(tid) else {
            return false;
        };
        let (_, behind) = processor::BREAKPOINT;
        if pc_of(&registers) != self.place.pc.wrapping_add(behind) {
            return false;
        }
        processor::set_pc(&mut registers, self.place.pc);
        ptrace::setregs(tid, registers).is_ok()
    }
}

#[cfg(target_arch = "x86_64")]
fn pc_of(registers: &libc::user_regs_struct) -> u64 {
    registers.rip
}

#[cfg(target_arch = "aarch64")]
fn pc_of(registers: &libc::user_regs_struct) -> u64 {
    registers.pc
}
