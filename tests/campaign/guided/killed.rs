//! Guided campaigns are killed by SIGKILL at any moment, as a whole and process by process.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::processes::{Running, assert_no_segment, children, family, kill, segments};
use super::targets::{Built, assert_whole, corpus, ended, gates, minimal};
use crate::ddfuzz::{Desk, Moments};
use crate::outcome::{files, record};

/// Kills of each of the four tests below.
const KILLS: u32 = 10;
/// Kills of one campaign at most, which then is left to come to its end.
const IN_A_ROW: u32 = 5;

/// What must never be lost: inputs that crashed, the corpus, and what was minimized.
#[derive(Default)]
struct Stored {
    kept: BTreeSet<PathBuf>,
    ended: std::collections::BTreeMap<PathBuf, Vec<u8>>,
}

impl Stored {
    /// All that is stored, which is whole.
    fn at(out: &Path) -> Stored {
        assert_whole(out);
        let all = files(out);
        for log in all.iter().filter(|path| path.ends_with("log.jsonl")) {
            let text = std::fs::read_to_string(log).unwrap();
            // A line that was being written may be cut off; it is dropped when going on.
            for line in text
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'))
            {
                let read: Result<serde_json::Value, _> = serde_json::from_str(line);
                assert!(read.is_ok(), "{}: {line:?}", log.display());
            }
        }
        let is_kept = |path: &PathBuf| {
            let hidden = path.file_name().unwrap().to_string_lossy().starts_with('.');
            let in_corpus = path
                .parent()
                .is_some_and(|folder| folder.ends_with("corpus"));
            !hidden && (path.ends_with("original") || in_corpus)
        };
        Stored {
            kept: all.into_iter().filter(is_kept).collect(),
            ended: ended(out),
        }
    }

    #[track_caller]
    fn is_in(&self, later: &Stored) {
        let lost: Vec<_> = self.kept.difference(&later.kept).collect();
        assert!(lost.is_empty(), "{lost:?} are lost");
        for (log, bytes) in &self.ended {
            let same = later.ended.get(log) == Some(bytes);
            assert!(same, "{} was minimized again", log.display());
        }
    }
}

/// Kills one campaign after the other until there were enough kills.
fn kill_again_and_again(built: Built, words: &str, runs: u64, seed: u64) {
    let desk = Desk::new();
    if gates(&desk, "gates", built, &[]).is_none() {
        return;
    }
    let words = format!("run --json --seed 1 --max-len 64 --runs {runs} {words} --resume -o");
    let began = Instant::now();
    let calm = desk
        .call(&format!("{words} calm -- ./gates"))
        .exits(1)
        .json();
    assert_eq!(calm["runs"], runs);
    let longest = began.elapsed();
    let mut moments = Moments(seed);
    let (mut kills, mut round) = (0, 0);
    while kills < KILLS {
        round += 1;
        let out = format!("out{round}");
        let words = format!("{words} {out} -- ./gates");
        let mut before = Stored::default();
        for _ in 0..IN_A_ROW {
            let lived = kill_after(&desk, &words, moments.early(longest));
            kills += u32::from(lived);
            let now = Stored::at(&desk.file(&out));
            before.is_in(&now);
            before = now;
            if !lived {
                break;
            }
        }
        let state = record(&desk.file(&out).join("state.json"));
        let cut_off = !state["state"]["goal"].is_null() || state["state"].is_null();
        let result = desk.call(&words).json();
        assert!(!cut_off || result["runs"] == runs, "{result}");
        assert_eq!(
            result["resumed"],
            before.kept.len() + before.ended.len() > 0 || !state["state"].is_null()
        );
        minimal(&result);
        let now = Stored::at(&desk.file(&out));
        before.is_in(&now);
        for log in now.ended.keys() {
            desk.call(&format!("log replay {}", log.display())).exits(0);
        }
    }
    desk.is_left_clean();
}

/// Starts a campaign and kills it after `delay`; whether it had not ended before. Nothing of it
/// stays.
fn kill_after(desk: &Desk, words: &str, delay: Duration) -> bool {
    let before = segments();
    let mut running = Running::start(desk, "killed", words);
    let end = Instant::now() + delay;
    while Instant::now() < end && !running.has_ended() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let lives = !running.has_ended();
    let processes = family(running.id());
    running.signal(libc::SIGKILL);
    running.ends(desk);
    desk.is_left_clean();
    assert_no_segment(&before, &processes);
    lives
}

#[test]
fn a_campaign_of_one_worker_loses_nothing_by_kills() {
    kill_again_and_again(Built::Harness, "--jobs 1", 3_000, 0x5eed);
}

#[test]
fn a_campaign_of_two_workers_loses_nothing_by_kills() {
    kill_again_and_again(Built::Harness, "--jobs 2", 4_000, 0xfeed);
}

#[test]
fn a_campaign_with_a_minimizing_worker_loses_nothing_by_kills() {
    kill_again_and_again(Built::Harness, "--jobs 1 --minimize worker", 3_000, 0xbead);
}

#[test]
fn a_campaign_by_a_fork_server_loses_nothing_by_kills() {
    kill_again_and_again(Built::Afl, "--jobs 2", 1_000, 0xdead);
}

/// A campaign on the desk that fuzzes with two workers, and one who minimizes if wanted.
fn running(desk: &Desk, built: Built, words: &str) -> Option<Running> {
    gates(desk, "gates", built, &["-DFEW"])?;
    let words =
        format!("run --json --plain --seed 1 --max-len 64 --jobs 2 {words} -o out -- ./gates");
    let mut running = Running::start(desk, "call", &words);
    running.until(desk, "a corpus", |desk, running| {
        !corpus(&desk.file("out")).is_empty() && running.workers().len() >= 2
    });
    Some(running)
}

#[test]
fn a_killed_worker_is_started_again_and_that_is_said() {
    let desk = Desk::new();
    let Some(mut running) = running(&desk, Built::Harness, "") else {
        return;
    };
    let worker = running.workers()[0];
    let others: BTreeSet<u32> = running.workers().into_iter().collect();
    kill(worker, libc::SIGKILL);
    running.until(&desk, "another worker", |_, running| {
        let now = running.workers();
        now.len() == 2 && now.iter().any(|worker| !others.contains(worker))
    });
    running.says(&desk, "is restarted");
    running.signal(libc::SIGINT);
    assert_eq!(running.ends(&desk), Some(130));
    desk.is_left_clean();
}

#[test]
fn a_campaign_goes_on_with_the_workers_that_are_left_and_ends_with_the_last() {
    let desk = Desk::new();
    let Some(mut running) = running(&desk, Built::Harness, "") else {
        return;
    };
    kill(running.aboves()[0], libc::SIGKILL);
    running.until(&desk, "one worker", |_, running| {
        running.workers().len() == 1
    });
    running.says(&desk, "1 worker is left");
    kill(running.aboves()[0], libc::SIGKILL);
    assert_eq!(running.ends(&desk), Some(3));
    let error = running.result(&desk)["error"]["message"].to_string();
    assert!(error.contains("all of them have died"), "{error}");
    desk.is_left_clean();
    let words = "run --json --runs 300 --jobs 1 --resume -o out -- ./gates";
    assert_eq!(desk.call(words).json()["runs"], 300);
}

#[test]
fn a_group_whose_minimizing_worker_is_killed_is_minimized_all_the_same() {
    let desk = Desk::new();
    let Some(mut running) = running(&desk, Built::Harness, "--minimize worker --runs 200000")
    else {
        return;
    };
    running.until(&desk, "three workers", |_, running| {
        running.workers().len() == 3
    });
    // Whichever it is: each is started again.
    for worker in running.workers() {
        kill(worker, libc::SIGKILL);
    }
    assert_eq!(running.ends(&desk), Some(1));
    assert_eq!(minimal(&running.result(&desk)), [b"<"]);
    desk.is_left_clean();
}

#[test]
fn a_killed_server_of_the_target_is_started_again_and_is_no_crash() {
    for (built, runs) in [(Built::Harness, 60_000), (Built::Afl, 12_000)] {
        let desk = Desk::new();
        let Some(mut running) = running(&desk, built, &format!("--runs {runs}")) else {
            return;
        };
        for worker in running.workers() {
            for server in children(worker) {
                for inner in family(server) {
                    kill(inner, libc::SIGKILL);
                }
            }
        }
        assert_eq!(
            running.ends(&desk),
            Some(1),
            "{built:?}: {}",
            running.said(&desk)
        );
        let result = running.result(&desk);
        assert_eq!(minimal(&result), [b"<"], "{built:?}: {result}");
        desk.is_left_clean();
    }
}
