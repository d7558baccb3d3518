//! All that a run writes to its standard output and its standard error, as length and hash.
//!
//! Pipes that are always drained: however much a target writes,
//! it takes no room here.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{ExecError, Target, Traceable, Traced, Way};

/// What a run has written to one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// How much, in bytes.
    pub bytes: u64,
    /// Its blake3 hash.
    pub hash: [u8; 32],
}

impl Traceable {
    /// As [`forking`](Traceable::forking), with all that runs write being listened to: what they
    /// [wrote](Traced::written) is all that is told of it.
    ///
    /// # Errors
    /// As [`new`](Traceable::new); when there are no pipes.
    pub fn listening(target: &Target, way: Way) -> Result<Traceable, ExecError> {
        let traceable = Traceable::forking(target, way)?;
        let capture = OutputCapture::open().and_then(|capture| {
            let stdout = capture.stdout.writer();
            let mut inner = traceable.lock();
            inner.launch.stdout = Some(stdout.try_clone()?);
            if let Some(forking) = &mut inner.forking {
                forking.stdout = Some(stdout.try_clone()?);
            }
            inner.capture = Some(capture);
            Ok(())
        });
        capture.map_err(|source| ExecError::System {
            what: "listening to a target".to_owned(),
            source,
        })?;
        Ok(traceable)
    }
}

impl Traced {
    /// What the run wrote to its standard output and its standard error; complete only once no
    /// process of the run is left. `None` where nobody listens, and at a terminal.
    pub fn written(&self) -> Option<(Written, Written)> {
        let inner = self.of.lock();
        let capture = inner.capture.as_ref()?;
        let at_terminal = inner.console.is_some();
        (!at_terminal).then(|| (capture.stdout.written(), capture.stderr.written()))
    }

    /// Device and inode of the files that the run finds its input in, stdin included; none at a
    /// terminal.
    pub fn input_files(&self) -> Vec<(u64, u64)> {
        let inner = self.of.lock();
        match inner.console {
            Some(_) => Vec::new(),
            None => inner.input.identities(),
        }
    }
}

/// What listens to runs.
pub(crate) struct OutputCapture {
    pub(crate) stdout: HashedPipe,
    pub(crate) stderr: HashedPipe,
}

impl OutputCapture {
    /// Makes the pipes and begins to drain them.
    pub(crate) fn open() -> std::io::Result<OutputCapture> {
        Ok(OutputCapture {
            stdout: HashedPipe::open()?,
            stderr: HashedPipe::open()?,
        })
    }

    /// Forgets what earlier runs wrote, and their server before them.
    pub(crate) fn clear(&self) {
        self.stdout.clear();
        self.stderr.clear();
    }
}

/// One pipe.
pub(crate) struct HashedPipe {
    /// Our copy of the write end, which every server inherits. With the last copy gone the
    /// draining thread ends.
    writer: File,
    drain: Arc<Mutex<HashDrain>>,
}

struct HashDrain {
    reader: File,
    bytes: u64,
    hasher: blake3::Hasher,
}

impl HashedPipe {
    fn open() -> std::io::Result<HashedPipe> {
        let make = |reader| HashDrain {
            reader,
            bytes: 0,
            hasher: blake3::Hasher::new(),
        };
        let (writer, drain) = drained("ddfuzz-capture", make, HashDrain::take)?;
        Ok(HashedPipe { writer, drain })
    }

    /// What a server gets.
    pub(crate) fn writer(&self) -> &File {
        &self.writer
    }

    fn clear(&self) {
        let mut drain = lock(&self.drain);
        drain.take();
        drain.bytes = 0;
        drain.hasher.reset();
    }

    /// What was written; complete only once no process of the run is left.
    pub(crate) fn written(&self) -> Written {
        let mut drain = lock(&self.drain);
        drain.take();
        Written {
            bytes: drain.bytes,
            hash: *drain.hasher.finalize().as_bytes(),
        }
    }
}

impl HashDrain {
    /// Takes all there is; false at the end of the pipe.
    fn take(&mut self) -> bool {
        let mut block = [0; 1 << 16];
        loop {
            match self.reader.read(&mut block) {
                Ok(0) => return false,
                Ok(length) => {
                    self.bytes += length as u64;
                    self.hasher.update(&block[..length]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}

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
    drain: Arc<Mutex<TailDrain>>,
}

struct TailDrain {
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
        let make = |reader| TailDrain {
            reader,
            beginning: Vec::new(),
            tail: Vec::new(),
            lost: false,
        };
        let (writer, drain) = drained("ddfuzz-stderr", make, TailDrain::take)?;
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

impl TailDrain {
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
fn drained<D: Send + 'static>(
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
