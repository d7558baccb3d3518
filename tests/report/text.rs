//! Hostile text.

use std::path::Path;

use ddfuzz::report::text::{cut, printable, shell_word};

#[test]
fn what_could_harm_a_terminal_is_escaped_and_all_else_kept() {
    assert_eq!(printable("größe → 日本"), "größe → 日本");
    assert_eq!(
        printable("a\tb\x1b\u{9b}\u{202e}"),
        "a\\tb\\u{1b}\\u{9b}\\u{202e}"
    );
}

#[test]
fn long_text_is_cut_to_its_width() {
    assert_eq!(cut("abc", 3), "abc");
    assert_eq!(cut("äbcd", 3), "äb…");
    assert_eq!(cut("abc", 1), "…");
    assert_eq!(cut("abc", 0), "");
}

#[test]
fn a_path_is_one_word_of_a_command() {
    assert_eq!(shell_word(Path::new("/a/b-c.sh")), "/a/b-c.sh");
    assert_eq!(shell_word(Path::new("/a b/$c")), "'/a b/$c'");
    assert_eq!(shell_word(Path::new("it's")), r"'it'\''s'");
    assert_eq!(shell_word(Path::new("")), "''");
}
