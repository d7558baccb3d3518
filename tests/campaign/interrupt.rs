//! Ctrl-C saves the state; `--resume` goes on to the same result.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use crate::crashes;
use crate::ddfuzz::Desk;
use crate::outcome::{assert_same, log, outcome, record};

/// Sends a signal to ddfuzz and everything in its process group, as a terminal does.
fn signal_group(child: &Child, signal: libc::c_int) {
    // SAFETY: a plain system call; the child is not reaped, so that its id is its own.
    let answer = unsafe { libc::kill(-(child.id() as libc::pid_t), signal) };
    assert_eq!(answer, 0);
}

/// Waits until a file is there.
fn wait_for(path: &std::path::Path) {
    let began = Instant::now();
    while !path.exists() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{}",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn interrupt(desk: &Desk, words: &str, file: &str, signal: libc::c_int) -> ExitStatus {
    let mut child = desk.start(words);
    wait_for(&desk.file(file));
    std::thread::sleep(Duration::from_millis(60));
    signal_group(&child, signal);
    child.wait().unwrap()
}

#[test]
fn an_interrupted_campaign_exits_with_130_and_goes_on_to_the_same_result() {
    let desk = Desk::new();
    let words = "run --target units --runs 1500 --max-len 2000 --seed 31 --jobs 2 -o";
    desk.call(&format!("{words} calm")).exits(1);
    let calm = outcome(&desk.file("calm"));
    for (signal, out) in [(libc::SIGINT, "out-int"), (libc::SIGTERM, "out-term")] {
        let begun = format!("{out}/state.json");
        let status = interrupt(&desk, &format!("{words} {out}"), &begun, signal);
        assert_eq!(status.code(), Some(130));
        desk.is_left_clean();
        let resumed = desk.call(&format!("{words} {out} --resume --json"));
        let resumed = resumed.exits(1).json();
        assert_eq!(resumed["resumed"], true);
        assert_eq!(resumed["runs"], 1500);
        assert_same(&outcome(&desk.file(out)), &calm, "resumed");
    }
}

#[test]
fn a_campaign_without_an_end_is_ended_by_the_user() {
    let desk = Desk::new();
    let words = "run --target crtplot --max-len 1000 --seed 31 -o out";
    let status = interrupt(&desk, words, "out/crashes", libc::SIGINT);
    assert_eq!(status.code(), Some(130));
    assert!(record(&desk.file("out/state.json"))["state"]["next"].as_u64() > Some(0));
    let more = desk.call("run --target crtplot --max-len 1000 --runs 50 --resume -o out --json");
    assert_eq!(more.exits(1).json()["groups"][0]["claim"], "1-minimal");
    desk.is_left_clean();
}

#[test]
fn an_interrupted_minimization_exits_with_130_and_goes_on_to_the_same_result() {
    let desk = Desk::new();
    desk.write("crash", crashes::for_flex());
    // Seven thousand tests: it is not done before the signal comes.
    let words = "min crash --target flex --search ddmin -o";
    desk.call(&format!("{words} calm")).exits(0);
    let status = interrupt(
        &desk,
        &format!("{words} out"),
        "out.log.jsonl",
        libc::SIGINT,
    );
    assert_eq!(status.code(), Some(130));
    desk.is_left_clean();
    desk.call(&format!("{words} out --resume")).exits(0);
    assert_eq!(desk.read("out"), desk.read("calm"));
    let [out, calm] = ["out", "calm"].map(|name| log(&desk.file(&format!("{name}.log.jsonl"))));
    assert_eq!(out, calm);
}

#[test]
fn a_campaign_is_not_resumed_with_inputs_of_other_lengths() {
    let desk = Desk::new();
    let words = "run --target crtplot --seed 3 --jobs 1 -q -o out";
    desk.call(&format!("{words} --runs 20 --max-len 1000"))
        .exits(1);
    desk.call(&format!("{words} --runs 20 --max-len 2000 --resume"))
        .exits(2);
    desk.call(&format!("{words} --runs 20 --resume")).exits(4);
}
