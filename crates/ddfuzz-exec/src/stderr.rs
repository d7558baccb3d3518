//! The beginning and the end of what a target writes to stderr, however much that is.
//!
//! A pipe and not a file: a file would meet the limit on file sizes, and a target that floods its
//! stderr would die of the watching.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// How much of the end is told, in bytes.
const TOLD: usize = 4096;
/// How much of the end is kept, in bytes: a backtrace stands behind what a panic says.
const KEPT: usize = 1 << 16;
/// How much of the beginning is kept, in bytes.
const BEGINNING: usize = 4096;
/// Stands where something is missing between the two.
const GAP: &[u8] = b"\n[...]\n";

/// A pipe that is always drained.
pub(crate) struct Stderr {
    /// Our copy of the write end, which every server inherits. With the last copy gone the
    /// draining thread ends.
    writer: File,
    drain: Arc<Mutex<Drain>>,
}

struct Drain {
    reader: File,
    beginning: Vec<u8>,
    /// What came behind the beginning.
    tail: Vec<u8>,
    /// Some of that is lost.
    lost: bool,
}

impl Stderr {
    /// Makes the pipe and begins to drain it.
    pub(crate) fn open() -> std::io::Result<Stderr> {
        let make = |reader| Drain {
            reader,
            beginning: Vec::new(),
            tail: Vec::new(),
            lost: false,
        };
        let (writer, drain) = drained("ddfuzz-stderr", make, Drain::take)?;
        Ok(Stderr { writer, drain })
    }

    /// What a server gets as its stderr.
    pub(crate) fn writer(&self) -> &File {
        &self.writer
    }

    /// Forgets what earlier runs wrote.
    pub(crate) fn clear(&self) {
        let mut drain = lock(&self.drain);
        drain.take();
        drain.beginning.clear();
        drain.tail.clear();
        drain.lost = false;
    }

    /// The last 4 KiB written; complete once no process of the run is left.
    pub(crate) fn tail(&self) -> Vec<u8> {
        tail(self.all())
    }

    /// The first 4 KiB and the last 64 KiB written, as [`tail`](Stderr::tail).
    pub(crate) fn all(&self) -> Vec<u8> {
        let mut drain = lock(&self.drain);
        drain.take();
        let gap = if drain.lost { GAP } else { b"" };
        [&drain.beginning, gap, &drain.tail].concat()
    }
}

impl Drain {
    /// Takes all there is; false at the end of the pipe.
    fn take(&mut self) -> bool {
        let mut block = [0; 1 << 16];
        loop {
            match self.reader.read(&mut block) {
                Ok(0) => return false,
                Ok(length) => {
                    let room = BEGINNING.saturating_sub(self.beginning.len());
                    let (first, rest) = block[..length].split_at(room.min(length));
                    self.beginning.extend_from_slice(first);
                    self.tail.extend_from_slice(rest);
                    let surplus = self.tail.len().saturating_sub(KEPT);
                    self.tail.drain(..surplus);
                    self.lost |= surplus > 0;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}

/// The last 4 KiB.
pub(crate) fn tail(mut all: Vec<u8>) -> Vec<u8> {
    all.split_off(all.len().saturating_sub(TOLD))
}

/// Makes a pipe that a thread of this name drains into what `make` makes of its end: `take` reads
/// what there is, and says whether there will be more. Gives the end that is written to.
pub(super) fn drained<D: Send + 'static>(
    name: &str,
    make: impl FnOnce(File) -> D,
    take: fn(&mut D) -> bool,
) -> std::io::Result<(File, Arc<Mutex<D>>)> {
    let (reader, writer) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    let waiting: OwnedFd = reader.try_clone()?;
    let drain = Arc::new(Mutex::new(make(reader.into())));
    let drained = Arc::clone(&drain);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || while readable(&waiting) && take(&mut lock(&drained)) {})?;
    Ok((writer.into(), drain))
}

pub(super) fn lock<D>(drain: &Mutex<D>) -> MutexGuard<'_, D> {
    drain.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until there is something to read, or nobody left to write it.
fn readable(fd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    loop {
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => return true,
            Err(nix::Error::EINTR) => {}
            Err(_) => return false,
        }
    }
}
