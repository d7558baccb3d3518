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

/// Where the start-up code of a program gets the address of `main`, to pass it to the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) enum MainArgument {
    /// The start-up code contains this address of `main`.
    Address(u64),
    /// The start-up code reads the address of `main` from the memory slot at this address.
    Slot(u64),
}

/// The function that a call instruction calls: its address, or where its address is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) enum CallTarget {
    /// The instruction calls the function at this address.
    Address(u64),
    /// The instruction calls the function whose address is in the memory slot at this address.
    Slot(u64),
}

/// Where control flow continues after a branch instruction: always at one address, there or at the
/// next instruction, at an unknown address, or nowhere in the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) enum Continuation {
    /// After the branch, control flow always continues at this address.
    To(u64),
    /// After the branch, control flow continues at this address, or at the next instruction (a
    /// conditional jump).
    Either(u64),
    /// After the branch, control flow continues at an address from a register or memory, which is
    /// not known.
    Anywhere,
    /// Control flow leaves the function by a return, or the instruction raises an exception; no
    /// address in the function follows.
    Nowhere,
}

impl Continuation {
    /// Returns the address to which the branch may go, other than the next instruction; `None` for
    /// a return, and where the address comes from a register or memory.
    pub(crate) fn target(self) -> Option<u64> {
        match self {
            Continuation::To(target) | Continuation::Either(target) => Some(target),
            Continuation::Anywhere | Continuation::Nowhere => None,
        }
    }
}

/// A branch instruction: any instruction except a call that may transfer control, such as a jump or
/// a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Address of the branch instruction.
    pub at: u64,
    /// Address of the instruction directly after the branch.
    pub next: u64,
    /// Where control flow continues after the branch instruction.
    pub continuation: Continuation,
}

/// One memory access that an instruction makes: address, size, and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryAccess {
    /// Address of the first byte that the instruction accesses.
    pub address: u64,
    /// Number of bytes that the instruction accesses.
    pub size: u64,
    /// Whether the instruction reads or writes the memory.
    pub access: Access,
}
