//! The passes over the words of a text: words and signs are deleted, alone and in runs, and names
//! become short, at all places at once.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::list::ListSearch;
use crate::passes::units::Positions;
use crate::{Edit, Outcome, Replacement};

/// Name, in logs, of the pass that deletes words and signs, alone and in runs.
const WORDS: &str = "words";
/// Name, in logs, of the pass that shortens names.
const NAMES: &str = "names";

/// Minimum number of words of two letters or more in a text whose words are deleted.
const FEWEST_WORDS: usize = 8;
/// Maximum number of words and signs in a text whose words are deleted.
const MOST_TOKENS: usize = 512;
/// Maximum number of neighboring words and signs that are deleted at once as a clause.
const LONGEST_CLAUSE: usize = 16;
/// Maximum number of rounds over words and clauses.
const ROUNDS: usize = 2;
/// Number of consecutive needed clauses after which the deletion of clauses ends.
const FRUITLESS: usize = 192;

/// A word, number, string or sign of a text, with the blanks after it.
pub(super) struct Token {
    pub place: Range<usize>,
    /// The first byte of a sign; `a` for words and `0` for numbers and strings.
    pub class: u8,
}

/// Reduces a text of unknown grammar: deletes words and signs, then clauses, and shortens names. A text
/// that brackets and lines have reduced to a few words is left to other passes.
pub(super) async fn words(work: &mut CurrentBest) {
    let tokens = tokens(&work.text());
    let long = tokens
        .iter()
        .filter(|token| token.class == b'a' && token.place.len() > 1);
    if long.count() < FEWEST_WORDS || tokens.len() > MOST_TOKENS {
        return;
    }
    for _ in 0..ROUNDS {
        delete_words(work).await;
        if !delete_clauses(work).await {
            break;
        }
    }
    rename(work, &|text| {
        let tokens = self::tokens(text).into_iter();
        let names = tokens.filter(|token| token.class == b'a');
        names.map(|name| word_at(text, name.place.start)).collect()
    })
    .await;
}

async fn delete_words(work: &mut CurrentBest) {
    let all = tokens(&work.text()).into_iter();
    let mut all = Positions::new(WORDS, all.map(|token| vec![token.place]).collect());
    ListSearch::new(work, &mut all).reduce().await;
}

/// Deletes runs of words and signs that are followed by a word or sign of the class of their first
/// one, or by the end of the text: without them, what follows stands in their place. Returns whether
/// any was deleted.
async fn delete_clauses(work: &mut CurrentBest) -> bool {
    let before = work.reductions();
    let (mut at, mut fruitless) = (0, 0);
    loop {
        let all = tokens(&work.text());
        let Some(first) = all.get(at).filter(|_| fruitless < FRUITLESS) else {
            return work.reductions() > before;
        };
        let mut deleted = false;
        // Single ones were tried.
        for end in (at + 2..=all.len()).take(LONGEST_CLAUSE) {
            if all.get(end).is_some_and(|next| next.class != first.class) {
                continue;
            }
            let place = first.place.start..all[end - 1].place.end;
            deleted = work.cut(WORDS, place).await == Outcome::Fail;
            if deleted {
                break;
            }
            fruitless += 1;
        }
        if deleted {
            fruitless = 0;
        } else {
            at += 1;
        }
    }
}

/// Splits a text into words, numbers, strings within a line, and signs; each has the blanks after it.
pub(super) fn tokens(text: &[u8]) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        let (class, end) = match byte {
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                if let Some(last) = tokens.last_mut() {
                    last.place.end = at;
                }
                continue;
            }
            b'0'..=b'9' => (b'0', word_at(text, at).end),
            b'"' | b'\'' => (b'0', string_end(text, at)),
            _ if is_letter(byte) => (b'a', word_at(text, at).end),
            _ => (byte, at + 1),
        };
        let place = at..end;
        tokens.push(Token { place, class });
        at = end;
    }
    tokens
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Returns the place of the word that begins at `at`.
fn word_at(text: &[u8], at: usize) -> Range<usize> {
    let letters = text[at..].iter().take_while(|byte| is_letter(**byte));
    at..at + letters.count()
}

/// Returns the end of the string that begins at `at`: after its closing quote, or after the opening
/// one if no other follows in the line.
fn string_end(text: &[u8], at: usize) -> usize {
    let inside = text[at + 1..].iter().take_while(|byte| **byte != b'\n');
    let mut inside = inside.enumerate();
    let close = inside.find(|(_, byte)| **byte == text[at]);
    close.map_or(at + 1, |(size, _)| at + size + 2)
}

/// Gives one-letter names to the names whose places `names` finds in a text, at all places of a name
/// at once.
pub(super) async fn rename(
    work: &mut CurrentBest,
    names: &(dyn Fn(&[u8]) -> Vec<Range<usize>> + Sync),
) {
    let text = work.text();
    let mut used: BTreeSet<Vec<u8>> = names(&text)
        .into_iter()
        .map(|place| text[place].to_vec())
        .collect();
    let long = used.iter().filter(|name| name.len() > 1);
    let long: Vec<Vec<u8>> = long.cloned().collect();
    for old in long {
        let mut letters = (b'a'..=b'z').chain(b'A'..=b'Z').map(|letter| vec![letter]);
        let Some(new) = letters.find(|letter| !used.contains(letter)) else {
            return;
        };
        let text = work.text();
        let places = names(&text).into_iter();
        let places = places.filter(|place| text[place.clone()] == *old);
        let edits = places.map(|at| Replacement {
            at,
            with: new.clone(),
        });
        let edits: Vec<Replacement> = edits.collect();
        if !edits.is_empty() && work.test(NAMES, Edit::Set(edits)).await == Outcome::Fail {
            used.insert(new);
        }
    }
}
