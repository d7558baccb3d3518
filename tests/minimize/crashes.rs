//! Made-up crashes.

use ddfuzz::exec::{Ended, Limits, Way};
use ddfuzz::minimize::{Slip, SlipKeys};
use ddfuzz::triage::{Class, Confidence, Crash, Details, Key, Keys, Severity};

/// A key by name.
pub fn key(name: &str) -> Key {
    Key::of([name.as_bytes()])
}

/// The keys of a slip by name.
pub fn keys(major: &str, minor: &str) -> SlipKeys {
    SlipKeys {
        major: key(major),
        minor: key(minor),
    }
}

/// A crash with these keys.
pub fn crash(class: &str, keys: SlipKeys) -> Crash {
    Crash {
        v: 1,
        keys: Keys {
            major: keys.major,
            minor: keys.minor,
            stable: None,
            version: 1,
        },
        class: Class(class.to_owned()),
        ended: Ended::Signal(libc::SIGSEGV),
        confidence: Confidence::High,
        severity: Severity::Low,
        severity_reason: "made up".to_owned(),
        way: Way::Mock,
        capture: "mock".to_owned(),
        hits: 1,
        tries: 1,
        frames: Vec::new(),
        limits: Limits::default(),
        details: Details::default(),
        found: None,
        preceding: Vec::new(),
        of: None,
    }
}

/// A slip into a crash with these keys.
pub fn slip(keys: SlipKeys, input: &[u8]) -> Slip {
    let crash = Some(Box::new(crash("segv", keys)));
    Slip {
        class: Class("segv".to_owned()),
        keys,
        crash,
        input: input.to_vec(),
    }
}
