//! What programs do to their own fork server, and what stays behind.

use std::time::{Duration, Instant};

use ddfuzz::exec::{Ended, Freshness, Limits, Program, Way};

use crate::endurance::descendants;
use crate::forkserver::{by, instrumented};
use crate::programs::{patient, running, target};
use crate::stage;

#[test]
fn nuisances_end_as_they_do_by_command() {
    let Some(program) = instrumented("hostile", &[]) else {
        return;
    };
    let target = target(&program);
    let mut command = by(&target, Way::Command, Freshness::Fresh);
    let mut own = by(&target, Way::Forkserver, Freshness::Shared);
    for word in [
        "crash",
        "abort",
        "flood",
        "stubborn",
        "eat",
        "children",
        "busy-children",
        "busy-orphans",
        "shares",
        "reserves",
        "nests",
        "traced",
        "undumpable",
        "blocked",
        "litter",
        "\x05",
    ] {
        let input = format!("{word}\n");
        let expected = command.run(input.as_bytes()).unwrap().ended;
        let ended = own.run(input.as_bytes()).unwrap().ended;
        assert_eq!(ended, expected, "{word}");
        assert_eq!(own.run(b"\x05\n").unwrap().ended, Ended::Exit(5), "{word}");
    }
}

#[test]
fn the_time_of_those_killed_before_is_not_that_of_a_run() {
    let Some(program) = instrumented("hostile", &[]) else {
        return;
    };
    let mut own = by(&target(&program), Way::Forkserver, Freshness::Shared);
    // They stay in the server's list, dead, with all the time they had used.
    for word in ["busy-children", "busy-orphans"] {
        let ended = own.run(format!("{word}\n").as_bytes()).unwrap().ended;
        assert_eq!(ended, Ended::Timeout, "{word}");
        // Long enough to be looked at, and idle.
        let ended = own.run(b"doze\n").unwrap().ended;
        assert_eq!(ended, Ended::Exit(0), "after {word}");
    }
}

#[test]
fn nothing_of_a_run_outlives_it() {
    for flags in [&[][..], &["-DDEFERRED"]] {
        let Some(program) = instrumented("afl_branches", flags) else {
            return;
        };
        let mut executor = by(&target(&program), Way::Forkserver, Freshness::Shared);
        for _ in 0..40 {
            assert_eq!(executor.run(b"o").unwrap().ended, Ended::Exit(0));
            // The server, and those that are dead and nobody waits for.
            assert!(running(&program.path) <= 1);
        }
        drop(executor);
        assert_eq!(running(&program.path), 0);
    }
}

#[test]
fn a_process_that_crashes_takes_along_what_it_has_started() {
    let Some(program) = instrumented("afl_branches", &["-DPERSISTENT"]) else {
        return;
    };
    let mut executor = by(&target(&program), Way::Forkserver, Freshness::Shared);
    for _ in 0..5 {
        executor.run(b"o").unwrap();
        assert_eq!(executor.run(b"a").unwrap().ended, Ended::Signal(6));
        assert!(running(&program.path) <= 1);
    }
}

#[test]
fn a_run_that_kills_its_server_ends_as_killed() {
    for flags in [&[][..], &["-DPERSISTENT"]] {
        let Some(program) = instrumented("afl_branches", flags) else {
            return;
        };
        let mut executor = by(&target(&program), Way::Forkserver, Freshness::Shared);
        assert_eq!(executor.run(b"v").unwrap().ended, Ended::Signal(9));
        assert_eq!(executor.run(b"x").unwrap().ended, Ended::Exit(7));
    }
}

/// The segments of shared memory that this process has made, each as the kernel lists it.
fn segments(creator: u32) -> Vec<String> {
    let list = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let creator = creator.to_string();
    list.lines()
        .skip(1)
        .filter(|line| line.split_whitespace().nth(4) == Some(&creator))
        .map(str::to_owned)
        .collect()
}

/// Fails where a process below this one, or shared memory of it, is left for long. What was killed
/// may still be at its end, and keeps its memory until then.
#[track_caller]
fn assert_nothing_stays() {
    let left = || -> Vec<String> {
        let processes = descendants().into_iter().map(|pid| {
            let read = |name| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
            format!("{:?} {:?}", read("stat"), read("cmdline"))
        });
        processes.chain(segments(std::process::id())).collect()
    };
    let gone = within(Duration::from_secs(20), || left().is_empty());
    assert!(gone, "{:#?}", left());
}

#[test]
fn whatever_is_killed_between_runs_is_started_again() {
    let Some(program) = instrumented("afl_branches", &["-DPERSISTENT"]) else {
        return;
    };
    let tests = ["forkserver_hostile::between_runs"];
    stage::play(&mut stage::command(
        "own server, between runs",
        &tests,
        &program.path,
    ));
    assert_eq!(running(&program.path), 0);
}

#[test]
fn between_runs_any_process_of_an_own_server_may_die() {
    if !stage::plays("own server, between runs") {
        return;
    }
    let mut target = patient(Program::Path(stage::given()));
    target.limits.cpu = Duration::from_millis(500);
    let mut executor = by(&target, Way::Forkserver, Freshness::Shared);
    assert_eq!(segments(std::process::id()).len(), 2);
    for round in 0..12 {
        assert_eq!(executor.run(b"y").unwrap().ended, Ended::Exit(0));
        assert_eq!(executor.run(b"x").unwrap().ended, Ended::Exit(7));
        assert_eq!(executor.run(b"y").unwrap().ended, Ended::Exit(0));
        let below = descendants();
        let victim = below[round % below.len()].cast_signed();
        // SAFETY: kill takes two numbers.
        unsafe { libc::kill(victim, libc::SIGKILL) };
    }
    drop(executor);
    assert_nothing_stays();
}

#[test]
fn when_both_keepers_are_killed_at_once_nothing_stays() {
    let Some(program) = instrumented("afl_branches", &["-DPERSISTENT"]) else {
        return;
    };
    let tests = ["forkserver_hostile::both_keepers"];
    stage::play(&mut stage::command(
        "own server, no keepers",
        &tests,
        &program.path,
    ));
    assert_eq!(running(&program.path), 0);
}

#[test]
fn both_keepers_of_an_own_server_may_die_at_once() {
    if !stage::plays("own server, no keepers") {
        return;
    }
    let mut target = patient(Program::Path(stage::given()));
    target.limits.cpu = Duration::from_millis(500);
    let mut executor = by(&target, Way::Forkserver, Freshness::Shared);
    for input in [b"y", b"o"] {
        // Its process waits for the next run, or has started one that is to be swept.
        assert_eq!(executor.run(input).unwrap().ended, Ended::Exit(0));
        let below = descendants();
        // Stopped first, so that neither notices the end of the other.
        for signal in [libc::SIGSTOP, libc::SIGKILL] {
            for keeper in &below[..2] {
                // SAFETY: kill takes two numbers.
                unsafe { libc::kill(keeper.cast_signed(), signal) };
            }
        }
        // The server dies with them.
        let dead = || below[..3].iter().all(|pid| is_dead(*pid));
        assert!(within(Duration::from_secs(20), dead));
        assert_eq!(executor.run(b"x").unwrap().ended, Ended::Exit(7));
        assert_eq!(executor.run(b"y").unwrap().ended, Ended::Exit(0));
        assert!(running(&stage::given()) <= 2); // the new server, and its child
    }
    drop(executor);
    assert_nothing_stays();
}

#[test]
fn a_killed_ddfuzz_leaves_neither_processes_nor_segments() {
    let Some(program) = instrumented("afl_branches", &["-DPERSISTENT"]) else {
        return;
    };
    let tests = ["forkserver_hostile::a_sleeper_sleeps_until"];
    let mut command = stage::command("own server, killed", &tests, &program.path);
    let mut ddfuzz = stage::begin(&mut command);
    // The server, and the process of the run.
    let came = within(Duration::from_secs(20), || running(&program.path) == 2);
    let made = segments(ddfuzz.id()).len();
    ddfuzz.kill().unwrap();
    ddfuzz.wait().unwrap();
    assert!(came);
    assert_eq!(made, 2);
    let gone = || running(&program.path) == 0 && segments(ddfuzz.id()).is_empty();
    assert!(within(Duration::from_secs(20), gone));
}

/// Whether the process is gone, or waits for nothing but its parent.
fn is_dead(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rfind(')').map(|end| &stat[end + 2..]);
    state.is_none_or(|state| state.starts_with(['Z', 'X']))
}

fn within(patience: Duration, is_so: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < patience {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn a_sleeper_sleeps_until_its_ddfuzz_is_killed() {
    if !stage::plays("own server, killed") {
        return;
    }
    let mut target = patient(Program::Path(stage::given()));
    target.limits = Limits::with_cpu(Duration::from_secs(60));
    let _ = by(&target, Way::Forkserver, Freshness::Shared).run(b"s");
    panic!("a run of two minutes has ended");
}
