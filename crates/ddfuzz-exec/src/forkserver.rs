//! The way `forkserver`: a program compiled by AFL++ (`afl-clang-fast`, `afl-clang-lto`,
//! `afl-gcc-fast`), run through its own fork server.

use super::afl::Forkserver;
use super::place::Place;
use super::{ExecError, Freshness, Target, Way};

/// Starts `target` by its own fork server. Runs share a process where that is permitted and the
/// program is built for it (`__AFL_LOOP`).
pub(crate) fn start(target: &Target, freshness: Freshness) -> Result<Forkserver, ExecError> {
    Forkserver::start(target, Place::prepare(target, Way::Forkserver)?, freshness)
}
