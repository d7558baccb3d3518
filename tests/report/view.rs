//! From an output directory to what is shown.

use ddfuzz::report::{GroupView, place};
use ddfuzz::store::{Campaign, Kind, Store};
use ddfuzz::triage::{Crash, PanicRecord};
use serde_json::json;

use crate::sample::{crash, frame};

fn loaded(crash: &Crash) -> GroupView {
    let root = tempfile::tempdir().unwrap();
    let campaign = Campaign {
        id: "c1".to_owned(),
        command_line: Vec::new(),
        settings: None,
        builds: Vec::new(),
        target: None,
        limits: None,
        ways: Vec::new(),
        seed: None,
        started: String::new(),
        host: String::new(),
    };
    let mut store = Store::create_or_resume(root.path(), campaign).unwrap();
    let filed = store.file(Kind::Crash, crash, b"original").unwrap();
    store
        .set_seen(Kind::Crash, crash.keys.major, "c1", 3)
        .unwrap();
    store.write_minimized(&filed.id, b"or").unwrap();
    let group = store.reader().groups(Kind::Crash).unwrap().remove(0);
    let entry = store.reader().entry(&filed.id).unwrap().unwrap();
    GroupView::load(&group, &entry).unwrap()
}

#[test]
fn a_stored_group_is_shown_with_its_sizes_and_files() {
    let view = loaded(&crash(json!([frame(true, Some("f"), None)])));
    assert_eq!(
        (view.size_before, view.size_after(), view.runs_seen),
        (8, 2, 3)
    );
    assert!(view.file.is_absolute() && view.file.ends_with("minimized"));
    assert_eq!((view.log, view.script), (None, None));
    assert_eq!(view.reproducer, b"or");
}

#[test]
fn the_place_is_the_innermost_frame_of_the_users_code() {
    for (frames, place) in [
        (json!([]), None),
        (json!([frame(false, Some("strlen"), None)]), None),
        (
            json!([
                frame(false, Some("strlen"), None),
                frame(true, Some("f"), Some("a.c:1"))
            ]),
            Some("f at a.c:1"),
        ),
        (
            json!([frame(true, Some("f"), None), frame(true, Some("g"), None)]),
            Some("f"),
        ),
        (json!([frame(true, None, None)]), Some("exe+0xff")),
    ] {
        assert_eq!(loaded(&crash(frames)).place.as_deref(), place);
    }
}

#[test]
fn a_panic_is_shown_by_its_place_with_and_without_a_stack() {
    for frames in [
        json!([]),
        json!([frame(true, Some("hook"), Some("hook.rs:1"))]),
    ] {
        let mut crash = crash(frames);
        crash.details.panic = Some(panic("src/list.rs:4:9", "no item 3"));
        assert_eq!(place(&crash).as_deref(), Some("src/list.rs:4:9"));
    }
}

#[test]
fn the_function_that_panicked_stands_behind_rusts_handler() {
    let mut index = frame(true, Some("list::item"), Some("core/slice.rs:9"));
    index["inlined"] = json!(["index<i32>"]);
    let mut crash = crash(json!([
        frame(true, Some("hook"), Some("hook.rs:1")),
        frame(false, Some("__rustc::rust_begin_unwind"), None),
        index,
    ]));
    crash.details.panic = Some(panic("src/list.rs:4:9", "no item 3"));
    let shown = |crash: &Crash| place(crash).unwrap();
    assert_eq!(shown(&crash), "list::item at src/list.rs:4:9");
    crash.frames[2].line = Some("src/list.rs:4".to_owned());
    assert_eq!(shown(&crash), "index<i32> at src/list.rs:4:9");
}

#[test]
fn a_panic_moves_with_its_message_and_file_only() {
    let before = panic("src/list.rs:4:9", "no item 3");
    assert!(before.may_have_moved_to(&panic("src/list.rs:40:13", "no item 5")));
    assert!(!before.may_have_moved_to(&panic("src/tree.rs:4:9", "no item 3")));
    assert!(!before.may_have_moved_to(&panic("src/list.rs:4:9", "no more")));
}

fn panic(place: &str, message: &str) -> PanicRecord {
    PanicRecord {
        location: Some(place.to_owned()),
        message: message.to_owned(),
        place: place.to_owned(),
    }
}
