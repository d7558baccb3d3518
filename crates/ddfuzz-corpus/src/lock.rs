//! Locks that one thread of several may have failed under.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whoever held it has failed, and says so; what it holds is whole all the same.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
