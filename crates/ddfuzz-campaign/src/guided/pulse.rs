//! When a worker reports to the hub, and how many runs it may make until then.

use std::time::{Duration, Instant};

use super::remote::Remote;
use super::wire::{Beat, Judged, Order};
use ddfuzz_store::StoreError;

/// Between two beats.
const EVERY: Duration = Duration::from_millis(100);
/// So long a worker waits that has no runs left, while others finish theirs.
const IDLE: Duration = Duration::from_millis(5);

/// A worker's beats.
pub(super) struct Pulse {
    remote: Remote,
    order: Order,
    last: Instant,
    /// Runs since the last beat.
    runs: u64,
    /// What was found out about hangs, and nobody has looked at yet.
    judged: Vec<Judged>,
    /// What else the next beat tells.
    pub(super) standing: Beat,
}

impl Pulse {
    /// The first beat, which asks for runs.
    pub(super) fn begin(remote: Remote) -> Result<Pulse, StoreError> {
        let mut order = remote.beat(Beat::default())?;
        Ok(Pulse {
            remote,
            judged: std::mem::take(&mut order.judged),
            order,
            last: Instant::now(),
            runs: 0,
            standing: Beat::default(),
        })
    }

    /// How many more runs the worker may make now, reporting where it is time to; none only where
    /// it is to end.
    pub(super) fn left(&mut self) -> Result<u64, StoreError> {
        loop {
            if self.order.stop {
                return Ok(0);
            }
            let left = self.order.runs.saturating_sub(self.runs);
            if left > 0 && self.last.elapsed() < EVERY {
                return Ok(left);
            }
            if left == 0 && self.runs == 0 {
                std::thread::sleep(IDLE);
            }
            self.beat()?;
        }
    }

    /// So many runs were made.
    pub(super) fn ran(&mut self, runs: u64) {
        self.runs += runs;
    }

    /// Takes what was found out about hangs.
    pub(super) fn take_judged(&mut self) -> Vec<Judged> {
        std::mem::take(&mut self.judged)
    }

    /// Who it reports to.
    pub(super) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Reports now.
    pub(super) fn beat(&mut self) -> Result<(), StoreError> {
        let beat = Beat {
            runs: self.runs,
            ..self.standing
        };
        self.order = self.remote.beat(beat)?;
        self.judged.append(&mut self.order.judged);
        self.runs = 0;
        self.standing.minimized_us = 0;
        self.last = Instant::now();
        Ok(())
    }
}
