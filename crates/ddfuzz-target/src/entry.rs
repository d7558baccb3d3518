//! Calls the closure of a harness, and makes each panic abort the process.

use std::{ffi::c_int, sync::Once};

use crate::Status;

/// The input as a slice.
///
/// # Safety
/// `length` bytes at `data` can be read and do not change while the slice lives. Of no bytes the
/// address may be anything.
pub unsafe fn input<'a>(data: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: what the caller promises; of at least one byte the address is not null.
    unsafe { std::slice::from_raw_parts(data, length) }
}

/// Runs `target` on `input`, behind `init` where this is the first input of the process.
pub fn enter<S: Status>(
    init: impl FnOnce(),
    target: impl FnOnce(&[u8]) -> S,
    input: &[u8],
) -> c_int {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        init();
        // Behind `init`, which may have set a hook: that one is called first.
        abort_behind_the_hook();
    });
    target(input).status()
}

/// Lets each panic abort as soon as the hook that is set now has said what it says. Without
/// unwinding the stack still shows where the panic began, and nothing that would catch the panic
/// can hide it.
///
/// ddfuzz knows this crate's frames, as it does those of the standard library, and names the crash
/// by what is behind them.
pub(crate) fn abort_behind_the_hook() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        std::process::abort();
    }));
}
