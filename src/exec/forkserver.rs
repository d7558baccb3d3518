//! The way `forkserver`: a program compiled by AFL++ (`afl-clang-fast`, `afl-clang-lto`,
//! `afl-gcc-fast`), run through its own fork server.

use super::afl::Forkserver;
use super::place::Place;
use super::{ExecError, Freshness, Program, Target, elf};

/// Starts `target` by its own fork server. Runs share a process where that is permitted and the
/// program is built for it (`__AFL_LOOP`).
pub(crate) fn start(target: &Target, freshness: Freshness) -> Result<Forkserver, ExecError> {
    Forkserver::start(target, Place::prepare(target)?, freshness)
}

/// Whether the program has such a fork server, by its looks.
pub(crate) fn fits(target: &Target) -> bool {
    match &target.program {
        Program::Path(path) => elf::facts(path).is_some_and(|facts| facts.afl),
        Program::Bundled(_) => false,
    }
}
