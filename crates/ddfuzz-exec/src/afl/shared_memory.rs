//! Memory shared with an AFL++ fork server: the coverage map, and System V segments.

use std::{io, mem::MaybeUninit, ptr::NonNull};

use crate::prepared_target::Identity;

/// Size of the coverage map in bytes until the program reports its own: the largest that the
/// handshake up to AFL++ 4.09 can report (AFL++'s `FS_OPT_MAX_MAPSIZE`). Untouched pages cost
/// nothing.
const FIRST: usize = 1 << 23;
/// Size of the coverage map in bytes for a program that needs a larger one without saying how
/// large.
const LARGEST: usize = 1 << 28;
/// Size of the coverage map in bytes that is assumed if the program reports none.
const DEFAULT_SIZE: usize = 1 << 16;

/// The coverage map of AFL++, which is shared with a fork server: runs count in it which code they
/// reach. Also holds ddfuzz's copy of its counters.
pub(super) struct Coverage {
    map: Segment,
    /// Number of bytes, at the beginning of the coverage map, that the program uses.
    used: usize,
    copy: Vec<u8>,
    owner: Option<Identity>,
}

impl Coverage {
    /// Creates a coverage map that is large enough for usual programs, for a target that runs as
    /// `owner`.
    pub(super) fn create(owner: Option<Identity>) -> io::Result<Coverage> {
        Ok(Coverage {
            map: Segment::create(FIRST, owner)?,
            used: 0,
            copy: Vec::new(),
            owner,
        })
    }

    pub(super) fn id(&self) -> i32 {
        self.map.id()
    }

    /// Returns the size of the whole coverage map in bytes, which the program may use.
    pub(super) fn room(&self) -> usize {
        self.map.len()
    }

    /// Sets how many bytes of the coverage map are used to `told`, the size that the program
    /// reports; `None` stands for 64 KiB. Returns false if the shared map is smaller than that;
    /// then all of it is used.
    pub(super) fn set_used(&mut self, told: Option<usize>) -> bool {
        let wanted = told.unwrap_or(DEFAULT_SIZE);
        self.used = wanted.min(self.room());
        wanted <= self.room()
    }

    /// Replaces the coverage map by an empty one of `wanted` bytes; `None` stands for the maximum
    /// of 256 MiB. Returns false, and keeps the map, if it is already that large or `wanted` is
    /// more than the maximum.
    pub(super) fn grow(&mut self, wanted: Option<usize>) -> io::Result<bool> {
        let wanted = wanted.unwrap_or(LARGEST);
        if wanted <= self.room() || wanted > LARGEST {
            return Ok(false);
        }
        self.map = Segment::create(wanted, self.owner)?;
        Ok(true)
    }

    /// Returns the number of coverage counters (bytes) of the program.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(super) fn clear(&mut self) {
        self.map.clear(self.used);
    }

    /// Copies the coverage counters of the current run to `to`.
    pub(super) fn look(&self, to: &mut Vec<u8>) {
        to.resize(self.used, 0);
        self.map.read(to);
    }

    /// Returns a copy of the coverage counters that the last run left in the coverage map.
    pub fn read(&mut self) -> &[u8] {
        self.copy.resize(self.used, 0);
        self.map.read(&mut self.copy);
        &self.copy
    }
}

/// A segment of System V shared memory, to which AFL++'s runtime attaches. It is marked for removal
/// as soon as it is made: processes can still attach, and the kernel removes it when the last
/// attached one is gone.
pub(super) struct Segment {
    id: i32,
    at: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone on our side.
unsafe impl Send for Segment {}

impl Segment {
    /// Creates a segment of `length` zero bytes that the user `owner` may attach, too. Pages take
    /// memory only when written.
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
        let given = owner.map_or(Ok(()), |owner| grant_access(id, owner));
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

    pub(super) fn id(&self) -> i32 {
        self.id
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Sets the first `count` bytes of the segment to zero, between runs.
    pub(super) fn clear(&mut self, count: usize) {
        let count = count.min(self.length);
        // SAFETY: within the segment.
        unsafe { self.at.as_ptr().write_bytes(0, count) };
    }

    /// Writes `bytes` at `offset` of the segment; bytes beyond its end are dropped.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let offset = offset.min(self.length);
        let count = bytes.len().min(self.length - offset);
        // SAFETY: within the segment, and `bytes` is none of it: no reference to it is given out.
        unsafe {
            let to = self.at.as_ptr().add(offset);
            to.copy_from_nonoverlapping(bytes.as_ptr(), count);
        }
    }

    /// Copies the first bytes of the segment into `to`, as many as `to` holds.
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

fn grant_access(id: i32, owner: Identity) -> io::Result<()> {
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
        assert!(coverage.set_used(Some(24)));
        assert_eq!(coverage.read(), [0; 24]);
        assert!(coverage.set_used(None));
        assert_eq!(coverage.read().len(), 65_536);
    }

    #[test]
    fn a_map_without_room_grows_up_to_a_bound() {
        let mut coverage = Coverage::create(None).unwrap();
        assert!(!coverage.set_used(Some(FIRST + 1)));
        assert!(coverage.grow(Some(FIRST + 1)).unwrap());
        assert!(coverage.set_used(Some(FIRST + 1)));
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
