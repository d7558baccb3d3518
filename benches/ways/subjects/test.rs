//! An interestingness test, as a minimization runs it.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use ddfuzz::exec::{Ended, Freshness, Program, Target, start_test};

use super::Subject;
use crate::cost::Cost;
use crate::difference::difference;
use crate::programs::{environment, input};

/// A test, started anew for each round.
pub struct InterestingnessTest {
    name: &'static str,
    target: Target,
    freshness: Freshness,
}

/// Runs before those that are measured: the first ones are made twice and compared.
const WARM_UP: u32 = 100;

impl InterestingnessTest {
    /// The program at `path` as a test.
    pub fn new(name: &'static str, path: &Path, freshness: Freshness) -> InterestingnessTest {
        let mut target = Target::new(Program::Path(path.to_owned()));
        target.env.extend(environment());
        target.env_only = true;
        InterestingnessTest {
            name,
            target,
            freshness,
        }
    }

    fn series(&self, runs: u32) -> Duration {
        let started = start_test(&self.target, OsStr::new("input"), self.freshness);
        let mut executor = started.expect("the test starts");
        let input = input();
        let mut run_some = |count| {
            for _ in 0..count {
                let run = executor.run(&input).expect("the test runs");
                assert!(matches!(run.ended, Ended::Exit(_)), "{}", run.ended);
            }
        };
        run_some(WARM_UP);
        let began = Instant::now();
        run_some(runs);
        began.elapsed()
    }
}

impl Subject for InterestingnessTest {
    fn name(&self) -> &str {
        self.name
    }

    fn measure(&mut self, runs: u32) -> Cost {
        difference(runs, |runs| self.series(runs))
    }
}
