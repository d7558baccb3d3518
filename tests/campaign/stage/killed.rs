//! A fuzzer with the stage is killed by SIGKILL: nothing is lost, nothing done twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::examples::{example, fuzzer, instrumented};
use super::state::crashes;
use crate::ddfuzz::Desk;

/// The logs of minimizations that have ended, with their bytes.
fn ended(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = crashes(out);
    let ended = entries.iter().filter(|entry| entry.minimized.is_some());
    ended
        .map(|entry| (entry.log(), std::fs::read(entry.log()).unwrap()))
        .collect()
}

#[test]
fn what_was_minimized_before_a_kill_is_not_minimized_again() {
    let desk = Desk::new();
    let Some(shrinking) = example("shrinking_fuzzer") else {
        return;
    };
    if !instrumented(&desk) {
        return;
    }
    let out = desk.file("ddfuzz-out");
    let mut before: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    let mut kills = 0;
    for round in 0.. {
        assert!(round < 100, "{kills} kills, {} ended", before.len());
        let solutions = format!("solutions{round}");
        let mut child = fuzzer(&desk, &shrinking, &solutions, 12_000)
            .spawn()
            .unwrap();
        let moment =
            Instant::now() + Duration::from_millis(150 + 190 * (round * 7 % 11) + 100 * round);
        let mut over = false;
        while Instant::now() < moment && !over {
            over = child.try_wait().unwrap().is_some();
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += u32::from(!over);
        desk.is_left_clean();
        if !out.join("ddfuzz.json").is_file() {
            continue;
        }
        let now = ended(&out);
        for (log, bytes) in &before {
            assert_eq!(now.get(log), Some(bytes), "{}", log.display());
        }
        for entry in crashes(&out) {
            let text = std::fs::read_to_string(entry.log()).unwrap_or_default();
            let starts = text.matches(r#""kind":"start""#).count();
            assert!(starts <= 1, "{}: {starts}", entry.log().display());
        }
        before = now;
        // Three groups, and variants of them.
        if before.len() >= 3 && kills >= 8 {
            break;
        }
    }
    for log in before.keys() {
        desk.call(&format!("log replay {}", log.display())).exits(0);
    }
}
