//! `ddfuzz show`.

use crate::ddfuzz::Desk;

#[test]
fn the_groups_of_a_campaign_are_shown_while_nobody_may_write() {
    let desk = Desk::new();
    let words = "run --json --target nroff --runs 300 --max-len 2000 --seed 7 -o out";
    let result = desk.call(words).exits(1).json();
    let shown = desk.call("show --json out").exits(0).json();
    assert_eq!(shown["groups"], result["groups"]);
    let major = result["groups"][0]["major"].as_str().unwrap();
    let table = desk.call("show out").exits(0).out;
    assert!(table.contains(major));
    let block = desk.call(&format!("show out {}", &major[..6])).exits(0).out;
    assert!(block.contains("reproduce.sh") && block.contains("1-minimal"));
    let error = desk.call("show --json out zzzz").exits(2).json();
    assert_eq!(error["error"]["kind"], "usage");
}

#[test]
fn an_output_directory_without_groups_says_so() {
    let desk = Desk::new();
    desk.call("run --target crtplot --runs 0 -o out").exits(0);
    assert_eq!(desk.call("show out").exits(0).out, "no groups in out\n");
}
