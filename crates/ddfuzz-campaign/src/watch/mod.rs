//! Watches what another fuzzer drops: every crash file is run, classified and stored, and each new
//! group is minimized meanwhile.
//!
//! A [`Producer`] drops the files, in [`Watching::sources`]. A file counts once: by
//! its content. What was done is in the journal of triage, so that a call which continues
//! the same campaign runs nothing twice.
//!
//! `engine.rs` looks, hands out and commits, in the order in which the files were found; here are
//! the threads that run inputs; `minimize.rs` is the one that minimizes.

mod engine;
mod minimize;
mod registry;
mod sources;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam::channel::{self, Receiver, Sender};

use super::disk_full::PauseGate;
use super::error::CampaignError;
use super::minimization_queue::run_minimizer;
use super::minimizing::Minimizing;
use super::run::Summary;
use super::screen::Screen;
use super::settings::When;
use super::until::{Deadline, Until};
use super::verdict::{Judged, judged, kind_of, may_leak};
use ddfuzz_exec::ExecError;
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_store::foreign::Input;
use ddfuzz_store::{Kind, KnownGroups, Store};
use ddfuzz_triage::{Key, Triager};
use engine::{Channels, WatchEngine};

/// Watches until the producer has ended and all it left is done, until the time is over or
/// something that was waited for is reached, or until `stop` turns true. The groups that are new
/// then are minimized to the end, except where `stop` is true.
///
/// A bundled program is to be installed in the store before. What the journal of the output
/// directory says of `campaign` and this target is not run again.
///
/// # Errors
/// When the target cannot be run, the producer fails, or the output directory cannot be written;
/// what was committed until then is kept.
pub fn watch(
    store: &Mutex<Store>,
    campaign: &str,
    settings: &Watching,
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

/// Watches with one build of the program; `None` where it is another one now.
fn watch_build(
    engine: &mut WatchEngine<'_>,
    settings: &Watching,
    stop: &AtomicBool,
) -> Result<Option<Summary>, CampaignError> {
    let jobs = settings.jobs.max(1);
    std::thread::scope(|scope| {
        let (task, tasks) = channel::bounded(jobs);
        let (answer, answers) = channel::unbounded();
        let (order, orders) = channel::unbounded();
        let (reply, replies) = channel::unbounded();
        for _ in 0..jobs {
            let examiner = InputExaminer {
                settings,
                stop,
                known: engine.steady_keys(),
                least: HashMap::new(),
                tasks: tasks.clone(),
                answers: answer.clone(),
            };
            scope.spawn(move || examiner.work());
        }
        drop((tasks, answer));
        let (store, minimizing) = (engine.session.store, &settings.minimizing);
        scope.spawn(move || run_minimizer(store, minimizing, stop, &orders, &reply));
        engine.run(Channels {
            task,
            answers,
            order,
            replies,
        })
    })
}

/// One content to be run.
pub(super) struct Task {
    /// Its place in the order of commits, from 0.
    pub(super) at: u64,
    /// The file that has it.
    pub(super) file: Input,
    pub(super) content: ContentHash,
    pub(super) bytes: Vec<u8>,
}

/// Its result.
pub(super) struct ExaminedInput {
    pub(super) task: Task,
    pub(super) judged: Judged,
}

/// One thread that runs inputs, with its own target.
pub(super) struct InputExaminer<'a> {
    pub(super) settings: &'a Watching,
    pub(super) stop: &'a AtomicBool,
    /// Major and minor keys of which a record is at hand. Tasks come in ascending order, so what
    /// this thread has reported is committed before what it reports after it.
    pub(super) known: HashSet<(Key, Key)>,
    /// Size of the smallest input that this thread has reported in full, by major key, of crashes.
    pub(super) least: HashMap<Key, u64>,
    pub(super) tasks: Receiver<Task>,
    pub(super) answers: Sender<Result<ExaminedInput, ExecError>>,
}

impl InputExaminer<'_> {
    /// Runs tasks until there are no more, or the receiver is gone.
    pub(super) fn work(mut self) {
        let mut triager = None;
        while let Ok(task) = self.tasks.recv() {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let answer = self.examine(&mut triager, task);
            let failed = answer.is_err();
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
        let minimizing = &self.settings.minimizing;
        // Started with the first input: there may never be one.
        let triager = match triager {
            Some(triager) => triager,
            none => none.insert(Triager::of_target(&minimizing.target, minimizing.way)?),
        };
        let leaks = self.settings.leaks || may_leak(&task.file);
        let size = task.bytes.len() as u64;
        // A smaller one than all before may have to be stored.
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
        Ok(ExaminedInput { task, judged })
    }
}

/// The settings of one call that watches.
#[derive(Clone, Debug)]
pub struct Watching {
    /// Where files are dropped: directories of any fuzzer that `store::foreign` knows, or of none,
    /// and files. Those that are not there yet are waited for.
    pub sources: Vec<PathBuf>,
    /// The greatest length of an input, in bytes; larger files are not run.
    pub max_len: u64,
    /// Look for leaks in all inputs that do not crash, and not only in those that are named so.
    pub leaks: bool,
    /// Wall time that this call watches.
    pub time: Option<Duration>,
    /// The end of the whole call.
    pub deadline: Deadline,
    /// What else ends this call; whichever comes first.
    pub until: Vec<Until>,
    /// When groups are minimized. There is always one thread for it beside those that run inputs:
    /// [`When::Inline`] and [`When::Worker`] are the same.
    pub when: When,
    /// Threads that run inputs.
    pub jobs: usize,
    /// What is run, and how groups are minimized.
    pub minimizing: Minimizing,
    /// Groups to mute: they are counted and stored, not minimized.
    pub known: KnownGroups,
    /// Whether it waits for room where the disk is full; else that is an error. What drops files
    /// for hours is not to be left alone; where nothing more comes, the same call can be made
    /// again.
    pub waits_for_room: bool,
}

/// Whether more files may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Producing {
    /// More may come.
    Running,
    /// No more will come: the directories are looked through once more, and the watch ends.
    Ended,
}

/// The source of the files that are watched for.
pub trait Producer {
    /// Asked several times a second.
    ///
    /// # Errors
    /// Whatever makes it useless to go on watching.
    fn poll(&mut self) -> Result<Producing, CampaignError>;

    /// Files that it has dropped since it was last asked and that are in none of the
    /// [sources](Watching::sources).
    fn dropped(&mut self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Runs that the fuzzer has made, as far as they are known; 0 where they are not, and then
    /// the inputs that were examined are the runs of the result.
    fn runs(&self) -> u64;
}

/// Fuzzers that somebody else has started, and of which nothing is known but their files.
#[derive(Clone, Copy, Debug)]
pub struct Others(
    /// Whether more files are waited for; else the files that exist now are all.
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
