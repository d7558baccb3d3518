//! Log files.

use std::path::{Path, PathBuf};

use ddfuzz::minimize::log::{Log, LogError, StartLine};
use ddfuzz::minimize::{Journal, Options, minimize};

use crate::failures::{subsequence, without_times};
use crate::memory::Memory;
use crate::scripted::{outcomes, run, start};

const INPUT: &[u8] = b"a file with <something> in it";

fn log_in(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("log.jsonl")
}

fn finish(path: &Path) -> Vec<u8> {
    let mut journal = Journal::resume(path, start(INPUT)).expect("the same log");
    let mut oracle = outcomes(subsequence(b"<>"));
    minimize(INPUT, &mut oracle, &mut journal, &mut Options::default()).expect("a result");
    std::fs::read(path).expect("a log")
}

#[test]
fn a_missing_file_is_begun_and_a_torn_one_gone_on_with() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = log_in(&dir);
    let whole = finish(&path);
    for cut in [0, 1, 40, whole.len() / 2, whole.len() - 1, whole.len()] {
        std::fs::write(&path, &whole[..cut]).expect("written");
        assert_eq!(
            without_times(&finish(&path)),
            without_times(&whole),
            "cut at {cut}"
        );
    }
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = log_in(&dir);
    std::fs::write(&path, "mine").expect("written");
    let error = Journal::create(&path, start(INPUT))
        .err()
        .expect("an error");
    assert!(error.to_string().contains("log.jsonl"), "{error}");
    assert_eq!(std::fs::read(&path).expect("still there"), b"mine");
}

#[test]
fn a_log_of_another_minimization_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = log_in(&dir);
    let whole = finish(&path);
    std::fs::write(&path, &whole[..whole.len() - 3]).expect("torn");
    let other_search = StartLine {
        search: "dd".to_owned(),
        ..start(INPUT)
    };
    let mut other_target = start(INPUT);
    other_target.target.args.push("-x".into());
    let others = [
        (start(b"other"), "input"),
        (other_search, "search"),
        (other_target, "target"),
    ];
    for (start, differs) in others {
        match Journal::resume(&path, start) {
            Err(LogError::Mismatch { what }) => assert_eq!(what, differs),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("another {differs} was accepted"),
        }
    }
    assert_eq!(
        std::fs::read(&path).expect("still there"),
        whole[..whole.len() - 3]
    );
}

#[test]
fn another_way_of_execution_is_the_same_minimization_and_other_limits_are_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = log_in(&dir);
    finish(&path);
    let mut other = start(INPUT);
    other.target.way = ddfuzz::exec::Way::Command;
    assert!(Journal::resume(&path, other.clone()).is_ok());
    other.limits.memory += 1;
    assert!(Journal::resume(&path, other.clone()).is_err());
    let begun = Journal::resume_or_begin(&path, other.clone()).expect("begun");
    assert_eq!(begun.start().limits, other.limits);
}

#[test]
fn each_line_is_one_write_and_reductions_and_the_end_are_synced() {
    let memory = Memory::new(&[]);
    let mut journal = Journal::begin(start(INPUT), memory.writer()).expect("begun");
    let mut oracle = outcomes(subsequence(b"<>"));
    minimize(INPUT, &mut oracle, &mut journal, &mut Options::default()).expect("a result");
    let (writes, syncs) = memory.lengths();
    let log = memory.bytes();
    let mut end = 0;
    let mut to_sync = Vec::new();
    let ends: Vec<usize> = log
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| {
            end += line.len();
            let text = String::from_utf8_lossy(line);
            if text.contains("\"kind\":\"reduce\"") || text.contains("\"kind\":\"end\"") {
                to_sync.push(end);
            }
            end
        })
        .collect();
    assert_eq!(writes, ends);
    assert_eq!(syncs, to_sync);
}

#[test]
fn a_mangled_whole_line_is_named() {
    let (_, mut log) = run(INPUT, &mut outcomes(subsequence(b"<>")));
    let second = log.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    log[second] = b'!';
    match Log::parse(&log) {
        Err(LogError::Malformed { line, .. }) => assert_eq!(line, 2),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_of_another_version_is_refused_by_its_version() {
    match Log::parse(b"{\"v\":7,\"kind\":\"beginning\"}\n") {
        Err(LogError::Version { found }) => assert_eq!(found, 7),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_without_a_start_line_is_refused() {
    let line = b"{\"kind\":\"reduce\",\"i\":1,\"rule\":\"subset\",\"size\":3}\n";
    assert!(matches!(
        Log::parse(line),
        Err(LogError::Malformed { line: 1, .. })
    ));
}
