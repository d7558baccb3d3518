//! The record beside a reproducer.

use ddfuzz::triage::fault::Address;
use ddfuzz::triage::fault::{Access, AddressClass};
use ddfuzz::triage::snapshot::{End, Trust};
use ddfuzz::triage::{Confidence, Crash, Severity};

use crate::programs::{DEBUG, PLAIN, PROTECTED, STATIC, STATIC_STRIPPED};
use crate::{crash, own_names};

#[test]
fn a_record_survives_being_written_and_read() {
    let crash = crash(&DEBUG, b"deep");
    let text = serde_json::to_string(&crash).expect("a record is JSON");
    assert_eq!(
        serde_json::from_str::<Crash>(&text).expect("a record"),
        crash
    );
    assert!(
        text.contains(r#""signal":11"#),
        "details stand beside the rest: {text}"
    );
}

#[test]
fn a_null_dereference_is_described_in_full() {
    let crash = crash(&DEBUG, b"deep");
    assert_eq!(
        own_names(&crash),
        ["touch", "deep3", "deep2", "deep1", "main"]
    );
    let details = &crash.details;
    assert_eq!(
        (details.signal, details.si_code),
        (Some(libc::SIGSEGV), Some(1))
    );
    assert_eq!(details.fault.address, Some(Address(0)));
    assert_eq!(details.fault.class, Some(AddressClass::Null));
    assert_eq!(details.end, End::Clean);
    assert_eq!(details.code.len(), 32, "16 bytes in hex");
    assert!(!details.registers.is_empty());
    assert_eq!(crash.severity, Severity::Low);
    assert_eq!(crash.confidence, Confidence::High);
    assert_eq!(crash.frames[0].trust, Trust::Pc);
    assert_eq!(crash.frames[1].trust, Trust::Call);
    assert!(
        crash
            .frames
            .iter()
            .any(|frame| !frame.own && frame.build_id.is_some())
    );
    let place = crash.innermost_own().expect("an own frame").place();
    assert!(
        place.starts_with("touch at ") && place.contains("planted.c:"),
        "{place}"
    );
    assert!(crash.keys.stable.is_some());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn reads_and_writes_are_told_apart() {
    let write = crash(&PLAIN, b"wild-write");
    assert_eq!(write.details.fault.access, Some(Access::Write));
    assert_eq!(write.details.fault.class, Some(AddressClass::Unmapped));
    assert_eq!(write.severity, Severity::High);
    let read = crash(&PLAIN, b"wild-read");
    assert_eq!(read.details.fault.access, Some(Access::Read));
    assert_eq!(read.severity, Severity::Medium);
}

#[test]
fn via_names_the_function_that_the_program_called() {
    for (input, via) in [
        ("assert", "__assert_fail"),
        ("abort", "abort"),
        ("twice", "free"),
        ("strlen", "strlen"),
    ] {
        assert_eq!(
            crash(&PLAIN, input.as_bytes()).details.via.as_deref(),
            Some(via)
        );
    }
}

#[test]
fn a_failed_assertion_is_quoted() {
    for variant in [&PLAIN, &STATIC] {
        let crash = crash(variant, b"assert");
        let said = crash.details.abort_message.expect("a message");
        assert!(
            said.contains("Assertion `n < 3 && \"too many\"' failed."),
            "{said}"
        );
        assert_eq!(crash.details.message.as_deref(), Some(said.trim()));
        assert!(
            crash.details.stderr.contains("Assertion `"),
            "{}",
            crash.details.stderr
        );
    }
}

#[test]
fn a_damaged_heap_is_of_medium_severity() {
    let crash = crash(&PLAIN, b"twice");
    assert_eq!(crash.severity, Severity::Medium);
    assert_eq!(own_names(&crash)[0], "frees_twice");
    let message = crash.details.message.unwrap();
    assert!(
        message.starts_with("free(): double free detected"),
        "{message}"
    );
}

#[test]
fn a_static_program_loses_its_abort_path_and_nothing_else() {
    for (input, function) in [
        ("assert", "fails"),
        ("abort", "gives_up"),
        ("twice", "frees_twice"),
    ] {
        assert_eq!(
            own_names(&crash(&STATIC, input.as_bytes()))[0],
            function,
            "{input}"
        );
    }
}

#[test]
fn a_static_program_without_symbols_is_of_low_confidence() {
    assert_eq!(
        crash(&STATIC_STRIPPED, b"abort").confidence,
        Confidence::Low
    );
}

#[test]
fn a_smashed_stack_is_of_high_severity() {
    let crash = crash(&PROTECTED, &[b"smash:..".as_slice(), &[b'A'; 64]].concat());
    assert_eq!(crash.severity, Severity::High);
    assert_eq!(crash.details.via.as_deref(), Some("__stack_chk_fail"));
}
