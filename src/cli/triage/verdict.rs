//! How an input ended, be it by a crash or over a limit.

use crate::exec::{Ended, ExecError};
use crate::store::Kind;
use crate::store::foreign::{Input, Promise};
use crate::triage::{Class, Crash, Keys, Severity, Triager, Verdict};

/// How an input ended.
pub struct Examined {
    /// How the last try did.
    pub ended: Ended,
    /// Tries made.
    pub tries: u32,
    /// The crash, or the record of a run over its limits.
    pub crash: Option<Box<Crash>>,
}

/// Whether who named the file has seen a leak.
pub fn may_leak(input: &Input) -> bool {
    (input.named).is_some_and(|named| named.promise == Promise::Leak)
}

/// Runs the input until it crashes, three times at most; and with `leaks`, if it does not, once
/// more to look for leaks.
pub fn examined(triager: &mut Triager, input: &[u8], leaks: bool) -> Result<Examined, ExecError> {
    triager.look_for_leaks(leaks);
    Ok(match triager.examine(input)? {
        Verdict::Crash(crash) => Examined {
            ended: crash.ended,
            tries: crash.tries,
            crash: Some(crash),
        },
        Verdict::Flaky { tries, ended } => Examined {
            ended,
            tries,
            crash: match ended {
                // Nobody has looked at where it was when its time or memory ran out.
                Ended::Timeout | Ended::OutOfMemory => Some(Box::new(Crash {
                    hits: tries,
                    tries,
                    ..triager.unwatched(ended)
                })),
                Ended::Exit(_) | Ended::Signal(_) => None,
            },
        },
    })
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
