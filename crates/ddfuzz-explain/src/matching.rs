//! Which objects of two memory graphs correspond (*Why Programs Fail*, A.2.3 and A.2.4).

use std::collections::{HashMap, VecDeque};

use crate::graph::{Graph, Leaf, LeafKind, Object, ObjectId, Origin, Place};
use crate::types::{TypeId, Types};

/// A correspondence between the objects of a passing and a failing state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matching {
    to_failing: Vec<Option<ObjectId>>,
    to_passing: Vec<Option<ObjectId>>,
}

impl Matching {
    /// Matches the objects of two graphs.
    ///
    /// Variables match by their declaration and frame. From the variables, both graphs are
    /// traversed in parallel: two blocks match if the same pointer leads to them and all their
    /// values but pointers are equal. A second pass matches the remaining blocks by content, so
    /// that the elements of a list after an inserted one keep their partners; a third pass matches
    /// blocks that the same pointer leads to, whatever they contain.
    pub fn new(passing: &Graph, failing: &Graph) -> Matching {
        let mut work = Work {
            passing,
            failing,
            matching: Matching {
                to_failing: vec![None; passing.objects.len()],
                to_passing: vec![None; failing.objects.len()],
            },
            queue: VecDeque::new(),
            postponed: VecDeque::new(),
        };
        work.variables();
        loop {
            work.traverse();
            if !work.by_content() && !work.accept_postponed() {
                return work.matching;
            }
        }
    }

    /// Returns the object of the failing state that corresponds to one of the passing state; `None`
    /// where none does.
    pub fn failing(&self, passing: ObjectId) -> Option<ObjectId> {
        self.to_failing[passing]
    }

    /// Returns the object of the passing state that corresponds to one of the failing state; `None`
    /// where none does.
    pub fn passing(&self, failing: ObjectId) -> Option<ObjectId> {
        self.to_passing[failing]
    }

    /// Returns all pairs: an object of the passing state and its partner in the failing one.
    pub fn pairs(&self) -> impl Iterator<Item = (ObjectId, ObjectId)> + '_ {
        let pairs = self.to_failing.iter().enumerate();
        pairs.filter_map(|(passing, failing)| failing.map(|failing| (passing, failing)))
    }
}

/// Makes the atomic values (leaves) of each pair of matched objects in two graphs the same, so that
/// they can be compared one by one. Where the leaves of both objects differ, as in a union that
/// holds another member in each state, both objects get one leaf of raw bytes instead.
pub fn unify(passing: &mut Graph, failing: &mut Graph) {
    let pairs: Vec<_> = Matching::new(passing, failing).pairs().collect();
    for (one, other) in pairs {
        let (left, right) = (&passing.objects[one], &failing.objects[other]);
        let same = |(one, other): (&Leaf, &Leaf)| is_same(one, other);
        if left.leaves.len() == right.leaves.len()
            && left.leaves.iter().zip(&right.leaves).all(same)
        {
            continue;
        }
        let common = common(&left.leaves, &right.leaves);
        passing.set_leaves(one, common.clone());
        failing.set_leaves(other, common);
    }
}

fn is_same(one: &Leaf, other: &Leaf) -> bool {
    let key = |leaf: &Leaf| (leaf.offset, leaf.size, leaf.bits, leaf.kind, leaf.of);
    key(one) == key(other)
}

/// Splits an object into leaves (atomic values) that fit both of two objects of one type, whose own
/// leaves are `one` and `other`: each leaf that both have, and one leaf of raw bytes for each
/// stretch in which their leaves differ.
fn common(one: &[Leaf], other: &[Leaf]) -> Vec<Leaf> {
    let mut all = Vec::new();
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    while let Some(first) = one
        .peek()
        .into_iter()
        .chain(other.peek())
        .min_by_key(|it| it.offset)
    {
        let first: &Leaf = first;
        if let (Some(left), Some(right)) = (one.peek(), other.peek())
            && is_same(left, right)
        {
            all.push((*left).clone());
            one.next();
            other.next();
            continue;
        }
        let (start, mut end, mut path) = (first.offset, first.offset, first.path.clone());
        // As far as a leaf of either one reaches over the end of the other's.
        loop {
            let is_inside = |leaf: &&Leaf| leaf.offset < end || leaf.offset == start;
            let Some(leaf) = one.next_if(is_inside).or_else(|| other.next_if(is_inside)) else {
                break;
            };
            end = end.max(leaf.offset + leaf.size);
            path.truncate(shared_path(&path, &leaf.path));
        }
        all.push(Leaf {
            offset: start,
            size: end - start,
            bits: None,
            kind: LeafKind::Bytes,
            of: Types::BYTE,
            path,
        });
    }
    all
}

/// Returns the length in bytes of the common beginning of two paths of variables, such as
/// `.a[2].b`; it ends before a `.` or `[`.
fn shared_path(one: &str, other: &str) -> usize {
    let bytes = one.bytes().zip(other.bytes());
    let same = bytes.take_while(|(one, other)| one == other).count();
    // Names need not be ASCII, so that `same` may be inside a character.
    let begins = |byte: &u8| b".[".contains(byte);
    let is_end = |text: &str| text.as_bytes().get(same).is_none_or(begins);
    match is_end(one) && is_end(other) {
        true => same,
        false => one.as_bytes()[..same].iter().rposition(begins).unwrap_or(0),
    }
}

struct Work<'a> {
    passing: &'a Graph,
    failing: &'a Graph,
    matching: Matching,
    /// Matched pairs of objects whose pointers are still to be followed.
    queue: VecDeque<(ObjectId, ObjectId)>,
    /// Pairs of blocks that the same pointer leads to, but whose contents differ: they are matched
    /// only where no block of equal content is found.
    postponed: VecDeque<(ObjectId, ObjectId)>,
}

/// What memory blocks are compared by, to find blocks that correspond in both states: type, size,
/// and all bytes except pointers. Two blocks for which all three are equal are matched.
type Content = (TypeId, usize, Vec<u8>);

impl Work<'_> {
    fn variables(&mut self) {
        let mut known: HashMap<(Origin, Option<Place>), ObjectId> = HashMap::new();
        let key = |object: &Object| {
            let by_place = matches!(object.origin, Origin::Raw | Origin::Undescribed);
            (object.origin, by_place.then_some(object.place))
        };
        for (id, object) in self.failing.objects.iter().enumerate() {
            if object.origin != Origin::Block {
                known.entry(key(object)).or_insert(id);
            }
        }
        for (id, object) in self.passing.objects.iter().enumerate() {
            if object.origin == Origin::Block {
                continue;
            }
            if let Some(failing) = known.get(&key(object))
                && self.matching.to_passing[*failing].is_none()
                && comparable(object, &self.failing.objects[*failing])
            {
                self.add(id, *failing);
            }
        }
    }

    fn add(&mut self, passing: ObjectId, failing: ObjectId) {
        self.matching.to_failing[passing] = Some(failing);
        self.matching.to_passing[failing] = Some(passing);
        self.queue.push_back((passing, failing));
    }

    fn is_free(&self, passing: ObjectId, failing: ObjectId) -> bool {
        let is_block = |object: &Object| object.origin == Origin::Block;
        self.matching.to_failing[passing].is_none()
            && self.matching.to_passing[failing].is_none()
            && is_block(&self.passing.objects[passing])
            && is_block(&self.failing.objects[failing])
            && comparable(
                &self.passing.objects[passing],
                &self.failing.objects[failing],
            )
    }

    /// Follows the pointers of matched objects in both graphs at once, and matches the memory
    /// blocks of equal content to which they lead.
    fn traverse(&mut self) {
        while let Some((passing, failing)) = self.queue.pop_front() {
            let (one, other) = (
                &self.passing.objects[passing],
                &self.failing.objects[failing],
            );
            let mut partners = other.pointers().map(|(_, leaf)| leaf).peekable();
            for (_, leaf) in one.pointers() {
                while partners.next_if(|it| it.offset < leaf.offset).is_some() {}
                let Some(partner) = partners.next_if(|it| it.offset == leaf.offset) else {
                    continue;
                };
                let targets = (
                    self.passing.target(passing, leaf),
                    self.failing.target(failing, partner),
                );
                let (Some((to, at)), Some((partner, partner_at))) = targets else {
                    continue;
                };
                if at != partner_at || !self.is_free(to, partner) {
                    continue;
                }
                match content(&self.passing.objects[to]) == content(&self.failing.objects[partner])
                {
                    true => self.add(to, partner),
                    false => self.postponed.push_back((to, partner)),
                }
            }
        }
    }

    /// Matches heap blocks of the passing and the failing state that have no partner yet and have
    /// equal content; of several candidates, the one at the same address. Returns true if it has
    /// found any.
    fn by_content(&mut self) -> bool {
        let free = |objects: &[Object], partners: &[Option<ObjectId>]| -> Vec<ObjectId> {
            let all = objects.iter().zip(partners).enumerate();
            all.filter(|(_, (object, partner))| object.origin == Origin::Block && partner.is_none())
                .map(|(id, _)| id)
                .collect()
        };
        let mut known: HashMap<Content, VecDeque<ObjectId>> = HashMap::new();
        for id in free(&self.failing.objects, &self.matching.to_passing) {
            known
                .entry(content(&self.failing.objects[id]))
                .or_default()
                .push_back(id);
        }
        let mut found = false;
        for id in free(&self.passing.objects, &self.matching.to_failing) {
            let object = &self.passing.objects[id];
            let Some(partners) = known.get_mut(&content(object)) else {
                continue;
            };
            let here = |partner: &ObjectId| self.failing.objects[*partner].place == object.place;
            let at = partners.iter().position(here).unwrap_or(0);
            let Some(partner) = partners.remove(at) else {
                continue;
            };
            if self.is_free(id, partner) {
                self.add(id, partner);
                found = true;
            }
        }
        found
    }

    /// Matches one pair of memory blocks that was put off because their contents differ, although
    /// the same pointer leads to both; prefers a pair at the same address. Returns false if there
    /// is none.
    fn accept_postponed(&mut self) -> bool {
        let mut postponed = std::mem::take(&mut self.postponed);
        postponed.retain(|(passing, failing)| self.is_free(*passing, *failing));
        let here = |(passing, failing): &(ObjectId, ObjectId)| {
            self.passing.objects[*passing].place == self.failing.objects[*failing].place
        };
        let at = postponed.iter().position(here).unwrap_or(0);
        let found = postponed.remove(at);
        self.postponed = postponed;
        if let Some((passing, failing)) = found {
            self.add(passing, failing);
        }
        found.is_some()
    }
}

/// Returns true if the content of one object can be written into the other: both have the same
/// type, size and kind of place.
fn comparable(one: &Object, other: &Object) -> bool {
    one.of == other.of
        && one.bytes.len() == other.bytes.len()
        && std::mem::discriminant(&one.place) == std::mem::discriminant(&other.place)
}

/// Returns what an object is matched by: type, size, and all bytes except its pointers.
fn content(object: &Object) -> Content {
    let mut bytes = Vec::new();
    for leaf in &object.leaves {
        if !matches!(leaf.kind, LeafKind::Pointer(_)) {
            bytes.extend_from_slice(object.value(leaf));
        }
    }
    (object.of, object.bytes.len(), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(offset: u64, size: u64, kind: LeafKind, path: &str) -> Leaf {
        Leaf {
            offset,
            size,
            bits: None,
            kind,
            of: Types::BYTE,
            path: path.to_owned(),
        }
    }

    #[test]
    fn members_of_a_union_that_only_one_state_has_are_bytes() {
        use LeafKind::{Bytes, Pointer, Scalar};
        let tag = leaf(0, 4, Scalar, "[1].tag");
        let after = leaf(24, 8, Scalar, "[1].after");
        let text = [
            leaf(8, 8, Pointer(Types::BYTE), "[1].data.text.start"),
            leaf(16, 8, Scalar, "[1].data.text.length"),
        ];
        let number = leaf(8, 4, Scalar, "[1].data.number");
        let one = [tag.clone(), text[0].clone(), text[1].clone(), after.clone()];
        let other = [tag.clone(), number, after.clone()];
        let found = common(&one, &other);
        let bytes = leaf(8, 8, Bytes, "[1].data");
        let rest = leaf(16, 8, Bytes, "[1].data.text.length");
        assert_eq!(found, [tag, bytes, rest, after]);
        assert_eq!(common(&one, &one), one);
        assert_eq!(shared_path("[1].data", "[12].data"), 0);
        assert_eq!(shared_path("[1].\u{e9}", "[1].\u{e8}"), 3);
    }
}
