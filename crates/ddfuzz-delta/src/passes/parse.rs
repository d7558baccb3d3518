//! Reads the tree of a text: brackets, quotes, separators, names.

use std::ops::Range;

use super::tree::{Node, Tree};

/// The tree of a text; `None` where its brackets do not match.
///
/// Quoted strings are opaque, unless a quote is left open: then quotes are plain text.
pub(super) fn parse(text: &[u8]) -> Option<Tree> {
    Parser::new(text, true)
        .run()
        .or_else(|| Parser::new(text, false).run())
}

/// The inside of the quoted strings of a text, in order; none where a quote is left open.
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

/// The quote that closes the one at `open`.
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
    nodes: Vec<Node>,
    /// Open pairs.
    open: Vec<usize>,
    /// Where the text begins that belongs to no node yet.
    from: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a [u8], quotes: bool) -> Parser<'a> {
        Parser {
            text,
            quotes,
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
                _ if closer(byte).is_some() => self.begin(at),
                b')' | b']' | b'}' => self.end(at)?,
                _ => {}
            }
            at += 1;
        }
        self.leaf(self.text.len());
        self.open.is_empty().then_some(Tree { nodes: self.nodes })
    }

    fn push(&mut self, start: usize, open: usize, end: usize, pair: bool) {
        let last = self.nodes.len() + 1;
        self.nodes.push(Node {
            start,
            open,
            close: end,
            end,
            separated: end,
            parent: self.open.last().copied(),
            last,
            pair,
        });
    }

    /// What was read since the last node is a leaf.
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
        if closer(self.text[self.nodes[pair].open]) != Some(self.text[at]) {
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

    /// A separator ends an item; gives where it ends itself, blanks behind it included.
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
                // Blanks in front of the separator belong to it.
                node.separated = behind;
            }
            None => self.push(self.from, self.from, behind, false),
        }
        self.from = behind;
        behind - 1
    }

    /// The last child of the open pair, where it is a closed pair without a separator yet.
    fn closed_child(&self, parent: Option<usize>) -> Option<usize> {
        let mut at = self.nodes.len().checked_sub(1)?;
        while self.nodes[at].parent != parent {
            at = self.nodes[at].parent?;
        }
        let node = &self.nodes[at];
        (Some(at) != parent && node.separated == node.end && node.end <= self.from).then_some(at)
    }
}
