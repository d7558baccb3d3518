//! The columns of a picture, which are deleted from all of its rows together.

use std::collections::HashSet;

use crate::node::{Columns, Group, Node, Part};

/// Returns the number of columns of a picture, as the first node of the kind [`Node::Columns`] in
/// `group` holds it; `None` if there is no such node. The content of compressed nodes is not
/// searched.
pub fn columns(group: &Group) -> Option<Columns> {
    group.nodes.iter().find_map(|node| match node {
        Node::Columns(columns) => Some(*columns),
        Node::Group(inner) => columns(inner),
        _ => None,
    })
}

impl Columns {
    /// Returns the encoded number of columns: the bytes by which the file states it.
    pub fn write(&self) -> Vec<u8> {
        self.encoding.write(self.count as u64)
    }

    /// Returns a copy of `tree`, the tree of a file, in which those columns of the picture whose
    /// indices are in `gone` are deleted.
    pub fn without(&self, gone: &[usize], tree: &Group) -> Group {
        let gone = gone.iter().copied().collect();
        self.group(tree, &gone, false)
    }

    /// Returns a copy of `group` in which the columns with the indices `gone` are deleted from each
    /// row of the picture, and the number of columns is lowered. `is_row` is true if `group` is a
    /// row of the picture or lies inside of a row.
    fn group(&self, group: &Group, gone: &HashSet<usize>, is_row: bool) -> Group {
        let has_rows = group.label == self.rows;
        let is_pixels = is_row && group.part == Part::No;
        let mut nodes = Vec::with_capacity(group.nodes.len());
        for (index, node) in group.nodes.iter().enumerate() {
            nodes.push(match node {
                Node::Columns(columns) if columns.rows == self.rows => Node::Columns(Columns {
                    count: columns.count - gone.len(),
                    ..*columns
                }),
                Node::Payload(bytes) if is_pixels => Node::payload(&self.pixels(bytes, gone)),
                // Each pixel is a number of its own.
                _ if is_pixels && gone.contains(&index) => continue,
                Node::Group(inner) => Node::Group(self.group(inner, gone, has_rows || is_row)),
                other => other.clone(),
            });
        }
        Group { nodes, ..*group }
    }

    /// Returns the pixels of a row, as bytes, without the columns `gone`. Where a byte holds
    /// several pixels, the first of them is in its high bits.
    fn pixels(&self, row: &[u8], gone: &HashSet<usize>) -> Vec<u8> {
        let kept = (0..self.count).filter(|column| !gone.contains(column));
        if self.bits.is_multiple_of(8) {
            let size = self.bits / 8;
            let pixels = kept.filter_map(|column| row.get(column * size..(column + 1) * size));
            return pixels.collect::<Vec<_>>().concat();
        }
        let bits = kept.flat_map(|column| column * self.bits..(column + 1) * self.bits);
        let bits = bits.map(|bit| {
            row.get(bit / 8)
                .is_some_and(|byte| byte >> (7 - bit % 8) & 1 == 1)
        });
        let mut pixels = vec![0; ((self.count - gone.len()) * self.bits).div_ceil(8)];
        for (to, is_set) in bits.enumerate() {
            pixels[to / 8] |= u8::from(is_set) << (7 - to % 8);
        }
        pixels
    }
}
