//! The functions that AFL++ finds by their names, as `docs/custom_mutators.md` of AFL++ lists them.
//!
//! Of its custom mutators AFL++ asks for more functions than these, and does without: a library
//! that has the three for trimming and no `afl_custom_fuzz` trims, and leaves mutating to AFL++.

use ddfuzz_delta::Outcome;
use std::ffi::{c_uint, c_void};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Settings, Trimmer};

/// Says something to who started the campaign; who closed stderr does not want to hear it.
fn say(line: &str) {
    // Nothing can be done where it fails, and nothing depends on it.
    let _ = writeln!(std::io::stderr(), "ddfuzz-afl: {line}");
}

/// What `job` gives; where there is no trimmer, `without`. A panic ends with the trimmer, and gives
/// the number of the last step, which AFL++ takes for the end.
///
/// # Safety
/// `data` is null, or what [`afl_custom_init`] gave and [`afl_custom_deinit`] has not taken back,
/// and nobody else uses it meanwhile.
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

/// Makes the state of one instance of the library, from the variables `DDFUZZ_AFL_*` of the
/// environment. Nothing of AFL++'s own state (`afl`) is used, nor its seed: nothing is random here.
/// Never null.
#[unsafe(no_mangle)]
pub extern "C" fn afl_custom_init(_afl: *mut c_void, _seed: c_uint) -> *mut c_void {
    let settings = catch_unwind(|| {
        let (settings, problems) = Settings::from_env(|name| std::env::var_os(name));
        problems.iter().for_each(|problem| say(problem));
        settings
    });
    state_of(Trimmer::new(settings.unwrap_or_default()))
}

/// The state of an instance that trims by this trimmer, as [`afl_custom_init`] makes it. To be freed
/// by [`afl_custom_deinit`].
pub fn state_of(trimmer: Trimmer) -> *mut c_void {
    Box::into_raw(Box::new(trimmer)).cast()
}

/// Frees the state, and with it what [`afl_custom_trim`] has given.
///
/// # Safety
/// `data` is null, or what [`afl_custom_init`] gave, and is not used afterwards.
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

/// Begins to trim the `buf_size` bytes at `buf`, which are copied. Returns the number of steps, or
/// 0 where nothing is to be trimmed.
///
/// # Safety
/// `data` as [`afl_custom_init`] gave it; `buf` is null, or `buf_size` bytes can be read there.
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

/// Puts the address of the candidate at `out_buf`, never null, and returns its length in bytes. It
/// stays valid until the next call with this `data`. The length is 0, which AFL++ passes over, only
/// where [`afl_custom_init_trim`] has returned 0 or was not called.
///
/// # Safety
/// `data` as [`afl_custom_init`] gave it; `out_buf` is null, or a pointer can be written there.
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

/// Takes whether the candidate has the coverage of the entry (`success` is not 0). Returns the
/// number of the next step; that of all steps is the end.
///
/// # Safety
/// `data` as [`afl_custom_init`] gave it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn afl_custom_post_trim(data: *mut c_void, success: u8) -> i32 {
    let outcome = match success {
        0 => Outcome::Pass,
        _ => Outcome::Fail,
    };
    // SAFETY: the contract is the same.
    unsafe { with_trimmer(data, |trimmer| trimmer.tell(outcome)) }
}
