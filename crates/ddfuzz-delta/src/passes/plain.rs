//! The tree of a text without a grammar: brackets, items of lists, lines, and words.

use crate::document::{Grammar, Structure, SyntaxClass, SyntaxNode, SyntaxTree};
use crate::passes::tree;
use crate::passes::words::tokens;

/// Number that stands for the kind of items of lists, and of the root of a tree. The kind of other
/// nodes is the first byte of their bracket pair or sign.
const ITEM: u16 = 0x100;
/// Number that stands for the kind of tree nodes that are lines of a text.
const LINE: u16 = 0x101;

/// A grammar for texts of unknown grammar: pairs of brackets with the items of lists inside, then
/// lines, then words, numbers, strings and signs. A text whose brackets do not match has only lines
/// and words.
#[derive(Clone, Copy, Debug)]
pub struct PlainText;

impl Grammar for PlainText {
    fn name(&self) -> &str {
        Structure::TEXT
    }

    fn parse(&self, text: &[u8]) -> Option<SyntaxTree> {
        let mut builder = Builder {
            text,
            nodes: Vec::new(),
            open: Vec::new(),
        };
        builder.begin(0..text.len(), ITEM, SyntaxClass::Other);
        match tree::parse(text) {
            Some(tree) => builder.brackets(&tree.nodes),
            None => builder.lines(0..text.len()),
        }
        builder.end(0);
        Some(SyntaxTree {
            nodes: builder.nodes,
            errors: 0,
        })
    }
}

struct Builder<'a> {
    text: &'a [u8],
    nodes: Vec<SyntaxNode>,
    /// Indices of the tree nodes to which children are still being added, outermost first.
    open: Vec<usize>,
}

impl Builder<'_> {
    /// Begins a node of the tree: all nodes added before the matching call of [`end`](Builder::end)
    /// are inside of it.
    fn begin(&mut self, place: std::ops::Range<usize>, kind: u16, class: SyntaxClass) {
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

    /// Ends the innermost open nodes of the tree until only `depth` are open.
    fn end(&mut self, depth: usize) {
        for node in self.open.drain(depth..) {
            self.nodes[node].last = self.nodes.len();
        }
    }

    fn brackets(&mut self, nodes: &[tree::Node]) {
        // For each open pair, the index after its last descendant.
        let mut lasts: Vec<usize> = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            while lasts.last().is_some_and(|last| *last <= index) {
                lasts.pop();
            }
            self.end(lasts.len() + 1);
            if node.pair {
                let kind = u16::from(self.text[node.open]);
                self.begin(node.start..node.end, kind, SyntaxClass::Expression);
                lasts.push(node.last);
            } else {
                self.begin(node.start..node.end, ITEM, SyntaxClass::Other);
                self.lines(node.start..node.end);
            }
        }
    }

    /// Adds a node for each line in the range `place` of the text, if it has several, and nodes for
    /// the words in it.
    fn lines(&mut self, place: std::ops::Range<usize>) {
        let depth = self.open.len();
        let text = &self.text[place.clone()];
        let has_lines = text.trim_ascii().contains(&b'\n');
        let mut at = place.start;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let start = at + line.len() - line.trim_ascii_start().len();
            let size = line.trim_ascii().len();
            at += line.len();
            if size == 0 {
                continue;
            }
            if has_lines {
                self.begin(start..start + size, LINE, SyntaxClass::Statement);
            }
            self.words(start..start + size);
            self.end(depth);
        }
    }

    fn words(&mut self, place: std::ops::Range<usize>) {
        let depth = self.open.len();
        for token in tokens(&self.text[place.clone()]) {
            let word = self.text[place.clone()][token.place.clone()].trim_ascii_end();
            let start = place.start + token.place.start;
            let class = match token.class {
                b'a' => SyntaxClass::Identifier,
                b'0' => SyntaxClass::Number,
                _ => SyntaxClass::Other,
            };
            self.begin(start..start + word.len(), u16::from(token.class), class);
            self.end(depth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_lines_and_words_make_a_tree() {
        let text = b"let a = [1, b];\nprint a\nend";
        let tree = PlainText.parse(text).expect("any text has a tree");
        for (index, node) in tree.nodes.iter().enumerate() {
            let parent = node.parent.map(|parent| &tree.nodes[parent]);
            assert!(node.last > index && node.last <= tree.nodes.len());
            assert!(parent.is_none_or(|parent| {
                parent.place.start <= node.place.start && node.place.end <= parent.place.end
            }));
        }
        let of = |kind: u16| -> Vec<&str> {
            let nodes = tree.nodes.iter().filter(|node| node.kind == kind);
            nodes
                .map(|node| std::str::from_utf8(&text[node.place.clone()]).expect("ASCII"))
                .collect()
        };
        assert_eq!(of(u16::from(b'[')), ["let a = [1, b]"]);
        assert_eq!(of(LINE), ["print a", "end"]);
        assert_eq!(of(u16::from(b'0')), ["1"]);
        let unmatched = PlainText.parse(b"a (\nb").expect("any text has a tree");
        assert_eq!(
            unmatched
                .nodes
                .iter()
                .filter(|node| node.kind == LINE)
                .count(),
            2
        );
        assert_eq!(PlainText.parse(b"").map(|tree| tree.nodes.len()), Some(1));
    }
}
