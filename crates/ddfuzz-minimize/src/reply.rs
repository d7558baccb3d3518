//! The answer to a test, between whoever gives it and its line in the log.

use super::driver::micros;
use super::log::{Base64, Source, TestLine};
use super::{Answer, CutOff, Process, SlipKeys};
use ddfuzz_delta::Outcome;
use ddfuzz_triage::Key;

/// The answer to a test, as it is logged.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub outcome: Outcome,
    pub source: Source,
    pub us: u64,
    pub cut_off: Option<CutOff>,
    pub process: Process,
    pub slip: Option<SlipKeys>,
    /// The minor key, where it is not that of the best before.
    pub minor: Option<Key>,
    /// What an observed run compared.
    pub comparisons: Option<Vec<(Base64, Base64)>>,
    pub log_input: bool,
}

impl Reply {
    /// The answer that a logged test holds.
    pub fn of(line: &TestLine) -> Reply {
        Reply {
            outcome: line.outcome,
            source: line.source,
            us: line.us,
            cut_off: line.cut_off,
            process: line.process,
            slip: line.slip,
            minor: line.minor,
            comparisons: line.comparisons.clone(),
            log_input: line.input.is_some(),
        }
    }

    /// What an oracle answered.
    pub fn from_answer(source: Source, answer: &Answer, log_input: bool) -> Reply {
        Reply {
            source,
            log_input,
            outcome: answer.outcome,
            us: micros(answer.cost),
            cut_off: answer.cut_off,
            process: answer.process,
            slip: answer.slip.as_ref().map(|slip| slip.keys),
            minor: None,
            comparisons: None,
        }
    }
}
