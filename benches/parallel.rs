//! How much sooner a minimization ends by two workers than by one, side by side in one run.
//!
//! `cargo bench --bench parallel`: `ddmin` on 2000 bytes of which 8 scattered ones are needed, each
//! test 1 ms of CPU time: by a function in the worker's own thread, and by a program that is
//! compiled here and run in a process of its own; and by a function of 15 µs, where nothing is to be
//! gained and nothing must be lost. Prints *wall* time, because that is what workers
//! are for: on a machine that is busy with other things, or that has one processor, the ratio says
//! little. The results of both are compared, too.
//!
//! `cargo test` only sees whether both still run, with a small input that measures nothing.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ddfuzz::campaign::Minimizing;
use ddfuzz::delta::Outcome;
use ddfuzz::exec::{Program, Target, Way};
use ddfuzz::minimize::log::{LogWriter, StartLine, TargetRecord};
use ddfuzz::minimize::{
    Answer, BoxedOracle, Journal, Kind, Minimized, Options, Oracle, OracleError, Workers,
    minimize_by_workers,
};
use ddfuzz::triage::{Crash, Triager, Verdict};

/// What must be left of the input, in this order.
const NEEDLE: &[u8] = b"ABCDEFGH";

/// Dies where its input holds the needle, after 1 ms of CPU time.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <time.h>
static int *volatile nowhere;
int main(void) {
    struct timespec now;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec == 0 && now.tv_nsec < 1000000);
    const char *rest = "ABCDEFGH";
    for (int c; (c = getchar()) != EOF;)
        rest += c == *rest;
    if (!*rest)
        *nowhere = 1;
    return 0;
}
"#;

/// How much is measured.
struct Plan {
    bytes: usize,
    rounds: usize,
}

fn main() {
    // Cargo says so when it is to measure.
    let measures = std::env::args().any(|arg| arg == "--bench");
    let plan = match measures {
        true => Plan {
            bytes: 2000,
            rounds: 7,
        },
        false => Plan {
            bytes: 24,
            rounds: 1,
        },
    };
    let (bytes, rounds) = (plan.bytes, plan.rounds);
    println!("wall time of ddmin on {bytes} bytes, 1 ms of CPU time a test, median of {rounds}");
    println!(
        "{:<18}{:>10}{:>12}{:>12}{:>10}{:>10}{:>12}",
        "tests by", "tests", "1 job, ms", "2 jobs, ms", "speed-up", "of best", "in vain"
    );
    let input = input(plan.bytes);
    for (name, micros) in [("a function", 1000), ("one of 15 µs", 15)] {
        let burning = Burning(Duration::from_micros(micros));
        compare(name, &plan, |jobs| burning.minimize(&input, jobs));
    }
    let folder = tempfile::tempdir().expect("a directory for the program");
    let program = compile(folder.path());
    let subject = Subject::new(program, &input);
    compare("a program", &plan, |jobs| subject.minimize(&input, jobs));
}

/// Measures one and two workers in turn, so that a busy moment of the machine hits both alike.
fn compare(name: &str, plan: &Plan, minimize: impl Fn(usize) -> Minimized) {
    let mut walls = [Vec::new(), Vec::new()];
    let mut vain = Vec::new();
    let mut executed = 0;
    for _ in 0..plan.rounds {
        for jobs in [1, 2] {
            let began = Instant::now();
            let result = minimize(jobs);
            walls[jobs - 1].push(began.elapsed());
            assert_eq!(result.text, NEEDLE);
            assert!(executed == 0 || executed == result.counts.executed);
            executed = result.counts.executed;
            vain.push(result.counts.speculative);
        }
    }
    let best = walls.clone().map(|all| all.into_iter().min());
    let [one, two] = walls.map(median);
    let ratio = |one: Duration, two: Duration| one.as_secs_f64() / two.as_secs_f64();
    let best = match best {
        [Some(one), Some(two)] => ratio(one, two),
        _ => f64::NAN,
    };
    println!(
        "{name:<18}{executed:>10}{:>12.0}{:>12.0}{:>9.2}x{best:>9.2}x{:>12}",
        one.as_secs_f64() * 1e3,
        two.as_secs_f64() * 1e3,
        ratio(one, two),
        vain.iter().max().copied().unwrap_or_default(),
    );
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort();
    all[all.len() / 2]
}

/// Small letters, and those of the needle at distances that no division by two meets.
fn input(bytes: usize) -> Vec<u8> {
    let mut input: Vec<u8> = (0..bytes).map(|at| b'a' + (at * 7 % 26) as u8).collect();
    for (index, byte) in NEEDLE.iter().enumerate() {
        input[(index * bytes + bytes / 3) / NEEDLE.len()] = *byte;
    }
    input
}

fn holds_needle(text: &[u8]) -> bool {
    let mut rest = NEEDLE.iter().peekable();
    for byte in text {
        rest.next_if_eq(&byte);
    }
    rest.peek().is_none()
}

/// A function as the target, which takes so much CPU time.
#[derive(Clone, Copy)]
struct Burning(Duration);

impl Oracle for Burning {
    fn ask(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        let began = thread_cpu();
        while thread_cpu() - began < self.0 {}
        Ok(Answer::of(match holds_needle(candidate) {
            true => Outcome::Fail,
            false => Outcome::Pass,
        }))
    }

    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.ask(candidate, kind)
    }
}

/// CPU time that this thread has spent.
fn thread_cpu() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

impl Burning {
    fn minimize(self, input: &[u8], jobs: usize) -> Minimized {
        let target = Target::new(Program::Bundled("ul".to_owned()));
        let record = TargetRecord::new(&target, Way::Mock);
        let start = StartLine::new(input, "ddmin", record, None, target.limits);
        let folder = tempfile::tempdir().expect("a directory for the log");
        let log = LogWriter::create(&folder.path().join("log.jsonl")).expect("a log");
        let mut journal = Journal::begin(start, log).expect("a log");
        let mut options = Options::default();
        let make = || Ok(Box::new(self) as BoxedOracle<'_>);
        let workers = Workers::new(Box::new(self), &make, jobs);
        let result = minimize_by_workers(input, workers, &mut journal, &mut options);
        result.expect("a result")
    }
}

fn compile(folder: &std::path::Path) -> std::path::PathBuf {
    let (source, program) = (folder.join("slow.c"), folder.join("slow"));
    std::fs::write(&source, PROGRAM).expect("a source");
    let mut compiler = std::process::Command::new("cc");
    let status = compiler.args(["-O1", "-o"]).arg(&program).arg(&source);
    assert!(status.status().expect("a C compiler").success());
    program
}

/// A program as the target.
struct Subject {
    minimizing: Minimizing,
    crash: Crash,
}

impl Subject {
    fn new(program: std::path::PathBuf, input: &[u8]) -> Subject {
        let target = Target::new(Program::Path(program));
        let way = Way::Inject;
        let mut triager = Triager::of_target(&target, way).expect("the target starts");
        let Ok(Verdict::Crash(crash)) = triager.examine(input) else {
            panic!("the input crashes the target");
        };
        let minimizing = Minimizing::of_target(target, way, "ddmin");
        Subject {
            minimizing,
            crash: *crash,
        }
    }

    fn minimize(&self, input: &[u8], jobs: usize) -> Minimized {
        let minimizing = Minimizing {
            jobs,
            ..self.minimizing.clone()
        };
        let folder = tempfile::tempdir().expect("a directory for the log");
        let start = minimizing.start_line(input, &self.crash);
        let mut journal =
            Journal::create(&folder.path().join("log.jsonl"), start).expect("a new log");
        let stop = AtomicBool::new(false);
        let mut options = minimizing.options(&stop);
        let result = minimizing.minimize(input, &self.crash, &mut journal, &mut options);
        result.expect("a result")
    }
}
