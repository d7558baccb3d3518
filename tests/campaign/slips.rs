//! Minimizing one bug runs into another: that one is filed and minimized too, and neither ever
//! ends as the other.

use std::path::Path;

use crate::ddfuzz::Desk;
use crate::outcome::{assert_same, outcome, record};

/// Every input has 1000 bytes, so that the bug of odd lengths is only ever slipped into.
const WORDS: &str = "run --runs 60 --max-len 1000 --seed 41";

#[test]
fn a_bug_that_is_only_slipped_into_is_filed_and_minimized_last() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    let said = desk.call(&format!("{WORDS} --json -o out -- ./two_bugs"));
    let result = said.exits(1).json();
    let groups = result["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{result}");
    assert_eq!(result["new_groups"], 2);
    let mut sizes = Vec::new();
    for group in groups {
        assert_eq!(group["claim"], "1-minimal");
        let file = group["file"].as_str().unwrap();
        let crash = record(&Path::new(file).with_file_name("crash.json"));
        let slipped = crash["found"].to_string().contains("\"of\"");
        sizes.push((slipped, group["size_after"].as_u64().unwrap()));
        // What it ends in is the bug that it began with.
        let triaged = desk
            .call(&format!("triage --json {file} -- ./two_bugs"))
            .exits(1)
            .json();
        assert_eq!(triaged["groups"][0]["major"], group["major"]);
        let log = group["log"].as_str().unwrap();
        desk.call(&format!("log verify {log}")).exits(0);
    }
    sizes.sort_unstable();
    assert_eq!(sizes, [(false, 2), (true, 1)]);
    desk.is_left_clean();
}

#[test]
fn slips_do_not_depend_on_workers_or_on_when_is_minimized() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    // Longer inputs, of even and odd lengths: runs found both groups.
    for length in [1000, 2000] {
        let words = format!("run --runs 150 --max-len {length} --seed 41 -q");
        let outcomes = [
            "--jobs 1",
            "--jobs 4",
            "--jobs 2 --minimize after",
            "--jobs 2 --minimize worker",
        ]
        .map(|options| {
            let out = format!("{length}{options}").replace(' ', "");
            desk.call(&format!("{words} {options} -o {out} -- ./two_bugs"))
                .exits(1);
            outcome(&desk.file(&out))
        });
        for other in &outcomes[1..] {
            assert_same(other, &outcomes[0], &format!("{length}"));
        }
    }
}

#[test]
fn interrupted_slips_are_minimized_when_resumed() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.call(&format!("{WORDS} -q -o calm -- ./two_bugs"))
        .exits(1);
    // Nothing is minimized at first, and all of it later.
    desk.call(&format!("{WORDS} -q --minimize off -o out -- ./two_bugs"))
        .exits(1);
    desk.call("run --runs 0 --resume -q -o out -- ./two_bugs");
    let logs = |out: &str| {
        let all = outcome(&desk.file(out)).into_iter();
        all.filter(|(name, _)| name.ends_with("log.jsonl") || name.ends_with("minimized"))
            .collect::<Vec<_>>()
    };
    assert_eq!(logs("out"), logs("calm"));
    assert_eq!(logs("out").len(), 4);
}
