//! A way of execution of ddfuzz.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ddfuzz::exec::{Ended, ExecError, Executor, Freshness, Target, Way, start};

use super::Subject;
use crate::cost::Cost;
use crate::difference::difference;
use crate::programs::{environment, input};

/// An executor, started anew for each round: only when its processes have ended can their CPU
/// time be had.
pub struct ByWay {
    name: &'static str,
    target: Target,
    way: Way,
    freshness: Freshness,
    at_once: usize,
    input: Vec<u8>,
    /// Runs before those that are measured.
    warm_up: usize,
}

/// Runs before those that are measured: of `snapshot`, the ones that are made twice and compared.
const WARM_UP: usize = 500;
/// Of slow programs, one run in so many is made.
pub const SLOW_PART: u32 = 10;

impl ByWay {
    /// Fails if `target` cannot be run by `way`.
    pub fn new(
        name: &'static str,
        target: &Target,
        way: Way,
        freshness: Freshness,
    ) -> Result<ByWay, ExecError> {
        let mut target = target.clone();
        target.env.extend(environment());
        target.env_only = true;
        start(&target, Some(way), freshness)?;
        Ok(ByWay {
            name,
            target,
            way,
            freshness,
            at_once: 1,
            input: input(),
            warm_up: if way == Way::Snapshot { WARM_UP } else { 0 },
        })
    }

    /// The same with fewer runs before those that are measured, for slow programs.
    pub fn for_slow(mut self) -> ByWay {
        self.warm_up /= SLOW_PART as usize;
        self
    }

    /// The same with so many inputs a request, of so many bytes.
    pub fn with_inputs(mut self, at_once: usize, length: usize) -> ByWay {
        self.at_once = at_once;
        self.input.truncate(length);
        self
    }

    /// Makes `runs` runs.
    fn run(&self, executor: &mut dyn Executor, runs: usize) {
        let inputs = vec![&self.input[..]; self.at_once];
        let mut left = runs;
        while left > 0 {
            let some = &inputs[..left.min(inputs.len())];
            let made = executor.run_some(some).expect("the target runs");
            for run in &made {
                assert!(matches!(run.ended, Ended::Exit(_)), "{}", run.ended);
            }
            left -= made.len();
        }
    }

    /// The wall time of `runs` runs; start and end are not of it.
    fn series(&self, runs: u32) -> Duration {
        let started = start(&self.target, Some(self.way), self.freshness);
        let mut executor = started.expect("it has started before").executor;
        self.run(executor.as_mut(), self.warm_up);
        let began = Instant::now();
        if self.way != Way::Forkserver {
            self.run(executor.as_mut(), runs as usize);
        } else {
            for _ in 0..runs {
                self.run(executor.as_mut(), 1);
                // It is compared to a fuzzer, which looks at what each run covered.
                let counters = executor.coverage().expect("the program is instrumented");
                assert!(black_box(counters).iter().any(|count| *count > 0));
            }
        }
        began.elapsed()
    }
}

impl Subject for ByWay {
    fn name(&self) -> &str {
        self.name
    }

    fn measure(&mut self, runs: u32) -> Cost {
        difference(runs, |runs| self.series(runs))
    }
}
