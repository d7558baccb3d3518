//! Differences in text or raw bytes: cut down to a part of them, or taken together. Pure.

use crate::delta::{Change, Delta, Differences};
use crate::graph::{LeafKind, Place};
use crate::types::Types;

impl Differences<'_> {
    /// Cuts a difference in text or raw bytes down to the addresses `part` of the passing state.
    /// `None` if the difference does not cover all of `part`, if it is about another kind of value,
    /// or about a register.
    pub fn part(&self, types: &Types, delta: &Delta, part: &std::ops::Range<u64>) -> Option<Delta> {
        let Change::Value {
            passing,
            failing,
            leaf,
            start,
            end,
        } = delta.change
        else {
            return None;
        };
        let Place::Memory(base) = self.passing.objects[passing].place else {
            return None;
        };
        let leaf_of = &self.failing.objects[failing].leaves[leaf];
        let base = base + leaf_of.offset;
        let run = part.start.checked_sub(base)?..part.end.checked_sub(base)?;
        let change = Change::Value {
            passing,
            failing,
            leaf,
            start: run.start,
            end: run.end,
        };
        let is_inside = start <= run.start && run.end <= end && leaf_of.kind == LeafKind::Bytes;
        let run = leaf_of.offset + run.start..leaf_of.offset + run.end;
        is_inside.then(|| self.valued(types, change, leaf_of, run, (passing, failing)))
    }

    /// Returns all differences in the variable of `delta`, a text or raw bytes, as one: from the first
    /// differing byte to the last one. `None` if `delta` is not one of several.
    pub fn united(&self, types: &Types, delta: &Delta) -> Option<Delta> {
        let about = self
            .deltas
            .iter()
            .filter(|it| it.identity == delta.identity);
        let about: Vec<&Delta> = about.collect();
        let is_whole = |it: &&Delta| it.name == delta.name && it.size == delta.size;
        if about.len() < 2 || !about.iter().any(is_whole) {
            return None;
        }
        let mut united = about[0].change.clone();
        for other in &about[1..] {
            let (
                Change::Value { start, end, .. },
                Change::Value {
                    start: from,
                    end: to,
                    ..
                },
            ) = (&mut united, &other.change)
            else {
                return None;
            };
            (*start, *end) = (*from.min(start), *to.max(end));
        }
        let Change::Value {
            passing,
            failing,
            leaf,
            start,
            end,
        } = united
        else {
            return None;
        };
        let leaf = &self.failing.objects[failing].leaves[leaf];
        let is_text = leaf.kind == LeafKind::Bytes;
        is_text.then(|| self.valued(types, united, leaf, start..end, (passing, failing)))
    }
}
