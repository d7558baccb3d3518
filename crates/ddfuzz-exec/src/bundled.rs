//! The bundled targets: small Unix utilities with historic bugs of the fuzz studies (`targets/` in
//! the source), each also in a fixed variant.

mod compiled {
    // Written by build.rs: `BUNDLED`, names and ELF files; `COUNTED`, the same of the variants with
    // coverage counters.
    include!(concat!(env!("OUT_DIR"), "/bundled.rs"));
    // Written by build.rs: `CORPORA`, seeds and dictionary of each target.
    include!(concat!(env!("OUT_DIR"), "/corpora.rs"));
}

struct Corpus {
    name: &'static str,
    seeds: &'static [&'static [u8]],
    dictionary: &'static [u8],
}

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
    compiled::BUNDLED.iter().map(|(name, _)| *name).collect()
}

/// Returns the ELF file of a bundled program, which reads the file named by its argument, or stdin;
/// `None` if there is no such program. Variants with [coverage counters](counted) are included.
pub fn program(name: &str) -> Option<&'static [u8]> {
    let mut all = compiled::BUNDLED.iter().chain(compiled::COUNTED);
    let found = all.find(|(known, _)| *known == name);
    found.map(|(_, program)| *program)
}

/// Returns the name of the variant of the bundled program `name` that has coverage counters:
/// `ul-counted` for `ul`; `None` if there is none. It has the same bugs at other addresses.
pub fn counted(name: &str) -> Option<String> {
    let counted = format!("{name}-counted");
    program(&counted).is_some().then_some(counted)
}

/// Returns the seed inputs of the bundled target `name` or of its fixed variant (`corpora/` in the
/// source); empty if there is no such target.
pub fn seeds(name: &str) -> &'static [&'static [u8]] {
    corpus(name).map_or(&[], |corpus| corpus.seeds)
}

/// Returns the dictionary of the bundled target `name`, in AFL's format; `None` if there is no such
/// target.
pub fn dictionary(name: &str) -> Option<&'static [u8]> {
    corpus(name).map(|corpus| corpus.dictionary)
}

fn corpus(name: &str) -> Option<&'static Corpus> {
    let plain = name.strip_suffix("-counted").unwrap_or(name);
    let plain = plain.strip_suffix("-fixed").unwrap_or(plain);
    let mut corpora = compiled::CORPORA.iter();
    corpora.find(|corpus| corpus.name == plain)
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
