//! Readers for the tables of fonts that have an entry for each glyph (outlines, their offsets,
//! metrics), and for those that state the numbers of glyphs and metrics.

use std::ops::Range;

use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Maximum number of glyphs of a font that become deletable parts; a font with more is not divided
/// by glyphs.
const MOST_GLYPHS: usize = 1 << 13;
/// Offset, in the table `maxp`, of the number of glyphs.
const GLYPH_COUNT: usize = 4;
/// Offset, in the table `hhea`, of the number of metrics with a width.
const METRIC_COUNT: usize = 34;
/// Offset, in the table `head`, of the format of offsets in the table `loca`.
const OFFSET_FORMAT: usize = 50;
/// Size of the header of an outline, in bytes: the number of contours, and the bounding box.
const GLYPH_HEAD: usize = 10;

/// Encoding of short offsets in the table `loca`, which are even: half of the offset, in two bytes.
const HALF: Encoding = Encoding::Units {
    is_big: true,
    width: 2,
    unit: 2,
};

/// The glyphs of a font: their labels (ids in the file's tree), by which other tables refer to
/// them, and where their data are.
pub struct Glyphs {
    /// Label (id in the file's tree) of the group of nodes that contains the groups of all glyphs.
    pub list: Label,
    /// Labels (ids in the file's tree) of the groups of nodes of the glyphs, by the indices of the
    /// glyphs.
    pub labels: Vec<Label>,
    /// Label (id in the file's tree) of the group of nodes that contains those entries of the font
    /// table `hmtx` that have a width.
    metrics: Label,
    /// Number of those entries of the table `hmtx` that have a width; the last entries may have
    /// none.
    wide: usize,
    /// Ranges of the glyphs' outlines in the table `glyf`; empty if the font has CFF outlines.
    places: Vec<Range<usize>>,
    /// Encoding of the offsets in the table `loca`: two bytes with half of the offset, or four
    /// bytes.
    offset: Encoding,
}

impl Glyphs {
    /// Finds the glyphs of a font; `table` returns the bytes of the table with the given name.
    /// `None` if tables are missing or do not agree with each other, or if there are too many
    /// glyphs.
    pub fn of<'a>(
        reader: &mut Reader,
        table: impl Fn(&[u8; 4]) -> Option<&'a [u8]>,
    ) -> Option<Glyphs> {
        let number = |name: &[u8; 4], at: usize| -> Option<usize> {
            usize::try_from(Encoding::Big(2).read_at(table(name)?, at)?).ok()
        };
        let count = number(b"maxp", GLYPH_COUNT)?;
        let offset = match number(b"head", OFFSET_FORMAT) {
            Some(0) => HALF,
            _ => Encoding::Big(4),
        };
        let places = match (table(b"loca"), table(b"glyf")) {
            (Some(offsets), Some(glyphs)) => {
                let offsets = (0..=count).map(|index| {
                    let size = if offset == HALF { 2 } else { 4 };
                    usize::try_from(offset.read_at(offsets, index * size)?).ok()
                });
                let offsets: Vec<usize> = offsets.collect::<Option<_>>()?;
                let fits = offsets[0] == 0 && offsets.is_sorted() && offsets[count] <= glyphs.len();
                fits.then(|| offsets.windows(2).map(|pair| pair[0]..pair[1]).collect())?
            }
            _ => {
                table(b"CFF ")?;
                Vec::new()
            }
        };
        (1..=MOST_GLYPHS).contains(&count).then(|| Glyphs {
            list: reader.label(),
            labels: (0..count).map(|_| reader.label()).collect(),
            metrics: reader.label(),
            wide: number(b"hhea", METRIC_COUNT).unwrap_or_default(),
            places,
            offset,
        })
    }

    /// Returns the tree nodes of `text`, the table with the name `name`; `None` if this table has
    /// no entries for glyphs and does not state their number, or cannot be read.
    pub fn table(&self, reader: &mut Reader, name: &[u8], text: &[u8]) -> Option<Vec<Node>> {
        match name {
            b"glyf" if !self.places.is_empty() => self.outlines(reader, text),
            b"loca" if !self.places.is_empty() => self.offsets(reader, text),
            b"hmtx" => self.metrics(reader, text),
            b"maxp" => counted(reader, text, GLYPH_COUNT, self.list),
            b"hhea" => counted(reader, text, METRIC_COUNT, self.metrics),
            _ => None,
        }
    }

    /// Returns the meaning of a number that is the index of the glyph `glyph`; `None` if there is
    /// no such glyph.
    pub fn index(&self, glyph: usize) -> Option<Meaning> {
        self.labels.get(glyph).map(|label| Meaning::Index(*label))
    }

    /// Makes a group of `nodes` that is deleted together with the glyph `glyph`; if the font has no
    /// such glyph, the group is a part that can be deleted by itself.
    fn entry(&self, reader: &mut Reader, glyph: usize, nodes: Vec<Node>) -> Node {
        Node::Group(Group {
            part: self
                .labels
                .get(glyph)
                .map_or(Part::Own, |of| Part::With(*of)),
            ..Group::new(reader.label(), nodes)
        })
    }

    fn outlines(&self, reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
        let mut glyphs = Vec::with_capacity(self.places.len());
        for (place, label) in self.places.iter().zip(&self.labels) {
            if !reader.count_part() {
                return None;
            }
            let bytes = text.get(place.clone())?;
            let inner = reader.label();
            let mut nodes = vec![Group::new(inner, self.outline(reader, bytes)).into()];
            if self.offset == HALF {
                nodes.push(Node::Pad {
                    of: inner,
                    align: 2,
                    fill: 0,
                });
            }
            glyphs.push(Group::part(*label, nodes).into());
        }
        let end = self.places.last().map_or(0, |place| place.end);
        let mut nodes = vec![Group::new(self.list, glyphs).into()];
        nodes.extend((end < text.len()).then(|| Node::payload(&text[end..])));
        Some(nodes)
    }

    /// Returns the tree nodes of an outline in the table `glyf`: its header, and the description of
    /// its contours or of its components.
    fn outline(&self, reader: &mut Reader, text: &[u8]) -> Vec<Node> {
        let Some((head, rest)) = text.split_at_checked(GLYPH_HEAD) else {
            return payload(text).into_iter().collect();
        };
        let contours = i16::from_be_bytes([head[0], head[1]]);
        let nodes = match usize::try_from(contours) {
            Ok(contours) => simple(reader, rest, 2 * contours),
            Err(_) => self.components(reader, rest),
        };
        let nodes = nodes.unwrap_or_else(|| payload(rest).into_iter().collect());
        [Node::payload(head)].into_iter().chain(nodes).collect()
    }

    /// Returns the tree nodes of the components of a composite glyph, in which the indices of other
    /// glyphs are computed anew; what follows the last component is a payload (changeable bytes).
    /// `None` if the text ends inside of a component.
    fn components(&self, reader: &Reader, text: &[u8]) -> Option<Vec<Node>> {
        let (mut nodes, mut at) = (Vec::new(), 0);
        loop {
            let flags = usize::try_from(Encoding::Big(2).read_at(text, at)?).ok()?;
            let raw = text.get(at + 2..at + 4)?;
            let glyph = usize::from(u16::from_be_bytes([raw[0], raw[1]]));
            // Positions are two bytes or two words; scales are one, two or four words.
            let positions = if flags & 1 > 0 { 4 } else { 2 };
            let scales = [(8, 2), (0x40, 4), (0x80, 8)].into_iter();
            let scales: usize = scales
                .filter(|(flag, _)| flags & flag > 0)
                .map(|(_, size)| size)
                .sum();
            let end = at + 4 + positions + scales;
            nodes.push(Node::payload(&text[at..at + 2]));
            nodes.push(match self.index(glyph) {
                Some(meaning) => reader.number(Encoding::Big(2), meaning, 0, raw),
                None => Node::fixed(raw),
            });
            nodes.push(Node::payload(text.get(at + 4..end)?));
            at = end;
            // The flag that another component follows.
            if flags & 0x20 == 0 {
                break;
            }
        }
        nodes.extend(payload(&text[at..]));
        Some(nodes)
    }

    /// Returns the tree nodes of `text`, the font table `loca`: for each glyph the offset of its
    /// outline, which is deleted together with the glyph, and the offset at which the last outline
    /// ends. `None` if the table is too short.
    fn offsets(&self, reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
        let size = if self.offset == HALF { 2 } else { 4 };
        let mut nodes = Vec::with_capacity(self.labels.len() + 2);
        for (index, label) in self.labels.iter().enumerate() {
            let raw = text.get(index * size..(index + 1) * size)?;
            let meaning = Meaning::Offset(*label, self.list);
            let offset = reader.number(self.offset, meaning, 0, raw);
            nodes.push(self.entry(reader, index, vec![offset]));
        }
        let end = (self.labels.len() + 1) * size;
        let raw = text.get(end - size..end)?;
        nodes.push(reader.number(self.offset, Meaning::Length(self.list), 0, raw));
        nodes.extend(payload(&text[end..]));
        Some(nodes)
    }

    /// Returns the tree nodes of the table `hmtx`, which has an entry for each glyph, deleted
    /// together with it. An entry is a width and a left side bearing; the last ones may be bearings
    /// only. `None` if the text ends before the entries with a width do.
    fn metrics(&self, reader: &mut Reader, text: &[u8]) -> Option<Vec<Node>> {
        let wide = text.get(..self.wide * 4)?.chunks_exact(4).enumerate();
        let wide: Vec<Node> = wide
            .map(|(index, bytes)| self.entry(reader, index, vec![Node::fixed(bytes)]))
            .collect();
        let rest = text[self.wide * 4..].chunks(2).enumerate();
        let rest = rest
            .map(|(index, bytes)| self.entry(reader, self.wide + index, vec![Node::fixed(bytes)]));
        let rest: Vec<Node> = rest.collect();
        let mut nodes = vec![Group::new(self.metrics, wide).into()];
        nodes.extend(rest);
        Some(nodes)
    }
}

/// Makes a payload node of `bytes`, which searches may delete and change; `None` if there are none.
fn payload(bytes: &[u8]) -> Option<Node> {
    (!bytes.is_empty()).then(|| Node::payload(bytes))
}

/// Returns the tree nodes of a simple outline after its header: `ends` bytes that state where
/// contours end, the number of instructions, the instructions, and the points. `None` if the text
/// ends before the points.
fn simple(reader: &mut Reader, text: &[u8], ends: usize) -> Option<Vec<Node>> {
    let (contours, rest) = text.split_at_checked(ends)?;
    let size = usize::try_from(Encoding::Big(2).read_at(rest, 0)?).ok()?;
    let instructions = rest.get(2..2 + size)?;
    let label = reader.label();
    let mut nodes: Vec<Node> = payload(contours).into_iter().collect();
    nodes.push(reader.number(Encoding::Big(2), Meaning::Length(label), 0, &rest[..2]));
    nodes.push(Group::new(label, payload(instructions).into_iter().collect()).into());
    nodes.extend(payload(&rest[2 + size..]));
    Some(nodes)
}

/// Returns the tree nodes of the table `text`, which states at offset `at`, in two bytes, how many
/// parts the group of nodes labelled `of` has: that number is computed anew when parts are deleted.
/// `None` if the table ends before the number.
fn counted(reader: &Reader, text: &[u8], at: usize, of: Label) -> Option<Vec<Node>> {
    let raw = text.get(at..at + 2)?;
    let mut nodes = vec![
        Node::payload(&text[..at]),
        reader.number(Encoding::Big(2), Meaning::Count(of), 0, raw),
    ];
    nodes.extend(payload(&text[at + 2..]));
    Some(nodes)
}
