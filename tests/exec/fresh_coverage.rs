//! Coverage of runs that each have a process of their own.

use ddfuzz::exec::{
    CoverageReporting, Ended, Freshness, Program, Target, Way, start, start_covered,
};

use crate::needs;
use crate::programs::{Compiled, compile_by, patient};

/// The harness with these sanitizers; `None`, and said so, without clang.
fn build(flags: &str) -> Option<Compiled> {
    needs::program("clang")?;
    let program = compile_by("clang", "fuzzer", &[flags]);
    if program.is_none() {
        needs::missing("libFuzzer", "clang does not link -fsanitize=fuzzer");
    }
    program
}

fn target(program: &Compiled) -> Target {
    patient(Program::Path(program.path.clone()))
}

#[test]
fn each_run_of_a_harness_has_a_process_of_its_own_and_tells_what_it_reached() {
    for flags in ["-fsanitize=fuzzer", "-fsanitize=fuzzer,address"] {
        let Some(program) = build(flags) else { return };
        let target = target(&program);
        let mut fresh = start_covered(&target, Way::Harness).unwrap();
        assert_eq!(fresh.freshness(), Freshness::Fresh);
        let mut shared = start(&target, Some(Way::Harness), Freshness::Shared)
            .unwrap()
            .executor;
        shared.report_coverage(CoverageReporting::Every);
        assert_eq!(fresh.counter_count(), shared.counter_count());
        // The third call of a process dies.
        for _ in 0..5 {
            assert_eq!(fresh.run(b"T").unwrap().ended, Ended::Exit(0));
            assert!(fresh.coverage().is_some());
            assert!(fresh.preceding().is_empty());
        }
        for input in [&b"Wuud"[..], b"Cuud", b"", b"Wuuuuuuuu", b"Wuud"] {
            shared.run(input).unwrap();
            assert_eq!(fresh.run(input).unwrap().ended, Ended::Exit(0));
            assert_eq!(fresh.coverage(), shared.coverage(), "{input:?}");
        }
    }
}

#[test]
fn a_fresh_run_that_dies_tells_nothing_and_the_next_one_is_as_ever() {
    let Some(program) = build("-fsanitize=fuzzer") else {
        return;
    };
    let mut target = target(&program);
    target.limits.cpu = std::time::Duration::from_millis(300);
    let mut fresh = start_covered(&target, Way::Harness).unwrap();
    fresh.run(b"Wu").unwrap();
    let before = fresh.coverage().unwrap().to_vec();
    for (input, ended) in [
        (b"A", Ended::Signal(libc::SIGABRT)),
        (b"L", Ended::Timeout),
        (b"K", Ended::Signal(libc::SIGKILL)),
    ] {
        assert_eq!(fresh.run(input).unwrap().ended, ended);
        assert_eq!(fresh.coverage(), None);
        assert_eq!(fresh.run(b"Wu").unwrap().ended, Ended::Exit(0));
        assert_eq!(fresh.coverage(), Some(&before[..]));
    }
}

/// Waits until a change of the working directory is certainly noticed: before, fresh runs are
/// requested one by one.
fn wait_for_clock() {
    std::thread::sleep(std::time::Duration::from_millis(30));
}

#[test]
fn fresh_runs_of_one_call_are_as_single_ones() {
    for flags in ["-fsanitize=fuzzer", "-fsanitize=fuzzer,address"] {
        let Some(program) = build(flags) else { return };
        let mut fresh = start_covered(&target(&program), Way::Harness).unwrap();
        let inputs: [&[u8]; 8] = [b"T", b"Wuud", b"R", b"T", b"X", b"", b"T", b"Wu"];
        let single = inputs.map(|input| {
            let ended = fresh.run(input).unwrap().ended;
            (ended, fresh.coverage().map(<[u8]>::to_vec))
        });
        assert_eq!(single[4], (Ended::Exit(3), None));
        wait_for_clock();
        let runs = fresh.run_some(&inputs).unwrap();
        let ended: Vec<Ended> = runs.iter().map(|run| run.ended).collect();
        assert_eq!(ended, single.clone().map(|(ended, _)| ended));
        let mut covered = vec![None; inputs.len()];
        for one in fresh.covered() {
            covered[one.run] = Some(one.counters.clone());
        }
        assert_eq!(covered, single.map(|(_, counters)| counters));
        assert!(fresh.preceding().is_empty());
        // A run that dies ends the call.
        let runs = fresh.run_some(&[b"T", b"T", b"A", b"T"]).unwrap();
        let ended: Vec<Ended> = runs.iter().map(|run| run.ended).collect();
        let died = Ended::Signal(libc::SIGABRT);
        assert_eq!(ended, [Ended::Exit(0), Ended::Exit(0), died]);
        assert_eq!(fresh.covered().len(), 2);
        assert_eq!(fresh.run(b"T").unwrap().ended, Ended::Exit(0));
    }
}

#[test]
fn no_fresh_run_sees_a_file_of_the_one_before() {
    let Some(program) = build("-fsanitize=fuzzer") else {
        return;
    };
    let mut fresh = start_covered(&target(&program), Way::Harness).unwrap();
    for inputs in [[b"T", b"O", b"O", b"T"], [b"O", b"O", b"O", b"O"]] {
        let mut done = 0;
        while done < inputs.len() {
            wait_for_clock();
            let rest: Vec<&[u8]> = inputs[done..].iter().map(|input| &input[..]).collect();
            let runs = fresh.run_some(&rest).unwrap();
            assert!(runs.iter().all(|run| run.ended == Ended::Exit(0)));
            done += runs.len();
        }
    }
    let runs = fresh.run_some(&[b"T", b"T"]).unwrap();
    assert_eq!(runs.len(), 1, "one by one after a run has left a file");
}

#[test]
fn an_executor_of_many_runs_in_one_process_also_makes_fresh_ones() {
    let Some(program) = build("-fsanitize=fuzzer,address") else {
        return;
    };
    let target = target(&program);
    let started = start(&target, Some(Way::Harness), Freshness::Shared);
    let mut executor = started.unwrap().executor;
    let fine = Ended::Exit(0);
    for crash in [&b"A"[..], b"K", b"A"] {
        // The third call of a process dies.
        for _ in 0..2 {
            assert_eq!(executor.run(b"T").unwrap().ended, fine);
        }
        for _ in 0..4 {
            assert_eq!(executor.run_fresh(b"T").unwrap().unwrap().ended, fine);
        }
        assert_eq!(executor.freshness(), Freshness::Shared);
        let crashed = executor.run_fresh(crash).unwrap().unwrap();
        assert!(matches!(crashed.ended, Ended::Signal(_)), "{crashed:?}");
        for _ in 0..2 {
            assert_eq!(executor.run(b"T").unwrap().ended, fine);
        }
        assert!(matches!(
            executor.run(b"T").unwrap().ended,
            Ended::Signal(_)
        ));
        assert_eq!(executor.run_fresh(b"T").unwrap().unwrap().ended, fine);
    }
}

#[test]
fn a_way_without_coverage_starts_and_tells_none() {
    let target = Target::new(Program::Bundled("ul".to_owned()));
    let mut executor = start_covered(&target, Way::Inject).unwrap();
    assert_eq!(executor.counter_count(), None);
    assert_eq!(executor.run(b"text").unwrap().ended, Ended::Exit(0));
    assert_eq!(executor.coverage(), None);
}
