//! The tree of a file: its nodes, and what the numbers in it state.

use std::sync::Arc;

use crate::number::{Encoding, Sum};
use crate::packed::Packed;

/// Identifies a group of a document; numbers refer to groups by it.
pub type Label = u32;

/// A node of the tree of a file. The bytes of the file are those of its nodes in order.
#[derive(Clone, Debug)]
pub enum Node {
    /// Bytes that stay as they are, such as a signature.
    Fixed(Arc<[u8]>),
    /// Bytes that passes may delete and change.
    Payload(Arc<[u8]>),
    /// A number that states something about a group.
    Number(Number),
    /// A byte whose bits say which groups the file has.
    Flags {
        /// The bits that say something else.
        rest: u8,
        /// Bits, each with the group whose presence it states.
        bits: Vec<(u8, Label)>,
    },
    /// The same bytes as those of another group, which precedes it.
    Copy(Label),
    /// Zero bytes that fill up the size of a group, which precedes them, to a multiple of `align`.
    Pad {
        /// The group that is filled up.
        of: Label,
        /// The size is filled up to a multiple of this number of bytes.
        align: usize,
    },
    /// Nodes that belong together.
    Group(Group),
    /// Compressed nodes.
    Packed(Packed),
}

/// Nodes that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    /// Identifies the group within its document.
    pub label: Label,
    /// Whether the group can be deleted.
    pub part: Part,
    /// Neighboring groups with the same number are pieces of one payload; 0 for none.
    pub piece: u32,
    /// The nodes, in the order of the text.
    pub nodes: Vec<Node>,
}

/// Whether a group can be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The group cannot be deleted, except with a group around it.
    No,
    /// The group can be deleted.
    Own,
    /// The group is deleted together with the group of this label.
    With(Label),
}

/// A number that states something about a group.
#[derive(Clone, Debug)]
pub struct Number {
    /// How the number is written.
    pub encoding: Encoding,
    /// What the number states.
    pub meaning: Meaning,
    /// The number is this much greater than what it states.
    pub bias: i64,
    /// The bytes of the number in the file that was opened.
    pub raw: Arc<[u8]>,
}

/// What a number states about a group of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The size of the group in bytes; decompressed if the group is the content of a compressed one.
    Length(Label),
    /// The number of the parts in the group that are not inside of another part.
    Count(Label),
    /// The position of the first group after the beginning of the second, in bytes.
    Offset(Label, Label),
    /// The number of parts before the group among those of the group around it.
    Index(Label),
    /// A checksum of the group; the number itself counts as zeros if the group contains it.
    Check(Sum, Label),
}

impl Meaning {
    /// Returns the labels of the groups that the number depends on; if it depends on one group
    /// only, its label twice.
    pub fn labels(self) -> [Label; 2] {
        match self {
            Meaning::Length(of)
            | Meaning::Count(of)
            | Meaning::Index(of)
            | Meaning::Check(_, of) => [of, of],
            Meaning::Offset(of, from) => [of, from],
        }
    }
}

impl Group {
    /// Makes a group that cannot be deleted by itself.
    pub fn new(label: Label, nodes: Vec<Node>) -> Group {
        Group {
            label,
            part: Part::No,
            piece: 0,
            nodes,
        }
    }

    /// Makes a group that can be deleted.
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
    /// Makes bytes that stay as they are.
    pub fn fixed(bytes: &[u8]) -> Node {
        Node::Fixed(bytes.into())
    }

    /// Makes bytes that may be deleted and changed.
    pub fn payload(bytes: &[u8]) -> Node {
        Node::Payload(bytes.into())
    }
}
