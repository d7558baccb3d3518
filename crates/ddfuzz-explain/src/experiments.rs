//! Experiments on the running program: they find the variable that causes the failure at a point,
//! and the part of the variable that is needed.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use ddfuzz_delta::{Config, ConfigId, Dd, Mode, Outcome, Search};

use crate::alignment::Matched;
use crate::chain::{Answer, Cause, Experiments, Link};
use crate::delta::{Delta, Differences, Identity};
use crate::engine::tests_at_point::Stand;
use crate::engine::watchdog::{Allowance, TimeLimit};
use crate::engine::{Criterion, Ending, Engine, EngineError, Side, Trace, Unsupported};
use crate::graph::Graph;
use crate::link_tests::Following;
use crate::matching::unify;
use crate::named_places::function_at;
use crate::places::point_record;
use crate::plan::{ByHand, Plan};
use crate::report::{ExaminedRecord, FrameRecord};

/// Largest number of tests in a search for the cause at one point of the run.
const MOST_TESTS: usize = 120;

/// The passing and the failing run of a program, and what experiments have found out about them.
pub struct Runs {
    /// The tracer that runs the program and its forks.
    pub engine: Engine,
    /// What makes a run a failure, such as a certain crash.
    pub criterion: Criterion,
    /// The points of execution that the passing run reached, and how it ended.
    pub passing: Trace,
    /// The points of execution that the failing run reached, and how it ended.
    pub failing: Trace,
    /// The points (executions of statements) that both runs share, in the order of time.
    pub matched: Vec<Matched>,
    /// Time limit of one test, which runs a fork of the passing run with changed variables.
    pub limit: TimeLimit,
    /// Time that the search for the chain may use; the rest of the time is for testing the chain's
    /// links.
    pub(crate) half_time: Allowance,
    /// The states of both runs at the points that were examined, by the index of the point in
    /// `matched`.
    pub states: BTreeMap<usize, States>,
    /// The links of the chain; empty until the chain is found.
    pub(crate) links: Vec<Link>,
    /// Which later causes follow from which cause, as far as tests have shown.
    pub(crate) following: Vec<Following>,
}

/// The states of the passing and the failing run at one point, with the results of the tests at
/// this point.
pub struct States {
    /// Memory graph of the passing run at the point.
    pub passing: Graph,
    /// Memory graph of the failing run at the point.
    pub failing: Graph,
    /// Number of variables on the failing run's stack whose value is known, and number of variables
    /// in scope.
    pub visible: (usize, usize),
    /// Whether tests at the point have found a variable that causes the failure.
    pub is_used: bool,
    /// Number of tests that were made at the point, each in a fork of the passing run.
    pub tests: usize,
    /// Whether the passing run did not fail as the failing run does when a test set all variables
    /// that differ at the point to their values in the failing run.
    pub stays_with_all: bool,
    /// The variable that causes the failure at the point; `None` where none was found.
    pub cause: Option<Identity>,
    /// Outcomes of the tests at the point, by the subset of differences that was set.
    pub(crate) known: HashMap<ConfigId, Outcome>,
    /// The variables that differ between the two states. For each of their differences, there is a
    /// hash of the value in the failing run, and a hash of the values in both runs.
    pub deltas: HashMap<Identity, Vec<[u64; 2]>>,
}

impl States {
    /// Returns true if the variable of `delta` differs in these states, too, with the same values
    /// (at least in the part that `delta` is about).
    fn has(&self, delta: &Delta) -> bool {
        let known = self.deltas.get(&delta.identity);
        known.is_some_and(|it| it.contains(&hashes_of(delta)))
    }

    /// Returns true if the variable differs in these states and in `other`, and at least a part of
    /// it has the same value in both failing states.
    fn shares(&self, variable: &Identity, other: &States) -> bool {
        let both = self.deltas.get(variable).zip(other.deltas.get(variable));
        both.is_some_and(|(one, other)| {
            (one.iter()).any(|it| other.iter().any(|other| it[0] == other[0]))
        })
    }
}

/// Returns a hash of the value of a difference in the failing run, and a hash of its values in both
/// runs.
fn hashes_of(delta: &Delta) -> [u64; 2] {
    let hash = |values: &[&String]| {
        let mut hasher = DefaultHasher::new();
        values.hash(&mut hasher);
        hasher.finish()
    };
    let [passing, failing] = delta.values();
    [hash(&[failing]), hash(&[failing, passing])]
}

/// A passing run that is stopped at a point, with the differences of its state from that of the
/// failing run, and the outcomes of tests at the point.
pub(crate) struct AtPoint<'a> {
    pub stand: Stand,
    pub all: Differences<'a>,
    known: HashMap<ConfigId, Outcome>,
    pub tests: usize,
    /// Whether the changes of the last test could not be applied.
    is_unapplied: bool,
    /// Whether the passing run did not fail as the failing run does when a test set all variables
    /// that differ.
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
    /// Reads the states of both runs at the shared point with the index `point`, unless they are
    /// known, and returns the passing run, stopped at the point.
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
            let types = &self.engine.info.types;
            let mut deltas: HashMap<Identity, Vec<[u64; 2]>> = HashMap::new();
            for delta in Differences::new(types, &passing.graph, &failing.graph).deltas {
                let values = deltas.entry(delta.identity).or_default();
                values.push(hashes_of(&delta));
            }
            let states = States {
                passing: passing.graph,
                failing: failing.graph,
                visible: (failing.visible, failing.in_scope),
                is_used: false,
                tests: 0,
                stays_with_all: false,
                cause: None,
                known: HashMap::new(),
                deltas,
            };
            self.states.insert(point, states);
        }
        Ok(stand)
    }

    /// Returns the outcome of a test: a fork of the stopped passing run goes on with the subset
    /// `config` of the differences set to their failing values. A known outcome is returned without
    /// a test.
    pub(crate) fn test(
        &mut self,
        at: &mut AtPoint<'_>,
        config: &Config,
    ) -> Result<Outcome, EngineError> {
        if let Some(known) = at.known.get(&config.id()) {
            return Ok(*known);
        }
        let outcome = self.run_test(at, config)?;
        at.known.insert(config.id(), outcome);
        Ok(outcome)
    }

    pub(crate) fn run_test(
        &mut self,
        at: &mut AtPoint<'_>,
        config: &Config,
    ) -> Result<Outcome, EngineError> {
        let plan = plan_of(at, config);
        self.run_plan(at, &plan)
    }

    fn run_plan(&mut self, at: &mut AtPoint<'_>, plan: &Plan) -> Result<Outcome, EngineError> {
        at.tests += 1;
        let ending = self.engine.go_on(&mut at.stand, plan)?;
        Ok(self.outcome(at, ending))
    }

    /// Returns the outcome of a test whose run ended as `ending` says; `ending` is `None` if the
    /// test's changes could not be applied, and the outcome then is unresolved.
    pub(crate) fn outcome(&self, at: &mut AtPoint<'_>, ending: Option<Ending>) -> Outcome {
        at.is_unapplied = ending.is_none();
        ending.map_or(Outcome::Unresolved, |ending| {
            self.criterion.judge(&ending, &self.passing.ending)
        })
    }

    /// Looks for the variable that causes the failure at a point; tries the variables `near` first.
    /// `than`, if given, is a cause that is already known: another variable is looked for.
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
    /// tries `near` and the causes at the nearest points, then newly differing variables, then all
    /// differences by `dd`.
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
        let others = self.nearest(at, point).into_iter();
        let others = others.filter(|it| !near.contains(it));
        for variable in near.iter().copied().chain(others) {
            let config = about(&at.all.deltas, &variable).minus(&than);
            if !config.is_empty() && self.test(at, &config)? == Outcome::Fail {
                return Ok(cause(variable));
            }
        }
        if let Some(found) = self.search_between(at, point, (&every, &than))? {
            return Ok(found);
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

    /// Finds the cause at a point that is between two points with known causes: among the
    /// differences that are new since the earlier one, then among newly differing variables, then
    /// in one half of the differences `every`. `than` has the differences of a cause to be avoided.
    /// `None` at all other points, and if none of these makes the passing run fail.
    fn search_between(
        &mut self,
        at: &mut AtPoint<'_>,
        point: usize,
        (every, than): (&Config, &Config),
    ) -> Result<Option<Answer>, EngineError> {
        let used = |states: &States| states.is_used;
        let is_between = self.states.range(..point).any(|it| used(it.1))
            && self.states.range(point..).any(|it| used(it.1));
        if !is_between {
            return Ok(None);
        }
        let changed = self.changed(at, point).minus(than);
        let is_part = !changed.is_empty() && changed.len() < every.len();
        if is_part && self.test(at, &changed)? == Outcome::Fail {
            return self.isolate(at, point, changed).map(Some);
        }
        if let Some(variable) = self.first_failing(at, point, every)? {
            return Ok(Some(Answer::Cause(Cause { point, variable })));
        }
        match self.failing_half(at, every)? {
            Some(half) => self.isolate(at, point, half).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the differences about variables that, at the nearest examined point before `point`
    /// with a cause, did not differ or had other values.
    fn changed(&self, at: &AtPoint<'_>, point: usize) -> Config {
        let before = self.states.range(..point).rev();
        let before = before.map(|it| it.1).find(|it| it.cause.is_some());
        let described = at.described(&Config::all(at.all.deltas.len()));
        let is_new = |delta: &usize| before.is_none_or(|it| !it.has(&at.all.deltas[*delta]));
        let new = described.ranges().flatten().filter(is_new);
        Config::from_ranges(new.map(|delta| delta..delta + 1)).unwrap_or_else(Config::empty)
    }

    /// Returns the causes at the nearest examined points after and before the point with the index
    /// `point`. The cause after it is only returned if it has the same failing value at `point`.
    fn nearest(&self, at: &AtPoint<'_>, point: usize) -> Vec<Identity> {
        let before = self.states.range(..point).rev().find_map(|it| it.1.cause);
        let mut after = self.states.range(point + 1..).map(|it| it.1);
        let after = after.find(|it| it.cause.is_some());
        let cause = after.and_then(|it| it.cause);
        let has = |delta: &Delta| {
            let known = after.and_then(|it| it.deltas.get(&delta.identity));
            known.is_some_and(|it| it.iter().any(|it| it[0] == hashes_of(delta)[0]))
        };
        let mut own = at.all.deltas.iter();
        let same = cause.filter(|it| own.any(|delta| delta.identity == *it && has(delta)));
        let mut all: Vec<Identity> = same.into_iter().chain(before).collect();
        all.dedup();
        all
    }

    /// Tests the most likely causes at a point ([`fresh`](Runs::fresh)), one variable at a time,
    /// and returns the first that makes the passing run fail when set alone; `None` if none does.
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
    /// itself; `None` if neither half does. If a half does, a test of all differences is not
    /// needed.
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

    /// Returns the variables that are tested one at a time before `dd` runs: those that differ at
    /// `point`, but did not at the last examined point before it, and then all others that differ,
    /// if at most six differ in all. Empty if more than six are new.
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
        let is_old = |variable: &Identity| {
            before.is_none_or(|(_, before)| before.deltas.contains_key(variable))
        };
        let (mut fresh, old): (Vec<Identity>, Vec<Identity>) = variables
            .into_iter()
            .partition(|variable| !is_old(variable));
        if fresh.len() + old.len() <= FEW {
            fresh.extend(old);
        }
        fresh.truncate(if fresh.len() > FEW { 0 } else { FEW });
        fresh
    }

    /// Returns the differences among which the cause is searched, and the outcome of a test that
    /// sets all of them: those about variables, if these alone make the run fail; else `every`
    /// difference, including registers and words that no variable describes.
    pub(crate) fn all(
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

    /// Stops the passing run at a point, calls `act` with the stopped run and its differences from
    /// the failing run, and stores the outcomes of the tests that `act` made. `None` if the states
    /// at the point are not known.
    pub(crate) fn at_point<T>(
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
        drop(at);
        let states = States {
            known,
            tests: states.tests + made,
            stays_with_all: states.stays_with_all || stays,
            ..states
        };
        self.states.insert(point, states);
        found.map(Some)
    }

    /// Returns the difference in `variable` at the point with the index `point`; `None` if the
    /// point was not examined or the variable does not differ at it.
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

    /// Returns all differences in the text or raw bytes that `delta` is about, at the point with the
    /// index `point`, as one ([`Differences::united`]); `None` if `delta` is not one of several.
    pub fn united_delta(&self, point: usize, delta: &Delta) -> Option<Delta> {
        let states = self.states.get(&point)?;
        let types = &self.engine.info.types;
        Differences::new(types, &states.passing, &states.failing).united(types, delta)
    }

    /// Returns the smallest part of the variable of a chain's link, found by halving, that makes
    /// the passing run fail when set alone, and without which the run does not fail. `None` if the
    /// variable is not text or raw bytes, has one byte, or needs all of its changed bytes.
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
            let ending = runs.engine.go_on(&mut at.stand, &without)?;
            let averts =
                ending.is_some_and(|it| runs.criterion.is_averted(&it, &runs.passing.ending));
            Ok(told(at, &part).filter(|_| averts))
        })?;
        Ok(found.flatten())
    }

    /// Returns records of the points at which tests were made, in the order of time.
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
        let tested = self.states.iter().filter(|it| it.1.tests > 0);
        tested.map(record).collect()
    }

    /// Draws the memory graphs of both runs at a point as HTML, with the point's place; empty where the point was not
    /// examined.
    pub fn drawing(&self, point: usize) -> String {
        let Some(states) = self.states.get(&point) else {
            return String::new();
        };
        let types = &self.engine.info.types;
        let all = Differences::new(types, &states.passing, &states.failing);
        let at = point_record(&self.engine, &self.matched[point]);
        let place = FrameRecord {
            function: at.function.unwrap_or_default(),
            file: at.file,
            line: at.line,
        };
        let place = format!("{}, time {}", function_at(&place), at.nth);
        crate::drawing::draw(types, (&states.passing, &states.failing), &all, &place)
    }

    /// Returns how a user can set the variable of a cause, at its point, to its failing value.
    pub fn by_hand(&self, cause: &Cause) -> ByHand {
        let Some(states) = self.states.get(&cause.point) else {
            return ByHand::Unknown;
        };
        let types = &self.engine.info.types;
        let all = Differences::new(types, &states.passing, &states.failing);
        let config = about(&all.deltas, &cause.variable);
        let plan = all.plan(&|delta| config.contains(delta));
        plan.by_hand(&states.passing)
    }
}

/// Returns the plan (writes to a fork of the passing run) that sets the differences in `config` to
/// their failing values.
pub(crate) fn plan_of(at: &AtPoint<'_>, config: &Config) -> Plan {
    at.all.plan(&|delta| config.contains(delta))
}

/// Returns the differences that concern the variable `variable`, as a subset of `deltas`.
pub(crate) fn about(deltas: &[Delta], variable: &Identity) -> Config {
    those(deltas, |delta| delta.identity == *variable)
}

/// Returns the subset of the differences `deltas` for which `is_chosen` returns true.
pub(crate) fn those(deltas: &[Delta], is_chosen: impl Fn(&Delta) -> bool) -> Config {
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

    fn beginning(&mut self, cause: &Cause, after: usize) -> Result<usize, EngineError> {
        let (mut without, mut with) = (after, cause.point);
        while with - without > 1 && !self.is_late() {
            let middle = without + (with - without) / 2;
            if !self.states.contains_key(&middle) {
                match self.stand_at(middle) {
                    Ok(_) | Err(EngineError::Unsupported(Unsupported::Unsteady)) => {}
                    Err(error) => return Err(error),
                }
            }
            let both = self.states.get(&middle).zip(self.states.get(&cause.point));
            match both.is_some_and(|(one, other)| one.shares(&cause.variable, other)) {
                true => with = middle,
                false => without = middle,
            }
        }
        Ok(with)
    }

    fn is_late(&self) -> bool {
        self.half_time.is_over()
    }
}
