//! The same command works on unmodified, installed programs.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::needs;

/// Every group of a result is minimized, and its script crashes.
fn holds(desk: &Desk, result: &Value) {
    let groups = result["groups"].as_array().unwrap();
    assert!(!groups.is_empty(), "{result}");
    for group in groups {
        assert_eq!(group["claim"], "1-minimal");
        let script = Path::new(group["file"].as_str().unwrap()).with_file_name("reproduce.sh");
        let mut command = Command::new(script);
        let status = command
            .env("TMPDIR", desk.file("tmp"))
            .output()
            .unwrap()
            .status;
        assert!(status.code().unwrap() > 128, "{status}");
        let log = group["log"].as_str().unwrap();
        desk.call(&format!("log verify {log}")).exits(0);
    }
    desk.is_left_clean();
}

#[test]
fn an_installed_boxes_is_fuzzed_by_the_fastest_way() {
    if needs::program("boxes").is_none() {
        return;
    }
    let desk = Desk::new();
    let words = "run --json --runs 400 --max-len 4000 --seed 4 -o out -- boxes";
    let result = desk.call(words).exits(1).json();
    assert_eq!(result["exec"], "snapshot");
    holds(&desk, &result);
}

#[test]
fn an_installed_nvi_is_fuzzed_with_its_options() {
    if needs::program("nvi").is_none() {
        return;
    }
    let desk = Desk::new();
    let words = "run --json --runs 60 --max-len 2000 --seed 4 -o out -- nvi -e -s";
    let result = desk.call(words).exits(1).json();
    holds(&desk, &result);
}
