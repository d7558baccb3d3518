//! The first pass over a large program: deletes its comments and empties its blocks, in few tests,
//! before nodes are deleted one by one. Works with and without a grammar.

use std::ops::Range;
use std::sync::Arc;

use crate::document::{Grammar, SyntaxClass, SyntaxTree};
use crate::passes::blanks::delete_blanks_at_signs;
use crate::passes::commands::{CommandText, is_script};
use crate::passes::current_best::CurrentBest;
use crate::passes::directives::directives;
use crate::passes::halves::delete_halves;
use crate::passes::list::ListSearch;
use crate::passes::plain::{PlainText, comments, has_semicolons};
use crate::passes::ranges::union;
use crate::passes::siblings::children;
use crate::passes::syntax::{
    ROUGH, Trial, delete_siblings, reduce_program, shortest_of_kinds, tree_of,
};
use crate::passes::units::{Positions, Units};
use crate::passes::words::tokens;
use crate::{Edit, Outcome, Replacement};

/// Name, in logs, of the pass that deletes the comments of a program text.
const COMMENTS: &str = "comments";
/// Name, in logs, of the pass that empties blocks of statements.
const BLOCKS: &str = "blocks";
/// In a text of more bytes than this, the blocks of the program are emptied before its syntax nodes
/// are deleted.
const LARGE: usize = 1 << 10;
/// Size, in bytes, above which a text without a grammar is reduced as a program; in a smaller one,
/// the list of its brackets takes fewer tests.
const LARGE_OUTLINE: usize = 10 << 10;
/// Maximum nesting depth of blocks in a text without a grammar that is reduced as a program; in a
/// deeper one, the list of its brackets takes fewer tests.
const DEEPEST_BLOCK: usize = 16;
/// Maximum mean length of the lines, in bytes, of a text without a grammar that is reduced as a
/// program.
const LONG_LINE: usize = 1 << 7;
/// Two minimum numbers of blocks. Blocks of one nesting depth are emptied only if there are this
/// many; a text without a grammar is reduced as a program only if this many of its blocks have
/// several lines.
const FEWEST_BLOCKS: usize = 4;
/// Number of successive blocks (or comments) that turn out to be needed, after which no further
/// ones of the same nesting depth are emptied (or deleted).
const FRUITLESS_BLOCKS: usize = 4;

/// Reduces a large text without a grammar as a program. Deletes its comments in any case. If it is
/// a shell script, or has several blocks in braces that extend over lines, also deletes large
/// parts, contents of blocks, statements and names. `only_semicolons` requires of a program in
/// braces that its statements end with semicolons, not with lines. Returns true if the text was
/// reduced in this way, false if only comments were deleted or nothing was.
pub(super) async fn outline(work: &mut CurrentBest, only_semicolons: bool) -> bool {
    if work.len() <= LARGE_OUTLINE {
        return false;
    }
    let text = work.text();
    let has_comments = !delete_comments(work, comments(&text)).await;
    let text = work.text();
    if is_script(&text) {
        let grammar: Arc<dyn Grammar> = Arc::new(CommandText);
        reduce_outline(work, &grammar, has_comments).await;
        return true;
    }
    if only_semicolons && !has_semicolons(&text) {
        return false;
    }
    let grammar: Arc<dyn Grammar> = Arc::new(PlainText);
    let tree = tree_of(work, &grammar);
    let blocks = blocks(&tree, &text);
    let is_deep = blocks.iter().any(|(_, level)| *level > DEEPEST_BLOCK);
    let is_of_lines = |(block, _): &&(Replacement, usize)| text[block.at.clone()].contains(&b'\n');
    let of_lines = blocks.iter().filter(is_of_lines).count();
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    if is_deep || of_lines < FEWEST_BLOCKS || lines * LONG_LINE <= text.len() {
        return false;
    }
    reduce_outline(work, &grammar, has_comments).await;
    true
}

/// Reduces a large program by the tree that `grammar` makes of it: deletes its largest parts; then
/// single comments, if it still `has_comments`; preprocessor groups; contents of blocks; statements
/// and names.
async fn reduce_outline(work: &mut CurrentBest, grammar: &Arc<dyn Grammar>, has_comments: bool) {
    let trial = Trial {
        size: work.len(),
        end: usize::MAX,
        is_plain: true,
    };
    delete_halves(work, grammar).await;
    if has_comments {
        delete_most_comments(work).await;
    }
    directives(work).await;
    let tree = tree_of(work, grammar);
    delete_siblings(work, tree, &trial, ROUGH, 0..usize::MAX).await;
    empty_blocks(work, grammar).await;
    let tree = tree_of(work, grammar);
    delete_siblings(work, tree, &trial, ROUGH, 0..usize::MAX).await;
    reduce_program(work, grammar, &trial).await;
    delete_blanks_at_signs(work).await;
}

/// Deletes all comments of a program with the syntax tree `tree` in one test, and in another one
/// all statements that are only a string literal, which serve as comments.
pub(super) async fn delete_comments_of(
    work: &mut CurrentBest,
    grammar: &Arc<dyn Grammar>,
    tree: &SyntaxTree,
) {
    let all = tree.nodes.iter();
    let all = all.filter(|node| node.class == SyntaxClass::Comment);
    delete_comments(work, all.map(|node| node.place.clone()).collect()).await;
    let tree = tree_of(work, grammar);
    delete_comments(work, lone_texts(&tree)).await;
}

/// Deletes the comments in the ranges `places`, in one test. Returns true if the text has no
/// comments in these ranges afterwards; true also if `places` is empty.
async fn delete_comments(work: &mut CurrentBest, places: Vec<Range<usize>>) -> bool {
    let places = union(places);
    places.is_empty() || work.test(COMMENTS, Edit::Cut(places)).await == Outcome::Fail
}

/// Deletes those comments of a text without a grammar that the failure does not need.
async fn delete_most_comments(work: &mut CurrentBest) {
    let each = comments(&work.text()).into_iter().map(|place| vec![place]);
    let mut units = Positions::new(COMMENTS, each.collect());
    let mut list = ListSearch::new(work, &mut units).stop_after(FRUITLESS_BLOCKS);
    list.reduce().await;
}

/// Returns the ranges of the statements that consist of a string literal only, such as the
/// documentation of a function in Python. A statement without siblings is left out, because its
/// block would become empty.
fn lone_texts(tree: &SyntaxTree) -> Vec<Range<usize>> {
    let nodes = &tree.nodes;
    let is_lone = |index: &usize| {
        let node = &nodes[*index];
        let inside = nodes.get(*index + 1).filter(|_| node.last > *index + 1);
        let is_text =
            inside.is_some_and(|one| one.class == SyntaxClass::Text && one.place == node.place);
        // Looking for a second sibling, not counting them, takes the same time in a long list.
        let has_sibling = || {
            let parent = node.parent;
            parent.is_some_and(|parent| children(nodes, parent).nth(1).is_some())
        };
        is_text && node.class == SyntaxClass::Statement && has_sibling()
    };
    let lone = (0..nodes.len()).filter(is_lone);
    lone.map(|index| nodes[index].place.clone()).collect()
}

/// Empties the blocks of a large text that contain statements or declarations: first the outermost
/// blocks, then the blocks inside of those that must keep their content, and so on. All blocks of
/// one nesting depth are in one list.
pub(super) async fn empty_blocks(work: &mut CurrentBest, grammar: &Arc<dyn Grammar>) {
    for depth in 0.. {
        if work.len() <= LARGE {
            return;
        }
        let tree = tree_of(work, grammar);
        let all = blocks(&tree, &work.text());
        if all.iter().all(|(_, level)| *level < depth) {
            return;
        }
        let inside = all.into_iter().filter(|(_, level)| *level == depth);
        let mut inside = Blocks(inside.map(|(content, _)| content).collect());
        if inside.len() >= FEWEST_BLOCKS {
            let mut list = ListSearch::new(work, &mut inside).stop_after(FRUITLESS_BLOCKS);
            list.reduce().await;
        }
    }
}

/// Returns the blocks of a text that contain statements or declarations and can become shorter. For
/// each: the replacement that empties it, and its depth, which is the number of such blocks around
/// it. An emptied block in braces keeps the braces; a block after a `:` becomes the shortest node
/// of its kind in the text, if that is in one line.
fn blocks(tree: &SyntaxTree, text: &[u8]) -> Vec<(Replacement, usize)> {
    let is_statement = |node: usize| {
        let class = tree.nodes[node].class;
        matches!(class, SyntaxClass::Statement | SyntaxClass::Declaration)
    };
    let shortest = shortest_of_kinds(tree, text);
    let endless = Endless::of(text);
    let mut found = Vec::new();
    let mut ends: Vec<usize> = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate().skip(1) {
        while ends.last().is_some_and(|end| *end <= index) {
            ends.pop();
        }
        let before = text[..node.place.start].trim_ascii_end();
        let is_block = is_braced(&text[node.place.clone()])
            || node.class == SyntaxClass::Other && before.ends_with(b":");
        if !is_block || !children(&tree.nodes, index).any(is_statement) {
            continue;
        }
        let place = node.place.clone();
        let (at, with) = match is_braced(&text[place.clone()]) {
            true => {
                let head = node
                    .parent
                    .map_or(0, |parent| tree.nodes[parent].place.start);
                let with = endless.map_or(&b""[..], |endless| {
                    endless.body_after(&text[head..place.start])
                });
                (place.start + 1..place.end - 1, with)
            }
            false => {
                let least = shortest.get(&node.kind).copied().unwrap_or(index);
                (place, &text[tree.nodes[least].place.clone()])
            }
        };
        if with.len() < at.len() && !with.contains(&b'\n') {
            let with = with.to_vec();
            found.push((Replacement { at, with }, ends.len()));
            ends.push(node.last);
        }
    }
    found
}

/// Languages in which the body of a function that returns a value may not be empty: where its
/// statements are deleted, an endless loop is written instead. The variants say where in the head
/// of such a function the type of the returned value is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Endless {
    /// The type of the returned value stands after an arrow, as in Rust: `fn name(…) -> Type { …
    /// }`.
    Arrow,
    /// The type of the returned value stands after the parameters, as in Go: `func name(…) Type { …
    /// }`.
    AfterParameters,
    /// The type of the returned value stands before the name, as in Java and C#: `Type name(…) { …
    /// }`.
    BeforeName,
}

impl Endless {
    /// Guesses by typical words in `text` whether it is a program in a language in which the body
    /// of a function that returns a value may not be empty. Returns how functions are written in
    /// that language; `None` for other languages.
    fn of(text: &[u8]) -> Option<Endless> {
        let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
        match () {
            _ if has(b"fn ") && has(b") -> ") => Some(Endless::Arrow),
            _ if has(b"func ") && has(b"package ") => Some(Endless::AfterParameters),
            _ if has(b"class ")
                && (has(b"import java") || has(b"package ") || has(b"using System")) =>
            {
                Some(Endless::BeforeName)
            }
            _ => None,
        }
    }

    /// Returns the text that replaces the body of a block to empty it. `head` is the text between
    /// the previous block and this block: if it is the head of a function that returns a value, the
    /// replacement is a statement that never returns, such as an endless loop; otherwise it is
    /// empty.
    fn body_after(self, head: &[u8]) -> &'static [u8] {
        let words = tokens(head);
        let is = |at: usize, word: &[u8]| words.get(at).is_some_and(|token| token.of(head) == word);
        let has = |word: &[u8]| (0..words.len()).any(|at| is(at, word));
        match self {
            Endless::Arrow if has(b"fn") && head.windows(2).any(|sign| sign == b"->") => b"loop{}",
            Endless::AfterParameters if has(b"func") && !head.trim_ascii_end().ends_with(b")") => {
                b"for{}"
            }
            Endless::BeforeName => {
                let open = (0..words.len())
                    .find(|at| is(*at, b"("))
                    .unwrap_or_default();
                let is_word = |at: usize| words[at].class == b'a';
                let is_named = open > 1 && is_word(open - 1) && !is(open - 2, b"new");
                let has_type =
                    is_named && (is_word(open - 2) || is(open - 2, b">") || is(open - 2, b"]"));
                let is_modifier = MODIFIERS
                    .iter()
                    .any(|word| is(open.saturating_sub(2), word));
                if has_type && !is_modifier {
                    b"throw null;"
                } else {
                    b""
                }
            }
            _ => b"",
        }
    }
}

/// Words that are not the type of a returned value where they stand directly before the name of a
/// function: modifiers, as before a constructor, and some keywords.
const MODIFIERS: &[&[u8]] = &[
    b"else",
    b"internal",
    b"private",
    b"protected",
    b"public",
    b"return",
    b"void",
];

fn is_braced(text: &[u8]) -> bool {
    matches!(text, [b'{', .., b'}'])
}

/// Contents of blocks, each with the text that replaces it, as units of a list search: to delete a
/// unit is to make the replacement. The contents do not overlap.
struct Blocks(Vec<Replacement>);

impl Units for Blocks {
    fn rule(&self) -> &'static str {
        BLOCKS
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn edit(&self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        let written = cuts.iter().flat_map(|cut| &self.0[cut.clone()]);
        let written: Vec<Replacement> = written.cloned().collect();
        let is_cut = written.iter().all(|one| one.with.is_empty());
        let edit = match is_cut {
            true => Edit::Cut(written.into_iter().map(|one| one.at).collect()),
            false => Edit::Set(written),
        };
        Some(edit)
    }

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let is_written = |index: &usize| cuts.iter().any(|cut| cut.contains(index));
        let mut gone = 0;
        let mut kept = Vec::new();
        for (index, mut one) in std::mem::take(&mut self.0).into_iter().enumerate() {
            if is_written(&index) {
                gone += one.at.len() - one.with.len();
            } else {
                one.at = one.at.start - gone..one.at.end - gone;
                kept.push(one);
            }
        }
        self.0 = kept;
        vec![0; cuts.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::SyntaxNode;

    #[test]
    fn a_long_list_of_texts_is_looked_through_once() {
        let count = 1 << 17;
        let node = |place: Range<usize>, class, parent, last| SyntaxNode {
            place,
            kind: 0,
            class,
            parent,
            last,
        };
        let last = count * 2 + 1;
        let mut nodes = vec![node(0..count, SyntaxClass::Other, None, last)];
        for at in 0..count {
            let (index, place) = (nodes.len(), at..at + 1);
            let text = node(place.clone(), SyntaxClass::Text, Some(index), index + 2);
            let statement = node(place, SyntaxClass::Statement, Some(0), index + 2);
            nodes.extend([statement, text]);
        }
        let tree = SyntaxTree { nodes, errors: 0 };
        // Counting the siblings of each would take 2^33 steps.
        assert_eq!(lone_texts(&tree).len(), count);
    }

    #[test]
    fn functions_with_values_get_bodies_that_never_return() {
        let emptied = |text: &str| {
            let tree = PlainText
                .parse(text.as_bytes())
                .expect("any text has a tree");
            let mut written: Vec<Replacement> = blocks(&tree, text.as_bytes())
                .into_iter()
                .map(|(block, _)| block)
                .collect();
            written.sort_by_key(|block| block.at.start);
            String::from_utf8(Edit::Set(written).of_best(text.as_bytes())).expect("ASCII")
        };
        assert_eq!(
            emptied("fn f(a: B) -> C { d; e; f; g; }\nfn h() { i; }"),
            "fn f(a: B) -> C {loop{}}\nfn h() {}"
        );
        assert_eq!(
            emptied("package a\nfunc f(b C) D {\n return b.c\n}\nfunc g() {\n h()\n}\n"),
            "package a\nfunc f(b C) D {for{}}\nfunc g() {}\n"
        );
        assert_eq!(
            emptied(
                "package a;\nList<B> c(D d) { e = f; return e; }\npublic void g() { h; }\npublic I() { j; }\nclass K;"
            ),
            "package a;\nList<B> c(D d) {throw null;}\npublic void g() {}\npublic I() {}\nclass K;"
        );
        assert_eq!(
            emptied("int f(a) { b; }\nclass C;"),
            "int f(a) {}\nclass C;"
        );
    }
}
