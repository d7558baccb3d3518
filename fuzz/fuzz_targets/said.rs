//! What dying programs say: reports of sanitizers, panics of Rust and Go, abort messages.
#![no_main]

use ddfuzz::triage::said;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = (said::abort(data), said::go_panic(data));
    let _ = (said::rust_panic(data), said::backtrace_place(data));
    let _ = said::report(data);
    let _ = said::last_words(data);
    let message = said::message(&String::from_utf8_lossy(data)).unwrap_or_default();
    assert!(!message.contains(|one: char| one.is_control() && one != '\n'));
});
