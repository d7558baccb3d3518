//! Lets one run at a time use a directory that several workers run their target in.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use crate::AbandonWhen;

/// How long a run waits for the directory in which it is to start, before the directory counts as
/// locked by another program, such as the command `flock`.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which a run of another worker may lock the directory in which runs start, as a multiple
/// of the limit on wall time: a run that shows whether a program hangs may last ten times that
/// limit.
const LONGEST: u32 = 20;
/// Time between two attempts to lock the directory in which runs start.
const PAUSE: Duration = Duration::from_micros(100);

/// Whether a run has waited so long for its directory that another program must keep the directory
/// locked. From then on, ddfuzz locks no directory.
static LOCKED_BY_OTHERS: AtomicBool = AtomicBool::new(false);

/// The directories that runs of this process have locked: device and inode number of each, and the
/// thread that has locked it for its run.
static LOCKED: Mutex<Vec<((u64, u64), ThreadId)>> = Mutex::new(Vec::new());

/// A directory of the user in which all runs of a target start (`--cwd`). What a run writes there
/// would change the outcome of another run that is made at the same time, so the directory is
/// locked for each run, also against other processes of ddfuzz.
pub(crate) struct RunDirectory {
    directory: File,
    id: (u64, u64),
    /// How long a run waits at most for the directory in which it is to start.
    lock_timeout: Duration,
    locked: bool,
}

impl RunDirectory {
    /// Opens the directory at `path`; `None` if it cannot be opened, and runs cannot lock it then.
    /// `wall` is the limit on the wall time of a run, from which follows how long a run waits for
    /// the lock of another.
    pub(crate) fn open(path: &Path, wall: Duration) -> Option<RunDirectory> {
        let directory = File::open(path).ok()?;
        let facts = directory.metadata().ok()?;
        Some(RunDirectory {
            directory,
            id: (facts.dev(), facts.ino()),
            lock_timeout: LOCK_TIMEOUT.max(wall * LONGEST),
            locked: false,
        })
    }

    /// Locks the directory for a run that is about to begin, and waits while a run of another
    /// thread or process has the lock. Does nothing if this thread has the lock already. If the
    /// wait takes longer than `lock_timeout`, another program seems to hold the lock: this run
    /// begins without the lock, and no directory is locked any more. If `abandon_when` is met, the
    /// run also begins without the lock, since nobody waits for its result.
    pub(crate) fn enter(&mut self, abandon_when: &AbandonWhen) {
        let own = (self.id, std::thread::current().id());
        if self.locked || locked().contains(&own) {
            return;
        }
        let began = Instant::now();
        while !LOCKED_BY_OTHERS.load(Ordering::Relaxed) && !abandon_when.is_met() {
            if self.flock(libc::LOCK_EX | libc::LOCK_NB) {
                self.locked = true;
                locked().push(own);
                return;
            }
            if began.elapsed() > self.lock_timeout {
                LOCKED_BY_OTHERS.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Unlocks the directory after a run that has locked it.
    pub(crate) fn leave(&mut self) {
        if std::mem::take(&mut self.locked) {
            locked().retain(|(id, _)| *id != self.id);
            self.flock(libc::LOCK_UN);
        }
    }

    fn flock(&self, operation: i32) -> bool {
        // SAFETY: the descriptor is open.
        unsafe { libc::flock(self.directory.as_raw_fd(), operation) == 0 }
    }
}

fn locked() -> MutexGuard<'static, Vec<((u64, u64), ThreadId)>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // A process that is just being forked has a copy of the descriptor, which would keep the
        // lock until it executes its program.
        self.leave();
    }
}
