//! Captures what runs write: all of it as length and hash, or the beginning and the end of it.
//!
//! The output goes to a pipe that a thread drains: however much a target writes, it takes no room
//! here. A file would meet the limit on file sizes, and a target that floods its stderr would die
//! of that.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a run has written to stdout or to stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// How much, in bytes.
    pub bytes: u64,
    /// Its blake3 hash.
    pub hash: [u8; 32],
}

/// Captures stdout and stderr of runs as length and hash.
pub(crate) struct OutputCapture {
    pub(crate) stdout: DrainedPipe<Digest>,
    pub(crate) stderr: DrainedPipe<Digest>,
}

impl OutputCapture {
    /// Makes the pipes and begins to drain them.
    pub(crate) fn open() -> io::Result<OutputCapture> {
        Ok(OutputCapture {
            stdout: DrainedPipe::open("ddfuzz-output")?,
            stderr: DrainedPipe::open("ddfuzz-output")?,
        })
    }

    /// Forgets what earlier runs wrote, and their server before them.
    pub(crate) fn clear(&self) {
        self.stdout.clear();
        self.stderr.clear();
    }
}

/// A pipe that a thread drains into a sink.
pub(crate) struct DrainedPipe<S> {
    /// Our copy of the write end, which every server inherits. With the last copy gone the
    /// draining thread ends.
    writer: File,
    drain: Arc<Mutex<Drain<S>>>,
}

/// The read end, and what becomes of the bytes.
struct Drain<S> {
    reader: File,
    sink: S,
}

/// What takes the bytes of a pipe.
pub(crate) trait Sink: Default + Send + 'static {
    /// Takes the next bytes.
    fn push(&mut self, bytes: &[u8]);
}

impl<S: Sink> DrainedPipe<S> {
    /// Makes the pipe and a thread of this name that drains it.
    pub(crate) fn open(thread: &str) -> io::Result<DrainedPipe<S>> {
        let (reader, writer) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let waiting: OwnedFd = reader.try_clone()?;
        let drain = Arc::new(Mutex::new(Drain {
            reader: reader.into(),
            sink: S::default(),
        }));
        let drained = Arc::clone(&drain);
        std::thread::Builder::new()
            .name(thread.to_owned())
            .spawn(move || while readable(&waiting) && lock(&drained).take() {})?;
        Ok(DrainedPipe {
            writer: writer.into(),
            drain,
        })
    }

    /// The write end, for a server.
    pub(crate) fn writer(&self) -> &File {
        &self.writer
    }

    /// Forgets what was written so far.
    pub(crate) fn clear(&self) {
        self.drained().sink = S::default();
    }

    /// The sink with all that was written so far.
    fn drained(&self) -> MutexGuard<'_, Drain<S>> {
        let mut drain = lock(&self.drain);
        drain.take();
        drain
    }
}

impl DrainedPipe<Digest> {
    /// What was written; complete once no process of the run is left.
    pub(crate) fn written(&self) -> Written {
        let digest = &self.drained().sink;
        Written {
            bytes: digest.bytes,
            hash: *digest.hasher.finalize().as_bytes(),
        }
    }
}

impl DrainedPipe<Excerpt> {
    /// The beginning and the end of what was written; complete once no process of the run is left.
    pub(crate) fn excerpt(&self) -> Vec<u8> {
        self.drained().sink.bytes()
    }
}

impl<S: Sink> Drain<S> {
    /// Takes all there is; false at the end of the pipe.
    fn take(&mut self) -> bool {
        let mut block = [0; 1 << 16];
        loop {
            match self.reader.read(&mut block) {
                Ok(0) => return false,
                Ok(length) => self.sink.push(&block[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}

/// Length and hash of what was written.
#[derive(Default)]
pub(crate) struct Digest {
    bytes: u64,
    hasher: blake3::Hasher,
}

impl Sink for Digest {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hasher.update(bytes);
    }
}

/// How much of the beginning is kept, in bytes.
const BEGINNING: usize = 4096;
/// How much of the end is kept, in bytes: a backtrace follows the message of a panic.
const END: usize = 1 << 16;
/// How much of the end a [`tail`] has, in bytes.
const TAIL: usize = 4096;
/// Stands for what is missing between beginning and end.
const GAP: &[u8] = b"\n[...]\n";

/// The beginning (4 KiB) and the end (64 KiB) of what was written.
#[derive(Default)]
pub(crate) struct Excerpt {
    beginning: Vec<u8>,
    /// What came after the beginning, or the end of that.
    end: Vec<u8>,
    /// Something between the two is dropped.
    has_gap: bool,
}

impl Sink for Excerpt {
    fn push(&mut self, bytes: &[u8]) {
        let room = BEGINNING.saturating_sub(self.beginning.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.beginning.extend_from_slice(first);
        self.end.extend_from_slice(rest);
        // Twice as much is kept before bytes are moved.
        if self.end.len() > 2 * END {
            self.has_gap = true;
            self.end.drain(..self.end.len() - END);
        }
    }
}

impl Excerpt {
    /// Both parts, and a line between them where something is missing.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let surplus = self.end.len().saturating_sub(END);
        let gap = if self.has_gap || surplus > 0 {
            GAP
        } else {
            b""
        };
        [&self.beginning, gap, &self.end[surplus..]].concat()
    }
}

/// The last 4 KiB.
pub(crate) fn tail(mut all: Vec<u8>) -> Vec<u8> {
    all.split_off(all.len().saturating_sub(TAIL))
}

fn lock<D>(drain: &Mutex<D>) -> MutexGuard<'_, D> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_flood_is_dropped() {
        let mut excerpt = Excerpt::default();
        excerpt.push(b"the beginning");
        assert_eq!(excerpt.bytes(), b"the beginning");
        for _ in 0..100 {
            excerpt.push(&[b'x'; 4096]);
        }
        excerpt.push(b"the end");
        let bytes = excerpt.bytes();
        assert_eq!(bytes.len(), BEGINNING + GAP.len() + END);
        assert!(bytes.starts_with(b"the beginningxx") && bytes.ends_with(b"xthe end"));
    }
}
