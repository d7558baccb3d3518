//! Memory to which no pointer of the program leads, as raw bytes.

use std::collections::HashSet;

use crate::graph::{Object, Origin, Place};
use crate::types::{Types, integer};
use crate::unfold::{Area, LARGEST, PAGE, Unfolding};

/// Name of a heap block to which only a library's data leads.
pub const LIBRARY_BUFFER: &str = "library buffer";

impl Unfolding<'_> {
    /// Adds to the memory graph, as raw bytes, those parts of the memory mapped by the program
    /// itself that belong to no object of the graph. A mapping without any such object is left out.
    pub(super) fn gaps(&mut self) {
        for area in self.mapped.clone() {
            let mut at = area.start;
            let is_reached = self
                .graph
                .next_start(at - 1)
                .is_some_and(|it| it < area.end);
            let end = area.end.min(area.start + LARGEST);
            while is_reached && at < end {
                if let Some((object, offset)) = self.graph.containing(at) {
                    at += self.graph.objects[object].bytes.len() as u64 - offset;
                    continue;
                }
                let page = (at / PAGE + 1) * PAGE;
                let next = self
                    .graph
                    .next_start(at)
                    .map_or(page, |next| next.min(page));
                let bytes = self.read(at, next.min(end) - at);
                if bytes.is_empty() {
                    break;
                }
                self.raw(at, bytes, "mapped memory");
                at = next;
            }
        }
    }

    /// Adds to the memory graph, as raw bytes, the live heap blocks to which no pointer of the
    /// program leads.
    pub(super) fn raw_blocks(&mut self) {
        // Without any variable the blocks are the program's own, too.
        let is_raw = self.graph.objects.is_empty();
        let mut blocks = self.state.blocks();
        blocks.retain(|block| self.graph.containing(block.start).is_none());
        let of_libraries = match is_raw || blocks.is_empty() {
            true => HashSet::new(),
            false => self.blocks_of_libraries(&blocks),
        };
        for block in blocks {
            let end = self
                .graph
                .next_start(block.start)
                .map_or(block.end, |next| next.min(block.end));
            let bytes = self.read(block.start, (end - block.start).min(LARGEST));
            if bytes.is_empty() {
                continue;
            }
            let name = match of_libraries.contains(&block.start) {
                true => LIBRARY_BUFFER,
                false => "heap block",
            };
            self.raw(block.start, bytes, name);
        }
    }

    /// Returns the first addresses of those of `blocks` (ascending by address) that belong to
    /// libraries, such as the buffers of open files: a pointer in a library's data, or in another
    /// block of a library, leads to the block.
    fn blocks_of_libraries(&mut self, blocks: &[Area]) -> HashSet<u64> {
        let mut found = HashSet::new();
        let mut areas = self.state.library_data();
        while let Some(area) = areas.pop() {
            let length = (area.end - area.start).min(LARGEST);
            let bytes = self.state.bytes(area.start, length as usize);
            for word in bytes.chunks_exact(8) {
                let address = integer(word, None, false) as u64;
                let before = blocks.partition_point(|block| block.start <= address);
                let block = before.checked_sub(1).map(|index| blocks[index]);
                if let Some(block) = block.filter(|block| address < block.end)
                    && found.insert(block.start)
                {
                    areas.push(block);
                }
            }
        }
        found
    }

    /// Adds an object called `name` to the memory graph: the `bytes` at `address`, which no type
    /// describes.
    fn raw(&mut self, address: u64, bytes: Vec<u8>, name: &str) {
        let leaves = self.leaves_of(Types::VOID, &bytes);
        self.graph.add(Object {
            origin: Origin::Raw,
            place: Place::Memory(address),
            of: Types::VOID,
            bytes,
            leaves,
            name: name.to_owned(),
            function: String::new(),
            reached: None,
            alias: None,
        });
    }
}
