//! What the harnesses of the bundled targets share.

/// The harness of the bundled target that is linked into the program.
#[macro_export]
macro_rules! bundled {
    () => {
        unsafe extern "C" {
            /// Does the target's work on `size` bytes at `data`; 0, or 1 when the input was at
            /// fault.
            fn target_main(data: *const u8, size: usize) -> i32;
        }

        libfuzzer_sys::fuzz_target!(|data: &[u8]| {
            // SAFETY: the entry reads `size` bytes at `data` and keeps neither. (That it writes
            // beyond a buffer of its own is the bug that is looked for; a guard page ends the
            // process there.)
            unsafe {
                target_main(data.as_ptr(), data.len());
            }
        });
    };
}
