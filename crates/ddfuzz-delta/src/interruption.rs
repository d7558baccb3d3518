//! Interrupts long work on a large input before it is done: a step of a search, or parsing or
//! writing a file of a known format.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Function that is called again and again during long work, and returns true when the work is to
/// be interrupted.
pub type Interruption = Arc<dyn Fn() -> bool + Send + Sync>;

thread_local! {
    /// The function that decides whether the work of this thread should be interrupted; `None` if
    /// the work always runs to its end.
    static PRESENT: RefCell<Option<Interruption>> = const { RefCell::new(None) };
}

/// Payload of the panic by which [`check`] unwinds the stack of interrupted work.
struct Interrupted;

/// Calls `work` and returns its result. Returns `None` if `interruption` returned true at a call of
/// [`check`] inside of `work`; whatever `work` was changing is then in an undefined state and must
/// not be used. Without an `interruption`, `work` runs to its end.
pub fn interruptible<T>(
    interruption: Option<&Interruption>,
    work: impl FnOnce() -> T,
) -> Option<T> {
    let before = PRESENT.replace(interruption.cloned());
    let done = catch_unwind(AssertUnwindSafe(work));
    PRESENT.set(before);
    match done {
        Ok(result) => Some(result),
        Err(cause) if cause.is::<Interrupted>() => None,
        Err(cause) => resume_unwind(cause),
    }
}

/// Interrupts the work of this thread if its [`Interruption`] returns true. Loops that may take
/// long on large inputs call this function. Unwinds the stack like a panic, but prints no message.
pub fn check() {
    let is_over = PRESENT.with_borrow(|present| present.as_ref().is_some_and(|ends| ends()));
    if is_over {
        resume_unwind(Box::new(Interrupted));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Interruption, check, interruptible};

    #[test]
    fn only_work_that_is_to_end_ends() {
        let [up, down]: [Interruption; 2] = [Arc::new(|| true), Arc::new(|| false)];
        let (up, down) = (Some(&up), Some(&down));
        let work = || {
            check();
            7
        };
        assert_eq!(interruptible(up, work), None);
        assert_eq!(interruptible(down, work), Some(7));
        // Work inside of other work has its own interruption.
        assert_eq!(interruptible(down, || interruptible(up, work)), Some(None));
        let inside = |other| interruptible(up, || interruptible(other, work));
        assert_eq!(inside(down), Some(Some(7)));
        assert_eq!(inside(None), Some(Some(7)));
        check();
    }
}
