//! The tree that brackets and separators make of a text, and its parser.

use std::ops::Range;

use crate::Edit;
use crate::interruption;
use crate::passes::current_best::CurrentBest;
use crate::passes::ranges::{mover, new_indices, retain, union};
use crate::passes::units::Units;

/// Number of pairs of brackets that a text must have for each bracket without a counterpart, for
/// its brackets to make a tree.
const PAIRS_PER_UNMATCHED: usize = 16;
/// Maximum number of brackets without a counterpart in a text whose brackets make a tree.
const MOST_UNMATCHED: usize = 64;

/// A node of the tree of brackets: a leaf or a pair of brackets with its content. Its positions are
/// offsets in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Start of the tree node in the text, including its name (such as `"key":`).
    pub start: usize,
    /// Start of the tree node's body in the text, after its name; for a pair, the position of its
    /// opening bracket.
    pub open: usize,
    /// End of the node's opening bracket in the text, if the node is a pair.
    pub inner: usize,
    /// Start of the node's closing bracket, with the blanks before it that belong to no child; for
    /// a leaf, its end.
    pub close: usize,
    /// End of the tree node in the text, without a separator after it.
    pub end: usize,
    /// End of the separator that follows the node in the text; equals `end` without a separator.
    pub separated: usize,
    /// Index of the pair of brackets around the node; `None` outside of all brackets.
    pub parent: Option<usize>,
    /// Index, in the pre-order list of all nodes of the tree, of the node that follows the last
    /// descendant of this node.
    pub last: usize,
    /// True if the node is a pair of brackets with its content, false if it is a leaf.
    pub pair: bool,
}

impl Node {
    /// Makes a leaf of the bracket tree for the range `place` of the text. `parent` is the index of
    /// the node around it, and `last` that of the first node after it.
    pub fn leaf(place: Range<usize>, parent: Option<usize>, last: usize) -> Node {
        Node {
            start: place.start,
            open: place.start,
            inner: place.end,
            close: place.end,
            end: place.end,
            separated: place.end,
            parent,
            last,
            pair: false,
        }
    }

    fn shift(&mut self, moved: impl Fn(usize) -> usize) {
        for at in [
            &mut self.start,
            &mut self.open,
            &mut self.inner,
            &mut self.close,
            &mut self.end,
            &mut self.separated,
        ] {
            *at = moved(*at);
        }
    }
}

/// The nodes that brackets and separators make of a text, in pre-order. A list search can delete
/// them as its units: a pair of brackets is deleted only together with its whole content.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub nodes: Vec<Node>,
}

impl Tree {
    /// Returns the indices of the tree nodes that the ranges `cuts` of node indices delete; nodes
    /// inside of another deleted node are left out.
    fn gone(&self, cuts: &[Range<usize>]) -> Vec<usize> {
        let mut gone = Vec::new();
        for cut in cuts {
            let mut at = cut.start;
            while at < cut.end {
                match self.nodes[at].last <= cut.end {
                    true => {
                        gone.push(at);
                        at = self.nodes[at].last;
                    }
                    false => at += 1,
                }
            }
        }
        gone
    }

    /// Returns the index of the preceding sibling of a node; `None` for the first sibling.
    fn previous(&self, node: usize) -> Option<usize> {
        let parent = self.nodes[node].parent;
        let mut at = node.checked_sub(1)?;
        while self.nodes[at].parent != parent {
            at = self.nodes[at].parent?;
        }
        (Some(at) != parent).then_some(at)
    }

    /// Returns the ranges of the text to delete for the nodes `gone`: each node with the separator
    /// after it, or with the separator before it if it is the last sibling.
    fn places(&self, gone: &[usize]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        // The nearest preceding sibling that stays, for each of the nodes.
        let mut stays: Vec<Option<usize>> = Vec::with_capacity(gone.len());
        for node in gone {
            interruption::check();
            let Node {
                start,
                end,
                separated,
                ..
            } = self.nodes[*node];
            let previous = self.previous(*node);
            let before = previous.and_then(|one| match gone.binary_search(&one) {
                Ok(index) => stays[index],
                Err(_) => Some(one),
            });
            stays.push(before);
            let mut from = start;
            if separated == end
                && let Some(last) = before.map(|one| &self.nodes[one])
            {
                places.push(last.end..last.separated);
                from = from.max(last.separated);
            }
            places.push(from..separated);
        }
        union(places)
    }

    /// Returns all chains of at least two nodes in which each node is the only child of the one
    /// before it. The first node of a chain is not an only child itself.
    pub fn chains(&self) -> Vec<Vec<usize>> {
        let only_child = |node: usize| {
            let Node { last, pair, .. } = self.nodes[node];
            (pair && node + 1 < last && self.nodes[node + 1].last == last).then_some(node + 1)
        };
        let heads = (0..self.nodes.len()).filter(|node| {
            self.nodes[*node].pair && node.checked_sub(1).and_then(only_child) != Some(*node)
        });
        let chain = |head: usize| std::iter::successors(Some(head), |at| only_child(*at));
        heads
            .map(|head| chain(head).collect::<Vec<_>>())
            .filter(|chain| chain.len() > 1)
            .collect()
    }
}

impl Units for Tree {
    fn rule(&self) -> &'static str {
        "siblings"
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn edit(&self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        let places = self.places(&self.gone(cuts));
        (!places.is_empty()).then_some(Edit::Cut(places))
    }

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let tops = self.gone(cuts);
        let places = self.places(&tops);
        let mut gone = vec![false; self.nodes.len()];
        for top in tops {
            gone[top..self.nodes[top].last].fill(true);
        }
        let stand = cuts
            .iter()
            .map(|cut| gone[cut.clone()].iter().filter(|gone| !**gone).count());
        let stand = stand.collect();
        let index = new_indices(&gone);
        retain(&mut self.nodes, &gone);
        let moved = mover(&places);
        for node in &mut self.nodes {
            node.shift(&moved);
            node.parent = node.parent.map(|parent| index[parent]);
            node.last = index[node.last];
        }
        stand
    }

    fn is_all_untested(&self) -> bool {
        false
    }
}

/// Parses a text into the tree that its brackets and separators make; `None` if its brackets do not
/// match. A few brackets without a counterpart are allowed in a text of many pairs
/// ([`PAIRS_PER_UNMATCHED`]). Brackets inside of quoted strings do not count, unless a quote is not
/// closed.
pub(super) fn parse(text: &[u8]) -> Option<Tree> {
    parse_with(text, &[])
}

/// Parses a text into the tree of its brackets, like [`parse`], but also takes the angle brackets
/// at the positions `angles`, which must ascend, for brackets. `None` if the brackets do not match.
pub(super) fn parse_with(text: &[u8], angles: &[usize]) -> Option<Tree> {
    let strict = |quotes| Parser::new(text, quotes, Vec::new(), angles).run();
    let lenient = |quotes| Parser::new(text, quotes, unmatched(text, quotes)?, angles).run();
    let of = |parse: &dyn Fn(bool) -> Option<Tree>| parse(true).or_else(|| parse(false));
    of(&strict).or_else(|| of(&lenient))
}

/// Returns the positions, in ascending order, of the angle brackets of a text that stand around
/// lists of types, as in `Vec<T>`: a `<` right after a word, and a `>` in the same brackets and
/// statement.
pub(super) fn angles(text: &[u8]) -> Vec<usize> {
    let (mut open, mut found): (Vec<(u8, usize)>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(byte) = text.get(at).copied() {
        let before = text[..at].last().copied().unwrap_or_default();
        let is_word = before.is_ascii_alphanumeric() || b"_:".contains(&before);
        match byte {
            // Within a line: a quote may stand alone.
            b'"' => {
                let line = text[at + 1..].iter().take_while(|byte| **byte != b'\n');
                let inside = line.take_while(|byte| **byte != b'"').count();
                at += if text.get(at + 1 + inside) == Some(&b'"') {
                    inside + 1
                } else {
                    0
                };
            }
            b'<' if is_word || text[..at].ends_with(b"template ") => open.push((b'>', at)),
            b'>' if !b"-=".contains(&before) => {
                if let Some((_, from)) = open.pop_if(|(close, _)| *close == b'>') {
                    found.extend([from, at]);
                }
            }
            b';' | b'{' | b'}' => open.clear(),
            b'(' | b'[' => open.extend(closer(byte).map(|close| (close, at))),
            b')' | b']' => while open.pop().is_some_and(|(close, _)| close != byte) {},
            _ => {}
        }
        at += 1;
    }
    found.sort_unstable();
    found
}

/// Returns the positions of the brackets of a text that have no counterpart; if `quotes`, those in
/// quoted strings do not count. `None` if there is more than one for [`PAIRS_PER_UNMATCHED`] pairs,
/// or more than [`MOST_UNMATCHED`], or if a quote is not closed.
fn unmatched(text: &[u8], quotes: bool) -> Option<Vec<usize>> {
    let mut open: Vec<(u8, usize)> = Vec::new();
    let (mut unmatched, mut pairs, mut at) = (Vec::new(), 0, 0);
    while at < text.len() && unmatched.len() <= MOST_UNMATCHED {
        let byte = text[at];
        match byte {
            b'"' if quotes => at = closing_quote(text, at)?,
            b')' | b']' | b'}' => match open.iter().rposition(|(close, _)| *close == byte) {
                Some(pair) => {
                    unmatched.extend(open.drain(pair..).skip(1).map(|(_, at)| at));
                    pairs += 1;
                }
                None => unmatched.push(at),
            },
            _ => open.extend(closer(byte).map(|close| (close, at))),
        }
        at += 1;
    }
    unmatched.extend(open.into_iter().map(|(_, at)| at));
    unmatched.sort_unstable();
    let are_few = unmatched.len() <= MOST_UNMATCHED;
    (are_few && unmatched.len() * PAIRS_PER_UNMATCHED <= pairs).then_some(unmatched)
}

/// Returns the contents of all quoted strings of a text, as ranges in ascending order; none if a
/// quote is not closed.
pub(super) fn strings(text: &[u8]) -> Vec<Range<usize>> {
    let mut strings = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'"' {
            let Some(end) = closing_quote(text, at) else {
                return Vec::new();
            };
            strings.push(at + 1..end);
            at = end;
        }
        at += 1;
    }
    strings
}

/// Returns the position of the quote that closes the string which begins at `open`; `None` without
/// such a quote.
fn closing_quote(text: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            b'"' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn closer(open: u8) -> Option<u8> {
    match open {
        b'(' => Some(b')'),
        b'[' => Some(b']'),
        b'{' => Some(b'}'),
        _ => None,
    }
}

struct Parser<'a> {
    text: &'a [u8],
    quotes: bool,
    /// Positions, ascending, of the brackets without a counterpart, which are read as other signs.
    unmatched: Vec<usize>,
    /// Positions, ascending, of the angle brackets that are read as brackets.
    angles: &'a [usize],
    nodes: Vec<Node>,
    /// Indices in `nodes` of the pairs of brackets whose closing bracket has not been read yet,
    /// outermost first.
    open: Vec<usize>,
    /// Offset in the text up to which the parser has assigned everything to nodes of the tree.
    from: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a [u8], quotes: bool, unmatched: Vec<usize>, angles: &'a [usize]) -> Parser<'a> {
        Parser {
            text,
            quotes,
            unmatched,
            angles,
            nodes: Vec::new(),
            open: Vec::new(),
            from: 0,
        }
    }

    fn run(mut self) -> Option<Tree> {
        let mut at = 0;
        while at < self.text.len() {
            let byte = self.text[at];
            match byte {
                b'"' if self.quotes => at = closing_quote(self.text, at)?,
                b',' | b';' => at = self.separate(at),
                _ if self.unmatched.binary_search(&at).is_ok() => {}
                _ if closer(byte).is_some() => self.begin(at),
                b')' | b']' | b'}' => self.end(at)?,
                b'<' if self.is_angle(at) => self.begin(at),
                b'>' if self.is_angle(at) => self.end(at)?,
                _ => {}
            }
            at += 1;
        }
        self.leaf(self.text.len());
        self.open.is_empty().then_some(Tree { nodes: self.nodes })
    }

    fn is_angle(&self, at: usize) -> bool {
        self.angles.binary_search(&at).is_ok()
    }

    fn push(&mut self, start: usize, open: usize, end: usize, pair: bool) {
        interruption::check();
        let last = self.nodes.len() + 1;
        self.nodes.push(Node {
            open,
            inner: open + 1,
            pair,
            ..Node::leaf(start..end, self.open.last().copied(), last)
        });
    }

    /// Adds a leaf to the tree of brackets for the text from the end of the last node up to `end`,
    /// if it is not empty. What precedes its last `:` or `=` is the leaf's name.
    fn leaf(&mut self, end: usize) {
        if self.from < end {
            let named = self.text[self.from..end]
                .iter()
                .rposition(|byte| matches!(byte, b':' | b'='));
            let open = named.map_or(self.from, |at| self.from + at + 1);
            self.push(self.from, open, end, false);
        }
        self.from = end;
    }

    fn begin(&mut self, at: usize) {
        let before = self.text[self.from..at].trim_ascii_end();
        if !before.is_empty() && !before.ends_with(b":") && !before.ends_with(b"=") {
            self.leaf(at);
        }
        self.push(self.from, at, at + 1, true);
        self.open.push(self.nodes.len() - 1);
        self.from = at + 1;
    }

    fn end(&mut self, at: usize) -> Option<()> {
        let pair = *self.open.last()?;
        let close = match self.text[self.nodes[pair].open] {
            b'<' => Some(b'>'),
            open => closer(open),
        };
        if close != Some(self.text[at]) {
            return None;
        }
        let blank = self.text[self.from..at].trim_ascii().is_empty();
        if !blank {
            self.leaf(at);
        }
        self.open.pop();
        let last = self.nodes.len();
        let node = &mut self.nodes[pair];
        (node.close, node.end, node.separated, node.last) = (self.from, at + 1, at + 1, last);
        self.from = at + 1;
        Some(())
    }

    /// Ends an item of a bracketed list at the separator at position `at`; blanks that follow the
    /// separator belong to it. Returns the position of its last byte.
    fn separate(&mut self, at: usize) -> usize {
        if !self.text[self.from..at].trim_ascii().is_empty() {
            self.leaf(at);
        }
        let blanks = self.text[at + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace());
        let behind = at + 1 + blanks.count();
        let parent = self.open.last().copied();
        let item = match self.nodes.last() {
            Some(last) if last.parent == parent && last.separated == last.end => {
                Some(self.nodes.len() - 1)
            }
            _ => self.closed_child(parent),
        };
        match item {
            Some(item) => {
                let node = &mut self.nodes[item];
                // Blanks before the separator belong to it.
                node.separated = behind;
            }
            None => self.push(self.from, self.from, behind, false),
        }
        self.from = behind;
        behind - 1
    }

    /// Returns the index of the last child of `parent` if that child is complete and has no
    /// separator after it; else `None`. `parent` is the pair of brackets that is being read, `None`
    /// outside of all brackets.
    fn closed_child(&self, parent: Option<usize>) -> Option<usize> {
        let mut at = self.nodes.len().checked_sub(1)?;
        while self.nodes[at].parent != parent {
            at = self.nodes[at].parent?;
        }
        let node = &self.nodes[at];
        (Some(at) != parent && node.separated == node.end && node.end <= self.from).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angle_brackets_stand_around_types() {
        let found = |text: &str| {
            let signs = angles(text.as_bytes()).into_iter();
            signs.map(|at| at.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found("Map<K, Vec<V>> x;"), "3 10 12 13");
        assert_eq!(found("template <class T> f(a<b, c>d)"), "9 17 22 27");
        assert_eq!(found("if (a<b) { c>d; } a->b < c; x<y; z>0"), "");
        assert_eq!(found("fn f<T>() -> \"<>\" {}"), "4 6");
        let tree = parse_with(b"Map<K, V> x", &angles(b"Map<K, V> x")).expect("a tree");
        assert!(
            tree.nodes
                .iter()
                .any(|node| node.pair && node.open == 3 && node.end == 9)
        );
        for piece in ["a<", "a<(", ">", ")", "a<b>", "\""] {
            angles(piece.repeat(1 << 18).as_bytes());
        }
    }
}
