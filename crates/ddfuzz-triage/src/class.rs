//! What kind of death (crash-keys.md, "Class").

use super::Class;
use super::fault::AddressClass;
use super::normalise::found_smashed;
use super::snapshot::{Control, End, Event, Snapshot};
use super::told::{Told, Words};
use ddfuzz_exec::Ended;

/// The class of a crash of which the stack was read.
pub fn classify(snapshot: &Snapshot) -> Class {
    let signal = match snapshot.event {
        Event::Exit(status) => return Class(format!("exit:{status}")),
        Event::Signal { number, .. } => number,
        Event::OutOfTime => return Class("hang".to_owned()),
        Event::OutOfMemory => return Class("oom".to_owned()),
    };
    let name = match snapshot.control {
        Control::WildCall => "wildcall",
        Control::Smashed => "smash",
        Control::Sound if found_smashed(snapshot) => "smash",
        Control::Sound if signal == libc::SIGSEGV && overflows(snapshot) => "stackoverflow",
        Control::Sound => return signal_class(signal),
    };
    Class(name.to_owned())
}

/// The class of a run that ended so and said this; `snapshot` is what was read off it.
pub fn classify_told(snapshot: Option<&Snapshot>, ended: Ended, told: &Told) -> Class {
    let plain = || match snapshot {
        Some(snapshot) => classify(snapshot),
        None => classify_ending(ended),
    };
    // What notices a smashed stack aborts as well.
    let smashed = || plain().0 == "smash";
    let class = match &told.words {
        Some(Words::Report(report)) => match report.signal_class() {
            // What was read at the signal itself knows better than the sanitizer.
            Some(_) if snapshot.is_some_and(faulted) => return plain(),
            Some(class) => class.to_owned(),
            None if report.is_over_limit() => "oom".to_owned(),
            None => format!("{}:{}", report.tool.name(), report.kind),
        },
        Some(Words::RustPanic(_)) if !smashed() => "rustpanic".to_owned(),
        Some(Words::GoPanic(_)) if !smashed() => "gopanic".to_owned(),
        _ => return plain(),
    };
    Class(class)
}

/// Whether it was read at another signal than the one by which programs abort themselves.
fn faulted(snapshot: &Snapshot) -> bool {
    snapshot
        .signal()
        .is_some_and(|signal| signal != libc::SIGABRT)
}

/// The class of a crash, hang or memory blow-up of which only the end is known.
pub fn classify_ending(ended: Ended) -> Class {
    match ended {
        Ended::Signal(signal) => signal_class(signal),
        Ended::Exit(status) => Class(format!("exit:{status}")),
        Ended::Timeout => Class("hang".to_owned()),
        Ended::OutOfMemory => Class("oom".to_owned()),
    }
}

fn signal_class(signal: i32) -> Class {
    let name = match signal {
        libc::SIGSEGV => "segv",
        libc::SIGBUS => "bus",
        libc::SIGFPE => "fpe",
        libc::SIGILL => "ill",
        libc::SIGABRT => "abrt",
        libc::SIGSYS => "sys",
        libc::SIGTRAP => "trap",
        other => return Class(format!("signal:{other}")),
    };
    Class(name.to_owned())
}

/// Whether the stack is used up: the fault lies just below it, or the stack is deeper than what
/// is read. A null pointer that is met deep in a recursion is no overflow.
fn overflows(snapshot: &Snapshot) -> bool {
    match snapshot.fault.class {
        Some(AddressClass::NearSp) => true,
        Some(AddressClass::Null | AddressClass::NonCanonical) => false,
        _ => snapshot.end == End::Cap,
    }
}
