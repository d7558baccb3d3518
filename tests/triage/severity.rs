//! Estimates of severity.

use ddfuzz::triage::fault::{Access, AddressClass, Fault};
use ddfuzz::triage::severity::severity;
use ddfuzz::triage::{Class, Severity};

fn of(class: &str, fault: Fault, via: Option<&str>, said: Option<&str>) -> Severity {
    severity(&Class(class.to_owned()), &fault, via, said, None).0
}

fn access(class: AddressClass, access: Access) -> Fault {
    Fault {
        address: None,
        class: Some(class),
        access: Some(access),
    }
}

#[test]
fn lost_control_is_high() {
    assert_eq!(of("wildcall", Fault::default(), None, None), Severity::High);
    assert_eq!(of("smash", Fault::default(), None, None), Severity::High);
}

#[test]
fn accesses_are_judged_by_kind_and_address() {
    use AddressClass::{Heap, NonCanonical, Null, Unmapped};
    for (class, kind, expected) in [
        (Null, Access::Write, Severity::Low),
        (Null, Access::Read, Severity::Low),
        (Unmapped, Access::Write, Severity::High),
        (NonCanonical, Access::Write, Severity::High),
        (Heap, Access::Read, Severity::Medium),
        (Unmapped, Access::Read, Severity::Medium),
    ] {
        assert_eq!(
            of("segv", access(class, kind), None, None),
            expected,
            "{class:?} {kind:?}"
        );
    }
}

#[test]
fn an_abort_is_medium_only_when_it_is_the_heaps() {
    let none = Fault::default();
    assert_eq!(of("abrt", none, Some("free"), None), Severity::Medium);
    assert_eq!(
        of("abrt", none, None, Some("corrupted size vs. prev_size")),
        Severity::Medium
    );
    assert_eq!(of("abrt", none, Some("abort"), None), Severity::Low);
    assert_eq!(
        of("abrt", none, Some("__assert_fail"), Some("Assertion")),
        Severity::Low
    );
}

#[test]
fn the_rest_is_low() {
    for class in ["stackoverflow", "fpe", "ill", "trap", "sys", "exit:7"] {
        assert_eq!(
            of(class, Fault::default(), None, None),
            Severity::Low,
            "{class}"
        );
    }
}
