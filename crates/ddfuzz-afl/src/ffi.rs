//! The C functions that AFL++ calls by name, as in its `docs/custom_mutators.md`.
//!
//! AFL++ knows more functions of custom mutators, but does not require them. A library with the
//! three functions for trimming and without `afl_custom_fuzz` only trims, and leaves mutations to
//! AFL++.

use ddfuzz_delta::Outcome;
use std::ffi::{c_uint, c_void};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Settings, Trimmer};

/// Prints `ddfuzz-afl: `, the message and a line end to stderr; a failure to do so is ignored.
fn say(line: &str) {
    // A failure to print is ignored.
    let _ = writeln!(std::io::stderr(), "ddfuzz-afl: {line}");
}

/// Calls `job` with the trimmer at `data`, and returns the result of `job`; 0 if `data` is null. If
/// `job` panics, the trimmer gives up, and the result is the number of the last step, which ends
/// the trimming.
///
/// # Safety
/// `data` is null, or a result of [`afl_custom_init`] that was not freed by [`afl_custom_deinit`],
/// and nobody else uses it at the same time.
unsafe fn with_trimmer(data: *mut c_void, job: impl FnOnce(&mut Trimmer) -> u32) -> i32 {
    // SAFETY: by the contract of this function it is null, or a trimmer that is ours alone.
    let Some(trimmer) = (unsafe { data.cast::<Trimmer>().as_mut() }) else {
        return 0;
    };
    let done = catch_unwind(AssertUnwindSafe(|| job(trimmer)));
    let step = done.unwrap_or_else(|_| {
        say(
            "an internal error, told above: entries are not trimmed any more; the campaign goes on",
        );
        trimmer.give_up()
    });
    i32::try_from(step).unwrap_or(i32::MAX)
}

/// Creates the state of one library instance from the environment variables `DDFUZZ_AFL_*`. The
/// state of AFL++ and its random seed are not used. The result is never null.
#[unsafe(no_mangle)]
pub extern "C" fn afl_custom_init(_afl: *mut c_void, _seed: c_uint) -> *mut c_void {
    let settings = catch_unwind(|| {
        let (settings, problems) = Settings::from_env(|name| std::env::var_os(name));
        problems.iter().for_each(|problem| say(problem));
        settings
    });
    state_of(Trimmer::new(settings.unwrap_or_default()))
}

/// Converts a trimmer to the state pointer of a library instance, which must be freed by
/// [`afl_custom_deinit`].
pub fn state_of(trimmer: Trimmer) -> *mut c_void {
    Box::into_raw(Box::new(trimmer)).cast()
}

/// Frees the state of a library instance, including the buffer that [`afl_custom_trim`] returned.
///
/// # Safety
/// `data` is null, or a result of [`afl_custom_init`] that is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_deinit(data: *mut c_void) {
    if data.is_null() {
        return;
    }
    // SAFETY: by the contract of this function it is a box of `afl_custom_init`, given back once.
    let trimmer = unsafe { Box::from_raw(data.cast::<Trimmer>()) };
    // A search that panicked may panic again where it is dropped.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(trimmer)));
}

/// Starts to trim a copy of the `buf_size` bytes at `buf`, a queue entry. Returns the largest
/// number of steps (candidates to run); 0 if there is nothing to trim.
///
/// # Safety
/// `data` is a result of [`afl_custom_init`]; `buf` is null, or `buf_size` bytes can be read there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_init_trim(
    data: *mut c_void,
    buf: *mut u8,
    buf_size: usize,
) -> i32 {
    if buf.is_null() {
        return 0;
    }
    // SAFETY: by the contract of this function there are so many bytes, which nobody changes here.
    let entry = unsafe { std::slice::from_raw_parts(buf.cast_const(), buf_size) };
    // SAFETY: the contract is the same.
    unsafe { with_trimmer(data, |trimmer| trimmer.begin(entry)) }
}

/// Stores the address of the candidate, which is never null, at `out_buf`, and returns its length
/// in bytes. The candidate is valid until the next call with this `data`. The length is 0, and
/// AFL++ then skips the candidate, only if [`afl_custom_init_trim`] returned 0 or was not called,
/// after an internal error, or if `out_buf` is null; in the last case nothing is stored.
///
/// # Safety
/// `data` is a result of [`afl_custom_init`]; `out_buf` is null, or a pointer can be written there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_trim(data: *mut c_void, out_buf: *mut *mut u8) -> usize {
    let mut given = (std::ptr::NonNull::<u8>::dangling().as_ptr(), 0);
    let hand_out = |trimmer: &mut Trimmer| {
        let (buffer, len) = trimmer.buffer();
        given = (buffer.as_mut_ptr(), len);
        0
    };
    // SAFETY: the contract is the same.
    unsafe { with_trimmer(data, hand_out) };
    if out_buf.is_null() {
        return 0;
    }
    // SAFETY: by the contract of this function a pointer can be written there.
    unsafe { out_buf.write(given.0) };
    given.1
}

/// Receives whether the candidate has the same coverage as the entry (`success` is not 0). Returns
/// the number of the next step; the maximum that [`afl_custom_init_trim`] returned ends the
/// trimming.
///
/// # Safety
/// `data` is a result of [`afl_custom_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_post_trim(data: *mut c_void, success: u8) -> i32 {
    let outcome = match success {
        0 => Outcome::Pass,
        _ => Outcome::Fail,
    };
    // SAFETY: the contract is the same.
    unsafe { with_trimmer(data, |trimmer| trimmer.tell(outcome)) }
}
