//! The deferred fork point of `inject`: where it is, and that runs from there are as those of new
//! processes.

use std::collections::BTreeSet;
use std::time::Duration;

use ddfuzz::exec::{Ended, Freshness, Started, Target, Way, start};

use crate::programs::{Compiled, compile, running, target};

fn doing(program: &Compiled, words: &[&str]) -> Target {
    let mut target = target(program);
    target.args = words.iter().map(Into::into).collect();
    target.limits.cpu = Duration::from_millis(100);
    target
}

fn begin(program: &Compiled, words: &[&str], way: Way) -> Started {
    let started = start(&doing(program, words), Some(way), Freshness::Shared);
    started.unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// How runs on three inputs end, the last one again.
fn ends(program: &Compiled, words: &[&str], way: Way) -> Vec<Ended> {
    let mut executor = begin(program, words, way).executor;
    let inputs: [&[u8]; 4] = [b"", b"crash", b"longer than that", b"longer than that"];
    let ends = inputs.map(|input| executor.run(input).unwrap().ended);
    drop(executor);
    assert_eq!(running(&program.path), 0, "{words:?}");
    ends.to_vec()
}

#[test]
fn runs_from_the_fork_point_end_as_new_processes_do() {
    let program = compile("defer", &["-pthread"]);
    for words in [
        &["reads"][..],
        &["pid"],
        &["mutex"],
        &["rest"],
        &["mask"],
        &["no-stack"],
        &["own-stack"],
        &["state"],
        &["fork"],
        &["thread"],
        &["locale"],
        &["descriptors"],
        &["timer"],
        &["recovers"],
        &["handler"],
        &["terminal"],
        &["prints"],
        &["never-reads"],
        &["crashes"],
        &["divides"],
        &["aborts"],
        &["loops"],
        &["looks"],
        &["null"],
        &["stands"],
        &["stdin-path"],
        &["size", "@@"],
        &["descriptors", "@@"],
        &["rest", "@@"],
    ] {
        let expected = ends(&program, words, Way::Command);
        assert_eq!(ends(&program, words, Way::Inject), expected, "{words:?}");
    }
}

#[test]
fn the_fork_point_is_the_first_call_whose_result_may_differ() {
    let program = compile("defer", &["-pthread"]);
    for (words, place) in [
        (&["reads"][..], "before its first read"),
        (&["rest"], "before its first read"),
        (&["mask"], "before its first read"),
        (&["locale"], "before its first read"),
        (&["state"], "before its first read"),
        (&["looks"], "before its first read"),
        (&["null"], "before its first read"),
        (&["stands"], "before its first read"),
        (&["stdin-path"], "before its first stat of a file"),
        (&["terminal"], "before its first read"),
        (&["pid"], "before its first use of its process id"),
        (&["random"], "before its first random number"),
        (&["prints"], "before its first write"),
        (&["never-reads"], "before its first exit"),
        (&["size", "@@"], "before its first stat of a file"),
        (&["rest", "@@"], "before its first open of a file"),
        (&["time"], "where it first reads the time"),
        (&["coarse-time"], "where it first reads the time"),
        (&["counter"], "where it first reads the time"),
        (&["crashes"], "where it crashes on any input"),
        (&["loops"], "after 0.5 s of CPU time"),
    ] {
        let why = begin(&program, words, Way::Inject).why;
        assert!(why.contains(place), "{words:?}: {why}");
    }
}

#[test]
fn each_run_has_its_own_time_and_randomness() {
    let program = compile("defer", &["-pthread"]);
    for word in ["time", "counter", "random"] {
        let mut executor = begin(&program, &[word], Way::Inject).executor;
        let ends: BTreeSet<_> = (0..12)
            .map(|_| format!("{:?}", executor.run(b"x").unwrap().ended))
            .collect();
        assert!(ends.len() > 1, "{word}: {ends:?}");
    }
}

/// How twelve runs on the same input end, of a program whose start is frozen.
fn frozen(program: &Compiled, word: &str, freshness: Freshness) -> (String, BTreeSet<String>) {
    let mut target = doing(program, &[word]);
    target.freeze_start = true;
    let mut started = start(&target, Some(Way::Snapshot), freshness).unwrap();
    let ends = (0..12).map(|_| format!("{:?}", started.executor.run(b"x").unwrap().ended));
    (started.why, ends.collect())
}

#[test]
fn users_are_told_where_a_frozen_start_would_be_longer() {
    let program = compile("defer", &["-pthread"]);
    for (word, is_later) in [
        ("time", true),
        ("random", true),
        ("pid", true),
        ("reads", false),
    ] {
        let why = begin(&program, &[word], Way::Snapshot).why;
        assert_eq!(why.contains("later with --freeze-start"), is_later, "{why}");
    }
}

#[test]
fn a_frozen_start_is_shared_by_runs_of_one_process_and_by_no_new_ones() {
    let program = compile("defer", &["-pthread"]);
    for word in ["time", "coarse-time", "counter", "random"] {
        let (why, ends) = frozen(&program, word, Freshness::Shared);
        assert!(why.contains("before its first read"), "{word}: {why}");
        assert_eq!(ends.len(), 1, "{word}: {ends:?}");
    }
    for word in ["time", "counter", "random"] {
        let (why, ends) = frozen(&program, word, Freshness::Fresh);
        assert!(!why.contains("before its first read"), "{word}: {why}");
        assert!(ends.len() > 1, "{word}: {ends:?}");
    }
    assert_eq!(running(&program.path), 0);
}

#[test]
fn cpu_time_does_not_go_backwards_behind_a_frozen_start() {
    let program = compile("defer", &["-pthread"]);
    let (why, ends) = frozen(&program, "cpu-time", Freshness::Shared);
    assert_eq!(ends, BTreeSet::from(["Exit(0)".to_owned()]), "{why}");
    assert!(!why.contains("later with --freeze-start"), "{why}");
}

#[test]
fn a_kernel_that_cannot_watch_calls_forks_at_main() {
    let program = compile("defer", &["-pthread"]);
    let mut target = doing(&program, &["state"]);
    let at_main = compile("at_main", &["-shared", "-fPIC"]);
    target.env = vec![
        ("LD_PRELOAD".into(), at_main.path.clone().into()),
        ("AT_MAIN".into(), "1".into()),
    ];
    let mut started = start(&target, Some(Way::Inject), Freshness::Shared).unwrap();
    assert!(started.why.contains("forked at main"), "{}", started.why);
    let ended = started.executor.run(b"x").unwrap().ended;
    assert_eq!(ended, Ended::Exit(0));
}
