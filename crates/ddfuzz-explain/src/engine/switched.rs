//! Tests conditions near a failure: does the run not fail any more when one of them is decided the
//! other way?

use std::collections::HashSet;
use std::rc::Rc;

use super::changed::{Change, ChangedRun};
use super::origin::{History, Origin};
use super::recorded::Recorded;
use super::sources::{comparison, guards};
use super::watchdog::TimeLimit;
use super::{Ending, Engine, EngineError, Point};

/// Largest number of conditions that are tried for each statement that led to the failure, the
/// nearest ones first: a run is made in which the condition is decided the other way.
const NEAREST: usize = 4;
/// Maximum number of runs of the failing input that the search for a condition makes; in each, one
/// condition is decided the other way.
const TRIED: usize = 24;
/// Largest number of conditions that a search returns; no two of them were tried for the same
/// statement.
const FOUND: usize = 3;
/// The search for conditions that avert the failure ends when this many runs, each with one
/// condition decided the other way, have exceeded their time limit.
const HANGING: usize = 2;

/// A condition of the failing run that averts the failure when it is decided the other way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switched {
    /// Address of the jump that depends on the condition.
    pub at: u64,
    /// Where the value that the condition tests came from; `None` where that is not known.
    pub by: Option<Origin>,
}

impl Engine {
    /// Finds conditions that avert the failure when they are decided the other way. Tries those
    /// that led to the failing statement, and to the statements that made the failing value
    /// (`history`), in runs of at most `limit`; `points` are the points (statement executions) of
    /// the failing run, and `averts` tells from the end of a run whether it did not fail. Of
    /// conditions without which the failing statement is not even reached, at most one is returned.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn switched(
        &mut self,
        points: &[Point],
        history: &History,
        limit: TimeLimit,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Vec<Switched>, EngineError> {
        let mut known = HashSet::new();
        // What the failing statement itself decides says nothing.
        let own = history.moments.first();
        let mut told = vec![own.and_then(|(it, last)| self.line(it.executed[*last].pc()))];
        let failing = points.last().map_or(0, |it| it.pc);
        let time = |(recorded, at): &(Rc<Recorded>, usize)| {
            let point = recorded.points[recorded.passed(*at)?].1;
            let is_it = |it: &Point| (it.pc, it.nth) == (point.pc, point.nth);
            points.iter().position(is_it)
        };
        // Those nearest to the failure first.
        let mut moments = history.moments.clone();
        moments.sort_by_key(|it| std::cmp::Reverse(time(it)));
        let (mut found, mut tried, mut hanging) = (Vec::new(), 0, 0);
        for (recorded, moment) in &moments {
            let near = guards(&recorded.executed, *moment, |pc| self.is_of_statement(pc));
            let near = near.into_iter().filter(|at| {
                let place = self.line(recorded.executed[*at].pc());
                let passed = recorded.passed(*at).map(|passed| recorded.points[passed]);
                let is_new = passed.is_some_and(|(first, it)| known.insert((it, at - first)));
                is_new && !told.contains(&place)
            });
            for at in near.take(NEAREST).collect::<Vec<_>>() {
                let is_late = self.facts_until.is_over();
                if is_late || tried >= TRIED || hanging >= HANGING || found.len() >= FOUND {
                    return Ok(found);
                }
                tried += 1;
                let change = (at, Change::OtherDecision);
                let switched = self.changed_run(recorded, change, (limit, failing))?;
                let Some(ChangedRun { ending, arrivals }) = switched else {
                    continue;
                };
                let is_reached = arrivals > 0;
                hanging += usize::from(ending.ended == ddfuzz_exec::Ended::Timeout);
                // What only keeps the run from the failing statement is told once.
                if !averts(&ending) || !is_reached && !found.is_empty() {
                    continue;
                }
                let by = self.compared_by(points, recorded, at)?;
                let at = recorded.executed[at].pc();
                told.push(self.line(at));
                found.push(Switched { at, by });
                break;
            }
        }
        Ok(found)
    }

    /// Finds the origin of the value that the recorded jump with the index `at` tests, in the run
    /// with these `points`; `None` where that is not known.
    fn compared_by(
        &mut self,
        points: &[Point],
        recorded: &Rc<Recorded>,
        at: usize,
    ) -> Result<Option<Origin>, EngineError> {
        let Some(compared) = comparison(&recorded.executed, at) else {
            return Ok(None);
        };
        let compare = &recorded.executed[compared];
        let values = compare.operands().into_iter();
        let used = values.map(|value| (recorded.clone(), compared, value));
        let of = compare.pc();
        Ok(self.history(points, of, used.collect())?.origin)
    }
}
