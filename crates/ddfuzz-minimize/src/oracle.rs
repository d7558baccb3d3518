//! The trait [`Oracle`], which tests candidates; its answers and errors; and the inverted oracle.

use ddfuzz_delta::{Hints, Outcome};
use ddfuzz_exec::{ExecError, TimeLimit};
use ddfuzz_triage::{Class, Crash, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// How a candidate was made: by deleting only, or by rewriting bytes, too. This decides which crash
/// keys (hashes of stack frames, docs/src/keys.md) its crash must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The candidate was made by deleting only: the class of its crash and the major key (hash of
    /// the frames that identify the bug) must stay the same.
    Deleting,
    /// The candidate was made by replacing, inserting or correcting bytes: its crash must also have
    /// the minor key (hash of the call path) of the best text so far, because rewriting may lead
    /// into the same faulty function from another caller.
    Rewriting,
}

/// Limit that ended a run. A run that the time limit ended proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CutOff {
    /// The run was ended because it exceeded its time limit.
    Time,
    /// The run was ended because it exceeded its memory limit.
    Memory,
}

/// Whether a test ran in a fresh process or in one that other tests used before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Process {
    /// The test ran in a separate, fresh process.
    #[default]
    Own,
    /// The test ran in a process in which earlier tests had run. Their leftover state may affect
    /// the outcome, which therefore proves nothing.
    Shared,
}

impl Process {
    /// Checks whether the test ran in a process that no other test used.
    pub fn is_own(&self) -> bool {
        *self == Process::Own
    }
}

/// Major and minor key (hash of the call path) of a crash of another bug, which a candidate had
/// instead of the crash being minimized.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct SlipKeys {
    /// Major key of the other bug's crash, which identifies the bug.
    pub major: Key,
    /// Minor key of the other bug's crash, which identifies the call path by which the bug is
    /// reached.
    pub minor: Key,
}

/// A candidate that crashed with other keys than the crash being minimized, because it ran into
/// another bug.
#[derive(Clone, Debug, PartialEq)]
pub struct Slip {
    /// Class of the crash that the candidate had.
    pub class: Class,
    /// Major and minor key (hash of the call path) of the crash that the candidate had.
    pub keys: SlipKeys,
    /// Record of the crash that the candidate had, for the first slip (crash of another bug) with
    /// these keys; `None` for later slips, and if the crash did not occur again when it was
    /// examined.
    pub crash: Option<Box<Crash>>,
    /// The bytes of the candidate that crashed.
    pub input: Vec<u8>,
}

/// The result of one test of a candidate: its outcome, and what its run showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Outcome of the test: FAIL if the candidate shows the failure that is minimized.
    pub outcome: Outcome,
    /// Wall time of the test.
    pub cost: Duration,
    /// CPU time of the target's run in this test; `None` if unknown.
    pub cpu: Option<Duration>,
    /// Number of bytes of the input that the target read; `None` if unknown.
    pub read: Option<u64>,
    /// Minor key (hash of the call path) of the crash, if its class and major key are those of the
    /// crash being minimized. The minimization compares it with the minor key of the smallest
    /// failing text so far to decide whether the test fails.
    pub minor: Option<Key>,
    /// The limit that ended the run of this test; `None` if the run ended by itself.
    pub cut_off: Option<CutOff>,
    /// Whether the test had a process of its own or one in which earlier tests ran.
    pub process: Process,
    /// The crash of another bug that the candidate had, with outcome UNRESOLVED; `None` if it had
    /// none.
    pub slip: Option<Slip>,
    /// Number of runs of this test that passed, each in a process of its own, although another one
    /// failed: the failure is flaky. 0 if the outcome is not FAIL.
    pub missed: u64,
}

impl Answer {
    /// Makes an answer with the outcome `outcome` and without further information: zero cost, and
    /// `None` in all other fields.
    pub fn of(outcome: Outcome) -> Answer {
        Answer {
            outcome,
            cost: Duration::ZERO,
            cpu: None,
            read: None,
            minor: None,
            cut_off: None,
            process: Process::Own,
            slip: None,
            missed: 0,
        }
    }
}

/// Why an oracle could not run a test.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// The target can no longer be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// An oracle that a user of this crate defined could not run the test.
    #[error("the test cannot be run: {why}")]
    Failed {
        /// Description of why the test could not be run.
        why: String,
    },
    /// The file of the interestingness test changed during the minimization.
    #[error("{} has changed during the search", path.display())]
    TestChanged {
        /// Path of the changed file of the interestingness test.
        path: PathBuf,
    },
    /// The file of the interestingness test was removed.
    #[error("{} no longer exists", path.display())]
    TestGone {
        /// Path of the missing file of the interestingness test.
        path: PathBuf,
    },
}

/// Tests candidates of a minimization for one particular failure: runs them and decides whether
/// they fail.
pub trait Oracle {
    /// Tests a candidate in the fastest way, and returns the answer (outcome, and what its run
    /// showed). `kind` says how the candidate was made, which decides which crash keys it must
    /// have.
    ///
    /// # Errors
    /// If the target can no longer be run. A strange run is UNRESOLVED, not an error.
    fn ask(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError>;

    /// Tests candidates in their order, each as [`ask`](Oracle::ask) does, in a single request, up
    /// to the first one that does not pass. Returns the answers for the tested candidates, in
    /// order: all but the last are PASS. An oracle may test fewer; this default tests the first
    /// candidate only.
    ///
    /// # Errors
    /// As [`ask`](Oracle::ask).
    fn ask_several(&mut self, candidates: &[(&[u8], Kind)]) -> Result<Vec<Answer>, OracleError> {
        match candidates.first() {
            Some((candidate, kind)) => Ok(vec![self.ask(candidate, *kind)?]),
            None => Ok(Vec::new()),
        }
    }

    /// Tests a candidate, and also reports hints: how many bytes the run read, and which operands
    /// it compared. An oracle that cannot observe runs returns no hints. The outcome is that of
    /// [`ask`](Oracle::ask), never that of the observed run, which is slower.
    ///
    /// # Errors
    /// As [`ask`](Oracle::ask).
    fn ask_observed(
        &mut self,
        candidate: &[u8],
        kind: Kind,
    ) -> Result<(Answer, Hints), OracleError> {
        Ok((self.ask(candidate, kind)?, Hints::default()))
    }

    /// Tests a candidate in a fresh process, so that state which earlier runs left behind has no
    /// influence, and returns the answer. Meant for proofs of minimality and confirmations of the
    /// result; the time limit is ten times that of [`ask`](Oracle::ask).
    ///
    /// # Errors
    /// As [`ask`](Oracle::ask).
    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError>;

    /// Tests the first of `candidates` as [`ask_fresh`](Oracle::ask_fresh) does, and as many of the
    /// next ones as one request takes, each in a fresh process of its own. Returns an answer for
    /// each that was tested, in order.
    ///
    /// # Errors
    /// As [`ask`](Oracle::ask).
    fn ask_fresh_several(
        &mut self,
        candidates: &[(&[u8], Kind)],
    ) -> Result<Vec<Answer>, OracleError> {
        match candidates.first() {
            Some((candidate, kind)) => Ok(vec![self.ask_fresh(candidate, *kind)?]),
            None => Ok(Vec::new()),
        }
    }

    /// Returns true if [`ask_several`](Oracle::ask_several) and
    /// [`ask_fresh_several`](Oracle::ask_fresh_several) can test more than one candidate per call;
    /// false if they test the first one only.
    fn takes_several(&self) -> bool {
        false
    }

    /// Sets the time limit of all later runs to one that was learned from runs of the input. An
    /// oracle with a fixed limit ignores it.
    fn limit_time(&mut self, _learned: TimeLimit) {}

    /// Makes the crash record of a slip (a crash of another bug) that has none, because another
    /// oracle or another test found its keys first. `None` if the crash does not occur again.
    ///
    /// # Errors
    /// As [`ask`](Oracle::ask).
    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        let _ = slip;
        Ok(None)
    }
}

/// An oracle that swaps PASS and FAIL of another oracle, so that an input without the crash fails;
/// UNRESOLVED stays. A search with it finds the part of an input that prevents a failure (compare
/// the GCC options in Hildebrandt & Zeller, ISSTA 2000).
pub struct Inverted(pub Box<dyn Oracle>);

impl Oracle for Inverted {
    fn ask(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.0.ask(candidate, kind).map(invert)
    }

    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.0.ask_fresh(candidate, kind).map(invert)
    }

    fn ask_observed(
        &mut self,
        candidate: &[u8],
        kind: Kind,
    ) -> Result<(Answer, Hints), OracleError> {
        let (answer, hints) = self.0.ask_observed(candidate, kind)?;
        Ok((invert(answer), hints))
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        self.0.limit_time(learned);
    }

    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        self.0.record(slip)
    }
}

fn invert(answer: Answer) -> Answer {
    let outcome = match answer.outcome {
        Outcome::Pass => Outcome::Fail,
        Outcome::Fail => Outcome::Pass,
        Outcome::Unresolved => Outcome::Unresolved,
    };
    Answer {
        outcome,
        minor: None,
        ..answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Always(Outcome);

    impl Oracle for Always {
        fn ask(&mut self, _: &[u8], _: Kind) -> Result<Answer, OracleError> {
            Ok(Answer::of(self.0))
        }

        fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
            self.ask(candidate, kind)
        }
    }

    #[test]
    fn inverting_swaps_pass_and_fail_and_nothing_else() {
        for (said, inverted) in [
            (Outcome::Pass, Outcome::Fail),
            (Outcome::Fail, Outcome::Pass),
            (Outcome::Unresolved, Outcome::Unresolved),
        ] {
            let mut oracle = Inverted(Box::new(Always(said)));
            assert_eq!(oracle.ask(b"", Kind::Deleting).unwrap().outcome, inverted);
            let fresh = oracle.ask_fresh(b"", Kind::Deleting).unwrap();
            assert_eq!(fresh.outcome, inverted);
        }
    }
}
