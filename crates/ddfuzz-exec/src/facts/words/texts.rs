//! The texts in a program's read-only data.

use std::collections::BTreeSet;

use object::{Object, ObjectSection, SectionFlags, SectionKind, elf};

use super::super::super::elf::Elf;
use super::noise::is_noise;
use super::{Ranges, within};

/// Bytes of a text.
const LENGTHS: std::ops::RangeInclusive<usize> = 3..=32;
/// Bytes of read-only data that are looked at.
const MOST_DATA: usize = 32 << 20;
/// Texts that are kept while they are ranked.
const MOST_TEXTS: usize = 1 << 16;
/// Pointers to texts that are looked at.
const MOST_POINTERS: usize = 1 << 20;

/// A program's read-only data, and which pointers lead there.
pub(super) struct Texts<'data> {
    sections: Vec<(u64, &'data [u8])>,
    ranges: Ranges,
    /// Addresses that stand in tables.
    pointers: BTreeSet<u64>,
}

impl<'data> Texts<'data> {
    /// Those of this file.
    pub(super) fn of(file: &Elf<'data>) -> Texts<'data> {
        let mut room = MOST_DATA;
        let mut sections = Vec::new();
        for section in file.sections() {
            let read_only = matches!(section.flags(), SectionFlags::Elf { sh_flags, .. }
                if sh_flags.contains(elf::SHF_ALLOC)
                    && !sh_flags.contains(elf::SHF_WRITE)
                    && !sh_flags.contains(elf::SHF_EXECINSTR));
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

    /// Where they lie.
    pub(super) fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// The texts: first those that code refers to, then those that tables point to, then, unless
    /// `only_named`, the others; in each part by address.
    pub(super) fn words(&self, references: &BTreeSet<u64>, only_named: bool) -> Vec<Vec<u8>> {
        let mut ranked: [Vec<Vec<u8>>; 3] = Default::default();
        for (address, bytes) in &self.sections {
            for Part { start, text, ends } in self.parts(*address, bytes, references) {
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

    /// Runs of printable characters. A short one that ends with a NUL is a text of C, wherever code
    /// may lead into it, for it is copied by its halves; of others each place that something leads
    /// to is a beginning, and the end of what stands before it.
    fn parts<'a>(
        &'a self,
        address: u64,
        bytes: &'a [u8],
        references: &'a BTreeSet<u64>,
    ) -> impl Iterator<Item = Part<'a>> {
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
            Some(Part {
                start,
                text: &bytes[begin..at],
                ends: ends && cut.is_none(),
            })
        })
    }
}

/// What may be a text.
struct Part<'a> {
    start: u64,
    text: &'a [u8],
    /// A NUL stands behind it.
    ends: bool,
}

/// Whether this is a word: of two or three characters numbers may consist as well.
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

/// Addresses in these ranges that stand in data, or will when the program is loaded.
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
