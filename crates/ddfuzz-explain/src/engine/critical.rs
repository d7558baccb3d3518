//! The *critical predicates* of a failing run: conditions that avert the failure when they are
//! decided the other way (Zhang, Gupta and Gupta, *Locating Faults Through Automated Predicate
//! Switching*, ICSE 2006).

use std::collections::{HashMap, HashSet};

use ddfuzz_exec::Ended;

use super::decisions::Decision;
use super::run::Pace;
use super::watchdog::TimeLimit;
use super::{Ending, Engine, EngineError, Point, Side};
use crate::places::source_line;
use crate::suspects::MAIN;

/// Number of conditions that are tested in one round: in forks of the same stopped run, each of
/// which decides one condition the other way.
const ROUND_OF_TESTS: usize = 60;
/// Largest number of runs of the failing input in which conditions are tested: from each of these
/// runs, forks are made that decide one condition the other way.
const ROUNDS: usize = 5;
/// Number of conditional jumps after which the search for critical conditions ends, if the run
/// exceeds its time limit when any one of them goes the other way: each such run costs a whole time
/// limit.
const HANGING: usize = 8;

/// A condition of the failing run that averts the failure when it is decided the other way, found
/// by trying all conditions of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Critical {
    /// The decision that averts the failure when it is made the other way.
    pub decision: Decision,
    /// Whether the run, after its decision was changed, reaches the failing statement as often as
    /// the failing run does after that decision.
    pub reaches: bool,
    /// Whether the output of the run with the other decision begins with all that the failing run
    /// wrote before its failure.
    pub is_like: bool,
    /// Status with which the run with the other decision exits; `None` if a signal ends it.
    pub status: Option<i32>,
    /// Address of the deciding statement, and those of the calls that led to it, innermost first.
    pub calls: Vec<u64>,
    /// Values of integer variables when the condition was decided, such as `n is 30`: of variables
    /// that the source line of the deciding statement names, or that of the failing statement if it
    /// is in the same function. Empty if no values were read.
    pub values: Vec<String>,
}

/// Largest number of conditions that a search for critical predicates returns.
const FOUND: usize = 6;
/// Number of conditions for which the values of variables are read: the first ones, which are the
/// most telling.
const TOLD: usize = 3;
/// Weight of repeated executions in the order in which the decisions of a run are tested: each
/// later execution of a decision's jump counts as much as this number of doublings of the number of
/// events that depend on the decision.
const ROUND: usize = 4;

/// Returns the decisions of a run in the order in which they are tried. A decision comes the later,
/// the more often its jump is executed after it, and the more events depend on it: each later
/// execution counts as much as [`ROUND`] doublings of the number of events.
fn in_order(decisions: &[Decision]) -> Vec<Decision> {
    let mut rounds: HashMap<u64, usize> = HashMap::new();
    let mut ranked: Vec<(usize, Decision)> = Vec::new();
    for it in decisions.iter().rev() {
        let round = rounds.entry(it.pc).or_default();
        let magnitude = (usize::BITS - it.decided.leading_zeros()) as usize;
        ranked.push((*round * ROUND + magnitude, *it));
        *round += 1;
    }
    ranked.sort_by_key(|it| it.0);
    ranked.into_iter().map(|it| it.1).collect()
}

/// Returns the status with which a run exits; `None` if it ends in another way.
pub(super) fn exit_status(ended: Ended) -> Option<i32> {
    match ended {
        Ended::Exit(status) => Some(status),
        _ => None,
    }
}

impl Critical {
    /// Returns the key by which conditions are sorted, the most telling first, in the order that
    /// [`critical`](Engine::critical) describes. `is_main`: whether the condition is in `main`.
    fn rank(&self, is_main: bool) -> impl Ord + use<> {
        let next = match self.reaches {
            true => (false, self.decision.decided),
            false => (!self.is_like, usize::MAX - self.decision.time),
        };
        (!self.reaches, is_main, self.status != Some(0), next)
    }
}

impl Engine {
    /// Finds conditions of the failing run that avert the failure when decided the other way: one
    /// for each source line, at most [`FOUND`]. First come conditions after which the failing
    /// statement is still reached, sorted by how few events depend on them; then the others, sorted
    /// by whether the output begins as that of the failing run, the latest condition first. In both
    /// parts, conditions in `main` come last, since most only choose what is done with a line of the
    /// input, and of the others those first that let the run exit with status 0. `averts` tells from a
    /// run's end whether it did not fail, `points` are the points (statement executions) of the
    /// failing run, and `limit` is the time limit of a test.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn critical(
        &mut self,
        points: &[Point],
        limit: TimeLimit,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Vec<Critical>, EngineError> {
        let Some((first, failing)) = points.first().zip(points.last().map(|it| it.pc)) else {
            return Ok(Vec::new());
        };
        let limit = limit.shorter();
        let begins = self.output_before(*first, limit)?;
        let (decisions, jumps) = self.decisions(points)?;
        let mut found: Vec<Critical> = Vec::new();
        // What the failing statement itself decides, as a failed assertion does, says nothing.
        let mut known: HashSet<_> = self.line(failing).map(Some).into_iter().collect();
        let mut hanging = HashSet::new();
        for round in in_order(&decisions).chunks(ROUND_OF_TESTS).take(ROUNDS) {
            let mut round = round.to_vec();
            round.retain(|it| {
                !known.contains(&self.line(it.statement)) && !hanging.contains(&it.pc)
            });
            round.sort_by_key(|it| it.time);
            let ways = (limit, failing);
            self.other_decisions(&round, &jumps, ways, |engine, decision, run| {
                let line = engine.line(decision.statement);
                if run.ending.ended == Ended::Timeout {
                    hanging.insert(decision.pc);
                }
                if averts(&run.ending) {
                    known.insert(line);
                    found.push(Critical {
                        decision: *decision,
                        reaches: run.arrivals >= decision.arrivals.max(1),
                        is_like: run.ending.output.starts_with(&begins),
                        status: exit_status(run.ending.ended),
                        calls: Vec::new(),
                        values: Vec::new(),
                    });
                }
                hanging.len() < HANGING
            })?;
            if self.facts_until.is_over() || hanging.len() >= HANGING {
                break;
            }
        }
        let is_main = |it: &Critical| self.function(it.decision.statement) == Some(MAIN);
        found.sort_by_key(|it| it.rank(is_main(it)));
        let mut lines = HashSet::new();
        found.retain(|it| lines.insert(self.line(it.decision.statement)));
        found.truncate(FOUND);
        for (index, it) in found.iter_mut().enumerate() {
            let text = match index < TOLD {
                true => self.words_of(it.decision.statement, failing),
                false => String::new(),
            };
            (it.calls, it.values) = self.calls_at(&it.decision, &jumps, &text)?;
        }
        Ok(found)
    }

    /// Returns the text of the source line of the statement at the address `at`. If the statement
    /// at the address `failing` is in the same function, the text of its line is appended. A line
    /// that cannot be read counts as empty.
    fn words_of(&self, at: u64, failing: u64) -> String {
        let text = |pc| {
            let (file, line) = self.place(pc)?;
            source_line(file, line)
        };
        let mut words = text(at).unwrap_or_default();
        if self.function(at) == self.function(failing) {
            words.extend(text(failing).map(|it| format!(" {it}")));
        }
        words
    }

    /// Returns the output of the failing run up to its failure, including output that its C library
    /// still buffers. `first` is the run's first point.
    fn output_before(&mut self, first: Point, limit: TimeLimit) -> Result<Vec<u8>, EngineError> {
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, first)?;
        let mut stand = self.stand_in(run, limit)?;
        let tests = self.tests;
        let plain = self.run_mutant(&mut stand, None, Pace::Free)?;
        self.tests = tests;
        Ok(plain.map(|it| it.output).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(pc: u64, nth: u64, decided: usize) -> Decision {
        Decision {
            pc,
            statement: pc,
            time: 0,
            nth,
            stack: 0,
            decided,
            arrivals: 0,
        }
    }

    #[test]
    fn what_guards_the_failing_statement_is_the_last_condition_before_it() {
        let of = |time, decided, (reaches, is_like)| Critical {
            decision: Decision {
                time,
                ..decision(1, 1, decided)
            },
            reaches,
            is_like,
            status: Some(0),
            calls: Vec::new(),
            values: Vec::new(),
        };
        let mut all = [
            of(9, 1, (false, false)),
            of(1, 3, (false, true)),
            of(2, 7, (false, true)),
            of(3, 8, (true, false)),
            of(4, 5, (true, false)),
        ];
        all.sort_by_key(|it| it.rank(false));
        assert_eq!(all.map(|it| it.decision.time), [4, 3, 2, 1, 9]);
    }

    #[test]
    fn each_jump_is_tried_before_one_is_tried_again_unless_it_decides_on_much() {
        let all = [
            (1, 1, 0),
            (2, 1, 0),
            (2, 2, 0),
            (1, 2, 20),
            (3, 1, 1),
            (1, 3, 3),
        ];
        let all = all.map(|(pc, nth, decided)| decision(pc, nth, decided));
        let order: Vec<(u64, u64)> = in_order(&all).iter().map(|it| (it.pc, it.nth)).collect();
        assert_eq!(order, [(2, 2), (3, 1), (1, 3), (2, 1), (1, 1), (1, 2)]);
    }
}
