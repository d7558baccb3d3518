//! What a target does when it is run.

use serde::Serialize;

use crate::exec::{Ended, Executor};

/// A text that looks like something to most programs that read text.
const TEXT: &[u8] = b"1 2 3\nname = value\n";

/// What was seen when it ran on nothing and on a short text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Behaviour {
    /// How it ended on an empty input.
    pub on_nothing: Option<String>,
    /// How it ended on a short text.
    pub on_text: Option<String>,
    /// How many bytes of that text it read; `None` where that cannot be told.
    pub read: Option<u64>,
    /// Whether it was stopped at a limit on the empty input.
    pub waits: bool,
}

/// Runs the target twice.
pub(super) fn observe(executor: &mut dyn Executor) -> Behaviour {
    let nothing = executor.run(b"").ok();
    let text = executor.run(TEXT).ok();
    Behaviour {
        on_nothing: nothing.map(|run| run.ended.to_string()),
        on_text: text.map(|run| run.ended.to_string()),
        read: text.and_then(|run| run.read),
        waits: nothing.is_some_and(|run| run.ended == Ended::Timeout),
    }
}
