//! The harness macro of ddfuzz: [`target!`] makes a program of a closure over bytes, which ddfuzz
//! runs by every way of execution.
//!
//! ```
//! ddfuzz_target::target!(|data: &[u8]| {
//!     let _ = std::str::from_utf8(data);
//! });
//! ```
//!
//! The program works on the file that its argument names, or on stdin: that is what the ways
//! `command` and `inject` run. The function `target_main`, which the way `harness` calls again and
//! again in one process, is the same closure behind C's calling convention.
//!
//! A panic is a crash: the hook says what it always says, and the process aborts where the panic
//! began, its stack untouched.
//!
//! With the feature `coverage` the program links when its code is compiled with
//! SanitizerCoverage and without a sanitizer; its module `coverage` tells the flags.

#[cfg(feature = "coverage")]
pub mod coverage;
mod entry;
mod program;
mod status;

#[doc(hidden)]
pub use entry::{enter, input};
#[doc(hidden)]
pub use program::run;
pub use status::Status;

/// Makes a ddfuzz target of a closure, or of any function, that takes a `&[u8]`.
///
/// Stands once at the root of a program, in place of its `main`:
///
/// ```
/// ddfuzz_target::target!(|data: &[u8]| {
///     if let [first, .., last] = data {
///         assert!(first.checked_add(*last).is_some() || first > last);
///     }
/// });
/// ```
///
/// What it returns is the exit status ([`Status`]): nothing, a number, or a `Result`, of which an
/// error is told on stderr and is status 1. None of these is a crash; a panic is.
///
/// ```
/// ddfuzz_target::target!(|data: &[u8]| -> Result<(), std::str::Utf8Error> {
///     std::str::from_utf8(data)?;
///     Ok(())
/// });
/// ```
///
/// `init:` names what is called once in each process, before its first input:
///
/// ```
/// static TABLE: std::sync::OnceLock<Vec<u64>> = std::sync::OnceLock::new();
///
/// ddfuzz_target::target!(
///     init: || drop(TABLE.set((0..256).map(|n| n * n).collect())),
///     |data: &[u8]| {
///         let table = TABLE.get().expect("it was made before the first input");
///         std::hint::black_box(data.iter().map(|byte| table[usize::from(*byte)]).sum::<u64>());
///     }
/// );
/// ```
///
/// Each input must find things as the first one did: state that is kept between two calls would
/// speak in the outcome of a later one.
#[macro_export]
macro_rules! target {
    (init: $init:expr, $target:expr $(,)?) => {
        /// Runs the target on `length` bytes at `data`, and gives its status.
        ///
        /// # Safety
        /// `length` bytes at `data` can be read and do not change meanwhile.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn target_main(
            data: *const u8,
            length: usize,
        ) -> ::core::ffi::c_int {
            // SAFETY: what the caller promises.
            let input = unsafe { $crate::input(data, length) };
            $crate::enter($init, $target, input)
        }

        fn main() -> ::std::process::ExitCode {
            $crate::run(target_main)
        }
    };
    ($target:expr $(,)?) => {
        $crate::target!(init: || {}, $target);
    };
}
