//! Captures what runs write: length and hash of all output, or its beginning and its end.
//!
//! A thread reads the output from a pipe, so that it takes no space. A file would be subject to the
//! file size limit, of which a verbose target would die.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Length and hash of what a run has written to stdout or to stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Number of bytes that the run has written.
    pub bytes: u64,
    /// blake3 hash of the bytes that the run has written.
    pub hash: [u8; 32],
}

/// Computes length and hash of all that runs write to stdout and to stderr.
pub(crate) struct OutputCapture {
    pub(crate) stdout: DrainedPipe<Digest>,
    pub(crate) stderr: DrainedPipe<Digest>,
}

impl OutputCapture {
    pub(crate) fn open() -> io::Result<OutputCapture> {
        Ok(OutputCapture {
            stdout: DrainedPipe::open("ddfuzz-output")?,
            stderr: DrainedPipe::open("ddfuzz-output")?,
        })
    }

    pub(crate) fn clear(&self) {
        self.stdout.clear();
        self.stderr.clear();
    }
}

/// A pipe that a thread of ddfuzz empties into a sink (a hash, or an excerpt of the output).
pub(crate) struct DrainedPipe<S> {
    /// ddfuzz's copy of the write end of the pipe, which every fork server inherits. The thread
    /// that reads the pipe ends when all copies are closed.
    writer: File,
    drain: Arc<Mutex<Drain<S>>>,
}

struct Drain<S> {
    reader: File,
    sink: S,
}

/// A consumer of the bytes that are read from a pipe, such as a hash of a run's output.
pub(crate) trait Sink: Default + Send + 'static {
    fn push(&mut self, bytes: &[u8]);
}

impl<S: Sink> DrainedPipe<S> {
    /// Creates a pipe for output of a target, and starts a thread, named `thread`, that reads it.
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
            .spawn(move || while wait_until_readable(&waiting) && lock(&drained).take() {})?;
        Ok(DrainedPipe {
            writer: writer.into(),
            drain,
        })
    }

    pub(crate) fn writer(&self) -> &File {
        &self.writer
    }

    /// Forgets the output that was read from the pipe so far, and discards what is still in the
    /// pipe.
    pub(crate) fn clear(&self) {
        self.drained().sink = S::default();
    }

    /// Reads the output that is still in the pipe into the sink, and returns the pipe's locked
    /// state, whose sink has then received all output.
    fn drained(&self) -> MutexGuard<'_, Drain<S>> {
        let mut drain = lock(&self.drain);
        drain.take();
        drain
    }
}

impl DrainedPipe<Digest> {
    /// Returns length and hash of a run's output, complete once all processes of the run have
    /// ended.
    pub(crate) fn written(&self) -> Written {
        let digest = &self.drained().sink;
        Written {
            bytes: digest.bytes,
            hash: *digest.hasher.finalize().as_bytes(),
        }
    }
}

impl DrainedPipe<Excerpt> {
    /// Returns the first 4 KiB and the last 64 KiB of a run's output, with a line between them if
    /// bytes are missing; complete once all processes of the run have ended.
    pub(crate) fn excerpt(&self) -> Vec<u8> {
        self.drained().sink.bytes()
    }
}

impl<S: Sink> Drain<S> {
    /// Reads all bytes that are in the pipe now, and passes them to the sink; returns false if the
    /// pipe has been closed.
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

/// Computes length and hash of a run's output.
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

/// Number of bytes that an excerpt keeps of the beginning of a run's output.
const BEGINNING: usize = 4096;
/// Number of bytes that an excerpt keeps of the end of a run's output: a backtrace follows the
/// message of a panic.
const END: usize = 1 << 16;
/// Maximum length, in bytes, of what [`tail`] returns.
const TAIL: usize = 4096;
/// Text between beginning and end of an excerpt where bytes of the output are missing.
const GAP: &[u8] = b"\n[...]\n";

/// The first 4 KiB and the last 64 KiB of a run's output.
#[derive(Default)]
pub(crate) struct Excerpt {
    beginning: Vec<u8>,
    /// The output after the first 4 KiB; of long output, only its last 64 to 128 KiB.
    end: Vec<u8>,
    /// Whether bytes of the output between `beginning` and `end` were dropped.
    has_gap: bool,
}

impl Sink for Excerpt {
    fn push(&mut self, bytes: &[u8]) {
        let room = BEGINNING.saturating_sub(self.beginning.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.beginning.extend_from_slice(first);
        self.end.extend_from_slice(rest);
        // Up to twice the size is kept, so that bytes are moved rarely.
        if self.end.len() > 2 * END {
            self.has_gap = true;
            self.end.drain(..self.end.len() - END);
        }
    }
}

impl Excerpt {
    /// Returns the first 4 KiB and the last 64 KiB of the output, with a line between them if bytes
    /// are missing.
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

/// Returns the last 4 KiB of the output `all`.
pub(crate) fn tail(mut all: Vec<u8>) -> Vec<u8> {
    all.split_off(all.len().saturating_sub(TAIL))
}

fn lock<D>(drain: &Mutex<D>) -> MutexGuard<'_, D> {
    drain.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the pipe can be read or its write end is closed. Returns false if waiting fails.
fn wait_until_readable(fd: &OwnedFd) -> bool {
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
