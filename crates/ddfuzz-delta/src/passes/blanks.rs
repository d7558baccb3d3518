//! The pass over the white space of a program text: it goes at all places, at some, or is made short.

use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::list::ListSearch;
use crate::passes::syntax::patience_of;
use crate::passes::units::Positions;
use crate::{Edit, Outcome};

/// Name, in logs, of the pass that deletes white space of a program text.
const BLANKS: &str = "blanks";
/// Fraction of a text, as a divisor of its size, that white space must make up to be made short in one
/// test.
const WORTHWHILE: usize = 20;

/// Deletes all white space of the current best text in one test; returns true if the text has none
/// afterwards.
pub(super) async fn delete_all_blanks(work: &mut CurrentBest) -> bool {
    let all = blanks(&work.text(), 0);
    all.is_empty() || work.test(BLANKS, Edit::Cut(all)).await == Outcome::Fail
}

/// Deletes all but the first character of each run of white space, in one test, if that is a good part
/// of the text; if the text does not fail, deletes empty lines, and white space at the ends of lines, in
/// another one.
pub(super) async fn shorten_blanks(work: &mut CurrentBest) {
    let rest = blanks(&work.text(), 1);
    let is_worth_it = rest.iter().map(Range::len).sum::<usize>() * WORTHWHILE >= work.len();
    if !is_worth_it || rest.is_empty() || work.test(BLANKS, Edit::Cut(rest)).await == Outcome::Fail
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
}

/// Deletes white space: all of it in one test, else all but the first character of each run of
/// white space, and then whole runs.
pub(super) async fn delete_blanks(work: &mut CurrentBest) {
    if delete_all_blanks(work).await {
        return;
    }
    shorten_blanks(work).await;
    for kept in [1, 0] {
        let runs = blanks(&work.text(), kept).into_iter();
        let runs = runs.map(|run| vec![run]).collect();
        let mut runs = Positions::new(BLANKS, runs);
        let patience = patience_of(&work.text());
        let mut list = ListSearch::new(work, &mut runs).stop_after(patience);
        list.reduce().await;
    }
}

/// Returns the ranges of the runs of white space in a text, each without its first `kept` bytes.
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
