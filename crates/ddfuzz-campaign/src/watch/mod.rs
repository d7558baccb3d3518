//! Watches what another fuzzer drops: runs, classifies and stores every crash file, and minimizes
//! each new group meanwhile.
//!
//! A [`Producer`] is the fuzzer that drops files into [`WatchSettings::sources`]. A file is
//! identified by its content, and the journal of triage records which contents were run, so that no
//! call runs a content twice.
//!
//! `engine.rs` finds files, hands them out and commits the results; the examiner threads, which run
//! the inputs, are in this file. A [`TaskPool`](ddfuzz_model::pool::TaskPool) is not used, since
//! its calling thread only receives results; the calling thread of a watch also searches for files.

mod engine;
mod registry;
mod sources;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam::channel::{self, Receiver, Sender};

use super::disk_full::PauseGate;
use super::error::CampaignError;
use super::minimization_queue::run_minimizer;
use super::minimizing::Minimizing;
use super::screen::Screen;
use super::session::Summary;
use super::settings::When;
use super::until::{Deadline, Until};
use super::verdict::{Judged, judged, kind_of, may_leak};
use ddfuzz_exec::{ExecError, Target};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_store::report::EndedBy;
use ddfuzz_store::{Kind, KnownGroups, Store, foreign::Input};
use ddfuzz_triage::{Key, Triager};
use engine::{Channels, WatchEngine};

/// Examines the files that another fuzzer (`producer`) drops, until it has ended and all its files
/// are examined, the time is over, a condition of `--until` is met, or `stop` turns true. Then
/// minimizes the remaining groups, unless `stop` is true.
///
/// The caller must install a bundled program in the store before. Contents that the journal of the
/// output directory records for `campaign` and the same target are not run again.
///
/// # Errors
/// When the target cannot be run, the producer fails, or the output directory cannot be written;
/// everything stored before the error is kept.
pub fn watch(
    store: &Mutex<Store>,
    campaign: &str,
    settings: &WatchSettings,
    producer: &mut dyn Producer,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<Summary, CampaignError> {
    let gate = PauseGate::default();
    let mut engine = WatchEngine::begin(store, campaign, settings, producer, screen, stop, &gate)?;
    loop {
        if let Some(summary) = watch_build(&mut engine, settings, stop)? {
            return Ok(summary);
        }
        engine.take_build()?;
    }
}

/// Starts the examiner threads and the minimizing thread, and examines the files that another
/// fuzzer drops, until the watch ends or the program is rebuilt. Returns the summary; `None` when
/// the program was rebuilt and the watch has to start again.
fn watch_build(
    engine: &mut WatchEngine<'_>,
    settings: &WatchSettings,
    stop: &AtomicBool,
) -> Result<Option<Summary>, CampaignError> {
    let jobs = settings.jobs.max(1);
    let is_over = Arc::new(AtomicBool::new(false));
    let target = engine.abandoning(&settings.minimizing.target, &is_over);
    std::thread::scope(|scope| {
        let (task, tasks) = channel::bounded(jobs);
        let (answer, answers) = channel::unbounded();
        let (order, orders) = channel::unbounded();
        let (reply, replies) = channel::unbounded();
        for _ in 0..jobs {
            let examiner = InputExaminer {
                settings,
                target: &target,
                stop,
                known: engine.steady_keys(),
                least: engine.least_sizes(),
                tasks: tasks.clone(),
                answers: answer.clone(),
            };
            scope.spawn(move || examiner.work());
        }
        drop((tasks, answer));
        let (store, minimizing) = (engine.session.store, &settings.minimizing);
        scope.spawn(move || run_minimizer(store, minimizing, stop, &orders, &reply));
        let done = engine.run(Channels {
            task,
            answers,
            order,
            replies,
        });
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

/// A task for an examiner thread: to run the content of one file.
struct Task {
    /// Number of the task, from 0, in the order in which tasks were handed out. Results are counted
    /// and stored in this order, except those of files that the watched fuzzer reports as hangs.
    at: u64,
    /// The file that the content to run was read from.
    file: Input,
    content: ContentHash,
    bytes: Vec<u8>,
}

/// A task (a file's content to run) and the result of running it.
struct ExaminedInput {
    task: Task,
    judged: Judged,
    /// Whether leaks were looked for if the input did not crash.
    leaks: bool,
}

/// An examiner thread of a watch: runs the inputs of tasks on its own instance of the target.
struct InputExaminer<'a> {
    settings: &'a WatchSettings,
    /// The target that the thread runs. Its runs are abandoned when the call of ddfuzz is stopped,
    /// two seconds after the end of the time for the watch, and when the watch ends for another
    /// reason.
    target: &'a Target,
    stop: &'a AtomicBool,
    /// Major and minor keys (coarse and fine hashes) of crashes that need no full record: this
    /// thread has reported a full record with these keys, or such a crash was known when the thread
    /// was started. Tasks come in ascending order, so the earlier reports of a thread are counted
    /// and stored before its later ones.
    known: HashSet<(Key, Key)>,
    /// By major key (hash that identifies a bug) of a group of crashes: size in bytes of the
    /// smallest crashing input that this thread has reported with a full record.
    least: HashMap<Key, u64>,
    tasks: Receiver<Task>,
    answers: Sender<Result<ExaminedInput, ExecError>>,
}

impl InputExaminer<'_> {
    /// Runs the examiner thread: runs the inputs of tasks and sends the results, until the channel
    /// of tasks closes, the receiver of results is gone, a run fails, or the call of ddfuzz is
    /// stopped. Sends nothing for an input whose run was abandoned.
    fn work(mut self) {
        let mut triager = None;
        while let Ok(task) = self.tasks.recv() {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let answer = self.examine(&mut triager, task);
            let failed = answer.is_err();
            if matches!(answer, Err(ExecError::Abandoned)) {
                return;
            }
            if self.answers.send(answer).is_err() || failed {
                return;
            }
        }
    }

    fn examine(
        &mut self,
        triager: &mut Option<Triager>,
        task: Task,
    ) -> Result<ExaminedInput, ExecError> {
        // The target is started with the first input, since there may never be one.
        let triager = match triager {
            Some(triager) => triager,
            none => {
                let way = self.settings.minimizing.way;
                none.insert(Triager::of_target(self.target, way)?)
            }
        };
        let leaks = self.settings.leaks || may_leak(&task.file);
        let size = task.bytes.len() as u64;
        // An input smaller than all before may have to be stored.
        let is_smaller = |major| self.least.get(&major).is_some_and(|least| size < *least);
        let is_known = |major, minor| self.known.contains(&(major, minor)) && !is_smaller(major);
        let any = !self.known.is_empty();
        let judged = judged(triager, &task.bytes, leaks, any, is_known)?;
        if let Judged::New(examined) = &judged
            && let Some(crash) = &examined.crash
            && kind_of(crash) != Kind::Flaky
        {
            let major = crash.keys.major;
            self.known.insert((major, crash.keys.minor));
            if kind_of(crash) == Kind::Crash {
                let least = self.least.entry(major).or_insert(size);
                *least = size.min(*least);
            }
        }
        Ok(ExaminedInput {
            task,
            judged,
            leaks,
        })
    }
}

/// The settings of one call of ddfuzz for a watch, which examines the files that another fuzzer
/// drops.
#[derive(Clone, Debug)]
pub struct WatchSettings {
    /// Files and directories in which inputs are searched for: output directories of fuzzers that
    /// `store::foreign` knows, or directories of plain files. A path that does not exist yet is
    /// waited for.
    pub sources: Vec<PathBuf>,
    /// Greatest length of an input, in bytes; larger files are not run, and the user is told of
    /// them.
    pub max_len: u64,
    /// Whether memory leaks are looked for with all inputs that do not crash; if false, only with
    /// files whose names say that they show a leak.
    pub leaks: bool,
    /// Wall time that this call of ddfuzz watches; `None` means no limit.
    pub time: Option<Duration>,
    /// Deadline of the whole call of ddfuzz, with the minimizations after the watch
    /// (`--total-time`).
    pub deadline: Deadline,
    /// Conditions (`--until`) that end the watch when one of them is met.
    pub until: Vec<Until>,
    /// When the groups that the watch finds are minimized. A separate thread minimizes, so
    /// [`When::Inline`] and [`When::Worker`] are the same.
    pub when: When,
    /// Number of examiner threads, which run the found files.
    pub jobs: usize,
    /// The target, and the settings of the minimization of groups.
    pub minimizing: Minimizing,
    /// Groups that the user has muted: their findings are stored and counted, but they neither
    /// count as new nor are minimized.
    pub known: KnownGroups,
    /// Whether the watch waits while the disk is full; if false, a full disk is an error. A watch
    /// beside a running fuzzer should wait; a watch of finished files can just be repeated.
    pub waits_for_room: bool,
}

/// Whether the watched fuzzer may still drop files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Producing {
    /// The watched fuzzer runs, so more files may come.
    Running,
    /// The watched fuzzer has ended: the watch searches for files once more and ends.
    Ended,
}

/// A fuzzer whose dropped files a watch examines.
pub trait Producer {
    /// Returns whether the watched fuzzer may still drop files; called several times a second.
    ///
    /// # Errors
    /// When it is useless to go on watching; the watch then ends with the error.
    fn poll(&mut self) -> Result<Producing, CampaignError>;

    /// Returns files that the watched fuzzer has dropped since the last call and that are in none
    /// of the [sources](WatchSettings::sources).
    fn dropped(&mut self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns the number of runs that the watched fuzzer has made; 0 if unknown, so that the
    /// summary counts the examined inputs as runs instead.
    fn runs(&self) -> u64;

    /// Returns an error that describes why the watched fuzzer has ended too early; only the first
    /// call after its end returns it. `None` in later calls, while the fuzzer runs, and if its end
    /// was normal. Files that it has dropped are examined in any case.
    fn failure(&mut self) -> Option<CampaignError> {
        None
    }

    /// Returns a warning about the watched fuzzer, such as that it was killed and started again,
    /// for the result of the watch; `None` if there is nothing to warn of.
    fn warning(&self) -> Option<String> {
        None
    }

    /// Returns why the watched fuzzer has ended; called after [`poll`](Producer::poll) has returned
    /// [`Producing::Ended`].
    fn ended_by(&self) -> EndedBy {
        EndedBy::Fuzzer
    }
}

/// A [`Producer`] for fuzzers that ddfuzz has not started; it knows only the files that they drop.
#[derive(Clone, Copy, Debug)]
pub struct Others(
    /// The answer that each [`Producer::poll`] gives: with [`Producing::Ended`], only the files
    /// that exist now are examined; with [`Producing::Running`], the watch goes on until it is
    /// stopped.
    pub Producing,
);

impl Producer for Others {
    fn poll(&mut self) -> Result<Producing, CampaignError> {
        Ok(self.0)
    }

    fn runs(&self) -> u64 {
        0
    }
}
