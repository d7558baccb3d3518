//! The first passes over a text: by its known structure, by its lines, by its brackets and by its
//! words.

use crate::document::Structure;
use crate::passes::container::container;
use crate::passes::current_best::CurrentBest;
use crate::passes::list::ListSearch;
use crate::passes::markup::markup;
use crate::passes::outline::outline;
use crate::passes::structure::{FEWEST_PAIRS, FRUITLESS, structure};
use crate::passes::syntax::syntax;
use crate::passes::units::{Lines, Units};
use crate::passes::words::{shorten_names, words};

/// Number of lines that a text must exceed for passes to delete its whole lines.
const MANY_LINES: usize = 8;
/// Divisor for a test that deletes the last lines of a text: it deletes as many lines as the text
/// has, divided by this number. If the text then still fails, its brackets need not match.
const END: usize = 8;
/// What the passes by structure and by lines have found out about a text, for the passes after
/// them.
pub(super) struct Found {
    /// Whether the known structure is a format or a grammar that fits the text and has made the
    /// text smaller.
    pub contained: bool,
    /// Whether the text is to be reduced by its names, lines and words, because no format or
    /// grammar has made it smaller.
    pub by_words: bool,
    /// Whether the text was reduced by whole lines ([`delete_whole_lines`], [`delete_after_cut`]).
    by_lines: bool,
    /// Whether the text was reduced by a structure: by a format or a grammar or, in later passes,
    /// by a binary frame, by brackets or by a binary format.
    pub structured: bool,
}

/// Reduces the input by its structure `known`, and by whole lines if it is a text that no format or
/// grammar has made smaller. Returns what was found out about the text. If `known` is a format that
/// did not help, and the input is a text, `known` becomes [`Structure::Text`].
pub(super) async fn reduce_by_structure(work: &mut CurrentBest, known: &mut Structure) -> Found {
    let contained = reduce_by_known(work, known).await;
    let without_grammar = matches!(known, Structure::Text | Structure::Syntax(_)) && !contained;
    let by_words = without_grammar && work.is_text();
    Found {
        contained,
        by_words,
        by_lines: by_words && (delete_whole_lines(work).await || delete_after_cut(work).await),
        structured: contained,
    }
}

/// Reduces a text by its brackets, unless it was reduced by another structure before. Returns true
/// if the text has enough pairs of brackets for this pass.
pub(super) async fn reduce_brackets(work: &mut CurrentBest, found: &Found) -> bool {
    let fewest = if found.by_lines { 1 } else { FEWEST_PAIRS };
    !found.structured && work.is_text() && structure(work, fewest).await
}

/// Reduces a text by its names, lines and words, if `found` says so ([`Found::by_words`]).
pub(super) async fn reduce_words(work: &mut CurrentBest, found: &Found) {
    if found.by_words {
        shorten_names(work).await;
        reduce_lines(work).await;
        words(work).await;
    }
}

/// Reduces a text inside of the input by its structure `known`, and by its lines, brackets, names
/// and words. Single bytes are left to other passes.
pub(super) async fn reduce_inner_text(work: &mut CurrentBest, known: &mut Structure) {
    let found = reduce_by_structure(work, known).await;
    reduce_brackets(work, &found).await;
    reduce_words(work, &found).await;
}

/// Returns true if the input may be a text in a binary frame: `known` says that the input is binary
/// data, or that it is a text, and it is not valid UTF-8.
pub(super) fn may_be_framed(work: &mut CurrentBest, known: &Structure) -> bool {
    match known {
        Structure::Binary => true,
        Structure::Text => std::str::from_utf8(&work.text()).is_err(),
        Structure::Unknown | Structure::Format(_) | Structure::Syntax(_) => false,
    }
}

/// Reduces the input by its structure `known`. Returns true if `known` is a format or a grammar
/// that fits the input and has made it smaller; otherwise false. If `known` is a format that did
/// not help, and the input is a text, `known` becomes [`Structure::Text`], and the input is reduced
/// as a text ([`outline`], [`markup`]).
async fn reduce_by_known(work: &mut CurrentBest, known: &mut Structure) -> bool {
    if let Structure::Format(format) = known {
        if container(work, format.as_ref()).await {
            return true;
        }
        if work.is_text() {
            *known = Structure::Text;
        }
    }
    match known {
        Structure::Syntax(grammar) => syntax(work, grammar).await,
        Structure::Text if work.is_text() => {
            if !outline(work, true).await {
                markup(work).await;
                outline(work, false).await;
            }
            false
        }
        _ => false,
    }
}

/// Deletes unneeded lines of a text of more than [`MANY_LINES`] lines, if over three quarters of
/// the lines each have as many opening as closing brackets. Returns true if the text is of this
/// form, whether or not lines were deleted; otherwise false.
async fn delete_whole_lines(work: &mut CurrentBest) -> bool {
    let count = |line: &[u8], signs: &[u8]| line.iter().filter(|byte| signs.contains(byte)).count();
    let is_whole = |line: &[u8]| count(line, b"([{") == count(line, b")]}");
    let (mut lines, mut whole) = (0, 0);
    for line in work.text().split(|byte| *byte == b'\n') {
        lines += 1;
        whole += usize::from(is_whole(line));
    }
    if lines <= MANY_LINES || whole * 4 <= lines * 3 {
        return false;
    }
    let mut units = Lines::of(work);
    let mut list = ListSearch::new(work, &mut units).stop_after(FRUITLESS);
    list.reduce().await;
    true
}

/// Tests a text of more than [`MANY_LINES`] lines without its last lines ([`END`]). If the text
/// still fails, its brackets need not match: then deletes other unneeded lines, too, and returns
/// true. Returns false if the text does not fail, or has no more than [`MANY_LINES`] lines.
async fn delete_after_cut(work: &mut CurrentBest) -> bool {
    let mut units = Lines::of(work);
    let lines = units.len();
    if lines <= MANY_LINES {
        return false;
    }
    let mut list = ListSearch::new(work, &mut units);
    if list.delete(lines - lines / END..lines).await.is_none() {
        return false;
    }
    list.reduce().await;
    true
}

/// Deletes unneeded lines of the current best text, if it has more than [`MANY_LINES`] lines.
pub(super) async fn reduce_lines(work: &mut CurrentBest) {
    // Without a newline near its beginning, the text is not split into lines.
    if !work.is_text() || !work.sample().contains(&b'\n') {
        return;
    }
    let mut units = Lines::of(work);
    if units.len() > MANY_LINES {
        ListSearch::new(work, &mut units).reduce().await;
    }
}
