//! All contents in memory: what there is of each is small, for there may be millions.

use crate::ContentId;
use crate::journal::Place;

/// No place, neither in the journal nor among the paths.
const NOWHERE: u64 = u64::MAX;

/// What is known of a content: 64 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) content: ContentId,
    at: u64,
    path: u64,
    length: u32,
    pub(super) suspicious: bool,
}

impl Entry {
    /// Where its record stands in the journal.
    pub(super) fn record(&self) -> Option<Place> {
        (self.at != NOWHERE).then_some(Place {
            at: self.at,
            length: self.length,
        })
    }

    pub(super) fn set_record(&mut self, place: Place, suspicious: bool) {
        (self.at, self.length) = (place.at, place.length);
        self.suspicious = suspicious;
    }

    /// Where its path stands in the spool, if it was found in this call.
    pub(super) fn path(&self) -> Option<u64> {
        (self.path != NOWHERE).then_some(self.path)
    }

    pub(super) fn set_path(&mut self, path: u64) {
        self.path = path;
    }
}

/// Entries by content: a hash table of numbers, open, probed line by line. The contents' own
/// hashes place them.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    /// The number of an entry plus one, or 0; as many as a power of two, half of them empty.
    slots: Vec<u32>,
}

impl Table {
    /// The number of the entry of this content, and whether it was made just now.
    pub(super) fn entry(&mut self, content: &ContentId) -> (usize, bool) {
        if self.slots.len() < 2 * (self.entries.len() + 1) {
            self.grow();
        }
        let at = match self.look(content) {
            Ok(number) => return (number, false),
            Err(at) => at,
        };
        self.entries.push(Entry {
            content: *content,
            at: NOWHERE,
            path: NOWHERE,
            length: 0,
            suspicious: false,
        });
        self.slots[at] = self.entries.len() as u32;
        (self.entries.len() - 1, true)
    }

    /// The number of the entry of this content, where it has one.
    pub(super) fn find(&self, content: &ContentId) -> Option<usize> {
        match self.slots.is_empty() {
            true => None,
            false => self.look(content).ok(),
        }
    }

    /// The number of the entry of this content, or the slot for it, of which there is one.
    fn look(&self, content: &ContentId) -> Result<usize, usize> {
        let mut at = self.home(content);
        loop {
            match self.slots[at] {
                0 => return Err(at),
                number if self.entries[number as usize - 1].content == *content => {
                    return Ok(number as usize - 1);
                }
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// All entries, in the order in which they were made.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn get_mut(&mut self, number: usize) -> &mut Entry {
        &mut self.entries[number]
    }

    /// The same, of whom nothing is looked for any more.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    fn home(&self, content: &ContentId) -> usize {
        let mut first = [0; 8];
        first.copy_from_slice(&content.blake3()[..8]);
        (u64::from_le_bytes(first) as usize) & (self.slots.len() - 1)
    }

    fn grow(&mut self) {
        let size = (2 * self.slots.len()).max(1024);
        self.slots = vec![0; size];
        for number in 0..self.entries.len() {
            let mut at = self.home(&self.entries[number].content);
            while self.slots[at] != 0 {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = number as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_content_has_one_entry() {
        let mut table = Table::default();
        let contents: Vec<ContentId> = (0..5000_u32)
            .map(|n| ContentId::of(&n.to_le_bytes()))
            .collect();
        assert_eq!(table.find(&contents[0]), None);
        for (number, content) in contents.iter().enumerate() {
            assert_eq!(table.entry(content), (number, true));
            assert_eq!(table.find(content), Some(number));
        }
        for (number, content) in contents.iter().enumerate() {
            assert_eq!(table.entry(content), (number, false));
        }
        assert_eq!(size_of::<Entry>(), 64);
    }
}
