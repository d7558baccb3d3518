//! All that a run writes to its standard output and its standard error, as length and hash.
//!
//! Pipes that are always drained, as for [`stderr`](super::stderr): however much a target writes,
//! it takes no room here.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::sync::{Arc, Mutex};

use super::stderr::{drained, lock};
use super::{ExecError, Target, Traceable, Traced, Way};

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
        let hearing = Hearing::open().and_then(|hearing| {
            let stdout = hearing.stdout.writer();
            let mut inner = traceable.lock();
            inner.launch.stdout = Some(stdout.try_clone()?);
            if let Some(forking) = &mut inner.forking {
                forking.stdout = Some(stdout.try_clone()?);
            }
            inner.hearing = Some(hearing);
            Ok(())
        });
        hearing.map_err(|source| ExecError::System {
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
        let hearing = inner.hearing.as_ref()?;
        let at_terminal = inner.console.is_some();
        (!at_terminal).then(|| (hearing.stdout.written(), hearing.stderr.written()))
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
pub(crate) struct Hearing {
    pub(crate) stdout: Ear,
    pub(crate) stderr: Ear,
}

impl Hearing {
    /// Makes the pipes and begins to drain them.
    pub(crate) fn open() -> std::io::Result<Hearing> {
        Ok(Hearing {
            stdout: Ear::open()?,
            stderr: Ear::open()?,
        })
    }

    /// Forgets what earlier runs wrote, and their server before them.
    pub(crate) fn clear(&self) {
        self.stdout.clear();
        self.stderr.clear();
    }
}

/// One pipe.
pub(crate) struct Ear {
    /// Our copy of the write end, which every server inherits. With the last copy gone the
    /// draining thread ends.
    writer: File,
    drain: Arc<Mutex<Drain>>,
}

struct Drain {
    reader: File,
    bytes: u64,
    hasher: blake3::Hasher,
}

impl Ear {
    fn open() -> std::io::Result<Ear> {
        let make = |reader| Drain {
            reader,
            bytes: 0,
            hasher: blake3::Hasher::new(),
        };
        let (writer, drain) = drained("ddfuzz-hearing", make, Drain::take)?;
        Ok(Ear { writer, drain })
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

impl Drain {
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
