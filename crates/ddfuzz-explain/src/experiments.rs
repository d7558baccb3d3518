//! Experiments on the running program: the cause at a point, the evidence for it, its writer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use ddfuzz_delta::{Config, ConfigId, Dd, Mode, Outcome, Search};

use crate::alignment::Matched;
use crate::chain::{Answer, Cause, Evidence, Experiments, Link, REPEATS};
use crate::delta::{Change, Delta, Differences, Identity};
use crate::engine::register_writer::Held;
use crate::engine::tests_at_point::{Continued, Stand};
use crate::engine::writer::{By, Watched, Writer};
use crate::engine::{Criterion, Engine, EngineError, Point, Side, Trace, Unsupported};
use crate::graph::{Graph, Object, Origin, Place};
use crate::matching::unify;
use crate::places::point_record;
use crate::report::ExaminedRecord;
use crate::types::Types;

/// Largest number of tests at one point in a search for the cause there.
const MOST_TESTS: usize = 120;

/// Both runs, and what was found out about them.
pub struct Runs {
    /// The program.
    pub engine: Engine,
    /// What makes a run a failure.
    pub criterion: Criterion,
    /// The passing run.
    pub passing: Trace,
    /// The failing run.
    pub failing: Trace,
    /// The points that both go through.
    pub matched: Vec<Matched>,
    /// Time that a test may take.
    pub limit: Duration,
    /// When the search for the chain has to come to its end, so that its parts can be tested.
    pub half_time: Instant,
    /// States at the points that were examined.
    pub states: BTreeMap<usize, States>,
}

/// The states of both runs at a point.
pub struct States {
    /// State of the passing run.
    pub passing: Graph,
    /// State of the failing run.
    pub failing: Graph,
    /// Number of variables on the stack with a known value, and of those in scope.
    pub visible: (usize, usize),
    /// Whether tests at the point were of use.
    pub is_used: bool,
    /// Number of tests at the point.
    pub tests: usize,
    /// The variable that was found to matter there.
    pub cause: Option<Identity>,
    /// Outcomes of the tests at the point.
    known: HashMap<ConfigId, Outcome>,
    /// The variables that differ.
    deltas: HashSet<Identity>,
}

/// A stopped passing run with the differences of the failing one there.
struct AtPoint<'a> {
    stand: Stand,
    all: Differences<'a>,
    known: HashMap<ConfigId, Outcome>,
    tests: usize,
}

impl Runs {
    /// Reads the states of both runs at a matched point, and returns a run that stands there.
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
                cause: None,
                known: HashMap::new(),
                deltas: HashSet::new(),
            };
            self.states.insert(point, states);
        }
        Ok(stand)
    }

    /// Tests a subset of the differences at a point.
    fn test(&mut self, at: &mut AtPoint<'_>, config: &Config) -> Result<Outcome, EngineError> {
        if let Some(known) = at.known.get(&config.id()) {
            return Ok(*known);
        }
        let outcome = self.run_test(at, config)?;
        at.known.insert(config.id(), outcome);
        Ok(outcome)
    }

    fn run_test(&mut self, at: &mut AtPoint<'_>, config: &Config) -> Result<Outcome, EngineError> {
        at.tests += 1;
        let plan = at.all.plan(&|delta| config.contains(delta));
        Ok(match self.engine.go_on(&mut at.stand, &plan, None)? {
            Continued::Ended(ending) => self.criterion.judge(&ending, &self.passing.ending),
            Continued::Reached(_) | Continued::Unapplied => Outcome::Unresolved,
        })
    }

    /// Looks for the cause at a point, other than one variable if that is given.
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

    /// Looks for the variable at a point: the causes of nearby points first, then what differs only
    /// since the last examined point, then by `dd`.
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
        let cause = |variable| Answer::Cause(Cause { point, variable });
        for variable in near {
            let config = about(&at.all.deltas, variable).minus(&than);
            if !config.is_empty() && self.test(at, &config)? == Outcome::Fail {
                return Ok(cause(*variable));
            }
        }
        // Between two causes there is one at each point that is of use.
        let used = |states: &States| states.is_used;
        let is_between = self.states.range(..point).any(|it| used(it.1))
            && self.states.range(point..).any(|it| used(it.1));
        if is_between && let Some(variable) = self.first_failing(at, point, &every)? {
            return Ok(cause(variable));
        }
        let (all, outcome) = self.all(at, &every)?;
        match outcome {
            Outcome::Fail => {}
            Outcome::Unresolved if than.is_empty() => return Ok(Answer::Skipped),
            Outcome::Pass | Outcome::Unresolved => return Ok(Answer::Nothing),
        }
        if !is_between && self.test(at, &Config::empty())? != Outcome::Pass {
            return Ok(Answer::Skipped);
        }
        match self.first_failing(at, point, &all)? {
            Some(variable) => Ok(cause(variable)),
            None => self.isolate(at, point, all),
        }
    }

    /// The first variable of those that are tested alone that makes the passing run fail.
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

    /// Isolates the difference that makes the passing run fail, by `dd`.
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

    /// The variables that differ at a point and are tested alone first: those that did not differ at
    /// the last examined point before, then the others; of many, none.
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

    /// Differences as far as they are needed: those of variables, if they make the run fail, else
    /// those of undescribed registers and words, too.
    fn all(
        &mut self,
        at: &mut AtPoint<'_>,
        every: &Config,
    ) -> Result<(Config, Outcome), EngineError> {
        let described = (every.ranges().flatten()).filter(|delta| !at.all.is_undescribed(*delta));
        let described = Config::from_ranges(described.map(|delta| delta..delta + 1));
        let described = described.unwrap_or_else(Config::empty);
        if !described.is_empty() && self.test(at, &described)? == Outcome::Fail {
            return Ok((described, Outcome::Fail));
        }
        let outcome = self.test(at, every)?;
        Ok((every.clone(), outcome))
    }

    /// Makes the tests at a point on which a word of confidence for a variable rests. Whether the
    /// variable follows from another one is not among them.
    ///
    /// # Errors
    /// When the experiments cannot be made.
    pub fn evidence(&mut self, at: &Cause) -> Result<Evidence, EngineError> {
        let evidence = self.at_point(at.point, |runs, point| runs.gather(point, &at.variable))?;
        Ok(evidence.unwrap_or_default())
    }

    /// Stands at a point, with the differences there, and remembers the outcomes of tests.
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
        };
        let found = act(self, &mut at);
        let known = std::mem::take(&mut at.known);
        let made = at.tests;
        let deltas = at.all.deltas.iter().map(|delta| delta.identity).collect();
        drop(at);
        let states = States {
            known,
            deltas,
            tests: states.tests + made,
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
        let without = all.minus(&alone);
        let plan = at.all.plan(&|delta| without.contains(delta));
        if let Continued::Ended(ending) = self.engine.go_on(&mut at.stand, &plan, None)? {
            evidence.without_averts = self.criterion.is_averted(&ending, &self.passing.ending);
        }
        Ok(evidence)
    }

    /// The chain property: with one variable set at its point, another one has its failing value at
    /// a later point.
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

    /// Returns the difference that is about a variable at a point.
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

    /// Records the points at which states were compared, in the order of time.
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

    /// Draws the states of both runs at a point.
    pub fn drawing(&self, point: usize) -> String {
        let Some(states) = self.states.get(&point) else {
            return String::new();
        };
        let types = &self.engine.info.types;
        let all = Differences::new(types, &states.passing, &states.failing);
        crate::drawing::draw(types, &states.passing, &states.failing, &all)
    }

    /// Finds who wrote the failing value of a link's variable: in the failing run between the last
    /// point at which another variable was relevant and the link's point. If nobody did, finds the
    /// statement of the passing run that alone wrote it between these points, else who wrote it
    /// since the beginning of the failing run.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn writer(&mut self, link: &Link, delta: &Delta) -> Result<Option<Writer>, EngineError> {
        let to = self.matched[link.cause.point];
        let Place::Memory(address) = delta.failing_place else {
            return self.writer_of_register(link, delta);
        };
        if delta.size == 0 {
            return Ok(self.statement_before(link, delta));
        }
        let since = self.since(link);
        let watched = Watched {
            address,
            size: delta.size,
            frame: self.frame_of(link.cause.point, address),
        };
        if let Some((failing, passing)) = since {
            let failing = Some(failing);
            let found = (self.engine).writer(Side::Failing, failing, to.in_failing, watched)?;
            if found.is_some() {
                return Ok(found);
            }
            if let (Place::Memory(address), false) =
                (delta.identity.place, delta.identity.is_structural)
            {
                let watched = Watched { address, ..watched };
                let found =
                    (self.engine).writer(Side::Passing, Some(passing), to.in_passing, watched)?;
                if found
                    .as_ref()
                    .is_some_and(|it| it.by != By::Kernel && !it.is_input())
                {
                    return Ok(found);
                }
            }
        }
        match (self.engine).writer(Side::Failing, None, to.in_failing, watched) {
            // Reached too often, or given up.
            Err(EngineError::Unsupported(Unsupported::Unsteady)) => Ok(None),
            other => other,
        }
    }

    /// The points of the failing and of the passing run behind which a link's variable was written,
    /// with the number of times that the statement of the link's point was reached up to them.
    fn since(&self, link: &Link) -> Option<(Since, Since)> {
        let to = self.matched[link.cause.point];
        let from = self.matched[link.before?];
        let reached = |points: &[Point]| {
            let events = points.iter();
            events.filter(|point| point.pc == to.in_failing.pc).count() as u64
        };
        let failing = reached(&self.failing.points[..=from.failing]);
        let passing = reached(&self.passing.points[..=from.passing]);
        Some(((from.in_failing, failing), (from.in_passing, passing)))
    }

    /// Finds who wrote the failing value of a variable in a register, or of a register that no
    /// variable describes.
    fn writer_of_register(
        &mut self,
        link: &Link,
        delta: &Delta,
    ) -> Result<Option<Writer>, EngineError> {
        let to = self.matched[link.cause.point].in_failing;
        let failing = match delta.change {
            Change::Value { failing, .. } | Change::Pointer { failing, .. } => failing,
            _ => return Ok(self.statement_before(link, delta)),
        };
        let object = (self.states.get(&link.cause.point)).map(|it| &it.failing.objects[failing]);
        let held = object.and_then(|it| match (it.origin, it.place) {
            (Origin::Undescribed, Place::Register(number)) => {
                Some((Held::Value(number), it.bytes.clone()))
            }
            (Origin::Undescribed, Place::Memory(_)) => None,
            (origin, _) => Some((Held::Variable(origin), it.bytes.clone())),
        });
        let Some((held, value)) = held else {
            return Ok(None);
        };
        let since = self.since(link);
        for from in since.map(|it| Some(it.0)).into_iter().chain([None]) {
            match self.engine.register_writer(from, to, held, &value) {
                Ok(None) | Err(EngineError::Unsupported(Unsupported::Unsteady)) => {}
                found => return found,
            }
        }
        Ok(self.statement_before(link, delta))
    }

    /// The frame of the variable at an address of the failing run; `None` where it is no local one.
    fn frame_of(&self, point: usize, address: u64) -> Option<usize> {
        let failing = &self.states.get(&point)?.failing;
        let (object, _) = failing.containing(address)?;
        match failing.objects[object].origin {
            Origin::Local { frame, .. } => Some(frame),
            _ => None,
        }
    }

    /// The statement that the failing run executed just before a link's point, if the point before
    /// was examined and had another cause. A statement of another function is none: the register
    /// may have got its value after the return from there.
    fn statement_before(&self, link: &Link, delta: &Delta) -> Option<Writer> {
        let before = self.matched[link.before?];
        let to = self.matched[link.cause.point];
        let is_own = self.engine.function(before.in_failing.pc) == Some(delta.function.as_str());
        (is_own && before.failing + 1 == to.failing).then_some(Writer {
            pc: before.in_failing.pc,
            by: By::Program,
            side: Side::Failing,
        })
    }
}

/// A point of a run, with the number of times that another statement was reached up to it.
type Since = (Point, u64);

/// All differences that are about one variable.
fn about(deltas: &[Delta], variable: &Identity) -> Config {
    let found = deltas
        .iter()
        .enumerate()
        .filter(|(_, delta)| delta.identity == *variable);
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
        Instant::now() >= self.half_time
    }
}
