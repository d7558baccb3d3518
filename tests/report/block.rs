//! The block of a new group.

use ddfuzz::minimize::Rate;
use ddfuzz::report::{GroupView, Trace, block, block_in_full};
use ddfuzz::store::{Kind, Minimized};
use serde_json::json;

use crate::sample::{crash, frame, view};

#[test]
fn a_group_is_shown_in_eight_lines() {
    let short = view().major.short();
    let expected = format!(
        "crash {short}: segv, high (write to a wild address)\n\
         \x20 where   parse_line at ul.c:40\n\
         \x20 size    40 → 6 bytes in 17 tests\n\
         \x20 claim   1-minimal, proved by 6 tests\n\
         \x20 input   41 1b 5b 32 4a 0a  |A.[2J.|\n\
         \x20 replay  '/my out/reproduce.sh'\n\
         \x20 file    /out/minimized\n\
         \x20 log     /out/log.jsonl\n"
    );
    assert_eq!(block(&view()), expected);
}

#[test]
fn an_unproved_claim_says_how_much_is_proved() {
    let mut view = view();
    let minimized = view.minimized.as_mut().unwrap();
    minimized.claim = "best-so-far".to_owned();
    minimized.proved.done = 2;
    assert!(block(&view).contains("  claim   best so far, 2 of 6 removals proved\n"));
}

#[test]
fn what_is_not_known_is_said_so() {
    let view = GroupView {
        kind: Kind::Hang,
        place: None,
        minimized: None,
        log: None,
        script: None,
        ..view()
    };
    let text = block(&view);
    assert!(text.starts_with("hang "));
    for line in [
        "where   unknown",
        "size    40 → 6 bytes\n",
        "claim   not minimized yet",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert_eq!(text.lines().count(), 8);
}

#[test]
fn tests_are_left_out_where_the_outcome_does_not_say() {
    let minimized = Minimized {
        tests: serde_json::Value::Null,
        ..view().minimized.unwrap()
    };
    let view = GroupView {
        minimized: Some(minimized),
        ..view()
    };
    assert!(block(&view).contains("size    40 → 6 bytes\n"));
}

#[test]
fn names_of_the_target_cannot_write_to_the_terminal() {
    let hostile = "x\x1b[2J\r\n\u{202e}y".to_owned();
    let view = GroupView {
        class: ddfuzz::triage::Class(hostile.clone()),
        severity_reason: hostile.clone(),
        place: Some(hostile.clone()),
        file: hostile.into(),
        ..view()
    };
    let text = block(&view);
    assert_eq!(text.lines().count(), 8);
    assert!(!text.contains(['\x1b', '\r', '\u{202e}']));
}

#[test]
fn the_first_lines_of_a_structured_input_follow_and_cannot_move_the_cursor() {
    let debug = format!("Plan {{\n    name: \x1b[2J,\n{}}}", "    x,\n".repeat(20));
    let minimized = Minimized {
        debug: Some(debug),
        ..view().minimized.unwrap()
    };
    let view = GroupView {
        minimized: Some(minimized),
        ..view()
    };
    let text = block(&view);
    assert_eq!(text.lines().count(), 8 + 16 + 1);
    assert!(text.contains("\n  debug   Plan {\n              name: \\u{1b}[2J,\n"));
    assert!(
        text.ends_with("… 7 more lines in debug.txt beside the file\n"),
        "{text}"
    );
}

/// The sample, with what its crash said and a frame.
fn told(message: &str) -> GroupView {
    let mut crash = crash(json!([frame(true, Some("parse"), Some("ul.c:40"))]));
    crash.details.message = Some(message.to_owned());
    GroupView {
        trace: Trace::of(&crash, None),
        has_gdb: true,
        explanation: None,
        ..view()
    }
}

#[test]
fn what_the_crash_said_stands_above_its_place() {
    let said = told("assertion `left == right` failed\n  left: 1");
    let text = block(&said);
    let expected =
        "  message assertion `left == right` failed\n            left: 1\n  where   parse_line";
    assert!(text.contains(expected), "{text}");
    assert_eq!(text.lines().count(), 10);
    assert!(
        !text.contains("  stack") && !text.contains("  gdb"),
        "{text}"
    );
}

#[test]
fn a_group_in_full_has_its_stack_and_the_way_into_gdb() {
    let text = block_in_full(&told("too many"));
    for line in [
        "  message too many\n",
        "  stack   #0   parse at ul.c:40\n",
        "  replay  '/my out/reproduce.sh'\n",
        "  gdb     '/my out/reproduce.sh' gdb\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let older = GroupView {
        has_gdb: false,
        explanation: None,
        ..told("too many")
    };
    assert!(!block_in_full(&older).contains("  gdb"));
}

#[test]
fn a_claim_of_what_does_not_come_each_time_says_so() {
    let flaky = |hits, tries| {
        let flaky = Some(Rate { hits, tries });
        block(&GroupView { flaky, ..view() })
    };
    let text = flaky(14, 20);
    assert!(
        text.contains("tests; it fails in 14 of 20 runs\n"),
        "{text}"
    );
    let text = flaky(6, 6);
    assert!(
        text.contains("tests; it does not fail in every run\n"),
        "{text}"
    );
}
