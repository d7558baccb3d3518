//! Object files of ELF, of which the samples have one of each width.

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
    let writer = Writer { wide };
    let symbols = [(0, 0, 0), (1, 2, 1), (8, 4, 1), (12, 6, 1)];
    let symbols = symbols.map(|(name, value, section)| writer.symbol(name, value, section));
    let entry = symbols[0].len();
    let names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0";
    let sections = [
        ([0, 0, 0, 0], Vec::new()),
        ([1, 1, 0, 0], b"\x90code of a program\xc3".to_vec()),
        ([7, 2, 3, entry], symbols.concat()),
        ([15, 3, 0, 0], b"\0main\0first\0second\0".to_vec()),
        ([23, 3, 0, 0], names.to_vec()),
    ];
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
