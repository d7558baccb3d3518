//! Whether a run can show a crash of another build, or of a run within other limits.

use ddfuzz::exec::Limits;
use ddfuzz::triage::{Conditions, Crash, PanicRecord};

/// A crash of this class, of a program that was compiled with these.
fn crash(class: &str, instrumentation: Option<&[&str]>) -> Crash {
    let limits = serde_json::to_value(Limits::default()).unwrap();
    let zero = "0".repeat(32);
    let mut crash: Crash = serde_json::from_value(serde_json::json!({
        "v": 1,
        "keys": {"major": zero, "minor": zero, "stable": null, "version": 1},
        "class": class,
        "ended": {"signal": 11},
        "confidence": "high",
        "severity": "low",
        "severity_reason": "",
        "way": "command",
        "capture": "ptrace",
        "hits": 1,
        "tries": 1,
        "frames": [],
        "limits": limits,
        "found": null,
    }))
    .unwrap();
    crash.details.instrumentation = instrumentation.map(words);
    crash
}

fn words(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn now(instrumentation: Option<&[&str]>) -> Conditions {
    Conditions {
        instrumentation: instrumentation.map(words),
        limits: Limits::default(),
        crash_exit: None,
        program: None,
    }
}

/// What is to be done, where a run of a program that was compiled with these says nothing.
fn hint(crash: &Crash, instrumentation: Option<&[&str]>) -> Option<String> {
    crash.unobservable(&now(instrumentation)).map(|it| it.hint)
}

#[test]
fn what_a_sanitizer_reports_needs_that_sanitizer() {
    let cases: [(&str, &[&str], &[&str]); 12] = [
        // The class, builds that show it, and builds that do not, one after the other.
        ("asan:heap-use-after-free", &["address"], &["memory"]),
        ("hwasan:tag-mismatch", &["hwaddress"], &["address"]),
        ("msan:use-of-uninitialized-value", &["memory"], &["address"]),
        ("tsan:data-race", &["thread"], &["address"]),
        ("lsan:direct-leak", &["leak"], &["memory"]),
        ("lsan:indirect-leak", &["address"], &["undefined"]),
        ("ubsan:bounds", &["undefined"], &["address"]),
        ("ubsan:bounds", &["bounds"], &["shift"]),
        ("ubsan:shift-exponent", &["shift"], &["bounds"]),
        ("ubsan:signed-integer-overflow", &["undefined"], &["bounds"]),
        (
            "ubsan:implicit-conversion",
            &["implicit-conversion"],
            &["undefined"],
        ),
        ("ubsan:add-overflow", &["undefined"], &["thread"]),
    ];
    for (class, shows, hides) in cases {
        let crash = crash(class, None);
        assert_eq!(hint(&crash, Some(shows)), None, "{class} {shows:?}");
        for instrumentation in [hides, &[]] {
            let hint = hint(&crash, Some(instrumentation)).expect(class);
            assert!(hint.contains("-fsanitize="), "{class}: {hint}");
        }
        let unknown = hint(&crash, None).expect(class);
        assert!(unknown.contains("give the program itself"), "{unknown}");
    }
    // What no build shows that it has, a build with the same shows.
    let same: &[&str] = &["address", "undefined"];
    let crash = crash("ubsan:unsigned-integer-overflow", Some(same));
    assert_eq!(hint(&crash, Some(same)), None);
    assert!(hint(&crash, Some(&["undefined"])).is_some());
}

#[test]
fn what_depends_on_the_layout_of_memory_needs_the_same_layout() {
    let builds: [&[&str]; 4] = [&[], &["address"], &["memory", "undefined"], &["undefined"]];
    for class in [
        "segv",
        "bus",
        "smash",
        "wildcall",
        "stackoverflow",
        "hang",
        "oom",
    ] {
        for before in builds {
            for after in builds {
                let shadow = |build: &[&str]| {
                    build
                        .iter()
                        .find(|name| **name != "undefined")
                        .map(|name| (*name).to_owned())
                };
                let same = shadow(before) == shadow(after);
                let told = hint(&crash(class, Some(before)), Some(after)).is_none();
                assert_eq!(told, same, "{class} {before:?} {after:?}");
            }
            // An old record does not say it, and a script cannot.
            assert_eq!(hint(&crash(class, None), Some(before)), None);
            assert_eq!(hint(&crash(class, Some(before)), None), None);
        }
    }
    for class in ["fpe", "ill", "trap", "sys", "rustpanic", "gopanic"] {
        assert_eq!(
            hint(&crash(class, Some(&[])), Some(&["address"])),
            None,
            "{class}"
        );
    }
    // An abort of its own comes in every layout, and what the heap is found to be does not.
    for (via, told) in [("abort", true), ("__assert_fail", true), ("free", false)] {
        let mut crash = crash("abrt", Some(&[]));
        crash.details.via = Some(via.to_owned());
        assert_eq!(hint(&crash, Some(&["address"])).is_none(), told, "{via}");
    }
}

#[test]
fn a_larger_limit_shows_no_hang_and_no_memory_that_runs_away() {
    let then = Limits::default();
    let larger = Limits {
        cpu: then.cpu * 2,
        ..then
    };
    let longer = Limits {
        wall: then.wall * 2,
        ..then
    };
    let wider = Limits {
        memory: then.memory * 2,
        ..then
    };
    let less = Limits {
        cpu: then.cpu / 2,
        memory: 1 << 20,
        ..then
    };
    for (class, limits, hides) in [
        ("hang", larger, true),
        ("hang", longer, true),
        ("hang", less, false),
        ("oom", wider, true),
        ("oom", larger, false),
        ("segv", larger, false),
    ] {
        let now = Conditions {
            limits,
            ..now(Some(&[]))
        };
        let told = crash(class, Some(&[])).unobservable(&now);
        assert_eq!(told.is_some(), hides, "{class}");
    }
}

#[test]
fn overflow_checks_and_statuses_that_count_are_needed() {
    let panic = |message: &str, before: Option<&[&str]>| {
        let mut crash = crash("rustpanic", before);
        crash.details.panic = Some(PanicRecord {
            message: message.to_owned(),
            ..PanicRecord::default()
        });
        crash
    };
    let checked: Option<&[&str]> = Some(&["debug-assertions"]);
    for message in [
        "attempt to add with overflow",
        "unsafe precondition(s) violated: get",
    ] {
        for before in [None, Some(&[][..])] {
            assert!(
                hint(&panic(message, before), Some(&[])).is_some(),
                "{message}"
            );
            assert_eq!(hint(&panic(message, before), checked), None, "{message}");
        }
    }
    // A debug assertion has words of its own.
    assert!(hint(&panic("a > b", checked), Some(&[])).is_some());
    assert_eq!(hint(&panic("a > b", Some(&[])), Some(&[])), None);
    let status = crash("exit:7", Some(&[]));
    let mut conditions = now(Some(&[]));
    let told = status.unobservable(&conditions).unwrap();
    assert!(told.hint.contains("--crash-exit 7"), "{told:?}");
    conditions.crash_exit = Some(7);
    assert_eq!(status.unobservable(&conditions), None);
}

#[test]
fn builds_are_compared_by_their_sanitizers() {
    let of = |names: &[&str]| crash("segv", Some(names));
    assert!(of(&["address"]).is_comparable(Some(&words(&["address"]))));
    assert!(!of(&["address"]).is_comparable(Some(&[])));
    assert!(!of(&[]).is_comparable(Some(&words(&["undefined"]))));
    // Which checks are left changes with the code, and Rust's assertions with the profile.
    assert!(of(&["bounds"]).is_comparable(Some(&words(&["undefined", "debug-assertions"]))));
    assert!(crash("segv", None).is_comparable(Some(&words(&["address"]))));
}
