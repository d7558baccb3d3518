//! Hardware watchpoints on a word of a traced thread's memory (x86-64).

use nix::sys::ptrace;
use nix::unistd::Pid;

/// The kind of accesses to the watched word after which the thread stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// The thread stops after each write to the word.
    Writes,
    /// The thread stops after each read of the word and after each write to it.
    Accesses,
}

/// Sets watchpoint 0 of the stopped thread `tid` on the eight bytes at `address`, which must be a
/// multiple of 8; `watched` says after which accesses the thread stops.
///
/// # Errors
/// `EINVAL` for an address that is none of the process's own, `ENOSPC` where all watchpoints are
/// in use, `ENOSYS` if the processor is not x86-64.
pub(crate) fn set(tid: Pid, address: u64, watched: Watched) -> nix::Result<()> {
    clear(tid)?;
    processor::set(tid, address, watched)
}

/// Disables all watchpoints of the stopped thread `tid`; only watchpoint 0 is in use.
///
/// # Errors
/// `ESRCH` if the thread is gone, `ENOSYS` if the processor is not x86-64.
pub(crate) fn clear(tid: Pid) -> nix::Result<()> {
    processor::clear(tid)
}

/// Returns true if the thread `tid` has stopped at watchpoint 0 since the last call of this
/// function, and resets the processor's record of this.
pub(crate) fn was_hit(tid: Pid) -> bool {
    processor::was_hit(tid)
}

#[cfg(target_arch = "x86_64")]
mod processor {
    use super::*;

    /// Number of the debug register (DR7) that enables watchpoints. `STATUS` is the number of the
    /// debug register (DR6) that says which watchpoints have been hit.
    const CONTROL: usize = 7;
    const STATUS: usize = 6;

    fn register(number: usize) -> ptrace::AddressType {
        let registers = std::mem::offset_of!(libc::user, u_debugreg);
        (registers + number * size_of::<u64>()) as ptrace::AddressType
    }

    pub fn set(tid: Pid, address: u64, watched: Watched) -> nix::Result<()> {
        // Watchpoint 0 of the thread, on eight bytes: for writes, or for reads and writes.
        let enabled = match watched {
            Watched::Writes => 1 | 0b1001 << 16,
            Watched::Accesses => 1 | 0b1011 << 16,
        };
        ptrace::write_user(tid, register(0), address.cast_signed())?;
        ptrace::write_user(tid, register(CONTROL), enabled)
    }

    pub fn clear(tid: Pid) -> nix::Result<()> {
        ptrace::write_user(tid, register(CONTROL), 0)
    }

    pub fn was_hit(tid: Pid) -> bool {
        let status = ptrace::read_user(tid, register(STATUS)).unwrap_or(0);
        status & 1 != 0 && ptrace::write_user(tid, register(STATUS), 0).is_ok()
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod processor {
    use super::*;

    pub fn set(_: Pid, _: u64, _: Watched) -> nix::Result<()> {
        Err(nix::errno::Errno::ENOSYS)
    }

    pub fn clear(_: Pid) -> nix::Result<()> {
        Err(nix::errno::Errno::ENOSYS)
    }

    pub fn was_hit(_: Pid) -> bool {
        false
    }
}
