//! Utilities at a terminal.

use crate::lab::{Lab, groups, utility};

#[test]
fn a_utility_in_no_list_that_wants_a_terminal_gets_one() {
    let lab = Lab::with(&["keys"]);
    let result = lab
        .revisit("keys --runs 48 --seed 1 --json")
        .exits(1)
        .json();
    let keys = utility(&result, "keys");
    assert_eq!(keys["label"], "interactive-only", "{result}");
    assert_eq!(keys["channel"], "pty", "{result}");
    let file = groups(&result, "keys")[0]["file"].as_str().unwrap();
    assert_eq!(std::fs::read(file).unwrap(), b"xy", "{result}");
    lab.desk.is_left_clean();
}

#[test]
fn keys_of_a_list_are_drawn_and_minimized() {
    let lab = Lab::with(&["keys"]);
    lab.desk.write("list", "pty keys [-a -b]\n");
    let result = lab
        .revisit("--list list --runs 48 --seed 2 --json")
        .exits(1)
        .json();
    let group = groups(&result, "keys")[0];
    assert_eq!(group["size_after"], 2, "{result}");
    assert_eq!(group["claim"], "1-minimal", "{result}");
}
