//! Whole objects of C++ classes that pointers to base classes lead to.

use crate::types::TypeId;
use crate::unfold::{Area, LARGEST, Unfolding};

impl Unfolding<'_> {
    /// Returns the address and the class of the whole C++ object of which `pointer`, a pointer to
    /// the class `to`, leads to a part. The object's vtable pointer tells its class. If it tells no
    /// class derived from `to`, if the whole object is not inside of `area`, or if the memory graph
    /// already has an object at its address, returns `pointer` and `to` as they are.
    pub(super) fn whole_object(&mut self, pointer: u64, to: TypeId, area: Area) -> (u64, TypeId) {
        let as_declared = (pointer, to);
        if !self.types.is_polymorphic(to) {
            return as_declared;
        }
        let Some((start, of)) = self.state.whole_object(pointer) else {
            return as_declared;
        };
        let part = pointer.checked_sub(start).map(|offset| (offset, to));
        let is_derived = part.is_some_and(|part| self.types.bases(of).contains(&part));
        let end = start.saturating_add(self.types.get(of).size);
        let is_inside = area.start <= start && end <= area.end;
        match is_derived && is_inside && self.graph.containing(start).is_none() {
            true => (start, of),
            false => as_declared,
        }
    }

    /// Returns true if a block of memory is full of C++ objects of one class, each of `size` bytes:
    /// all begin with the same vtable pointer.
    pub(super) fn is_of_one_class(&mut self, block: Area, size: u64) -> bool {
        let length = (block.end - block.start).min(LARGEST);
        let bytes = self.state.bytes(block.start, length as usize);
        let mut objects = bytes.chunks_exact(size as usize).map(|object| &object[..8]);
        let first = objects.next();
        first.is_some_and(|first| first != [0; 8] && objects.all(|other| other == first))
    }
}
