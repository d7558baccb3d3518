//! Differences in text or raw bytes: cut down to a part of them, or taken together. Pure.

use crate::delta::{Change, Delta, Differences, Identity};
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

    /// Returns the differences in the text or raw bytes `variable` as one, from the first differing
    /// byte to the last one; `None` if there are not several of them.
    pub fn united(&self, types: &Types, variable: &Identity) -> Option<Delta> {
        let about = self.deltas.iter().filter(|it| it.identity == *variable);
        let mut all: Option<(u64, u64)> = None;
        let (mut count, mut last) = (0, None);
        for delta in about {
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
            let (from, to) = all.unwrap_or((start, end));
            all = Some((from.min(start), to.max(end)));
            (count, last) = (count + 1, Some((passing, failing, leaf)));
        }
        let ((start, end), (passing, failing, leaf)) = all.zip(last).filter(|_| count > 1)?;
        let leaf_of = &self.failing.objects[failing].leaves[leaf];
        let change = Change::Value {
            passing,
            failing,
            leaf,
            start,
            end,
        };
        let is_text = leaf_of.kind == LeafKind::Bytes;
        is_text.then(|| self.valued(types, change, leaf_of, start..end, (passing, failing)))
    }
}
