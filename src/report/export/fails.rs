//! By what an exported test knows that a program still fails.

use super::Reproducer;
use crate::exec::{Ended, RUST_PANIC};
use crate::store::Kind;

/// Tools whose reports make a class. Some of them end the program with a status of their own.
pub(super) const SANITIZERS: [&str; 6] = ["asan", "hwasan", "lsan", "msan", "tsan", "ubsan"];

/// The status of a Go program that panics.
const GO_PANIC: i32 = 2;

/// Which ends of a program are failures, signals in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fails {
    /// Everything but success.
    Unless0,
    /// These statuses; those of shells for signals are among them by 129 to 159.
    With(Vec<i32>),
}

impl Fails {
    /// Those of a group.
    pub(super) fn of(group: &Reproducer) -> Fails {
        let tool = group.class.0.split(':').next().unwrap_or_default();
        // What gives up without memory does so by any status.
        if group.kind == Kind::Oom || SANITIZERS.contains(&tool) {
            return Fails::Unless0;
        }
        let mut with = match tool {
            "rustpanic" => vec![RUST_PANIC],
            "gopanic" => vec![GO_PANIC],
            _ => Vec::new(),
        };
        match group.ended {
            Ended::Exit(status) if status != 0 && !with.contains(&status) => with.push(status),
            _ => {}
        }
        Fails::With(with)
    }
}
