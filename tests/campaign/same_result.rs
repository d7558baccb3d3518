//! The same seed gives the same groups and logs.

use std::collections::BTreeMap;

use crate::ddfuzz::Desk;
use crate::outcome::{assert_same, outcome};

/// Runs a campaign with further options, and gives its outcome.
fn campaign(desk: &Desk, base: &str, options: &str, out: &str) -> BTreeMap<String, String> {
    let said = desk.call(&format!("{base} -q -o {out} {options}"));
    assert!(
        said.code == Some(1) || options.contains("--resume"),
        "{said:?}"
    );
    assert!(said.out.contains(" runs in "), "{said:?}");
    outcome(&desk.file(out))
}

#[test]
fn groups_and_logs_do_not_depend_on_workers_or_on_when_is_minimized() {
    for (target, runs) in [
        ("nroff", 900),
        ("troff", 600),
        ("units", 300),
        ("crtplot", 600),
    ] {
        let desk = Desk::new();
        let base = format!("run --target {target} --runs {runs} --max-len 2000 --seed 11");
        let alone = campaign(&desk, &base, "--jobs 1", "alone");
        assert!(alone.keys().any(|name| name.ends_with("log.jsonl")));
        for (at, options) in [
            "--jobs 4",
            "--jobs 2 --minimize after",
            "--jobs 3 --minimize worker",
        ]
        .into_iter()
        .enumerate()
        {
            let other = campaign(&desk, &base, options, &format!("other{at}"));
            assert_same(&other, &alone, &format!("{target} {options}"));
        }
        desk.is_left_clean();
    }
}

#[test]
fn what_workers_find_is_shown_while_a_group_is_minimized() {
    let desk = Desk::new();
    desk.compile("tests/campaign/programs/two_slow_bugs.c", "two_slow_bugs");
    let words = "run --generator classic --runs 16 --max-len 50 --seed 3 --jobs 1 --budget-tests 6 \
                 -o out -- ./two_slow_bugs";
    let said = desk.call(words).exits(1).err;
    let all = || said.lines().map(|line| line.split(' ').next());
    let found: Vec<usize> = all()
        .enumerate()
        .filter(|(_, word)| *word == Some("found"))
        .map(|(at, _)| at)
        .collect();
    let minimized = all().position(|word| word == Some("minimized"));
    assert_eq!(found.len(), 2, "{said}");
    assert!(minimized.is_some_and(|at| at > found[1]), "{said}");
}

#[test]
fn a_count_in_two_calls_gives_the_groups_of_one() {
    let desk = Desk::new();
    let base = "run --target troff --max-len 2000 --seed 11";
    let whole = campaign(&desk, base, "--runs 500", "whole");
    campaign(&desk, base, "--runs 200", "parts");
    // A resumed campaign counts anew.
    campaign(&desk, base, "--runs 300 --resume", "parts");
    let parts = outcome(&desk.file("parts"));
    let facts = |mut all: BTreeMap<String, String>| {
        all.remove("state.json");
        all
    };
    assert_same(&facts(parts), &facts(whole), "in two calls");
}

#[test]
fn another_seed_finds_other_inputs() {
    let desk = Desk::new();
    let base = "run --target crtplot --runs 100 --max-len 1000";
    let one = campaign(&desk, base, "--seed 1", "one");
    let two = campaign(&desk, base, "--seed 2", "two");
    let originals = |all: &BTreeMap<String, String>| {
        let all = all.keys().filter(|name| name.ends_with("/original"));
        all.cloned().collect::<Vec<_>>()
    };
    assert_ne!(originals(&one), originals(&two));
}

#[test]
fn a_campaign_without_a_seed_records_the_one_it_took() {
    let desk = Desk::new();
    let base = "run --target crtplot --runs 100 --max-len 1000";
    desk.call(&format!("{base} -o first")).exits(1);
    let seed = crate::outcome::record(&desk.file("first/ddfuzz.json"))["seed"].clone();
    desk.call(&format!("{base} -o second --seed {seed}"))
        .exits(1);
    let [first, second] = ["first", "second"].map(|out| outcome(&desk.file(out)));
    assert_same(&first, &second, "the seed again");
}
