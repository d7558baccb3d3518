//! Builds a dictionary from a program: words that it may look for in its inputs.
//!
//! The words are texts in read-only data, first those that code refers to, and constants that code
//! compares with, in both byte orders. The selection is a heuristic, bounded and deterministic. The
//! file is untrusted input.

use object::elf::{SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE};
use object::{Object, ObjectSection, SectionFlags, SectionKind};
use std::collections::{BTreeSet, HashSet};

use crate::{
    ExecError, Target, elf, elf::Elf, facts::constants::CodeWords, observe::image::Image,
    private_dir::PrivateDir, program,
};

/// Maximum number of dictionary words that are taken from one program.
const MOST: usize = 512;
/// Maximum number of constants among the dictionary words of a program; more are taken only if the
/// texts of the program do not fill the rest of the dictionary.
const MOST_CONSTANTS: usize = 192;

/// Address ranges of a program before loading, each with start and end.
pub(super) type Ranges = Vec<(u64, u64)>;

/// Returns at most 512 dictionary words of a target's program, without those of libraries: texts of
/// 3 to 32 bytes, constants of 2, 4 and 8 bytes. Empty if the program is not an ELF file for this
/// machine. Fails when the program does not exist or cannot be executed.
pub fn program_words(target: &Target) -> Result<Vec<Vec<u8>>, ExecError> {
    let private = PrivateDir::get()?;
    let path = program::locate(&target.program, &private)?;
    let bytes = elf::read(&path).unwrap_or_default();
    let (Some(file), Some(image)) = (elf::parse(&bytes), Image::read(&path)) else {
        return Ok(Vec::new());
    };
    let texts = Texts::of(&file);
    let facts = elf::ElfFacts::of(&file);
    let read = CodeWords::of(&image, &texts.ranges);
    // Texts of linked runtimes outnumber the program's own.
    let has_runtime = facts.interpreter.is_none() || facts.sanitized || facts.is_fuzzer;
    Ok(chosen(
        texts.words(&read.references, has_runtime),
        read.constants,
    ))
}

/// Chooses at most [`MOST`] dictionary words from texts and constants, each word once.
fn chosen(texts: Vec<Vec<u8>>, constants: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let some = constants.len().min(MOST_CONSTANTS);
    let room = (MOST - some).min(texts.len());
    let (first, rest) = texts.split_at(room);
    let (constants, more) = constants.split_at(some);
    let mut known = HashSet::new();
    let all = first.iter().chain(constants).chain(rest).chain(more);
    let mut words: Vec<Vec<u8>> = all.filter(|word| known.insert(*word)).cloned().collect();
    words.truncate(MOST);
    words
}

/// Returns true if `address` is in one of the sorted ranges.
pub(super) fn within(ranges: &Ranges, address: u64) -> bool {
    let behind = ranges.partition_point(|(start, _)| *start <= address);
    behind > 0 && address < ranges[behind - 1].1
}

/// Allowed length, in bytes, of a text that becomes a dictionary word.
const LENGTHS: std::ops::RangeInclusive<usize> = 3..=32;
/// Maximum number of bytes of a program's read-only data that are searched for texts.
const MOST_DATA: usize = 32 << 20;
/// Maximum number of texts of a program that are ranked for its dictionary.
const MOST_TEXTS: usize = 1 << 16;
/// Maximum number of pointers to texts that are read from a program's data.
const MOST_POINTERS: usize = 1 << 20;

/// A program's read-only data, and the pointers into that data.
struct Texts<'data> {
    sections: Vec<(u64, &'data [u8])>,
    /// Sorted address ranges of the program's read-only data, in which texts are searched for.
    ranges: Ranges,
    /// Addresses in the read-only data that the program's tables of pointers contain.
    pointers: BTreeSet<u64>,
}

impl<'data> Texts<'data> {
    /// Finds the read-only data of an ELF file, and the pointers into that data.
    fn of(file: &Elf<'data>) -> Texts<'data> {
        let mut room = MOST_DATA;
        let mut sections = Vec::new();
        for section in file.sections() {
            let read_only = matches!(section.flags(), SectionFlags::Elf { sh_flags, .. }
                if sh_flags.contains(SHF_ALLOC)
                    && !sh_flags.contains(SHF_WRITE)
                    && !sh_flags.contains(SHF_EXECINSTR));
            let named = section.name().is_ok_and(|name| name.starts_with(".rodata"));
            if let (true, true, Ok(bytes)) = (read_only, named, section.data()) {
                let bytes = &bytes[..bytes.len().min(room)];
                room -= bytes.len();
                sections.push((section.address(), bytes));
            }
        }
        sections.sort_by_key(|(address, _)| *address);
        let end = |(at, bytes): &(u64, &[u8])| (*at, at.saturating_add(bytes.len() as u64));
        let ranges: Ranges = sections.iter().map(end).collect();
        let pointers = pointers(file, &ranges);
        Texts {
            sections,
            ranges,
            pointers,
        }
    }

    /// Lists the texts of a program's read-only data that may be dictionary words: first those that
    /// code refers to (their addresses are in `references`), then those in pointer tables, then all
    /// others; within each of the three by address. With `only_named`, lists only those that code
    /// refers to.
    fn words(&self, references: &BTreeSet<u64>, only_named: bool) -> Vec<Vec<u8>> {
        let mut ranked: [Vec<Vec<u8>>; 3] = Default::default();
        for (address, bytes) in &self.sections {
            for TextRun { start, text, ends } in self.parts(*address, bytes, references) {
                let rank = match (references.contains(&start), self.pointers.contains(&start)) {
                    (true, _) => 0,
                    (false, true) => 1,
                    (false, false) => 2,
                };
                let wanted = rank == 0 || !only_named;
                if wanted && ranked[rank].len() < MOST_TEXTS && is_word(text, ends, rank == 2) {
                    ranked[rank].push(text.to_vec());
                }
            }
        }
        ranked.concat()
    }

    /// Splits read-only data, `bytes` at the address `address`, into sequences of printable
    /// characters. A sequence is split again at each address inside it that code (`references`) or
    /// a pointer table refers to, unless it has at most 64 characters and a NUL follows. Such a
    /// sequence counts as one C string: code that copies it in pieces refers to the pieces, too.
    fn parts<'a>(
        &'a self,
        address: u64,
        bytes: &'a [u8],
        references: &'a BTreeSet<u64>,
    ) -> impl Iterator<Item = TextRun<'a>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            at += bytes.get(at..)?.iter().position(is_text)?;
            let begin = at;
            let run = bytes[begin..]
                .iter()
                .take_while(|byte| is_text(byte))
                .count();
            let ends = bytes.get(begin + run) == Some(&0);
            let start = address.checked_add(begin as u64)?;
            let inside = start + 1..start.checked_add(run as u64)?;
            let next = |all: &BTreeSet<u64>| match inside.is_empty() {
                true => None,
                false => all.range(inside.clone()).next().copied(),
            };
            let whole = ends && run <= 2 * LENGTHS.end();
            let cut = next(references)
                .into_iter()
                .chain(next(&self.pointers))
                .min();
            let cut = cut.filter(|_| !whole);
            at = cut.map_or(begin + run, |cut| (cut - address) as usize);
            Some(TextRun {
                start,
                text: &bytes[begin..at],
                ends: ends && cut.is_none(),
            })
        })
    }
}

struct TextRun<'a> {
    start: u64,
    text: &'a [u8],
    /// True if a NUL byte follows the sequence of printable characters.
    ends: bool,
}

/// Returns true if a sequence of printable characters may be a word for the dictionary: it has 3 to
/// 32 bytes, is not a message, format or path, and is hardly printable by chance. `ends`: a NUL
/// follows the sequence; `unnamed`: neither code nor a table of pointers refers to it. If code or a
/// table refers to it, it needs one of three signs: a following NUL, more than three characters, or
/// two letters or digits. If unnamed, it needs a following NUL, more than three characters, and
/// letters or digits for at least half of them.
fn is_word(text: &[u8], ends: bool, unnamed: bool) -> bool {
    let letters = text
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .count();
    let is_text = match unnamed {
        true => ends && text.len() > *LENGTHS.start() && 2 * letters >= text.len(),
        false => ends || text.len() > *LENGTHS.start() || letters > 1,
    };
    LENGTHS.contains(&text.len()) && is_text && !is_noise(text)
}

fn is_text(byte: &u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}

/// Finds pointers into the address ranges `ranges` in a program's data, including those that
/// relocations write when the program is loaded.
fn pointers(file: &Elf<'_>, ranges: &Ranges) -> BTreeSet<u64> {
    let relocations = file.dynamic_relocations().into_iter().flatten();
    let added = relocations.map(|(_, relocation)| relocation.addend().cast_unsigned());
    let mut pointers: BTreeSet<u64> = (added.filter(|address| within(ranges, *address)))
        .take(MOST_POINTERS)
        .collect();
    let data = file.sections().filter(|section| {
        matches!(
            section.kind(),
            SectionKind::Data | SectionKind::ReadOnlyDataWithRel
        ) || section.name().is_ok_and(|name| name.starts_with(".data"))
    });
    let mut room = MOST_DATA;
    for section in data {
        let Ok(bytes) = section.data() else {
            continue;
        };
        let bytes = &bytes[..bytes.len().min(room)];
        room -= bytes.len();
        for word in bytes.as_chunks::<8>().0 {
            let address = u64::from_le_bytes(*word);
            if pointers.len() < MOST_POINTERS && within(ranges, address) {
                pointers.insert(address);
            }
        }
    }
    pointers
}

/// Beginnings of texts that come from compilers and libraries; such a text is not taken as a
/// dictionary word.
const BANNERS: [&str; 9] = [
    "GCC: ", "clang", "GNU C", "rustc ", "GLIBC_", "GLIBCXX_", "__", "_Z", "_ITM",
];
/// Endings of the names of source files and libraries; such a name is not taken as a dictionary
/// word.
const FILES: [&str; 11] = [
    ".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".go", ".so", ".S", ".mo", ".cxx",
];
/// Texts that occur in tables of characters; a sequence of characters that contains one of them is
/// not taken as a dictionary word.
const TABLES: [&str; 5] = [
    "0123456789",
    "abcdefghij",
    "ABCDEFGHIJ",
    "ABCDEFabcdef",
    "(null)",
];
/// Beginnings of the C library's short messages about errors and signals; such a message is not
/// taken as a dictionary word.
const MESSAGES: [&str; 10] = [
    "Success",
    "Unknown ",
    "Invalid ",
    "Usage",
    "usage",
    "Segmentation fault",
    "Aborted",
    "Killed",
    "Permission denied",
    "Interrupted",
];
/// Maximum number of spaces in a dictionary word; a text with more is a sentence.
const MOST_BLANKS: usize = 2;

/// Returns true if a text is a message, a format or a path, which no program looks for in its
/// input.
fn is_noise(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return true;
    };
    let trimmed = text.trim();
    let mut characters: Vec<char> = text.chars().collect();
    characters.sort_unstable();
    characters.dedup();
    characters.len() < 2
        || has_conversion(bytes)
        || is_sentence(trimmed)
        || is_path(trimmed)
        || trimmed.contains("::")
        || BANNERS
            .iter()
            .chain(&MESSAGES)
            .any(|start| trimmed.starts_with(start))
        || TABLES.iter().any(|table| trimmed.contains(table))
}

/// Returns true if a text has a conversion of `printf`, such as `%5d`.
fn has_conversion(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        rest = &rest[at + 1..];
        if let [b'%', behind @ ..] = rest {
            rest = behind;
            continue;
        }
        let flag = |byte: &&u8| !b"-+ #0123456789.*hljztL".contains(byte);
        if (rest.iter().find(flag)).is_some_and(|letter| b"diouxXeEfgGcspn".contains(letter)) {
            return true;
        }
    }
    false
}

/// Returns true if a text is a sentence, a label before a value, or the condition of an `assert`.
fn is_sentence(text: &str) -> bool {
    let blanks = text.split_whitespace().count().saturating_sub(1);
    let is_told = text.ends_with(':') && blanks > 0;
    let is_claim = [" == ", " != ", " >= ", " > 0"]
        .iter()
        .any(|sign| text.contains(sign));
    is_claim || blanks > MOST_BLANKS || text.contains(": ") || is_told || text.ends_with("...")
}

fn is_path(text: &str) -> bool {
    let is_absolute = text.len() > 1 && text.starts_with('/') && !text.starts_with("//");
    let parts = text.split('/').filter(|part| !part.is_empty()).count();
    let has_end = |end: &&str| text.len() > end.len() && text.ends_with(*end);
    is_absolute && !text.contains('*')
        || parts > 2
        || text.contains(".so.")
        || FILES.iter().any(has_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(prefix: &str, count: usize) -> Vec<Vec<u8>> {
        (0..count)
            .map(|at| format!("{prefix}{at}").into_bytes())
            .collect()
    }

    #[test]
    fn neither_kind_drives_out_the_other() {
        let all = chosen(words("text", 1000), words("constant", 1000));
        assert_eq!(all.len(), MOST);
        assert_eq!(
            all.iter().filter(|word| word.starts_with(b"c")).count(),
            MOST_CONSTANTS
        );
        assert_eq!(
            chosen(words("text", 5), words("constant", 1000)).len(),
            MOST
        );
        assert_eq!(chosen(words("text", 1000), Vec::new()).len(), MOST);
        assert_eq!(chosen(words("a", 3), words("a", 3)).len(), 3);
    }

    #[test]
    fn addresses_are_found_in_their_ranges_only() {
        let ranges = vec![(10, 20), (30, 31)];
        let inside: Vec<u64> = (0..40).filter(|at| within(&ranges, *at)).collect();
        assert_eq!(inside, [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 30]);
        assert!(!within(&Vec::new(), 0));
    }

    #[test]
    fn what_inputs_are_made_of_stays() {
        for text in [
            "IHDR",
            "<!DOCTYPE",
            "%%EOF",
            "Content-Length",
            "/*",
            "*/",
            "true",
            "a=b",
            "100%",
            "end of file",
            ".br",
            "\r\n\r\n",
            "HTTP/1.1",
            "name:",
        ] {
            assert!(!is_noise(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn messages_formats_and_paths_go() {
        for text in [
            "%s: %d",
            "value %-08lx",
            "/usr/lib/x",
            "main.c",
            "libc.so.6",
            "GCC: (Debian 12)",
            "no such file or directory",
            "error: bad",
            "core::fmt",
            "____",
            "0123456789abcdef",
            "_ZN3foo",
            "wait...",
            "src/x/main.rs",
        ] {
            assert!(is_noise(text.as_bytes()), "{text}");
        }
    }
}
