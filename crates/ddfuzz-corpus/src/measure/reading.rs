//! Reads one input.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use ddfuzz_model::files::regular::{self, Unread};

/// A file that grows or shrinks while it is read is read so often.
const TRIES: usize = 3;

/// Why a file gave no input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// It is gone.
    #[error("it no longer exists")]
    Vanished,
    /// It is longer than what is run.
    #[error("it has {size} bytes, more than the {limit} of --max-len")]
    Oversized {
        /// Its length, in bytes.
        size: u64,
        /// The greatest length, in bytes.
        limit: u64,
    },
    /// It holds something else than it did when it was measured, or something else at each look.
    #[error("another program is changing it")]
    Changed,
    /// Anything else.
    #[error("{why}")]
    Refused {
        /// Its length, where it could be opened, in bytes.
        size: u64,
        /// What was in the way.
        why: Unread,
    },
}

/// Reads a file of at most `limit` bytes into `bytes`, as a whole: one that changes its length
/// meanwhile is read again.
///
/// # Errors
/// Why it gave no input.
pub fn read(path: &Path, limit: u64, bytes: &mut Vec<u8>) -> Result<(), NotRead> {
    for _ in 0..TRIES {
        let (mut file, facts) = regular::open(path).map_err(|why| match why {
            Unread::Missing => NotRead::Vanished,
            why => NotRead::Refused { size: 0, why },
        })?;
        let size = facts.len();
        if size > limit {
            return Err(NotRead::Oversized { size, limit });
        }
        // More than memory has room for is more than any limit of use.
        let room = usize::try_from(size).unwrap_or(usize::MAX - 1);
        let whole = fill(&mut file, room, bytes).map_err(|error| NotRead::Refused {
            size,
            why: Unread::Refused(error.to_string()),
        })?;
        if whole {
            return Ok(());
        }
    }
    Err(NotRead::Changed)
}

/// Reads what should be `size` bytes. False where there are more, or fewer.
fn fill(file: &mut File, size: usize, bytes: &mut Vec<u8>) -> io::Result<bool> {
    // With room for one more, the read that ends early shows the end of the file, too.
    bytes.resize(size + 1, 0);
    let mut done = 0;
    loop {
        match file.read(&mut bytes[done..]) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if done >= size {
            break;
        }
    }
    bytes.truncate(size);
    Ok(done == size)
}
