//! What an oracle tells besides outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ddfuzz::delta::{Comparison, Hints, Outcome};
use ddfuzz::exec::Mock;
use ddfuzz::exec::observe::{ComparisonSources, Observer};
use ddfuzz::exec::{Ended, ExecError, Executor, Run};
use ddfuzz::minimize::{CrashClassifier, CrashOracle, HeldCrash, Kind, Oracle, StartObserver};
use ddfuzz::triage::{Crash, Quick};

use crate::crashes::{crash, keys};

/// A made-up target that never crashes.
struct Quiet;

impl CrashClassifier for Quiet {
    fn key(&mut self, _: &[u8]) -> Result<Quick, ExecError> {
        Ok(Quick::Ended(Ended::Exit(1)))
    }

    fn examine(&mut self, _: &[u8]) -> Result<Option<Box<Crash>>, ExecError> {
        Ok(None)
    }
}

/// Compares the whole input with a word, until it is asked for what it cannot.
struct Scripted;

impl Observer for Scripted {
    fn observe(&mut self, input: &[u8]) -> Result<(Run, Vec<Comparison>), ExecError> {
        if input == b"gone" {
            let path = "gone".into();
            return Err(ExecError::Missing { path });
        }
        let run = Run {
            read: Some(3),
            ..Run::ended(Ended::Exit(1))
        };
        Ok((run, vec![compared(input)]))
    }

    fn sources(&self) -> ComparisonSources {
        ComparisonSources::default()
    }
}

fn compared(input: &[u8]) -> Comparison {
    Comparison {
        left: input.to_vec(),
        right: b"word".to_vec(),
    }
}

fn oracle() -> CrashOracle {
    let mock = || -> Box<dyn Executor> {
        Box::new(Mock::new(|input: &[u8]| {
            Run::ended(match input {
                b"slow" => Ended::Timeout,
                _ => Ended::Exit(1),
            })
        }))
    };
    let held = HeldCrash::from(&crash("segv", keys("held", "held")));
    CrashOracle::new(
        mock(),
        Box::new(move || Ok(mock())),
        Box::new(Quiet),
        held,
        None,
    )
}

fn hints(oracle: &mut CrashOracle, input: &[u8]) -> Hints {
    let (answer, hints) = oracle.ask_observed(input, Kind::Rewriting).unwrap();
    assert_ne!(answer.outcome, Outcome::Fail);
    hints
}

#[test]
fn an_oracle_without_an_observer_gives_no_hints() {
    assert_eq!(hints(&mut oracle(), b"input"), Hints::default());
    let starts: [StartObserver; 2] = [
        Box::new(|| Ok(None)),
        Box::new(|| {
            Err(ExecError::Missing {
                path: "gone".into(),
            })
        }),
    ];
    for start in starts {
        let mut oracle = oracle().observed_by(start);
        assert_eq!(hints(&mut oracle, b"input"), Hints::default());
    }
}

#[test]
fn an_observer_is_started_when_it_is_first_asked_and_once() {
    let started = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&started);
    let mut oracle = oracle().observed_by(Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Box::new(Scripted)))
    }));
    oracle.ask(b"input", Kind::Rewriting).unwrap();
    assert_eq!(started.load(Ordering::Relaxed), 0);
    assert_eq!(hints(&mut oracle, b"slow"), Hints::default());
    assert_eq!(
        started.load(Ordering::Relaxed),
        0,
        "not for a run that was cut off"
    );
    for input in [b"one", b"two"] {
        let expected = Hints {
            read: Some(3),
            comparisons: vec![compared(input)],
        };
        assert_eq!(hints(&mut oracle, input), expected);
    }
    assert_eq!(started.load(Ordering::Relaxed), 1);
}

#[test]
fn an_observer_that_fails_is_given_up_and_nobody_fails_for_it() {
    let mut oracle = oracle().observed_by(Box::new(|| Ok(Some(Box::new(Scripted)))));
    assert_eq!(hints(&mut oracle, b"gone"), Hints::default());
    assert_eq!(hints(&mut oracle, b"input"), Hints::default());
}
