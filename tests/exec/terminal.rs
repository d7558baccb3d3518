//! Targets at a terminal: keys reach them one after the other, by every way and under tracers.

use std::time::Duration;

use ddfuzz::exec::{Channel, Ended, Executor, Freshness, Target, Terminal, Way, start};
use ddfuzz::files::Base64;
use ddfuzz::triage::{Quick, Triager, Verdict};

use crate::programs::{Compiled, compile, target};

pub const WAYS: [Way; 2] = [Way::Command, Way::Inject];
const SEGV: Ended = Ended::Signal(11);

/// `programs/terminal.c` at a terminal, with these arguments.
pub fn at_terminal(program: &Compiled, args: &[&str]) -> Target {
    let mut target = target(program);
    target.args = args.iter().map(Into::into).collect();
    target.channel = Channel::Terminal(Terminal::default());
    target
}

/// The same, started.
pub fn started(program: &Compiled, args: &[&str], way: Way) -> Box<dyn Executor> {
    let target = at_terminal(program, args);
    start(&target, Some(way), Freshness::Shared)
        .unwrap()
        .executor
}

/// How runs on these inputs end.
#[track_caller]
fn ends(args: &[&str], expected: &[(&[u8], Ended)]) {
    let program = compile("terminal", &[]);
    for way in WAYS {
        let mut executor = started(&program, args, way);
        for (keys, ended) in expected {
            let run = executor.run(keys).unwrap();
            let keys = String::from_utf8_lossy(keys);
            assert_eq!(run.ended, *ended, "{way}: {args:?} on {keys:?}");
            assert_eq!(run.read, None);
        }
    }
}

#[test]
fn keys_are_read_one_after_the_other() {
    let all: [(&[u8], Ended); 5] = [
        (b"abxyz", SEGV),
        (b"yx", Ended::Exit(0)),
        (b"xaybq", Ended::Exit(0)),
        (b"q", Ended::Exit(0)),
        (b"\x1bx\x1b[1;5A\xff\0xy", SEGV),
    ];
    ends(&["keys"], &all);
}

#[test]
fn a_program_that_forgets_what_came_while_it_computed_misses_nothing() {
    let all: [(&[u8], Ended); 3] = [(b"xy", SEGV), (b"xay", Ended::Exit(0)), (b"abcxy", SEGV)];
    ends(&["slow"], &all);
}

#[test]
fn lines_are_edited_and_end_with_the_end_of_file() {
    let all: [(&[u8], Ended); 4] = [
        (b"", Ended::Exit(0)),
        (b"one\rtwo\r", Ended::Exit(2)),
        (b"a\x15b\r\rhalf", Ended::Exit(2)),
        // An interrupt is one, where the program has not asked for anything else.
        (b"one\r\x03\r", Ended::Signal(2)),
    ];
    ends(&["lines"], &all);
}

#[test]
fn a_window_is_resized_by_a_sequence_in_the_input() {
    let all: [(&[u8], Ended); 5] = [
        (b"q", Ended::Exit(80)),
        (b"\x1b[8;10;33tq", Ended::Exit(33)),
        (b"\x1b[8;10;33t\x1b[8;7;200tq", Ended::Exit(200)),
        (b"\x1b[8;10;33t\x1b[8;7;200tw", Ended::Exit(2)),
        (b"\x1b[8;0;33tw", Ended::Exit(0)),
    ];
    ends(&["size"], &all);
}

#[test]
fn what_stops_itself_goes_on() {
    let all: [(&[u8], Ended); 2] = [(b"sx", SEGV), (b"abs", Ended::Signal(11))];
    ends(&["stop"], &all);
}

#[test]
fn the_terminal_is_found_by_its_name_and_descendants_share_it() {
    ends(&["tty"], &[(b"abx", SEGV), (b"ab", Ended::Exit(0))]);
    ends(&["child"], &[(b"abx", SEGV), (b"ab", Ended::Exit(0))]);
}

#[test]
fn what_does_not_end_by_itself_is_ended_and_has_not_failed() {
    for how in ["deaf", "sleeper"] {
        ends(&[how], &[(b"abc", Ended::Exit(0)), (b"", Ended::Exit(0))]);
    }
    ends(&["hang-up"], &[(b"a", SEGV)]);
}

#[test]
fn a_flood_is_drained_and_a_loop_is_a_hang() {
    ends(&["flood"], &[(b"aabx", SEGV), (b"aa", Ended::Exit(0))]);
    ends(
        &["spin"],
        &[(b"abs", Ended::Timeout), (b"ab", Ended::Exit(0))],
    );
}

#[test]
fn a_program_that_sleeps_for_a_time_reads_its_keys_all_the_same() {
    for how in ["naps", "child-naps"] {
        let all: [(&[u8], Ended); 3] = [(b"axy", SEGV), (b"zaxy", SEGV), (b"zyx", Ended::Exit(0))];
        ends(&[how], &all);
    }
    ends(&["last-nap"], &[(b"az", SEGV), (b"a", Ended::Exit(0))]);
}

#[test]
fn a_sleeper_that_reads_nothing_is_not_waited_for_at_each_key() {
    let program = compile("terminal", &[]);
    let mut executor = started(&program, &["sleeper"], Way::Inject);
    let run = executor.run(&[b'k'; 20_000]).unwrap();
    assert_eq!(run.ended, Ended::Exit(0));
    assert!(run.cpu < Duration::from_millis(100), "{:?}", run.cpu);
}

#[test]
fn the_ending_is_typed_behind_the_input() {
    let program = compile("terminal", &[]);
    let mut target = at_terminal(&program, &["size"]);
    target.channel = Channel::Terminal(Terminal {
        rows: 5,
        columns: 17,
        ending: Base64(b"abq".to_vec()),
    });
    for way in WAYS {
        let mut executor = start(&target, Some(way), Freshness::Fresh)
            .unwrap()
            .executor;
        assert_eq!(executor.run(b"").unwrap().ended, Ended::Exit(17), "{way}");
    }
}

#[test]
fn at_signs_stand_for_a_text_to_work_on() {
    let lines = ddfuzz::exec::sample_text()
        .iter()
        .filter(|byte| **byte == b'\n')
        .count();
    let expected = Ended::Exit((lines % 256) as i32);
    ends(&["file", "@@"], &[(b"abc", expected), (b"", expected)]);
}

#[test]
fn the_text_to_work_on_is_always_the_same() {
    let text = ddfuzz::exec::sample_text();
    // Recorded inputs depend on it.
    assert_eq!(&blake3::hash(text).to_hex()[..16], "933a1465386762f4");
    assert!(text.len() < 1 << 14);
}

#[test]
fn a_crash_at_a_terminal_is_named_by_its_frames() {
    let program = compile("terminal", &["-g"]);
    for (args, input) in [
        ("keys", "axyz"),
        ("stop", "sx"),
        ("child", "x"),
        ("flood", "ax"),
    ] {
        let target = at_terminal(&program, &[args]);
        let mut keys = WAYS.map(|way| {
            let mut triager = Triager::of_target(&target, way).unwrap();
            let verdict = triager.examine(input.as_bytes()).unwrap();
            let Verdict::Crash(crash) = verdict else {
                panic!("{args} by {way}: {verdict:?}");
            };
            let named = crash.frames.first().and_then(|frame| frame.name.clone());
            assert_eq!(named.as_deref(), Some("crash"), "{args} by {way}");
            assert!(
                matches!(triager.key(b"").unwrap(), Quick::Ended(_)),
                "{args}"
            );
            (crash.class, crash.keys)
        });
        let first = keys[0].clone();
        assert!(keys.iter_mut().all(|key| *key == first), "{args}: {keys:?}");
    }
}

#[test]
fn ways_without_a_terminal_say_so() {
    let program = compile("terminal", &[]);
    for way in [Way::Forkserver, Way::Harness] {
        let refused = start(&at_terminal(&program, &[]), Some(way), Freshness::Shared);
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("terminal"), "{error}");
    }
    let chosen = start(&at_terminal(&program, &[]), None, Freshness::Shared).unwrap();
    assert_eq!(chosen.executor.way(), Way::Inject);
}
