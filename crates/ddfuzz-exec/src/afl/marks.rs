//! What AFL++'s compilers write into a program for its fuzzers to find.

use std::path::Path;

use super::super::elf;

/// In programs with `__AFL_LOOP` (AFL++'s `PERSIST_SIG`).
const PERSISTENT: &[u8] = b"##SIG_AFL_PERSISTENT##";
/// In programs with `__AFL_INIT` (AFL++'s `DEFER_SIG`).
const DEFERRED: &[u8] = b"##SIG_AFL_DEFER_FORKSRV##";

/// What the program is built for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// One process can take many inputs.
    pub(super) persistent: bool,
    /// The fork server comes up where the program calls for it, and not before `main`.
    pub(super) deferred: bool,
}

impl Marks {
    /// Those of the program at `path`; none where it cannot be read.
    pub(super) fn of(path: &Path) -> Marks {
        let data = std::fs::read(path).unwrap_or_default();
        Marks {
            persistent: elf::holds(&data, PERSISTENT),
            deferred: elf::holds(&data, DEFERRED),
        }
    }
}
