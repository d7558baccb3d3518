//! The comparisons of one run: a bounded history, and the ring in shared memory that fills it.
//!
//! The ring is the Rust side of `struct observed` in `runtime/observe.h`. It is read as a file and
//! not mapped: the target may write to it and truncate it, which only makes a read short.

use ddfuzz_delta::Comparison;
use std::collections::{HashMap, HashSet, VecDeque};
use std::{fs::File, io, os::unix::fs::FileExt};

use crate::{input::memory_file, observe::image::Hook};

/// Maximum number of comparisons in the history of one run.
const KEPT: usize = 256;
/// Maximum number of comparisons made at one address in the code that are kept, so that a loop does
/// not displace all comparisons made before it.
const KEPT_OF_A_SITE: usize = 16;
const MOST_SITES: usize = 1 << 16;

/// The last comparisons that a run made: at most `KEPT` in total, and at most `KEPT_OF_A_SITE` of
/// each address in the code.
#[derive(Debug, Default)]
pub(crate) struct History {
    count: u64,
    sites: HashMap<u64, VecDeque<(u64, Comparison)>>,
}

impl History {
    /// Adds a comparison made at the address `site` to the history, if its operands differ and are
    /// not both addresses.
    pub(crate) fn push(&mut self, site: u64, left: &[u8], right: &[u8]) {
        let many = self.sites.len() >= MOST_SITES && !self.sites.contains_key(&site);
        if left == right || many || (is_address(left) && is_address(right)) {
            return;
        }
        let of_site = self.sites.entry(site).or_default();
        if of_site.len() == KEPT_OF_A_SITE {
            of_site.pop_front();
        }
        let comparison = Comparison {
            left: left.to_vec(),
            right: right.to_vec(),
        };
        of_site.push_back((self.count, comparison));
        self.count += 1;
    }

    /// Returns the last different comparisons of the run, at most [`KEPT`], oldest first. Of
    /// comparisons with the same two operands, in either order, only the last one is returned.
    pub(crate) fn into_comparisons(self) -> Vec<Comparison> {
        let mut all: Vec<(u64, Comparison)> = self.sites.into_values().flatten().collect();
        all.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
        let mut seen: HashSet<Comparison> = HashSet::new();
        let mut last: Vec<Comparison> = Vec::new();
        for (_, comparison) in all {
            let turned = Comparison {
                left: comparison.right.clone(),
                right: comparison.left.clone(),
            };
            if last.len() < KEPT && !seen.contains(&turned) && seen.insert(comparison.clone()) {
                last.push(comparison);
            }
        }
        last.reverse();
        last
    }
}

/// Returns true if these bytes are an address of a position-independent program, a library or a
/// stack: from `0x5500_0000_0000` to `0x7fff_ffff_ffff`.
fn is_address(bytes: &[u8]) -> bool {
    let Ok(word) = bytes.try_into().map(u64::from_le_bytes) else {
        return false;
    };
    (0x5500_0000_0000..=0x7fff_ffff_ffff).contains(&word)
}

const MAGIC: u32 = 0x6f62_6466;
const VERSION: u32 = 1;
const OPERAND: usize = 64;
const PAIRS: u64 = 4096;
const HOOKS: usize = 32;
const PAIR_SIZE: usize = 32 + 2 * OPERAND;
const TAKEN_AT: u64 = 16;
const HOOKS_AT: usize = 24;
const PAIRS_AT: u64 = (HOOKS_AT + 16 * HOOKS) as u64;
const SIZE: u64 = PAIRS_AT + PAIRS * PAIR_SIZE as u64;

/// Maximum number of comparisons that are read of one run: a target may claim any number.
const MOST: u64 = 1 << 20;

/// The memory file to which the preloaded library writes comparisons, and how far ddfuzz has read
/// it.
pub(crate) struct ComparisonRing {
    file: File,
    read: u64,
    left: u64,
}

impl ComparisonRing {
    /// Creates the memory file to which the preloaded library writes comparisons.
    pub(crate) fn create() -> io::Result<ComparisonRing> {
        let file = File::from(memory_file(c"ddfuzz-observed")?);
        Ok(ComparisonRing {
            file,
            read: 0,
            left: 0,
        })
    }

    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Clears the ring of comparisons before the next run, and writes the addresses and kinds of
    /// `hooks` into it: the comparison callbacks that the preloaded library replaces by jumps.
    pub(crate) fn reset<'a>(&mut self, hooks: impl Iterator<Item = &'a Hook>) -> io::Result<()> {
        let mut header = Vec::with_capacity(PAIRS_AT as usize);
        header.extend_from_slice(&MAGIC.to_ne_bytes());
        header.extend_from_slice(&VERSION.to_ne_bytes());
        header.resize(HOOKS_AT, 0);
        let mut count = 0_u64;
        for hook in hooks.take(HOOKS) {
            header.extend_from_slice(&hook.address.to_ne_bytes());
            header.extend_from_slice(&hook.number().to_ne_bytes());
            count += 1;
        }
        header[8..16].copy_from_slice(&count.to_ne_bytes());
        self.file.set_len(0)?; // what the run before wrote must not be read again
        self.file.set_len(SIZE)?;
        self.file.write_all_at(&header, 0)?;
        (self.read, self.left) = (0, MOST);
        Ok(())
    }

    /// Skips all comparisons that earlier runs of the process wrote to the ring, so that only those
    /// of the next run are read.
    pub(crate) fn skip(&mut self) {
        let mut taken = [0; 8];
        if self.file.read_exact_at(&mut taken, TAKEN_AT).is_ok() {
            self.read = u64::from_ne_bytes(taken);
        }
        self.left = MOST;
    }

    /// Appends to `history` the comparisons that were written to the ring since this function was
    /// last called. Incomplete and invalid pairs of operands are skipped.
    pub(crate) fn drain(&mut self, history: &mut History) {
        let mut taken = [0; 8];
        if self.file.read_exact_at(&mut taken, TAKEN_AT).is_err() {
            return;
        }
        let taken = u64::from_ne_bytes(taken);
        let first = self.read.max(taken.saturating_sub(PAIRS));
        if first >= taken || self.left == 0 {
            return;
        }
        self.read = taken;
        self.left = self.left.saturating_sub(taken - first);
        // The range is in one piece, or in two if it wraps around.
        let (from, to) = (first % PAIRS, taken % PAIRS);
        if from < to {
            self.read_pairs(first, to - from, history);
        } else {
            self.read_pairs(first, PAIRS - from, history);
            self.read_pairs(first + (PAIRS - from), to, history);
        }
    }

    fn read_pairs(&self, first: u64, count: u64, history: &mut History) {
        let mut bytes = vec![0; count as usize * PAIR_SIZE];
        let at = PAIRS_AT + first % PAIRS * PAIR_SIZE as u64;
        if self.file.read_exact_at(&mut bytes, at).is_err() {
            return;
        }
        for (pair, index) in bytes.chunks_exact(PAIR_SIZE).zip(first..) {
            if let Some((site, left, right)) = read_pair(pair, index + 1) {
                history.push(site, left, right);
            }
        }
    }
}

/// Parses pair `number` of the ring into the address of the comparing code and the two operands;
/// `None` if the pair is incomplete or belongs to another number, because the ring was overwritten.
fn read_pair(bytes: &[u8], number: u64) -> Option<(u64, &[u8], &[u8])> {
    let word = |index: usize| {
        let word = bytes.get(8 * index..8 * index + 8)?;
        Some(u64::from_ne_bytes(word.try_into().ok()?))
    };
    if word(0)? != number {
        return None;
    }
    let operand = |which: usize| {
        let size = usize::try_from(word(2 + which)?).ok()?;
        let start = 32 + which * OPERAND;
        bytes[start..start + OPERAND].get(..size)
    };
    Some((word(1)?, operand(0)?, operand(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(history: History) -> Vec<(Vec<u8>, Vec<u8>)> {
        let all = history.into_comparisons().into_iter();
        all.map(|comparison| (comparison.left, comparison.right))
            .collect()
    }

    #[test]
    fn a_loop_does_not_drive_out_what_came_before_it() {
        let mut history = History::default();
        history.push(1, b"a", b"b");
        for round in 0..10_000_u32 {
            history.push(2, &round.to_le_bytes(), b"zzzz");
        }
        let all = pairs(history);
        assert_eq!(all[0], (b"a".to_vec(), b"b".to_vec()));
        assert_eq!(all.len(), 1 + KEPT_OF_A_SITE);
        assert_eq!(all[16].0, 9999_u32.to_le_bytes());
    }

    #[test]
    fn no_more_than_256_are_kept_and_they_are_the_last() {
        let mut history = History::default();
        for site in 0..1000_u32 {
            history.push(u64::from(site), &site.to_le_bytes(), b"zzzz");
        }
        let all = pairs(history);
        assert_eq!(all.len(), 256);
        assert_eq!(all[0].0, 744_u32.to_le_bytes());
    }

    #[test]
    fn a_pair_stands_only_where_it_came_last() {
        let mut history = History::default();
        for (left, right) in [(b"a", b"b"), (b"c", b"d"), (b"b", b"a")] {
            history.push(0, left, right);
        }
        let expected = [(b"c", b"d"), (b"b", b"a")];
        assert_eq!(
            pairs(history),
            expected.map(|(l, r)| (l.to_vec(), r.to_vec()))
        );
    }

    #[test]
    fn equal_operands_and_two_addresses_are_no_comparison() {
        let mut history = History::default();
        history.push(0, b"same", b"same");
        let (stack, heap) = (0x7fff_ffff_e000_u64, 0x5555_5555_9000_u64);
        history.push(0, &stack.to_le_bytes(), &heap.to_le_bytes());
        history.push(0, &stack.to_le_bytes(), &5_u64.to_le_bytes());
        assert_eq!(pairs(history).len(), 1);
    }

    fn write_pair(ring: &ComparisonRing, number: u64, sizes: [u64; 2]) {
        let mut pair = Vec::new();
        for word in [number, 7, sizes[0], sizes[1]] {
            pair.extend_from_slice(&word.to_ne_bytes());
        }
        pair.extend_from_slice(&[number as u8; OPERAND]);
        pair.extend_from_slice(&[0xff; OPERAND]);
        let at = PAIRS_AT + (number - 1) % PAIRS * PAIR_SIZE as u64;
        ring.file.write_all_at(&pair, at).unwrap();
    }

    fn set_taken(ring: &ComparisonRing, taken: u64) {
        let bytes = taken.to_ne_bytes();
        ring.file.write_all_at(&bytes, TAKEN_AT).unwrap();
    }

    fn fresh() -> ComparisonRing {
        let mut ring = ComparisonRing::create().unwrap();
        ring.reset([].iter()).unwrap();
        ring
    }

    #[test]
    fn pairs_are_read_once_and_round_the_ring() {
        let mut ring = fresh();
        let mut history = History::default();
        for number in 1..=PAIRS + 3 {
            write_pair(&ring, number, [2, 3]);
            set_taken(&ring, number);
            if number % 1000 == 0 {
                ring.drain(&mut history);
            }
        }
        ring.drain(&mut history);
        ring.drain(&mut history);
        let all = history.into_comparisons();
        let last = all.last().unwrap();
        assert_eq!(last.left, [(PAIRS + 3) as u8; 2]);
        assert_eq!(last.right, [0xff; 3]);
        assert_eq!(all.len(), 16);
    }

    #[test]
    fn nonsense_in_the_shared_file_does_no_harm() {
        let mut ring = fresh();
        let mut history = History::default();
        write_pair(&ring, 1, [65, 1]);
        write_pair(&ring, 2, [u64::MAX, u64::MAX]);
        write_pair(&ring, 3, [4, 4]);
        for taken in [2, 1, u64::MAX, u64::MAX - 1, 0, 3] {
            set_taken(&ring, taken);
            ring.drain(&mut history);
        }
        ring.file.set_len(100).unwrap();
        ring.drain(&mut history);
        ring.file.set_len(5).unwrap();
        ring.drain(&mut history);
        assert!(history.into_comparisons().len() <= 1);
    }
}
