//! The bugs are found by random input, as the fuzz studies found them.

use crate::running::ending;
use crate::stream::stream;

fn crashes(target: &str, length: usize, character: fn(u8) -> u8) -> usize {
    let inputs = (0..20).map(|seed| stream(seed, length).into_iter().map(character).collect());
    inputs
        .filter(|input: &Vec<u8>| ending(target, input).is_crash(None))
        .count()
}

fn printable(byte: u8) -> u8 {
    b' ' + byte % 95
}

#[test]
fn random_bytes_crash_all_but_flex() {
    for target in ["crtplot", "nroff", "troff", "ul", "units"] {
        assert!(crashes(target, 100_000, |byte| byte) > 0, "{target}");
    }
}

#[test]
fn random_printable_characters_crash_flex_and_the_formatters() {
    for target in ["crtplot", "flex", "nroff", "troff"] {
        assert!(crashes(target, 100_000, printable) > 0, "{target}");
    }
    assert_eq!(crashes("units", 100_000, printable), 0);
}
