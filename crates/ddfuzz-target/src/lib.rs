//! The harness macro of ddfuzz: [`target!`] turns a closure over bytes into a program that ddfuzz
//! can run in every execution mode.
//!
//! ```
//! ddfuzz_target::target!(|data: &[u8]| {
//!     let _ = std::str::from_utf8(data);
//! });
//! ```
//!
//! The program reads the file that its argument names, or stdin; the modes `command` and `inject`
//! run it in this way. The mode `harness` calls the function `target_main`, which is the same
//! closure with C's calling convention, many times in one process.
//!
//! A panic is a crash: the panic hook prints its message, and the process aborts where the panic
//! began, without unwinding the stack.
//!
//! The feature `coverage` is for code that is compiled with SanitizerCoverage and without a
//! sanitizer; the module `coverage` lists the compiler flags.

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

/// Makes a ddfuzz target of a closure or function that takes a `&[u8]`.
///
/// Use it once, at the root of a program, instead of `main`:
///
/// ```
/// ddfuzz_target::target!(|data: &[u8]| {
///     if let [first, .., last] = data {
///         assert!(first.checked_add(*last).is_some() || first > last);
///     }
/// });
/// ```
///
/// The closure returns nothing, an exit status, or a `Result` ([`Status`]). An error is printed to
/// stderr and gives exit status 1. A return value is never a crash; a panic is.
///
/// ```
/// ddfuzz_target::target!(|data: &[u8]| -> Result<(), std::str::Utf8Error> {
///     std::str::from_utf8(data)?;
///     Ok(())
/// });
/// ```
///
/// The function after `init:` is called once in each process, before its first input:
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
/// The closure must keep no state between inputs, because such state would influence the outcomes
/// of later inputs.
#[macro_export]
macro_rules! target {
    (init: $init:expr, $target:expr $(,)?) => {
        /// The entry function of a ddfuzz target: runs it on the `length` bytes at `data`, and
        /// returns its exit status.
        ///
        /// # Safety
        /// `length` bytes at `data` can be read and do not change during the call.
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub unsafe extern "C" fn target_main(
            data: *const u8,
            length: usize,
        ) -> ::core::ffi::c_int {
            // SAFETY: the caller guarantees it.
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
