//! What stands between `target_main` and the closure.

use std::ffi::c_int;
use std::sync::Once;

use crate::{Status, panics};

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
        panics::abort_behind_the_hook();
    });
    target(input).status()
}
