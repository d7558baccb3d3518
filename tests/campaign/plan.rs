//! Which input each run gets.

use std::collections::HashSet;

use ddfuzz::campaign::Plan;

#[test]
fn the_inputs_of_a_seed_never_change() {
    let plan = Plan {
        seed: 1,
        max_len: 1 << 20,
    };
    let names: Vec<String> = (0..6).map(|run| plan.input(run).to_string()).collect();
    assert_eq!(
        names,
        [
            "all+nul:7d2badbb702d1f22:619826",
            "printable+nul+lines:0102c553078fe0e9:6128",
            "all:121e5f33bb8a884a:9172",
            "all+nul:8ed735c1b9b75c6e:70795",
            "all+nul:00bfb8ff3368fccc:734639",
            "all+nul+lines:fe730964d4a8f1c6:91274",
        ]
    );
    assert_eq!(
        plan.input(u64::MAX).to_string(),
        "printable+lines:0fa4eaeb6e87c6a7:6440"
    );
}

#[test]
fn another_seed_gives_other_inputs() {
    let names: HashSet<String> = (0..50)
        .map(|seed| {
            Plan {
                seed,
                max_len: 9000,
            }
            .input(0)
            .to_string()
        })
        .collect();
    assert_eq!(names.len(), 50);
}

#[test]
fn no_input_is_longer_than_allowed() {
    for max_len in [0, 1, 999, 5000, u64::MAX] {
        let plan = Plan { seed: 9, max_len };
        let longest = (0..2000).map(|run| plan.input(run).length).max().unwrap();
        assert!(longest <= max_len.min(1_000_000));
    }
}

#[test]
fn lengths_come_from_all_decades_and_all_kinds_come() {
    let plan = Plan {
        seed: 4,
        max_len: u64::MAX,
    };
    let inputs: Vec<_> = (0..2000).map(|run| plan.input(run)).collect();
    let within = |from: u64, to: u64| {
        let fits = |length: u64| (from..=to).contains(&length);
        inputs.iter().filter(|input| fits(input.length)).count()
    };
    let decades = [
        within(1000, 10_000),
        within(10_000, 100_000),
        within(100_000, 1_000_000),
    ];
    assert!(
        decades[0] > decades[1] && decades[1] > decades[2] && decades[2] > 50,
        "{decades:?}"
    );
    let kinds: HashSet<_> = inputs.iter().map(|input| input.kind).collect();
    assert_eq!(kinds.len(), 8);
}
