//! Recursions that overflow the stack.
#![cfg(target_arch = "x86_64")]

mod explained;

use std::time::Duration;

use ddfuzz_explain::report::{CallValueRecord, RecursionRecord};
use ddfuzz_explain::{Explanation, explain, story};
use explained::{PLAIN, program, request, target};

fn line_of(text: &str) -> u64 {
    let source = include_str!("programs/recursion.c");
    source.lines().position(|line| line.contains(text)).unwrap() as u64 + 1
}

/// Explains an input of the program.
fn of(failing: &[u8], passing: &[u8]) -> Explanation {
    let program = target(&program("recursion.c", PLAIN), &[]);
    let mut asked = request(program, failing, Some(passing));
    // Each run that overflows the stack takes long, and mutants would make thousands.
    asked.budget = Duration::from_secs(16);
    explain(&asked).unwrap()
}

fn recursion(it: &Explanation) -> &RecursionRecord {
    let found = it.recursion.as_ref();
    found.unwrap_or_else(|| panic!("{}", story::text(it)))
}

fn value<'a>(it: &'a RecursionRecord, name: &str) -> &'a CallValueRecord {
    it.values.iter().find(|it| it.name == name).unwrap()
}

#[test]
fn the_write_that_closes_a_cycle_of_data_is_named_first() {
    let it = of(b"c5\n", b"c4\n");
    let found = recursion(&it);
    let site = value(found, "site");
    assert_eq!((site.period, site.since), (Some(3), Some(1)), "{site:?}");
    assert_eq!(site.values, ["\"www\"", "\"base\"", "\"site\""]);
    assert_eq!(found.parameter.as_deref(), Some("site"));
    assert_eq!(found.links, ["site->parent"; 3]);
    assert_eq!(found.is_ended, Some(false));
    let closed = found.closed.as_ref().unwrap();
    assert_eq!(
        (closed.place[0].line, closed.place[1].line),
        (
            Some(line_of("site->parent = parent;")),
            Some(line_of("place_under(&sites[2], &sites[0]);"))
        )
    );
    assert_eq!(
        (closed.holder.as_str(), closed.is_averted),
        ("\"base\"", true)
    );
    assert!(it.look_first[0].tested, "{:?}", it.look_first);
    assert_eq!(it.look_first[0].place[0].function, "place_under");
}

#[test]
fn a_number_that_misses_the_end_is_told_with_the_condition() {
    let it = of(b"n7\n", b"n6\n");
    let found = recursion(&it);
    let left = value(found, "left");
    assert_eq!((left.step, left.since), (Some(-3), Some(1)), "{left:?}");
    assert_eq!(left.values[..4], ["7", "4", "1", "-2"]);
    assert_eq!(value(found, "step").pattern, "same");
    assert!(
        found.parameter.is_none() && found.closed.is_none(),
        "{found:?}"
    );
    let condition = line_of("if (rest != 0)");
    assert_eq!(found.decided[0].line, Some(condition));
    let text = story::text(&it);
    assert!(text.contains("left falls by 3 (7, 4, 1, -2, "), "{text}");
}

#[test]
fn a_recursion_with_an_end_is_not_called_endless() {
    let it = of(&[b"d".to_vec(), vec![b'('; 200_000]].concat(), b"d((\n");
    let found = recursion(&it);
    assert_eq!(found.is_ended, Some(true), "{found:?}");
    let at = value(found, "parser->at");
    assert_eq!((at.step, at.since), (Some(1), Some(1)), "{at:?}");
    // There is nothing to be decided otherwise.
    assert!(found.decided.is_empty() && found.closed.is_none());
    let text = story::text(&it);
    assert!(
        text.contains("with a stack of 120 MiB the run does not fail (tested)"),
        "{text}"
    );
}

#[test]
fn a_position_that_no_longer_moves_is_told() {
    let it = of(b"p((a?\n", b"p((ab\n");
    let found = recursion(&it);
    let at = value(found, "parser->at");
    assert_eq!(
        (at.pattern.as_str(), at.since, at.values[0].as_str()),
        ("same", Some(4), "3"),
        "{found:?}"
    );
    assert_eq!(found.is_ended, Some(false));
}

#[test]
fn a_stack_that_is_full_without_a_recursion() {
    let it = of(b"b5\n", b"b4\n");
    assert!(it.recursion.is_none(), "{it:?}");
    let reason = it.refused.map(|it| it.reason).unwrap_or_default();
    assert_eq!(
        reason,
        "the stack overflows: big needs more of it than there is"
    );
}
