//! Several workers, where an input is flaky and where a limit is learned.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ddfuzz::delta::Outcome;
use ddfuzz::exec::TimeLimit;
use ddfuzz::minimize::log::{KeyRecord, Log, StartLine};
use ddfuzz::minimize::{
    Answer, BoxedOracle, Counts, Journal, Kind, Options, Oracle, OracleError, Rate, Workers,
    minimize_by_workers,
};
use ddfuzz::triage::Class;
use serde_json::Value;

use crate::crashes::key;
use crate::crew::{Crew, as_of_one};
use crate::failures::subsequence;
use crate::memory::Memory;
use crate::scripted::start;

const INPUT: &[u8] = b"ab<cd>ef";

fn of_crash() -> StartLine {
    StartLine {
        key: Some(KeyRecord {
            class: Class("segv".to_owned()),
            major: key("held"),
            minor: key("held"),
        }),
        ..start(INPUT)
    }
}

/// The lines behind the baseline, whose order is that of chance.
fn behind_baseline(log: &[u8]) -> Vec<Value> {
    let lines = as_of_one(log).into_iter();
    lines.filter(|line| line["what"] != "baseline").collect()
}

#[test]
fn votes_are_run_by_all_workers_and_logged_as_by_one() {
    let logs = [1, 2, 7].map(|jobs| {
        let runs = AtomicU64::new(0);
        // The input comes every second time; what is made of it is steady.
        let script = |text: &[u8], _| {
            let silent = text == INPUT && runs.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
            let outcome = if silent {
                Outcome::Pass
            } else {
                subsequence(b"<>")(text)
            };
            Ok(Answer::of(outcome))
        };
        let crew = Crew::delayed(&script, 7);
        let (result, log) = crew.run(jobs, INPUT, of_crash(), &mut Options::default());
        let result = result.expect("a result");
        let half = Rate {
            hits: 10,
            tries: 20,
        };
        assert_eq!((result.text, result.baseline), (b"<>".to_vec(), half));
        let Counts {
            executed,
            checks,
            speculative,
            ..
        } = result.counts;
        assert_eq!(crew.answered(), executed + checks + speculative);
        let votes = as_of_one(&log).into_iter();
        assert!(votes.filter(|line| line["what"] == "vote").count() > 13);
        behind_baseline(&log)
    });
    assert_eq!(logs[0], logs[1]);
    assert_eq!(logs[0], logs[2]);
}

#[test]
fn a_budget_of_tests_counts_no_votes() {
    let runs = AtomicU64::new(0);
    let script = |text: &[u8], _| {
        let silent = text == INPUT && runs.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        let outcome = subsequence(b"<>")(text);
        Ok(Answer::of(if silent { Outcome::Pass } else { outcome }))
    };
    let mut options = Options {
        budget_tests: Some(3),
        ..Options::default()
    };
    let crew = Crew::delayed(&script, 9);
    let (result, _) = crew.run(3, INPUT, of_crash(), &mut options);
    assert_eq!(result.expect("a result").counts.executed, 3);
}

/// What the oracles of all workers were told before they were asked for a candidate.
#[derive(Default)]
struct Told(Mutex<Vec<Option<TimeLimit>>>);

struct Limited<'a> {
    told: &'a Told,
    limit: Option<TimeLimit>,
}

impl Oracle for Limited<'_> {
    fn ask(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        std::thread::sleep(Duration::from_micros(300));
        if candidate != INPUT {
            self.told.0.lock().expect("whole").push(self.limit);
        }
        Ok(Answer {
            cpu: Some(Duration::from_millis(300)),
            ..Answer::of(subsequence(b"<>")(candidate))
        })
    }

    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.ask(candidate, kind)
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        self.limit = Some(learned);
    }
}

#[test]
fn no_worker_runs_a_candidate_before_it_knows_the_learned_limit() {
    let begin = || StartLine {
        learn_limit: true,
        ..of_crash()
    };
    let mut left = Vec::new();
    // The second time a log with the baseline alone is gone on with.
    for _ in 0..2 {
        let told = Told::default();
        let oracle = || -> BoxedOracle<'_> {
            Box::new(Limited {
                told: &told,
                limit: None,
            })
        };
        let make = || Ok(oracle());
        let parsed = Log::parse(&left).expect("a log");
        let memory = Memory::new(&left[..parsed.whole as usize]);
        let mut journal = Journal::go_on(parsed, begin(), memory.writer()).expect("the same log");
        let workers = Workers::new(oracle(), &make, 4).ahead_from(Duration::ZERO);
        let options = &mut Options::default();
        let result = minimize_by_workers(INPUT, workers, &mut journal, options);
        assert_eq!(result.expect("a result").text, b"<>");
        let learned = TimeLimit {
            cpu: Duration::from_secs(3),
            wall: Duration::from_secs(6),
        };
        let told = told.0.into_inner().expect("whole");
        assert!(told.len() > 8 && told.iter().all(|limit| *limit == Some(learned)));
        let lines = memory.bytes();
        let lines: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
        left = lines[..4].concat();
    }
}
