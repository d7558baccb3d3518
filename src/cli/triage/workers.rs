//! Worker threads of a triage: each runs input files with its own triager.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::campaign::{Examined, Judged, judged, kind_of, may_leak};
use crate::cli::{Failure, Output};
use crate::exec::{Target, Way};
use crate::files::regular::{self, Unread};
use crate::minimize::log::ContentHash;
use crate::report::size;
use crate::report::text::printable;
use crate::store::foreign::{Input, Inputs};
use crate::store::{Kind, foreign};
use crate::triage::{Key, Triager};

/// Maximum number of unprocessed results per worker thread; bounds the number of inputs in memory.
const BACKLOG: usize = 4;
/// Interval at which the progress of a triage is shown while no worker has a result.
const TICK: Duration = Duration::from_millis(100);

/// What a worker thread of a triage has found out about one input file.
pub enum WorkerResult {
    /// The file could not be read; the text is the reason.
    Unreadable(String),
    /// A file with the same content (whose hash this is) was run before, or is being run by another
    /// worker.
    Duplicate(ContentHash),
    /// The input crashed with the major and minor key of an earlier input, and was therefore run
    /// only once.
    KnownVariant {
        input: ContentHash,
        /// Length of the input in bytes.
        size: u64,
        /// Major and minor key of the crash.
        variant: (Key, Key),
    },
    /// The input was examined: run several times, and its crash, if any, symbolized.
    New {
        input: ContentHash,
        /// Content of the input file; empty unless the input crashed.
        bytes: Vec<u8>,
        /// Length of the input in bytes.
        size: u64,
        examined: Examined,
    },
}

impl WorkerResult {
    /// Returns the major and minor key if the input was examined and crashed, and the crash is not
    /// flaky; else `None`.
    fn steady_variant(&self) -> Option<(Key, Key)> {
        let WorkerResult::New { examined, .. } = self else {
            return None;
        };
        let crash = examined.crash.as_deref();
        let crash = crash.filter(|crash| kind_of(crash) != Kind::Flaky)?;
        Some((crash.keys.major, crash.keys.minor))
    }
}

/// State that the worker threads of a triage share.
pub struct Workers<'a> {
    pub target: &'a Target,
    pub way: Way,
    pub files: &'a [Input],
    /// Maximum length of an input, in bytes; larger files are not run.
    pub max_len: u64,
    /// Whether to check all inputs that do not crash for memory leaks.
    pub leaks: bool,
    /// Flag that makes the worker threads end when it turns true.
    pub stop: &'a AtomicBool,
    /// Hashes of inputs that some worker has run or is running.
    pub taken: Mutex<HashSet<ContentHash>>,
    /// Major and minor keys of crashes that some worker has examined; an input that crashes with
    /// such keys is run only once, without symbolization.
    pub variants: Mutex<HashSet<(Key, Key)>>,
}

/// Locks a set that the worker threads share, even if another thread has panicked while it held the
/// lock.
fn locked<T>(set: &Mutex<HashSet<T>>) -> MutexGuard<'_, HashSet<T>> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers<'_> {
    /// Runs all input files by `jobs` worker threads. The calling thread calls `hear` with each
    /// result and the index of its file, and with `None` when there was no result for a while.
    pub fn run(
        &self,
        jobs: usize,
        mut hear: impl FnMut(Option<(usize, WorkerResult)>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let next = AtomicUsize::new(0);
        let broken = AtomicBool::new(false);
        let jobs = jobs.min(self.files.len()).max(1);
        std::thread::scope(|scope| {
            let (send, answers) = sync_channel(jobs * BACKLOG);
            let workers: Vec<_> = (0..jobs)
                .map(|_| {
                    let (send, next, broken) = (send.clone(), &next, &broken);
                    scope.spawn(move || self.work(next, broken, &send))
                })
                .collect();
            drop(send);
            let heard = listen(answers, &mut hear);
            broken.store(true, Ordering::Relaxed);
            let mut failed = heard.err();
            for worker in workers {
                let answer = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
                failed = failed.or(answer.err());
            }
            failed.map_or(Ok(()), Err)
        })
    }

    fn work(
        &self,
        next: &AtomicUsize,
        broken: &AtomicBool,
        send: &SyncSender<(usize, WorkerResult)>,
    ) -> Result<(), Failure> {
        let done = || self.stop.load(Ordering::Relaxed) || broken.load(Ordering::Relaxed);
        let fail = |_: &_| broken.store(true, Ordering::Relaxed);
        let mut triager = Triager::of_target(self.target, self.way).inspect_err(fail)?;
        while !done() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = self.files.get(at) else {
                break;
            };
            let answer = self.answer(&mut triager, file);
            broken.fetch_or(answer.is_err(), Ordering::Relaxed);
            let answer = answer?;
            let variant = answer.steady_variant();
            if send.send((at, answer)).is_err() {
                break;
            }
            // Once the record is under way, so that nobody's `Again` overtakes it; and before the
            // next input, so that what is done with that hangs on no one's speed.
            locked(&self.variants).extend(variant);
        }
        Ok(())
    }

    fn answer(&self, triager: &mut Triager, file: &Input) -> Result<WorkerResult, Failure> {
        let bytes = match regular::read(&file.path, self.max_len) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(WorkerResult::Unreadable(why_unread(&error))),
        };
        let input = ContentHash::of(&bytes);
        if !locked(&self.taken).insert(input) {
            return Ok(WorkerResult::Duplicate(input));
        }
        let size = bytes.len() as u64;
        let any = !locked(&self.variants).is_empty();
        let is_known = |major, minor| locked(&self.variants).contains(&(major, minor));
        let leaks = self.leaks || may_leak(file);
        let examined = match judged(triager, &bytes, leaks, any, is_known)? {
            Judged::Again(major, minor) => {
                let variant = (major, minor);
                return Ok(WorkerResult::KnownVariant {
                    input,
                    size,
                    variant,
                });
            }
            Judged::New(examined) => examined,
        };
        Ok(WorkerResult::New {
            input,
            bytes: match examined.crash {
                Some(_) => bytes,
                None => Vec::new(),
            },
            size,
            examined,
        })
    }
}

fn listen(
    answers: Receiver<(usize, WorkerResult)>,
    hear: &mut impl FnMut(Option<(usize, WorkerResult)>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    loop {
        match answers.recv_timeout(TICK) {
            Ok(answer) => hear(Some(answer))?,
            Err(RecvTimeoutError::Timeout) => hear(None)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Finds the input files in all directories of `paths`, and prints which fuzzer's layout each has.
/// Files in the output directory `out` are skipped.
pub fn find_inputs(
    paths: &[PathBuf],
    out: Option<&Path>,
    output: &Output,
) -> Result<Inputs, Failure> {
    let mut found = Inputs::default();
    let real_out = out.and_then(|out| out.canonicalize().ok());
    let inside = |path: &Path| {
        let real = path.canonicalize();
        (real_out.as_ref()).is_some_and(|out| real.is_ok_and(|real| real.starts_with(out)))
    };
    for path in paths {
        if let Err(error) = path.symlink_metadata().and_then(|_| path.metadata()) {
            return Err(Failure::file(path, "reading the input", &error));
        }
        if inside(path) {
            let message = format!("{} is in the output directory", path.display());
            return Err(Failure::usage(message)
                .path(path)
                .hint("give another output directory with -o"));
        }
        foreign::find(path, &mut found)?;
    }
    for own in out.map_or_else(Vec::new, |out| found.exclude_output(out)) {
        let own = own.display();
        output.detail(&format!("skipped {own}: the output directory"));
    }
    for directory in &found.directories {
        let idle = directory.inputs == 0 && directory.skipped.is_empty();
        if idle && directory.layout == foreign::Layout::Plain {
            continue;
        }
        let path = printable(&directory.path.to_string_lossy());
        let inputs = size::counted(directory.inputs, "input");
        let passed = match directory.skipped.len() as u64 {
            0 => String::new(),
            count => format!(", {} skipped", size::grouped(count)),
        };
        let layout = directory.layout.name();
        output.say(&format!("{path}: {layout}, {inputs}{passed}"));
        for (path, why) in &directory.skipped {
            let path = printable(&path.to_string_lossy());
            output.detail(&format!("skipped {path}: {why}"));
        }
    }
    Ok(found)
}

/// Formats the reason why a file was not read.
pub fn why_unread(error: &Unread) -> String {
    match error {
        Unread::TooLarge { limit } => format!("it is larger than {}", size::limit(*limit)),
        other => other.to_string(),
    }
}

/// Prints the warning that a file or directory was not read, with the reason `why`.
pub fn say_unread(path: &Path, why: &str, output: &Output) {
    let path = printable(&path.to_string_lossy());
    let hint = match why {
        why if why == Unread::Missing.to_string() => " any more",
        why if why.starts_with("it is larger") => "; --max-len allows more",
        _ => "",
    };
    output.say(&format!("warning: {path} is not run: {why}{hint}"));
}
