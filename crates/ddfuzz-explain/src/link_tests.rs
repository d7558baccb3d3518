//! The tests of a chain's link: whether its variable carries the failure, and whether it follows
//! from an earlier cause.

use ddfuzz_delta::{Config, Outcome};

use crate::chain::{Cause, Evidence, Link, REPEATS};
use crate::delta::{Delta, Differences, Identity};
use crate::engine::{EngineError, Unsupported};
use crate::experiments::{AtPoint, Runs, about, plan_of, those};
use crate::graph::{Graph, Object, Place};
use crate::matching::unify;
use crate::types::Types;

/// Maximum number of points between the first and the last point of a chain's link that are
/// examined in addition, to find one at which setting the link's variable alone makes the passing
/// run fail.
const OTHERS: usize = 4;

/// Number of links after a cause for which the test of the cause's variable tells whether they
/// follow from it.
const NEXT: usize = 4;

/// What a test of a cause's variable has shown about later causes.
pub(crate) struct Following {
    from: Cause,
    /// The later causes that were looked at, and whether their variables had their failing values
    /// after the test had set the variable of `from`.
    to: Vec<(Cause, bool)>,
}

impl Runs {
    /// Runs the tests from which the confidence in the variable `at`, at its point, is derived, and
    /// returns their outcomes, without the outcome of [`follows`](Runs::follows).
    ///
    /// # Errors
    /// When the experiments cannot be made.
    pub fn evidence(&mut self, at: &Cause) -> Result<Evidence, EngineError> {
        let evidence = self.at_point(at.point, |runs, point| runs.gather(point, at))?;
        Ok(evidence.unwrap_or_default())
    }

    fn gather(&mut self, at: &mut AtPoint<'_>, cause: &Cause) -> Result<Evidence, EngineError> {
        let alone = about(&at.all.deltas, &cause.variable);
        let mut evidence = Evidence::default();
        if alone.is_empty() {
            return Ok(evidence);
        }
        for repeat in 0..REPEATS {
            evidence.alone_tried += 1;
            let outcome = match repeat {
                0 => self.test(at, &alone)?,
                1 if !self.is_followed(cause) => self.follow(at, cause)?,
                _ => self.run_test(at, &alone)?,
            };
            if outcome != Outcome::Fail {
                // The other tests cannot confirm it any more.
                return Ok(evidence);
            }
            evidence.alone_fails += 1;
        }
        evidence.nothing_passes = self.test(at, &Config::empty())? == Outcome::Pass;
        let every = Config::all(at.all.deltas.len());
        let (all, outcome) = self.all(at, &every)?;
        evidence.all_fail = outcome == Outcome::Fail;
        let without = all.minus(&at_same_place(&at.all.deltas, &cause.variable));
        let plan = plan_of(at, &without);
        let ending = self.engine.go_on(&mut at.stand, &plan)?;
        evidence.without_averts =
            ending.is_some_and(|it| self.criterion.is_averted(&it, &self.passing.ending));
        Ok(evidence)
    }

    /// Returns the outcome of a test in which only `variable` was set at the point with the index
    /// `point`; `None` if there was no such test.
    pub(crate) fn outcome_alone(&self, point: usize, variable: &Identity) -> Option<Outcome> {
        let states = self.states.get(&point)?;
        if !states.deltas.contains_key(variable) {
            return None;
        }
        let types = &self.engine.info.types;
        let all = Differences::new(types, &states.passing, &states.failing);
        states
            .known
            .get(&about(&all.deltas, variable).id())
            .copied()
    }

    /// Returns a point of a link at which setting its variable alone makes the passing run fail:
    /// the last examined point at which an earlier test showed this or, if there is none, the first
    /// of up to [`OTHERS`] points inside of the link at which a new test shows it. `None` if no
    /// test does.
    ///
    /// # Errors
    /// When the experiments cannot be made.
    pub fn alone(&mut self, link: &Link) -> Result<Option<usize>, EngineError> {
        let (first, variable) = (link.cause.point, link.cause.variable);
        let fails = |point: usize| self.outcome_alone(point, &variable) == Some(Outcome::Fail);
        let mut examined = self.states.range(first..=link.last).rev();
        let found = examined.find(|it| fails(*it.0));
        if let Some((point, _)) = found {
            return Ok(Some(*point));
        }
        let others = (first + 1..link.last).filter(|point| !self.states.contains_key(point));
        for point in others.take(OTHERS).collect::<Vec<_>>() {
            let fails = self.at_point(point, |runs, at| {
                let alone = about(&at.all.deltas, &variable);
                Ok(!alone.is_empty() && runs.test(at, &alone)? == Outcome::Fail)
            });
            match fails {
                Ok(Some(true)) => return Ok(Some(point)),
                Ok(_) | Err(EngineError::Unsupported(Unsupported::Unsteady)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Returns true if a variable follows from an earlier one: after the variable of `from` is set
    /// to its failing value at its point, the variable of `to` has its failing value at the point
    /// of `to`. False if that is not known.
    ///
    /// # Errors
    /// When the experiments cannot be made.
    pub fn follows(&mut self, from: &Cause, to: &Cause) -> Result<bool, EngineError> {
        let known = |runs: &Runs| {
            let mut all =
                (runs.following.iter().filter(|it| it.from == *from)).flat_map(|it| &it.to);
            all.find(|it| it.0 == *to).map(|it| it.1)
        };
        if let Some(known) = known(self) {
            return Ok(known);
        }
        if self.states.contains_key(&to.point) {
            self.at_point(from.point, |runs, at| {
                runs.follow_to(at, from, std::slice::from_ref(to))
            })?;
        }
        Ok(known(self).unwrap_or(false))
    }

    /// Returns true if a test has already told which later causes follow from the cause `from`.
    fn is_followed(&self, from: &Cause) -> bool {
        self.following.iter().any(|it| it.from == *from)
    }

    /// Tests the variable of the cause `from` alone, and records which of the next links of the
    /// chain follow from it. Returns the outcome of the test.
    fn follow(&mut self, at: &mut AtPoint<'_>, from: &Cause) -> Result<Outcome, EngineError> {
        let later = |link: &Link| {
            let points = [link.cause.point, link.last];
            points.map(|point| Cause {
                point,
                ..link.cause.clone()
            })
        };
        let behind = self.links.iter().filter(|it| it.cause.point > from.point);
        let mut to: Vec<Cause> = behind.take(NEXT).flat_map(later).collect();
        to.dedup();
        to.retain(|it| self.states.contains_key(&it.point));
        self.follow_to(at, from, &to)
    }

    /// Tests the variable of the cause `from` alone, and records which of the later causes `to`
    /// follow from it. Returns the outcome of the test.
    fn follow_to(
        &mut self,
        at: &mut AtPoint<'_>,
        from: &Cause,
        to: &[Cause],
    ) -> Result<Outcome, EngineError> {
        let config = about(&at.all.deltas, &from.variable);
        let here = self.matched[from.point].passing;
        let before = &self.passing.points[..=here];
        let stop = |to: &Cause| {
            let there = self.matched[to.point].in_passing;
            let reached = before.iter().filter(|it| it.pc == there.pc).count() as u64;
            (there.pc, there.nth.saturating_sub(reached))
        };
        let stops: Vec<(u64, u64)> = to.iter().map(stop).collect();
        let plan = plan_of(at, &config);
        let mut read = Vec::new();
        at.tests += 1;
        let ending = self
            .engine
            .go_past(&mut at.stand, &plan, &stops, &mut read)?;
        let mut found: Vec<(Cause, bool)> = to.iter().map(|it| (it.clone(), false)).collect();
        for (index, made) in read {
            // Several causes may have one point.
            let here = (0..to.len()).filter(|other| stops[*other] == stops[index]);
            for other in here {
                found[other].1 = self.is_made(&made, &to[other]);
            }
        }
        self.following.push(Following {
            from: from.clone(),
            to: found,
        });
        Ok(self.outcome(at, ending))
    }

    /// Returns true if the variable of `to` has its failing value in `made`, the state of a test at
    /// the point of `to`.
    fn is_made(&self, made: &Graph, to: &Cause) -> bool {
        let types = self.engine.info.types.clone();
        let states = &self.states[&to.point];
        let (mut made, mut failing) = (made.clone(), states.failing.clone());
        unify(&mut made, &mut failing);
        let variable = to.variable;
        // What the variable is in the state that was made, and how it still differs there.
        let left = Differences::new(&types, &made, &failing);
        // Unions may have other members there: what overlaps the variable is a part of it.
        let differs = left.deltas.iter().any(|delta| {
            let other = delta.identity;
            other == variable
                || match (variable.place, other.place) {
                    (Place::Memory(own), Place::Memory(address)) => {
                        let (own, other) = (states.passing.extent(own), made.extent(address));
                        own.start < other.end && other.start < own.end
                    }
                    _ => false,
                }
        });
        let is_there = match variable.place {
            Place::Memory(address) => {
                let is_header = variable.of == Types::HEADER && made.header(address).is_some();
                made.containing(address).is_some() || variable.is_structural || is_header
            }
            Place::Register(_) => {
                let same = |object: &Object| {
                    object.place == variable.place && Some(object.origin) == variable.declared
                };
                made.objects.iter().any(same)
            }
        };
        is_there && !differs
    }
}

/// Returns the subset of the differences that are in the same place as `variable`: its own
/// differences if it is in memory, those of all variables in its register if it is in a register.
fn at_same_place(deltas: &[Delta], variable: &Identity) -> Config {
    match variable.place {
        Place::Register(_) => those(deltas, |delta| delta.identity.place == variable.place),
        Place::Memory(_) => about(deltas, variable),
    }
}
