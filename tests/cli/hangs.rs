//! `ddfuzz min` on an input that hangs.

use crate::ddfuzz::Desk;

#[test]
fn a_hang_is_minimized_to_what_runs_into_the_same_loop() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_loops.c", "loops");
    desk.write("input", "a y bb x c");
    let min = "min input --json --jobs 1 --timeout 0.06 -o small -- ./loops";
    let record = desk.call(min).exits(0).json();
    assert_eq!(desk.read("small"), b"x", "{record}");
    assert_eq!(record["claim"], "1-minimal", "{record}");
    desk.call("log replay small.log.jsonl -o again").exits(0);
    assert_eq!(desk.read("again"), b"x");
    desk.call("log verify small.log.jsonl --timeout 0.06")
        .exits(0);
}

#[test]
fn what_is_slow_in_the_search_for_a_hang_is_no_hang_of_its_own() {
    let desk = Desk::new();
    desk.write("hang", "xxh");
    desk.compile("tests/cli/programs/slow_or_hanging.c", "slow");
    // The search has a limit of 0.05 s.
    let limits = "--timeout 0.3 --budget-time 5s";
    let call = format!("triage hang --json -o out --minimize {limits} -- ./slow");
    desk.call(&call).exits(1);
    let groups = std::fs::read_dir(desk.file("out/hangs")).unwrap().count();
    assert_eq!(groups, 1);
}
