//! Worker threads of a triage: each runs input files with its own triager.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::campaign::{Examined, Judged, judged, kind_of, mark_as_run, may_leak};
use crate::cli::{Exit, Failure, Output};
use crate::exec::{Ended, Target, Way};
use crate::files::regular::{self, Unread};
use crate::minimize::log::ContentHash;
use crate::pool::{TaskPool, Worker, lock};
use crate::report::size;
use crate::report::text::printable;
use crate::store::foreign::{Input, Inputs};
use crate::store::{Kind, foreign};
use crate::triage::{Key, Triager};

/// What a worker thread of a triage has found out about one input file: unreadable, a duplicate, a
/// known crash, or the result of several runs.
pub enum WorkerResult {
    /// The input file could not be read; the text says why.
    Unreadable(String),
    /// Another file with the same content was run before, or is being run by another worker; the
    /// value is the hash of the content.
    Duplicate(ContentHash),
    /// The input crashed with the major and minor key (coarse and fine hash of the crash) of an
    /// earlier input, and was therefore run only once.
    KnownVariant {
        input: ContentHash,
        /// Length in bytes of the input that showed a known crash.
        size: u64,
        /// Major and minor key (coarse and fine hash) of the crash that the input showed.
        variant: (Key, Key),
        /// How the run of the input ended.
        ended: Ended,
    },
    /// The input was examined: run several times, and its crash, if it has one, symbolized.
    New {
        input: ContentHash,
        /// Content of the input file if the input crashed; else empty.
        bytes: Vec<u8>,
        /// Length in bytes of the input that was examined.
        size: u64,
        /// Whether memory leaks were looked for in a run of the input.
        leaks: bool,
        examined: Examined,
    },
}

impl WorkerResult {
    /// Returns the major and minor key (coarse and fine hash) of the crash if the input was
    /// examined and crashes each time it is run; else `None`.
    fn steady_variant(&self) -> Option<(Key, Key)> {
        let WorkerResult::New { examined, .. } = self else {
            return None;
        };
        let crash = examined.crash.as_deref();
        let crash = crash.filter(|crash| kind_of(crash) != Kind::Flaky)?;
        Some((crash.keys.major, crash.keys.minor))
    }
}

/// What the worker threads of a triage share: the target, the input files, the hashes of inputs
/// that a worker has taken, and the keys of crashes seen so far.
pub struct Workers<'a> {
    pub target: &'a Target,
    pub way: Way,
    pub files: &'a [Input],
    /// Maximum length in bytes of an input that the worker threads run; larger files are not run.
    pub max_len: u64,
    /// Whether all inputs that do not crash are checked for memory leaks; false checks only files
    /// whose names announce a leak.
    pub leaks: bool,
    /// Flag that makes the worker threads end once it is true.
    pub stop: &'a AtomicBool,
    /// For each input that a worker thread has taken to run it, by its hash: whether a check for
    /// memory leaks would add nothing, since leaks are looked for already or the input has crashed.
    pub taken: Mutex<HashMap<ContentHash, bool>>,
    /// Major and minor keys (coarse and fine hashes) of crashes that a worker has examined; an
    /// input that crashes with one of these pairs of keys is run only once, without symbolization.
    pub variants: Mutex<HashSet<(Key, Key)>>,
}

impl Workers<'_> {
    /// Runs all input files by `jobs` worker threads; files whose runs are abandoned, because the user
    /// stops the triage, have no result. Meanwhile, the calling thread calls `hear`
    /// with the index of each file and its result; when no result has come for a while, it calls
    /// `hear` with `None`.
    pub fn run(
        &self,
        jobs: usize,
        mut hear: impl FnMut(Option<(usize, WorkerResult)>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let goes_on = || !self.stop.load(Ordering::Relaxed);
        let pool = TaskPool::new(jobs.min(self.files.len()), &goes_on);
        let files = self.files.iter().enumerate();
        let mut failed = Ok(());
        let heard = pool.run(
            files,
            |worker| self.work(worker),
            |report| {
                match report.transpose() {
                    Ok(answer) => hear(answer),
                    // A file whose run was abandoned is left to the next call.
                    Err(error) if error.exit == Exit::Interrupted => Ok(()),
                    // Results of other workers are still received after an error.
                    Err(error) => {
                        if failed.is_ok() {
                            failed = Err(error);
                        }
                        Ok(())
                    }
                }
            },
        );
        heard.and(failed)
    }

    fn work(
        &self,
        worker: &Worker<'_, (usize, &Input), (usize, WorkerResult), Failure>,
    ) -> Result<(), Failure> {
        let mut triager = Triager::of_target(self.target, self.way)?;
        while let Some((at, file)) = worker.next_task() {
            let answer = self.answer(&mut triager, file)?;
            let variant = answer.steady_variant();
            worker.report((at, answer));
            // The keys are added after the result was sent, so that no result which refers to them
            // arrives first; and before the next input, whose handling then does not depend on
            // other threads.
            lock(&self.variants).extend(variant);
        }
        Ok(())
    }

    fn answer(&self, triager: &mut Triager, file: &Input) -> Result<WorkerResult, Failure> {
        let bytes = match regular::read(&file.path, self.max_len) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(WorkerResult::Unreadable(why_unread(&error))),
        };
        let input = ContentHash::of(&bytes);
        let leaks = self.leaks || may_leak(file);
        if !mark_as_run(&mut lock(&self.taken), input, leaks) {
            return Ok(WorkerResult::Duplicate(input));
        }
        let size = bytes.len() as u64;
        let any = !lock(&self.variants).is_empty();
        let is_known = |major, minor| lock(&self.variants).contains(&(major, minor));
        let examined = match judged(triager, &bytes, leaks, any, is_known)? {
            Judged::Again { variant, ended } => {
                return Ok(WorkerResult::KnownVariant {
                    input,
                    size,
                    variant,
                    ended,
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
            leaks,
            examined,
        })
    }
}

/// Finds the input files in the files and directories `paths`, and prints which fuzzer's layout
/// each directory has. Files in the output directory `out` are skipped. Fails if one of `paths`
/// does not exist or is itself in `out`.
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
