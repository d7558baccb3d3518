//! What a crash said and where it happened.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use ddfuzz::report::{Extent, Trace};
use ddfuzz::triage::Crash;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::sample::{crash, frame};

/// A frame of a module that is none of the user's.
fn of(module: &str, name: Option<&str>) -> Value {
    let mut frame = frame(false, name, None);
    frame["module"] = json!(module);
    frame
}

fn own(name: &str, start: u64) -> Value {
    let mut frame = frame(true, Some(name), Some(&format!("nowhere.c:{start}")));
    frame["function_start"] = json!(start);
    frame
}

/// The lines of the trace, without their indentation.
fn lines(crash: &Crash) -> Vec<String> {
    let text = Trace::of(crash, None).text(Extent::WHOLE);
    text.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn own_frames_come_first_and_runs_of_runtimes_are_folded() {
    let aborted = crash(json!([
        of("libc.so.6", None),
        of("libc.so.6", Some("abort")),
        of("exe", Some("__asan::Die()")),
        own("parse", 1),
        of("libc.so.6", Some("qsort")),
        own("main", 2),
        of("ddfuzz-runtime.so", Some("serve")),
        of("libc.so.6", Some("__libc_start_main")),
        of("exe", Some("_start")),
    ]));
    assert_eq!(
        lines(&aborted),
        [
            "stack   #3   parse at nowhere.c:1",
            "… 1 frame of libc",
            "#5   main at nowhere.c:2",
            "… 3 frames of ddfuzz and libc",
            "… 3 frames of libc and the sanitizer (#0 to #2)",
        ]
    );
}

#[test]
fn a_stack_without_own_frames_is_shown_as_it_is() {
    let foreign = crash(json!([
        of("libc.so.6", Some("strlen")),
        of("libz.so.1", None)
    ]));
    assert_eq!(
        lines(&foreign),
        ["stack   #0   strlen", "#1   libz.so.1+0xff"]
    );
    assert!(lines(&crash(json!([]))).is_empty());
    assert!(Trace::of(&crash(json!([])), None).is_empty());
}

#[test]
fn a_recursion_is_shown_once_and_a_long_stack_is_cut() {
    let mut frames = vec![own("leaf", 9)];
    for _ in 0..100 {
        frames.extend([own("even", 1), own("odd", 2)]);
    }
    frames.push(own("main", 3));
    let mut deep = crash(json!(frames));
    assert_eq!(
        lines(&deep),
        [
            "stack   #0   leaf at nowhere.c:9",
            "#1   even at nowhere.c:1",
            "#2   odd at nowhere.c:2",
            "… the 2 lines above, repeated 99 times more",
            "#201 main at nowhere.c:3",
        ]
    );
    deep.details.end = ddfuzz::triage::snapshot::End::Cap;
    assert!(lines(&deep).contains(&"… the rest of the stack could not be read".to_owned()));
    let many: Vec<Value> = (0..100).map(|at| own(&format!("f{at}"), at)).collect();
    let long = lines(&crash(json!(many)));
    assert_eq!(long.len(), Extent::WHOLE.stack);
    assert_eq!(long.last().unwrap(), "… 69 more frames");
}

#[test]
fn each_inlined_function_of_the_user_has_a_line_of_its_own() {
    let mut inlined = own("outer", 1);
    inlined["inlined"] = json!(["core::slice::index", "inner"]);
    inlined["lines"] = json!([
        "/rustc/1/library/core/src/slice.rs:7",
        "list.rs:3",
        "list.rs:9"
    ]);
    let mut runner = own("__libfuzzer_sys_run", 4);
    runner["line"] = json!("/registry/src/i/libfuzzer-sys-0.4.7/src/lib.rs:240");
    assert_eq!(
        lines(&crash(json!([inlined, runner]))),
        [
            "stack   #0   inner at list.rs:3 (inlined)",
            "#0   outer at list.rs:9",
            "… 1 frame of a runtime linked into the program",
        ]
    );
}

#[test]
fn memory_that_was_freed_has_the_stacks_of_its_allocation_and_its_end() {
    let mut used = crash(json!([own("get", 1)]));
    let frames = |name: &str| {
        let frames = json!([of("libasan.so.8", None), own(name, 5)]);
        serde_json::from_value(frames).unwrap()
    };
    used.details.allocated = frames("make");
    used.details.freed = frames("drop");
    assert_eq!(
        lines(&used),
        [
            "stack   #0   get at nowhere.c:1",
            "alloc   #1   make at nowhere.c:5",
            "… 1 frame of libasan (#0)",
            "freed   #1   drop at nowhere.c:5",
            "… 1 frame of libasan (#0)",
        ]
    );
    used.details.report = Some(
        serde_json::from_value(json!({"tool": "msan", "kind": "use-of-uninitialized-value"}))
            .unwrap(),
    );
    assert!(lines(&used)[1].starts_with("origin  #1   make"));
}

/// A crash in line 4 of this file.
fn in_file(file: &Path) -> Crash {
    let line = format!("{}:4", file.display());
    crash(json!([frame(true, Some("parse"), Some(&line))]))
}

#[test]
fn the_source_around_the_place_is_quoted_and_its_line_marked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list.c");
    std::fs::write(&file, "one\ntwo\nthree\n\tfour\x1b[2J\u{202e}\nfive\nsix\n").unwrap();
    let expected = format!(
        "  stack   #0   parse at {0}:4\n\
         \x20 source  {0}:4\n\
         \x20           2 | two\n\
         \x20           3 | three\n\
         \x20         > 4 |     four\\u{{1b}}[2J\\u{{202e}}\n\
         \x20           5 | five\n\
         \x20           6 | six\n",
        file.display()
    );
    let trace = Trace::of(&in_file(&file), None);
    assert_eq!(trace.text(Extent::SHORT), expected);
    let excerpt = trace.excerpt(1).unwrap();
    assert_eq!((excerpt.line, excerpt.first, excerpt.text.len()), (4, 3, 3));
    assert!(!excerpt.is_newer);
}

#[test]
fn source_that_was_written_after_the_crash_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list.rs");
    std::fs::write(&file, "a\nb\nc\nd\n").unwrap();
    let mut old = in_file(&file);
    old.details.times.at_unix_ms = 1000;
    let at = UNIX_EPOCH + Duration::from_secs(2);
    let opened = std::fs::File::options().write(true).open(&file).unwrap();
    opened.set_modified(at).unwrap();
    let text = Trace::of(&old, None).text(Extent::SHORT);
    assert!(
        text.contains("list.rs:4, written after the crash was seen"),
        "{text}"
    );
    old.details.times.at_unix_ms = 3000;
    assert!(
        !Trace::of(&old, None)
            .text(Extent::SHORT)
            .contains("written")
    );
    // A line that it does not have is of another version.
    std::fs::write(&file, "a\nb\nc\n").unwrap();
    assert_eq!(Trace::of(&old, None).excerpt(3), None);
}

#[test]
fn a_relative_path_is_found_above_the_record_and_nowhere_else() {
    let project = tempfile::tempdir().unwrap();
    let source = project.path().join("src");
    let record = project.path().join("out/crashes/a/b/c");
    std::fs::create_dir_all(&source).unwrap();
    std::fs::create_dir_all(&record).unwrap();
    std::fs::write(source.join("of_this_test.rs"), "a\nb\nc\nd\n").unwrap();
    let found = |file: &str, folder| Trace::of(&in_file(Path::new(file)), folder).excerpt(0);
    let excerpt = found("./src/of_this_test.rs", Some(record.as_path())).unwrap();
    assert_eq!(excerpt.file, source.join("of_this_test.rs"));
    assert_eq!(excerpt.text, ["d"]);
    assert_eq!(found("src/of_this_test.rs", None), None);
    let out = project.path().join("out/crashes");
    assert_eq!(found("../../src/of_this_test.rs", Some(&out)), None);
}

#[test]
fn only_files_of_source_are_shown_and_no_fifo_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["secret", ".env", "id_rsa.pem", "notes.txt"] {
        let file = folder.path().join(name);
        std::fs::write(&file, "a\nb\nc\nd\n").unwrap();
        assert_eq!(Trace::of(&in_file(&file), None).excerpt(1), None, "{name}");
    }
    let fifo = folder.path().join("fifo.c");
    make_fifo(&fifo);
    assert_eq!(Trace::of(&in_file(&fifo), None).excerpt(1), None);
    assert_eq!(Trace::of(&in_file(folder.path()), None).excerpt(1), None);
}

#[test]
fn long_lines_of_source_are_shown_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wide.c");
    let wide = format!("f({}, last);", "argument, ".repeat(30));
    std::fs::write(&file, format!("a\nb\nc\n{wide}\n")).unwrap();
    let text = Trace::of(&in_file(&file), None).text(Extent::SHORT);
    assert!(text.contains(&wide), "{text}");
}

fn make_fifo(path: &Path) {
    let status = std::process::Command::new("mkfifo").arg(path).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_panic_and_an_assertion_say_their_line_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list.c");
    std::fs::write(&file, "a\nb\nc\nd\n").unwrap();
    let line = |line: u64| format!("{}:{line}", file.display());
    let frames = json!([
        frame(true, Some("merged"), None),
        frame(true, Some("main"), Some(&line(1))),
        frame(true, Some("start"), Some(&line(3))),
    ]);
    let mut asserted = crash(frames);
    let text = Trace::of(&asserted, None).text(Extent::SHORT);
    assert!(
        text.contains(&format!("source  {} (#1)\n", line(1))),
        "{text}"
    );
    let said = "p: list.c:3: int f(int): Assertion `x' failed.";
    asserted.details.abort_message = Some(said.to_owned());
    let text = Trace::of(&asserted, None).text(Extent::SHORT);
    assert!(text.contains(&format!("source  {}\n", line(3))), "{text}");
}

proptest! {
    #![proptest_config(crate::fixed_cases(300))]

    #[test]
    fn hostile_records_are_shown_without_a_panic_in_harmless_lines(
        names in prop::collection::vec(("\\PC*|[\\x00-\\x1f\u{202e}]{0,9}", any::<bool>(), 0..3_u64), 0..40),
        line in "(/|\\.\\./|[\\x00-\\x1f])?[a-z/]{0,9}(\\.c)?:[0-9]{0,30}",
    ) {
        let frames: Vec<Value> = names.iter().map(|(name, is_own, start)| {
            let mut frame = frame(*is_own, Some(name), Some(&line));
            frame["function_start"] = json!(start);
            frame["module"] = json!(name);
            frame
        }).collect();
        let text = Trace::of(&crash(json!(frames)), None).text(Extent::WHOLE);
        let harmful = |one: char| one.is_control() && one != '\n' || one == '\u{202e}';
        prop_assert!(!text.contains(harmful));
        prop_assert!(text.lines().all(|line| line.chars().count() < 300));
        prop_assert!(text.lines().count() <= 60);
    }
}

#[test]
fn a_message_in_a_record_of_somebody_else_is_cleaned_again() {
    let mut foreign = crash(json!([]));
    foreign.details.message = Some("a\x1b[2J\u{202e}\nb".to_owned());
    let trace = Trace::of(&foreign, None);
    let cleaned = "a\\u{1b}[2J\\u{202e}\nb";
    assert_eq!(trace.message.as_deref(), Some(cleaned));
    assert_eq!(trace.headline(), cleaned.lines().next());
    foreign.details.message = trace.message.clone();
    assert_eq!(Trace::of(&foreign, None), trace);
}
