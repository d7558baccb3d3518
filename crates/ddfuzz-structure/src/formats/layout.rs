//! Reader for the layout tables of OpenType fonts, GSUB, GPOS and GDEF: scripts, features and
//! lookups, which refer to each other by offsets and indices, and the subtables that `subtables.rs`
//! describes.

use super::glyphs::Glyphs;
use super::regions::Regions;
use super::subtables::{self, Item, Shape, subtable};
use crate::node::{Group, Label, Meaning, Node, Part};
use crate::number::Encoding;
use crate::reader::Reader;

/// Bit of a lookup's flags which says that the index of a mark filtering set follows the offsets of
/// its subtables.
const HAS_FILTER: usize = 0x10;
/// Lowest of the bits of a GPOS value format that say that a value record contains an offset.
const VALUE_OFFSETS: usize = 0x10;
/// Maximum number of glyphs in all ranges of a coverage table (a list of glyphs) that is divided,
/// so that elements of other lists can be deleted together with its glyphs.
const MOST_TIED: usize = 1 << 13;

/// What is known while a subtable, and the tables to which it leads, are read: the values of its
/// numbered variables; and for each *tie* (a number for lists whose elements belong to the glyphs
/// of a coverage table) how the list element of each glyph is deleted, and the label (id in the
/// file's tree) of this element.
#[derive(Default)]
struct Scope {
    variables: [usize; 5],
    ties: Vec<(u8, Vec<(Part, Label)>)>,
}

/// State of reading one table to which an offset of an OpenType layout table leads, such as a
/// subtable.
struct Table {
    /// Offset in the layout table at which the table that is read begins; the offsets in it count
    /// from this offset.
    start: usize,
    /// Label (id in the file's tree) of the group of nodes of the table.
    own: Label,
    /// Offset of the item that is read next.
    at: usize,
    /// How a region to which an offset in the table leads is deleted: together with the table, or
    /// together with the list element that contains the offset.
    with: Part,
    /// The lists whose counts were read so far: the number of the list, its number of elements, and
    /// the label (id in the file's tree) of the group of nodes of its elements.
    lists: Vec<(u8, usize, Label)>,
}

/// What an offset in a table leads to: a table of some shape, or a coverage table (a list of
/// glyphs). The number of a coverage table is its *tie*: the elements of lists with the same number
/// are deleted together with the table's glyphs.
#[derive(Clone, Copy)]
enum Target {
    Table(&'static Shape),
    Coverage(u8),
}

/// State of reading a layout table of an OpenType font (GSUB, GPOS or GDEF): its regions (byte
/// ranges that offsets refer to), features and lookups.
struct Layout<'a> {
    text: &'a [u8],
    glyphs: Option<&'a Glyphs>,
    regions: Regions,
    /// Labels (ids in the file's tree) of the feature records, by their indices.
    features: Vec<Label>,
    /// Labels (ids in the file's tree) of the entries of the lookup list, by their indices.
    lookups: Vec<Label>,
    /// True if the table is GSUB, which substitutes glyphs; false if it is GPOS, which positions
    /// them.
    substitutes: bool,
    /// Type of the lookup whose subtables are being read, as the file states it in a number; it
    /// decides how they are read.
    kind: usize,
}

/// Reads the table GSUB, if `substitutes`, or GPOS into the nodes of its tree. `None` if its list
/// of scripts, features or lookups cannot be read, regions overlap, or the file has too many parts.
pub fn layout(
    reader: &mut Reader,
    text: &[u8],
    glyphs: Option<&Glyphs>,
    substitutes: bool,
) -> Option<Vec<Node>> {
    let root = reader.label();
    let mut layout = Layout::new(text, glyphs, substitutes);
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

/// Reads the table GDEF, which classifies glyphs (bases, ligatures, marks), into the nodes of its
/// tree. `None` if it is cut off, regions overlap, or the file has too many parts.
pub fn definitions(reader: &mut Reader, text: &[u8], glyphs: Option<&Glyphs>) -> Option<Vec<Node>> {
    let root = reader.label();
    let mut layout = Layout::new(text, glyphs, false);
    let (shape, scope) = (
        subtables::definitions(layout.word(2)?),
        &mut Scope::default(),
    );
    let (mut nodes, front) = layout.table(reader, (0, root), shape, scope)?;
    nodes.extend(layout.regions.nodes(text, front, text.len())?);
    Some(vec![Group::new(root, nodes).into()])
}

/// A method that reads the bytes of a region of a layout table from an offset on, and returns the
/// nodes of the region and its size in bytes. Its last argument is the label (id in the file's
/// tree) of the region.
type Read<'a> = fn(&mut Layout<'a>, &mut Reader, usize, Label) -> Option<(Vec<Node>, usize)>;

impl<'a> Layout<'a> {
    fn new(text: &'a [u8], glyphs: Option<&'a Glyphs>, substitutes: bool) -> Layout<'a> {
        Layout {
            text,
            glyphs,
            regions: Regions::default(),
            features: Vec::new(),
            lookups: Vec::new(),
            substitutes,
            kind: 0,
        }
    }

    fn word(&self, at: usize) -> Option<usize> {
        usize::try_from(Encoding::Big(2).read_at(self.text, at)?).ok()
    }

    /// Makes a new label, which will identify a group of nodes in the tree of the file, for each
    /// item of the list at offset `start`; the list begins with the number of its items. `None` if
    /// the table ends before that number.
    fn labels(&self, reader: &mut Reader, start: usize) -> Option<Vec<Label>> {
        Some((0..self.word(start)?).map(|_| reader.label()).collect())
    }

    /// Returns the tree node of the two-byte offset that stands at offset `at` of the table: it
    /// states how far the region with the label `of` is from the beginning of the region with the
    /// label `from` (labels are ids in the file's tree).
    fn offset(&self, reader: &Reader, at: usize, of: Label, from: Label) -> Node {
        let raw = &self.text[at..at + 2];
        reader.number(Encoding::Big(2), Meaning::Offset(of, from), 0, raw)
    }

    /// Makes the region of the file that begins at offset `start`; `read` reads it and returns its
    /// nodes and its size. `part` says how the region is deleted. Returns the label of the region
    /// (id in the file's tree), and `None` in the cases that [`Layout::region_by`] names.
    fn region(
        &mut self,
        reader: &mut Reader,
        start: usize,
        part: Part,
        read: Read<'a>,
    ) -> Option<Label> {
        let read =
            |layout: &mut Layout<'a>, reader: &mut Reader, own| read(layout, reader, start, own);
        self.region_by(reader, start, part, read)
    }

    /// Makes the region that begins at offset `start`, and returns its label (id in the file's
    /// tree). `read` returns its nodes and its size; if it cannot, the region extends to the next
    /// one. The region is deleted as `part` says or, if another record referred to it before, by
    /// itself. `None` if `start` is not in the table, or the region overlaps another one.
    fn region_by(
        &mut self,
        reader: &mut Reader,
        start: usize,
        part: Part,
        read: impl FnOnce(&mut Layout<'a>, &mut Reader, Label) -> Option<(Vec<Node>, usize)>,
    ) -> Option<Label> {
        if let Some(group) = self.regions.group_at(start) {
            group.part = Part::Own;
            return Some(group.label);
        }
        (start < self.text.len()).then_some(())?;
        let label = reader.label();
        let read = reader.deeper(|reader| read(self, reader, label));
        let (nodes, size) = read.unwrap_or_default();
        let group = Group {
            part,
            ..Group::new(label, nodes)
        };
        let place = start..start + size;
        self.regions.insert(place, group).then_some(label)
    }

    /// Returns the tree nodes of the list at offset `at`: the number of its items, and the items,
    /// each of `size` bytes and deletable. The first items get the `labels` (ids in the file's
    /// tree), further ones new labels. The last two bytes of an item are the offset of a region,
    /// measured from the offset `base`, at which the region `from` begins. `read` reads that
    /// region, and it is deleted with the item.
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

    /// Returns the tree nodes of the list at offset `at`: the number of its indices, and the
    /// indices. An index refers to the item with this index among `labels`, and is deleted together
    /// with that item.
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
        self.kind = self.word(at)?;
        let mut nodes = vec![Node::fixed(self.text.get(at..at + 4)?)];
        nodes.extend(self.list(reader, at + 4, (2, own, at), &[], Layout::subtable)?);
        let mut size = 6 + 2 * self.word(at + 4)?;
        if self.word(at + 2)? & HAS_FILTER > 0 {
            nodes.push(Node::fixed(self.text.get(at + size..at + size + 2)?));
            size += 2;
        }
        Some((nodes, size))
    }

    /// Reads the subtable at offset `at` of the present lookup; returns its nodes and its size in
    /// bytes, `None` if its type is unknown or it cannot be read.
    fn subtable(
        &mut self,
        reader: &mut Reader,
        at: usize,
        own: Label,
    ) -> Option<(Vec<Node>, usize)> {
        let shape = subtable(self.kind, self.substitutes)?;
        self.table(reader, (at, own), shape, &mut Scope::default())
    }

    /// Reads the table at offset `at`, whose items `shape` describes; its group of nodes has the
    /// label `own` (id in the file's tree). Returns the nodes of the table, and its size in bytes
    /// without what its offsets lead to. `None` if it cannot be read.
    fn table(
        &mut self,
        reader: &mut Reader,
        (at, own): (usize, Label),
        shape: &'static Shape,
        scope: &mut Scope,
    ) -> Option<(Vec<Node>, usize)> {
        let mut table = Table {
            start: at,
            own,
            at,
            with: Part::With(own),
            lists: Vec::new(),
        };
        let mut nodes = Vec::new();
        let items = match shape {
            Shape::Plain(items) => items,
            Shape::Formats(formats) => {
                let format = self.word(at)?.checked_sub(1)?;
                nodes.push(Node::fixed(&self.text[at..at + 2]));
                table.at += 2;
                formats.get(format)?
            }
        };
        for item in *items {
            self.item(reader, item, &mut table, scope, &mut nodes)?;
        }
        Some((nodes, table.at - at))
    }

    /// Reads the next item of `table`, as `item` describes it, and appends its nodes to `nodes`.
    /// `Some` if that is done; `None` if the item cannot be read.
    fn item(
        &mut self,
        reader: &mut Reader,
        item: &'static Item,
        table: &mut Table,
        scope: &mut Scope,
        nodes: &mut Vec<Node>,
    ) -> Option<()> {
        match item {
            Item::List(list, tie, items) => {
                let list = self.elements(reader, (*list, *tie), items, table, scope)?;
                nodes.push(list.into());
            }
            Item::Repeat(variable, items) => {
                for _ in 0..scope.variables[*variable] {
                    reader.count_part().then_some(())?;
                    for item in *items {
                        self.item(reader, item, table, scope, nodes)?;
                    }
                }
            }
            Item::Offset(width, shape) => {
                nodes.push(self.refer(reader, *width, Target::Table(shape), table, scope)?);
            }
            Item::Coverage(tie) => {
                nodes.push(self.refer(reader, 2, Target::Coverage(*tie), table, scope)?);
            }
            Item::Extension => {
                let shape = subtable(self.word(table.at)?, self.substitutes)?;
                nodes.push(Node::fixed(&self.text[table.at..table.at + 2]));
                table.at += 2;
                nodes.push(self.refer(reader, 4, Target::Table(shape), table, scope)?);
            }
            Item::Keep(_) | Item::Set(_) | Item::Value(_) | Item::Block => {
                let size = self.kept(item, table.at, scope)?;
                let bytes = self.text.get(table.at..table.at.checked_add(size)?)?;
                let is_block = matches!(item, Item::Block);
                nodes.extend((size > 0).then(|| match is_block {
                    true => Node::payload(bytes),
                    false => Node::fixed(bytes),
                }));
                table.at += size;
            }
            Item::Glyph | Item::Lookup | Item::Count(..) | Item::Start(_) => {
                nodes.push(self.number(reader, item, table, scope)?);
                table.at += 2;
            }
        }
        Some(())
    }

    /// Returns the size, in bytes, of the item `item` at offset `at`, if the bytes of such an item
    /// stay as they are (that is, of any item other than an index, a count or an offset). If the
    /// item sets a variable, stores its value in `scope`. `None` if the item cannot be read.
    fn kept(&self, item: &Item, at: usize, scope: &mut Scope) -> Option<usize> {
        let value = |format: usize| 2 * format.count_ones() as usize;
        match item {
            Item::Keep(size) => Some(*size),
            Item::Set(variable) => {
                scope.variables[*variable] = self.word(at)?;
                Some(2)
            }
            Item::Value(variable) => {
                let format = scope.variables[*variable];
                // Higher bits are offsets.
                (format < VALUE_OFFSETS).then_some(value(format))
            }
            _ => {
                let [first, second, rows, columns] = *scope.variables.first_chunk()?;
                let pairs = rows.checked_mul(columns)?;
                pairs.checked_mul(value(first) + value(second))
            }
        }
    }

    /// Returns the tree node of `item`, the next item of `table`, which is a number of two bytes:
    /// the index of a glyph or of a lookup, the number of elements of a list, or the first glyph of
    /// a range. `None` if it cannot be read.
    fn number(
        &self,
        reader: &mut Reader,
        item: &Item,
        table: &mut Table,
        scope: &mut Scope,
    ) -> Option<Node> {
        let at = table.at;
        let raw = self.text.get(at..at + 2)?;
        let (meaning, others) = match item {
            Item::Glyph => return self.glyph(reader, at),
            Item::Lookup => match self.lookups.get(self.word(at)?) {
                Some(of) => (Meaning::Index(*of), 0),
                None => return Some(Node::fixed(raw)),
            },
            Item::Count(list, others) => {
                let count = self.word(at)?.checked_sub(*others)?;
                let label = reader.label();
                table.lists.push((*list, count, label));
                (Meaning::Count(label), *others as i64)
            }
            Item::Start(tie) => {
                let count = self.word(at + 2)?;
                reader.count_parts(count).then_some(())?;
                let labels: Vec<Label> = (0..count).map(|_| reader.label()).collect();
                let meaning = Meaning::End {
                    first: labels.first().copied().unwrap_or_default(),
                    last: labels.last().copied().unwrap_or_default(),
                    of: self.glyph_label(self.word(at)?),
                    is_last: false,
                };
                let ties = labels.into_iter().map(|label| (Part::Own, label));
                scope.ties.retain(|(known, _)| known != tie);
                scope.ties.push((*tie, ties.collect()));
                (meaning, 0)
            }
            _ => return None,
        };
        Some(reader.number(Encoding::Big(2), meaning, others, raw))
    }

    /// Reads the elements of the list with the number `list`, each of which consists of `items`,
    /// from the next byte of `table` on. If a coverage table (a list of glyphs) has the number
    /// `tie`, each element is deleted together with its glyph, else by itself. `None` if an element
    /// cannot be read, or the file has too many parts.
    fn elements(
        &mut self,
        reader: &mut Reader,
        (list, tie): (u8, u8),
        items: &'static [Item],
        table: &mut Table,
        scope: &mut Scope,
    ) -> Option<Group> {
        let known = table.lists.iter().find(|(known, ..)| *known == list);
        let (_, count, label) = *known?;
        let around = table.with;
        let mut elements = Vec::new();
        for index in 0..count {
            reader.count_part().then_some(())?;
            let ties = scope.ties.iter().find(|(known, _)| *known == tie);
            let tied = ties.and_then(|(_, ties)| ties.get(index).copied());
            let (part, own) = tied.unwrap_or_else(|| (Part::Own, reader.label()));
            table.with = Part::With(own);
            let mut nodes = Vec::new();
            for item in items {
                self.item(reader, item, table, scope, &mut nodes)?;
            }
            elements.push(Node::Group(Group {
                part,
                ..Group::new(own, nodes)
            }));
        }
        table.with = around;
        Some(Group::new(label, elements))
    }

    /// Returns the tree node of the next item of `table`, an offset of `width` bytes, and makes the
    /// region to which the offset leads, which `target` describes. An offset of 0 leads to no
    /// region. `None` if the offset or the region cannot be read.
    fn refer(
        &mut self,
        reader: &mut Reader,
        width: usize,
        target: Target,
        table: &mut Table,
        scope: &mut Scope,
    ) -> Option<Node> {
        let at = table.at;
        let raw = self.text.get(at..at + width)?;
        let offset = usize::try_from(Encoding::Big(width).read_at(raw, 0)?).ok()?;
        table.at += width;
        if offset == 0 {
            return Some(Node::fixed(raw));
        }
        let start = table.start.checked_add(offset)?;
        let part = table.with;
        let of = self.region_by(reader, start, part, |layout, reader, own| match target {
            Target::Table(shape) => layout.table(reader, (start, own), shape, scope),
            Target::Coverage(tie) => layout.coverage(reader, start, tie, scope),
        })?;
        let meaning = Meaning::Offset(of, table.own);
        Some(reader.number(Encoding::Big(width), meaning, 0, raw))
    }

    /// Returns the tree node of the glyph index at offset `at`: a number that is computed anew, or
    /// fixed bytes if the glyphs of the font are not known. `None` if the text ends before.
    fn glyph(&self, reader: &Reader, at: usize) -> Option<Node> {
        let raw = self.text.get(at..at + 2)?;
        let meaning = self.glyphs.and_then(|glyphs| glyphs.index(self.word(at)?));
        Some(match meaning {
            Some(meaning) => reader.number(Encoding::Big(2), meaning, 0, raw),
            None => Node::fixed(raw),
        })
    }

    /// Returns the tree nodes of the coverage table at offset `at`, a list of the glyphs to which a
    /// subtable applies (singly or in ranges), and its size in bytes. Each glyph or range is a
    /// deletable part. If `tie` is not 0, notes the glyphs in `scope`: the elements of lists with
    /// the same `tie` are deleted together with them. `None` if the table cannot be read.
    fn coverage(
        &mut self,
        reader: &mut Reader,
        at: usize,
        tie: u8,
        scope: &mut Scope,
    ) -> Option<(Vec<Node>, usize)> {
        let (format, count) = (self.word(at)?, self.word(at + 2)?);
        let size = match format {
            1 => 2,
            2 => 6,
            _ => return None,
        };
        self.text.get(at + 4..at + 4 + size * count)?;
        let places = (0..count).map(|index| at + 4 + index * size);
        let (mut glyphs, mut items) = (Vec::new(), Vec::new());
        if format == 1 || tie == 0 {
            for place in places {
                reader.count_part().then_some(())?;
                let label = reader.label();
                let mut nodes = vec![self.glyph(reader, place)?];
                if format == 2 {
                    nodes.push(self.glyph(reader, place + 2)?);
                    nodes.push(Node::fixed(&self.text[place + 4..place + 6]));
                }
                items.push(Group::part(label, nodes).into());
                glyphs.push(label);
            }
        } else {
            let sizes = places.clone().map(|place| {
                let (first, last) = (self.word(place)?, self.word(place + 2)?);
                (last + 1).checked_sub(first)
            });
            let sizes: Vec<usize> = sizes.collect::<Option<_>>()?;
            let all = sizes.iter().sum();
            (all <= MOST_TIED && reader.count_parts(all + count)).then_some(())?;
            glyphs.extend((0..all).map(|_| reader.label()));
            let mut from = 0;
            for (place, size) in places.zip(sizes) {
                let range = glyphs.get(from..from + size)?;
                let nodes = self.range(reader, place, range, glyphs[0])?;
                items.push(Group::part(reader.label(), nodes).into());
                from += size;
            }
        }
        if tie > 0 {
            let ties = glyphs.iter();
            let ties = ties.map(|glyph| (Part::With(*glyph), reader.label()));
            let ties = ties.collect();
            scope.ties.retain(|(known, _)| *known != tie);
            scope.ties.push((tie, ties));
        }
        let (list, raw) = (reader.label(), &self.text[at + 2..at + 4]);
        let nodes = vec![
            Node::fixed(&self.text[at..at + 2]),
            reader.number(Encoding::Big(2), Meaning::Count(list), 0, raw),
            Group::new(list, items).into(),
        ];
        Some((nodes, 4 + size * count))
    }

    /// Returns the tree nodes of a range of glyphs at offset `at` of a coverage table: its first
    /// glyph, its last one, and the coverage index of the first one, all computed anew. An empty
    /// deletable part follows for each glyph, with the labels `glyphs` (ids in the file's tree):
    /// list elements tied to the glyph are deleted with it. `front` is the label of the table's
    /// first glyph.
    fn range(
        &self,
        reader: &Reader,
        at: usize,
        glyphs: &[Label],
        front: Label,
    ) -> Option<Vec<Node>> {
        let (first, last) = (*glyphs.first()?, *glyphs.last()?);
        let number = |at: usize, meaning| {
            reader.number(Encoding::Big(2), meaning, 0, &self.text[at..at + 2])
        };
        let of = self.glyph_label(self.word(at)?);
        let end = |is_last| Meaning::End {
            first,
            last,
            of,
            is_last,
        };
        let mut nodes = vec![
            number(at, end(false)),
            number(at + 2, end(true)),
            number(at + 4, Meaning::Present(front, first)),
        ];
        nodes.extend(
            glyphs
                .iter()
                .map(|glyph| Group::part(*glyph, Vec::new()).into()),
        );
        Some(nodes)
    }

    /// Returns the label (id in the file's tree) of the glyph with the index `glyph`; the labels of
    /// the next glyphs follow it. Returns 0 if the glyphs of the font are not known, or there is no
    /// such glyph.
    fn glyph_label(&self, glyph: usize) -> Label {
        let labels = self.glyphs.map(|glyphs| &glyphs.labels);
        let label = labels.and_then(|labels| labels.get(glyph));
        label.copied().unwrap_or_default()
    }
}
