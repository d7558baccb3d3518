//! What the readers of object files and programs (ELF, Mach-O, PE) share: regions to which entries
//! of tables refer by offsets, and tables of strings.

use std::collections::BTreeMap;
use std::ops::Range;

use super::with_gaps;
use crate::node::{Group, Label, Meaning, Node};
use crate::number::Encoding;
use crate::reader::Reader;

/// Maximum number of entries of a table that become parts (deletable groups of nodes). A table with
/// this many strings, relocations or symbols is not divided.
pub const MOST_ENTRIES: usize = 1 << 12;

/// A region of a file: a range of bytes that belongs to a table or a section. Holds the offset of
/// its end, and the group of nodes that it becomes; in the map of regions, the key is the offset of
/// its start.
pub struct Region {
    pub end: usize,
    pub group: Group,
}

/// What is known while an object file or program is read: its bytes, its byte order, and the
/// regions (byte ranges that offsets refer to) and strings found so far.
pub struct Object<'a> {
    pub text: &'a [u8],
    pub big: bool,
    /// Size of the file's header in bytes; all regions (byte ranges that offsets refer to) are
    /// after it.
    pub head: usize,
    /// Label (id in the file's tree) of the group of nodes of the entire file; offsets count from
    /// its beginning.
    pub root: Label,
    /// Label (id in the file's tree) of the group of nodes of each string of the string tables, by
    /// the string's offset in the file.
    strings: BTreeMap<usize, Label>,
    pub regions: BTreeMap<usize, Region>,
}

/// A number in an entry of a table: its offset in the entry, its width in bytes, what it states
/// about a group of nodes, and a constant (`bias`) that is added to the stated value.
pub struct Stated {
    pub at: usize,
    pub width: usize,
    pub meaning: Meaning,
    pub bias: i64,
}

impl Stated {
    /// Describes a number of `width` bytes at offset `at` of an entry of a table, which states
    /// `meaning` without anything added (bias 0).
    pub fn new((at, width): (usize, usize), meaning: Meaning) -> Stated {
        Stated {
            at,
            width,
            meaning,
            bias: 0,
        }
    }
}

impl<'a> Object<'a> {
    /// Returns the state at the start of reading the file `text`, whose header has `head` bytes and
    /// whose numbers are big-endian if `big`.
    pub fn new(reader: &mut Reader, text: &'a [u8], big: bool, head: usize) -> Object<'a> {
        Object {
            text,
            big,
            head,
            root: reader.label(),
            strings: BTreeMap::new(),
            regions: BTreeMap::new(),
        }
    }

    fn encoding(&self, width: usize) -> Encoding {
        Encoding::fixed(self.big, width)
    }

    /// Reads the number of `width` bytes at offset `at` of the file; `None` if the file ends
    /// before.
    pub fn number(&self, at: usize, width: usize) -> Option<u64> {
        self.encoding(width).read_at(self.text, at)
    }

    /// Reads the number of `width` bytes at offset `at` of the file as a size or offset; `None` if
    /// the file ends before, or if the number is too large for this machine.
    pub fn size(&self, at: usize, width: usize) -> Option<usize> {
        usize::try_from(self.number(at, width)?).ok()
    }

    /// Returns true if the range `place` can become a region: it is not empty, lies in the file
    /// after the file's header, and overlaps no region made so far.
    pub fn is_free(&self, place: &Range<usize>) -> bool {
        let before = self.regions.range(..place.end).next_back();
        place.start >= self.head
            && !place.is_empty()
            && place.end <= self.text.len()
            && before.is_none_or(|(_, region)| region.end <= place.start)
    }

    /// Makes the range `place` a region of the file that becomes the group of nodes `group`. The
    /// caller has checked that the range [is free](Object::is_free).
    pub fn add(&mut self, place: Range<usize>, group: Group) {
        let end = place.end;
        self.regions.insert(place.start, Region { end, group });
    }

    /// Makes the range `place` a region that is a deletable part with the nodes `nodes`, and
    /// returns its label (id in the file's tree); `None` if the range is not
    /// [free](Object::is_free), or the file has too many parts.
    pub fn add_part(
        &mut self,
        reader: &mut Reader,
        place: Range<usize>,
        nodes: Vec<Node>,
    ) -> Option<Label> {
        if !self.is_free(&place) || !reader.count_part() {
            return None;
        }
        let label = reader.label();
        self.add(place, Group::part(label, nodes));
        Some(label)
    }

    /// Makes the range `place` a region that is a deletable part with its bytes as a payload, and
    /// returns its label (id in the file's tree); `None` if the range is not
    /// [free](Object::is_free), or the file has too many parts.
    pub fn add_bytes(&mut self, reader: &mut Reader, place: Range<usize>) -> Option<Label> {
        let bytes = vec![Node::payload(self.text.get(place.clone())?)];
        self.add_part(reader, place, bytes)
    }

    /// Returns the tree nodes of a table's entry in the range `place`: those of its numbers that
    /// `stated` lists are computed anew, the bytes between them stay fixed.
    pub fn entry(
        &self,
        reader: &Reader,
        place: Range<usize>,
        mut stated: Vec<Stated>,
    ) -> Vec<Node> {
        stated.sort_by_key(|one| one.at);
        let (mut nodes, mut from) = (Vec::new(), place.start);
        for one in stated {
            let at = place.start + one.at;
            if at < from || at + one.width > place.end {
                continue;
            }
            nodes.push(Node::fixed(&self.text[from..at]));
            from = at + one.width;
            let encoding = self.encoding(one.width);
            nodes.push(reader.number(encoding, one.meaning, one.bias, &self.text[at..from]));
        }
        nodes.push(Node::fixed(&self.text[from..place.end]));
        nodes
    }

    /// Returns the tree nodes of the string table in the range `place`: a deletable part for each
    /// string, which [`Object::name`] then finds. If the table has too many strings, or the file
    /// too many parts, it becomes one payload (changeable bytes).
    pub fn strings(&mut self, reader: &mut Reader, place: Range<usize>) -> Vec<Node> {
        let bytes = &self.text[place.clone()];
        let count = bytes.iter().filter(|byte| **byte == 0).count();
        if count >= MOST_ENTRIES || !reader.count_parts(count) {
            return vec![Node::payload(bytes)];
        }
        let mut nodes = Vec::new();
        let mut at = place.start;
        for string in bytes.split_inclusive(|byte| *byte == 0) {
            let label = reader.label();
            self.strings.insert(at, label);
            at += string.len();
            nodes.push(Group::part(label, vec![Node::payload(string)]).into());
        }
        nodes
    }

    /// Finds the string that contains offset `name` of the file, in the string table `table`.
    /// Returns the label (id in the file's tree) of the string and the distance in bytes from its
    /// beginning to `name`, which is not 0 if `name` is inside of a longer string. `None` if there
    /// is no such string.
    pub fn name(&self, name: usize, table: &Range<usize>) -> Option<(Label, i64)> {
        let within = table.contains(&name);
        let (start, label) = self.strings.range(..=name).next_back().filter(|_| within)?;
        Some((*label, i64::try_from(name - start).ok()?))
    }

    /// Puts all regions in the range `place`, and the bytes between them, into one new region with
    /// the label `label` (id in the file's tree). Does nothing if a region lies only partly in the
    /// range.
    pub fn enclose(&mut self, place: Range<usize>, label: Label) {
        self.enclose_as(place, Group::new(label, Vec::new()));
    }

    /// Puts all regions in the range `place` into one region, as [`Object::enclose`] does, and
    /// makes this region a deletable part with the label `label` (id in the file's tree).
    pub fn enclose_part(&mut self, place: Range<usize>, label: Label) {
        self.enclose_as(place, Group::part(label, Vec::new()));
    }

    fn enclose_as(&mut self, place: Range<usize>, mut group: Group) {
        let before = self.regions.range(..place.start).next_back();
        let last = self.regions.range(..place.end).next_back();
        let ends = |region: Option<(&usize, &Region)>, end: usize| {
            region.is_none_or(|(_, region)| region.end <= end)
        };
        if place.end > self.text.len() || !ends(before, place.start) || !ends(last, place.end) {
            return;
        }
        let mut inside = self.regions.split_off(&place.start);
        self.regions.append(&mut inside.split_off(&place.end));
        let inside = inside.into_iter();
        let inside = inside.map(|(start, region)| (start..region.end, region.group.into()));
        if let Some(nodes) = with_gaps(&self.text[..place.end], place.start, inside) {
            group.nodes = nodes;
            self.add(place, group);
        }
    }

    /// Returns the tree nodes of the whole file: `head`, the nodes of its header, then the regions
    /// (byte ranges that offsets refer to) and the bytes between them; `None` if two regions
    /// overlap.
    pub fn nodes(self, mut head: Vec<Node>) -> Option<Vec<Node>> {
        let regions = self.regions.into_iter();
        let regions = regions.map(|(start, region)| (start..region.end, region.group.into()));
        head.extend(with_gaps(self.text, self.head, regions)?);
        Some(vec![Group::new(self.root, head).into()])
    }
}
