//! Decodes single machine instructions: calls, returns, branches and memory accesses.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

use super::fault::Access;

/// Maximum length of a machine instruction, in bytes.
pub(crate) const LONGEST: usize = 16;

/// The address of `main`, or where it is stored, as the start-up code of a program passes it to the
/// C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) enum MainArgument {
    /// `main` has this address.
    Address(u64),
    /// The memory slot at this address holds the address of `main`.
    Slot(u64),
}

/// Target of a call instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) enum CallTarget {
    /// The call goes to this address.
    Address(u64),
    /// The call goes to the address in the memory slot at this address.
    Slot(u64),
}

/// Where control continues after a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) enum Goes {
    /// Control continues at this address.
    To(u64),
    /// Control continues at this address or at the next instruction.
    Either(u64),
    /// Control continues at an address from a register or memory.
    Anywhere,
    /// Control leaves the function by a return, or the instruction raises an exception.
    Nowhere,
}

impl Goes {
    /// Returns the address that the branch may go to; `None` for a return, and where the address
    /// comes from a register or memory.
    pub(crate) fn target(self) -> Option<u64> {
        match self {
            Goes::To(target) | Goes::Either(target) => Some(target),
            Goes::Anywhere | Goes::Nowhere => None,
        }
    }
}

/// An instruction that may transfer control elsewhere, other than a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Address of the branch instruction.
    pub at: u64,
    /// Address of the instruction after the branch.
    pub next: u64,
    /// Where control continues after the branch.
    pub goes: Goes,
}

/// One memory access that an instruction makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryAccess {
    /// Address of the first byte accessed.
    pub address: u64,
    /// Number of bytes accessed.
    pub size: u64,
    /// Whether memory is read or written.
    pub access: Access,
}
