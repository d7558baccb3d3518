//! What counts as a crash, and how often it is looked for.

use std::time::Duration;

use ddfuzz::exec::{Ended, Limits};
use ddfuzz::triage::{Confidence, Quick, Settings, Triager, Verdict};

use crate::programs::{PLAIN, SLOW_IF_TRACED, STRIPPED};
use crate::start::Starter;
use crate::{crash, keys, own_names, triager};

#[test]
fn a_run_that_does_not_crash_is_flaky_after_three_tries() {
    let verdict = triager(&PLAIN).examine(b"fine").expect("the target runs");
    assert_eq!(
        verdict,
        Verdict::Flaky {
            tries: 3,
            ended: Ended::Exit(0),
            read: None
        }
    );
}

#[test]
fn a_crash_that_needs_randomized_addresses_is_found_by_the_third_try() {
    let crash = crash(&PLAIN, b"random");
    assert_eq!((crash.hits, crash.tries), (1, 3));
}

#[test]
fn a_handler_that_exits_makes_it_no_crash() {
    let quick = triager(&PLAIN).key(b"handled").expect("the target runs");
    assert_eq!(quick, Quick::Ended(Ended::Exit(3)));
}

#[test]
fn a_handler_that_raises_again_does_not_hide_the_place() {
    let plain = crash(&PLAIN, b"deep");
    for input in ["reraised", "late-abort"] {
        let handled = crash(&PLAIN, input.as_bytes());
        assert_eq!(handled.keys, plain.keys, "{input}");
        assert_eq!(handled.details.fault, plain.details.fault, "{input}");
    }
}

#[test]
fn after_many_faults_that_were_survived_a_handler_that_aborts_does_not_hide_the_place() {
    let plain = crash(&PLAIN, b"deep");
    let late = crash(&PLAIN, b"survived");
    assert_eq!((&late.class, &late.keys), (&plain.class, &plain.keys));
    assert_eq!(late.details.fault, plain.details.fault);
    let other = crash(&PLAIN, b"survived aaa");
    assert_ne!(other.keys.minor, late.keys.minor);
}

#[test]
fn a_signal_that_is_no_crash_is_no_crash() {
    let quick = triager(&PLAIN).key(b"killed").expect("the target runs");
    assert_eq!(quick, Quick::Ended(Ended::Signal(libc::SIGTERM)));
}

#[test]
fn a_crash_in_a_thread_is_seen() {
    let crash = crash(&PLAIN, b"thread");
    assert_eq!(own_names(&crash), ["touch", "thread"]);
}

#[test]
fn the_exit_status_asked_for_is_a_crash_and_named_by_who_exits() {
    let mut starter = Starter::new(PLAIN.path());
    starter.crash_exit = Some(7);
    let mut triager = Triager::new(Box::new(starter));
    let Verdict::Crash(crash) = triager.examine(b"exit-7").expect("the target runs") else {
        panic!("no crash");
    };
    assert_eq!(crash.class.0, "exit:7");
    assert_eq!(crash.ended, Ended::Exit(7));
    assert_eq!(crash.details.via.as_deref(), Some("exit"));
    assert_eq!(own_names(&crash)[0], "exits");
    assert_eq!(
        triager.key(b"fine").expect("the target runs"),
        Quick::Ended(Ended::Exit(0))
    );
}

#[test]
fn a_handler_that_exits_with_the_status_asked_for_is_named_by_what_it_handles() {
    let mut starter = Starter::new(PLAIN.path());
    starter.crash_exit = Some(3);
    let mut triager = Triager::new(Box::new(starter));
    let (class, a, _) = keys(&mut triager, b"handled-exit aaa");
    let (_, b, _) = keys(&mut triager, b"handled-exit");
    assert_eq!(class, "exit:3");
    assert_eq!(a, b, "both fail in the same helper");
}

fn is_hang(quick: &Quick) -> bool {
    matches!(quick, Quick::Crash { class, .. } if class.0 == "hang")
}

#[test]
fn a_run_over_its_cpu_time_is_a_timeout() {
    let mut starter = Starter::new(PLAIN.path());
    let cpu = Duration::from_millis(50);
    starter.limits = Limits {
        wall: Duration::from_secs(60),
        ..Limits::with_cpu(cpu)
    };
    let quick = Triager::new(Box::new(starter))
        .key(b"spin")
        .expect("the target runs");
    assert!(is_hang(&quick), "{quick:?}");
}

#[test]
fn a_run_that_sleeps_is_a_timeout_after_the_wall_limit() {
    let mut starter = Starter::new(PLAIN.path());
    starter.limits = Limits {
        wall: Duration::from_millis(50),
        ..Limits::default()
    };
    let quick = Triager::new(Box::new(starter))
        .key(b"sleep")
        .expect("the target runs");
    assert!(is_hang(&quick), "{quick:?}");
}

#[test]
fn a_run_that_is_slow_only_under_the_tracer_is_no_hang() {
    let mut starter = Starter::new(SLOW_IF_TRACED.path());
    starter.limits.wall = Duration::from_millis(100);
    let quick = Triager::new(Box::new(starter)).key(b"");
    let quick = quick.expect("the target runs");
    assert!(
        matches!(&quick, Quick::Crash { class, .. } if class.0 == "segv"),
        "{quick:?}"
    );
}

#[test]
fn without_tracing_the_signal_alone_names_the_crash() {
    let mut starter = Starter::new(PLAIN.path());
    starter.refuse = true;
    let mut triager = Triager::new(Box::new(starter));
    let Verdict::Crash(crash) = triager.examine(b"deep").expect("the target runs") else {
        panic!("no crash");
    };
    assert_eq!(
        (crash.class.0.as_str(), crash.capture.as_str()),
        ("segv", "status")
    );
    assert_eq!(crash.confidence, Confidence::Low);
    assert!(crash.frames.is_empty());
    let other = keys(&mut triager, b"other");
    assert_eq!(other.1, crash.keys.major, "only the class is known");
}

#[test]
fn several_triagers_work_at_a_time() {
    let expected = keys(&mut triager(&STRIPPED), b"helper-a");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut triager = triager(&STRIPPED);
                for _ in 0..10 {
                    assert_eq!(keys(&mut triager, b"helper-a"), expected);
                }
            });
        }
    });
}

#[test]
fn functions_named_by_the_user_are_dropped() {
    let settings = Settings {
        dropped: vec!["touch".to_owned()],
        ..Settings::default()
    };
    let starter = Starter::new(PLAIN.path());
    let mut triager = Triager::with_settings(Box::new(starter), settings);
    let [a, b] = ["helper-a", "helper-b"].map(|input| keys(&mut triager, input.as_bytes()).1);
    assert_ne!(a, b, "the helper does not name the bug any more");
}

#[test]
fn a_triager_can_be_moved_to_a_worker() {
    fn is_send<T: Send>() {}
    is_send::<Triager>();
}
