//! Many files, by workers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{ToTrim, TrimError, TrimSettings, Trimmed};
use crate::lock;
use ddfuzz_minimize::{CallbackError, Slip};

/// How the trimming of many files is observed and stopped. Files are numbered from 0.
pub struct TrimWatch<'a> {
    /// Called with each result in the order in which files end, one call at a time.
    pub on_trimmed: OnTrimmed<'a>,
    /// Called with a crash that a candidate of a file ran into, and the index of its test in the
    /// log of that file (`None` for a check): once per (major, minor) of each file, one call at a
    /// time. Which come first depends on the workers, the whole set of them does not.
    pub on_slip: OnSlipOf<'a>,
    /// When it turns true, all workers stop with their state in the logs.
    pub stop: &'a AtomicBool,
}

/// Trims files by `jobs` workers, each with a target of its own. Every result depends on its file
/// alone. Files are taken one by one, so that no more than `jobs` need be in memory.
///
/// # Errors
/// As [`Trimmer::trim`](super::Trimmer::trim), of the first file that failed; all workers have
/// stopped then.
pub fn trim_all<F>(
    trimming: &TrimSettings,
    files: F,
    jobs: usize,
    watch: TrimWatch<'_>,
) -> Result<(), TrimError>
where
    F: IntoIterator<Item = ToTrim>,
    F::IntoIter: Send,
{
    let files = Mutex::new(files.into_iter().enumerate());
    let sink = ResultSink {
        on_trimmed: Mutex::new(watch.on_trimmed),
        on_slip: Mutex::new(watch.on_slip),
        stop: watch.stop,
        failed: AtomicBool::new(false),
    };
    let results: Vec<Result<(), TrimError>> = std::thread::scope(|scope| {
        let work = || sink.work(trimming, &files);
        let others: Vec<_> = (1..jobs).map(|_| scope.spawn(work)).collect();
        let mut results = vec![work()];
        results.extend(others.into_iter().map(|other| match other.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        results
    });
    let mut interrupted = Ok(());
    for result in results {
        match result {
            Err(error) if error.is_interrupted() => interrupted = Err(error),
            result => result?,
        }
    }
    interrupted
}

/// Called with the result of the file of this number.
pub type OnTrimmed<'a> = &'a mut (dyn FnMut(usize, Trimmed) -> Result<(), CallbackError> + Send);
/// Called with a crash of the file of this number, and the index of its test.
pub type OnSlipOf<'a> =
    &'a mut (dyn FnMut(usize, &Slip, Option<u64>) -> Result<(), CallbackError> + Send);

/// Receives the results of the workers.
struct ResultSink<'a> {
    on_trimmed: Mutex<OnTrimmed<'a>>,
    on_slip: Mutex<OnSlipOf<'a>>,
    stop: &'a AtomicBool,
    /// A worker has failed: the others take no more files.
    failed: AtomicBool,
}

impl ResultSink<'_> {
    fn work<I>(&self, trimming: &TrimSettings, files: &Mutex<I>) -> Result<(), TrimError>
    where
        I: Iterator<Item = (usize, ToTrim)>,
    {
        let result = self.trim_while_there_are(trimming, files);
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn trim_while_there_are<I>(
        &self,
        trimming: &TrimSettings,
        files: &Mutex<I>,
    ) -> Result<(), TrimError>
    where
        I: Iterator<Item = (usize, ToTrim)>,
    {
        // Started for the first file: there may be none.
        let mut trimmer = None;
        while !self.failed.load(Ordering::Relaxed) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(TrimError::Interrupted);
            }
            let Some((number, file)) = lock(files).next() else {
                break;
            };
            let trimmer = match &mut trimmer {
                Some(trimmer) => trimmer,
                none => none.insert(trimming.start()?),
            };
            let on_slip = |slip: &Slip, test| (lock(&self.on_slip))(number, slip, test);
            let trimmed = trimmer.trim(&file, &on_slip, self.stop)?;
            (lock(&self.on_trimmed))(number, trimmed).map_err(TrimError::Callback)?;
        }
        Ok(())
    }
}
