//! What a faulting access touched, and how.

use serde::{Deserialize, Serialize};

use super::address::Address;
use super::maps::Maps;

/// What lies at a fault address (crash-keys.md, "Record").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressClass {
    /// Below 64 KiB.
    Null,
    /// No address at all on this processor.
    NonCanonical,
    /// In no mapping, within 1 MiB of the stack pointer and below the stack: the stack has
    /// overflowed.
    NearSp,
    /// In a stack.
    Stack,
    /// In the heap.
    Heap,
    /// In a mapped file.
    Image,
    /// In memory without a file.
    Anonymous,
    /// In no mapping.
    Unmapped,
}

/// How memory was accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// It was read.
    #[serde(rename = "r")]
    Read,
    /// It was written.
    #[serde(rename = "w")]
    Write,
    /// It was executed.
    #[serde(rename = "x")]
    Execute,
}

/// The access that faulted, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The address accessed.
    pub address: Option<Address>,
    /// What lies there.
    pub class: Option<AddressClass>,
    /// How it was accessed.
    pub access: Option<Access>,
}

/// Addresses below this are taken for a null pointer with an offset, in bytes.
const NULL_PAGES: u64 = 64 << 10;
/// How far from the stack pointer a fault counts as its, in bytes.
const NEAR: u64 = 1 << 20;

/// Whether the processor can form `address`: on x86-64 bits 63 to 47 are all equal.
#[cfg(target_arch = "x86_64")]
pub fn is_canonical(address: u64) -> bool {
    matches!(address >> 47, 0 | 0x1_ffff)
}

/// Whether the processor can form `address`: on AArch64 bits 63 to 48 are all equal.
#[cfg(target_arch = "aarch64")]
pub fn is_canonical(address: u64) -> bool {
    matches!(address >> 48, 0 | 0xffff)
}

/// What lies at `address`, seen from a thread with this stack pointer.
///
/// Memory that nobody may access (a guard region) counts as no mapping. Only what lies *below*
/// the stack is "near sp": a write that runs off the upper end of the stack is no stack overflow.
pub fn address_class(address: u64, sp: u64, maps: &Maps) -> AddressClass {
    if address < NULL_PAGES {
        return AddressClass::Null;
    }
    if !is_canonical(address) {
        return AddressClass::NonCanonical;
    }
    let accessible = |address| maps.find(address).filter(|mapping| mapping.is_accessible());
    let stack = accessible(sp);
    let Some(mapping) = accessible(address) else {
        let below = stack.is_none_or(|stack| address < stack.start);
        let near = address.abs_diff(sp) <= NEAR;
        return if near && below {
            AddressClass::NearSp
        } else {
            AddressClass::Unmapped
        };
    };
    match mapping.path.as_os_str().as_encoded_bytes() {
        b"[stack]" => AddressClass::Stack,
        b"[heap]" => AddressClass::Heap,
        _ if mapping.is_file() => AddressClass::Image,
        _ if stack.is_some_and(|stack| stack.start == mapping.start) => AddressClass::Stack,
        _ => AddressClass::Anonymous,
    }
}
