//! The user stops a guided campaign.

use std::path::PathBuf;
use std::time::Duration;

use super::processes::Running;
use super::targets::{Built, assert_whole, gates, minimal, program};
use crate::ddfuzz::Desk;
use crate::outcome::{files, record};

/// Each run on a text with an `x` takes a while, and twenty of these are a crash: its
/// minimization takes much longer than a test should.
const SLOW: &str = "#include <stdint.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
    __attribute__((noinline)) static void worn(void) { abort(); }\n\
    int LLVMFuzzerTestOneInput(const uint8_t *text, size_t length) {\n\
    int count = 0;\n\
    for (size_t at = 0; at < length; at++) count += text[at] == 'x';\n\
    if (count) usleep(30000);\n\
    if (count >= 20) worn();\n\
    return 0; }\n";

fn runs(desk: &Desk, out: &str) -> u64 {
    let state = &record(&desk.file(out).join("state.json"))["state"];
    state["next"].as_u64().unwrap_or_default()
}

#[test]
fn a_stopped_campaign_saves_its_state_and_goes_on_with_its_count() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let desk = Desk::new();
        // The state is saved every two seconds: the runs must take longer on any machine.
        if gates(&desk, "gates", Built::Harness, &["-DSLOW=500"]).is_none() {
            return;
        }
        let words = "run --json --seed 1 --max-len 64 --jobs 2 --runs 10000 -o out";
        let mut running = Running::start(&desk, "call", &format!("{words} -- ./gates"));
        running.until(&desk, "some runs", |desk, _| {
            runs(desk, "out") > 500 && desk.file("out/crashes").exists()
        });
        running.signal_group(signal);
        assert_eq!(running.ends(&desk), Some(130));
        desk.is_left_clean();
        let result = running.result(&desk);
        assert_eq!(result["ended_by"], "interrupted");
        let made = result["runs"].as_u64().unwrap();
        assert_eq!(runs(&desk, "out"), made, "{result}");
        assert_whole(&desk.file("out"));
        let resumed = desk
            .call(&format!("{words} --resume -- ./gates"))
            .exits(1)
            .json();
        assert_eq!(
            (&resumed["runs"], &resumed["resumed"]),
            (&10_000.into(), &true.into())
        );
        assert!(!minimal(&resumed).is_empty(), "{resumed}");
        let seen = |result: &serde_json::Value| -> u64 {
            let groups = result["groups"].as_array().unwrap().iter();
            groups.filter_map(|group| group["runs_seen"].as_u64()).sum()
        };
        assert!(seen(&resumed) >= seen(&result), "{result}\n{resumed}");
        desk.is_left_clean();
    }
}

/// A campaign that minimizes what takes long.
fn minimizing(desk: &Desk, when: &str) -> Option<Running> {
    program(desk, "slow", Built::Harness, SLOW, &[])?;
    std::fs::create_dir(desk.file("seeds")).unwrap();
    desk.write("seeds/worn", "xyz".repeat(100));
    let words = format!(
        "run --json --plain --seed 1 --max-len 300 --seeds seeds --minimize {when} --jobs 1 \
         --search ddmin -o out -- ./slow"
    );
    let mut running = Running::start(desk, "call", &words);
    running.until(desk, "a minimization", |desk, _| !logs(desk).is_empty());
    Some(running)
}

fn logs(desk: &Desk) -> Vec<PathBuf> {
    let all = files(&desk.file("out")).into_iter();
    all.filter(|path| path.ends_with("log.jsonl")).collect()
}

#[test]
fn a_minimization_under_way_does_not_keep_the_user_waiting_and_is_gone_on_with() {
    for when in ["inline", "worker"] {
        let desk = Desk::new();
        let Some(mut running) = minimizing(&desk, when) else {
            return;
        };
        running.signal_group(libc::SIGINT);
        let status = running.ends_within(&desk, Duration::from_secs(15));
        assert_eq!(status.code(), Some(130), "{when}: {}", running.said(&desk));
        desk.is_left_clean();
        let result = running.result(&desk);
        let claim = &result["groups"][0]["claim"];
        assert!(claim.is_null(), "{when}: {result}");
        // What was tested is not tested again: the log is gone on with.
        let before = std::fs::read(&logs(&desk)[0]).unwrap();
        let words = "run --json --seed 1 --seeds seeds --max-len 300 --runs 20 --resume --jobs 1 \
                     --search ddmin -o out -- ./slow";
        let resumed = desk.call(words).json();
        assert_eq!(resumed["groups"][0]["size_after"], 20, "{when}: {resumed}");
        let after = std::fs::read(&logs(&desk)[0]).unwrap();
        assert!(after.starts_with(&before), "{when}");
        let log = logs(&desk)[0].display().to_string();
        desk.call(&format!("log replay {log}")).exits(0);
    }
}

#[test]
fn the_second_signal_ends_it_at_once_and_leaves_nothing_running() {
    let desk = Desk::new();
    let Some(mut running) = minimizing(&desk, "inline") else {
        return;
    };
    running.signal_group(libc::SIGINT);
    std::thread::sleep(Duration::from_millis(5));
    running.signal_group(libc::SIGINT);
    let status = running.ends_within(&desk, Duration::from_secs(20));
    assert_eq!(status.code(), Some(130));
    desk.is_left_clean();
    assert_whole(&desk.file("out"));
}

#[test]
fn a_hangup_of_the_terminal_leaves_nothing_running_and_nothing_torn() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &[]).is_none() {
        return;
    }
    let words = "run --json --seed 1 --max-len 64 --jobs 2 -o out -- ./gates";
    let mut running = Running::start(&desk, "call", words);
    running.until(&desk, "some runs", |desk, _| runs(desk, "out") > 500);
    running.signal_group(libc::SIGHUP);
    running.ends(&desk);
    desk.is_left_clean();
    assert_whole(&desk.file("out"));
    let words = "run --json --seed 1 --runs 500 --resume -o out -- ./gates";
    assert_eq!(desk.call(words).json()["resumed"], true);
}
