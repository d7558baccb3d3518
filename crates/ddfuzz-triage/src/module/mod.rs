//! Facts of one ELF file that keys need: segments, function ranges, names, entry functions.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use addr2line::gimli::{
    BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Pointer, UnwindSection,
};

mod elf;
mod names;
pub(crate) use elf::{build_id, has_plain_lines};
pub(crate) use names::Names;

/// A loadable segment of an ELF file: where it is in the file, and in the file's own address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Offset in the ELF file at which the segment begins, in bytes.
    pub offset: u64,
    /// Number of bytes that the segment has in the ELF file.
    pub size: u64,
    /// Address of the segment in the file's own address space, that is, without the load bias.
    pub address: u64,
}

/// Kind of function at which user code begins: `main`, or the entry of a fuzzing harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// The function at which user code begins is `main`.
    Main,
    /// The function at which user code begins is the entry of a fuzzing harness: `target_main` or
    /// `LLVMFuzzerTestOneInput`.
    Harness,
}

/// The facts about one ELF file (program or library) that triage needs. All addresses are in the
/// file's own address space, without the load bias.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// GNU build id of the ELF file, as hex digits; `None` if it has none.
    pub build_id: Option<Arc<str>>,
    /// Executable segments of the ELF file, that is, those that contain code.
    pub executable: Vec<Segment>,
    /// Unwind tables of the ELF file (`.eh_frame` and its index); `None` if it has none.
    pub unwind: Option<UnwindTables>,
    /// Start address and kind of each entry function (`main`, harness) in the ELF file.
    pub entries: Vec<(u64, Entry)>,
    /// Address of the program's entry point (`_start`), which belongs to the C library; `None`
    /// where the ELF file has none.
    pub start: Option<u64>,
    /// Names and addresses of the functions that the ELF file exports.
    pub exports: Names,
    /// Names and addresses of the runtime functions (C library, sanitizer) that are linked into
    /// this file, and of the functions that the user wants keys to ignore like runtime functions.
    pub linked: Names,
    /// Start and end address of each function in the symbol table of the ELF file, for functions
    /// that have no unwind table entry.
    pub symbols: Vec<(u64, u64)>,
    /// Imported functions: the name of each, by the address of the memory slot into which the
    /// loader writes the function's address.
    pub slots: HashMap<u64, Arc<str>>,
    /// Address of glibc's variable `__abort_msg`; `None` if the ELF file does not define it.
    pub abort_message: Option<u64>,
    /// Whether the ELF file is a statically linked program, which needs no loader.
    pub is_static: bool,
    /// Whether the ELF file has a symbol table, that is, is not stripped.
    pub has_symbols: bool,
}

impl Module {
    /// Returns the load bias (address in memory minus address in the file) of this ELF file, if a
    /// part of it is mapped at address `start` from file offset `offset`.
    ///
    /// The executable segment decides: rust-lld puts two segments on one page of the file, so the
    /// first segment that touches the page would give a wrong bias.
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

    /// Returns the start of the function that contains `address` in this ELF file; `None` where it
    /// is unknown. Both addresses are those of the file, without the load bias.
    pub(crate) fn function_start(&self, address: u64) -> Option<u64> {
        self.function(address).map(|function| function.start)
    }

    /// Returns the address range of the function that contains `address` in this ELF file, by
    /// unwind tables, else by symbols; `None` where neither tells. All addresses are those of the
    /// file, without the load bias.
    pub(crate) fn function(&self, address: u64) -> Option<Range<u64>> {
        let tables = self.unwind.as_ref();
        tables
            .and_then(|tables| tables.function(address))
            .or_else(|| {
                let behind = self.symbols.partition_point(|(start, _)| *start <= address);
                let (start, end) = *self.symbols.get(behind.checked_sub(1)?)?;
                (address < end).then_some(start..end)
            })
    }

    /// Returns the name of the function that contains `address` in this ELF file, if it is
    /// exported, or if it belongs to a runtime (C library, sanitizer) linked into the file; else
    /// `None`.
    pub(crate) fn runtime_name(&self, address: u64) -> Option<Arc<str>> {
        let exported = self.exports.containing(address);
        exported.or_else(|| self.linked.containing(address))
    }

    /// Returns the kind of the entry function (`main`, harness) that begins at the address `start`
    /// of this ELF file; `None` if none does.
    pub(crate) fn entry(&self, start: u64) -> Option<Entry> {
        let here = self.entries.iter().filter(|(at, _)| *at == start);
        here.map(|(_, entry)| *entry).max()
    }
}

/// Returns the start of the function that contains `address` in an ELF file; `None` where the file
/// is not a 64-bit ELF file or does not show where the function starts.
///
/// The file is parsed as triage parses the modules of a process. This function serves tools, and
/// fuzzing of the parser: ELF files are hostile input.
pub fn function_start_in(image: &[u8], address: u64) -> Option<u64> {
    Module::parse(image, false, &[])?.function_start(address)
}

/// A section of an ELF file: its address and its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Address of the section in the file's own address space, without the load bias.
    pub address: u64,
    /// Contents (bytes) of the section of the ELF file.
    pub data: Arc<[u8]>,
}

/// The unwind tables of one ELF file: `.eh_frame` and its index.
#[derive(Debug)]
pub(crate) struct UnwindTables {
    /// The section `.eh_frame` of the ELF file: unwind information, with one entry per function.
    pub eh_frame: Section,
    /// The section `.eh_frame_hdr`, the index of `.eh_frame`; `None` if missing or invalid.
    pub eh_frame_hdr: Option<Section>,
    /// Address of the section `.text`, to which unwind table entries may be relative.
    pub text: u64,
    /// Address of the section `.got`, to which unwind table entries may be relative.
    pub got: u64,
    /// Start and end address of every function in `.eh_frame`, ascending; built at the first lookup
    /// in an ELF file without `.eh_frame_hdr`.
    index: OnceLock<Vec<(u64, u64)>>,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl UnwindTables {
    /// Creates the unwind tables of an ELF file from its sections. An index `.eh_frame_hdr` that is
    /// not sorted, or points outside of `.eh_frame`, is dropped.
    pub(crate) fn new(
        eh_frame: Section,
        eh_frame_hdr: Option<Section>,
        text: u64,
        got: u64,
    ) -> UnwindTables {
        let mut tables = UnwindTables {
            eh_frame,
            eh_frame_hdr,
            text,
            got,
            index: OnceLock::new(),
        };
        if tables.has_sound_header().is_none() {
            tables.eh_frame_hdr = None;
        }
        tables
    }

    /// Checks the index `.eh_frame_hdr`: returns `Some` if it is sorted and points into
    /// `.eh_frame`, else `None`. In an index that fails this check, the subtractions of `gimli`
    /// would overflow.
    fn has_sound_header(&self) -> Option<()> {
        let bases = self.bases();
        let header = EhFrameHdr::new(&self.eh_frame_hdr.as_ref()?.data, LittleEndian);
        let header = header.parse(&bases, 8).ok()?;
        let Pointer::Direct(start) = header.eh_frame_ptr() else {
            return None;
        };
        let inside = start..start.saturating_add(self.eh_frame.data.len() as u64);
        let table = header.table().filter(|_| start == self.eh_frame.address)?;
        let (mut entries, mut last) = (table.iter(&bases), None);
        while let Some((function, entry)) = entries.next().ok()? {
            let (Pointer::Direct(function), Pointer::Direct(entry)) = (function, entry) else {
                return None;
            };
            if last > Some(function) || !inside.contains(&entry) {
                return None;
            }
            last = Some(function);
        }
        // A lookup reads the first entry even of an empty table.
        last.map(drop)
    }

    /// Returns the address range of the function that contains `address`, according to these unwind
    /// tables; `None` if no table entry contains it. All addresses are those of the ELF file,
    /// without the load bias.
    pub(crate) fn function(&self, address: u64) -> Option<Range<u64>> {
        match self.by_header(address) {
            Some(answer) => answer,
            None => self.by_index(address),
        }
    }

    fn bases(&self) -> BaseAddresses {
        let header = self.eh_frame_hdr.as_ref().map_or(0, |it| it.address);
        BaseAddresses::default()
            .set_eh_frame(self.eh_frame.address)
            .set_eh_frame_hdr(header)
            .set_text(self.text)
            .set_got(self.got)
    }

    fn eh_frame(&self) -> EhFrame<Slice<'_>> {
        let mut eh_frame = EhFrame::new(&self.eh_frame.data, LittleEndian);
        eh_frame.set_address_size(8);
        eh_frame
    }

    /// Returns the address range of the function that contains `address`, by the index
    /// `.eh_frame_hdr`, in addresses of the file, without the load bias. `None` if there is no such
    /// index; `Some(None)` if the index has no function with this address.
    fn by_header(&self, address: u64) -> Option<Option<Range<u64>>> {
        let bases = self.bases();
        let header = EhFrameHdr::new(&self.eh_frame_hdr.as_ref()?.data, LittleEndian);
        let header = header.parse(&bases, 8).ok()?;
        let table = header.table()?;
        let fde =
            table.fde_for_address(&self.eh_frame(), &bases, address, EhFrame::cie_from_offset);
        Some(fde.ok().map(|fde| fde.initial_address()..fde.end_address()))
    }

    fn by_index(&self, address: u64) -> Option<Range<u64>> {
        let index = self.index.get_or_init(|| self.build_index());
        let behind = index.partition_point(|(start, _)| *start <= address);
        let (start, end) = *index.get(behind.checked_sub(1)?)?;
        (address < end).then_some(start..end)
    }

    /// Returns start and end of every function in `.eh_frame`, in addresses of the file, sorted by
    /// start. A malformed entry ends the reading.
    fn build_index(&self) -> Vec<(u64, u64)> {
        let (bases, eh_frame) = (self.bases(), self.eh_frame());
        let mut entries = eh_frame.entries(&bases);
        let mut index = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            if let CieOrFde::Fde(partial) = entry
                && let Ok(fde) = partial.parse(EhFrame::cie_from_offset)
            {
                index.push((fde.initial_address(), fde.end_address()));
            }
        }
        index.sort_unstable();
        index
    }
}
