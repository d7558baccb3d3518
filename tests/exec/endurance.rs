//! Many runs leave nothing behind.

use std::fs;
use std::time::{Duration, Instant};

use ddfuzz::exec::{Ended, Executor, Freshness, Program, Target, Way, start};

use crate::kinds::of_all_kinds;
use crate::needs;
use crate::programs::{compile, patient};
use crate::stage;

/// What a process holds.
#[derive(Debug)]
struct Holds {
    descriptors: usize,
    /// Resident, in KiB.
    memory: u64,
    threads: usize,
    /// Mappings of its memory.
    maps: usize,
}

fn holds(pid: u32) -> Holds {
    let count = |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).unwrap().count();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    Holds {
        descriptors: count("fd"),
        memory: resident
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap()
            .parse()
            .unwrap(),
        threads: count("task"),
        maps: fs::read_to_string(format!("/proc/{pid}/maps"))
            .unwrap()
            .lines()
            .count(),
    }
}

/// All processes below this one, by their parents.
pub fn descendants() -> Vec<u32> {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let rest = stat.get(stat.rfind(')')? + 2..)?;
            Some((pid, rest.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect();
    let mut found = vec![std::process::id()];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(pid, _)| *pid),
        );
        at += 1;
    }
    found.split_off(1)
}

/// Files in the private directories of this process.
fn files() -> usize {
    let ours: Vec<_> = fs::read_dir("/proc/self/fd")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(|path| path.ends_with("lock"))
        .filter_map(|path| Some(path.parent()?.to_owned()))
        .collect();
    assert_eq!(ours.len(), 1, "{ours:?}");
    fs::read_dir(&ours[0]).unwrap().count()
}

#[test]
fn twenty_thousand_runs_leave_nothing_behind() {
    let program = compile("hostile", &[]);
    let mut command = stage::command("endurance", &["endurance::what_runs"], &program.path);
    stage::play(&mut command);
}

#[test]
fn what_runs_for_long_grows_by_nothing() {
    if !stage::plays("endurance") {
        return;
    }
    let bundled = Target::new(Program::Bundled("ul".to_owned()));
    let hostile = Target::new(Program::Path(stage::given()));
    let bounded = |target, way, freshness, runs, input: &[u8]| {
        let mut executor = start(target, Some(way), freshness).unwrap().executor;
        runs_leave_nothing(&mut *executor, runs, input);
    };
    bounded(
        &bundled,
        Way::Harness,
        Freshness::Shared,
        20_000,
        b"a\x08_b\n",
    );
    bounded(
        &bundled,
        Way::Harness,
        Freshness::Fresh,
        3_000,
        b"a\x08_b\n",
    );
    bounded(&hostile, Way::Inject, Freshness::Shared, 3_000, b"crash\n");
    bounded(
        &bundled,
        Way::Snapshot,
        Freshness::Shared,
        10_000,
        b"a\x08_b\n",
    );
    bounded(
        &hostile,
        Way::Command,
        Freshness::Shared,
        1_500,
        b"litter\n",
    );
    assert!(descendants().is_empty());
}

/// The descendants, once there are so many; whatever there are, if that does not come.
fn settled(count: usize) -> Vec<u32> {
    let began = Instant::now();
    loop {
        let found = descendants();
        if found.len() == count || began.elapsed() > Duration::from_secs(5) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn hundreds_of_traced_trees_leave_nothing_behind() {
    let program = compile("family", &["-pthread"]);
    let tests = ["endurance::trees_that_are_traced"];
    let mut command = stage::command("traced trees", &tests, &program.path);
    stage::play(&mut command);
}

#[test]
fn trees_that_are_traced_grow_by_nothing() {
    if !stage::plays("traced trees") {
        return;
    }
    let family = Target::new(Program::Path(stage::given()));
    for (way, input) in [
        (Way::Inject, b"system\n".as_slice()),
        (Way::Inject, b"leaves\n"),
        (Way::Command, b"grandchild\n"),
    ] {
        let mut executor = start(&family, Some(way), Freshness::Shared)
            .unwrap()
            .executor;
        runs_leave_nothing(&mut *executor, 300, input);
    }
    assert!(descendants().is_empty());
}

fn runs_leave_nothing(executor: &mut dyn Executor, runs: usize, input: &[u8]) {
    let run = |times: usize| {
        for _ in 0..times {
            let ended = executor.run(input).unwrap().ended;
            assert!(
                matches!(ended, Ended::Exit(0) | Ended::Signal(11)),
                "{ended}"
            );
        }
    };
    grows_by_nothing(run, 200, runs);
}

/// Calls `run` for the first runs, by which whatever is needed is set up, and for as many more as
/// `runs` says; compares what this process and those below it hold before and after these.
fn grows_by_nothing(mut run: impl FnMut(usize), first: usize, runs: usize) {
    run(first);
    let look = |count: usize| {
        let mut below: Vec<Holds> = settled(count).into_iter().map(holds).collect();
        // Process ids begin anew at some time, and so does their order.
        below.sort_by_key(|process| (process.descriptors, process.memory));
        (holds(std::process::id()), below, files())
    };
    // The child for the next run is forked after the answer to the last.
    std::thread::sleep(Duration::from_millis(50));
    let (us, below, left) = look(descendants().len());
    run(runs);
    let mut now = look(below.len());
    // A child that is just being forked holds more for a moment.
    let began = Instant::now();
    let differ = |now: &[Holds]| {
        let mut both = below.iter().zip(now);
        both.any(|(then, now)| now.descriptors != then.descriptors)
    };
    while differ(&now.1) && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(20));
        now = look(below.len());
    }
    let (us_now, below_now, left_now) = now;
    assert_eq!(us_now.descriptors, us.descriptors);
    assert_eq!(us_now.threads, us.threads);
    assert!(us_now.memory < us.memory + 1024, "{us:?} {us_now:?}");
    assert_eq!(below_now.len(), below.len());
    for (then, now) in below.iter().zip(&below_now) {
        assert_eq!(now.descriptors, then.descriptors);
        assert!(now.memory < then.memory + 1024, "{then:?} {now:?}");
        assert!(now.maps <= then.maps, "{then:?} {now:?}");
    }
    assert_eq!(left_now, left);
}

/// Programs that make many runs in one process, their arguments, and whether their start is frozen.
const SHARING: [(&str, &[&str], bool); 5] = [
    ("grep", &["-c", "a[0-9]*"], false),
    ("jq", &["."], true),
    ("sed", &["s/a/b/g"], false),
    ("sort", &[], false),
    ("troff", &[], true),
];
/// Number of inputs that each of them gets in turn.
const TURN: usize = 48;

#[test]
fn twenty_thousand_runs_of_installed_filters_in_one_process_leave_nothing_behind() {
    for (name, ..) in SHARING {
        let Some(path) = needs::program(name) else {
            continue;
        };
        let tests = ["endurance::what_an_installed_filter_does_for_long"];
        let mut command = stage::command(name, &tests, &path);
        stage::play(&mut command);
    }
}

#[test]
fn what_an_installed_filter_does_for_long_grows_by_nothing() {
    let played = SHARING.iter().find(|(name, ..)| stage::plays(name));
    let Some((name, args, is_frozen)) = played else {
        return;
    };
    let mut target = patient(Program::Path(stage::given()));
    target.args = args.iter().map(Into::into).collect();
    target.freeze_start = *is_frozen;
    let started = start(&target, Some(Way::Snapshot), Freshness::Shared).unwrap();
    let mut executor = started.executor;
    let inputs: Vec<Vec<u8>> = of_all_kinds(0, TURN as u64).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut ends = vec![None; TURN];
    let mut requests = 0;
    let run = |times: usize| {
        for done in 0..times / TURN {
            let mut next = 0;
            while next < TURN {
                let runs = executor.run_some(&inputs[next..]).unwrap();
                for run in runs {
                    let expected = *ends[next].get_or_insert(run.ended);
                    assert_eq!(run.ended, expected, "{name}, input {next}, turn {done}");
                    next += 1;
                }
                requests += 1;
            }
        }
    };
    grows_by_nothing(run, 40 * TURN, 20_000);
    assert!(requests < 10_000, "{name}: {requests} requests");
    drop(executor);
    assert!(descendants().is_empty());
}
