//! The commands by the way `snapshot`, in which one process makes many runs of a program.

use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::needs;

/// A campaign by `way` with `jobs` workers.
fn campaign(way: &str, jobs: u32) -> String {
    format!(
        "run --json --target crtplot --exec {way} --runs 600 --max-len 1000 --seed 5 --jobs {jobs} -o out"
    )
}

/// What a result says of its groups.
fn facts(result: &Value) -> Vec<[Value; 5]> {
    let groups = result["groups"].as_array().unwrap().iter();
    let facts = |group: &Value| {
        ["major", "minor", "runs_seen", "size_before", "size_after"].map(|key| group[key].clone())
    };
    groups.map(facts).collect()
}

/// A desk with the results of a campaign, and the input of its first group.
fn desk_with_a_crash() -> (Desk, Value) {
    let desk = Desk::new();
    let result = desk.call(&campaign("snapshot", 2)).exits(1).json();
    let found = result["groups"][0]["file"].as_str().unwrap();
    let original = std::path::Path::new(found).with_file_name("original");
    std::fs::copy(original, desk.file("crash")).unwrap();
    (desk, result)
}

#[test]
fn a_campaign_depends_neither_on_its_workers_nor_on_being_killed() {
    let desk = Desk::new();
    let whole = desk.call(&campaign("snapshot", 1)).exits(1).json();
    assert!(!facts(&whole).is_empty());
    let killed = Desk::new();
    let mut child = killed.start(&campaign("snapshot", 2));
    let has_found = || killed.file("out/crashes").is_dir();
    while !has_found() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    killed.is_left_clean();
    let words = campaign("snapshot", 2) + " --resume";
    let resumed = killed.call(&words).exits(1).json();
    assert_eq!(resumed["runs"], 600);
    assert_eq!(facts(&resumed), facts(&whole));
    killed.is_left_clean();
}

#[test]
fn min_searches_in_one_process_and_proves_in_new_ones() {
    let (desk, _) = desk_with_a_crash();
    for way in ["inject", "snapshot"] {
        let words = format!("min crash --json --target crtplot --exec {way} -o {way}");
        let result = desk.call(&words).exits(0).json();
        assert_eq!(result["claim"], "1-minimal", "{way}");
        desk.call(&format!("log verify {way}.log.jsonl")).exits(0);
    }
    assert_eq!(desk.read("snapshot"), desk.read("inject"));
    let log = String::from_utf8(desk.read("snapshot.log.jsonl")).unwrap();
    assert!(log.contains(r#""process":"shared""#));
    desk.is_left_clean();
}

#[test]
fn triage_and_clean_tell_of_the_same_groups_and_files() {
    let (desk, _) = desk_with_a_crash();
    std::fs::create_dir(desk.file("corpus")).unwrap();
    for (name, bytes) in [("one", "1 2\n"), ("two", "1 2\n"), ("more", "x y z\n")] {
        desk.write(&format!("corpus/{name}"), bytes);
    }
    let told = ["inject", "snapshot"].map(|way| {
        let words = format!("triage --json --target crtplot --exec {way} crash");
        let triage = desk.call(&words).exits(1).json();
        let words = format!("clean corpus --json --target crtplot --exec {way} -o {way}");
        let clean = desk.call(&words).exits(0).json();
        let groups = triage["groups"].as_array().unwrap().iter();
        let groups: Vec<_> = groups
            .map(|group| ["major", "class", "count"].map(|key| group[key].clone()))
            .collect();
        (groups, clean["steps"].clone(), clean["after"].clone())
    });
    assert_eq!(told[0].0.len(), 1);
    assert_eq!(told[0], told[1]);
    desk.is_left_clean();
}

#[test]
fn details_name_what_was_refused() {
    if needs::program("tee").is_none() {
        return;
    }
    let desk = Desk::new();
    let words =
        "run -v --exec snapshot --runs 30 --jobs 1 --max-len 100 --seed 1 -o out -- tee copy";
    let said = desk.call(words).exits(0);
    let line = "snapshot refused 30 of 30 runs: open of a file to write (30)";
    assert!(said.err.contains(line), "{said:?}");
    desk.is_left_clean();
}

#[test]
fn a_difference_is_told() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/peeks.c", "peeks");
    let words = "run -v --exec snapshot --runs 40 --jobs 1 --max-len 9 --seed 1 -o out -- ./peeks";
    let said = desk.call(words).exits(0);
    let warning = "warning: a run by snapshot differed from that of a new process";
    assert_eq!(said.err.matches(warning).count(), 1, "{said:?}");
    let line = "each one is forked";
    assert!(said.err.contains(line), "{said:?}");
    let all = "run --exec snapshot --runs 40 --jobs 1 --max-len 9 --seed 1 --crash-exit 8 --json -o two -- ./peeks";
    let result = desk.call(all).exits(1).json();
    assert_eq!(result["groups"][0]["runs_seen"], 40);
    desk.is_left_clean();
}
