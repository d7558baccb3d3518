//! How an input ended, be it by a crash or over a limit.

use crate::exec::{Ended, ExecError};
use crate::store::Kind;
use crate::triage::{Crash, Triager, Verdict};

/// How an input ended.
pub struct Examined {
    /// How the last try did.
    pub ended: Ended,
    /// Tries made.
    pub tries: u32,
    /// The crash, or the record of a run over its limits.
    pub crash: Option<Box<Crash>>,
}

/// Runs the input until it crashes, three times at most.
pub fn examined(triager: &mut Triager, input: &[u8]) -> Result<Examined, ExecError> {
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

/// The kind of finding that a crash is; one that did not come in each try is flaky.
pub fn kind_of(crash: &Crash) -> Kind {
    match crash.class.0.as_str() {
        _ if crash.hits < crash.tries => Kind::Flaky,
        "hang" => Kind::Hang,
        "oom" => Kind::Oom,
        _ => Kind::Crash,
    }
}
