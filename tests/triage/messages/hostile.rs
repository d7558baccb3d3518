//! Hostile text does no harm.

use ddfuzz::exec::{CrashMessages, Ended};
use ddfuzz::triage::messages::Diagnostics;
use ddfuzz::triage::messages::{abort, backtrace_place, go_panic, report, rust_panic};
use proptest::prelude::*;

use crate::fixed_cases;

/// Words that the readers look for, and what may stand around them.
const WORDS: &[&str] = &[
    "==1==",
    "ERROR: ",
    "WARNING: ",
    "AddressSanitizer: ",
    "ThreadSanitizer: ",
    "LeakSanitizer: ",
    "SEGV",
    "heap-buffer-overflow",
    "SUMMARY: ",
    ": runtime error: ",
    "ubsan: ",
    "#0 ",
    "#1 ",
    "0x",
    "0xffffffffffffffffff",
    " in ",
    "(/p+0x1)",
    "(+0x)",
    "+0x",
    ")",
    "(",
    " (BuildId: ",
    "<null>",
    "Direct leak of ",
    "Indirect leak of ",
    "READ of size ",
    "99999999999999999999",
    "freed by thread",
    "allocated by thread",
    "thread '",
    "' panicked at ",
    "'",
    "', ",
    ":1:1:",
    ":",
    "a.rs:1:2",
    "stack backtrace:",
    "   0: ",
    "at ",
    "panic: ",
    "goroutine 1 [",
    "\t",
    "fatal error: ",
    "*** ",
    "instance of '",
    "exception of type ",
    "\n",
    "\r\n",
    "\n\n",
    "é",
    "\u{0}",
    " ",
];

fn text() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        8 => prop::sample::select(WORDS).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(fixed_cases(3000))]

    #[test]
    fn readers_end_without_a_panic_on_any_text(text in text()) {
        let _ = (report(&text), rust_panic(&text), backtrace_place(&text), go_panic(&text), abort(&text));
        let said = CrashMessages { stderr: text.clone(), report: text };
        for ended in [Ended::Exit(101), Ended::Exit(0), Ended::Signal(libc::SIGABRT)] {
            let told = Diagnostics::of(ended, said.clone());
            let _ = told.is_crash(ended, None);
        }
    }
}

#[test]
fn what_is_kept_of_a_report_is_bounded() {
    let frames = "    #0 0x1 in f (/p+0x1)\n"
        .repeat(3)
        .replace("#0", "#1")
        .repeat(2000);
    let text = format!("==1==ERROR: AddressSanitizer: SEGV on\n{frames}");
    assert_eq!(report(text.as_bytes()).unwrap().stack.len(), 256);
    let long = "x".repeat(1 << 20);
    for begin in [
        "a:1: runtime error: ",
        "==1==ERROR: AddressSanitizer: ",
        "==1==ERROR: AddressSanitizer: SEGV\n#0 0x1 in ",
    ] {
        let text = format!("{begin}{long}");
        let report = report(text.as_bytes()).unwrap();
        assert!(format!("{report:?}").len() < 8192, "{begin}");
    }
    let panic = rust_panic(format!("thread 'm' panicked at a.rs:1:1:\n{long}").as_bytes()).unwrap();
    assert!(panic.message.len() <= 4096);
}
