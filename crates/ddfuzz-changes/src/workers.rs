//! Workers that build and test versions, each in a separate worktree. Idle ones test versions ahead
//! that the search will probably ask for.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::ChangesError;
use crate::recipe::Recipe;
use crate::repository::Repository;
use crate::tree::Tree;
use crate::workbench::{Report, Workbench};

/// Longest time between two looks at whether the user has stopped the search.
const TICK: Duration = Duration::from_millis(50);
/// Builds and tests of candidates may take this many times as long as those of the two versions.
const FACTOR: u32 = 10;
/// Shortest limit on the wall time of a build that is learned.
const LEAST_BUILD: Duration = Duration::from_secs(30);
/// Shortest limit on the CPU time of a test that is learned.
const LEAST_TEST: Duration = Duration::from_secs(5);

/// A version to build and test.
struct Job {
    tree: Arc<Tree>,
    key: [u8; 32],
    anew: bool,
    /// Limits on the time of a build and on the CPU time of a test.
    limits: (Duration, Duration),
}

/// A worker thread, seen from the search.
struct Worker {
    jobs: Sender<Job>,
    /// Key of the version that the worker builds and tests; `None` if it is idle.
    busy: Option<[u8; 32]>,
    /// The version that the worker was given last; `None` before the first.
    holds: Option<Arc<Tree>>,
}

type Done = (usize, Result<Report, ChangesError>);

/// Hands versions to the worker threads that build and test them, keeps the reports of versions
/// tested ahead, and learns the time limits. The threads are not joined: if the search is stopped
/// in a long build, ddfuzz ends, and the supervisors end the build.
pub struct Workers {
    workers: Vec<Worker>,
    done: Receiver<Done>,
    /// Reports that have arrived and that the search has not yet asked for, by the key of the
    /// version.
    ahead: HashMap<[u8; 32], Report>,
    limits: (Duration, Duration),
    /// Whether the limits on builds and on tests are those of the user, which are not learned.
    keep: (bool, bool),
    /// Longest wall time of a build and of a test so far.
    slowest: (Duration, Duration),
    stop: Arc<AtomicBool>,
    /// Number of builds that were run, also those that failed and those of versions tested ahead.
    pub builds: u64,
    /// Number of versions that were given to idle workers to be tested ahead, whether or not the
    /// search asked for them later.
    pub speculative: u64,
}

impl Workers {
    /// Starts `jobs` workers, at least one, whose worktrees are directories in `folder`.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(
        jobs: usize,
        recipe: &Recipe,
        repository: &Arc<Repository>,
        folder: &Path,
        stop: &Arc<AtomicBool>,
    ) -> Result<Workers, ChangesError> {
        let (report, done) = channel();
        let mut workers = Vec::new();
        for number in 0..jobs.max(1) {
            let (jobs, inbox) = channel::<Job>();
            let bench = Workbench::new(recipe.clone(), folder.join(format!("tree-{number}")));
            let (report, repository) = (report.clone(), Arc::clone(repository));
            let started = std::thread::Builder::new()
                .name(format!("ddfuzz-build-{number}"))
                .spawn(move || work(number, bench, &inbox, &report, &repository));
            started.map_err(ChangesError::system("starting a worker thread"))?;
            workers.push(Worker {
                jobs,
                busy: None,
                holds: None,
            });
        }
        Ok(Workers {
            workers,
            done,
            ahead: HashMap::new(),
            limits: (recipe.build_time, recipe.test_time),
            keep: (recipe.keep_build_time, recipe.keep_test_time),
            slowest: (Duration::ZERO, Duration::ZERO),
            stop: Arc::clone(stop),
            builds: 0,
            speculative: 0,
        })
    }

    /// Returns how many versions can be tested at the same time as the one that the search asks
    /// for.
    pub fn spare(&self) -> usize {
        self.workers.len() - 1
    }

    /// Sets the limits on time to `FACTOR` times the longest build and test so far, and at least to
    /// the shortest limits. Limits that the user has set stay.
    pub fn learn_limits(&mut self) {
        if !self.keep.0 {
            self.limits.0 = (self.slowest.0 * FACTOR).max(LEAST_BUILD);
        }
        if !self.keep.1 {
            self.limits.1 = (self.slowest.1 * FACTOR).max(LEAST_TEST);
        }
    }

    /// Builds and tests a version, and returns its report, at once if the version was tested ahead.
    /// Idle workers test the versions `ahead` meanwhile. With `anew`, the version is tested again,
    /// on the first build alone (see [`Workbench::run`]).
    ///
    /// # Errors
    ///
    /// Those of [`Workbench::run`] for this version; [`ChangesError::Interrupted`] if the user
    /// stops the search.
    pub fn run(
        &mut self,
        tree: &Arc<Tree>,
        anew: bool,
        ahead: Vec<Arc<Tree>>,
    ) -> Result<Report, ChangesError> {
        let key = tree.key();
        self.collect();
        let is_known = |workers: &Workers| workers.ahead.contains_key(&key);
        let is_running = |workers: &Workers| {
            workers
                .workers
                .iter()
                .any(|worker| worker.busy == Some(key))
        };
        if anew || !is_known(self) && !is_running(self) {
            self.wait_for_an_idle_worker(anew)?;
            if anew || !is_known(self) {
                self.give(tree, anew);
            }
        }
        for tree in ahead {
            let next = tree.key();
            let has = |worker: &Worker| worker.busy == Some(next);
            let is_idle = |worker: &Worker| worker.busy.is_none();
            if !self.ahead.contains_key(&next)
                && !self.workers.iter().any(has)
                && self.workers.iter().any(is_idle)
            {
                self.give(&tree, false);
                self.speculative += 1;
            }
        }
        loop {
            if let Some(report) = self.ahead.remove(&key) {
                self.slowest.0 = self.slowest.0.max(report.build_took);
                self.slowest.1 = self
                    .slowest
                    .1
                    .max(report.took.saturating_sub(report.build_took));
                return Ok(report);
            }
            self.receive(key)?;
        }
    }

    /// Gives a version to the idle worker whose worktree differs from it in the fewest files; with
    /// `anew`, to the first worker, which has the first build. Does nothing if no such worker is
    /// idle.
    fn give(&mut self, tree: &Arc<Tree>, anew: bool) {
        let distance = |worker: &Worker| match &worker.holds {
            None => usize::MAX,
            Some(held) => held
                .entries()
                .filter(|(path, entry)| tree.get(path) != Some(entry))
                .count(),
        };
        let count = if anew { 1 } else { self.workers.len() };
        let idle = self.workers[..count]
            .iter_mut()
            .filter(|worker| worker.busy.is_none());
        if let Some(worker) = idle.min_by_key(|worker| distance(worker)) {
            let key = tree.key();
            let job = Job {
                tree: Arc::clone(tree),
                key,
                anew,
                limits: self.limits,
            };
            // A worker ends only with the search.
            if worker.jobs.send(job).is_ok() {
                (worker.busy, worker.holds) = (Some(key), Some(Arc::clone(tree)));
            }
        }
    }

    /// Waits until any worker is idle; with `is_first`, until the first worker is, which has built
    /// the first version.
    fn wait_for_an_idle_worker(&mut self, is_first: bool) -> Result<(), ChangesError> {
        let count = if is_first { 1 } else { self.workers.len() };
        while self.workers[..count]
            .iter()
            .all(|worker| worker.busy.is_some())
        {
            self.receive([0; 32])?;
        }
        Ok(())
    }

    /// Stores the reports that have arrived, without waiting.
    fn collect(&mut self) {
        while let Ok((number, result)) = self.done.try_recv() {
            self.file(number, result);
        }
    }

    /// Waits for a report for a short time, and stores it. An error of the version `key` is
    /// returned; those of others are dropped, because the search may never ask for these versions.
    fn receive(&mut self, key: [u8; 32]) -> Result<(), ChangesError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ChangesError::Interrupted { executed: 0 });
        }
        match self.done.recv_timeout(TICK) {
            Ok((number, result)) => match self.file(number, result) {
                Some((failed, error)) if failed == key => Err(error),
                _ => Ok(()),
            },
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(ChangesError::system("waiting for a worker")(
                    std::io::Error::from(std::io::ErrorKind::BrokenPipe),
                ))
            }
        }
    }

    fn file(
        &mut self,
        number: usize,
        result: Result<Report, ChangesError>,
    ) -> Option<([u8; 32], ChangesError)> {
        let key = self.workers[number].busy.take()?;
        match result {
            Ok(report) => {
                self.builds += u64::from(report.has_built);
                self.ahead.insert(key, report);
                None
            }
            Err(error) => Some((key, error)),
        }
    }
}

/// Runs one worker: builds and tests one version after another, until the search ends.
fn work(
    number: usize,
    mut bench: Workbench,
    inbox: &Receiver<Job>,
    report: &Sender<Done>,
    repository: &Repository,
) {
    while let Ok(job) = inbox.recv() {
        bench.limit(job.limits.0, job.limits.1);
        let result = bench.run(&job.tree, job.key, job.anew, repository);
        if report.send((number, result)).is_err() {
            return;
        }
    }
}
