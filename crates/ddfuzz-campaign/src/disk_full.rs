//! Full disks: a campaign pauses its workers and repeats what could not be written until there is
//! space, the user stops, or the time is over.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::CampaignError;
use ddfuzz_minimize::{MinimizeError, log::LogError};
use ddfuzz_model::files::{FileError, space};
use ddfuzz_store::{StoreError, report::size};

/// The first pause between two tries of a write on a full disk; each further pause is twice as long
/// as the previous one.
const SHORTEST: Duration = Duration::from_millis(200);
/// The longest pause between two tries of a write on a full disk.
const LONGEST: Duration = Duration::from_secs(2);
/// A disk that was full counts as free again when at least this many bytes (1 MiB) are free.
const ENOUGH: u64 = 1 << 20;
/// Time between two checks whether the user has stopped the call of ddfuzz, during a pause because
/// of a full disk.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// An error that may be caused by a full disk or an exhausted quota.
pub trait DiskFullError {
    /// Returns the path that could not be written because the disk is full; `None` for any other
    /// error.
    fn full_at(&self) -> Option<&Path>;
}

impl DiskFullError for FileError {
    fn full_at(&self) -> Option<&Path> {
        self.is_full().then(|| self.path())
    }
}

impl DiskFullError for StoreError {
    fn full_at(&self) -> Option<&Path> {
        match self {
            StoreError::File(error) => error.full_at(),
            _ => None,
        }
    }
}

impl DiskFullError for LogError {
    fn full_at(&self) -> Option<&Path> {
        match self {
            LogError::Io { path, source, .. } => {
                let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
                full.contains(&source.kind()).then_some(path)
            }
            _ => None,
        }
    }
}

impl DiskFullError for MinimizeError {
    fn full_at(&self) -> Option<&Path> {
        match self {
            MinimizeError::Log(error) => error.full_at(),
            MinimizeError::Callback { source, .. } => {
                let of_store = source.downcast_ref::<StoreError>();
                let of_file = source.downcast_ref::<FileError>();
                of_store
                    .and_then(DiskFullError::full_at)
                    .or_else(|| of_file.and_then(DiskFullError::full_at))
            }
            _ => None,
        }
    }
}

impl DiskFullError for CampaignError {
    fn full_at(&self) -> Option<&Path> {
        match self {
            CampaignError::Store(error) => error.full_at(),
            CampaignError::Minimize(error) => error.full_at(),
            _ => None,
        }
    }
}

/// A gate at which workers pause while the disk is full; [`DiskWait`] closes and opens it.
#[derive(Debug, Default)]
pub struct PauseGate {
    closed: AtomicBool,
    /// Milliseconds for which workers have paused because of a full disk; a pause that still lasts
    /// is not included.
    paused_ms: AtomicU64,
}

impl PauseGate {
    /// Blocks a worker while the disk is full, or until `stopped` returns true.
    pub fn pass(&self, stopped: impl Fn() -> bool) {
        while self.closed.load(Ordering::Acquire) && !stopped() {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Returns how long workers have paused because of a full disk; a pause that still lasts is not
    /// included.
    pub fn paused(&self) -> Duration {
        Duration::from_millis(self.paused_ms.load(Ordering::Acquire))
    }
}

/// Repeats writes that fail because the disk is full, after pauses that grow from 0.2 to 2 seconds.
/// Gives up when the user stops or the time limit is over. While the disk is full, a [`PauseGate`]
/// pauses the workers.
pub struct DiskWait<'a> {
    stop: &'a AtomicBool,
    /// When waiting for free space on the disk ends; `None` means no limit.
    end: Option<Instant>,
    gate: &'a PauseGate,
    pause: Duration,
    /// Whether to wait for free space on a full disk at all; if false, a full disk is an error like
    /// any other.
    pub(crate) patient: bool,
    /// Since when the disk is full, and the path that could not be written; `None` if the disk is
    /// not full.
    full: Option<(Instant, PathBuf)>,
}

impl<'a> DiskWait<'a> {
    /// Creates a `DiskWait` without a time limit, which stops waiting for free space when `stop`
    /// turns true; `gate` pauses the workers while the disk is full.
    pub fn new(stop: &'a AtomicBool, gate: &'a PauseGate) -> DiskWait<'a> {
        DiskWait {
            stop,
            end: None,
            gate,
            pause: SHORTEST,
            patient: true,
            full: None,
        }
    }

    /// Sets when waiting for free space on a full disk ends; `None` means no limit.
    pub fn until(self, end: Option<Instant>) -> DiskWait<'a> {
        DiskWait { end, ..self }
    }

    /// Sets whether to wait for free space on a full disk at all; if false, a full disk is an error
    /// like any other.
    pub fn patient(self, patient: bool) -> DiskWait<'a> {
        DiskWait { patient, ..self }
    }

    /// Repeats `write` while it fails because the disk is full, and returns its result. `say` gets
    /// one message for the user when the disk is full and one when it has space again.
    ///
    /// # Errors
    /// The error of `write`; the error of a full disk only if the user has stopped, the time is
    /// over, or waiting is off.
    pub fn with_space<T, E: DiskFullError>(
        &mut self,
        say: &mut dyn FnMut(&str),
        mut write: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut failed = false;
        loop {
            match write() {
                Err(error) if self.wait_after(&error, say) => failed = true,
                Err(error) => return Err(error),
                Ok(done) => {
                    self.note_written(failed, say);
                    return Ok(done);
                }
            }
        }
    }

    /// Handles the error of a write. If it says that the disk is full, closes the gate for the
    /// workers, pauses 0.2 to 2 seconds, and returns true: the write is to be tried again. Returns
    /// false after any other error, and also if the user has stopped, the time limit is over, or
    /// waiting is off.
    pub fn wait_after<E: DiskFullError>(&mut self, error: &E, say: &mut dyn FnMut(&str)) -> bool {
        let Some(path) = error.full_at().filter(|_| self.patient) else {
            return false;
        };
        if self.full.is_none() {
            self.full = Some((Instant::now(), path.to_owned()));
            let waits = !self.is_over();
            if waits {
                self.gate.closed.store(true, Ordering::Release);
            }
            if waits || self.is_late() {
                say(&message(path, waits));
            }
        }
        let end = Instant::now() + self.pause;
        while !self.is_over() && Instant::now() < end {
            std::thread::sleep(POLL_INTERVAL);
        }
        self.pause = (self.pause * 2).min(LONGEST);
        !self.is_over()
    }

    /// Handles the `result` of a write, and returns true if the write is to be repeated. After the
    /// error of a full disk, waits and decides as [`DiskWait::wait_after`] does. After `Ok`,
    /// records the success and returns false; after other errors, returns false. `say` shows
    /// messages to the user.
    pub fn retry_after<T, E: DiskFullError>(
        &mut self,
        result: &Result<T, E>,
        say: &mut dyn FnMut(&str),
    ) -> bool {
        match result {
            Err(error) => self.wait_after(error, say),
            Ok(_) => {
                self.note_written(false, say);
                false
            }
        }
    }

    /// Records a successful write. If the disk was full and has space again, opens the gate for the
    /// workers and tells the user through `say`. `again`: whether the same write failed before, so
    /// that its success proves that there is space. Any other write may have needed less space, so
    /// at least 1 MiB must be free after it.
    pub fn note_written(&mut self, again: bool, say: &mut dyn FnMut(&str)) {
        let free = |path: &Path| space::free(path).is_none_or(|free| free >= ENOUGH);
        let has_space = |(_, path): &(Instant, PathBuf)| again || free(path);
        if let Some((since, path)) = self.full.take_if(|full| has_space(full)) {
            self.pause = SHORTEST;
            let paused = since.elapsed().as_millis() as u64;
            self.gate.paused_ms.fetch_add(paused, Ordering::Release);
            self.gate.closed.store(false, Ordering::Release);
            say(&format!("there is space again for {}", path.display()));
        }
    }

    /// Returns true if the disk is still full, and waiting for space has ended by the time limit or
    /// by the user's stop.
    pub fn is_given_up(&self) -> bool {
        self.full.is_some() && self.is_over()
    }

    fn is_late(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.is_late()
    }
}

/// Returns the message to the user that the disk is full and `path` cannot be written; `waits`:
/// whether the campaign waits for space or ends.
fn message(path: &Path, waits: bool) -> String {
    let free = match space::free(path) {
        Some(free) => format!("{} free", size::bytes(free)),
        None => "free space unknown".to_owned(),
    };
    let what_next = match waits {
        true => {
            "the campaign continues when there is space; it ends with what is stored when its time \
             is over, or by Ctrl-C"
        }
        false => "the time for fuzzing is over, and the campaign ends with what is stored",
    };
    format!(
        "the disk is full: {} cannot be written ({free}); {what_next}",
        path.display()
    )
}
