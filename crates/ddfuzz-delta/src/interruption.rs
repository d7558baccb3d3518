//! Ends work on a large input before it is done: a step of a search, reading a file of a known format, or
//! putting it together.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Tells whether work is to end.
pub type Interruption = Arc<dyn Fn() -> bool + Send + Sync>;

thread_local! {
    /// What tells whether the present work of this thread is to end; `None` for work that goes on to its end.
    static PRESENT: RefCell<Option<Interruption>> = const { RefCell::new(None) };
}

/// What unwinds the stack of work that is interrupted.
struct Interrupted;

/// Does `work`, and returns its result; `None` if it was to end by `interruption` before it was done, and
/// [asked](check) since. What the work has changed is then of no use. Without an interruption, the work goes
/// on to its end.
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

/// Ends the present work if it is to end: loops that take long on large inputs ask now and then. No panic is
/// reported.
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
