//! Parses an ELF file. The file is hostile input: malformed parts are skipped.

use std::sync::Arc;

use object::elf::{PF_X, PT_GNU_EH_FRAME, PT_INTERP, PT_LOAD};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{
    CompressionFormat, Endianness, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, ReadRef,
    RelocationTarget, SymbolKind,
};

use crate::instruction::{MainArgument, main_argument};
use crate::module::{Entry, Module, Section, Segment, UnwindTables};

/// Maximum size in bytes of a section with unwind tables in an ELF file; larger sections are not
/// read.
const LARGEST_SECTION: u64 = 256 << 20;

/// Name of the variable in which glibc stores its abort message.
const ABORT_MESSAGE: &str = "__abort_msg";

type Elf<'data, R> = ElfFile64<'data, Endianness, R>;

impl Module {
    /// Parses a 64-bit ELF file for the facts that crash keys need (segments, functions, entries);
    /// `None` for other files. `runtime` marks a runtime module (C library …), of which less is
    /// read; functions named in `dropped` count as runtime functions.
    pub(crate) fn parse<'data, R: ReadRef<'data>>(
        data: R,
        runtime: bool,
        dropped: &[String],
    ) -> Option<Module> {
        let elf = Elf::parse(data).ok()?;
        let mut module = Module {
            build_id: id_of(&elf),
            executable: executable_segments(&elf),
            unwind: unwind_tables(&elf),
            is_static: !has_interpreter(&elf) && elf.dynamic_symbol_table().is_none(),
            has_symbols: elf.symbol_table().is_some(),
            ..Module::default()
        };
        read_exports(&elf, &mut module);
        if !runtime {
            read_symbols(&elf, &mut module, dropped);
            find_main(&elf, &mut module);
        }
        Some(module)
    }
}

/// Returns the GNU build id of a 64-bit ELF file, as hex digits; `None` if it has none.
pub(crate) fn build_id(file: &[u8]) -> Option<Arc<str>> {
    id_of(&Elf::parse(file).ok()?)
}

/// Returns true if the source file names in a program's debug information can be found in the file
/// as they are: the file has a table of source lines, and neither this table nor the table of its
/// names is compressed.
pub(crate) fn has_plain_lines(file: &[u8]) -> bool {
    let Ok(elf) = ElfFile64::<Endianness, _>::parse(file) else {
        return false;
    };
    let is_plain = |name: &str| {
        let section = elf.section_by_name(name)?;
        let range = section.compressed_file_range().ok()?;
        Some(range.format == CompressionFormat::None && section.name() == Ok(name))
    };
    is_plain(".debug_line") == Some(true) && is_plain(".debug_line_str") != Some(false)
}

fn id_of<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>) -> Option<Arc<str>> {
    elf.build_id().ok().flatten().map(hex)
}

fn hex(bytes: &[u8]) -> Arc<str> {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.into()
}

fn executable_segments<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>) -> Vec<Segment> {
    let endian = elf.endian();
    elf.elf_program_headers()
        .iter()
        .filter(|header| header.p_type(endian) == PT_LOAD && header.p_flags(endian).contains(PF_X))
        .map(|header| Segment {
            offset: header.p_offset(endian),
            size: header.p_filesz(endian),
            address: header.p_vaddr(endian),
        })
        .collect()
}

fn has_interpreter<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>) -> bool {
    elf.elf_program_headers()
        .iter()
        .any(|header| header.p_type(elf.endian()) == PT_INTERP)
}

fn unwind_tables<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>) -> Option<UnwindTables> {
    let section = |name: &str| {
        let section = elf.section_by_name(name)?;
        let section = Some(section).filter(|it| it.size() <= LARGEST_SECTION)?;
        Some(Section {
            address: section.address(),
            data: section.data().ok()?.into(),
        })
    };
    let address = |name: &str| elf.section_by_name(name).map_or(0, |it| it.address());
    let (text, got) = (address(".text"), address(".got"));
    if let Some(eh_frame) = section(".eh_frame") {
        let index = section(".eh_frame_hdr");
        return Some(UnwindTables::new(eh_frame, index, text, got));
    }
    tables_by_segment(elf)
}

/// Reads the unwind tables of an ELF file that has no section headers. Its segment
/// `PT_GNU_EH_FRAME` is the index of the tables, and points to them. The tables end, at the latest,
/// where the segment that contains them ends. `None` where there are none.
fn tables_by_segment<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>) -> Option<UnwindTables> {
    use addr2line::gimli::{BaseAddresses, EhFrameHdr, LittleEndian, Pointer};
    let (endian, data) = (elf.endian(), elf.data());
    let headers = elf.elf_program_headers();
    let mut all = headers.iter();
    let header = all.find(|header| header.p_type(endian) == PT_GNU_EH_FRAME)?;
    let eh_frame_hdr = Section {
        address: header.p_vaddr(endian),
        data: header.data(endian, data).ok()?.into(),
    };
    let bases = BaseAddresses::default().set_eh_frame_hdr(eh_frame_hdr.address);
    let parsed = EhFrameHdr::new(&eh_frame_hdr.data, LittleEndian);
    let parsed = parsed.parse(&bases, 8).ok()?;
    let Pointer::Direct(address) = parsed.eh_frame_ptr() else {
        return None;
    };
    let mut loads = headers.iter().filter(|it| it.p_type(endian) == PT_LOAD);
    let rest = loads.find_map(|load| {
        let skip = address.checked_sub(load.p_vaddr(endian))?;
        let data = load.data(endian, data).ok()?;
        data.get(usize::try_from(skip).ok()?..)
    })?;
    let eh_frame = Section {
        address,
        data: rest.into(),
    };
    Some(UnwindTables::new(eh_frame, Some(eh_frame_hdr), 0, 0))
}

fn read_exports<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>, module: &mut Module) {
    for symbol in elf.dynamic_symbols().filter(|it| it.is_definition()) {
        let Ok(name) = symbol.name() else { continue };
        if name == ABORT_MESSAGE {
            module.abort_message = Some(symbol.address());
        }
        if symbol.kind() == SymbolKind::Text {
            (module.exports).add(symbol.address(), symbol.size(), name);
            let entry = entry_named(name).map(|entry| (symbol.address(), entry));
            module.entries.extend(entry);
        }
    }
}

fn entry_named(name: &str) -> Option<Entry> {
    match name {
        "main" => Some(Entry::Main),
        "target_main" | "LLVMFuzzerTestOneInput" => Some(Entry::Harness),
        _ => None,
    }
}

fn read_symbols<'data, R: ReadRef<'data>>(
    elf: &Elf<'data, R>,
    module: &mut Module,
    dropped: &[String],
) {
    for symbol in elf.symbols().filter(|symbol| symbol.is_definition()) {
        let Ok(name) = symbol.name() else { continue };
        if name == ABORT_MESSAGE {
            module.abort_message = Some(symbol.address());
        }
        if symbol.kind() != SymbolKind::Text {
            continue;
        }
        let (start, size) = (symbol.address(), symbol.size());
        module.symbols.push((start, start.saturating_add(size)));
        let entry = entry_named(name).map(|entry| (start, entry));
        module.entries.extend(entry);
        match dropped.iter().any(|it| it == name) {
            true => module.linked.add(start, size, name),
            false => module.linked.add_if_runtime(start, size, name),
        }
    }
    // A stripped program with clang's sanitizers still exports what they consist of.
    let exported = elf
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
    for symbol in exported {
        if let Ok(name) = symbol.name() {
            (module.linked).add_if_runtime(symbol.address(), symbol.size(), name);
        }
    }
    module.symbols.sort_unstable();
}

/// Finds the memory slots of an ELF file into which the loader writes the addresses of imported
/// functions, and stores them in `module`, each with the function's name. Returns the address of a
/// part of this same file that the loader writes into the slot at the address `wanted`; `None` if
/// it writes no such address.
fn read_slots<'data, R: ReadRef<'data>>(
    elf: &Elf<'data, R>,
    module: &mut Module,
    wanted: Option<u64>,
) -> Option<u64> {
    let mut written = None;
    let symbols = elf.dynamic_symbol_table();
    for (slot, relocation) in elf.dynamic_relocations().into_iter().flatten() {
        match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let table = symbols.as_ref();
                let symbol = table.and_then(|table| table.symbol_by_index(index).ok());
                let name = symbol.and_then(|symbol| symbol.name().ok());
                module
                    .slots
                    .extend(name.map(|name| (slot, Arc::from(name))));
            }
            _ if Some(slot) == wanted => written = Some(relocation.addend() as u64),
            _ => {}
        }
    }
    written
}

/// Number of bytes of a program's start-up code (`_start`) that are decoded to find `main`.
const START_UP: u64 = 128;

/// Finds `main`, also in stripped programs, as the argument that `_start` passes to the C library,
/// and adds it to the module's entry functions. Also stores the slots of imported functions.
fn find_main<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>, module: &mut Module) {
    let entry = elf.entry();
    module.start = (entry != 0).then_some(entry);
    let argument = start_up_code(elf, module).and_then(|code| main_argument(code, entry));
    let (address, slot) = match argument {
        Some(MainArgument::Address(address)) => (Some(address), None),
        Some(MainArgument::Slot(slot)) => (None, Some(slot)),
        None => (None, None),
    };
    let main = read_slots(elf, module, slot).or(address);
    let inside = |address: &u64| {
        let skips = module
            .executable
            .iter()
            .map(|it| (address.checked_sub(it.address), it.size));
        skips
            .into_iter()
            .any(|(skip, size)| skip.is_some_and(|skip| skip < size))
    };
    if let Some(main) = main.filter(inside) {
        module.entries.push((main, Entry::Main));
    }
}

/// Returns the code at the entry point of an ELF file; `None` where there is none.
fn start_up_code<'data, R: ReadRef<'data>>(
    elf: &Elf<'data, R>,
    module: &Module,
) -> Option<&'data [u8]> {
    let (segment, skip) = module.executable.iter().find_map(|segment| {
        let skip = elf.entry().checked_sub(segment.address);
        Some((segment, skip.filter(|skip| *skip < segment.size)?))
    })?;
    let length = START_UP.min(segment.size - skip);
    let offset = segment.offset.saturating_add(skip);
    elf.data().read_bytes_at(offset, length).ok()
}
