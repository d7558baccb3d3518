//! Tests the C functions of the library through their pointers.

use std::ffi::c_void;
use std::ptr::null_mut;

use ddfuzz_afl::ffi::{
    afl_custom_deinit, afl_custom_init, afl_custom_init_trim, afl_custom_post_trim,
    afl_custom_trim, state_of,
};
use ddfuzz_afl::{Settings, Trimmer};

use crate::{coverage, text, trim};

/// The state of a library instance, freed at the end of the test.
pub struct State(pub *mut c_void);

impl State {
    pub fn of(trimmer: Trimmer) -> State {
        State(state_of(trimmer))
    }

    pub fn begin(&self, entry: &[u8]) -> i32 {
        // AFL++ hands out a buffer that could be written to.
        let mut entry = entry.to_vec();
        // SAFETY: the state lives as long as `self`; the buffer has this length.
        unsafe { afl_custom_init_trim(self.0, entry.as_mut_ptr(), entry.len()) }
    }

    /// Returns address and length of the candidate in the library's buffer.
    pub fn candidate(&self) -> (*mut u8, usize) {
        let mut buffer = null_mut();
        // SAFETY: the state lives as long as `self`.
        let len = unsafe { afl_custom_trim(self.0, &raw mut buffer) };
        (buffer, len)
    }

    pub fn tell(&self, success: u8) -> i32 {
        // SAFETY: the state lives as long as `self`.
        unsafe { afl_custom_post_trim(self.0, success) }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: the state is not used afterwards.
        unsafe { afl_custom_deinit(self.0) };
    }
}

/// Copies `len` bytes from an address that the library returned.
pub fn at(buffer: *mut u8, len: usize) -> Vec<u8> {
    // SAFETY: the library says that so many bytes stand there until its next call.
    unsafe { std::slice::from_raw_parts(buffer, len) }.to_vec()
}

#[test]
fn pointers_tell_what_the_trimmer_tells() {
    for seed in 0..6 {
        let entry = text(30, seed);
        let whole = coverage(&entry);
        let mut trimmer = Trimmer::new(Settings::default());
        let expected = trim(&mut trimmer, &entry, |text| coverage(text) == whole);
        let state = State::of(Trimmer::new(Settings::default()));
        let steps = state.begin(&entry);
        let (mut step, mut asked) = (0, Vec::new());
        while step < steps {
            let (buffer, len) = state.candidate();
            let text = at(buffer, len);
            let success = coverage(&text) == whole;
            // It still stands there when it has been run.
            assert_eq!(at(buffer, len), text);
            // AFL++ that was told a least length reads on behind a shorter candidate.
            assert!(at(buffer, entry.len())[len..].iter().all(|&byte| byte == 0));
            asked.push(text);
            step = state.tell(success.into());
        }
        assert_eq!(asked, expected.asked, "{seed}");
    }
}

#[test]
fn two_states_do_not_know_of_each_other() {
    let entries = [text(20, 7), text(20, 8)];
    let wholes = entries.each_ref().map(|entry| coverage(entry));
    let states = [(); 2].map(|()| State(afl_custom_init(null_mut(), 1)));
    let steps = [0, 1].map(|which| states[which].begin(&entries[which]));
    let mut step = [0, 0];
    let mut asked = [Vec::new(), Vec::new()];
    while step != steps {
        for which in [0, 1] {
            if step[which] == steps[which] {
                continue;
            }
            let (buffer, len) = states[which].candidate();
            let text = at(buffer, len);
            step[which] = states[which].tell((coverage(&text) == wholes[which]).into());
            asked[which].push(text);
        }
    }
    for which in [0, 1] {
        let mut trimmer = Trimmer::new(Settings::default());
        let alone = trim(&mut trimmer, &entries[which], |text| {
            coverage(text) == wholes[which]
        });
        assert_eq!(asked[which], alone.asked);
    }
}

#[test]
fn null_pointers_are_taken() {
    let nobody = State(null_mut());
    assert_eq!(nobody.begin(b"some text"), 0);
    assert_eq!(nobody.candidate().1, 0);
    assert_eq!(nobody.tell(1), 0);
    let state = State(afl_custom_init(null_mut(), 0));
    // SAFETY: null is allowed.
    assert_eq!(unsafe { afl_custom_init_trim(state.0, null_mut(), 9) }, 0);
    // SAFETY: null is allowed.
    assert_eq!(unsafe { afl_custom_trim(state.0, null_mut()) }, 0);
}

#[test]
fn calls_out_of_their_order_do_no_harm() {
    let state = State(afl_custom_init(null_mut(), 0));
    assert_eq!(state.tell(1), 0);
    let (buffer, len) = state.candidate();
    assert!(!buffer.is_null() && len == 0);
    let steps = state.begin(b"some text");
    // Told twice, asked never.
    assert_eq!((state.tell(1), state.tell(0)), (1, 2));
    // Begun anew in the middle.
    assert_eq!(state.begin(b"some text"), steps);
    // Asked twice.
    assert_eq!(state.candidate().1, 9);
    assert_eq!(state.candidate().1, 9);
    while state.tell(0) < steps {}
    // Behind the end there is still an entry.
    let (buffer, len) = state.candidate();
    assert_eq!(at(buffer, len), b"some text");
    assert_eq!(state.tell(1), steps);
}
