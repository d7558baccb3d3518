//! `ddfuzz min` where things do not go smoothly: flaky crashes, hangs, budgets.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::ddfuzz::{Desk, Said};

/// A program that ends with status 7 in every second run with an `x`; its count is kept in a
/// directory that everybody may write to.
const EVERY_SECOND: &str = "n=$(cat n 2>/dev/null || echo 0)
echo $((n + 1)) > n
case $(cat) in *x*) [ $((n % 2)) = 0 ] && exit 7 ;; esac
exit 0
";

/// Minimizes by a shell script that runs in a directory of its own.
fn min(desk: &Desk, script: &str, words: &str) -> Said {
    if !desk.file("odd").exists() {
        std::fs::create_dir(desk.file("odd")).unwrap();
        let anybody = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(desk.file("odd"), anybody).unwrap();
    }
    let script = desk.write("script", script);
    desk.call(&format!(
        "min crash --json --jobs 1 --crash-exit 7 --cwd odd --exec command {words} -- sh {}",
        script.display()
    ))
}

fn log(desk: &Desk) -> Vec<Value> {
    let log = String::from_utf8(desk.read("crash.min.log.jsonl")).unwrap();
    log.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_crash_that_comes_every_second_time_is_minimized_by_votes() {
    let desk = Desk::new();
    desk.write("crash", "a x b");
    let said = min(&desk, EVERY_SECOND, "").exits(0);
    let record = said.json();
    assert_eq!(desk.read("crash.min"), b"x", "{record}");
    assert_eq!(record["claim"], "best-so-far");
    assert_eq!(record["proved"]["done"], 0);
    assert_eq!(record["rate"]["tries"], 20);
    assert!(
        said.err.contains(" runs. Each candidate was run up to"),
        "{}",
        said.err
    );
    assert!(log(&desk).iter().any(|line| line["what"] == "vote"));
    desk.call("log replay crash.min.log.jsonl -o again")
        .exits(0);
    assert_eq!(desk.read("again"), b"x");
}

#[test]
fn a_larger_budget_goes_on_where_a_smaller_one_ended() {
    let desk = Desk::new();
    desk.write("crash", "....t....".repeat(40));
    let words = "min crash --json --target crtplot";
    let first = desk
        .call(&format!("{words} --budget-tests 3"))
        .exits(0)
        .json();
    assert_eq!(first["claim"], "best-so-far");
    let log = desk.read("crash.min.log.jsonl");
    let same = desk
        .call(&format!("{words} --resume --budget-tests 3"))
        .exits(0)
        .json();
    assert_eq!(same["tests"], first["tests"]);
    assert_eq!(desk.read("crash.min.log.jsonl"), log);
    let last = desk.call(&format!("{words} --resume")).exits(0).json();
    assert_eq!(
        (&last["claim"], &last["size_after"]),
        (&"1-minimal".into(), &1.into())
    );
    assert!(desk.read("crash.min.log.jsonl").starts_with(&log));
    for command in ["show", "replay", "verify"] {
        let said = desk
            .call(&format!("log {command} crash.min.log.jsonl"))
            .exits(0);
        assert!(said.out.contains("1-minimal"), "{}", said.out);
    }
}

#[test]
fn the_limit_on_time_is_learned_unless_it_is_given() {
    let desk = Desk::new();
    desk.write("crash", "a x b");
    let quick = "case $(cat) in *x*) exit 7 ;; esac; exit 0";
    min(&desk, quick, "").exits(0);
    let learned = log(&desk);
    assert_eq!(learned[0]["learn_limit"], true);
    assert!(learned[1]["cpu_us"].as_u64().is_some(), "{}", learned[1]);
    min(&desk, quick, "--force --timeout 3s").exits(0);
    let fixed = log(&desk);
    assert_eq!(fixed[0]["learn_limit"], Value::Null);
    assert_eq!(fixed[0]["limits"]["cpu_ms"], 3000);
}

#[test]
fn candidates_that_hang_prove_nothing_and_end_nothing() {
    let desk = Desk::new();
    desk.write("crash", "a x k");
    // Without its k an x hangs.
    let script = "case $(cat) in *x*k*) exit 7 ;; *x*) while :; do :; done ;; esac; exit 0";
    let record = min(&desk, script, "").exits(0).json();
    assert_eq!(desk.read("crash.min"), b"xk");
    assert_eq!(record["claim"], "best-so-far");
    assert_eq!(record["proved"], serde_json::json!({"done": 1, "of": 2}));
    // Its time had ten times the limit in the proof.
    let proof = log(&desk).into_iter().find(|line| line["phase"] == "proof");
    assert_eq!(proof.expect("a proof")["cut_off"], "time");
}

#[test]
fn links_in_an_output_directory_are_not_written_through() {
    let desk = Desk::new();
    desk.write("crash", "a t");
    desk.call("triage crash -o out --target crtplot").exits(1);
    desk.write("precious", "line\nprecious");
    for name in [".lock", "triage.jsonl"] {
        std::fs::remove_file(desk.file(&format!("out/{name}"))).unwrap();
        std::os::unix::fs::symlink("../precious", desk.file(&format!("out/{name}"))).unwrap();
        let said = desk.call("triage crash -o out --target crtplot").exits(2);
        assert!(said.err.contains("symbolic link"), "{said:?}");
        assert_eq!(desk.read("precious"), b"line\nprecious");
        std::fs::remove_file(desk.file(&format!("out/{name}"))).unwrap();
        desk.call("triage crash -o out --target crtplot").exits(1);
    }
}
