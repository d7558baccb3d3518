//! Snapshots that no process ever was in.

use ddfuzz::triage::snapshot::{End, Event, RawFrame, Snapshot};
use ddfuzz::triage::{Class, Entry, Keys};

/// A frame of the program at `offset`, in the function that starts at the hundred below.
pub fn own(offset: u64) -> RawFrame {
    RawFrame {
        module: "exe".into(),
        offset,
        function_start: Some(offset - offset % 100),
        ..RawFrame::default()
    }
}

/// A frame of the C library in this function.
pub fn runtime(exported: &str) -> RawFrame {
    RawFrame {
        module: "libc.so.6".into(),
        offset: 5000,
        runtime: true,
        exported: Some(exported.into()),
        ..RawFrame::default()
    }
}

/// A frame of an entry function.
pub fn entry(offset: u64, entry: Entry) -> RawFrame {
    RawFrame {
        entry: Some(entry),
        ..own(offset)
    }
}

/// A process with these frames that died of a segmentation fault.
pub fn snapshot(frames: Vec<RawFrame>) -> Snapshot {
    let event = Event::Signal {
        number: libc::SIGSEGV,
        code: 1,
    };
    Snapshot {
        frames,
        end: End::Clean,
        ..Snapshot::bare(event)
    }
}

/// The keys of a snapshot as they come with default settings.
pub fn keys_of(snapshot: &Snapshot) -> (Class, Keys) {
    let named = ddfuzz::triage::class::class_and_keys(
        snapshot,
        2,
        &ddfuzz::triage::messages::Diagnostics::default(),
    );
    (named.class, named.keys)
}
