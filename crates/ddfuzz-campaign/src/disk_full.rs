//! A campaign on a full disk waits until there is room, or until its time is over.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::error::CampaignError;
use ddfuzz_minimize::MinimizeError;
use ddfuzz_minimize::log::LogError;
use ddfuzz_model::files::{FileError, space};
use ddfuzz_store::StoreError;
use ddfuzz_store::report::size;

/// The pause before the second try, and the longest.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(2);
/// With this many free bytes the disk is not full, until a write fails again.
const SOME: u64 = 1 << 20;
/// How often the user's patience is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// An error that may be one of a full disk, or of a used-up quota.
pub trait DiskFullError {
    /// The path that could not be written for want of room; `None` for any other error.
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

/// Pauses workers while their findings cannot be stored.
#[derive(Debug, Default)]
pub struct PauseGate {
    closed: AtomicBool,
    held_ms: AtomicU64,
}

impl PauseGate {
    /// Waits while the gate is closed, until `stopped` says otherwise.
    pub fn pass(&self, stopped: impl Fn() -> bool) {
        while self.closed.load(Ordering::Acquire) && !stopped() {
            std::thread::sleep(GLANCE);
        }
    }

    /// How long it was closed, the present time aside.
    pub fn held(&self) -> Duration {
        Duration::from_millis(self.held_ms.load(Ordering::Acquire))
    }
}

/// Waits for room: what could not be written is tried again, after pauses that grow from 0.2 to
/// 2 seconds, until it can be, the user stops, or the time is over. Meanwhile the gate is closed.
pub struct DiskWait<'a> {
    stop: &'a AtomicBool,
    /// When waiting ends.
    end: Option<Instant>,
    gate: &'a PauseGate,
    pause: Duration,
    /// Whether room is waited for at all.
    patient: bool,
    /// Since when nothing can be written, while it is so, and where that was said of.
    full: Option<(Instant, PathBuf)>,
}

impl<'a> DiskWait<'a> {
    /// DiskWait that is waited for until `stop` turns true.
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

    /// The same, until `end` at most.
    pub fn until(self, end: Option<Instant>) -> DiskWait<'a> {
        DiskWait { end, ..self }
    }

    /// The same; room is waited for if `patient` is true only, and else a full disk is an error
    /// like any other.
    pub fn patient(self, patient: bool) -> DiskWait<'a> {
        DiskWait { patient, ..self }
    }

    /// Does `write` until it is not refused for want of room. It must be such that it may be done
    /// again when it has failed. That the disk is full, and that it has room again, is told by
    /// `say`, once each.
    ///
    /// # Errors
    /// Those of `write`; one of a full disk only when the user has stopped, or the time is over.
    pub fn made<T, E: DiskFullError>(
        &mut self,
        say: &mut dyn FnMut(&str),
        mut write: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut failed = false;
        loop {
            match write() {
                Err(error) if self.goes_on_after(&error, say) => failed = true,
                Err(error) => return Err(error),
                Ok(done) => {
                    self.is_written(failed, say);
                    return Ok(done);
                }
            }
        }
    }

    /// Pauses where `error` is one of a full disk. Whether what failed is to be done again: not
    /// after other errors, and not when the user has stopped, the time is over, or it does not wait
    /// at all.
    pub fn goes_on_after<E: DiskFullError>(
        &mut self,
        error: &E,
        say: &mut dyn FnMut(&str),
    ) -> bool {
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
            std::thread::sleep(GLANCE);
        }
        self.pause = (self.pause * 2).min(LONGEST);
        !self.is_over()
    }

    /// The same of a `result`, after a good one of which there is room. Whether it is to be done
    /// again.
    pub fn is_again<T, E: DiskFullError>(
        &mut self,
        result: &Result<T, E>,
        say: &mut dyn FnMut(&str),
    ) -> bool {
        match result {
            Err(error) => self.goes_on_after(error, say),
            Ok(_) => {
                self.is_written(false, say);
                false
            }
        }
    }

    /// Something is written; `again`: it could not be, before. Anything else may have needed no
    /// room, or less of it, and says nothing where the disk is still full.
    pub fn is_written(&mut self, again: bool, say: &mut dyn FnMut(&str)) {
        let free = |path: &Path| space::free(path).is_none_or(|free| free >= SOME);
        let room = |(_, path): &(Instant, PathBuf)| again || free(path);
        if let Some((since, path)) = self.full.take_if(|full| room(full)) {
            self.pause = SHORTEST;
            let held = since.elapsed().as_millis() as u64;
            self.gate.held_ms.fetch_add(held, Ordering::Release);
            self.gate.closed.store(false, Ordering::Release);
            say(&format!("there is space again for {}", path.display()));
        }
    }

    /// Whether the time was over before there was room.
    pub fn is_given_up(&self) -> bool {
        self.full.is_some() && self.is_late()
    }

    fn is_late(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.is_late()
    }
}

/// What is said of a full disk; `waits`: room is waited for.
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
