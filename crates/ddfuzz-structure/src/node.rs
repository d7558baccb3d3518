//! The tree of a parsed file: its nodes, and what the numbers in the file, such as lengths and
//! checksums, state about groups of nodes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use crate::number::Encoding;
use crate::packed::Packed;
use crate::runs::Runs;
use crate::sum::Sum;

/// Identifies a group of nodes within the tree of a file. Numbers in the file refer by it to the
/// group whose length, offset or checksum they state.
pub type Label = u32;

/// A map from labels (ids in the file's tree) of groups of nodes to values.
pub type ByLabel<T> = HashMap<Label, T, BuildHasherDefault<LabelHasher>>;

/// A hasher for labels (ids in the file's tree). Labels are successive numbers that a
/// [`Reader`](crate::reader::Reader) gives out, so no file can choose labels with equal hashes; a
/// fast hash is needed because such maps are read for each number of each candidate.
#[derive(Default)]
pub struct LabelHasher(u64);

/// Factor of the hash, which spreads successive labels (ids in the file's tree) over all hash
/// values: 2^64 divided by the golden ratio, made odd.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for LabelHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32((*byte).into()));
    }

    fn write_u32(&mut self, label: u32) {
        self.0 = (self.0 ^ u64::from(label)).wrapping_mul(SPREAD);
    }
}

/// A node of the tree of a file. The bytes of all nodes, in order, are the file.
#[derive(Clone, Debug)]
pub enum Node {
    /// Bytes that searches neither delete by themselves nor change, such as a signature.
    Fixed(Arc<[u8]>),
    /// Bytes that the passes of a search may delete and change.
    Payload(Arc<[u8]>),
    /// A number that states something about a group of nodes, such as its length or checksum; it is
    /// computed anew when the group changes.
    Number(Number),
    /// A byte with bits that state which optional groups of nodes are present in the file.
    Flags {
        /// The bits of the byte of flags that do not state whether a group of nodes is present;
        /// they never change.
        rest: u8,
        /// Bits of the byte of flags, each as a mask with the label (id in the file's tree) of the
        /// group of nodes whose presence the bit states.
        bits: Vec<(u8, Label)>,
    },
    /// Bytes that repeat the bytes of an earlier group of nodes, with this label (id in the file's
    /// tree); they are written anew when that group changes.
    Copy(Label),
    /// Padding: bytes of one value that bring the size of a preceding group of nodes up to a
    /// multiple of `align`.
    Pad {
        /// Label (id in the file's tree) of the preceding group of nodes whose size is padded.
        of: Label,
        /// The size of the preceding group of nodes is padded to a multiple of this number of
        /// bytes.
        align: usize,
        /// Value of each padding byte, mostly 0.
        fill: u8,
    },
    /// The header of a CFF INDEX: the number of items in the group of nodes `of` that follows, the
    /// width of an offset in bytes, and the offsets of all items and of the end of the last one,
    /// counted from 1. If there is no item, the header is only the number.
    Directory {
        /// Label (id in the file's tree) of the group of nodes whose groups are the items of the
        /// index.
        of: Label,
        /// Minimum width, in bytes, of each offset in the header; offsets are wider if the items'
        /// sizes require it.
        width: usize,
    },
    /// Zeros that bring the size of the group of nodes directly around them up to this number of
    /// bytes, such as the free space in the middle of a database page.
    Gap(usize),
    /// Text that states which numbers the rows of a table have, as runs (sequences) of successive
    /// numbers.
    Runs(Runs),
    /// A number in the file that states how many columns a picture has.
    Columns(Columns),
    /// A group of nodes, with a label (id in the file's tree) by which numbers can refer to it.
    Group(Group),
    /// A node whose bytes are compressed in the file, with the tree of its content.
    Packed(Packed),
}

/// What a file says of the width of a picture, so that searches can delete columns: the number of
/// columns, and where the rows are. Each part of a group of nodes is a row; its pixels are in the
/// first group inside of it.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// How the number of columns is encoded in the file.
    pub encoding: Encoding,
    /// The number of columns of the picture.
    pub count: usize,
    /// Size of a pixel in bits.
    pub bits: usize,
    /// Label (id in the file's tree) of the group of nodes whose parts are the rows.
    pub rows: Label,
}

/// Nodes of a file that belong together, such as a chunk: numbers can refer to the group of nodes,
/// and searches can delete it if it is a deletable part.
#[derive(Clone, Debug)]
pub struct Group {
    /// Label that identifies the group of nodes within the tree of its file.
    pub label: Label,
    /// Whether the group of nodes can be deleted: never alone, by itself, or together with another
    /// group.
    pub part: Part,
    /// Identifies the payload (changeable bytes) of which this group of nodes holds a piece, as an
    /// IDAT chunk of PNG does: neighboring groups with the same number can be joined into one. 0 if
    /// the group is not a piece.
    pub piece: u32,
    /// The shortest bytes that may stand in place of the content of the group of nodes in a file of
    /// its format, such as a function body that does nothing; empty if none are known.
    pub least: &'static [u8],
    /// True if the group of nodes is an item of a nested format, such as an element of DER: it may
    /// stand in place of an item that contains it.
    pub is_item: bool,
    /// The nodes of the group, in the order of their bytes in the file.
    pub nodes: Vec<Node>,
}

/// Whether a group of nodes can be deleted: never alone, by itself, or together with another group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The group of nodes is deleted only with a group that contains it.
    No,
    /// The group of nodes is a deletable part: searches can delete it by itself.
    Own,
    /// The group of nodes is deleted whenever the group with this label (id in the file's tree) is
    /// deleted.
    With(Label),
}

/// A number in a file that states something about a group of nodes, such as its length, offset or
/// checksum.
#[derive(Clone, Debug)]
pub struct Number {
    /// How the number is encoded in bytes, such as in four bytes big-endian.
    pub encoding: Encoding,
    /// What the number states, and about which group of nodes: for example its length.
    pub meaning: Meaning,
    /// What is added to the value that `meaning` describes to get the number, such as 4 if a length
    /// counts its own four bytes.
    pub bias: i64,
    /// The bytes by which the number was encoded in the original file.
    pub raw: Arc<[u8]>,
}

/// What a number in a file states, and about which group of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// The size, in bytes, of a group of nodes; if the group is the content of a compressed node,
    /// its size when decompressed.
    Length(Label),
    /// How many groups of nodes inside of the group with this label can be deleted, by themselves
    /// or together with others; those inside of another such group do not count.
    Count(Label),
    /// The distance, in bytes, from the beginning of the group of nodes with the second label to
    /// the beginning of the group with the first label.
    Offset(Label, Label),
    /// The distance, in bytes, from the beginning of the group of nodes with the second label to
    /// that of the group with the first label. If the first group is no larger than the number
    /// itself, its bytes are written in place of the number, padded with zeros (as values of TIFF
    /// entries are).
    Place(Label, Label),
    /// The distance in bytes from the beginning of the group of nodes `from` to the next group of a
    /// chain. The next group is the first one, among the labels (ids in the file's tree) from
    /// `first` to `last`, that was not deleted from the file; the number is 0 if all of them were.
    Next {
        /// Label (id in the file's tree) of the group of nodes that was next in the chain in the
        /// original file.
        first: Label,
        /// Label (id in the file's tree) of the last group of nodes of the chain.
        last: Label,
        /// Label (id in the file's tree) of the group of nodes from which distances count.
        from: Label,
    },
    /// The index ([`Meaning::Index`]) of the next group of nodes of a chain, plus `base`. The next
    /// group is the first one, among the labels (ids in the file's tree) from `first` to `last`,
    /// that was not deleted from the file; the number is 0 if all of them were.
    NextIndex {
        /// Label (id in the file's tree) of the group of nodes that was next in the chain in the
        /// original file.
        first: Label,
        /// Label (id in the file's tree) of the last group of nodes of the chain.
        last: Label,
        /// The number that the file writes for the group of nodes with the index 0; it is added to
        /// each index.
        base: u64,
    },
    /// How many groups of nodes were not deleted from the file, of those whose labels (ids in the
    /// file's tree) are at least the first label of this variant and less than the second one.
    Present(Label, Label),
    /// The index ([`Meaning::Index`]) of the first or the last glyph of a range of glyphs, as a
    /// font states it. Deleted glyphs are left out: the number is the index of the first or last
    /// glyph of the range that was not deleted. Each glyph of the range has a group of nodes with a
    /// label (id in the file's tree) from `first` to `last`, and counts as deleted if that group is
    /// deleted.
    End {
        /// Label (id in the file's tree) of the group of nodes that stands in the range for its
        /// first glyph.
        first: Label,
        /// Label (id in the file's tree) of the group of nodes that stands in the range for its
        /// last glyph.
        last: Label,
        /// Label (id in the file's tree) of the group of nodes of the range's first glyph in the
        /// list of all glyphs of the font; the labels of the other glyphs of the range follow it. 0
        /// if the glyphs of the font are not known.
        of: Label,
        /// True if the number is the index of the last glyph, false if it is that of the first one.
        is_last: bool,
    },
    /// The index of a group of nodes: how many deletable groups, whether by themselves or together
    /// with another group, precede it in the group that contains it.
    Index(Label),
    /// A checksum, by this algorithm, of the bytes of a group of nodes. If the number itself is in
    /// that group, its own bytes count as zeros (in tar as blanks).
    Check(Sum, Label),
}

impl Meaning {
    /// Returns which groups of tree nodes determine the number's value, by their labels (ids in the
    /// file's tree): its two groups; the same group twice if there is only one; the first and the
    /// last group for a range of groups.
    pub fn labels(self) -> [Label; 2] {
        match self {
            Meaning::Length(of)
            | Meaning::Count(of)
            | Meaning::Index(of)
            | Meaning::Check(_, of) => [of, of],
            Meaning::Offset(of, from) | Meaning::Place(of, from) => [of, from],
            Meaning::Next { first, from, .. } => [first, from],
            Meaning::NextIndex { first, last, .. }
            | Meaning::Present(first, last)
            | Meaning::End { first, last, .. } => [first, last],
        }
    }
}

impl Group {
    /// Makes a group of `nodes` with the label `label` (its id in the tree). It is not a part: it
    /// is deleted only together with a group around it.
    pub fn new(label: Label, nodes: Vec<Node>) -> Group {
        Group {
            label,
            part: Part::No,
            piece: 0,
            least: &[],
            is_item: false,
            nodes,
        }
    }

    /// Makes an item of a nested format, such as an element of DER: a group of nodes that may stand
    /// in place of an item that contains it.
    pub fn item(label: Label, nodes: Vec<Node>) -> Group {
        Group {
            is_item: true,
            ..Group::new(label, nodes)
        }
    }

    /// Makes a part, that is a group of `nodes` that searches can delete by itself; `label` is its
    /// id in the tree.
    pub fn part(label: Label, nodes: Vec<Node>) -> Group {
        Group {
            part: Part::Own,
            ..Group::new(label, nodes)
        }
    }
}

impl From<Group> for Node {
    fn from(group: Group) -> Node {
        Node::Group(group)
    }
}

impl Node {
    /// Makes a node of bytes that are neither changed nor deleted by themselves.
    pub fn fixed(bytes: &[u8]) -> Node {
        Node::Fixed(bytes.into())
    }

    /// Makes a node of bytes that searches may delete and change.
    pub fn payload(bytes: &[u8]) -> Node {
        Node::Payload(bytes.into())
    }

    /// Returns the group of nodes inside of this node: the node itself if it is a group, the tree
    /// of its content if it is compressed; `None` for all other nodes.
    pub fn inside(&self) -> Option<&Group> {
        match self {
            Node::Group(inner) => Some(inner),
            Node::Packed(packed) => Some(&packed.content),
            _ => None,
        }
    }
}
