//! Whole cleanups, of targets that do odd things.

use std::ffi::OsStr;

use ddfuzz::exec::{Program, Target};
use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::harness::harness;

/// Cleans `in` of the desk by these words; the target may make links in its `tmp`, whose path it is
/// told in `SIGNS`.
fn cleaned(desk: &Desk, words: &str, target: &Target) -> Value {
    let Program::Path(path) = &target.program else {
        panic!("a harness is a file");
    };
    let env = format!("SIGNS={}", desk.file("tmp").display());
    let words = format!("clean in -o out --json --jobs 1 --timeout 60s --env {env} {words}");
    let more = [OsStr::new("--"), path.as_os_str()];
    desk.call_with(&words, &more).exits(0).json()
}

/// A harness with this body behind one that knows how to leave a sign in `SIGNS`: the first to
/// leave it is told so.
fn leaving_signs(name: &str, body: &str) -> Option<Target> {
    let begin = "const char *folder = getenv(\"SIGNS\");
        if (folder == NULL || chdir(folder) != 0) return 0;
        if (length < 2 || text[0] != 'r') { if (length == 1) place = 9; return 0; }";
    harness(name, &format!("{begin} {body}"))
}

fn corpus(desk: &Desk) {
    std::fs::create_dir(desk.file("in")).unwrap();
    desk.write("in/other", "o");
    desk.write("in/odd", "resting");
}

#[test]
fn what_crashes_once_and_never_again_is_kept_with_one_run_for_the_truth_too() {
    let body = "if (symlink(\"x\", \"crashed\") == 0) abort(); place = 1;";
    let Some(target) = leaving_signs("recovers", body) else {
        return;
    };
    for words in [
        "--trim off --repeats 1",
        "--trim off --skip flaky",
        "--trim off",
    ] {
        let desk = Desk::new();
        corpus(&desk);
        let result = cleaned(&desk, words, &target);
        assert!(desk.file("tmp/crashed").is_symlink(), "it has crashed");
        assert_eq!(result["crashes"], 0, "{result}");
        assert_eq!(result["after"]["files"], 2, "{words}: {result}");
        assert_eq!(result["features_before"], result["features_after"]);
    }
}

#[test]
fn of_what_crashed_once_only_what_comes_with_each_repeat_counts() {
    let body = "if (symlink(\"x\", \"crashed\") == 0) abort();
        if (symlink(\"x\", \"odd\") == 0) place = 1; else { unlink(\"odd\"); place = 2; }
        for (size_t at = 0; at < length; at++) if (text[at] == 'g') place = 3;";
    let Some(target) = leaving_signs("recovers-in-turn", body) else {
        return;
    };
    let desk = Desk::new();
    corpus(&desk);
    let result = cleaned(&desk, "--trim off", &target);
    assert!(result["flaky_features"].as_u64() >= Some(2), "{result}");
    assert_eq!(result["missing"].as_array().unwrap().len(), 0, "{result}");
    assert_eq!(result["after"]["files"], 2, "{result}");
}

#[test]
fn what_only_the_check_reaches_is_told_and_no_loss() {
    // All else comes as often as before, as far as ranges of counts are told apart.
    let body = "size_t last = length - (access(\"../out/corpus\", F_OK) == 0);
        for (size_t at = 0; at < length; at++) if (at == last) place = 1;";
    let Some(target) = leaving_signs("reaches-more", body) else {
        return;
    };
    let desk = Desk::new();
    corpus(&desk);
    let result = cleaned(&desk, "--trim off", &target);
    let gained = result["gained"].as_array().unwrap();
    let count = |key: &str| result[key].as_u64().unwrap();
    assert!(!gained.is_empty(), "{result}");
    assert_eq!(
        count("features_after"),
        count("features_before") + gained.len() as u64
    );
    assert!(gained[0]["edge"].is_u64() && gained[0]["counts"].is_array());
    assert_eq!(result["missing"].as_array().unwrap().len(), 0);
}
