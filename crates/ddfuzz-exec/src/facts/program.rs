//! What the headers of an ELF file tell.

use object::read::elf::FileHeader;
use object::{Object, ObjectSection, elf};

use super::super::elf::{Elf, holds};
use super::TargetFacts;

/// Sections that each hold one fact.
const DEBUG: &str = ".debug_info";
/// Where compilers write their versions, and what Rust's begins with.
const COMMENT: &str = ".comment";
const RUSTC: &[u8] = b"rustc version";
const GO: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];

/// What Rust programs say where overflow checks or debug assertions fail, by its beginning. None has
/// it without them: the standard library is compiled without.
pub const ASSERTIONS: [&str; 7] = [
    "unsafe precondition(s) violated",
    "attempt to add with overflow",
    "attempt to subtract with overflow",
    "attempt to multiply with overflow",
    "attempt to negate with overflow",
    "attempt to shift left with overflow",
    "attempt to shift right with overflow",
];

/// Whether a Rust program was compiled with overflow checks or debug assertions.
pub(super) fn asserts(file: &Elf<'_>) -> bool {
    let texts = file.section_by_name(".rodata");
    let texts = texts.and_then(|section| section.data().ok());
    let says = |text: &&str| holds(texts.unwrap_or_default(), text.as_bytes());
    ASSERTIONS.iter().any(says)
}

/// Reads what headers and sections tell.
pub fn read(file: &Elf<'_>, facts: &mut TargetFacts) {
    facts.position_independent = file.elf_header().e_type(file.endian()) == elf::ET_DYN;
    facts.debug_info = file.section_by_name(DEBUG).is_some();
    facts.rust = file
        .section_by_name(COMMENT)
        .and_then(|section| section.data().ok())
        .is_some_and(|text| text.windows(RUSTC.len()).any(|part| part == RUSTC));
    facts.go = GO.iter().any(|name| file.section_by_name(name).is_some());
}
