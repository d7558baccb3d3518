//! The pass `mutations`: tests shorter texts with some changed bytes, which passes that only delete
//! bytes cannot find.

use std::ops::Range;
use std::sync::Arc;

use crate::document::{Document, Format, Structure};
use crate::passes::current_best::CurrentBest;
use crate::passes::envelope::difference;
use crate::passes::field::Form;
use crate::passes::normalize::mark_proved;
use crate::passes::parts::RAISE;
use crate::{ExtraTests, Outcome};

/// Name, in logs, of the pass that tries shorter texts with randomly changed bytes.
const RULE: &str = "mutations";
/// Minimum size, in bytes, of texts that are mutated; of shorter ones, earlier passes have tested
/// nearly all variants. In place of a shorter text, single bytes are tested.
const FEW: usize = 16;
/// Maximum size, in bytes, of texts that are mutated: in larger ones, random changes hardly ever
/// hit the right bytes.
const MANY: usize = 1 << 14;
/// Number of tests that the search must have made for each text of a single byte that is tested in
/// place of a short result.
const TESTS_PER_BYTE: usize = 32;
/// Minimum number of tests that the pass of random mutations may take, however few the search took
/// before it. It does not apply if tests take long.
const LEAST_TESTS: usize = 2000;
/// Maximum number of tests that the pass of random mutations takes in all, as a multiple of one
/// grant of tests; the pass gets a grant at the beginning, and again whenever a test shortens the
/// text.
const GRANTS: usize = 10;
/// Number of successive mutations without success after which the pass ends, if it has shortened
/// the text before; then the passes that delete bytes are run again.
const PATIENCE: usize = 400;
/// Maximum number of bytes or numbers that one mutation changes in a text.
const MOST_CHANGES: usize = 4;
/// Values that a mutation writes over bytes: the least and greatest values of signed and unsigned
/// bytes, 1, and the digit `0`.
const LIMITS: [u8; 6] = [0, 1, 0x7f, 0x80, 0xff, b'0'];

/// Number of tests as which an UNRESOLVED test counts in the budgets of this pass: such a test is
/// mostly another crash, after which a process has to be started.
const UNRESOLVED_COST: usize = 4;

/// A generator of pseudo-random numbers, the same for each run of a search (splitmix64).
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

    /// Returns a pseudo-random number from 1 to `most`; each order of magnitude is about equally
    /// likely, so small numbers are frequent.
    fn size(&mut self, most: usize) -> usize {
        let bits = self.below(most.max(1).ilog2() as usize + 1);
        (1 + self.below(2 << bits)).min(most.max(1))
    }
}

/// The state of the pass of random mutations in a search: its random numbers and its remaining
/// tests.
pub(super) struct Mutations {
    random: Random,
    /// Numbers of tests that the pass may still take; `None` before its first test.
    left: Option<Left>,
}

/// Two numbers of tests that the pass of random mutations may still take: in the present grant
/// (tests that are allowed after each success), and in all.
#[derive(Clone, Copy)]
struct Left {
    /// Number of tests in one grant; the pass gets a grant at the beginning, and again whenever a
    /// test shortens the text.
    granted: usize,
    /// Remaining number of tests of the present grant, which is renewed when a test shortens the
    /// text.
    now: usize,
    /// Remaining number of tests of the pass in all, over all grants.
    ever: usize,
}

impl Left {
    /// Computes how many tests the pass of random mutations may take. It gets them in grants.
    /// Usually a grant has as many tests as the search has made, but at least [`LEAST_TESTS`], and
    /// there are up to [`GRANTS`] grants. If tests take long ([`ExtraTests::Few`]), there is one
    /// grant, of half as many tests as the search has made. If the caller allows no extra tests,
    /// there are none.
    fn of(work: &CurrentBest) -> Left {
        let (granted, times) = match work.extra_tests() {
            ExtraTests::Many => (work.asked().max(LEAST_TESTS), GRANTS),
            ExtraTests::Few => (work.asked() / 2, 1),
            ExtraTests::None => (0, 0),
        };
        Left {
            granted,
            now: granted,
            ever: granted * times,
        }
    }

    /// Counts one test of the pass as used; returns false, and counts nothing, if no test is left.
    fn take(&mut self) -> bool {
        if self.now == 0 || self.ever == 0 {
            return false;
        }
        self.spend(1);
        true
    }

    /// Counts `tests` tests of the pass as used, or all that are left if these are fewer.
    fn spend(&mut self, tests: usize) {
        self.now = self.now.saturating_sub(tests);
        self.ever = self.ever.saturating_sub(tests);
    }
}

impl Mutations {
    /// Creates the pass of random mutations with all of its tests left.
    pub fn new() -> Mutations {
        Mutations {
            random: Random(1),
            left: None,
        }
    }

    /// Tests random shorter texts: a sequence of bytes, or the end, is deleted, and a few bytes or
    /// numbers are changed, some of them by the number of deleted bytes. In a file of a `known`
    /// format, files inside of it are tested first, each in place of the whole; half of the random
    /// tests then change one payload (changeable bytes), and correct lengths, offsets and
    /// checksums. Returns true if the text became shorter; deletions must then be tried again.
    ///
    /// The pass runs after the result was shown to be 1-minimal, and only on binary data. It takes
    /// as many tests as the search before it, but at least [`LEAST_TESTS`]. Each test that shortens
    /// the text grants as many again, up to [`GRANTS`] times as many in all. If tests take long,
    /// the pass takes half as many tests as the search, and gets no more. For a text of less than
    /// [`FEW`] bytes, single bytes are tested in its place, or nothing if tests take long.
    pub async fn run(&mut self, work: &mut CurrentBest, known: &Structure) -> bool {
        let format = match known {
            Structure::Format(format) => Some(format.as_ref()),
            Structure::Binary => None,
            // Searches that are replayed from logs without a structure do not know the pass.
            Structure::Unknown | Structure::Text | Structure::Syntax(_) => return false,
        };
        let mut left = self.left.unwrap_or_else(|| Left::of(work));
        if (2..FEW).contains(&work.len()) {
            return one_byte(work).await;
        }
        if left.now == 0 || !(FEW..=MANY).contains(&work.len()) {
            return false;
        }
        mark_proved(work).await;
        let (before, asked) = (work.len(), work.asked());
        raise_file(work, format, &mut left).await;
        let mut document = open(work, format);
        let mut vain = 0;
        while work.len() >= FEW && (work.len() == before || vain < PATIENCE) && left.take() {
            vain += 1;
            let text = work.text();
            let candidate = match &document {
                Some(document) if self.random.below(2) == 0 => self.inside(document.as_ref()),
                _ => self.mutated(&text),
            };
            let Some(edit) = difference(&text, &candidate).filter(|_| candidate.len() < text.len())
            else {
                continue;
            };
            match work.test(RULE, edit).await {
                Outcome::Fail => {
                    (left.now, vain) = (left.granted, 0);
                    document = open(work, format);
                }
                Outcome::Pass => {}
                Outcome::Unresolved => left.spend(UNRESOLVED_COST - 1),
            }
        }
        self.left = Some(left);
        work.discount(work.asked() - asked);
        work.len() < before
    }

    /// Returns the text of a copy of `document` in which one random payload (changeable bytes) is
    /// mutated.
    fn inside(&mut self, document: &dyn Document) -> Vec<u8> {
        let mut payloads = document.payloads();
        let index = self.random.below(payloads.len());
        if let Some(payload) = payloads.get_mut(index).filter(|one| !one.is_empty()) {
            *payload = self.mutated(payload).into();
        }
        document.with(&payloads).text()
    }

    /// Returns a copy of a text without a random sequence of its bytes, and with at most
    /// [`MOST_CHANGES`] random changes of other bytes.
    fn mutated(&mut self, text: &[u8]) -> Vec<u8> {
        let random = &mut self.random;
        let cut = match random.below(4) {
            0 => text.len() - random.size(text.len())..text.len(),
            _ => {
                let size = random.size(text.len().div_ceil(2));
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

    /// Changes one random byte or number of the text `new`; `cut` is the range of it that the
    /// caller will delete. A number is halved, set to 0, or lowered by the size of `cut`.
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

/// Tests texts of a single byte in place of the whole text, until one fails: first the values
/// [`LIMITS`], then the others. One such text is tested for every [`TESTS_PER_BYTE`] tests that the
/// search has made; none if tests take long. Returns true if one failed.
async fn one_byte(work: &mut CurrentBest) -> bool {
    if work.extra_tests() != ExtraTests::Many {
        return false;
    }
    mark_proved(work).await;
    let (before, asked) = (work.len(), work.asked());
    let text = work.text();
    let others = (0..=u8::MAX).filter(|byte| !LIMITS.contains(byte));
    for byte in LIMITS
        .into_iter()
        .chain(others)
        .take(asked / TESTS_PER_BYTE)
    {
        if let Some(edit) = difference(&text, &[byte])
            && work.test(RULE, edit).await == Outcome::Fail
        {
            break;
        }
    }
    work.discount(work.asked() - asked);
    work.len() < before
}

/// Tests, in place of the current best (a file of the format `format`), each smaller file of a
/// known format that is inside of it, until such a test gives FAIL or no tests are `left`.
async fn raise_file(work: &mut CurrentBest, format: Option<&dyn Format>, left: &mut Left) {
    let text = work.text();
    for file in format.map_or_else(Vec::new, |format| format.files(&text)) {
        let edit = difference(&text, &file).filter(|_| file.len() < text.len());
        let Some(edit) = edit else { continue };
        if !left.take() || work.test(RAISE, edit).await == Outcome::Fail {
            return;
        }
    }
}

/// Parses the current best text by a format; `None` if there is no format, or the text is not of
/// it.
fn open(work: &mut CurrentBest, format: Option<&dyn Format>) -> Option<Arc<dyn Document>> {
    format?.open(&work.text())
}

#[cfg(test)]
mod tests {
    use crate::{ExtraTests, Full, Outcome, Search, Structure};

    #[test]
    fn a_small_result_becomes_one_other_byte() {
        let input: Vec<u8> = (1..16).collect();
        let reduced = |extra| {
            let mut best = input.clone();
            let mut search = Full::structured(&input, Structure::Binary);
            search.allow_extra_tests(extra);
            while let Some(candidate) = search.next() {
                let mut text = Vec::new();
                candidate.write_into(&input, &best, &mut text);
                let fails = text == input || text == [0];
                search.tell(if fails { Outcome::Fail } else { Outcome::Pass });
                best = if fails { text } else { best };
            }
            best
        };
        assert_eq!(reduced(ExtraTests::Many), [0]);
        assert_eq!(reduced(ExtraTests::Few), input);
    }
}
