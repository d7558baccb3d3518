//! Unfolds a memory graph from a program state (*Why Programs Fail*, A.2.2 and A.2.7).

mod raw;
mod whole_objects;

pub use raw::LIBRARY_BUFFER;

use std::collections::VecDeque;

use ddfuzz_triage::memory::Memory;

use crate::graph::{Graph, Header, Leaf, LeafKind, Object, ObjectId, Origin, Place};
use crate::types::{Shape, TypeId, Types, integer};

/// A variable from which a memory graph is unfolded.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Which variable it is: its declaration, and the frame of a local one.
    pub origin: Origin,
    /// Name of the variable in the source.
    pub name: String,
    /// Function of a local variable; empty for others.
    pub function: String,
    /// Where the variable is stored.
    pub place: Place,
    /// Type of the variable.
    pub of: TypeId,
}

/// A range of addresses that a pointer may point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First address of the range.
    pub start: u64,
    /// Address after the last byte.
    pub end: u64,
    /// Whether the whole range is one object, such as a heap block. A pointer to a structure at its
    /// beginning then leads to an array of as many such structures as the range holds.
    pub is_block: bool,
}

/// A program state from which a memory graph is unfolded: its memory, registers, and valid objects.
pub trait State: Memory {
    /// Returns the valid memory around `address` outside of variables: a live heap block, or a data
    /// segment. `None` for an invalid pointer, such as one to a freed block or to read-only memory.
    fn area(&self, address: u64) -> Option<Area>;

    /// Returns the address ranges of all live heap blocks, ascending.
    fn blocks(&self) -> Vec<Area>;

    /// Returns the memory that the program has mapped for itself, such as heaps of its own,
    /// ascending by address.
    fn mapped(&self) -> Vec<Area> {
        Vec::new()
    }

    /// Returns the words in front of heap blocks that hold the allocator's record of their sizes,
    /// ascending by address. Empty by default.
    fn headers(&self) -> Vec<Header> {
        Vec::new()
    }

    /// Returns the data segments of libraries. Memory to which only pointers in them lead belongs
    /// to a library and not to the program. Empty by default.
    fn library_data(&self) -> Vec<Area> {
        Vec::new()
    }

    /// Returns the address and the class of the whole C++ object that has a part with a vtable
    /// pointer at `address`; `None` where the pointer leads to no known vtable.
    fn whole_object(&mut self, _address: u64) -> Option<(u64, TypeId)> {
        None
    }

    /// Returns the value of the register with the DWARF number `number`; `None` if it holds no
    /// variable.
    fn register(&self, number: u16) -> Option<u64>;

    /// Returns places (registers and words of memory) that may matter although no variable
    /// describes them, each with a name for it. The caller leaves out those that overlap a
    /// variable. By default there are none.
    fn undescribed(&self) -> Vec<(Place, String)> {
        Vec::new()
    }
}

/// Largest number of atomic values (leaves) of one memory graph.
const MOST_LEAVES: usize = 1 << 17;
/// Largest number of types that are looked at for one memory graph. It is a limit of its own
/// because records and unions without values, and nested unions, may have far more types than
/// values.
const MOST_VISITS: usize = 4 * MOST_LEAVES;
/// Largest depth of records, unions and arrays within each other; only broken debug information
/// describes deeper ones.
const DEEPEST: usize = 64;
/// Largest number of bytes that are read of an object, from its beginning.
const LARGEST: u64 = 4 << 20;
/// Largest number of bytes of all objects of one memory graph; objects after that are left out.
const MOST_BYTES: usize = 64 << 20;
/// Size in bytes of the longest text that becomes one object, and of the largest object for mapped
/// memory to which no pointer leads.
const PAGE: u64 = 4096;

/// Builds the memory graph of `state` by following the pointers from `variables`. The variables are
/// in the order in which their names are preferred: those of the innermost frame first.
pub fn unfold(types: &mut Types, variables: &[Variable], state: &mut dyn State) -> Graph {
    let mut unfolding = Unfolding {
        types,
        mapped: state.mapped(),
        state,
        graph: Graph::default(),
        size: 0,
        leaves: 0,
        visits: 0,
        depth: 0,
        later: Default::default(),
    };
    for variable in variables {
        unfolding.variable(variable);
    }
    unfolding.follow();
    unfolding.aliases();
    unfolding.raw_blocks();
    unfolding.gaps();
    unfolding.undescribed();
    unfolding.graph.headers = unfolding.state.headers();
    unfolding.graph
}

struct Unfolding<'a> {
    types: &'a mut Types,
    state: &'a mut dyn State,
    mapped: Vec<Area>,
    graph: Graph,
    /// Number of bytes that were read for objects so far.
    size: usize,
    leaves: usize,
    /// Number of types that were looked at so far to build the graph.
    visits: usize,
    /// Number of records, unions and arrays that enclose the one whose values are being collected.
    depth: usize,
    /// Pointers that are still to be followed (object, leaf, type of the target), in three queues:
    /// those that say more about their target are followed first.
    later: [VecDeque<(ObjectId, usize, TypeId)>; 3],
}

impl Unfolding<'_> {
    fn variable(&mut self, variable: &Variable) {
        let size = self.types.get(variable.of).size.min(LARGEST);
        let bytes = match variable.place {
            Place::Memory(address) => {
                if self.is_known(address, variable) {
                    return;
                }
                self.read(address, size)
            }
            Place::Register(number) => match self.state.register(number) {
                Some(value) => value.to_le_bytes()[..size.min(8) as usize].to_vec(),
                None => return,
            },
        };
        if bytes.is_empty() || bytes.len() as u64 != size {
            return;
        }
        let leaves = self.leaves_of(variable.of, &bytes);
        self.graph.add(Object {
            origin: variable.origin,
            place: variable.place,
            of: variable.of,
            bytes,
            leaves,
            name: variable.name.clone(),
            function: variable.function.clone(),
            reached: None,
            alias: None,
        });
    }

    /// Returns up to `size` bytes of the object at `address`: those that can be read. If the graph
    /// would have more than [`MOST_BYTES`] bytes with them, returns none, and marks the graph as
    /// incomplete.
    fn read(&mut self, address: u64, size: u64) -> Vec<u8> {
        let size = size as usize;
        if size > MOST_BYTES - self.size {
            self.graph.is_cut = true;
            return Vec::new();
        }
        let bytes = self.state.bytes(address, size);
        self.size += bytes.len();
        bytes
    }

    /// Returns true if the graph already has an object for `variable`, whose address is `address`:
    /// the object there has the same place or the same name, as when a variable is described twice,
    /// in a declaration and in its definition.
    fn is_known(&self, address: u64, variable: &Variable) -> bool {
        let known = self.graph.containing(address);
        let same = |(id, _): (ObjectId, u64)| {
            let known = &self.graph.objects[id];
            known.name == variable.name || known.place == variable.place
        };
        known.is_some_and(same)
    }

    /// Follows all pointers, and adds the objects to which they lead: first pointers to records,
    /// then to other types, then to characters at the beginning of a block, and last to characters
    /// in the middle of one. So a `char *` never claims a block to which a typed pointer leads.
    fn follow(&mut self) {
        let mut at = 0;
        loop {
            if at < self.graph.objects.len() {
                let pointers: Vec<(usize, TypeId)> = (self.graph.objects[at].pointers())
                    .filter_map(|(index, leaf)| match leaf.kind {
                        LeafKind::Pointer(to) => Some((index, to)),
                        _ => None,
                    })
                    .collect();
                for (index, to) in pointers {
                    match &self.types.get(to).shape {
                        Shape::Record(_) | Shape::Union(_) => self.claim(at, index, to),
                        _ if self.types.is_untyped(to) => {
                            let is_start = self.leads_to_start(at, index);
                            let turn = if is_start { 1 } else { 2 };
                            self.later[turn].push_back((at, index, Types::BYTE));
                        }
                        _ => self.later[0].push_back((at, index, to)),
                    }
                }
                at += 1;
                continue;
            }
            let next = self.later.iter_mut().find_map(VecDeque::pop_front);
            let Some((object, index, to)) = next else {
                return;
            };
            self.claim(object, index, to);
        }
    }

    fn leads_to_start(&self, object: ObjectId, leaf: usize) -> bool {
        let object = &self.graph.objects[object];
        let address = object.address(&object.leaves[leaf]);
        self.state
            .area(address)
            .is_some_and(|area| area.start == address)
    }

    /// Follows a pointer: the leaf (atomic value) `leaf` of the object `from`, whose type says that
    /// it leads to the type `to`. Adds the object that it leads to to the memory graph. Does
    /// nothing if the graph already has that object, or if the pointer is invalid.
    fn claim(&mut self, from: ObjectId, leaf: usize, to: TypeId) {
        let object = &self.graph.objects[from];
        let pointer = object.address(&object.leaves[leaf]);
        if self.graph.containing(pointer).is_some() {
            return;
        }
        let Some(area) = self.state.area(pointer) else {
            return;
        };
        let (address, to) = self.whole_object(pointer, to, area);
        let size = self.types.get(to).size.max(1);
        let (start, end, of) = match area.is_block {
            true => {
                let count = (area.end - area.start) / size;
                // What a pointer to a base class leads to may be larger, and begin before it.
                let is_exact = !self.types.is_polymorphic(to) || self.is_of_one_class(area, size);
                // A pointer into the middle of an array, or a block that is no such array.
                let whole = (address - area.start).is_multiple_of(size)
                    && count > 0
                    && (is_exact || address == area.start);
                // An allocator rounds sizes up to 16 bytes; a longer rest is something else.
                let is_array =
                    is_exact && count > 1 && (area.end - area.start) % size < 16.min(size);
                match (whole, is_array) {
                    (true, false) => (area.start, area.end, to),
                    (true, _) => (area.start, area.end, self.types.array(to, count)),
                    (false, _) => (area.start, area.end, Types::VOID),
                }
            }
            false => match self.text(address, to) {
                Some(length) => (address, address + length, self.types.array(to, length)),
                None => (address, area.end.min(address.saturating_add(size)), to),
            },
        };
        let end = self
            .graph
            .next_start(start)
            .map_or(end, |next| next.min(end));
        let bytes = self.read(start, (end - start).min(LARGEST));
        if bytes.is_empty() {
            return;
        }
        let leaves = self.leaves_of(of, &bytes);
        self.graph.add(Object {
            origin: Origin::Block,
            place: Place::Memory(start),
            of,
            bytes,
            leaves,
            name: String::new(),
            function: String::new(),
            reached: Some((from, leaf, pointer - start)),
            alias: None,
        });
    }

    /// Returns the size in bytes of the text at `address`, with its final zero; `None` if it is not
    /// in memory that the program has mapped itself, if `of` is not the type of a byte, or if no
    /// zero follows within 4096 bytes. Only the zero says where an object in such memory ends.
    fn text(&mut self, address: u64, of: TypeId) -> Option<u64> {
        let contains = |area: &&Area| (area.start..area.end).contains(&address);
        let area = self
            .mapped
            .iter()
            .find(contains)
            .filter(|_| of == Types::BYTE)?;
        let most = (area.end - address).min(PAGE);
        let bytes = self.state.bytes(address, most as usize);
        let length = bytes.iter().position(|byte| *byte == 0)?;
        Some(length as u64 + 1)
    }

    /// Records for each variable, where there is one, a pointer to it from a variable of an inner
    /// frame, by which the variable can also be named.
    fn aliases(&mut self) {
        let frame = |object: &Object| match object.origin {
            Origin::Local { frame, .. } => Some(frame),
            Origin::Global(_) => Some(0),
            _ => None,
        };
        let mut found = Vec::new();
        for (from, object) in self.graph.objects.iter().enumerate() {
            let Some(inner) = frame(object) else {
                continue;
            };
            for (leaf, pointer) in object.pointers() {
                let Some((to, 0)) = self.graph.target(from, pointer) else {
                    continue;
                };
                let target = &self.graph.objects[to];
                let is_record = pointer.kind == LeafKind::Pointer(target.of);
                if is_record && frame(target).is_some_and(|outer| outer < inner) {
                    found.push((to, from, leaf));
                }
            }
        }
        for (to, from, leaf) in found {
            self.graph.objects[to].alias.get_or_insert((from, leaf));
        }
    }

    /// Adds to the memory graph the registers and words on the stack that no variable describes.
    fn undescribed(&mut self) {
        let taken: Vec<Place> = self
            .graph
            .objects
            .iter()
            .map(|object| object.place)
            .collect();
        for (place, name) in self.state.undescribed() {
            let bytes = match place {
                Place::Register(number) if !taken.contains(&place) => self
                    .state
                    .register(number)
                    .map(|value| value.to_le_bytes().to_vec()),
                Place::Memory(address) if !self.overlaps(address) => {
                    Some(self.state.bytes(address, 8))
                }
                _ => None,
            };
            let Some(bytes) = bytes.filter(|bytes| bytes.len() == 8) else {
                continue;
            };
            let leaf = Leaf {
                offset: 0,
                size: 8,
                bits: None,
                kind: LeafKind::Scalar,
                of: Types::WORD,
                path: String::new(),
            };
            self.graph.add(Object {
                origin: Origin::Undescribed,
                place,
                of: Types::WORD,
                bytes,
                leaves: vec![leaf],
                name,
                function: String::new(),
                reached: None,
                alias: None,
            });
        }
    }

    /// Returns true if an object of the graph has any of the 8 bytes at `address`.
    fn overlaps(&self, address: u64) -> bool {
        let behind = self
            .graph
            .next_start(address)
            .is_some_and(|next| next < address + 8);
        behind || self.graph.containing(address).is_some()
    }

    fn leaves_of(&mut self, of: TypeId, bytes: &[u8]) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        let length = bytes.len() as u64;
        self.collect(of, 0, "", bytes, &mut leaves);
        // Damaged debug information may give any offset and size.
        let ends_inside = |leaf: &Leaf| {
            let end = leaf.offset.checked_add(leaf.size);
            end.is_some_and(|end| end <= length)
        };
        leaves.retain(|leaf| ends_inside(leaf) && leaf.size > 0);
        // What the type does not cover: a flexible array member, the rest of a block.
        let end = leaves.iter().map(|leaf| leaf.offset + leaf.size).max();
        let end = end.unwrap_or(0).max(self.types.get(of).size.min(length));
        if end < length {
            let path = if end == 0 {
                String::new()
            } else {
                format!("{{{end}…}}")
            };
            leaves.push(raw_leaf(end, length - end, path));
        }
        leaves.sort_by_key(|leaf| leaf.offset);
        self.leaves += leaves.len();
        leaves
    }

    fn collect(&mut self, of: TypeId, at: u64, path: &str, bytes: &[u8], leaves: &mut Vec<Leaf>) {
        let is_full = self.leaves + leaves.len() > MOST_LEAVES || self.visits == MOST_VISITS;
        if is_full || self.depth == DEEPEST {
            self.graph.is_cut = true;
            return;
        }
        self.visits += 1;
        self.depth += 1;
        self.collect_parts(of, at, path, bytes, leaves);
        self.depth -= 1;
    }

    fn collect_parts(
        &mut self,
        of: TypeId,
        at: u64,
        path: &str,
        bytes: &[u8],
        leaves: &mut Vec<Leaf>,
    ) {
        let described = self.types.get(of).clone();
        let leaf = |kind| Leaf {
            offset: at,
            size: described.size,
            bits: None,
            kind,
            of,
            path: path.to_owned(),
        };
        match &described.shape {
            Shape::Base(_) | Shape::Enum(_) => leaves.push(leaf(LeafKind::Scalar)),
            Shape::Pointer(to) => leaves.push(leaf(LeafKind::Pointer(*to))),
            Shape::Void | Shape::Function => {}
            Shape::Record(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    let inside = at.saturating_add(field.offset);
                    let path = match field.name.is_empty() {
                        true => path.to_owned(),
                        false => format!("{path}.{}", field.name),
                    };
                    let inner = self.types.get(field.of).shape.clone();
                    match (field.bits, inner) {
                        (Some(_), _) => leaves.push(Leaf {
                            offset: inside,
                            size: self.types.get(field.of).size,
                            bits: field.bits,
                            kind: LeafKind::Scalar,
                            of: field.of,
                            path,
                        }),
                        (None, Shape::Union(_)) => {
                            let tag = self.tag(&fields[..index], at, bytes);
                            self.union(field.of, inside, &path, bytes, tag, leaves);
                        }
                        (None, _) => self.collect(field.of, inside, &path, bytes, leaves),
                    }
                }
            }
            Shape::Union(_) => self.union(of, at, path, bytes, None, leaves),
            Shape::Array(element, count) => {
                self.elements(*element, *count, at, path, bytes, leaves);
            }
        }
    }

    fn elements(
        &mut self,
        element: TypeId,
        count: Option<u64>,
        at: u64,
        path: &str,
        bytes: &[u8],
        leaves: &mut Vec<Leaf>,
    ) {
        let size = self.types.get(element).size;
        let rest = (bytes.len() as u64).saturating_sub(at);
        let count = count.unwrap_or(0).min(rest.checked_div(size).unwrap_or(0));
        if self.types.is_char(element) {
            leaves.push(Leaf {
                offset: at,
                size: count,
                bits: None,
                kind: LeafKind::Bytes,
                of: element,
                path: path.to_owned(),
            });
            return;
        }
        for index in 0..count {
            let path = format!("{path}[{index}]");
            self.collect(element, at + index * size, &path, bytes, leaves);
        }
    }

    /// Returns the index of the member that is in use in the union behind the fields `before` of a
    /// record, and the number of members to choose from. Both come from the last of these fields
    /// that is an enumeration with a known value: the index of that value, and the number of the
    /// enumeration's values. `None` if there is no such field. `bytes` are the bytes of the object
    /// that contains the record, which begins at offset `at`.
    fn tag(&self, before: &[crate::types::Field], at: u64, bytes: &[u8]) -> Option<(usize, usize)> {
        before.iter().rev().find_map(|field| {
            let of = self.types.get(field.of);
            let Shape::Enum(values) = &of.shape else {
                return None;
            };
            let start = at.checked_add(field.offset)?;
            let end = start.checked_add(of.size)?;
            let value = bytes.get(start as usize..end as usize)?;
            let value = integer(value, field.bits, true) as i64;
            let index = values.iter().position(|(it, _)| *it == value)?;
            Some((index, values.len()))
        })
    }

    /// Returns how many of the pointers among some atomic values (leaves) are valid, and how many
    /// are not.
    fn count_pointers(&self, leaves: &[Leaf], bytes: &[u8]) -> (usize, usize) {
        let pointers = leaves
            .iter()
            .filter(|leaf| matches!(leaf.kind, LeafKind::Pointer(_)));
        let (valid, invalid): (Vec<&Leaf>, Vec<&Leaf>) = pointers.partition(|leaf| {
            let start = leaf.offset as usize;
            let value = bytes.get(start..start.saturating_add(8));
            value.is_some_and(|value| {
                let address = integer(value, None, false) as u64;
                self.graph.containing(address).is_some() || self.state.area(address).is_some()
            })
        });
        (valid.len(), invalid.len())
    }

    /// Appends the atomic values of one member of a union to `leaves`. `tag`, which a field in
    /// front of the union tells, is the index of the member in use and the number of members to
    /// choose from; it is ignored if the union has another number of members. Without a tag, takes
    /// the member with the fewest invalid pointers; if no member has a valid pointer, the union
    /// stays raw bytes.
    fn union(
        &mut self,
        of: TypeId,
        at: u64,
        path: &str,
        bytes: &[u8],
        tag: Option<(usize, usize)>,
        leaves: &mut Vec<Leaf>,
    ) {
        let described = self.types.get(of).clone();
        let Shape::Union(members) = &described.shape else {
            return;
        };
        let mut choices: Vec<(usize, usize, Vec<Leaf>)> = Vec::new();
        for member in members {
            let mut inner = Vec::new();
            let path = match member.name.is_empty() {
                true => path.to_owned(),
                false => format!("{path}.{}", member.name),
            };
            let inside = at.saturating_add(member.offset);
            self.collect(member.of, inside, &path, bytes, &mut inner);
            let (valid, invalid) = self.count_pointers(&inner, bytes);
            choices.push((invalid, valid, inner));
        }
        let by_tag = tag.filter(|(index, values)| *values == members.len() && *index < *values);
        let by_pointers = || {
            let choices = choices.iter().enumerate();
            let valid = choices.filter(|(_, choice)| choice.1 > 0);
            valid.min_by_key(|(_, choice)| choice.0).map(|it| it.0)
        };
        let chosen = by_tag.map(|(index, _)| index).or_else(by_pointers);
        let whole = at.saturating_add(described.size);
        // In front of the contents of an enumeration stands its discriminant.
        let starts = choices
            .iter()
            .flat_map(|choice| choice.2.iter().map(|leaf| leaf.offset));
        let mut covered = match described.name == "variants" {
            true => starts.min().unwrap_or(whole),
            false => at,
        };
        if let Some(chosen) = chosen {
            let inner = choices.swap_remove(chosen).2;
            covered = inner
                .iter()
                .map(|leaf| leaf.offset.saturating_add(leaf.size))
                .max()
                .unwrap_or(covered);
            leaves.extend(inner);
        }
        let end = whole.min(bytes.len() as u64);
        if covered < end {
            leaves.push(raw_leaf(covered, end - covered, path.to_owned()));
        }
    }
}

fn raw_leaf(offset: u64, size: u64, path: String) -> Leaf {
    Leaf {
        offset,
        size,
        bits: None,
        kind: LeafKind::Bytes,
        of: Types::BYTE,
        path,
    }
}
