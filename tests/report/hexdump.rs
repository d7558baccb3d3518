//! Inputs as hex and text.

use ddfuzz::report::text::hex_line as line;

#[test]
fn short_inputs_are_shown_whole() {
    assert_eq!(line(b"", 16), "(empty)");
    assert_eq!(line(b"A~ \x7f\xff\0", 6), "41 7e 20 7f ff 00  |A~ ...|");
}

#[test]
fn of_long_inputs_the_beginning_and_the_count_of_the_rest_are_shown() {
    assert_eq!(line(&[b'A'; 5002], 2), "41 41  |AA| and 5,000 more");
    assert_eq!(line(b"AB", 0), "41  |A| and 1 more");
}
