//! The pass over the white space of a program text: deletes it at all places or at some, or
//! shortens it.

use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::list::ListSearch;
use crate::passes::syntax::patience_of;
use crate::passes::units::Positions;
use crate::{Edit, Outcome};

/// Name, in logs, of the pass that deletes white space of a program text.
const BLANKS: &str = "blanks";
/// A test that shortens white space must delete at least the text's size, in bytes, divided by this
/// number; a test that would delete less is not made.
const WORTHWHILE: usize = 20;

/// Maximum number of sequences of white space for which no test deletes all of them together,
/// because each of them is tried alone later.
const FEW: usize = 8;

/// Deletes all white space of the current best text in one test; returns true if the text has none
/// afterwards.
pub(super) async fn delete_all_blanks(work: &mut CurrentBest) -> bool {
    let all = blanks(&work.text(), 0);
    all.is_empty() || work.test(BLANKS, Edit::Cut(all)).await == Outcome::Fail
}

/// Deletes all but the first character of each sequence of white space, in one test, if that
/// deletes at least the text's size divided by [`WORTHWHILE`]. If the text then does not fail,
/// makes two other tests: deletes empty lines and white space at the ends of lines, and shortens
/// indentation to one blank for each level.
pub(super) async fn shorten_blanks(work: &mut CurrentBest) {
    let rest = blanks(&work.text(), 1);
    let is_worth_it =
        |rest: &[Range<usize>], len| rest.iter().map(Range::len).sum::<usize>() * WORTHWHILE >= len;
    if !is_worth_it(&rest, work.len())
        || rest.is_empty()
        || work.test(BLANKS, Edit::Cut(rest)).await == Outcome::Fail
    {
        return;
    }
    let text = work.text();
    let before_line = |run: Range<usize>| {
        let newline = text[run.clone()].iter().rposition(|byte| *byte == b'\n')?;
        Some(run.start..run.start + newline).filter(|empty| !empty.is_empty())
    };
    let empty: Vec<Range<usize>> = blanks(&text, 0)
        .into_iter()
        .filter_map(before_line)
        .collect();
    if !empty.is_empty() {
        work.test(BLANKS, Edit::Cut(empty)).await;
    }
    let deeper = beyond_levels(&work.text());
    if is_worth_it(&deeper, work.len()) && !deeper.is_empty() {
        work.test(BLANKS, Edit::Cut(deeper)).await;
    }
}

/// Returns the ranges of blanks in a text to delete so that the indentation of a line is at most
/// one blank for each level of nesting. The level of a line is the number of earlier lines that
/// contain it. A line contains the lines after it that are indented deeper, up to the next line
/// that is not.
fn beyond_levels(text: &[u8]) -> Vec<Range<usize>> {
    let mut around: Vec<usize> = Vec::new();
    let (mut found, mut at) = (Vec::new(), 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let blanks = line.iter().take_while(|byte| b" \t".contains(byte));
        let indent = blanks.count();
        if indent < line.trim_ascii_end().len() {
            while around.pop_if(|other| *other >= indent).is_some() {}
            found.push(at + around.len().min(indent)..at + indent);
            around.push(indent);
        }
        at += line.len();
    }
    found.retain(|place| !place.is_empty());
    found
}

/// Deletes white space: all of it in one test; if the text then does not fail, all but the first
/// character of each sequence of white space, and then whole sequences one by one.
pub(super) async fn delete_blanks(work: &mut CurrentBest) {
    if delete_all_blanks(work).await {
        return;
    }
    shorten_blanks(work).await;
    delete_blanks_at_signs(work).await;
    for kept in [1, 0] {
        let runs = blanks(&work.text(), kept).into_iter();
        let runs = runs.map(|run| vec![run]).collect();
        let mut runs = Positions::new(BLANKS, runs);
        let patience = patience_of(&work.text());
        let mut list = ListSearch::new(work, &mut runs).stop_after(patience);
        list.reduce().await;
    }
}

/// Deletes, in one test, all white space that does not stand between two words. If the text then
/// does not fail, keeps newlines at lines that begin with `#` and, if it still does not fail, all
/// newlines.
pub(super) async fn delete_blanks_at_signs(work: &mut CurrentBest) {
    let mut tried = 0;
    for kept in [Newlines::None, Newlines::AtSigns, Newlines::All] {
        let free = at_signs(&work.text(), kept);
        if free.len() <= FEW || free.len() == tried {
            continue;
        }
        tried = free.len();
        if work.test(BLANKS, Edit::Cut(free)).await == Outcome::Fail {
            return;
        }
    }
}

/// Which newlines stay when white space that is not between two words is deleted: none, those at
/// lines that begin with `#`, or all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Newlines {
    None,
    /// The newlines before and after lines that begin with `#`, such as preprocessor directives,
    /// are kept.
    AtSigns,
    /// All newlines are kept, with the indentation after them.
    All,
}

/// Returns the ranges of the white space in `text` that can be deleted without joining two words.
/// `kept` says which newlines must stay: none, those at lines that begin with `#`, or all. White
/// space between a quote and a word stays, too.
fn at_signs(text: &[u8], kept: Newlines) -> Vec<Range<usize>> {
    let is_word = |at: Option<&u8>| {
        at.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii())
    };
    let (mut free, mut line, mut at) = (Vec::new(), 0, 0);
    for run in blanks(text, 0) {
        // The start of the line in which the white space begins.
        line = text[at..run.start]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(line, |newline| at + newline + 1);
        at = run.start;
        let newline = text[run.clone()].contains(&b'\n');
        let is_sign = text[line] == b'#' || newline && text.get(run.end) == Some(&b'#');
        let is_kept = match kept {
            Newlines::None => false,
            Newlines::AtSigns => newline && is_sign,
            Newlines::All => newline || run.start == line,
        };
        let before = run.start.checked_sub(1).and_then(|before| text.get(before));
        // In a tag, white space separates a value in quotes from the next name.
        let is_value = before.is_some_and(|byte| b"'\"".contains(byte));
        let is_needed = (is_word(before) || is_value) && is_word(text.get(run.end));
        if !is_kept && !is_needed {
            free.push(run);
        }
    }
    free
}

/// Returns the text of the range `place`, indented as it must be if it is moved to position `at`:
/// the lines after the first one lose as much indentation as the line at `place` has more than the
/// line at `at`.
pub(super) fn outdented(text: &[u8], place: &Range<usize>, at: usize) -> Vec<u8> {
    let indentation = |at: usize| {
        let line = text[..at].rsplit(|byte| *byte == b'\n').next();
        let blanks = line.unwrap_or_default().iter();
        blanks.take_while(|byte| b" \t".contains(byte)).count()
    };
    let beyond = indentation(place.start).saturating_sub(indentation(at));
    let mut moved = Vec::with_capacity(place.len());
    for (index, line) in text[place.clone()]
        .split_inclusive(|byte| *byte == b'\n')
        .enumerate()
    {
        let blanks = line.iter().take_while(|byte| b" \t".contains(byte)).count();
        let gone = if index > 0 { blanks.min(beyond) } else { 0 };
        moved.extend_from_slice(&line[gone..]);
    }
    moved
}

/// Returns the ranges of the sequences of white space in a text, each without its first `kept`
/// bytes; sequences of at most `kept` bytes are left out.
fn blanks(text: &[u8], kept: usize) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let blanks = text[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace());
        let end = at + blanks.count();
        if end > at + kept {
            runs.push(at + kept..end);
        }
        at = end.max(at) + 1;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_of_indentation_keeps_one_blank() {
        let text = b"if a:\n    b\n\n    if c:\n        d(\n          e)\n    f\ng\n";
        let left = Edit::Cut(beyond_levels(text)).of_best(text);
        assert_eq!(left, b"if a:\n b\n\n if c:\n  d(\n   e)\n f\ng\n");
    }

    #[test]
    fn a_block_moves_with_its_indentation() {
        let text = b"if a:\n  for b:\n    if c:\n      d\n\n    e";
        let inner = 19..text.len();
        assert_eq!(outdented(text, &inner, 8), b"if c:\n    d\n\n  e");
        assert_eq!(outdented(text, &inner, 0), b"if c:\n  d\n\ne");
        assert_eq!(outdented(text, &(8..text.len()), 19), &text[8..]);
    }

    #[test]
    fn white_space_beside_signs_goes() {
        let without = |text: &[u8], kept| {
            let left = Edit::Cut(at_signs(text, kept)).of_best(text);
            String::from_utf8(left).expect("ASCII")
        };
        let tag = b"<a b = 'c' d = 'e' />";
        assert_eq!(without(tag, Newlines::None), "<a b='c' d='e'/>");
        let text = b"#if a < b\nint f ( a b )\n{\n    g ();\n}\n#endif\n  x";
        assert_eq!(
            without(text, Newlines::None),
            "#if a<b\nint f(a b){g();}#endif\n  x"
        );
        assert_eq!(
            without(text, Newlines::AtSigns),
            "#if a<b\nint f(a b){g();}\n#endif\n  x"
        );
        assert_eq!(
            without(text, Newlines::All),
            "#if a<b\nint f(a b)\n{\n    g();\n}\n#endif\n  x"
        );
        // Looking for the beginning of the line of each would take 2^36 steps.
        let long = b"a = ".repeat(1 << 18);
        assert_eq!(at_signs(&long, Newlines::All).len(), 1 << 19);
    }
}
