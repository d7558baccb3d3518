//! Classes of planted bugs, in real processes and on made-up snapshots.

use ddfuzz::exec::Ended;
use ddfuzz::triage::class::{classify, classify_ending};
use ddfuzz::triage::fault::AddressClass;
use ddfuzz::triage::snapshot::{Control, End};

use crate::made_up::{own, runtime, snapshot};
use crate::programs::{
    DEBUG, FIXED, FORTIFIED, PLAIN, PROTECTED, STATIC, STRIPPED, UNPROTECTED, Variant,
};
use crate::{crash, keys, triager};

fn class(variant: &Variant, input: &str) -> String {
    keys(&mut triager(variant), input.as_bytes()).0
}

#[test]
fn signals_give_the_class_of_plain_deaths() {
    for variant in [&PLAIN, &STRIPPED, &DEBUG, &FIXED, &STATIC] {
        for (input, expected) in [
            ("deep", "segv"),
            ("assert", "abrt"),
            ("abort", "abrt"),
            ("twice", "abrt"),
            ("fpe", "fpe"),
            ("ill", "ill"),
            ("trap", "trap"),
            ("bus", "bus"),
            ("sys", "sys"),
        ] {
            assert_eq!(
                class(variant, input),
                expected,
                "{input} of {}",
                variant.path().display()
            );
        }
    }
}

#[test]
fn a_call_or_jump_to_no_code_is_a_wild_call() {
    for variant in [&PLAIN, &STRIPPED, &DEBUG, &FIXED] {
        for input in [
            "call-null",
            "call-wild",
            "call-none",
            "call-data",
            "jump-wild",
            "jump-none",
        ] {
            let got = class(variant, input);
            assert_eq!(got, "wildcall", "{input} of {}", variant.path().display());
        }
    }
}

#[test]
fn a_wild_call_is_named_by_its_caller() {
    for input in ["call-null", "call-wild", "call-none", "call-data"] {
        let crash = crash(&PLAIN, input.as_bytes());
        let innermost = crash.innermost_own().expect("an own frame");
        assert_eq!(innermost.name.as_deref(), Some("calls"), "{input}");
    }
}

/// Overwrites the return address, and what is above it, with `address`.
fn smashing(address: u64) -> Vec<u8> {
    let mut input = b"smash:..".to_vec();
    (0..8).for_each(|_| input.extend(address.to_le_bytes()));
    input
}

#[test]
fn a_smashed_stack_names_its_victim() {
    for (variant, address) in [
        (&PROTECTED, 0x1337_0000),
        (&PROTECTED, 0x4141_4141_4141_4141),
        (&UNPROTECTED, 0x1337_0000),
        (&UNPROTECTED, 0x4141_4141_4141_4141),
        (&DEBUG, 0x1337_0000),
        (&DEBUG, 0x4141_4141_4141_4141),
    ] {
        let crash = crash(variant, &smashing(address));
        assert_eq!(
            crash.class.0,
            "smash",
            "{address:#x} in {}",
            variant.path().display()
        );
        let innermost = crash.innermost_own().expect("an own frame");
        assert_eq!(
            innermost.name.as_deref(),
            Some("overwrites"),
            "{address:#x}"
        );
    }
}

#[test]
fn an_overflow_that_the_library_notices_is_a_smash_in_its_caller() {
    let crash = crash(&FORTIFIED, &smashing(1));
    assert_eq!(crash.class.0, "smash");
    assert_eq!(
        crash.innermost_own().expect("an own frame").name.as_deref(),
        Some("overwrites")
    );
}

#[test]
fn all_ways_to_smash_one_function_share_a_key() {
    let mut triager = triager(&UNPROTECTED);
    let on_return = keys(&mut triager, &smashing(0x4141_4141_4141_4141));
    let behind_return = keys(&mut triager, &smashing(0x1337_0000));
    assert_eq!(on_return, behind_return);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_return_into_the_middle_of_code_is_a_smash_of_the_function_that_returned() {
    for variant in [&PLAIN, &STRIPPED, &DEBUG] {
        let mut triager = triager(variant);
        let [instruction, access] = ["astray-2", "astray-6"];
        let one = keys(&mut triager, instruction.as_bytes());
        assert_eq!(one.0, "smash");
        assert_eq!(one, keys(&mut triager, access.as_bytes()));
        // Where a call precedes the address, it is none.
        assert_eq!(class(variant, "astray-0"), "ill");
    }
    let crash = crash(&DEBUG, b"astray-2");
    let innermost = crash.innermost_own().expect("an own frame");
    assert_eq!(innermost.name.as_deref(), Some("returns_astray"));
}

#[test]
fn endless_recursion_is_a_stack_overflow() {
    for variant in [&PLAIN, &STRIPPED, &DEBUG, &STATIC] {
        for input in ["descend-1", "mutual", "burst"] {
            let got = class(variant, input);
            assert_eq!(
                got,
                "stackoverflow",
                "{input} of {}",
                variant.path().display()
            );
        }
    }
}

#[test]
fn a_null_pointer_deep_in_a_recursion_is_no_overflow() {
    let mut made_up = snapshot(vec![own(1)]);
    made_up.end = End::Cap;
    made_up.fault.class = Some(AddressClass::Null);
    assert_eq!(classify(&made_up).0, "segv");
    made_up.fault.class = Some(AddressClass::Anonymous);
    assert_eq!(classify(&made_up).0, "stackoverflow");
}

#[test]
fn a_fault_just_below_the_stack_is_an_overflow_at_any_depth() {
    let mut made_up = snapshot(vec![own(1)]);
    made_up.fault.class = Some(AddressClass::NearSp);
    assert_eq!(classify(&made_up).0, "stackoverflow");
}

#[test]
fn the_guard_functions_of_the_runtime_mean_a_smashed_stack() {
    for guard in ["__stack_chk_fail", "__fortify_fail", "__chk_fail"] {
        let made_up = snapshot(vec![runtime("abort"), runtime(guard), own(1)]);
        assert_eq!(classify(&made_up).0, "smash", "{guard}");
    }
    let below = snapshot(vec![own(1), runtime("__stack_chk_fail")]);
    assert_eq!(classify(&below).0, "segv");
}

#[test]
fn control_that_went_astray_decides_before_the_signal() {
    let mut made_up = snapshot(vec![own(1)]);
    made_up.control = Control::WildCall;
    assert_eq!(classify(&made_up).0, "wildcall");
    made_up.control = Control::Smashed;
    assert_eq!(classify(&made_up).0, "smash");
}

#[test]
fn an_ending_alone_gives_the_signal_or_the_status() {
    assert_eq!(classify_ending(Ended::Signal(libc::SIGSYS)).0, "sys");
    assert_eq!(classify_ending(Ended::Signal(libc::SIGBUS)).0, "bus");
    assert_eq!(classify_ending(Ended::Exit(7)).0, "exit:7");
    assert_eq!(classify_ending(Ended::Timeout).0, "hang");
    assert_eq!(classify_ending(Ended::OutOfMemory).0, "oom");
}
