//! What explanations say beside the chain: heap blocks that are too short or are freed too early,
//! where runs part, and functions that return a wrong value.

mod explained;

use ddfuzz_explain::report::{FrameRecord, LinkRecord, SuspectRecord};
use ddfuzz_explain::{Explanation, Pattern, explain, story};
use explained::{PLAIN, explained, program, request, target};

const FLAGS: &[&str] = &["-g", "-Og"];

fn explained_memory(failing: &str, passing: &str) -> Explanation {
    let passing = Some(passing.as_bytes());
    explained(&program("memory.c", FLAGS), failing.as_bytes(), passing)
}

/// Function and text of the line of a place in the test program.
fn told(place: &FrameRecord) -> (String, String) {
    let text = include_str!("programs/memory.c");
    let line = place.line.unwrap() as usize;
    let line = text.lines().nth(line - 1).unwrap().trim().to_owned();
    (place.function.clone(), line)
}

fn pair(function: &str, line: &str) -> (String, String) {
    (function.to_owned(), line.to_owned())
}

#[test]
fn a_heap_block_that_is_too_short_is_named_with_who_wrote_behind_it() {
    let long = "abcdefghijklmnopqrstuvwxyz0123456789";
    let lines = |first| format!("p one\np {first}{long}\np two\nl\n");
    let it = explained_memory(&lines('L'), &lines('l'));
    let found = it.overflow.as_ref().unwrap();
    assert_eq!(found.bytes, 24);
    assert_eq!(told(&found.writer), pair("copied", "strcpy(copy, text);"));
    let calls: Vec<_> = found.allocated.iter().map(told).collect();
    let malloc = "char *copy = malloc(is_long ? 24 : length + 1);";
    assert_eq!(calls[0], pair("copied", malloc));
    assert_eq!(calls[1].0, "put");
    assert!(found.is_averted);
    // A constant comes from nowhere.
    assert_eq!(found.size, None);
    assert!(it.freed_early.is_empty());
    let text = story::text(&it);
    assert!(
        text.contains("writes behind the heap block of 24 bytes"),
        "{text}"
    );
    // A crash without damage to the heap has no such block.
    let other = explained_memory("l\n", "p a\nl\n");
    assert!(it.moved_early.is_empty() && other.moved_early.is_empty());
    assert_eq!((other.overflow, other.freed_early), (None, Vec::new()));
}

#[test]
fn a_write_behind_a_block_that_looks_like_a_size_is_found() {
    let program = program("tagged.c", FLAGS);
    let it = explained(&program, b"1 7\n", Some(b"1 6\n"));
    let text = story::text(&it);
    let found = it.overflow.as_ref().unwrap_or_else(|| panic!("{text}"));
    assert_eq!(found.bytes, 168, "{text}");
    assert!(found.writer.function == "set" && !found.reads, "{text}");
}

#[test]
fn the_size_of_a_block_that_is_too_short_is_followed_to_who_computed_it() {
    for flags in [PLAIN, FLAGS] {
        let program = program("short.c", flags);
        let it = explained(&program, b"4 9\n", Some(b"4 4\n"));
        let text = story::text(&it);
        let block = it.overflow.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert_eq!(
            (block.bytes, &*block.writer.function),
            (128, "sum"),
            "{text}"
        );
        let size = block.size.as_ref().unwrap_or_else(|| panic!("{text}"));
        let functions: Vec<_> = size.written.iter().map(|it| &*it.function).collect();
        assert!(
            ["cells", "new_table", "sum"].contains(&functions[0]),
            "{text}"
        );
        assert!(text.contains("Its size comes from"), "{text}");
        let mut looked_at = it.look_first.iter();
        let writes = |it: &SuspectRecord| it.tested && it.place[0].function == "sum";
        assert!(block.is_averted && looked_at.any(writes), "{text}");
    }
}

#[test]
fn a_block_that_is_freed_too_early_is_named_by_the_call() {
    let it = explained_memory("p one\nd\nl\n", "p one\np a\nl\n");
    let calls: Vec<_> = it.freed_early.iter().map(told).collect();
    assert_eq!(calls[0].0, "drop");
    assert!(calls[0].1.starts_with("free(old"), "{calls:?}");
    assert_eq!(calls[1], pair("main", "drop();"));
    assert!(it.overflow.is_none());
    let text = story::text(&it);
    assert!(text.contains("Without the free by drop"), "{text}");
}

#[test]
fn a_free_that_fails_itself_is_not_said_to_be_too_early() {
    let it = explained(&program("inside.c", FLAGS), b"a\n+b\n", Some(b"a\nab\n"));
    let text = story::text(&it);
    assert!(it.freed_early.is_empty(), "{text}");
    assert!(!text.contains("Without the free by"), "{text}");
    assert_eq!(it.crash.class.as_deref(), Some("abrt"), "{text}");
}

#[test]
fn a_block_that_is_allocated_again_is_not_said_to_be_used_after_its_free() {
    let it = explained(&program("reused.c", FLAGS), b"f1\n", Some(b"e1\n"));
    let text = story::text(&it);
    assert_eq!(it.freed_early.len(), 1, "{text}");
    assert!(text.contains("Without the free by main"), "{text}");
    assert!(!text.contains("It is used after that by"), "{text}");
}

fn wrong(failing: &str, passing: &str, pattern: &str) -> Explanation {
    let target = target(&program("memory.c", FLAGS), &[]);
    let mut request = request(target, failing.as_bytes(), Some(passing.as_bytes()));
    request.wrong = Some(Pattern::new(pattern).unwrap());
    explain(&request).unwrap()
}

fn link<'a>(it: &'a Explanation, variable: &str) -> &'a LinkRecord {
    let found = it.chain.iter().find(|link| link.variable == variable);
    found.unwrap_or_else(|| panic!("{:?}", it.chain))
}

#[test]
fn a_returned_value_is_followed_to_where_it_was_computed() {
    let it = wrong("x 1b\n", "x 14\n", "value 28");
    let value = link(&it, "value");
    let returned = told(value.returned.as_ref().unwrap());
    assert_eq!(returned, pair("digit", "return c - 'a' + 11;"));
    // What no call has returned.
    assert!(link(&it, "c").returned.is_none());
}

#[test]
fn the_condition_at_which_runs_part_is_named() {
    let it = wrong("x d0\n", "x 10\n", "large");
    let printed = it.chain.last().unwrap();
    let parted = printed.parted.as_ref().or(it.parted.as_ref()).unwrap();
    assert_eq!(told(parted), pair("main", "if (value > 200)"));
    let crash = explained_memory("l\n", "x 10\n");
    let parted = told(crash.parted.as_ref().unwrap());
    assert_eq!(parted.0, "main");
    assert!(parted.1.contains("line[0] == "), "{parted:?}");
}

#[test]
fn a_block_that_moves_while_a_pointer_to_it_is_kept() {
    for flags in [PLAIN, FLAGS] {
        let program = program("tally.c", flags);
        let it = explained(&program, b"a b c d e ^\n", Some(b"a b c d d ^\n"));
        let text = story::text(&it);
        let moved: Vec<&str> = it.moved_early.iter().map(|it| &*it.function).collect();
        assert_eq!(moved, ["add", "main"], "{text}");
        assert!(text.contains("Without the move of a block by realloc in add at tally.c:"));
    }
}

#[test]
fn a_block_that_moves_and_is_not_used_is_not_said_to_be() {
    let it = explained(&program("moved.c", PLAIN), b"XY\n", Some(b"aY\n"));
    let text = story::text(&it);
    // Its memory is used again before it is set: that is told, and not the move.
    let unset = it.unset.as_ref().unwrap_or_else(|| panic!("{text}"));
    assert_eq!(unset.variable, "small[500]", "{text}");
    assert!(text.contains("small[500] is read at moved.c:17, and nothing has set it"));
    assert!(
        it.moved_early.is_empty() && it.used_late.is_empty(),
        "{text}"
    );
    assert!(!text.contains("It is used after that by"), "{text}");
}

/// Explains an input of the program whose fields are overrun, built with these flags; `wrong` is
/// the pattern of a wrong output, empty for a crash.
fn explained_overrun(flags: &[&str], wrong: &str, failing: &str, passing: &str) -> Explanation {
    let target = target(&program("overrun.c", flags), &[]);
    let mut asked = request(target, failing.as_bytes(), Some(passing.as_bytes()));
    asked.wrong = (!wrong.is_empty()).then(|| Pattern::new(wrong).unwrap());
    explain(&asked).unwrap()
}

/// The text of the line of the first statement at which to look, and whether it is tested.
fn first_line(it: &Explanation) -> (String, bool) {
    let text = include_str!("programs/overrun.c");
    let first = &it.look_first[0];
    let line = first.place[0].line.unwrap() as usize;
    let line = text.lines().nth(line - 1).unwrap().trim().to_owned();
    (line, first.tested)
}

#[test]
fn a_write_that_reaches_into_another_field_is_named_first() {
    for flags in [PLAIN, FLAGS] {
        let it = explained_overrun(flags, "", "nbox\nndodecagonalprism\n", "nbox\nncube\n");
        let text = story::text(&it);
        let found = it.overrun.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert_eq!((found.bytes, found.element), (8, None), "{text}");
        assert!(found.variable.ends_with("name"), "{text}");
        assert!(found.into[0].ends_with("area"), "{text}");
        let expected = ("strcpy(it->name, name);".to_owned(), true);
        assert_eq!(first_line(&it), expected, "{text}");
        assert!(
            text.contains("With this undone, the run does not fail."),
            "{text}"
        );
    }
}

#[test]
fn an_element_that_an_array_does_not_have_is_named_first() {
    for flags in [PLAIN, FLAGS] {
        let (failing, passing) = ("sa,bb\nsa,b,c,d,e,f,gggg\n", "sa,bb\nsa,b,c,d,e,f\n");
        let it = explained_overrun(flags, ", -[0-9]+ left", failing, passing);
        let text = story::text(&it);
        let found = it.overrun.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert_eq!(found.variable, "table.lengths", "{text}");
        assert_eq!(
            (found.bytes, &*found.into),
            (24, &["table.left".to_owned()][..])
        );
        let expected = ("table.lengths[n++] = length;".to_owned(), true);
        assert_eq!(first_line(&it), expected, "{text}");
        // The zero behind a text, in a record that a variable points to.
        let (failing, passing) = ("fabc\nflongname\nfx\n", "fabc\nflongnam\nfx\n");
        let it = explained_overrun(flags, "(?m)^longname 0$", failing, passing);
        let text = story::text(&it);
        let found = it.overrun.as_ref().unwrap_or_else(|| panic!("{text}"));
        assert_eq!((found.element, found.elements), (Some(8), 8), "{text}");
        assert!(found.into[0].ends_with("flags"), "{text}");
        let expected = ("e->key[length] = 0;".to_owned(), true);
        assert_eq!(first_line(&it), expected, "{text}");
    }
}

#[test]
fn fields_that_are_written_at_once_as_is_meant_are_no_overrun() {
    for flags in [PLAIN, FLAGS] {
        let it = explained_overrun(flags, "", "dMAGI0000\n", "dMAGI1000\n");
        assert_eq!(it.overrun, None, "{}", story::text(&it));
    }
}
