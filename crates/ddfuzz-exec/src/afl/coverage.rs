//! The coverage map: counters that the instrumentation raises.

use std::io;

use super::super::identity::Identity;
use super::segment::Segment;

/// How large the map is before the program has told its size: the largest that old greetings can
/// tell (AFL++'s `FS_OPT_MAX_MAPSIZE`). Pages that nobody touches cost nothing.
const FIRST: usize = 1 << 23;
/// How large it is for a program that says that this is too small, and not what it needs.
const LARGEST: usize = 1 << 28;
/// The size of AFL++'s map where the program tells none.
const UNTOLD: usize = 1 << 16;

/// The map shared with the target, and a copy of it.
pub(super) struct Coverage {
    map: Segment,
    /// How many of its bytes the program uses.
    used: usize,
    copy: Vec<u8>,
    owner: Option<Identity>,
}

impl Coverage {
    /// A map that any usual program finds large enough, for one that runs as `owner`.
    pub(super) fn create(owner: Option<Identity>) -> io::Result<Coverage> {
        Ok(Coverage {
            map: Segment::create(FIRST, owner)?,
            used: 0,
            copy: Vec::new(),
            owner,
        })
    }

    /// The segment's number.
    pub(super) fn id(&self) -> i32 {
        self.map.id()
    }

    /// How large a program may believe the map to be, in bytes.
    pub(super) fn room(&self) -> usize {
        self.map.len()
    }

    /// Takes note of the size that the program has told. False if there is no room for it.
    pub(super) fn fit(&mut self, told: Option<usize>) -> bool {
        let wanted = told.unwrap_or(UNTOLD);
        self.used = wanted.min(self.room());
        wanted <= self.room()
    }

    /// Makes room for so many bytes, or for more than any program needs. False if there was
    /// already, or cannot be.
    pub(super) fn grow(&mut self, wanted: Option<usize>) -> io::Result<bool> {
        let wanted = wanted.unwrap_or(LARGEST);
        if wanted <= self.room() || wanted > LARGEST {
            return Ok(false);
        }
        self.map = Segment::create(wanted, self.owner)?;
        Ok(true)
    }

    /// How many counters the program has.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Forgets the last run.
    pub(super) fn clear(&mut self) {
        self.map.clear(self.used);
    }

    /// The counters as they are now, of the run that is under way.
    pub(super) fn look(&self, to: &mut Vec<u8>) {
        to.resize(self.used, 0);
        self.map.read(to);
    }

    /// The counters as the last run has left them.
    pub fn read(&mut self) -> &[u8] {
        self.copy.resize(self.used, 0);
        self.map.read(&mut self.copy);
        &self.copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_as_long_as_the_program_tells() {
        let mut coverage = Coverage::create(None).unwrap();
        assert!(coverage.fit(Some(24)));
        assert_eq!(coverage.read(), [0; 24]);
        assert!(coverage.fit(None));
        assert_eq!(coverage.read().len(), 65_536);
    }

    #[test]
    fn a_map_without_room_grows_up_to_a_bound() {
        let mut coverage = Coverage::create(None).unwrap();
        assert!(!coverage.fit(Some(FIRST + 1)));
        assert!(coverage.grow(Some(FIRST + 1)).unwrap());
        assert!(coverage.fit(Some(FIRST + 1)));
        assert!(!coverage.grow(Some(LARGEST + 1)).unwrap());
        assert!(coverage.grow(None).unwrap());
        assert!(!coverage.grow(None).unwrap());
    }
}
