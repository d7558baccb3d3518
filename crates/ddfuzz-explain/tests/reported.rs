//! Programs that AddressSanitizer ends are explained by the access that it reports.
#![cfg(target_arch = "x86_64")]

mod explained;

use ddfuzz_explain::report::{AccessRecord, FrameRecord};
use ddfuzz_explain::{Explanation, story};
use explained::{confirmed, explained, program_by};

/// The line of the test program that has this text.
fn line_of(text: &str) -> u64 {
    let path = format!("{}/tests/programs/reported.c", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path).unwrap();
    source.lines().position(|it| it.contains(text)).unwrap() as u64 + 1
}

fn by(compiler: &str, failing: &str, passing: &str) -> Explanation {
    let flags = ["-g", "-O0", "-fsanitize=address"];
    let program = program_by(compiler, "reported.c", &flags);
    let it = explained(&program, failing.as_bytes(), Some(passing.as_bytes()));
    assert_eq!(it.refused, None);
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
