//! Reader for little-endian Mach-O files: load commands, which lead to sections, symbols,
//! relocations and other ranges of the file.

use std::collections::BTreeMap;
use std::ops::Range;

use super::object::{MOST_ENTRIES, Object, Stated};
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Load commands that describe a segment, of 32 and of 64 bits: `LC_SEGMENT` and `LC_SEGMENT_64`.
const SEGMENTS: [u64; 2] = [1, 0x19];
/// Load command that states where the symbols and their names are: `LC_SYMTAB`.
const SYMBOLS: u64 = 2;
/// Load commands that state one range of the file, such as `LC_CODE_SIGNATURE` and
/// `LC_FUNCTION_STARTS`.
const RANGES: [u64; 6] = [0x1d, 0x1e, 0x26, 0x29, 0x2b, 0x2e];
/// Load command that states five ranges of the file: `LC_DYLD_INFO`.
const FIVE_RANGES: u64 = 0x22;
/// Bit of a load command's type (`LC_REQ_DYLD`) which says that the loader must understand the
/// command.
const REQUIRED: u64 = 0x8000_0000;
/// Size of a relocation, in bytes.
const RELOCATION: usize = 8;

/// Positions of the fields of a Mach-O file, which differ between 32 and 64 bits: offset and width
/// of each field in bytes; a single number is a size in bytes.
struct Layout {
    head: usize,
    segment: usize,
    /// Fields of a segment, each with its offset in the entry and its width in bytes: offset in the
    /// file, size in the file, number of sections.
    segment_fields: [(usize, usize); 3],
    section: usize,
    /// Fields of a section's entry, each with its offset in the entry and its width in bytes: size,
    /// offset in the file, offset of relocations, number of relocations.
    section_fields: [(usize, usize); 4],
    symbol: usize,
}

const NARROW: Layout = Layout {
    head: 28,
    segment: 56,
    segment_fields: [(32, 4), (36, 4), (48, 4)],
    section: 68,
    section_fields: [(36, 4), (40, 4), (48, 4), (52, 4)],
    symbol: 12,
};

const WIDE: Layout = Layout {
    head: 32,
    segment: 72,
    segment_fields: [(40, 8), (48, 8), (64, 4)],
    section: 80,
    section_fields: [(40, 8), (48, 4), (56, 4), (60, 4)],
    symbol: 16,
};

struct MachO<'a> {
    object: Object<'a>,
    layout: &'static Layout,
    /// Ranges of the file that segments take, by their starts: the end of each, and the label (id
    /// in the file's tree) of its group of nodes, into which the segment's sections are put. The
    /// ranges do not overlap.
    segments: BTreeMap<usize, (usize, Label)>,
}

/// Reads a little-endian Mach-O file of 32 or 64 bits into the nodes of its tree; `None` if its
/// load commands cannot be read.
pub fn macho(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let layout = match text.first()? {
        0xce => &NARROW,
        0xcf => &WIDE,
        _ => return None,
    };
    text.get(..layout.head)?;
    let mut file = MachO {
        object: Object::new(reader, text, false, layout.head),
        layout,
        segments: BTreeMap::new(),
    };
    let (count, size) = (file.object.size(16, 4)?, file.object.size(20, 4)?);
    let place = layout.head..layout.head.checked_add(size)?;
    if !file.object.is_free(&place) || count > MOST_ENTRIES {
        return None;
    }
    let list = reader.label();
    file.object.add(place.clone(), Group::new(list, Vec::new()));
    let (mut commands, mut at) = (Vec::new(), place.start);
    for _ in 0..count {
        let size = file.object.size(at + 4, 4)?;
        let end = at.checked_add(size).filter(|end| *end <= place.end)?;
        let command = file.command(reader, at..end)?;
        commands.push(Node::Group(command));
        at = end;
    }
    commands.extend((at < place.end).then(|| Node::payload(&text[at..place.end])));
    file.object.regions.get_mut(&place.start)?.group.nodes = commands;
    for (start, (end, label)) in std::mem::take(&mut file.segments) {
        file.object.enclose(start..end, label);
    }
    let stated = vec![
        Stated::new((16, 4), Meaning::Count(list)),
        Stated::new((20, 4), Meaning::Length(list)),
    ];
    let nodes = file.object.entry(reader, 0..layout.head, stated);
    file.object.nodes(nodes)
}

impl MachO<'_> {
    /// Makes the load command in the range `place` a part (a deletable group of nodes), and makes
    /// regions of all that it refers to. `None` if the command is too short, or the file has too
    /// many parts.
    fn command(&mut self, reader: &mut Reader, place: Range<usize>) -> Option<Group> {
        let label = reader.label();
        let at = place.start;
        let kind = self.object.number(at, 4)?;
        let mut stated = vec![Stated::new((4, 4), Meaning::Length(label))];
        let mut end = at + 8;
        let mut sections = None;
        match kind & !REQUIRED {
            kind if SEGMENTS.contains(&kind) => {
                end = at + self.layout.segment;
                sections = self.segment(reader, place.clone(), &mut stated);
            }
            SYMBOLS => {
                end = place.end;
                self.symbols(reader, at, &mut stated)?;
            }
            kind if RANGES.contains(&kind) || kind == FIVE_RANGES => {
                end = place.end;
                let pairs = if kind == FIVE_RANGES { 5 } else { 1 };
                for field in (8..8 + 8 * pairs).step_by(8) {
                    self.range(reader, at, field, &mut stated);
                }
            }
            _ => {}
        }
        if end > place.end || !reader.count_part() {
            return None;
        }
        let mut nodes = self.object.entry(reader, at..end, stated);
        if let Some((group, after)) = sections {
            nodes.push(group.into());
            end = after;
        }
        let rest = &self.object.text[end..place.end];
        nodes.extend((!rest.is_empty()).then(|| Node::payload(rest)));
        Some(Group::part(label, nodes))
    }

    /// Makes a group of nodes of the entries of all sections in the segment's load command at
    /// `place`, and regions of what they refer to. Appends to `stated` those numbers of the command
    /// that are computed anew. Returns the group and the offset after the entries; `None` if the
    /// command ends before its entries do, or has too many.
    fn segment(
        &mut self,
        reader: &mut Reader,
        place: Range<usize>,
        stated: &mut Vec<Stated>,
    ) -> Option<(Group, usize)> {
        let [offset, size, count] = self.layout.segment_fields;
        let field =
            |this: &Self, (at, width): (usize, usize)| this.object.size(place.start + at, width);
        let sections = field(self, count)?;
        let start = place.start + self.layout.segment;
        let end = start.checked_add(sections.checked_mul(self.layout.section)?)?;
        if end > place.end || sections > MOST_ENTRIES || !reader.count_parts(sections) {
            return None;
        }
        let (list, label) = (reader.label(), reader.label());
        let at = field(self, offset)?;
        let whole = at..at.saturating_add(field(self, size)?);
        // The commands are the first region.
        let commands_end = self.object.regions.values().next()?.end;
        let before = self.segments.range(..whole.end).next_back();
        let is_apart = before.is_none_or(|(_, (end, _))| *end <= whole.start);
        let is_inside = whole.start >= commands_end && whole.end <= self.object.text.len();
        if is_inside && is_apart && !whole.is_empty() {
            self.segments.insert(whole.start, (whole.end, label));
            stated.push(Stated::new(
                offset,
                Meaning::Offset(label, self.object.root),
            ));
            stated.push(Stated::new(size, Meaning::Length(label)));
        }
        stated.push(Stated::new(count, Meaning::Count(list)));
        let entries = (start..end).step_by(self.layout.section);
        let entries = entries.map(|at| self.section(reader, at).map(Node::Group));
        Some((Group::new(list, entries.collect::<Option<_>>()?), end))
    }

    /// Makes the group of nodes of the section's entry at offset `at`, and regions of the section's
    /// bytes and of its relocations. The entry is deleted together with the bytes. `None` if the
    /// file ends before the entry does.
    fn section(&mut self, reader: &mut Reader, at: usize) -> Option<Group> {
        let [size, offset, relocations, count] = self.layout.section_fields;
        let start = self.object.size(at + offset.0, offset.1)?;
        let place = start..start.saturating_add(self.object.size(at + size.0, size.1)?);
        let mut stated = Vec::new();
        let bytes = self.object.add_bytes(reader, place);
        if let Some(bytes) = bytes {
            stated.push(Stated::new(size, Meaning::Length(bytes)));
            stated.push(Stated::new(
                offset,
                Meaning::Offset(bytes, self.object.root),
            ));
        }
        let fields = [relocations, count];
        self.table(reader, at, fields, RELOCATION, &mut stated, |_, _| {
            Vec::new()
        });
        let nodes = self
            .object
            .entry(reader, at..at + self.layout.section, stated);
        Some(Group {
            part: bytes.map_or(Part::Own, Part::With),
            ..Group::new(reader.label(), nodes)
        })
    }

    /// Makes regions of the symbols and of their names, to which the load command at offset `at`
    /// refers; adds to `stated` the numbers of the command that are computed anew. `None` if the
    /// command is too short.
    fn symbols(&mut self, reader: &mut Reader, at: usize, stated: &mut Vec<Stated>) -> Option<()> {
        let start = self.object.size(at + 16, 4)?;
        let names = start..start.saturating_add(self.object.size(at + 20, 4)?);
        let strings = self.object.is_free(&names).then(|| {
            let nodes = self.object.strings(reader, names.clone());
            let label = reader.label();
            self.object.add(names.clone(), Group::new(label, nodes));
            stated.push(Stated::new(
                (16, 4),
                Meaning::Offset(label, self.object.root),
            ));
            stated.push(Stated::new((20, 4), Meaning::Length(label)));
            label
        });
        let size = self.layout.symbol;
        self.table(reader, at, [(8, 4), (12, 4)], size, stated, |object, at| {
            let name = object
                .size(at, 4)
                .and_then(|name| names.start.checked_add(name));
            let name = name.and_then(|name| object.name(name, &names));
            let stated = name.zip(strings).map(|((of, bias), strings)| Stated {
                bias,
                ..Stated::new((0, 4), Meaning::Offset(of, strings))
            });
            stated.into_iter().collect()
        });
        Some(())
    }

    /// Makes a region of a table, each of whose entries has `size` bytes and is a deletable part.
    /// The fields `offset` and `count` of the load command or entry at offset `at` state where the
    /// table begins and how many entries it has; both are added to `stated`, the numbers that are
    /// computed anew. `numbers` returns such numbers of the table's entry at an offset. `None` if
    /// the table is too large, or its range cannot become a region.
    fn table(
        &mut self,
        reader: &mut Reader,
        at: usize,
        [offset, count]: [(usize, usize); 2],
        size: usize,
        stated: &mut Vec<Stated>,
        numbers: impl Fn(&Object<'_>, usize) -> Vec<Stated>,
    ) -> Option<()> {
        let start = self.object.size(at + offset.0, offset.1)?;
        let entries = self.object.size(at + count.0, count.1)?;
        let place = start..start.checked_add(entries.checked_mul(size)?)?;
        let is_small = entries <= MOST_ENTRIES && self.object.is_free(&place);
        if !is_small || !reader.count_parts(entries) {
            return None;
        }
        let entries = place.clone().step_by(size).map(|at| {
            let nodes = self
                .object
                .entry(reader, at..at + size, numbers(&self.object, at));
            Node::Group(Group::part(reader.label(), nodes))
        });
        let entries = entries.collect();
        let label = reader.label();
        self.object.add(place, Group::new(label, entries));
        stated.push(Stated::new(
            offset,
            Meaning::Offset(label, self.object.root),
        ));
        stated.push(Stated::new(count, Meaning::Count(label)));
        Some(())
    }

    /// Makes a region of a range of the file, whose offset and size stand one after the other at
    /// offset `field` of the load command at offset `at`; adds both numbers to `stated`, the
    /// numbers that are computed anew.
    fn range(&mut self, reader: &mut Reader, at: usize, field: usize, stated: &mut Vec<Stated>) {
        let number = |field: usize| Encoding::Little(4).read_at(self.object.text, at + field);
        let (Some(start), Some(size)) = (number(field), number(field + 4)) else {
            return;
        };
        // Both have 32 bits.
        let place = start as usize..(start + size) as usize;
        if self.object.is_free(&place) {
            let label = reader.label();
            let bytes = vec![Node::payload(&self.object.text[place.clone()])];
            self.object.add(place, Group::new(label, bytes));
            stated.push(Stated::new(
                (field, 4),
                Meaning::Offset(label, self.object.root),
            ));
            stated.push(Stated::new((field + 4, 4), Meaning::Length(label)));
        }
    }
}
