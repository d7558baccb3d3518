//! `ddfuzz triage --resume`, and Ctrl-C.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ddfuzz::Desk;

/// Notes each run, takes a while, and dies of the letter k.
const SLOW: &str = "x=$(cat); [ -n \"$x\" ] && echo $x >>$DESK/tmp/runs; sleep 0.02; \
                    case $x in k*) kill -SEGV $$;; esac; exit 0";
const FILES: usize = 40;

fn desk() -> Desk {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    for index in 0..FILES {
        let letter = if index % 2 == 0 { "k" } else { "h" };
        desk.write(&format!("in/{index:02}"), format!("{letter}{index}"));
    }
    desk.script("slow", SLOW);
    desk
}

fn journal(desk: &Desk) -> Vec<Value> {
    let text = std::fs::read_to_string(desk.file("out/triage.jsonl")).unwrap_or_default();
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Starts the triage, and gives it when it has done some of its work.
fn under_way(desk: &Desk) -> std::process::Child {
    let mut child = desk.start("triage in -o out --jobs 2 --exec command -- ./slow");
    let began = Instant::now();
    while journal(desk).len() < 6 {
        assert!(
            began.elapsed() < Duration::from_secs(100),
            "it does nothing"
        );
        assert!(child.try_wait().unwrap().is_none(), "it is over");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn resumed(desk: &Desk) -> Value {
    let call = "triage in -o out --json --resume --exec command";
    let words = ["--", "./slow"].map(OsStr::new);
    desk.call_with(call, &words).exits(1).json()
}

#[test]
fn after_a_kill_nothing_is_run_again_that_was_done() {
    let desk = desk();
    let mut child = under_way(&desk);
    child.kill().unwrap();
    child.wait().unwrap();
    desk.is_left_clean();
    let done = journal(&desk);
    assert!(done.len() < FILES);
    std::fs::remove_file(desk.file("tmp/runs")).unwrap();
    let result = resumed(&desk);
    let runs = String::from_utf8(desk.read("tmp/runs")).unwrap();
    let hashes: Vec<String> = (runs.lines())
        .map(|text| blake3::hash(text.as_bytes()).to_hex().to_string())
        .collect();
    // What is said of a group rests on its least input, which may be run once more for it.
    let again = done.iter().filter(|line| {
        line["crash"].is_null() && hashes.iter().any(|hash| line["input"] == hash.as_str())
    });
    assert_eq!(again.count(), 0, "{runs}");
    // The result is that of a triage in one go.
    let whole = ["--", "./slow"].map(OsStr::new);
    let whole = desk.call_with("triage in --json --exec command", &whole);
    let whole = whole.exits(1).json();
    assert_eq!(result, whole);
    assert_eq!(whole["groups"][0]["count"], FILES as u64 / 2);
    let seen = desk.call("show out --json").exits(0).json();
    assert_eq!(seen["groups"][0]["runs_seen"], FILES as u64 / 2);
    // And a third call has nothing to run at all.
    std::fs::remove_file(desk.file("tmp/runs")).unwrap();
    assert_eq!(resumed(&desk), whole);
    assert!(!desk.file("tmp/runs").exists());
    let seen = desk.call("show out --json").exits(0).json();
    assert_eq!(seen["groups"][0]["runs_seen"], FILES as u64 / 2);
}

#[test]
fn an_interrupt_ends_with_130_and_the_state_saved() {
    let desk = desk();
    let mut child = under_way(&desk);
    let pid = pid_of(&child);
    assert_eq!(interrupt(pid), 0);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    desk.is_left_clean();
    assert!(journal(&desk).len() < FILES);
    assert_eq!(resumed(&desk)["inputs"].as_array().unwrap().len(), FILES);
}

fn pid_of(child: &std::process::Child) -> i32 {
    i32::try_from(child.id()).unwrap()
}

fn interrupt(pid: i32) -> i32 {
    // SAFETY: a signal to a child of ours that has not been waited for.
    unsafe { libc::kill(pid, libc::SIGINT) }
}

#[test]
fn an_input_that_is_run_by_several_calls_counts_once() {
    let desk = Desk::new();
    for (folder, texts) in [("in", ["k1", "k2", "h1"]), ("more", ["k2", "k3", "k4"])] {
        std::fs::create_dir(desk.file(folder)).unwrap();
        for text in texts {
            desk.write(&format!("{folder}/{text}"), text);
        }
    }
    desk.script("dies", "case $(cat) in k*) kill -SEGV $$;; esac; exit 0");
    let seen = |files: &str| {
        let call = format!("triage {files} -o out --exec command -- ./dies");
        desk.call(&call).exits(1);
        let shown = desk.call("show out --json").exits(0).json();
        let groups = shown["groups"].as_array().unwrap();
        assert_eq!(groups.len(), 1, "{shown}");
        groups[0]["runs_seen"].as_u64().unwrap()
    };
    assert_eq!(seen("in"), 2);
    assert_eq!(seen("in"), 2);
    assert_eq!(seen("more"), 4);
    assert_eq!(seen("in --resume"), 4);
}

#[test]
fn another_program_is_run_anew_and_torn_lines_are_dropped() {
    let desk = desk();
    for index in 4..FILES {
        std::fs::remove_file(desk.file(&format!("in/{index:02}"))).unwrap();
    }
    let call = "triage in -o out --json --resume --exec command";
    let words = ["--", "./slow"].map(OsStr::new);
    let first = desk.call_with(call, &words).exits(1).json();
    let mut text = std::fs::read_to_string(desk.file("out/triage.jsonl")).unwrap();
    text.insert_str(0, "no line of ours\n");
    text.truncate(text.len() - 3);
    desk.write("out/triage.jsonl", text);
    assert_eq!(desk.call_with(call, &words).exits(1).json(), first);
    desk.script("slow", "cat >/dev/null; exit 0");
    let said = desk.call_with(call, &words).exits(0).json();
    assert_eq!(said["healthy"], 4);
    desk.call("triage in --resume --target crtplot").exits(2);
}

/// Hangs in one loop in every first run, and in another one in every second; the file whose path is
/// its first argument has the number of its runs.
const MOVING: &str = r#"
#include <fcntl.h>
#include <unistd.h>
static volatile int count;
__attribute__((noinline)) static void first(void) { for (;;) count++; }
__attribute__((noinline)) static void second(void) { for (;;) count--; }
int main(int argc, char **argv) {
    int runs = open(argv[1], O_RDWR | O_APPEND);
    long before = lseek(runs, 0, SEEK_END);
    if (argc < 2 || write(runs, "x", 1) != 1) return 0;
    before % 2 ? first() : second();
    return 0;
}
"#;

#[test]
fn a_file_that_hangs_at_another_place_in_each_run_is_in_one_group() {
    let desk = Desk::new();
    let source = desk.write("moving.c", MOVING);
    desk.compile(source.to_str().unwrap(), "moving");
    std::fs::create_dir(desk.file("in")).unwrap();
    desk.write("in/file", "input");
    let runs = desk.write("tmp/moving", "");
    std::fs::set_permissions(&runs, std::fs::Permissions::from_mode(0o666)).unwrap();
    let call = "triage in -o out --json --resume --jobs 1 --exec command --timeout 50ms";
    let call = || {
        let words = ["--".as_ref(), "./moving".as_ref(), runs.as_os_str()];
        desk.call_with(call, &words).exits(1).json()
    };
    let result = call();
    let groups = result["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{result}");
    let (group, input) = (&groups[0], &result["inputs"][0]);
    assert_eq!(
        (&group["kind"], &group["count"]),
        (&"hang".into(), &1.into())
    );
    assert_eq!(group["message"], "hangs at another place in each run");
    assert_eq!(input["major"], group["major"]);
    assert_eq!(input["hits"], input["tries"]);
    // So it is when it is examined again: an earlier call has seen one of its places.
    let journal = std::fs::read_to_string(desk.file("out/triage.jsonl")).unwrap();
    let line: Value = serde_json::from_str(journal.lines().last().unwrap()).unwrap();
    let mut seen = line.clone();
    for key in ["major", "minor"] {
        seen["crash"][key] = "0123456789abcdef0123456789abcdef".into();
    }
    (seen["examined"], seen["crash"]["kind"]) = (false.into(), "hang".into());
    std::fs::write(desk.file("out/triage.jsonl"), format!("{seen}\n")).unwrap();
    let again = call();
    assert_eq!(again["groups"][0]["major"], group["major"]);
    assert_eq!(again["groups"].as_array().unwrap().len(), 1, "{again}");
}
