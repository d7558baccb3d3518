//! Functions that replace an item of a nested format, such as a list, by items inside of it.

use std::collections::HashSet;

use crate::node::{ByLabel, Group, Label, Node};

/// Appends to `wrappers` the labels (ids in the file's tree) of all items in `group` that contain
/// other items. Compressed nodes are not searched.
pub(crate) fn list_wrappers(group: &Group, wrappers: &mut Vec<Label>) {
    if group.is_item && items_in(group).next().is_some() {
        wrappers.push(group.label);
    }
    for node in &group.nodes {
        if let Node::Group(inner) = node {
            list_wrappers(inner, wrappers);
        }
    }
}

/// Returns the outermost items inside of a group of nodes.
fn items_in(group: &Group) -> Box<dyn Iterator<Item = &Group> + '_> {
    let inside = group.nodes.iter().filter_map(|node| match node {
        Node::Group(inner) => Some(inner),
        _ => None,
    });
    Box::new(inside.flat_map(|inner| match inner.is_item {
        true => Box::new(std::iter::once(inner)),
        false => items_in(inner),
    }))
}

/// Returns a copy of the tree in which each item whose label (id in the file's tree) is in `gone`
/// is replaced by the largest item inside of it; `sizes` has the sizes of groups of nodes in bytes,
/// by label.
pub(crate) fn raise(group: &Group, sizes: &ByLabel<usize>, gone: &HashSet<Label>) -> Group {
    let mut group = group;
    while gone.contains(&group.label) {
        let largest = items_in(group).max_by_key(|item| sizes.get(&item.label));
        let Some(largest) = largest else { break };
        group = largest;
    }
    let nodes = group.nodes.iter().map(|node| match node {
        Node::Group(inner) => Node::Group(raise(inner, sizes, gone)),
        other => other.clone(),
    });
    Group {
        nodes: nodes.collect(),
        ..*group
    }
}

/// Returns a copy of the tree in which each item whose label (id in the file's tree) is in `gone`
/// is replaced by all of the items directly inside of it.
pub(crate) fn unwrap(group: &Group, gone: &HashSet<Label>) -> Group {
    let is_gone = gone.contains(&group.label);
    let nodes = match is_gone {
        true => items_in(group)
            .map(|item| Node::Group(unwrap(item, gone)))
            .collect(),
        false => (group.nodes.iter())
            .map(|node| match node {
                Node::Group(inner) => Node::Group(unwrap(inner, gone)),
                other => other.clone(),
            })
            .collect(),
    };
    Group {
        nodes,
        // What is left is a list of items.
        is_item: group.is_item && !is_gone,
        ..*group
    }
}
