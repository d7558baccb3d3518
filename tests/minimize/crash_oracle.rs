//! The oracle that holds a crash by its keys.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ddfuzz::delta::Outcome;
use ddfuzz::exec::{Ended, ExecError, Executor, Freshness, Limits, Mock, Run, TimeLimit, Way};
use ddfuzz::minimize::{
    Answer, CrashClassifier, CrashOracle, CutOff, FreshExecutor, HeldCrash, Kind, Oracle,
    OracleError, SlipKeys,
};
use ddfuzz::triage::{Class, Crash, Quick};

use crate::crashes::{crash, key, keys};
use crate::scripted::run;

const SEGV: Ended = Ended::Signal(libc::SIGSEGV);

/// How the made-up target ends: the first byte decides.
fn ended(input: &[u8]) -> Ended {
    match input.first() {
        Some(b'c' | b'm' | b'o' | b'f' | b'k') => SEGV,
        Some(b't') => Ended::Timeout,
        Some(b'O') => Ended::OutOfMemory,
        Some(b'p' | b'e') => Ended::Exit(101),
        Some(b'P') => Ended::Signal(libc::SIGPIPE),
        _ => Ended::Exit(1),
    }
}

/// What the made-up target's crashes are: class and keys; `None` where it does not crash again.
fn crash_of(input: &[u8]) -> Option<(&'static str, SlipKeys)> {
    match input.first()? {
        b'c' => Some(("segv", keys("held", "held"))),
        b'm' => Some(("segv", keys("held", "other minor"))),
        b'o' => Some(("segv", keys("other", "other"))),
        b'k' => Some(("smash", keys("held", "held"))),
        b'p' => Some(("rustpanic", keys("panic", "panic"))),
        _ => None,
    }
}

#[derive(Default)]
struct Scripted {
    examined: Arc<AtomicU64>,
}

impl CrashClassifier for Scripted {
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError> {
        Ok(match crash_of(input) {
            Some((class, keys)) => Quick::Crash {
                class: Class(class.to_owned()),
                major: keys.major,
                minor: keys.minor,
            },
            None => Quick::Ended(Ended::Exit(0)),
        })
    }

    fn examine(&mut self, input: &[u8]) -> Result<Option<Box<Crash>>, ExecError> {
        self.examined.fetch_add(1, Ordering::Relaxed);
        Ok(crash_of(input).map(|(class, keys)| Box::new(crash(class, keys))))
    }
}

fn mock() -> Box<dyn Executor> {
    Box::new(Mock::new(|input: &[u8]| Run::ended(ended(input))))
}

fn oracle_held(held: HeldCrash) -> (CrashOracle, Arc<AtomicU64>, Arc<AtomicU64>) {
    let keyer = Scripted::default();
    let examined = Arc::clone(&keyer.examined);
    let started = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&started);
    let fresh: FreshExecutor = Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(mock())
    });
    (
        CrashOracle::new(mock(), fresh, Box::new(keyer), held, None),
        examined,
        started,
    )
}

fn segv() -> HeldCrash {
    HeldCrash::from(&crash("segv", keys("held", "held")))
}

fn ask(input: &[u8], kind: Kind) -> Answer {
    oracle_held(segv()).0.ask(input, kind).expect("an answer")
}

#[test]
fn the_held_crash_fails_and_a_quiet_end_passes() {
    let answer = ask(b"c", Kind::Deleting);
    assert_eq!(
        (answer.outcome, answer.minor),
        (Outcome::Fail, Some(key("held")))
    );
    assert_eq!(ask(b"", Kind::Deleting).outcome, Outcome::Pass);
}

#[test]
fn another_minor_key_fails_by_deleting_and_not_by_rewriting() {
    assert_eq!(ask(b"m", Kind::Deleting).outcome, Outcome::Fail);
    assert_eq!(ask(b"m", Kind::Deleting).minor, Some(key("other minor")));
    let rewritten = ask(b"m", Kind::Rewriting);
    assert_eq!(
        (rewritten.outcome, rewritten.slip),
        (Outcome::Unresolved, None)
    );
    assert_eq!(ask(b"c", Kind::Rewriting).outcome, Outcome::Fail);
}

#[test]
fn another_major_key_or_class_is_a_slip() {
    for (input, class, keys) in [
        (b"o", "segv", keys("other", "other")),
        (b"k", "smash", keys("held", "held")),
    ] {
        let answer = ask(input, Kind::Deleting);
        assert_eq!(answer.outcome, Outcome::Unresolved);
        let slip = answer.slip.expect("a slip");
        assert_eq!((slip.class.0.as_str(), slip.keys), (class, keys));
        assert_eq!(slip.input, input);
        assert_eq!(slip.crash.expect("a record").keys.major, keys.major);
    }
}

#[test]
fn a_slip_is_examined_once_for_its_keys() {
    let (mut oracle, examined, _) = oracle_held(segv());
    let slips = [b"o1", b"o2"].map(|input| {
        oracle
            .ask(input, Kind::Deleting)
            .expect("an answer")
            .slip
            .expect("a slip")
    });
    assert!(slips[0].crash.is_some() && slips[1].crash.is_none());
    assert_eq!(examined.load(Ordering::Relaxed), 1);
}

/// Crashes by two bugs in turn: in the run for the keys by the one, in the next by the other.
struct InTurn(u64);

impl CrashClassifier for InTurn {
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError> {
        let crash = self.examine(input)?.expect("a crash");
        Ok(Quick::Crash {
            class: crash.class,
            major: crash.keys.major,
            minor: crash.keys.minor,
        })
    }

    fn examine(&mut self, _: &[u8]) -> Result<Option<Box<Crash>>, ExecError> {
        self.0 += 1;
        let name = if self.0 % 2 == 1 { "other" } else { "held" };
        Ok(Some(Box::new(crash("segv", keys(name, name)))))
    }
}

#[test]
fn the_record_of_a_slip_is_that_of_its_own_bug() {
    let fresh: FreshExecutor = Box::new(|| Ok(mock()));
    let mut oracle = CrashOracle::new(mock(), fresh, Box::new(InTurn(0)), segv(), None);
    let slip = oracle.ask(b"c", Kind::Deleting).expect("an answer").slip;
    let slip = slip.expect("a slip");
    let record = slip.crash.expect("a record");
    assert_eq!(record.keys.major, slip.keys.major);
}

#[test]
fn a_crash_that_is_not_seen_again_is_unresolved() {
    let answer = ask(b"f", Kind::Deleting);
    assert_eq!((answer.outcome, answer.slip), (Outcome::Unresolved, None));
}

#[test]
fn a_run_that_was_cut_off_is_unresolved_and_says_by_what() {
    let time = ask(b"t", Kind::Deleting);
    assert_eq!(
        (time.outcome, time.cut_off),
        (Outcome::Unresolved, Some(CutOff::Time))
    );
    let memory = ask(b"O", Kind::Deleting);
    assert_eq!(
        (memory.outcome, memory.cut_off),
        (Outcome::Unresolved, Some(CutOff::Memory))
    );
}

#[test]
fn a_signal_from_outside_is_unresolved() {
    assert_eq!(ask(b"P", Kind::Deleting).outcome, Outcome::Unresolved);
}

#[test]
fn a_panic_is_told_from_an_exit_status_by_the_keyer() {
    assert!(ask(b"p", Kind::Deleting).slip.is_some());
    assert_eq!(ask(b"e", Kind::Deleting).outcome, Outcome::Pass);
}

#[test]
fn where_a_panic_is_held_the_same_status_without_one_is_unresolved() {
    let held = HeldCrash {
        class: Class("rustpanic".to_owned()),
        major: key("panic"),
        minor: key("panic"),
        ended: Ended::Exit(101),
    };
    let mut oracle = oracle_held(held).0;
    assert_eq!(
        oracle.ask(b"p", Kind::Deleting).expect("an answer").outcome,
        Outcome::Fail
    );
    assert_eq!(
        oracle.ask(b"e", Kind::Deleting).expect("an answer").outcome,
        Outcome::Unresolved
    );
}

#[test]
fn proofs_run_in_an_executor_of_their_own() {
    let (mut oracle, _, started) = oracle_held(segv());
    oracle.ask(b"c", Kind::Deleting).expect("an answer");
    assert_eq!(started.load(Ordering::Relaxed), 0);
    for _ in 0..3 {
        oracle.ask_fresh(b"c", Kind::Deleting).expect("an answer");
        assert_eq!(started.load(Ordering::Relaxed), 1);
    }
}

/// A mock executor that notes the limit on CPU time of each run.
struct Limited {
    freshness: Freshness,
    limit: Duration,
    limits: Arc<Mutex<Vec<Duration>>>,
}

impl Executor for Limited {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        self.limits.lock().expect("no panic").push(self.limit);
        Ok(Run::ended(ended(input)))
    }

    fn way(&self) -> Way {
        Way::Mock
    }

    fn freshness(&self) -> Freshness {
        self.freshness
    }

    fn limit_time(&mut self, time: TimeLimit) {
        self.limit = time.cpu;
    }
}

#[test]
fn the_executor_of_the_search_makes_fresh_runs_with_the_longer_limit_if_it_can() {
    let seconds = |cpu| Duration::from_secs(cpu);
    let time = |cpu| TimeLimit::from(Limits::with_cpu(seconds(cpu)));
    for (freshness, started_then, expected) in [
        (Freshness::Fresh, 0, vec![1, 10, 1, 2, 20, 2]),
        (Freshness::Shared, 1, vec![1, 1, 2, 2]),
    ] {
        let limits = Arc::default();
        let executor = Box::new(Limited {
            freshness,
            limit: seconds(1),
            limits: Arc::clone(&limits),
        });
        let started = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&started);
        let fresh: FreshExecutor = Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(mock())
        });
        let keyer = Box::new(Scripted::default());
        let oracle = CrashOracle::new(executor, fresh, keyer, segv(), None);
        let mut oracle = oracle.with_one_executor(time(1), time(10));
        for learned in [None, Some(time(2))] {
            if let Some(learned) = learned {
                oracle.limit_time(learned);
            }
            oracle.ask(b"", Kind::Deleting).expect("an answer");
            let answer = oracle.ask_fresh(b"c", Kind::Deleting).expect("an answer");
            assert_eq!(answer.outcome, Outcome::Fail);
            oracle.ask(b"", Kind::Deleting).expect("an answer");
        }
        let expected: Vec<Duration> = expected.into_iter().map(seconds).collect();
        assert_eq!(*limits.lock().expect("no panic"), expected);
        assert_eq!(started.load(Ordering::Relaxed), started_then);
    }
}

/// A classifier whose traced runs are as cheap as others; it notes their inputs.
struct Cheap {
    traced: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl CrashClassifier for Cheap {
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError> {
        Scripted::default().key(input)
    }

    fn key_within(
        &mut self,
        input: &[u8],
        _: TimeLimit,
    ) -> Result<Option<(Quick, Duration)>, ExecError> {
        self.traced.lock().expect("no panic").push(input.to_vec());
        Ok(Some((self.key(input)?, Duration::ZERO)))
    }

    fn examine(&mut self, input: &[u8]) -> Result<Option<Box<Crash>>, ExecError> {
        Scripted::default().examine(input)
    }
}

#[test]
fn fresh_runs_are_traced_at_once_only_behind_one_that_crashed() {
    let executor = Box::new(Limited {
        freshness: Freshness::Fresh,
        limit: Duration::ZERO,
        limits: Arc::default(),
    });
    let traced = Arc::default();
    let classifier = Box::new(Cheap {
        traced: Arc::clone(&traced),
    });
    let fresh: FreshExecutor = Box::new(|| unreachable!("the first one makes fresh runs"));
    let time = TimeLimit::from(Limits::with_cpu(Duration::from_secs(1)));
    let oracle = CrashOracle::new(executor, fresh, classifier, segv(), None);
    let mut oracle = oracle.with_one_executor(time, time);
    let inputs: [&[u8]; 6] = [b"1", b"c2", b"c3", b"o4", b"5", b"6"];
    let outcomes = inputs.map(|input| {
        let answer = oracle.ask_fresh(input, Kind::Deleting).expect("an answer");
        answer.outcome
    });
    let (pass, fail) = (Outcome::Pass, Outcome::Fail);
    assert_eq!(
        outcomes,
        [pass, fail, fail, Outcome::Unresolved, pass, pass]
    );
    let traced = traced.lock().expect("no panic");
    assert_eq!(*traced, [&b"c3"[..], b"o4", b"5"]);
}

/// A mock target that hangs on `h`, ends late on `l`, and at once on anything else; it notes the
/// limit on CPU time of each run.
struct Hanging {
    limit: Duration,
    limits: Arc<Mutex<Vec<u128>>>,
}

impl Executor for Hanging {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        (self.limits.lock().expect("no panic")).push(self.limit.as_millis());
        let is_late = self.limit < Duration::from_secs(1);
        Ok(Run::ended(match input.first() {
            Some(b'h') => Ended::Timeout,
            Some(b'l') if is_late => Ended::Timeout,
            _ => Ended::Exit(0),
        }))
    }

    fn way(&self) -> Way {
        Way::Mock
    }

    fn freshness(&self) -> Freshness {
        Freshness::Shared
    }

    fn limit_time(&mut self, time: TimeLimit) {
        self.limit = time.cpu;
    }
}

/// A classifier that names the hangs of [`Hanging`], and counts its runs.
struct HangClassifier(Arc<AtomicU64>);

impl CrashClassifier for HangClassifier {
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let SlipKeys { major, minor } = keys("held", "held");
        Ok(match input.first() {
            Some(b'h') => Quick::Crash {
                class: Class("hang".to_owned()),
                major,
                minor,
            },
            _ => Quick::Ended(Ended::Exit(0)),
        })
    }

    fn examine(&mut self, _: &[u8]) -> Result<Option<Box<Crash>>, ExecError> {
        Ok(None)
    }
}

#[test]
fn a_hang_takes_all_its_time_only_in_the_run_that_names_it() {
    let (limits, named) = (Arc::default(), Arc::default());
    let executor = Box::new(Hanging {
        limit: Duration::from_secs(2),
        limits: Arc::clone(&limits),
    });
    let keyer = Box::new(HangClassifier(Arc::clone(&named)));
    let fresh: FreshExecutor = Box::new(|| Ok(mock()));
    let hang = HeldCrash {
        ended: Ended::Timeout,
        ..HeldCrash::from(&crash("hang", keys("held", "held")))
    };
    let time = TimeLimit::from(Limits::with_cpu(Duration::from_secs(2)));
    let mut oracle = CrashOracle::new(executor, fresh, keyer, hang, None)
        .with_one_executor(time, time)
        .with_fixed_time();
    let outcomes = [b"h", b"l", b".", b"h"].map(|input| {
        let answer = oracle.ask(input, Kind::Deleting).expect("an answer");
        answer.outcome
    });
    let [fail, pass] = [Outcome::Fail, Outcome::Pass];
    assert_eq!(outcomes, [fail, pass, pass, fail]);
    assert_eq!(*limits.lock().expect("no panic"), [200; 4]);
    // The one that ends late has ended by itself under the tracer.
    assert_eq!(named.load(Ordering::Relaxed), 3);
}

#[test]
fn a_target_that_cannot_be_started_is_an_error() {
    let fresh: FreshExecutor = Box::new(|| {
        Err(ExecError::Missing {
            path: "gone".into(),
        })
    });
    let mut oracle = CrashOracle::new(mock(), fresh, Box::new(Scripted::default()), segv(), None);
    let error = oracle
        .ask_fresh(b"c", Kind::Deleting)
        .expect_err("an error");
    assert!(matches!(
        error,
        OracleError::Exec(ExecError::Missing { .. })
    ));
}

#[test]
fn a_whole_minimization_holds_the_crash_and_reports_the_other() {
    let (mut oracle, examined, started) = oracle_held(segv());
    let (result, _) = run(b"cxxooxx", &mut oracle);
    let result = result.expect("a result");
    assert_eq!(result.text, b"c");
    assert_eq!(result.minor_after, Some(key("held")));
    assert_eq!(started.load(Ordering::Relaxed), 1, "for its confirmations");
    assert!(examined.load(Ordering::Relaxed) <= 1);
}

/// A classifier whose traced runs take no longer than those of an executor.
#[derive(Default)]
struct Traced {
    runs: Arc<AtomicU64>,
    by_name: Scripted,
}

impl CrashClassifier for Traced {
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError> {
        self.by_name.key(input)
    }

    fn key_within(
        &mut self,
        input: &[u8],
        _time: TimeLimit,
    ) -> Result<Option<(Quick, Duration)>, ExecError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let quick = match ended(input) {
            Ended::Timeout => Quick::Crash {
                class: Class("hang".to_owned()),
                major: key("hang"),
                minor: key("hang"),
            },
            _ => self.key(input)?,
        };
        Ok(Some((quick, Duration::from_millis(3))))
    }

    fn examine(&mut self, input: &[u8]) -> Result<Option<Box<Crash>>, ExecError> {
        self.by_name.examine(input)
    }
}

/// An oracle whose runs under a tracer are cheap; the numbers of its traced runs and of those of
/// its executor.
fn traced_oracle() -> (CrashOracle, Arc<AtomicU64>, Arc<AtomicU64>) {
    let keyer = Traced::default();
    let traced = Arc::clone(&keyer.runs);
    let ran = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&ran);
    let executor = Box::new(Mock::new(move |input: &[u8]| {
        count.fetch_add(1, Ordering::Relaxed);
        Run::ended(ended(input))
    }));
    let fresh: FreshExecutor = Box::new(|| Ok(mock()));
    let limit = TimeLimit::from(Limits::default());
    let oracle = CrashOracle::new(executor, fresh, Box::new(keyer), segv(), None);
    (oracle.with_one_executor(limit, limit), traced, ran)
}

#[test]
fn a_crash_after_a_crash_takes_one_run() {
    let (mut oracle, traced, ran) = traced_oracle();
    let mut counts = |input: &[u8]| {
        let answer = oracle.ask(input, Kind::Deleting).expect("an answer");
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        (answer.outcome, count(&traced), count(&ran))
    };
    assert_eq!(counts(b"c1"), (Outcome::Fail, 1, 0));
    assert_eq!(counts(b"m"), (Outcome::Fail, 2, 0));
    assert_eq!(counts(b"o"), (Outcome::Unresolved, 3, 0));
    assert_eq!(counts(b"p1"), (Outcome::Unresolved, 4, 0));
    assert_eq!(counts(b"x"), (Outcome::Pass, 5, 0));
    // The process of a run that passes is used again.
    assert_eq!(counts(b"y"), (Outcome::Pass, 5, 1));
    assert_eq!(counts(b"c2"), (Outcome::Fail, 5, 2));
    assert_eq!(counts(b"c3"), (Outcome::Fail, 6, 2));
}

#[test]
fn a_run_that_reaches_a_limit_is_not_traced_again() {
    let (mut oracle, traced, ran) = traced_oracle();
    for (input, runs) in [(b"t1", 1), (b"c1", 1), (b"t2", 1)] {
        oracle.ask(input, Kind::Deleting).expect("an answer");
        assert_eq!(traced.load(Ordering::Relaxed), runs);
    }
    assert_eq!(ran.load(Ordering::Relaxed), 3);
}

#[test]
fn a_traced_run_behind_a_crash_confirms_alone() {
    let (mut oracle, traced, ran) = traced_oracle();
    let fail = (b"c", Outcome::Fail);
    for (input, outcome) in [fail, fail, (b"x", Outcome::Pass)] {
        let answer = oracle.ask_fresh(input, Kind::Deleting).expect("an answer");
        assert_eq!((answer.outcome, answer.process.is_own()), (outcome, true));
    }
    assert_eq!(traced.load(Ordering::Relaxed), 2);
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}
