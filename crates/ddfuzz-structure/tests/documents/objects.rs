//! Object files of ELF, of which the samples have one of each width.

use crate::open;
use crate::searches::reduce;

/// How numbers are written in a file of 64 or of 32 bits.
struct Writer {
    wide: bool,
}

fn word(number: usize) -> Vec<u8> {
    (number as u32).to_le_bytes().to_vec()
}

fn half(number: usize) -> Vec<u8> {
    (number as u16).to_le_bytes().to_vec()
}

impl Writer {
    fn address(&self, number: usize) -> Vec<u8> {
        number.to_le_bytes()[..if self.wide { 8 } else { 4 }].to_vec()
    }

    /// A symbol: its name as an offset, its value, and its section.
    fn symbol(&self, name: usize, value: usize, section: usize) -> Vec<u8> {
        let kind = [vec![0x12, 0], half(section)].concat();
        let place = [self.address(value), self.address(5)].concat();
        match self.wide {
            true => [word(name), kind, place].concat(),
            false => [word(name), place, kind].concat(),
        }
    }

    /// The entry of a section: its name as an offset, type, place, link, and size of an entry.
    fn section(&self, [name, kind, at, size, link, entry]: [usize; 6]) -> Vec<u8> {
        let place = [0, 0, at, size].map(|number| self.address(number));
        let rest = [word(link), word(0), self.address(1), self.address(entry)];
        [word(name), word(kind), place.concat(), rest.concat()].concat()
    }
}

/// An object file of ELF with 64 or 32 bits: code, symbols, their names, and names of sections.
pub fn elf(wide: bool) -> Vec<u8> {
    elf_with(wide, &[])
}

/// An object file as [`elf`] makes it with more sections: for each, its type, link and size of an
/// entry, and its bytes.
fn elf_with(wide: bool, others: &[([usize; 3], Vec<u8>)]) -> Vec<u8> {
    let writer = Writer { wide };
    let symbols = [(0, 0, 0), (1, 2, 1), (8, 4, 1), (12, 6, 1)];
    let symbols = symbols.map(|(name, value, section)| writer.symbol(name, value, section));
    let entry = symbols[0].len();
    let names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0";
    let mut sections = vec![
        ([0, 0, 0, 0], Vec::new()),
        ([1, 1, 0, 0], b"\x90code of a program\xc3".to_vec()),
        ([7, 2, 3, entry], symbols.concat()),
        ([15, 3, 0, 0], b"\0main\0first\0second\0".to_vec()),
        ([23, 3, 0, 0], names.to_vec()),
    ];
    let others = others.iter();
    sections.extend(
        others.map(|([kind, link, entry], bytes)| ([1, *kind, *link, *entry], bytes.clone())),
    );
    let (head, section) = if wide { (64, 64) } else { (52, 40) };
    let (mut data, mut table) = (Vec::new(), Vec::new());
    for ([name, kind, link, entry], bytes) in &sections {
        let at = head + data.len();
        table.extend(writer.section([*name, *kind, at, bytes.len(), *link, *entry]));
        data.extend(bytes);
    }
    let class = if wide { 2 } else { 1 };
    let mut file = [&b"\x7fELF"[..], &[class, 1, 1], &[0; 9]].concat();
    let places = [0, 0, head + data.len()].map(|at| writer.address(at));
    file.extend([half(1), half(62), word(1), places.concat(), word(0)].concat());
    file.extend([head, 0, 0, section, sections.len(), 4].map(half).concat());
    [file, data, table].concat()
}

/// An object file with two relocations, of its third and of its second symbol.
fn relocated(wide: bool) -> Vec<u8> {
    let entry = |symbol: usize| match wide {
        true => [word(8), word(0), word(2), word(symbol), word(7), word(0)].concat(),
        false => [word(8), word(symbol << 8 | 2), word(7)].concat(),
    };
    let entries = [entry(3), entry(2)].concat();
    elf_with(wide, &[([4, 2, entries.len() / 2], entries)])
}

/// The names of the symbols to which the relocations of an object file refer; `None` if one of its
/// offsets leads out of the file.
fn related(text: &[u8], wide: bool) -> Option<Vec<&[u8]>> {
    text.starts_with(b"\x7fELF").then_some(())?;
    let number = |at: usize, size: usize| -> Option<usize> {
        let bytes = text.get(at..at.checked_add(size)?)?.iter().rev();
        Some(bytes.fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let (address, table, entry) = if wide { (8, 40, 64) } else { (4, 32, 40) };
    let table = number(table, address)?;
    let count = number(if wide { 60 } else { 48 }, 2)?;
    let section = |index: usize| {
        let at = table + entry * index;
        let place = at + 8 + 2 * address;
        let bytes = text.get(number(place, address)?..)?;
        let bytes = bytes.get(..number(place + address, address)?)?;
        let fields = [number(at + 4, 4)?, number(place + 2 * address, 4)?];
        (index < count).then_some((fields, bytes))
    };
    let mut names = Vec::new();
    for index in 1..count {
        let ([kind, link], bytes) = section(index)?;
        if kind != 4 {
            continue;
        }
        let ([2, strings], symbols) = section(link)? else {
            return None;
        };
        for relocation in bytes.chunks(3 * address) {
            let at = if wide { 12 } else { 5 };
            let symbol = relocation.get(at..at + address - 1 - usize::from(wide) * 3)?;
            let symbol = symbol
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | usize::from(*byte));
            let size = 8 + 2 * address;
            let symbol = symbols.get(symbol * size..(symbol + 1) * size)?;
            let name = u32::from_le_bytes(*symbol.first_chunk()?) as usize;
            let name = section(strings)?.1.get(name..)?;
            names.push(name.split(|byte| *byte == 0).next()?);
        }
    }
    Some(names)
}

#[test]
fn strings_symbols_and_relocations_are_bounded_in_all_tables_together() {
    // Types of sections, and sizes of entries: strings, symbols, relocations.
    for (kind, size) in [(3, 1), (2, 16), (9, 8)] {
        let table = ([kind, 3, size], vec![0; 4_000 * size]);
        let file = elf_with(false, &vec![table; 12]);
        let document = open(&file).expect("an object");
        assert_eq!(document.text(), file);
        let parts = document.parts().len();
        assert!((24_000..=1 << 15).contains(&parts), "{parts} parts");
    }
}

#[test]
fn a_relocation_keeps_its_symbol() {
    for wide in [true, false] {
        let text = relocated(wide);
        assert_eq!(related(&text, wide), Some(vec![&b"second"[..], b"rst"]));
        let fails =
            |text: &[u8]| related(text, wide).is_some_and(|names| names.contains(&&b"second"[..]));
        let reduced = reduce(&text, &fails, false);
        let (head, section, symbol, relocation) = if wide {
            (64, 64, 24, 24)
        } else {
            (52, 40, 16, 12)
        };
        // One section has no bytes; the names of sections may be gone.
        let least = head + 4 * section + symbol + relocation + 7;
        assert!(
            reduced.text.len() <= least + 8,
            "{} bytes",
            reduced.text.len()
        );
        assert!(reduced.tests <= 300, "{} tests", reduced.tests);
    }
}
