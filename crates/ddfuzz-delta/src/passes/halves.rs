//! The first deletions in the syntax tree of a large text: its largest parts, each whole, then its halves.

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

/// Fraction of the text, as a divisor of its size, below which parts are left to later passes.
const SMALLEST: usize = 64;
/// Fraction of a node, as a divisor of its size, that must stay where its children are deleted for
/// that to be tried: what is less was needed, too, if the node was.
const NEARLY: usize = 8;
/// Number of pieces into which a needed part is divided.
const PIECES: usize = 4;
/// Number of the last tests that must have deleted enough for the pass to go on.
const RECENT: usize = 24;
/// Fraction of the text, as a divisor of its size, that the last [`RECENT`] tests must have deleted.
const ENOUGH: usize = 24;
/// Fraction of the text, as a divisor of its size, that a round must delete for another one.
const WORTHWHILE: usize = 8;
/// Maximum number of rounds over the tree.
const ROUNDS: usize = 3;

/// Deletes large parts of a text by its syntax tree: successive siblings, those with the most bytes first.
/// Siblings that are needed together are divided into halves of about the same size, and a needed node
/// into its children. Each test deletes as much as a single part that was not tried yet can, wherever in
/// the tree it is. Ends where the largest part is small, or the last tests deleted little. Returns true if
/// it deleted anything.
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

/// Deletes large parts of a text once, as long as that pays.
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

/// Successive siblings of a syntax tree that are deleted together. Parts are ordered by their sizes; of
/// two parts of one size, the one before the other in the text is less.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// Number of bytes that the nodes have in the text when the part is made.
    size: usize,
    /// Position of the first node in the text before all deletions.
    start: usize,
    /// The children of the node around them, by their indices in the tree.
    siblings: Arc<[usize]>,
    /// Where the nodes stand among these children.
    first: usize,
    last: usize,
    /// Index of the needed part that this one is a piece of.
    group: usize,
}

/// The parts of a text that were not tried yet, and what was deleted from it.
struct Parts {
    nodes: Vec<SyntaxNode>,
    left: BinaryHeap<Part>,
    /// For each needed part that was divided, the number of its pieces that are left.
    pieces: Vec<usize>,
    /// The deleted ranges of the text before all deletions.
    gone: Vec<Range<usize>>,
}

impl Parts {
    /// Makes one part of all children of the root.
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

    /// Takes the part with the most bytes.
    fn next(&mut self) -> Option<Part> {
        self.left.pop()
    }

    /// Adds a part of all children of a needed node, except for the signs between them, or the pieces of
    /// this part if it is nearly all of the node.
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

    /// Adds the parts of the nodes between successive indices `ends` among `siblings`, as pieces of
    /// one part.
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

    /// Returns true if all other pieces of the divided part that `part` belongs to were deleted, and it has
    /// not been found whether this one is needed: without it, as much is gone as without all of them.
    fn is_rest(&self, part: &Part) -> bool {
        self.pieces[part.group] == 1 && part.last - part.first < part.siblings.len()
    }

    /// Returns the range that a range of the text before all deletions has now.
    fn present(&self, place: &Range<usize>) -> Range<usize> {
        let moved = mover(&self.gone);
        moved(place.start)..moved(place.end)
    }

    /// Returns the range of a part in the text before all deletions: with the separator after it or, where
    /// that is gone or there is none, with the one before it.
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

    /// Records that a range of the text before all deletions was deleted.
    fn delete(&mut self, place: Range<usize>, group: usize) {
        self.pieces[group] -= 1;
        let mut gone = std::mem::take(&mut self.gone);
        gone.push(place);
        self.gone = union(gone);
    }

    /// Adds the pieces of a needed part, which have about the same size, or the children of its only node.
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

    /// Functions in the layout of GNU, in a namespace.
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

    /// Returns the size of the smallest failing text after `tests` tests.
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
