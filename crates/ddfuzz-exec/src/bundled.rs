//! The bundled targets: small Unix utilities with historic bugs of the fuzz studies (`targets/` in
//! the source), each also in a fixed variant.

use lzma_rust2::LzmaReader;
use std::io::Read;
use std::sync::OnceLock;

/// A bundled target as embedded in ddfuzz: its programs (with the bug, without it, …), dictionary
/// and seeds, compressed together.
struct Archive {
    /// Name of the bundled target.
    name: &'static str,
    /// Name of the bundled target's variant without the bug.
    fixed: &'static str,
    /// Size in bytes of each file in the archive: the variants in the order of `SUFFIXES`, the
    /// dictionary, the seeds.
    sizes: &'static [usize],
    /// All files of the archive of a bundled target, one after the other, compressed together in
    /// the format `.lzma`.
    packed: &'static [u8],
}

// Written by build.rs: `SUFFIXES`, what the names of variants add to that of the target; `ARCHIVES`.
include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// A bundled target program: its name and a description in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bundled {
    /// The name for `--target`: `ul`, or `ul-fixed` for the variant without the bug.
    pub name: &'static str,
    /// What the program does and how it crashes, in one line.
    pub summary: &'static str,
}

const SUMMARIES: [(&str, &str); 6] = [
    (
        "crtplot",
        "draws plot commands on a screen; crashes on the letter t",
    ),
    (
        "flex",
        "generates scanners; crashes on 2121 characters without a newline or NUL",
    ),
    (
        "nroff",
        "formats text for a typewriter; crashes on malformed numbers, lone 8-bit characters, stray arguments",
    ),
    (
        "troff",
        "formats text for a typesetter; crashes on open arguments, unknown fonts, lone 8-bit characters",
    ),
    (
        "ul",
        "turns overstrikes into terminal codes; crashes on 516 printable characters before a newline",
    ),
    (
        "units",
        "converts between units; crashes on 77 8-bit characters in a line",
    ),
];

/// Returns the names of all bundled programs: those with bugs in alphabetical order, then the fixed
/// ones.
pub fn names() -> Vec<&'static str> {
    let buggy = ARCHIVES.iter().map(|archive| archive.name);
    buggy
        .chain(ARCHIVES.iter().map(|archive| archive.fixed))
        .collect()
}

/// Returns the ELF file of a bundled program, which reads the file named by its argument, or stdin;
/// `None` if there is no such program. Also finds builds with [coverage counters](counted).
pub fn program(name: &str) -> Option<&'static [u8]> {
    let (archive, variant) = find(name)?;
    Some(files(archive)[variant])
}

/// Suffix of the names of bundled programs that have coverage counters: `ul-counted` is the build
/// of `ul` with counters.
pub(crate) const COUNTED: &str = "-counted";

/// Returns the name of the build of the bundled program `name` that has coverage counters:
/// `ul-counted` for `ul`; `None` if there is no such build. It has the same bugs as `name`, at
/// other addresses.
pub fn counted(name: &str) -> Option<String> {
    let counted = format!("{name}{COUNTED}");
    find(&counted).is_some().then_some(counted)
}

/// Returns the seed inputs of the bundled target `name`, with or without its bug (`corpora/` in the
/// source); empty if there is no such target.
pub fn seeds(name: &str) -> &'static [&'static [u8]] {
    find(name).map_or(&[], |(archive, _)| &files(archive)[SUFFIXES.len() + 1..])
}

/// Returns the dictionary of the bundled target `name`, in AFL's format; `None` if there is no such
/// target.
pub fn dictionary(name: &str) -> Option<&'static [u8]> {
    find(name).map(|(archive, _)| files(archive)[SUFFIXES.len()])
}

/// Finds the bundled program `name`: returns the index of its archive in `ARCHIVES`, and the index
/// of its build in `SUFFIXES`; `None` if there is no such program.
fn find(name: &str) -> Option<(usize, usize)> {
    ARCHIVES.iter().enumerate().find_map(|(index, archive)| {
        let suffix = name.strip_prefix(archive.name)?;
        let variant = SUFFIXES.iter().position(|known| *known == suffix)?;
        Some((index, variant))
    })
}

/// Returns the contents of the files in the archive with this index; its first call for an archive
/// decompresses it.
fn files(archive: usize) -> &'static [&'static [u8]] {
    static FILES: [OnceLock<Vec<&[u8]>>; ARCHIVES.len()] =
        [const { OnceLock::new() }; ARCHIVES.len()];
    FILES[archive].get_or_init(|| unpacked(&ARCHIVES[archive]))
}

fn unpacked(archive: &Archive) -> Vec<&'static [u8]> {
    let mut bytes = Vec::with_capacity(archive.sizes.iter().sum());
    LzmaReader::new_mem_limit(archive.packed, u32::MAX, None)
        .and_then(|mut reader| reader.read_to_end(&mut bytes))
        .expect("build.rs has compressed it");
    let mut rest: &'static [u8] = bytes.leak();
    let mut next = |size: &usize| {
        let (file, after) = rest.split_at(*size);
        rest = after;
        file
    };
    archive.sizes.iter().map(&mut next).collect()
}

/// Returns all bundled programs with their one-line descriptions, in the order of [`names`].
pub fn list() -> Vec<Bundled> {
    names()
        .into_iter()
        .map(|name| Bundled {
            name,
            summary: summary(name),
        })
        .collect()
}

fn summary(name: &'static str) -> &'static str {
    if name.ends_with("-fixed") {
        return "the same without the bugs";
    }
    let found = SUMMARIES.iter().find(|(known, _)| *known == name);
    found.map_or("", |(_, summary)| summary)
}
