//! Workers that build and test versions, each in a separate worktree. Idle ones test versions ahead
//! that the search will probably ask for.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use ddfuzz_delta::Outcome;

use crate::ChangesError;
use crate::recipe::Recipe;
use crate::repository::Repository;
use crate::tree::Tree;
use crate::workbench::{BuildBase, Report, Workbench};

/// While a search waits for a worker, it checks after at most this time whether the user has
/// stopped it.
const TICK: Duration = Duration::from_millis(50);
/// Factor by which builds and tests of candidates may take longer than the slowest build and test
/// of the old and the new version.
const FACTOR: u32 = 10;
/// Minimum of the limit on a build's wall time that is learned from earlier builds.
const LEAST_BUILD: Duration = Duration::from_secs(30);
/// Minimum of the limit on a test's CPU time that is learned from earlier tests.
const LEAST_TEST: Duration = Duration::from_secs(5);

/// A version for a worker thread to build and test, with its limits.
struct Job {
    tree: Arc<Tree>,
    key: [u8; 32],
    /// What is in the worker's directory, beside the version's files, when the build of the version
    /// begins.
    base: BuildBase,
    /// Limits for this version: on the wall time of its build, and on the CPU time of its test.
    limits: (Duration, Duration),
}

/// What the search knows of one worker thread: the channel to it, and the versions that it was
/// given.
struct Worker {
    jobs: Sender<Job>,
    /// Key (hash of the files) of the version that the worker builds and tests now; `None` if it is
    /// idle.
    busy: Option<[u8; 32]>,
    /// The version that was given to the worker last, whose files are in its directory; `None`
    /// before the first version.
    holds: Option<Arc<Tree>>,
}

type Done = (usize, Result<Report, ChangesError>);

/// The pool of worker threads that build and test versions for a search. It keeps the reports of
/// versions that were tested ahead, and learns the time limits. The threads are not joined: if the
/// search is stopped during a long build, ddfuzz ends, and the supervisor processes end the build.
pub struct Workers {
    workers: Vec<Worker>,
    done: Receiver<Done>,
    /// Reports of tested versions that the search has not asked for yet, by the key (hash of the
    /// files) of the version.
    ahead: HashMap<[u8; 32], Report>,
    /// Time limits, as a pair: of builds (on wall time), and of tests (on CPU time).
    pub(crate) limits: (Duration, Duration),
    /// Whether the user has set the time limit, as a pair: of builds, and of tests; a limit that
    /// the user has set is not learned.
    keep: (bool, bool),
    /// Longest wall time so far, as a pair: of a build, and of a test. Only versions that the
    /// search asked for count, not those that were only tested ahead.
    slowest: (Duration, Duration),
    stop: Arc<AtomicBool>,
    /// Whether a command builds each version before its test.
    pub(crate) has_build: bool,
    /// Number of builds that were run, including failed ones and those of versions that were tested
    /// ahead.
    pub builds: u64,
    /// Number of versions that idle workers were given to test ahead, whether or not the search
    /// asked for them later.
    pub speculative: u64,
}

impl Workers {
    /// Starts `jobs` worker threads, at least one, each of which builds and tests versions, as
    /// `recipe` says, in a separate directory in `folder`. Setting `stop` ends a search that waits
    /// for them.
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
            has_build: recipe.build.is_some(),
            builds: 0,
            speculative: 0,
        })
    }

    /// Returns how many versions can be tested ahead while the search waits for another version:
    /// one less than there are workers.
    pub fn most_ahead(&self) -> usize {
        self.workers.len() - 1
    }

    /// Sets the time limits on builds and tests to `FACTOR` times the longest ones so far, but at
    /// least to `LEAST_BUILD` and `LEAST_TEST`. Limits that the user has set stay; if no time is
    /// known, all limits stay.
    pub fn learn_limits(&mut self) {
        if self.slowest.1.is_zero() {
            return; // the log of an earlier version of ddfuzz, which has no times
        }
        if !self.keep.0 {
            self.limits.0 = (self.slowest.0 * FACTOR).max(LEAST_BUILD);
        }
        if !self.keep.1 {
            self.limits.1 = (self.slowest.1 * FACTOR).max(LEAST_TEST);
        }
    }

    /// Returns two wall times: that of the slowest build and that of the slowest test. Only
    /// versions that the search has asked for count, in this call or in an earlier call whose log
    /// is continued.
    pub fn slowest(&self) -> [Duration; 2] {
        self.slowest.into()
    }

    /// Takes over the times of an earlier call from its log: `slowest` are the wall times of its
    /// slowest build and of its slowest test, from which time limits are computed.
    pub fn note_logged(&mut self, slowest: [Duration; 2]) {
        let [build, test] = slowest;
        self.slowest = (self.slowest.0.max(build), self.slowest.1.max(test));
    }

    /// Returns the report of building and testing the version `tree`: at once if it was tested
    /// ahead, else as soon as a worker has tested it. Idle workers test the versions `ahead`
    /// meanwhile. If `base` is not [`BuildBase::Any`], the version `tree` is built and tested even
    /// if there is a report already.
    ///
    /// # Errors
    ///
    /// Those of [`Workbench::run`] for this version; [`ChangesError::Interrupted`] if the user
    /// stops the search.
    pub fn run(
        &mut self,
        tree: &Arc<Tree>,
        base: &BuildBase,
        ahead: Vec<Arc<Tree>>,
    ) -> Result<Report, ChangesError> {
        let key = tree.key();
        let is_anew = !matches!(base, BuildBase::Any);
        self.collect();
        let is_known = |workers: &Workers| workers.ahead.contains_key(&key);
        let is_running = |workers: &Workers| {
            workers
                .workers
                .iter()
                .any(|worker| worker.busy == Some(key))
        };
        if is_anew || !is_known(self) && !is_running(self) {
            self.wait_for_an_idle_worker(is_anew)?;
            if is_anew || !is_known(self) {
                self.give(tree, base);
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
                self.give(&tree, &BuildBase::Any);
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

    /// Tests the version `tree`, which was tested last, twice more on the same build, and returns
    /// both reports.
    ///
    /// # Errors
    /// Those of [`Workers::run`].
    pub fn test_again(&mut self, tree: &Arc<Tree>) -> Result<[Report; 2], ChangesError> {
        let mut again = || self.run(tree, &BuildBase::Any, Vec::new());
        Ok([again()?, again()?])
    }

    /// Finds out why the new version `tree` does not fail on the build of the old version: tests it
    /// twice more on this build, and up to three times on a build made in an empty directory.
    /// `is_failing` tells whether a test fails.
    ///
    /// # Errors
    /// [`ChangesError::StaleBuild`] if only the tests on the build from the empty directory fail,
    /// and all of these do: an incremental build then misses a change.
    /// [`ChangesError::Alternating`], which calls the version `shown`, if tests of one build
    /// differ; and those of [`Workers::run`].
    pub fn check_not_stale(
        &mut self,
        tree: &Arc<Tree>,
        shown: &str,
        is_failing: impl Fn(&Report) -> bool,
    ) -> Result<(), ChangesError> {
        let on_old = self.test_again(tree)?;
        let anew = self.run(tree, &BuildBase::Empty, Vec::new())?;
        let is_stale = is_failing(&anew);
        let again = match is_stale {
            true => self.test_again(tree)?.to_vec(),
            false => Vec::new(),
        };
        if on_old.iter().any(&is_failing) || !again.iter().all(&is_failing) {
            let all = on_old.iter().chain([&anew]).chain(&again);
            let outcomes: Vec<Outcome> = all.filter_map(|report| report.outcome).collect();
            return Err(ChangesError::alternating(shown, &outcomes));
        }
        match is_stale {
            true => Err(ChangesError::StaleBuild {
                what: "the new version fails if it is built in an empty directory, but not on \
                       the build of the old version"
                    .to_owned(),
                has_build: self.has_build,
            }),
            false => Ok(()),
        }
    }

    /// Gives the version `tree` to an idle worker: to the one whose last version differs from
    /// `tree` in the fewest files. If `base` is not [`BuildBase::Any`], only the first worker may
    /// get it, because it mostly has a copy of the build of the version in `base`. Does nothing if
    /// no worker that may get it is idle.
    fn give(&mut self, tree: &Arc<Tree>, base: &BuildBase) {
        let distance = |worker: &Worker| match &worker.holds {
            None => usize::MAX,
            Some(held) => held
                .entries()
                .filter(|(path, entry)| tree.get(path) != Some(entry))
                .count(),
        };
        let count = match base {
            BuildBase::Any => self.workers.len(),
            BuildBase::Empty | BuildBase::Version(_) => 1,
        };
        let idle = self.workers[..count]
            .iter_mut()
            .filter(|worker| worker.busy.is_none());
        if let Some(worker) = idle.min_by_key(|worker| distance(worker)) {
            let key = tree.key();
            let job = Job {
                tree: Arc::clone(tree),
                key,
                base: base.clone(),
                limits: self.limits,
            };
            // A worker ends only with the search.
            if worker.jobs.send(job).is_ok() {
                (worker.busy, worker.holds) = (Some(key), Some(Arc::clone(tree)));
            }
        }
    }

    /// Waits until any worker is idle or, if `is_first` is set, until the first worker is.
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

    /// Stores all reports that workers have sent so far, without waiting for more.
    fn collect(&mut self) {
        while let Ok((number, result)) = self.done.try_recv() {
            self.file(number, result);
        }
    }

    /// Waits a short time for a worker's report, and stores it. Returns an error if the version
    /// with the key `key` (hash of the files) could not be tested; errors of other versions are
    /// dropped, because the search may never ask for these.
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
                self.builds += report.builds;
                self.ahead.insert(key, report);
                None
            }
            Err(error) => Some((key, error)),
        }
    }
}

/// Runs a worker thread: builds and tests each version from `inbox` on its workbench, and sends the
/// report, until the search ends.
fn work(
    number: usize,
    mut bench: Workbench,
    inbox: &Receiver<Job>,
    report: &Sender<Done>,
    repository: &Repository,
) {
    while let Ok(job) = inbox.recv() {
        bench.limit(job.limits.0, job.limits.1);
        let result = bench.run(&job.tree, job.key, &job.base, repository);
        if report.send((number, result)).is_err() {
            return;
        }
    }
}
