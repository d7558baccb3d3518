//! The pass `mutations`: shorter texts with other bytes, which no deletion reaches.

use std::ops::Range;

use crate::ExtraTests;
use crate::passes::current_best::CurrentBest;
use crate::passes::envelope::difference;
use crate::passes::field::Form;
use crate::passes::normalize::{LAST, NonZeroBytes};
use crate::passes::units::Units;

/// Name of the pass `mutations` in logs.
const RULE: &str = "mutations";
/// Smallest size, in bytes, of texts that are mutated; deletions and values have tried nearly all
/// that is near shorter ones.
const FEW: usize = 16;
/// Largest size, in bytes, of texts that are mutated: in larger ones, chance hits nothing.
const MANY: usize = 1 << 14;
/// Number of tests that the pass may take at least, however few the search took, unless tests take long.
const LEAST_TESTS: usize = 2000;
/// Largest number of bytes or numbers that are changed at once.
const MOST_CHANGES: usize = 4;
/// Bytes that are written in place of others: limits of numbers.
const LIMITS: [u8; 6] = [0, 1, 0x7f, 0x80, 0xff, b'0'];

/// Pseudo-random numbers, the same for each run of a search (splitmix64).
struct Random(u64);

impl Random {
    /// Returns the next pseudo-random number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as usize % end.max(1)
    }

    /// Returns a number from 1 to `most`; small ones are as likely as large ones.
    fn size(&mut self, most: usize) -> usize {
        let bits = self.below(most.max(1).ilog2() as usize + 1);
        (1 + self.below(2 << bits)).min(most.max(1))
    }
}

/// The state of the pass `mutations` in a search: its random numbers and its remaining tests.
pub(super) struct Mutations {
    random: Random,
    /// Remaining number of tests; `None` before the first.
    left: Option<usize>,
}

impl Mutations {
    /// Makes the pass with all of its tests left.
    pub fn new() -> Mutations {
        Mutations {
            random: Random(1),
            left: None,
        }
    }

    /// Tries shorter texts: a run of bytes is deleted, or the end, and a few bytes or numbers are
    /// changed, some of them by the number of deleted bytes. Returns whether the text became
    /// shorter; then deletions must be tried again.
    ///
    /// The pass takes as many tests as the search before it, but at least [`LEAST_TESTS`]; if tests
    /// take long, half as many as the search. It runs after the proof, on binary texts only.
    pub async fn run(&mut self, work: &mut CurrentBest) -> bool {
        let mut left = self.left.unwrap_or_else(|| allowed(work));
        if left == 0 || !(FEW..=MANY).contains(&work.len()) || work.is_text() {
            return false;
        }
        // Tests from here on are not those of the proof; the cache answers this one.
        let bytes = 0..work.len();
        let unlike = NonZeroBytes::within(work, LAST, bytes);
        let zeros = unlike.zeros(0..unlike.len());
        work.test(LAST, zeros).await;
        let (before, asked) = (work.len(), work.asked());
        while left > 0 && work.len() >= FEW {
            left -= 1;
            let text = work.text();
            let Some(edit) = difference(&text, &self.mutated(&text)) else {
                continue;
            };
            work.test(RULE, edit).await;
        }
        self.left = Some(left);
        work.discount(work.asked() - asked);
        work.len() < before
    }

    /// Returns a copy of a text without a random run of its bytes, and with at most
    /// [`MOST_CHANGES`] random changes of other bytes.
    fn mutated(&mut self, text: &[u8]) -> Vec<u8> {
        let random = &mut self.random;
        let cut = match random.below(4) {
            0 => text.len() - random.size(text.len() - 1)..text.len(),
            _ => {
                let size = random.size(text.len() / 2);
                let start = random.below(text.len() - size + 1);
                start..start + size
            }
        };
        let mut new = [&text[..cut.start], &text[cut.end..]].concat();
        for _ in 0..random.below(MOST_CHANGES + 1) {
            self.change(&mut new, &cut);
        }
        new
    }

    /// Changes a byte or a number of the text `new`, in which the range `cut` is deleted.
    fn change(&mut self, new: &mut [u8], cut: &Range<usize>) {
        let random = &mut self.random;
        let at = match random.below(3) {
            0 => random.below(new.len()),
            // Heads and what precedes the cut depend on what is deleted.
            1 => random.below(new.len().min(64)),
            _ => cut.start.saturating_sub(random.size(16)),
        };
        if random.below(2) == 0 {
            let form = Form::ALL[random.below(Form::ALL.len())];
            let Some(old) = form.read(new, at) else {
                return;
            };
            let by = match random.below(4) {
                0 => old / 2,
                1 => old,
                _ => cut.len() as u64,
            };
            new[at..at + form.width].copy_from_slice(&form.write(old.wrapping_sub(by)));
        } else if let Some(byte) = new.get(at).copied() {
            new[at] = match random.below(4) {
                0 => random.below(256) as u8,
                1 => byte.wrapping_sub(1),
                2 => byte ^ 1 << random.below(8),
                _ => LIMITS[random.below(LIMITS.len())],
            };
        }
    }
}

/// Returns the number of tests that the pass `mutations` may take: as many as the search so far,
/// but at least [`LEAST_TESTS`]; half as many as the search if tests take long; 0 if the caller
/// allows none.
fn allowed(work: &CurrentBest) -> usize {
    match work.extra_tests() {
        ExtraTests::Many => work.asked().max(LEAST_TESTS),
        ExtraTests::Few => work.asked() / 2,
        ExtraTests::None => 0,
    }
}
