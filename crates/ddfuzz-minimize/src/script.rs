//! The file of an interestingness test, which must not change while it is asked.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::log::ContentHash;

/// The file of an interestingness test as it was when a minimization began.
#[derive(Clone, Debug)]
pub struct Script {
    path: PathBuf,
    hash: ContentHash,
    /// As it was seen last with that content.
    seen: Facts,
}

/// What the file is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptState {
    /// What it was.
    Same,
    /// Its content is another one.
    Changed,
    /// It is not there any more, or cannot be read.
    Gone,
}

/// What tells that a file may have changed without reading it: device, inode, size, and the time
/// of its last change.
type Facts = (u64, u64, u64, i64, i64);

impl Script {
    /// Reads the test at `path`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> io::Result<Script> {
        // In this order: a change in between is found out by the next look.
        let seen = facts(path)?;
        let hash = ContentHash::of(&std::fs::read(path)?);
        let path = path.to_owned();
        Ok(Script { path, hash, seen })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The hash of its content.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// Looks at it again; reads it only where something about it has changed.
    pub fn state(&mut self) -> ScriptState {
        let Ok(now) = facts(&self.path) else {
            return ScriptState::Gone;
        };
        if now == self.seen {
            return ScriptState::Same;
        }
        match std::fs::read(&self.path) {
            Ok(content) if ContentHash::of(&content) == self.hash => {
                self.seen = now;
                ScriptState::Same
            }
            Ok(_) => ScriptState::Changed,
            Err(_) => ScriptState::Gone,
        }
    }
}

fn facts(path: &Path) -> io::Result<Facts> {
    let facts = std::fs::metadata(path)?;
    let (seconds, nanoseconds) = (facts.mtime(), facts.mtime_nsec());
    Ok((facts.dev(), facts.ino(), facts.size(), seconds, nanoseconds))
}
