//! Memory graphs (*Why Programs Fail*, A.2.1): the objects of a program state with their values,
//! and the pointers between them.
//!
//! An object is a variable, a heap block or a register that holds a variable. Its leaves are the
//! atomic values in it. The vertices of A.2.1 are the objects and their leaves; its edges are the
//! fields and elements of an object, and the pointers.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::types::{Bits, TypeId};

/// Index of an object in its graph.
pub type ObjectId = usize;

/// Where an object is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// In memory, at this address.
    Memory(u64),
    /// In the register with this DWARF number.
    Register(u16),
}

/// What an object is, as far as two states of one program agree about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// A parameter or local variable.
    Local {
        /// Number of the frame, counted from the outermost one.
        frame: usize,
        /// Identifies the declaration in the debug information.
        variable: u64,
    },
    /// A global or static variable; the number identifies its declaration.
    Global(u64),
    /// Memory that only pointers lead to.
    Block,
    /// A heap block that no typed pointer leads to.
    Raw,
    /// A register, or a word on the stack, that no variable describes.
    Undescribed,
}

/// What a leaf holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// A number, character, enumeration or anything else without pointers.
    Scalar,
    /// A pointer to this type.
    Pointer(TypeId),
    /// Characters or bytes of unknown structure.
    Bytes,
}

/// An atomic value in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Offset in the object, in bytes; of a bit-field, that of its storage unit.
    pub offset: u64,
    /// Size in bytes; of a bit-field, that of its storage unit.
    pub size: u64,
    /// The bits of a bit-field.
    pub bits: Option<Bits>,
    /// What the leaf holds.
    pub kind: LeafKind,
    /// Type of the value; of [`LeafKind::Bytes`], that of one element.
    pub of: TypeId,
    /// Operations that lead from the object to the leaf, such as `.next` or `[3].x`.
    pub path: String,
}

/// An object in a memory graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// What the object is.
    pub origin: Origin,
    /// Where the object is stored.
    pub place: Place,
    /// Type of the object, of the element where it is a block of several.
    pub of: TypeId,
    /// The contents.
    pub bytes: Vec<u8>,
    /// The atomic values, ascending by offset.
    pub leaves: Vec<Leaf>,
    /// Name of a variable; empty for blocks.
    pub name: String,
    /// Function of a local variable; empty for others.
    pub function: String,
    /// For a block, the pointer by which it was reached first: object, leaf, and the offset in
    /// this object to which the pointer points.
    pub reached: Option<(ObjectId, usize, u64)>,
    /// For a variable, a pointer to its beginning in a variable of a more inner frame.
    pub alias: Option<(ObjectId, usize)>,
}

impl Object {
    /// Returns the bytes of a leaf.
    pub fn value(&self, leaf: &Leaf) -> &[u8] {
        let start = (leaf.offset as usize).min(self.bytes.len());
        let end = ((leaf.offset + leaf.size) as usize).min(self.bytes.len());
        &self.bytes[start..end]
    }

    /// Returns the value of a leaf of 8 bytes as an address.
    pub fn address(&self, leaf: &Leaf) -> u64 {
        let mut word = [0; 8];
        let value = self.value(leaf);
        let length = value.len().min(8);
        word[..length].copy_from_slice(&value[..length]);
        u64::from_le_bytes(word)
    }

    /// Returns the pointers in the object with their index among the leaves.
    pub fn pointers(&self) -> impl Iterator<Item = (usize, &Leaf)> {
        let leaves = self.leaves.iter().enumerate();
        leaves.filter(|(_, leaf)| matches!(leaf.kind, LeafKind::Pointer(_)))
    }

    /// Returns true for a local, global or static variable.
    pub fn is_variable(&self) -> bool {
        matches!(self.origin, Origin::Local { .. } | Origin::Global(_))
    }
}

/// A word in which the allocator keeps the size of a heap block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Address of the word: the first one after the block before.
    pub address: u64,
    /// The word.
    pub value: u64,
    /// Whether the word can be the size of a block: false where something has overwritten it.
    pub is_intact: bool,
}

/// A memory graph of one program state.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// All objects. Variables precede blocks; a block follows the object that leads to it.
    pub objects: Vec<Object>,
    by_address: BTreeMap<u64, ObjectId>,
    /// The words in which the allocator keeps the sizes of the heap blocks, ascending.
    pub headers: Vec<Header>,
    /// Whether objects or leaves were left out because there are too many.
    pub is_cut: bool,
}

/// A place in an object: the object and an offset in bytes, at most its size.
pub type Target = (ObjectId, u64);

impl Graph {
    /// Adds an object; one in memory is found by its address from then on.
    pub fn add(&mut self, object: Object) -> ObjectId {
        let id = self.objects.len();
        if let Place::Memory(address) = object.place
            && !object.bytes.is_empty()
        {
            self.by_address.entry(address).or_insert(id);
        }
        self.objects.push(object);
        id
    }

    /// Returns the object that contains the byte at `address`, or ends there, with the offset in
    /// it.
    pub fn resolve(&self, address: u64) -> Option<Target> {
        let (start, id) = self.by_address.range(..=address).next_back()?;
        let offset = address - start;
        (offset <= self.objects[*id].bytes.len() as u64).then_some((*id, offset))
    }

    /// Returns the object that contains the byte at `address`; `None` where none does.
    pub fn containing(&self, address: u64) -> Option<Target> {
        let (id, offset) = self.resolve(address)?;
        (offset < self.objects[id].bytes.len() as u64).then_some((id, offset))
    }

    /// Returns the allocator's word at `address`; `None` where none is.
    pub fn header(&self, address: u64) -> Option<&Header> {
        let found = self.headers.binary_search_by_key(&address, |it| it.address);
        found.ok().map(|index| &self.headers[index])
    }

    /// Returns the start of the first object after `address`; `None` where none follows.
    pub fn next_start(&self, address: u64) -> Option<u64> {
        self.by_address
            .range(address + 1..)
            .next()
            .map(|(start, _)| *start)
    }

    /// Returns the addresses of the atomic value that begins at `address`; of one byte where none
    /// does.
    pub fn extent(&self, address: u64) -> Range<u64> {
        let size = self.containing(address).and_then(|(object, offset)| {
            let mut leaves = self.objects[object].leaves.iter();
            leaves
                .find(|leaf| leaf.offset == offset)
                .map(|leaf| leaf.size)
        });
        address..address + size.unwrap_or(1).max(1)
    }

    /// Replaces the leaves of an object. Pointers that are no leaves any more are parts of some.
    pub fn set_leaves(&mut self, object: ObjectId, leaves: Vec<Leaf>) {
        let before = std::mem::replace(&mut self.objects[object].leaves, leaves);
        let leaves = &self.objects[object].leaves;
        let moved: Vec<usize> = (before.iter())
            .map(|leaf| {
                let behind = leaves.partition_point(|it| it.offset <= leaf.offset);
                behind.saturating_sub(1)
            })
            .collect();
        for other in &mut self.objects {
            if let Some((from, leaf, _)) = &mut other.reached
                && *from == object
            {
                *leaf = moved[*leaf];
            }
            if let Some((from, leaf)) = &mut other.alias
                && *from == object
            {
                *leaf = moved[*leaf];
            }
        }
    }

    /// Returns the number of vertices: objects and atomic values.
    pub fn vertices(&self) -> usize {
        self.objects
            .iter()
            .map(|object| 1 + object.leaves.len())
            .sum()
    }

    /// Returns the object that a pointer leads to; `None` where it leads to none.
    pub fn target(&self, object: ObjectId, leaf: &Leaf) -> Option<Target> {
        self.resolve(self.objects[object].address(leaf))
    }

    /// Returns the name of a place in an object, as C would write it: `list->tail`, `a[2]`. The
    /// name of a block begins with the variable from which the fewest pointers lead to it, of the
    /// innermost frame where there are several.
    pub fn name(&self, object: ObjectId, path: &str) -> String {
        let it = &self.objects[object];
        let alias = it.alias.filter(|_| path.starts_with('.'));
        let alias = alias.map(|(from, leaf)| (from, leaf, 0));
        let Some((from, leaf, offset)) = alias.or(it.reached) else {
            return match it.name.is_empty() {
                true => format!("{}{path}", self.anonymous(object)),
                false => format!("{}{path}", it.name),
            };
        };
        let pointer = self.name(from, &self.objects[from].leaves[leaf].path);
        let pointer = match offset {
            0 => pointer,
            _ => format!("({pointer} - {offset})"),
        };
        match path.as_bytes().first() {
            None => format!("*{pointer}"),
            Some(b'.') => format!("{pointer}->{}", &path[1..]),
            Some(_) => format!("{pointer}{path}"),
        }
    }

    fn anonymous(&self, object: ObjectId) -> String {
        match self.objects[object].place {
            Place::Memory(address) => format!("block at {address:#x} "),
            Place::Register(number) => format!("register {number} "),
        }
    }

    /// Returns the name of a byte of a leaf: that of the leaf, with an index where it holds several
    /// elements of `stride` bytes.
    pub fn name_of(&self, object: ObjectId, leaf: &Leaf, offset: u64) -> String {
        let path = match leaf.kind {
            LeafKind::Bytes if leaf.size > 1 => format!("{}[{}]", leaf.path, offset - leaf.offset),
            _ => leaf.path.clone(),
        };
        self.name(object, &path)
    }

    /// Returns the function in whose frame the name of an object begins; empty for a global one.
    pub fn function(&self, object: ObjectId) -> &str {
        let mut at = object;
        loop {
            let it = &self.objects[at];
            let alias = it.alias.map(|(from, _)| from);
            match alias.or(it.reached.map(|(from, ..)| from)) {
                Some(from) => at = from,
                None => return &it.function,
            }
        }
    }
}
