//! The oracle that runs one input by many calls.

use super::{Answer, Call, Kind, Oracle, OracleError, Slip};
use ddfuzz_delta::Outcome;
use ddfuzz_exec::{Target, TimeLimit};
use ddfuzz_triage::Crash;

/// Makes an oracle for the target as a candidate calls it.
pub type OracleOfCall =
    Box<dyn FnMut(Target) -> Result<Box<dyn Oracle + Send>, OracleError> + Send>;

/// Maps candidates that are parts of a call ([`Call`]) to outcomes: each is a target of its own,
/// with an oracle that is made when it is asked and kept while the same is asked again. What is no
/// call is UNRESOLVED, and is not run. The `input` of a slip is the candidate, from which the call
/// can be told.
pub struct CallOracle {
    call: Call,
    input: Vec<u8>,
    make: OracleOfCall,
    /// The call that was made last. What it costs to name a crash is mostly the first.
    last: Option<(Target, Box<dyn Oracle + Send>)>,
    /// The limit on time that was learned, for those that are made from here on.
    learned: Option<TimeLimit>,
}

impl CallOracle {
    /// An oracle that runs `input` by the candidates of `call`.
    pub fn new(call: Call, input: Vec<u8>, make: OracleOfCall) -> CallOracle {
        CallOracle {
            call,
            input,
            make,
            last: None,
            learned: None,
        }
    }

    fn run(
        &mut self,
        candidate: &[u8],
        ask: impl FnOnce(&mut dyn Oracle, &[u8]) -> Result<Answer, OracleError>,
    ) -> Result<Answer, OracleError> {
        let Some(target) = self.call.target(candidate) else {
            return Ok(Answer::of(Outcome::Unresolved));
        };
        let (oracle, input) = self.called(target)?;
        let mut answer = ask(oracle, input)?;
        if let Some(slip) = &mut answer.slip {
            slip.input = candidate.to_vec();
        }
        Ok(answer)
    }

    /// The oracle of a target, and what it is asked.
    fn called(&mut self, target: Target) -> Result<(&mut dyn Oracle, &[u8]), OracleError> {
        let (_, oracle) = match self.last.take().filter(|(last, _)| *last == target) {
            Some(same) => self.last.insert(same),
            None => {
                let mut oracle = (self.make)(target.clone())?;
                if let Some(learned) = self.learned {
                    oracle.limit_time(learned);
                }
                self.last.insert((target, oracle))
            }
        };
        Ok((&mut **oracle, &self.input))
    }
}

impl Oracle for CallOracle {
    fn ask(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.run(candidate, |oracle, input| oracle.ask(input, kind))
    }

    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.run(candidate, |oracle, input| oracle.ask_fresh(input, kind))
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        self.learned = Some(learned);
        if let Some((_, oracle)) = &mut self.last {
            oracle.limit_time(learned);
        }
    }
    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        let Some(target) = self.call.target(&slip.input) else {
            return Ok(None);
        };
        let (oracle, input) = self.called(target)?;
        let called = Slip {
            class: slip.class.clone(),
            keys: slip.keys,
            input: input.to_vec(),
            crash: None,
        };
        oracle.record(&called)
    }
}
