//! Differences between two program states in their heap blocks: a block that only one of the states
//! has, or a size field of the allocator between two blocks.

use crate::delta::{Change, Delta, Differences, Identity};
use crate::graph::{Graph, Header, LeafKind, Object, ObjectId, Place};
use crate::pointer_words::{in_block, show_pointer, vector_size};
use crate::types::{Shape, Types};

/// A pointer in a program state: the object that holds it, and its index among the atomic values
/// (leaves) of that object.
#[derive(Clone, Copy)]
struct PointerIn<'a> {
    graph: &'a Graph,
    object: ObjectId,
    /// Index of the pointer among the atomic values (leaves) of the object that holds it.
    leaf: usize,
}

impl PointerIn<'_> {
    /// Describes what the pointer leads to; without names of blocks unless `is_named` is true.
    fn show(&self, types: &Types, is_named: bool) -> String {
        let holder = &self.graph.objects[self.object];
        let leaf = &holder.leaves[self.leaf];
        match leaf.kind {
            LeafKind::Pointer(to) => {
                let held = is_named.then_some((self.object, leaf.offset));
                show_pointer(types, self.graph, to, (holder.value(leaf), held))
            }
            _ => "absent".to_owned(),
        }
    }

    /// Returns how many elements, of `size` bytes each, the vector has to whose elements the pointer
    /// leads; `None` if it is no such pointer.
    fn vector_size(&self, size: u64) -> Option<u64> {
        let holder = &self.graph.objects[self.object];
        vector_size(holder, &holder.leaves[self.leaf], size)
    }

    /// Returns the place in memory where the pointer is stored, and its size in bytes (8); `None`
    /// if it is in a register.
    fn stored(&self) -> Option<(Place, u64)> {
        let holder = &self.graph.objects[self.object];
        let leaf = &holder.leaves[self.leaf];
        match holder.place {
            Place::Memory(address) => Some((Place::Memory(address + leaf.offset), leaf.size)),
            Place::Register(_) => None,
        }
    }
}

/// Returns as texts to what a pointer leads in the passing and in the failing state. In one of them,
/// the failing one if `is_created` and else the passing one, it leads to the heap block `object`,
/// which the other state does not have. `pointers` are the pointer in the passing and in the failing
/// state. Unless `is_named` is true, the texts neither name blocks nor tell to which place in a block
/// a pointer leads.
fn contents(
    types: &Types,
    object: &Object,
    pointers: [Option<PointerIn>; 2],
    (is_created, is_named): (bool, bool),
) -> [String; 2] {
    // The same block is reached at other places elsewhere.
    let offset = object.reached.filter(|_| is_named).map_or(0, |it| it.2);
    let content = in_block(types, object, offset);
    // What the pointer to the block is in the run that has no such block.
    let other = pointers[usize::from(!is_created)];
    let absent = other.map(|pointer| pointer.show(types, is_named));
    let absent = absent.unwrap_or_else(|| "absent".to_owned());
    match is_created {
        true => [absent, content],
        false => [content, absent],
    }
}

/// Returns the numbers of elements, in both states, of the vector to whose elements, the block
/// `object`, the `pointers` of the passing and of the failing state lead; `None` if it is no vector,
/// or if the numbers are the same.
fn sizes(types: &Types, object: &Object, pointers: [Option<PointerIn>; 2]) -> Option<[String; 2]> {
    let element = match types.get(object.of).shape {
        Shape::Array(element, _) => types.get(element),
        _ => types.get(object.of),
    };
    let [before, after] = pointers.map(|it| it.and_then(|it| it.vector_size(element.size)));
    let sizes = [before?, after?];
    (before != after).then(|| sizes.map(|it| format!("{it} {}", element.name)))
}

impl<'a> Differences<'a> {
    /// Returns the difference about the memory block `id`, which only one of the two states has. To
    /// apply the difference is to create the block in the passing state if `is_created`, and else
    /// to delete it there.
    pub(crate) fn structural(&self, types: &Types, id: ObjectId, is_created: bool) -> Delta {
        let graph = if is_created {
            self.failing
        } else {
            self.passing
        };
        let object = &graph.objects[id];
        let pointers = self.pointers_to(id, is_created);
        let unnamed = contents(types, object, pointers, (is_created, false));
        let named = || contents(types, object, pointers, (is_created, true));
        let [passing, failing] = sizes(types, object, pointers).unwrap_or_else(named);
        let change = match is_created {
            true => Change::Create(id),
            false => Change::Delete(id),
        };
        let (failing_place, size) = pointers[1]
            .and_then(|pointer| pointer.stored())
            .unwrap_or((object.place, 0));
        let mut place = object.place;
        let mut name = graph.name(id, "");
        let mut type_name = types.get(object.of).name.clone();
        if let Some((from, leaf, _)) = object.reached {
            let leaf = &graph.objects[from].leaves[leaf];
            name = graph.name(from, &leaf.path);
            // The name is that of the pointer.
            type_name = types.get(leaf.of).name.clone();
            let holder = match is_created {
                true => self
                    .matching
                    .passing(from)
                    .map(|it| self.passing.objects[it].place),
                false => Some(graph.objects[from].place),
            };
            match holder {
                Some(Place::Memory(address)) => place = Place::Memory(address + leaf.offset),
                Some(register) => place = register,
                None => {}
            }
        }
        Delta {
            change,
            identity: Identity {
                place,
                declared: None,
                of: object.of,
                is_structural: true,
            },
            name,
            function: graph.function(id, "").to_owned(),
            type_name,
            passing,
            failing,
            unnamed: Some(Box::new(unnamed)),
            size,
            failing_place,
            passing_place: place,
        }
    }

    /// Returns the difference for a size field of the heap allocator that something has overwritten
    /// in the failing run; `None` if the passing run has no corresponding field, or if the
    /// corresponding field has the same value.
    pub(crate) fn overwritten(&self, types: &Types, failing: &Header) -> Option<Delta> {
        let passing = self.same_header(failing)?;
        if passing.value == failing.value {
            return None;
        }
        let before = self.passing.resolve(passing.address);
        let name = match before {
            Some((block, _)) => format!("behind {}", self.passing.name(block, "")),
            None => format!("at {:#x}", failing.address),
        };
        let function = before.map(|(block, _)| self.passing.function(block, ""));
        Some(Delta {
            change: Change::Header(Header {
                address: passing.address,
                ..*failing
            }),
            identity: Identity {
                place: Place::Memory(passing.address),
                declared: None,
                of: Types::HEADER,
                is_structural: false,
            },
            name: format!("chunk header {name}"),
            function: function.unwrap_or_default().to_owned(),
            type_name: types.get(Types::HEADER).name.clone(),
            passing: format!("{:#x}", passing.value),
            failing: format!("{:#x}", failing.value),
            unnamed: None,
            size: 8,
            failing_place: Place::Memory(failing.address),
            passing_place: Place::Memory(passing.address),
        })
    }

    /// Returns the allocator's size field in the passing run that corresponds to the field
    /// `failing` of the failing run. If `failing` follows a heap block, this is the field after the
    /// corresponding block of the passing run: the block that matches it or, if none does, the
    /// block that the same pointer leads to. Otherwise it is the field at the same address. `None`
    /// if there is no such field.
    fn same_header(&self, failing: &Header) -> Option<&'a Header> {
        let Some((block, _)) = self.failing.resolve(failing.address) else {
            return self.passing.header(failing.address);
        };
        let by_pointer = || {
            let [passing, _] = self.pointers_to(block, true);
            let pointer = passing?;
            let leaf = &pointer.graph.objects[pointer.object].leaves[pointer.leaf];
            pointer.graph.target(pointer.object, leaf).map(|(id, _)| id)
        };
        let partner = self.matching.passing(block).or_else(by_pointer)?;
        let object = &self.passing.objects[partner];
        match object.place {
            Place::Memory(start) => self.passing.header(start + object.bytes.len() as u64),
            Place::Register(_) => None,
        }
    }

    /// Returns the pointer by which the block `id` was found first, and the pointer at the same
    /// place in the other of the two states, which leads to something else. The pointer of the
    /// passing state comes first, then that of the failing one; `None` for a state without such a
    /// pointer. The block is in the failing state if `is_created`, else in the passing one.
    fn pointers_to(&self, id: ObjectId, is_created: bool) -> [Option<PointerIn<'a>>; 2] {
        let graph = if is_created {
            self.failing
        } else {
            self.passing
        };
        let Some((from, leaf, _)) = graph.objects[id].reached else {
            return [None, None];
        };
        let (passing, failing) = match is_created {
            true => (self.matching.passing(from), Some(from)),
            false => (Some(from), self.matching.failing(from)),
        };
        let offset = graph.objects[from].leaves[leaf].offset;
        let leaf_of = |graph: &'a Graph, object: ObjectId| {
            let leaves = &graph.objects[object].leaves;
            let leaf = leaves.iter().position(|leaf| leaf.offset == offset)?;
            Some(PointerIn {
                graph,
                object,
                leaf,
            })
        };
        [
            passing.and_then(|object| leaf_of(self.passing, object)),
            failing.and_then(|object| leaf_of(self.failing, object)),
        ]
    }
}
