//! The live heap blocks of a process that uses glibc's allocator, and the words with which the
//! allocator finds them.

use std::collections::HashSet;
use std::ops::Range;

use ddfuzz_triage::memory::{Maps, Memory};

use super::asan::{GRANULE, SHADOW, shadow_of};
use crate::graph::Header;
use crate::unfold::Area;

/// Number of bytes before a heap block's first byte that glibc uses for its size.
const HEADER: u64 = 16;
/// Size in bytes of the chunk in which a thread keeps its freed heap blocks (glibc 2.30 and later).
const TCACHE: u64 = 0x290;
/// Number of different block sizes for which a thread keeps freed heap blocks.
const TCACHE_BINS: u64 = 64;
/// Number of bytes from the beginning of a heap that are read; blocks beyond them are not seen.
const LARGEST: u64 = 256 << 20;
/// Byte of the shadow memory for what AddressSanitizer keeps in front of each heap block, and for
/// memory that is no block yet.
const HEAP_HEADER: u8 = 0xfa;
/// Bytes of the shadow memory for parts of live heap blocks that the program may not access now: by
/// its own request, behind the last element of a C++ container, or a length that C++ keeps.
const PART: [u8; 3] = [0xf7, 0xfc, 0xac];
/// Largest number of bytes in front of AddressSanitizer's shadow memory that belong to the same
/// mapping.
const BEFORE_SHADOW: u64 = 1 << 16;
/// Minimum number of bytes from the beginning of AddressSanitizer's shadow memory to the end of its
/// mapping. The first part of the shadow memory, which describes all addresses below the shadow
/// memory, has at least this size.
const LOW_SHADOW: u64 = 0x0fff_0000;
/// Largest number of addresses at which the next chunk is searched for after one whose size field
/// was overwritten.
const FAR: usize = 1 << 12;

/// The live blocks on a process's heap, and the words in which the allocator keeps their sizes.
#[derive(Default)]
pub struct HeapBlocks {
    /// The live blocks, ascending: chunks in use, without those that glibc keeps as freed for the
    /// next allocation.
    pub blocks: Vec<Area>,
    /// The words before blocks in which the allocator keeps their sizes, ascending.
    pub headers: Vec<Header>,
    /// The memory from which AddressSanitizer takes heap blocks, and its shadow memory; empty
    /// without it.
    pub of_asan: Vec<Range<u64>>,
}

impl HeapBlocks {
    /// Returns true if AddressSanitizer keeps its shadow memory or heap blocks at an address.
    pub fn is_of_asan(&self, address: u64) -> bool {
        self.of_asan.iter().any(|it| it.contains(&address))
    }
}

/// Reads the live blocks of a process's heap, and the words in which the allocator keeps their
/// sizes.
pub fn heap_blocks(maps: &Maps, memory: &mut dyn Memory) -> HeapBlocks {
    let mut found = HeapBlocks::default();
    // The runtime maps a little in front of its shadow memory as well.
    let is_shadow = |start: u64, end: u64| {
        SHADOW.start - start <= BEFORE_SHADOW && end - SHADOW.start >= LOW_SHADOW
    };
    if (maps.find(SHADOW.start)).is_some_and(|it| !it.is_file() && is_shadow(it.start, it.end)) {
        return shadowed_blocks(maps, memory);
    }
    for mapping in maps.iter() {
        if mapping.path.as_os_str() == "[heap]" {
            let length = (mapping.end - mapping.start).min(LARGEST);
            let image = memory.bytes(mapping.start, length as usize);
            let heap = Heap {
                start: mapping.start,
                image,
            };
            heap.blocks(maps, memory, &mut found);
        } else if let Some(block) = large_block(mapping.start, mapping.end, mapping, memory) {
            found.blocks.push(block);
        }
    }
    found.blocks.sort_by_key(|block| block.start);
    found.headers.sort_by_key(|header| header.address);
    found
}

/// Returns the live heap blocks, ascending by address, of a process with AddressSanitizer's
/// allocator: its shadow memory shows where they begin and end.
fn shadowed_blocks(maps: &Maps, memory: &mut dyn Memory) -> HeapBlocks {
    let mut found = HeapBlocks::default();
    found.of_asan.push(SHADOW);
    for mapping in maps.iter() {
        let is_anonymous = !mapping.is_file() && mapping.path.as_os_str().is_empty();
        let length = mapping.end - mapping.start;
        if !mapping.writable || !is_anonymous || SHADOW.contains(&mapping.start) || length > LARGEST
        {
            continue;
        }
        // The first block has its header at the beginning.
        let first = memory.bytes(shadow_of(mapping.start), 1);
        if first == [HEAP_HEADER] {
            let shadow = memory.bytes(shadow_of(mapping.start), (length / GRANULE) as usize);
            found.blocks.extend(live_in(mapping.start, &shadow));
            found.of_asan.push(mapping.start..mapping.end);
        }
    }
    found.blocks.sort_by_key(|block| block.start);
    found
}

/// Returns the live heap blocks in the memory from the address `start` on, which the shadow memory
/// `shadow` describes.
fn live_in(start: u64, shadow: &[u8]) -> Vec<Area> {
    let is_live = |byte: &u8| *byte < GRANULE as u8 || PART.contains(byte);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < shadow.len() {
        let length = shadow[at..].iter().take_while(|it| is_live(it)).count();
        let behind = shadow[at + length..].iter().take_while(|it| !is_live(it));
        if length > 0 && at > 0 && shadow[at - 1] == HEAP_HEADER {
            // The last byte says how many of eight bytes belong to the block.
            let part = u64::from(shadow[at + length - 1]);
            let missing = if part > 0 && part < GRANULE {
                GRANULE - part
            } else {
                0
            };
            let first = start + at as u64 * GRANULE;
            found.push(Area {
                start: first,
                end: first + length as u64 * GRANULE - missing,
                is_block: true,
            });
        }
        at += length + behind.count();
    }
    found
}

/// A heap block past whose end the program has written: it has overwritten the word behind the
/// block, in which the allocator keeps the size of the next block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Address at which the heap block begins.
    pub block: u64,
    /// Address of the overwritten word: the size field of the block after this one.
    pub word: u64,
}

/// Returns the first heap block that was overwritten past its end, as the allocator's size field
/// after it shows: the field is no valid size, or it says that the block is freed, but the word in
/// front of the field is not the block's size, which the allocator writes there when it frees a
/// block. `None` if all size fields are valid, or if the heap is not that of glibc's allocator.
pub fn damaged(maps: &Maps, memory: &mut dyn Memory) -> Option<Damaged> {
    let mapping = maps.iter().find(|it| it.path.as_os_str() == "[heap]")?;
    let length = (mapping.end - mapping.start).min(LARGEST);
    let heap = Heap {
        start: mapping.start,
        image: memory.bytes(mapping.start, length as usize),
    };
    if heap.size(mapping.start)? != TCACHE {
        return None;
    }
    let (mut before, mut at) = (None, mapping.start);
    while at + HEADER < mapping.start + length {
        let is_valid = |word: u64| {
            let is_freed = before.is_some_and(|(_, size)| heap.word(at) == Some(size));
            is_size(word) && (says_used(word) || is_freed)
        };
        let word = heap.word(at + 8);
        let Some(size) = heap.size(at).filter(|_| word.is_some_and(is_valid)) else {
            return before.map(|(block, _)| Damaged {
                block,
                word: at + 8,
            });
        };
        before = Some((at + HEADER, size));
        at += size;
    }
    None
}

/// Returns true if a size field of the allocator says that the heap block before it is in use.
pub fn says_used(word: u64) -> bool {
    word & 1 == 1
}

/// Returns true if a word can be the size of a chunk of glibc's main heap; its lowest bit is a
/// flag.
pub fn is_size(word: u64) -> bool {
    let size = word & !1;
    (32..LARGEST).contains(&size) && size.is_multiple_of(16)
}

/// Returns the heap block in the mapping from `start` to `end`, if it is so large that the
/// allocator has mapped memory for it alone; else `None`.
fn large_block(
    start: u64,
    end: u64,
    mapping: &ddfuzz_triage::memory::Mapping,
    memory: &mut dyn Memory,
) -> Option<Area> {
    const IS_MMAPPED: u64 = 2;
    if !mapping.writable || mapping.is_file() || !mapping.path.as_os_str().is_empty() {
        return None;
    }
    let size = memory.word(start + 8)?;
    let length = size & !7;
    let is_one =
        size & 7 == IS_MMAPPED && length % 4096 == 0 && length > 0 && length <= end - start;
    is_one.then_some(Area {
        start: start + HEADER,
        end: start + length,
        is_block: true,
    })
}

struct Heap {
    start: u64,
    image: Vec<u8>,
}

impl Heap {
    fn word(&self, address: u64) -> Option<u64> {
        let at = address.checked_sub(self.start)? as usize;
        let bytes = self.image.get(at..at.checked_add(8)?)?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    }

    /// Returns the size in bytes of the chunk of the heap at an address; `None` if the size that
    /// the chunk has stored is impossible.
    fn size(&self, at: u64) -> Option<u64> {
        let size = self.word(at + 8)? & !7;
        let end = self.start + self.image.len() as u64;
        (size >= 32 && size.is_multiple_of(16) && size <= end - at).then_some(size)
    }

    /// Returns true if the chunks of the heap from the address `at` on end exactly where the heap
    /// ends, as in an undamaged heap.
    fn fills(&self, mut at: u64) -> bool {
        let end = self.start + self.image.len() as u64;
        while at < end {
            match self.size(at) {
                Some(size) => at += size,
                None => return false,
            }
        }
        at == end
    }

    /// Returns the chunks (address, size, whether in use) into which the allocator has divided the
    /// heap, except for the last one, and the address of the last one (`None` if there is none).
    /// Appends their size fields to `headers`. A chunk whose size field was overwritten is taken to
    /// end at the first address after which valid chunks fill the heap.
    fn chunks(&self, headers: &mut Vec<Header>) -> (Vec<(u64, u64, bool)>, Option<u64>) {
        let end = self.start + self.image.len() as u64;
        let (mut chunks, mut at) = (Vec::new(), self.start);
        while at + HEADER < end {
            let found = self.size(at);
            headers.push(Header {
                address: at + 8,
                value: self.word(at + 8).unwrap_or(0),
                is_intact: found.is_some(),
            });
            let next = || {
                let candidates = (at + 32..end).step_by(16);
                candidates.take(FAR).find(|next| self.fills(*next))
            };
            // Behind the last chunk there is nothing.
            let Some(size) = found.or_else(|| Some(next()? - at)) else {
                return (chunks, Some(at));
            };
            if at + size == end {
                return (chunks, Some(at));
            }
            // Whether a chunk is in use stands in the header after it.
            let is_used = self.word(at + size + 8).is_some_and(|next| next & 1 == 1);
            chunks.push((at, size, is_used || self.size(at + size).is_none()));
            at += size;
        }
        (chunks, None)
    }

    fn blocks(&self, maps: &Maps, memory: &mut dyn Memory, all: &mut HeapBlocks) {
        let (chunks, top) = self.chunks(&mut all.headers);
        let mut freed = HashSet::new();
        let mut first = 0;
        if chunks.first().is_some_and(|(_, size, _)| *size == TCACHE) {
            self.cached(self.start + HEADER, &mut freed);
            first = 1;
        }
        if let Some(top) = top {
            self.fast_bins(top, maps, memory, &mut freed);
        }
        let live = chunks[first..]
            .iter()
            .filter(|(at, _, is_used)| *is_used && !freed.contains(at));
        all.blocks.extend(live.map(|(at, size, _)| Area {
            start: at + HEADER,
            end: at + size + 8,
            is_block: true,
        }));
    }

    /// Adds to `freed` the heap blocks that the thread keeps for its next allocations (glibc's
    /// tcache).
    fn cached(&self, tcache: u64, freed: &mut HashSet<u64>) {
        for bin in 0..TCACHE_BINS {
            let Some(first) = self.word(tcache + 2 * TCACHE_BINS + 8 * bin) else {
                return;
            };
            self.chain(first, HEADER, freed);
        }
    }

    /// Adds to `freed` the chunks of a list of freed chunks that begins at `first`. Each pointer to
    /// the next chunk is combined with its own address; `offset` is the distance from the start of
    /// a chunk to where pointers to it lead.
    fn chain(&self, first: u64, offset: u64, freed: &mut HashSet<u64>) {
        let mut at = first;
        while at != 0 && freed.insert(at.wrapping_sub(offset)) {
            let place = at.wrapping_sub(offset).wrapping_add(HEADER);
            let Some(next) = self.word(place) else {
                return;
            };
            at = next ^ place >> 12;
        }
    }

    /// Adds to `freed` the small freed chunks (fast bins) of glibc's main arena. The arena is found
    /// in the C library's writable memory (`maps`) because it holds `top`, the address of the
    /// heap's last chunk.
    fn fast_bins(&self, top: u64, maps: &Maps, memory: &mut dyn Memory, freed: &mut HashSet<u64>) {
        /// Offset, in glibc's arena, of its pointer to the last chunk.
        const TOP: u64 = 96;
        /// Offset, in glibc's arena, of its lists of freed chunks.
        const LISTS: u64 = 16;
        for mapping in maps
            .iter()
            .filter(|mapping| mapping.writable && mapping.is_file())
        {
            if !mapping.base_name().starts_with("libc") {
                continue;
            }
            let image = memory.bytes(mapping.start, (mapping.end - mapping.start) as usize);
            let words = image.chunks_exact(8).enumerate();
            for (index, word) in words {
                if word != top.to_le_bytes() {
                    continue;
                }
                let arena = (mapping.start + 8 * index as u64).wrapping_sub(TOP);
                for list in 0..10 {
                    let first = memory.word(arena.wrapping_add(LISTS + 8 * list));
                    if let Some(first) = first.filter(|first| self.word(*first).is_some()) {
                        self.chain(first, 0, freed);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shadow_memory_shows_where_blocks_begin_and_end() {
        // A block of 13 bytes, a freed one, one of 16 bytes, of which four are behind the last element.
        let shadow = [
            0xfa, 0xfa, 0, 5, 0xfa, 0xfa, 0xfd, 0xfd, 0xfa, 0xfa, 0, 0xfc, 0xfa, 0xfa,
        ];
        let found = live_in(0x6000_0000_0000, &shadow);
        let found: Vec<(u64, u64)> = (found.iter())
            .map(|it| (it.start - 0x6000_0000_0000, it.end - it.start))
            .collect();
        assert_eq!(found, [(16, 13), (80, 16)]);
    }

    #[test]
    fn sizes_are_multiples_of_16_with_a_flag() {
        for size in [0x20, 0x21, 0x291, 0x20d51] {
            assert!(is_size(size), "{size:#x}");
        }
        for other in [0, 1, 0x10, 0x22, 0x28, 0x6161_6161, 0x7fff_0000_0021] {
            assert!(!is_size(other), "{other:#x}");
        }
    }
}
