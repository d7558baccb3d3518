//! From an output directory to what is shown.

use ddfuzz::minimize::Rate;
use ddfuzz::report::{GroupView, RunGroup, claim, place};
use ddfuzz::store::{Campaign, EntryId, Kind, Minimized, Store};
use ddfuzz::triage::{Crash, Key, PanicRecord};
use serde_json::json;
use tempfile::TempDir;

use crate::sample::{self, crash, frame};

fn loaded(crash: &Crash) -> GroupView {
    let (_root, mut store) = store();
    let filed = store.file(Kind::Crash, crash, b"original").unwrap();
    store
        .set_seen(Kind::Crash, crash.keys.major, "c1", 3)
        .unwrap();
    store.write_minimized(&filed.id, b"or").unwrap();
    shown(&store, &filed.id)
}

/// An empty output directory of a campaign.
fn store() -> (TempDir, Store) {
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
    let store = Store::create_or_resume(root.path(), campaign).unwrap();
    (root, store)
}

fn shown(store: &Store, id: &EntryId) -> GroupView {
    GroupView::of(store.reader(), id).unwrap().unwrap()
}

#[test]
fn nothing_is_claimed_of_a_crash_that_another_input_has_shown_to_be_flaky() {
    let (_root, mut store) = store();
    let crash = crash(json!([frame(true, Some("f"), None)]));
    let id = store.file(Kind::Crash, &crash, b"steady").unwrap().id;
    store.write_minimized(&id, b"st").unwrap();
    let minimized = sample::view().minimized.unwrap();
    let size_after = 2;
    let outcome = Minimized {
        size_after,
        ..minimized
    };
    store.write_outcome(&id, &outcome).unwrap();
    let before = shown(&store, &id);
    assert_eq!(before.status_text(), "1-minimal");

    let once = Crash { hits: 1, ..crash };
    store.file(Kind::Flaky, &once, b"flaky").unwrap();
    let after = shown(&store, &id);
    assert_eq!(after.status_text(), "best-so-far, flaky");
    assert_eq!(
        after.claim(),
        "best so far, 0 of 6 removals proved; it does not fail in every run"
    );
    let record = RunGroup::from(&after);
    assert_eq!(record.claim.as_deref(), Some("best-so-far"));
    assert!(!after.minimized.unwrap().is_unfinished());
}

#[test]
fn a_group_that_only_minimizations_have_met_counts_their_runs() {
    let (_root, mut store) = store();
    let founder = crash(json!([frame(true, Some("f"), None)]));
    let minimized = store.file(Kind::Crash, &founder, b"input").unwrap().id;
    let mut other = founder.clone();
    other.keys.major = Key::of([b"other".as_slice()]);
    let slip = other.into_slip(minimized.hash(), &founder, Some(1));
    let id = store.file(Kind::Crash, &slip, b"inp").unwrap().id;
    assert_eq!(shown(&store, &id).runs_seen, 1, "there is no log");

    let (key, minor) = (slip.keys.major, slip.keys.minor);
    let keys = format!(r#""slip":{{"major":"{key}","minor":"{minor}"}}"#);
    let test = |source| {
        format!(
            r#"{{"kind":"test","i":0,"hash":"0123456789abcdef","cut":[[0,1]],"size":4,"outcome":"UNRESOLVED","source":"{source}","us":1,{keys}}}"#
        )
    };
    let check =
        format!(r#"{{"kind":"check","what":"confirm","outcome":"UNRESOLVED","us":1,{keys}}}"#);
    let log = [test("run"), test("cache"), check.clone(), test("run")].join("\n");
    let entry = store.reader().entry(&minimized).unwrap().unwrap();
    std::fs::write(entry.log(), log).unwrap();
    assert_eq!(shown(&store, &id).runs_seen, 3);
    // The log of an earlier minimization.
    std::fs::write(entry.log().with_extension("jsonl.build"), check).unwrap();
    assert_eq!(shown(&store, &id).runs_seen, 4);
    store.set_seen(Kind::Crash, key, "c1", 2).unwrap();
    assert_eq!(
        shown(&store, &id).runs_seen,
        2,
        "runs of campaigns count alone"
    );
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
    let std = "/rustc/1/library/core/src/slice.rs:9";
    let mut index = frame(true, Some("list::item"), Some(std));
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
    assert_eq!(shown(&crash), "index<…> at src/list.rs:4:9");
}

/// A frame of several functions, innermost first, each with its line.
fn inlined(levels: &[(&str, &str)]) -> serde_json::Value {
    let (name, _) = levels.last().unwrap();
    let mut frame = frame(true, Some(name), Some(levels[0].1));
    let names: Vec<_> = levels[..levels.len() - 1].iter().map(|it| it.0).collect();
    frame["inlined"] = json!(names);
    frame["lines"] = json!(levels.iter().map(|it| it.1).collect::<Vec<_>>());
    frame
}

#[test]
fn of_a_panic_the_inlined_function_is_named_that_has_its_line() {
    let update = [
        ("index", "/rustc/1/library/core/src/slice/index.rs:9"),
        (
            "update",
            "/r/registry/src/index.io-1/gif-0.11.1/src/reader/decoder.rs:249",
        ),
        ("__libfuzzer_sys_run", "/p/fuzz/fuzz_targets/decode.rs:8"),
    ];
    let mut crash = crash(json!([
        frame(false, Some("rust_begin_unwind"), None),
        inlined(&update),
    ]));
    let mut panic = panic("src/reader/decoder.rs:249:31", "no item");
    panic.location =
        Some("/r/registry/src/index.io-1/gif-0.11.1/src/reader/decoder.rs:249:31".into());
    crash.details.panic = Some(panic);
    let view = loaded(&crash);
    assert_eq!(
        view.place.unwrap(),
        "update at gif-0.11.1/src/reader/decoder.rs:249:31"
    );
    assert!(view.source.unwrap().starts_with("/r/registry"));
}

#[test]
fn the_place_is_outside_of_standard_libraries_and_what_runs_harnesses() {
    let std = "/rustc/1/library/alloc/src/alloc.rs:93";
    let own = "/home/u/.cargo/registry/src/index.crates.io-1/gif-0.11.1/src/reader/mod.rs:212";
    let header = "/usr/include/x86_64-linux-gnu/bits/string_fortified.h:29";
    let runner = "/c/registry/src/i/libfuzzer-sys-0.4.13/src/lib.rs:276";
    let target = "/home/u/gif/fuzz/fuzz_targets/decode.rs:9";
    for (frames, place) in [
        (
            json!([inlined(&[
                ("alloc", std),
                ("next<&[u8]>", own),
                ("__libfuzzer_sys_run", target)
            ])]),
            "next<…> at gif-0.11.1/src/reader/mod.rs:212",
        ),
        (
            json!([
                inlined(&[("grow_one<u8>", std), ("push<u8, Global>", std)]),
                inlined(&[("read", own), ("outer", own)])
            ]),
            "read at gif-0.11.1/src/reader/mod.rs:212",
        ),
        (
            json!([inlined(&[("memcpy", header), ("set_name", "tlv.c:27")])]),
            "set_name at tlv.c:27",
        ),
        (
            json!([inlined(&[
                ("unwrap<u8>", std),
                ("__libfuzzer_sys_run", target)
            ])]),
            "fuzz_target! at /home/u/gif/fuzz/fuzz_targets/decode.rs:9",
        ),
        (
            json!([
                inlined(&[("rust_fuzzer_test_input", runner)]),
                inlined(&[("main", "m.c:1")])
            ]),
            "main at m.c:1",
        ),
        // Where nothing else is there, it is what it is.
        (
            json!([inlined(&[("alloc", std)])]),
            "alloc at alloc/src/alloc.rs:93",
        ),
        // A library without symbols is not passed over.
        (
            json!([frame(true, None, None), inlined(&[("main", "m.c:1")])]),
            "exe+0xff",
        ),
    ] {
        assert_eq!(loaded(&crash(frames)).place.as_deref(), Some(place));
    }
}

#[test]
fn a_function_that_only_gives_up_is_not_the_place() {
    let mut die = frame(true, Some("die"), Some("die.c:3"));
    die["gives_up"] = json!(true);
    let crash = crash(json!([die, frame(true, Some("parse"), Some("parse.c:9"))]));
    assert_eq!(place(&crash).as_deref(), Some("parse at parse.c:9"));
}

#[test]
fn a_record_of_an_older_version_is_read_without_the_lines_of_inlined_functions() {
    let mut old = frame(true, Some("main"), Some("a.c:3"));
    old["inlined"] = json!(["f", "g"]);
    let crash = crash(json!([old]));
    assert_eq!(place(&crash).as_deref(), Some("f at a.c:3"));
    let levels: Vec<_> = crash.frames[0].levels().collect();
    let names: Vec<_> = levels.iter().map(|level| level.name).collect();
    assert_eq!(names, [Some("f"), Some("g"), Some("main")]);
    let lines: Vec<_> = levels.iter().map(|level| level.line).collect();
    assert_eq!(lines, [Some("a.c:3"), None, None]);
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

#[test]
fn a_claim_whose_tests_are_made_but_not_confirmed_says_so() {
    let all = sample::view().minimized.unwrap();
    let told = |flaky| {
        claim(&Minimized {
            claim: "best-so-far".to_owned(),
            flaky,
            ..all.clone()
        })
    };
    let done = all.proved.done;
    assert_eq!(done, all.proved.of);
    let front = format!("best so far, {done} of {done} removals proved");
    let not_made = ", but the runs that confirm this are not all made";
    assert_eq!(told(None), format!("{front}{not_made}"));
    let rate = Some(Rate { hits: 2, tries: 3 });
    assert_eq!(told(rate), format!("{front}, but the failure is flaky"));
}
