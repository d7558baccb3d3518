//! The memory access that faulted: its address, what is mapped there, and how it was accessed.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::memory::Maps;

/// Kind of the address that a faulting memory access went to, by what is mapped there: null, stack,
/// heap, a file, nothing … (docs/src/keys.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressClass {
    /// The accessed address is below 64 KiB: a null pointer, possibly with an offset.
    Null,
    /// The accessed address is not canonical, so it can never be valid on this processor.
    NonCanonical,
    /// The accessed address is unmapped, below the stack and within 1 MiB of the stack pointer: a
    /// stack overflow.
    NearSp,
    /// The accessed address is in a mapped stack.
    Stack,
    /// The accessed address is in the heap of the process.
    Heap,
    /// The accessed address is in a mapped file, such as the program or a library.
    Image,
    /// The accessed address is in mapped memory without a file, and is neither stack nor heap.
    Anonymous,
    /// The accessed address is one at which nothing is mapped.
    Unmapped,
}

/// Whether a memory access reads, writes or executes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// The memory access reads memory.
    #[serde(rename = "r")]
    Read,
    /// The memory access writes memory.
    #[serde(rename = "w")]
    Write,
    /// The memory access executes memory: code was fetched from the address.
    #[serde(rename = "x")]
    Execute,
}

/// The memory access at which the processor raised the signal of a crash; unknown parts are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Address that the faulting instruction accessed; for signals other than `SIGSEGV` and
    /// `SIGBUS`, the address that the kernel reports with the signal; `None` if it is unknown.
    pub address: Option<Address>,
    /// What is mapped at the accessed address: stack, heap, a file, nothing …; `None` if the
    /// address is unknown.
    pub class: Option<AddressClass>,
    /// Whether the faulting access reads, writes or executes memory; `None` if that is unknown.
    pub access: Option<Access>,
}

/// Lowest address that does not count as a null pointer. Each lower address counts as a null
/// pointer with an offset, as of a field in a null struct.
const NULL_PAGES: u64 = 64 << 10;
/// Maximum distance of an unmapped fault address below the stack pointer to count as a stack
/// overflow, in bytes.
const NEAR: u64 = 1 << 20;

/// Checks whether `address` is canonical: on x86-64, bits 63 to 47 are equal.
#[cfg(target_arch = "x86_64")]
pub fn is_canonical(address: u64) -> bool {
    matches!(address >> 47, 0 | 0x1_ffff)
}

/// Checks whether `address` is canonical: on AArch64, bits 63 to 48 are equal.
#[cfg(target_arch = "aarch64")]
pub fn is_canonical(address: u64) -> bool {
    matches!(address >> 48, 0 | 0xffff)
}

/// Classifies `address` by what is mapped there (stack, heap, file, nothing …), for a thread with
/// stack pointer `sp`.
///
/// Inaccessible memory (a guard region) counts as not mapped. Only an address *below* the stack is
/// classified as `NearSp`: a write past the upper end of the stack is not a stack overflow.
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
        return match near && below {
            true => AddressClass::NearSp,
            false => AddressClass::Unmapped,
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

/// A virtual address or a register value. Serialized as the string `"0x7f…"`, because many JSON
/// readers lose the low digits of integers above 2⁵³.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub u64);

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map(Address)
            .ok_or_else(|| serde::de::Error::custom(format!("an address is 0x…, not {text:?}")))
    }
}
