//! libFuzzer binaries as clang has built them.

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use ddfuzz::exec::{
    CoverageReporting, Ended, Executor, Freshness, Program, Stuck, Target, Way, observe, start,
};

use crate::needs;
use crate::programs::{Compiled, compile_by, patient};
use crate::stream::stream;

/// Builds the harness with these sanitizers besides; `None`, and said so, without clang.
fn build(flags: &[&str]) -> Option<Compiled> {
    needs::program("clang")?;
    let program = compile_by("clang", "fuzzer", flags);
    if program.is_none() {
        needs::missing("libFuzzer", "clang does not link -fsanitize=fuzzer");
    }
    program
}

const PLAIN: [&str; 1] = ["-fsanitize=fuzzer"];
const ADDRESS: [&str; 1] = ["-fsanitize=fuzzer,address"];

fn target(program: &Compiled) -> Target {
    patient(Program::Path(program.path.clone()))
}

fn by(target: &Target, way: Way, freshness: Freshness) -> Box<dyn Executor> {
    start(target, Some(way), freshness).unwrap().executor
}

fn shared(program: &Compiled) -> Box<dyn Executor> {
    by(&target(program), Way::Harness, Freshness::Shared)
}

#[test]
fn a_libfuzzer_binary_is_run_by_its_entry_and_tells_its_counters() {
    let Some(program) = build(&PLAIN) else { return };
    let started = start(&target(&program), None, Freshness::Shared).unwrap();
    assert_eq!(started.executor.way(), Way::Harness);
    assert!(started.why.contains("libFuzzer"), "{}", started.why);
    assert!(started.why.contains(" counters"), "{}", started.why);
}

#[test]
fn a_stripped_one_runs_by_its_main_and_says_that_nothing_is_told_of_coverage() {
    let Some(program) = build(&PLAIN) else { return };
    let stripped = Command::new("strip").arg(&program.path).status().unwrap();
    assert!(stripped.success());
    let mut started = start(&target(&program), None, Freshness::Shared).unwrap();
    assert!(started.why.contains("coverage"), "{}", started.why);
    let endings = [b"A", b"R", b"x"].map(|input| started.executor.run(input).unwrap().ended);
    assert_eq!(
        endings,
        [Ended::Signal(libc::SIGABRT), Ended::Exit(0), Ended::Exit(0)]
    );
}

/// Inputs of every kind that ends by itself, more of them passing.
fn inputs(count: u64) -> Vec<Vec<u8>> {
    let kinds = b"ASFHRWCxyWCz";
    (0..count)
        .map(|seed| {
            let mut input = stream(seed, (seed * 5 % 90) as usize);
            input.insert(0, kinds[seed as usize % kinds.len()]);
            input
        })
        .collect()
}

#[test]
fn a_harness_ends_as_libfuzzers_own_main_does() {
    for flags in [PLAIN, ADDRESS] {
        let Some(program) = build(&flags) else { return };
        let target = target(&program);
        let mut command = by(&target, Way::Command, Freshness::Fresh);
        let mut others = [
            by(&target, Way::Inject, Freshness::Fresh),
            by(&target, Way::Harness, Freshness::Fresh),
            by(&target, Way::Harness, Freshness::Shared),
        ];
        for (index, input) in inputs(60).iter().enumerate() {
            // A byte beyond a block without a sanitizer is whatever stands there.
            if flags == PLAIN && input[0] == b'H' {
                continue;
            }
            let expected = command.run(input).unwrap().ended;
            for (which, other) in others.iter_mut().enumerate() {
                let ended = other.run(input).unwrap().ended;
                assert_eq!(ended, expected, "{flags:?}, input {index}, way {which}");
            }
        }
    }
}

#[test]
fn many_inputs_at_once_end_as_each_of_them_alone() {
    let Some(program) = build(&PLAIN) else { return };
    let (mut alone, mut together) = (shared(&program), shared(&program));
    let inputs = inputs(400);
    let slices: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut rest = &slices[..];
    let mut calls = 0;
    while !rest.is_empty() {
        let runs = together.run_some(rest).unwrap();
        assert!(!runs.is_empty() && runs.len() <= rest.len());
        for (run, input) in runs.iter().zip(rest) {
            assert_eq!(run.ended, alone.run(input).unwrap().ended, "{input:?}");
        }
        let (last, before) = runs.split_last().unwrap();
        assert!(before.iter().all(|run| run.ended == Ended::Exit(0)));
        assert!(last.ended != Ended::Exit(0) || runs.len() == rest.len() || runs.len() == 128);
        rest = &rest[runs.len()..];
        calls += 1;
    }
    assert!(calls < inputs.len() / 2, "{calls} calls");
    assert!(together.run_some(&[]).unwrap().is_empty());
}

#[test]
fn a_run_that_hangs_in_a_batch_is_the_one_that_is_cut_off() {
    let Some(program) = build(&PLAIN) else { return };
    let mut target = target(&program);
    target.limits.cpu = std::time::Duration::from_millis(300);
    let mut executor = by(&target, Way::Harness, Freshness::Shared);
    let runs = executor.run_some(&[b"x", b"W", b"L", b"x"]).unwrap();
    let endings: Vec<Ended> = runs.iter().map(|run| run.ended).collect();
    assert_eq!(endings, [Ended::Exit(0), Ended::Exit(0), Ended::Timeout]);
    assert_eq!(executor.run(b"x").unwrap().ended, Ended::Exit(0));
}

#[test]
fn a_hang_is_known_again_by_the_places_that_it_passes() {
    for flags in [PLAIN, ADDRESS] {
        let Some(program) = build(&flags) else { return };
        let mut target = target(&program);
        target.limits.cpu = Duration::from_millis(200);
        let mut executor = by(&target, Way::Harness, Freshness::Shared);
        executor.report_coverage(CoverageReporting::Novel);
        let window = Duration::from_millis(1);
        executor.recognise(window, &HashSet::new());
        assert_eq!(executor.run(b"L").unwrap().ended, Ended::Timeout);
        let stuck = executor.stuck();
        assert!(
            !stuck.signatures.is_empty() && stuck.known.is_none(),
            "{stuck:?}"
        );
        assert!(stuck.counters.iter().any(|count| *count > 0));

        executor.recognise(window, &stuck.signatures.iter().copied().collect());
        let runs = executor.run_some(&[b"x", b"uudL", b"L", b"x"]).unwrap();
        let endings: Vec<Ended> = runs.iter().map(|run| run.ended).collect();
        assert_eq!(endings, [Ended::Exit(0), Ended::Exit(0), Ended::Timeout]);
        let known = executor.stuck().known;
        assert!(known.is_some_and(|known| stuck.signatures.contains(&known)));
        assert_eq!(executor.run(b"x").unwrap().ended, Ended::Exit(0));
        assert_eq!(executor.stuck(), Stuck::default());
    }
}

#[test]
fn counters_tell_equal_runs_from_others_and_are_as_many_as_the_program_has() {
    for flags in [PLAIN, ADDRESS] {
        let Some(program) = build(&flags) else { return };
        let mut executor = shared(&program);
        executor.run(b"Wuud").unwrap();
        assert_eq!(executor.coverage(), None, "nobody asked");
        executor.report_coverage(CoverageReporting::Every);
        let mut counters = |input: &[u8]| {
            executor.run(input).unwrap();
            executor.coverage().unwrap().to_vec()
        };
        let (one, other) = (counters(b"Wuud"), counters(b"Cuud"));
        assert!(one.len() > 20 && one.len() < 500, "{}", one.len());
        assert_eq!(one.len(), other.len());
        assert_ne!(one, other);
        assert_eq!(counters(b"Wuud"), one);
        assert_ne!(counters(b"Wuudd"), one, "another count of the same place");
        executor.run(b"A").unwrap();
        assert_eq!(executor.coverage(), None, "of a run that died");
        executor.run(b"Wuud").unwrap();
        assert_eq!(executor.coverage(), Some(&one[..]), "in another process");
    }
}

#[test]
fn only_runs_that_reach_something_new_are_told_of_and_a_crash_changes_nothing() {
    let Some(program) = build(&PLAIN) else { return };
    let mut executor = shared(&program);
    executor.report_coverage(CoverageReporting::Novel);
    let mut told = |inputs: &[&[u8]]| -> Vec<usize> {
        executor.run_some(inputs).unwrap();
        executor.covered().iter().map(|told| told.run).collect()
    };
    assert_eq!(told(&[b"x", b"x", b"Wu", b"Wu", b"x", b"Wud"]), [0, 2, 5]);
    assert_eq!(told(&[b"Wud", b"A"]), [0_usize; 0]);
    assert_eq!(told(&[b"Wud", b"Wuuuuu", b"x"]), [1]);
}

#[test]
fn comparisons_come_back_from_the_loop_with_and_without_a_sanitizer() {
    for flags in [PLAIN, ADDRESS] {
        let Some(program) = build(&flags) else { return };
        let mut executor = shared(&program);
        executor.report_comparisons(true).unwrap();
        let mut compared = |input: &[u8]| {
            executor.run(input).unwrap();
            executor.compared()
        };
        let told = compared(b"C12345678");
        let holds = |left: &[u8], right: &[u8]| {
            let pair = |one: &ddfuzz::delta::Comparison| [one.left.clone(), one.right.clone()];
            told.iter().map(pair).any(|[one, other]| {
                (one == left && other == right) || (one == right && other == left)
            })
        };
        assert!(holds(b"1234", &0x1bad_cafe_u32.to_le_bytes()), "{told:?}");
        assert!(holds(b"12345678", b"keyword!"), "{told:?}");
        assert_eq!(compared(b"x"), compared(b"x"), "nothing of other runs");
        assert_eq!(compared(b"C12345678"), told, "in another process");
        executor.report_comparisons(false).unwrap();
        executor.run(b"C12345678").unwrap();
        assert!(executor.compared().is_empty());
    }
}

/// Also of a run that crashes, and never of what the sanitizer compares when it starts.
#[test]
fn harnesses_with_callbacks_are_observed_without_breakpoints() {
    for flags in [PLAIN, ADDRESS] {
        let Some(program) = build(&flags) else { return };
        let target = target(&program);
        let mut observer = observe::start(&target, Way::Harness, Freshness::Fresh)
            .unwrap()
            .unwrap();
        let sources = observer.sources();
        assert!(sources.callbacks > 0 && sources.functions, "{sources:?}");
        assert_eq!(sources.instructions, 0, "{sources:?}");
        let (run, told) = observer.observe(b"C12345678").unwrap();
        assert_eq!(run.ended, Ended::Exit(0));
        let magic = 0x1bad_cafe_u32.to_le_bytes();
        let operands = |pair: &ddfuzz::delta::Comparison| [pair.left.clone(), pair.right.clone()];
        let all: Vec<Vec<u8>> = told.iter().flat_map(operands).collect();
        assert!(all.contains(&magic.to_vec()), "{told:?}");
        assert!(all.contains(&b"keyword!".to_vec()), "{told:?}");
        let (crashed, _) = observer.observe(b"A").unwrap();
        assert!(crashed.ended.is_crash(None), "{crashed:?}");
        let (_, again) = observer.observe(b"C12345678").unwrap();
        assert_eq!(again, told, "nothing of other runs");
    }
}

/// The third run of a process aborts on `T`.
#[test]
fn observed_runs_share_a_process_or_have_a_new_one_each() {
    let Some(program) = build(&PLAIN) else { return };
    let ends = |freshness: Freshness| {
        let target = target(&program);
        let observer = observe::start(&target, Way::Harness, freshness);
        let mut observer = observer.unwrap().unwrap();
        [&b"one"[..], b"two", b"T"].map(|input| observer.observe(input).unwrap().0.ended)
    };
    let exit = Ended::Exit(0);
    let aborted = Ended::Signal(libc::SIGABRT);
    assert_eq!(ends(Freshness::Shared), [exit, exit, aborted]);
    assert_eq!(ends(Freshness::Fresh), [exit, exit, exit]);
}

#[test]
fn what_a_process_ran_before_it_died_is_known() {
    let Some(program) = build(&PLAIN) else { return };
    let mut executor = shared(&program);
    let runs = executor
        .run_some(&[b"one", b"two", b"T", b"not run"])
        .unwrap();
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[2].ended, Ended::Signal(libc::SIGABRT));
    assert_eq!(executor.preceding(), [b"one", b"two"]);
    assert_eq!(executor.run(b"T").unwrap().ended, Ended::Exit(0));
    assert!(executor.preceding().is_empty());
    let mut fresh = by(&target(&program), Way::Harness, Freshness::Fresh);
    for _ in 0..5 {
        assert_eq!(fresh.run(b"T").unwrap().ended, Ended::Exit(0));
    }
}
