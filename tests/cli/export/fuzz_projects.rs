//! Tests of crashes that a cargo-fuzz project has found.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::packages::{break_it, frail, mend_it};
use crate::ddfuzz::{Desk, compiled};
use crate::needs;

/// Where all projects are built, so that what they share is compiled once.
fn built() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-projects")
}

fn cargo(desk: &Desk, words: &str) -> Output {
    let mut command: Command = desk.command(env!("CARGO"));
    command.args(words.split_whitespace());
    command
        .env("CARGO_TARGET_DIR", built())
        .env("CARGO_NET_OFFLINE", "true");
    if let Some(library) = compiled::libfuzzer() {
        command.env("CUSTOM_LIBFUZZER_PATH", library);
    }
    command.output().unwrap()
}

/// A package with a cargo-fuzz project in `fuzz`, its harness built as cargo-fuzz leaves it; `None`
/// where that cannot be.
fn project(desk: &Desk) -> Option<PathBuf> {
    needs::program("c++")?;
    frail(desk);
    std::fs::create_dir_all(desk.file("fuzz/fuzz_targets")).unwrap();
    desk.write(
        "fuzz/Cargo.toml",
        "[package]\nname = \"frail-fuzz\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
         [package.metadata]\ncargo-fuzz = true\n\n[workspace]\n\n\
         [dependencies]\nfrail = { path = \"..\" }\nlibfuzzer-sys = \"0.4\"\n\n\
         [[bin]]\nname = \"parse\"\npath = \"fuzz_targets/parse.rs\"\n",
    );
    desk.write(
        "fuzz/fuzz_targets/parse.rs",
        "#![no_main]\nlibfuzzer_sys::fuzz_target!(|data: &[u8]| {\n    \
         if std::env::var_os(\"a.mode\").is_some() {\n        frail::parse(data);\n    }\n});\n",
    );
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.lock");
    std::fs::copy(lock, desk.file("fuzz/Cargo.lock")).unwrap();
    let output = cargo(desk, "build --manifest-path fuzz/Cargo.toml");
    if !output.status.success() {
        needs::missing("libfuzzer-sys", &String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let folder = desk.file("fuzz/target/x86_64-unknown-linux-gnu/release");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(built().join("debug/parse"), folder.join("parse")).unwrap();
    Some(folder.join("parse"))
}

#[test]
fn a_harness_is_run_by_cargo_until_its_bug_is_fixed() {
    let desk = Desk::new();
    let Some(harness) = project(&desk) else {
        return;
    };
    let words = format!("--env a.mode=x -- {}", harness.display());
    let other = format!("triage crash -o other {words} plain");
    desk.call(&other).exits(1);
    desk.call("export -o other --into tests/other").exits(2);
    let words = format!("triage crash -o out --json {words}");
    let result = desk.call(&words).exits(1).json();
    assert_eq!(result["groups"][0]["class"], "rustpanic");
    desk.call("export -o out --into tests/fuzz_regressions")
        .exits(0);
    let major = result["groups"][0]["major"].as_str().unwrap();
    let text = desk.read(&format!("tests/fuzz_regressions/g_{major}.rs"));
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("PROJECT: &[u8] = b\"fuzz\""), "{text}");
    let test = |passes: bool| {
        let output = cargo(&desk, "test --tests");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert_eq!(output.status.success(), passes, "{said}");
        assert!(!said.contains("warning"), "{said}");
        said
    };
    let said = test(false);
    assert!(said.contains("a k"), "{said}");
    mend_it(&desk);
    test(true);
    break_it(&desk);
    test(false);
    // Not to be built is no bug of this kind, and is said.
    desk.write("fuzz/fuzz_targets/parse.rs", "nonsense");
    let said = test(false);
    assert!(said.contains("parse cannot be built"), "{said}");
}

#[test]
fn a_project_that_has_no_such_harness_is_refused() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("crash", "k");
    desk.call("triage crash -o out -- ./two_bugs").exits(1);
    std::fs::create_dir(desk.file("fuzz")).unwrap();
    let words = "export -o out --into tests/found --json --fuzz-dir fuzz";
    let error = desk.call(words).exits(2).json()["error"].clone();
    assert!(
        error["message"].as_str().unwrap().contains("cargo-fuzz"),
        "{error}"
    );
    let manifest = "[package]\nname = \"a\"\n[package.metadata]\ncargo-fuzz = true\n";
    desk.write("fuzz/Cargo.toml", manifest);
    let error = desk.call(words).exits(2).json()["error"].clone();
    assert!(
        error["message"].as_str().unwrap().contains("two_bugs"),
        "{error}"
    );
    // By name, wherever the program was built.
    desk.write(
        "fuzz/Cargo.toml",
        format!("{manifest}\n[[bin]]\nname = \"two_bugs\"\n"),
    );
    desk.call(words).exits(0);
}
