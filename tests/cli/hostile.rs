//! Targets that are a nuisance neither hold a campaign up beyond its limits nor leave anything.

use std::time::{Duration, Instant};

use crate::ddfuzz::Desk;

/// Runs of the campaign: every nuisance comes several times.
const RUNS: u32 = 40;

/// A campaign by this way, of a program that is a nuisance by most of its inputs.
fn are_held_off(way: &str) {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/nuisance.c", "nuisance");
    let began = Instant::now();
    let words = format!(
        "run --json --runs {RUNS} --max-len 40 --seed 3 --timeout 60ms --memory 8M \
         --budget-time 4s --exec {way} -o out -- ./nuisance"
    );
    let result = desk.call(&words).exits(1).json();
    // Were every run and every test held up to its wall limit of 2 s by one worker.
    let tests = result["groups"][0]["tests"]["executed"].as_u64().unwrap();
    let most = Duration::from_secs(2 * (u64::from(RUNS) + tests) + 20);
    assert!(began.elapsed() < most, "{:?}", began.elapsed());
    assert_eq!(result["runs"], RUNS);
    let [group] = &result["groups"].as_array().unwrap()[..] else {
        panic!("one group of crashes: {result}");
    };
    assert_eq!(group["size_after"], 1);
    assert!(result["hangs"].as_u64().unwrap() >= 1, "{result}");
    assert!(result["ooms"].as_u64().unwrap() >= 1, "{result}");
    desk.is_left_clean();
}

#[test]
fn floods_children_sleepers_and_gluttons_are_held_off_by_injection() {
    are_held_off("inject");
}

#[test]
fn floods_children_sleepers_and_gluttons_are_held_off_by_command() {
    are_held_off("command");
}
