//! Inputs that do not end well: they are told apart, and no other pays for them.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ddfuzz::corpus::journal::Observation;
use ddfuzz::corpus::measure::{Contents, MeasureSettings, measure};
use ddfuzz::corpus::{ContentId, Features};
use ddfuzz::exec::{Ended, Target, Way};

use crate::harness::{afl, harness, harness_with};
use crate::seats::{Seats, bundled, lines, settings};

/// What the content `bytes` did.
fn seen(contents: &Contents, bytes: &[u8]) -> Observation {
    let number = contents.find(&ContentId::of(bytes)).expect("a content");
    contents.first_run(number).unwrap()
}

/// The corpus, measured by two workers and this way.
fn by(way: Way, target: &Target, seats: &Seats) -> Contents {
    let stop = AtomicBool::new(false);
    let settings = MeasureSettings {
        way,
        ..settings(target, 2, &stop)
    };
    measure(&[seats.corpus()], &seats.out(), &settings, &mut |_| {}).unwrap()
}

const ENDS: &str = "
    if (length > 0 && text[0] == '<') abort();
    if (length > 0 && text[0] == '>') _exit(3);
    if (length > 0 && text[0] == 'h') for (;;) place++;
    if (length > 1 && text[0] == 'a') { if (text[1] == 'b') place = 1; else place = 2; }
";

#[test]
fn a_run_that_ends_badly_gives_no_other_a_wrong_coverage() {
    let Some(mut target) = harness("ends", ENDS) else {
        return;
    };
    target.limits.cpu = Duration::from_millis(200);
    let (mixed, good) = (Seats::new(), Seats::new());
    for number in 0..200 {
        let name = format!("{number:03}");
        let text = format!("a{}{number}", ["b", "c"][number % 2]);
        mixed.put(&name, &text);
        good.put(&name, &text);
        match number % 40 {
            0 => mixed.put(format!("{name}-crash"), format!("<{number}")),
            1 => mixed.put(format!("{name}-exit"), format!(">{number}")),
            2 => mixed.put(format!("{name}-hang"), format!("h{number}")),
            _ => continue,
        };
    }
    let (mixed, good) = (mixed.measure(&target, 2), good.measure(&target, 1));
    assert_eq!((mixed.len(), good.len()), (215, 200));
    assert_eq!(mixed.progress.suspicious, 10);
    for line in lines(&good) {
        assert_eq!(line.seen.ended, Ended::Exit(0));
        assert!(line.seen.features.as_ref().is_some_and(|f| !f.is_empty()));
        let same = lines(&mixed).into_iter().find(|other| other.id == line.id);
        assert_eq!(same.unwrap().seen, line.seen);
    }
    let crash = seen(&mixed, b"<40");
    assert_eq!(crash.ended, Ended::Signal(6));
    assert_eq!(crash.alone, Some(Ended::Signal(6)));
    assert!(crash.suspicious && crash.features.is_none());
    let hang = seen(&mixed, b"h42");
    assert_eq!((hang.ended, hang.suspicious), (Ended::Timeout, true));
    let exit = seen(&mixed, b">41");
    assert_eq!((exit.ended, exit.suspicious), (Ended::Exit(3), false));
    assert_eq!(exit.features, None);
}

#[test]
fn the_status_that_counts_as_a_crash_is_suspicious() {
    let Some(mut target) = harness("ends", ENDS) else {
        return;
    };
    target.crash_exit = Some(3);
    let seats = Seats::new();
    seats.put("exit", ">");
    seats.put("good", "a");
    let contents = seats.measure(&target, 1);
    assert!(seen(&contents, b">").suspicious);
    assert!(!seen(&contents, b"a").suspicious);
}

#[test]
fn what_others_left_in_a_process_is_no_fault_of_the_next() {
    // Slow once, and dead once, for what was run before.
    let body = "if (runs % 50 == 49) { for (long i = 0; i < 60000000; i++) place++; }";
    let Some(mut target) = harness("hoarder", body) else {
        return;
    };
    target.limits.cpu = Duration::from_secs(20);
    let seats = Seats::new();
    for number in 0..150 {
        seats.put(format!("{number}"), format!("{number}"));
    }
    let contents = seats.measure(&target, 1);
    assert_eq!((contents.len(), contents.progress.suspicious), (150, 0));
    let steady: Vec<Option<Features>> = lines(&contents)
        .into_iter()
        .map(|line| line.seen.features)
        .collect();
    assert!(steady.iter().all(Option::is_some));
}

#[test]
fn a_crash_that_does_not_come_alone_is_kept_with_what_it_reaches_alone() {
    let body = "if (runs == 30) abort(); if (length > 1) place = 1;";
    let Some(target) = harness("thirtieth", body) else {
        return;
    };
    let seats = Seats::new();
    for number in 0..100 {
        seats.put(format!("{number}"), format!("{number}"));
    }
    let contents = seats.measure(&target, 1);
    assert!(contents.progress.suspicious > 0);
    for line in lines(&contents) {
        assert!(
            line.seen
                .features
                .is_some_and(|features| !features.is_empty())
        );
        match line.seen.suspicious {
            true => {
                assert_eq!(line.seen.ended, Ended::Signal(6));
                assert_eq!(line.seen.alone, Some(Ended::Exit(0)));
            }
            false => assert_eq!(line.seen.ended, Ended::Exit(0)),
        }
    }
}

#[test]
fn a_fork_server_of_afl_tells_the_coverage_of_what_comes_back() {
    let Some(mut target) = afl("afl-ends", ENDS) else {
        return;
    };
    target.limits.cpu = Duration::from_millis(500);
    let seats = Seats::new();
    for text in ["ab", "ac", "aab", "<", ">", "h"] {
        seats.put(format!("again-{text}").replace('<', "lt"), text);
        seats.put(format!("queue/{text}").replace('<', "lt"), text);
    }
    let contents = by(Way::Forkserver, &target, &seats);
    assert!(contents.places.is_some_and(|places| places > 0));
    let features = |bytes: &[u8]| seen(&contents, bytes).features;
    assert_ne!(features(b"ab"), features(b"ac"));
    assert_ne!(features(b"ab"), None);
    // Each run has a process of its own, and an exit is an end like any other.
    assert_ne!(features(b">"), None);
    let crash = seen(&contents, b"<");
    assert_eq!((crash.ended, crash.alone), (Ended::Signal(6), None));
    assert_eq!(seen(&contents, b"h").ended, Ended::Timeout);
    assert_eq!(contents.progress.suspicious, 2);
}

#[test]
fn a_way_without_coverage_tells_how_runs_end() {
    let seats = Seats::new();
    let line = format!("{}\n", "x".repeat(600));
    seats.put("long", &line);
    seats.put("good", "text\n");
    let contents = by(Way::Command, &bundled("ul"), &seats);
    assert_eq!(contents.places, None);
    let (good, long) = (seen(&contents, b"text\n"), seen(&contents, line.as_bytes()));
    assert_eq!((good.features, good.ended), (None, Ended::Exit(0)));
    assert_eq!(good.read, Some(5));
    assert!(good.time > Duration::ZERO);
    assert!(long.suspicious && matches!(long.ended, Ended::Signal(_)));
    assert_eq!(long.alone, None);
}

#[test]
fn a_run_reports_how_deep_its_stack_was() {
    let deep = "__attribute__((noinline)) static int deep(size_t n)
        { volatile char room[64]; room[0] = (char)n; return n ? deep(n - 1) + room[0] : 0; }";
    let Some(target) = harness_with("depth", deep, "place = deep(length / 2);") else {
        return;
    };
    let seats = Seats::new();
    for length in 0..64 {
        seats.put(format!("{length:02}"), "x".repeat(length));
    }
    let contents = seats.measure(&target, 2);
    let depth = |length| seen(&contents, "x".repeat(length).as_bytes()).stack_depth;
    if cfg!(target_arch = "x86_64") {
        let least = depth(0).unwrap();
        let step = depth(2).unwrap() - least;
        assert!(step > 0);
        for length in 0..64 {
            let calls = length as u64 / 2;
            assert_eq!(depth(length), Some(least + calls * step), "{length}");
        }
    }
}
