//! `ddfuzz min --test SCRIPT`.

use serde_json::Value;

use crate::ddfuzz::Desk;

/// The error of a call.
#[track_caller]
fn error(desk: &Desk, words: &str, code: i32) -> Value {
    let said = desk.call(&format!("--json {words}")).exits(code);
    assert!(said.err.contains("error: "), "{said:?}");
    assert!(said.err.contains("hint: "), "{said:?}");
    said.json()["error"].clone()
}

#[test]
fn a_text_is_minimized_proved_and_verified_by_a_test() {
    let desk = Desk::new();
    desk.write("in.txt", "some text with an x and a y in it\n");
    desk.script("test.sh", "grep -q 'x.*y' \"$1\"");
    let record = desk
        .call("min in.txt --json --test test.sh")
        .exits(0)
        .json();
    assert_eq!(desk.read("in.txt.min"), b"xy");
    assert_eq!(record["claim"], "1-minimal");
    assert_eq!(record["size_after"], 2);
    for key in ["class", "major", "minor"] {
        assert_eq!(record["outcome"][key], Value::Null);
    }
    assert_eq!(record["minor_after"], Value::Null);
    let log = "in.txt.min.log.jsonl";
    desk.call(&format!("log verify {log}")).exits(0);
    desk.call(&format!("log replay {log} -o again")).exits(0);
    assert_eq!(desk.read("again"), b"xy");
    // Nor is there anything left.
    desk.is_left_clean();
}

/// The questions of a search and their outcomes, without the runs that prove its result.
fn questions(log: &[u8]) -> Vec<(Value, Value)> {
    let lines = std::str::from_utf8(log).unwrap().lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let asked = lines.filter(|line| line["kind"] == "test" && line["phase"].is_null());
    asked
        .map(|line| (line["hash"].clone(), line["outcome"].clone()))
        .collect()
}

#[test]
fn a_program_as_a_test_answers_as_the_script_that_calls_it() {
    let desk = Desk::new();
    let program = desk.compile("tests/exec/programs/verdict.c", "check");
    desk.script("check.sh", &format!("exec {} \"$@\"", program.display()));
    let text = "cow and ax off - hm now\n".repeat(8);
    desk.write("in.txt", &text);
    let [program, script] = ["./check", "./check.sh"].map(|test| {
        let words = format!("min in.txt --force --json --grammar text --test {test} -o out");
        let record = desk.call(&words).exits(0).json();
        desk.call("log verify out.log.jsonl").exits(0);
        (record, desk.read("out"), desk.read("out.log.jsonl"))
    });
    assert_eq!(program.1, script.1);
    assert_eq!(program.0["claim"], "1-minimal");
    assert_eq!(script.0["claim"], "1-minimal");
    let (asked, expected) = (questions(&program.2), questions(&script.2));
    assert!(expected.len() > 10, "{}", expected.len());
    assert_eq!(asked, expected);
    let shared = |log: &[u8]| String::from_utf8_lossy(log).contains(r#""process":"shared""#);
    assert!(shared(&program.2) && !shared(&script.2));
    desk.is_left_clean();
}

#[test]
fn the_grammar_is_that_of_the_files_ending_unless_the_user_chooses_another() {
    let desk = Desk::new();
    desk.script("test.sh", "grep -q 7 \"$1\"");
    for (name, option, structure) in [
        ("in.py", "", "\"python\""),
        ("in.txt", "", "\"text\""),
        ("in.py", "--grammar text", "\"text\""),
        ("in.json", "", "\"text\""),
    ] {
        desk.write(name, "x = 1\ny = 7\n");
        desk.call(&format!(
            "min {name} --force --test test.sh {option} -o out"
        ))
        .exits(0);
        let log = String::from_utf8(desk.read("out.log.jsonl")).unwrap();
        let start = log.lines().next().unwrap();
        let said = format!("\"structure\":{structure}");
        assert!(start.contains(&said), "{name} {option}: {start}");
        desk.call("log verify out.log.jsonl").exits(0);
    }
}

#[test]
fn the_input_is_offered_in_all_three_ways_at_once() {
    let desk = Desk::new();
    desk.write("in put.txt", "abcdef");
    let lines = r#"
        [ $# = 1 ] && [ -f "$1" ] && [ -f "in put.txt" ] || exit 1
        case $1 in /*) ;; *) exit 1 ;; esac
        [ "$(ls -A)" = "in put.txt" ] || exit 1
        [ -f /dev/stdin ] && cmp -s /dev/stdin "$1" && cmp -s "in put.txt" "$1" || exit 1
        touch left-behind
        grep -q d "$1""#;
    desk.script("test.sh", lines);
    let words = "min --json --test ./test.sh -o out";
    let record = desk
        .call_with(words, &["in put.txt".as_ref()])
        .exits(0)
        .json();
    assert_eq!(record["size_after"], 1);
    assert_eq!(desk.read("out"), b"d");
}

#[test]
fn exit_125_is_unresolved_and_any_other_end_is_a_pass() {
    let desk = Desk::new();
    desk.write("in", "abc");
    let lines = r#"
        case "$(cat)" in
        abc) exit 0 ;;
        ab) exit 125 ;;
        a) kill -SEGV $$ ;;
        *) exit 7 ;;
        esac"#;
    desk.script("test.sh", lines);
    desk.call("min in --test test.sh").exits(0);
    assert_eq!(desk.read("in.min"), b"abc");
    let log = String::from_utf8(desk.read("in.min.log.jsonl")).unwrap();
    let outcome = |text: &str| {
        let hash = blake3::hash(text.as_bytes()).to_hex();
        let line = log
            .lines()
            .find(|line| line.contains(&format!("\"hash\":\"{}\"", &hash[..16])))
            .unwrap_or_else(|| panic!("{text} was tested: {log}"));
        let line: Value = serde_json::from_str(line).unwrap();
        line["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!(outcome("ab"), "UNRESOLVED");
    assert_eq!(outcome("a"), "PASS");
    assert_eq!(outcome("c"), "PASS");
}

#[test]
fn a_test_that_cannot_be_run_is_named() {
    let desk = Desk::new();
    desk.write("in", "x");
    desk.write("text", "exit 0");
    desk.script("headless", "");
    std::fs::write(desk.file("headless"), "exit 0\n").unwrap();
    desk.script("lost", "");
    std::fs::write(desk.file("lost"), "#!/no/such/interpreter\n").unwrap();
    desk.script("empty", "");
    std::fs::write(desk.file("empty"), "").unwrap();
    for (test, kind) in [
        ("missing", "test-missing"),
        ("text", "test-not-executable"),
        ("headless", "test-not-executable"),
        ("lost", "test-not-executable"),
        ("empty", "test-not-executable"),
        (".", "test-not-executable"),
    ] {
        let error = error(&desk, &format!("min in --test {test}"), 3);
        assert_eq!(error["kind"], kind, "{test}: {error}");
        assert!(error["path"].as_str().unwrap().starts_with('/'), "{error}");
        assert!(!desk.file("in.min").exists() && !desk.file("in.min.log.jsonl").exists());
    }
}

#[test]
fn a_test_takes_the_place_of_a_program() {
    let desk = Desk::new();
    desk.write("in", "x");
    desk.script("test.sh", "exit 0");
    std::fs::create_dir(desk.file("dir")).unwrap();
    for more in [
        "-- cat",
        "--target crtplot",
        "--exec inject",
        "--crash-exit 3",
        "--cwd .",
        "-o out/",
        "-o dir",
    ] {
        let said = desk.call(&format!("min in --json --test test.sh {more}"));
        assert_eq!(said.exits(2).json()["error"]["kind"], "usage", "{more}");
    }
    assert!(!desk.file("out").exists());
}

#[test]
fn an_input_that_is_not_interesting_fails_the_baseline() {
    let desk = Desk::new();
    desk.write("in", "x");
    desk.write("in.min", "precious");
    desk.script("test.sh", "exit 3");
    let error = error(&desk, "min in --force --test test.sh", 3);
    assert_eq!(error["kind"], "not-failing");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("exit 3"), "{message}");
    assert_eq!(desk.read("in.min"), b"precious");
    assert!(!desk.file("in.min.log.jsonl").exists());
}

#[test]
fn a_test_that_hangs_is_named_after_its_first_run() {
    let desk = Desk::new();
    desk.write("in", "x");
    for (name, lines) in [
        ("sleeper", "sleep 1000"),
        ("spinner", "while :; do :; done"),
    ] {
        desk.script(name, lines);
        let error = error(&desk, &format!("min in --timeout 50ms --test {name}"), 3);
        assert_eq!(error["kind"], "test-hangs");
        assert!(error["hint"].as_str().unwrap().contains("--timeout"));
    }
    assert!(!desk.file("in.min.log.jsonl").exists());
    desk.is_left_clean();
}

#[test]
fn a_candidate_on_which_the_test_hangs_is_unresolved() {
    let desk = Desk::new();
    desk.write("in", "ab");
    let lines = "case \"$(cat)\" in ab) exit 0 ;; a) while :; do :; done ;; esac; exit 1";
    desk.script("test.sh", lines);
    let words = "min in --json --timeout 50ms --test test.sh";
    let record = desk.call(words).exits(0).json();
    assert_eq!(record["size_after"], 2);
    let log = String::from_utf8(desk.read("in.min.log.jsonl")).unwrap();
    assert!(log.contains("\"cut_off\":\"time\""), "{log}");
}

#[test]
fn a_test_that_alternates_whatever_it_is_given_is_not_reproducible() {
    let desk = Desk::new();
    desk.write("in", "abcd");
    let state = desk.file("state");
    // Interesting every other time.
    let lines = format!(
        "if [ -e '{0}' ]; then rm '{0}'; exit 1; fi; touch '{0}'; exit 0",
        state.display()
    );
    desk.script("test.sh", &lines);
    let said = desk.call("min in --json --jobs 1 --test test.sh").exits(3);
    let error = &said.json()["error"];
    assert_eq!(error["kind"], "not-reproducible", "{said:?}");
    assert!(error["path"].as_str().unwrap().ends_with("in"), "{error}");
    assert!(!desk.file("in.min").exists());
    assert!(!desk.file("in.min.log.jsonl").exists());
}

#[test]
fn a_test_that_is_interested_now_and_then_is_asked_by_votes() {
    let desk = Desk::new();
    desk.write("in", "abxcd");
    let state = desk.file("state");
    // Every other time, where there is an x.
    let lines = format!(
        "grep -q x in || exit 1; if [ -e '{0}' ]; then rm '{0}'; exit 1; fi; touch '{0}'; exit 0",
        state.display()
    );
    desk.script("test.sh", &lines);
    let said = desk.call("min in --json --jobs 1 --test test.sh").exits(0);
    assert_eq!(desk.read("in.min"), b"x");
    assert!(
        said.err.contains("warning: the failure is flaky"),
        "{said:?}"
    );
    assert_eq!(said.json()["claim"], "best-so-far");
    let log = String::from_utf8(desk.read("in.min.log.jsonl")).unwrap();
    assert!(log.contains("\"what\":\"vote\""), "{log}");
}

#[test]
fn the_limit_on_the_time_of_a_test_is_learned_unless_it_is_given() {
    let desk = Desk::new();
    desk.write("in", "ab");
    // A whole default limit would be ten seconds.
    let lines = "case \"$(cat)\" in ab) exit 0 ;; a) while :; do :; done ;; esac; exit 1";
    desk.script("test.sh", lines);
    desk.call("min in --test test.sh").exits(0);
    let first = |log: Vec<u8>| -> serde_json::Value {
        let text = String::from_utf8(log).unwrap();
        serde_json::from_str(text.lines().next().unwrap()).unwrap()
    };
    let start = first(desk.read("in.min.log.jsonl"));
    assert_eq!(start["learn_limit"], true);
    desk.call("min in --force --timeout 50ms --test test.sh")
        .exits(0);
    let start = first(desk.read("in.min.log.jsonl"));
    assert_eq!(start["learn_limit"], serde_json::Value::Null);
}
