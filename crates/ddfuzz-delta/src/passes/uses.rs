//! The pass over the names of a program: deletes a name with all of its uses, declarations of names
//! that are not used, arguments in all calls, and declarations of names that another name can
//! replace.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::document::{Grammar, Structure, SyntaxClass, SyntaxNode, SyntaxTree};
use crate::passes::current_best::CurrentBest;
use crate::passes::list::ListSearch;
use crate::passes::ranges::union;
use crate::passes::siblings::children;
use crate::passes::syntax::tree_of;
use crate::passes::units::Positions;
use crate::{Edit, Outcome, Replacement};

/// Name, in logs, of the pass that deletes names of a program together with all of their uses.
const USES: &str = "uses";

/// Maximum size, in bytes, of program texts in which names are deleted together with their uses.
const LARGEST: usize = 1 << 13;
/// Number of tests in a row without success after which the deletion of names and their uses ends.
const FRUITLESS: usize = 12;
/// Number of successive tests without success after which the deletion of names and their uses
/// ends, if the text has no grammar. It is greater than with a grammar, because more of the words
/// that are tried are not names.
const FRUITLESS_PLAIN: usize = 24;
/// Minimum size, in bytes, of program texts in which an argument is deleted from several lists in
/// one test.
const WORTH_ARGUMENTS: usize = 128;
/// Number of tests without success after which the deletion of arguments ends.
const FRUITLESS_ARGUMENTS: usize = 12;
/// Maximum number of rounds in which one deletion is extended: deleting uses of names may leave
/// other names with only one use, which is then deleted, too.
const ROUNDS: usize = 8;

/// Deletes names of a program with all of their uses, the edits that delete most bytes first;
/// returns true if the text became smaller.
pub(super) async fn delete_uses(work: &mut CurrentBest, grammar: &Arc<dyn Grammar>) -> bool {
    let before = work.reductions();
    let mut largest = usize::MAX;
    let patience = match grammar.name() {
        Structure::TEXT => FRUITLESS_PLAIN,
        _ => FRUITLESS,
    };
    'anew: while work.len() <= LARGEST {
        let (text, tree) = (work.text(), tree_of(work, grammar));
        let names = Names::of(&text, &tree);
        let end = work.asked() + patience;
        for (gain, edit) in names.edits() {
            if work.asked() >= end {
                break 'anew;
            }
            if gain <= largest && work.test(USES, edit).await == Outcome::Fail {
                largest = gain;
                continue 'anew;
            }
        }
        break;
    }
    work.reductions() > before
}

/// Deletes each declaration, statement or item of a list that contains all occurrences of some
/// name, such as the declaration of an unused variable. First tests the text without all of them
/// and, if that does not fail, deletes those that are not needed.
pub(super) async fn delete_lone_names(work: &mut CurrentBest, grammar: &Arc<dyn Grammar>) {
    loop {
        let before = work.reductions();
        let (text, tree) = (work.text(), tree_of(work, grammar));
        let lone = Names::of(&text, &tree).lone_items().into_iter();
        let mut lone = Positions::new(USES, lone.map(|place| vec![place]).collect());
        let mut list = ListSearch::new(work, &mut lone).stop_after(FRUITLESS);
        list.reduce().await;
        if work.reductions() == before {
            return;
        }
    }
}

/// Deletes the argument at one position from all lists in parentheses that follow the same name, in
/// one test: from the calls of a function and from its parameters. Returns true if the text became
/// smaller, else false.
pub(super) async fn delete_arguments(work: &mut CurrentBest, grammar: &Arc<dyn Grammar>) -> bool {
    let before = work.reductions();
    let mut fruitless = 0;
    'anew: while (WORTH_ARGUMENTS..=LARGEST).contains(&work.len()) {
        let (text, tree) = (work.text(), tree_of(work, grammar));
        for (_, edit) in Names::of(&text, &tree).arguments() {
            if fruitless >= FRUITLESS_ARGUMENTS {
                break 'anew;
            }
            if work.test(USES, edit).await == Outcome::Fail {
                continue 'anew;
            }
            fruitless += 1;
        }
        break;
    }
    work.reductions() > before
}

/// The names in a program text that occur more than once, each with the syntax nodes at which it
/// stands.
struct Names<'a> {
    text: &'a [u8],
    tree: &'a SyntaxTree,
    /// For each name that occurs at least twice, the indices of the syntax nodes at which it
    /// stands, in the order of the names' first occurrences.
    uses: Vec<Vec<usize>>,
    /// For the index of each syntax node at which such a name stands, the index of the name in
    /// `uses`.
    name_of: HashMap<usize, usize>,
    /// For each syntax node, the index of the node before it among the children of its parent.
    before: Vec<Option<usize>>,
}

impl<'a> Names<'a> {
    fn of(text: &'a [u8], tree: &'a SyntaxTree) -> Names<'a> {
        let mut index: HashMap<&[u8], usize> = HashMap::new();
        let mut uses: Vec<Vec<usize>> = Vec::new();
        for (node, SyntaxNode { place, class, .. }) in tree.nodes.iter().enumerate() {
            if *class == SyntaxClass::Identifier && !place.is_empty() {
                let fresh = uses.len();
                let name = *index.entry(&text[place.clone()]).or_insert(fresh);
                if name == fresh {
                    uses.push(Vec::new());
                }
                uses[name].push(node);
            }
        }
        uses.retain(|nodes| nodes.len() > 1);
        let each = uses.iter().enumerate();
        let name_of = each.flat_map(|(name, nodes)| nodes.iter().map(move |node| (*node, name)));
        let mut before = vec![None; tree.nodes.len()];
        let mut last_child = vec![None; tree.nodes.len()];
        for (node, of_node) in tree.nodes.iter().enumerate() {
            if let Some(parent) = of_node.parent {
                before[node] = last_child[parent].replace(node);
            }
        }
        Names {
            text,
            tree,
            before,
            name_of: name_of.collect(),
            uses,
        }
    }

    /// Returns the ranges of declarations, statements and items of lists that contain a name with
    /// all its uses, so that nothing outside mentions it. Of ranges inside of each other, only the
    /// inner ones are returned; declarations come last.
    fn lone_items(&self) -> Vec<Range<usize>> {
        let nodes = self.tree.nodes.iter().enumerate();
        let alone = nodes.filter(|(node, SyntaxNode { place, class, .. })| {
            let is_name = *class == SyntaxClass::Identifier && !place.is_empty();
            is_name && !self.name_of.contains_key(node)
        });
        let alone = alone.filter_map(|(node, _)| self.item(node));
        let together = self.uses.iter().filter_map(|uses| {
            let item = self.item(uses[0])?;
            let is_inside = |node: &usize| (item..self.tree.nodes[item].last).contains(node);
            uses.iter().all(is_inside).then_some(item)
        });
        let mut items: Vec<(Range<usize>, bool)> = alone
            .chain(together)
            .map(|item| {
                let is_declaration = self.tree.nodes[item].class == SyntaxClass::Declaration;
                (self.place(item), is_declaration)
            })
            .collect();
        items.sort_by_key(|(place, _)| (place.end, std::cmp::Reverse(place.start)));
        let mut inner: Vec<(Range<usize>, bool)> = Vec::new();
        for item in items {
            if inner
                .last()
                .is_none_or(|(last, _)| last.end <= item.0.start)
            {
                inner.push(item);
            }
        }
        inner.sort_by_key(|(_, is_declaration)| *is_declaration);
        inner.into_iter().map(|(place, _)| place).collect()
    }

    /// Returns edits to test that delete names with their uses, or replace them, each with the
    /// number of bytes by which it shortens the text; those that shorten it most come first.
    fn edits(&self) -> Vec<(usize, Edit)> {
        let mut cuts: Vec<Vec<Range<usize>>> = Vec::new();
        for uses in &self.uses {
            let items: Vec<usize> = uses.iter().filter_map(|node| self.item(*node)).collect();
            cuts.push(self.with_left_alone(items.clone()));
            let statements = items.iter().filter_map(|item| self.statement(*item));
            cuts.push(self.with_left_alone(statements.collect()));
        }
        let mut edits = self.replacements();
        for node in 0..self.tree.nodes.len() {
            if !self.is_item(node) || !self.leaves_alone(node) {
                continue;
            }
            let places = self.with_left_alone(vec![node]);
            match self.is_needed(node) {
                true => edits.extend(self.emptied(node, &places)),
                false => cuts.push(places),
            }
        }
        let whole = self.text.len();
        let gain = |cuts: &[Range<usize>]| cuts.iter().map(Range::len).sum::<usize>();
        cuts.retain(|cuts| (1..whole).contains(&gain(cuts)));
        edits.extend(cuts.into_iter().map(|cuts| (gain(&cuts), Edit::Cut(cuts))));
        edits.sort_by_key(|(gain, _)| std::cmp::Reverse(*gain));
        edits.dedup();
        edits
    }

    /// Returns edits that delete arguments: each deletes the argument at one position from the
    /// lists after all uses of one name, such as the calls of a function. Each comes with the
    /// number of bytes by which it shortens the text, the largest first. Positions are counted from
    /// the end of a list, because a method may have one more parameter, at the front, than its
    /// calls have arguments.
    fn arguments(&self) -> Vec<(usize, Edit)> {
        let mut edits = Vec::new();
        for uses in &self.uses {
            let lists = uses.iter().filter_map(|node| self.list_after(*node));
            let lists: Vec<Vec<usize>> = lists.map(|list| self.items(list)).collect();
            let most = lists.iter().map(Vec::len).max().unwrap_or_default();
            for from_end in 1..=most {
                let items = lists.iter().filter_map(|items| {
                    let index = items.len().checked_sub(from_end)?;
                    Some(self.place(items[index]))
                });
                let cuts: Vec<Range<usize>> = items.collect();
                let lists = cuts.len();
                let cuts = union(cuts);
                let gain: usize = cuts.iter().map(Range::len).sum();
                // The deletion in one list was tried with the siblings of the argument.
                edits.extend((lists > 1).then_some((gain, Edit::Cut(cuts))));
            }
        }
        edits.sort_by_key(|(gain, _)| std::cmp::Reverse(*gain));
        edits
    }

    /// Returns the index of the syntax node of the list in parentheses that directly follows the
    /// name at the node `name`; `None` if none does.
    fn list_after(&self, name: usize) -> Option<usize> {
        let end = self.tree.nodes[name].place.end;
        let is_list = |node: &usize| {
            let SyntaxNode { place, .. } = &self.tree.nodes[*node];
            let text = &self.text[place.clone()];
            place.start == end && text.len() > 1 && text.starts_with(b"(") && text.ends_with(b")")
        };
        (name + 1..self.tree.nodes.len())
            .take_while(|node| self.tree.nodes[*node].place.start <= end)
            .find(is_list)
    }

    /// Returns the indices of the nodes of the items of a list in parentheses, which is the node
    /// `list`, without punctuation.
    fn items(&self, list: usize) -> Vec<usize> {
        let nodes = &self.tree.nodes;
        let items = children(nodes, list).filter(|item| {
            let SyntaxNode { place, class, .. } = &nodes[*item];
            *class != SyntaxClass::Punctuation && !place.is_empty()
        });
        items.collect()
    }

    /// Returns edits that need one name less: they write another name of the same kind over a name,
    /// and delete the declaration (or other item) in which the replaced name first occurs. Each
    /// comes with the number of bytes by which it shortens the text.
    fn replacements(&self) -> Vec<(usize, Edit)> {
        let mut last: HashMap<(u16, u16), usize> = HashMap::new();
        let mut edits = Vec::new();
        for uses in &self.uses {
            let Some(item) = self.item(uses[0]) else {
                continue;
            };
            let around = self.tree.nodes[uses[0]].parent.unwrap_or_default();
            let kinds = (self.tree.nodes[around].kind, self.tree.nodes[item].kind);
            let Some(other) = last.insert(kinds, uses[0]) else {
                continue;
            };
            let with = &self.text[self.tree.nodes[other].place.clone()];
            let gone = self.place(item);
            let others = uses.iter().map(|node| self.tree.nodes[*node].place.clone());
            let others = others.filter(|place| place.start >= gone.end);
            let mut written: Vec<Replacement> = others
                .map(|at| Replacement {
                    at,
                    with: with.to_vec(),
                })
                .collect();
            let longer = with
                .len()
                .saturating_sub(written.first().map_or(0, |one| one.at.len()));
            let grown = longer * written.len();
            if written.is_empty() || grown >= gone.len() {
                continue;
            }
            let gain = gone.len() - grown;
            written.insert(
                0,
                Replacement {
                    at: gone,
                    with: Vec::new(),
                },
            );
            edits.push((gain, Edit::Set(written)));
        }
        edits
    }

    /// Returns true if `node` is a statement that the syntax requires at its place, such as the
    /// body of a loop without braces.
    fn is_needed(&self, node: usize) -> bool {
        let nodes = &self.tree.nodes;
        let parent = nodes[node].parent.unwrap_or_default();
        let is_body = parent > 0 && nodes[parent].class == SyntaxClass::Statement;
        is_body && self.text.get(nodes[parent].place.start) != Some(&b'{')
    }

    /// Returns the edit that deletes the ranges `places` of the text, and writes an empty statement
    /// (`;`) in place of the one that contains `node`. Returns it with the number of bytes that it
    /// saves, or `None` if that is 0.
    fn emptied(&self, node: usize, places: &[Range<usize>]) -> Option<(usize, Edit)> {
        let own = self.tree.nodes[node].place.start;
        let written = places.iter().map(|at| Replacement {
            with: if at.contains(&own) {
                b";".to_vec()
            } else {
                Vec::new()
            },
            at: at.clone(),
        });
        let gain: usize = places.iter().map(Range::len).sum();
        (gain > 1).then(|| (gain - 1, Edit::Set(written.collect())))
    }

    /// Returns the index of the smallest declaration, statement or item of a list that contains
    /// `node`; if there is none, the index of the root's child that contains it. `None` for the
    /// root itself.
    fn item(&self, node: usize) -> Option<usize> {
        let mut at = node;
        loop {
            let parent = self.tree.nodes[at].parent?;
            if parent == 0 || self.is_item(at) {
                return Some(at);
            }
            at = parent;
        }
    }

    /// Returns the index of the smallest declaration or statement around `node` (or `node` itself)
    /// that is not an item of a list; if there is none, that of the root's child around it. `None`
    /// for the root.
    fn statement(&self, node: usize) -> Option<usize> {
        let mut at = node;
        loop {
            let parent = self.tree.nodes[at].parent?;
            if parent == 0 || is_statement(&self.tree.nodes[at]) && self.comma(at).is_none() {
                return Some(at);
            }
            at = parent;
        }
    }

    fn is_item(&self, node: usize) -> bool {
        is_statement(&self.tree.nodes[node]) || self.comma(node).is_some()
    }

    /// Returns the range of the comma that follows a syntax node; if there is none, of the comma
    /// before it; `None` if the node has neither.
    fn comma(&self, node: usize) -> Option<Range<usize>> {
        let nodes = &self.tree.nodes;
        let parent = nodes[node].parent?;
        let is_comma = |at: &usize| self.text[nodes[*at].place.clone()] == *b",";
        let after = Some(nodes[node].last).filter(|next| *next < nodes[parent].last);
        let before = self.before[node];
        let found = after.filter(is_comma).or(before.filter(is_comma));
        found.map(|comma| nodes[comma].place.clone())
    }

    /// Returns the range of the text that a syntax node occupies, together with its comma if it has
    /// one.
    fn place(&self, node: usize) -> Range<usize> {
        let place = &self.tree.nodes[node].place;
        match self.comma(node) {
            Some(comma) => place.start.min(comma.start)..place.end.max(comma.end),
            None => place.clone(),
        }
    }

    /// Returns true if, after the deletion of `node`, a name in it would have a single use in the
    /// rest of the text.
    fn leaves_alone(&self, node: usize) -> bool {
        let mut inside: HashMap<usize, usize> = HashMap::new();
        for at in node..self.tree.nodes[node].last {
            if let Some(name) = self.name_of.get(&at) {
                *inside.entry(*name).or_default() += 1;
            }
        }
        let is_alone = |(name, count): (&usize, &usize)| self.uses[*name].len() == count + 1;
        inside.iter().any(is_alone)
    }

    /// Returns the ranges of the text to delete if the syntax nodes `gone` are deleted: those
    /// nodes, nodes whose list would become empty, and, if only one use of a name would be left,
    /// the item (such as a declaration) that contains this use.
    fn with_left_alone(&self, mut gone: Vec<usize>) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        for _ in 0..ROUNDS {
            self.add_empty_lists(&mut gone);
            places = union(gone.iter().map(|node| self.place(*node)).collect());
            let is_gone = |node: &usize| {
                let start = self.tree.nodes[*node].place.start;
                places.iter().any(|place| place.contains(&start))
            };
            let alone = self.uses.iter().filter_map(|uses| {
                let mut left = uses.iter().filter(|node| !is_gone(node));
                let one = *left.next()?;
                left.next().is_none().then_some(one)
            });
            let alone: Vec<usize> = alone.filter_map(|node| self.item(node)).collect();
            if alone.is_empty() {
                break;
            }
            gone.extend(alone);
        }
        places
    }

    /// Adds nodes to `gone`, the syntax nodes that are to be deleted: wherever all items of a list
    /// are among them, the item around that list.
    fn add_empty_lists(&self, gone: &mut Vec<usize>) {
        let mut all: HashSet<usize> = gone.iter().copied().collect();
        let mut lists: HashSet<usize> = HashSet::new();
        let mut at = 0;
        while let Some(node) = gone.get(at).copied() {
            at += 1;
            let list = self.tree.nodes[node].parent;
            let Some(list) = list.filter(|list| lists.insert(*list)) else {
                continue;
            };
            let mut items =
                children(&self.tree.nodes, list).filter(|one| self.comma(*one).is_some());
            let first = items.next();
            if first.is_some_and(|one| all.contains(&one)) && items.all(|one| all.contains(&one)) {
                gone.extend(self.item(list).filter(|around| all.insert(*around)));
            }
        }
    }
}

fn is_statement(node: &SyntaxNode) -> bool {
    matches!(
        node.class,
        SyntaxClass::Statement | SyntaxClass::Declaration
    )
}
