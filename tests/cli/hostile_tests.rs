//! Interestingness tests that do what they must not: named errors, nothing lost, nothing left.

use crate::ddfuzz::Desk;
use crate::log_lines::lasting;

/// Minimizes `in` by these lines and gives the result.
fn minimized(lines: &str, more: &str) -> Vec<u8> {
    let desk = Desk::new();
    desk.write("in", "needs a q here");
    desk.script("test.sh", lines);
    let words = format!("min in --json --search ddmin --test test.sh {more}");
    let record = desk.call(&words).exits(0).json();
    assert_eq!(record["claim"], "1-minimal");
    desk.call("log verify in.min.log.jsonl").exits(0);
    assert_eq!(desk.read("in"), b"needs a q here");
    desk.is_left_clean();
    desk.read("in.min")
}

#[test]
fn a_test_may_delete_its_input_and_its_directory() {
    let lines = r#"grep -q q "$1"; found=$?; rm -f in; exit $found"#;
    assert_eq!(minimized(lines, ""), b"q");
    let lines = r#"grep -q q "$1"; found=$?; rm -rf "$(pwd)"; exit $found"#;
    assert_eq!(minimized(lines, ""), b"q");
}

#[test]
fn a_test_may_write_into_its_input() {
    let lines = r#"grep -q q in; found=$?; echo qqqq >> "$1"; chmod 0 in; exit $found"#;
    assert_eq!(minimized(lines, ""), b"q");
    // As root also into what stands on its stdin; the next run's is whole again.
    let lines = r#"grep -q q; found=$?; (yes q | head -c 999 > /dev/stdin) 2>&1; exit $found"#;
    assert_eq!(minimized(lines, ""), b"q");
}

#[test]
fn what_a_test_prints_and_writes_is_bounded_and_gone_after_each_run() {
    // The file ends at its limit, and its writer with it.
    let lines = r#"
        [ "$(ls)" = in ] || exit 0
        yes | head -c 1000000; yes | head -c 2000000 >&2
        head -c 100000000 /dev/zero > big; [ "$(wc -c < big)" -lt 100000000 ] || exit 0
        mkdir -p a/b/c && touch a/b/c/d
        grep -q q "$1""#;
    assert_eq!(minimized(lines, "--timeout 20s"), b"q");
}

#[test]
fn children_left_in_the_background_end_with_their_test() {
    let lines = r#"
        sleep 1000 &
        setsid sh -c 'sleep 1000 & sleep 1000' &
        grep -q q "$1""#;
    assert_eq!(minimized(lines, ""), b"q");
}

#[test]
fn a_test_that_removes_or_changes_itself_is_named_and_nothing_is_lost() {
    for (name, deed) in [("removed", "rm \"$0\""), ("changed", "echo : >> \"$0\"")] {
        let desk = Desk::new();
        desk.write("in", "0123456789q");
        // Does so on the way, when something has been reached already.
        let lines = format!("grep -q q in || exit 1; [ $(wc -c < in) -gt 2 ] || {deed}; exit 0");
        let test = desk.script("test.sh", &lines);
        let whole = std::fs::read(&test).unwrap();
        let said = desk
            .call("min in --json --search ddmin --test test.sh")
            .exits(3);
        let error = said.json()["error"].clone();
        assert_eq!(error["kind"], "test-changed", "{name}: {error}");
        assert!(error["hint"].as_str().unwrap().contains("--resume"));
        let best = desk.read("in.min");
        assert!(best.len() < 11 && best.contains(&b'q'), "{best:?}");
        let log = desk.read("in.min.log.jsonl");
        // Another test is no ground to go on from.
        desk.script("test.sh", "grep -q q in");
        let resumed = desk
            .call("min in --json --search ddmin --resume --test test.sh")
            .exits(2);
        assert_eq!(resumed.json()["error"]["kind"], "log");
        assert_eq!(desk.read("in.min.log.jsonl"), log);
        // The same one is.
        std::fs::write(&test, &whole).unwrap();
        desk.call("min in --json --search ddmin --resume --test test.sh")
            .exits(3);
        assert!(desk.read("in.min.log.jsonl").len() >= log.len());
    }
}

#[test]
fn a_test_that_is_touched_or_replaced_by_its_like_is_the_same() {
    let lines = r#"touch "$0"; cp "$0" "$0.new" && mv "$0.new" "$0"; grep -q q in"#;
    assert_eq!(minimized(lines, "--jobs 1"), b"q");
}

#[test]
fn a_log_is_verified_by_another_test_where_one_is_named() {
    let desk = Desk::new();
    desk.write("in", "abq");
    desk.script("test.sh", "grep -q q in");
    desk.call("min in --test test.sh").exits(0);
    let log = "in.min.log.jsonl";
    desk.script("other.sh", "grep -q b in");
    let said = desk.call(&format!("log verify --json {log} --test other.sh"));
    let said = said.exits(1);
    assert_eq!(said.json()["holds"], false);
    assert!(said.err.contains("has changed since"), "{said:?}");
    std::fs::rename(desk.file("test.sh"), desk.file("moved.sh")).unwrap();
    let error = desk
        .call(&format!("log verify --json {log}"))
        .exits(3)
        .json();
    assert_eq!(error["error"]["kind"], "test-missing");
    let said = desk
        .call(&format!("log verify {log} --test moved.sh"))
        .exits(0);
    assert_eq!(said.err, "");
    let error = desk
        .call(&format!("log verify --json {log} -- cat"))
        .exits(2);
    assert_eq!(error.json()["error"]["kind"], "usage");
}

#[test]
fn a_minimization_by_a_test_that_was_killed_is_resumed_to_the_same_result() {
    let desk = Desk::new();
    desk.write("in", "some words, and a q among them");
    desk.script("test.sh", "grep -q q in");
    desk.call("min in --test test.sh").exits(0);
    let whole = lasting(&desk.read("in.min.log.jsonl"));
    let log = desk.read("in.min.log.jsonl");
    for cut in [0, 100, log.len() / 2, log.len() - 5] {
        std::fs::write(desk.file("in.min.log.jsonl"), &log[..cut]).unwrap();
        desk.call("min in --resume --test test.sh").exits(0);
        assert_eq!(desk.read("in.min"), b"q");
        assert_eq!(lasting(&desk.read("in.min.log.jsonl")), whole);
    }
}
