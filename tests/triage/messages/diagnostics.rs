//! The message of a crash, for people.

use ddfuzz::exec::{CrashMessages, Ended};
use ddfuzz::triage::Class;
use ddfuzz::triage::messages::Diagnostics;
use ddfuzz::triage::messages::{last_error_line, message};
use proptest::prelude::*;

use crate::fixed_cases;

const ABORTED: Ended = Ended::Signal(libc::SIGABRT);

/// What a run of this class said that wrote this to stderr, and this report.
fn said(class: &str, stderr: &str, report: &str) -> Option<String> {
    let said = CrashMessages {
        stderr: stderr.into(),
        report: report.into(),
    };
    let told = Diagnostics::of(ABORTED, said);
    let aborts = told.abort.as_ref().map(|abort| abort.message.as_str());
    told.message(ABORTED, &Class(class.to_owned()), aborts)
}

#[test]
fn a_printed_report_counts_only_of_a_sanitizer_that_the_process_may_have() {
    let text = "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1\n    #0 0x1";
    let told = |stderr: &str, report: &str, may_have: bool| {
        let said = CrashMessages {
            stderr: stderr.into(),
            report: report.into(),
        };
        let told = Diagnostics::of_process(ABORTED, said, |_| may_have);
        told.report().is_some()
    };
    assert!(told(text, "", true) && !told(text, "", false));
    // Only a sanitizer writes there.
    assert!(told("", text, false));
}

#[test]
fn the_first_line_of_a_report_is_told_without_what_differs_from_run_to_run() {
    for (report, expected) in [
        (
            "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000018 at pc \
             0x5555 bp 0x7ffe sp 0x7ffd\nWRITE of size 1 at 0x602000000018 thread T0\n    #0 0x1",
            "AddressSanitizer: heap-buffer-overflow, WRITE of size 1",
        ),
        (
            "==1==ERROR: AddressSanitizer: attempting double-free on 0x602000000010 in thread T0:\n",
            "AddressSanitizer: attempting double-free",
        ),
        (
            "==1==ERROR: AddressSanitizer: attempting free on address which was not malloc()-ed: \
             0x7ffe1 in thread T0\n",
            "AddressSanitizer: attempting free on address which was not malloc()-ed",
        ),
        (
            "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000000 (pc 0x5 bp 0x7 \
             sp 0x7 T0)\n==1==The signal is caused by a WRITE memory access.\n",
            "AddressSanitizer: SEGV on unknown address 0x000000000000, WRITE",
        ),
        (
            "==1==ERROR: AddressSanitizer: requested allocation size 0xffff (0x10800 after \
             adjustments) exceeds maximum supported size of 0x10000 (thread T0)\n",
            "AddressSanitizer: requested allocation size 0xffff (0x10800 after adjustments) exceeds \
             maximum supported size of 0x10000",
        ),
        (
            "a.c:3:4: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented \
             in type 'int'\n    #0 0x1",
            "runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type \
             'int'",
        ),
        ("ubsan: add-overflow by 0x55\n", "ubsan: add-overflow"),
        (
            "==1==WARNING: MemorySanitizer: use-of-uninitialized-value\n    #0 0x1",
            "MemorySanitizer: use-of-uninitialized-value",
        ),
        (
            "WARNING: ThreadSanitizer: data race (pid=12)\n",
            "ThreadSanitizer: data race",
        ),
        (
            "==1==ERROR: LeakSanitizer: detected memory leaks\n\nDirect leak of 77 byte(s) in 1 \
             object(s) allocated from:\n    #0 0x1",
            "LeakSanitizer: detected memory leaks, direct leak of 77 bytes",
        ),
    ] {
        assert_eq!(said("asan:x", "", report).as_deref(), Some(expected));
    }
}

#[test]
fn panics_assertions_and_aborts_are_told_in_their_own_words() {
    for (class, stderr, expected) in [
        (
            "rustpanic",
            "thread 'main' panicked at src/a.rs:1:2:\nassertion `left == right` failed\n  left: \
             1\n right: 2\nnote: run with `RUST_BACKTRACE=1`",
            "assertion `left == right` failed\n  left: 1\n right: 2",
        ),
        (
            "gopanic",
            "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 \
             [running]:\nmain.f()\n\t/a.go:3 +0x1d\n",
            "runtime error: index out of range [5] with length 3",
        ),
        (
            "abrt",
            "reading\np: a.c:3: f: Assertion `x > 0' failed.\n",
            "p: a.c:3: f: Assertion `x > 0' failed.",
        ),
        (
            "abrt",
            "free(): invalid pointer\n",
            "free(): invalid pointer",
        ),
        (
            "abrt",
            "terminate called after throwing an instance of 'std::out_of_range'\n  what():  \
             vector::at\n",
            "terminate called after throwing an instance of 'std::out_of_range': vector::at",
        ),
    ] {
        assert_eq!(said(class, stderr, "").as_deref(), Some(expected));
    }
}

#[test]
fn a_program_that_gives_up_by_itself_is_quoted_where_it_says_why() {
    let quoted = |stderr: &str| last_error_line(stderr.as_bytes());
    let fatal = "parse: fatal: no such section";
    let noise = "==7== ERROR: libFuzzer: deadly signal\nSUMMARY: libFuzzer: deadly signal\n";
    for stderr in [
        format!("reading\n{fatal}\n"),
        format!("{fatal}\n\n"),
        format!("error: first\n{fatal}\n{noise}"),
        format!("{fatal}\nRunning: bad input\n"),
    ] {
        assert_eq!(quoted(&stderr).as_deref(), Some(fatal), "{stderr}");
        assert_eq!(said("abrt", &stderr, "").as_deref(), Some(fatal));
    }
    assert_eq!(quoted("reading\ndone\n"), None);
    assert_eq!(quoted(""), None);
    // Long before the end, it is about something else.
    assert_eq!(quoted(&format!("{fatal}\n{}", "line\n".repeat(20))), None);
    // What a signal ends does not give up.
    let told = Diagnostics::of(
        Ended::Signal(libc::SIGSEGV),
        CrashMessages {
            stderr: fatal.into(),
            report: Vec::new(),
        },
    );
    let segv = Class("segv".to_owned());
    assert_eq!(
        told.message(Ended::Signal(libc::SIGSEGV), &segv, None),
        None
    );
}

#[test]
fn a_message_moves_no_cursor_and_is_of_bounded_length() {
    assert_eq!(
        message("\n a\tb\x1b[2J\r\u{202e}c\u{200b}\nd\n\n").as_deref(),
        Some("a    b\\u{1b}[2J\\r\\u{202e}c\\u{200b}\nd")
    );
    for nothing in ["", " \n\t\n"] {
        assert_eq!(message(nothing), None);
    }
    let lines = message(&"line\n".repeat(100)).unwrap();
    assert_eq!(lines.lines().count(), 17);
    assert!(lines.ends_with("line\n…"));
    let wide = message(&"ä".repeat(10_000)).unwrap();
    assert_eq!(wide.chars().count(), 400);
    assert!(wide.ends_with("ä…"));
    let both = message(&format!("{}\n", "x".repeat(399)).repeat(16)).unwrap();
    assert_eq!(both.chars().count(), 2000);
}

proptest! {
    #![proptest_config(fixed_cases(1000))]

    #[test]
    fn messages_of_any_text_are_harmless(
        text in "(\\PC|[\\x00-\\x1f]|\u{202e}|fatal|Assertion `|panicked at |: runtime error: ){0,60}",
    ) {
        for class in ["abrt", "rustpanic", "asan:x", "exit:3", "segv"] {
            let told = said(class, &text, &text).unwrap_or_default();
            let harmful = |one: char| one.is_control() && one != '\n' || one == '\u{202e}';
            prop_assert!(!told.contains(harmful), "{told:?}");
            prop_assert!(told.chars().count() <= 2000);
        }
    }
}
