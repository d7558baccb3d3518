//! Captures what runs write: length and hash of all output, or its beginning and its end.
//!
//! A thread reads the output from a pipe, so that the output takes no disk space. A file would be
//! subject to the file size limit, and a verbose target would die of exceeding it.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Pid, gettid};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::private_dir::PrivateDir;

/// Length and hash of what a run has written to stdout or to stderr, without the names of files
/// that ddfuzz made for this run's worker, such as the file that replaces `@@`: they differ between
/// workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Number of bytes that the run has written, without the names of ddfuzz's files.
    pub bytes: u64,
    /// blake3 hash of the bytes that the run has written, without the names of ddfuzz's files.
    pub hash: [u8; 32],
}

/// Computes length and hash of all that runs write to stdout and to stderr.
pub(crate) struct OutputCapture {
    pub(crate) stdout: DrainedPipe<Digest>,
    pub(crate) stderr: DrainedPipe<Digest>,
}

impl OutputCapture {
    /// Creates the pipes that capture a target's stdout and stderr, of which only length and hash
    /// are kept. Names of files in `private`, ddfuzz's directory, are left out of both, because
    /// they differ between workers that run the same input.
    pub(crate) fn open(private: &PrivateDir) -> io::Result<OutputCapture> {
        let open = || DrainedPipe::open("ddfuzz-output", Digest::without(private.unique_names()));
        Ok(OutputCapture {
            stdout: open()?,
            stderr: open()?,
        })
    }

    pub(crate) fn clear(&self) {
        self.stdout.clear();
        self.stderr.clear();
    }

    /// Returns the ids of ddfuzz's threads that read the pipes of the target's stdout and stderr.
    pub(crate) fn readers(&self) -> Vec<Pid> {
        let both = [self.stdout.reader(), self.stderr.reader()];
        both.into_iter().flatten().collect()
    }
}

/// Size in bytes of a pipe for output, where the system allows it: a target that writes much waits
/// for the thread that empties the pipe less often than at the usual 64 KiB.
const PIPE_SIZE: i32 = 256 << 10;

/// A pipe that a thread of ddfuzz empties into a sink (a hash, or an excerpt of the output).
pub(crate) struct DrainedPipe<S> {
    /// ddfuzz's copy of the write end of the pipe, which every fork server inherits. The thread
    /// that reads the pipe ends when all copies are closed.
    writer: File,
    drain: Arc<Mutex<Drain<S>>>,
    /// Id of the thread that empties the pipe; empty until the thread has begun.
    reader: Arc<OnceLock<Pid>>,
}

struct Drain<S> {
    reader: File,
    sink: S,
}

/// A consumer of the bytes that are read from a pipe, such as a hash of a run's output.
pub(crate) trait Sink: Send + 'static {
    fn push(&mut self, bytes: &[u8]);

    /// Forgets all bytes of the output that were read from the pipe so far.
    fn clear(&mut self);
}

impl<S: Sink> DrainedPipe<S> {
    /// Creates a pipe for output of a target, and starts a thread, named `thread`, that reads it
    /// into `sink`.
    pub(crate) fn open(thread: &str, sink: S) -> io::Result<DrainedPipe<S>> {
        let (reader, writer) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        // Refused to users who have many large pipes.
        let _ = fcntl(&reader, FcntlArg::F_SETPIPE_SZ(PIPE_SIZE));
        let waiting: OwnedFd = reader.try_clone()?;
        let drain = Arc::new(Mutex::new(Drain {
            reader: reader.into(),
            sink,
        }));
        let drained = Arc::clone(&drain);
        let id = Arc::new(OnceLock::new());
        let own_id = Arc::clone(&id);
        std::thread::Builder::new()
            .name(thread.to_owned())
            .spawn(move || {
                own_id.get_or_init(gettid);
                while wait_until_readable(&waiting) && lock(&drained).take() {}
            })?;
        Ok(DrainedPipe {
            writer: writer.into(),
            drain,
            reader: id,
        })
    }

    /// Returns the id of ddfuzz's thread that empties the pipe; `None` before it has begun.
    pub(crate) fn reader(&self) -> Option<Pid> {
        self.reader.get().copied()
    }

    pub(crate) fn writer(&self) -> &File {
        &self.writer
    }

    /// Forgets the output that was read from the pipe so far, and discards what is still in the
    /// pipe.
    pub(crate) fn clear(&self) {
        self.drained().sink.clear();
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
        self.drained().sink.written()
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

/// Computes length and hash of a run's output, in which names of ddfuzz's files are left out,
/// because they differ between workers.
pub(crate) struct Digest {
    hashed: Hashed,
    /// Name of ddfuzz's directory, which is left out wherever the output contains it.
    folder: Vec<u8>,
    /// Text that precedes the number in the names of ddfuzz's files; it is left out of the output
    /// together with the digits that follow it.
    before_number: Vec<u8>,
    /// End of the output so far that may be the beginning of `folder` or `before_number`.
    pending: Vec<u8>,
    /// Whether the output so far ends in the number after `before_number`, so that further digits
    /// are left out, too.
    in_number: bool,
}

/// Length of a run's output, and the state of computing its hash.
#[derive(Clone, Default)]
struct Hashed {
    bytes: u64,
    hasher: blake3::Hasher,
}

impl Hashed {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hasher.update(bytes);
    }
}

impl Sink for Digest {
    fn push(&mut self, bytes: &[u8]) {
        let joined = match self.pending.is_empty() {
            true => None,
            false => Some([&*std::mem::take(&mut self.pending), bytes].concat()),
        };
        let mut rest = joined.as_deref().unwrap_or(bytes);
        let first = (self.folder[0], self.before_number[0]);
        while !rest.is_empty() {
            if self.in_number {
                let end = rest.iter().position(|byte| !byte.is_ascii_digit());
                rest = &rest[end.unwrap_or(rest.len())..];
                self.in_number = end.is_none();
                continue;
            }
            let at = memchr::memchr2(first.0, first.1, rest);
            let (before, from) = rest.split_at(at.unwrap_or(rest.len()));
            self.hashed.add(before);
            rest = from;
            if let Some(behind) = rest.strip_prefix(&*self.folder) {
                rest = behind;
            } else if let Some(behind) = rest.strip_prefix(&*self.before_number) {
                (rest, self.in_number) = (behind, true);
            } else if self.folder.starts_with(rest) || self.before_number.starts_with(rest) {
                self.pending = rest.to_vec();
                return;
            } else {
                self.hashed.add(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }

    fn clear(&mut self) {
        self.hashed = Hashed::default();
        self.pending.clear();
        self.in_number = false;
    }
}

impl Digest {
    /// Makes a digest that leaves out the text `folder`, and the text `before_number` together with
    /// the digits that follow it. Neither text may be empty.
    fn without((folder, before_number): (Vec<u8>, Vec<u8>)) -> Digest {
        Digest {
            hashed: Hashed::default(),
            folder,
            before_number,
            pending: Vec::new(),
            in_number: false,
        }
    }

    fn written(&self) -> Written {
        let mut hashed = self.hashed.clone();
        hashed.add(&self.pending);
        Written {
            bytes: hashed.bytes,
            hash: *hashed.hasher.finalize().as_bytes(),
        }
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

    fn clear(&mut self) {
        *self = Excerpt::default();
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
    fn names_of_files_of_one_worker_do_not_count_however_output_is_cut() {
        let names = || (b"ddfuzz-AbCdEf".to_vec(), b"-0000042-".to_vec());
        let text =
            b"7 /dev/shm/ddfuzz-AbCdEf/input-0000042-000017 ddfuzz-ddfuzz-AbC -0000042-1-0000";
        let mut all = Digest::without(names());
        all.push(b"7 /dev/shm//input ddfuzz-ddfuzz-AbC -0000");
        for cut in 0..=text.len() {
            for second in cut..=text.len() {
                let mut one = Digest::without(names());
                one.push(b"before");
                one.clear();
                one.push(&text[..cut]);
                one.push(&text[cut..second]);
                one.push(&text[second..]);
                assert_eq!(one.written(), all.written(), "cut at {cut} and {second}");
            }
        }
        let mut other = Digest::without(names());
        other.push(b"8 /dev/shm//input ddfuzz-ddfuzz-AbC -0000");
        assert_ne!(other.written(), all.written());
    }

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
