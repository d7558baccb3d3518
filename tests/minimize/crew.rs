//! Minimizing by several workers, whose oracles follow one script.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ddfuzz::minimize::log::{Log, StartLine};
use ddfuzz::minimize::{
    Answer, BoxedOracle, Journal, Kind, MinimizeError, Minimized, Options, Oracle, OracleError,
    Slip, SlipKeys, Workers, minimize_by_workers,
};
use ddfuzz::triage::Crash;
use serde_json::Value;

use crate::crashes::crash;
use crate::failures::without_times;
use crate::memory::Memory;

type Script<'a> = dyn Fn(&[u8], bool) -> Result<Answer, OracleError> + Sync + 'a;

/// What the oracles of all workers have in common.
pub struct Crew<'a> {
    script: &'a Script<'a>,
    /// Seed of the delays, 0 to 2 ms a test.
    delays: Option<u64>,
    /// Answers given by any of them.
    answered: AtomicU64,
    /// Oracles made.
    pub made: AtomicU64,
    alive: AtomicU64,
    /// Slips that any of them met.
    pub met: Mutex<Vec<SlipKeys>>,
}

impl<'a> Crew<'a> {
    /// Oracles that answer at once.
    pub fn new(script: &'a Script<'a>) -> Crew<'a> {
        Crew {
            script,
            delays: None,
            answered: AtomicU64::new(0),
            made: AtomicU64::new(0),
            alive: AtomicU64::new(0),
            met: Mutex::default(),
        }
    }

    /// Oracles that take their time, each another one.
    pub fn delayed(script: &'a Script<'a>, seed: u64) -> Crew<'a> {
        Crew {
            delays: Some(seed),
            ..Crew::new(script)
        }
    }

    fn oracle(&self) -> BoxedOracle<'_> {
        self.alive.fetch_add(1, Ordering::SeqCst);
        let number = self.made.fetch_add(1, Ordering::SeqCst);
        Box::new(Member {
            crew: self,
            random: self.delays.unwrap_or(0) ^ number,
            examined: Vec::new(),
        })
    }

    /// Minimizes by this many workers, whatever a test costs; gives the result and the log.
    pub fn run(
        &self,
        jobs: usize,
        input: &[u8],
        start: StartLine,
        options: &mut Options<'_>,
    ) -> (Result<Minimized, MinimizeError>, Vec<u8>) {
        self.resume(jobs, input, start, &[], options)
    }

    /// Goes on with what is left of a log.
    pub fn resume(
        &self,
        jobs: usize,
        input: &[u8],
        start: StartLine,
        left: &[u8],
        options: &mut Options<'_>,
    ) -> (Result<Minimized, MinimizeError>, Vec<u8>) {
        let parsed = Log::parse(left).expect("a log that was only cut off");
        let memory = Memory::new(&left[..parsed.whole as usize]);
        let mut journal = Journal::go_on(parsed, start, memory.writer()).expect("the same log");
        let make = || Ok(self.oracle());
        let workers = Workers::new(self.oracle(), &make, jobs).ahead_from(Duration::ZERO);
        let result = minimize_by_workers(input, workers, &mut journal, options);
        let alive = self.alive.load(Ordering::SeqCst);
        assert_eq!(alive, 0, "no worker outlives a minimization");
        (result, memory.bytes())
    }

    /// Answers given by any of them.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::SeqCst)
    }
}

/// One oracle.
struct Member<'a> {
    crew: &'a Crew<'a>,
    random: u64,
    /// Each hands over the record of a crash once, as that of real crashes does.
    examined: Vec<SlipKeys>,
}

impl Member<'_> {
    fn answer(&mut self, text: &[u8], fresh: bool) -> Result<Answer, OracleError> {
        if self.crew.delays.is_some() {
            self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d) + 1;
            std::thread::sleep(Duration::from_micros((self.random >> 33) % 2000));
        }
        let mut answer = (self.crew.script)(text, fresh)?;
        self.crew.answered.fetch_add(1, Ordering::SeqCst);
        if let Some(slip) = &mut answer.slip {
            self.crew.met.lock().expect("whole").push(slip.keys);
            match self.examined.contains(&slip.keys) {
                true => slip.crash = None,
                false => self.examined.push(slip.keys),
            }
        }
        Ok(answer)
    }
}

impl Oracle for Member<'_> {
    fn ask(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        self.answer(candidate, false)
    }

    fn ask_fresh(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        self.answer(candidate, true)
    }

    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        Ok(Some(Box::new(crash("segv", slip.keys))))
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.crew.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The log without what may differ between one worker and several.
pub fn as_of_one(log: &[u8]) -> Vec<Value> {
    let mut lines = without_times(log);
    for line in &mut lines {
        if let Some(tests) = line.get_mut("tests") {
            tests["speculative"] = Value::Null;
        }
    }
    lines
}
