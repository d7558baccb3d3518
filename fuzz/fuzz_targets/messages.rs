//! The readers of a dying program's messages: reports of sanitizers, panics of Rust and Go, abort
//! messages.
#![no_main]

use ddfuzz::triage::messages;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = (messages::abort(data), messages::go_panic(data));
    let _ = (messages::rust_panic(data), messages::backtrace_place(data));
    let _ = messages::report(data);
    let _ = messages::last_error_line(data);
    let message = messages::message(&String::from_utf8_lossy(data)).unwrap_or_default();
    assert!(!message.contains(|one: char| one.is_control() && one != '\n'));
});
