//! The first pass over the syntax tree of a large text: deletes its largest parts; a part that is
//! needed is divided into pieces, which are tried in turn.

use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use crate::document::{Grammar, SyntaxClass, SyntaxNode, SyntaxTree};
use crate::interruption;
use crate::passes::current_best::CurrentBest;
use crate::passes::ranges::{mover, union};
use crate::passes::siblings::{NODES, children, separator};
use crate::passes::syntax::tree_of;
use crate::{Edit, Outcome};

/// The deletion of large parts deletes only parts of at least the text's size, in bytes, divided by
/// this number; smaller parts are left to later passes.
const SMALLEST: usize = 64;
/// If at most the size of a syntax node, in bytes, divided by this number lies outside of the
/// node's children, no test deletes all children at once: the text would hardly differ from the
/// text without the whole node, which did not fail.
const NEARLY: usize = 8;
/// Maximum number of pieces into which a part of the text is divided that could not be deleted
/// whole.
const PIECES: usize = 4;
/// Number of the last tests by which it is decided whether the pass continues: together they must
/// have deleted enough of the text ([`ENOUGH`]).
const RECENT: usize = 24;
/// The deletion of large parts ends unless the last [`RECENT`] tests together have deleted at least
/// the text's size, in bytes, divided by this number.
const ENOUGH: usize = 24;
/// Another round of deletions of large parts follows only if the last one has deleted at least the
/// text's size, in bytes, divided by this number.
const WORTHWHILE: usize = 8;
/// Maximum number of rounds in which large parts of a text are deleted by its syntax tree.
const ROUNDS: usize = 3;

/// Deletes large parts of a text by its syntax tree; a part is a sequence of siblings. The largest
/// part is tested first. If it is needed, it is divided into pieces of about the same size, or if
/// it is a single node, into its children. Ends when only small parts are left, or when a round
/// over the tree has deleted little. Returns true if anything was deleted.
pub(super) async fn delete_halves(work: &mut CurrentBest, grammar: &Arc<dyn Grammar>) -> bool {
    let whole = work.reductions();
    for _ in 0..ROUNDS {
        let before = work.len();
        let tree = tree_of(work, grammar);
        delete_round(work, tree).await;
        // What was needed by parts that are gone may not be needed now.
        if (before - work.len()) * WORTHWHILE < before {
            break;
        }
    }
    work.reductions() > whole
}

/// Makes one round over the syntax tree `tree` of the text: tries to delete its large parts, the
/// largest first, until only small ones are left or the last tests have deleted little.
async fn delete_round(work: &mut CurrentBest, tree: SyntaxTree) {
    let mut parts = Parts::of(tree.nodes);
    let mut recent: VecDeque<usize> = VecDeque::new();
    while let Some(part) = parts.next() {
        interruption::check();
        let before = work.len();
        if part.size * SMALLEST < before {
            return;
        }
        let place = parts.place(&part);
        let cut = parts.present(&place);
        if cut.is_empty() {
            continue;
        }
        // Nothing would be left of the text, or as little as was known not to fail.
        if cut.len() >= before || parts.is_rest(&part) {
            parts.divide(&part.siblings, part.first, part.last);
            continue;
        }
        match work.test(NODES, Edit::Cut(vec![cut])).await {
            Outcome::Fail => parts.delete(place, part.group),
            _ => parts.divide(&part.siblings, part.first, part.last),
        }
        recent.push_back(before - work.len());
        if recent.len() > RECENT {
            recent.pop_front();
            if recent.iter().sum::<usize>() * ENOUGH < before {
                return;
            }
        }
    }
}

/// A sequence of siblings of a syntax tree, which are deleted together. Parts are ordered by size;
/// of two parts of equal size, the one that is earlier in the text is the lesser.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// Size of the part in bytes, as it was in the text when the part was added to the list.
    size: usize,
    /// Position of the part's first node in the text as it was before the round of deletions.
    start: usize,
    /// Indices, in the tree, of the siblings among which the part's nodes are.
    siblings: Arc<[usize]>,
    /// Index of the part's first node among `siblings`; `last` is the index after its last node.
    first: usize,
    last: usize,
    /// Index of a needed part that was divided into pieces, one of which is this part; an index in
    /// the list [`Parts::pieces`].
    group: usize,
}

/// The parts of a text that were not tried yet, and the ranges that were deleted from it.
struct Parts {
    nodes: Vec<SyntaxNode>,
    left: BinaryHeap<Part>,
    /// For each needed part that was divided, the number of its pieces that were not deleted.
    pieces: Vec<usize>,
    /// Ranges that were deleted, as positions in the text before the round of deletions.
    gone: Vec<Range<usize>>,
}

impl Parts {
    /// Makes the list of parts to be tried: at first one part, all children of the root of the
    /// syntax tree `nodes`.
    fn of(nodes: Vec<SyntaxNode>) -> Parts {
        let mut parts = Parts {
            nodes,
            left: BinaryHeap::new(),
            pieces: Vec::new(),
            gone: Vec::new(),
        };
        parts.add_children(0);
        parts
    }

    /// Removes the largest part (sequence of siblings in the syntax tree) that was not tried yet
    /// from the list, and returns it; `None` if all were tried.
    fn next(&mut self) -> Option<Part> {
        self.left.pop()
    }

    /// Adds all children of the needed node `node`, without punctuation, as one part that a test
    /// tries to delete. If at most the node's size divided by [`NEARLY`] lies outside of them, adds
    /// smaller pieces of them instead: without all of them, the text would hardly differ from the
    /// text without the node, which did not fail.
    fn add_children(&mut self, mut node: usize) {
        while let Some(around) = self.nodes.get(node) {
            let whole = around.place.len();
            let all = children(&self.nodes, node).filter(|child| {
                let SyntaxNode { place, class, .. } = &self.nodes[*child];
                *class != SyntaxClass::Punctuation && !place.is_empty()
            });
            let all: Arc<[usize]> = all.collect();
            let (Some(first), Some(last)) = (all.first(), all.last()) else {
                return;
            };
            let size = self.nodes[*last].place.end - self.nodes[*first].place.start;
            let is_most = (whole - size) * NEARLY <= whole;
            match *all {
                [child] if is_most => node = child,
                _ if is_most => return self.divide(&all, 0, all.len()),
                _ => return self.add_pieces(&all, &[0, all.len()]),
            }
        }
    }

    /// Divides a sequence of `siblings` into pieces, and adds each piece that is not empty as a
    /// part to be tried. `ends` are indices in `siblings`, in ascending order: each piece goes from
    /// one of them up to, but without, the next.
    fn add_pieces(&mut self, siblings: &Arc<[usize]>, ends: &[usize]) {
        let group = self.pieces.len();
        self.pieces.push(0);
        for piece in ends.windows(2) {
            let (first, last) = (piece[0], piece[1]);
            if first == last {
                continue;
            }
            let start = self.nodes[siblings[first]].place.start;
            let end = self.nodes[siblings[last - 1]].place.end;
            let size = self.present(&(start..end)).len();
            self.pieces[group] += usize::from(size > 0);
            self.left.push(Part {
                size,
                start,
                siblings: siblings.clone(),
                first,
                last,
                group,
            });
        }
    }

    /// Returns true if `part` is the only piece that is left of a divided part, because all of its
    /// other pieces were deleted. Such a piece is not tested: without it the whole divided part
    /// would be gone, and the text without that part was tested and did not fail.
    fn is_rest(&self, part: &Part) -> bool {
        self.pieces[part.group] == 1 && part.last - part.first < part.siblings.len()
    }

    /// Converts the range `place` of the text as it was before this round of deletions to the range
    /// that is left of it in the present text.
    fn present(&self, place: &Range<usize>) -> Range<usize> {
        let moved = mover(&self.gone);
        moved(place.start)..moved(place.end)
    }

    /// Returns the range to delete for `part`, as positions in the text before this round of
    /// deletions: its nodes and the separator after them. If that separator is deleted or missing,
    /// the one before them is included instead.
    fn place(&self, part: &Part) -> Range<usize> {
        let all = &part.siblings[part.first..part.last];
        let (Some(first), Some(last)) = (all.first(), all.last()) else {
            return 0..0;
        };
        let (start, end) = (self.nodes[*first].place.start, self.nodes[*last].place.end);
        let is_left = |place: &Range<usize>| !self.present(place).is_empty();
        let after_node = |node: usize| separator(&self.nodes, self.nodes[node].last);
        if let Some(after) = after_node(*last).filter(is_left) {
            return start..after.end;
        }
        let before = part.first.checked_sub(1).map(|one| part.siblings[one]);
        let before = before.and_then(after_node).filter(is_left);
        before.map_or(start, |before| before.start)..end
    }

    /// Records that one piece of the part with the index `group` was deleted: the range `place` of
    /// the text as it was before the present round.
    fn delete(&mut self, place: Range<usize>, group: usize) {
        self.pieces[group] -= 1;
        let mut gone = std::mem::take(&mut self.gone);
        gone.push(place);
        self.gone = union(gone);
    }

    /// Divides the part of the siblings with the indices from `first` up to but without `last`,
    /// which the failure needs as a whole, into at most [`PIECES`] parts of about the same size, to
    /// be tried one by one. If the part is a single node, its children become a part instead.
    fn divide(&mut self, siblings: &Arc<[usize]>, first: usize, last: usize) {
        if last - first == 1 {
            return self.add_children(siblings[first]);
        }
        let size = |index: usize| self.nodes[siblings[index]].place.len();
        let whole: usize = (first..last).map(size).sum();
        let mut ends = vec![first];
        let mut before = 0;
        for index in first..last {
            // The middle of a node decides on which side of a border it is.
            let middle = before + size(index) / 2;
            if middle * PIECES >= whole * ends.len() && index > ends[ends.len() - 1] {
                ends.push(index);
            }
            before += size(index);
        }
        if ends.len() == 1 {
            ends.push(last - 1);
        }
        ends.push(last);
        self.add_pieces(siblings, &ends);
    }
}

#[cfg(test)]
mod tests {
    use crate::{ExtraTests, Full, Outcome, Search, Structure};

    /// Makes a C++ text of functions in a namespace, in the layout of GNU.
    fn functions(count: usize) -> String {
        let one = |at: usize| {
            format!(
                "  template<typename T{at}>\n    inline int\n    f{at}(T{at}* x)\n    {{\n      if (x)\n\t{{\n\t  g{at}();\n\t}}\n      \
                 return {at};\n    }}\n\n"
            )
        };
        let all: String = (0..count).map(one).collect();
        format!("namespace a\n{{\n{all}}}\n")
    }

    /// Runs the first `tests` tests of the search [`Full`] on `text`, where `fails` says which
    /// texts fail, and returns the size of the smallest one that failed.
    fn size_after(tests: usize, text: &str, fails: impl Fn(&str) -> bool) -> usize {
        let mut search = Full::structured(text.as_bytes(), Structure::Text);
        search.allow_extra_tests(ExtraTests::None);
        let (mut best, mut candidate) = (text.as_bytes().to_vec(), Vec::new());
        for _ in 0..tests {
            let Some(asked) = search.next() else { break };
            asked.write_into(text.as_bytes(), &best, &mut candidate);
            let outcome = match std::str::from_utf8(&candidate).is_ok_and(&fails) {
                true => Outcome::Fail,
                false => Outcome::Pass,
            };
            if outcome == Outcome::Fail {
                best.clone_from(&candidate);
            }
            search.tell(outcome);
        }
        best.len()
    }

    fn is_balanced(text: &str) -> bool {
        let count = |sign: char| text.matches(sign).count();
        count('{') == count('}') && count('(') == count(')')
    }

    #[test]
    fn needed_functions_far_apart_are_found_in_few_tests() {
        let text = functions(240);
        let needed = [" f11(", " f94(", " f95(", " f171(", " f238("];
        let fails = |text: &str| is_balanced(text) && needed.iter().all(|name| text.contains(name));
        let size = size_after(100, &text, fails);
        assert!(size < text.len() / 16, "{size} of {}", text.len());
    }

    #[test]
    fn large_texts_of_keywords_and_of_indented_lines_lose_their_largest_parts_first() {
        let one = |at: usize| {
            format!("  def f{at}(x)\n    if x\n      g{at}\n    end\n    return {at}\n  end\n\n")
        };
        let keywords: String = (0..240).map(one).collect();
        let keywords = format!("module A\n{keywords}end\n");
        let count =
            |text: &str, word: &str| text.split_whitespace().filter(|one| *one == word).count();
        let is_closed = |text: &str| {
            let begun = count(text, "def") + count(text, "if") + count(text, "module");
            begun == count(text, "end")
        };
        let one = |at: usize| {
            format!(
                "f{at}:\n  name: Function {at}\n  steps:\n    - g{at}\n    - h{at}\n  last: {at}\n"
            )
        };
        let lines: String = (0..240).map(one).collect();
        for text in [keywords, lines] {
            let has = |text: &str, at: &str| text.contains(&format!("f{at}"));
            let fails = |text: &str| {
                is_closed(text)
                    && ["11", "94", "95", "171", "238"]
                        .iter()
                        .all(|at| has(text, at))
            };
            assert!(fails(&text));
            let size = size_after(80, &text, fails);
            assert!(size < text.len() / 16, "{size} of {}", text.len());
        }
    }

    #[test]
    fn where_all_is_needed_few_tests_are_made() {
        let text = functions(240);
        assert_eq!(size_after(400, &text, |one| one == text), text.len());
    }
}
