//! Regions of a file, or of a table of it, to which offsets refer.

use std::collections::BTreeMap;
use std::ops::Range;

use super::with_gaps;
use crate::node::{Group, Label, Node, Part};
use crate::reader::Reader;

/// Regions to which records refer by offsets: the range of each, its group, and how many records refer
/// to it. They do not overlap.
#[derive(Default)]
pub struct Regions(BTreeMap<usize, (Range<usize>, Group, usize)>);

impl Regions {
    /// Makes a region of the range `place`, a part with a payload that is not read yet, unless there is
    /// one; counts the record that refers to it. Does nothing if it is empty, begins before `front`,
    /// ends after `end`, or overlaps another region.
    pub fn refer(&mut self, reader: &mut Reader, place: Range<usize>, front: usize, end: usize) {
        if let Some((known, _, records)) = self.0.get_mut(&place.start) {
            *records += usize::from(*known == place);
        } else if !place.is_empty() && place.start >= front && place.end <= end {
            self.insert(place, Group::part(reader.label(), Vec::new()));
        }
    }

    /// Adds a region. Returns false, and does nothing, if it overlaps another one.
    pub fn insert(&mut self, place: Range<usize>, group: Group) -> bool {
        let before = self.0.range(..place.end.max(place.start + 1)).next_back();
        let is_free = before
            .is_none_or(|(start, (known, ..))| known.end <= place.start && *start < place.start);
        if is_free {
            self.0.insert(place.start, (place, group, 1));
        }
        is_free
    }

    /// Returns the group of the region that begins at offset `start`; `None` if none does.
    pub fn group_at(&mut self, start: usize) -> Option<&mut Group> {
        self.0.get_mut(&start).map(|(_, group, _)| group)
    }

    /// Returns the label of the region with the range `place`, and the part that a record which
    /// refers to it is: it goes with a region to which no other record refers.
    pub fn record(&self, place: &Range<usize>) -> (Option<Label>, Part) {
        let region = self.0.get(&place.start);
        match region.filter(|(known, ..)| known == place) {
            Some((_, group, 1)) => (Some(group.label), Part::With(group.label)),
            Some((_, group, _)) => (Some(group.label), Part::Own),
            None => (None, Part::Own),
        }
    }

    /// Reads each region by `read`, which gets its range and its label.
    pub fn read(
        &mut self,
        mut read: impl FnMut(Range<usize>, Label) -> Option<Vec<Node>>,
    ) -> Option<()> {
        for (place, group, _) in self.0.values_mut() {
            group.nodes = read(place.clone(), group.label)?;
        }
        Some(())
    }

    /// Makes the nodes of all bytes of `text` in `front..end`: of the regions, and of payloads between
    /// and after them. A region that was not read is a payload; one without a size ends where the next
    /// region begins. `None` if regions overlap.
    pub fn nodes(self, text: &[u8], front: usize, end: usize) -> Option<Vec<Node>> {
        let mut starts = self
            .0
            .keys()
            .copied()
            .skip(1)
            .collect::<Vec<_>>()
            .into_iter();
        let regions = self.0.into_values().map(|(mut place, mut group, _)| {
            let next = starts.next().unwrap_or(end);
            if place.is_empty() {
                place.end = next;
            }
            if group.nodes.is_empty() {
                let bytes = text.get(place.clone()).unwrap_or_default();
                group.nodes = vec![Node::payload(bytes)];
            }
            (place, Node::Group(group))
        });
        let regions: Vec<_> = regions.collect();
        with_gaps(text.get(..end)?, front, regions)
    }
}
