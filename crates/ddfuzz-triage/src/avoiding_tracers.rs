//! The programs that avoid tracers, for all triagers of this process.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Paths of the programs that avoid tracers, for all triagers of this process.
static AVOIDING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Returns the paths of the programs that avoid tracers, locked for the calling thread.
pub(crate) fn avoiding() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    AVOIDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the paths of the programs that have shown to triagers of this process that they avoid
/// tracers: they fail without one only, since they look for one (`PTRACE_TRACEME`). They are run
/// without a tracer, and their crashes are named as where ptrace is forbidden.
pub fn programs_avoiding_tracers() -> Vec<PathBuf> {
    avoiding().iter().cloned().collect()
}
