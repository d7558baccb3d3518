//! The comparisons of one run, as far as they are kept.

use std::collections::{HashMap, HashSet, VecDeque};

use ddfuzz_delta::Comparison;

/// How many are kept of a run.
const KEPT: usize = 256;
/// How many of one place in the program: a loop must not drive out what came before it.
const KEPT_OF_A_SITE: usize = 16;
/// How many places are told apart; a program has no more that matter for one run.
const MOST_SITES: usize = 1 << 16;

/// What a run has compared so far.
#[derive(Debug, Default)]
pub(crate) struct History {
    count: u64,
    sites: HashMap<u64, VecDeque<(u64, Comparison)>>,
}

impl History {
    /// Adds a comparison made at `site`, if its operands differ and are not both addresses.
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

    /// The last ones, oldest first; a pair of operands, in whatever order, stands only where it
    /// came last.
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

/// Whether these are the bytes of an address, as position-independent programs, libraries and
/// stacks have them: from `0x5500_0000_0000` to `0x7fff_ffff_ffff`.
fn is_address(bytes: &[u8]) -> bool {
    let Ok(word) = bytes.try_into().map(u64::from_le_bytes) else {
        return false;
    };
    (0x5500_0000_0000..=0x7fff_ffff_ffff).contains(&word)
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
}
