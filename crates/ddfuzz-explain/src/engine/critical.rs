//! The *critical predicates* of a failing run: conditions whose other decision lets it end well (Zhang, Gupta and
//! Gupta, *Locating Faults Through Automated Predicate Switching*, ICSE 2006).

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use ddfuzz_exec::Ended;

use super::decisions::Decision;
use super::watchdog::TimeLimit;
use super::{Ending, Engine, EngineError, Point, if_supported};

/// Largest number of runs in which a condition is decided otherwise.
const TESTS: usize = 60;
/// Largest number of jumps whose other decision keeps a run from its end.
const HANGING: usize = 4;

/// A condition of the failing run whose other decision lets it end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Critical {
    /// The decision.
    pub decision: Decision,
    /// Whether the run comes to the failing statement as often then as the failing run did.
    pub reaches: bool,
    /// Whether the run exits with status 0 then.
    pub succeeds: bool,
    /// Address of the jump, and those of the calls that led to it, innermost first.
    pub calls: Vec<u64>,
}

/// Largest number of conditions that are returned.
const FOUND: usize = 6;
/// How much more an execution of a jump counts that follows in its order, compared with the binary logarithm of the
/// number of events that came about by it.
const ROUND: usize = 4;

/// Returns the order in which the decisions of a run are tried: of each jump the last one before those before it, and
/// decisions by which little came about before others, by its order of magnitude.
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

impl Engine {
    /// Finds the conditions of the failing run whose other decision averts the failure, one for each source line:
    /// `averts` is true for how the run then ends. Those come first with which the run still comes to the failing
    /// statement, then those with which it exits with status 0, of these the ones that decide on least. `points` are
    /// the points (statement executions) of the failing run, `limit` is the time limit of a test.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn critical(
        &mut self,
        points: &[Point],
        limit: TimeLimit,
        averts: impl Fn(&Ending) -> bool,
    ) -> Result<Vec<Critical>, EngineError> {
        let failing = points.last().map_or(0, |it| it.pc);
        let (decisions, jumps) = self.decisions(points)?;
        let mut found: Vec<Critical> = Vec::new();
        // What the failing statement itself decides, as a failed assertion does, says nothing.
        let mut known: HashSet<_> = self.line(failing).map(Some).into_iter().collect();
        let (mut tests, mut hanging) = (0, HashSet::new());
        for decision in in_order(&decisions) {
            let line = self.line(decision.pc);
            if known.contains(&line) || hanging.contains(&decision.pc) {
                continue;
            }
            let is_late = Instant::now() >= self.facts_until;
            if is_late || tests >= TESTS || hanging.len() >= HANGING {
                break;
            }
            tests += 1;
            let run = self.other_decision(&decision, &jumps, (limit, failing));
            let Some(run) = if_supported(run)? else {
                continue;
            };
            if run.ending.ended == Ended::Timeout {
                hanging.insert(decision.pc);
            }
            if averts(&run.ending) {
                known.insert(line);
                found.push(Critical {
                    decision,
                    reaches: run.arrivals >= decision.arrivals.max(1),
                    succeeds: run.ending.ended == Ended::Exit(0),
                    calls: Vec::new(),
                });
            }
        }
        found.sort_by_key(|it| (!it.reaches, !it.succeeds, it.decision.decided));
        found.truncate(FOUND);
        for it in &mut found {
            it.calls = self.calls_at(&it.decision, &jumps)?;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(pc: u64, nth: u64, decided: usize) -> Decision {
        Decision {
            pc,
            nth,
            stack: 0,
            decided,
            arrivals: 0,
        }
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
