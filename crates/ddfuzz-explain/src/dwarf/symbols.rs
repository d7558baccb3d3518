//! Functions and thread-local memory of a program's file, as its symbol table and headers say.

use std::collections::HashMap;
use std::ops::Range;

use object::{Object, ObjectSymbol};

/// Returns the address ranges and names of the functions that an ELF file's symbol table defines
/// with a size, sorted by address, without `_start`.
pub(super) fn code_symbols(file: &object::File<'_>) -> Vec<(Range<u64>, String)> {
    let symbols = file.symbols().filter(|symbol| {
        symbol.kind() == object::SymbolKind::Text && symbol.is_definition() && symbol.size() > 0
    });
    let mut found: Vec<(Range<u64>, String)> = symbols
        .filter_map(|symbol| {
            let range = symbol.address()..symbol.address() + symbol.size();
            let name = symbol.name().ok().filter(|name| *name != "_start")?;
            Some((range, name.to_owned()))
        })
        .collect();
    found.sort_by_key(|(range, _)| range.start);
    found
}

/// Returns the addresses of the symbols `all` by their names without versions; of several with one
/// name, the first.
pub(super) fn symbols<'data>(
    all: impl Iterator<Item = object::Symbol<'data, 'data>>,
) -> HashMap<String, u64> {
    let mut found = HashMap::new();
    for symbol in all {
        if let (Ok(name), true) = (symbol.name(), symbol.address() != 0) {
            let name = name.split('@').next().unwrap_or(name);
            found.entry(name.to_owned()).or_insert(symbol.address());
        }
    }
    found
}

/// Returns the size of the thread-local memory of an ELF file, rounded up to its alignment, in bytes.
pub(super) fn tls_size(file: &object::File<'_>) -> u64 {
    use object::read::elf::{ElfFile64, ProgramHeader};
    let object::File::Elf64(file) = file else {
        return 0;
    };
    let file: &ElfFile64<'_> = file;
    let endian = object::Endianness::Little;
    let mut headers = file.elf_program_headers().iter();
    let tls = headers.find(|header| header.p_type(endian) == object::elf::PT_TLS);
    tls.map_or(0, |header| {
        header
            .p_memsz(endian)
            .next_multiple_of(header.p_align(endian).max(1))
    })
}
