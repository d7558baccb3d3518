//! The pass `multiples`: shortens long words of a text, such as hexadecimal or base64 data, whose
//! lengths must stay multiples of some number.

use std::ops::Range;

use crate::document::Structure;
use crate::passes::current_best::CurrentBest;
use crate::passes::list::ListSearch;
use crate::passes::units::Bytes;

/// Name, in logs, of the pass that shortens long words whose lengths must stay multiples of a
/// number.
const RULE: &str = "multiples";
/// Sizes, in bytes, of the groups of neighboring bytes of a word that are deleted, each group by
/// one test. Each size divides the first one.
const GROUPS: [usize; 6] = [24, 12, 8, 4, 3, 2];
/// The longest word of a text is shortened only if it has at least this many times the bytes of the
/// first of [`GROUPS`].
const LEAST_GROUPS: usize = 2;
/// The longest word of a text must have at least the text's size, in bytes, divided by this number;
/// otherwise no word of the text is shortened.
const SHARE: usize = 4;
/// Number of successive groups of bytes that turn out to be needed for the failure, after which the
/// deletion of groups of one size ends.
const NEEDED: usize = 8;

/// Shortens the longest word of a text: tests the text without the second half of the word and, if
/// that does not fail, without the first half, both rounded to multiples of the first of
/// [`GROUPS`]. If one of these texts fails, deletes groups of the word's bytes, of each size in
/// [`GROUPS`]. Returns true if any byte was deleted. Does nothing if `known` does not say that the
/// input is a text, or if the word is too short.
pub(super) async fn multiples(work: &mut CurrentBest, known: &Structure) -> bool {
    if !matches!(known, Structure::Text | Structure::Syntax(_)) || !work.is_text() {
        return false;
    }
    let text = work.text();
    let word = longest_word(&text);
    let count = word.len() / GROUPS[0];
    if count < LEAST_GROUPS || word.len() * SHARE < text.len() {
        return false;
    }
    let before = work.reductions();
    let mut groups = Bytes::within(RULE, whole(&word, GROUPS[0]), GROUPS[0]);
    let mut list = ListSearch::new(work, &mut groups);
    let half = count / 2;
    if list.delete(half..count).await.is_none() {
        list.delete(0..half).await;
    }
    if work.reductions() == before {
        return false;
    }
    for size in GROUPS {
        let word = longest_word(&work.text());
        let mut groups = Bytes::within(RULE, whole(&word, size), size);
        let mut list = ListSearch::new(work, &mut groups).stop_after(NEEDED);
        list.reduce().await;
    }
    true
}

/// Returns the range `word` without the bytes at its end that do not fill a group of `size` bytes.
fn whole(word: &Range<usize>, size: usize) -> Range<usize> {
    word.start..word.start + word.len() / size * size
}

/// Returns the range of the longest sequence of letters, digits and the signs of base64 in a text;
/// an empty range if there is none.
fn longest_word(text: &[u8]) -> Range<usize> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte);
    let (mut longest, mut start) = (0..0, 0);
    for end in 0..=text.len() {
        if text.get(end).is_some_and(|byte| is_part(*byte)) {
            continue;
        }
        if end - start > longest.len() {
            longest = start..end;
        }
        start = end + 1;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::longest_word;
    use crate::{ExtraTests, Full, Outcome, Search, Structure};

    fn reduced(input: &[u8], fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let mut search = Full::structured(input, Structure::Text);
        search.allow_extra_tests(ExtraTests::Few);
        let mut best = input.to_vec();
        while let Some(candidate) = search.next() {
            let mut text = Vec::new();
            candidate.write_into(input, &best, &mut text);
            let fails = fails(&text);
            search.tell(if fails { Outcome::Fail } else { Outcome::Pass });
            best = if fails { text } else { best };
        }
        best
    }

    #[test]
    fn words_whose_length_is_a_multiple_become_short() {
        let digits: Vec<u8> = (0..600)
            .map(|at| b"0123456789abcdef"[at * 7 % 16])
            .collect();
        for multiple in [2, 3, 4, 8] {
            let is_data = |text: &[u8]| {
                text.len().is_multiple_of(multiple)
                    && text.len() >= 4
                    && text.iter().all(u8::is_ascii_hexdigit)
            };
            let best = reduced(&digits, is_data);
            assert!(best.len() <= 8, "{multiple}: {} bytes", best.len());
            // What is needed stands in the middle, and the data in quotes.
            let quoted = [
                b"{\"data\":\"",
                &digits[..312],
                b"ff00ff00ff00ff00ff00ff00",
                &digits[..],
                b"\"}",
            ];
            let inside = |text: &[u8]| {
                let data = text
                    .strip_prefix(b"{\"data\":\"")
                    .and_then(|rest| rest.strip_suffix(b"\"}"));
                data.is_some_and(|data| {
                    is_data(data) && data.windows(4).any(|part| part == b"ff00")
                })
            };
            let best = reduced(&quoted.concat(), inside);
            assert!(best.len() <= 11 + 24, "{multiple}: {} bytes", best.len());
        }
    }

    #[test]
    fn the_longest_word_is_found() {
        assert_eq!(longest_word(b"a bcd+= ef"), 2..7);
        assert_eq!(longest_word(b"a bcd"), 2..5);
        assert_eq!(longest_word(b"..."), 0..0);
        assert_eq!(longest_word(b""), 0..0);
    }
}
