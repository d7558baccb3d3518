//! The syntax tree of a text without a grammar: statements, pairs of brackets, items of lists, and
//! words.

use std::ops::Range;

use crate::document::{Grammar, Structure, SyntaxClass, SyntaxNode, SyntaxTree};
use crate::interruption;
use crate::passes::ranges::union;
use crate::passes::tree;
use crate::passes::words::{Token, tokens};

/// Kind of the root node of the syntax tree of a text. It is above 255, because the kind of a pair
/// of brackets, a word or a sign is its first byte.
const ROOT: u16 = 0x100;
/// Kind of those nodes of the syntax tree that are statements. A statement ends with a semicolon, a
/// comma, a line end, or a block in braces at the end of a line.
const STATEMENT: u16 = 0x101;
/// Maximum nesting depth of brackets in a text for which statements are found; a deeper text is
/// read as lines of words.
const DEEPEST: usize = 200;

/// Words by which a statement is recognized as the head of a block, in which a comma does not end
/// the statement.
const HEADS: &[&[u8]] = &[
    b"class",
    b"impl",
    b"interface",
    b"struct",
    b"template",
    b"trait",
    b"where",
];
/// Words that continue a statement after a block, such as `else`.
const TAILS: &[&[u8]] = &[b"catch", b"else", b"finally", b"while"];
/// Words that are keywords, not names, in most languages with blocks in braces.
pub(super) const KEYWORDS: &[&[u8]] = &[
    b"as",
    b"async",
    b"await",
    b"bool",
    b"break",
    b"case",
    b"catch",
    b"char",
    b"class",
    b"const",
    b"continue",
    b"def",
    b"default",
    b"do",
    b"double",
    b"else",
    b"enum",
    b"extends",
    b"false",
    b"final",
    b"float",
    b"fn",
    b"for",
    b"func",
    b"function",
    b"if",
    b"impl",
    b"implements",
    b"import",
    b"in",
    b"int",
    b"interface",
    b"let",
    b"long",
    b"loop",
    b"match",
    b"mod",
    b"mut",
    b"namespace",
    b"new",
    b"nil",
    b"null",
    b"package",
    b"private",
    b"protected",
    b"pub",
    b"public",
    b"ref",
    b"return",
    b"self",
    b"short",
    b"static",
    b"struct",
    b"super",
    b"switch",
    b"template",
    b"this",
    b"throw",
    b"throws",
    b"trait",
    b"true",
    b"try",
    b"type",
    b"typedef",
    b"typename",
    b"unsafe",
    b"unsigned",
    b"use",
    b"using",
    b"var",
    b"virtual",
    b"void",
    b"where",
    b"while",
];
/// If at least one in this many lines of a text ends with a semicolon, its statements are taken to
/// end with semicolons, and not with lines.
const BY_SEMICOLONS: usize = 8;

/// Returns true if the statements of a text end with semicolons instead of line ends: enough lines
/// end with one ([`BY_SEMICOLONS`]), or there are more semicolons than lines. Lines of comments do
/// not count.
pub(super) fn has_semicolons(text: &[u8]) -> bool {
    let mut comments = comments(text).into_iter().peekable();
    let (mut all, mut ended, mut signs, mut from) = (0, 0, 0, 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let end = from + line.len();
        let start = end - line.trim_ascii_start().len();
        from = end;
        while comments.next_if(|comment| comment.end <= start).is_some() {}
        let line = match comments.peek() {
            Some(comment) if comment.start <= start => continue,
            Some(comment) => &text[start..end.min(comment.start)],
            None => &text[start..end],
        };
        interruption::check();
        let line = line.trim_ascii();
        if !line.is_empty() {
            all += 1;
            ended += usize::from(line.ends_with(b";"));
            signs += line.iter().filter(|byte| **byte == b';').count();
        }
    }
    ended * BY_SEMICOLONS >= all.max(1) || signs > all
}

/// A grammar for texts of unknown grammar: statements and items of lists, which contain words,
/// numbers, strings, signs, and pairs of brackets with further statements. A text whose brackets do
/// not match, or are nested too deeply, has only lines and words.
#[derive(Clone, Copy, Debug)]
pub struct PlainText;

impl Grammar for PlainText {
    fn name(&self) -> &str {
        Structure::TEXT
    }

    fn parse(&self, text: &[u8]) -> Option<SyntaxTree> {
        let mut builder = Builder {
            text,
            by_semicolons: has_semicolons(text),
            tree: TreeBuilder::default(),
        };
        builder.tree.begin(0..text.len(), ROOT, SyntaxClass::Other);
        let angles = tree::angles(text);
        let tree = tree::parse_with(text, &angles).or_else(|| tree::parse(text));
        let tree = tree.filter(|tree| deepest(&tree.nodes) <= DEEPEST);
        match tree {
            Some(tree) => builder.statements(&tree.nodes, 0..tree.nodes.len()),
            None => builder.lines(0..text.len()),
        }
        Some(builder.tree.finish())
    }
}

/// Returns the depth of the most deeply nested node of a tree of brackets, as the number of pairs
/// of brackets around it.
fn deepest(nodes: &[tree::Node]) -> usize {
    let mut depths: Vec<usize> = Vec::with_capacity(nodes.len());
    for node in nodes {
        depths.push(node.parent.map_or(0, |parent| depths[parent] + 1));
    }
    depths.into_iter().max().unwrap_or_default()
}

/// A piece of a statement: words in one line, or a pair of brackets.
enum Piece {
    Words(Range<usize>),
    /// A pair of brackets, as its index in the tree of brackets.
    Pair(usize),
}

/// A builder of a syntax tree, whose nodes are begun and ended in the order of the text.
#[derive(Default)]
pub(super) struct TreeBuilder {
    nodes: Vec<SyntaxNode>,
    /// Indices of the tree nodes to which children are still being added, outermost first.
    open: Vec<usize>,
    /// Largest end offset of the leaves added so far.
    written: usize,
}

impl TreeBuilder {
    /// Returns the number of open nodes: those that were begun and not yet ended.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Begins a node of the tree: all nodes added before the matching call of
    /// [`end`](TreeBuilder::end) are inside of it.
    pub fn begin(&mut self, place: Range<usize>, kind: u16, class: SyntaxClass) {
        interruption::check();
        let index = self.nodes.len();
        self.nodes.push(SyntaxNode {
            place,
            kind,
            class,
            parent: self.open.last().copied(),
            last: index + 1,
        });
        self.open.push(index);
    }

    /// Ends nodes of the tree under construction, the innermost first, until only `depth` nodes are
    /// open (begun and not ended).
    pub fn end(&mut self, depth: usize) {
        for node in self.open.drain(depth..) {
            self.nodes[node].last = self.nodes.len();
        }
    }

    /// Ends the innermost open nodes of the tree until only `depth` are open. Their ranges end at
    /// the position `end` of the text, but not before their last leaf.
    pub fn end_at(&mut self, depth: usize, end: usize) {
        for node in &self.open[depth..] {
            let place = &mut self.nodes[*node].place;
            place.end = end.max(place.start).max(self.written);
        }
        self.end(depth);
    }

    /// Adds a node without children, which covers the range `place` of the text, to the syntax
    /// tree.
    pub fn leaf(&mut self, place: Range<usize>, kind: u16, class: SyntaxClass) {
        self.written = self.written.max(place.end);
        self.begin(place, kind, class);
        self.end(self.depth() - 1);
    }

    /// Ends all nodes that are still open at the end of the text, and returns the syntax tree.
    pub fn finish(mut self) -> SyntaxTree {
        self.end(0);
        SyntaxTree {
            nodes: self.nodes,
            errors: 0,
        }
    }
}

struct Builder<'a> {
    text: &'a [u8],
    /// True if statements end with semicolons and blocks, but not with lines.
    by_semicolons: bool,
    tree: TreeBuilder,
}

impl Builder<'_> {
    /// Adds the statements in a range of siblings, `nodes[range]`, of the bracket tree to the
    /// syntax tree. Calls itself for the content of brackets, at most [`DEEPEST`] levels deep.
    fn statements(&mut self, nodes: &[tree::Node], range: Range<usize>) {
        let mut pieces: Vec<Piece> = Vec::new();
        let has_semicolon = self.has_semicolon(nodes, range.clone());
        let mut at = range.start;
        while at < range.end {
            let node = &nodes[at];
            // The name before a pair's bracket belongs to the same statement.
            let named = if node.pair {
                node.start..node.open
            } else {
                node.start..node.end
            };
            let mut from = named.start;
            for line in self.text[named].split_inclusive(|byte| *byte == b'\n') {
                let place = self.inked(from..from + line.len());
                from += line.len();
                let is_directive = self.is_directive(place.clone());
                if is_directive {
                    self.statement(nodes, &mut pieces, None);
                }
                if !place.is_empty() {
                    pieces.push(Piece::Words(place));
                }
                if line.ends_with(b"\n") && (is_directive || self.is_statement_end(from)) {
                    self.statement(nodes, &mut pieces, None);
                }
            }
            if node.pair {
                pieces.push(Piece::Pair(at));
            }
            let is_listed = node.separated > node.end;
            let sign = self.inked(node.end..node.separated);
            let is_inside = is_listed
                && self.text[sign.start] == b','
                && (has_semicolon || self.is_head(&pieces));
            if is_inside {
                pieces.push(Piece::Words(sign));
            } else if is_listed {
                self.statement(nodes, &mut pieces, Some(node.end..node.separated));
            } else if node.pair && self.is_block_end(node) {
                self.statement(nodes, &mut pieces, None);
            }
            at = node.last;
        }
        self.statement(nodes, &mut pieces, None);
    }

    /// Returns true if a line in the range `place` is a preprocessor directive, such as `#if`.
    fn is_directive(&self, place: Range<usize>) -> bool {
        let text = &self.text[place];
        self.by_semicolons
            && text.starts_with(b"#")
            && !text.starts_with(b"#[")
            && !text.starts_with(b"#!")
    }

    /// Returns true if a statement ends with the line whose newline is directly before the offset
    /// `at`. False if statements of this text end with semicolons, or if an operator or the like at
    /// the end of this line or at the beginning of the next one shows that the statement goes on.
    fn is_statement_end(&self, at: usize) -> bool {
        let before = self.text[..at].trim_ascii_end().last();
        let after = self.text[at..].trim_ascii_start().first();
        let goes_on = before.is_some_and(|byte| b"=+*&|\\".contains(byte))
            || after.is_some_and(|byte| b".&|?".contains(byte));
        !self.by_semicolons && !goes_on
    }

    /// Returns true if a statement ends with `node`, a pair of braces. Where lines end statements,
    /// the braces must be the last in their line; elsewhere, what follows must be able to begin a
    /// statement. Returns false for other brackets.
    fn is_block_end(&self, node: &tree::Node) -> bool {
        if self.text[node.open] != b'{' {
            return false;
        }
        let after = &self.text[node.end..];
        if !self.by_semicolons {
            let mut rest = after.iter();
            let next = rest.find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
            return next.is_none_or(|byte| *byte == b'\n');
        }
        let after = after.trim_ascii_start();
        let is_begin = |byte: &u8| byte.is_ascii_alphanumeric() || b"_#@[*&~:".contains(byte);
        after.first().is_none_or(is_begin) && !TAILS.iter().any(|tail| after.starts_with(tail))
    }

    /// Returns true if a semicolon follows any of the siblings `nodes[range]` in the bracket tree;
    /// then commas between them do not end statements. Else returns false.
    fn has_semicolon(&self, nodes: &[tree::Node], range: Range<usize>) -> bool {
        let first = Some(range.start).filter(|first| *first < range.end);
        let next = |at: &usize| Some(nodes[*at].last).filter(|next| *next < range.end);
        let mut siblings = std::iter::successors(first, next);
        siblings.any(|at| {
            let sign = self.inked(nodes[at].end..nodes[at].separated);
            self.text[sign].starts_with(b";")
        })
    }

    /// Returns true if a statement is the head of a block, in which commas do not end the
    /// statement: `pieces`, those of the statement that were read so far, contain one of the words
    /// [`HEADS`]. Always false in a text whose statements end with lines.
    fn is_head(&self, pieces: &[Piece]) -> bool {
        self.by_semicolons
            && pieces.iter().any(|piece| match piece {
                Piece::Words(place) => {
                    let words = &self.text[place.clone()];
                    tokens(words)
                        .iter()
                        .any(|word| HEADS.contains(&word.of(words)))
                }
                Piece::Pair(_) => false,
            })
    }

    /// Adds a statement that consists of `pieces` to the tree, and empties `pieces`. `after` is the
    /// range of the separator behind the statement, if it has one: a semicolon becomes a part of
    /// the statement, a comma its next sibling.
    fn statement(
        &mut self,
        nodes: &[tree::Node],
        pieces: &mut Vec<Piece>,
        after: Option<Range<usize>>,
    ) {
        let sign = after
            .map(|after| self.inked(after))
            .filter(|sign| !sign.is_empty());
        let pieces = std::mem::take(pieces);
        let place = |piece: &Piece| match piece {
            Piece::Words(place) => place.clone(),
            Piece::Pair(pair) => nodes[*pair].open..nodes[*pair].end,
        };
        let is_inside = |sign: &Range<usize>| self.text[sign.clone()] == *b";";
        let ends = sign.clone().filter(is_inside);
        let depth = self.tree.depth();
        if let (Some(first), Some(last)) = (pieces.first(), pieces.last()) {
            let end = ends.as_ref().map_or(place(last).end, |sign| sign.end);
            self.tree
                .begin(place(first).start..end, STATEMENT, SyntaxClass::Statement);
            for piece in pieces {
                match piece {
                    Piece::Words(place) => self.words(place),
                    Piece::Pair(pair) => self.pair(nodes, pair),
                }
            }
        }
        let separates = sign.is_some() && ends.is_none();
        if separates {
            self.tree.end(depth);
        }
        if let Some(sign) = sign {
            let kind = u16::from(self.text[sign.start]);
            self.tree.begin(sign, kind, SyntaxClass::Punctuation);
        }
        self.tree.end(depth);
    }

    fn pair(&mut self, nodes: &[tree::Node], pair: usize) {
        let depth = self.tree.depth();
        let node = &nodes[pair];
        let kind = u16::from(self.text[node.open]);
        self.tree
            .begin(node.open..node.end, kind, SyntaxClass::Expression);
        for bracket in [node.open..node.open + 1, node.end - 1..node.end] {
            if bracket.start > node.open {
                self.statements(nodes, pair + 1..node.last);
            }
            self.tree.begin(bracket, kind, SyntaxClass::Punctuation);
            self.tree.end(depth + 1);
        }
        self.tree.end(depth);
    }

    /// Returns the range `place` of the text without the blanks at its ends; an empty range if it
    /// is all blanks.
    fn inked(&self, place: Range<usize>) -> Range<usize> {
        let text = &self.text[place.clone()];
        let start = place.end - text.trim_ascii_start().len();
        start..start + text.trim_ascii().len()
    }

    /// Adds a node for each line in the range `place` of the text, and nodes for the words in it.
    fn lines(&mut self, place: Range<usize>) {
        let mut at = place.start;
        for line in self.text[place].split_inclusive(|byte| *byte == b'\n') {
            let words = self.inked(at..at + line.len());
            at += line.len();
            if !words.is_empty() {
                self.statement(&[], &mut vec![Piece::Words(words)], None);
            }
        }
    }

    fn words(&mut self, place: Range<usize>) {
        let depth = self.tree.depth();
        for Token {
            place: token,
            class,
        } in tokens(&self.text[place.clone()])
        {
            let word = self.inked(place.start + token.start..place.start + token.end);
            let kind = match class {
                b'a' if !KEYWORDS.contains(&&self.text[word.clone()]) => SyntaxClass::Identifier,
                b'0' if b"'\"".contains(&self.text[word.start]) => SyntaxClass::Text,
                b'0' => SyntaxClass::Number,
                _ => SyntaxClass::Other,
            };
            self.tree.begin(word, u16::from(class), kind);
            self.tree.end(depth);
        }
    }
}

/// Returns the ranges of what look like comments in a text of unknown grammar: from `/*` to `*/`,
/// from `//` to the end of the line, and lines that begin with `#` and a blank, or with `--`.
pub(super) fn comments(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut begins_line = true;
    // No `/*` after the last `*/` begins a comment.
    let last = text.windows(2).rposition(|pair| pair == b"*/");
    while at < text.len() {
        interruption::check();
        let rest = &text[at..];
        let line = || at + rest.iter().take_while(|byte| **byte != b'\n').count();
        let is_url = text[..at].ends_with(b":");
        let end = match rest {
            [b'/', b'*', inside @ ..] if last.is_some_and(|last| last >= at + 2) => {
                let close = inside.windows(2).position(|pair| pair == b"*/");
                close.map_or(at, |close| at + close + 4)
            }
            [b'/', b'/', ..] if !is_url => line(),
            [b'#', b' ' | b'#' | b'\n', ..] | [b'-', b'-', ..] if begins_line => line(),
            // A quoted text within a line may contain such signs.
            [b'"', inside @ ..] => {
                let close = inside.iter().take_while(|byte| !b"\"\n".contains(byte));
                at += close.count() + 1;
                at
            }
            _ => at,
        };
        if end > at {
            found.push(at..end);
        }
        begins_line = match text.get(at) {
            Some(byte) if end == at => *byte == b'\n' || begins_line && byte.is_ascii_whitespace(),
            _ => begins_line,
        };
        at = end.max(at + 1);
    }
    union(found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Asserts that each node of `tree` lies inside of its parent's range, and that the index after
    /// its last descendant is greater than its own and not beyond the end of the list.
    pub fn assert_nested(tree: &SyntaxTree) {
        for (index, node) in tree.nodes.iter().enumerate() {
            let parent = node.parent.map(|parent| &tree.nodes[parent]);
            assert!(node.last > index && node.last <= tree.nodes.len());
            assert!(parent.is_none_or(|parent| {
                parent.place.start <= node.place.start && node.place.end <= parent.place.end
            }));
        }
    }

    /// For tests: returns the pieces of `text` (ASCII) that the nodes of the kind `kind` in `tree`
    /// stand for.
    pub fn texts_of<'a>(tree: &SyntaxTree, text: &'a [u8], kind: u16) -> Vec<&'a str> {
        let nodes = tree.nodes.iter().filter(|node| node.kind == kind);
        let texts = nodes.map(|node| std::str::from_utf8(&text[node.place.clone()]));
        texts.map(|text| text.expect("ASCII")).collect()
    }

    #[test]
    fn brackets_lines_and_words_make_a_tree() {
        let text = b"let a = [1, b]\nprint a\nend";
        let tree = PlainText.parse(text).expect("any text has a tree");
        assert_nested(&tree);
        let of = |kind| texts_of(&tree, text, kind);
        assert_eq!(of(u16::from(b'[')), ["[1, b]", "[", "]"]);
        assert_eq!(
            of(STATEMENT),
            ["let a = [1, b]", "1", "b", "print a", "end"]
        );
        assert_eq!(of(u16::from(b'0')), ["1"]);
        let unmatched = PlainText.parse(b"a (\nb").expect("any text has a tree");
        assert_eq!(
            unmatched
                .nodes
                .iter()
                .filter(|node| node.kind == STATEMENT)
                .count(),
            2
        );
        assert_eq!(PlainText.parse(b"").map(|tree| tree.nodes.len()), Some(1));
    }

    #[test]
    fn comments_are_found_by_their_signs() {
        let text = b"a // b\nhttp://x\n/* c\n d */ e \"//f\"\n  # g\n#h\n-- i\ni--\n/* j";
        let found: Vec<&str> = comments(text)
            .into_iter()
            .map(|place| std::str::from_utf8(&text[place]).expect("ASCII"))
            .collect();
        assert_eq!(found, ["// b", "/* c\n d */", "# g", "-- i"]);
        let open = ["*/", &"/*/".repeat(1 << 19)].concat();
        assert!(comments(open.as_bytes()).len() <= 1);
        assert!(comments(&b"/* ".repeat(1 << 19)).is_empty());
    }

    #[test]
    fn deep_brackets_are_words() {
        let text = ["(".repeat(100_000), ")".repeat(100_000)].concat();
        let tree = PlainText
            .parse(text.as_bytes())
            .expect("any text has a tree");
        assert!(tree.nodes.len() > 200_000);
    }

    /// Returns the texts of all statements of a text, in the order of their beginnings.
    fn statements(text: &str) -> Vec<&str> {
        let tree = PlainText
            .parse(text.as_bytes())
            .expect("any text has a tree");
        let nodes = tree.nodes.into_iter().filter(|node| node.kind == STATEMENT);
        nodes.map(|node| &text[node.place]).collect()
    }

    #[test]
    fn lines_end_no_statement_where_semicolons_do() {
        let text = "#if x\nlet a = b\n  .c();\nfn f<A, B>()\nwhere\n  A: B,\n{\n}\nint d, e;\n";
        let whole = [
            "#if x",
            "let a = b\n  .c();",
            "fn f<A, B>()\nwhere\n  A: B,\n{\n}",
            "A",
            "B",
            "int d, e;",
        ];
        assert_eq!(statements(text), whole);
        assert_eq!(
            statements("a = b\n  .c()\nd =\n e\nf"),
            ["a = b\n  .c()", "d =\n e", "f"]
        );
        assert_eq!(
            statements("a; b; c {} d {} else {} e"),
            ["a;", "b;", "c {}", "d {} else {}", "e"]
        );
        assert_eq!(
            statements("a; b; c { d, e }"),
            ["a;", "b;", "c { d, e }", "d", "e"]
        );
    }

    #[test]
    fn keywords_are_no_names() {
        let text = b"fn f(x: 'y')";
        let tree = PlainText.parse(text).expect("any text has a tree");
        let of = |class| -> Vec<&[u8]> {
            let nodes = tree.nodes.iter().filter(|node| node.class == class);
            nodes.map(|node| &text[node.place.clone()]).collect()
        };
        assert_eq!(of(SyntaxClass::Identifier), [b"f", b"x"]);
        assert_eq!(of(SyntaxClass::Text), [b"'y'"]);
    }
}
