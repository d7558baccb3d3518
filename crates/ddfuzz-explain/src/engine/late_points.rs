//! Points (statement executions) shortly before the end of a failing run whose recorded trace ends
//! earlier, because its statements are executed too often.

use std::collections::HashMap;

use super::run::{Next, Pace};
use super::{Engine, EngineError, Point, Side, Trace};

/// Largest number of functions around the failure whose last calls are searched for.
const FUNCTIONS: usize = 8;
/// Largest number of calls of one function that are counted in the search for the last one.
const CALLS: u64 = 20_000;

impl Engine {
    /// Returns the points, in the order of time, at which the functions around the failure of
    /// `failing` were called for the last time. Functions that are called more than [`CALLS`]
    /// times are left out.
    pub(super) fn late_points(&mut self, failing: &Trace) -> Result<Vec<Point>, EngineError> {
        let mut entries: Vec<u64> = Vec::new();
        for pc in &failing.ending.stack {
            let function = self.info.function(pc.wrapping_sub(self.bias));
            let entry = function.and_then(|it| it.ranges.first());
            let entry = entry.map(|it| it.start.wrapping_add(self.bias));
            entries.extend(entry.filter(|it| !entries.contains(it)));
        }
        entries.truncate(FUNCTIONS);
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let mut run = self.start(Side::Failing)?;
        for entry in entries {
            run.process.set_breakpoint(entry)?;
        }
        let (mut last, mut calls): (HashMap<u64, (u64, Point)>, u64) = (HashMap::new(), 0);
        loop {
            let registers = match self.resume(&mut run.process, Pace::Free)? {
                Next::Breakpoint(registers) => registers,
                Next::Other(_) => continue,
                Next::Ended(_) => break,
            };
            self.check_time()?;
            if self.facts_until.is_over() {
                return Ok(Vec::new());
            }
            let point = self.arrived(&mut run, &registers);
            calls += 1;
            last.insert(point.pc, (calls, point));
            run.process.step_over(point.pc)?;
            if point.nth >= CALLS {
                run.process.remove_breakpoint(point.pc)?;
                last.remove(&point.pc);
            }
        }
        let mut last: Vec<(u64, Point)> = last.into_values().collect();
        last.sort_by_key(|it| it.0);
        Ok(last.into_iter().map(|it| it.1).collect())
    }
}
