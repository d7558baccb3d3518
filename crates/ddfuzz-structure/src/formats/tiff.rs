//! Reader for TIFF files: directories of entries, whose values are at offsets in the file.

use std::collections::BTreeMap;
use std::ops::Range;

use super::with_gaps;
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Maximum number of directories of a TIFF file that are read, which ends loops of references
/// between directories.
const MOST_DIRECTORIES: usize = 64;
/// Size of an entry of a TIFF directory, in bytes.
const ENTRY: usize = 12;
/// Tags of the TIFF directory entries that list the offsets of strips and of tiles, each paired
/// with the tag of the entry that lists their sizes.
const PIECES: [(u64, u64); 2] = [(273, 279), (324, 325)];
/// Tags of the TIFF directory entries whose values are offsets of other directories: smaller pictures,
/// and the data of cameras (Exif), their places, and their interoperability.
const DIRECTORIES: [u64; 4] = [330, 34665, 34853, 40965];
/// Tags of the TIFF directory entries that state how many pixels there are: the width and height of
/// the picture and of its tiles, and the rows of a strip. Smaller values need fewer bytes of
/// pixels.
const DIMENSIONS: [u64; 5] = [256, 257, 278, 322, 323];

/// A range of bytes of a TIFF file to which an offset refers: its end offset, its label, and what
/// it becomes. The start offset is the key in the map of regions.
struct Region {
    end: usize,
    label: Label,
    part: Part,
    /// Nodes of the region; `None` if its bytes become one payload.
    nodes: Option<Vec<Node>>,
}

struct Tiff<'a> {
    text: &'a [u8],
    big: bool,
    root: Label,
    regions: BTreeMap<usize, Region>,
    /// Label of the region of each strip and tile, by the offset in the file of the number that
    /// states its size.
    sized: BTreeMap<usize, Label>,
    /// Number of directories that may still be read.
    left: usize,
}

/// An entry of a TIFF directory: its offset in the file, its tag, and its values.
struct Entry {
    at: usize,
    tag: u64,
    /// Size of each value of the directory entry, in bytes.
    width: usize,
    /// Range of the file, in bytes, in which the entry's values are: in the entry itself or
    /// elsewhere.
    values: Range<usize>,
}

/// Reads a TIFF file of either byte order into the nodes of its tree; `None` if its first directory
/// cannot be read.
pub fn tiff(reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
    let mut tiff = Tiff {
        text,
        big: text.first() == Some(&b'M'),
        root: reader.label(),
        regions: BTreeMap::new(),
        sized: BTreeMap::new(),
        left: MOST_DIRECTORIES,
    };
    let first = tiff.directories(reader)?;
    let mut nodes = vec![Node::fixed(&text[..4]), tiff.offset(reader, first, 4)];
    let root = tiff.root;
    let regions = tiff.regions.into_iter().map(|(start, region)| {
        let inner = region.nodes.unwrap_or_else(|| match start == region.end {
            true => Vec::new(),
            false => vec![Node::payload(&text[start..region.end])],
        });
        let group = Group {
            part: region.part,
            ..Group::new(region.label, inner)
        };
        (start..region.end, Node::Group(group))
    });
    nodes.extend(with_gaps(text, 8, regions)?);
    Some(vec![Group::new(root, nodes).into()])
}

impl Tiff<'_> {
    fn encoding(&self, width: usize) -> Encoding {
        Encoding::fixed(self.big, width)
    }

    fn number(&self, at: usize, width: usize) -> Option<u64> {
        self.encoding(width).read_at(self.text, at)
    }

    /// Makes the node of the number at offset `at`, which states the offset of the group `of` in
    /// the file.
    fn offset(&self, reader: &Reader, of: Label, at: usize) -> Node {
        let meaning = Meaning::Offset(of, self.root);
        reader.number(self.encoding(4), meaning, 0, &self.text[at..at + 4])
    }

    /// Makes regions of the directories in the chain, and of what their entries refer to; returns
    /// the label of the first directory. `None` if the first directory cannot be read.
    fn directories(&mut self, reader: &mut Reader) -> Option<Label> {
        let first = reader.label();
        let (mut pointer, mut label) = (4, first);
        for index in 0..MOST_DIRECTORIES {
            let at = usize::try_from(self.number(pointer, 4)?).ok();
            let next = reader.label();
            match at.and_then(|at| self.directory(reader, at, [label, next], Part::No)) {
                Some(end) => (pointer, label) = (end, next),
                None if index == 0 => return None,
                None => break,
            }
            if self.number(pointer, 4).is_none() {
                break;
            }
        }
        Some(first)
    }

    /// Makes a region, with the first of `labels`, of the directory at offset `at`, which is deleted
    /// as `part` says. Returns the offset of the number that states where the next directory begins,
    /// to which the second label belongs. `None` if the directory cannot be read, or overlaps another
    /// region.
    fn directory(
        &mut self,
        reader: &mut Reader,
        at: usize,
        labels: [Label; 2],
        part: Part,
    ) -> Option<usize> {
        let count = usize::try_from(self.number(at, 2)?).ok()?;
        let fits = (self.text.len().saturating_sub(at + 2)) / ENTRY;
        let count_read = count.min(fits);
        let entries: Vec<Entry> = (0..count_read)
            .map_while(|index| self.entry(at + 2 + index * ENTRY))
            .collect();
        let end = at + 2 + entries.len() * ENTRY;
        let has_next = self.text.len() >= end + 4;
        let place = at..if has_next { end + 4 } else { end };
        if at < 8 || self.left == 0 || !self.is_free(&place) {
            return None;
        }
        self.left -= 1;
        let region = |nodes| Region {
            end: place.end,
            label: labels[0],
            part,
            nodes,
        };
        self.regions.insert(at, region(None));
        let list = reader.label();
        let mut nodes = Vec::new();
        for entry in &entries {
            let part = reader.label();
            let inner = self.entry_nodes(reader, entry, part, &entries);
            if !reader.count_part() {
                return None;
            }
            nodes.push(Node::Group(Group::part(part, inner)));
        }
        let count_node = reader.number(
            self.encoding(2),
            Meaning::Count(list),
            0,
            &self.text[at..at + 2],
        );
        let mut whole = vec![count_node, Group::new(list, nodes).into()];
        if has_next {
            whole.push(self.offset(reader, labels[1], end));
        }
        self.regions.insert(at, region(Some(whole)));
        Some(end)
    }

    fn entry(&self, at: usize) -> Option<Entry> {
        let tag = self.number(at, 2)?;
        let width = match self.number(at + 2, 2)? {
            1 | 2 | 6 | 7 => 1,
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 => 8,
            _ => 1,
        };
        let count = usize::try_from(self.number(at + 4, 4)?).ok()?;
        let size = count.checked_mul(width)?;
        let start = match size {
            0..=4 => at + 8,
            _ => usize::try_from(self.number(at + 8, 4)?).ok()?,
        };
        Some(Entry {
            at,
            tag,
            width,
            values: start..start.saturating_add(size),
        })
    }

    /// Makes the nodes of a directory entry with the label `part`, and makes a region of the values
    /// that the entry refers to, if they are elsewhere in the file.
    fn entry_nodes(
        &mut self,
        reader: &mut Reader,
        entry: &Entry,
        part: Label,
        entries: &[Entry],
    ) -> Vec<Node> {
        let whole = &self.text[entry.at..entry.at + ENTRY];
        let is_inline = entry.values.start == entry.at + 8 && entry.values.len() <= 4;
        if is_inline {
            let values = match DIMENSIONS.contains(&entry.tag) {
                true => Some(vec![Node::payload(&self.text[entry.values.clone()])]),
                false => self
                    .inner_directory(reader, entry, part)
                    .or_else(|| self.values(reader, entry, part, entries)),
            };
            let size = values.as_ref().map_or(0, |_| entry.values.len());
            let mut nodes = vec![Node::fixed(&whole[..8])];
            nodes.extend(values.unwrap_or_default());
            nodes.push(Node::fixed(&whole[8 + size..]));
            return nodes;
        }
        let stands = self.text.get(entry.values.clone()).is_some();
        let is_free = stands && entry.values.start >= 8 && self.is_free(&entry.values);
        if !is_free {
            return vec![Node::fixed(whole)];
        }
        let label = reader.label();
        let region = Region {
            end: entry.values.end,
            label,
            part: Part::With(part),
            nodes: None,
        };
        self.regions.insert(entry.values.start, region);
        let inner = self.values(reader, entry, part, entries);
        if let Some(region) = self.regions.get_mut(&entry.values.start) {
            region.nodes = inner;
        }
        vec![
            Node::fixed(&whole[..8]),
            self.offset(reader, label, entry.at + 8),
        ]
    }

    /// Makes the node of an entry's value if it is the offset of a directory, which becomes a region
    /// that is deleted together with the entry `part`. `None` for all other entries.
    fn inner_directory(
        &mut self,
        reader: &mut Reader,
        entry: &Entry,
        part: Label,
    ) -> Option<Vec<Node>> {
        if !DIRECTORIES.contains(&entry.tag) || entry.values.len() != 4 {
            return None;
        }
        let at = usize::try_from(self.number(entry.values.start, 4)?).ok()?;
        let labels = [reader.label(), reader.label()];
        let goes_along = Part::With(part);
        reader.deeper(|reader| self.directory(reader, at, labels, goes_along))?;
        Some(vec![self.offset(reader, labels[0], entry.values.start)])
    }

    /// Makes the nodes of an entry's values if these are offsets or sizes of strips or tiles:
    /// numbers that refer to the strips or tiles, which become regions. `None` for all other
    /// entries.
    fn values(
        &mut self,
        reader: &mut Reader,
        entry: &Entry,
        part: Label,
        entries: &[Entry],
    ) -> Option<Vec<Node>> {
        if !matches!(entry.width, 2 | 4) {
            return None;
        }
        if PIECES.iter().any(|(_, sizes)| *sizes == entry.tag) {
            return Some(self.sizes(reader, entry));
        }
        let (_, sizes) = PIECES.iter().find(|(offsets, _)| *offsets == entry.tag)?;
        let sizes = entries.iter().find(|one| one.tag == *sizes)?;
        let mut nodes = Vec::new();
        for (index, at) in entry.values.clone().step_by(entry.width).enumerate() {
            let raw = self.text.get(at..at + entry.width)?;
            let start = usize::try_from(self.number(at, entry.width)?).ok()?;
            let size_at = sizes.values.start + index * sizes.width;
            let size = match size_at < sizes.values.end {
                true => usize::try_from(self.number(size_at, sizes.width)?).ok()?,
                false => 0,
            };
            let place = start..start.saturating_add(size).min(self.text.len());
            if place.start < 8 || place.is_empty() || !self.is_free(&place) {
                nodes.push(Node::fixed(raw));
                continue;
            }
            let label = reader.label();
            let region = Region {
                end: place.end,
                label,
                part: Part::With(part),
                nodes: None,
            };
            self.regions.insert(start, region);
            self.sized.insert(size_at, label);
            let meaning = Meaning::Offset(label, self.root);
            nodes.push(reader.number(self.encoding(entry.width), meaning, 0, raw));
        }
        Some(nodes)
    }

    /// Makes a number of each value of an entry that lists the sizes of strips or tiles; values
    /// that are not the size of a region become fixed bytes.
    fn sizes(&self, reader: &Reader, entry: &Entry) -> Vec<Node> {
        let places = entry.values.clone().step_by(entry.width);
        let places = places.filter_map(|at| Some((at, self.text.get(at..at + entry.width)?)));
        let numbers = places.map(|(at, raw)| match self.sized.get(&at) {
            Some(of) => {
                let encoding = self.encoding(entry.width);
                reader.number(encoding, Meaning::Length(*of), 0, raw)
            }
            None => Node::fixed(raw),
        });
        numbers.collect()
    }

    /// Checks whether the range `place` overlaps no region made so far.
    fn is_free(&self, place: &Range<usize>) -> bool {
        let before = self.regions.range(..place.end).next_back();
        before.is_none_or(|(_, region)| region.end <= place.start)
    }
}
