//! The list of the programs that avoid tracers: such a program checks whether it is traced, and
//! crashes only if it is not. All triagers of this process share the list.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Paths of the programs that avoid tracers (crash only if they are not traced), as found by all
/// triagers of this process.
static AVOIDING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Returns the paths of the programs that avoid tracers (crash only if they are not traced), locked
/// for the calling thread.
pub(crate) fn avoiding() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    AVOIDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the paths of the programs that avoid tracers, as triagers of this process have found:
/// such a program looks for a tracer (`PTRACE_TRACEME`), and crashes only if there is none.
/// Triagers run it without a tracer, and compute the keys of its crashes as they do where ptrace is
/// forbidden.
pub fn programs_avoiding_tracers() -> Vec<PathBuf> {
    avoiding().iter().cloned().collect()
}
