//! The origin of the value with which a run failed: the operand of the instruction that crashed, or
//! of the condition after which the runs went different ways. The last statements are executed one
//! instruction at a time; memory that they read is watched in another run.

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use super::instructions::{Executed, Value};
use super::library::frees;
use super::out_of_range::{is_negative, is_out_of_range, is_stored_short};
use super::recorded::Recorded;
use super::sources::{Source, comparison, decisions, inputs, last_write, reads, rounds};
use super::unset::Unset;
use super::writer::{By, LastWrite, Watched, Writer};
use super::{Engine, EngineError, Point, Side, if_supported};

/// Number of points before a condition, or before a statement that writes, at which the recording
/// of a run's single instructions begins.
pub(super) const FEW_POINTS: usize = 30;
/// Maximum number of points (statements) before a write, and after it, for which the instructions
/// of a run are recorded one by one.
const SHORT: usize = 30;
/// Number of points of each run, counted from the last point that both runs share, among which the
/// condition at which they part is searched for.
const BETWEEN: usize = 60;
/// Largest number of conditions whose compared values are followed back.
const TRIED: usize = 3;

/// Largest number of statements to which one failing value is followed back.
const STEPS: usize = 12;
/// Largest number of values, read from memory, for each of which a further run tests whether
/// anything had set that memory before.
pub(super) const LIVES: usize = 6;
/// Largest number of values that are followed back for one failing value: that value itself, those
/// from which it was computed, and so on.
const TERMS: usize = 40;
/// Largest number of library calls that are tested, each in a further run, to find the call that
/// wrote one value.
const UNSURE: usize = 4;
/// Largest size of an instruction, in bytes.
pub(super) const LONGEST: u64 = 15;

/// Where a value came from: the code that wrote or computed it, and the code that read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Address of the instruction that read the value from memory; `None` if the value was not in
    /// memory.
    pub read: Option<u64>,
    /// Addresses in the program's code: of the instruction that wrote or computed the value, then
    /// of the calls that led to this instruction, innermost first.
    pub written: Vec<u64>,
    /// The last point of the failing run before the value was written or computed; `None` where
    /// that is not known.
    pub point: Option<Point>,
    /// The memory from which the value was read, if nothing has set it. The field `written` then
    /// has the calls that led to the allocation of its heap block, or to the function whose local
    /// variable it is.
    pub unset: Option<Unset>,
    /// Address and size in bytes of the memory from which the value was read, and the last point of
    /// the failing run before this read; `None` if the value was not in memory, or if nothing has
    /// set it.
    pub(crate) memory: Option<((u64, u64), Point)>,
    /// Whether the statement that wrote the value only copied it from memory.
    pub is_copy: bool,
    /// Whether the statement has computed a number below zero from numbers that are not below zero,
    /// or a number that is too large for the place where it is stored.
    pub is_out_of_range: bool,
    /// Whether a call of `free` has written the value, which was read from the freed block.
    pub is_freed: bool,
    /// Number, from 0, of the operand that depends on this value, among the values that the failing
    /// instruction uses or the failed condition compares.
    pub operand: usize,
    /// Whether the operand with the number `operand` depends on this value only as a pointer or
    /// index with which it was read.
    pub selects: bool,
    /// Origins of the values from which this value was made, directly or indirectly, the latest
    /// first.
    pub earlier: Vec<Origin>,
}

/// A value that an instruction of the failing run uses: the recording of the run, the index of the
/// instruction in it, and the register or memory that held the value.
pub(super) type Used = (Rc<Recorded>, usize, Value);

/// A value, used by an instruction of a recorded run, whose origin is still to be found: the
/// statement that made it.
struct Pending {
    used: Used,
    /// Index, among the origins found so far, of the value that was made from this value; `None` if
    /// there is none.
    made: Option<usize>,
    /// Number of the operand that depends on the value, as in [`Origin::operand`].
    operand: usize,
    /// Whether the operand depends on the value only by a pointer or index, as in
    /// [`Origin::selects`].
    selects: bool,
}

impl Pending {
    fn new(used: Used, made: Option<usize>, (operand, selects): (usize, bool)) -> Pending {
        Pending {
            used,
            made,
            operand,
            selects,
        }
    }
}

/// A read of memory in a run: address of the reading instruction, the last point that the run
/// passed before it (`None` if it passed none), and address and size in bytes of the memory.
pub(super) type Reading = (u64, Option<Point>, u64, u64);

/// Where a value came from, one step back: the instruction that made it, and the values from which
/// it was made.
#[derive(Clone, Default)]
pub(super) struct Back {
    /// The code that made the value; `None` where that is not known, or not in the program's own
    /// code.
    origin: Option<Origin>,
    /// The recorded instruction that made the value; `None` where none was recorded.
    moment: Option<(Rc<Recorded>, usize)>,
    /// Values from which the instruction that made the value has made it.
    made_of: Vec<Used>,
    /// Pointers and indices with which the value was read from memory.
    selected_by: Vec<Used>,
    /// Whether no write of the program's own code is known to have left the value in memory: the
    /// value may be there from the start, or the read may be from a wrong place.
    is_unwritten: bool,
}

/// The write that left a value in the memory that a recorded instruction reads.
struct MemoryWrite {
    last: LastWrite,
    address: u64,
    size: u64,
    /// The point of the failing run at which the memory is read. The write is the last one to the
    /// memory before that point.
    to: Point,
}

/// What was found so far when a failing value is followed back: the statements that made it, at
/// most one for each source line.
struct Told {
    /// Where values came from, in the order in which they were found, one origin for each line.
    found: Vec<Origin>,
    /// Source files and lines of the origins in `found`, in the same order, after one more element
    /// at the beginning: the line whose statements are left out.
    places: Vec<Option<(String, u64)>>,
}

impl Told {
    fn new(passed_over: Option<(String, u64)>) -> Told {
        Told {
            found: Vec::new(),
            places: vec![passed_over],
        }
    }

    /// Returns the first of the found origins, which has all later ones as its
    /// [`earlier`](Origin::earlier) origins; `None` if none was found.
    fn origin(self) -> Option<Origin> {
        let mut found = self.found.into_iter();
        let first = found.next()?;
        Some(Origin {
            earlier: found.collect(),
            ..first
        })
    }

    /// Adds `origin` for the source file and line `place`, unless an origin of that line is known,
    /// and returns the index of that line's origin. `None` where the line is unknown, or is the one
    /// whose statements are left out.
    fn add(&mut self, origin: Origin, place: Option<(String, u64)>) -> Option<usize> {
        let place = Some(place.filter(|(_, line)| *line > 0)?);
        match self.places.iter().position(|it| *it == place) {
            Some(known) => {
                let known = known.checked_sub(1)?;
                self.found[known].is_out_of_range |= origin.is_out_of_range;
                Some(known)
            }
            None => {
                self.places.push(place);
                self.found.push(origin);
                Some(self.found.len() - 1)
            }
        }
    }
}

/// A condition after which the two runs go different ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Address of the jump that depends on the condition.
    pub at: u64,
    /// Where the value that the condition tests came from in the failing run.
    pub by: Origin,
}

/// Where a failing value came from: the recorded instructions that made it, back to the earliest
/// that is known.
pub(crate) struct History {
    /// Where the value came from, with the origins of the values from which it was made; `None`
    /// where that is not known.
    pub origin: Option<Origin>,
    /// The recorded instructions to which the value was followed back. The instruction that failed
    /// with the value comes first, then those that made the value, the latest first.
    pub(super) moments: Vec<(Rc<Recorded>, usize)>,
}

/// Returns true if the recorded instruction `by` has computed a number out of range (such as one
/// below zero), and the instruction `at`, which uses this number, leaves it so. Only an instruction
/// of the same statement can bring it back into range, by a result that is not below zero.
fn keeps_out_of_range(recorded: &Recorded, by: usize, at: usize) -> bool {
    let executed = &recorded.executed;
    let is_kept = !executed[at].computes()
        || recorded.statement(at) != recorded.statement(by)
        || is_negative(executed, at);
    is_kept && is_out_of_range(executed, by, at)
}

/// Returns `origin`, where a value came from, with what the recording shows in addition: the point
/// at which the value was made, whether it was only copied, and whether it is out of range. `at` is
/// the recorded instruction that uses the value, `source` where this instruction got the value
/// from, and `back` the statement that made it.
fn observed(
    origin: &Origin,
    back: &Back,
    (recorded, at): (&Recorded, usize),
    source: Source,
) -> Origin {
    let moment = back.moment.as_ref();
    let point = moment.and_then(|(recorded, by)| Some(recorded.points[recorded.passed(*by)?].1));
    let is_out_of_range = match (moment, source) {
        (_, Source::Computed(by)) => keeps_out_of_range(recorded, by, at),
        (Some((writing, by)), Source::Read { at, .. }) => {
            is_out_of_range(&writing.executed, *by, *by)
                || is_stored_short(&writing.executed, *by, &recorded.executed[at..])
        }
        (_, Source::Unsure { .. }) | (None, _) => false,
    };
    Origin {
        point,
        is_copy: origin.read.is_some() && back.made_of.len() == 1,
        is_out_of_range,
        ..origin.clone()
    }
}

/// Removes from `pending` and returns the next value to follow back. Values belong to the operands
/// of the failing instruction; the next value is the first one of the operand for which `found` has
/// the fewest origins, so that no operand is neglected.
fn next_of(pending: &mut VecDeque<Pending>, found: &[Origin]) -> Option<Pending> {
    let known = |at: &usize| {
        let operand = pending[*at].operand;
        found.iter().filter(|it| it.operand == operand).count()
    };
    let next = (0..pending.len()).min_by_key(known)?;
    pending.remove(next)
}

impl Engine {
    /// Finds where the values `values`, which recorded instructions of the failing run use, came
    /// from: the statements that wrote them, the statements that wrote the values from which these
    /// were made, and so on; after that, in the same way, the pointers and indices with which the
    /// values were read. Leaves out statements on the source line of the failing instruction at the
    /// address `of`. `points` are the points of the failing run.
    pub(super) fn history(
        &mut self,
        points: &[Point],
        of: u64,
        values: Vec<Used>,
    ) -> Result<History, EngineError> {
        let mut told = Told::new(self.line(of));
        let (mut moments, mut known) = (Vec::new(), HashSet::new());
        let first = values.into_iter().enumerate();
        let first = first.map(|(operand, used)| Pending::new(used, None, (operand, false)));
        let (mut rest, mut later): (VecDeque<Pending>, VecDeque<Pending>) =
            (first.collect(), VecDeque::new());
        for _ in 0..TERMS {
            // What was found until then is told.
            if self.facts_until.is_over() {
                break;
            }
            let next = next_of(&mut rest, &told.found);
            let Some(next) = next.or_else(|| next_of(&mut later, &told.found)) else {
                break;
            };
            let (operand, selects) = (next.operand, next.selects);
            let (recorded, at, value) = next.used;
            let user = &recorded.executed[at];
            // A loop uses the same value in each of its rounds.
            if user.is_of_frame(value) || !known.insert((user.pc(), value)) {
                continue;
            }
            let Some(source) = self.source_of(&recorded, at, value)? else {
                continue;
            };
            if let Some(made) = next.made {
                told.found[made].is_copy &= self.is_copy((&recorded, at), source);
            }
            let back = self.step_back(points, &recorded, source)?;
            let place = (back.origin.as_ref()).and_then(|it| self.line(it.written[0]));
            let origin = back.origin.as_ref().map(|it| Origin {
                operand,
                selects,
                ..observed(it, &back, (&recorded, at), source)
            });
            let made = origin.and_then(|origin| told.add(origin, place));
            moments.extend(back.moment);
            let used = back.made_of.into_iter();
            rest.extend(used.map(|used| Pending::new(used, made, (operand, selects))));
            let used = back.selected_by.into_iter();
            let used = used.map(|used| Pending::new(used, None, (operand, true)));
            match back.is_unwritten {
                // All that is known of it.
                true => rest.extend(used),
                false => later.extend(used),
            }
            if told.found.len() >= STEPS {
                break;
            }
        }
        let origin = told.origin();
        Ok(History { origin, moments })
    }

    /// Returns true if the recorded instruction `at` uses a value that another instruction of the
    /// same function has read from memory (`source`), so that the function only copies it. False if
    /// the value comes from elsewhere, such as a parameter that the calling function has read.
    fn is_copy(&self, (recorded, at): (&Recorded, usize), source: Source) -> bool {
        let function = |at: usize| self.function(recorded.executed[at].pc());
        matches!(source, Source::Read { at: read, .. } if function(read) == function(at))
    }

    /// Finds where `value`, which the recorded instruction `at` uses, came from; `None` where that
    /// is not known. If a library's function may have written it, another run tests that; a value
    /// that it wrote counts as computed by the call.
    fn source_of(
        &mut self,
        recorded: &Recorded,
        at: usize,
        value: Value,
    ) -> Result<Option<Source>, EngineError> {
        let mut source = recorded.source(at, value);
        for _ in 0..UNSURE {
            let Some(Source::Unsure { at, address, size }) = source else {
                return Ok(source);
            };
            match self.call_writes(recorded, at, (address, size))? {
                Some(true) => return Ok(Some(Source::Computed(at))),
                Some(false) => source = recorded.source(at, Value::Memory(address, size)),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Follows a value one step back from `source`: to the instruction that computed it, or the
    /// write that left it in memory, and to the values from which it was made.
    fn step_back(
        &mut self,
        points: &[Point],
        recorded: &Rc<Recorded>,
        source: Source,
    ) -> Result<Back, EngineError> {
        match source {
            Source::Computed(by) => {
                let executed = &recorded.executed;
                let mut made_of: Vec<Used> = Vec::new();
                if !executed[by].is_library_call() {
                    let (first, bounds) = rounds(executed, by);
                    let terms = executed[first].selected_terms(executed.get(first + 1));
                    let terms = terms.into_iter().map(|value| (first, value));
                    let used = terms.chain(bounds);
                    made_of.extend(used.map(|(at, value)| (recorded.clone(), at, value)));
                    // What is computed by flags (`setl`, `cmovl`) depends on what was compared.
                    if let Some(at) = comparison(executed, by) {
                        let compared = executed[at].operands().into_iter();
                        made_of.extend(compared.map(|value| (recorded.clone(), at, value)));
                    }
                }
                let origin = Origin {
                    written: vec![executed[by].pc()],
                    ..Origin::default()
                };
                Ok(Back {
                    origin: Some(origin).filter(|it| self.is_of_statement(it.written[0])),
                    moment: Some((recorded.clone(), by)),
                    made_of,
                    ..Back::default()
                })
            }
            // A library's function may have written it.
            Source::Unsure { .. } => Ok(Back::default()),
            Source::Read { at, address, size } => {
                self.read_back(points, recorded, (at, address, size))
            }
        }
    }

    /// Follows the value that the recorded instruction `at` reads from the `size` bytes of memory
    /// at `address` one step back: to the last write to this memory. If nothing was written since
    /// the memory came to life, follows it to the call that allocated the memory, or to the call of
    /// the function whose local variable it is.
    fn read_back(
        &mut self,
        points: &[Point],
        recorded: &Rc<Recorded>,
        (at, address, size): (usize, u64, u64),
    ) -> Result<Back, EngineError> {
        let point = recorded.passed(at).map(|point| recorded.points[point].1);
        let key = (recorded.executed[at].pc(), point, address, size);
        if let Some(known) = self.followed.get(&key) {
            return Ok(known.clone());
        }
        // What a standard library reads, it reads for the statement that calls it.
        let read = match point {
            Some(point) if !self.is_user(key.0) => point.pc,
            _ => key.0,
        };
        let mut back = Back::default();
        let unset = match (point, self.lives_left) {
            (None, _) | (_, 0) => None,
            (Some(point), _) => {
                self.lives_left -= 1;
                self.unset_since((address, size), point)?
            }
        };
        let registers = recorded.executed[at].address_registers().into_iter();
        let selected_by = registers.map(|it| (recorded.clone(), at, Value::Register(it)));
        if let Some(unset) = unset {
            back.origin = Some(Origin {
                read: Some(read),
                written: unset.calls.clone(),
                unset: Some(unset),
                ..Origin::default()
            });
        } else if let Some(write) = self.last_write_before(recorded, at, address, size)? {
            back = self.made_of(points, &write)?;
            back.origin = Some(Origin {
                memory: point.map(|point| ((address, size), point)),
                ..write.origin(read)
            });
        }
        back.is_unwritten = back.origin.is_none();
        back.selected_by.extend(selected_by);
        self.followed.insert(key, back.clone());
        Ok(back)
    }

    /// Finds where a value of the failing run came from: the value that is in the register or
    /// memory `value` at the point `points[to]`. `points` are all points of the failing run. `None`
    /// where the origin is not known.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn value_history(
        &mut self,
        points: &[Point],
        to: usize,
        value: Value,
    ) -> Result<Option<Origin>, EngineError> {
        let window = &points[to.saturating_sub(FEW_POINTS)..points.len().min(to + 2)];
        let recorded = self.record(Side::Failing, window, true)?;
        let is_it = |(_, it): &&(usize, Point)| (it.pc, it.nth) == (points[to].pc, points[to].nth);
        let Some((at, _)) = recorded.points.iter().find(is_it).copied() else {
            return Ok(None);
        };
        if at >= recorded.executed.len() {
            return Ok(None);
        }
        let used = vec![(recorded, at, value)];
        Ok(self.history(points, 0, used)?.origin)
    }

    /// Finds why two runs go different ways between two points that they share: the condition after
    /// which they go different ways for longest, and the origin, in the failing run, of the value
    /// that it tests. `None` if that is not known. `before` are the failing run's points up to the
    /// first shared point; `between` are the points of the passing and of the failing run from the
    /// first shared point to the second.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn condition_origin(
        &mut self,
        before: &[Point],
        between: [&[Point]; 2],
    ) -> Result<Option<Decided>, EngineError> {
        let [passing, failing] = between;
        let start = before.len().saturating_sub(FEW_POINTS);
        let points = [&before[start..], &failing[..failing.len().min(BETWEEN)]].concat();
        let known = points.len() - failing.len().min(BETWEEN);
        let points_of_run = &[before, failing].concat();
        let failing = self.record(Side::Failing, &points, true)?;
        let passing = &passing[..passing.len().min(BETWEEN)];
        let passing = self.record(Side::Passing, passing, true)?;
        let Some((start, _)) = failing.points.get(known) else {
            return Ok(None);
        };
        let pairs = decisions(&failing.executed[*start..], &passing.executed);
        let pairs = pairs.into_iter().map(|(at, other)| (at + start, other));
        let is_own = |at: usize| self.is_of_statement(failing.executed[at].pc());
        let pairs: Vec<_> = pairs.filter(|(at, _)| is_own(*at)).take(TRIED).collect();
        for (at, other) in pairs {
            let found = self.decision(points_of_run, &failing, at, (&passing.executed, other))?;
            if let Some(by) = found {
                let at = failing.executed[at].pc();
                return Ok(Some(Decided { at, by }));
            }
        }
        Ok(None)
    }

    /// Finds why a jump leads elsewhere in the failing run than in the passing one: the origin of
    /// the value on which the jump depends. `at` and `other` are the indices of the jump in the
    /// recordings of the failing and of the passing run; `points` are points of the failing run.
    /// `None` if the origin is not known.
    fn decision(
        &mut self,
        points: &[Point],
        failing: &Rc<Recorded>,
        at: usize,
        (passing, other): (&[Executed], usize),
    ) -> Result<Option<Origin>, EngineError> {
        let one = &failing.executed[at];
        let (at, other, values) = if one.is_condition() {
            let compared = comparison(&failing.executed, at).zip(comparison(passing, other));
            let Some((at, other)) = compared else {
                return Ok(None);
            };
            (at, other, failing.executed[at].operands())
        } else {
            let registers = one.address_registers().into_iter().map(Value::Register);
            (at, other, registers.chain(one.operands()).collect())
        };
        let is_equal = |value: &Value| match value {
            Value::Register(number) => {
                failing.executed[at].registers[*number] == passing[other].registers[*number]
            }
            Value::Memory(..) | Value::Part { .. } => false,
        };
        for value in values.into_iter().filter(|value| !is_equal(value)) {
            let of = failing.executed[at].pc();
            let used = vec![(failing.clone(), at, value)];
            let found = self.history(points, of, used)?;
            if found.origin.is_some() {
                return Ok(found.origin);
            }
        }
        Ok(None)
    }

    /// Finds out whether a statement, to compute what it wrote to `value`, read from another place
    /// in memory in the failing run than in the passing one. One execution in each run is compared:
    /// `passing` and `failing` are the points from this execution to the next statement. If the
    /// places differ, returns the origin of the value that the failing run read. `None` if both
    /// runs read from the same place, or if that is not known.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub fn selected_origin(
        &mut self,
        [passing, failing]: [&[Point]; 2],
        value: Value,
    ) -> Result<Option<Origin>, EngineError> {
        let recorded = self.record(Side::Failing, failing, true)?;
        let passing = self.record(Side::Passing, passing, true)?;
        let executed = &recorded.executed;
        let statement = |at| recorded.statement(at);
        let read = reads(executed, 0..executed.len(), value, statement);
        for (at, address, size) in read {
            let pc = executed[at].pc();
            let mut same = passing.executed.iter().filter(|it| it.pc() == pc);
            let is_elsewhere = same.next().and_then(Executed::read);
            if is_elsewhere.is_none_or(|it| it == (address, size)) {
                continue;
            }
            let found = self.last_write_before(&recorded, at, address, size)?;
            if let Some(write) = found {
                return Ok(Some(write.origin(pc)));
            }
        }
        Ok(None)
    }

    /// Finds the write that left the value in the memory that the recorded instruction `at` reads
    /// (`size` bytes at `address`); `None` if none is known.
    fn last_write_before(
        &mut self,
        recorded: &Recorded,
        at: usize,
        address: u64,
        size: u64,
    ) -> Result<Option<MemoryWrite>, EngineError> {
        let Some(point) = recorded.passed(at) else {
            return Ok(None);
        };
        let to = recorded.points[point].1;
        let watched = Watched {
            address,
            size,
            frame: None,
        };
        let found = self.last_writes(Side::Failing, None, to, watched);
        let found = if_supported(found.map(Some))?.and_then(|it| it.any);
        // Who has saved a register at the beginning of a function, or calls a function that saves
        // it, has not made its value; a statement that has overwritten it there has.
        let is_restored = recorded.executed[at].is_pop();
        let saves = |it: &Writer| is_restored && self.saves_register(it);
        let is_own = |it: &LastWrite| {
            let writer = &it.writer;
            !saves(writer)
                && !writer.is_input()
                && writer.by != By::Kernel
                && !writer.calls.is_empty()
        };
        Ok(found.filter(is_own).map(|last| MemoryWrite {
            last,
            address,
            size,
            to,
        }))
    }

    /// Returns the instruction that made the write `write`, and the values from which it computed
    /// the written value; both are empty where that is not known.
    fn made_of(&mut self, points: &[Point], write: &MemoryWrite) -> Result<Back, EngineError> {
        let (address, size) = (write.address, write.size);
        let written = Value::Memory(address, size);
        let watched = Watched {
            address,
            size,
            frame: None,
        };
        let index = |point: Point| {
            let is_it = |it: &Point| (it.pc, it.nth) == (point.pc, point.nth);
            points.iter().position(is_it)
        };
        let Some(by) = self.statement_of(watched, &write.last)? else {
            return Ok(Back::default());
        };
        let Some((from, to)) = index(by)
            .zip(index(write.to))
            .filter(|(from, to)| from < to)
        else {
            return Ok(Back::default());
        };
        let start = from.saturating_sub(SHORT);
        // Functions that the statement calls may have many points.
        let is_same = |it: &Point| it.stack == points[from].stack;
        let next = points[from + 1..].iter().position(is_same).unwrap_or(0);
        let end = to.min(from + SHORT.max(next + 1));
        let recorded = self.record(Side::Failing, &points[start..=end], true)?;
        let Some((first, _)) = recorded.points.get(from - start).copied() else {
            return Ok(Back::default());
        };
        let executed = &recorded.executed;
        let after = first..executed.len();
        let pc = write.last.writer.pc;
        let is_call = |at: &usize| {
            let it = &executed[*at];
            it.is_library_call() && (it.pc()..it.pc() + LONGEST).contains(&pc)
        };
        let at = match &write.last.writer.by {
            By::Library(_) => after.rev().find(is_call),
            _ => last_write(executed, after, written),
        };
        let Some(at) = at else {
            return Ok(Back::default());
        };
        let values = inputs(&executed[at], written).into_iter();
        Ok(Back {
            origin: None,
            moment: Some((recorded.clone(), at)),
            made_of: values.map(|value| (recorded.clone(), at, value)).collect(),
            ..Back::default()
        })
    }
}

impl MemoryWrite {
    /// Describes where a value came from: this write put it into memory, and the instruction at the
    /// address `read` has read it there.
    fn origin(&self, read: u64) -> Origin {
        Origin {
            read: Some(read),
            written: self.last.writer.calls.clone(),
            is_freed: matches!(&self.last.writer.by, By::Library(name) if frees(name)),
            ..Origin::default()
        }
    }
}
