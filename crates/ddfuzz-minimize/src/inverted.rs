//! The inverted test: what prevents the failure?

use super::{Answer, Kind, Oracle, OracleError, Slip};
use ddfuzz_delta::{Hints, Outcome};
use ddfuzz_exec::TimeLimit;
use ddfuzz_triage::Crash;

/// Swaps PASS and FAIL of another oracle, so that what fails is what does not crash: a search then
/// finds which part of an input prevents the failure (ISSTA, the options of GCC). UNRESOLVED stays.
pub struct Inverted<O>(pub O);

impl<O: Oracle> Oracle for Inverted<O> {
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
        let pairs = [
            (Outcome::Pass, Outcome::Fail),
            (Outcome::Fail, Outcome::Pass),
            (Outcome::Unresolved, Outcome::Unresolved),
        ];
        for (said, inverted) in pairs {
            let mut oracle = Inverted(Always(said));
            assert_eq!(oracle.ask(b"", Kind::Deleting).unwrap().outcome, inverted);
            let fresh = oracle.ask_fresh(b"", Kind::Deleting).unwrap();
            assert_eq!(fresh.outcome, inverted);
        }
    }
}
