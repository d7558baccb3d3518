//! The passes over the syntax tree of a text: they delete siblings, replace nodes by nodes inside
//! of them or by the shortest text of their kind, delete blanks, and shorten names.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::document::{Grammar, SyntaxClass, SyntaxNode, SyntaxTree};
use crate::passes::blanks::{delete_all_blanks, delete_blanks, outdented, shorten_blanks};
use crate::passes::current_best::CurrentBest;
use crate::passes::directives::directives;
use crate::passes::halves::delete_halves;
use crate::passes::list::ListSearch;
use crate::passes::names::{KeptNames, Rewritten, rename};
use crate::passes::outline::{delete_comments_of, empty_blocks};
use crate::passes::siblings::{Siblings, children};
use crate::passes::units::Units;
use crate::passes::uses::{delete_arguments, delete_lone_names, delete_uses};
use crate::{Edit, ExtraTests, Outcome, Replacement};

/// Number of syntax errors up to which the first reduction of a text by its syntax takes place,
/// whatever the size of its tree; for more errors, [`NODES_PER_ERROR`] decides.
const MANY_ERRORS: usize = 64;
/// Minimum number of nodes of a text's tree for each of its syntax errors; with fewer nodes, the
/// text is not reduced by its syntax.
const NODES_PER_ERROR: usize = 8;

/// Name, in logs, of the pass that replaces nodes of a syntax tree by nodes inside of them.
const RAISE: &str = "raise";
/// Name, in logs, of the pass that replaces nodes of a syntax tree by the shortest text of a node
/// of the same kind.
const LEAST: &str = "least";

/// Maximum number of rounds in which the passes over the syntax tree are repeated.
const ROUNDS: usize = 4;
/// Number of successive syntax nodes that turn out to be needed for the failure, after which the
/// sweep over a list of siblings (deletion of units block by block) ends.
const FRUITLESS: usize = 16;
/// Number of tests at the beginning of the reduction by a grammar that show whether the grammar
/// helps: they must delete enough of the text ([`LEAST_GAIN`]).
pub(super) const TRIAL: usize = 30;
/// The first [`TRIAL`] tests by a grammar must delete at least the text's size, in bytes, divided
/// by this number; otherwise the grammar is not used further.
const LEAST_GAIN: usize = 20;
/// Size of the text, in bytes, at which the first round of deletions in its syntax tree ends; this
/// rough round deletes only children of nodes that make up at least half of the text.
pub(super) const ROUGH: usize = 256;
/// Minimum size, in bytes, of programs that are reduced by their large nodes, and whose names
/// become short, before children of small nodes are deleted.
const LARGE: usize = 1 << 11;
/// Maximum size, in bytes, of programs in which large nodes of the syntax tree are deleted first.
const LARGEST: usize = 1 << 14;
/// Size, in bytes, above which the largest parts of a program are deleted before anything else.
const LARGE_PROGRAM: usize = 10 << 10;
/// Minimum size, in bytes, of those nodes of a large program whose children are deleted first.
const FINE: usize = 64;
/// Number of successive tests that delete little of a large program, after which the deletion of
/// children of its large nodes ends; they are tried again later.
const FRUITLESS_NODES: usize = 32;
/// Maximum number of tests that replace one syntax node by a node inside of it.
const INNER: usize = 4;
/// Maximum number of syntax nodes whose children are tried for deletion in one round.
const PARENTS: usize = 4096;
/// Number of successive tests without success after which the first attempt to replace nodes by
/// nodes inside of them ends. This attempt is made in a large text, before siblings are deleted.
pub(super) const FRUITLESS_AT_FIRST: usize = 4;
/// Number of successive tests without success after which nodes of a large text, whose siblings
/// were deleted already, are no longer replaced by nodes inside of them.
const FRUITLESS_LATER: usize = 32;
/// Maximum number of levels below a node at which nodes of other kinds are tried in its place.
const DEPTH: usize = 2;
/// Maximum number of nodes at each level below a syntax node that are tried in its place.
const MOST_BELOW: usize = 16;
/// Number of different literals (numbers, strings) of a text above which several of them are
/// shortened in one test.
const MANY_LITERALS: usize = 8;
/// One of this many candidates with more syntax errors than the current best text is run
/// nevertheless, to check the prediction that such candidates do not fail.
const VERIFIED: usize = 16;
/// Number of wrong predictions (candidates that failed although they had more syntax errors than
/// the best text) after which outcomes are no longer predicted by syntax errors.
const WRONG: usize = 3;

/// Maximum size, in bytes, of texts whose syntax errors are counted to predict outcomes: larger
/// ones take longer to parse than to run.
const PREDICTED: usize = 1 << 13;
/// Maximum size, in bytes, of texts whose outcomes are predicted if tests take long.
const PREDICTED_OF_SLOW: usize = 1 << 16;

/// A predictor of outcomes by syntax: a text does not fail if it has more syntax errors than the
/// current best text.
pub(super) struct SyntaxPredictor {
    grammar: Arc<dyn Grammar>,
    /// Syntax errors of the current best text; `usize::MAX` if it is too large to count them.
    errors: usize,
    /// Maximum size, in bytes, of texts whose syntax errors are counted.
    largest: usize,
    refused: usize,
    wrong: usize,
}

impl SyntaxPredictor {
    /// Makes a predictor for the best text of `work`, with `errors` syntax errors; idle if large.
    fn new(grammar: Arc<dyn Grammar>, errors: usize, work: &CurrentBest) -> SyntaxPredictor {
        let largest = match work.extra_tests() {
            ExtraTests::Few => PREDICTED_OF_SLOW,
            ExtraTests::Many | ExtraTests::None => PREDICTED,
        };
        SyntaxPredictor {
            grammar,
            errors: if work.len() > largest {
                usize::MAX
            } else {
                errors
            },
            largest,
            refused: 0,
            wrong: 0,
        }
    }

    /// Returns true if `text` is not to be run: it has more syntax errors than the best text, so it
    /// will hardly fail. False for each [`VERIFIED`]th such text, which tests the prediction.
    pub fn refuses(&mut self, text: &[u8]) -> bool {
        let is_known = self.errors < usize::MAX && text.len() <= self.largest;
        if self.wrong >= WRONG || !is_known || !self.has_more_errors(text) {
            return false;
        }
        self.refused += 1;
        !self.refused.is_multiple_of(VERIFIED)
    }

    fn has_more_errors(&self, text: &[u8]) -> bool {
        let errors = self.grammar.errors(text);
        errors.is_none_or(|errors| errors > self.errors)
    }

    /// Counts the syntax errors of `text`, which has failed and is now the best text. If it has
    /// more than the best text before, a prediction was wrong, which is counted.
    pub fn learn(&mut self, text: &[u8]) {
        let errors = match text.len() <= self.largest {
            true => self.grammar.errors(text).unwrap_or_default(),
            false => usize::MAX,
        };
        self.wrong += usize::from(errors > self.errors);
        self.errors = errors;
    }
}

/// Reduces a text by its syntax tree. Returns true if the text became smaller and the first tests
/// deleted enough for later passes to rely on the grammar; false, without a test, if the text
/// cannot be parsed or has too many syntax errors.
pub(super) async fn syntax(work: &mut CurrentBest, grammar: &Arc<dyn Grammar>) -> bool {
    let Some(tree) = parse(&work.text(), grammar) else {
        return false;
    };
    // A text that is only partly in the language, as one that ends in other bytes: each parse would take
    // long, and its errors would say nothing.
    if tree.errors > MANY_ERRORS && tree.errors > tree.nodes.len() / NODES_PER_ERROR {
        return false;
    }
    let trial = Trial {
        size: work.len(),
        end: work.asked() + TRIAL,
        is_plain: false,
    };
    let predictor = SyntaxPredictor::new(grammar.clone(), tree.errors, work);
    work.predict_by(Some(predictor));
    // Without blanks at once, all later texts are without them: none is tested with and without.
    let has_blanks = !delete_all_blanks(work).await;
    let tree = if has_blanks {
        tree
    } else {
        tree_of(work, grammar)
    };
    delete_comments_of(work, grammar, &tree).await;
    let mut trial = trial;
    if work.len() > LARGE_PROGRAM {
        delete_halves(work, grammar).await;
        trial.end = work.asked() + TRIAL;
    }
    let asked = work.asked();
    directives(work).await;
    trial.end += work.asked() - asked;
    let tree = tree_of(work, grammar);
    delete_siblings(work, tree, &trial, ROUGH, 0..usize::MAX).await;
    if !trial.has_failed(work) {
        // Where the failure needs one place only, what is left has few blocks.
        empty_blocks(work, grammar).await;
        let tree = tree_of(work, grammar);
        delete_siblings(work, tree, &trial, ROUGH, 0..usize::MAX).await;
        // Most blanks of a large text are deleted with the nodes around them.
        if has_blanks && work.len() <= ROUGH {
            delete_blanks(work).await;
        }
        reduce_program(work, grammar, &trial).await;
    }
    work.predict_by(None);
    work.len() < trial.size && !trial.has_failed(work)
}

/// Reduces a text by its syntax tree, after its blocks were emptied: children of large nodes, then
/// all nodes, then names.
pub(super) async fn reduce_program(
    work: &mut CurrentBest,
    grammar: &Arc<dyn Grammar>,
    trial: &Trial,
) {
    let mut kept = KeptNames::new();
    let rest = reduce_large_nodes(work, grammar, trial, &mut kept).await;
    reduce_nodes(work, grammar, trial, rest).await;
    let names = |text: &[u8]| identifiers(text, grammar);
    rename(work, &names, &mut kept).await;
}

/// Reduces a small text by its syntax tree once more, after other passes have changed it. Does
/// nothing to a text that cannot be parsed or has many syntax errors.
pub(super) async fn syntax_again(work: &mut CurrentBest, grammar: &Arc<dyn Grammar>) {
    let Some(tree) = parse(&work.text(), grammar) else {
        return;
    };
    if tree.errors > tree.nodes.len() / NODES_PER_ERROR {
        return;
    }
    let predictor = SyntaxPredictor::new(grammar.clone(), tree.errors, work);
    work.predict_by(Some(predictor));
    reduce_nodes(work, grammar, &Trial::always(work), 0..usize::MAX).await;
    let names = |text: &[u8]| identifiers(text, grammar);
    rename(work, &names, &mut KeptNames::new()).await;
    work.predict_by(None);
}

/// Replacements of syntax nodes that were tested without success, as pairs of the node's text and
/// the text in its place; none of them is tested again, wherever the node's text stands. An empty
/// second text means that all replacements of that node were tested.
#[derive(Default)]
pub(super) struct Tried(HashSet<(Vec<u8>, Vec<u8>)>);

impl Tried {
    /// Returns true if a node with the text `own` was replaced by `with` before, without success.
    fn has(&self, own: &[u8], with: &[u8]) -> bool {
        self.0.contains(&(own.to_vec(), with.to_vec()))
    }

    fn add(&mut self, own: &[u8], with: &[u8]) {
        self.0.insert((own.to_vec(), with.to_vec()));
    }
}

/// Makes those reductions of a large program that delete many bytes with few tests: deletes
/// children of nodes of at least [`FINE`] bytes and unused names, shortens blanks and names; `kept`
/// collects the names that cannot become short. Does nothing to a small program. Returns the sizes
/// of the nodes whose children are still to be tried.
async fn reduce_large_nodes(
    work: &mut CurrentBest,
    grammar: &Arc<dyn Grammar>,
    trial: &Trial,
    kept: &mut KeptNames,
) -> Range<usize> {
    if !(LARGE..=LARGEST).contains(&work.len()) {
        return 0..usize::MAX;
    }
    shorten_blanks(work).await;
    if work.len() < LARGE {
        return 0..usize::MAX;
    }
    raise(work, grammar, FRUITLESS_AT_FIRST, &mut Tried::default()).await;
    let tree = tree_of(work, grammar);
    // Where most of what is left is needed, names and blanks go in fewer tests.
    work.limit_fruitless(Some(FRUITLESS_NODES));
    delete_siblings(work, tree, trial, 0, FINE..usize::MAX).await;
    let is_left = work.is_limit_reached();
    work.limit_fruitless(None);
    delete_lone_names(work, grammar).await;
    delete_uses(work, grammar).await;
    if work.len() < LARGE {
        return 0..usize::MAX;
    }
    let names = |text: &[u8]| identifiers(text, grammar);
    rename(work, &names, kept).await;
    if is_left { 0..usize::MAX } else { 0..FINE }
}

/// Repeats three passes over the syntax tree until nothing changes: deletes nodes, replaces nodes
/// by nodes inside of them, and shortens nodes and literals. In the first round, deletes only
/// children of nodes whose size in bytes is in `sizes`.
async fn reduce_nodes(
    work: &mut CurrentBest,
    grammar: &Arc<dyn Grammar>,
    trial: &Trial,
    mut sizes: Range<usize>,
) {
    let mut tried = Tried::default();
    // Where few bytes are left, siblings go more cheaply than nodes are raised.
    let mut patience = match work.len() {
        0..=ROUGH => 0,
        _ => FRUITLESS_AT_FIRST,
    };
    for round in 1..=ROUNDS {
        let before = work.reductions();
        if patience > 0 {
            // Most tests that replace nodes of a large text pass.
            let most = if work.len() > LARGE || trial.is_plain {
                FRUITLESS_LATER
            } else {
                usize::MAX
            };
            raise(work, grammar, patience.min(most), &mut tried).await;
        }
        let raised = work.reductions();
        if raised > before || patience < usize::MAX {
            let tree = tree_of(work, grammar);
            let first = std::mem::replace(&mut sizes, 0..usize::MAX);
            delete_siblings(work, tree, trial, 0, first).await;
            if delete_uses(work, grammar).await {
                let tree = tree_of(work, grammar);
                delete_siblings(work, tree, trial, 0, sizes.clone()).await;
            }
            shorten(work, grammar, &mut tried).await;
        }
        let is_done = work.reductions() == before && patience == usize::MAX;
        if trial.has_failed(work) {
            return;
        }
        if is_done || round == ROUNDS {
            if !delete_arguments(work, grammar).await {
                return;
            }
            let tree = tree_of(work, grammar);
            delete_siblings(work, tree, trial, 0, sizes.clone()).await;
            delete_uses(work, grammar).await;
        }
        patience = usize::MAX;
        if work.reductions() > before {
            delete_blanks(work).await;
        }
    }
}

/// The first [`TRIAL`] tests that reduce a text by a grammar; they show whether the grammar helps.
pub(super) struct Trial {
    /// Size of the text, in bytes, before the first test of the trial.
    pub size: usize,
    /// Number of tests, counted from the beginning of the search, at which the trial ends.
    pub end: usize,
    /// True if the syntax tree is that of a text without a grammar, whose small nodes are words and
    /// brackets; other passes delete these in fewer tests.
    pub is_plain: bool,
}

impl Trial {
    /// Returns a trial of a grammar that never fails, whatever its first tests delete.
    pub fn always(work: &CurrentBest) -> Trial {
        Trial {
            size: work.len(),
            end: usize::MAX,
            is_plain: false,
        }
    }

    /// Returns true if the first [`TRIAL`] tests by the grammar have been made and deleted less
    /// than the size of the text divided by [`LEAST_GAIN`].
    pub fn has_failed(&self, work: &CurrentBest) -> bool {
        let gained = self.size - work.len();
        work.asked() >= self.end && gained * LEAST_GAIN < self.size
    }
}

/// Parses a text into a syntax tree; `None` if the text is too large, or if the grammar returns no
/// valid tree: nodes must lie in their parents, and siblings must follow each other.
fn parse(text: &[u8], grammar: &Arc<dyn Grammar>) -> Option<SyntaxTree> {
    let tree = grammar.parse(text)?;
    let whole = text.len();
    let mut free: Vec<usize> = tree.nodes.iter().map(|node| node.place.start).collect();
    for (index, node) in tree.nodes.iter().enumerate() {
        let (place, count) = (&node.place, tree.nodes.len());
        let is_inside = match node.parent {
            Some(parent) if parent < index => {
                let around = &tree.nodes[parent];
                let fits = free[parent] <= place.start && place.end <= around.place.end;
                free[parent] = place.end;
                fits && node.last <= around.last
            }
            Some(_) => false,
            None => index == 0,
        };
        let is_range = place.start <= place.end && place.end <= whole;
        if !is_inside || !is_range || node.last <= index || node.last > count {
            return None;
        }
    }
    Some(tree)
}

pub(super) fn tree_of(work: &mut CurrentBest, grammar: &Arc<dyn Grammar>) -> SyntaxTree {
    parse(&work.text(), grammar).unwrap_or_default()
}

/// Deletes children of the syntax nodes whose sizes in bytes are in `sizes`, largest nodes first.
/// If `rough` is not 0, ends when the text has at most `rough` bytes or the next node is less than
/// half of it. Ends also when `trial` shows that the grammar does not help.
pub(super) async fn delete_siblings(
    work: &mut CurrentBest,
    tree: SyntaxTree,
    trial: &Trial,
    rough: usize,
    sizes: Range<usize>,
) {
    let mut siblings = Siblings::of(tree);
    for _ in 0..PARENTS {
        let Some(parent) = siblings.next_parent() else {
            return;
        };
        let node = siblings.node(parent);
        let size = node.place.len();
        if size < sizes.start {
            return;
        }
        // Literals get empty later, where they are left.
        let is_text =
            node.class == SyntaxClass::Text && is_quoted(&work.text()[node.place.clone()]);
        let is_words = trial.is_plain && size < FINE && !siblings.has_statements();
        if is_text || is_words || size >= sizes.end {
            continue;
        }
        let is_fine = rough > 0 && (size * 2 < work.len() || work.len() <= rough);
        if is_fine || trial.has_failed(work) {
            return;
        }
        ListSearch::new(work, &mut siblings)
            .stop_after(FRUITLESS)
            .reduce()
            .await;
    }
}

/// Returns the indices of the nodes of a tree, ordered by size in bytes, the largest first.
fn by_size(tree: &SyntaxTree) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tree.nodes.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(tree.nodes[*index].place.len()));
    order
}

/// Tests the text with the bytes `with` in place of the node in the range `at`; `rule` is the name
/// of the pass in logs. Returns true if the text fails, and so becomes the current best text.
async fn replace(
    work: &mut CurrentBest,
    rule: &'static str,
    at: &Range<usize>,
    with: Vec<u8>,
) -> bool {
    let replacement = Replacement {
        at: at.clone(),
        with,
    };
    work.test(rule, Edit::Set(vec![replacement])).await == Outcome::Fail
}

/// Replaces syntax nodes by nodes inside of them: by one of the smallest of the same kind, else by
/// one of the largest of other kinds up to [`DEPTH`] levels below. Ends after `patience` successive
/// tests that do not fail.
pub(super) async fn raise(
    work: &mut CurrentBest,
    grammar: &Arc<dyn Grammar>,
    patience: usize,
    tried: &mut Tried,
) {
    let mut largest = usize::MAX;
    loop {
        let tree = tree_of(work, grammar);
        let mut raised = false;
        let end = work.asked().saturating_add(patience);
        for index in by_size(&tree) {
            let node = &tree.nodes[index];
            let size = node.place.len();
            let is_atom = node.class == SyntaxClass::Punctuation
                || node.class == SyntaxClass::Text && is_quoted(&work.text()[node.place.clone()]);
            if size > largest || size < 2 || is_atom {
                continue;
            }
            raised = raise_inside(work, &tree, index, tried).await;
            if raised {
                largest = size;
            }
            if raised || work.asked() >= end {
                break;
            }
        }
        if !raised {
            return;
        }
    }
}

/// Tests the text with the node at `index` replaced by nodes inside of it, in at most [`INNER`]
/// tests, without replacements in `tried`. Returns true if the text fails with one of them.
async fn raise_inside(
    work: &mut CurrentBest,
    tree: &SyntaxTree,
    index: usize,
    tried: &mut Tried,
) -> bool {
    let node = &tree.nodes[index];
    let inside = index + 1..node.last;
    let same = inside.filter(|inner| tree.nodes[*inner].kind == node.kind);
    let mut inner: Vec<usize> = same.collect();
    inner.sort_by_key(|inner| tree.nodes[*inner].place.len());
    inner.truncate(INNER);
    inner.extend(below(tree, index));
    let end = work.asked() + INNER;
    for inner in inner {
        let place = &tree.nodes[inner].place;
        if place.is_empty() || place.len() >= node.place.len() || work.asked() >= end {
            continue;
        }
        let text = work.text();
        let with = outdented(&text, place, node.place.start);
        let own = &text[node.place.clone()];
        if tried.has(own, &with) {
            continue;
        }
        if replace(work, RAISE, &node.place, with.clone()).await {
            return true;
        }
        tried.add(own, &with);
    }
    false
}

/// Returns the indices of the nodes that may be tried in place of the node at `index`: nodes of
/// other kinds up to [`DEPTH`] levels below it, the largest first.
fn below(tree: &SyntaxTree, index: usize) -> Vec<usize> {
    let SyntaxNode { kind, class, .. } = tree.nodes[index];
    let is_whole = tree.nodes[index].place == tree.nodes[0].place;
    let mut found: Vec<usize> = Vec::new();
    let mut level = vec![index];
    for _ in 0..DEPTH {
        let next = level.iter().flat_map(|node| children(&tree.nodes, *node));
        level = next.take(MOST_BELOW).collect();
        let others = level.iter().filter(|node| {
            let node = &tree.nodes[**node];
            // Literals stand where expressions do, and some languages have texts of one literal. A name
            // in place of a declaration would be a part of the word after it.
            let fits = match node.class {
                SyntaxClass::Identifier => class != SyntaxClass::Declaration,
                _ => !is_literal(node) || is_whole || class == SyntaxClass::Expression,
            };
            node.class != SyntaxClass::Punctuation && node.kind != kind && fits
        });
        found.extend(others);
    }
    found.sort_by_key(|node| {
        let node = &tree.nodes[*node];
        (
            is_whole && !is_literal(node),
            std::cmp::Reverse(node.place.len()),
        )
    });
    found
}

fn is_literal(node: &SyntaxNode) -> bool {
    matches!(node.class, SyntaxClass::Number | SyntaxClass::Text)
}

/// Returns true if a text begins and ends with the same quotation mark, `"` or `'`.
fn is_quoted(text: &[u8]) -> bool {
    matches!(text, [b'"', .., b'"'] | [b'\'', .., b'\''])
}

/// Returns true if the range `place` is all that stands between two equal quotation marks of a
/// text.
fn is_between_quotes(text: &[u8], place: &Range<usize>) -> bool {
    let before = place.start.checked_sub(1).and_then(|at| text.get(at));
    matches!(before, Some(b'"' | b'\'' | b'`')) && before == text.get(place.end)
}

/// Shortens a program: replaces nodes of the syntax tree by the shortest text of their kind,
/// numbers by `0`, and strings by empty ones. Replacements in `tried` are not tested.
async fn shorten(work: &mut CurrentBest, grammar: &Arc<dyn Grammar>, tried: &mut Tried) {
    shorten_literals(work, grammar, tried).await;
    // Whether nodes may be replaced by nodes inside of them; one test tells whether that is likely.
    let mut raises = true;
    let mut largest = usize::MAX;
    'anew: loop {
        let tree = tree_of(work, grammar);
        let text = work.text();
        let patience = patience_of(&text);
        let mut fruitless = 0;
        let shortest = shortest_of_kinds(&tree, &text);
        for index in by_size(&tree) {
            let node = &tree.nodes[index];
            if node.place.len() >= largest || node.class == SyntaxClass::Punctuation {
                continue;
            }
            let own = &text[node.place.clone()];
            if tried.has(own, b"") || fruitless >= patience {
                continue;
            }
            let asked = work.asked();
            let least = shortest.get(&node.kind).copied().unwrap_or(index);
            let is_inside = (index + 1..node.last).contains(&least);
            // A quoted text that cannot be empty is hardly ever any other one.
            let is_text = is_quoted(own) || is_between_quotes(&text, &node.place);
            let least = match least == index || is_text || is_inside && !raises {
                true => b"",
                false => &text[tree.nodes[least].place.clone()],
            };
            let mut texts = [least_literals(node.class, own), &[least]].concat();
            texts.sort_by_key(|with| with.len());
            texts.retain(|with| (1..own.len()).contains(&with.len()) && !tried.has(own, with));
            texts.dedup();
            for with in texts {
                if replace(work, LEAST, &node.place, with.to_vec()).await {
                    largest = node.place.len() + 1;
                    continue 'anew;
                }
                tried.add(own, with);
            }
            fruitless += work.asked() - asked;
            raises &= !is_inside;
            if node.class == SyntaxClass::Text {
                tried.add(own, b"");
            }
        }
        return;
    }
}

/// Returns the shortest texts, the shortest first, that may replace a syntax node of the class
/// `class` with the text `own`, such as `0` for a number; empty for classes without such texts.
fn least_literals(class: SyntaxClass, own: &[u8]) -> &'static [&'static [u8]] {
    match class {
        // Without its sign, if that is not needed, a number is tried later.
        SyntaxClass::Number if own.starts_with(b"-") => &[b"-0"],
        SyntaxClass::Number | SyntaxClass::Expression => &[b"0"],
        SyntaxClass::Text if own.starts_with(b"'") => &[b"''"],
        SyntaxClass::Text => &[b"\"\""],
        SyntaxClass::Statement => &[b";"],
        _ => &[],
    }
}

/// Returns, for each kind of nodes, the index of the node with the shortest text that is not empty.
pub(super) fn shortest_of_kinds(tree: &SyntaxTree, text: &[u8]) -> HashMap<u16, usize> {
    let mut shortest: HashMap<u16, usize> = HashMap::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        let own = &text[node.place.clone()];
        let least = shortest.entry(node.kind).or_insert(index);
        let other = &text[tree.nodes[*least].place.clone()];
        if (own.len(), own) < (other.len(), other) && !own.is_empty() {
            *least = index;
        }
    }
    shortest
}

/// Replaces numbers by `0` and strings by empty ones, each at all of its occurrences at once, if a
/// text has many different ones. Replacements in `tried` are not tested.
async fn shorten_literals(work: &mut CurrentBest, grammar: &Arc<dyn Grammar>, tried: &Tried) {
    let find = |text: &[u8]| {
        let nodes = parse(text, grammar).unwrap_or_default().nodes.into_iter();
        let literals = nodes.filter(|node| match node.class {
            SyntaxClass::Number => true,
            SyntaxClass::Text => is_quoted(&text[node.place.clone()]),
            _ => false,
        });
        literals.map(|node| node.place).collect()
    };
    let least = |word: &[u8]| match word {
        _ if tried.has(word, b"") => None,
        [quote @ (b'"' | b'\''), ..] => Some(vec![*quote; 2]),
        _ => Some(b"0".to_vec()),
    };
    // Each edit parses the text.
    if work.len() > PREDICTED {
        return;
    }
    let mut literals = Rewritten::by(work, LEAST, &find, &least);
    if literals.len() > MANY_LITERALS {
        let mut list = ListSearch::new(work, &mut literals).stop_after(FRUITLESS);
        list.reduce().await;
    }
}

/// Returns how many successive syntax nodes, or sequences of white space, may turn out to be needed
/// before a pass over `text` ends; unlimited for a small text.
pub(super) fn patience_of(text: &[u8]) -> usize {
    match text.len() {
        0..=ROUGH => usize::MAX,
        _ => FRUITLESS,
    }
}

/// Returns the ranges of the identifiers of a text, according to its grammar.
fn identifiers(text: &[u8], grammar: &Arc<dyn Grammar>) -> Vec<Range<usize>> {
    let nodes = parse(text, grammar).unwrap_or_default().nodes.into_iter();
    let identifiers = nodes.filter(|node| node.class == SyntaxClass::Identifier);
    identifiers.map(|node| node.place).collect()
}
