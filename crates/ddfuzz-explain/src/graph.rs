//! Memory graphs (*Why Programs Fail*, A.2.1): the objects of a program state with their values,
//! and the pointers between them.
//!
//! An object is a variable, a heap block or a register that holds a variable. Its leaves are the
//! atomic values in it. The vertices of A.2.1 are the objects and their leaves; its edges are the
//! fields and elements of an object, and the pointers.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::types::{Bits, TypeId};

/// Index of an object among the objects of its memory graph.
pub type ObjectId = usize;

/// Where an object is stored: in memory, or in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The object is in memory, at this address.
    Memory(u64),
    /// The object is in the register with this DWARF number.
    Register(u16),
}

/// What an object in memory is, described so that the same object is found in other states of the
/// program: a variable by its declaration and stack frame, not by its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The object is a parameter or local variable.
    Local {
        /// Number of the variable's stack frame, counted from the outermost frame.
        frame: usize,
        /// Identifies the variable's declaration in the debug information.
        variable: u64,
    },
    /// The object is a global or static variable; the number identifies its declaration.
    Global(u64),
    /// The object is a block of memory that is not a variable: only pointers lead to it.
    Block,
    /// The object is a heap block to which no typed pointer leads.
    Raw,
    /// The object is a register, or a word on the stack, that no variable describes.
    Undescribed,
}

/// The kind of an atomic value (leaf) in an object: a number or the like, a pointer, or bytes
/// without known structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// A number, character, enumeration or anything else without pointers.
    Scalar,
    /// The value is a pointer to this type.
    Pointer(TypeId),
    /// Characters or bytes of unknown structure.
    Bytes,
}

/// An atomic value in an object: a number, a pointer, or a sequence of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Offset of the value in the object, in bytes; for a bit-field, offset of its storage unit.
    pub offset: u64,
    /// Size of the value in bytes; for a bit-field, size of its storage unit.
    pub size: u64,
    /// The bits that a bit-field takes of its storage unit; `None` for other values.
    pub bits: Option<Bits>,
    /// Whether the value is a number, a pointer or a sequence of bytes.
    pub kind: LeafKind,
    /// Type of the value; for [`LeafKind::Bytes`], type of one element.
    pub of: TypeId,
    /// Access path from the object to the value, such as `.next` or `[3].x`.
    pub path: String,
}

/// An object in a memory graph: a variable, a block of memory, or a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// What the object is: which variable, a block of memory, or an undescribed word.
    pub origin: Origin,
    /// Where the object is stored.
    pub place: Place,
    /// Type of the object; `void` for bytes of unknown structure.
    pub of: TypeId,
    /// Content of the object.
    pub bytes: Vec<u8>,
    /// The atomic values in the object, ascending by offset.
    pub leaves: Vec<Leaf>,
    /// Name of the variable, register, or block that no pointer leads to; empty for blocks that
    /// pointers lead to.
    pub name: String,
    /// Function of a local variable; empty for other objects.
    pub function: String,
    /// For a block, the pointer by which it was reached first: the object that holds the pointer,
    /// the pointer's index among that object's leaves, and the offset in the block to which it
    /// points.
    pub reached: Option<(ObjectId, usize, u64)>,
    /// For a variable, a pointer to its beginning from a variable of a more inner frame: the object
    /// that holds the pointer, and the pointer's index among that object's leaves; `None` if there
    /// is none.
    pub alias: Option<(ObjectId, usize)>,
}

impl Object {
    /// Returns the bytes of one of the object's atomic values (leaves).
    pub fn value(&self, leaf: &Leaf) -> &[u8] {
        let start = (leaf.offset as usize).min(self.bytes.len());
        let end = (leaf.offset.saturating_add(leaf.size) as usize).min(self.bytes.len());
        &self.bytes[start..end]
    }

    /// Returns the value of `leaf`, one of the object's atomic values, as an address: its first 8
    /// bytes, little-endian.
    pub fn address(&self, leaf: &Leaf) -> u64 {
        let mut word = [0; 8];
        let value = self.value(leaf);
        let length = value.len().min(8);
        word[..length].copy_from_slice(&value[..length]);
        u64::from_le_bytes(word)
    }

    /// Returns the pointers in the object, each with its index among the atomic values (leaves).
    pub fn pointers(&self) -> impl Iterator<Item = (usize, &Leaf)> {
        let leaves = self.leaves.iter().enumerate();
        leaves.filter(|(_, leaf)| matches!(leaf.kind, LeafKind::Pointer(_)))
    }

    /// Returns the pointer by which the place `path` in the object is named: the object that holds
    /// the pointer, the pointer's index among that object's leaves, and the offset to which it
    /// points. `None` if the place is named by the object itself.
    fn named_by(&self, path: &str) -> Option<(ObjectId, usize, u64)> {
        let alias = self.alias.filter(|_| path.starts_with('.'));
        let alias = alias.map(|(from, leaf)| (from, leaf, 0));
        alias.or(self.reached)
    }

    /// Returns true if the object is a local, global or static variable.
    pub fn is_variable(&self) -> bool {
        matches!(self.origin, Origin::Local { .. } | Origin::Global(_))
    }
}

/// A word in which the heap allocator keeps the size of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Address of the word, which directly follows the block in front of the block whose size it
    /// has.
    pub address: u64,
    /// Content of the word: the size, with the allocator's flags in the lowest bits.
    pub value: u64,
    /// Whether the word can be the size of a block: false where something has overwritten it.
    pub is_intact: bool,
}

/// The memory graph of one program state: its objects, and the pointers between them.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// All objects. Variables precede blocks; a block follows the object whose pointer leads to it.
    pub objects: Vec<Object>,
    by_address: BTreeMap<u64, ObjectId>,
    /// The words in which the heap allocator keeps the sizes of its blocks, ascending by address.
    pub headers: Vec<Header>,
    /// Whether objects or leaves (atomic values) were left out because there are too many.
    pub is_cut: bool,
}

/// A place to which a pointer leads: an object, and an offset in the object in bytes, at most the
/// object's size.
pub type Target = (ObjectId, u64);

impl Graph {
    /// Adds an object to the graph and returns its index. An object in memory can then be found by
    /// its address.
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

    /// Returns the object that contains the byte at `address`, or that ends right before it, with
    /// the offset of `address` in the object, in bytes. `None` if there is no such object.
    pub fn resolve(&self, address: u64) -> Option<Target> {
        let (start, id) = self.by_address.range(..=address).next_back()?;
        let offset = address - start;
        (offset <= self.objects[*id].bytes.len() as u64).then_some((*id, offset))
    }

    /// Returns the object that contains the byte at `address`, with the offset of the byte in the
    /// object; `None` if no object contains it.
    pub fn containing(&self, address: u64) -> Option<Target> {
        let (id, offset) = self.resolve(address)?;
        (offset < self.objects[id].bytes.len() as u64).then_some((id, offset))
    }

    /// Returns the heap allocator's size word that is stored at `address`; `None` if none is stored
    /// there.
    pub fn header(&self, address: u64) -> Option<&Header> {
        let found = self.headers.binary_search_by_key(&address, |it| it.address);
        found.ok().map(|index| &self.headers[index])
    }

    /// Returns the address of the first object that begins after `address`; `None` if there is
    /// none.
    pub fn next_start(&self, address: u64) -> Option<u64> {
        self.by_address
            .range(address + 1..)
            .next()
            .map(|(start, _)| *start)
    }

    /// Returns the range of addresses of the atomic value that begins at `address`, or only the
    /// byte at `address` if no value begins there.
    pub fn extent(&self, address: u64) -> Range<u64> {
        let size = self.containing(address).and_then(|(object, offset)| {
            let mut leaves = self.objects[object].leaves.iter();
            leaves
                .find(|leaf| leaf.offset == offset)
                .map(|leaf| leaf.size)
        });
        address..address + size.unwrap_or(1).max(1)
    }

    /// Replaces the atomic values (leaves) of an object. Recorded pointers whose leaf is removed
    /// are redirected to the new leaf that covers its place.
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

    /// Returns the size of the memory graph in vertices: the number of objects plus the number of
    /// their atomic values, so that a variable of a basic type counts as two.
    pub fn vertices(&self) -> usize {
        self.objects
            .iter()
            .map(|object| 1 + object.leaves.len())
            .sum()
    }

    /// Returns the object to which a pointer (the leaf `leaf` of `object`) leads, with the offset
    /// in that object, in bytes; `None` if it leads to no object.
    pub fn target(&self, object: ObjectId, leaf: &Leaf) -> Option<Target> {
        self.resolve(self.objects[object].address(leaf))
    }

    /// Returns the name of a place in an object, as C would write it: `list->tail`, `a[2]`. The
    /// name of a block begins with the variable from which the fewest pointers lead to the block;
    /// if there are several, with the one of the innermost frame.
    pub fn name(&self, object: ObjectId, path: &str) -> String {
        let it = &self.objects[object];
        let Some((from, leaf, offset)) = it.named_by(path) else {
            return match it.name.is_empty() {
                true => format!("{}{path}", self.anonymous(object)),
                false => format!("{}{path}", it.name),
            };
        };
        let pointer = self.name(from, &self.objects[from].leaves[leaf].path);
        if let Some((index, rest)) = self.element_behind(object, offset, path) {
            return match (index, rest.strip_prefix('.')) {
                (0, Some(field)) => format!("{pointer}->{field}"),
                (0, None) if rest.is_empty() => format!("*{pointer}"),
                _ => format!("{pointer}[{index}]{rest}"),
            };
        }
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

    /// Takes the index of an element off `path`, the path of a place in `object`, an array into
    /// which a pointer leads `offset` bytes behind the beginning. Returns the index counted from the
    /// element to which the pointer leads, and the rest of the path. `None` if the pointer leads to
    /// the beginning or into the middle of an element, or if the path begins with no index.
    fn element_behind<'a>(
        &self,
        object: ObjectId,
        offset: u64,
        path: &'a str,
    ) -> Option<(i64, &'a str)> {
        let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
        let leaves = &self.objects[object].leaves;
        let first = |index: &str| leaves.iter().find(|it| it.path.starts_with(index));
        let size = match leaves.first()? {
            leaf if leaf.path.is_empty() && leaf.kind == LeafKind::Bytes => 1,
            _ => first("[1]")?.offset.checked_sub(first("[0]")?.offset)?,
        };
        let is_element = offset > 0 && offset.checked_rem(size)? == 0;
        let index = index.parse::<i64>().ok()? - (offset / size) as i64;
        is_element.then_some((index, rest))
    }

    fn anonymous(&self, object: ObjectId) -> String {
        match self.objects[object].place {
            Place::Memory(address) => format!("block at {address:#x} "),
            Place::Register(number) => format!("register {number} "),
        }
    }

    /// Returns the name of the byte at `offset` of an object, which is in its atomic value `leaf`:
    /// the name of this leaf, with an index if it is a sequence of several bytes.
    pub fn name_of(&self, object: ObjectId, leaf: &Leaf, offset: u64) -> String {
        let path = match leaf.kind {
            LeafKind::Bytes if leaf.size > 1 => format!("{}[{}]", leaf.path, offset - leaf.offset),
            _ => leaf.path.clone(),
        };
        self.name(object, &path)
    }

    /// Returns the function of the local variable with which the name of the place `path` in
    /// `object` begins, such as `list` in `list->tail`; empty if the variable is global.
    pub fn function(&self, object: ObjectId, path: &str) -> &str {
        let it = &self.objects[object];
        match it.named_by(path) {
            Some((from, leaf, _)) => self.function(from, &self.objects[from].leaves[leaf].path),
            None => &it.function,
        }
    }
}
