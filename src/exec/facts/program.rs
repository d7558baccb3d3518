//! What the headers of an ELF file tell.

use object::read::elf::FileHeader;
use object::{Object, ObjectSection, elf};

use super::super::elf::Elf;
use super::TargetFacts;

/// Sections that each hold one fact.
const DEBUG: &str = ".debug_info";
/// Where compilers write their versions, and what Rust's begins with.
const COMMENT: &str = ".comment";
const RUSTC: &[u8] = b"rustc version";
const GO: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];

/// Reads what headers and sections tell.
pub(super) fn read(file: &Elf<'_>, facts: &mut TargetFacts) {
    facts.position_independent = file.elf_header().e_type(file.endian()) == elf::ET_DYN;
    facts.debug_info = file.section_by_name(DEBUG).is_some();
    facts.rust = file
        .section_by_name(COMMENT)
        .and_then(|section| section.data().ok())
        .is_some_and(|text| text.windows(RUSTC.len()).any(|part| part == RUSTC));
    facts.go = GO.iter().any(|name| file.section_by_name(name).is_some());
}
