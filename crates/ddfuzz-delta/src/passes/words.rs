//! The passes over the words of a text: words and signs are deleted, alone and in sequences, and
//! names become short, at all places at once.

use std::ops::Range;

use crate::interruption;
use crate::passes::blanks::shorten_blanks;
use crate::passes::current_best::CurrentBest;
use crate::passes::list::ListSearch;
use crate::passes::names::{KeptNames, Rewritten, merge, rename, rename_many};
use crate::passes::ranges::union;
use crate::passes::units::Positions;
use crate::{Edit, Outcome};

/// Name, in logs, of the pass that deletes tokens (words and signs) of a text, one by one and in
/// sequences.
pub(super) const WORDS: &str = "words";
/// Name, in logs, of the pass that writes `0` over numbers and empties strings.
const LEAST: &str = "least";

/// Minimum number of words of two letters or more that a text must have for its words to be
/// deleted.
const FEWEST_WORDS: usize = 8;
/// Maximum size, in bytes, of texts of more than [`FEW_TOKENS`] tokens whose names are shortened
/// before other passes.
const LONGEST: usize = 1 << 14;
/// Maximum number of tokens (words and signs) that a text may have for its words to be deleted.
const MOST_TOKENS: usize = 2048;
/// Number of tokens (words and signs) above which the names of a text are shortened before lines
/// and words are deleted.
const FEW_TOKENS: usize = 512;
/// Maximum number of neighboring tokens (words and signs) that are deleted at once as a clause.
const LONGEST_CLAUSE: usize = 16;
/// Maximum number of rounds in which words and clauses (sequences of words) of a text are deleted
/// in turn.
const ROUNDS: usize = 3;
/// Number of successive clauses (sequences of words and signs) that turn out to be needed for the
/// failure, after which the deletion of clauses ends in the first round.
const FRUITLESS: usize = 192;
/// Number of successive clauses (sequences of words and signs) that turn out to be needed for the
/// failure, after which the deletion of clauses ends in each later round.
const FRUITLESS_LATER: usize = 48;

/// Number of successive words that turn out to be needed for the failure, after which the deletion
/// of single words ends.
const NEEDED: usize = 32;
/// Number of successive words inside of strings that turn out to be needed for the failure, after
/// which their deletion ends.
const NEEDED_IN_STRINGS: usize = 8;
/// Maximum number of tests in one round that replace a clause by the content of a pair of brackets
/// inside of it.
const FEW_PAIRS: usize = 16;
/// Number of successive numbers or strings that cannot be shortened, after which shortening ends.
const FEW: usize = 4;

/// A token of a text: a word, number, string or sign, with the blanks after it.
pub(super) struct Token {
    pub place: Range<usize>,
    /// Class of the token: `a` for words, `0` for numbers and strings, the byte itself for signs.
    pub class: u8,
}

impl Token {
    /// Returns the bytes of the token without the blanks after it.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text[self.place.clone()].trim_ascii_end()
    }

    /// Returns the class by which tokens are compared with each other. It is the class of the
    /// token, except that numbers and strings count as words, because all of them can be operands.
    fn role(&self) -> u8 {
        if self.class == b'0' { b'a' } else { self.class }
    }
}

/// Reduces a text of unknown grammar: deletes words and signs one by one, then in sequences
/// (clauses), and shortens names. Leaves a text that has few words, or too many, as it is.
pub(super) async fn words(work: &mut CurrentBest) {
    let tokens = tokens(&work.text());
    let long = tokens
        .iter()
        .filter(|token| token.class == b'a' && token.place.len() > 1);
    if long.count() < FEWEST_WORDS || tokens.len() > MOST_TOKENS {
        return;
    }
    shorten(work).await;
    let mut kept = KeptNames::new();
    for round in 0..ROUNDS {
        delete_words(work).await;
        let patience = if round == 0 {
            FRUITLESS
        } else {
            FRUITLESS_LATER
        };
        let deleted = delete_clauses(work, patience, Ends::Alike).await;
        let hoisted = hoist_clauses(work).await;
        rename(work, &names, &mut kept).await;
        rename(work, &compounds, &mut kept).await;
        if !merge(work, &letters).await && !deleted && !hoisted {
            break;
        }
    }
    delete_long_words(work).await;
}

/// Shortens white space and names of a text that has more than [`FEW_TOKENS`] tokens, so that
/// passes over lines and bytes have less to do.
pub(super) async fn shorten_names(work: &mut CurrentBest) {
    if work.len() <= LONGEST && tokens(&work.text()).len() > FEW_TOKENS {
        shorten_blanks(work).await;
        rename_many(work, &names, &mut KeptNames::new()).await;
    }
}

/// Writes `0` over numbers of the current best text, empty strings over its strings, and one letter
/// over as many of its names as possible.
async fn shorten(work: &mut CurrentBest) {
    let mut literals = Rewritten::by(work, LEAST, &literals, &|literal| match literal {
        [quote @ (b'"' | b'\''), ..] => Some(vec![*quote; 2]),
        _ => Some(b"0".to_vec()),
    });
    let mut list = ListSearch::new(work, &mut literals).stop_after(FEW);
    list.reduce().await;
    merge(work, &names).await;
}

/// Returns the ranges of all words in a text, without numbers and strings.
pub(super) fn names(text: &[u8]) -> Vec<Range<usize>> {
    let tokens = tokens(text).into_iter();
    let names = tokens.filter(|token| token.class == b'a');
    names.map(|name| word_at(text, name.place.start)).collect()
}

/// Returns the ranges of the names in a text that consist of words joined by `-`, `.` or `/`, such
/// as `part-of.it`.
pub(super) fn compounds(text: &[u8]) -> Vec<Range<usize>> {
    let is_joined = |byte: u8| is_letter(byte) || matches!(byte, b'-' | b'.' | b'/');
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let size = text[at..]
            .iter()
            .take_while(|byte| is_joined(**byte))
            .count();
        let name = &text[at..at + size];
        let begins = name.first().is_some_and(u8::is_ascii_alphabetic);
        let ends = name.last().is_some_and(|byte| is_letter(*byte));
        if begins && ends && name.iter().any(|byte| !is_letter(*byte)) {
            found.push(at..at + size);
        }
        at += size.max(1);
    }
    found
}

/// Returns the ranges of all numbers and strings in a text.
fn literals(text: &[u8]) -> Vec<Range<usize>> {
    let tokens = tokens(text).into_iter();
    let literals = tokens.filter(|token| token.class == b'0');
    let literals =
        literals.map(|token| token.place.start..token.place.start + token.of(text).len());
    literals.collect()
}

/// Returns the ranges of all words in a text that have one letter.
fn letters(text: &[u8]) -> Vec<Range<usize>> {
    let names = names(text).into_iter();
    names.filter(|place| place.len() == 1).collect()
}

async fn delete_words(work: &mut CurrentBest) {
    let all = tokens(&work.text()).into_iter();
    let mut all = Positions::new(WORDS, all.map(|token| vec![token.place]).collect());
    let mut list = ListSearch::new(work, &mut all).stop_after(NEEDED);
    list.reduce().await;
    let inside = words_in_strings(&work.text());
    if inside.len() > 1 {
        let mut inside = Positions::new(WORDS, inside);
        let mut list = ListSearch::new(work, &mut inside).stop_after(NEEDED_IN_STRINGS);
        list.reduce().await;
    }
}

/// Returns the words inside of those strings that have several words, each with the blank after it,
/// as units to delete.
fn words_in_strings(text: &[u8]) -> Vec<Vec<Range<usize>>> {
    let mut words = Vec::new();
    for token in tokens(text) {
        let mut start = token.place.start + 1;
        if let [b'"' | b'\'', inside @ .., _] = token.of(text)
            && inside.contains(&b' ')
        {
            for word in inside.split_inclusive(|byte| *byte == b' ') {
                let place = start..start + word.len();
                start = place.end;
                words.push(vec![place]);
            }
        }
    }
    words
}

/// Deletes words of two letters or more that the failure does not need. Runs as the last pass over
/// words, because a word may be deletable once the words around it are gone.
async fn delete_long_words(work: &mut CurrentBest) {
    let all = tokens(&work.text()).into_iter();
    let long = all.filter(|token| token.class == b'a' && token.place.len() > 1);
    let long = long.map(|token| vec![token.place]);
    let mut long = Positions::new(WORDS, long.collect());
    ListSearch::new(work, &mut long).reduce().await;
}

/// The places at which a clause (a sequence of words and signs that one test deletes) may end:
/// before any token, or only before a token of the same class as its first one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// A clause may end before a token of the same class as its first token, or at the end of the
    /// text.
    Alike,
    /// A clause may end before any token.
    Any,
}

/// Deletes clauses: sequences of tokens with all brackets that they open, which end as `ends` says.
/// After a success, deletes the same sequence at all of its other occurrences, too. Ends after
/// `patience` successive sequences that turn out to be needed. Returns true if any was deleted.
pub(super) async fn delete_clauses(work: &mut CurrentBest, patience: usize, ends: Ends) -> bool {
    let before = work.reductions();
    let (mut at, mut fruitless) = (0, 0);
    loop {
        let text = work.text();
        let all = tokens(&text);
        let levels = Levels::of(&all);
        let Some(first) = all.get(at).filter(|_| fruitless < patience) else {
            return work.reductions() > before;
        };
        let mut deleted = None;
        // Single ones were tried.
        for end in (at + 2..=all.len()).take(LONGEST_CLAUSE) {
            let next = all.get(end);
            let is_alike = next.is_none_or(|next| next.role() == first.role());
            if ends == Ends::Alike && !is_alike || !levels.are_whole(at, end) {
                continue;
            }
            let place = first.place.start..all[end - 1].place.end;
            if work.cut(WORDS, place).await == Outcome::Fail {
                deleted = Some(end);
                break;
            }
            fruitless += 1;
        }
        let Some(end) = deleted else {
            at += 1;
            continue;
        };
        fruitless = 0;
        let run: Vec<&[u8]> = all[at..end].iter().map(|token| token.of(&text)).collect();
        delete_runs(work, &run).await;
    }
}

/// Deletes the tokens `run` wherever they occur in this order in the text, in one test.
async fn delete_runs(work: &mut CurrentBest, run: &[&[u8]]) {
    let text = work.text();
    let all = tokens(&text);
    let (mut at, mut places) = (0, Vec::new());
    while at + run.len() <= all.len() {
        let here = &all[at..at + run.len()];
        if here
            .iter()
            .map(|token| token.of(&text))
            .eq(run.iter().copied())
        {
            places.push(here[0].place.start..here[run.len() - 1].place.end);
            at += run.len();
        } else {
            at += 1;
        }
    }
    if !places.is_empty() {
        work.test(WORDS, Edit::Cut(union(places))).await;
    }
}

/// Replaces clauses by the content of the brackets inside of them, in up to [`FEW_PAIRS`] tests;
/// returns true if the text became smaller.
async fn hoist_clauses(work: &mut CurrentBest) -> bool {
    let before = work.reductions();
    let (mut at, mut tried) = (0, 0);
    while tried < FEW_PAIRS {
        let all = tokens(&work.text());
        let levels = Levels::of(&all);
        let Some(open) = (at..all.len()).find(|index| levels.closing(*index).is_some()) else {
            break;
        };
        at = open + 1;
        let close = levels.closing(open).unwrap_or(open);
        let begin = levels.clause_start(&all, open);
        let end = levels.clause_end(&all, close);
        if close == open + 1 || (begin == open && end == close + 1) {
            continue;
        }
        let cuts = vec![
            all[begin].place.start..all[open].place.end,
            all[close].place.start..all[end - 1].place.end,
        ];
        tried += 1;
        if work.test(WORDS, Edit::Cut(cuts)).await == Outcome::Fail {
            at = begin;
        }
    }
    work.reductions() > before
}

/// The nesting depth of each token of a text: the number of brackets around it.
pub(super) struct Levels {
    /// For each token, the number of brackets around it; one more entry holds the number of
    /// brackets that are open at the end of the text.
    depths: Vec<usize>,
    /// True if each bracket of the text has its counterpart.
    match_all: bool,
}

impl Levels {
    pub fn of(tokens: &[Token]) -> Levels {
        let (mut open, mut match_all) = (Vec::new(), true);
        let mut depths = Vec::with_capacity(tokens.len() + 1);
        for token in tokens {
            let opening = match token.class {
                b')' => b'(',
                b']' => b'[',
                b'}' => b'{',
                _ => 0,
            };
            if opening != 0 {
                match_all &= open.pop() == Some(opening);
            }
            depths.push(open.len());
            if b"([{".contains(&token.class) {
                open.push(token.class);
            }
        }
        match_all &= open.is_empty();
        depths.push(open.len());
        Levels { depths, match_all }
    }

    /// Returns true if each bracket among the tokens with the indices `from..to` has its
    /// counterpart among them; true also if the brackets of the whole text do not match anyway.
    pub fn are_whole(&self, from: usize, to: usize) -> bool {
        let level = self.depths[from];
        let inside = &self.depths[from..to];
        !self.match_all || self.depths[to] == level && inside.iter().all(|depth| *depth >= level)
    }

    /// Returns the index of the token that closes the bracket at the token `open`; `None` if that
    /// opens no bracket, or if brackets of the text have no counterpart.
    fn closing(&self, open: usize) -> Option<usize> {
        let level = self.depths[open];
        if !self.match_all || self.depths[open + 1] <= level {
            return None;
        }
        (open + 1..self.depths.len()).find(|index| self.depths[*index] == level)
    }

    /// Returns the index of the token that opens the innermost brackets around the token at
    /// `index`; `None` if there are no brackets around it.
    pub fn opening(&self, index: usize) -> Option<usize> {
        let level = self.depths[index];
        (0..index).rev().find(|open| self.depths[*open] < level)
    }

    /// Returns the comma-separated items in the brackets that the token at `open` opens, as ranges
    /// of indices of tokens; none if the token opens no brackets, or if they are empty.
    pub fn items(&self, tokens: &[Token], open: usize) -> Vec<Range<usize>> {
        let Some(close) = self.closing(open).filter(|close| *close > open + 1) else {
            return Vec::new();
        };
        let level = self.depths[open] + 1;
        let is_comma = |at: &usize| self.depths[*at] == level && tokens[*at].class == b',';
        let commas = (open + 1..close).filter(is_comma);
        let mut start = open + 1;
        let ends = commas.chain(std::iter::once(close));
        let items = ends.map(|end| {
            let item = start..end;
            start = end + 1;
            item
        });
        items.collect()
    }

    /// Returns the index of the first token of the clause that contains the token at `index`: the
    /// one after a comma, a semicolon or the bracket around the clause.
    pub fn clause_start(&self, tokens: &[Token], index: usize) -> usize {
        let level = self.depths[index];
        let ends = |at: &usize| self.depths[*at] < level || self.separates(tokens, *at, level);
        (0..index).rev().find(ends).map_or(0, |end| end + 1)
    }

    /// Returns the index of the token at which the clause that contains the token at `index` has
    /// ended: a comma, a semicolon, or the bracket that closes around it; the number of tokens if
    /// the text ends first.
    pub fn clause_end(&self, tokens: &[Token], index: usize) -> usize {
        let level = self.depths[index];
        let ends = |at: &usize| self.depths[*at] < level || self.separates(tokens, *at, level);
        (index + 1..tokens.len()).find(ends).unwrap_or(tokens.len())
    }

    fn separates(&self, tokens: &[Token], index: usize, level: usize) -> bool {
        self.depths[index] == level && b",;".contains(&tokens[index].class)
    }
}

/// Splits a text into words, numbers, strings within a line, and signs; each has the blanks after
/// it.
pub(super) fn tokens(text: &[u8]) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        interruption::check();
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

/// Returns the range of the word (letters, digits, `_`, non-ASCII bytes) that begins at `at`.
fn word_at(text: &[u8], at: usize) -> Range<usize> {
    let letters = text[at..].iter().take_while(|byte| is_letter(**byte));
    at..at + letters.count()
}

/// Returns the end of the quoted string that begins at `at`: after its closing quote, or after the
/// opening quote if the line has no closing one.
fn string_end(text: &[u8], at: usize) -> usize {
    let inside = text[at + 1..].iter().take_while(|byte| **byte != b'\n');
    let mut inside = inside.enumerate();
    let close = inside.find(|(_, byte)| **byte == text[at]);
    close.map_or(at + 1, |(size, _)| at + size + 2)
}

#[cfg(test)]
mod tests {
    use super::words_in_strings;
    use crate::{ExtraTests, Full, Outcome, Search, Structure};

    #[test]
    fn strings_consist_of_words() {
        let text = b"f(\"one two  three\", 'four', \"\") 'five six'";
        let words = words_in_strings(text).into_iter().flatten();
        let words: Vec<&[u8]> = words.map(|place| &text[place]).collect();
        let all: [&[u8]; 6] = [b"one ", b"two ", b" ", b"three", b"five ", b"six"];
        assert_eq!(words, all);
    }

    #[test]
    fn words_of_a_needed_string_go_in_few_tests() {
        let filler = "needless words of a long message that says very much of little";
        let needed: Vec<String> = ('a'..='l')
            .map(|at| format!("do{at} it{at},so{at}"))
            .collect();
        let front = needed.join(";");
        let text = format!("{front};(\"{filler} needed {filler}\")");
        let mut search = Full::structured(text.as_bytes(), Structure::Text);
        search.allow_extra_tests(ExtraTests::Few);
        let (mut best, mut tests) = (text.clone(), 0);
        while let Some(candidate) = search.next() {
            let mut shorter = Vec::new();
            candidate.write_into(text.as_bytes(), best.as_bytes(), &mut shorter);
            let shorter = String::from_utf8(shorter).expect("the text is UTF-8");
            let fails = shorter.starts_with(&front)
                && shorter.ends_with("\")")
                && shorter.matches('"').count() == 2
                && shorter.contains("needed");
            tests += 1;
            best = if fails { shorter } else { best };
            if best.len() < text.len() - filler.len() * 2 + 4 {
                break;
            }
            search.tell(if fails { Outcome::Fail } else { Outcome::Pass });
        }
        assert!(tests <= 80, "{tests} tests");
    }
}
