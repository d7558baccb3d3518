//! Reader for ELF files: sections and segments at offsets, listed in tables; other numbers state
//! indices into these tables.

use std::ops::Range;

use super::object::{MOST_ENTRIES, Object, Stated};
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::reader::Reader;

/// Section types (`sh_type`) of symbol tables: `SHT_SYMTAB` and `SHT_DYNSYM`.
const SYMBOLS: [u64; 2] = [2, 11];
/// Section type of string tables: `SHT_STRTAB`.
const STRINGS: u64 = 3;
/// Section types of relocations: `SHT_RELA` and `SHT_REL`.
const RELOCATIONS: [u64; 2] = [4, 9];
/// Section type (`SHT_NOBITS`) of sections without bytes in the file, such as `.bss`.
const NO_BYTES: u64 = 8;
/// Positions of the fields of an ELF file, which differ between its classes (32 or 64 bits). A pair
/// is the offset and the width of a field in bytes; a single number is a size or an offset in
/// bytes.
struct Layout {
    /// Size of the file header in bytes.
    head: usize,
    /// Position and size in bytes of the field of the ELF header that holds the offset of the
    /// segment table.
    segments: (usize, usize),
    /// Position and size in bytes of the field of the ELF header that holds the offset of the
    /// section table.
    sections: (usize, usize),
    /// Offset of the field of the file header with the number of segments.
    segment_count: usize,
    /// Offset of the field of the file header with the number of sections.
    section_count: usize,
    /// Offset of the field of the file header with the index of the section of section names.
    names: usize,
    /// Size of an entry of the section table in bytes.
    section: usize,
    /// Fields of a section table's entry, as pairs of offset and width: `sh_offset`, `sh_size`,
    /// `sh_link`, `sh_info` and `sh_entsize`.
    place: [(usize, usize); 5],
    /// Size of an entry of the segment table in bytes.
    segment: usize,
    /// Fields of a segment table's entry, as pairs of offset and width: `p_offset` and `p_filesz`.
    segment_place: [(usize, usize); 2],
    /// Size of an entry of a symbol table in bytes.
    symbol: usize,
    /// Offset of the field of a symbol with the index of its section.
    symbol_section: usize,
    /// Size in bytes of a relocation without an addend, and offset and width of the index of its
    /// symbol in a big-endian file; in a little-endian file, the index is at the end of the
    /// relocation.
    relocation: (usize, usize, usize),
}

const NARROW: Layout = Layout {
    head: 52,
    segments: (28, 4),
    sections: (32, 4),
    segment_count: 44,
    section_count: 48,
    names: 50,
    section: 40,
    place: [(16, 4), (20, 4), (24, 4), (28, 4), (36, 4)],
    segment: 32,
    segment_place: [(4, 4), (16, 4)],
    symbol: 16,
    symbol_section: 14,
    relocation: (8, 4, 3),
};

const WIDE: Layout = Layout {
    head: 64,
    segments: (32, 8),
    sections: (40, 8),
    segment_count: 56,
    section_count: 60,
    names: 62,
    section: 64,
    place: [(24, 8), (32, 8), (40, 4), (44, 4), (56, 8)],
    segment: 56,
    segment_place: [(8, 8), (32, 8)],
    symbol: 24,
    symbol_section: 6,
    relocation: (16, 8, 4),
};

/// A section of an ELF file, as its entry in the section table describes it.
struct Section {
    /// Offset of the section's entry (in the section table) in the file, in bytes.
    at: usize,
    kind: u64,
    link: usize,
    info: usize,
    entry: usize,
    place: Range<usize>,
    /// Label (id in the file's tree) of the group of nodes that the section's entry in the section
    /// table becomes.
    part: Label,
    /// Label (id in the file's tree) of the group of nodes that the section's bytes become; `None`
    /// if the section has no bytes in the file, or shares them with another section.
    bytes: Option<Label>,
    /// Labels (ids in the file's tree) of the symbols, if the section is a table of symbols.
    symbols: Vec<Label>,
    /// Label (id in the file's tree) of an empty group of nodes before the first global symbol; its
    /// index is the number of local symbols, which the entry's field `sh_info` states. `None` if
    /// the section is not a symbol table.
    first_global: Option<Label>,
}

struct Elf<'a> {
    object: Object<'a>,
    layout: &'static Layout,
    sections: Vec<Section>,
}

/// Reads an ELF file of 32 or 64 bits and either byte order into the nodes of its tree; `None` if
/// the text is not such a file.
pub fn elf(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let layout = match text.get(4)? {
        1 => &NARROW,
        2 => &WIDE,
        _ => return None,
    };
    text.get(..layout.head)?;
    let mut elf = Elf {
        object: Object::new(reader, text, text[5] == 2, layout.head),
        layout,
        sections: Vec::new(),
    };
    let mut stated = elf.sections(reader);
    stated.extend(elf.segments(reader));
    if elf.object.regions.is_empty() {
        return None;
    }
    let nodes = elf.object.entry(reader, 0..layout.head, stated);
    elf.object.nodes(nodes)
}

impl Elf<'_> {
    /// Returns the range of a table in the file, and how many entries of `size` bytes it has. The
    /// table's offset stands in the field `at` of the file header (offset and width in bytes), its
    /// number of entries in the two bytes at offset `count`. `None` if the table is not in the
    /// file, or overlaps a region.
    fn table(
        &self,
        at: (usize, usize),
        count: usize,
        size: usize,
    ) -> Option<(Range<usize>, usize)> {
        let start = self.object.size(at.0, at.1)?;
        let count = self.object.size(count, 2)?.min(MOST_ENTRIES);
        let place = start..start.checked_add(count * size)?;
        self.object.is_free(&place).then_some((place, count))
    }

    /// Makes regions (byte ranges that offsets refer to) of the section table and of the bytes of
    /// all sections; returns those numbers of the file header that refer to the section table.
    /// Empty without a section table.
    fn sections(&mut self, reader: &mut Reader) -> Vec<Stated> {
        let layout = self.layout;
        let table = self.table(layout.sections, layout.section_count, layout.section);
        let Some((table, count)) = table else {
            return Vec::new();
        };
        let list = reader.label();
        self.object.add(table.clone(), Group::new(list, Vec::new()));
        let entries = (0..count).map(|index| table.start + index * layout.section);
        self.sections = entries.map_while(|at| self.section(reader, at)).collect();
        for index in 0..self.sections.len() {
            self.place_section(reader, index);
        }
        let names = self.object.size(layout.names, 2).unwrap_or_default();
        for index in 0..self.sections.len() {
            self.fill_symbols(reader, index);
        }
        for index in 0..self.sections.len() {
            self.fill_relocations(reader, index);
        }
        let nodes = (0..self.sections.len()).map(|index| {
            let section = &self.sections[index];
            let stated = self.section_numbers(section, names);
            let nodes = self
                .object
                .entry(reader, section.at..section.at + layout.section, stated);
            Node::Group(Group {
                part: section.bytes.map_or(Part::Own, Part::With),
                ..Group::new(section.part, nodes)
            })
        });
        let nodes = nodes.collect();
        if let Some(region) = self.object.regions.get_mut(&table.start) {
            region.group.nodes = nodes;
        }
        let mut stated = vec![
            Stated::new(layout.sections, Meaning::Offset(list, self.object.root)),
            Stated::new((layout.section_count, 2), Meaning::Count(list)),
        ];
        let names = self.index_of(names);
        stated.extend(names.map(|meaning| Stated::new((layout.names, 2), meaning)));
        stated
    }

    /// Reads the entry of the section table at offset `at` of the file; `None` if the file ends
    /// inside of the entry, or has too many parts.
    fn section(&self, reader: &mut Reader, at: usize) -> Option<Section> {
        let field = |index: usize| {
            let (offset, width) = self.layout.place[index];
            self.object.size(at + offset, width)
        };
        let kind = self.object.number(at + 4, 4)?;
        let (start, size) = (field(0)?, field(1)?);
        let part = reader.label();
        reader.count_part().then_some(Section {
            at,
            kind,
            link: field(2)?,
            info: field(3)?,
            entry: field(4)?,
            // Damaged sections, which no file could hold, have no bytes.
            place: match kind {
                NO_BYTES => start..start,
                _ => start..start.checked_add(size).unwrap_or(start),
            },
            part,
            bytes: None,
            symbols: Vec::new(),
            first_global: None,
        })
    }

    /// Makes a part (a group of nodes that can be deleted) of the bytes of the section with the
    /// index `index`, unless they overlap another region (a byte range that offsets refer to). Each
    /// string of a string table becomes a part inside of it.
    fn place_section(&mut self, reader: &mut Reader, index: usize) {
        let section = &self.sections[index];
        let place = section.place.clone();
        if !self.object.is_free(&place) {
            return;
        }
        let bytes = &self.object.text[place.clone()];
        let nodes = match section.kind {
            STRINGS => self.object.strings(reader, place.clone()),
            _ => vec![Node::payload(bytes)],
        };
        let label = reader.label();
        self.object.add(place, Group::part(label, nodes));
        self.sections[index].bytes = Some(label);
    }

    /// If the section with the index `index` is a symbol table, divides it into one part for each
    /// symbol, whose numbers refer to the symbol's name and section.
    fn fill_symbols(&mut self, reader: &mut Reader, index: usize) {
        let section = &self.sections[index];
        let size = self.layout.symbol;
        let place = section.place.clone();
        let is_table = SYMBOLS.contains(&section.kind) && section.bytes.is_some();
        let count = place.len() / size;
        if !is_table || !place.len().is_multiple_of(size) || count >= MOST_ENTRIES {
            return;
        }
        if !reader.count_parts(count) {
            return;
        }
        let (mut nodes, mut symbols) = (Vec::new(), Vec::new());
        let marker = reader.label();
        for (symbol, at) in place.clone().step_by(size).enumerate() {
            // The marker has no bytes: its index is the number of symbols before it.
            if symbol == self.sections[index].info {
                nodes.push(Group::new(marker, Vec::new()).into());
            }
            let link = self.sections[index].link;
            let mut stated: Vec<Stated> = self.name(at, link).into_iter().collect();
            let home = self.object.size(at + self.layout.symbol_section, 2);
            if let Some(meaning) = home.and_then(|home| self.index_of(home)) {
                let at = (self.layout.symbol_section, 2);
                stated.push(Stated::new(at, meaning));
            }
            let label = reader.label();
            symbols.push(label);
            let entry = self.object.entry(reader, at..at + size, stated);
            nodes.push(Group::part(label, entry).into());
        }
        self.sections[index].first_global = Some(marker);
        self.sections[index].symbols = symbols;
        if let Some(region) = self.object.regions.get_mut(&place.start) {
            region.group.nodes = nodes;
        }
    }

    /// If the section with the index `index` has relocations, divides it into one part for each,
    /// which refers to its symbol.
    fn fill_relocations(&mut self, reader: &mut Reader, index: usize) {
        let section = &self.sections[index];
        let (size, place) = (section.entry, section.place.clone());
        let is_table = RELOCATIONS.contains(&section.kind) && section.bytes.is_some();
        let fits = size >= self.layout.relocation.0 && place.len().is_multiple_of(size.max(1));
        if !is_table || !fits || place.len() / size >= MOST_ENTRIES {
            return;
        }
        if !reader.count_parts(place.len() / size) {
            return;
        }
        let symbols = self.sections.get(section.link);
        let symbols = symbols.map_or(&[][..], |symbols| &symbols.symbols[..]);
        let (least, at, width) = self.layout.relocation;
        // The index of the symbol is in the high bits of a number.
        let in_entry = match self.object.big {
            true => at,
            false => least - width,
        };
        let entries = place.clone().step_by(size).map(|at| {
            let symbol = self.object.size(at + in_entry, width);
            let symbol = symbol.and_then(|symbol| symbols.get(symbol));
            let stated = symbol.map(|of| Stated::new((in_entry, width), Meaning::Index(*of)));
            let stated = stated.into_iter().collect();
            let nodes = self.object.entry(reader, at..at + size, stated);
            Group::part(reader.label(), nodes).into()
        });
        let entries: Vec<Node> = entries.collect();
        if let Some(region) = self.object.regions.get_mut(&place.start) {
            region.group.nodes = entries;
        }
    }

    /// Returns the meaning of a number whose value is `index`, the index of a section in the
    /// section table; `None` for index 0 (no section) and for indices beyond the table.
    fn index_of(&self, index: usize) -> Option<Meaning> {
        let section = self.sections.get(index).filter(|_| index > 0)?;
        Some(Meaning::Index(section.part))
    }

    /// Returns what the number at the beginning of the table entry at offset `at` states: the place
    /// of a name in the string table, which is the section with the index `strings`. `None` if it
    /// leads to no string of that section.
    fn name(&self, at: usize, strings: usize) -> Option<Stated> {
        let section = self.sections.get(strings)?;
        let name = section.place.start.checked_add(self.object.size(at, 4)?)?;
        let (label, bias) = self.object.name(name, &section.place)?;
        Some(Stated {
            at: 0,
            width: 4,
            meaning: Meaning::Offset(label, section.bytes?),
            bias,
        })
    }

    /// Returns the numbers in a section's entry that refer to something else: name, offset and size
    /// of the section's bytes, and indices of other sections. `names` is the index of the section
    /// with the section names.
    fn section_numbers(&self, section: &Section, names: usize) -> Vec<Stated> {
        let [offset, size, link, info, _] = self.layout.place;
        let mut stated: Vec<Stated> = self.name(section.at, names).into_iter().collect();
        let mut state = |at: (usize, usize), meaning: Option<Meaning>| {
            stated.extend(meaning.map(|meaning| Stated::new(at, meaning)));
        };
        let bytes = section.bytes;
        state(
            offset,
            bytes.map(|of| Meaning::Offset(of, self.object.root)),
        );
        state(size, bytes.map(Meaning::Length));
        state(link, self.index_of(section.link));
        if RELOCATIONS.contains(&section.kind) {
            state(info, self.index_of(section.info));
        }
        state(info, section.first_global.map(Meaning::Index));
        stated
    }

    /// Makes regions (byte ranges that offsets refer to) of the segment table and of the bytes of
    /// segments that belong to no section; returns those numbers of the file header that refer to
    /// the segment table. Empty without a segment table.
    fn segments(&mut self, reader: &mut Reader) -> Vec<Stated> {
        let layout = self.layout;
        let table = self.table(layout.segments, layout.segment_count, layout.segment);
        let Some((table, count)) = table else {
            return Vec::new();
        };
        let list = reader.label();
        self.object.add(table.clone(), Group::new(list, Vec::new()));
        let entries = (0..count).map(|index| table.start + index * layout.segment);
        let nodes = entries.map(|at| self.segment(reader, at)).collect();
        if let Some(region) = self.object.regions.get_mut(&table.start) {
            region.group.nodes = nodes;
        }
        vec![
            Stated::new(layout.segments, Meaning::Offset(list, self.object.root)),
            Stated::new((layout.segment_count, 2), Meaning::Count(list)),
        ]
    }

    /// Makes the entry of the segment table at offset `at` a part (a group of nodes that can be
    /// deleted). If the segment's bytes overlap no region made so far, they become a region that is
    /// deleted together with the entry.
    fn segment(&mut self, reader: &mut Reader, at: usize) -> Node {
        let [offset, size] = self.layout.segment_place;
        let entry = reader.label();
        let mut stated = Vec::new();
        let start = self
            .object
            .size(at + offset.0, offset.1)
            .unwrap_or_default();
        let length = self.object.size(at + size.0, size.1).unwrap_or_default();
        let place = start..start.saturating_add(length);
        if self.object.is_free(&place) && reader.count_part() {
            let bytes = vec![Node::payload(&self.object.text[place.clone()])];
            let label = reader.label();
            let group = Group {
                part: Part::With(entry),
                ..Group::new(label, bytes)
            };
            self.object.add(place, group);
            stated.push(Stated::new(size, Meaning::Length(label)));
        }
        if let Some(region) = self.object.regions.get(&start) {
            let meaning = Meaning::Offset(region.group.label, self.object.root);
            stated.push(Stated::new(offset, meaning));
        }
        let nodes = self
            .object
            .entry(reader, at..at + self.layout.segment, stated);
        Group::part(entry, nodes).into()
    }
}
