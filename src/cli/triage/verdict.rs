//! How an input ended, be it by a crash or over a limit.

pub use crate::campaign::{Examined, examined};
use crate::store::Kind;
use crate::store::foreign::{Input, Promise};
use crate::triage::{Class, Crash, Keys, Severity, Triager};

/// Whether who named the file has seen a leak.
pub fn may_leak(input: &Input) -> bool {
    (input.named).is_some_and(|named| named.promise == Promise::Leak)
}

/// What is left of a crash that came once, with these keys, and in none of the tries behind it: no
/// one has looked at more than its keys.
pub fn came_once(triager: &Triager, keys: Keys, class: Class, tried: Examined) -> Examined {
    if tried.crash.is_some() {
        return tried;
    }
    let tries = tried.tries + 1;
    Examined {
        tries,
        crash: Some(Box::new(Crash {
            keys,
            class,
            hits: 1,
            tries,
            severity: Severity::Low,
            severity_reason: "it came once, and not again".to_owned(),
            ..triager.unwatched(tried.ended)
        })),
        ..tried
    }
}

/// The kind of finding that a crash is; one that did not come in each try is flaky.
pub fn kind_of(crash: &Crash) -> Kind {
    match crash.hits < crash.tries {
        true => Kind::Flaky,
        false => Kind::of_class(&crash.class),
    }
}
