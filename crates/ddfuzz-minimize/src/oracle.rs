//! The oracle: what a minimization asks about a candidate, the answers, and the inverted oracle.

use ddfuzz_delta::{Hints, Outcome};
use ddfuzz_exec::{ExecError, TimeLimit};
use ddfuzz_triage::{Class, Crash, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, time::Duration};

/// How a candidate was made; it decides which key must stay (crash-keys.md, "The minimizer's
/// oracle").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// By deleting only: class and major key must stay.
    Deleting,
    /// Bytes were replaced, inserted or repaired: the minor key of the best must stay too, because
    /// rewriting may turn one caller of a faulty function into another.
    Rewriting,
}

/// Which limit a run was cut off by. A run that was cut off in time proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CutOff {
    /// The time limit.
    Time,
    /// The memory limit.
    Memory,
}

/// Which process a test ran in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Process {
    /// One of its own.
    #[default]
    Own,
    /// One that earlier tests had run in: what they left behind may speak in the outcome, which
    /// therefore proves nothing.
    Shared,
}

impl Process {
    /// Whether it was one of its own.
    pub fn is_own(&self) -> bool {
        *self == Process::Own
    }
}

/// The keys of a crash that a candidate slipped into.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct SlipKeys {
    /// Which bug.
    pub major: Key,
    /// Which way into it.
    pub minor: Key,
}

/// A candidate that crashed with another key than the kept one.
#[derive(Clone, Debug, PartialEq)]
pub struct Slip {
    /// Its class.
    pub class: Class,
    /// Its keys.
    pub keys: SlipKeys,
    /// The whole record, the first time that these keys were met; `None` later, and where the
    /// crash was not seen again when it was examined.
    pub crash: Option<Box<Crash>>,
    /// The candidate.
    pub input: Vec<u8>,
}

/// What the oracle knows of one test.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// FAIL is the failure being minimized and no other.
    pub outcome: Outcome,
    /// Wall time of the test.
    pub cost: Duration,
    /// CPU time of the target's run, where it is known.
    pub cpu: Option<Duration>,
    /// Bytes of the input that the target read, where that is known.
    pub read: Option<u64>,
    /// The minor key, where class and major key are those of the kept crash. The search compares it
    /// with its best to decide whether that is a FAIL.
    pub minor: Option<Key>,
    /// The limit that ended the run, if one did.
    pub cut_off: Option<CutOff>,
    /// The process that the outcome rests on.
    pub process: Process,
    /// Another bug that the candidate ran into; the outcome is UNRESOLVED then.
    pub slip: Option<Slip>,
}

impl Answer {
    /// An answer of which nothing else is known.
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
        }
    }
}

/// Why a test could not be made at all.
#[derive(Debug, thiserror::Error)]
pub enum OracleError {
    /// The target cannot be run any more.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// Another kind of oracle failed.
    #[error("the test cannot be run: {why}")]
    Failed {
        /// What happened.
        why: String,
    },
    /// The interestingness test is another one than it was.
    #[error("{} has changed during the search", path.display())]
    TestChanged {
        /// The test.
        path: PathBuf,
    },
    /// The interestingness test was removed.
    #[error("{} no longer exists", path.display())]
    TestGone {
        /// The test.
        path: PathBuf,
    },
}

/// Maps candidates to outcomes for one failure.
pub trait Oracle {
    /// Tests a candidate in the fastest way.
    ///
    /// # Errors
    /// When the target cannot be run any more. An odd run is UNRESOLVED, not an error.
    fn ask(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError>;

    /// The same with hints: how far the input was read, and what was compared. It is slower; an
    /// oracle that cannot observe returns no hints. The outcome is that of `ask`, never that of an
    /// observed run.
    ///
    /// # Errors
    /// As `ask`.
    fn ask_observed(
        &mut self,
        candidate: &[u8],
        kind: Kind,
    ) -> Result<(Answer, Hints), OracleError> {
        Ok((self.ask(candidate, kind)?, Hints::default()))
    }

    /// Tests a candidate in a fresh process, for proofs and confirmations: state left over by
    /// earlier runs proves nothing. Its time limit is ten times that of [`ask`](Oracle::ask).
    ///
    /// # Errors
    /// As `ask`.
    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError>;

    /// Limits the time of all runs from here on by what the runs of the input have taught. An
    /// oracle whose limit is not to be learned does nothing.
    fn limit_time(&mut self, _learned: TimeLimit) {}

    /// The whole record of a slip. Asked where the first slip with its keys has none, because
    /// another oracle of the same failure, or another test, met them earlier. `None` where there
    /// is none, or where the crash is not seen again.
    ///
    /// # Errors
    /// As `ask`.
    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        let _ = slip;
        Ok(None)
    }
}

/// Swaps PASS and FAIL of another oracle, so that what fails is what does not crash: a search then
/// finds which part of an input prevents the failure (ISSTA, the options of GCC). UNRESOLVED stays.
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
