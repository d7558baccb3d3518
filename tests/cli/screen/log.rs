//! A log that grows while it is looked at.

use std::fs::File;
use std::io::Write;

use ddfuzz::cli::ui::campaign::{Detail, Key, Log};
use ddfuzz::store::{EntryId, Kind, Reader};

use super::sample::{busy, shown};
use crate::ddfuzz::Desk;

const LOG: &str = include_str!("log.jsonl");

/// What a page shows of a log.
fn page(log: &Log) -> String {
    let mut course = busy(false);
    for key in [Key::Enter, Key::Next, Key::Next, Key::Next] {
        course.press(key);
    }
    *course.detail().log() = log.clone();
    shown(&course, 80, 24)
}

#[test]
fn a_log_read_in_pieces_is_the_same_as_read_at_once() {
    let desk = Desk::new();
    let path = desk.file("log.jsonl");
    let mut pieces = Log::default();
    pieces.read(&path).expect("it is not there yet");
    let mut file = File::create(&path).unwrap();
    for piece in LOG.as_bytes().chunks(37) {
        file.write_all(piece).unwrap();
        pieces.read(&path).unwrap();
    }
    let mut whole = Log::default();
    whole.read(&path).unwrap();
    assert_eq!(page(&pieces), page(&whole));
    assert!(page(&whole).contains("reduce to "), "{}", page(&whole));
}

#[test]
fn a_log_that_was_cut_is_read_from_the_beginning() {
    let desk = Desk::new();
    let path = desk.write("log.jsonl", LOG);
    let mut log = Log::default();
    log.read(&path).unwrap();
    let two: String = LOG.split_inclusive('\n').take(2).collect();
    desk.write("log.jsonl", &two);
    log.read(&path).unwrap();
    let mut fresh = Log::default();
    fresh.read(&path).unwrap();
    assert_eq!(page(&log), page(&fresh));
}

#[test]
fn the_files_of_a_group_are_read_from_the_output_directory() {
    let desk = Desk::new();
    let words = "run --json --target crtplot --runs 60 --max-len 500 --seed 1 -o out";
    let result = desk.call(words).exits(1).json();
    let group = &result["groups"][0];
    let file = group["file"].as_str().unwrap();
    let names: Vec<&str> = file.rsplit('/').skip(1).take(3).collect();
    let id = EntryId::from_names(Kind::Crash, names[2], names[1], names[0]).unwrap();
    let reader = Reader::open(&desk.file("out")).unwrap();
    let mut detail = Detail::default();
    detail.read(&reader, &id);
    let mut course = busy(false);
    course.press(Key::Enter);
    *course.detail() = detail;
    let text = shown(&course, 80, 24);
    assert!(text.contains("#0   ") && text.contains(".c:"), "{text}");
    course.press(Key::Next);
    let text = shown(&course, 80, 24);
    assert!(text.contains("00000000  "), "{text}");
    course.press(Key::Next);
    let text = shown(&course, 80, 24);
    assert!(text.contains("bytes over executed tests"), "{text}");
    course.press(Key::Next);
    let text = shown(&course, 80, 24);
    assert!(text.contains("end    1 byte: 1-minimal"), "{text}");
}
