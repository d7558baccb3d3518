//! Regions of a file to which offsets refer: a search can remove one region, and let the offsets
//! that referred to it refer to another region.

use std::sync::Arc;

use crate::node::{Group, Label, Meaning, Node, Part};
use crate::render::render;

/// The regions in the tree of a file: groups of nodes whose offsets are stated by numbers in the
/// file, and that contain neither parts (groups that can be deleted) nor compressed nodes.
pub struct Regions<'a> {
    root: &'a Group,
    regions: Vec<&'a Group>,
}

impl<'a> Regions<'a> {
    /// Finds all regions of the tree (groups of nodes whose offsets the file states), in the order
    /// of their bytes.
    pub fn of(root: &'a Group) -> Regions<'a> {
        let mut targets = Vec::new();
        list_targets(root, &mut targets);
        targets.sort_unstable();
        let mut regions = Vec::new();
        list_regions(root, &targets, &mut regions);
        Regions { root, regions }
    }

    /// Returns the size in bytes of each region (group of nodes whose offset the file states), in
    /// the order of the regions.
    pub fn sizes(&self) -> impl Iterator<Item = usize> {
        self.regions.iter().map(|region| render(region).text.len())
    }

    /// Returns the tree without the region that has the index `region`. Offsets that referred to
    /// that region refer to the region with the index `with` instead or, if `with` is `None`, to
    /// the place from which they count, mostly the beginning of the file. Other numbers about the
    /// removed region, such as its length, keep their values. Returns `None` if there is no such
    /// region, or if a copy, padding or flags elsewhere in the file depend on it.
    pub fn share(&self, region: usize, with: Option<usize>) -> Option<Group> {
        let gone = self.regions.get(region)?;
        let target = match with {
            Some(with) => Some(self.regions.get(with)?.label),
            None => None,
        };
        let mut inside = Vec::new();
        list_labels(gone, &mut inside);
        inside.sort_unstable();
        let rendered = render(self.root);
        let mut share = Share {
            region: gone.label,
            target,
            inside,
            numbers: rendered.numbers(),
        };
        share.group(self.root)
    }
}

/// Finds the numbers in `group`, and in the groups inside of it, that state the offset of a group
/// of nodes, and appends the labels (ids in the file's tree) of these stated groups to `targets`.
fn list_targets(group: &Group, targets: &mut Vec<Label>) {
    for node in &group.nodes {
        match node {
            Node::Group(inner) => list_targets(inner, targets),
            Node::Number(number) => {
                if let Meaning::Offset(of, _) | Meaning::Place(of, _) = number.meaning {
                    targets.push(of);
                }
            }
            _ => {}
        }
    }
}

/// Appends to `regions` the regions inside of `group`. A region is a group of nodes whose label (id
/// in the file's tree) is in `targets`, which is sorted, and that contains neither deletable groups
/// nor compressed nodes. Does not look for regions inside of a region.
fn list_regions<'a>(group: &'a Group, targets: &[Label], regions: &mut Vec<&'a Group>) {
    for node in &group.nodes {
        let Node::Group(inner) = node else {
            continue;
        };
        if targets.binary_search(&inner.label).is_ok() && !has_parts(inner) {
            regions.push(inner);
        } else {
            list_regions(inner, targets, regions);
        }
    }
}

/// Returns true if a group of nodes contains groups that can be deleted, or compressed nodes; else
/// false.
fn has_parts(group: &Group) -> bool {
    group.nodes.iter().any(|node| match node {
        Node::Group(inner) => inner.part != Part::No || has_parts(inner),
        Node::Packed(_) => true,
        _ => false,
    })
}

/// Appends to `labels` the labels (ids in the file's tree) of `group` and of all groups of nodes
/// inside of it.
fn list_labels(group: &Group, labels: &mut Vec<Label>) {
    labels.push(group.label);
    for node in &group.nodes {
        if let Node::Group(inner) = node {
            list_labels(inner, labels);
        }
    }
}

/// What is needed while a region is removed from the tree of a file, node by node, so that offsets
/// refer to another region in its place.
struct Share<I> {
    region: Label,
    /// Label (id in the file's tree) of the region to which offsets refer in place of the removed
    /// one; `None` if they refer to the place from which they count.
    target: Option<Label>,
    /// Labels (ids in the file's tree) of the removed region and of all groups of nodes inside of
    /// it, sorted.
    inside: Vec<Label>,
    /// The bytes of all numbers of the tree, in the order of the tree, as they were before the
    /// region was removed.
    numbers: I,
}

impl<'a, I: Iterator<Item = &'a [u8]>> Share<I> {
    fn is_inside(&self, label: Label) -> bool {
        self.inside.binary_search(&label).is_ok()
    }

    /// Returns a copy of `group` without the removed region, and with changed offsets; `None` if
    /// the region cannot be removed, because a copy, padding or flags in `group` depend on it.
    fn group(&mut self, group: &Group) -> Option<Group> {
        let mut nodes = Vec::with_capacity(group.nodes.len());
        for node in &group.nodes {
            nodes.extend(self.node(node)?);
        }
        let part = match group.part {
            Part::With(label) if label == self.region => Part::Own,
            part => part,
        };
        Some(Group {
            nodes,
            part,
            ..*group
        })
    }

    /// Returns a copy of `node` in which offsets no longer refer to the removed region. The result
    /// is `Some(None)` if `node` is that region itself, so that nothing takes its place; `None` if
    /// the region cannot be removed, because the node is a copy, padding or flags that depend on
    /// it.
    fn node(&mut self, node: &Node) -> Option<Option<Node>> {
        Some(Some(match node {
            Node::Group(inner) if inner.label == self.region => {
                for _ in 0..count_numbers(inner) {
                    self.numbers.next();
                }
                return Some(None);
            }
            Node::Group(inner) => Node::Group(self.group(inner)?),
            Node::Number(number) => {
                let bytes: Arc<[u8]> = self.numbers.next()?.into();
                match number.meaning {
                    Meaning::Offset(of, from) | Meaning::Place(of, from) if of == self.region => {
                        let mut number = number.clone();
                        number.meaning = Meaning::Offset(self.target.unwrap_or(from), from);
                        Node::Number(number)
                    }
                    meaning if meaning.labels().iter().any(|one| self.is_inside(*one)) => {
                        Node::Fixed(bytes)
                    }
                    _ => node.clone(),
                }
            }
            Node::Copy(of) | Node::Pad { of, .. } if self.is_inside(*of) => return None,
            Node::Flags { bits, .. } if bits.iter().any(|(_, of)| self.is_inside(*of)) => {
                return None;
            }
            other => other.clone(),
        }))
    }
}

/// Counts the numbers (lengths, offsets, …) in a group of nodes and the groups inside of it.
fn count_numbers(group: &Group) -> usize {
    let counts = group.nodes.iter().map(|node| match node {
        Node::Group(inner) => count_numbers(inner),
        Node::Number(_) => 1,
        _ => 0,
    });
    counts.sum()
}
