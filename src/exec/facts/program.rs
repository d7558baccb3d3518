//! What the headers of an ELF file tell.

use object::read::elf::FileHeader;
use object::{Object, elf};

use super::super::elf::Elf;
use super::TargetFacts;

/// Sections that each hold one fact.
const DEBUG: &str = ".debug_info";
const GO: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];

/// Reads what headers and sections tell.
pub(super) fn read(file: &Elf<'_>, facts: &mut TargetFacts) {
    facts.position_independent = file.elf_header().e_type(file.endian()) == elf::ET_DYN;
    facts.debug_info = file.section_by_name(DEBUG).is_some();
    facts.go = GO.iter().any(|name| file.section_by_name(name).is_some());
}
