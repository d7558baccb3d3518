//! The programs that avoid tracers: they find out whether they are traced, and crash only if they
//! are not. All triagers of this process share the list.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Paths of the programs that avoid tracers, as found by all triagers of this process.
static AVOIDING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Returns the paths of the programs that avoid tracers, locked for the calling thread.
pub(crate) fn avoiding() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    AVOIDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the paths of the programs that avoid tracers, as triagers of this process have found:
/// their inputs crash only without a tracer, since they look for one (`PTRACE_TRACEME`). Triagers
/// run them without a tracer, and compute the keys of their crashes as where ptrace is forbidden.
pub fn programs_avoiding_tracers() -> Vec<PathBuf> {
    avoiding().iter().cloned().collect()
}
