//! Snapshots: what the screen looks like. `UPDATE_SHOTS=1 cargo test --test cli shots` writes them
//! anew.

use std::path::Path;

use ddfuzz::cli::ui::campaign::{Key, ScreenModel};
use ddfuzz::report::GroupView;
use ddfuzz::triage::{Crash, Frame};

use super::sample::{busy, course, minimized, progress, shown, view};

/// The screen looks as it does in the file.
#[track_caller]
fn looks_like(course: &ScreenModel, width: u16, height: u16, name: &str) {
    let shots = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/screen/shots");
    let file = shots.join(format!("{name}-{width}x{height}.txt"));
    let now = shown(course, width, height);
    if std::env::var_os("UPDATE_SHOTS").is_some() {
        std::fs::write(&file, &now).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(now == kept, "{} is not\n{now}", file.display());
}

#[test]
fn the_overview_fits_60_80_and_120_columns() {
    let course = busy(true);
    looks_like(&course, 60, 20, "overview");
    looks_like(&course, 80, 24, "overview");
    looks_like(&course, 120, 50, "overview");
}

#[test]
fn a_target_without_coverage_has_no_section_of_it() {
    let course = busy(false);
    looks_like(&course, 80, 24, "bare");
    let text = shown(&course, 120, 50);
    for word in ["coverage", "edges", "corpus", "stability"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[test]
fn what_is_unknown_is_a_dash() {
    let mut course = course();
    assert!(shown(&course, 80, 24).contains("starting the target"));
    let mut begins = progress(0, true);
    begins.edges_of = None;
    begins.stability = None;
    course.progress(&begins);
    let text = shown(&course, 80, 24);
    assert!(text.contains("-/s now, 0.0/s mean"), "{text}");
    assert!(text.contains("0 inputs, stability -"), "{text}");
    assert!(text.contains("none yet"), "{text}");
}

#[test]
fn a_group_shrinks_before_the_eyes() {
    let mut course = course();
    course.progress(&progress(1, false));
    course.group(&view("segv", 40_000));
    let before = shown(&course, 80, 24);
    assert!(before.contains("39.1 KiB  ████████"), "{before}");
    course.group(&view("segv", 40));
    let after = shown(&course, 80, 24);
    assert!(after.contains("39.1 KiB → 40 bytes  ██▊"), "{after}");
    assert!(after.contains("minimizing"), "{after}");
    assert_eq!(course.groups().len(), 1);
    // One that is told again as it is does not shrink.
    let mut still = super::sample::course();
    still.group(&view("segv", 40));
    still.group(&view("segv", 40));
    assert!(!shown(&still, 80, 24).contains("minimizing"));
}

#[test]
fn a_group_is_shown_by_its_smallest_result() {
    let mut course = course();
    course.group(&view("segv", 40_000));
    course.minimized(&minimized("segv", 84));
    let of = |view: GroupView, entry: &str| GroupView {
        file: view
            .file
            .parent()
            .unwrap()
            .with_file_name(entry)
            .join("minimized"),
        ..view
    };
    // One that is only stored, and one that ends larger, do not take its place.
    course.group(&of(view("segv", 20), "123456789abcdef0"));
    assert_eq!(course.groups()[0].size, 84);
    course.minimized(&of(minimized("segv", 90), "23456789abcdef01"));
    assert_eq!(course.groups()[0].size, 84);
    course.minimized(&of(minimized("segv", 12), "123456789abcdef0"));
    assert_eq!(course.groups()[0].size, 12);
    assert_eq!(course.groups().len(), 1);
}

/// The page of the second group, with what its files say.
fn page() -> ScreenModel {
    let mut course = busy(true);
    course.press(Key::Down);
    course.press(Key::Enter);
    let detail = course.detail();
    detail.crash(&crash(), None);
    let bytes: Vec<u8> = (0..317_u32).map(|at| (at % 251) as u8).collect();
    detail.reproducer(&bytes, 70_000);
    for line in LOG.lines() {
        detail.log().line(format!("{line}\n").as_bytes());
    }
    course
}

/// The start of a log.
const LOG: &str = include_str!("log.jsonl");

/// A crash of two functions of the user's, and one of the runtime.
fn crash() -> Crash {
    let record = include_str!("crash.json");
    let mut crash: Crash = serde_json::from_str(record).unwrap();
    crash.frames = vec![
        frame("copy_word", Some("words.c:12"), true),
        frame("main", None, true),
        Frame {
            module: "libc.so.6".to_owned(),
            offset: 0x27249,
            ..Frame::default()
        },
    ];
    crash.details.message = Some("p: words.c:12: copy_word: Assertion `n < 8' failed.".to_owned());
    crash
}

fn frame(name: &str, line: Option<&str>, own: bool) -> Frame {
    Frame {
        module: "exe".to_owned(),
        offset: 0x1189,
        name: Some(name.to_owned()),
        line: line.map(str::to_owned),
        own,
        ..Frame::default()
    }
}

#[test]
fn the_page_of_a_group_shows_stack_input_curve_and_log() {
    let mut course = page();
    for name in ["stack", "input", "curve", "log"] {
        looks_like(&course, 80, 24, name);
        looks_like(&course, 60, 20, name);
        course.press(Key::Next);
    }
    looks_like(&course, 120, 50, "stack");
}

#[test]
fn no_size_of_a_terminal_is_too_small_or_too_large() {
    let pages = [page(), busy(true), busy(false), course()];
    for mut course in pages {
        for _ in 0..4 {
            for width in (0..24).chain([40, 59, 60, 77, 78, 100, 300]) {
                for height in (0..16).chain([20, 35, 36, 90]) {
                    shown(&course, width, height);
                }
            }
            course.press(Key::Next);
        }
    }
}
