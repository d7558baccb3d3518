//! Writes the bytes of a tree of nodes: computes the sizes of groups, writes the bytes, then the
//! numbers that depend on sizes and offsets, and at last the checksums, those of the smallest
//! groups first.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::node::{ByLabel, Group, Label, Meaning, Node, Number, Part};
use crate::number::Encoding;
use crate::packed::{Inside, Linked, Packed};
use ddfuzz_delta::interruption;

/// The written bytes of a group of nodes, and the positions of the group's numbers (lengths,
/// offsets, checksums and others) in these bytes.
pub struct Rendered {
    /// The bytes of the group of nodes, with all numbers computed anew.
    pub text: Vec<u8>,
    /// Ranges, in `text`, of the lengths, offsets, checksums and other numbers of the group of
    /// nodes, in ascending order; numbers in compressed content are not included.
    pub numbers: Vec<Range<usize>>,
    /// Sizes and indices of the group of nodes and of all groups in it, by their labels (ids in the
    /// file's tree).
    pub inside: Inside,
}

impl Rendered {
    /// Returns the bytes of each number (length, offset, checksum or other) of the group of nodes,
    /// in their order in the text.
    pub fn numbers(&self) -> impl Iterator<Item = &[u8]> {
        self.numbers.iter().map(|place| &self.text[place.clone()])
    }
}

/// Where a group of nodes was written: its range in the text or, if it is the content of a
/// compressed node, its uncompressed bytes.
enum Span {
    Place(Range<usize>),
    Content(Arc<[u8]>),
}

#[derive(Default)]
struct Renderer<'a> {
    /// Size of each measured group of nodes in bytes, by its label (id in the file's tree).
    sizes: ByLabel<usize>,
    /// For the label (id in the file's tree) of each measured group of nodes, the number of groups
    /// in it that can be deleted (the value of [`Meaning::Count`]).
    counts: ByLabel<u64>,
    /// For the label (id in the file's tree) of each measured group of nodes, its index in the
    /// group that contains it (the value of [`Meaning::Index`]).
    indices: ByLabel<u64>,
    spans: ByLabel<Span>,
    /// Labels (ids in the file's tree) of all groups of nodes whose sizes were measured, in
    /// ascending order.
    labels: Vec<Label>,
    text: Vec<u8>,
    /// The numbers (lengths, offsets, checksums and others) written so far, each with its range in
    /// the text.
    numbers: Vec<(&'a Number, Range<usize>)>,
    /// The sizes, in bytes, of those numbers that take more bytes the greater they are, as computed
    /// in the last round of writing. A number is identified by its encoding, its meaning, and its
    /// bias (what is added to the value that it states).
    widths: HashMap<(Encoding, Meaning, i64), usize>,
    /// For the label (id in the file's tree) of each group of nodes with a gap ([`Node::Gap`]), the
    /// size of the gap in bytes.
    gaps: ByLabel<usize>,
    /// Labels (ids in the file's tree) of all groups of nodes of the tree; empty unless the tree
    /// has runs of numbers ([`Node::Runs`]), which need them.
    present: HashSet<Label>,
    /// Compressed nodes whose content depends on groups of nodes outside ([`Linked::Outwards`]),
    /// each with its range in the text.
    open: Vec<(&'a Packed, Range<usize>)>,
    /// The compressed bytes, as computed in the last round of writing, of each node whose content
    /// depends on groups of nodes outside; by the label (id in the file's tree) of the node's
    /// content.
    packs: ByLabel<Vec<u8>>,
}

/// Maximum number of rounds in which the bytes of a file are written. Another round is needed if a
/// number takes another size than in the round before: then all bytes after it move, which changes
/// other numbers.
const MOST_ROUNDS: usize = 8;

/// Returns the bytes of `group`, written from its nodes, with all lengths, counts, offsets and
/// checksums computed anew.
pub fn render(group: &Group) -> Rendered {
    let mut renderer = Renderer::default();
    if has_runs(group) {
        list_labels(group, &mut renderer.present);
    }
    for _ in 0..MOST_ROUNDS {
        renderer = Renderer {
            widths: renderer.widths,
            present: renderer.present,
            packs: renderer.packs,
            ..Renderer::default()
        };
        renderer.measure(group);
        renderer.labels = renderer.sizes.keys().copied().collect();
        renderer.labels.sort_unstable();
        renderer.write(group);
        if renderer.settle_numbers() {
            break;
        }
    }
    let places = renderer.numbers.into_iter().map(|(_, place)| place);
    Rendered {
        numbers: places.collect(),
        text: renderer.text,
        inside: Inside {
            sizes: renderer.sizes,
            indices: renderer.indices,
        },
    }
}

/// Returns true if the group of nodes contains runs of numbers ([`Node::Runs`]), outside of
/// compressed nodes.
fn has_runs(group: &Group) -> bool {
    group.nodes.iter().any(|node| match node {
        Node::Runs(_) => true,
        Node::Group(inner) => has_runs(inner),
        _ => false,
    })
}

/// Adds the labels (ids in the file's tree) of `group` and of all groups of nodes in it to
/// `labels`, those inside of compressed nodes included.
fn list_labels(group: &Group, labels: &mut HashSet<Label>) {
    labels.insert(group.label);
    for inner in group.nodes.iter().filter_map(Node::inside) {
        list_labels(inner, labels);
    }
}

/// Returns true if the size of a number in bytes depends on a value that is known only after all
/// groups of nodes were placed; the number may then have to be written again in another size.
fn is_elastic(number: &Number) -> bool {
    match number.encoding {
        Encoding::Dict(_)
        | Encoding::Digits
        | Encoding::Hex { .. }
        | Encoding::VarintBig
        | Encoding::Serial(_) => true,
        Encoding::Varint => matches!(number.meaning, Meaning::Present(..)),
        _ => false,
    }
}

/// Returns the size in bytes of each group of nodes in `group`, by its label (id in the file's
/// tree).
pub fn sizes(group: &Group) -> ByLabel<usize> {
    let mut renderer = Renderer::default();
    renderer.measure(group);
    renderer.sizes
}

impl<'a> Renderer<'a> {
    /// Computes the sizes, counts and indices of a group of nodes and of all groups in it, and
    /// stores them by label (id in the file's tree); returns the size of the group in bytes.
    fn measure(&mut self, group: &Group) -> usize {
        interruption::check();
        let mut size = 0;
        let mut count = 0;
        // Sizes of numbers and paddings may depend on groups after them.
        for node in &group.nodes {
            match node {
                Node::Fixed(bytes) | Node::Payload(bytes) => size += bytes.len(),
                Node::Group(inner) => {
                    size += self.measure(inner);
                    self.indices.insert(inner.label, count);
                    count += match inner.part {
                        Part::No => self.counts.get(&inner.label).copied().unwrap_or_default(),
                        Part::Own | Part::With(_) => 1,
                    };
                }
                Node::Packed(packed) => {
                    size += self.packed(packed).len();
                    if let Linked::Into(inside) = &packed.linked {
                        self.sizes.extend(&inside.sizes);
                        self.indices.extend(&inside.indices);
                    }
                    self.sizes.insert(packed.content.label, packed.bytes.len());
                }
                Node::Flags { .. } => size += 1,
                Node::Columns(columns) => size += columns.write().len(),
                Node::Runs(runs) => {
                    size += runs.write(|label| self.present.contains(&label)).len();
                }
                Node::Number(_)
                | Node::Copy(_)
                | Node::Pad { .. }
                | Node::Gap(_)
                | Node::Directory { .. } => {}
            }
        }
        self.counts.insert(group.label, count);
        for node in &group.nodes {
            size += match node {
                Node::Number(number) => self.number(number).len(),
                Node::Copy(of) => self.size(*of),
                Node::Pad { of, align, .. } => padding(self.size(*of), *align),
                Node::Directory { of, width } => self.directory(group, *of, *width).len(),
                _ => 0,
            };
        }
        for node in &group.nodes {
            if let Node::Gap(full) = node {
                let gap = full.saturating_sub(size);
                self.gaps.insert(group.label, gap);
                size += gap;
            }
        }
        self.sizes.insert(group.label, size);
        size
    }

    /// Returns the compressed bytes of a node. If its content depends on groups of nodes outside
    /// ([`Linked::Outwards`]), they are those that the last round of writing the file has
    /// computed; before the first round, those of the original file.
    fn packed<'b>(&'b self, packed: &'b Packed) -> &'b [u8] {
        let found = self.packs.get(&packed.content.label);
        match packed.linked {
            Linked::Outwards => found.map_or(&packed.packed, |found| found),
            _ => &packed.packed,
        }
    }

    fn size(&self, label: Label) -> usize {
        self.sizes.get(&label).copied().unwrap_or_default()
    }

    /// Returns the bytes that are written for a number at first, as many as the number takes in the
    /// file. Lengths and counts of groups that were already measured have their final value; other
    /// numbers get it later, when all places in the file are known.
    fn number(&self, number: &Number) -> Vec<u8> {
        if is_elastic(number) {
            let key = (number.encoding, number.meaning, number.bias);
            return match self.widths.get(&key) {
                Some(width) => vec![0; *width],
                None => number.raw.to_vec(),
            };
        }
        let stated = match number.meaning {
            Meaning::Length(of) => self.sizes.get(&of).map(|size| *size as u64),
            Meaning::Count(of) => self.counts.get(&of).copied(),
            Meaning::Index(..)
            | Meaning::Offset(..)
            | Meaning::Place(..)
            | Meaning::Next { .. }
            | Meaning::NextIndex { .. }
            | Meaning::Present(..)
            | Meaning::End { .. }
            | Meaning::Check(..) => None,
        };
        match stated {
            Some(stated) => number
                .encoding
                .write(stated.wrapping_add_signed(number.bias)),
            None => number.raw.to_vec(),
        }
    }

    /// Returns the bytes of the header of a CFF INDEX ([`Node::Directory`]): the number of items,
    /// the width of an offset (at least `width` bytes), and the offsets. The items are the groups
    /// of nodes inside of the group with the label `of` (id in the file's tree), which is in the
    /// group `around`.
    fn directory(&self, around: &Group, of: Label, width: usize) -> Vec<u8> {
        let mut ends = vec![1];
        for node in &around.nodes {
            if let Node::Group(items) = node
                && items.label == of
            {
                let sizes = items.nodes.iter().filter_map(|node| match node {
                    Node::Group(item) => Some(self.size(item.label)),
                    _ => None,
                });
                let mut end = 1;
                ends.extend(sizes.map(|size| {
                    end += size as u64;
                    end
                }));
            }
        }
        let mut written = Encoding::Big(2).write(ends.len() as u64 - 1);
        if ends.len() > 1 {
            let width = width.max(Encoding::width_of(ends[ends.len() - 1]));
            written.push(width as u8);
            written.extend(ends.iter().flat_map(|end| Encoding::Big(width).write(*end)));
        }
        written
    }

    fn write(&mut self, group: &'a Group) {
        interruption::check();
        let start = self.text.len();
        for node in &group.nodes {
            match node {
                Node::Fixed(bytes) | Node::Payload(bytes) => self.text.extend_from_slice(bytes),
                Node::Group(inner) => self.write(inner),
                Node::Packed(packed) => {
                    let content = Span::Content(packed.bytes.clone());
                    self.spans.insert(packed.content.label, content);
                    let start = self.text.len();
                    let bytes = self.packed(packed).to_vec();
                    self.text.extend(bytes);
                    if let Linked::Outwards = packed.linked {
                        self.open.push((packed, start..self.text.len()));
                    }
                }
                Node::Number(number) => {
                    let at = self.text.len();
                    let bytes = self.number(number);
                    self.text.extend(bytes);
                    self.numbers.push((number, at..self.text.len()));
                }
                Node::Flags { rest, bits } => {
                    let present = bits.iter().filter(|(_, of)| self.sizes.contains_key(of));
                    let byte = present.fold(*rest, |byte, (bit, _)| byte | bit);
                    self.text.push(byte);
                }
                Node::Columns(columns) => self.text.extend(columns.write()),
                Node::Copy(of) => {
                    if let Some(Span::Place(place)) = self.spans.get(of) {
                        self.text.extend_from_within(place.clone());
                    }
                }
                Node::Directory { of, width } => {
                    let head = self.directory(group, *of, *width);
                    self.text.extend(head);
                }
                Node::Pad { of, align, fill } => {
                    let size = padding(self.size(*of), *align);
                    self.text.resize(self.text.len() + size, *fill);
                }
                Node::Gap(_) => {
                    let size = self.gaps.get(&group.label).copied().unwrap_or_default();
                    self.text.resize(self.text.len() + size, 0);
                }
                Node::Runs(runs) => {
                    let bytes = runs.write(|label| self.present.contains(&label));
                    self.text.extend(bytes);
                }
            }
        }
        let place = Span::Place(start..self.text.len());
        self.spans.insert(group.label, place);
    }

    /// Writes all numbers whose values are known only after all groups of nodes were placed, and
    /// then the checksums, those of the smallest groups first. Returns false if a number or a
    /// compressed node needs another size than it was given: all must then be written again with
    /// the new sizes and bytes, which are in `widths` and `packs`.
    fn settle_numbers(&mut self) -> bool {
        let mut checks = Vec::new();
        let mut fits = true;
        for (number, place) in std::mem::take(&mut self.numbers) {
            if let Meaning::Check(..) = number.meaning {
                checks.push((number, place.clone()));
            }
            if let Some(stated) = self.stated(number) {
                let bytes = number
                    .encoding
                    .write(stated.wrapping_add_signed(number.bias));
                // A number around itself has a fixed width.
                if bytes.len() == place.len() {
                    self.text[place.clone()].copy_from_slice(&bytes);
                } else if is_elastic(number) {
                    let key = (number.encoding, number.meaning, number.bias);
                    self.widths.insert(key, bytes.len());
                    fits = false;
                }
            }
            self.numbers.push((number, place));
        }
        let scope = |number: &Number| match self.spans.get(&number.meaning.labels()[0]) {
            Some(Span::Place(place)) => place.len(),
            _ => 0,
        };
        checks.sort_by_key(|(number, _)| scope(number));
        for (number, place) in checks {
            fits &= self.check(number, place);
        }
        fits & self.settle_packed()
    }

    /// Returns those labels (ids in the file's tree) in `range` whose groups of nodes were not
    /// deleted from the file, in ascending order.
    fn labels(&self, range: Range<Label>) -> &[Label] {
        let first = self.labels.partition_point(|label| *label < range.start);
        let last = self.labels.partition_point(|label| *label < range.end);
        self.labels.get(first..last).unwrap_or_default()
    }

    /// Returns the value that a number states. To be called when all groups of nodes have their
    /// places in the text. Returns `None` for a checksum, and for a number about a group that was
    /// deleted.
    fn stated(&self, number: &Number) -> Option<u64> {
        match number.meaning {
            Meaning::Offset(of, from) | Meaning::Place(of, from) => self.distance(of, from),
            Meaning::Next { first, last, from } => {
                let mut left = self.labels(first..last.saturating_add(1)).iter();
                let next = left.find_map(|of| self.distance(*of, from));
                Some(next.unwrap_or_default())
            }
            Meaning::NextIndex { first, last, base } => {
                let mut left = self.labels(first..last.saturating_add(1)).iter();
                let next = left.find_map(|of| self.indices.get(of));
                Some(next.map_or(0, |index| index + base))
            }
            Meaning::Present(first, last) => Some(self.labels(first..last).len() as u64),
            Meaning::End { .. } => self.end(number),
            Meaning::Length(of) => self.sizes.get(&of).map(|size| *size as u64),
            Meaning::Index(of) => self.indices.get(&of).copied(),
            Meaning::Count(of) => self.counts.get(&of).copied(),
            Meaning::Check(..) => None,
        }
    }

    /// Compresses the nodes whose content depends on groups of nodes outside of the node. Returns
    /// false if the compressed bytes of a node differ from those that were written for it: all must
    /// then be written again with the new ones, which are in `packs`.
    fn settle_packed(&mut self) -> bool {
        let mut fits = true;
        for (packed, place) in std::mem::take(&mut self.open) {
            let text = std::mem::take(&mut self.text);
            let numbers = std::mem::take(&mut self.numbers);
            self.write(&packed.content);
            for (number, place) in std::mem::replace(&mut self.numbers, numbers) {
                let stated = self.stated(number).map(|stated| {
                    let stated = stated.wrapping_add_signed(number.bias);
                    number.encoding.write(stated)
                });
                if let Some(bytes) = stated.filter(|bytes| bytes.len() == place.len()) {
                    self.text[place].copy_from_slice(&bytes);
                }
            }
            let content = std::mem::replace(&mut self.text, text);
            let bytes = match content[..] == packed.bytes[..] {
                true => packed.packed.to_vec(),
                false => packed.codec.pack(&content),
            };
            if self.text[place] != bytes {
                self.packs.insert(packed.content.label, bytes);
                fits = false;
            }
        }
        fits
    }

    /// Returns the value of a number with the meaning [`Meaning::End`], the index of the first or
    /// last glyph of a range; `None` if all glyphs of the range were deleted. If the glyphs of the
    /// font are not known, the value is the number in the original file, moved by the number of
    /// glyphs that were deleted at that end of the range.
    fn end(&self, number: &Number) -> Option<u64> {
        let Meaning::End {
            first,
            last,
            of,
            is_last,
        } = number.meaning
        else {
            return None;
        };
        let left = self.labels(first..last.saturating_add(1));
        let (left, stated) = match is_last {
            true => (*left.last()?, last),
            false => (*left.first()?, first),
        };
        let known = self.indices.get(&of.wrapping_add(left - first));
        match known.filter(|_| of > 0) {
            Some(index) => Some(*index),
            None => {
                let raw = number.encoding.read_at(&number.raw, 0)?;
                raw.checked_add_signed(i64::from(left) - i64::from(stated))
            }
        }
    }

    /// Returns the distance in bytes from the beginning of the group of nodes `from` to that of the
    /// group `of`; `None` unless both were written into the text, outside of compressed nodes.
    fn distance(&self, of: Label, from: Label) -> Option<u64> {
        match (self.spans.get(&of), self.spans.get(&from)) {
            (Some(Span::Place(of)), Some(Span::Place(from))) => {
                Some((of.start as u64).wrapping_sub(from.start as u64))
            }
            _ => None,
        }
    }

    /// Writes a checksum into its `place` in the text. Returns false if it takes more or fewer bytes
    /// than it was given: all must then be written again with the new size, which is in `widths`.
    fn check(&mut self, number: &Number, place: Range<usize>) -> bool {
        let Meaning::Check(sum, of) = number.meaning else {
            return true;
        };
        let write = |bytes: &[u8]| sum.write(bytes, number.bias, number.encoding);
        let stated = match self.spans.get(&of) {
            Some(Span::Content(bytes)) => write(bytes),
            Some(Span::Place(scope)) => {
                let scope = scope.clone();
                if scope.contains(&place.start) {
                    self.text[place.clone()].fill(sum.blank());
                }
                write(&self.text[scope])
            }
            None => return true,
        };
        if stated.len() == place.len() {
            self.text[place].copy_from_slice(&stated);
        } else if is_elastic(number) {
            let key = (number.encoding, number.meaning, number.bias);
            self.widths.insert(key, stated.len());
            return false;
        }
        true
    }
}

/// Returns the number of padding bytes that bring `size` to a multiple of `align`.
fn padding(size: usize, align: usize) -> usize {
    size.next_multiple_of(align.max(1)) - size
}
