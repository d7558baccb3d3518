//! ddfuzz is killed by SIGKILL, for real, at any moment, again and again: nothing is lost or torn,
//! and in the end everything is as if nothing had happened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::crashes;
use crate::ddfuzz::{Desk, Moments};
use crate::outcome::{assert_same, files, log, outcome, record};

/// Kills of each of the tests below.
const KILLS: u32 = 50;

/// Starts ddfuzz and kills it after `delay`; gives whether it had ended by itself before.
fn kill_after(desk: &Desk, words: &str, delay: Duration, good: i32) -> bool {
    let mut child = desk.start(words);
    let end = Instant::now() + delay;
    while Instant::now() < end {
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(status.code(), Some(good), "{words}");
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    status.code() == Some(good)
}

/// The inputs that crashed, as filed; all records beside them are whole.
fn filed(root: &Path) -> BTreeSet<PathBuf> {
    let all = files(root);
    for path in all
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
    {
        record(path);
    }
    let originals = all.into_iter().filter(|path| path.ends_with("original"));
    originals
        .inspect(|path| {
            let hash = blake3::hash(&std::fs::read(path).unwrap()).to_hex();
            let folder = path.parent().unwrap().file_name().unwrap();
            assert_eq!(folder.to_str(), Some(&hash[..16]), "{}", path.display());
        })
        .collect()
}

/// Whether a campaign has made all its runs and minimized all it found: one that was killed in
/// its last words needs no resuming.
fn is_complete(root: &Path, runs: u64) -> bool {
    let state = &record(&root.join("state.json"))["state"];
    state["next"] == runs && state["goal"].is_null()
}

#[test]
fn a_campaign_killed_at_fifty_moments_ends_as_an_undisturbed_one() {
    let desk = Desk::new();
    let words = "run --target nroff --runs 600 --max-len 2000 --seed 21 --jobs 2 --resume -o";
    let began = Instant::now();
    desk.call(&format!("{words} calm")).exits(1);
    let longest = began.elapsed();
    let expected = outcome(&desk.file("calm"));

    let mut moments = Moments(0x5eed);
    let (mut kills, mut round) = (0, 0);
    while kills < KILLS {
        round += 1;
        let out = format!("out{round}");
        let mut before = BTreeSet::new();
        loop {
            let ended = kill_after(&desk, &format!("{words} {out}"), moments.early(longest), 1);
            let now = filed(&desk.file(&out));
            assert!(before.is_subset(&now), "a crash is lost");
            before = now;
            if ended || is_complete(&desk.file(&out), 600) {
                break;
            }
            kills += 1;
            if kills.is_multiple_of(10) {
                desk.call(&format!("{words} {out}")).exits(1);
                break;
            }
        }
        assert_same(
            &outcome(&desk.file(&out)),
            &expected,
            &format!("round {round}"),
        );
    }
    desk.is_left_clean();
}

#[test]
fn a_minimization_killed_at_fifty_moments_ends_as_an_undisturbed_one() {
    let desk = Desk::new();
    desk.write("crash", crashes::for_ul());
    let words = "min crash --resume --target ul -o";
    let began = Instant::now();
    desk.call(&format!("{words} calm")).exits(0);
    let longest = began.elapsed();
    let expected = (desk.read("calm"), log(&desk.file("calm.log.jsonl")));

    let mut moments = Moments(0xfeed);
    let (mut kills, mut round) = (0, 0);
    while kills < KILLS {
        round += 1;
        let out = format!("out{round}");
        let mut best = usize::MAX;
        loop {
            let ended = kill_after(&desk, &format!("{words} {out}"), moments.early(longest), 0);
            if let Ok(result) = std::fs::read(desk.file(&out)) {
                assert!(result.len() <= best, "a reduction is lost");
                best = result.len();
            }
            if ended {
                break;
            }
            kills += 1;
            if kills.is_multiple_of(10) {
                desk.call(&format!("{words} {out}")).exits(0);
                break;
            }
        }
        let log = log(&desk.file(&format!("{out}.log.jsonl")));
        assert_eq!((desk.read(&out), log), expected, "round {round}");
        assert_eq!(desk.read("crash"), crashes::for_ul());
    }
    desk.is_left_clean();
}
