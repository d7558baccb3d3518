//! Calls the closure of a harness with an input, and makes each panic abort the process.

use std::{ffi::c_int, sync::Once};

use crate::Status;

/// Returns the `length` bytes at `data` as a slice; the empty slice if `length` is 0.
///
/// # Safety
/// If `length` is not 0, `length` bytes at `data` can be read and do not change while the slice
/// exists.
pub unsafe fn input<'a>(data: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller guarantees it, and the address of at least one byte is not null.
    unsafe { std::slice::from_raw_parts(data, length) }
}

/// Runs the harness `target` on `input` and returns its exit status. Before the first input of the
/// process, calls `init` and makes panics abort the process.
pub fn enter<S: Status>(
    init: impl FnOnce(),
    target: impl FnOnce(&[u8]) -> S,
    input: &[u8],
) -> c_int {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        init();
        // After `init`, which may have set a panic hook: that hook runs first.
        abort_after_hook();
    });
    target(input).status()
}

/// Installs a panic hook that first calls the panic hook installed before, which prints the
/// message, and then aborts the process. The stack is not unwound, so it still shows where the
/// panic began, and no code can catch the panic.
///
/// ddfuzz recognizes the frames of this crate and of the standard library, and classifies the crash
/// by the frames after them.
pub(crate) fn abort_after_hook() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        std::process::abort();
    }));
}
