//! The learned limit on the time of a run.

use std::time::Duration;

use ddfuzz::exec::TimeLimit;
use ddfuzz::minimize::log::{Line, Log, StartLine};
use ddfuzz::minimize::{Answer, Kind, Options, Oracle, OracleError, replay, verify};

use crate::failures::subsequence;
use crate::scripted::{outcomes, resume_with, run_with, start};

const INPUT: &[u8] = b"ab<cd>ef";

/// An oracle whose runs take so much CPU time, each one more than the one before.
struct Slow {
    asked: u32,
    first: Duration,
    limits: Vec<TimeLimit>,
}

impl Slow {
    fn new(first: Duration) -> Slow {
        Slow {
            asked: 0,
            first,
            limits: Vec::new(),
        }
    }
}

impl Oracle for Slow {
    fn ask(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        self.asked += 1;
        Ok(Answer {
            cpu: Some(self.first * self.asked),
            ..Answer::of(subsequence(b"<>")(candidate))
        })
    }

    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.ask(candidate, kind)
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        self.limits.push(learned);
    }
}

fn learning() -> StartLine {
    StartLine {
        learn_limit: true,
        ..start(INPUT)
    }
}

fn limit(cpu: Duration) -> TimeLimit {
    TimeLimit {
        cpu,
        wall: (cpu * 2).max(Duration::from_secs(2)),
    }
}

#[test]
fn the_slowest_run_of_the_input_gives_the_limit_once() {
    for (first, learned) in [(200, 6000), (1, 50)] {
        let mut oracle = Slow::new(Duration::from_millis(first));
        run_with(INPUT, learning(), &mut oracle, &mut Options::default())
            .0
            .expect("a result");
        assert_eq!(oracle.limits, [limit(Duration::from_millis(learned))]);
    }
}

#[test]
fn a_limit_that_the_user_set_is_not_learned() {
    let mut oracle = Slow::new(Duration::from_millis(200));
    run_with(INPUT, start(INPUT), &mut oracle, &mut Options::default())
        .0
        .expect("a result");
    assert_eq!(oracle.limits, []);
}

#[test]
fn resume_replay_and_verify_know_the_limit_from_the_log() {
    let mut oracle = Slow::new(Duration::from_millis(200));
    let (_, whole) = run_with(INPUT, learning(), &mut oracle, &mut Options::default());
    let log = Log::parse(&whole).expect("a log");
    let learned = limit(Duration::from_secs(6));
    assert_eq!(replay(INPUT, &log).unwrap().time_limit, Some(learned));

    let mut verifying = Slow::new(Duration::from_secs(9));
    verify(INPUT, &log, &mut verifying, |_| ()).expect("verified");
    assert_eq!(verifying.limits, [learned]);

    let mut resumed = Slow::new(Duration::from_secs(9));
    let left = &whole[..whole.len() / 2];
    resume_with(
        INPUT,
        learning(),
        left,
        &mut resumed,
        &mut Options::default(),
    )
    .0
    .expect("a result");
    assert_eq!(resumed.limits, [learned]);
}

#[test]
fn an_oracle_without_a_clock_teaches_nothing() {
    let mut oracle = outcomes(subsequence(b"<>"));
    let (_, log) = run_with(INPUT, learning(), &mut oracle, &mut Options::default());
    let log = Log::parse(&log).expect("a log");
    assert_eq!(replay(INPUT, &log).unwrap().time_limit, None);
    let silent = |line: &Line| matches!(line, Line::Check(check) if check.cpu_us.is_some());
    assert!(!log.lines.iter().any(|(_, line)| silent(line)));
}
