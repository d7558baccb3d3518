//! The facts of one ELF file that keys need.

mod elf;
mod functions;
mod names;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

pub(crate) use functions::{Section, UnwindTables};
pub(crate) use names::{NamedRange, Names};

/// Where a segment of a file goes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Bytes that it takes from the file.
    pub size: u64,
    /// The address that the file gives it.
    pub address: u64,
}

/// Which kind of entry function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// `main`.
    Main,
    /// The entry of a harness: `target_main` or `LLVMFuzzerTestOneInput`.
    Harness,
}

/// What is known of one module's file. All addresses are as the file counts them: the load bias
/// is added where the module is mapped.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// The GNU build id, as hex digits.
    pub build_id: Option<Arc<str>>,
    /// Executable segments.
    pub executable: Vec<Segment>,
    /// Unwind tables, where there are any.
    pub unwind: Option<UnwindTables>,
    /// Entry functions by start.
    pub entries: Vec<(u64, Entry)>,
    /// Where the program starts (`_start`), which is the C library's and not the user's.
    pub start: Option<u64>,
    /// Exported functions.
    pub exports: Names,
    /// Functions of runtimes that are linked into the module, and those the user wants dropped.
    pub linked: Names,
    /// (start, end) of functions by symbol, for those without an entry in the unwind tables.
    pub symbols: Vec<(u64, u64)>,
    /// Names of the imported functions by the slot that holds their address.
    pub slots: HashMap<u64, Arc<str>>,
    /// Address of glibc's `__abort_msg`.
    pub abort_message: Option<u64>,
    /// Whether it is a program that needs no loader.
    pub is_static: bool,
    /// Whether it has a symbol table.
    pub has_symbols: bool,
}

impl Module {
    /// The load bias of a mapping that begins at `start` and at `offset` of the file.
    ///
    /// It is taken from the *executable* segment: the linker rust-lld puts two segments on one
    /// page of the file, so that the first segment that touches the page gives a wrong bias.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> u64 {
        self.executable
            .iter()
            .find(|segment| {
                let first = segment.offset & !0xfff;
                offset >= first && offset < segment.offset.saturating_add(segment.size.max(1))
            })
            .map_or(start.wrapping_sub(offset), |segment| {
                start
                    .wrapping_sub(offset)
                    .wrapping_add(segment.offset)
                    .wrapping_sub(segment.address)
            })
    }

    /// Start of the function that covers `address`.
    pub(crate) fn function_start(&self, address: u64) -> Option<u64> {
        self.function(address).map(|function| function.start)
    }

    /// The function that covers `address`: by the unwind tables, else by symbols.
    pub(crate) fn function(&self, address: u64) -> Option<Range<u64>> {
        let by_tables = self
            .unwind
            .as_ref()
            .and_then(|tables| tables.function(address));
        by_tables.or_else(|| {
            let behind = self.symbols.partition_point(|(start, _)| *start <= address);
            let (start, end) = *self.symbols.get(behind.checked_sub(1)?)?;
            (address < end).then_some(start..end)
        })
    }

    /// Which entry function, if any, is the one that starts at `start`.
    pub(crate) fn entry(&self, start: u64) -> Option<Entry> {
        self.entries
            .iter()
            .filter(|(at, _)| *at == start)
            .map(|(_, entry)| *entry)
            .max()
    }
}

/// Start of the function that covers `address` in an ELF file, both as the file counts
/// addresses; `None` where the file is no 64-bit ELF file or says nothing of it.
///
/// This is the reading that triage does of the modules of a process, for tools and for fuzzing:
/// ELF files are hostile input.
pub fn function_start_in(image: &[u8], address: u64) -> Option<u64> {
    Module::parse(image, false, &[])?.function_start(address)
}
