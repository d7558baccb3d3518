//! Differences between two memory graphs, and their partial application (*Why Programs Fail*, A.2.5
//! and A.2.6).
//!
//! A difference is a value, a pointer, a block that only the failing state has (it is created), or
//! a block that only the passing state has (it is deleted: pointers to it are changed). A pointer
//! that leads to a created or deleted block belongs to that block's difference.

use crate::graph::{Graph, Header, Leaf, LeafKind, ObjectId, Origin, Place, Target};
use crate::matching::Matching;
use crate::plan::{Content, Plan, Spot, Write};
use crate::pointer_words::{show_pointer, vector_sizes};
use crate::types::{Types, show_bytes};

/// How a difference between the passing and the failing state is applied to the passing state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets a value, or a sequence of bytes, to its content in the failing state.
    Value {
        /// Object of the passing state that holds the value.
        passing: ObjectId,
        /// Object of the failing state from which the value is taken.
        failing: ObjectId,
        /// Index of the value among the atomic values (leaves) of the failing object.
        leaf: usize,
        /// Offset in the object of the first byte that is set, in bytes.
        start: u64,
        /// Offset in the object of the byte after the last byte that is set, in bytes.
        end: u64,
    },
    /// Sets a pointer, in an object that both states have, to where it leads in the failing state.
    Pointer {
        /// Object of the passing state that holds the pointer.
        passing: ObjectId,
        /// Object of the failing state from which the pointer is taken.
        failing: ObjectId,
        /// Index of the pointer among the atomic values (leaves) of the failing object.
        leaf: usize,
    },
    /// Creates this block, which only the failing state has.
    Create(ObjectId),
    /// Deletes this block, which only the passing state has: pointers to it are changed.
    Delete(ObjectId),
    /// Overwrites a word in which the allocator keeps the size of a heap block.
    Header(Header),
}

/// Identity of a variable in different states: its address in the passing run and its type, never
/// its name. A block that the passing run lacks is identified by its address in the failing run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Where the variable is stored: an address or a register.
    pub place: Place,
    /// Frame and declaration of a variable in a register; `None` for a variable in memory.
    pub declared: Option<Origin>,
    /// Type of the variable.
    pub of: crate::types::TypeId,
    /// Whether the variable is a block that only one of the runs has.
    pub is_structural: bool,
}

/// A difference between two states (a delta of delta debugging): a variable with its values in the
/// passing and in the failing run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// What applying the difference changes in the passing state: a value, a pointer, a block of
    /// memory or a size field of the allocator.
    pub change: Change,
    /// Identity of the variable that the difference is about, independent of its name.
    pub identity: Identity,
    /// Name of the variable as C would write it, such as `list->tail`.
    pub name: String,
    /// Function of the local variable with which the name begins; empty for a global variable.
    pub function: String,
    /// Name of the variable's type.
    pub type_name: String,
    /// The variable's value in the passing state, as text.
    pub passing: String,
    /// The variable's value in the failing state, as text.
    pub failing: String,
    /// Both values as text, that in the passing state first, without names of blocks and sizes of
    /// vectors; `None` if `passing` and `failing` have none.
    pub unnamed: Option<Box<[String; 2]>>,
    /// Size of the value in bytes; for a block that is created or deleted, size of the pointer to
    /// it in the failing state, or 0 if there is no such pointer.
    pub size: u64,
    /// Place where the value is stored in the failing state; for a created or deleted block, place
    /// of the pointer to it.
    pub failing_place: Place,
    /// Place where the value is stored in the passing state; for a created or deleted block, place
    /// of the pointer to it.
    pub passing_place: Place,
}

impl Delta {
    /// Returns the variable's values in the passing and in the failing state as texts that do not
    /// depend on which pointers the states have: the same value has the same text at each point.
    pub fn values(&self) -> [&String; 2] {
        match &self.unnamed {
            Some(unnamed) => [&unnamed[0], &unnamed[1]],
            None => [&self.passing, &self.failing],
        }
    }
}

/// All differences between a passing and a failing state.
pub struct Differences<'a> {
    pub(crate) passing: &'a Graph,
    pub(crate) failing: &'a Graph,
    pub(crate) matching: Matching,
    /// All differences: values and pointers in the order of the objects of the passing state, then
    /// created and deleted blocks, then overwritten sizes of the heap allocator.
    pub deltas: Vec<Delta>,
    created: Vec<Option<usize>>,
    deleted: Vec<Option<usize>>,
    /// The pointers that lead to different places in the two states, in objects that both states
    /// have.
    pointers: Vec<ChangedPointer>,
}

/// A pointer, in an object that both states have, that leads to different places in the two states.
struct ChangedPointer {
    passing: ObjectId,
    failing: ObjectId,
    leaf: usize,
    /// Index of the pointer's own difference in [`Differences::deltas`]; `None` if the pointer
    /// belongs to the difference of a created or deleted block.
    own: Option<usize>,
}

/// What a plan (the writes of a test) stores in a pointer: the old value (`Keep`), a raw address,
/// or the address of a place.
enum Lead {
    Keep,
    Raw(u64),
    To(Spot),
}

impl<'a> Differences<'a> {
    /// Computes all differences between the memory graphs of a passing and a failing state.
    pub fn new(types: &Types, passing: &'a Graph, failing: &'a Graph) -> Differences<'a> {
        let mut all = Differences {
            passing,
            failing,
            matching: Matching::new(passing, failing),
            deltas: Vec::new(),
            created: vec![None; failing.objects.len()],
            deleted: vec![None; passing.objects.len()],
            pointers: Vec::new(),
        };
        let pairs: Vec<(ObjectId, ObjectId)> = all.matching.pairs().collect();
        for (one, other) in pairs {
            all.compare(types, one, other);
        }
        for (id, object) in failing.objects.iter().enumerate() {
            if object.origin == Origin::Block && all.matching.passing(id).is_none() {
                all.created[id] = Some(all.deltas.len());
                all.deltas.push(all.structural(types, id, true));
            }
        }
        for (id, object) in passing.objects.iter().enumerate() {
            if object.origin == Origin::Block && all.matching.failing(id).is_none() {
                all.deleted[id] = Some(all.deltas.len());
                all.deltas.push(all.structural(types, id, false));
            }
        }
        // The heaps of two runs differ; only what was overwritten says something.
        for header in failing.headers.iter().filter(|header| !header.is_intact) {
            let delta = all.overwritten(types, header);
            all.deltas.extend(delta);
        }
        all
    }

    fn compare(&mut self, types: &Types, one: ObjectId, other: ObjectId) {
        let (passing, failing) = (&self.passing.objects[one], &self.failing.objects[other]);
        for (index, leaf) in failing.leaves.iter().enumerate() {
            let (before, after) = (passing.value(leaf), failing.value(leaf));
            let differing = match leaf.kind {
                LeafKind::Pointer(_) => {
                    self.compare_pointer(types, (one, other), index);
                    continue;
                }
                LeafKind::Bytes => runs(before, after),
                LeafKind::Scalar => {
                    let value = |bytes| crate::types::integer(bytes, leaf.bits, false);
                    let differs = match leaf.bits {
                        None => before != after,
                        Some(_) => value(before) != value(after),
                    };
                    Vec::from_iter(differs.then_some(0..leaf.size))
                }
            };
            for run in differing {
                let run = leaf.offset + run.start..leaf.offset + run.end;
                let change = Change::Value {
                    passing: one,
                    failing: other,
                    leaf: index,
                    start: run.start,
                    end: run.end,
                };
                let delta = self.valued(types, change, leaf, run, (one, other));
                self.deltas.push(delta);
            }
        }
    }

    fn compare_pointer(
        &mut self,
        types: &Types,
        (passing, failing): (ObjectId, ObjectId),
        leaf: usize,
    ) {
        let pointer = &self.failing.objects[failing].leaves[leaf];
        let from = self.passing.objects[passing].address(pointer);
        let to = self.failing.objects[failing].address(pointer);
        if self.same_target(from, to) {
            return;
        }
        let is_owned = self.is_failing_only(to) || self.is_passing_only(from);
        self.pointers.push(ChangedPointer {
            passing,
            failing,
            leaf,
            own: (!is_owned).then_some(self.deltas.len()),
        });
        if !is_owned {
            let change = Change::Pointer {
                passing,
                failing,
                leaf,
            };
            let delta = self.valued(types, change, pointer, 0..8, (passing, failing));
            self.deltas.push(delta);
        }
    }

    /// Makes the difference `change` in the bytes `run` of two objects (offsets in these), which belong
    /// to the value `leaf`, with its name and both values as text.
    pub(crate) fn valued(
        &self,
        types: &Types,
        change: Change,
        leaf: &Leaf,
        run: std::ops::Range<u64>,
        (one, other): (ObjectId, ObjectId),
    ) -> Delta {
        let (passing, failing) = (&self.passing.objects[one], &self.failing.objects[other]);
        let run = match leaf.kind {
            LeafKind::Pointer(_) => leaf.offset..leaf.offset + 8,
            _ => run,
        };
        let at = |place, offset| match place {
            Place::Memory(address) => Place::Memory(address + offset),
            register => register,
        };
        let in_register = matches!(passing.place, Place::Register(_));
        let (name, shown, unnamed) = self.told(types, leaf, &run, (one, other));
        let [before, after] = shown;
        Delta {
            identity: Identity {
                place: at(passing.place, leaf.offset),
                declared: in_register.then_some(passing.origin),
                of: leaf.of,
                is_structural: false,
            },
            name,
            function: self.passing.function(one, &leaf.path).to_owned(),
            type_name: types.get(leaf.of).name.clone(),
            passing: before,
            failing: after,
            unnamed,
            size: run.end - run.start,
            failing_place: at(failing.place, run.start),
            passing_place: at(passing.place, run.start),
            change,
        }
    }

    /// Returns the name of the bytes `run` of two objects (offsets in these), which belong to the
    /// value `leaf`, and both values as text, that of the passing state first, with those without
    /// names of blocks if they are others. The end of a vector's elements is told as the vector's
    /// size, if that differs.
    fn told(
        &self,
        types: &Types,
        leaf: &Leaf,
        run: &std::ops::Range<u64>,
        (one, other): (ObjectId, ObjectId),
    ) -> (String, [String; 2], Option<Box<[String; 2]>>) {
        let (passing, failing) = (&self.passing.objects[one], &self.failing.objects[other]);
        let slice = |bytes: &[u8]| bytes[run.start as usize..run.end as usize].to_vec();
        let (before, after) = (slice(&passing.bytes), slice(&failing.bytes));
        let show = |graph: &Graph, bytes: &[u8], holder: Option<ObjectId>| match leaf.kind {
            LeafKind::Pointer(to) => {
                let held = holder.map(|holder| (holder, leaf.offset));
                show_pointer(types, graph, to, (bytes, held))
            }
            LeafKind::Bytes if bytes.len() == 1 => types.show(leaf.of, bytes, None),
            LeafKind::Bytes => show_bytes(bytes),
            LeafKind::Scalar => types.show(leaf.of, bytes, leaf.bits),
        };
        let both = |holders: [Option<ObjectId>; 2]| {
            let before = show(self.passing, &before, holders[0]);
            [before, show(self.failing, &after, holders[1])]
        };
        let distinct = |shown: [String; 2]| match shown[0] == shown[1] {
            // Two blocks of one type.
            true => {
                let [one, other] = [&before, &after].map(|it| show_bytes_as_address(it));
                let what = &shown[0];
                [format!("{what} at {one}"), format!("{what} at {other}")]
            }
            false => shown,
        };
        let unnamed = distinct(both([None, None]));
        let name = self.passing.name_of(one, leaf, run.start);
        let LeafKind::Pointer(to) = leaf.kind else {
            return (name, unnamed, None);
        };
        let (name, shown) = match vector_sizes(types, to, leaf, [passing, failing]) {
            Some((stem, sizes)) => {
                let name = self.passing.name(one, &format!("{stem}.size()"));
                (name, sizes.map(|it| it.to_string()))
            }
            None => (name, distinct(both([Some(one), Some(other)]))),
        };
        let is_other = shown != unnamed;
        (name, shown, is_other.then(|| Box::new(unnamed)))
    }

    fn is_failing_only(&self, address: u64) -> bool {
        let target = self.failing.resolve(address);
        target.is_some_and(|(id, _)| {
            self.failing.objects[id].origin == Origin::Block && self.matching.passing(id).is_none()
        })
    }

    fn is_passing_only(&self, address: u64) -> bool {
        let target = self.passing.resolve(address);
        target.is_some_and(|(id, _)| {
            self.passing.objects[id].origin == Origin::Block && self.matching.failing(id).is_none()
        })
    }

    /// Returns true if the pointers `passing` and `failing` of the two states lead to the same
    /// place: the same offset in matched objects, or the same address if neither has a match.
    fn same_target(&self, passing: u64, failing: u64) -> bool {
        match (self.passing.resolve(passing), self.failing.resolve(failing)) {
            (Some((one, at)), Some((other, offset))) => match self.matching.failing(one) {
                Some(partner) => partner == other && at == offset,
                None => self.matching.passing(other).is_none() && passing == failing,
            },
            (None, None) => passing == failing,
            _ => false,
        }
    }

    /// Returns the plan (allocations and writes in memory) that applies to the passing state those
    /// of the differences for whose index `is_kept` returns true.
    pub fn plan(&self, is_kept: &dyn Fn(usize) -> bool) -> Plan {
        let mut plan = Plan::default();
        let mut new = vec![None; self.failing.objects.len()];
        for (id, delta) in self.created.iter().enumerate() {
            if delta.is_some_and(is_kept) {
                new[id] = Some(plan.allocations.len());
                plan.allocations
                    .push(self.failing.objects[id].bytes.len() as u64);
            }
        }
        let config = Applied {
            all: self,
            is_kept,
            new: &new,
        };
        for (id, index) in new.iter().enumerate() {
            if let Some(index) = index {
                config.create(id, *index, &mut plan.writes);
            }
        }
        for (index, delta) in self.deltas.iter().enumerate() {
            match &delta.change {
                _ if !is_kept(index) => {}
                Change::Header(header) => plan.writes.push(Write {
                    to: Spot::At(Place::Memory(header.address), 0),
                    content: Content::Bytes(header.value.to_le_bytes().to_vec()),
                }),
                _ => config.set_value(delta, &mut plan.writes),
            }
        }
        for changed in &self.pointers {
            config.set_pointer(changed, &mut plan.writes);
        }
        config.skip_deleted(&mut plan.writes);
        plan
    }

    /// Returns true if the difference with the index `delta` is about a register or word that no
    /// variable describes, or about a size field of the heap allocator.
    pub fn is_undescribed(&self, delta: usize) -> bool {
        match self.deltas[delta].change {
            Change::Value { passing, .. } => {
                self.passing.objects[passing].origin == Origin::Undescribed
            }
            Change::Header(_) => true,
            _ => false,
        }
    }

    /// Returns the number of objects of the passing run's memory graph that correspond to an object
    /// of the failing run's.
    pub fn matched(&self) -> usize {
        self.matching.pairs().count()
    }
}

/// A subset of the differences (`is_kept`) that is being applied to the passing state.
struct Applied<'a> {
    all: &'a Differences<'a>,
    is_kept: &'a dyn Fn(usize) -> bool,
    /// For each object of the failing state, the index of the new block that the plan allocates for
    /// it; `None` if the plan allocates none.
    new: &'a [Option<usize>],
}

impl Applied<'_> {
    fn create(&self, id: ObjectId, index: usize, writes: &mut Vec<Write>) {
        let object = &self.all.failing.objects[id];
        writes.push(Write {
            to: Spot::New(index, 0),
            content: Content::Bytes(object.bytes.clone()),
        });
        for (_, leaf) in object.pointers() {
            let lead = self.lead_of_failing(object.address(leaf), &leaf.path);
            write_lead(Spot::New(index, leaf.offset), lead, writes);
        }
    }

    fn set_value(&self, delta: &Delta, writes: &mut Vec<Write>) {
        let Change::Value {
            passing,
            failing,
            leaf,
            start,
            end,
        } = delta.change
        else {
            return;
        };
        let (to, from) = (
            &self.all.passing.objects[passing],
            &self.all.failing.objects[failing],
        );
        let bytes = from.bytes[start as usize..end as usize].to_vec();
        let content = match from.leaves[leaf].bits {
            None => Content::Bytes(bytes),
            Some(bits) => {
                let ones = if bits.width >= 64 {
                    u64::MAX
                } else {
                    (1 << bits.width) - 1
                };
                let mask = (ones << bits.shift).to_le_bytes()[..bytes.len().min(8)].to_vec();
                Content::Masked(bytes, mask)
            }
        };
        writes.push(Write {
            to: Spot::At(to.place, start),
            content,
        });
    }

    /// Appends to `writes` the write that sets the pointer `changed`, in an object that both states
    /// have. Appends nothing if the applied differences do not change where the pointer leads.
    fn set_pointer(&self, changed: &ChangedPointer, writes: &mut Vec<Write>) {
        let all = self.all;
        let leaf = &all.failing.objects[changed.failing].leaves[changed.leaf];
        let holder = &all.passing.objects[changed.passing];
        let before = holder.address(leaf);
        let after = all.failing.objects[changed.failing].address(leaf);
        let lead = self.pointer(changed.own, before, after, &leaf.path);
        write_lead(Spot::At(holder.place, leaf.offset), lead, writes);
    }

    fn pointer(&self, own: Option<usize>, before: u64, after: u64, path: &str) -> Lead {
        let all = self.all;
        if let Some(own) = own {
            return match (self.is_kept)(own) {
                true => self.lead_of_failing(after, path),
                false => Lead::Keep,
            };
        }
        if all.is_failing_only(after)
            && let Some(spot) = self.first_new(after, path)
        {
            return Lead::To(spot);
        }
        if !all.is_passing_only(before) {
            return Lead::Keep;
        }
        match self.behind_deleted(before, path) {
            Behind::Unchanged => Lead::Keep,
            Behind::Remaining(target) => {
                Lead::To(Spot::At(all.passing.objects[target.0].place, target.1))
            }
            Behind::End(_) | Behind::Unknown => self.lead_of_failing(after, path),
        }
    }

    /// Returns what a pointer in the passing state is set to, so that it leads where a pointer to
    /// `address` leads in the failing state: to the passing state's object that corresponds to the
    /// object at `address`, else to the block that the test creates for it, else to `address`
    /// itself. A heap block that the passing state lacks and the test does not create is skipped:
    /// the pointer leads to the next list element, to which the block's field `path` (such as
    /// `.next`) points. [`Lead::Keep`] (no change) if no element of the list exists.
    fn lead_of_failing(&self, address: u64, path: &str) -> Lead {
        let mut at = address;
        let mut visited = Vec::new();
        loop {
            let Some((id, offset)) = self.all.failing.resolve(at) else {
                return Lead::Raw(at);
            };
            if let Some(partner) = self.all.matching.passing(id) {
                return match self.all.passing.objects[partner].place {
                    place @ Place::Memory(_) => Lead::To(Spot::At(place, offset)),
                    Place::Register(_) => Lead::Raw(at),
                };
            }
            if let Some(index) = self.new[id] {
                return Lead::To(Spot::New(index, offset));
            }
            if self.all.failing.objects[id].origin != Origin::Block {
                return Lead::Raw(at);
            }
            visited.push(id);
            match next_in_chain(self.all.failing, id, path) {
                Some(next) if !is_visited(self.all.failing, next, &visited) => at = next,
                _ => return Lead::Keep,
            }
        }
    }

    /// Follows a linked list of the failing state, from the element at `address` by the pointer
    /// with the path `path` (such as `.next`), to the first element that a test creates anew in the
    /// passing state. Returns the block and the offset to which the pointer to this element leads.
    /// `None` if the list ends before, or leads to something that is not created, such as an object
    /// that the passing state has, too.
    fn first_new(&self, address: u64, path: &str) -> Option<Spot> {
        match self.lead_of_failing(address, path) {
            Lead::To(spot @ Spot::New(..)) => Some(spot),
            _ => None,
        }
    }

    /// Returns where a pointer of the passing state to `address` has to lead when the blocks that
    /// the plan deletes are taken out of their list: to the first element that stays. The list is
    /// followed by the pointers with the path `path` (such as `.next`).
    fn behind_deleted(&self, address: u64, path: &str) -> Behind {
        let mut at = address;
        let mut visited = Vec::new();
        loop {
            let Some((id, offset)) = self.all.passing.resolve(at) else {
                return Behind::end(at, &visited);
            };
            match self.all.deleted[id] {
                None => return Behind::end(at, &visited),
                Some(delta) if !(self.is_kept)(delta) => {
                    return match visited.is_empty() {
                        true => Behind::Unchanged,
                        false => Behind::Remaining((id, offset)),
                    };
                }
                Some(_) => {}
            }
            visited.push(id);
            match next_in_chain(self.all.passing, id, path) {
                Some(next) if !is_visited(self.all.passing, next, &visited) => at = next,
                _ => return Behind::Unknown,
            }
        }
    }

    /// Appends to `writes` new values for pointers to blocks that the plan deletes (a plan has the
    /// changes that a test makes to a fork of the passing run). Such pointers are in blocks that
    /// only the passing state has and that the plan keeps. Each gets the address of the first list
    /// element after the deleted blocks or, if the list ends there, the address to which the last
    /// deleted block points.
    fn skip_deleted(&self, writes: &mut Vec<Write>) {
        let all = self.all;
        for (id, delta) in all.deleted.iter().enumerate() {
            if delta.is_none_or(|delta| (self.is_kept)(delta)) {
                continue;
            }
            let object = &all.passing.objects[id];
            for (_, leaf) in object.pointers() {
                let lead = match self.behind_deleted(object.address(leaf), &leaf.path) {
                    Behind::Remaining((to, offset)) => {
                        Lead::To(Spot::At(all.passing.objects[to].place, offset))
                    }
                    Behind::End(address) => Lead::Raw(address),
                    Behind::Unchanged | Behind::Unknown => Lead::Keep,
                };
                write_lead(Spot::At(object.place, leaf.offset), lead, writes);
            }
        }
    }
}

/// Where a pointer in the passing state must lead when blocks that the failing state lacks are
/// deleted from a linked list: to a remaining block, to the list's end, or where it leads already.
enum Behind {
    /// The pointer leads to no deleted block, and needs no new value.
    Unchanged,
    /// The pointer leads to deleted blocks, and must lead to this place in the first block after
    /// them that is not deleted. This block exists only in the passing state.
    Remaining(Target),
    /// The pointer leads to deleted blocks, and must lead to this address, to which the last of
    /// them points. Both states have the object at this address, or no object is there.
    End(u64),
    /// It is unknown where the pointer must lead: the deleted blocks form no list, or a circle.
    Unknown,
}

impl Behind {
    fn end(address: u64, visited: &[ObjectId]) -> Behind {
        match visited.is_empty() {
            true => Behind::Unchanged,
            false => Behind::End(address),
        }
    }
}

fn write_lead(to: Spot, lead: Lead, writes: &mut Vec<Write>) {
    let content = match lead {
        Lead::Keep => return,
        Lead::Raw(address) => Content::Bytes(address.to_le_bytes().to_vec()),
        Lead::To(spot) => Content::Address(spot),
    };
    writes.push(Write { to, content });
}

/// Returns the address of the list element after the block `id`: where the block's pointer with the
/// path `path` (such as `.next`) leads or, if there is no such pointer, its first one. Only
/// pointers to the block's own type count; `None` if there are none.
fn next_in_chain(graph: &Graph, id: ObjectId, path: &str) -> Option<u64> {
    let object = &graph.objects[id];
    let own = |leaf: &&Leaf| leaf.kind == LeafKind::Pointer(object.of);
    let same = object
        .leaves
        .iter()
        .filter(own)
        .find(|leaf| leaf.path == path);
    let next = same.or_else(|| object.leaves.iter().find(own))?;
    Some(object.address(next))
}

fn is_visited(graph: &Graph, address: u64, visited: &[ObjectId]) -> bool {
    graph
        .resolve(address)
        .is_some_and(|(id, _)| visited.contains(&id))
}

fn show_bytes_as_address(bytes: &[u8]) -> String {
    format!("{:#x}", crate::types::integer(bytes, None, false))
}

/// Returns the ranges of offsets, in bytes, at which `before` and `after`, two slices of the same
/// length, differ.
fn runs(before: &[u8], after: &[u8]) -> Vec<std::ops::Range<u64>> {
    let mut found: Vec<std::ops::Range<u64>> = Vec::new();
    for (at, (one, other)) in before.iter().zip(after).enumerate() {
        if one == other {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.end == at as u64 => last.end += 1,
            _ => found.push(at as u64..at as u64 + 1),
        }
    }
    found
}
