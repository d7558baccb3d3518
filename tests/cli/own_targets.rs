//! Targets that users write: by the macro in Rust, and by `target_main` in C.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ddfuzz::Desk;
use crate::ddfuzz::compiled::output;
use crate::needs;

const WAYS: [&str; 3] = ["command", "inject", "harness"];
/// Settings that are none, some of which panic.
const INPUTS: [&[u8]; 6] = [b"", b"a=b\n", b"a\n", b"x=1\ny=\"", b"=\"\"", b"\xff"];

/// Builds the example of the macro's crate, with flags, in a folder of its own.
fn example(folder: &str, flags: &str, more: &[&str]) -> Result<PathBuf, String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let output = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--example", "settings"])
        .args(["--manifest-path", "crates/ddfuzz-target/Cargo.toml"])
        .arg("--target-dir")
        .arg(&target)
        .args(more)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUSTFLAGS", flags)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo runs the tests");
    match output.status.success() {
        true => Ok(target.join("debug/examples/settings")),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// A copy of the example where everybody may reach it.
fn settings(desk: &Desk) {
    let program = example("macro", "", &[]).unwrap();
    std::fs::copy(program, desk.file("settings")).unwrap();
}

#[test]
fn a_target_made_by_the_macro_ends_alike_in_every_way() {
    let desk = Desk::new();
    settings(&desk);
    for (index, input) in INPUTS.iter().enumerate() {
        desk.write(&format!("input-{index}"), input);
    }
    let inputs: Vec<String> = (0..INPUTS.len()).map(|i| format!("input-{i}")).collect();
    let inputs = inputs.join(" ");
    let ended = |way: &str, file: &str| {
        let words = format!("triage --json --exec {way} {inputs} -- ./settings {file}");
        let said = desk.call(&words);
        let result = said.json();
        let inputs = result["inputs"].as_array().unwrap().iter();
        let facts = |input: &serde_json::Value| {
            ["ended", "class", "major", "minor"].map(|key| input[key].clone())
        };
        inputs.map(facts).collect::<Vec<_>>()
    };
    let expected = ended("command", "");
    assert_eq!(expected[0][0], "exit 0");
    assert_eq!(expected[2][0], "exit 1");
    assert_eq!(expected[3][0], "SIGABRT");
    assert_eq!(expected[4][0], "exit 0");
    assert_eq!(expected[5][0], "exit 1");
    assert_eq!(ended("inject", ""), expected);
    assert_eq!(ended("harness", ""), expected);
    assert_eq!(ended("inject", "@@"), expected);
    desk.is_left_clean();
}

#[test]
fn a_panic_is_minimized_and_named_by_the_code_that_panicked() {
    for way in WAYS {
        let desk = Desk::new();
        settings(&desk);
        desk.write("crash", "first=1\nsecond=\"\nthird=3\n");
        let words = format!("min crash --json --exec {way} -o out/ -- ./settings");
        let result = desk.call(&words).exits(0).json();
        assert_eq!(result["claim"], "1-minimal", "{way}");
        assert_eq!(desk.read("crash"), b"first=1\nsecond=\"\nthird=3\n");
        let minimized = std::fs::read(result["output"].as_str().unwrap()).unwrap();
        assert_eq!(minimized, b"=\"", "{way}");
        let shown = desk.call("show out --verbose").exits(0).out;
        assert!(shown.contains("settings::unquoted"), "{shown}");
    }
}

#[test]
fn too_many_arguments_and_unreadable_files_are_wrong_usage() {
    let desk = Desk::new();
    settings(&desk);
    for args in [&["a", "b"][..], &["no-such-file"]] {
        let program = desk.file("settings");
        let output = output(desk.command(&program).args(args));
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn with_the_feature_coverage_instrumented_code_links_and_has_counters() {
    let flags = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
                 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                 -Cllvm-args=-sanitizer-coverage-pc-table \
                 -Cllvm-args=-sanitizer-coverage-trace-compares";
    // Without build scripts there is nothing to keep the flags away from.
    let built = example("coverage", flags, &["--features", "coverage"]);
    let program = match built {
        Ok(program) => program,
        Err(why) if why.contains("sanitizer-coverage") && why.contains("nknown") => {
            return needs::missing("SanitizerCoverage", &why);
        }
        Err(why) => panic!("{why}"),
    };
    let desk = Desk::new();
    std::fs::copy(program, desk.file("settings")).unwrap();
    let words = "doctor --json --time 50ms --max-len 1000 -- ./settings";
    let report = desk.call(words).exits(0).json();
    assert_eq!(report["target"]["counters"], true);
    assert_eq!(report["target"]["target_main"], true);
    for way in report["ways"].as_array().unwrap() {
        // AFL++ has not compiled it.
        let expected = way["way"] != "forkserver";
        assert_eq!(way["works"], expected, "{way}");
    }
    assert!(
        report["why"].as_str().unwrap().contains(" counters"),
        "{report}"
    );
}

#[test]
fn a_target_in_c_runs_in_every_way() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/entry.c", "entry");
    desk.write("crash", "BUGS everywhere");
    for way in WAYS {
        let words = format!("min crash --json --exec {way} -o {way} -- ./entry");
        desk.call(&words).exits(0);
        assert_eq!(desk.read(way), b"BUG");
    }
    desk.is_left_clean();
}
