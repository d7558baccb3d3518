//! The syntax tree of a markup text, such as XML or HTML: elements, attributes, and words in their
//! values.

use std::ops::Range;

use crate::document::{Grammar, Structure, SyntaxClass, SyntaxTree};
use crate::passes::markup::{attributes_of, tags};
use crate::passes::plain::TreeBuilder;

/// Kind of the root node of a syntax tree. Words, signs, brackets and tags have their first byte as
/// their kind, so that numbers below 256 are theirs.
const ROOT: u16 = 0x100;
/// Kind of those nodes of the syntax tree of a markup text that are elements, with their tags and
/// content.
const ELEMENT: u16 = 0x101;
/// Kind of those nodes of the syntax tree of a markup text that are attributes.
const ATTRIBUTE: u16 = 0x102;
/// Kind of those nodes of the syntax tree of a markup text that are attribute values.
const VALUE: u16 = 0x103;
/// Kind of those nodes of the syntax tree of a markup text that are texts between tags.
const TEXT: u16 = 0x104;
/// Maximum depth of nested brackets in an attribute value; deeper ones are not nodes of the tree.
const DEEPEST: usize = 64;

/// A grammar for texts with `<tags>`: elements, which contain attributes, texts and elements, and
/// the names, signs and brackets in the values of attributes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkupText;

impl Grammar for MarkupText {
    fn name(&self) -> &str {
        Structure::TEXT
    }

    fn parse(&self, text: &[u8]) -> Option<SyntaxTree> {
        let all = tags(text)?.nodes;
        let mut tree = TreeBuilder::default();
        tree.begin(0..text.len(), ROOT, SyntaxClass::Other);
        // The elements that are open: the index of the node after each, and its closing tag.
        let mut open: Vec<(usize, Range<usize>)> = Vec::new();
        for (index, node) in all.iter().enumerate() {
            close(&mut tree, &mut open, index);
            let is_tag = text[node.start] == b'<' && text[..node.end].ends_with(b">");
            if node.pair {
                tree.begin(node.start..node.end, ELEMENT, SyntaxClass::Statement);
                tag(&mut tree, text, node.start..node.inner);
                open.push((node.last, node.close..node.end));
            } else if is_tag {
                tree.begin(node.start..node.end, ELEMENT, SyntaxClass::Statement);
                tag(&mut tree, text, node.start..node.end);
                tree.end(tree.depth() - 1);
            } else {
                let written = text[node.start..node.end].trim_ascii_end().len();
                tree.leaf(node.start..node.start + written, TEXT, SyntaxClass::Other);
            }
        }
        close(&mut tree, &mut open, all.len());
        Some(tree.finish())
    }
}

/// Ends the markup elements that are still open in the tree, innermost first, and whose content
/// ends before tag or text number `index` of the markup; adds their closing tags to the tree.
/// `open` has two values for each open element: the number of the first tag or text after its
/// closing tag, and the range of the closing tag in the text.
fn close(tree: &mut TreeBuilder, open: &mut Vec<(usize, Range<usize>)>, index: usize) {
    while let Some((_, tag)) = open.pop_if(|(last, _)| *last <= index) {
        tree.leaf(tag, u16::from(b'<'), SyntaxClass::Punctuation);
        tree.end(tree.depth() - 1);
    }
}

/// Adds the opening tag in the range `place` of the text to the tree: its attributes, and the text
/// around them as punctuation.
fn tag(tree: &mut TreeBuilder, text: &[u8], place: Range<usize>) {
    let mut from = place.start;
    for attribute in attributes_of(text, place.clone()) {
        if from < attribute.start {
            tree.leaf(
                from..attribute.start,
                u16::from(b'<'),
                SyntaxClass::Punctuation,
            );
        }
        from = attribute.end;
        tree.begin(attribute.clone(), ATTRIBUTE, SyntaxClass::Other);
        let sign = text[attribute.clone()]
            .iter()
            .position(|byte| *byte == b'=');
        if let Some(sign) = sign {
            let begin = attribute.start + sign + 1;
            tree.leaf(
                attribute.start..begin,
                u16::from(b'='),
                SyntaxClass::Punctuation,
            );
            value(tree, text, begin..attribute.end);
        }
        tree.end(tree.depth() - 1);
    }
    tree.leaf(from..place.end, u16::from(b'<'), SyntaxClass::Punctuation);
}

/// Adds the attribute value in the range `place` of the text to the tree: names, numbers, signs,
/// and pairs of brackets with their content.
fn value(tree: &mut TreeBuilder, text: &[u8], place: Range<usize>) {
    let outside = tree.depth();
    tree.begin(place.clone(), VALUE, SyntaxClass::Other);
    let depth = tree.depth();
    let ends = brackets(text, place.clone());
    let mut at = place.start;
    while at < place.end {
        let byte = text[at];
        let word = text[at..place.end]
            .iter()
            .take_while(|byte| is_name(**byte))
            .count();
        let kind = u16::from(byte);
        if word > 0 {
            let class = match byte.is_ascii_alphabetic() {
                true => SyntaxClass::Identifier,
                false => SyntaxClass::Number,
            };
            tree.leaf(at..at + word, u16::from(b'a'), class);
            at += word;
            continue;
        }
        if let Some((_, end)) = ends.iter().find(|(open, _)| *open == at) {
            tree.begin(at..end + 1, kind, SyntaxClass::Expression);
        }
        let is_sign = b"'\"()[]{},".contains(&byte);
        let class = match is_sign {
            true => SyntaxClass::Punctuation,
            false => SyntaxClass::Other,
        };
        if !byte.is_ascii_whitespace() {
            tree.leaf(at..at + 1, kind, class);
        }
        if ends.iter().any(|(_, end)| *end == at) && tree.depth() > depth {
            tree.end(tree.depth() - 1);
        }
        at += 1;
    }
    tree.end(outside);
}

/// Returns the matching pairs of brackets in the range `place` of a text, each as the positions of
/// the opening and of the closing bracket.
fn brackets(text: &[u8], place: Range<usize>) -> Vec<(usize, usize)> {
    let (mut open, mut found): (Vec<usize>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    for at in place {
        match text[at] {
            b'(' | b'[' | b'{' if open.len() < DEEPEST => open.push(at),
            close @ (b')' | b']' | b'}') => {
                let opening = match close {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                match open.pop() {
                    Some(from) if text[from] == opening => found.push((from, at)),
                    // Brackets that do not match are signs.
                    _ => open.clear(),
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns true if a byte can be part of a name in the value of an attribute.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte) || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::plain::tests::{assert_nested, texts_of};

    #[test]
    fn elements_attributes_and_names_make_a_tree() {
        let text = b"<a b='c(d, $e-f)' g><h/> x <i>y</i></a>";
        let tree = MarkupText.parse(text).expect("it has tags");
        assert_nested(&tree);
        let of = |kind| texts_of(&tree, text, kind);
        assert_eq!(of(ELEMENT)[1..], ["<h/>", "<i>y</i>"]);
        assert_eq!(of(ATTRIBUTE), [" b='c(d, $e-f)'", " g"]);
        assert_eq!(of(u16::from(b'a')), ["c", "d", "e-f"]);
        assert_eq!(of(u16::from(b'(')), ["(d, $e-f)", "("]);
        assert!(MarkupText.parse(b"a < b").is_none());
    }

    #[test]
    fn hostile_values_do_no_harm() {
        for value in ["(".repeat(1000), "([)]".repeat(200), ")".repeat(1000)] {
            let text = format!("<a b=\"{value}\"></a>");
            assert!(MarkupText.parse(text.as_bytes()).is_some());
        }
    }
}
