//! The tree of a file that was taken apart: its nodes, and what the numbers in the file, such as
//! lengths and checksums, state about groups of nodes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use crate::number::{Encoding, Sum};
use crate::packed::Packed;
use crate::runs::Runs;

/// Identifies a group within the tree of a file. Numbers in the file refer by it to the group whose
/// length, offset or checksum they state.
pub type Label = u32;

/// Values by label.
pub type ByLabel<T> = HashMap<Label, T, BuildHasherDefault<LabelHasher>>;

/// Hasher of labels, which a [`Reader`](crate::reader::Reader) gives out one after the other, so
/// that no file can choose labels with equal hashes. A map of them is read for each number of each
/// candidate.
#[derive(Default)]
pub struct LabelHasher(u64);

/// Odd number whose multiples of successive labels are far apart: 2^64 by the golden ratio.
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
    /// A number that states something about a group, such as its length or checksum; it is computed
    /// anew when the group changes.
    Number(Number),
    /// A byte with bits that state which optional groups are present in the file.
    Flags {
        /// The other bits of the byte of flags, which do not state whether a group is present and
        /// never change.
        rest: u8,
        /// Bits of the byte of flags, each as a mask with the label of the group whose presence the
        /// bit states.
        bits: Vec<(u8, Label)>,
    },
    /// A place of the file that repeats the bytes of an earlier group, the one with this label. It
    /// is written anew from that group.
    Copy(Label),
    /// Bytes, all the same, that fill up the size of a preceding group to a multiple of some number
    /// of bytes (`align`).
    Pad {
        /// Label of the preceding group whose size is filled up.
        of: Label,
        /// The size of the preceding group is filled up to a multiple of this number of bytes.
        align: usize,
        /// Value of the bytes that fill up the size: mostly 0.
        fill: u8,
    },
    /// The head of an INDEX of CFF: how many groups are in the following group with the label `of`,
    /// the width of an offset in bytes, and the offsets of all these groups and of the end of the
    /// last one, from 1. Only the count is written if there is no group.
    Directory {
        /// Label of the group whose groups are the items of the index.
        of: Label,
        /// Least width of an offset, in bytes; it is wider if the items are larger.
        width: usize,
    },
    /// Zeros that fill up the group directly around them to this size in bytes, as the free space in
    /// the middle of a page of a database.
    Gap(usize),
    /// Which numbers the rows of a table have.
    Runs(Runs),
    /// The number of columns of a picture.
    Columns(Columns),
    /// A group of nodes, with a label by which numbers can refer to it.
    Group(Group),
    /// A node whose bytes are compressed in the file, with the tree of its content.
    Packed(Packed),
}

/// The number of columns of a picture, whose rows are parts of one group, each with its pixels in the
/// first group inside of it.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// How the number is encoded.
    pub encoding: Encoding,
    /// The number.
    pub count: usize,
    /// Number of bits of a pixel.
    pub bits: usize,
    /// Label of the group whose parts are the rows.
    pub rows: Label,
}

/// Nodes of a file that belong together, such as a chunk: numbers can refer to the group, and
/// searches can delete it if it is a part.
#[derive(Clone, Debug)]
pub struct Group {
    /// Label that identifies the group within the tree of its file.
    pub label: Label,
    /// Whether the group can be deleted: never alone, by itself, or together with another group.
    pub part: Part,
    /// Number of the payload that this group is a piece of, as an IDAT chunk of PNG is: neighboring
    /// groups with the same number can be joined. 0 if the group is no piece.
    pub piece: u32,
    /// The least bytes that may stand in place of the group in a file of its format, such as the body
    /// of a function that does nothing; empty if they are not known.
    pub least: &'static [u8],
    /// Whether the group is an item that may stand wherever an item around it does, as in DER.
    pub is_item: bool,
    /// The nodes of the group, in the order of their bytes in the file.
    pub nodes: Vec<Node>,
}

/// Whether a group can be deleted: never alone, by itself, or together with another group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The group is deleted only with a group that contains it.
    No,
    /// The group is a part: searches can delete it by itself.
    Own,
    /// The group is deleted when the group with this label is deleted.
    With(Label),
}

/// A number in a file that states something about a group, such as its length, offset or checksum.
#[derive(Clone, Debug)]
pub struct Number {
    /// How the number is encoded in bytes, such as in four bytes big-endian.
    pub encoding: Encoding,
    /// What the number states, and about which group: for example its length.
    pub meaning: Meaning,
    /// What is added to the value that `meaning` describes to get the number, such as 4 if a length
    /// counts its own four bytes.
    pub bias: i64,
    /// The bytes by which the number was encoded in the original file.
    pub raw: Arc<[u8]>,
}

/// What a number in a file states, and about which group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// The size of the group in bytes; if the group is the content of a compressed node, its size
    /// when decompressed.
    Length(Label),
    /// The number of parts (groups that can be deleted) in the group, not counting those inside of
    /// other parts.
    Count(Label),
    /// The distance in bytes from the beginning of the second group to that of the first.
    Offset(Label, Label),
    /// The same distance, in place of which the bytes of the first group stand, filled up with
    /// zeros, where they take no more space than the number (values of TIFF).
    Place(Label, Label),
    /// The distance from the beginning of the group `from` to the first group in the file that has
    /// one of the labels from `first` to `last`, which are those of a chain of groups in which each
    /// states where the next one is; 0 if none is left.
    Next {
        /// Label of the next group of the chain.
        first: Label,
        /// Label of the last group of the chain.
        last: Label,
        /// Label of the group from which distances count.
        from: Label,
    },
    /// The number of the first group in the file that has one of the labels from `first` to `last`,
    /// which are those of a chain: the sum of its [index](Meaning::Index) and `base`; 0 if none is left.
    NextIndex {
        /// Label of the next group of the chain.
        first: Label,
        /// Label of the last group of the chain.
        last: Label,
        /// Number of the group at index 0.
        base: u64,
    },
    /// How many groups with the labels from the first one to the second one are in the file, without
    /// that of the second one.
    Present(Label, Label),
    /// The end of a range of glyphs, of which each has a group with the label `first` and those after
    /// it, up to `last`: the index ([`Meaning::Index`]) of the glyph of the first one in the file, or of
    /// the last one.
    End {
        /// Label of the group of the first glyph of the range.
        first: Label,
        /// Label of the group of the last glyph of the range.
        last: Label,
        /// Label of the first glyph of the range itself; the others follow. 0 if the glyphs are not
        /// known.
        of: Label,
        /// Whether it is the last glyph of the range, else the first one.
        is_last: bool,
    },
    /// The index of the group within the group that contains it: the number of parts (groups that
    /// can be deleted) before it there.
    Index(Label),
    /// A checksum, by this algorithm, of the bytes of the group. If the number is in the group
    /// itself, its own bytes count as zeros (in tar as blanks).
    Check(Sum, Label),
}

impl Meaning {
    /// Returns the labels of the groups on which the number's value depends; both are the same
    /// label if it depends on one group only.
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
    /// Makes a group that is not a part: it is deleted only with a group that contains it.
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

    /// Makes an item, which may stand wherever an item around it does.
    pub fn item(label: Label, nodes: Vec<Node>) -> Group {
        Group {
            is_item: true,
            ..Group::new(label, nodes)
        }
    }

    /// Makes a part: a group that searches can delete by itself.
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

    /// Returns the group that the node is, or the tree of its content if it is compressed; `None` for
    /// all other nodes.
    pub fn inside(&self) -> Option<&Group> {
        match self {
            Node::Group(inner) => Some(inner),
            Node::Packed(packed) => Some(&packed.content),
            _ => None,
        }
    }
}
