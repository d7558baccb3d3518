//! The oracle that asks an interestingness test, and the test's file, which must not change meanwhile.

use ddfuzz_delta::Outcome;
use ddfuzz_exec::{Ended, Executor, Target, TimeLimit, start_test};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::{Answer, CutOff, Kind, Oracle, OracleError, PATIENCE, log::ContentHash};

/// The exit status by which a test says that it cannot tell.
const CANNOT_TELL: i32 = 125;

/// Maps runs of an interestingness test to outcomes (interface.md, "Interestingness test").
///
/// - FAIL: it exited with 0, the candidate is interesting.
/// - UNRESOLVED: it exited with 125, or was cut off by a limit.
/// - PASS: any other status, or a signal.
///
/// Each run has its own process and an empty directory. The test must not change while the oracle
/// lives: outcomes of two versions must not be mixed.
pub struct TestOracle {
    script: Script,
    /// The test, and what the input is called in its directory.
    target: Target,
    name: OsString,
    executor: Box<dyn Executor>,
    /// Started when it is first asked.
    patient: Option<Box<dyn Executor>>,
    last: Option<Ended>,
    /// The limit on time is the user's.
    fixed_time: bool,
}

impl TestOracle {
    /// An oracle that asks the program of `target`, which is `script`; the input is called `name`.
    ///
    /// # Errors
    /// When the test cannot be started.
    pub fn new(script: Script, target: Target, name: OsString) -> Result<TestOracle, OracleError> {
        let executor = start_test(&target, &name)?;
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

    /// The same with the limit on time that it has, which is not to be learned.
    pub fn with_fixed_time(mut self) -> TestOracle {
        self.fixed_time = true;
        self
    }

    /// How the last run ended; `None` before the first.
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
                let time = TimeLimit::from(target.limits).times(PATIENCE);
                target.limits = time.within(target.limits);
                none.insert(start_test(&target, &self.name)?)
            }
        };
        let run = executor.run(candidate);
        // The outcome of a test that has changed meanwhile does not count.
        self.check_unchanged()?;
        let run = run?;
        self.last = Some(run.ended);
        Ok(Answer {
            cost: begin.elapsed(),
            cpu: Some(run.cpu),
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
        // Also for one that is not started yet.
        self.target.limits = learned.within(self.target.limits);
        self.executor.limit_time(learned);
        if let Some(patient) = &mut self.patient {
            patient.limit_time(learned.times(PATIENCE));
        }
    }
}

/// The file of an interestingness test as it was when a minimization began.
#[derive(Clone, Debug)]
pub struct Script {
    path: PathBuf,
    hash: ContentHash,
    /// As it was seen last with that content.
    seen: Facts,
}

/// What the file is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptState {
    /// What it was.
    Same,
    /// Its content is another one.
    Changed,
    /// It is not there any more, or cannot be read.
    Gone,
}

/// Shows without reading a file that it may have changed: device, inode, size, and the time
/// of its last change.
type Facts = (u64, u64, u64, i64, i64);

impl Script {
    /// Reads the test at `path`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> io::Result<Script> {
        // In this order: a change in between is found out by the next look.
        let seen = facts(path)?;
        let hash = ContentHash::of(&std::fs::read(path)?);
        let path = path.to_owned();
        Ok(Script { path, hash, seen })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The hash of its content.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// Looks at it again; reads it only where something about it has changed.
    pub fn state(&mut self) -> ScriptState {
        let Ok(now) = facts(&self.path) else {
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

fn facts(path: &Path) -> io::Result<Facts> {
    let facts = std::fs::metadata(path)?;
    let (seconds, nanoseconds) = (facts.mtime(), facts.mtime_nsec());
    Ok((facts.dev(), facts.ino(), facts.size(), seconds, nanoseconds))
}
