//! What single machine instructions do: calls, returns, accesses to memory.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

use super::fault::Access;

/// The longest instruction, in bytes.
pub(crate) const LONGEST: usize = 16;

/// What the start-up code hands to the C library as the program's `main`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) enum MainArgument {
    /// Its address.
    Address(u64),
    /// The address of the slot that holds its address.
    Slot(u64),
}

/// Where a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) enum CallTarget {
    /// To this address.
    Address(u64),
    /// To the address in the slot at this address.
    Slot(u64),
}

/// Where control goes from a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) enum Goes {
    /// To this address.
    To(u64),
    /// To this address or on.
    Either(u64),
    /// Through a pointer.
    Anywhere,
    /// Out of the function.
    Nowhere,
}

impl Goes {
    /// Where it goes, if that is known.
    pub(crate) fn target(self) -> Option<u64> {
        match self {
            Goes::To(target) | Goes::Either(target) => Some(target),
            Goes::Anywhere | Goes::Nowhere => None,
        }
    }
}

/// An instruction behind which control need not go on. Calls are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    /// Its address.
    pub at: u64,
    /// The address behind it.
    pub next: u64,
    /// Where control goes.
    pub goes: Goes,
}

/// One access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryAccess {
    /// First byte.
    pub address: u64,
    /// How many bytes.
    pub size: u64,
    /// Read or written.
    pub access: Access,
}
