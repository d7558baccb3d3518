//! Parses texts by the grammars of tree-sitter into the syntax trees that searches reduce.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use ddfuzz_delta::{Grammar, SyntaxClass, SyntaxNode, SyntaxTree};
use tree_sitter::{Node, ParseOptions, Parser, Tree, TreeCursor};

use crate::language::KnownLanguage;
use ddfuzz_delta::interruption;

/// Maximum size, in bytes, of texts that are parsed by a grammar.
pub(crate) const LARGEST: usize = 1 << 20;
/// Maximum depth of a syntax tree. A text with a deeper tree is reduced by its brackets instead of
/// its grammar.
pub(crate) const DEEPEST: u32 = 200;
/// Maximum number of nodes of a syntax tree; a text whose tree has more is not reduced by its
/// grammar.
const MOST_NODES: usize = 1 << 20;

/// Number of steps that the parser may take for any text; one more step is allowed for each
/// [`STEP`] bytes of the text. A step is one call of tree-sitter's progress callback.
const MOST_STEPS: usize = 1 << 8;
/// Number of bytes of a text for each of which the parser may take one more step than
/// [`MOST_STEPS`].
const STEP: usize = 24;

/// A tree-sitter grammar of one language, with its parser.
pub struct TreeSitter {
    name: String,
    parser: Mutex<Parser>,
    /// Class of the syntax nodes of each kind, indexed by tree-sitter's number of the kind.
    classes: Vec<SyntaxClass>,
}

impl TreeSitter {
    /// Makes a parser of a language; `None` if tree-sitter does not support the version of its
    /// grammar.
    pub fn new(known: &KnownLanguage) -> Option<TreeSitter> {
        let language = known.language();
        let mut parser = Parser::new();
        parser.set_language(&language).ok()?;
        let kinds = 0..=u16::MAX;
        let kinds = kinds.take(language.node_kind_count());
        let class = |kind: u16| match language.node_kind_is_named(kind) {
            true => class_of(language.node_kind_for_id(kind).unwrap_or_default()),
            false => SyntaxClass::Punctuation,
        };
        Some(TreeSitter {
            name: known.name().to_owned(),
            classes: kinds.map(class).collect(),
            parser: Mutex::new(parser),
        })
    }

    /// Parses a text into its syntax tree; `None` if the parser exceeds its maximum number of
    /// steps, which grows with the size of the text.
    pub fn tree(&self, text: &[u8]) -> Option<Tree> {
        interruption::check();
        let mut parser = self.parser.lock().unwrap_or_else(PoisonError::into_inner);
        parser.reset();
        let mut read = |at: usize, _| text.get(at..).unwrap_or_default();
        // Bounds the work on texts that the grammar does not fit.
        let most = MOST_STEPS + text.len() / STEP;
        let mut steps = 0usize;
        let mut progress = |_: &tree_sitter::ParseState| {
            steps += 1;
            match steps > most {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        parser.parse_with_options(&mut read, None, Some(options))
    }
}

/// Calls `see` with each node of a syntax tree, in pre-order, and with the depth of the node (0 for
/// the root). Stops when `see` returns false.
pub fn visit(tree: &Tree, see: &mut dyn FnMut(Node<'_>, u32) -> bool) {
    let mut cursor = tree.walk();
    let mut depth = 0;
    while see(cursor.node(), depth) && next(&mut cursor, &mut depth) {}
}

/// Moves a cursor to the next node of a syntax tree in pre-order, and updates `depth` to that of
/// the node; returns `false` after the last node.
fn next(cursor: &mut TreeCursor<'_>, depth: &mut u32) -> bool {
    if cursor.goto_first_child() {
        *depth += 1;
        return true;
    }
    loop {
        if cursor.goto_next_sibling() {
            return true;
        }
        if !cursor.goto_parent() {
            return false;
        }
        *depth -= 1;
    }
}

/// Returns the class (identifier, number, string, …) of syntax nodes, by the name of their kind in
/// the grammar.
fn class_of(kind: &str) -> SyntaxClass {
    let has = |part: &str| kind.contains(part);
    if has("comment") {
        SyntaxClass::Comment
    } else if has("identifier") && !has("expression") {
        SyntaxClass::Identifier
    } else if kind == "number" || has("number_literal") || has("integer") || has("float") {
        SyntaxClass::Number
    } else if kind == "string" || kind == "string_literal" || kind == "template_string" {
        SyntaxClass::Text
    } else if kind.ends_with("expression") || kind == "call" || kind.ends_with("_operator") {
        SyntaxClass::Expression
    } else if kind.ends_with("statement") {
        SyntaxClass::Statement
    } else if kind.ends_with("declaration") || kind.ends_with("definition") {
        SyntaxClass::Declaration
    } else {
        SyntaxClass::Other
    }
}

impl Grammar for TreeSitter {
    fn name(&self) -> &str {
        &self.name
    }

    fn parse(&self, text: &[u8]) -> Option<SyntaxTree> {
        if text.len() > LARGEST {
            return None;
        }
        let mut tree = SyntaxTree::default();
        let mut open: Vec<usize> = Vec::new();
        let mut is_deep = false;
        visit(&self.tree(text)?, &mut |node, depth| {
            is_deep |= depth > DEEPEST;
            let place = node.start_byte()..node.end_byte();
            let index = tree.nodes.len();
            while open
                .last()
                .is_some_and(|one| tree.nodes[*one].last <= index)
            {
                open.pop();
            }
            let parent = open.last().copied();
            tree.errors += usize::from(node.is_error() || node.is_missing());
            let kind = node.kind_id();
            let class = self.classes.get(usize::from(kind)).copied();
            tree.nodes.push(SyntaxNode {
                place,
                kind,
                class: class.unwrap_or(SyntaxClass::Other),
                parent,
                last: index + node.descendant_count().max(1),
            });
            open.push(index);
            !is_deep && index < MOST_NODES
        });
        (!is_deep && tree.nodes.len() <= MOST_NODES).then_some(tree)
    }

    fn errors(&self, text: &[u8]) -> Option<usize> {
        if text.len() > LARGEST {
            return None;
        }
        let tree = self.tree(text)?;
        let mut errors = 0;
        if tree.root_node().has_error() {
            visit(&tree, &mut |node, _| {
                errors += usize::from(node.is_error() || node.is_missing());
                true
            });
        }
        Some(errors)
    }
}
