//! The bundled target `flex` as a libFuzzer harness: it generates scanners; 2121 characters without
//! a newline or NUL crash it.
#![no_main]

use libfuzzer_sys::fuzz_target;

unsafe extern "C" {
    /// Does its work on `size` bytes at `data`; 0, or 1 when the input was at fault.
    fn target_main(data: *const u8, size: usize) -> i32;
}

fuzz_target!(|data: &[u8]| {
    // SAFETY: the entry reads `size` bytes at `data` and keeps neither. (That it writes beyond a
    // buffer of its own is the bug that is looked for; a guard page ends the process there.)
    unsafe {
        target_main(data.as_ptr(), data.len());
    }
});
