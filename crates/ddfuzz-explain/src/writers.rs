//! What wrote the variable of a link of the cause–effect chain: a statement that the failing run
//! executes, or one that only the passing run executes.

use std::ops::Range;

use crate::alignment::{Matched, parting};
use crate::chain::Link;
use crate::delta::{Change, Delta, Identity};
use crate::engine::freed::Lifetime;
use crate::engine::instructions::{RESULT, Value};
use crate::engine::origin::{Decided, Origin as ValueOrigin};
use crate::engine::register_writer::Held;
use crate::engine::returned::Written;
use crate::engine::writer::{By, Watched, Writer};
use crate::engine::{EngineError, Point, Side, Unsupported, if_supported};
use crate::experiments::Runs;
use crate::graph::{Graph, Object, Origin, Place};
use crate::places::frame_record;
use crate::report::{FrameRecord, RoundsRecord};
use crate::rounds::differing;

/// Largest number of statements that a record names for a write that only the passing run makes:
/// the statements that the failing run executes instead.
const INSTEAD: usize = 6;

/// The point after which a write is searched for, and the number of times that the run has reached,
/// up to that point, the statement at which the search is to end.
type Since = (Point, u64);

impl Runs {
    /// Finds what wrote the failing value of the variable that the chain's `link` names; `delta` is
    /// the difference in the variable. Takes the first of these that there is:
    ///
    /// - the failing run's last write between the previous link's last point and this link's point,
    /// - the last write since the failing run began, if the last write of the passing run is by the
    ///   same statement, and it has made as many writes, or is in another round of a loop,
    /// - the statement by which only the passing run wrote the variable between these points,
    /// - the last write since the failing run began.
    ///
    /// `None` if there is no write, or if the program does something that ddfuzz cannot follow.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn writer(&mut self, link: &Link, delta: &Delta) -> Result<Option<Writer>, EngineError> {
        if_supported(self.find_writer(link, delta))
    }

    fn find_writer(&mut self, link: &Link, delta: &Delta) -> Result<Option<Writer>, EngineError> {
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
                (delta.passing_place, delta.identity.is_structural)
            {
                let other = Watched { address, ..watched };
                let found =
                    (self.engine).writer(Side::Passing, Some(passing), to.in_passing, other)?;
                let is_own = |it: &Writer| it.by != By::Kernel && !it.is_input();
                if found.as_ref().is_some_and(is_own) {
                    // The failing run may have made the same write before the previous link.
                    let points = [to.in_passing, to.in_failing];
                    let both = self.engine.written_in_both(points, [other, watched])?;
                    let is_other_round = self.rounds(link.cause.point).is_some();
                    let both = both.filter(|it| it.1 || is_other_round).map(|it| it.0);
                    return Ok(both.filter(is_own).or(found));
                }
            }
        }
        (self.engine).writer(Side::Failing, None, to.in_failing, watched)
    }

    /// Returns what has become of the heap block behind a link's pointer in the failing run, before
    /// the link's point, if the pointer itself is the same in both runs, so that nothing that wrote
    /// it makes the difference; `None` if the pointers differ.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn behind_same_pointer(
        &mut self,
        link: &Link,
        delta: &Delta,
    ) -> Result<Option<Lifetime>, EngineError> {
        let Some(pointer) = self.same_pointer(link.cause.point, delta) else {
            return Ok(None);
        };
        let failing = &self.states[&link.cause.point].failing;
        let of_block = |(id, _)| match failing.objects[id] {
            Object {
                origin: Origin::Block,
                place: Place::Memory(start),
                ..
            } => Some(start),
            _ => None,
        };
        let block = failing.containing(pointer).map_or(Some(pointer), of_block);
        let to = self.matched[link.cause.point].in_failing;
        let life = block.map(|block| self.engine.lifetime(block, to).map(Some));
        Ok(Some(
            if_supported(life.unwrap_or(Ok(None)))?.unwrap_or_default(),
        ))
    }

    /// Returns the outermost loop around the shared point with the index `point` that the runs are in
    /// different rounds of, so that what differs there need not correspond; `None` if there is none.
    pub fn rounds(&self, point: usize) -> Option<RoundsRecord> {
        let both = [&*self.passing.points, &*self.failing.points];
        let at = &self.matched[point];
        let found = differing(both, at, &|pc| self.is_entry(pc))?;
        let own = found
            .statements
            .iter()
            .filter(|pc| self.engine.is_user(**pc));
        let places = own.map(|pc| frame_record(&self.engine, *pc));
        Some(RoundsRecord {
            at: places.min_by_key(|it| it.line)?,
            failing: found.failing,
            passing: found.passing,
        })
    }

    /// Returns the address to which the pointer `delta` leads in both runs at the shared point
    /// `point`; `None` if the addresses differ, or if `delta` is no pointer in memory.
    fn same_pointer(&self, point: usize, delta: &Delta) -> Option<u64> {
        let is_pointer = matches!(
            delta.change,
            Change::Pointer { .. } | Change::Create(_) | Change::Delete(_)
        );
        let states = self.states.get(&point)?;
        let word = |graph: &Graph, place| {
            let Place::Memory(address) = place else {
                return None;
            };
            let (id, offset) = graph.containing(address)?;
            let bytes = graph.objects[id].bytes.get(offset as usize..)?;
            Some(u64::from_le_bytes(*bytes.first_chunk()?))
        };
        let passing = word(&states.passing, delta.passing_place)?;
        let failing = word(&states.failing, delta.failing_place)?;
        (is_pointer && delta.size == 8 && passing == failing).then_some(failing)
    }

    /// Returns the last point that both runs shared before only one of them executed the statement
    /// `writer`, which wrote the variable of the chain's `link`. `None` if both runs executed that
    /// statement since the previous link, or if the point is not known.
    pub fn parted(&self, link: &Link, writer: &Writer) -> Option<Matched> {
        let last = self.executed(link, writer)?;
        let (points, index_of) = self.of_side(writer.side);
        // Where both runs execute it as well since the variable before, that may be the write.
        let pc = points[last].pc;
        let from = link
            .before
            .map_or(0, |before| index_of(&self.matched[before]) + 1);
        let executions = (from..last).filter(|at| points[*at].pc == pc);
        let is_shared = |at: usize| {
            let found = self.matched.binary_search_by_key(&at, index_of);
            found.is_ok()
        };
        if executions.into_iter().any(is_shared) {
            return None;
        }
        let [passing, failing] = [&*self.passing.points, &*self.failing.points];
        parting(&self.matched, [passing, failing], writer.side, last)
    }

    /// Finds the statement of the failing run that last wrote the variable of `link` (at the place
    /// that `delta` states) before the link's point, searching from the start of the run. Called if
    /// only the passing run has written the variable since the previous link. `None` if the
    /// variable is in a register, if a library or the kernel made the last write, or if there was
    /// no write.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn writer_before(
        &mut self,
        link: &Link,
        delta: &Delta,
    ) -> Result<Option<Writer>, EngineError> {
        let Place::Memory(address) = delta.failing_place else {
            return Ok(None);
        };
        let watched = Watched {
            address,
            size: delta.size,
            frame: self.frame_of(link.cause.point, address),
        };
        let to = self.matched[link.cause.point].in_failing;
        let found = if_supported((self.engine).writer(Side::Failing, None, to, watched))?;
        Ok(found.filter(|it| it.by == By::Program))
    }

    /// Returns the first shared point after which the two runs execute different statements. It is
    /// searched from the last point at which the chain's previous variable carried the failure up
    /// to the point of `link`; `None` if the runs do not part there, or for the first link of a
    /// chain.
    pub fn parted_since(&self, link: &Link) -> Option<Matched> {
        let since = &self.matched[link.before?..link.cause.point];
        let next = |it: &Matched| {
            let passing = self.passing.points.get(it.passing + 1)?;
            let failing = self.failing.points.get(it.failing + 1)?;
            Some((passing.pc, passing.stack) != (failing.pc, failing.stack))
        };
        since.iter().find(|it| next(it) == Some(true)).copied()
    }

    /// Returns all points of the run `side`, and a function that takes a pair of points which both
    /// runs share, and returns the index that the point has in this run.
    fn of_side(&self, side: Side) -> (&[Point], fn(&Matched) -> usize) {
        match side {
            Side::Passing => (&self.passing.points, |it| it.passing),
            Side::Failing => (&self.failing.points, |it| it.failing),
        }
    }

    /// Returns the address of the instruction, in a called function, that computed the value of a
    /// variable: the statement `writer` of the failing run called the function and wrote its result
    /// to the variable, which `link` and `delta` describe. `None` if the value did not come from a
    /// call, or if that is not known.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn returned(
        &mut self,
        link: &Link,
        delta: &Delta,
        writer: &Writer,
    ) -> Result<Option<u64>, EngineError> {
        let is_own = writer.side == Side::Failing && writer.by == By::Program;
        let index = self.executed(link, writer).filter(|_| is_own);
        let both = self.matched.iter().find(|it| Some(it.failing) == index);
        let values = self.bytes_of(link, delta);
        let (Some(both), Some([passing, failing])) = (both, values) else {
            return Ok(None);
        };
        if !self.stays_in_place(link, delta, both) {
            return Ok(None);
        }
        let written = Written {
            place: delta.failing_place,
            passing,
            failing,
        };
        let points = [both.in_passing, both.in_failing];
        if_supported(self.engine.returned(points, &written))
    }

    /// Finds out whether the statement `writer`, which wrote the variable `delta` of `link` (a link
    /// of the cause–effect chain), read from another place in memory in the failing run than in the
    /// passing one, because a pointer or an index differed. If so, returns the origin of the value
    /// that the failing run read. `None` if both runs read from the same place, or if that is not
    /// known.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn selected(
        &mut self,
        link: &Link,
        delta: &Delta,
        writer: &Writer,
    ) -> Result<Option<ValueOrigin>, EngineError> {
        let value = match delta.failing_place {
            Place::Memory(address) if delta.size > 0 => Value::Memory(address, delta.size),
            // The register of results is used by each call of the statement.
            Place::Register(number @ 0..=15) if usize::from(number) != RESULT => {
                Value::Register(usize::from(number))
            }
            _ => return Ok(None),
        };
        let is_own = writer.side == Side::Failing && writer.by == By::Program;
        let index = self.executed(link, writer).filter(|_| is_own);
        let both = self.matched.iter().find(|it| Some(it.failing) == index);
        let Some(both) = both.filter(|both| self.stays_in_place(link, delta, both)) else {
            return Ok(None);
        };
        // To the next statement of the same frame.
        let to_next = |points: &[Point], from: usize| {
            let mut rest = points.iter().enumerate().skip(from + 1);
            let next = rest.find(|(_, it)| it.stack == points[from].stack);
            next.map(|(next, _)| from..next + 1)
        };
        let [passing, failing] = [&self.passing.points, &self.failing.points];
        let ranges = to_next(passing, both.passing).zip(to_next(failing, both.failing));
        let Some((passed, failed)) = ranges else {
            return Ok(None);
        };
        let between = [&passing[passed], &failing[failed]];
        if_supported(self.engine.selected_origin(between, value))
    }

    /// Finds where the failing value of the variable of `link`, a link of the cause–effect chain,
    /// came from: the statement that wrote it and, as earlier origins, the statements that made the
    /// values from which it was copied or computed. `None` where that is not known.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn made_of(&mut self, link: &Link) -> Result<Option<ValueOrigin>, EngineError> {
        let Some(delta) = self.delta(link.cause.point, &link.cause.variable) else {
            return Ok(None);
        };
        let value = match delta.failing_place {
            Place::Memory(address) if delta.size > 0 => Value::Memory(address, delta.size),
            Place::Register(number @ 0..=15) => Value::Register(usize::from(number)),
            _ => return Ok(None),
        };
        let to = self.matched[link.cause.point].failing;
        let points = &self.failing.points;
        if_supported(self.engine.value_history(points, to, value))
    }

    /// Returns true if the variable `delta` of `link` (a link of the cause–effect chain) is still
    /// where it was when a statement wrote it: `both` is the point of that statement, in both runs.
    /// True for each variable in memory; for one in a register only if `both` and the link's point
    /// have the same stack pointer.
    fn stays_in_place(&self, link: &Link, delta: &Delta, both: &Matched) -> bool {
        match delta.failing_place {
            Place::Memory(_) => true,
            Place::Register(_) => {
                let at = &self.matched[link.cause.point];
                at.in_failing.stack == both.in_failing.stack
            }
        }
    }

    /// Returns the bytes of a link's variable in the passing and in the failing run, as the
    /// difference `delta` says; `None` if the variable is neither a number nor a text.
    fn bytes_of(&self, link: &Link, delta: &Delta) -> Option<[Vec<u8>; 2]> {
        let states = self.states.get(&link.cause.point)?;
        let Change::Value {
            passing,
            failing,
            start,
            end,
            ..
        } = delta.change
        else {
            return None;
        };
        let of = |bytes: &[u8]| Some(bytes.get(start as usize..end as usize)?.to_vec());
        let passing = of(&states.passing.objects.get(passing)?.bytes)?;
        let failing = of(&states.failing.objects.get(failing)?.bytes)?;
        Some([passing, failing])
    }

    /// Returns the last execution of the statement that made the write `writer`, which set the
    /// variable of `link` (a link of a cause–effect chain). Executions after the point of `link` do
    /// not count. The result is an index in all points of the run that made the write; `None` if
    /// the statement begins at none of them.
    fn executed(&self, link: &Link, writer: &Writer) -> Option<usize> {
        let start = self.engine.statement_at(writer.pc)?;
        let (points, index_of) = self.of_side(writer.side);
        let end = index_of(&self.matched[link.cause.point]);
        (points[..=end].iter()).rposition(|point| point.pc == start)
    }

    /// Returns the last point that both runs share before they went different ways, so that only
    /// the failing run reached the place of its failure; `None` if the passing run reached that
    /// place as well after this point, or if the point is not known.
    pub fn failure_parted(&self) -> Option<Matched> {
        let points = [&*self.passing.points, &*self.failing.points];
        let last = self.failing.points.len().checked_sub(1)?;
        let parted = parting(&self.matched, points, Side::Failing, last)?;
        // A damaged stack makes another point of a statement that both runs execute.
        let place = self.failing.points[last].pc;
        let mut later = self.passing.points[parted.passing + 1..].iter();
        (!later.any(|it| it.pc == place)).then_some(parted)
    }

    /// Finds the condition that makes the two runs go different ways after `last`, a point that
    /// they share, and before the next shared point; returns it with the origin of the value that
    /// it tests. `None` where that is not known.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn decided(&mut self, last: &Matched) -> Result<Option<Decided>, EngineError> {
        let after = self
            .matched
            .partition_point(|it| it.failing <= last.failing);
        let next = self.matched.get(after);
        let [passing, failing] = [&self.passing.points, &self.failing.points];
        let passing = &passing[last.passing..next.map_or(passing.len(), |it| it.passing + 1)];
        let end = next.map_or(failing.len(), |it| it.failing + 1);
        let (before, failing) = failing[..end].split_at(last.failing);
        if_supported(self.engine.condition_origin(before, [passing, failing]))
    }

    /// Searches for the reason why the failing run does not write a link's variable `delta` as the
    /// passing run does. Returns statements that the failing run executes in place of this write,
    /// between `last`, a point that both runs share, and the next shared point. Writes to other
    /// fields of the same record come first, then statements of the function of `last` that write
    /// memory, then its other statements. Each source line is returned once, at most [`INSTEAD`]
    /// lines.
    ///
    /// # Errors
    /// When the run cannot be made.
    pub fn instead(
        &mut self,
        last: &Matched,
        link: &Link,
        delta: &Delta,
    ) -> Result<Vec<FrameRecord>, EngineError> {
        let after = self
            .matched
            .partition_point(|it| it.failing <= last.failing);
        let failing = &self.failing.points;
        let end = (self.matched.get(after)).map_or(failing.len(), |it| it.failing);
        let upto = end.min(failing.len() - 1);
        let written = (self.engine).writes_between(&failing[last.failing..=upto]);
        let written = if_supported(written.map(Some))?.unwrap_or_default();
        let record = self.record_of(link, delta).unwrap_or_default();
        let beside = written.iter().filter(|(_, at, _)| record.contains(at));
        let own = failing[last.failing + 1..end].iter();
        let own = own.filter(|it| it.stack == last.in_failing.stack);
        let own = || own.clone().map(|it| it.pc);
        let writes = |pc: &u64| {
            let statement = |(by, ..): &(u64, u64, u64)| self.engine.statement_at(*by);
            written.iter().any(|it| statement(it) == Some(*pc))
        };
        let mut found: Vec<FrameRecord> = Vec::new();
        let all = (beside.map(|it| it.0))
            .chain(own().filter(writes))
            .chain(own());
        for place in all.map(|pc| frame_record(&self.engine, pc)) {
            if found.len() < INSTEAD && !found.contains(&place) {
                found.push(place);
            }
        }
        Ok(found)
    }

    /// Returns the addresses, in the failing run, of the record (structure) that has the variable
    /// `delta` of a link as a field; `None` if the variable is not a field of a record in memory.
    fn record_of(&self, link: &Link, delta: &Delta) -> Option<Range<u64>> {
        let Place::Memory(address) = delta.failing_place else {
            return None;
        };
        let failing = &self.states.get(&link.cause.point)?.failing;
        let (object, offset) = failing.containing(address)?;
        let found = self
            .engine
            .info
            .types
            .record_at(failing.objects[object].of, offset)?;
        let start = address - offset;
        Some(start + found.start..start + found.end)
    }

    /// Returns the address of the statement that decides that the two runs execute different
    /// statements after `last`, the last point that they share. `None` where that is not known.
    pub fn deciding(&self, last: &Matched) -> Option<u64> {
        let next = self.passing.points[last.passing + 1];
        let other = self.failing.points[last.failing + 1];
        // A condition may be decided after a call in it has returned, where no statement begins.
        let around = match (self.is_entry(next.pc), self.is_entry(other.pc)) {
            (true, false) => other,
            (false, true) => next,
            (false, false) if next.stack == other.stack => next,
            _ => return Some(last.in_failing.pc),
        };
        if last.in_failing.stack == around.stack {
            return Some(last.in_failing.pc);
        }
        let function = self.engine.function(around.pc);
        let before = self
            .matched
            .partition_point(|it| it.failing <= last.failing);
        let own = self.matched[..before].iter().rev();
        let mut own = own.filter(|it| it.in_failing.stack == around.stack);
        let decided = own.next().map(|it| it.in_failing.pc);
        decided.filter(|pc| self.engine.function(*pc) == function)
    }

    /// Returns true if an address is that of the first statement of its function.
    fn is_entry(&self, pc: u64) -> bool {
        let code = pc.wrapping_sub(self.engine.bias);
        let function = self.engine.info.function(code);
        let start = function.map_or(pc, |it| it.ranges[0].start.wrapping_add(self.engine.bias));
        let statements = &self.engine.statements;
        let first = statements.partition_point(|it| *it < start);
        statements.get(first) == Some(&pc)
    }

    /// Returns after which point of the failing run, and of the passing run, a write of the
    /// variable of `link` is searched for: the last point at which the chain's previous variable
    /// still carried the failure. With each point comes how many times the run has reached, up to
    /// this point, the statement at which `link` begins. `None` for the first link of a chain.
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

    /// Finds what wrote the failing value of `link`, a link of the cause–effect chain, if that
    /// value is in a register: in the link's variable, whose difference between both runs is
    /// `delta`, or in a register that no variable describes. `None` where that is not certain.
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
            (_, Place::Memory(_)) => None,
            (origin, Place::Register(number)) => {
                Some((Held::Variable(origin, number), it.bytes.clone()))
            }
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

    /// Returns the number, counted from the outermost one, of the frame whose local variable is at
    /// `address` in the failing run at the shared point `point`; `None` where no local variable is
    /// there.
    fn frame_of(&self, point: usize, address: u64) -> Option<usize> {
        let failing = &self.states.get(&point)?.failing;
        let (object, _) = failing.containing(address)?;
        match failing.objects[object].origin {
            Origin::Local { frame, .. } => Some(frame),
            _ => None,
        }
    }

    /// Guesses that the variable `delta` of `link` was written by the last statement that the
    /// failing run executed in the variable's frame before the link's point, and returns this
    /// statement as the writer. `None` where this is not certain: the variable already differed at
    /// the last examined point before, and points in between were not examined; the statement is in
    /// another function; or none of its instructions writes the variable's register.
    fn statement_before(&self, link: &Link, delta: &Delta) -> Option<Writer> {
        let (before, to) = (self.matched[link.before?], self.matched[link.cause.point]);
        let states = self.states.get(&link.before?)?;
        let is_same = |it: &Identity| {
            *it == delta.identity || it.declared.is_some() && it.declared == delta.identity.declared
        };
        if before.failing + 1 != to.failing && states.deltas.keys().any(is_same) {
            return None;
        }
        let points = &self.failing.points[..to.failing];
        let of_frame = points
            .iter()
            .rposition(|it| it.stack == to.in_failing.stack)?;
        let statement = points[of_frame];
        let is_own = self.engine.function(statement.pc) == Some(delta.function.as_str());
        let is_written = match delta.failing_place {
            Place::Register(number @ 0..=15) => {
                (self.engine).has_write_to(statement.pc, usize::from(number))
            }
            _ => true,
        };
        (is_own && is_written && of_frame <= before.failing).then_some(Writer {
            pc: statement.pc,
            by: By::Program,
            side: Side::Failing,
            in_both: false,
            calls: Vec::new(),
            offset: None,
        })
    }
}
