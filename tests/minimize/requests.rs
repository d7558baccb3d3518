//! Requests with several texts change the number of requests, and nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ddfuzz::delta::Outcome;
use ddfuzz::minimize::log::{Log, StartLine};
use ddfuzz::minimize::{
    Answer, BoxedOracle, Journal, Kind, Options, Oracle, OracleError, SEARCHES, Workers,
    minimize_by_workers,
};

use crate::crew::as_of_one;
use crate::failures::{all_of, odd, subsequence};
use crate::memory::Memory;
use crate::scripted::{outcomes, run_with, start_by};

type Shape = dyn Fn(&[u8]) -> Outcome + Sync;

/// An oracle that takes several texts, but at most `most` in a request, and alone the first one
/// after a test that did not pass.
struct Several<'a> {
    test: &'a Shape,
    most: usize,
    requests: &'a AtomicU64,
    begins_anew: bool,
}

impl Several<'_> {
    fn answers(&mut self, texts: &[(&[u8], Kind)], most: usize) -> Vec<Answer> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mut answers = Vec::new();
        for (text, _) in texts.iter().take(most) {
            let outcome = (self.test)(text);
            answers.push(Answer::of(outcome));
            self.begins_anew = outcome != Outcome::Pass;
            if self.begins_anew {
                break;
            }
        }
        answers
    }
}

impl Oracle for Several<'_> {
    fn ask(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        Ok(self.answers(&[(candidate, kind)], 1).remove(0))
    }

    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.ask(candidate, kind)
    }

    fn ask_several(&mut self, candidates: &[(&[u8], Kind)]) -> Result<Vec<Answer>, OracleError> {
        let most = if self.begins_anew { 1 } else { self.most };
        Ok(self.answers(candidates, most))
    }

    fn ask_fresh_several(
        &mut self,
        candidates: &[(&[u8], Kind)],
    ) -> Result<Vec<Answer>, OracleError> {
        Ok(self.answers(candidates, self.most))
    }

    fn takes_several(&self) -> bool {
        true
    }
}

/// Minimizes by workers that never start; gives the log, and how many requests there were.
fn log_of(start: StartLine, input: &[u8], test: &Shape, most: usize) -> (Vec<u8>, u64) {
    let requests = AtomicU64::new(0);
    let oracle = || -> BoxedOracle<'_> {
        Box::new(Several {
            test,
            most,
            requests: &requests,
            begins_anew: true,
        })
    };
    let memory = Memory::new(&[]);
    let empty = Log::parse(&[]).expect("an empty log");
    let mut journal = Journal::go_on(empty, start, memory.writer()).expect("a new log");
    let make = || Ok(oracle());
    let workers = Workers::new(oracle(), &make, 2).ahead_from(Duration::from_secs(3600));
    let done = minimize_by_workers(input, workers, &mut journal, &mut Options::default());
    done.expect("a result");
    (memory.bytes(), requests.into_inner())
}

#[test]
fn requests_for_several_texts_give_the_log_of_one_by_one() {
    let input = b"12345678abcdefgh90ABCDEFGHIJKLMNOPQRSTUV";
    let shapes: [(&str, &Shape); 3] = [
        ("unresolved", &all_of(b"17cV")),
        ("passing", &subsequence(b"36dQ")),
        ("odd", &odd(7, input)),
    ];
    for search in SEARCHES {
        for (shape, test) in shapes {
            let start = || start_by(input, search);
            let mut one_by_one = outcomes(test);
            let options = &mut Options::default();
            let (alone, whole) = run_with(input, start(), &mut one_by_one, options);
            alone.expect("a result");
            let mut fewest = u64::MAX;
            for most in [1, 3, 100] {
                let name = format!("{search}, {shape}, {most} in a request");
                let (log, requests) = log_of(start(), input, test, most);
                assert_eq!(as_of_one(&log), as_of_one(&whole), "{name}");
                fewest = fewest.min(requests);
            }
            let asked = one_by_one.asked.len() + one_by_one.asked_fresh.len();
            // A test that does not pass ends its request.
            let is_fewer = fewest < asked as u64 || shape != "passing";
            assert!(is_fewer, "{search}: {fewest} of {asked}");
        }
    }
}
