//! Inputs that differ from a given one in a word or a line, as if a user had changed it. Pure.

use std::collections::HashSet;

use crate::passing::SimilarInput;

/// Largest numbers of inputs that are made from the passing input (first), and from the failing
/// one.
const MADE: [usize; 2] = [48, 24];

/// A part of a text: a word, or what is between two words.
#[derive(Clone, Copy)]
struct Part<'a> {
    bytes: &'a [u8],
    is_word: bool,
}

/// Returns variants of the passing and of the failing input in each of which one word or line is
/// changed: it is written twice, or exchanged with the next one, or (words only) replaced by
/// another word like it, a number by a number.
pub(crate) fn with_other_words(failing: &[u8], passing: &[u8]) -> Vec<SimilarInput> {
    let mut known = HashSet::from([failing.to_vec(), passing.to_vec()]);
    let mut found = Vec::new();
    for (of, input) in [passing, failing].into_iter().enumerate() {
        for bytes in kinds(input, MADE[of]).into_iter().flatten() {
            if known.insert(bytes.clone()) {
                let is_of_failing = of == 1;
                found.push(SimilarInput {
                    bytes,
                    is_of_failing,
                });
            }
        }
    }
    found
}

/// Returns at most `most` variants of `input` in five lists, by what is done: a word is doubled,
/// replaced by the next word like it, or exchanged with the next word; a line is doubled, or
/// exchanged with the next line. Each list has about the same length, and its changes are spread
/// over the whole input.
fn kinds(input: &[u8], most: usize) -> [Vec<Vec<u8>>; 5] {
    let all = parts(input);
    let words: Vec<usize> = (0..all.len()).filter(|at| all[*at].is_word).collect();
    let lines: Vec<&[u8]> = ddfuzz_delta::lines(input);
    let each = (most / 5).max(1);
    let some = |count: usize| (0..count).step_by(count.div_ceil(each).max(1));
    let word = |index: usize| all[words[index]].bytes;
    let with = |changes: &[(usize, &[u8])]| {
        let part = |at: usize| {
            let change = changes.iter().find(|it| words[it.0] == at);
            change.map_or(all[at].bytes, |it| it.1)
        };
        (0..all.len()).map(part).collect::<Vec<_>>().concat()
    };
    let doubled = some(words.len()).map(|at| with(&[(at, &[word(at), b" ", word(at)].concat())]));
    let is_number = |at: usize| word(at)[0].is_ascii_digit();
    let replaced = some(words.len()).filter_map(|at| {
        let is_like =
            |other: &usize| is_number(*other) == is_number(at) && word(*other) != word(at);
        let other = (at + 1..words.len()).chain(0..at).find(is_like)?;
        Some(with(&[(at, word(other))]))
    });
    let pairs = words.len().saturating_sub(1);
    let exchanged = some(pairs).map(|at| with(&[(at, word(at + 1)), (at + 1, word(at))]));
    let twice = some(lines.len()).map(|at| {
        let (before, behind) = lines.split_at(at);
        [before, &lines[at..=at], behind].concat().concat()
    });
    let swapped = some(lines.len().saturating_sub(1)).map(|at| {
        let mut order = lines.clone();
        order.swap(at, at + 1);
        order.concat()
    });
    [
        doubled.collect(),
        replaced.collect(),
        exchanged.collect(),
        twice.collect(),
        swapped.collect(),
    ]
}

/// Splits a text into words (letters, digits, `_` and, within numbers, decimal points) and the text
/// between them.
fn parts(text: &[u8]) -> Vec<Part<'_>> {
    let is_word = |at: usize| {
        let byte = text[at];
        let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
        let is_point = byte == b'.' && is_digit(at + 1) && at > 0 && is_digit(at - 1);
        byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 || is_point
    };
    let mut found: Vec<Part<'_>> = Vec::new();
    let mut start = 0;
    for at in 1..=text.len() {
        if at == text.len() || is_word(at) != is_word(start) {
            let (bytes, is_word) = (&text[start..at], is_word(start));
            found.push(Part { bytes, is_word });
            start = at;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_lines_are_doubled_exchanged_and_replaced() {
        let [doubled, replaced, exchanged, twice, swapped] = kinds(b"ab 1.5\ncd 2\n", 40);
        assert_eq!(doubled[1], b"ab 1.5 1.5\ncd 2\n");
        assert_eq!(
            replaced[..2],
            [b"cd 1.5\ncd 2\n".to_vec(), b"ab 2\ncd 2\n".to_vec()]
        );
        assert_eq!(exchanged[0], b"1.5 ab\ncd 2\n");
        assert_eq!(twice[1], b"ab 1.5\ncd 2\ncd 2\n");
        assert_eq!(swapped, [b"cd 2\nab 1.5\n"]);
        assert!(kinds(b"", 40).iter().all(Vec::is_empty));
    }

    #[test]
    fn inputs_with_other_words_are_few_and_differ() {
        let passing = b"a b c d e f g h\n".repeat(20);
        let failing = b"a b c d\n".repeat(20);
        let all = with_other_words(&failing, &passing);
        assert!(all.len() <= MADE.iter().sum(), "{}", all.len());
        assert!(all.iter().any(|it| it.is_of_failing) && all.iter().any(|it| !it.is_of_failing));
        let known: HashSet<&[u8]> = all.iter().map(|it| &*it.bytes).collect();
        assert_eq!(known.len(), all.len());
        assert!(!known.contains(&*failing) && !known.contains(&*passing));
    }
}
