//! The memory shared with an AFL++ fork server: the coverage map, and System V segments in general.

use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::identity::Identity;

/// The size of the map before the program reports its own: the largest that the old handshake can
/// report (AFL++'s `FS_OPT_MAX_MAPSIZE`). Untouched pages cost nothing.
const FIRST: usize = 1 << 23;
/// The size for a program that needs more and does not report how much.
const LARGEST: usize = 1 << 28;
/// The size of AFL++'s map where the program reports none.
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
    /// Makes a map that is large enough for usual programs, for a target that runs as `owner`.
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

    /// Notes the size that the program reports. False if there is no room for it.
    pub(super) fn fit(&mut self, told: Option<usize>) -> bool {
        let wanted = told.unwrap_or(UNTOLD);
        self.used = wanted.min(self.room());
        wanted <= self.room()
    }

    /// Makes room for `wanted` bytes, or for the largest program. False if there is room already, or
    /// cannot be.
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

/// A segment of System V shared memory, which AFL++'s runtime attaches. It is marked for removal at
/// once: others can attach it while somebody has it, and it is gone with the last of them.
pub(super) struct Segment {
    id: i32,
    at: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone on our side.
unsafe impl Send for Segment {}

impl Segment {
    /// Makes a segment of `length` bytes, all zero, which `owner` may attach, too. Memory is used
    /// where it is written to, and not before.
    pub(super) fn create(length: usize, owner: Option<Identity>) -> io::Result<Segment> {
        let flags = libc::IPC_CREAT | libc::IPC_EXCL | libc::SHM_NORESERVE | 0o600;
        // SAFETY: takes numbers only.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, length, flags) };
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: attaches a segment of ours wherever there is room.
        let at = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        let failed = (at.addr() == usize::MAX).then(io::Error::last_os_error);
        let given = owner.map_or(Ok(()), |owner| give(id, owner));
        // SAFETY: the last argument is not used by this command.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        match (failed, NonNull::new(at.cast())) {
            (None, Some(at)) => {
                let segment = Segment { id, at, length };
                given.map(|()| segment)
            }
            (error, _) => Err(error.unwrap_or_else(|| io::ErrorKind::OutOfMemory.into())),
        }
    }

    /// Its number, by which the target attaches it.
    pub(super) fn id(&self) -> i32 {
        self.id
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Sets its first `count` bytes to zero, while no run is under way.
    pub(super) fn clear(&mut self, count: usize) {
        let count = count.min(self.length);
        // SAFETY: within the segment.
        unsafe { self.at.as_ptr().write_bytes(0, count) };
    }

    /// Writes `bytes` at `offset`; bytes beyond the end are dropped.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let offset = offset.min(self.length);
        let count = bytes.len().min(self.length - offset);
        // SAFETY: within the segment, and `bytes` is none of it: no reference to it is given out.
        unsafe {
            let to = self.at.as_ptr().add(offset);
            to.copy_from_nonoverlapping(bytes.as_ptr(), count);
        }
    }

    /// Copies its first bytes into `to`, as many as fit.
    pub fn read(&self, to: &mut [u8]) {
        let count = to.len().min(self.length);
        // SAFETY: within the segment; by address, since a process of the target may still write.
        unsafe {
            let to = to.as_mut_ptr();
            to.copy_from_nonoverlapping(self.at.as_ptr(), count);
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: attached in `create`, and not used after this.
        unsafe { libc::shmdt(self.at.as_ptr().cast()) };
    }
}

/// Lets the user whom the target runs as attach the segment.
fn give(id: i32, owner: Identity) -> io::Result<()> {
    let mut facts = MaybeUninit::<libc::shmid_ds>::zeroed();
    // SAFETY: it fills the record, which all zeroes are a value of.
    let mut facts = unsafe {
        if libc::shmctl(id, libc::IPC_STAT, facts.as_mut_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        facts.assume_init()
    };
    facts.shm_perm.uid = owner.uid;
    facts.shm_perm.gid = owner.gid;
    // SAFETY: a whole record, of which owner and mode are read.
    match unsafe { libc::shmctl(id, libc::IPC_SET, &raw mut facts) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
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

    #[test]
    fn what_is_written_is_read_and_what_is_cleared_is_zero() {
        let mut segment = Segment::create(10, None).unwrap();
        segment.write(4, b"longer than it is");
        let mut read = [1; 12];
        segment.read(&mut read);
        assert_eq!(&read, b"\0\0\0\0longer\x01\x01");
        segment.clear(6);
        segment.read(&mut read);
        assert_eq!(&read[..10], b"\0\0\0\0\0\0nger");
        assert_eq!(segment.len(), 10);
    }

    #[test]
    fn a_segment_marked_for_removal_can_be_attached_while_somebody_has_it() {
        let mut segment = Segment::create(4096, None).unwrap();
        segment.write(0, b"here");
        // SAFETY: attaches, reads within and detaches a segment of ours.
        unsafe {
            let again = libc::shmat(segment.id(), std::ptr::null(), 0);
            assert_ne!(again.addr(), usize::MAX);
            assert_eq!(again.cast::<[u8; 4]>().read(), *b"here");
            libc::shmdt(again);
        }
        let id = segment.id();
        drop(segment);
        // SAFETY: takes numbers only, and fails.
        let gone = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        assert_eq!(gone.addr(), usize::MAX);
    }
}
