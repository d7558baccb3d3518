//! Reader for CFF, the compact outlines of OpenType fonts: INDEX structures (lists of names,
//! strings and glyphs), and DICTs, whose operands state the offsets of further ones.

use std::collections::BTreeMap;
use std::ops::Range;

use super::glyphs::Glyphs;
use super::with_gaps;
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Number of standard strings, which CFF itself defines; string ids from this number on refer to
/// strings in the file.
const STANDARD_STRINGS: u64 = 391;
/// First byte of those DICT operators that have two bytes.
const ESCAPE: u8 = 12;
/// DICT operators whose operands are string ids. An operator of two bytes is written as a
/// big-endian number.
const NAMES: [u16; 10] = [0, 1, 2, 3, 4, 0x0c00, 0x0c15, 0x0c16, 0x0c1e, 0x0c26];
/// DICT operator whose operands are the size and the offset of a Private DICT.
const PRIVATE: u16 = 18;
/// DICT operator whose operand is the offset of the local subroutines, counted from the beginning
/// of the Private DICT.
const SUBROUTINES: u16 = 19;
/// DICT operator whose operand is the offset of the INDEX of the glyphs' charstrings.
const GLYPHS: u16 = 17;
/// DICT operator whose operand is the offset of the INDEX of Font DICTs, in a font that has
/// several.
const DICTIONARIES: u16 = 0x0c24;
/// DICT operators whose operand is the offset of data without a stated size: the names of glyphs
/// (charset), their codes (encoding), and their Font DICTs (FDSelect).
const UNSIZED: [u16; 3] = [15, 16, 0x0c25];

/// An INDEX of CFF: the ranges of its items in the text, the width of its offsets in bytes, and the
/// offset after it.
struct Index {
    items: Vec<Range<usize>>,
    width: usize,
    end: usize,
}

/// A range of the file to which an operand in a DICT refers: the group of nodes that it becomes,
/// and the offset of its end, `None` if the file does not state the size; the range then extends to
/// the next region.
struct Region {
    end: Option<usize>,
    group: Group,
}

impl Index {
    /// Returns the least width, in bytes, in which the offsets of this INDEX may be written after
    /// deletions. If the file uses no more bytes than necessary, that is 1, so that the width
    /// follows the size of the items; else the file's own width.
    fn least_width(&self) -> usize {
        let start = self.items.first().map_or(self.end, |item| item.start);
        let needed = Encoding::width_of((self.end - start + 1) as u64);
        if self.width == needed { 1 } else { self.width }
    }
}

struct Cff<'a> {
    text: &'a [u8],
    root: Label,
    /// Labels (ids in the file's tree) of the strings in the file, in the order of the String
    /// INDEX.
    strings: Vec<Label>,
    /// The glyphs of the OpenType font that contains the CFF table; `None` for a CFF font without
    /// an OpenType font around it.
    glyphs: Option<&'a Glyphs>,
    /// Offset in the text after the last of the four INDEX structures that follow the header of the
    /// CFF table. Ranges to which operands refer are regions only if they are after this offset.
    front: usize,
    regions: BTreeMap<usize, Region>,
}

/// An operator of a DICT: its number, the range of the text that it and its operands take, and the
/// ranges of its operands.
struct Entry {
    operator: u16,
    place: Range<usize>,
    operands: Vec<Range<usize>>,
}

/// Reads a CFF font that is a file of its own, without an OpenType font around it, into the nodes
/// of its tree; `None` if it cannot be read, as [`cff`] says.
pub fn bare(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    cff(reader, text, None)
}

/// Reads the CFF table of a font into the nodes of its tree. If `glyphs` has as many glyphs as the
/// table, the table's glyphs get the labels (ids in the file's tree) of `glyphs`, so that both are
/// deleted together. `None` if one of the four INDEX structures after the header cannot be read, or
/// they contain no font.
pub fn cff(reader: &mut Reader, text: &[u8], glyphs: Option<&Glyphs>) -> Option<Vec<Node>> {
    let header = usize::from(*text.get(2)?);
    let mut nodes = vec![Node::fixed(text.get(..header).filter(|_| header >= 4)?)];
    let mut at = header;
    let mut indexes = Vec::new();
    for _ in 0..4 {
        let index = index(text, at)?;
        at = index.end;
        indexes.push(index);
    }
    // Each font has a name and a dictionary.
    let fonts = indexes[0].items.len();
    if fonts == 0 || indexes[1].items.len() != fonts {
        return None;
    }
    let mut cff = Cff {
        text,
        root: reader.label(),
        strings: indexes[2].items.iter().map(|_| reader.label()).collect(),
        glyphs,
        front: at,
        regions: BTreeMap::new(),
    };
    let strings = cff.strings.clone();
    for (number, index) in indexes.iter().enumerate() {
        let labels = (number == 2).then_some(&strings[..]);
        let group = cff.index_group(reader, index, labels, number == 1)?;
        nodes.push(Node::Group(group));
    }
    nodes.extend(cff.region_nodes()?);
    Some(vec![Group::new(cff.root, nodes).into()])
}

/// Reads the INDEX at offset `at`; `None` if there is none, or the text ends inside of it.
fn index(text: &[u8], at: usize) -> Option<Index> {
    let count = usize::try_from(Encoding::Big(2).read_at(text, at)?).ok()?;
    if count == 0 {
        return Some(Index {
            items: Vec::new(),
            width: 1,
            end: at + 2,
        });
    }
    let width = usize::from(*text.get(at + 2)?);
    if !(1..=4).contains(&width) {
        return None;
    }
    let offsets = text.get(at + 3..at + 3 + (count + 1) * width)?;
    // Offsets count from the byte before the first item.
    let base = at + 2 + offsets.len();
    let mut ends = Vec::with_capacity(count + 1);
    for offset in offsets.chunks_exact(width) {
        let (offset, _) = Encoding::Big(width).read(offset)?;
        ends.push(base.checked_add(usize::try_from(offset).ok()?)?);
    }
    let ascend = ends.is_sorted() && ends[0] == base + 1;
    let end = ends[count];
    (ascend && end <= text.len()).then(|| Index {
        items: ends.windows(2).map(|pair| pair[0]..pair[1]).collect(),
        width,
        end,
    })
}

/// Reads the DICT in a range of the text: operators, each after its operands. `None` if it does not
/// end with an operator, or contains an operand of an unknown kind.
fn entries(text: &[u8], place: Range<usize>) -> Option<Vec<Entry>> {
    let (mut entries, mut at) = (Vec::new(), place.start);
    while at < place.end {
        let start = at;
        let mut operands = Vec::new();
        let operator = loop {
            let rest = text.get(at..place.end)?;
            let size = match *rest.first()? {
                ESCAPE => {
                    at += 2;
                    break u16::from_be_bytes([ESCAPE, *rest.get(1)?]);
                }
                operator @ 0..=21 => {
                    at += 1;
                    break u16::from(operator);
                }
                28 => 3,
                29 => 5,
                30 => {
                    2 + rest[1..]
                        .iter()
                        .position(|byte| byte & 15 == 15 || byte >> 4 == 15)?
                }
                32..=246 => 1,
                247..=254 => 2,
                _ => return None,
            };
            operands.push(at..at + size);
            at += size;
        };
        entries.push(Entry {
            operator,
            place: start..at,
            operands,
        });
    }
    Some(entries)
}

impl Cff<'_> {
    /// Returns the tree nodes of all bytes after the four INDEX structures that follow the header:
    /// the regions (byte ranges that offsets refer to), and payloads (changeable bytes) between
    /// them. `None` if regions overlap.
    fn region_nodes(&mut self) -> Option<Vec<Node>> {
        let regions = std::mem::take(&mut self.regions);
        let starts: Vec<usize> = regions.keys().copied().chain([self.text.len()]).collect();
        let regions = regions.into_iter().zip(&starts[1..]);
        let regions = regions.map(|((start, mut region), next)| {
            let end = region.end.unwrap_or(*next);
            if region.end.is_none() {
                region.group.nodes = vec![Node::payload(&self.text[start..end])];
            }
            (start..end, Node::Group(region.group))
        });
        with_gaps(self.text, self.front, regions)
    }

    /// Makes the group of nodes of an INDEX: its header with the offsets, and a deletable part for
    /// each of its items, with the labels `labels` (ids in the file's tree) if these are given. If
    /// `dictionaries`, the items are DICTs and are parsed. `None` if the file has too many parts.
    fn index_group(
        &mut self,
        reader: &mut Reader,
        index: &Index,
        labels: Option<&[Label]>,
        dictionaries: bool,
    ) -> Option<Group> {
        let mut items = Vec::with_capacity(index.items.len());
        for (number, place) in index.items.iter().enumerate() {
            if !reader.count_part() {
                return None;
            }
            let label = labels.map_or_else(|| reader.label(), |labels| labels[number]);
            let nodes = match dictionaries {
                true => self.dictionary(reader, place.clone(), None),
                false => vec![Node::payload(&self.text[place.clone()])],
            };
            items.push(Node::Group(Group::part(label, nodes)));
        }
        let of = match self.glyphs {
            Some(glyphs) if labels == Some(&glyphs.labels[..]) => glyphs.list,
            _ => reader.label(),
        };
        let head = Node::Directory {
            of,
            width: index.least_width(),
        };
        let nodes = vec![head, Group::new(of, items).into()];
        Some(Group::new(reader.label(), nodes))
    }

    /// Returns the tree nodes of the DICT in the range `place`: a deletable part for each operator
    /// with its operands. If it is a Private DICT, `private` is its label (id in the file's tree)
    /// and offset. A DICT that cannot be read becomes a payload (changeable bytes).
    fn dictionary(
        &mut self,
        reader: &mut Reader,
        place: Range<usize>,
        private: Option<(Label, usize)>,
    ) -> Vec<Node> {
        let Some(entries) = entries(self.text, place.clone()) else {
            return vec![Node::payload(&self.text[place])];
        };
        let groups = entries
            .iter()
            .map(|entry| self.entry(reader, entry, private));
        groups.map(Node::Group).collect()
    }

    /// Makes the group of nodes of a DICT operator and its operands, and regions (byte ranges that
    /// offsets refer to) of the bytes to which operands refer. The group is deleted together with
    /// such a region or, if there is none, by itself.
    fn entry(
        &mut self,
        reader: &mut Reader,
        entry: &Entry,
        private: Option<(Label, usize)>,
    ) -> Group {
        let values = entry.operands.iter().map(|place| {
            let (value, _) = Encoding::Dict(1).read(&self.text[place.clone()])?;
            usize::try_from(value).ok()
        });
        let values: Vec<Option<usize>> = values.collect();
        let meanings = self.meanings(reader, entry.operator, &values, private);
        let region = meanings.iter().flatten().find_map(|meaning| match meaning {
            Meaning::Offset(of, _) => Some(*of),
            _ => None,
        });
        let mut nodes = Vec::new();
        for (index, place) in entry.operands.iter().enumerate() {
            let raw = &self.text[place.clone()];
            let bias = match meanings.get(index) {
                Some(Some(Meaning::Index(_))) => STANDARD_STRINGS as i64,
                _ => 0,
            };
            nodes.push(match meanings.get(index).copied().flatten() {
                Some(meaning) => reader.number(Encoding::Dict(1), meaning, bias, raw),
                None => Node::payload(raw),
            });
        }
        let operator = entry
            .operands
            .last()
            .map_or(entry.place.start, |last| last.end);
        nodes.push(Node::fixed(&self.text[operator..entry.place.end]));
        Group {
            part: region.map_or(Part::Own, Part::With),
            ..Group::new(reader.label(), nodes)
        }
    }

    /// Returns what the operands of the DICT operator `operator` state, such as an offset, in the
    /// order of their `values`: `None` for an operand that stays as it is, an empty list if all do.
    /// Makes regions of the bytes to which operands refer. `private`: label (id in the file's tree)
    /// and start of the Private DICT, if the operator is in a Private DICT.
    fn meanings(
        &mut self,
        reader: &mut Reader,
        operator: u16,
        values: &[Option<usize>],
        private: Option<(Label, usize)>,
    ) -> Vec<Option<Meaning>> {
        let root = self.root;
        let (of, from) = match (operator, values, private) {
            (PRIVATE, [Some(size), Some(at)], None) => {
                let of = self.private(reader, *at..at.saturating_add(*size));
                let meanings = of.map(|of| [Meaning::Length(of), Meaning::Offset(of, root)]);
                return meanings.into_iter().flatten().map(Some).collect();
            }
            (SUBROUTINES, [Some(at)], Some((from, start))) => {
                let start = start.saturating_add(*at);
                (self.index_region(reader, start, operator), from)
            }
            (GLYPHS | DICTIONARIES, [Some(at)], None) => {
                (self.index_region(reader, *at, operator), root)
            }
            (operator, [Some(at)], None) if UNSIZED.contains(&operator) => {
                (self.region(reader, *at, None), root)
            }
            (operator, ..) if NAMES.contains(&operator) => {
                let strings = values.iter().map(|value| self.string((*value)?));
                return strings.collect();
            }
            _ => return Vec::new(),
        };
        vec![of.map(|of| Meaning::Offset(of, from))]
    }

    /// Returns the meaning of an operand that is the string id `value`; `None` if the id is that of
    /// a standard string, or if the file has no string with this id.
    fn string(&self, value: usize) -> Option<Meaning> {
        let index = value.checked_sub(STANDARD_STRINGS as usize)?;
        self.strings.get(index).map(|label| Meaning::Index(*label))
    }

    /// Makes a region of the Private DICT in the range `place`, and returns its label (id in the
    /// file's tree). `None` if the range is not in the file, or overlaps another region.
    fn private(&mut self, reader: &mut Reader, place: Range<usize>) -> Option<Label> {
        let label = self.region(reader, place.start, Some(place.end))?;
        let nodes = self.dictionary(reader, place.clone(), Some((label, place.start)));
        self.regions.get_mut(&place.start)?.group.nodes = nodes;
        Some(label)
    }

    /// Makes a region of the INDEX at offset `at`, to which the operand of `operator` refers, and
    /// returns its label (id in the file's tree). `None` if there is no INDEX, or it overlaps
    /// another region.
    fn index_region(&mut self, reader: &mut Reader, at: usize, operator: u16) -> Option<Label> {
        // Many operands may refer to one index, which is read once.
        if !self.is_free(at, at.checked_add(1)?) {
            return None;
        }
        let index = index(self.text, at)?;
        let label = self.region(reader, at, Some(index.end))?;
        let glyphs = self
            .glyphs
            .filter(|glyphs| operator == GLYPHS && glyphs.labels.len() == index.items.len());
        let labels = glyphs.map(|glyphs| &glyphs.labels[..]);
        // Dictionaries may refer to further ones.
        let group = reader
            .deeper(|reader| self.index_group(reader, &index, labels, operator == DICTIONARIES));
        match group {
            Some(group) => self.regions.get_mut(&at)?.group.nodes = vec![group.into()],
            None => {
                self.regions.remove(&at);
                return None;
            }
        }
        Some(label)
    }

    /// Makes a region without nodes from offset `start` to `end`, and returns its label (id in the
    /// file's tree). `None` if the range [is not free](Cff::is_free).
    fn region(&mut self, reader: &mut Reader, start: usize, end: Option<usize>) -> Option<Label> {
        if !self.is_free(start, end.unwrap_or(start.checked_add(1)?)) {
            return None;
        }
        let group = Group::part(reader.label(), Vec::new());
        let label = group.label;
        self.regions.insert(start, Region { end, group });
        Some(label)
    }

    /// Returns true if the offsets from `start` to `end` are after the four INDEX structures that
    /// follow the header, inside of the file, and in no region made so far.
    fn is_free(&self, start: usize, end: usize) -> bool {
        let before = self.regions.range(..end).next_back();
        let is_free = before.is_none_or(|(at, region)| match region.end {
            Some(end) => end <= start,
            None => *at < start,
        });
        is_free && (self.front..end).contains(&start) && end <= self.text.len()
    }
}
