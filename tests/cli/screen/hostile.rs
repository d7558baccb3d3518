//! Names and bytes that a target chose.

use ddfuzz::cli::ui::campaign::Key;
use ddfuzz::report::Trace;
use ddfuzz::report::text::printable;
use ddfuzz::triage::{Crash, Frame};

use super::sample::{course, progress, shown, view};

/// Turns the writing direction, clears the screen, sets a title.
const EVIL: &str = "a\u{1b}[2J\u{202e}b\u{9b}31m\u{7}\u{1b}]0;x\u{200b}";

#[test]
fn hostile_names_never_reach_the_terminal_raw() {
    let mut course = course();
    course.progress(&progress(1, false));
    let mut group = view(EVIL, 40);
    group.place = Some(EVIL.to_owned());
    group.trace = Trace::of_message(Some(EVIL.to_owned()));
    group.severity_reason = EVIL.to_owned();
    group.file = format!("/{EVIL}/minimized").into();
    course.group(&group);
    course.minimized(&group);
    course.note(EVIL);
    let mut seen = shown(&course, 120, 50);
    course.press(Key::Enter);
    let mut crash: Crash = serde_json::from_str(include_str!("crash.json")).unwrap();
    crash.details.message = Some(format!("one {EVIL}\ntwo {EVIL}"));
    crash.frames = vec![Frame {
        module: EVIL.to_owned(),
        name: Some(EVIL.to_owned()),
        line: Some(format!("{EVIL}.c:1")),
        own: true,
        ..Frame::default()
    }];
    course.detail().crash(&crash, None);
    course.detail().reproducer(EVIL.as_bytes(), 40);
    course.detail().log().line(b"\x1b[2J\xff\n");
    for _ in 0..4 {
        seen.push_str(&shown(&course, 120, 50));
        course.press(Key::Next);
    }
    for line in seen.lines() {
        assert_eq!(printable(line), line);
    }
    assert!(seen.contains("a\\u{1b}[2J"), "{seen}");
    assert!(seen.contains("message one a\\u{1b}[2J"), "{seen}");
}
