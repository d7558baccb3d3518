//! What a program says when it aborts.

use ddfuzz::triage::messages::{assertion, last_line, without_numbers};

#[test]
fn the_text_of_an_assertion_is_found_in_what_glibc_says() {
    let said = "prog: file.c:12: int f(int): Assertion `p->n < 16 && ok' failed.\nAborted\n";
    assert_eq!(assertion(said).as_deref(), Some("p->n <  && ok"));
    assert_eq!(assertion("nothing of the kind"), None);
}

#[test]
fn the_last_assertion_counts() {
    let said = "a: Assertion `first' failed.\nb: Assertion `second' failed.\n";
    assert_eq!(assertion(said).as_deref(), Some("second"));
}

#[test]
fn a_text_that_was_cut_off_is_taken_as_far_as_it_goes() {
    assert_eq!(assertion("a: Assertion `x == y").as_deref(), Some("x == y"));
}

#[test]
fn the_last_line_is_the_last_that_says_something() {
    assert_eq!(
        last_line("one\ndouble free 0x7f12 in 3\n\n").as_deref(),
        Some("double free  in ")
    );
    assert_eq!(last_line("\n \n"), None);
}

#[test]
fn numbers_are_removed_and_words_stay() {
    assert_eq!(
        without_numbers("at 0xdeadBEEF: 12 of x2 ünits"),
        "at :  of x ünits"
    );
    assert_eq!(without_numbers("0x and 0xg"), "x and xg");
}
