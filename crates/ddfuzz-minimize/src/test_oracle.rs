//! The oracle that runs an interestingness test, and the check that the file of the test does not
//! change.

use ddfuzz_delta::Outcome;
use ddfuzz_exec::{Ended, Executor, Freshness, Target, TimeLimit, start_test};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{
    Answer, CutOff, Kind, Oracle, OracleError, PROOF_TIME_FACTOR, Process, log::ContentHash,
};

/// Exit status by which an interestingness test says that it cannot decide (UNRESOLVED).
const CANNOT_TELL: i32 = 125;

/// Runs an interestingness test on candidates (docs/src/interestingness.md).
///
/// - FAIL: the test exited with 0; the candidate is interesting.
/// - UNRESOLVED: the test exited with 125, or exceeded a limit.
/// - PASS: the test exited with another status, or by a signal.
///
/// Each run has a working directory that contains only the candidate. The search runs a test that
/// starts no other processes by forks, or many times in one process that puts back what each run
/// has changed; proofs and confirmations execute it anew. The file of the test must not change
/// while the oracle exists, because outcomes of two versions must not be mixed.
pub struct TestOracle {
    script: Script,
    /// The program of the interestingness test, and the limits of its runs.
    target: Target,
    name: OsString,
    executor: Box<dyn Executor>,
    /// Executor that executes the test anew for each run, with longer time limits, for proofs;
    /// started at its first use.
    patient: Option<Box<dyn Executor>>,
    last: Option<Ended>,
    /// Whether the user set the time limit, so that it is not learned.
    fixed_time: bool,
}

impl TestOracle {
    /// Makes an oracle that runs the interestingness test `target`, whose file is `script`. Each
    /// candidate is stored as `name` in the working directory of its run.
    ///
    /// # Errors
    /// If the test cannot be started.
    pub fn new(script: Script, target: Target, name: OsString) -> Result<TestOracle, OracleError> {
        let executor = start_test(&target, &name, Freshness::Shared)?;
        Ok(TestOracle {
            script,
            target,
            name,
            executor,
            patient: None,
            last: None,
            fixed_time: false,
        })
    }

    /// Makes the oracle keep the time limit of its target and ignore limits learned from runs.
    pub fn with_fixed_time(mut self) -> TestOracle {
        self.fixed_time = true;
        self
    }

    /// Returns how the last run of the interestingness test ended; `None` before the first run.
    pub fn last_ended(&self) -> Option<Ended> {
        self.last
    }

    fn run(&mut self, candidate: &[u8], patiently: bool) -> Result<Answer, OracleError> {
        let begin = Instant::now();
        let executor = match (patiently, &mut self.patient) {
            (false, _) => &mut self.executor,
            (true, Some(patient)) => patient,
            (true, none) => {
                let mut target = self.target.clone();
                let time = TimeLimit::from(target.limits).times(PROOF_TIME_FACTOR);
                target.limits = time.within(target.limits);
                none.insert(start_test(&target, &self.name, Freshness::Fresh)?)
            }
        };
        let freshness = executor.freshness();
        let run = executor.run(candidate);
        // The outcome does not count if the test changed during the run.
        self.check_unchanged()?;
        let run = run?;
        self.last = Some(run.ended);
        let cost = begin.elapsed();
        // A process that makes many runs does not report the CPU time of each.
        let cpu = match run.cpu {
            Duration::ZERO => cost,
            cpu => cpu,
        };
        let process = match freshness {
            Freshness::Shared => Process::Shared,
            Freshness::Fresh => Process::Own,
        };
        Ok(Answer {
            cost,
            cpu: Some(cpu),
            process,
            ..judge(run.ended)
        })
    }

    fn check_unchanged(&mut self) -> Result<(), OracleError> {
        let state = self.script.state();
        let path = self.script.path().to_owned();
        match state {
            ScriptState::Same => Ok(()),
            ScriptState::Changed => Err(OracleError::TestChanged { path }),
            ScriptState::Gone => Err(OracleError::TestGone { path }),
        }
    }
}

fn judge(ended: Ended) -> Answer {
    let (outcome, cut_off) = match ended {
        Ended::Exit(0) => (Outcome::Fail, None),
        Ended::Exit(CANNOT_TELL) => (Outcome::Unresolved, None),
        Ended::Exit(_) | Ended::Signal(_) => (Outcome::Pass, None),
        Ended::Timeout => (Outcome::Unresolved, Some(CutOff::Time)),
        Ended::OutOfMemory => (Outcome::Unresolved, Some(CutOff::Memory)),
    };
    Answer {
        cut_off,
        ..Answer::of(outcome)
    }
}

impl Oracle for TestOracle {
    fn ask(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        self.run(candidate, false)
    }

    fn ask_fresh(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        self.run(candidate, true)
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        if self.fixed_time {
            return;
        }
        // The target's limits also hold for executors that start later.
        self.target.limits = learned.within(self.target.limits);
        self.executor.limit_time(learned);
        if let Some(patient) = &mut self.patient {
            patient.limit_time(learned.times(PROOF_TIME_FACTOR));
        }
    }
}

/// The identity of an interestingness test's file when the minimization began, by which a change
/// of the file is noticed.
#[derive(Clone, Debug)]
pub struct Script {
    path: PathBuf,
    hash: ContentHash,
    /// Metadata (device, inode, size, time) that the file had when it was last seen with this
    /// content.
    seen: FileStamp,
}

/// How the file of an interestingness test compares with its content at the beginning: the same,
/// changed, or gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptState {
    /// The content of the interestingness test's file is the same as at the beginning.
    Same,
    /// The content of the interestingness test's file has changed since the beginning.
    Changed,
    /// The file of the interestingness test does not exist any more or cannot be read.
    Gone,
}

/// Metadata by which a change of a file is noticed without reading it: device, inode, size in
/// bytes, and modification time in seconds and nanoseconds.
type FileStamp = (u64, u64, u64, i64, i64);

impl Script {
    /// Reads the file of an interestingness test and remembers the hash of its content.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(path: &Path) -> io::Result<Script> {
        // In this order, `state` detects a change between both steps.
        let seen = file_stamp(path)?;
        let hash = ContentHash::of(&std::fs::read(path)?);
        let path = path.to_owned();
        Ok(Script { path, hash, seen })
    }

    /// Returns the path of the interestingness test's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the hash of the content that the interestingness test's file had at the beginning.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// Checks whether the content of the file has changed since [`Script::read`]. The file is read
    /// only if its metadata are different.
    pub fn state(&mut self) -> ScriptState {
        let Ok(now) = file_stamp(&self.path) else {
            return ScriptState::Gone;
        };
        if now == self.seen {
            return ScriptState::Same;
        }
        match std::fs::read(&self.path) {
            Ok(content) if ContentHash::of(&content) == self.hash => {
                self.seen = now;
                ScriptState::Same
            }
            Ok(_) => ScriptState::Changed,
            Err(_) => ScriptState::Gone,
        }
    }
}

fn file_stamp(path: &Path) -> io::Result<FileStamp> {
    let facts = std::fs::metadata(path)?;
    let (seconds, nanoseconds) = (facts.mtime(), facts.mtime_nsec());
    Ok((facts.dev(), facts.ino(), facts.size(), seconds, nanoseconds))
}
