//! The trees that `<tags>` and indentation make of a text, and the pass over them.

use std::ops::Range;
use std::sync::Arc;

use crate::document::{Grammar, Structure, SyntaxClass, SyntaxNode, SyntaxTree};
use crate::passes::blocks::blocks;
use crate::passes::current_best::CurrentBest;
use crate::passes::elements::MarkupText;
use crate::passes::environments::environments;
use crate::passes::halves::delete_halves;
use crate::passes::list::ListSearch;
use crate::passes::structure::{FEWEST_PAIRS, FRUITLESS, reduce_tree};
use crate::passes::syntax::{ROUGH, Trial, reduce_program};
use crate::passes::tree::{Node, Tree};
use crate::passes::units::Positions;
use crate::{Edit, Outcome, Replacement};

/// Maximum size, in bytes, of texts that are reduced by their tags, keywords or indentation.
const LARGEST: usize = 1 << 20;
/// Size, in bytes, above which the largest blocks of a text are deleted first.
const LARGE: usize = 10 << 10;
/// Maximum size, in bytes, of a tag; after a longer one, `<` is read as an ordinary sign.
const LONGEST_TAG: usize = 1 << 10;
/// Maximum nesting depth of pairs of tags, keywords or lines; what is nested deeper becomes a leaf
/// of the tree, without content.
const DEEPEST: usize = 1 << 10;
/// Maximum number of rounds in which the passes over elements are repeated.
const ROUNDS: usize = 4;
/// A round of the passes over elements must delete at least the text's size, in bytes, divided by
/// this number for another round to follow.
const WORTHWHILE: usize = 16;
/// An element without content can be written as one tag (`<a/>`). After this many elements, in all,
/// for which that made the failure disappear, no further element is tried.
const FRUITLESS_CLOSED: usize = 4;
/// Maximum share of lines that begin with a closing bracket, in percent, for the indentation of a
/// text to be taken for its structure; with more such lines, the brackets are taken for it.
const CLOSERS: usize = 5;

/// Reduces a text by the first of the following trees that it has: the tree of its tags, of its
/// LaTeX environments, of its blocks that keywords enclose, or of its lines by their indentation.
/// Does nothing to a text without any of them, or of more than [`LARGEST`] bytes.
pub(super) async fn markup(work: &mut CurrentBest) {
    if work.len() > LARGEST {
        return;
    }
    let text = work.text();
    let fewest = if text.trim_ascii_start().starts_with(b"<") {
        1
    } else {
        FEWEST_PAIRS
    };
    let has_tags = |tree: &Tree| tree.nodes.iter().filter(|node| node.pair).count() >= fewest;
    if tags(&text).is_some_and(|tree| has_tags(&tree)) {
        reduce_elements(work).await;
    } else if environments(&text).is_some() {
        delete_large_parts(work, environments).await;
        reduce_tree(work, &environments).await;
    } else if blocks(&work.text()).is_some() {
        delete_large_parts(work, blocks).await;
        reduce_tree(work, &blocks).await;
    } else if indentation(&work.text()).is_some() {
        delete_large_parts(work, indentation).await;
        let Some(mut tree) = indentation(&work.text()) else {
            return;
        };
        ListSearch::new(work, &mut tree)
            .stop_after(FRUITLESS)
            .reduce()
            .await;
        if let Some(tree) = indentation(&work.text()) {
            let mut heads = Positions::new("unwrap", heads(&work.text(), &tree));
            ListSearch::new(work, &mut heads)
                .stop_after(FRUITLESS)
                .reduce()
                .await;
        }
    }
}

/// Deletes the largest parts of the text by the tree that `parse` makes of it; does nothing to a
/// text of at most [`LARGE`] bytes.
async fn delete_large_parts(work: &mut CurrentBest, parse: fn(&[u8]) -> Option<Tree>) {
    if work.len() > LARGE {
        let grammar: Arc<dyn Grammar> = Arc::new(TreeText { parse });
        delete_halves(work, &grammar).await;
    }
}

/// A grammar for texts that `parse` parses into a tree, such as that of pairs of tags: each pair,
/// and each piece of text between pairs, becomes a statement of the syntax tree.
#[derive(Debug)]
struct TreeText {
    parse: fn(&[u8]) -> Option<Tree>,
}

impl Grammar for TreeText {
    fn name(&self) -> &str {
        Structure::TEXT
    }

    fn parse(&self, text: &[u8]) -> Option<SyntaxTree> {
        let tree = (self.parse)(text)?;
        let root = SyntaxNode {
            place: 0..text.len(),
            kind: 0,
            class: SyntaxClass::Other,
            parent: None,
            last: tree.nodes.len() + 1,
        };
        let nodes = tree.nodes.iter().map(|node| SyntaxNode {
            place: node.start..node.end,
            kind: 1 + u16::from(node.pair),
            class: SyntaxClass::Statement,
            parent: Some(node.parent.map_or(0, |parent| parent + 1)),
            last: node.last + 1,
        });
        Some(SyntaxTree {
            nodes: std::iter::once(root).chain(nodes).collect(),
            errors: 0,
        })
    }
}

/// Reduces a text by its tags: deletes elements and attributes. A text of more than [`ROUGH`] bytes
/// is reduced in rounds, which also replace elements by elements inside of them, and delete names
/// and words in attribute values; a round that deletes less than the text's size divided by
/// [`WORTHWHILE`] is the last one. A smaller text is reduced once, and its elements without content
/// are written as one tag.
async fn reduce_elements(work: &mut CurrentBest) {
    let grammar: Arc<dyn Grammar> = Arc::new(MarkupText);
    for _ in 0..ROUNDS {
        let before = work.len();
        reduce_tree(work, &tags).await;
        let mut attributes = Positions::new("attributes", attributes(&work.text()));
        ListSearch::new(work, &mut attributes)
            .stop_after(FRUITLESS)
            .reduce()
            .await;
        if work.len() <= ROUGH {
            close_elements(work).await;
            return;
        }
        reduce_program(work, &grammar, &Trial::always(work)).await;
        if (before - work.len()) * WORTHWHILE < before {
            return;
        }
    }
}

/// Writes elements without content as one tag, as `<a/>` in place of `<a></a>`, until
/// [`FRUITLESS_CLOSED`] such tests have not failed.
async fn close_elements(work: &mut CurrentBest) {
    let (mut from, mut fruitless) = (0, 0);
    while fruitless < FRUITLESS_CLOSED {
        let text = work.text();
        let all = tags(&text).map(|tree| tree.nodes).unwrap_or_default();
        let is_empty = |node: &&Node| node.pair && node.inner == node.close && node.start >= from;
        let Some(element) = all.iter().find(is_empty) else {
            return;
        };
        from = element.start + 1;
        let closed = Replacement {
            at: element.inner - 1..element.end,
            with: b"/>".to_vec(),
        };
        let outcome = work.test("elements", Edit::Set(vec![closed])).await;
        fruitless += usize::from(outcome != Outcome::Fail);
    }
}

/// A tag of a markup text, which is what stands between `<` and `>`: opening, closing or neither.
enum Tag {
    /// An opening tag, such as `<p>`; holds the range of its name in the text.
    Open(Range<usize>),
    /// A closing tag, such as `</p>`; holds the range of its name in the text.
    Close(Range<usize>),
    /// A tag without a counterpart: a comment, a declaration, or an element without content.
    Whole,
}

/// Parses a text into the tree of its tags; `None` without any pair of an opening and a closing
/// tag. A tag without its counterpart is a leaf.
pub(super) fn tags(text: &[u8]) -> Option<Tree> {
    let mut parser = PairParser::new(text);
    let mut at = 0;
    let mut scanner = Scanner::default();
    while let Some(start) = next(text, at, b"<") {
        let Some((tag, end)) = scanner.tag(text, start) else {
            at = start + 1;
            continue;
        };
        parser.leaf(start);
        match tag {
            Tag::Open(name) => parser.begin(start, end, name),
            Tag::Close(name) => {
                let same = |open: &[u8]| open.eq_ignore_ascii_case(&text[name.clone()]);
                parser.end(start, end, &same);
            }
            Tag::Whole => parser.push(start, end),
        }
        at = end;
    }
    parser.finish()
}

/// Returns the first position at or after `at` where the bytes `wanted` occur in a text; `None` if
/// there is none.
pub(super) fn next(text: &[u8], at: usize, wanted: &[u8]) -> Option<usize> {
    let rest = text.get(at..)?;
    let mut windows = rest.windows(wanted.len());
    windows
        .position(|window| window == wanted)
        .map(|found| at + found)
}

/// A reader of the tags in a text. It remembers which ends of comments and declarations do not
/// occur in the rest of the text, so that they are searched for only once.
#[derive(Default)]
struct Scanner {
    missing: Vec<&'static str>,
}

impl Scanner {
    /// Returns the position after the first occurrence of `end` at or after `start` in a text;
    /// `None` if there is no occurrence.
    fn until(&mut self, text: &[u8], start: usize, end: &'static str) -> Option<usize> {
        if self.missing.contains(&end) {
            return None;
        }
        let found = next(text, start, end.as_bytes());
        if found.is_none() {
            self.missing.push(end);
        }
        Some(found? + end.len())
    }

    /// Reads the tag that begins at `start`; returns it with the position after its last byte.
    /// `None` if no tag begins at this position.
    fn tag(&mut self, text: &[u8], start: usize) -> Option<(Tag, usize)> {
        let rest = &text[start..];
        for (begin, end) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", ">")] {
            if rest.starts_with(begin.as_bytes()) {
                return Some((Tag::Whole, self.until(text, start, end)?));
            }
        }
        let first = *rest.get(1)?;
        if first == b'!' {
            let end = self.until(text, start, ">")?;
            let end = match text[start..end].contains(&b'[') {
                true => self.until(text, start, "]>").unwrap_or(end),
                false => end,
            };
            return Some((Tag::Whole, end));
        }
        let is_close = first == b'/';
        let from = start + 1 + usize::from(is_close);
        if !text.get(from)?.is_ascii_alphabetic() {
            return None;
        }
        let name = from..from + text[from..].iter().take_while(|byte| is_name(byte)).count();
        let end = tag_end(text, name.end)?;
        Some(match (is_close, text[end - 2]) {
            (true, _) => (Tag::Close(name), end),
            (false, b'/') => (Tag::Whole, end),
            (false, _) => (Tag::Open(name), end),
        })
    }
}

/// Returns true if a byte can be part of the name of a tag.
pub(super) fn is_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-' | b'_' | b'.')
}

/// Returns the end of a tag, given a position `from` inside of it; `None` if the tag does not end
/// within 1 KiB, or before the next one begins.
fn tag_end(text: &[u8], from: usize) -> Option<usize> {
    let mut quote = None;
    let mut at = from;
    loop {
        let byte = *text.get(at).filter(|_| at < from + LONGEST_TAG)?;
        at += 1;
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return Some(at),
            (None, b'<') => return None,
            (None, _) => {}
        }
    }
}

/// A builder of the tree of a text whose nodes are named pairs: an opening tag with its closing
/// tag, or a keyword that begins a block with the one that ends it.
pub(super) struct PairParser<'a> {
    pub text: &'a [u8],
    pub nodes: Vec<Node>,
    /// The openings (tags or keywords) that have no closing so far: index of the node, and range of
    /// the name.
    pub open: Vec<(usize, Range<usize>)>,
    /// Offset in the text up to which the parser has assigned everything to nodes of the tree.
    pub from: usize,
}

impl<'a> PairParser<'a> {
    /// Creates a parser that begins at the start of `text`, with an empty tree.
    pub fn new(text: &'a [u8]) -> PairParser<'a> {
        PairParser {
            text,
            nodes: Vec::new(),
            open: Vec::new(),
            from: 0,
        }
    }

    /// Ends the text and returns its tree: the rest of the text, and openings (tags or keywords)
    /// without a closing, become leaves. `None` if the text has no pair of an opening and a
    /// closing.
    pub fn finish(mut self) -> Option<Tree> {
        self.leaf(self.text.len());
        (self.nodes.iter().any(|node| node.pair)).then_some(())?;
        while !self.open.is_empty() {
            self.unclosed();
        }
        Some(Tree { nodes: self.nodes })
    }

    fn push(&mut self, start: usize, end: usize) {
        let parent = self.open.last().map(|(index, _)| *index);
        let last = self.nodes.len() + 1;
        self.nodes.push(Node::leaf(start..end, parent, last));
        self.from = end;
    }

    /// Adds a leaf for the text between the last node and the offset `end`. If that text is only
    /// blanks, adds no leaf, but makes the blanks the separator after the last node.
    pub fn leaf(&mut self, end: usize) {
        let between = &self.text[self.from..end];
        let parent = self.open.last().map(|(index, _)| *index);
        if !between.trim_ascii().is_empty() {
            self.push(self.from, end);
        } else if let Some(last) = self.nodes.last_mut()
            && last.parent == parent
            && last.end == self.from
        {
            last.separated = end;
        }
        self.from = end;
    }

    /// Begins a node of the tree that is a named pair of tags or keywords: its opening (a tag or
    /// keyword) is the text from `start` to `end`, its name the text in the range `name`.
    pub fn begin(&mut self, start: usize, end: usize, name: Range<usize>) {
        self.push(start, end);
        if self.open.len() < DEEPEST {
            self.open.push((self.nodes.len() - 1, name));
        }
    }

    /// Ends the innermost open pair of tags or keywords whose name `closes` accepts; openings
    /// inside of that pair that have no closing become leaves of the tree. The closing (tag or
    /// keyword) is the text from `start` to `end`; it becomes a leaf itself if no open pair has
    /// such a name.
    pub fn end(&mut self, start: usize, end: usize, closes: &dyn Fn(&[u8]) -> bool) {
        let closes = |(_, open): &(usize, Range<usize>)| closes(&self.text[open.clone()]);
        let Some(depth) = self.open.iter().rposition(closes) else {
            return self.push(start, end);
        };
        while self.open.len() > depth + 1 {
            self.unclosed();
        }
        let last = self.nodes.len();
        if let Some((index, _)) = self.open.pop() {
            let node = &mut self.nodes[index];
            node.pair = true;
            (node.close, node.end, node.separated, node.last) = (start, end, end, last);
        }
        self.from = end;
    }

    /// Turns the innermost tag that is open, and is not closed by another one, into a leaf of the
    /// tree: the nodes after it become its siblings.
    fn unclosed(&mut self) {
        let Some((index, _)) = self.open.pop() else {
            return;
        };
        let parent = self.open.last().map(|(index, _)| *index);
        for node in &mut self.nodes[index + 1..] {
            if node.parent == Some(index) {
                node.parent = parent;
            }
        }
    }
}

/// Returns the ranges of the attributes of all tags in a text, each with the blanks before it.
fn attributes(text: &[u8]) -> Vec<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut scanner = Scanner::default();
    while let Some(start) = next(text, at, b"<") {
        at = start + 1;
        let Some((Tag::Open(_) | Tag::Whole, end)) = scanner.tag(text, start) else {
            continue;
        };
        let attributes = attributes_of(text, start..end).into_iter();
        found.extend(attributes.map(|place| vec![place]));
        at = end;
    }
    found
}

/// Returns the ranges of the attributes of the tag in the range `tag`, each with the blanks before
/// it.
pub(super) fn attributes_of(text: &[u8], tag: Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let name = tag.start + 1;
    if text.get(name).is_some_and(u8::is_ascii_alphabetic) {
        let size = text[name..tag.end].iter().position(u8::is_ascii_whitespace);
        let mut from = size.map_or(tag.end, |size| name + size);
        while let Some(place) = attribute(text, from, tag.end) {
            from = place.end;
            found.push(place);
        }
    }
    found
}

/// Returns the range of the attribute that begins at `from`, with the blanks before it; `None` if
/// no attribute begins before `end`, the end of the tag.
fn attribute(text: &[u8], from: usize, end: usize) -> Option<Range<usize>> {
    let blanks = text[from..end]
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace());
    let start = from + blanks.count();
    let (mut at, mut quote) = (start, None);
    while at < end {
        let byte = text[at];
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>' | b'/' | b'?') => break,
            (None, _) if byte.is_ascii_whitespace() => break,
            (None, _) => {}
        }
        at += 1;
    }
    (at > start && start > from).then_some(from..at)
}

/// Returns the indentation of a line in bytes (spaces and tabs); `None` for a blank line.
fn depth(line: &[u8]) -> Option<usize> {
    let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    let depth = blanks.count();
    (depth < line.trim_ascii_end().len()).then_some(depth)
}

/// Parses a text into the tree that the indentation of its lines makes: a line contains the deeper
/// lines after it. `None` if the text has few such lines, or if brackets show its structure.
fn indentation(text: &[u8]) -> Option<Tree> {
    let mut nodes: Vec<Node> = Vec::new();
    // Lines that contain the next one, with their depths.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let (mut at, mut closers) = (0, 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let Some(depth) = depth(line) else {
            continue;
        };
        closers += usize::from(matches!(line[depth], b'}' | b')' | b']'));
        while open.last().is_some_and(|(_, around)| *around >= depth) {
            open.pop();
        }
        let parent = open.last().map(|(index, _)| *index);
        let index = nodes.len();
        nodes.push(Node::leaf(start..end, parent, index + 1));
        if open.len() < DEEPEST {
            open.push((index, depth));
        }
        // The line itself is not among them where the lines around it are as many as are kept.
        for (around, _) in open.iter().filter(|(around, _)| *around != index) {
            let node = &mut nodes[*around];
            node.pair = true;
            (node.close, node.end, node.separated, node.last) = (end, end, end, index + 1);
        }
    }
    let pairs = nodes.iter().filter(|node| node.pair).count();
    (pairs >= FEWEST_PAIRS && closers * 100 <= nodes.len() * CLOSERS).then_some(Tree { nodes })
}

/// Returns, for each line that contains deeper-indented lines, an edit that removes the line but
/// keeps these lines, as ranges of the text to delete: the line itself, and the additional
/// indentation of the deeper lines.
fn heads(text: &[u8], tree: &Tree) -> Vec<Vec<Range<usize>>> {
    let line = |start: usize| {
        let end = next(text, start, b"\n").map_or(text.len(), |end| end + 1);
        start..end
    };
    let mut heads = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate().filter(|(_, node)| node.pair) {
        let own = line(node.start);
        let outer = depth(&text[own.clone()]).unwrap_or_default();
        let inside = &tree.nodes[index + 1..node.last];
        let first = inside.first().map(|node| line(node.start));
        let inner = first.and_then(|line| depth(&text[line])).unwrap_or(outer);
        let blanks = inside.iter().map(|node| {
            // A later line may be indented less than the first one.
            let own = depth(&text[line(node.start)]).unwrap_or(outer);
            node.start + outer..node.start + inner.min(own).max(outer)
        });
        heads.push(std::iter::once(own).chain(blanks).collect());
    }
    heads
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{ExtraTests, Full, Search};

    /// Runs the search [`Full`] on a text, and returns its result and the number of tests.
    pub fn reduce(input: &str, fails: impl Fn(&str) -> bool) -> (String, usize) {
        let mut search = Full::structured(input.as_bytes(), Structure::Text);
        search.allow_extra_tests(ExtraTests::Few);
        let (mut best, mut tests) = (input.as_bytes().to_vec(), 0);
        while let Some(candidate) = search.next() {
            let mut text = Vec::new();
            candidate.write_into(input.as_bytes(), &best, &mut text);
            tests += 1;
            let is_failure = std::str::from_utf8(&text).is_ok_and(&fails);
            best = if is_failure { text } else { best };
            search.tell(if is_failure {
                Outcome::Fail
            } else {
                Outcome::Pass
            });
        }
        (String::from_utf8(best).expect("the text is UTF-8"), tests)
    }

    /// Returns true if the element `wanted` occurs in a well-formed text without comments: each
    /// element is closed inside of the element around it, and only white space stands before the
    /// first one. False if it does not occur, or the text is malformed.
    fn has_element(text: &str, wanted: &str) -> bool {
        let (mut open, mut found) = (Vec::new(), false);
        let mut pieces = text.split('<');
        let before = pieces.next().unwrap_or_default();
        for piece in pieces {
            let Some((tag, _)) = piece.split_once('>') else {
                return false;
            };
            let name = tag
                .trim_end_matches('/')
                .split(' ')
                .next()
                .unwrap_or_default();
            match tag.strip_prefix('/') {
                Some(name) if open.pop() != Some(name) => return false,
                Some(_) => {}
                None if name.is_empty() => return false,
                None => {
                    found |= name == wanted;
                    open.extend((!tag.ends_with('/')).then_some(name));
                }
            }
        }
        found && open.is_empty() && before.trim().is_empty()
    }

    #[test]
    fn a_text_with_one_element_in_another_is_reduced_by_its_tags() {
        let text = "<a x=\"1\"><needle y=\"2\">text</needle></a>\n";
        let (best, tests) = reduce(text, |text| has_element(text, "needle"));
        assert_eq!(best, "<needle/>");
        assert!(tests <= 64, "{tests} tests");
    }

    #[test]
    fn tags_make_a_tree() {
        let text = b"<a x='>'>t<br><b/> <c>u</c>\n</a><!-- <d> -->";
        let tree = tags(text).expect("tags");
        let shown: Vec<(&str, bool, Option<usize>)> = tree
            .nodes
            .iter()
            .map(|node| {
                let own = std::str::from_utf8(&text[node.start..node.end]).expect("ASCII");
                (own, node.pair, node.parent)
            })
            .collect();
        let whole = "<a x='>'>t<br><b/> <c>u</c>\n</a>";
        let expected = [
            (whole, true, None),
            ("t", false, Some(0)),
            ("<br>", false, Some(0)),
            ("<b/>", false, Some(0)),
            ("<c>u</c>", true, Some(0)),
            ("u", false, Some(4)),
            ("<!-- <d> -->", false, None),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_line_that_is_indented_less_than_the_first_loses_only_its_blanks() {
        let text = b"x:\n y\nx:\n y\na:\n    b\n c";
        let tree = indentation(text).expect("indented");
        for ranges in heads(text, &tree) {
            let [own, blanks @ ..] = ranges.as_slice() else {
                panic!("a block without its line");
            };
            assert!(text[own.clone()].ends_with(b":\n"));
            for blank in blanks {
                assert!(text[blank.clone()].iter().all(|byte| *byte == b' '));
            }
        }
    }

    #[test]
    fn lines_deeper_than_what_is_kept_open_have_their_parents_all_the_same() {
        let mut text = Vec::new();
        for depth in (0..=DEEPEST).chain([DEEPEST - 1, DEEPEST - 1]) {
            text.extend(std::iter::repeat_n(b' ', depth));
            text.extend(b"x\n");
        }
        let tree = indentation(&text).expect("indented");
        for (index, node) in tree.nodes.iter().enumerate() {
            let parent = node.parent.map(|parent| &tree.nodes[parent]);
            assert!(parent.is_none_or(|parent| parent.pair && parent.last > index));
        }
    }

    #[test]
    fn hostile_markup_does_no_harm() {
        for piece in [&b"<!--"[..], b"<a '", b"<![CDATA[", b"<!["] {
            assert!(tags(&piece.repeat(100_000)).is_none());
        }
        let deep = b"<a>".repeat(100_000);
        assert!(tags(&deep).is_none());
        let closed = [deep.clone(), b"</a>".repeat(100_000)].concat();
        assert!(tags(&closed).is_some());
        for text in [
            &b"<"[..],
            b"</",
            b"<a",
            b"<a b='",
            b"<!",
            b"<!--",
            b"<a/>",
            b"<>",
            b"",
        ] {
            assert!(tags(text).is_none());
            assert!(attributes(text).is_empty());
        }
        assert!(indentation(&b" ".repeat(100_000)).is_none());
    }

    #[test]
    fn attributes_are_found_with_the_blanks_before_them() {
        let text = b"<a b=\"c d\" e='>' f><g h/></a>";
        let found = attributes(text).concat();
        let shown: Vec<&[u8]> = found.into_iter().map(|place| &text[place]).collect();
        assert_eq!(shown, [&b" b=\"c d\""[..], b" e='>'", b" f", b" h"]);
    }

    #[test]
    fn lines_take_the_place_of_the_line_around_them() {
        let text = b"a:\n  b:\n    c\n    d:\n      e\n  f\n";
        let tree = indentation(text).expect("nested lines");
        let without_first = heads(text, &tree)[0].clone();
        let left = crate::Edit::Cut(without_first).of_best(text);
        assert_eq!(left, b"b:\n  c\n  d:\n    e\nf\n");
    }
}
