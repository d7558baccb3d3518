//! Ends work on a large input before it is done: a step of a search, reading a file of a known format, or
//! putting it together.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// The flag that ends the present work of this thread when it turns true; `None` for work that goes on
    /// to its end.
    static FLAG: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// What unwinds the stack of work that is interrupted.
struct Interrupted;

/// Does `work`, and returns its result; `None` if `flag` turned true before it was done, and the work
/// [asked](check) since. What the work has changed is then of no use. Without a flag, the work goes on to its end.
pub fn interruptible<T>(flag: Option<&Arc<AtomicBool>>, work: impl FnOnce() -> T) -> Option<T> {
    let before = FLAG.replace(flag.cloned());
    let done = catch_unwind(AssertUnwindSafe(work));
    FLAG.set(before);
    match done {
        Ok(result) => Some(result),
        Err(cause) if cause.is::<Interrupted>() => None,
        Err(cause) => resume_unwind(cause),
    }
}

/// Ends the present work if its flag has turned true: loops that take long on large inputs ask now and
/// then. No panic is reported.
pub fn check() {
    let is_over = FLAG.with_borrow(|flag| {
        let flag = flag.as_ref();
        flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    });
    if is_over {
        resume_unwind(Box::new(Interrupted));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::{check, interruptible};

    #[test]
    fn only_work_whose_flag_is_up_ends() {
        let [up, down] = [true, false].map(|flag| Arc::new(AtomicBool::new(flag)));
        let (up, down) = (Some(&up), Some(&down));
        let work = || {
            check();
            7
        };
        assert_eq!(interruptible(up, work), None);
        assert_eq!(interruptible(down, work), Some(7));
        // Work inside of other work has its own flag.
        assert_eq!(interruptible(down, || interruptible(up, work)), Some(None));
        assert_eq!(
            interruptible(up, || interruptible(down, work)),
            Some(Some(7))
        );
        assert_eq!(
            interruptible(up, || interruptible(None, work)),
            Some(Some(7))
        );
        check();
    }
}
