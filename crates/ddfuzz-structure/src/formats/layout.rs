//! Reader for the layout tables of OpenType fonts, GSUB and GPOS: scripts, features and lookups, which
//! refer to each other by offsets and indices.

use std::ops::Range;

use super::glyphs::Glyphs;
use super::regions::Regions;
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Bit of the flags of a lookup which says that a word follows the offsets of its subtables.
const HAS_FILTER: usize = 0x10;
/// Kinds of lookups of GSUB whose subtables are read: a glyph becomes another one, several, one of
/// several, or several glyphs become one.
const SINGLE: usize = 1;
const MULTIPLE: usize = 2;
const ALTERNATE: usize = 3;
const LIGATURE: usize = 4;

/// State of reading a layout table.
struct Layout<'a> {
    text: &'a [u8],
    glyphs: Option<&'a Glyphs>,
    regions: Regions,
    /// Labels of the records of features and of the offsets of lookups, by their index.
    features: Vec<Label>,
    lookups: Vec<Label>,
    /// Whether the table substitutes glyphs (GSUB).
    substitutes: bool,
}

/// Reads a layout table: `substitutes` says whether it is GSUB. `None` if a list of scripts, features or
/// lookups cannot be read, regions overlap, or the file has too many parts.
pub fn layout(
    reader: &mut Reader,
    text: &[u8],
    glyphs: Option<&Glyphs>,
    substitutes: bool,
) -> Option<Vec<Node>> {
    let root = reader.label();
    let mut layout = Layout {
        text,
        glyphs,
        regions: Regions::default(),
        features: Vec::new(),
        lookups: Vec::new(),
        substitutes,
    };
    let [scripts, features, lookups] = [4, 6, 8].map(|at| layout.word(at));
    let front = if layout.word(2)? == 0 { 10 } else { 14 };
    layout.features = layout.labels(reader, features?)?;
    layout.lookups = layout.labels(reader, lookups?)?;
    let mut nodes = vec![Node::fixed(&text[..4])];
    let lists = [
        (4, scripts?, Layout::scripts as Read<'_>),
        (6, features?, Layout::features),
        (8, lookups?, Layout::lookups),
    ];
    for (at, start, read) in lists {
        let label = layout.region(reader, start, Part::No, read);
        nodes.push(layout.offset(reader, at, label?, root));
    }
    if front > 10 {
        nodes.push(Node::fixed(text.get(10..front)?));
    }
    nodes.extend(layout.regions.nodes(text, front, text.len())?);
    Some(vec![Group::new(root, nodes).into()])
}

/// Reads the bytes of a region at an offset: returns its nodes, and its size in bytes; the label is that
/// of the region.
type Read<'a> = fn(&mut Layout<'a>, &mut Reader, usize, Label) -> Option<(Vec<Node>, usize)>;

impl<'a> Layout<'a> {
    fn word(&self, at: usize) -> Option<usize> {
        usize::try_from(Encoding::Big(2).read_at(self.text, at)?).ok()
    }

    /// Makes a label for each item of the list at offset `start`, which begins with their number.
    fn labels(&self, reader: &mut Reader, start: usize) -> Option<Vec<Label>> {
        Some((0..self.word(start)?).map(|_| reader.label()).collect())
    }

    /// Makes the node of the offset at `at`, which is that of the region `of`, counted from the region
    /// `from`.
    fn offset(&self, reader: &Reader, at: usize, of: Label, from: Label) -> Node {
        let raw = &self.text[at..at + 2];
        reader.number(Encoding::Big(2), Meaning::Offset(of, from), 0, raw)
    }

    /// Makes the region at offset `start` by `read`; returns its label. A region to which several
    /// records refer is a part by itself. `None` if it cannot be read or overlaps another region.
    fn region(
        &mut self,
        reader: &mut Reader,
        start: usize,
        part: Part,
        read: Read<'a>,
    ) -> Option<Label> {
        if let Some(group) = self.regions.group_at(start) {
            group.part = Part::Own;
            return Some(group.label);
        }
        let label = reader.label();
        let (nodes, size) = reader.deeper(|reader| read(self, reader, start, label))?;
        let group = Group {
            part,
            ..Group::new(label, nodes)
        };
        let place = start..start + size;
        self.regions.insert(place, group).then_some(label)
    }

    /// Makes the nodes of the number of items at offset `at`, and of the items after it, each of `size`
    /// bytes, which end with an offset from the region `from` at the offset `base`. An item is a part,
    /// with which the region goes that `read` reads at that offset; it has the label of `labels`, if
    /// there are any.
    fn list(
        &mut self,
        reader: &mut Reader,
        at: usize,
        (size, from, base): (usize, Label, usize),
        labels: &[Label],
        read: Read<'a>,
    ) -> Option<Vec<Node>> {
        let count = self.word(at)?;
        let list = reader.label();
        let mut items = Vec::with_capacity(count);
        for index in 0..count {
            reader.count_part().then_some(())?;
            let label = labels.get(index).copied();
            let label = label.unwrap_or_else(|| reader.label());
            let item = at + 2 + index * size;
            let offset = item + size - 2;
            let mut nodes = Vec::new();
            let start = self.word(offset)?;
            if size > 2 {
                nodes.push(Node::fixed(&self.text[item..offset]));
            }
            nodes.push(match start {
                0 => Node::fixed(&[0, 0]),
                _ => {
                    let of = self.region(reader, base + start, Part::With(label), read)?;
                    self.offset(reader, offset, of, from)
                }
            });
            items.push(Group::part(label, nodes).into());
        }
        let raw = &self.text[at..at + 2];
        Some(vec![
            reader.number(Encoding::Big(2), Meaning::Count(list), 0, raw),
            Group::new(list, items).into(),
        ])
    }

    /// Makes the nodes of the number of indices at offset `at`, and of the indices after it, each of an
    /// item whose label is among `labels` and with which it goes.
    fn indices(&self, reader: &mut Reader, at: usize, labels: &[Label]) -> Option<Vec<Node>> {
        let count = self.word(at)?;
        let list = reader.label();
        let mut items = Vec::with_capacity(count);
        for index in 0..count {
            reader.count_part().then_some(())?;
            let place = at + 2 + 2 * index;
            let raw = self.text.get(place..place + 2)?;
            let label = labels.get(self.word(place)?);
            let node = match label {
                Some(label) => reader.number(Encoding::Big(2), Meaning::Index(*label), 0, raw),
                None => Node::fixed(raw),
            };
            items.push(Node::Group(Group {
                part: label.map_or(Part::Own, |label| Part::With(*label)),
                ..Group::new(reader.label(), vec![node])
            }));
        }
        let raw = &self.text[at..at + 2];
        Some(vec![
            reader.number(Encoding::Big(2), Meaning::Count(list), 0, raw),
            Group::new(list, items).into(),
        ])
    }

    fn scripts(
        &mut self,
        reader: &mut Reader,
        at: usize,
        own: Label,
    ) -> Option<(Vec<Node>, usize)> {
        let nodes = self.list(reader, at, (6, own, at), &[], Layout::script)?;
        Some((nodes, 2 + 6 * self.word(at)?))
    }

    fn script(&mut self, reader: &mut Reader, at: usize, own: Label) -> Option<(Vec<Node>, usize)> {
        let mut nodes = Vec::new();
        nodes.push(match self.word(at)? {
            0 => Node::fixed(&[0, 0]),
            start => {
                let label = self.region(reader, at + start, Part::No, Layout::language)?;
                self.offset(reader, at, label, own)
            }
        });
        nodes.extend(self.list(reader, at + 2, (6, own, at), &[], Layout::language)?);
        Some((nodes, 4 + 6 * self.word(at + 2)?))
    }

    fn language(&mut self, reader: &mut Reader, at: usize, _: Label) -> Option<(Vec<Node>, usize)> {
        let features = std::mem::take(&mut self.features);
        let raw = self.text.get(at + 2..at + 4)?;
        let required = self.word(at + 2).and_then(|index| features.get(index));
        let mut nodes = vec![
            Node::fixed(&self.text[at..at + 2]),
            match required {
                Some(of) => reader.number(Encoding::Big(2), Meaning::Index(*of), 0, raw),
                None => Node::fixed(raw),
            },
        ];
        let indices = self.indices(reader, at + 4, &features);
        self.features = features;
        nodes.extend(indices?);
        Some((nodes, 6 + 2 * self.word(at + 4)?))
    }

    fn features(
        &mut self,
        reader: &mut Reader,
        at: usize,
        own: Label,
    ) -> Option<(Vec<Node>, usize)> {
        let labels = self.features.clone();
        let nodes = self.list(reader, at, (6, own, at), &labels, Layout::feature)?;
        Some((nodes, 2 + 6 * self.word(at)?))
    }

    fn feature(&mut self, reader: &mut Reader, at: usize, _: Label) -> Option<(Vec<Node>, usize)> {
        let mut nodes = vec![Node::fixed(self.text.get(at..at + 2)?)];
        nodes.extend(self.indices(reader, at + 2, &self.lookups)?);
        Some((nodes, 4 + 2 * self.word(at + 2)?))
    }

    fn lookups(
        &mut self,
        reader: &mut Reader,
        at: usize,
        own: Label,
    ) -> Option<(Vec<Node>, usize)> {
        let labels = self.lookups.clone();
        let nodes = self.list(reader, at, (2, own, at), &labels, Layout::lookup)?;
        Some((nodes, 2 + 2 * self.word(at)?))
    }

    fn lookup(&mut self, reader: &mut Reader, at: usize, own: Label) -> Option<(Vec<Node>, usize)> {
        let read = match self.word(at)? {
            SINGLE if self.substitutes => Layout::single as Read<'a>,
            MULTIPLE | ALTERNATE if self.substitutes => Layout::sequences,
            LIGATURE if self.substitutes => Layout::ligature_sets,
            _ => Layout::unknown,
        };
        let mut nodes = vec![Node::fixed(self.text.get(at..at + 4)?)];
        nodes.extend(self.list(reader, at + 4, (2, own, at), &[], read)?);
        let mut size = 6 + 2 * self.word(at + 4)?;
        if self.word(at + 2)? & HAS_FILTER > 0 {
            nodes.push(Node::fixed(self.text.get(at + size..at + size + 2)?));
            size += 2;
        }
        Some((nodes, size))
    }

    /// Reads a subtable of another kind: all bytes up to the next region.
    fn unknown(&mut self, _: &mut Reader, at: usize, _: Label) -> Option<(Vec<Node>, usize)> {
        (at < self.text.len()).then(|| (Vec::new(), 0))
    }

    fn single(&mut self, reader: &mut Reader, at: usize, own: Label) -> Option<(Vec<Node>, usize)> {
        let format = self.word(at)?;
        let results = match format {
            2 => self.labels(reader, at + 4)?,
            _ => Vec::new(),
        };
        let mut nodes = self.coverage_offset(reader, at, own, &results)?;
        if format != 2 {
            nodes.push(Node::fixed(self.text.get(at + 4..at + 6)?));
            return Some((nodes, 6));
        }
        nodes.extend(self.glyph_list(reader, at + 4, 0, Some(&results))?);
        Some((nodes, 6 + 2 * results.len()))
    }

    /// Reads a subtable whose glyphs each have a sequence of glyphs.
    fn sequences(
        &mut self,
        reader: &mut Reader,
        at: usize,
        own: Label,
    ) -> Option<(Vec<Node>, usize)> {
        self.sets(reader, at, own, Layout::sequence)
    }

    fn sequence(&mut self, reader: &mut Reader, at: usize, _: Label) -> Option<(Vec<Node>, usize)> {
        let nodes = self.glyph_list(reader, at, 0, None)?;
        Some((nodes, 2 + 2 * self.word(at)?))
    }

    /// Reads a subtable whose glyphs each have a set of ligatures that begin with them.
    fn ligature_sets(
        &mut self,
        reader: &mut Reader,
        at: usize,
        own: Label,
    ) -> Option<(Vec<Node>, usize)> {
        self.sets(reader, at, own, Layout::ligatures)
    }

    fn sets(
        &mut self,
        reader: &mut Reader,
        at: usize,
        own: Label,
        read: Read<'a>,
    ) -> Option<(Vec<Node>, usize)> {
        let sets = self.labels(reader, at + 4)?;
        let mut nodes = self.coverage_offset(reader, at, own, &sets)?;
        nodes.extend(self.list(reader, at + 4, (2, own, at), &sets, read)?);
        Some((nodes, 6 + 2 * sets.len()))
    }

    fn ligatures(
        &mut self,
        reader: &mut Reader,
        at: usize,
        own: Label,
    ) -> Option<(Vec<Node>, usize)> {
        let nodes = self.list(reader, at, (2, own, at), &[], Layout::ligature)?;
        Some((nodes, 2 + 2 * self.word(at)?))
    }

    /// Reads a ligature: its glyph, and the glyphs after the first that it stands for; their number
    /// includes the first one.
    fn ligature(&mut self, reader: &mut Reader, at: usize, _: Label) -> Option<(Vec<Node>, usize)> {
        let mut nodes = vec![self.glyph(reader, at)?];
        nodes.extend(self.glyph_list(reader, at + 2, 1, None)?);
        Some((nodes, 2 + 2 * self.word(at + 2)?))
    }

    /// Makes the node of the glyph whose index is at offset `at`.
    fn glyph(&self, reader: &Reader, at: usize) -> Option<Node> {
        let raw = self.text.get(at..at + 2)?;
        let meaning = self.glyphs.and_then(|glyphs| glyphs.index(self.word(at)?));
        Some(match meaning {
            Some(meaning) => reader.number(Encoding::Big(2), meaning, 0, raw),
            None => Node::fixed(raw),
        })
    }

    /// Makes the nodes of the number of glyphs at offset `at`, which counts `others` more, and of the
    /// glyphs after it; these have `labels`, if there are any.
    fn glyph_list(
        &self,
        reader: &mut Reader,
        at: usize,
        others: usize,
        labels: Option<&[Label]>,
    ) -> Option<Vec<Node>> {
        let count = self.word(at)?.checked_sub(others)?;
        let list = reader.label();
        let mut items = Vec::with_capacity(count);
        for index in 0..count {
            reader.count_part().then_some(())?;
            let label = labels.map_or_else(|| reader.label(), |labels| labels[index]);
            let glyph = self.glyph(reader, at + 2 + 2 * index)?;
            items.push(Group::part(label, vec![glyph]).into());
        }
        let raw = &self.text[at..at + 2];
        Some(vec![
            reader.number(Encoding::Big(2), Meaning::Count(list), others as i64, raw),
            Group::new(list, items).into(),
        ])
    }

    /// Makes the nodes of the format of the subtable at offset `at` and of the offset of its coverage,
    /// the list of glyphs that it applies to. A glyph in it goes with the item of the subtable at the
    /// same index, which has the label in `items`.
    fn coverage_offset(
        &mut self,
        reader: &mut Reader,
        at: usize,
        own: Label,
        items: &[Label],
    ) -> Option<Vec<Node>> {
        let start = at + self.word(at + 2)?;
        let known = self.regions.group_at(start);
        let label = match known {
            Some(group) => group.label,
            None => {
                let label = reader.label();
                let nodes = self.coverage(reader, start, items)?;
                let size = match self.word(start)? {
                    1 => 4 + 2 * self.word(start + 2)?,
                    _ => 4 + 6 * self.word(start + 2)?,
                };
                let place: Range<usize> = start..start + size;
                self.regions
                    .insert(place, Group::new(label, nodes))
                    .then_some(())?;
                label
            }
        };
        Some(vec![
            Node::fixed(&self.text[at..at + 2]),
            self.offset(reader, at + 2, label, own),
        ])
    }

    fn coverage(&self, reader: &mut Reader, at: usize, items: &[Label]) -> Option<Vec<Node>> {
        let format = self.word(at)?;
        let count = self.word(at + 2)?;
        let size = if format == 1 { 2 } else { 6 };
        let body = self.text.get(at + 4..at + 4 + size * count)?;
        if format != 1 {
            return Some(vec![
                Node::fixed(&self.text[at..at + 4]),
                Node::payload(body),
            ]);
        }
        let list = reader.label();
        let mut glyphs = Vec::with_capacity(count);
        for index in 0..count {
            glyphs.push(Node::Group(Group {
                part: items.get(index).map_or(Part::No, |item| Part::With(*item)),
                ..Group::new(
                    reader.label(),
                    vec![self.glyph(reader, at + 4 + 2 * index)?],
                )
            }));
        }
        let raw = &self.text[at + 2..at + 4];
        Some(vec![
            Node::fixed(&self.text[at..at + 2]),
            reader.number(Encoding::Big(2), Meaning::Count(list), 0, raw),
            Group::new(list, glyphs).into(),
        ])
    }
}
