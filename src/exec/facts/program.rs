//! What the headers of an ELF file tell.

use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, elf};

use super::TargetFacts;

/// Sections that each hold one fact.
const DEBUG: &str = ".debug_info";
const GO: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];

/// An ELF file of this machine.
pub(super) type Elf<'a> = ElfFile64<'a, Endianness>;

/// The file, if it is an ELF program of this machine.
pub(super) fn parse(bytes: &[u8]) -> Option<Elf<'_>> {
    let file = Elf::parse(bytes).ok()?;
    let ours = match cfg!(target_arch = "x86_64") {
        true => elf::EM_X86_64,
        false => elf::EM_AARCH64,
    };
    (file.elf_header().e_machine(file.endian()) == ours).then_some(file)
}

/// Reads what headers and sections tell.
pub(super) fn read(file: &Elf<'_>, bytes: &[u8], facts: &mut TargetFacts) {
    let header = file.elf_header();
    let endian = file.endian();
    facts.position_independent = header.e_type(endian) == elf::ET_DYN;
    facts.linker = file
        .elf_program_headers()
        .iter()
        .find_map(|segment| segment.interpreter(endian, bytes).ok().flatten())
        .map(|name| String::from_utf8_lossy(name).into_owned());
    facts.debug_info = file.section_by_name(DEBUG).is_some();
    facts.go = GO.iter().any(|name| file.section_by_name(name).is_some());
}
