//! Regions: the ranges of a file, or of a table in it, to which offsets refer.

use std::collections::BTreeMap;
use std::ops::Range;

use super::with_gaps;
use crate::node::{Group, Label, Node, Part};
use crate::reader::Reader;

/// The ranges of a file to which records of its tables refer by offsets. Holds, by the start of
/// each range: the range, the group of tree nodes that it becomes, and the number of records that
/// refer to it. Ranges do not overlap.
#[derive(Default)]
pub struct Regions(BTreeMap<usize, (Range<usize>, Group, usize)>);

impl Regions {
    /// Records that one more record of the file refers to the range `place`. The first time, makes
    /// a region of the range (a part with no nodes yet); later only increases the region's number
    /// of records. Does nothing if the range is empty, begins before `front`, ends after `end`, or
    /// overlaps another region.
    pub fn refer(&mut self, reader: &mut Reader, place: Range<usize>, front: usize, end: usize) {
        if let Some((known, _, records)) = self.0.get_mut(&place.start) {
            *records += usize::from(*known == place);
        } else if !place.is_empty() && place.start >= front && place.end <= end {
            self.insert(place, Group::part(reader.label(), Vec::new()));
        }
    }

    /// Adds the range `place` of the file as a region to which one record of a table refers so far;
    /// `group` is the group of tree nodes that the range becomes. Returns false, and adds nothing,
    /// if the range overlaps another region.
    pub fn insert(&mut self, place: Range<usize>, group: Group) -> bool {
        let before = self.0.range(..place.end.max(place.start + 1)).next_back();
        let is_free = before
            .is_none_or(|(start, (known, ..))| known.end <= place.start && *start < place.start);
        if is_free {
            self.0.insert(place.start, (place, group, 1));
        }
        is_free
    }

    /// Returns, to be changed, the group of nodes that stands in the tree for the region that
    /// begins at offset `start`; `None` if no region begins there.
    pub fn group_at(&mut self, start: usize) -> Option<&mut Group> {
        self.0.get_mut(&start).map(|(_, group, _)| group)
    }

    /// Returns how a record that refers to the range `place` of the file is to be deleted: together
    /// with the region that has this range, if no other record refers to it, else by itself. The
    /// first item is the label (id in the file's tree) of that region; `None` if there is no such
    /// region.
    pub fn record(&self, place: &Range<usize>) -> (Option<Label>, Part) {
        let region = self.0.get(&place.start);
        match region.filter(|(known, ..)| known == place) {
            Some((_, group, 1)) => (Some(group.label), Part::With(group.label)),
            Some((_, group, _)) => (Some(group.label), Part::Own),
            None => (None, Part::Own),
        }
    }

    /// Fills the groups of all regions: calls `read` with the range and the label (id in the file's
    /// tree) of each, and puts the nodes that it returns into the region's group. Returns `None` as
    /// soon as `read` does.
    pub fn read(
        &mut self,
        mut read: impl FnMut(Range<usize>, Label) -> Option<Vec<Node>>,
    ) -> Option<()> {
        for (place, group, _) in self.0.values_mut() {
            group.nodes = read(place.clone(), group.label)?;
        }
        Some(())
    }

    /// Returns the tree nodes of all bytes of `text` in `front..end`: the regions, and payloads
    /// (changeable bytes) between and after them. A region without nodes becomes a payload; an
    /// empty region extends to the start of the next one. `None` if regions overlap.
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
