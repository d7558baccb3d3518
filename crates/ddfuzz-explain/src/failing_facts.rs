//! What the failing run alone shows, for the result: its heap, and where the value came from by which
//! it crashed.

use std::time::Duration;

use ddfuzz_exec::{Ended, RUST_PANIC};

use crate::engine::origin::Origin;
use crate::engine::overflow::{AllocationCall, Overflow};
use crate::engine::switched::Switched;
use crate::engine::{Criterion, Ending, Engine, EngineError, Trace, if_supported};
use crate::places::{frame_record, frame_records};
use crate::report::{Explanation, OriginRecord, OverflowRecord, SwitchedRecord};

/// Adds to a result the heap block behind whose end the failing run has written; where there is none,
/// the call of `free` without which it does not fail, else the call of `realloc` without whose move of a
/// block it does not, each with the calls that led to it. Returns the call by which the block of an
/// overflow was allocated.
///
/// # Errors
/// When the runs cannot be made.
pub fn add_heap_facts(
    result: &mut Explanation,
    engine: &mut Engine,
    criterion: &Criterion,
    failing: &Ending,
) -> Result<Option<AllocationCall>, EngineError> {
    let found = overflow(engine, criterion)?;
    let asked = found.as_ref().map(|it| it.block.asked);
    result.overflow = found.map(|it| OverflowRecord {
        bytes: it.block.size,
        allocated: frame_records(engine, &it.block.calls),
        size: None,
        writer: frame_record(engine, it.writer.pc),
        is_averted: it.is_averted,
    });
    if result.overflow.is_some() || engine.info.is_empty() {
        return Ok(asked);
    }
    let averts = |it: &Ending| ends_well(it, criterion, failing);
    if let Some(freed) = if_supported(engine.freed_early(averts))? {
        result.freed_early = frame_records(engine, &freed.calls);
        result.used_late = frame_records(engine, &freed.used);
    } else if let Some(moved) = if_supported(engine.moved_early(|it| criterion.fails(it), averts))?
    {
        result.moved_early = frame_records(engine, &moved.calls);
        result.used_late = frame_records(engine, &moved.used);
    }
    Ok(asked)
}

/// Finds where the size of a heap block came from, by the call `asked` that has allocated the block
/// in the run of `trace`; `None` where that is not known.
///
/// # Errors
/// When the runs cannot be made.
pub fn size_origin(
    engine: &mut Engine,
    trace: &Trace,
    asked: AllocationCall,
) -> Result<Option<OriginRecord>, EngineError> {
    let found = if_supported(engine.size_origin(&trace.points, asked))?;
    Ok(found.map(|it| origin_record(engine, &it)))
}

/// Adds to a result where the value came from by which the failing run has crashed (a bad pointer, a
/// divisor, or what was compared before the program ended itself), and the conditions whose other
/// decision averts the failure, each tested in a run that may take `limit`. Nothing is added where the
/// run has not crashed, or where that is not known.
///
/// # Errors
/// When the runs cannot be made.
pub fn add_crash_facts(
    result: &mut Explanation,
    engine: &mut Engine,
    criterion: &Criterion,
    failing: &Trace,
    limit: Duration,
) -> Result<(), EngineError> {
    let ending = &failing.ending;
    let is_panic = engine.ends_at_panics && ending.ended == Ended::Exit(RUST_PANIC);
    if ending.crash.is_none() && !is_panic || engine.info.is_empty() {
        return Ok(());
    }
    let Some(history) = if_supported(engine.crash_history(failing))? else {
        return Ok(());
    };
    let record = |it: &Origin| origin_record(engine, it);
    result.origin = history.origin.as_ref().map(record);
    // The heap is damaged long before it is looked at.
    if result.overflow.is_some() {
        return Ok(());
    }
    let averts = |it: &Ending| ends_well(it, criterion, ending);
    let found = engine.switched(&failing.points, &history, limit, averts);
    let found = if_supported(found.map(Some))?.unwrap_or_default();
    let record = |it: &Switched| SwitchedRecord {
        condition: frame_record(engine, it.at),
        by: it.by.as_ref().map(|by| origin_record(engine, by)),
    };
    result.switched = found.iter().map(record).collect();
    Ok(())
}

/// Returns the record of where a value came from: function, file and line of the addresses in
/// `origin`.
pub fn origin_record(engine: &Engine, origin: &Origin) -> OriginRecord {
    OriginRecord {
        written: frame_records(engine, &origin.written),
        read: origin.read.map(|pc| frame_record(engine, pc)),
        unset: origin.is_unset,
        copies: origin.is_copy,
        out_of_range: origin.is_out_of_range,
        earlier: (origin.earlier.iter())
            .map(|it| origin_record(engine, it))
            .collect(),
    }
}

/// Finds the heap block past whose end a crashed run has written; `None` where there is none.
fn overflow(engine: &mut Engine, criterion: &Criterion) -> Result<Option<Overflow>, EngineError> {
    if !matches!(criterion, Criterion::Crash(_)) {
        return Ok(None);
    }
    if_supported(engine.overflow(|ending| criterion.fails(ending)))
}

/// Whether a changed run ends well, and not only in another way than the failing one.
fn ends_well(it: &Ending, criterion: &Criterion, failing: &Ending) -> bool {
    match criterion {
        Criterion::Crash(_) => it.crash.is_none() && matches!(it.ended, Ended::Exit(_)),
        Criterion::Exit(..) => it.ended == Ended::Exit(0),
        Criterion::Wrong(_) => it.ended == failing.ended && !criterion.fails(it),
    }
}
