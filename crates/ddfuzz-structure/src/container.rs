//! The central type of the crate: a file of a known format, parsed into a tree of nodes, and how
//! the searches of `ddfuzz-delta` delete and change pieces of it (trait `Document`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ddfuzz_delta::{Document, InnerItems};

use crate::columns::columns;
use crate::items::{list_wrappers, raise, unwrap};
use crate::node::{ByLabel, Group, Label, Meaning, Node, Number, Part};
use crate::packed::{Codec, Linked, Packed};
use crate::render::{render, sizes};
use crate::sharing::Regions;
use ddfuzz_delta::interruption;

/// A file of a known format, parsed into a tree of nodes. Searches delete parts of it and change
/// payloads (changeable bytes); the lengths, offsets and checksums in it are then computed anew, so
/// that they are right in the new file.
pub struct Container {
    root: Group,
}

impl Container {
    /// Makes a container of the tree `root` that was read from `text`. `None` if the tree has no
    /// parts (groups of nodes that can be deleted), or if writing the tree does not give `text`
    /// again.
    ///
    /// Numbers, such as lengths, that do not agree with `text` become fixed bytes: they may be what
    /// makes the file fail.
    pub fn new(root: Group, text: &[u8]) -> Option<Container> {
        let root = settle(root);
        let container = Container { root };
        let agrees = container.text() == text;
        (agrees && !container.parts().is_empty()).then_some(container)
    }

    /// Makes a container of the tree `root` without a check. The caller guarantees that all numbers
    /// in the tree (lengths, offsets, checksums, …) agree with its content.
    pub fn of_root(root: Group) -> Container {
        Container { root }
    }

    /// Returns the root of the file's tree.
    pub fn root(&self) -> &Group {
        &self.root
    }
}

/// Returns a copy of `group` in which numbers (lengths, offsets, checksums, …) that were wrong in
/// the file stay as they are: they become fixed bytes, which are never computed anew.
pub fn settle(mut group: Group) -> Group {
    let rendered = render(&group);
    fix(&mut group, &mut rendered.numbers());
    group
}

fn fix<'a>(group: &mut Group, numbers: &mut impl Iterator<Item = &'a [u8]>) {
    for node in &mut group.nodes {
        match node {
            Node::Number(number) if numbers.next() != Some(&number.raw[..]) => {
                *node = Node::Fixed(number.raw.clone());
            }
            Node::Group(inner) => fix(inner, numbers),
            _ => {}
        }
    }
}

impl Document for Container {
    fn parts(&self) -> Vec<usize> {
        let mut parts = Vec::new();
        list_parts(&self.root, &mut parts);
        parts
    }

    fn payloads(&self) -> Vec<Arc<[u8]>> {
        let mut payloads = Vec::new();
        list_payloads(&self.root, &mut payloads);
        payloads
    }

    fn without(&self, parts: &[usize]) -> Arc<dyn Document> {
        interruption::check();
        let root = Removal::of(Kind::Parts, parts, &self.root);
        Arc::new(Container { root: inline(root) })
    }

    fn tied(&self) -> usize {
        Kind::Tied.count(&self.root)
    }

    fn without_tied(&self, groups: &[usize]) -> Arc<dyn Document> {
        let root = Removal::of(Kind::Tied, groups, &self.root);
        Arc::new(Container { root: inline(root) })
    }

    fn with(&self, payloads: &[Arc<[u8]>]) -> Arc<dyn Document> {
        interruption::check();
        let mut next = payloads.iter();
        let root = with_payloads(&self.root, &mut next).0;
        Arc::new(Container { root: inline(root) })
    }

    fn reducible(&self) -> usize {
        let mut reducible = Vec::new();
        list_reducible(&self.root, &sizes(&self.root), &mut reducible);
        reducible.len()
    }

    fn reduced(&self, groups: &[usize]) -> Arc<dyn Document> {
        let mut reducible = Vec::new();
        list_reducible(&self.root, &sizes(&self.root), &mut reducible);
        let groups = groups.iter().filter_map(|index| reducible.get(*index));
        let root = with_least(&self.root, &groups.copied().collect());
        Arc::new(Container { root })
    }

    fn columns(&self) -> usize {
        columns(&self.root).map_or(0, |columns| columns.count)
    }

    fn without_columns(&self, gone: &[usize]) -> Arc<dyn Document> {
        let root = match columns(&self.root) {
            Some(columns) => columns.without(gone, &self.root),
            None => self.root.clone(),
        };
        Arc::new(Container { root })
    }

    fn wrappers(&self) -> usize {
        let mut wrappers = Vec::new();
        list_wrappers(&self.root, &mut wrappers);
        wrappers.len()
    }

    fn unwrapped(&self, wrappers: &[usize], kept: InnerItems) -> Arc<dyn Document> {
        interruption::check();
        let mut labels = Vec::new();
        list_wrappers(&self.root, &mut labels);
        let gone = wrappers.iter().filter_map(|index| labels.get(*index));
        let gone = gone.copied().collect();
        let root = match kept {
            InnerItems::Largest => raise(&self.root, &sizes(&self.root), &gone),
            InnerItems::All => unwrap(&self.root, &gone),
        };
        Arc::new(Container { root })
    }

    fn repacked(&self) -> Option<Arc<dyn Document>> {
        let mut changed = false;
        let root = repack(&self.root, &mut changed, &mut 0);
        changed.then(|| -> Arc<dyn Document> { Arc::new(Container { root }) })
    }

    fn opaque(&self) -> Arc<dyn Document> {
        let root = close(&self.root);
        Arc::new(Container { root })
    }

    fn regions(&self) -> Vec<usize> {
        let regions = Regions::of(&self.root);
        regions.sizes().collect()
    }

    fn sharing(&self, region: usize, with: Option<usize>) -> Option<Arc<dyn Document>> {
        let root = Regions::of(&self.root).share(region, with)?;
        Some(Arc::new(Container { root }))
    }

    fn text(&self) -> Vec<u8> {
        render(&self.root).text
    }
}

/// Appends to `reducible` the labels (ids in the file's tree) of the groups of nodes that have a
/// shortest form ([`Group::least`]) and are larger than it; `sizes` are the sizes of groups in
/// bytes. Compressed nodes are not searched.
fn list_reducible(group: &Group, sizes: &ByLabel<usize>, reducible: &mut Vec<Label>) {
    let size = sizes.get(&group.label).copied().unwrap_or_default();
    if !group.least.is_empty() && size > group.least.len() {
        reducible.push(group.label);
    }
    for node in &group.nodes {
        if let Node::Group(inner) = node {
            list_reducible(inner, sizes, reducible);
        }
    }
}

/// Returns a copy of the tree in which the content of each group of nodes whose label (id in the
/// file's tree) is in `groups` is replaced by its shortest form ([`Group::least`]).
fn with_least(group: &Group, groups: &HashSet<Label>) -> Group {
    if groups.contains(&group.label) {
        let nodes = vec![Node::fixed(group.least)];
        return Group { nodes, ..*group };
    }
    let nodes = group.nodes.iter().map(|node| match node {
        Node::Group(inner) => Node::Group(with_least(inner, groups)),
        other => other.clone(),
    });
    Group {
        nodes: nodes.collect(),
        ..*group
    }
}

/// Returns the tree in which short groups of nodes stand in place of the number that states their
/// place ([`Meaning::Place`]), as TIFF stores short values: those that have no more bytes than this
/// number.
fn inline(root: Group) -> Group {
    let mut places = Vec::new();
    list_places(&root, &mut places);
    if places.is_empty() {
        return root;
    }
    let sizes = sizes(&root);
    places.retain(|(of, width)| {
        sizes
            .get(of)
            .is_some_and(|size| (1..=*width).contains(size))
    });
    let mut moved = HashMap::new();
    let rest = take_groups(root, &places, &mut moved);
    put_groups(rest, &mut moved)
}

/// Appends a pair to `places` for each number in `group` with the meaning [`Meaning::Place`]: the
/// label (id in the file's tree) of the group of nodes whose place the number states, and the size
/// of the number in bytes.
fn list_places(group: &Group, places: &mut Vec<(Label, usize)>) {
    for node in &group.nodes {
        match node {
            Node::Number(number) => {
                if let Meaning::Place(of, _) = number.meaning {
                    places.push((of, number.raw.len()));
                }
            }
            Node::Group(inner) => list_places(inner, places),
            _ => {}
        }
    }
}

/// Takes groups of nodes out of a tree: those whose labels (ids in the file's tree) stand first in
/// the pairs of `places`. Puts them into `moved`, by their labels, and returns the rest of the
/// tree.
fn take_groups(
    mut group: Group,
    places: &[(Label, usize)],
    moved: &mut HashMap<Label, Group>,
) -> Group {
    let mut nodes = Vec::with_capacity(group.nodes.len());
    for node in group.nodes {
        match node {
            Node::Group(inner) if places.iter().any(|(of, _)| *of == inner.label) => {
                moved.insert(inner.label, inner);
            }
            Node::Group(inner) => nodes.push(take_groups(inner, places, moved).into()),
            other => nodes.push(other),
        }
    }
    group.nodes = nodes;
    group
}

/// Returns the tree in which each group of nodes in `moved` stands in place of the number that
/// stated where the group was; zeros after the group pad its size to a multiple of the number's
/// size.
fn put_groups(mut group: Group, moved: &mut HashMap<Label, Group>) -> Group {
    let mut nodes = Vec::with_capacity(group.nodes.len());
    for node in group.nodes {
        match node {
            Node::Group(inner) => nodes.push(put_groups(inner, moved).into()),
            Node::Number(number) => {
                let taken = match number.meaning {
                    Meaning::Place(of, _) => moved.remove(&of),
                    _ => None,
                };
                let Some(inner) = taken else {
                    nodes.push(Node::Number(number));
                    continue;
                };
                let (of, align) = (inner.label, number.raw.len());
                let part = Part::No;
                nodes.push(Group { part, ..inner }.into());
                nodes.push(Node::Pad { of, align, fill: 0 });
            }
            other => nodes.push(other),
        }
    }
    group.nodes = nodes;
    group
}

/// Appends an element to `parts` for each part (group of nodes that can be deleted by itself) in
/// `group`, in pre-order: the index of the first later part that is not inside of the part itself.
fn list_parts(group: &Group, parts: &mut Vec<usize>) {
    let own = (group.part == Part::Own).then_some(parts.len());
    parts.extend(own);
    for node in &group.nodes {
        match node {
            Node::Group(inner) => list_parts(inner, parts),
            Node::Packed(packed) => list_parts(&packed.content, parts),
            _ => {}
        }
    }
    if let Some(own) = own {
        parts[own] = parts.len();
    }
}

fn list_payloads(group: &Group, payloads: &mut Vec<Arc<[u8]>>) {
    for node in &group.nodes {
        match node {
            Node::Payload(bytes) => payloads.push(bytes.clone()),
            Node::Group(inner) => list_payloads(inner, payloads),
            Node::Packed(packed) => list_payloads(&packed.content, payloads),
            _ => {}
        }
    }
}

/// A kind of groups of nodes in the tree of a file, by how they can be deleted. A [`Removal`]
/// removes groups of one kind, given by their indices among all groups of that kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The groups of nodes that searches can delete by themselves ([`Part::Own`]).
    Parts,
    /// The groups of nodes that are deleted together with another one ([`Part::With`]).
    Tied,
}

impl Kind {
    /// Returns true if `group` can be deleted in the way of this kind: by itself for
    /// [`Kind::Parts`], only together with another group of nodes for [`Kind::Tied`].
    fn has(self, group: &Group) -> bool {
        match group.part {
            Part::No => false,
            Part::Own => self == Kind::Parts,
            Part::With(_) => self == Kind::Tied,
        }
    }

    /// Returns the number of groups of nodes of this kind inside of `group`, at all depths.
    fn count(self, group: &Group) -> usize {
        let inside = group.nodes.iter().filter_map(Node::inside);
        let counts = inside.map(|inner| usize::from(self.has(inner)) + self.count(inner));
        counts.sum()
    }
}

/// A removal of some groups of nodes of one kind, given by their indices, from the tree of a file.
/// Each group that is deleted together with a removed one ([`Part::With`]) or with a group inside
/// of a removed one is removed, too.
struct Removal<'a> {
    kind: Kind,
    indices: &'a [usize],
    /// Index, in pre-order, of the next group of nodes of the kind that the traversal of the tree
    /// will meet: the number of those passed so far.
    next: usize,
    /// Labels (ids in the file's tree) of the removed groups of nodes, and of all groups inside of
    /// them.
    gone: HashSet<Label>,
}

impl Removal<'_> {
    /// Returns a copy of the tree `root` without the groups of nodes of the kind `kind` that have
    /// the given indices, and without all groups that are deleted together with them.
    fn of(kind: Kind, indices: &[usize], root: &Group) -> Group {
        let mut removal = Removal {
            kind,
            indices,
            next: 0,
            gone: HashSet::new(),
        };
        // A removed group may be what groups before it are deleted with.
        let mut known = None;
        while known != Some(removal.gone.len()) {
            known = Some(removal.gone.len());
            removal.next = 0;
            removal.mark(root, false);
        }
        removal.next = 0;
        removal.without(root).0
    }

    /// Returns true if `group` is to be removed: its index among the groups of the present kind, in
    /// the order of a traversal of the tree, is one of those to remove, or it is deleted together
    /// with a group that is gone. Else false. Must be called once for each group of the tree, since
    /// it counts those of the kind.
    fn removes(&mut self, group: &Group) -> bool {
        let mut is_removed = matches!(group.part, Part::With(label) if self.gone.contains(&label));
        if self.kind.has(group) {
            is_removed |= self.indices.binary_search(&self.next).is_ok();
            self.next += 1;
        }
        is_removed
    }

    /// Adds to `gone` the labels (ids in the file's tree) of those groups of nodes inside of
    /// `group` that are removed, and of all groups inside of removed ones. `is_gone` is true if
    /// `group` itself or a group around it is removed.
    fn mark(&mut self, group: &Group, is_gone: bool) {
        for inner in group.nodes.iter().filter_map(Node::inside) {
            let is_gone = self.removes(inner) || is_gone;
            if is_gone {
                self.gone.insert(inner.label);
            }
            self.mark(inner, is_gone);
        }
    }

    /// Returns a copy of `group` without the removed groups of nodes inside of it, and true if
    /// anything in it has changed. Compressed nodes whose content changes are compressed anew, or
    /// stored uncompressed if the group that states their compression is removed.
    fn without(&mut self, group: &Group) -> (Group, bool) {
        let mut changed = false;
        let mut nodes = Vec::with_capacity(group.nodes.len());
        for node in &group.nodes {
            let Some(inner) = node.inside() else {
                nodes.push(node.clone());
                continue;
            };
            if self.removes(inner) {
                self.next += self.kind.count(inner);
                changed = true;
                continue;
            }
            let (inner, differs) = self.without(inner);
            changed |= differs;
            nodes.push(match node {
                Node::Packed(packed) if packed.method.is_some_and(|by| self.gone.contains(&by)) => {
                    changed = true;
                    Node::Group(inner)
                }
                Node::Packed(packed) if differs => Node::Packed(packed.with(inner)),
                Node::Packed(packed) => Node::Packed(packed.clone()),
                _ => Node::Group(inner),
            });
        }
        (Group { nodes, ..*group }, changed)
    }
}

/// Returns a copy of `group` in which the payloads (changeable bytes), in the order of the tree,
/// get the contents that `next` yields, one after another; and true if any of them differs from the
/// old one. Compressed nodes whose content changes are compressed anew.
fn with_payloads<'a>(
    group: &Group,
    next: &mut impl Iterator<Item = &'a Arc<[u8]>>,
) -> (Group, bool) {
    let mut changed = false;
    let nodes = group.nodes.iter().map(|node| match node {
        Node::Payload(old) => {
            let new = next.next().unwrap_or(old);
            changed |= new != old;
            Node::Payload(new.clone())
        }
        Node::Group(inner) => {
            let (inner, differs) = with_payloads(inner, next);
            changed |= differs;
            Node::Group(inner)
        }
        Node::Packed(packed) => {
            let (content, differs) = with_payloads(&packed.content, next);
            changed |= differs;
            Node::Packed(match differs {
                true => packed.with(content),
                false => packed.clone(),
            })
        }
        other => other.clone(),
    });
    let group = Group {
        nodes: nodes.collect(),
        ..*group
    };
    (group, changed)
}

impl Packed {
    /// Makes the node of compressed bytes of a file. `packed` are the compressed bytes, `bytes` the
    /// decompressed ones, and `content` is the tree that was read from `bytes`. If that tree does
    /// not give `bytes` again, a single payload (changeable bytes) takes its place.
    pub fn read(codec: Codec, content: Group, bytes: &[u8], packed: &[u8]) -> Packed {
        let label = content.label;
        let content = settle(content);
        let content = match render(&content).text == bytes {
            true => content,
            false => Group::new(label, vec![Node::payload(bytes)]),
        };
        Packed {
            codec,
            content,
            bytes: bytes.into(),
            packed: packed.into(),
            closed: vec![Node::payload(packed)],
            method: None,
            linked: Linked::No,
        }
    }

    /// Returns a compressed node with the content `content`, compressed by the same method as this
    /// node.
    pub fn with(&self, content: Group) -> Packed {
        let method = self.method;
        match self.linked {
            Linked::No => Packed {
                method,
                ..Packed::new(self.codec, content)
            },
            Linked::Into(_) => Packed {
                method,
                ..Packed::linked(self.codec, content)
            },
            // Its bytes follow when the file is put together.
            Linked::Outwards => Packed {
                content,
                ..self.clone()
            },
        }
    }

    /// Makes a compressed node, compressed by the method `codec`, with the tree `content` as its
    /// decompressed content. Numbers outside of the node may state sizes and indices of groups of
    /// nodes in this content ([`Linked::Into`]).
    pub fn linked(codec: Codec, content: Group) -> Packed {
        let inside = render(&content).inside;
        Packed {
            linked: Linked::Into(Arc::new(inside)),
            ..Packed::new(codec, content)
        }
    }

    /// Makes a compressed node from the tree of its content, whose bytes are compressed by the
    /// method `codec`.
    pub fn new(codec: Codec, content: Group) -> Packed {
        let bytes = render(&content).text;
        let packed = codec.pack(&bytes);
        Packed {
            codec,
            content,
            closed: vec![Node::payload(&packed)],
            packed: packed.into(),
            bytes: bytes.into(),
            method: None,
            linked: Linked::No,
        }
    }
}

/// Returns a copy of `group` in which all compressed nodes are compressed anew and numbers take as
/// few bytes as they can. Neighboring groups of nodes that are pieces of one payload (such as IDAT
/// chunks of PNG) are joined, and the joined payload is decompressed if it is a zlib stream. Sets
/// `changed` to true if `group` has compressed nodes, such pieces, or numbers that could be
/// shorter; adds the number of decompressed bytes to `unpacked`.
fn repack(group: &Group, changed: &mut bool, unpacked: &mut u64) -> Group {
    let mut nodes: Vec<Node> = Vec::new();
    for node in &group.nodes {
        match node {
            Node::Group(inner) => {
                let inner = repack(inner, changed, unpacked);
                match nodes.last_mut() {
                    Some(Node::Group(last)) if inner.piece > 0 && last.piece == inner.piece => {
                        append(last, &inner);
                        *changed = true;
                    }
                    _ => nodes.push(Node::Group(inner)),
                }
            }
            Node::Packed(packed) => {
                *changed = true;
                let content = repack(&packed.content, changed, unpacked);
                let mut new = packed.with(content);
                match new.linked {
                    Linked::Outwards => new.bytes = [].into(),
                    // What others have compressed better stays until its content changes.
                    _ if new.bytes == packed.bytes && new.packed.len() > packed.packed.len() => {
                        new = packed.clone();
                    }
                    _ => {}
                }
                nodes.push(Node::Packed(new));
            }
            Node::Number(number) if number.encoding.shortest() != number.encoding => {
                *changed = true;
                nodes.push(Node::Number(Number {
                    encoding: number.encoding.shortest(),
                    ..number.clone()
                }));
            }
            Node::Directory { of, width: 2.. } => {
                *changed = true;
                nodes.push(Node::Directory { of: *of, width: 1 });
            }
            other => nodes.push(other.clone()),
        }
    }
    for node in &mut nodes {
        if let Node::Group(inner) = node
            && inner.piece > 0
        {
            *changed |= unpack_payload(inner, unpacked);
        }
    }
    Group { nodes, ..*group }
}

/// Appends the bytes of all payloads (changeable bytes) in `next` to the first payload in `group`,
/// because both groups of nodes are pieces of one payload. Does nothing if `group` has no payload.
fn append(group: &mut Group, next: &Group) {
    let mut payloads = Vec::new();
    list_payloads(next, &mut payloads);
    if let Some(payload) = first_payload(group) {
        let mut joined = match payload {
            Node::Payload(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        };
        joined.extend(payloads.iter().flat_map(|payload| payload.iter()));
        *payload = Node::Payload(joined.into());
    }
}

/// Replaces the first payload (changeable bytes) of `group` by a compressed node with its
/// decompressed content, if it is a zlib stream. Returns true if it did so. Counts decompressed
/// bytes in `unpacked`.
fn unpack_payload(group: &mut Group, unpacked: &mut u64) -> bool {
    let label = group.label;
    let Some(payload) = first_payload(group) else {
        return false;
    };
    let Node::Payload(bytes) = payload else {
        return false;
    };
    let Some(content) = Codec::Zlib.unpack(bytes, unpacked) else {
        return false;
    };
    // Nothing refers to the content, so that its label need not be its own.
    let content = Group::new(label | CONTENT, vec![Node::payload(&content)]);
    *payload = Node::Packed(Packed::new(Codec::Zlib, content));
    true
}

/// Bit that is set in a label to make another label: from that of a group of nodes whose payload
/// (changeable bytes) is a compressed stream, the label of the stream's decompressed content.
/// Labels are ids in the file's tree. No number in the file refers to such content.
const CONTENT: Label = 1 << 31;

/// Returns the first payload (changeable bytes) in a group of nodes, or in the groups inside of it;
/// `None` if there is none.
fn first_payload(group: &mut Group) -> Option<&mut Node> {
    group.nodes.iter_mut().find_map(|node| match node {
        Node::Payload(_) => Some(node),
        Node::Group(inner) => first_payload(inner),
        _ => None,
    })
}

/// Returns a copy of `group` in which each compressed node is replaced by a payload with its
/// compressed bytes, which searches delete and change like any other payload.
fn close(group: &Group) -> Group {
    let mut nodes = Vec::with_capacity(group.nodes.len());
    for node in &group.nodes {
        match node {
            Node::Group(inner) => nodes.push(Node::Group(close(inner))),
            // Numbers that describe the content stay as they are, since its group is gone.
            Node::Packed(packed) => nodes.extend(packed.closed.iter().cloned()),
            other => nodes.push(other.clone()),
        }
    }
    Group { nodes, ..*group }
}
