//! A way of execution of ddfuzz.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ddfuzz::exec::{Ended, ExecError, Freshness, Target, Way, start};

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
}

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
        })
    }

    /// The wall time of `runs` runs; start and end are not of it.
    fn series(&self, runs: u32) -> Duration {
        let started = start(&self.target, Some(self.way), self.freshness);
        let mut executor = started.expect("it has started before").executor;
        let input = input();
        let began = Instant::now();
        for _ in 0..runs {
            let ended = executor.run(&input).expect("the target runs").ended;
            assert!(matches!(ended, Ended::Exit(_)), "{ended}");
            if self.way == Way::Forkserver {
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
