//! Names a crash by what the dying process has copied of itself (crash-keys.md, "Capture", 2):
//! the same reading as of a process that is traced, of other memory.

mod memory;
mod slot;

use std::time::Instant;

use super::aftermath::is_aftermath;
use super::maps::Maps;
use super::modules::ModuleCache;
use super::reading::{Cause, Stopped, has_address, interpret};
use super::snapshot::{Event, Snapshot};
use super::source::Source;
use super::tracee::Untraced;
use ddfuzz_exec::{Copies, Ended};
use memory::CopiedMemory;
use slot::Slot;

/// How a run ended, by the first process that died of a crash, and what was read off the copy
/// that this one has left; without a copy, how it was seen to end.
pub(crate) fn read(run: &Untraced, cache: &mut ModuleCache) -> (Ended, Option<Box<Snapshot>>) {
    match &run.copies {
        Some(copies) => read_copies(copies, run.ended, cache),
        None => (run.ended, None),
    }
}

/// The same of the copies themselves.
pub(crate) fn read_copies(
    copies: &Copies,
    ended: Ended,
    cache: &mut ModuleCache,
) -> (Ended, Option<Box<Snapshot>>) {
    let mut slots: Vec<Slot> = (0..copies.slots())
        .filter_map(|number| Slot::read(copies, number))
        .collect();
    slots.sort_by_key(|slot| slot.number);
    let deadly = slots.iter().find(|slot| slot.deadly.is_some());
    // A target that has forbidden itself the calls by which the copy is made dies of those.
    let signal = deadly.and_then(|slot| slot.deadly);
    let ended = signal.map_or(ended, Ended::Signal);
    if !matches!(ended, Ended::Signal(_)) || !ended.is_crash(None) {
        return (ended, None);
    }
    let process = deadly.or(slots.last()).map(|slot| slot.process);
    cache.know_copied_target(copies.target());
    let of_process = slots.iter().filter(|slot| Some(slot.process) == process);
    (ended, last(copies, of_process, cache).map(Box::new))
}

/// What the last of these copies shows that does not only follow from the one before.
fn last<'a>(
    copies: &Copies,
    slots: impl Iterator<Item = &'a Slot>,
    cache: &mut ModuleCache,
) -> Option<Snapshot> {
    let mut last: Option<(&Slot, Snapshot)> = None;
    let mut dies = false;
    for slot in slots {
        dies |= slot.deadly.is_some();
        let snapshot = interpret_slot(copies, slot, cache);
        let follows = last.as_ref().is_some_and(|(before, earlier)| {
            before.thread == slot.thread && is_aftermath(earlier, &snapshot)
        });
        if !follows {
            last = Some((slot, snapshot));
        }
    }
    last.map(|(slot, snapshot)| Snapshot {
        // Of a signal that the target handled, nobody knows whether it died of that.
        torn: !slot.whole || !dies,
        ..snapshot
    })
}

fn interpret_slot(copies: &Copies, slot: &Slot, cache: &mut ModuleCache) -> Snapshot {
    let began = Instant::now();
    let event = Event::Signal {
        number: slot.signal,
        code: slot.code,
    };
    let cause = Cause {
        event,
        address: has_address(slot.signal, slot.code).then_some(slot.address),
    };
    let maps = Maps::parse(&slot.maps);
    let mut memory = CopiedMemory::new(copies, slot, &maps);
    let source = Source::Copied {
        entry: slot.entry,
        executable: slot.executable,
    };
    let stopped = Stopped {
        registers: slot.registers.clone(),
        maps: &maps,
        source: &source,
    };
    let snapshot = interpret(cause, stopped, &mut memory, cache);
    Snapshot {
        took: began.elapsed(),
        ..snapshot
    }
}
