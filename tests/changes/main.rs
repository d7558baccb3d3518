//! `ddfuzz changes`, called as a user calls it, on repositories that are generated.
#![cfg(feature = "cli")]

mod bad_input;
mod builds;
mod compiles;
mod crashes;
mod curves;
mod figures;
mod flaky;
mod histories;
mod logs;
#[allow(dead_code, reason = "the tests of `store` use more of it")]
#[path = "../store/mounts.rs"]
mod mounts;
#[path = "../needs/mod.rs"]
mod needs;
mod repositories;
mod sandbox;
mod shapes;
#[allow(dead_code, reason = "the tests of the crate use more of it")]
#[path = "../../crates/ddfuzz-changes/tests/simulation/mod.rs"]
mod simulation;
mod untouched;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// A call of `ddfuzz changes` in the folder `at`, with its output directory `out` there.
fn changes(at: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ddfuzz"));
    command
        .current_dir(at)
        .args(["changes", "--json", "-o", "out"]);
    command.args(words);
    command
}

/// The words of a search between the tags of the repository, with a command that builds and one that
/// tests.
fn by_build<'a>(build: &'a str, test: &'a str) -> [&'a str; 7] {
    [
        "A..B",
        "--repo",
        "repository",
        "--build",
        build,
        "--run",
        test,
    ]
}

/// Runs a command to its end.
fn output(command: &mut Command) -> Output {
    command.output().expect("it starts")
}

/// Runs a command that must succeed, and returns its JSON.
#[track_caller]
fn result(command: &mut Command) -> Value {
    let done = output(command);
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{:?}\n{error}", done.status);
    serde_json::from_slice(&done.stdout).expect("it prints JSON")
}

/// Runs a command that must fail, and returns exit code, kind of error and message with hint.
#[track_caller]
fn failure(command: &mut Command) -> (i32, String, String) {
    let done = output(command);
    let report: Value = serde_json::from_slice(&done.stdout).expect("it prints JSON");
    let error = &report["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    let code = done.status.code().expect("it exits");
    (
        code,
        text("kind"),
        format!("{}\n{}", text("message"), text("hint")),
    )
}

/// The changes of a result, as `FILE:FIRST NEW LINE`.
fn places(result: &Value) -> Vec<String> {
    let changes = result["changes"].as_array().expect("it lists changes");
    let place = |change: &Value| {
        format!(
            "{}:{}",
            change["file"].as_str().unwrap_or("?"),
            change["new"][0]
        )
    };
    changes.iter().map(place).collect()
}

fn executed(result: &Value) -> u64 {
    result["tests"]["executed"]
        .as_u64()
        .expect("it counts tests")
}
