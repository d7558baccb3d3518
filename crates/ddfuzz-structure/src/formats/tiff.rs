//! Reader for TIFF files: directories of entries, whose values are at offsets in the file.

use std::collections::BTreeMap;
use std::ops::Range;

use super::with_gaps;
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::packed::Codec;
use crate::reader::Reader;

/// Maximum number of directories of a TIFF file that are read, which ends loops of references
/// between directories.
const MOST_DIRECTORIES: usize = 64;
/// Size of the head of a TIFF file, in bytes: the byte order and the offset of the first directory.
const HEAD: usize = 8;
/// Size of an entry of a TIFF directory, in bytes.
const ENTRY: usize = 12;
/// Tags of the TIFF directory entries that list the offsets of strips and of tiles, each paired
/// with the tag of the entry that lists their sizes.
const PIECES: [(u64, u64); 2] = [(273, 279), (324, 325)];
/// Tag of the TIFF directory entry that states how strips and tiles are compressed.
const COMPRESSION: u64 = 259;
/// Numbers of the known compression methods of strips and tiles, each with the method.
const METHODS: [(u64, Codec); 4] = [
    (5, Codec::Tiff),
    (8, Codec::Zlib),
    (32773, Codec::PackBits),
    (32946, Codec::Zlib),
];
/// Tags of the TIFF directory entries whose values are offsets of other directories: smaller
/// pictures, and the data of cameras (Exif), their places, and their interoperability.
const DIRECTORIES: [u64; 4] = [330, 34665, 34853, 40965];
/// Tags of the TIFF directory entries that state how many pixels there are: the width and height of
/// the picture and of its tiles, and the rows of a strip. Smaller values need fewer bytes of
/// pixels.
const DIMENSIONS: [u64; 5] = [256, 257, 278, 322, 323];

/// A range of bytes of a TIFF file to which an offset refers: its end offset, its label (id in the
/// file's tree), and what it becomes. The start offset is the key in the map of regions.
struct Region {
    end: usize,
    label: Label,
    part: Part,
    /// Tree nodes that the region's bytes become; `None` if they become one payload (changeable
    /// bytes).
    nodes: Option<Vec<Node>>,
}

struct Tiff<'a> {
    text: &'a [u8],
    big: bool,
    root: Label,
    regions: BTreeMap<usize, Region>,
    /// For the offset in the file of each number that states the size of a strip or tile: the label
    /// (id in the file's tree) of the region of the strip or tile, and the label of the group of
    /// nodes of its offset.
    sized: BTreeMap<usize, (Label, Label)>,
    /// Number of directories that may still be read, which bounds the time for files with loops.
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
    let mut nodes = vec![Node::fixed(&text[..4]), first];
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
    nodes.extend(with_gaps(text, HEAD, regions)?);
    Some(vec![Group::new(root, nodes).into()])
}

impl Tiff<'_> {
    fn encoding(&self, width: usize) -> Encoding {
        Encoding::fixed(self.big, width)
    }

    fn number(&self, at: usize, width: usize) -> Option<u64> {
        self.encoding(width).read_at(self.text, at)
    }

    /// Returns the tree node of the number of four bytes at offset `at`, which states `meaning`.
    fn reference(&self, reader: &Reader, meaning: Meaning, at: usize) -> Node {
        reader.number(self.encoding(4), meaning, 0, &self.text[at..at + 4])
    }

    /// Returns the meaning of the number that states the offset of a directory, the one with the
    /// index `index` in `chain` (labels of successive directories): the offset of this directory
    /// or, if it is deleted, of the next one that is left. `None` if the chain has no such index.
    fn link(&self, chain: &[Label], index: usize) -> Option<Meaning> {
        Some(Meaning::Next {
            first: *chain.get(index)?,
            last: *chain.last()?,
            from: self.root,
        })
    }

    /// Returns the range of the directory at offset `at`: the number of its entries, and as many of
    /// the entries as the file contains. The offset of the next directory, which follows, is not
    /// included. `None` if the number is not in the file.
    fn extent(&self, at: usize) -> Option<Range<usize>> {
        let count = usize::try_from(self.number(at, 2)?).ok()?;
        let fits = (self.text.len().saturating_sub(at + 2)) / ENTRY;
        let read = (0..count.min(fits)).map_while(|index| self.entry(at + 2 + index * ENTRY));
        Some(at..at + 2 + read.count() * ENTRY)
    }

    /// Makes regions of the chain of directories that begins at the offset in the file's header,
    /// and of what their entries refer to. Each directory is a deletable part if there are several.
    /// Returns the node of the offset in the header; `None` if the first directory cannot be read.
    fn directories(&mut self, reader: &mut Reader) -> Option<Node> {
        let (mut pointer, mut starts) = (4, Vec::new());
        while starts.len() < MOST_DIRECTORIES
            && let Some(at) = self.number(pointer, 4)
            && let Ok(at) = usize::try_from(at)
            && let Some(place) = self.extent(at)
            && !starts.contains(&at)
            && at >= HEAD
        {
            starts.push(at);
            pointer = place.end;
        }
        let chain: Vec<Label> = starts.iter().map(|_| reader.label()).collect();
        let part = if chain.len() > 1 { Part::Own } else { Part::No };
        for (index, at) in starts.iter().enumerate() {
            let next = self.link(&chain, index + 1);
            let read = self.directory(reader, *at, (chain[index], part), next);
            if read.is_none() {
                break;
            }
        }
        self.regions.get(starts.first()?)?;
        Some(self.reference(reader, self.link(&chain, 0)?, 4))
    }

    /// Makes a region of the directory at offset `at` of the file. `own` has the label (id in the
    /// file's tree) of the directory, and how it is deleted: not alone, by itself, or together with
    /// another group of nodes. `next` is what the number at the directory's end states, the offset
    /// of the next one; `None` keeps the number as it is. Returns `None` if the directory cannot be
    /// read, or overlaps another region.
    fn directory(
        &mut self,
        reader: &mut Reader,
        at: usize,
        own: (Label, Part),
        next: Option<Meaning>,
    ) -> Option<()> {
        let end = self.extent(at)?.end;
        let entries = (at + 2..end).step_by(ENTRY).filter_map(|at| self.entry(at));
        let entries: Vec<(Entry, Label)> = entries.map(|entry| (entry, reader.label())).collect();
        let has_next = self.text.len() >= end + 4;
        let place = at..if has_next { end + 4 } else { end };
        if at < HEAD || self.left == 0 || !self.is_free(&place) {
            return None;
        }
        self.left -= 1;
        let region = |nodes| Region {
            end: place.end,
            label: own.0,
            part: own.1,
            nodes,
        };
        self.regions.insert(at, region(None));
        let list = reader.label();
        let mut nodes = Vec::new();
        for (entry, label) in &entries {
            let inner = self.entry_nodes(reader, entry, *label, &entries);
            if !reader.count_part() {
                return None;
            }
            // Without the sizes of the strips, a reader guesses them from the size of the file.
            let offsets = paired(entry.tag, &entries).map(|(_, offsets)| Part::With(*offsets));
            nodes.push(Node::Group(Group {
                part: offsets.unwrap_or(Part::Own),
                ..Group::new(*label, inner)
            }));
        }
        let count = Meaning::Count(list);
        let count = reader.number(self.encoding(2), count, 0, &self.text[at..at + 2]);
        let mut whole = vec![count, Group::new(list, nodes).into()];
        if has_next {
            whole.push(match next {
                Some(next) => self.reference(reader, next, end),
                None => Node::fixed(&self.text[end..end + 4]),
            });
        }
        self.regions.insert(at, region(Some(whole)));
        Some(())
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

    /// Returns the tree nodes of a directory entry with the label `part` (id in the file's tree).
    /// If its values are elsewhere in the file, makes a region (a byte range that offsets refer to)
    /// of them, which is deleted together with the entry. `entries` are all entries of the
    /// directory.
    fn entry_nodes(
        &mut self,
        reader: &mut Reader,
        entry: &Entry,
        part: Label,
        entries: &[(Entry, Label)],
    ) -> Vec<Node> {
        let whole = &self.text[entry.at..entry.at + ENTRY];
        let list = reader.label();
        let units = Encoding::Units {
            is_big: self.big,
            width: 4,
            unit: entry.width,
        };
        let count = reader.number(units, Meaning::Length(list), 0, &whole[4..8]);
        let mut nodes = vec![Node::fixed(&whole[..4]), count];
        let is_inline = entry.values.start == entry.at + 8 && entry.values.len() <= 4;
        if is_inline {
            let bytes = &self.text[entry.values.clone()];
            let values = self.values(reader, entry, entries);
            let values = values.unwrap_or_else(|| {
                vec![match DIMENSIONS.contains(&entry.tag) {
                    true => Node::payload(bytes),
                    false => Node::fixed(bytes),
                }]
            });
            nodes.push(Group::new(list, values).into());
            let rest = &whole[8 + bytes.len()..];
            nodes.push(
                match rest.iter().all(|byte| *byte == 0) && !bytes.is_empty() {
                    true => Node::Pad {
                        of: list,
                        align: 4,
                        fill: 0,
                    },
                    false => Node::fixed(rest),
                },
            );
            return nodes;
        }
        let stands = self.text.get(entry.values.clone()).is_some();
        let is_free = stands && entry.values.start >= HEAD && self.is_free(&entry.values);
        if !is_free {
            return vec![Node::fixed(whole)];
        }
        let region = |nodes| Region {
            end: entry.values.end,
            label: list,
            part: Part::With(part),
            nodes,
        };
        self.regions.insert(entry.values.start, region(None));
        let inner = self.values(reader, entry, entries);
        self.regions.insert(entry.values.start, region(inner));
        nodes.push(self.reference(reader, Meaning::Place(list, self.root), entry.at + 8));
        nodes
    }

    /// Returns the tree nodes of the values of a directory entry that states offsets or sizes of
    /// strips or tiles, or offsets of directories; `None` for all other entries. What an offset
    /// leads to becomes a region. If the entry has several offsets, each of them is a deletable
    /// part; the region to which it leads, and the stated size of this region, are deleted together
    /// with it.
    fn values(
        &mut self,
        reader: &mut Reader,
        entry: &Entry,
        entries: &[(Entry, Label)],
    ) -> Option<Vec<Node>> {
        let is_offset = matches!(entry.width, 2 | 4);
        if is_offset && paired(entry.tag, entries).is_some() {
            return Some(self.sizes(reader, entry));
        }
        let sizes = PIECES.iter().find(|(offsets, _)| *offsets == entry.tag);
        let sizes = sizes.and_then(|(_, sizes)| entries.iter().find(|(one, _)| one.tag == *sizes));
        let is_directory = DIRECTORIES.contains(&entry.tag) && entry.width == 4;
        if !is_directory && (sizes.is_none() || !is_offset) {
            return None;
        }
        let several = entry.values.len() > entry.width;
        let method = self.method(entries);
        let mut nodes = Vec::new();
        for (index, at) in entry.values.clone().step_by(entry.width).enumerate() {
            let label = reader.label();
            let raw = self.text.get(at..at + entry.width)?;
            let referred = match sizes {
                Some((sizes, _)) => {
                    let piece = self.piece(at, entry.width, (sizes, index));
                    piece.and_then(|place| self.pixels(reader, place, label, method))
                }
                None => self.inner_directory(reader, at, label),
            };
            let node = match referred {
                Some(of) => {
                    let meaning = Meaning::Offset(of, self.root);
                    reader.number(self.encoding(entry.width), meaning, 0, raw)
                }
                None => Node::fixed(raw),
            };
            let is_part = several && reader.count_part();
            let part = if is_part { Part::Own } else { Part::No };
            nodes.push(Node::Group(Group {
                part,
                ..Group::new(label, vec![node])
            }));
        }
        Some(nodes)
    }

    /// Reads the directory to which the offset at offset `at` of the file leads, and makes a region
    /// of it that is deleted together with the group of nodes `with`. Returns the region's label
    /// (id in the file's tree); `None` if the directory cannot be read.
    fn inner_directory(&mut self, reader: &mut Reader, at: usize, with: Label) -> Option<Label> {
        let start = usize::try_from(self.number(at, 4)?).ok()?;
        let label = reader.label();
        let own = (label, Part::With(with));
        reader.deeper(|reader| self.directory(reader, start, own, None))?;
        Some(label)
    }

    /// Returns the method by which the strips and tiles of a picture are compressed, as an entry of
    /// its directory states it; `None` if there is no such entry, or the method is unknown.
    fn method(&self, entries: &[(Entry, Label)]) -> Option<Codec> {
        let mut entries = entries.iter();
        let (entry, _) = entries.find(|(entry, _)| entry.tag == COMPRESSION)?;
        let stated = self.number(entry.values.start, 2)?;
        let known = METHODS.iter().find(|(method, _)| *method == stated);
        known.map(|(_, codec)| *codec)
    }

    /// Reads where a strip or tile is. Its offset is the number of `width` bytes at offset `at` of
    /// the file; its size is the value with the index `index` of the directory entry `sizes`.
    /// Returns its range in the file, and the offset of the number that states its size. `None` if
    /// the range is empty, or overlaps another region.
    fn piece(
        &self,
        at: usize,
        width: usize,
        (sizes, index): (&Entry, usize),
    ) -> Option<(Range<usize>, usize)> {
        let start = usize::try_from(self.number(at, width)?).ok()?;
        let size_at = sizes.values.start + index * sizes.width;
        let size = match size_at < sizes.values.end {
            true => usize::try_from(self.number(size_at, sizes.width)?).ok()?,
            false => 0,
        };
        let place = start..start.saturating_add(size).min(self.text.len());
        let is_free = place.start >= HEAD && !place.is_empty() && self.is_free(&place);
        is_free.then_some((place, size_at))
    }

    /// Makes a region of a strip or tile: `place` is its range in the file, `size_at` the offset of
    /// the number that states its size. It is decompressed by `method`, if that is not `None`, and
    /// deleted together with the group of nodes `with`. Returns its label (id in the file's tree).
    fn pixels(
        &mut self,
        reader: &mut Reader,
        (place, size_at): (Range<usize>, usize),
        with: Label,
        method: Option<Codec>,
    ) -> Option<Label> {
        let bytes = self.text.get(place.clone())?;
        let label = reader.label();
        let nodes = method.and_then(|method| {
            let content = method.unpack(bytes, &mut reader.unpacked)?;
            Some(vec![reader.packed(method, &content, bytes)])
        });
        let region = Region {
            end: place.end,
            label,
            part: Part::With(with),
            nodes,
        };
        self.regions.insert(place.start, region);
        self.sized.insert(size_at, (label, with));
        Some(label)
    }

    /// Returns the tree nodes of the values of an entry that lists the sizes of strips or tiles.
    /// Each is deleted together with the offset of its strip or tile. Sizes of what did not become
    /// a region are fixed bytes.
    fn sizes(&self, reader: &mut Reader, entry: &Entry) -> Vec<Node> {
        let places = entry.values.clone().step_by(entry.width);
        let places = places.filter_map(|at| Some((at, self.text.get(at..at + entry.width)?)));
        let numbers = places.map(|(at, raw)| match self.sized.get(&at) {
            Some((of, with)) => {
                let encoding = self.encoding(entry.width);
                let number = reader.number(encoding, Meaning::Length(*of), 0, raw);
                Node::Group(Group {
                    part: Part::With(*with),
                    ..Group::new(reader.label(), vec![number])
                })
            }
            None => Node::fixed(raw),
        });
        numbers.collect()
    }

    /// Returns true if the range `place` overlaps no region made so far.
    fn is_free(&self, place: &Range<usize>) -> bool {
        let before = self.regions.range(..place.end).next_back();
        before.is_none_or(|(_, region)| region.end <= place.start)
    }
}

/// Returns the entry among `entries` that lists the offsets of strips or tiles, if `tag` is the tag
/// of the entry that lists their sizes; else `None`.
fn paired(tag: u64, entries: &[(Entry, Label)]) -> Option<&(Entry, Label)> {
    let (offsets, _) = PIECES.iter().find(|(_, sizes)| *sizes == tag)?;
    entries.iter().find(|(entry, _)| entry.tag == *offsets)
}
