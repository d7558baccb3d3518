//! The figures of the two case studies of ESEC 1999, and of versions like those of Lua, on simulations
//! of them.

mod simulation;

use ddfuzz_changes::search::{Prober, config};
use ddfuzz_delta::Config;

use simulation::{Program, ddd, gdb, interpreter, rewritten, with_dates};

/// Checks that the result has the causes, fails, and that no single change can be left out.
fn assert_minimal(program: &mut Program, kept: &Config) {
    let Ok(whole) = program.probe(kept, "check", &[]);
    assert!(whole.fails());
    for unit in kept.ranges().flatten() {
        let Ok(without) = program.probe(&kept.minus(&config(&[unit])), "check", &[]);
        assert!(!without.fails(), "{unit} is not needed");
    }
}

#[test]
fn ddd_with_dates_takes_at_most_twelve_tests() {
    let mut most = 0;
    for seed in 1..=40 {
        let (program, weights) = ddd(seed);
        let cause = program.causes[0];
        let (tests, kept) = with_dates(program, &weights);
        assert!(kept.contains(cause), "seed {seed}");
        most = most.max(tests);
    }
    println!("DDD, dates known: at most {most} tests");
    assert!(most <= 12, "{most} tests");
}

#[test]
fn ddd_without_dates_takes_at_most_thirty_one_tests() {
    let mut counts = Vec::new();
    for seed in 1..=40 {
        let (mut program, _) = ddd(seed);
        let (kept, _) = program.minimized();
        counts.push(program.tests);
        assert_minimal(&mut program, &kept);
    }
    counts.sort_unstable();
    println!("DDD, dates unknown: {counts:?}");
    assert!(counts.iter().all(|tests| *tests <= 31), "{counts:?}");
}

#[test]
fn gdb_takes_at_most_ninety_seven_tests() {
    for seed in 1..=24 {
        let mut program = gdb(seed);
        let (kept, own) = program.minimized();
        let (tests, unresolved) = (program.tests, program.unresolved);
        println!("GDB, seed {seed}: {tests} tests, {unresolved} unresolved, {own:?} a test");
        assert!(tests <= 97, "seed {seed}: {tests} tests");
        assert!(unresolved * 4 >= tests, "seed {seed}: too many sets build");
        assert_minimal(&mut program, &kept);
    }
}

/// Searches programs of other sizes and seeds; each result is exactly the causes. Returns the numbers of
/// tests, which ascend.
fn counts_of(seeds: std::ops::Range<u64>, program: impl Fn(u64) -> Program) -> Vec<usize> {
    let mut counts = Vec::new();
    for seed in seeds {
        let mut program = program(seed);
        let (kept, _) = program.minimized();
        let found: Vec<usize> = kept.ranges().flatten().collect();
        assert_eq!(found, program.causes, "seed {seed}");
        counts.push(program.tests);
    }
    counts.sort_unstable();
    counts
}

#[test]
fn a_changed_text_among_many_hunks_takes_at_most_forty_five_tests() {
    let counts = counts_of(1..41, |seed| {
        let size = 165 + (seed as usize * 7) % 40;
        interpreter(seed, (size, 24 + seed as usize % 7), 1)
    });
    println!("interpreter, one cause: {counts:?}");
    assert!(counts.iter().all(|tests| *tests <= 45), "{counts:?}");
}

#[test]
fn six_hunks_that_need_each_other_take_at_most_fifty_seven_tests() {
    let counts = counts_of(101..141, |seed| {
        let size = 165 + (seed as usize * 7) % 40;
        interpreter(seed, (size, 24 + seed as usize % 7), 6)
    });
    println!("interpreter, six causes: {counts:?}");
    assert!(counts.iter().all(|tests| *tests <= 57), "{counts:?}");
}

#[test]
fn a_type_that_is_rewritten_everywhere_does_not_keep_the_search_from_its_end() {
    for causes in [1, 3] {
        let counts = counts_of(1..21, |seed| rewritten(seed, 640 + seed as usize, causes));
        println!("rewritten type, {causes} causes: {counts:?}");
        assert!(counts.iter().all(|tests| *tests <= 200), "{counts:?}");
    }
}
