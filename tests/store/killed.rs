//! A writer that is killed, for real, at any moment.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ddfuzz::store::{EntryId, Kind, Store};

use crate::mounts;
use crate::sample::{by_run, campaign, crash, outcome};

/// Says to the child which directory to write to.
const ROOT: &str = "DDFUZZ_TEST_KILLED_WRITER";

fn keys(run: u64) -> (String, String) {
    (format!("major {}", run % 5), format!("minor {}", run % 15))
}

fn input(run: u64) -> Vec<u8> {
    format!("input {run} ")
        .repeat(1 + run as usize % 7 * 100)
        .into_bytes()
}

fn minimized(run: u64) -> Vec<u8> {
    input(run)[..5].to_vec()
}

/// The writer: goes on from its checkpoint, and says of each run when it was stored.
#[test]
fn the_writer_that_is_killed() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else {
        // Only the test below starts it.
        return;
    };
    let mut store = Store::create_or_resume(&root, campaign("c1")).unwrap();
    let first: u64 = store.reader().load_state().unwrap().unwrap_or(0);
    for run in first.. {
        let (major, minor) = keys(run);
        let crash = by_run(crash(&major, &minor), run);
        let filed = store.file(Kind::Crash, &crash, &input(run)).unwrap();
        store.write_minimized(&filed.id, &minimized(run)).unwrap();
        store.write_outcome(&filed.id, &outcome(5, true)).unwrap();
        store
            .set_seen(Kind::Crash, crash.keys.major, "c1", run / 5 + 1)
            .unwrap();
        store.add_to_corpus(&input(run)).unwrap();
        store.append_stats(&run).unwrap();
        store.save_state(&(run + 1)).unwrap();
        // On a line of its own, for the test harness has begun one.
        println!("\nstored {run}");
        std::io::stdout().flush().unwrap();
    }
}

/// Starts the writer, kills it `delay` after it has stored `rounds` runs, and gives the last run
/// that it said was stored.
fn kill_a_writer(root: &Path, rounds: usize, delay: Duration) -> Option<u64> {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::the_writer_that_is_killed",
            "--nocapture",
        ])
        .env(ROOT, root)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let stored = |line: std::io::Result<String>| line.ok()?.strip_prefix("stored ")?.parse().ok();
    let mut last: Option<u64> = lines.by_ref().filter_map(stored).take(rounds).last();
    let start = Instant::now();
    while start.elapsed() < delay {
        std::hint::spin_loop();
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    last = lines.filter_map(stored).last().or(last);
    last
}

/// The next number of a xorshift generator.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn nothing_stored_is_lost_however_often_the_writer_is_killed() {
    let root = mounts::fast_tempdir();
    let mut random = 0x9e37_79b9_7f4a_7c15;
    let mut last = None;
    for _ in 0..12 {
        let rounds = 1 + next(&mut random) as usize % 3;
        let delay = Duration::from_micros(next(&mut random) % 8000);
        let stored = kill_a_writer(root.path(), rounds, delay);
        assert!(
            stored > last,
            "a resumed writer goes on: {stored:?} after {last:?}"
        );
        last = stored;
        let reader = Store::open_read(root.path()).unwrap();
        for run in 0..=last.unwrap() {
            let (major, minor) = keys(run);
            let crash = by_run(crash(&major, &minor), run);
            let id = EntryId::of(Kind::Crash, &crash.keys, &input(run));
            let entry = reader.entry(&id).unwrap().expect("it was stored");
            assert_eq!(entry.crash, crash);
            assert_eq!(entry.original_bytes().unwrap(), input(run));
            assert_eq!(entry.reproducer_bytes().unwrap(), minimized(run));
            assert_eq!(entry.minimized, Some(outcome(5, true)));
        }
        let next_run: u64 = reader.load_state().unwrap().unwrap();
        assert!(next_run > last.unwrap());
    }
    check_after_resuming(root.path(), last.unwrap());
}

/// After the next writer has opened it, the directory is as if nobody had been killed.
fn check_after_resuming(root: &Path, last: u64) {
    let mut store = Store::create_or_resume(root, campaign("c1")).unwrap();
    let temporary = |path: &PathBuf| path.to_string_lossy().contains("ddfuzz-tmp");
    assert_eq!(
        crate::tree::tree(root)
            .into_keys()
            .filter(temporary)
            .count(),
        0
    );
    let groups = store.reader().groups(Kind::Crash).unwrap();
    assert_eq!(groups.len(), 5.min(last as usize + 1));
    for group in groups {
        let text = std::fs::read(group.folder.join("group.json")).unwrap();
        let written: ddfuzz::store::GroupRecord = serde_json::from_slice(&text).unwrap();
        assert_eq!(written, group.record);
    }
    let (major, minor) = keys(last);
    let again = store.file(
        Kind::Crash,
        &by_run(crash(&major, &minor), last),
        &input(last),
    );
    assert!(again.unwrap().already);
    store.append_stats(&"end").unwrap();
    let stats = std::fs::read_to_string(root.join("stats.jsonl")).unwrap();
    assert!(stats.ends_with("\n\"end\"\n"));
    assert!(
        stats
            .lines()
            .all(|line| line == "\"end\"" || line.parse::<u64>().is_ok())
    );
}
