//! Mutation of inputs by their structure: subtrees of texts are deleted, repeated, nested, and
//! replaced by others of their kind; in files of known formats parts and bytes change, and all
//! lengths, offsets and checksums are computed anew.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use ddfuzz_delta::{Document, Grammar, PlainText, Structure, SyntaxClass, SyntaxNode};

use crate::container::Container;
use crate::formats::Known;
use crate::grammar::TreeSitter;
use crate::language::KnownLanguage;
use crate::node::{Columns, Group, Label, Meaning, Node, Part};
use crate::packed::{Inside, Linked, Packed};

/// Maximum size, in bytes, of inputs that are mutated by their structure: larger ones take longer
/// to parse than to run.
const LARGEST: usize = 1 << 16;
/// Number of powers of two, from 1 on (1, 2, 4), of which one is drawn as the number of changes in
/// one mutant.
const STACK_POWERS: usize = 3;
/// Number of powers of two, beginning with 1, from which the number of copies is drawn when a
/// mutation repeats a subtree: 1, 2, 4, 8, 16 or 32 copies.
const COPY_POWERS: usize = 6;

/// Source of the randomness of mutations by structure: random numbers, and a mutator for bytes
/// without structure.
pub trait MutationSource {
    /// Returns a random number below `bound`, which is at least 1.
    fn below(&mut self, bound: usize) -> usize;

    /// Mutates `bytes` in place without regard to structure, as havoc does.
    fn mutate_bytes(&mut self, bytes: &mut Vec<u8>);
}

/// A parser of a target's inputs for mutation by one structure: plain text, a language or a file
/// format.
pub struct MutationParser(How);

enum How {
    Text(Arc<dyn Grammar>),
    File(&'static Known),
}

impl MutationParser {
    /// Returns the parser of inputs by the structure (grammar or file format) with the name `name`;
    /// `None` if no structure has that name, and for the name of [`Structure::Binary`].
    pub fn named(name: &str) -> Option<MutationParser> {
        let how = if name == Structure::TEXT {
            How::Text(Arc::new(PlainText))
        } else if let Some(language) = KnownLanguage::named(name) {
            How::Text(Arc::new(TreeSitter::new(language)?))
        } else {
            How::File(Known::named(name)?)
        };
        Some(MutationParser(how))
    }

    /// Parses an input into its structure; `None` if it does not have the structure, or is larger
    /// than 64 KiB.
    pub fn parse(&self, input: &[u8]) -> Option<ParsedInput> {
        if input.len() > LARGEST {
            return None;
        }
        Some(ParsedInput(match &self.0 {
            How::Text(grammar) => Parsed::Text(SourceText::new(grammar.as_ref(), input)?),
            How::File(known) => Parsed::File(crate::open(known, input)?),
        }))
    }
}

/// An input that was parsed by its structure, so that it can be mutated, or give subtrees to the
/// mutants of other inputs.
pub struct ParsedInput(Parsed);

enum Parsed {
    Text(SourceText),
    File(Container),
}

impl ParsedInput {
    /// Makes a mutant of the input, with subtrees of `donor`, an input of the same structure;
    /// `None` if there is nothing to mutate.
    pub fn mutate(&self, donor: &ParsedInput, source: &mut dyn MutationSource) -> Option<Vec<u8>> {
        match (&self.0, &donor.0) {
            (Parsed::Text(own), Parsed::Text(donor)) => own.mutate(donor, source),
            (Parsed::File(own), Parsed::File(donor)) => mutate_file(own, donor, source),
            _ => None,
        }
    }
}

/// A source text with the nodes of its syntax tree, in pre-order, to be mutated.
struct SourceText {
    text: Arc<[u8]>,
    nodes: Vec<SyntaxNode>,
    /// Indices, in the syntax tree, of the nodes that mutations may change.
    subtrees: Vec<usize>,
    /// For each kind of syntax node, the indices of the nodes of this kind that mutations may
    /// change.
    kinds: HashMap<u16, Vec<usize>>,
}

impl SourceText {
    fn new(grammar: &dyn Grammar, text: &[u8]) -> Option<SourceText> {
        let nodes = grammar.parse(text)?.nodes;
        // A grammar in a shared library is not trusted to return places in the text.
        let is_place = |place: &Range<usize>| text.get(place.clone()).is_some();
        if !nodes.iter().all(|node| is_place(&node.place)) {
            return None;
        }
        let is_subtree = |index: &usize| {
            let node: &SyntaxNode = &nodes[*index];
            node.parent.is_some()
                && node.class != SyntaxClass::Punctuation
                && !node.place.is_empty()
        };
        let subtrees: Vec<usize> = (0..nodes.len()).filter(is_subtree).collect();
        let mut kinds: HashMap<u16, Vec<usize>> = HashMap::new();
        for index in &subtrees {
            kinds.entry(nodes[*index].kind).or_default().push(*index);
        }
        Some(SourceText {
            text: text.into(),
            nodes,
            subtrees,
            kinds,
        })
    }

    fn mutate(&self, donor: &SourceText, source: &mut dyn MutationSource) -> Option<Vec<u8>> {
        if self.subtrees.is_empty() {
            return None;
        }
        let mut edits: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
        for _ in 0..1 << source.below(STACK_POWERS) {
            let node = self.subtrees[source.below(self.subtrees.len())];
            let edit = self.edit(node, donor, source);
            let is_apart = |(place, _): &(Range<usize>, _)| {
                place.end <= edit.0.start || edit.0.end <= place.start
            };
            if edits.iter().all(is_apart) {
                edits.push(edit);
            }
        }
        // What is inserted before a subtree precedes it.
        edits.sort_by_key(|(place, _)| (place.start, place.end));
        let (mut mutant, mut at) = (Vec::new(), 0);
        for (place, with) in edits {
            mutant.extend_from_slice(&self.text[at..place.start]);
            mutant.extend(with);
            at = place.end;
        }
        mutant.extend_from_slice(&self.text[at..]);
        (mutant != *self.text).then_some(mutant)
    }

    /// Makes one random change of the subtree at `index`, such as deleting, repeating or replacing
    /// it: returns the range of the text to replace, and the new bytes. Subtrees of the same kind
    /// may be taken from `donor`.
    fn edit(
        &self,
        index: usize,
        donor: &SourceText,
        source: &mut dyn MutationSource,
    ) -> (Range<usize>, Vec<u8>) {
        let node = &self.nodes[index];
        let own = &self.text[node.place.clone()];
        match source.below(8) {
            0..=2 if !self.is_item(index) => {
                let with = donor.random_of_kind(node.kind, source).unwrap_or(own);
                (node.place.clone(), with.to_vec())
            }
            0 => (self.place_with_gap(index), Vec::new()),
            1 => {
                let copies = 1 << source.below(COPY_POWERS);
                let copy = [self.gap(index).unwrap_or_default(), own].concat();
                (node.place.end..node.place.end, copy.repeat(copies))
            }
            2 => {
                let other = donor.random_of_kind(node.kind, source).unwrap_or(own);
                let copy = [self.gap(index).unwrap_or_default(), other].concat();
                (node.place.end..node.place.end, copy)
            }
            3 => {
                let around = self.around(index);
                let chosen = (!around.is_empty()).then(|| around[source.below(around.len())]);
                let with =
                    chosen.map_or(own, |around| &self.text[self.nodes[around].place.clone()]);
                (node.place.clone(), with.to_vec())
            }
            4 => {
                let inside: Vec<usize> = (index + 1..node.last)
                    .filter(|inner| self.nodes[*inner].kind == node.kind)
                    .collect();
                let chosen = (!inside.is_empty()).then(|| inside[source.below(inside.len())]);
                let with = chosen.map_or(&own[..0], |inner| {
                    &self.text[self.nodes[inner].place.clone()]
                });
                (node.place.clone(), with.to_vec())
            }
            5 => {
                let with = self.random_of_kind(node.kind, source).unwrap_or(own);
                (node.place.clone(), with.to_vec())
            }
            _ => {
                let with = donor.random_of_kind(node.kind, source).unwrap_or(own);
                (node.place.clone(), with.to_vec())
            }
        }
    }

    /// Returns the text of a random subtree of the syntax tree that is of this kind; `None` if the
    /// tree has none.
    fn random_of_kind(&self, kind: u16, source: &mut dyn MutationSource) -> Option<&[u8]> {
        let all = self.kinds.get(&kind)?;
        let node = all[source.below(all.len())];
        Some(&self.text[self.nodes[node].place.clone()])
    }

    /// Returns the indices of those ancestors of the syntax node at `index` that have the same kind
    /// as the node, the nearest first.
    fn around(&self, index: usize) -> Vec<usize> {
        let parent = |node: &usize| self.nodes[*node].parent;
        let all = std::iter::successors(parent(&index), parent);
        all.filter(|around| self.nodes[*around].kind == self.nodes[index].kind)
            .collect()
    }

    /// Returns the indices of the nearest siblings before and after the syntax node at `index`,
    /// other than signs and keywords; `None` where there is none.
    fn siblings(&self, index: usize) -> (Option<usize>, Option<usize>) {
        let Some(parent) = self.nodes[index].parent else {
            return (None, None);
        };
        let is_sibling = |node: &usize| {
            let node = &self.nodes[*node];
            node.class != SyntaxClass::Punctuation && !node.place.is_empty()
        };
        let end = self.nodes[parent].last;
        let next = |node: &usize| Some(self.nodes[*node].last).filter(|next| *next < end);
        let all = || std::iter::successors(Some(parent + 1), next);
        let before = all()
            .take_while(|node| *node < index)
            .filter(is_sibling)
            .last();
        let mut after = std::iter::successors(next(&index), next);
        (before, after.find(is_sibling))
    }

    /// Returns the text, such as a comma and blanks, between the syntax node at `index` and its
    /// previous sibling or, if there is none, its next one; `None` without siblings.
    fn gap(&self, index: usize) -> Option<&[u8]> {
        let place = |node: usize| &self.nodes[node].place;
        match self.siblings(index) {
            (Some(before), _) => self.text.get(place(before).end..place(index).start),
            (None, Some(after)) => self.text.get(place(index).end..place(after).start),
            (None, None) => None,
        }
    }

    /// Returns true if the syntax node at `index` is an item of a list, of which there may be any
    /// number: only blanks, or text with a comma or semicolon, stand between the node and its
    /// sibling. Returns false for others, such as a value after a name.
    fn is_item(&self, index: usize) -> bool {
        let gap = self.gap(index).unwrap_or_default();
        gap.trim_ascii().is_empty() || gap.iter().any(|byte| b",;".contains(byte))
    }

    /// Returns the range of the syntax node at `index` in the text. It includes the text between
    /// the node and its previous sibling or, if there is none, its next one, so that a list stays
    /// valid when the range is deleted.
    fn place_with_gap(&self, index: usize) -> Range<usize> {
        let place = self.nodes[index].place.clone();
        match self.siblings(index) {
            (Some(before), _) => self.nodes[before].place.end.min(place.start)..place.end,
            (None, Some(after)) => place.start..self.nodes[after].place.start.max(place.end),
            (None, None) => place,
        }
    }
}

/// Makes a mutant of the file `own`: deletes, copies and replaces parts, changes bytes, takes parts
/// from `donor`, and computes lengths, offsets and checksums anew. `None` if `own` has neither
/// parts nor bytes that can be changed.
fn mutate_file(
    own: &Container,
    donor: &Container,
    source: &mut dyn MutationSource,
) -> Option<Vec<u8>> {
    let mut root = own.root().clone();
    for _ in 0..1 << source.below(STACK_POWERS) {
        let parts = parts(&root);
        let changed = match source.below(8) {
            0 if !parts.is_empty() => {
                edit_part(&root, source.below(parts.len()), &mut |_| Vec::new())
            }
            1 if !parts.is_empty() => {
                let (at, copied) = (source.below(parts.len()), source.below(parts.len()));
                Some(insert(&root, at, parts[copied], true))
            }
            2 if !parts.is_empty() => {
                let donors = self::parts(donor.root());
                let at = source.below(parts.len());
                let kind = shape(parts[at]);
                let same: Vec<&Group> = donors
                    .into_iter()
                    .filter(|part| shape(part) == kind)
                    .collect();
                (!same.is_empty()).then(|| {
                    let other = same[source.below(same.len())];
                    let inserted = insert(&root, at, other, false);
                    match source.below(2) {
                        0 => inserted,
                        _ => edit_part(&inserted, at, &mut |_| Vec::new()).unwrap_or(inserted),
                    }
                })
            }
            _ => edit_bytes(&root, source),
        };
        root = changed.unwrap_or(root);
    }
    let mutant = Container::of_root(root).text();
    (mutant != own.text()).then_some(mutant)
}

/// Returns the parts (groups of nodes that can be deleted) in a group, in pre-order.
fn parts(group: &Group) -> Vec<&Group> {
    let mut found = Vec::new();
    list_parts(group, &mut found);
    found
}

fn list_parts<'a>(group: &'a Group, found: &mut Vec<&'a Group>) {
    for node in &group.nodes {
        match node {
            Node::Group(inner) => {
                found.extend((inner.part == Part::Own).then_some(inner));
                list_parts(inner, found);
            }
            Node::Packed(packed) => list_parts(&packed.content, found),
            _ => {}
        }
    }
}

/// Returns a description of `part` by which it is compared with others: the kinds of the numbers,
/// flags and paddings in it, in order. Bytes, and parts inside of `part`, are left out. Parts with
/// equal descriptions may take each other's place.
fn shape(part: &Group) -> Vec<u8> {
    let mut shape = Vec::new();
    list_shape(part, &mut shape);
    shape
}

fn list_shape(group: &Group, shape: &mut Vec<u8>) {
    for node in &group.nodes {
        match node {
            Node::Number(number) => shape.push(match number.meaning {
                Meaning::Length(_) => 1,
                Meaning::Count(_) => 2,
                Meaning::Offset(..)
                | Meaning::Place(..)
                | Meaning::Next { .. }
                | Meaning::NextIndex { .. } => 3,
                Meaning::Index(_) | Meaning::Present(..) | Meaning::End { .. } => 4,
                Meaning::Check(..) => 5,
            }),
            Node::Group(inner) if inner.part == Part::No => list_shape(inner, shape),
            Node::Flags { .. } => shape.push(6),
            Node::Pad { .. } | Node::Gap(_) => shape.push(7),
            Node::Runs(_) => shape.push(9),
            Node::Columns(_) => shape.push(10),
            Node::Directory { .. } => shape.push(8),
            _ => {}
        }
    }
}

/// Returns a copy of the group of nodes in which the part (group that can be deleted) at `index`,
/// in pre-order, is replaced by the nodes that `edit` returns for it; `None` if there is no such
/// part.
fn edit_part(
    group: &Group,
    index: usize,
    edit: &mut dyn FnMut(&Group) -> Vec<Node>,
) -> Option<Group> {
    let mut next = 0;
    let mut edited = false;
    let root = rewrite(group, &mut |node| match node {
        Node::Group(inner) if inner.part == Part::Own => {
            next += 1;
            (next == index + 1).then(|| {
                edited = true;
                edit(inner)
            })
        }
        _ => None,
    });
    edited.then_some(root)
}

/// Returns a copy of `group` in which nodes are replaced as `edit` says: `edit` returns the nodes
/// that take the place of a node, or `None` to keep the node. It is called for each node, and for
/// the nodes inside of a group of nodes only if the group itself is kept. Compressed nodes whose
/// content changes are compressed anew.
fn rewrite(group: &Group, edit: &mut dyn FnMut(&Node) -> Option<Vec<Node>>) -> Group {
    rewrite_noting(group, edit).0
}

/// Replaces nodes of a group, at all depths, by those that `edit` returns for them; nodes for which
/// it returns `None` stay. Returns the new group, and true if any node was replaced.
fn rewrite_noting(
    group: &Group,
    edit: &mut dyn FnMut(&Node) -> Option<Vec<Node>>,
) -> (Group, bool) {
    let mut nodes = Vec::with_capacity(group.nodes.len());
    let mut changed = false;
    for node in &group.nodes {
        if let Some(others) = edit(node) {
            changed = true;
            nodes.extend(others);
            continue;
        }
        nodes.push(match node {
            Node::Group(inner) => {
                let (inner, differs) = rewrite_noting(inner, edit);
                changed |= differs;
                Node::Group(inner)
            }
            Node::Packed(packed) => match rewrite_noting(&packed.content, edit) {
                (content, true) => {
                    changed = true;
                    Node::Packed(packed.with(content))
                }
                (_, false) => node.clone(),
            },
            other => other.clone(),
        });
    }
    (Group { nodes, ..*group }, changed)
}

/// Returns a copy of `group` in which a copy of `part`, with new labels (ids in the file's tree),
/// follows the part with the index `at`. `is_own` is true if `part` comes from the same file: then
/// numbers in the copy may state something about groups of nodes outside of `part`, and groups that
/// are deleted together with `part`, or with a group inside of it, are copied, too.
fn insert(group: &Group, at: usize, part: &Group, is_own: bool) -> Group {
    let mut last = group.label;
    let mut see = |group: &Group| last = last.max(group.label);
    see_groups(group, &mut see);
    let mut labels = Relabeled {
        new: HashMap::new(),
        last,
        keeps: is_own,
    };
    let copy = labels.copy(part);
    let with = edit_part(group, at, &mut |before| {
        vec![Node::Group(before.clone()), Node::Group(copy.clone())]
    });
    let with = with.unwrap_or_else(|| group.clone());
    // Copies of copies are not made: a companion with a new label is not looked at again.
    let inside: HashSet<Label> = labels.new.keys().copied().collect();
    rewrite(&with, &mut |node| match node {
        Node::Group(one) => match one.part {
            Part::With(label) if is_own && inside.contains(&label) => {
                Some(vec![node.clone(), Node::Group(labels.copy(one))])
            }
            _ => None,
        },
        _ => None,
    })
}

/// Calls `see` with `group` and with each group of nodes inside of it, at all depths.
fn see_groups(group: &Group, see: &mut dyn FnMut(&Group)) {
    see(group);
    for node in &group.nodes {
        match node {
            Node::Group(inner) => see_groups(inner, see),
            Node::Packed(packed) => see_groups(&packed.content, see),
            _ => {}
        }
    }
}

/// State for copying groups of nodes into a tree under new labels (ids in the file's tree), so that
/// no two groups have the same label.
struct Relabeled {
    /// New label (id in the file's tree) of each copied group of nodes, by its old label.
    new: HashMap<Label, Label>,
    /// The greatest label (id in the file's tree) of a group of nodes in the tree so far.
    last: Label,
    /// True if numbers in copied groups of nodes may go on stating something about groups that were
    /// not copied, because the copies stay in the same file; false if the copies go into another
    /// file.
    keeps: bool,
}

impl Relabeled {
    fn copy(&mut self, group: &Group) -> Group {
        see_groups(group, &mut |inner| {
            self.last = self.last.wrapping_add(1);
            self.new.insert(inner.label, self.last);
        });
        self.group(group)
    }

    /// Returns the label (id in the file's tree) that a copied group of nodes uses for the group
    /// whose label was `old`: the new label if that group was copied, too, else `old`. `None` if
    /// the group was not copied and the copies go into another file, which does not have it.
    fn label(&self, old: Label) -> Option<Label> {
        let new = self.new.get(&old).copied();
        new.or(self.keeps.then_some(old))
    }

    fn group(&self, group: &Group) -> Group {
        let part = match group.part {
            Part::With(label) => self.label(label).map_or(Part::Own, Part::With),
            part => part,
        };
        Group {
            label: self.label(group.label).unwrap_or(group.label),
            part,
            piece: group.piece,
            is_item: group.is_item,
            least: group.least,
            nodes: group.nodes.iter().map(|node| self.node(node)).collect(),
        }
    }

    fn node(&self, node: &Node) -> Node {
        match node {
            Node::Group(inner) => Node::Group(self.group(inner)),
            Node::Packed(packed) => Node::Packed(Packed {
                content: self.group(&packed.content),
                method: packed.method.map(|by| self.label(by).unwrap_or(by)),
                linked: match &packed.linked {
                    Linked::Into(inside) => Linked::Into(Arc::new(self.inside(inside))),
                    other => other.clone(),
                },
                ..packed.clone()
            }),
            Node::Number(number) => match self.meaning(number.meaning) {
                Some(meaning) => {
                    let mut number = number.clone();
                    number.meaning = meaning;
                    Node::Number(number)
                }
                None => Node::Fixed(number.raw.clone()),
            },
            Node::Copy(of) => Node::Copy(self.label(*of).unwrap_or(*of)),
            Node::Pad { of, align, fill } => Node::Pad {
                of: self.label(*of).unwrap_or(*of),
                align: *align,
                fill: *fill,
            },
            Node::Directory { of, width } => Node::Directory {
                of: self.label(*of).unwrap_or(*of),
                width: *width,
            },
            Node::Flags { rest, bits } => Node::Flags {
                rest: *rest,
                bits: bits
                    .iter()
                    .map(|(bit, of)| (*bit, self.label(*of).unwrap_or(*of)))
                    .collect(),
            },
            Node::Columns(columns) => Node::Columns(Columns {
                rows: self.label(columns.rows).unwrap_or(columns.rows),
                ..*columns
            }),
            // Labels of the rows of a copy do not follow each other.
            Node::Runs(_) | Node::Fixed(_) | Node::Payload(_) | Node::Gap(_) => node.clone(),
        }
    }

    fn inside(&self, inside: &Inside) -> Inside {
        let label = |of: &Label| self.label(*of).unwrap_or(*of);
        let sizes = inside.sizes.iter();
        let indices = inside.indices.iter();
        Inside {
            sizes: sizes.map(|(of, size)| (label(of), *size)).collect(),
            indices: indices.map(|(of, index)| (label(of), *index)).collect(),
        }
    }

    fn meaning(&self, meaning: Meaning) -> Option<Meaning> {
        Some(match meaning {
            Meaning::Length(of) => Meaning::Length(self.label(of)?),
            Meaning::Count(of) => Meaning::Count(self.label(of)?),
            Meaning::Offset(of, from) => Meaning::Offset(self.label(of)?, self.label(from)?),
            Meaning::Place(of, from) => Meaning::Place(self.label(of)?, self.label(from)?),
            // Labels of copies do not follow each other.
            Meaning::Next { .. }
            | Meaning::NextIndex { .. }
            | Meaning::Present(..)
            | Meaning::End { .. } => {
                return self.keeps.then_some(meaning);
            }
            Meaning::Index(of) => Meaning::Index(self.label(of)?),
            Meaning::Check(sum, of) => Meaning::Check(sum, self.label(of)?),
        })
    }
}

/// Mutates the bytes of one random node of the tree `root`: of a payload (changeable bytes), or of
/// fixed bytes such as the type of a chunk. The number of fixed bytes does not change, that of a
/// payload may. Returns the changed tree; `None` if the tree has neither payloads nor fixed bytes.
fn edit_bytes(root: &Group, source: &mut dyn MutationSource) -> Option<Group> {
    let mut count = 0;
    see_groups(root, &mut |group| {
        count += group.nodes.iter().filter(|node| is_bytes(node)).count();
    });
    if count == 0 {
        return None;
    }
    let mut left = source.below(count);
    Some(rewrite(root, &mut |node| {
        if !is_bytes(node) || left == usize::MAX {
            return None;
        }
        if left > 0 {
            left -= 1;
            return None;
        }
        left = usize::MAX;
        Some(vec![match node {
            Node::Payload(bytes) => {
                let mut bytes = bytes.to_vec();
                source.mutate_bytes(&mut bytes);
                Node::Payload(bytes.into())
            }
            Node::Fixed(bytes) => {
                let size = bytes.len();
                let mut bytes = bytes.to_vec();
                source.mutate_bytes(&mut bytes);
                bytes.resize(size, 0);
                Node::Fixed(bytes.into())
            }
            other => other.clone(),
        }])
    }))
}

fn is_bytes(node: &Node) -> bool {
    match node {
        Node::Payload(_) => true,
        Node::Fixed(bytes) => !bytes.is_empty(),
        _ => false,
    }
}
