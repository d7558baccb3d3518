//! Reader for programs of Windows (PE): sections at offsets in the file, and the functions that a
//! program imports, which are referred to by addresses.

use std::ops::Range;

use super::object::{MOST_ENTRIES, Object, Stated};
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::reader::Reader;

/// Size of the DOS header, in bytes; the offset of the PE header is in its last four bytes.
const DOS: usize = 64;
/// Size, in bytes, of the PE signature together with the COFF header.
const HEAD: usize = 24;
/// Size, in bytes, of a section header.
const SECTION: usize = 40;
/// Size, in bytes, of a data directory.
const DIRECTORY: usize = 8;
/// Size, in bytes, of the import table's entry for a library.
const LIBRARY: usize = 20;
/// Index of the data directory that states where the import table is.
const IMPORTS: usize = 1;
/// Maximum size of the name of an imported function or library, in bytes. Longer names stay part of
/// the bytes around them.
const LONGEST_NAME: usize = 1 << 12;

/// A section of a program: its range in the file, its address in memory (relative to the image),
/// and its label (id in the file's tree).
struct Section {
    place: Range<usize>,
    address: usize,
    label: Label,
}

struct Program<'a> {
    object: Object<'a>,
    /// Sections that have bytes in the file, by ascending addresses.
    sections: Vec<Section>,
    /// Size, in bytes, of an entry in a list of imported functions: 4 or 8.
    width: usize,
}

/// Reads a program of Windows, of 32 or 64 bits, into the nodes of its tree; `None` if its headers
/// or its section table cannot be read.
pub fn pe(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    text.get(..DOS)?;
    let mut object = Object::new(reader, text, false, DOS);
    let start = object.size(DOS - 4, 4)?;
    text.get(start..)?.strip_prefix(b"PE\0\0")?;
    let (count, size) = (object.size(start + 6, 2)?, object.size(start + 20, 2)?);
    let table = start + HEAD + size;
    let place = start..table + count * SECTION;
    if !object.is_free(&place) || count > MOST_ENTRIES {
        return None;
    }
    let [head, optional, list] = [(); 3].map(|()| reader.label());
    object.add(place.clone(), Group::new(head, Vec::new()));
    object.add_bytes(reader, DOS..start);
    // The number of directories follows addresses, which are wider in programs of 64 bits.
    let is_wide = object.number(start + HEAD, 2)? == 0x20b;
    let counted = start + HEAD + if is_wide { 108 } else { 92 };
    let mut program = Program {
        object,
        sections: Vec::new(),
        width: if is_wide { 8 } else { 4 },
    };
    let entries = (table..place.end).step_by(SECTION);
    let entries: Vec<Node> = entries
        .map(|at| program.section(reader, at).map(Node::Group))
        .collect::<Option<_>>()?;
    program.sections.sort_by_key(|section| section.address);
    let directories = program.directories(reader, counted..table);
    let object = &mut program.object;
    for section in &program.sections {
        object.enclose_part(section.place.clone(), section.label);
    }
    let stated = vec![
        Stated::new((6, 2), Meaning::Count(list)),
        Stated::new((20, 2), Meaning::Length(optional)),
    ];
    let mut nodes = object.entry(reader, start..start + HEAD, stated);
    nodes.push(
        Group::new(
            optional,
            directories.unwrap_or_else(|| vec![Node::payload(&text[start + HEAD..table])]),
        )
        .into(),
    );
    nodes.push(Group::new(list, entries).into());
    object.regions.get_mut(&start)?.group.nodes = nodes;
    let stated = vec![Stated::new(
        (DOS - 4, 4),
        Meaning::Offset(head, object.root),
    )];
    let nodes = object.entry(reader, 0..DOS, stated);
    program.object.nodes(nodes)
}

impl Program<'_> {
    /// Makes the group of nodes of the section header at offset `at`; the header is deleted
    /// together with the bytes of the section. `None` if the file has too many parts.
    fn section(&mut self, reader: &mut Reader, at: usize) -> Option<Group> {
        let object = &self.object;
        let start = object.size(at + 20, 4)?;
        let place = start..start.saturating_add(object.size(at + 16, 4)?);
        let mut stated = Vec::new();
        let mut part = Part::Own;
        let mut others = self.sections.iter();
        let is_apart =
            others.all(|other| other.place.end <= place.start || place.end <= other.place.start);
        if is_apart && object.is_free(&place) {
            let label = reader.label();
            stated.push(Stated::new((16, 4), Meaning::Length(label)));
            stated.push(Stated::new((20, 4), Meaning::Offset(label, object.root)));
            part = Part::With(label);
            self.sections.push(Section {
                place,
                address: object.size(at + 12, 4)?,
                label,
            });
        }
        reader.count_part().then(|| Group {
            part,
            ..Group::new(
                reader.label(),
                self.object.entry(reader, at..at + SECTION, stated),
            )
        })
    }

    /// Returns the tree nodes of the optional header: its numbers, and the data directories, whose
    /// number is at the beginning of the range `place`. `None` if the header ends before the
    /// directories do.
    fn directories(&mut self, reader: &mut Reader, place: Range<usize>) -> Option<Vec<Node>> {
        let before = place.start - if self.width == 8 { 108 } else { 92 };
        let count = self.object.size(place.start, 4)?;
        let list = reader.label();
        let start = place.start + 4;
        let end = start.checked_add(count.checked_mul(DIRECTORY)?)?;
        if end > place.end || !reader.count_part() {
            return None;
        }
        let mut entries = Vec::with_capacity(count);
        // Imports come before the other data, which contain parts of them.
        let imports_at = start + IMPORTS * DIRECTORY;
        let mut imports = None;
        if imports_at < end {
            imports = self.imports(reader, imports_at);
        }
        for (index, at) in (start..end).step_by(DIRECTORY).enumerate() {
            let stated = match index {
                IMPORTS => imports.take(),
                _ => self.data(reader, at),
            };
            let stated = stated.unwrap_or_default();
            let nodes = self.object.entry(reader, at..at + DIRECTORY, stated);
            entries.push(Group::part(reader.label(), nodes).into());
        }
        let stated = vec![Stated::new((place.start - before, 4), Meaning::Count(list))];
        let mut nodes = self.object.entry(reader, before..start, stated);
        nodes.push(Group::new(list, entries).into());
        let rest = &self.object.text[end..place.end];
        nodes.extend((!rest.is_empty()).then(|| Node::payload(rest)));
        Some(nodes)
    }

    /// Returns the section that contains the memory address `address`, and the offset in the file
    /// that corresponds to the address; `None` if no section contains it.
    fn locate(&self, address: usize) -> Option<(&Section, usize)> {
        let sections = &self.sections;
        let after = sections.partition_point(|section| section.address <= address);
        let section = sections[..after].last()?;
        let at = section.place.start.checked_add(address - section.address)?;
        (at < section.place.end).then_some((section, at))
    }

    /// Describes the number of four bytes at offset `at` of an entry that is the memory address of
    /// the group of nodes `of`; `address` is its value in the file. `None` if no section contains
    /// it.
    fn address(&self, at: usize, of: Label, address: usize) -> Option<Stated> {
        let (section, _) = self.locate(address)?;
        Some(Stated {
            bias: i64::try_from(section.address).ok()?,
            ..Stated::new((at, 4), Meaning::Offset(of, section.label))
        })
    }

    /// Makes a region of the bytes to which the data directory (an entry of address and size) at
    /// offset `at` refers. Returns the two numbers of the directory, which must be computed anew:
    /// address and size of these bytes. `None` if the bytes are not in a section, or overlap
    /// another region.
    fn data(&mut self, reader: &mut Reader, at: usize) -> Option<Vec<Stated>> {
        let (address, size) = (self.object.size(at, 4)?, self.object.size(at + 4, 4)?);
        let (section, start) = self.locate(address)?;
        let place = start..start.checked_add(size)?;
        if place.end > section.place.end {
            return None;
        }
        if !self.object.is_free(&place) {
            return None;
        }
        // A directory keeps its place, so that its bytes are not a part: without them, it would refer
        // to others.
        let label = reader.label();
        let bytes = vec![Node::payload(&self.object.text[place.clone()])];
        self.object.add(place, Group::new(label, bytes));
        let mut stated = vec![Stated::new((4, 4), Meaning::Length(label))];
        stated.extend(self.address(0, label, address));
        Some(stated)
    }

    /// Makes regions of the import table, to which the data directory at offset `at` refers, and of
    /// all that the table's entries refer to. Returns the address and the size in that data
    /// directory as numbers to be computed anew. `None` if the table is not in a section, or
    /// overlaps another region.
    fn imports(&mut self, reader: &mut Reader, at: usize) -> Option<Vec<Stated>> {
        let address = self.object.size(at, 4)?;
        let (_, start) = self.locate(address)?;
        let is_last = |this: &Self, at: usize| {
            let entry = this.object.text.get(at..at + LIBRARY);
            entry.is_none_or(|entry| entry.iter().all(|byte| *byte == 0))
        };
        let entries = (start..).step_by(LIBRARY).take(MOST_ENTRIES);
        let entries: Vec<usize> = entries.take_while(|at| !is_last(self, *at)).collect();
        let end = start + (entries.len() + 1) * LIBRARY;
        if !self.object.is_free(&(start..end)) {
            return None;
        }
        let label = reader.label();
        self.object.add(start..end, Group::new(label, Vec::new()));
        let mut nodes: Vec<Node> = Vec::new();
        for at in entries {
            nodes.push(self.library(reader, at).into());
        }
        nodes.push(Node::fixed(&self.object.text[end - LIBRARY..end]));
        self.object.regions.get_mut(&start)?.group.nodes = nodes;
        let mut stated = vec![Stated::new((4, 4), Meaning::Length(label))];
        stated.extend(self.address(0, label, address));
        Some(stated)
    }

    /// Makes the group of nodes of the import table's entry for a library, at offset `at`, and
    /// regions of the library's name and of its two lists of functions. Entry and name are deleted
    /// together with the first list.
    fn library(&mut self, reader: &mut Reader, at: usize) -> Group {
        let field = |field: usize| {
            self.object
                .size(at + field, 4)
                .filter(|address| *address > 0)
        };
        let lists = [field(0), field(16)];
        let name = field(12);
        let mut stated = Vec::new();
        let (mut first, mut functions) = (None, Vec::new());
        for (field, address) in [0, 16].into_iter().zip(lists) {
            let Some(address) = address else { continue };
            if let Some(list) = self.functions(reader, address, &mut functions, first.is_some()) {
                first = first.or(Some(list));
                stated.extend(self.address(field, list, address));
            }
        }
        if let Some(address) = name
            && let Some(name) = self.string(reader, address, 0, first)
        {
            stated.extend(self.address(12, name, address));
        }
        Group {
            part: first.map_or(Part::Own, Part::With),
            ..Group::new(
                reader.label(),
                self.object.entry(reader, at..at + LIBRARY, stated),
            )
        }
    }

    /// Makes a region (a byte range that offsets refer to) of the list of imported functions at the
    /// memory address `address`, and regions of their names; returns the label (id in the file's
    /// tree) of the list. If `again` is false, the list is the first one of a library: label and
    /// name of each of its entries are appended to `functions`. If `again` is true, each entry is
    /// deleted together with the entry at the same place of the first list. `None` if the list is
    /// empty, not in a section, or overlaps another region.
    fn functions(
        &mut self,
        reader: &mut Reader,
        address: usize,
        functions: &mut Vec<(Label, Option<Label>)>,
        again: bool,
    ) -> Option<Label> {
        let (_, start) = self.locate(address)?;
        let width = self.width;
        let places = (start..).step_by(width).take(MOST_ENTRIES);
        let is_last = |at: usize| {
            self.object
                .number(at, width)
                .is_none_or(|number| number == 0)
        };
        let places: Vec<usize> = places.take_while(|at| !is_last(*at)).collect();
        let place = start..start + (places.len() + 1) * width;
        let parts = 1 + places.len();
        if !self.object.is_free(&place) || places.is_empty() || !reader.count_parts(parts) {
            return None;
        }
        let list = reader.label();
        self.object.add(place.clone(), Group::new(list, Vec::new()));
        let mut nodes = Vec::new();
        for (index, at) in places.into_iter().enumerate() {
            let label = reader.label();
            let address = self.object.size(at, width).unwrap_or_default();
            let (part, name) = match functions.get(index) {
                Some((function, name)) if again => (Part::With(*function), *name),
                _ => {
                    let name = self.string(reader, address, 2, Some(label));
                    functions.push((label, name));
                    (Part::Own, name)
                }
            };
            let stated = name.and_then(|name| self.address(0, name, address));
            let stated = stated.into_iter().collect();
            nodes.push(Node::Group(Group {
                part,
                ..Group::new(label, self.object.entry(reader, at..at + width, stated))
            }));
        }
        nodes.push(Node::fixed(&self.object.text[place.end - width..place.end]));
        let group = &mut self.object.regions.get_mut(&start)?.group;
        group.nodes = nodes;
        group.part = if again { Part::No } else { Part::Own };
        Some(list)
    }

    /// Makes a region (a byte range that offsets refer to) of a string and of the `before` bytes in
    /// front of it, which begin at the memory address `address`; returns the label (id in the
    /// file's tree) of the region. The region is deleted together with the group of nodes `part`,
    /// if there is one. `None` if the bytes are not in a section, the string is longer than
    /// [`LONGEST_NAME`], or the region would overlap another one.
    fn string(
        &mut self,
        reader: &mut Reader,
        address: usize,
        before: usize,
        part: Option<Label>,
    ) -> Option<Label> {
        let (section, start) = self.locate(address)?;
        let text = self.object.text.get(start + before..section.place.end)?;
        // Many functions may have the name of another one.
        if !self.object.is_free(&(start..start + before + 1)) {
            return None;
        }
        let mut longest = text.iter().take(LONGEST_NAME + 1);
        let size = longest.position(|byte| *byte == 0)?;
        let place = start..start + before + size + 1;
        if !self.object.is_free(&place) {
            return None;
        }
        let (front, name) = (place.start + before, &text[..size]);
        let mut nodes = vec![Node::fixed(&self.object.text[place.start..front])];
        nodes.extend((size > 0).then(|| Node::payload(name)));
        nodes.push(Node::fixed(&[0]));
        let label = reader.label();
        let group = Group {
            part: part.map_or(Part::No, Part::With),
            ..Group::new(label, nodes)
        };
        self.object.add(place, group);
        Some(label)
    }
}
