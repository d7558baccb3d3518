//! Programs that AddressSanitizer ends are explained by the access that it reports.
#![cfg(target_arch = "x86_64")]

mod explained;

use ddfuzz_explain::report::{AccessRecord, FrameRecord};
use ddfuzz_explain::{Explanation, story};
use explained::{confirmed, explained, program_by};

fn source_of(name: &str) -> String {
    let path = format!("{}/tests/programs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// The line of a test program that has this text.
fn line_in(name: &str, text: &str) -> u64 {
    let source = source_of(name);
    source.lines().position(|it| it.contains(text)).unwrap() as u64 + 1
}

fn line_of(text: &str) -> u64 {
    line_in("reported.c", text)
}

/// Explains how a program fails that a compiler has compiled with AddressSanitizer.
fn reported_by(compiler: &str, name: &str, failing: &str, passing: &str) -> Explanation {
    let flags = ["-g", "-O0", "-fsanitize=address"];
    let program = program_by(compiler, name, &flags);
    let it = explained(&program, failing.as_bytes(), Some(passing.as_bytes()));
    assert_eq!(it.refused, None);
    it
}

fn by(compiler: &str, failing: &str, passing: &str) -> Explanation {
    let it = reported_by(compiler, "reported.c", failing, passing);
    assert!(!confirmed(&it).is_empty(), "{}", story::text(&it));
    it
}

/// The access of an explanation, which is made by the statement that has the text `statement`.
fn access<'a>(it: &'a Explanation, kind: &str, statement: &str) -> &'a AccessRecord {
    let access = it.access.as_ref().expect("it is reported");
    assert_eq!(access.kind, kind);
    assert_eq!(it.crash.class, Some(format!("asan:{kind}")));
    assert_eq!(access.place[0].line, Some(line_of(statement)));
    access
}

/// Whether the statement that has this text is one at which to look first.
fn is_named(it: &Explanation, statement: &str) -> bool {
    let line = Some(line_of(statement));
    it.look_first.iter().any(|it| it.place[0].line == line)
}

fn lines(frames: &[FrameRecord]) -> Vec<u64> {
    frames.iter().filter_map(|it| it.line).collect()
}

#[test]
fn a_write_behind_a_heap_block_is_told_with_its_index_and_its_allocation() {
    for compiler in ["gcc", "clang"] {
        let it = by(compiler, "ha\nhabcdefg\n", "ha\nhabcdef\n");
        let text = story::text(&it);
        let access = access(&it, "heap-buffer-overflow", "/* heap */");
        assert!(access.writes && access.bytes == 1, "{text}");
        assert_eq!(access.name.as_deref(), Some("word.text[8]"), "{text}");
        assert_eq!((access.element, access.elements), (Some(8), 8));
        assert_eq!(access.index.as_deref(), Some("i"), "{text}");
        assert_eq!((access.object_bytes, access.distance), (8, 8));
        assert_eq!(lines(&access.allocated)[0], line_of("malloc(length + 1)"));
        let told = "writes 1 byte at word.text[8], behind the end of a heap block of 8 bytes with 8 \
                    elements, allocated by copy_word at reported.c:";
        assert!(text.contains(told), "{text}");
        assert!(
            is_named(&it, "/* too far */") || is_named(&it, "length > 6"),
            "{text}"
        );
        let block = it.overflow.as_ref().expect("the block is known");
        assert!(!block.reads && block.bytes == 8);
    }
}

#[test]
fn an_access_beside_a_variable_is_told_by_its_element() {
    let it = by("gcc", "s123456789\n", "s12345678\n");
    let text = story::text(&it);
    let written = access(&it, "stack-buffer-overflow", "/* stack */");
    assert!(written.writes, "{text}");
    assert_eq!(written.name.as_deref(), Some("name[8]"), "{text}");
    assert_eq!(written.index.as_deref(), Some("n"), "{text}");
    assert!(is_named(&it, "/* stack */"), "{text}");
    let it = by("gcc", "gab\ngab\n", "gab\nga\n");
    let text = story::text(&it);
    let read = access(&it, "global-buffer-overflow", "/* global */");
    assert!(!read.writes && read.region.as_deref() == Some("global"));
    assert_eq!(read.name.as_deref(), Some("costs[4]"), "{text}");
    assert_eq!(read.index.as_deref(), Some("level"), "{text}");
    assert!(is_named(&it, "/* not bounded */"), "{text}");
}

#[test]
fn a_block_that_was_freed_is_told_with_the_call_that_freed_it() {
    let it = by("gcc", "uabc\n", "uab\n");
    let text = story::text(&it);
    let used = access(&it, "heap-use-after-free", "/* freed */");
    assert_eq!(used.name.as_deref(), Some("last_seen->done"), "{text}");
    assert_eq!(lines(&used.allocated)[0], line_of("calloc(1"));
    let free = line_of("/* it may be the last one seen */");
    assert_eq!(lines(&it.freed_early)[0], free, "{text}");
    assert_eq!(it.look_first[0].place[0].line, Some(free), "{text}");
    assert!(it.look_first[0].tested, "{text}");
    let it = by("gcc", "dabcd\n", "dabc\n");
    let text = story::text(&it);
    let again = access(&it, "double-free", "/* again */");
    assert_eq!(again.bytes, 0);
    let free = line_of("/* too early */");
    assert_eq!(it.look_first[0].place[0].line, Some(free), "{text}");
}

#[test]
fn a_block_is_told_to_be_freed_whatever_is_freed_with_it() {
    for compiler in ["gcc", "clang"] {
        // The text of the note is freed by the same function.
        let it = reported_by(compiler, "freed.c", "+a\n-\n?\n", "+a\n.\n?\n");
        let text = story::text(&it);
        let free = line_in("freed.c", "/* the note */");
        assert_eq!(lines(&it.freed_early)[0], free, "{text}");
        assert_eq!(it.freed_together, 2, "{text}");
        assert_eq!(it.look_first[0].place[0].line, Some(free), "{text}");
        assert!(it.look_first[0].tested && text.contains("and a call of free next to it"));
    }
    let failing = "+a\n+b\n+c\n+d\n+e\n=\n?\n";
    let it = reported_by("gcc", "freed.c", failing, &failing.replace('=', "."));
    let text = story::text(&it);
    let free = line_in("freed.c", "/* each note */");
    assert_eq!(lines(&it.freed_early)[0], free, "{text}");
}

#[test]
fn a_block_that_realloc_frees_is_told_with_that_call() {
    for compiler in ["gcc", "clang"] {
        let it = reported_by(compiler, "freed.c", "#1\n*\n#2\n!\n", "#1\n*\n.2\n!\n");
        let text = story::text(&it);
        assert!(it.freed_early.is_empty(), "{text}");
        let moved = line_in("freed.c", "/* moved */");
        assert_eq!(lines(&it.moved_early)[0], moved, "{text}");
        assert_eq!(it.freed_together, 1, "{text}");
        assert!(text.contains("If the old block stays when it is moved by realloc in add_number"));
        let named = |line| {
            it.look_first
                .iter()
                .any(|it| it.place[0].line == Some(line) && it.tested)
        };
        assert!(
            named(moved) && named(line_in("freed.c", "/* read */")),
            "{text}"
        );
    }
}

/// Adds all lines of the frames in a JSON value to `found`.
fn add_lines(value: &serde_json::Value, found: &mut Vec<u64>) {
    match value {
        serde_json::Value::Object(all) => {
            found.extend(all.get("line").and_then(serde_json::Value::as_u64));
            all.values().for_each(|it| add_lines(it, found));
        }
        serde_json::Value::Array(all) => all.iter().for_each(|it| add_lines(it, found)),
        _ => {}
    }
}

#[test]
fn nothing_is_written_by_the_brace_of_a_function() {
    let failing = "ann\n#\nmaximilian-alexander\n";
    let passing = "ann\n#-maximilian-alexander\n";
    let source = source_of("greeted.c");
    let braces: Vec<u64> = (1..)
        .zip(source.lines())
        .filter(|it| it.1 == "{")
        .map(|it| it.0)
        .collect();
    for compiler in ["gcc", "clang"] {
        let it = reported_by(compiler, "greeted.c", failing, passing);
        let text = story::text(&it);
        let access = it.access.as_ref().expect("it is reported");
        assert_eq!(access.name.as_deref(), Some("copy[16]"), "{text}");
        let mut named = Vec::new();
        for part in [
            serde_json::to_value(&it.look_first),
            serde_json::to_value(&it.origin),
            serde_json::to_value(&it.depends),
            serde_json::to_value(&it.switched),
        ] {
            add_lines(&part.unwrap(), &mut named);
        }
        assert!(
            !named.is_empty() && !named.iter().any(|it| braces.contains(it)),
            "{text}"
        );
        // Only the byte that ends the comment differs, in the buffer of the C library at first.
        let first = &it.chain[0];
        assert_eq!(first.input_offset, Some(5), "{text}");
        assert!(
            text.contains("byte 5 (0x5) of the input = '\\n' instead of '-'"),
            "{text}"
        );
        let values = |it: &ddfuzz_explain::report::CriticalRecord| it.values.clone();
        let values: Vec<String> = it.critical.iter().flat_map(values).collect();
        assert!(
            values.iter().any(|it| it.starts_with("at is ")),
            "{values:?} {text}"
        );
    }
}

#[test]
fn a_check_of_undefined_behavior_is_explained_by_the_values_that_it_checks() {
    let both = "-fsanitize=address,undefined";
    let builds = [
        ("gcc", UNDEFINED, &CHECKED[..]),
        ("clang", UNDEFINED, &CHECKED[..1]),
        ("clang", both, &CHECKED[1..2]),
    ];
    for (compiler, sanitizer, all) in builds {
        let flags = ["-g", "-O0", sanitizer, "-fno-sanitize-recover=undefined"];
        let program = program_by(compiler, "checked.c", &flags);
        for (failing, passing, statement, message) in all.iter().copied() {
            let it = explained(&program, failing.as_bytes(), Some(passing.as_bytes()));
            let text = story::text(&it);
            assert_eq!(it.refused, None, "{text}");
            assert_eq!(
                it.crash.line,
                Some(line_in("checked.c", statement)),
                "{text}"
            );
            let class = it.crash.class.as_ref().expect("it crashes");
            assert!(class.starts_with("ubsan:"), "{text}");
            assert!(text.contains("does what a check forbids: "), "{text}");
            assert!(text.contains(message), "{text}");
            let sure = confirmed(&it);
            let known = ["weight", "bucket", "bit"];
            assert!(
                sure.iter().any(|it| known.contains(&it.0)),
                "{sure:?} {text}"
            );
            // The check itself is none of the program's conditions.
            let own = Some(line_in("checked.c", statement));
            let otherwise = it.switched.iter().map(|it| it.condition.line);
            assert!(otherwise.into_iter().all(|it| it != own), "{text}");
        }
    }
    // It is said after a report also where the program could go on.
    let flags = ["-g", "-O0", UNDEFINED];
    let program = program_by("gcc", "checked.c", &flags);
    let (failing, passing, ..) = CHECKED[1];
    let it = explained(&program, failing.as_bytes(), Some(passing.as_bytes()));
    assert_eq!(
        (it.refused, it.crash.class.as_deref()),
        (None, Some("ubsan:bounds"))
    );
}

/// The flag for checks of UndefinedBehaviorSanitizer.
const UNDEFINED: &str = "-fsanitize=undefined";

/// A failing and a passing input, the statement that fails, and what is said of it.
const CHECKED: [(&str, &str, &str, &str); 3] = [
    (
        "5\nw 100000\n7\n40000\n",
        "5\nw 100\n7\n40000\n",
        "/* too large */",
        "signed integer overflow: 40000 * 100000",
    ),
    (
        "5\nb 3\nb 40\n",
        "5\nb 3\nb 4\n",
        "/* not there */",
        "index 40 out of bounds",
    ),
    (
        "5\ns 3\ns 40\n",
        "5\ns 3\ns 4\n",
        "/* no such bit */",
        "shift exponent 40 is too large",
    ),
];
