//! Facts about the failing run for the result that need no passing run: damage to its heap, the
//! origin of the value with which it crashed, and changes of the program that avert the failure.

use std::time::Duration;

use ddfuzz_exec::{Ended, RUST_PANIC};

use crate::engine::anomalies::Oddity;
use crate::engine::asan::Reported;
use crate::engine::bounds::Overrun;
use crate::engine::crashed::Odd;
use crate::engine::critical::Critical;
use crate::engine::evidence::Averting;
use crate::engine::mutated::{MutantEnd, Mutated};
use crate::engine::origin::{History, Origin};
use crate::engine::outside::{Instead, Overread};
use crate::engine::overflow::{Allocated, Beyond, Overflow};
use crate::engine::spectrum::OtherInputs;
use crate::engine::switched::Switched;
use crate::engine::watchdog::{Allowance, TimeLimit};
use crate::engine::{Criterion, Ending, Engine, EngineError, Point, Trace, if_supported};
use crate::passing::SimilarInput;
use crate::places::{frame_record, frame_records};
use crate::report::{
    AccessRecord, CriticalRecord, Explanation, FrameRecord, MutantRecord, OriginRecord,
    OverflowRecord, OverreadRecord, OverrunRecord, SuspectRecord, SwitchedRecord, TellingRecord,
    UnsetRecord,
};

/// Text about a statement that has chosen an address: the value that made the run fail was later
/// written to that address.
pub const CHOOSES_PLACE: &str = "chooses where the value is written by which it fails";
/// A share of the time for an explanation, as two divisors: one of the CPU time, and one of the
/// wall time, which counts on a busy machine.
type Parts = (u32, u32);
/// Share of the time for an explanation that is reserved for runs in which a condition of the
/// failing run is decided the other way.
const CONDITIONS: Parts = (60, 8);
/// Share of the time for an explanation that may be used to record the failing run, and to find
/// where the size of a heap block came from.
const FACTS: Parts = (15, 8);
/// Share of the time for an explanation that is reserved for finding the origin of the value with
/// which the failing run has crashed.
const VALUES: Parts = (10, 8);
/// Divisor of the remaining time: runs of mutants of the program may take this part of it.
const MUTANTS: u32 = 2;
/// Largest number of values that are tested for being read from memory that nothing has set.
const UNSET: usize = 2;
/// Largest number of values that are tested for being left from an earlier use of their record (as
/// where an element of a pool is used again).
const REUSED: usize = 4;
/// Largest number of statements that the result lists because the failure depends on them.
const DEPENDS: usize = 16;

/// Adds to a result the heap block past whose end the failing run has written, and returns that
/// write. If there is none, adds the call of `free` without which the run does not fail or, if
/// there is none, such a call of `realloc`, with the calls that led to it, and returns `None`.
///
/// # Errors
/// When the runs cannot be made.
pub fn add_heap_facts(
    result: &mut Explanation,
    engine: &mut Engine,
    criterion: &Criterion,
    failing: &Ending,
) -> Result<Option<Overflow>, EngineError> {
    let averts = |it: &Ending| ends_well(it, criterion, failing);
    if let Some(reported) = if_supported(engine.asan_report())? {
        return add_reported(result, engine, (failing, averts), reported).map(|()| None);
    }
    let found = overflow(engine, criterion)?;
    result.overflow = found.as_ref().map(|it| OverflowRecord {
        bytes: it.block.size,
        allocated: frame_records(engine, &it.block.calls),
        wrappers: wrappers(engine, &it.block),
        size: None,
        passes_size: false,
        extent: None,
        writer: frame_record(engine, it.write.writer.pc),
        reads: false,
        is_averted: it.is_averted,
    });
    if result.overflow.is_some() || engine.info.is_empty() {
        return Ok(found);
    }
    if let Some(freed) = if_supported(engine.freed_early(averts))? {
        result.freed_early = frame_records(engine, &freed.calls);
        result.freed_together = freed.together;
        result.used_late = frame_records(engine, &freed.used);
    } else if let Some(moved) = if_supported(engine.moved_early(|it| criterion.fails(it), averts))?
    {
        result.moved_early = frame_records(engine, &moved.calls);
        result.freed_together = moved.together;
        result.used_late = frame_records(engine, &moved.used);
    }
    Ok(found)
}

/// Adds to a result the bad access that AddressSanitizer reports at the end `failing` of the failing
/// run, as far as it is known without the program's variables. If it is one of a freed heap block,
/// the program also runs without that call of `free`; the call is added if `averts` returns true for
/// the end of this run, that is, if it does not fail.
///
/// # Errors
/// When the runs cannot be made.
fn add_reported(
    result: &mut Explanation,
    engine: &mut Engine,
    (failing, averts): (&Ending, impl Fn(&Ending) -> bool),
    reported: Reported,
) -> Result<(), EngineError> {
    let place = frame_records(engine, &engine.failing_calls(failing));
    let object = reported.object.clone();
    let range = object.as_ref().map(|it| it.range.clone());
    let start = range.as_ref().map_or(reported.address, |it| it.start);
    let access = AccessRecord {
        kind: reported.kind.clone(),
        place: place.clone(),
        writes: reported.is_write,
        bytes: reported.size,
        region: object.map(|it| it.region),
        elements: 1,
        object_bytes: range.map_or(0, |it| it.end - it.start),
        distance: reported.address.wrapping_sub(start) as i64,
        ..AccessRecord::default()
    };
    if access.is_of_freed() {
        let is_again = access.bytes == 0;
        let same = failing.crash.clone();
        let reports = |it: &Ending| it.crash.is_some() && it.crash == same;
        let freed = engine.reported_free((start, is_again), averts, reports);
        if let Some(freed) = if_supported(freed)? {
            let calls = frame_records(engine, &freed.calls);
            match freed.is_move {
                true => result.moved_early = calls,
                false => result.freed_early = calls,
            }
            result.freed_together = freed.together;
            result.used_late = place;
        }
    }
    result.access = Some(access);
    engine.reported = Some(reported);
    Ok(())
}

/// Adds to a result what the program's variables say of the bad access that AddressSanitizer
/// reports, and the heap block past whose end it is; nothing where it reports none. `history` says
/// where the values of the failure came from.
///
/// # Errors
/// When the runs cannot be made.
fn add_access(
    result: &mut Explanation,
    engine: &mut Engine,
    failing: &Trace,
    history: Option<&History>,
) -> Result<(), EngineError> {
    let Some(access) = &mut result.access else {
        return Ok(());
    };
    let found = engine.bad_access(failing, history)?;
    if let Some(accessed) = found.accessed {
        access.name = Some(accessed.name);
        (access.element, access.elements) = (accessed.element, accessed.elements);
        access.index = found.index;
    }
    let Some(block) = found.allocated else {
        return Ok(());
    };
    access.allocated = frame_records(engine, &block.calls);
    let at = engine.failing_calls(&failing.ending).first().copied();
    if let Some(at) = at.filter(|_| access.kind == "heap-buffer-overflow") {
        let is_read = !access.writes;
        let block = Beyond { block, at, is_read };
        result.overflow = Some(beyond_record(engine, failing, &block)?);
    }
    Ok(())
}

/// Adds to a result what runs of the failing input show: the conditions that avert the failure when
/// decided the other way; what is odd in a recording of the run; where the size of the heap block
/// `block`, past whose end the run writes, came from; and where the failing value, by which the run
/// has crashed, came from. Uses fixed shares of the time `budget`; a changed run may take `limit`.
/// Returns the last point of the failing run before the failing value was written; `None` if that
/// is not known.
///
/// # Errors
/// When the runs cannot be made.
pub fn add_facts(
    result: &mut Explanation,
    engine: &mut Engine,
    (criterion, failing, limit): (&Criterion, &Trace, TimeLimit),
    block: Option<Overflow>,
    budget: Duration,
) -> Result<Option<Point>, EngineError> {
    engine.facts_until = Allowance::share(budget, CONDITIONS);
    add_critical(result, engine, criterion, failing, limit)?;
    engine.facts_until = Allowance::share(budget, FACTS);
    add_observed(result, engine, criterion, failing, limit)?;
    add_block_facts(result, engine, failing, block.as_ref())?;
    engine.facts_until = Allowance::share(budget, VALUES);
    let written = add_crash_facts(result, engine, criterion, failing, limit)?;
    engine.facts_until = engine.whole_time();
    result.changed_runs = engine.changed_runs;
    Ok(written)
}

/// Adds to a result two facts about the heap block `block` past whose end the run of `trace`
/// writes: where the block's size came from, and what decided how much is written. Adds nothing if
/// `block` is `None`.
///
/// # Errors
/// When the runs cannot be made.
fn add_block_facts(
    result: &mut Explanation,
    engine: &mut Engine,
    trace: &Trace,
    block: Option<&Overflow>,
) -> Result<(), EngineError> {
    let Some(block) = block else {
        return Ok(());
    };
    let size = if_supported(engine.size_origin(&trace.points, block.block.asked))?;
    let extent = if_supported(engine.extent_origin(&trace.points, block))?;
    if let Some(record) = &mut result.overflow {
        record.passes_size = size.as_ref().is_some_and(|it| it.1);
        record.size = size.map(|it| origin_record(engine, &it.0));
        record.extent = extent.map(|it| origin_record(engine, &it));
    }
    Ok(())
}

/// Adds to a result the origin of the value with which the failing run has crashed (a bad pointer,
/// a divisor, or what was compared before the program ended itself), and the nearby conditions that
/// avert the failure when decided the other way, each tested in a run that may take `limit`.
/// Nothing is added if the run has not crashed, or if its last instructions could not be recorded.
/// Returns the last point of the failing run before the value was written, if that is known.
///
/// # Errors
/// When the runs cannot be made.
fn add_crash_facts(
    result: &mut Explanation,
    engine: &mut Engine,
    criterion: &Criterion,
    failing: &Trace,
    limit: TimeLimit,
) -> Result<Option<Point>, EngineError> {
    let ending = &failing.ending;
    let is_panic = engine.ends_at_panics && ending.ended == Ended::Exit(RUST_PANIC);
    if ending.crash.is_none() && !is_panic || engine.info.is_empty() {
        return Ok(None);
    }
    let history = engine.crash_history(failing);
    let Some(history) = if_supported(history)? else {
        add_access(result, engine, failing, None)?;
        return Ok(None);
    };
    let record = |it: &Origin| origin_record(engine, it);
    result.origin = history.origin.as_ref().map(record);
    let written = history.origin.as_ref().and_then(|it| it.point);
    // The heap is damaged long before it is looked at.
    if result.overflow.is_some() {
        return Ok(written);
    }
    let averts = |it: &Ending| ends_well(it, criterion, ending);
    add_unset(result, engine, &history, (limit, &averts))?;
    let found = engine.switched(&failing.points, &history, limit, averts);
    let found = if_supported(found.map(Some))?.unwrap_or_default();
    let record = |it: &Switched| SwitchedRecord {
        condition: frame_record(engine, it.at),
        by: it.by.as_ref().map(|by| origin_record(engine, by)),
    };
    result.switched = found.iter().map(record).collect();
    if result.access.is_some() {
        add_access(result, engine, failing, Some(&history))?;
    } else if result.freed_early.is_empty() && result.moved_early.is_empty() {
        match if_supported(engine.copied_early(&history, limit, averts))? {
            Some(copied) => {
                result.moved_early = frame_records(engine, &copied.calls);
                result.is_copied = true;
                result.freed_together = copied.together;
                result.used_late = frame_records(engine, &copied.used);
            }
            None => add_beyond(result, engine, failing, &history)?,
        }
    }
    Ok(written)
}

/// Adds to a result the variable whose value makes the run fail and that the failing run reads
/// before anything sets it, or reads before it is set again in a new use of its record. The
/// variable is one of those whose values `history` traces; with another value in the variable, the
/// run does not fail. Each test of this is a run that may take `limit`; `averts` returns true for
/// the end of a run that does not fail. Adds nothing if there is no such variable.
///
/// # Errors
/// When the runs cannot be made.
fn add_unset(
    result: &mut Explanation,
    engine: &mut Engine,
    history: &History,
    (limit, averts): (TimeLimit, impl Fn(&Ending) -> bool),
) -> Result<(), EngineError> {
    let origins = || {
        let last = history.origin.iter();
        last.flat_map(|it| std::iter::once(it).chain(&it.earlier))
    };
    let unset = origins().filter_map(|it| it.unset.as_ref().map(|unset| (unset, it.read)));
    for (unset, read) in unset.take(UNSET) {
        let found = engine.unset_variable((unset, read), limit, &averts);
        let Some(found) = if_supported(found)? else {
            continue;
        };
        // That its memory is used again before it is set is told here.
        if result.used_late.is_empty() {
            result.freed_early.clear();
            result.moved_early.clear();
        }
        result.unset = Some(UnsetRecord {
            read: read.map(|pc| frame_record(engine, pc)),
            instead: found.instead.to_owned(),
            is_local: found.is_local,
            is_reused: false,
            since: since(engine, &unset.calls, found.is_local.then_some(&found.name)),
            beside: frame_records(engine, &found.beside),
            variable: found.name,
        });
        return Ok(());
    }
    for it in origins().filter(|it| it.memory.is_some()).take(REUSED) {
        let Some(memory) = it.memory else { continue };
        let found = engine.reused_variable(memory, limit, &averts);
        if let Some(found) = if_supported(found)? {
            result.unset = Some(UnsetRecord {
                variable: found.name,
                read: it.read.map(|pc| frame_record(engine, pc)),
                instead: "0".to_owned(),
                is_local: false,
                is_reused: true,
                since: frame_records(engine, &it.written),
                beside: frame_records(engine, &found.beside),
            });
            return Ok(());
        }
    }
    Ok(())
}

/// Adds to a result the conditions that avert the failure when they are decided the other way. The
/// conditions of the failing run are tried, each in a run that may take `limit`. Nothing is added
/// if the failing run has not crashed, or if it has written past the end of a heap block.
///
/// # Errors
/// When the runs cannot be made.
fn add_critical(
    result: &mut Explanation,
    engine: &mut Engine,
    criterion: &Criterion,
    failing: &Trace,
    limit: TimeLimit,
) -> Result<(), EngineError> {
    let ending = &failing.ending;
    let is_panic = engine.ends_at_panics && ending.ended == Ended::Exit(RUST_PANIC);
    let is_crash = ending.crash.is_some() || is_panic;
    if !is_crash || engine.info.is_empty() || result.overflow.is_some() {
        return Ok(());
    }
    let averts = |it: &Ending| ends_well(it, criterion, ending);
    let critical = engine.critical(&failing.points, limit, averts);
    let critical = if_supported(critical.map(Some))?.unwrap_or_default();
    let record = |it: &Critical| CriticalRecord {
        place: frame_records(engine, &it.calls),
        execution: it.decision.nth,
        reaches: it.reaches,
        is_like: it.is_like,
        status: it.status,
        decided: it.decision.decided,
        values: it.values.clone(),
    };
    result.critical = critical.iter().map(record).collect();
    Ok(())
}

/// Returns the heap block past whose end the failing run of `it` writes, so that it damages what the
/// allocator keeps there; `None` if it only reads there, or if AddressSanitizer ends it before.
pub(crate) fn damaged_block(it: &Explanation) -> Option<&OverflowRecord> {
    let block = it.overflow.as_ref();
    block.filter(|block| !block.reads && it.access.is_none())
}

/// Adds to a result the mutants of the program that keep the failing run from failing, within a
/// share of the remaining time. Runs of the inputs `others` show how much else a mutant changes;
/// for the first inputs, `first` in number, the executed statements are recorded.
///
/// # Errors
/// When the runs cannot be made.
pub fn add_mutants(
    result: &mut Explanation,
    engine: &mut Engine,
    (criterion, failing, limit): (&Criterion, &Trace, TimeLimit),
    (others, first): (&[SimilarInput], usize),
) -> Result<(), EngineError> {
    if engine.info.is_empty() {
        return Ok(());
    }
    engine.damages_heap = damaged_block(result).is_some();
    engine.facts_until = engine.whole_time().part(MUTANTS);
    let averts = |it: &MutantEnd| match criterion {
        _ if it.is_heap_damaged => false,
        Criterion::Crash(_) => matches!(it.ended, Ended::Exit(_)),
        Criterion::Exit(..) => it.ended == Ended::Exit(0),
        Criterion::Wrong(wrong) => it.ended == failing.ending.ended && !wrong.is_match(&it.output),
    };
    let wrong = match criterion {
        Criterion::Wrong(wrong) => Some(wrong),
        Criterion::Crash(_) | Criterion::Exit(..) => None,
    };
    let all = others;
    let others = OtherInputs { all, first, wrong };
    let tests = engine.tests;
    let found = engine.averting_mutants(failing, limit, averts, &others);
    // They are counted apart from tests at a point.
    result.mutant_runs = std::mem::replace(&mut engine.tests, tests) - tests;
    engine.facts_until = engine.whole_time();
    let record = |it: &Averting| MutantRecord {
        place: frame_record(engine, it.mutant.pc),
        calls: frame_records(engine, &it.mutant.calls()[1..]),
        change: engine.change_of(&it.mutant),
        is_like: it.is_like,
        status: it.status,
        passing: it.others,
        alike: it.alike,
        failing: it.failing,
        mended: it.mended,
    };
    let Mutated {
        found,
        left,
        telling,
    } = if_supported(found.map(Some))?.unwrap_or_default();
    result.mutants = found.iter().map(record).collect();
    result.telling = telling.map(|it| TellingRecord {
        place: frame_record(engine, it.statement),
        failing: it.failing,
        passing: it.passing,
        others: it.others,
    });
    if left.0 > 0 {
        let (left, all) = left;
        result.untried.push(format!("{left} of {all} mutants"));
    }
    Ok(())
}

/// Returns the records of the nested calls `calls`, innermost first, in which the life of a variable
/// begins. If the variable is a local one with the name `local` (or a part of one), the first
/// record has the line that declares it, if that is known.
fn since(engine: &Engine, calls: &[u64], local: Option<&String>) -> Vec<FrameRecord> {
    let mut found = frame_records(engine, calls);
    let declared = local.zip(calls.first()).and_then(|(name, pc)| {
        let name = name.split(['.', '[', '-']).next()?;
        engine.declared_at(*pc, name)
    });
    if let (Some(line), Some(first)) = (declared, found.first_mut()) {
        first.line = Some(line);
    }
    found
}

/// Records the failing run instruction by instruction if it is short, and adds to a result what is
/// odd in the recording, tested in runs that may take `limit`, and the statements on which the
/// failure depends.
///
/// # Errors
/// When the run cannot be made.
fn add_observed(
    result: &mut Explanation,
    engine: &mut Engine,
    criterion: &Criterion,
    failing: &Trace,
    limit: TimeLimit,
) -> Result<(), EngineError> {
    if_supported(engine.record_whole(&failing.points).map(Some))?;
    let averts = |it: &Ending| ends_well(it, criterion, &failing.ending);
    let seen = if_supported(engine.observed(failing, limit, averts).map(Some))?;
    let seen = seen.unwrap_or_default();
    let record = |it: &Odd| SuspectRecord {
        place: frame_records(engine, &it.calls),
        why: match it.oddity {
            Oddity::ChangesKey => "changes the value by which this record is filed",
            Oddity::WritesFreed => "writes to memory that was freed",
            Oddity::ChoosesPlace => CHOOSES_PLACE,
        }
        .to_owned(),
        tested: it.tested,
    };
    result.observed = seen.odd.iter().map(record).collect();
    let nearest = seen.nearest.iter().map(|pc| frame_record(engine, *pc));
    for place in nearest.filter(|it| it.line > Some(0)) {
        // Several of its instructions may be among them.
        if result.depends.len() < DEPENDS && !result.depends.contains(&place) {
            result.depends.push(place);
        }
    }
    Ok(())
}

/// Adds to a result the heap block past whose end the failing run accessed memory when it crashed:
/// the block from whose pointer the accessed address was computed. `history` says where the values
/// of the crash came from. Adds nothing if there is no such block.
fn add_beyond(
    result: &mut Explanation,
    engine: &mut Engine,
    failing: &Trace,
    history: &History,
) -> Result<(), EngineError> {
    let Some(found) = if_supported(engine.beyond(history))? else {
        return Ok(());
    };
    result.overflow = Some(beyond_record(engine, failing, &found)?);
    Ok(())
}

/// Returns the number of places, among those of the calls that allocated `block`, whose functions
/// return the block to their caller.
fn wrappers(engine: &Engine, block: &Allocated) -> usize {
    frame_records(engine, &block.calls[..block.wrappers]).len()
}

/// Returns the record of an access past the end of a heap block at which the failing run ended,
/// with the origin of the block's size.
fn beyond_record(
    engine: &mut Engine,
    failing: &Trace,
    found: &Beyond,
) -> Result<OverflowRecord, EngineError> {
    let size = if_supported(engine.size_origin(&failing.points, found.block.asked))?;
    Ok(OverflowRecord {
        bytes: found.block.size,
        allocated: frame_records(engine, &found.block.calls),
        wrappers: wrappers(engine, &found.block),
        passes_size: size.as_ref().is_some_and(|it| it.1),
        size: size.map(|it| origin_record(engine, &it.0)),
        extent: None,
        writer: frame_record(engine, found.at),
        reads: found.is_read,
        is_averted: false,
    })
}

/// Adds to a result two bad accesses of the failing run: a write that reaches out of its variable
/// into another, if the run does not fail without the write, or fails in another way; and a read
/// outside of an array, if the run does not fail with another value read. If the result already has
/// an access past the end of a heap block, no such write is searched for. With that access, a write
/// without which the run does not fail, a variable that is read before anything sets it, or a bad
/// access that AddressSanitizer reports, the read is added only if it is of a text that has no
/// terminating zero in its array. Nothing is added if AddressSanitizer reports a use of freed
/// memory, or if the run was not recorded. A changed run may take `limit`.
///
/// # Errors
/// When the runs cannot be made.
pub fn add_overrun(
    result: &mut Explanation,
    engine: &mut Engine,
    (criterion, failing, limit): (&Criterion, &Trace, TimeLimit),
) -> Result<(), EngineError> {
    let is_known = result.overflow.is_some();
    if engine.is_raw || result.access.as_ref().is_some_and(|it| it.is_of_freed()) {
        return Ok(());
    }
    let averts = |it: &Ending| ends_well(it, criterion, &failing.ending);
    if result.access.is_some() {
        let found = if_supported(engine.reported_text(failing, limit, averts))?;
        result.overread = found.map(|it| overread_record(engine, &it));
        return Ok(());
    }
    // A run that writes far behind a block is mostly too long.
    if is_known && engine.whole.run.is_none() {
        return Ok(());
    }
    let Some(accesses) = if_supported(engine.accesses(failing))? else {
        return Ok(());
    };
    let fails = |it: &Ending| criterion.fails(it) || it.ended == Ended::Timeout;
    if !is_known {
        let found = if_supported(engine.overrun(&accesses, limit, (averts, fails)))?;
        result.overrun = found.map(|it| overrun_record(engine, &it));
    }
    let is_written = result.overrun.as_ref().is_some_and(|it| it.is_averted);
    let is_text = is_known || is_written || result.unset.is_some();
    let found = if_supported(engine.overread(&accesses, limit, averts, is_text))?;
    result.overread = found.map(|it| overread_record(engine, &it));
    Ok(())
}

/// Converts a read outside of an array, `it`, to its record in the result; addresses become
/// function, file and line.
fn overread_record(engine: &Engine, it: &Overread) -> OverreadRecord {
    OverreadRecord {
        access: overrun_record(engine, &it.read),
        is_text: it.instead == Instead::Terminator,
        filled: frame_records(engine, &it.filled),
        instead: match it.instead {
            Instead::Nearest => "the nearest element".to_owned(),
            Instead::Zero | Instead::Terminator => "0".to_owned(),
        },
    }
}

/// Converts an access (write or read) that reaches out of its variable, `it`, to its record in the
/// result; addresses become function, file and line.
fn overrun_record(engine: &Engine, it: &Overrun) -> OverrunRecord {
    let (has, beyond) = (&it.crossing.has, &it.crossing.beyond);
    let from_start = it.written.start.wrapping_sub(has.start) as i64;
    let element = it.crossing.element;
    let object = it.crossing.object.as_str();
    let first = object.strip_prefix('*').filter(|_| it.is_element);
    let variable = first.unwrap_or(object);
    OverrunRecord {
        place: frame_records(engine, &it.calls),
        variable: variable.to_owned(),
        bytes: has.end - has.start,
        element: it.is_element.then(|| from_start.div_euclid(element as i64)),
        elements: (has.end - has.start) / element,
        written: it.written.end - it.written.start,
        beyond: beyond.end - beyond.start,
        into: it.crossing.into.clone(),
        return_of: it.return_of.map(|pc| frame_record(engine, pc).function),
        next: it.next.iter().map(|pc| frame_record(engine, *pc)).collect(),
        is_averted: it.is_averted,
        is_unusual: it.is_unusual,
    }
}

/// Returns the record of where a value came from: function, file and line of the addresses in
/// `origin`.
pub fn origin_record(engine: &Engine, origin: &Origin) -> OriginRecord {
    OriginRecord {
        written: frame_records(engine, &origin.written),
        read: origin.read.map(|pc| frame_record(engine, pc)),
        unset: origin.unset.is_some(),
        in_both: false,
        copies: origin.is_copy,
        out_of_range: origin.is_out_of_range,
        freed: origin.is_freed,
        operand: origin.operand,
        selects: origin.selects,
        earlier: (origin.earlier.iter())
            .map(|it| origin_record(engine, it))
            .collect(),
    }
}

/// Finds the heap block past whose end the failing run has written; `None` if there is none, or if
/// the failure is not a crash.
fn overflow(engine: &mut Engine, criterion: &Criterion) -> Result<Option<Overflow>, EngineError> {
    if !matches!(criterion, Criterion::Crash(_)) {
        return Ok(None);
    }
    if_supported(engine.overflow(|ending| criterion.fails(ending)))
}

/// Returns true if a changed run that ended as `it` says counts as one without failure. If the
/// failing run crashes, this is any exit; if it exits with a failing status, an exit with status 0;
/// if only its output is wrong, the same end as that of the failing run, with output that is not
/// wrong.
pub(crate) fn ends_well(it: &Ending, criterion: &Criterion, failing: &Ending) -> bool {
    match criterion {
        Criterion::Crash(_) => it.crash.is_none() && matches!(it.ended, Ended::Exit(_)),
        Criterion::Exit(..) => it.ended == Ended::Exit(0),
        Criterion::Wrong(_) => it.ended == failing.ended && !criterion.fails(it),
    }
}
