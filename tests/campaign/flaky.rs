//! A crash that comes of what the process ran before, and of no input alone.

use crate::ddfuzz::Desk;
use crate::outcome::{files, record};

#[test]
fn a_crash_that_no_input_brings_about_alone_is_kept_with_the_inputs_before_it() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/third_call.c", "third_call");
    let words = "run --runs 7 --max-len 50 --seed 3 --jobs 1 --json -o out -- ./third_call";
    let result = desk.call(words).exits(0).json();
    assert_eq!(
        (&result["flaky"], &result["exec"]),
        (&1.into(), &"harness".into())
    );
    assert!(result["groups"].as_array().unwrap().is_empty(), "{result}");
    let mut records = files(&desk.file("out/flaky"));
    records.retain(|file| file.ends_with("crash.json"));
    assert_eq!(records.len(), 1, "{records:?}");
    let crash = record(&records[0]);
    let preceding = crash["preceding"].as_array().unwrap();
    assert_eq!(preceding.len(), 2, "{crash}");
    assert_eq!(crash["found"]["run"], 2);
    // What the dying process has copied of itself names it.
    assert_eq!(
        (&crash["capture"], &crash["confidence"]),
        (&"copy".into(), &"high".into())
    );
    let frames = crash["frames"].as_array().unwrap();
    let own = frames.iter().find(|frame| frame["own"] == true);
    assert_eq!(own.unwrap()["name"], "target_main", "{crash}");
}
