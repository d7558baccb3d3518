//! Experiments on the running program: which variable causes the failure at a point, the tests that
//! support it, and the part of it that is needed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use ddfuzz_delta::{Config, ConfigId, Dd, Mode, Outcome, Search};

use crate::alignment::Matched;
use crate::chain::{Answer, Cause, Evidence, Experiments, Link, REPEATS};
use crate::delta::{Delta, Differences, Identity};
use crate::engine::tests_at_point::{Continued, Stand};
use crate::engine::watchdog::{Allowance, TimeLimit};
use crate::engine::{Criterion, Engine, EngineError, Side, Trace, Unsupported};
use crate::graph::{Graph, Object, Place};
use crate::matching::unify;
use crate::places::point_record;
use crate::plan::Plan;
use crate::report::ExaminedRecord;
use crate::types::Types;

/// Largest number of tests at one point of the run in a search for the cause there.
const MOST_TESTS: usize = 120;

/// Maximum number of points between the first and the last point of a chain's link that are
/// examined in addition, to find one at which setting the link's variable alone makes the passing
/// run fail.
const OTHERS: usize = 4;

/// The passing and the failing run of a program, and what experiments have found out about them.
pub struct Runs {
    /// The tracer that runs the program and its forks.
    pub engine: Engine,
    /// What makes a run a failure, such as a certain crash.
    pub criterion: Criterion,
    /// The points of execution that the passing run reached, and how it ended.
    pub passing: Trace,
    /// The points and the end of the failing run.
    pub failing: Trace,
    /// The points that both runs go through, in the order of time.
    pub matched: Vec<Matched>,
    /// Time limit of one test, which runs a fork of the passing run with changed variables.
    pub limit: TimeLimit,
    /// Time that the search for the chain may use; what is left is for testing the chain's links.
    pub(crate) half_time: Allowance,
    /// The states of both runs at the points that were examined, by the index of the point in
    /// `matched`.
    pub states: BTreeMap<usize, States>,
}

/// The states of the passing and the failing run at one point, with the results of the tests that
/// were made there.
pub struct States {
    /// Memory graph of the passing run at the point.
    pub passing: Graph,
    /// Memory graph of the failing run at the point.
    pub failing: Graph,
    /// Number of variables on the failing run's stack whose value is known, and number of those in
    /// scope.
    pub visible: (usize, usize),
    /// Whether tests at the point have found a variable that causes the failure.
    pub is_used: bool,
    /// Number of tests that were made at the point, each in a fork of the passing run.
    pub tests: usize,
    /// Whether setting all variables that differ at the point to their values of the failing run
    /// did not make the passing run fail as the failing run does.
    pub stays_with_all: bool,
    /// The variable that causes the failure at the point; `None` where none was found.
    pub cause: Option<Identity>,
    /// Outcomes of the tests at the point, by the subset of differences that was set.
    known: HashMap<ConfigId, Outcome>,
    /// The variables that differ between the two states, as far as tests were made at the point.
    pub deltas: HashSet<Identity>,
}

/// A passing run that is stopped at a point, with the differences of its state from that of the
/// failing run, and the outcomes of tests at the point.
struct AtPoint<'a> {
    stand: Stand,
    all: Differences<'a>,
    known: HashMap<ConfigId, Outcome>,
    tests: usize,
    /// Whether the changes of the last test could not be applied.
    is_unapplied: bool,
    /// Whether setting all variables that differ did not make the passing run fail as the failing
    /// one does.
    stays: bool,
}

impl AtPoint<'_> {
    /// Returns those of the differences `every` that are about variables of the program.
    fn described(&self, every: &Config) -> Config {
        let described = (every.ranges().flatten()).filter(|delta| !self.all.is_undescribed(*delta));
        let described = Config::from_ranges(described.map(|delta| delta..delta + 1));
        described.unwrap_or_else(Config::empty)
    }
}

impl Runs {
    /// Reads the states of both runs at a matched point, unless they are known, and returns the
    /// passing run, stopped there.
    fn stand_at(&mut self, point: usize) -> Result<Stand, EngineError> {
        let at = self.matched[point];
        let failing = match self.states.contains_key(&point) {
            true => None,
            false => {
                let mut stand = self
                    .engine
                    .stand(Side::Failing, at.in_failing, self.limit)?;
                Some(self.engine.capture_at(&mut stand)?)
            }
        };
        let mut stand = self
            .engine
            .stand(Side::Passing, at.in_passing, self.limit)?;
        if let Some(mut failing) = failing {
            let mut passing = self.engine.capture_at(&mut stand)?;
            unify(&mut passing.graph, &mut failing.graph);
            let states = States {
                passing: passing.graph,
                failing: failing.graph,
                visible: (failing.visible, failing.in_scope),
                is_used: false,
                tests: 0,
                stays_with_all: false,
                cause: None,
                known: HashMap::new(),
                deltas: HashSet::new(),
            };
            self.states.insert(point, states);
        }
        Ok(stand)
    }

    /// Returns the outcome of a test: a fork of the stopped passing run goes on with the subset
    /// `config` of the differences set to their failing values. A known outcome is returned without
    /// a test.
    fn test(&mut self, at: &mut AtPoint<'_>, config: &Config) -> Result<Outcome, EngineError> {
        if let Some(known) = at.known.get(&config.id()) {
            return Ok(*known);
        }
        let outcome = self.run_test(at, config)?;
        at.known.insert(config.id(), outcome);
        Ok(outcome)
    }

    fn run_test(&mut self, at: &mut AtPoint<'_>, config: &Config) -> Result<Outcome, EngineError> {
        let plan = plan_of(at, config);
        self.run_plan(at, &plan)
    }

    fn run_plan(&mut self, at: &mut AtPoint<'_>, plan: &Plan) -> Result<Outcome, EngineError> {
        at.tests += 1;
        at.is_unapplied = false;
        Ok(match self.engine.go_on(&mut at.stand, plan, None)? {
            Continued::Ended(ending) => self.criterion.judge(&ending, &self.passing.ending),
            Continued::Reached(_) | Continued::Unapplied => {
                at.is_unapplied = true;
                Outcome::Unresolved
            }
        })
    }

    /// Looks for the variable that causes the failure at a point; tries the variables `near` first.
    /// `than`, if given, is a cause that is known already: another variable is looked for.
    fn examine(
        &mut self,
        point: usize,
        near: &[Identity],
        than: Option<&Identity>,
    ) -> Result<Answer, EngineError> {
        let answer = match self.at_point(point, |runs, at| runs.search(at, point, near, than)) {
            // A point that a run does not reach again is no point.
            Err(EngineError::Unsupported(Unsupported::Unsteady)) => None,
            found => found?,
        };
        let answer = answer.unwrap_or(Answer::Skipped);
        if let (Answer::Cause(cause), Some(states)) = (&answer, self.states.get_mut(&point)) {
            states.is_used = true;
            states.cause = Some(cause.variable);
        }
        Ok(answer)
    }

    /// Finds at the point `point` a variable other than `than` that makes the passing run fail:
    /// tries `near` and causes close by, then newly differing variables, then all by `dd`.
    fn search(
        &mut self,
        at: &mut AtPoint<'_>,
        point: usize,
        near: &[Identity],
        than: Option<&Identity>,
    ) -> Result<Answer, EngineError> {
        let than = than.map_or_else(Config::empty, |than| about(&at.all.deltas, than));
        let every = Config::all(at.all.deltas.len()).minus(&than);
        if every.is_empty() {
            return Ok(Answer::Nothing);
        }
        // Beside one variable there is mostly no other: one test says so.
        if !than.is_empty() {
            let outcome = self.all(at, &every)?.1;
            at.stays = false;
            if outcome != Outcome::Fail {
                return Ok(Answer::Nothing);
            }
        }
        let cause = |variable| Answer::Cause(Cause { point, variable });
        for variable in self.nearest(point, near) {
            let config = about(&at.all.deltas, &variable).minus(&than);
            if !config.is_empty() && self.test(at, &config)? == Outcome::Fail {
                return Ok(cause(variable));
            }
        }
        // Between two causes there is one at each point that is of use.
        let used = |states: &States| states.is_used;
        let is_between = self.states.range(..point).any(|it| used(it.1))
            && self.states.range(point..).any(|it| used(it.1));
        if is_between {
            if let Some(variable) = self.first_failing(at, point, &every)? {
                return Ok(cause(variable));
            }
            if let Some(half) = self.failing_half(at, &every)? {
                return self.isolate(at, point, half);
            }
        }
        let nothing = Config::empty().id();
        let (all, outcome) = self.all(at, &every)?;
        at.stays &= than.is_empty();
        match outcome {
            Outcome::Fail => {}
            Outcome::Unresolved => return Ok(Answer::Skipped),
            Outcome::Pass => return Ok(Answer::Nothing),
        }
        let is_steady = self
            .states
            .values()
            .any(|it| it.known.get(&nothing) == Some(&Outcome::Pass));
        if !is_steady && self.test(at, &Config::empty())? != Outcome::Pass {
            return Ok(Answer::Skipped);
        }
        match self.first_failing(at, point, &all)? {
            Some(variable) => Ok(cause(variable)),
            None => self.isolate(at, point, all),
        }
    }

    /// Returns the variables that are tried first as causes at the point with the index `point`:
    /// those in `near`, then the causes at the nearest examined points before and after.
    fn nearest(&self, point: usize, near: &[Identity]) -> Vec<Identity> {
        let cause = |found: Option<(&usize, &States)>| found.and_then(|(_, it)| it.cause);
        let found = |it: &(&usize, &States)| it.1.cause.is_some();
        let before = cause(self.states.range(..point).rev().find(found));
        let after = cause(self.states.range(point + 1..).find(found));
        let mut all = near.to_vec();
        for variable in [before, after].into_iter().flatten() {
            if !all.contains(&variable) {
                all.push(variable);
            }
        }
        all
    }

    /// Tests the most likely causes at a point ([`fresh`](Runs::fresh)), one variable at a time,
    /// and returns the first that alone makes the passing run fail; `None` where none does.
    fn first_failing(
        &mut self,
        at: &mut AtPoint<'_>,
        point: usize,
        all: &Config,
    ) -> Result<Option<Identity>, EngineError> {
        for variable in self.fresh(at, point, all) {
            if self.test(at, &about(&at.all.deltas, &variable))? == Outcome::Fail {
                return Ok(Some(variable));
            }
        }
        Ok(None)
    }

    /// Returns the half of the differences about variables that makes the passing run fail by
    /// itself; `None` if neither half does. With such a half, a test of all these differences is
    /// not needed.
    fn failing_half(
        &mut self,
        at: &mut AtPoint<'_>,
        every: &Config,
    ) -> Result<Option<Config>, EngineError> {
        let described = at.described(every);
        for half in (0..2).map(|index| described.part(2, index)) {
            if !half.is_empty() && self.test(at, &half)? == Outcome::Fail {
                return Ok(Some(half));
            }
        }
        Ok(None)
    }

    /// Isolates the difference that makes the passing run fail at a point, by `dd`, and returns its
    /// variable.
    fn isolate(
        &mut self,
        at: &mut AtPoint<'_>,
        point: usize,
        all: Config,
    ) -> Result<Answer, EngineError> {
        let cause = |variable| Answer::Cause(Cause { point, variable });
        let mut search = Dd::between(Config::empty(), all, Mode::Isolate);
        while let Some(candidate) = search.next() {
            let Some(config) = candidate.edit.apply(search.fail()) else {
                break;
            };
            if at.tests >= MOST_TESTS {
                return Ok(Answer::Skipped);
            }
            let outcome = self.test(at, &config)?;
            search.tell(outcome);
        }
        let mut found: Vec<usize> = search.difference().ranges().flatten().collect();
        found.sort_by_key(|delta| at.all.deltas[*delta].name.len());
        for delta in &found {
            let variable = at.all.deltas[*delta].identity;
            let config = about(&at.all.deltas, &variable);
            if at.tests < MOST_TESTS && self.test(at, &config)? == Outcome::Fail {
                return Ok(cause(variable));
            }
        }
        Ok(match found.first() {
            Some(delta) => cause(at.all.deltas[*delta].identity),
            None => Answer::Skipped,
        })
    }

    /// Returns the variables that are tested one at a time before `dd` runs. First come those that
    /// differ at `point`, but did not at the last examined point before it; then all others that
    /// differ, unless more than six differ in all. Empty if more than six are new.
    fn fresh(&self, at: &AtPoint<'_>, point: usize, all: &Config) -> Vec<Identity> {
        const FEW: usize = 6;
        let before = self.states.range(..point).next_back();
        let mut variables: Vec<Identity> = Vec::new();
        for delta in all.ranges().flatten() {
            let variable = at.all.deltas[delta].identity;
            if !variables.contains(&variable) {
                variables.push(variable);
            }
        }
        let is_old =
            |variable: &Identity| before.is_none_or(|(_, before)| before.deltas.contains(variable));
        let (mut fresh, old): (Vec<Identity>, Vec<Identity>) = variables
            .into_iter()
            .partition(|variable| !is_old(variable));
        if fresh.len() + old.len() <= FEW {
            fresh.extend(old);
        }
        fresh.truncate(if fresh.len() > FEW { 0 } else { FEW });
        fresh
    }

    /// Returns the differences among which the cause is searched, and the outcome of a run in which
    /// all of them are set: those about variables, if these alone make the run fail; else `every`
    /// difference, also of registers and words that no variable describes.
    fn all(
        &mut self,
        at: &mut AtPoint<'_>,
        every: &Config,
    ) -> Result<(Config, Outcome), EngineError> {
        let described = at.described(every);
        if !described.is_empty() {
            let before = at.tests;
            if self.test(at, &described)? == Outcome::Fail {
                return Ok((described, Outcome::Fail));
            }
            at.stays |= at.tests > before && !at.is_unapplied;
        }
        let outcome = self.test(at, every)?;
        Ok((every.clone(), outcome))
    }

    /// Runs the tests from which the confidence in a variable at a point is derived, and returns
    /// their outcomes; the test [`follows`](Runs::follows) is not among them.
    ///
    /// # Errors
    /// When the experiments cannot be made.
    pub fn evidence(&mut self, at: &Cause) -> Result<Evidence, EngineError> {
        let evidence = self.at_point(at.point, |runs, point| runs.gather(point, &at.variable))?;
        Ok(evidence.unwrap_or_default())
    }

    /// Stops the passing run at a point, calls `act` with the stopped run and its differences from
    /// the failing run, and stores the outcomes of the tests that `act` made. `None` where the
    /// states at the point are not known.
    fn at_point<T>(
        &mut self,
        point: usize,
        act: impl FnOnce(&mut Runs, &mut AtPoint<'_>) -> Result<T, EngineError>,
    ) -> Result<Option<T>, EngineError> {
        let stand = self.stand_at(point)?;
        let Some(states) = self.states.remove(&point) else {
            return Ok(None);
        };
        let types = self.engine.info.types.clone();
        let mut at = AtPoint {
            stand,
            all: Differences::new(&types, &states.passing, &states.failing),
            known: states.known.clone(),
            tests: 0,
            is_unapplied: false,
            stays: false,
        };
        let found = act(self, &mut at);
        let known = std::mem::take(&mut at.known);
        let (made, stays) = (at.tests, at.stays);
        let deltas = at.all.deltas.iter().map(|delta| delta.identity).collect();
        drop(at);
        let states = States {
            known,
            deltas,
            tests: states.tests + made,
            stays_with_all: states.stays_with_all || stays,
            ..states
        };
        self.states.insert(point, states);
        found.map(Some)
    }

    fn gather(
        &mut self,
        at: &mut AtPoint<'_>,
        variable: &Identity,
    ) -> Result<Evidence, EngineError> {
        let alone = about(&at.all.deltas, variable);
        let mut evidence = Evidence::default();
        if alone.is_empty() {
            return Ok(evidence);
        }
        for repeat in 0..REPEATS {
            evidence.alone_tried += 1;
            let outcome = match repeat {
                0 => self.test(at, &alone)?,
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
        let without = all.minus(&at_same_place(&at.all.deltas, variable));
        let plan = at.all.plan(&|delta| without.contains(delta));
        if let Continued::Ended(ending) = self.engine.go_on(&mut at.stand, &plan, None)? {
            evidence.without_averts = self.criterion.is_averted(&ending, &self.passing.ending);
        }
        Ok(evidence)
    }

    /// Returns true if a variable follows from an earlier one: when the variable of `from` is set
    /// to its failing value at its point, the variable of `to` gets its failing value by the later
    /// point.
    ///
    /// # Errors
    /// When the experiments cannot be made.
    pub fn follows(&mut self, from: &Cause, to: &Cause) -> Result<bool, EngineError> {
        let follows = self.at_point(from.point, |runs, at| {
            let config = about(&at.all.deltas, &from.variable);
            runs.leads_to(at, &config, from.point, to)
        })?;
        Ok(follows.unwrap_or(false))
    }

    fn leads_to(
        &mut self,
        at: &mut AtPoint<'_>,
        config: &Config,
        from: usize,
        next: &Cause,
    ) -> Result<bool, EngineError> {
        let to = next.point;
        let (here, there) = (self.matched[from], self.matched[to]);
        let there = there.in_passing;
        let before = self.passing.points[..=here.passing].iter();
        let reached = before.filter(|point| point.pc == there.pc).count() as u64;
        let Some(left) = there.nth.checked_sub(reached).filter(|left| *left > 0) else {
            return Ok(false);
        };
        if !self.states.contains_key(&to) {
            return Ok(false);
        }
        let plan = at.all.plan(&|delta| config.contains(delta));
        let until = Some((there.pc, left));
        let Continued::Reached(mut made) = self.engine.go_on(&mut at.stand, &plan, until)? else {
            return Ok(false);
        };
        let types = self.engine.info.types.clone();
        let states = &self.states[&to];
        let mut failing = states.failing.clone();
        unify(&mut made.graph, &mut failing);
        let made = &made.graph;
        let variable = next.variable;
        // What the variable is in the state that was made, and how it still differs there.
        let left = Differences::new(&types, made, &failing);
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
        Ok(is_there && !differs)
    }

    /// Returns a point of a link at which its variable alone makes the passing run fail: the last
    /// one of the examined points at which that was seen before or, if there is none, the first of
    /// up to [`OTHERS`] points between them at which a test shows it now. `None` if no test does.
    ///
    /// # Errors
    /// When the experiments cannot be made.
    pub fn alone(&mut self, link: &Link) -> Result<Option<usize>, EngineError> {
        let (first, variable) = (link.cause.point, link.cause.variable);
        let types = &self.engine.info.types;
        let fails = |states: &States| {
            let all = Differences::new(types, &states.passing, &states.failing);
            states.known.get(&about(&all.deltas, &variable).id()) == Some(&Outcome::Fail)
        };
        let mut examined = self.states.range(first..=link.last).rev();
        let found = examined.find(|(_, it)| it.deltas.contains(&variable) && fails(it));
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

    /// Returns the difference in `variable` at the point with the index `point`; `None` where the
    /// point was not examined or the variable does not differ there.
    pub fn delta(&self, point: usize, variable: &Identity) -> Option<Delta> {
        let states = self.states.get(&point)?;
        let types = &self.engine.info.types;
        let all = Differences::new(types, &states.passing, &states.failing);
        let about = all
            .deltas
            .into_iter()
            .filter(|delta| delta.identity == *variable);
        about.min_by_key(|delta| delta.name.len())
    }

    /// Returns the smallest part of the variable of a chain's link, found by halving, that alone
    /// makes the passing run fail, and without which it does not. `None` where the variable is no
    /// text, has one byte, or needs all of its changed bytes.
    ///
    /// # Errors
    /// When the experiments cannot be made.
    pub fn needed_part(&mut self, link: &Link) -> Result<Option<Delta>, EngineError> {
        let cause = link.cause.clone();
        let found = self.at_point(cause.point, |runs, at| {
            let alone = about(&at.all.deltas, &cause.variable);
            let bytes = plan_of(at, &alone).written().unwrap_or_default();
            let types = runs.engine.info.types.clone();
            let told = |at: &AtPoint<'_>, part: &Range<u64>| {
                let mut deltas = alone.ranges().flatten();
                deltas.find_map(|delta| at.all.part(&types, &at.all.deltas[delta], part))
            };
            // Numbers and pointers have no parts.
            let is_text =
                (bytes.first()).is_some_and(|byte| told(at, &(*byte..byte + 1)).is_some());
            if bytes.len() < 2 || !is_text || runs.test(at, &alone)? != Outcome::Fail {
                return Ok(None);
            }
            let mut part = 0..bytes.len();
            'smaller: while part.len() > 1 {
                let middle = part.start + part.len() / 2;
                for half in [part.start..middle, middle..part.end] {
                    let plan = plan_of(at, &alone);
                    let plan = plan.restricted(|byte| bytes[half.clone()].contains(&byte));
                    if runs.run_plan(at, &plan)? == Outcome::Fail {
                        part = half;
                        continue 'smaller;
                    }
                }
                break;
            }
            if part.len() == bytes.len() {
                return Ok(None);
            }
            let part = bytes[part.start]..bytes[part.end - 1] + 1;
            let (all, _) = runs.all(at, &Config::all(at.all.deltas.len()))?;
            let without = plan_of(at, &all).restricted(|byte| !part.contains(&byte));
            let averts = match runs.engine.go_on(&mut at.stand, &without, None)? {
                Continued::Ended(it) => runs.criterion.is_averted(&it, &runs.passing.ending),
                _ => false,
            };
            Ok(told(at, &part).filter(|_| averts))
        })?;
        Ok(found.flatten())
    }

    /// Returns records of the points at which states were compared, in the order of time.
    pub fn examined(&self) -> Vec<ExaminedRecord> {
        let record = |(point, states): (&usize, &States)| {
            let cause = states.cause.and_then(|cause| self.delta(*point, &cause));
            ExaminedRecord {
                point: point_record(&self.engine, &self.matched[*point]),
                differences: states.deltas.len(),
                tests: states.tests,
                cause: cause.map(|delta| delta.name),
            }
        };
        self.states.iter().map(record).collect()
    }

    /// Draws the memory graphs of both runs at a point as HTML; empty where the point was not
    /// examined.
    pub fn drawing(&self, point: usize) -> String {
        let Some(states) = self.states.get(&point) else {
            return String::new();
        };
        let types = &self.engine.info.types;
        let all = Differences::new(types, &states.passing, &states.failing);
        crate::drawing::draw(types, &states.passing, &states.failing, &all)
    }
}

/// Returns the plan (writes to a fork of the passing run) that sets the differences in `config` to
/// their failing values.
fn plan_of(at: &AtPoint<'_>, config: &Config) -> Plan {
    at.all.plan(&|delta| config.contains(delta))
}

/// Returns the differences that concern the variable `variable`, as a subset of `deltas`.
fn about(deltas: &[Delta], variable: &Identity) -> Config {
    those(deltas, |delta| delta.identity == *variable)
}

/// Returns the subset of the differences that are in the same place as `variable`: the variable's
/// own ones if it is in memory, those of all variables in its register if it is in one.
fn at_same_place(deltas: &[Delta], variable: &Identity) -> Config {
    match variable.place {
        Place::Register(_) => those(deltas, |delta| delta.identity.place == variable.place),
        Place::Memory(_) => about(deltas, variable),
    }
}

/// Returns the indices of those of the differences `deltas` for which `is_chosen` is true.
fn those(deltas: &[Delta], is_chosen: impl Fn(&Delta) -> bool) -> Config {
    let found = (deltas.iter().enumerate()).filter(|(_, delta)| is_chosen(delta));
    Config::from_ranges(found.map(|(index, _)| index..index + 1)).unwrap_or_else(Config::empty)
}

impl Experiments for Runs {
    type Error = EngineError;

    fn points(&self) -> usize {
        self.matched.len()
    }

    fn cause(&mut self, point: usize, near: &[Identity]) -> Result<Answer, EngineError> {
        self.examine(point, near, None)
    }

    fn other_cause(
        &mut self,
        point: usize,
        than: &Identity,
        near: &[Identity],
    ) -> Result<Answer, EngineError> {
        self.examine(point, near, Some(than))
    }

    fn is_late(&self) -> bool {
        self.half_time.is_over()
    }
}
