//! Deeply nested texts, which overflow a stack.

use ddfuzz::delta::Outcome;

use super::bytes::fails_if;
use super::count::Case;

/// A pattern again and again; a word that occurs so often overflows.
pub fn repeated(
    pattern: &[u8],
    times: usize,
    word: &'static [u8],
    depth: usize,
    tail: &[u8],
    close: &[u8],
) -> Case {
    let mut input = pattern.repeat(times);
    input.extend_from_slice(tail);
    input.extend(close.repeat(times));
    Case::new(input, move |text| {
        let mut found = 0;
        let mut at = 0;
        while at + word.len() <= text.len() {
            match text[at..].starts_with(word) {
                true => {
                    found += 1;
                    at += word.len();
                }
                false => at += 1,
            }
        }
        fails_if(found >= depth)
    })
}

/// Balanced brackets only, or it is refused; so deep that the stack overflows.
pub fn balanced(open: &[u8], times: usize, inner: &[u8], close: &[u8], depth: usize) -> Case {
    let mut input = open.repeat(times);
    input.extend_from_slice(inner);
    input.extend(close.repeat(times));
    Case::new(input, move |text| {
        let mut now = 0usize;
        let mut deepest = 0;
        for byte in text {
            match byte {
                b'(' => now += 1,
                b')' if now == 0 => return Outcome::Unresolved,
                b')' => now -= 1,
                _ => {}
            }
            deepest = deepest.max(now);
        }
        match now {
            0 => fails_if(deepest >= depth),
            _ => Outcome::Unresolved,
        }
    })
}
