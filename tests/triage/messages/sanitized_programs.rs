//! Programs with sanitizers, by every way of execution.

use std::path::PathBuf;
use std::process::Command;

use ddfuzz::exec::{Ended, Freshness, Limits, Program, Target, Way, start};
use ddfuzz::triage::messages::Tool;
use ddfuzz::triage::{Crash, Frame, Settings, Severity, Triager, Verdict};

use crate::needs;

/// A program in a folder of its own.
struct Built {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

/// Compiles the bugs; `None`, and said so, where the compiler or its runtime is missing.
fn build(compiler: &str, flags: &[&str]) -> Option<Built> {
    build_of(compiler, flags, include_str!("sanitized.c"))
}

fn build_of(compiler: &str, flags: &[&str], text: &str) -> Option<Built> {
    needs::program(compiler)?;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (source, path) = (folder.path().join("bugs.c"), folder.path().join("bugs"));
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new(compiler);
    let command = command.args(["-w", "-O1"]).args(flags).arg(&source);
    let built = command.arg("-o").arg(&path).output().unwrap();
    if !built.status.success() {
        needs::missing(&format!("{compiler} {flags:?}"), "it does not link");
        return None;
    }
    Some(Built {
        _folder: folder,
        path,
    })
}

fn target(program: &Built) -> Target {
    let mut target = Target::new(Program::Path(program.path.clone()));
    target.limits = Limits::with_cpu(std::time::Duration::from_secs(60));
    target
}

fn examine(program: &Built, way: Way, input: &str) -> Verdict {
    let mut triager = Triager::of_target(&target(program), way).unwrap();
    triager.examine(input.as_bytes()).unwrap()
}

fn crash(program: &Built, way: Way, input: &str) -> Crash {
    match examine(program, way, input) {
        Verdict::Crash(crash) => *crash,
        Verdict::Flaky { ended, .. } => panic!("{input} by {way} ended with {ended}"),
    }
}

fn innermost(crash: &Crash) -> &str {
    crash
        .innermost_own()
        .and_then(|frame| frame.name.as_deref())
        .unwrap_or("?")
}

/// Input, class, and the innermost function of one's own.
const ADDRESS: [(&str, &str, &str); 9] = [
    ("h", "asan:heap-buffer-overflow", "get"),
    ("w", "asan:heap-buffer-overflow", "put"),
    ("m", "asan:heap-buffer-overflow", "run"),
    ("u", "asan:heap-use-after-free", "get"),
    ("d", "asan:double-free", "run"),
    ("f", "asan:bad-free", "run"),
    ("s", "asan:stack-buffer-overflow", "get"),
    ("n", "segv", "run"),
    ("r", "stackoverflow", "recurse"),
];

fn check_address(program: &Built) {
    for (input, class, function) in ADDRESS {
        let command = crash(program, Way::Command, input);
        assert_eq!(command.class.0, class, "{input}");
        assert_eq!(innermost(&command), function, "{input}");
        assert_eq!(command.capture, "ptrace", "{input}");
        let inject = crash(program, Way::Inject, input);
        assert_eq!(
            (inject.class, inject.keys),
            (command.class, command.keys),
            "{input}"
        );
    }
    assert_eq!(crash(program, Way::Inject, "j").class.0, "wildcall");
    assert_eq!(crash(program, Way::Inject, "q").class.0, "abrt");
}

#[test]
fn address_sanitizer_of_gcc_is_understood() {
    let Some(program) = build("gcc", &["-fsanitize=address"]) else {
        return;
    };
    check_address(&program);
    let freed = crash(&program, Way::Inject, "u");
    let report = freed.details.report.unwrap();
    assert_eq!(report.tool, Tool::Asan);
    assert!(!report.stack.is_empty() && !report.freed.is_empty() && !report.allocated.is_empty());
    assert_eq!(freed.severity, Severity::High);
}

#[test]
fn a_handler_of_sigabrt_that_exits_hides_no_report_and_ends_the_programs_own_aborts() {
    for compiler in ["gcc", "clang"] {
        let Some(program) = build(compiler, &["-fsanitize=address"]) else {
            continue;
        };
        for way in [Way::Command, Way::Inject] {
            let mut runs = start(&target(&program), Some(way), Freshness::Shared).unwrap();
            let mut ended = |input: &[u8]| runs.executor.run(input).unwrap().ended;
            assert_eq!(
                ended(b"e"),
                Ended::Signal(libc::SIGABRT),
                "{compiler} {way}"
            );
            assert_eq!(
                ended(b"q"),
                Ended::Signal(libc::SIGABRT),
                "{compiler} {way}"
            );
            assert_eq!(ended(b"k"), Ended::Exit(libc::SIGABRT), "{compiler} {way}");
            let (handled, plain) = (crash(&program, way, "e"), crash(&program, way, "w"));
            assert_eq!(handled.class, plain.class);
            let aborted = crash(&program, way, "q");
            assert_eq!(innermost(&aborted), "run");
            assert!(aborted.details.report.is_none());
        }
    }
}

#[test]
fn an_abort_under_any_sanitizer_is_one_without() {
    for (compiler, flag) in [
        ("clang", "-fsanitize=memory"),
        ("clang", "-fsanitize=thread"),
        ("clang", "-fsanitize=undefined"),
    ] {
        let Some(program) = build(compiler, &[flag]) else {
            continue;
        };
        let aborted = crash(&program, Way::Command, "q");
        assert_eq!(aborted.class.0, "abrt", "{flag}");
        assert_eq!(innermost(&aborted), "run", "{flag}");
        assert!(aborted.details.report.is_none(), "{flag}");
    }
}

/// Two threads one after the other, which take two locks in different orders.
const LOCKS: &str = "\
#include <pthread.h>
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *none)
{
    pthread_mutex_lock(&one);
    pthread_mutex_lock(&two);
    pthread_mutex_unlock(&two);
    pthread_mutex_unlock(&one);
    return none;
}
static void *second(void *none)
{
    pthread_mutex_lock(&two);
    pthread_mutex_lock(&one);
    pthread_mutex_unlock(&one);
    pthread_mutex_unlock(&two);
    return none;
}
static void run_it(void *(*what)(void *))
{
    pthread_t thread;
    pthread_create(&thread, 0, what, 0);
    pthread_join(thread, 0);
}
int main(void)
{
    run_it(first);
    run_it(second);
    return 0;
}
";

#[test]
fn functions_that_thread_sanitizer_reports_have_names_and_lines() {
    let Some(program) = build_of("clang", &["-g", "-fsanitize=thread"], LOCKS) else {
        return;
    };
    for way in [Way::Command, Way::Inject] {
        let found = crash(&program, way, "");
        assert_eq!(found.class.0, "tsan:lock-order-inversion", "{way}");
        assert_eq!(own_lines(&found.frames), [("first", true)], "{way}");
    }
}

#[test]
fn a_report_that_a_program_prints_itself_is_not_taken_for_one() {
    for flags in [&[][..], &["-fsanitize=memory"], &["-fsanitize=undefined"]] {
        let Some(program) = build("clang", flags) else {
            continue;
        };
        for way in [Way::Command, Way::Inject] {
            let printed = crash(&program, way, "p");
            assert_eq!(printed.class.0, "abrt", "{flags:?} {way}");
            assert!(printed.details.report.is_none(), "{flags:?} {way}");
        }
    }
}

#[test]
fn what_a_runtime_logs_when_it_starts_hides_no_report() {
    let Some(program) = build("clang", &["-fsanitize=address"]) else {
        return;
    };
    let mut target = target(&program);
    let logs = "verbosity=1:unknown_flag=1";
    target.env.push(("ASAN_OPTIONS".into(), logs.into()));
    for way in [Way::Command, Way::Inject] {
        let mut triager = Triager::of_target(&target, way).unwrap();
        let Verdict::Crash(crash) = triager.examine(b"w").unwrap() else {
            panic!("by {way} it does not crash each time");
        };
        assert_eq!(crash.class.0, "asan:heap-buffer-overflow", "{way}");
    }
}

/// Names and lines of the frames of the user's own code.
fn own_lines(frames: &[Frame]) -> Vec<(&str, bool)> {
    let own = frames.iter().filter(|frame| frame.own);
    own.map(|frame| {
        let has_line = (frame.line.as_deref()).is_some_and(|line| line.contains("bugs.c:"));
        (frame.name.as_deref().unwrap_or("?"), has_line)
    })
    .collect()
}

#[test]
fn where_memory_was_allocated_and_freed_has_names_and_lines() {
    for compiler in ["gcc", "clang"] {
        let flags = ["-fsanitize=address", "-g", "-fno-omit-frame-pointer"];
        let Some(program) = build(compiler, &flags) else {
            continue;
        };
        for way in [Way::Command, Way::Inject] {
            let used = crash(&program, way, "u").details;
            for frames in [&used.allocated, &used.freed] {
                assert!(!frames[0].own, "{compiler}: {frames:?}");
                assert_eq!(
                    own_lines(frames)[0],
                    ("run", true),
                    "{compiler}: {frames:?}"
                );
            }
            let over = crash(&program, way, "w").details;
            assert_eq!(own_lines(&over.allocated)[0], ("run", true), "{compiler}");
            assert!(over.freed.is_empty());
        }
    }
}

#[test]
fn the_first_line_of_the_report_is_the_message() {
    let told = |compiler: &str, flag: &str, input: &str| {
        let program = build(compiler, &[flag])?;
        crash(&program, Way::Inject, input).details.message
    };
    for compiler in ["gcc", "clang"] {
        for (flag, input, expected) in [
            (
                "-fsanitize=address",
                "w",
                "AddressSanitizer: heap-buffer-overflow, WRITE of size 1",
            ),
            (
                "-fsanitize=address",
                "u",
                "AddressSanitizer: heap-use-after-free, READ of size 1",
            ),
            (
                "-fsanitize=address",
                "d",
                "AddressSanitizer: attempting double-free",
            ),
            (
                "-fsanitize=undefined",
                "a",
                "runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in \
                 type 'int'",
            ),
        ] {
            if let Some(message) = told(compiler, flag, input) {
                assert_eq!(message, expected, "{compiler}");
            }
        }
    }
    if let Some(message) = told("clang", "-fsanitize=memory", "i") {
        assert_eq!(message, "MemorySanitizer: use-of-uninitialized-value");
    }
}

#[test]
fn address_sanitizer_of_clang_is_understood_and_stripped_it_has_the_same_keys() {
    let Some(program) = build("clang", &["-fsanitize=address"]) else {
        return;
    };
    check_address(&program);
    let keys = || ADDRESS.map(|(input, ..)| crash(&program, Way::Inject, input).keys);
    let before = keys();
    let stripped = Command::new("strip").arg(&program.path).status().unwrap();
    assert!(stripped.success());
    for ((before, after), (input, ..)) in before.iter().zip(keys()).zip(ADDRESS) {
        assert_eq!(
            (before.major, before.minor),
            (after.major, after.minor),
            "{input}"
        );
    }
}

/// Four functions and two blocks of the heap through one `copy`.
const OWNERS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static __attribute__((noinline)) void copy(char *to, const char *from) { while ((*to++ = *from++)); }
static long used;
static void set_name(const char *text) {
    char name[32];
    copy(name, text);
    used += name[0];
}
static __attribute__((noinline)) void set_path(const char *text) {
    char path[48];
    copy(path, text);
    used += path[0];
}
static char *make(void) { return malloc(16); }
static __attribute__((noinline)) void set_key(const char *text) {
    char *key = make();
    copy(key, text);
    used += key[0];
}
static __attribute__((noinline)) void set_value(const char *text) {
    char *value = malloc(16);
    copy(value, text);
    used += value[0];
}
char unit[8];
int main(void) {
    static char text[4096];
    text[fread(text, 1, 4095, stdin)] = 0;
    switch (text[0]) {
    case 'n': set_name(text); break;
    case 'p': set_path(text); break;
    case 'k': set_key(text); break;
    case 'v': set_value(text); break;
    case 'u': copy(unit, text); break;
    }
    return used == 1;
}
"#;

/// Input, and what is said of the object.
const OWNED: [(&str, &str); 5] = [
    ("n", "32 bytes into the 32-byte buffer `name` of set_name"),
    ("p", "48 bytes into the 48-byte buffer `path` of set_path"),
    (
        "k",
        "16 bytes into the 16-byte heap block allocated by make",
    ),
    (
        "v",
        "16 bytes into the 16-byte heap block allocated by set_value",
    ),
    ("u", "8 bytes into the 8-byte global buffer `unit`"),
];

#[test]
fn overflows_through_one_helper_are_told_apart_by_their_objects() {
    for compiler in ["gcc", "clang"] {
        let Some(program) = build_of(compiler, &["-g", "-fsanitize=address"], OWNERS) else {
            continue;
        };
        let mut majors = std::collections::BTreeSet::new();
        for (letter, said) in OWNED {
            let long = crash(&program, Way::Inject, &letter.repeat(90));
            let object = long.details.object.as_ref().expect(letter);
            assert_eq!(object.to_string(), said, "{compiler}");
            assert!(
                long.severity_reason.ends_with(said),
                "{}",
                long.severity_reason
            );
            assert_eq!(innermost(&long), "copy", "{compiler} {letter}");
            // However long the input is, and however it is run.
            for (way, length) in [(Way::Command, 90), (Way::Inject, 60), (Way::Inject, 3000)] {
                let other = crash(&program, way, &letter.repeat(length));
                assert_eq!(other.keys, long.keys, "{compiler} {letter} {length}");
            }
            majors.insert(long.keys.major);
        }
        assert_eq!(majors.len(), OWNED.len(), "{compiler}");
        let stripped = Command::new("strip").arg(&program.path).status().unwrap();
        assert!(stripped.success());
        for (letter, _) in OWNED {
            let crash = crash(&program, Way::Inject, &letter.repeat(90));
            assert!(majors.contains(&crash.keys.major), "{compiler} {letter}");
        }
    }
}

#[test]
fn the_unwound_stack_is_the_one_that_the_report_shows() {
    for compiler in ["gcc", "clang"] {
        let Some(program) = build(compiler, &["-fsanitize=address"]) else {
            continue;
        };
        for (input, class, _) in ADDRESS
            .iter()
            .filter(|(_, class, _)| class.starts_with("asan"))
        {
            let crash = crash(&program, Way::Inject, input);
            let report = crash.details.report.as_ref().unwrap();
            let told: Vec<u64> = report
                .stack
                .iter()
                .filter(|frame| frame.base_name() == Some("bugs"))
                .map(|frame| frame.offset.unwrap().0)
                .collect();
            let first = crash.innermost_own().unwrap().offset;
            let begin = told.iter().position(|offset| *offset == first).unwrap();
            let own = crash.frames.iter().filter(|frame| frame.own);
            let own: Vec<u64> = own.map(|frame| frame.offset).collect();
            let count = own.len().min(2);
            assert_eq!(
                own[..count],
                told[begin..begin + count],
                "{compiler} {input} {class}"
            );
        }
    }
}

#[test]
fn undefined_behaviour_dies_and_two_checks_of_one_function_differ() {
    for compiler in ["gcc", "clang"] {
        for flags in [
            &["-fsanitize=undefined"][..],
            &["-fsanitize=undefined,address"],
        ] {
            let Some(program) = build(compiler, flags) else {
                continue;
            };
            let sum = crash(&program, Way::Inject, "a");
            assert_eq!(sum.class.0, "ubsan:signed-integer-overflow", "{compiler}");
            assert_eq!(sum.ended, Ended::Signal(libc::SIGABRT));
            assert_eq!(innermost(&sum), "sum");
            let one = crash(&program, Way::Inject, "b1");
            let other = crash(&program, Way::Command, "b2");
            assert_eq!(one.class, other.class);
            assert_ne!(one.keys.major, other.keys.major, "{compiler} {flags:?}");
        }
    }
}

#[test]
fn memory_sanitizer_is_understood() {
    let Some(program) = build("clang", &["-fsanitize=memory"]) else {
        return;
    };
    for way in [Way::Command, Way::Inject] {
        let crash = crash(&program, way, "i");
        assert_eq!(crash.class.0, "msan:use-of-uninitialized-value");
        assert_eq!(innermost(&crash), "run");
    }
}

#[test]
fn leaks_are_found_only_where_they_are_looked_for() {
    let Some(program) = build("gcc", &["-fsanitize=address"]) else {
        return;
    };
    assert!(matches!(
        examine(&program, Way::Inject, "l"),
        Verdict::Flaky { .. }
    ));
    let mut triager = Triager::of_target(&target(&program), Way::Inject).unwrap();
    assert!(!Settings::default().leaks);
    triager.look_for_leaks(true);
    let Verdict::Crash(leak) = triager.examine(b"l").unwrap() else {
        panic!("no leak")
    };
    assert_eq!(leak.class.0, "lsan:direct-leak");
    assert_eq!(leak.capture, "report");
    assert_eq!(leak.details.report.as_ref().unwrap().size, Some(77));
    assert_eq!(innermost(&leak), "lose");
    let message = leak.details.message.as_deref().unwrap();
    assert_eq!(
        message,
        "LeakSanitizer: detected memory leaks, direct leak of 77 bytes"
    );
    assert!(matches!(
        triager.examine(b"x").unwrap(),
        Verdict::Flaky { .. }
    ));
}

#[test]
fn a_libfuzzer_binary_has_the_same_keys_by_its_entry_and_by_its_main() {
    let Some(program) = build("clang", &["-DFUZZER", "-fsanitize=fuzzer,address"]) else {
        return;
    };
    for (input, class, function) in ADDRESS {
        let harness = crash(&program, Way::Harness, input);
        assert_eq!(harness.class.0, class, "{input}");
        assert_eq!(innermost(&harness), function, "{input}");
        for way in [Way::Command, Way::Inject] {
            let main = crash(&program, way, input);
            assert_eq!(
                (&main.class, main.keys),
                (&harness.class, harness.keys),
                "{input} by {way}"
            );
        }
    }
}
