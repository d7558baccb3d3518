//! `ddfuzz run` on the bundled targets.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::ddfuzz::Desk;

/// The groups of a result.
fn groups(result: &Value) -> &Vec<Value> {
    result["groups"].as_array().unwrap()
}

#[test]
fn crtplot_dies_of_one_byte_and_the_claim_is_proved() {
    let desk = Desk::new();
    let said = desk.call("run --json --target crtplot --runs 300 --seed 1 -o out");
    let said = said.exits(1);
    let result = said.json();
    let [group] = &groups(&result)[..] else {
        panic!("one group: {result}");
    };
    assert_eq!(group["size_after"], 1);
    assert_eq!(group["claim"], "1-minimal");
    assert_eq!(result["exec"], "harness");
    let reproducer = std::fs::read(group["file"].as_str().unwrap()).unwrap();
    assert_eq!(reproducer, b"t");
    let log = group["log"].as_str().unwrap();
    let verified = desk.call(&format!("log verify --json {log}")).exits(0);
    assert_eq!(verified.json()["holds"], true);
    desk.is_left_clean();
}

#[test]
fn ul_needs_516_characters_and_a_line_end() {
    let desk = Desk::new();
    let said = desk.call("run --json --target ul --runs 400 --max-len 2000 --seed 7 -o out");
    let said = said.exits(1);
    let result = said.json();
    assert_eq!(groups(&result)[0]["size_after"], 517);
    assert_eq!(groups(&result)[0]["claim"], "1-minimal");
    assert_eq!(result["runs"], 400);
}

#[test]
fn every_group_of_nroff_and_troff_is_minimal_and_its_script_crashes() {
    for target in ["nroff", "troff"] {
        let desk = Desk::new();
        let words = format!("run --json --target {target} --runs 500 --max-len 2000 --seed 7");
        let result = desk.call(&words).exits(1).json();
        assert!(groups(&result).len() >= 2, "{result}");
        for group in groups(&result) {
            assert_eq!(group["claim"], "1-minimal");
            let script = Path::new(group["file"].as_str().unwrap()).with_file_name("reproduce.sh");
            let status = Command::new(script).output().unwrap().status;
            assert_eq!(status.code(), Some(128 + libc::SIGSEGV));
        }
    }
}

#[test]
fn the_fixed_variants_have_nothing_to_show() {
    for target in ["crtplot-fixed", "ul-fixed", "units-fixed"] {
        let desk = Desk::new();
        let words = format!("run --json --target {target} --runs 300 --max-len 3000 --seed 1");
        let result = desk.call(&words).exits(0).json();
        assert_eq!(groups(&result).len(), 0);
        assert_eq!(result["new_groups"], 0);
    }
}

#[test]
fn each_way_of_execution_finds_the_same_groups() {
    let found = ["harness", "inject", "snapshot", "command"].map(|way| {
        let desk = Desk::new();
        let words = format!(
            "run --json --target crtplot --exec {way} --runs 200 --max-len 1000 --seed 5 -o out"
        );
        let result = desk.call(&words).exits(1).json();
        assert_eq!(result["exec"], way);
        desk.is_left_clean();
        let groups = groups(&result).iter();
        let facts = |group: &Value| {
            ["major", "minor", "runs_seen", "size_before", "size_after"]
                .map(|key| group[key].clone())
        };
        groups.map(facts).collect::<Vec<_>>()
    });
    assert!(found.iter().all(|groups| *groups == found[0]), "{found:?}");
}

#[test]
fn nothing_is_minimized_when_that_is_turned_off() {
    let desk = Desk::new();
    let words = "run --json --target crtplot --runs 100 --max-len 1000 --seed 5 --minimize off";
    let result = desk.call(words).exits(1).json();
    let group = &groups(&result)[0];
    assert_eq!(group["claim"], Value::Null);
    assert_eq!(group["size_before"], group["size_after"]);
    assert_eq!(group["log"], Value::Null);
}

#[test]
fn a_budget_of_tests_ends_a_minimization_with_the_best_so_far() {
    let desk = Desk::new();
    let words = "run --json --target units --runs 100 --max-len 2000 --seed 5 --budget-tests 20";
    let result = desk.call(words).exits(1).json();
    let group = &groups(&result)[0];
    assert_eq!(group["claim"], "best-so-far");
    assert!(group["tests"]["executed"].as_u64().unwrap() <= 20);
    assert!(group["size_after"].as_u64() < group["size_before"].as_u64());
}

#[test]
fn a_failing_exit_status_can_be_called_a_crash() {
    let desk = Desk::new();
    let words = "run --json --runs 40 --max-len 64 --seed 2 --crash-exit 7 -- sh -c";
    let script = "if [ \"$(wc -c)\" -gt 10 ]; then exit 7; fi";
    let result = desk.call_with(words, &[script.as_ref()]).exits(1).json();
    assert_eq!(groups(&result)[0]["class"], "exit:7");
    assert_eq!(groups(&result)[0]["size_after"], 11);
}

#[test]
fn without_a_target_the_bundled_ones_are_listed() {
    let desk = Desk::new();
    let listed = desk.call("run --json").exits(0).json();
    let names: Vec<&str> = (listed["targets"].as_array().unwrap().iter())
        .map(|target| target["name"].as_str().unwrap())
        .collect();
    for name in [
        "crtplot", "flex", "nroff", "troff", "ul", "units", "ul-fixed",
    ] {
        assert!(names.contains(&name));
        assert!(desk.call("run").exits(0).out.contains(name));
    }
}

#[test]
fn a_target_that_reads_nothing_of_its_input_is_told_of_before_and_after() {
    let desk = Desk::new();
    let words = "run --json --runs 300 --max-len 64 --seed 1 -o out -- true";
    let said = desk.call(words).exits(0);
    let result = said.json();
    let [warning] = &result["warnings"].as_array().unwrap()[..] else {
        panic!("one warning: {result}");
    };
    let warning = warning.as_str().unwrap();
    assert!(
        warning.contains("does not read stdin") && warning.contains("@@"),
        "{warning}"
    );
    assert!(said.err.contains(warning), "{said:?}");
    let text = desk
        .call("run -q --runs 300 --max-len 64 --seed 1 -o text -- true")
        .exits(0);
    assert!(text.out.contains("write @@"), "{text:?}");
    for (out, program) in [("heard", "cat"), ("opened", "cat /dev/stdin")] {
        let words = format!("run --json --runs 50 --max-len 64 --seed 1 -o {out} -- {program}");
        let result = desk.call(&words).exits(0).json();
        assert_eq!(result["warnings"], serde_json::json!([]), "{program}");
    }
}

#[test]
fn a_target_that_crashes_on_everything_is_told_of_before_and_after() {
    let desk = Desk::new();
    let words = "run --json --runs 30 --max-len 64 --seed 1 --minimize off -o out -- sh -c";
    let said = desk.call_with(words, &["cat >/dev/null; kill -ABRT $$".as_ref()]);
    let said = said.exits(1);
    let result = said.json();
    let warning = result["warnings"][0].as_str().unwrap();
    assert!(warning.contains("crashes on the empty input"), "{warning}");
    assert!(said.err.contains(warning), "{said:?}");
    // What the first two runs do not show, all of them do.
    let odd = "grep -q '^name = value$' && exit 0; kill -ABRT $$";
    let words = "run --json --runs 250 --max-len 64 --seed 1 --minimize off -o odd -- sh -c";
    let result = desk.call_with(words, &[odd.as_ref()]).exits(1).json();
    let warning = result["warnings"][0].as_str().unwrap();
    assert!(warning.contains("each of 250 runs crashed"), "{warning}");
}

#[test]
fn the_whole_time_ends_a_call_with_what_it_has_and_the_next_goes_on() {
    let desk = Desk::new();
    let words = "run --json --target ul --max-len 2000 --seed 7 --minimize after -o out";
    let said = desk.call(&format!("{words} --total-time 4s")).exits(1);
    let result = said.json();
    assert_eq!(result["ended_by"], "time", "{result}");
    assert_eq!(result["new_groups"], 1, "{result}");
    // Three quarters of it are for the fuzzing.
    let seconds = result["seconds"].as_f64().unwrap();
    assert!(seconds >= 2.5, "{result}");
    // What was told as new is not new again.
    let next = desk.call(&format!("{words} --runs 1000 --resume"));
    let next = next.exits(4).json();
    assert_eq!(
        (&next["resumed"], &next["new_groups"]),
        (&true.into(), &0.into()),
        "{next}"
    );
    assert_eq!(groups(&next)[0]["claim"], "1-minimal");
    desk.is_left_clean();
}

#[test]
fn a_directory_of_another_target_is_taken_with_a_warning() {
    let desk = Desk::new();
    let own = desk.call("run --target crtplot --runs 0 -o out").exits(0);
    assert!(!own.err.contains("another target"), "{own:?}");
    let again = desk.call("run --target crtplot --runs 0 -o out").exits(0);
    assert!(!again.err.contains("another target"), "{again:?}");
    let other = desk.call("run --target ul --runs 0 -o out").exits(0);
    let warning = "results of another target, `crtplot`; what is found with `ul` is added";
    assert!(other.err.contains(warning), "{other:?}");
}
