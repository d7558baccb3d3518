//! Merges changes of neighbouring lines, which git reports as a conflict: a change of line 12 can
//! be applied although another change has changed line 11.

use std::ops::Range;

use super::{Hunk, in_range};

/// Merges two texts that both come from the text `base`; `sides` has each text with its hunks.
/// Hunks of the two texts may be on neighbouring lines. Returns `None` if a hunk of each text
/// changes the same line, or if a hunk that only adds lines adds them where a hunk of the other
/// text begins or ends, so that the order of the lines is open.
pub(super) fn merge_neighbours(base: &[u8], sides: [(&[u8], &[&Hunk]); 2]) -> Option<Vec<u8>> {
    let base = ddfuzz_delta::lines(base);
    let sides = sides.map(|(text, hunks)| (ddfuzz_delta::lines(text), hunks));
    let mut edits: Vec<(Range<usize>, &[&[u8]])> = Vec::new();
    for (lines, hunks) in &sides {
        let own = hunks.iter();
        edits.extend(own.map(|hunk| (hunk.old.clone(), in_range(lines, hunk.new.clone()))));
    }
    edits.sort_by_key(|(lines, _)| (lines.start, lines.end));
    let mut text = Vec::new();
    let mut from = 0;
    let mut last: Option<Range<usize>> = None;
    for (lines, by) in edits {
        if last.is_some_and(|last| are_in_conflict(&last, &lines)) {
            return None;
        }
        text.extend(in_range(&base, from..lines.start).concat());
        text.extend(by.concat());
        from = lines.end;
        last = Some(lines);
    }
    text.extend(in_range(&base, from..base.len()).concat());
    Some(text)
}

/// Returns true if two ranges of lines, each replaced by a hunk, are in conflict: they have a line
/// in common, or the second begins where the first ends and one of them is empty (its hunk only
/// adds lines). `first` must not begin after `second`.
fn are_in_conflict(first: &Range<usize>, second: &Range<usize>) -> bool {
    let is_open = first.is_empty() || second.is_empty();
    second.start < first.end || (second.start == first.end && is_open)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &[u8] = b"a\nb\nc\nd\n";

    fn hunk(old: Range<usize>, new: Range<usize>) -> Hunk {
        Hunk {
            old,
            new,
            function: String::new(),
        }
    }

    fn merged(ours: (&[u8], Hunk), theirs: (&[u8], Hunk)) -> Option<Vec<u8>> {
        merge_neighbours(BASE, [(ours.0, &[&ours.1]), (theirs.0, &[&theirs.1])])
    }

    #[test]
    fn neighbouring_lines_are_merged_and_common_ones_are_not() {
        let b = || (&b"a\nB\nc\nd\n"[..], hunk(1..2, 1..2));
        let c = || (&b"a\nb\nC1\nC2\nd\n"[..], hunk(2..3, 2..4));
        let both = b"a\nB\nC1\nC2\nd\n".to_vec();
        assert_eq!(merged(b(), c()), Some(both.clone()));
        assert_eq!(merged(c(), b()), Some(both));
        let without_c_and_d = || (&b"a\nb\n"[..], hunk(2..4, 2..2));
        assert_eq!(merged(without_c_and_d(), b()), Some(b"a\nB\n".to_vec()));
        assert_eq!(merged(without_c_and_d(), c()), None);
        assert_eq!(merged(b(), b()), None);
    }

    #[test]
    fn lines_added_beside_a_change_have_no_sure_place() {
        let b = || (&b"a\nB\nc\nd\n"[..], hunk(1..2, 1..2));
        for at in 1..3 {
            let added = (&b"a\nnew\nb\nnew\nc\nd\n"[..], hunk(at..at, 1..2));
            assert_eq!(merged(b(), added), None, "{at}");
        }
        let added = (&b"a\nb\nc\nnew\nd\n"[..], hunk(3..3, 3..4));
        assert_eq!(merged(b(), added), Some(b"a\nB\nc\nnew\nd\n".to_vec()));
    }
}
