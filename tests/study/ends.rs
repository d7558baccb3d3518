//! How runs end, by each channel, and what becomes of them.

use crate::lab::{Lab, groups, utility};

#[test]
fn a_crash_in_a_child_is_a_crash_of_the_utility() {
    let lab = Lab::with(&["parent"]);
    let said = lab.revisit("parent --runs 120 --seed 1 --json --channel stdin");
    let result = said.exits(1).json();
    assert!(
        utility(&result, "parent")["crashes"].as_u64() > Some(0),
        "{result}"
    );
    assert_eq!(groups(&result, "parent")[0]["size_after"], 1, "{result}");
}

#[test]
fn one_byte_is_left_of_a_crash_by_stdin() {
    let lab = Lab::with(&["zap"]);
    let result = lab
        .revisit("zap --runs 200 --seed 3 --json")
        .exits(1)
        .json();
    let group = groups(&result, "zap")[0];
    assert_eq!(group["claim"], "1-minimal");
    let file = group["file"].as_str().unwrap();
    assert_eq!(std::fs::read(file).unwrap(), b"Q");
    let script = std::path::Path::new(file).with_file_name("reproduce.sh");
    let shown = lab.desk.command(script).output().unwrap();
    assert!(!shown.status.success(), "{shown:?}");
}

#[test]
fn a_lesser_input_that_the_search_for_another_crash_has_met_is_minimized() {
    let lab = Lab::with(&["detour"]);
    let said = lab.revisit("detour --runs 200 --seed 1 --json --channel stdin");
    let result = said.exits(1).json();
    let mut left: Vec<Vec<u8>> = groups(&result, "detour")
        .iter()
        .map(|group| std::fs::read(group["file"].as_str().unwrap()).unwrap())
        .collect();
    left.sort_by_key(Vec::len);
    // By itself the search ends with four bytes beyond ASCII.
    let [died, gave_up] = &left[..] else {
        panic!("two groups: {result}");
    };
    assert_eq!((&died[..], gave_up.len()), (&b"Q"[..], 3), "{result}");
}

#[test]
fn the_options_that_a_crash_needs_are_left_of_those_drawn() {
    let lab = Lab::with(&["choosy"]);
    lab.desk.write("list", "stdin choosy [-a -x -b]\n");
    let said = lab.revisit("--list list --runs 800 --seed 1 --json");
    let result = said.exits(1).json();
    let file = groups(&result, "choosy")[0]["file"]
        .as_str()
        .unwrap()
        .to_owned();
    let crash = std::path::Path::new(&file).with_file_name("crash.json");
    let crash = crate::outcome::record(&crash);
    let args = &crash["of"]["target"]["args"];
    assert_eq!(args, &serde_json::json!(["-x"]), "{crash}");
    let log = std::path::Path::new(&file).with_file_name("options.jsonl");
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.lines().last().unwrap().contains("1-minimal"), "{text}");
}

#[test]
fn named_files_and_pairs_of_files_reach_a_utility() {
    let lab = Lab::with(&["kind", "pair"]);
    lab.desk
        .write("list", "cp input.odd kind\ntwo_files pair\n");
    let result = lab
        .revisit("--list list --runs 600 --seed 1 --json")
        .exits(1)
        .json();
    let least = |name: &str| {
        let file = groups(&result, name)[0]["file"]
            .as_str()
            .unwrap()
            .to_owned();
        std::fs::read(file).unwrap()
    };
    assert_eq!(least("kind"), b"Q");
    assert_eq!(least("pair"), b"Q\x1cR");
    assert_eq!(utility(&result, "pair")["channel"], "two_files");
}

#[test]
fn hangs_are_marked_and_slow_runs_are_not() {
    let lab = Lab::with(&["hangs", "slow"]);
    let said = lab.revisit(
        "hangs slow --channel stdin --runs 12 --seed 1 --json --timeout 50ms --minimize off",
    );
    let result = said.json();
    assert!(
        utility(&result, "hangs")["hangs"].as_u64() > Some(0),
        "{result}"
    );
    assert_eq!(utility(&result, "slow")["hangs"], 0, "{result}");
}

#[test]
fn blow_ups_are_marked() {
    let lab = Lab::with(&["grows"]);
    let words = "grows --channel stdin --runs 15 --seed 1 --json --timeout 10s --memory 64M \
                 --minimize off";
    let result = lab.revisit(words).json();
    let ooms = utility(&result, "grows")["ooms"].as_u64();
    assert!(ooms > Some(0), "{result}");
}

#[test]
fn a_status_of_126_or_more_is_shown_apart() {
    let lab = Lab::with(&["high"]);
    let result = lab
        .revisit("high --channel stdin --runs 10 --seed 1 --json")
        .exits(0)
        .json();
    let high = utility(&result, "high");
    assert_eq!(high["crashes"], 0);
    assert_eq!(
        high["channels"][0]["high_exits"]
            .as_u64()
            .map(|all| all > 0),
        Some(true)
    );
}
