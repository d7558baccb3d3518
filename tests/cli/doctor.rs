//! `ddfuzz doctor`: what it says of machines and targets.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::ddfuzz::{Desk, keys};
use crate::needs;

/// A program that reads its input and does nothing.
const READER: &str = "#include <stdio.h>\nint main(void) { while (getchar() != EOF); return 0; }\n";

/// What doctor says of a target, each way tried for a moment only.
#[track_caller]
fn doctor(desk: &Desk, words: &str, code: i32) -> Value {
    let words = format!("doctor --json --time 50ms --max-len 1000 {words}");
    let report = desk.call(&words).exits(code).json();
    desk.is_left_clean();
    let left: Vec<_> = std::fs::read_dir(desk.file("tmp"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains("doctor"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    report
}

/// The way of this name.
#[track_caller]
fn way<'a>(report: &'a Value, name: &str) -> &'a Value {
    let ways = report["ways"].as_array().unwrap();
    let found = ways.iter().find(|way| way["way"] == name);
    found.unwrap_or_else(|| panic!("no way {name}: {report}"))
}

/// The check of this name.
#[track_caller]
fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {name}: {report}"))
}

/// Compiles the reader; `None` where the machine cannot link so.
fn reader(desk: &Desk, flags: &[&str]) -> Option<std::path::PathBuf> {
    let source = desk.write("reader.c", READER);
    let compiled = desk
        .command("cc")
        .args(["-o", "reader"])
        .arg(source)
        .args(flags)
        .output()
        .expect("the tests need a C compiler");
    compiled.status.success().then(|| desk.file("reader"))
}

#[track_caller]
fn works(way: &Value) {
    assert_eq!(way["works"], true, "{way}");
    assert_eq!(way["why_not"], Value::Null);
    assert_eq!(way["fix"], Value::Null);
    assert!(way["runs_per_s"].as_f64().unwrap() > 0.0, "{way}");
}

#[track_caller]
fn fails(way: &Value, because: &str) {
    assert_eq!(way["works"], false, "{way}");
    let why = way["why_not"].as_str().unwrap();
    assert!(why.contains(because), "{why}");
    assert_eq!(way["runs_per_s"], Value::Null);
}

#[test]
fn without_a_target_the_machine_is_checked() {
    let desk = Desk::new();
    let report = desk.call("doctor --json").exits(0).json();
    assert_eq!(
        keys(&report),
        ["behaviour", "checks", "chosen", "target", "ways", "why"]
    );
    assert_eq!(report["ways"].as_array().unwrap().len(), 0);
    assert_eq!(report["chosen"], Value::Null);
    let checks = report["checks"].as_array().unwrap();
    for check in checks {
        assert_eq!(keys(check), ["about", "detail", "fix", "name", "ok"]);
        assert_eq!(check["about"], "machine");
        assert_eq!(check["ok"] == true, check["fix"].is_null(), "{check}");
        let same = checks.iter().filter(|one| one["name"] == check["name"]);
        assert_eq!(same.count(), 1, "{check}");
    }
    for name in ["ptrace", "core-pattern", "addresses", "dev-shm", "governor"] {
        check(&report, name);
    }
    let text = desk.call("doctor").exits(0).out;
    assert!(
        text.contains("ptrace") && text.contains("--target"),
        "{text}"
    );
}

#[test]
fn a_bundled_target_runs_in_every_way() {
    let desk = Desk::new();
    let report = doctor(&desk, "--target ul", 0);
    for name in ["command", "inject", "harness"] {
        works(way(&report, name));
    }
    assert_eq!(report["chosen"], "harness");
    assert_eq!(report["target"]["bundled"], "ul");
    assert_eq!(report["target"]["target_main"], true);
    assert_eq!(check(&report, "symbols")["ok"], true);
    let text = desk.call("doctor --time 50ms --target ul").exits(0).out;
    assert!(
        text.contains("runs/s") && text.contains("chosen: harness"),
        "{text}"
    );
}

#[test]
fn a_script_runs_by_its_interpreter_which_is_named() {
    let desk = Desk::new();
    let script = desk.script("script", "cat >/dev/null");
    let report = doctor(&desk, &format!("-- {}", script.display()), 0);
    works(way(&report, "command"));
    works(way(&report, "inject"));
    fails(way(&report, "harness"), "target_main");
    assert_eq!(report["chosen"], "snapshot");
    assert_eq!(report["target"]["script_of"], "/bin/sh");
    assert_eq!(check(&report, "program")["ok"], true);
}

#[test]
fn a_static_program_runs_by_command_and_is_told_what_to_link() {
    let desk = Desk::new();
    let Some(program) = reader(&desk, &["-static"]) else {
        return needs::missing(
            "static linking",
            "the compiler cannot link a static program",
        );
    };
    let report = doctor(&desk, &format!("-- {}", program.display()), 0);
    fails(way(&report, "inject"), "statically linked");
    let fix = way(&report, "inject")["fix"].as_str().unwrap();
    assert!(fix.contains("link it dynamically"), "{fix}");
    assert_eq!(report["target"]["linker"], Value::Null);
    assert_eq!(report["chosen"], "command");
}

#[test]
fn a_setuid_program_is_to_be_copied() {
    let desk = Desk::new();
    let program = reader(&desk, &[]).expect("the compiler links programs");
    // The owner may set the bit, root or not.
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let report = doctor(&desk, &format!("-- {}", program.display()), 0);
    fails(way(&report, "inject"), "setuid");
    let fix = check(&report, "setuid")["fix"].as_str().unwrap();
    assert!(fix.starts_with("fuzz a copy"), "{fix}");
    assert_eq!(report["target"]["setuid"], true);
}

#[test]
fn a_stripped_program_with_a_sanitizer_and_a_file_is_seen_as_such() {
    let desk = Desk::new();
    let program = reader(&desk, &["-s"]).expect("the compiler links programs");
    let report = doctor(&desk, &format!("-- {}", program.display()), 0);
    assert_eq!(check(&report, "symbols")["ok"], false);
    assert_eq!(check(&report, "input")["ok"], true);
    assert_eq!(report["behaviour"]["read"], 19);
    assert_eq!(report["chosen"], "snapshot");
    let Some(program) = reader(&desk, &["-g", "-fsanitize=undefined"]) else {
        return needs::missing("UBSan", "the compiler has no -fsanitize=undefined");
    };
    let report = doctor(
        &desk,
        &format!("--exec command -- {} @@", program.display()),
        0,
    );
    assert_eq!(check(&report, "symbols")["ok"], true);
    assert!(
        check(&report, "input")["detail"]
            .as_str()
            .unwrap()
            .contains("@@")
    );
    assert_eq!(report["ways"].as_array().unwrap().len(), 1);
}

#[test]
fn a_program_that_reads_nothing_of_stdin_is_told_of_files() {
    let desk = Desk::new();
    let report = doctor(&desk, "-- true", 0);
    let input = check(&report, "input");
    assert_eq!(input["ok"], false);
    assert!(input["fix"].as_str().unwrap().contains("@@"));
}

#[test]
fn a_target_that_no_way_runs_is_exit_3() {
    let desk = Desk::new();
    let report = doctor(&desk, "--exec harness -- cat", 3);
    fails(way(&report, "harness"), "target_main");
    assert_eq!(report["chosen"], Value::Null);
    let broken = desk.write("broken", "no program at all");
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o755)).unwrap();
    let report = doctor(&desk, "-- ./broken", 3);
    assert_eq!(report["target"]["kind"], "other");
    assert_eq!(way(&report, "command")["works"], false);
    assert!(way(&report, "command")["fix"].is_string());
}

#[test]
fn a_target_that_is_not_there_is_an_error_as_of_any_command() {
    let desk = Desk::new();
    let said = desk.call("doctor --json -- ./no-such-program").exits(3);
    assert_eq!(said.json()["error"]["kind"], "program-missing");
    let said = desk.call("doctor --json --target no-such-target").exits(2);
    assert_eq!(said.json()["error"]["kind"], "unknown-target");
    desk.call("doctor --time never").exits(2);
    assert!(!Path::new(&desk.file("ddfuzz-out")).exists());
}
