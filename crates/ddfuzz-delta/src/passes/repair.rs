//! Repair: corrects numbers in a candidate by the comparisons that a run reports, without knowing
//! what the numbers mean.

use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::field::Form;
use crate::{Comparison, Edit, Outcome, Replacement};

/// Maximum number of numbers in a candidate that are corrected, one after the other, as long as it
/// is unknown which numbers need correction.
const LEARNING: usize = 4;
/// Maximum difference between an operand that the program compared and the number in the text from
/// which the operand was computed; mostly it is the size of a header.
const OFFSET: i64 = 16;
/// Number of bytes at the beginning, and also at the end, of the text in which number fields such
/// as lengths are searched for.
const NEAR: usize = 64;

/// A number in the text, such as a length, that is known to need correction: a candidate that did
/// not fail has failed again after the number was corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KnownField {
    at: usize,
    form: Form,
    /// True if the number states a length, so that it becomes lower by one with each deleted byte.
    length: bool,
}

/// A correction of the text: the number `old` at offset `at`, with the encoding `form`, becomes
/// `new`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rewrite {
    at: usize,
    form: Form,
    old: u64,
    new: u64,
}

/// Finds and corrects numbers in the text, such as lengths and checksums, that a deletion makes
/// wrong.
///
/// After a run that does not fail, the last comparisons that the program made are examined, newest
/// first. If one operand of a comparison stands in the text, it is replaced there by the other
/// operand, and the text is tested again. Once such numbers are known, only these are corrected.
#[derive(Debug, Default)]
pub(super) struct Repair {
    known: Vec<KnownField>,
    /// True once a run has reported comparisons, without which no field can be found.
    has_reported: bool,
}

impl Repair {
    /// Tests the current best text without one byte in its middle, to learn which corrections of
    /// numbers (such as lengths) make it fail again. Returns the repair that makes these
    /// corrections from now on; `None` if no corrections make the text fail.
    pub async fn learn(work: &mut CurrentBest) -> Option<Repair> {
        let mut repair = Repair::default();
        for part in [4, 2, 3] {
            let at = work.len() * part / 5;
            let edit = Edit::Cut(std::iter::once(at..(at + 1).min(work.len())).collect());
            let outcome = repair.test(work, "repair", edit).await;
            if outcome == Outcome::Fail {
                return (!repair.known.is_empty()).then_some(repair);
            }
            if !repair.has_reported {
                return None;
            }
            repair.known.clear();
        }
        None
    }

    /// Returns the range of a text of `len` bytes that lies between its known number fields, such
    /// as lengths: behind the fields that begin in the first half of the text, and before those in
    /// the second.
    pub fn between(&self, len: usize) -> Range<usize> {
        let (front, back): (Vec<&KnownField>, Vec<&KnownField>) =
            self.known.iter().partition(|known| known.at < len / 2);
        let from = front.iter().map(|known| known.at + known.form.width).max();
        let to = back.iter().map(|known| known.at).min();
        let from = from.unwrap_or(0).min(len);
        from..to.unwrap_or(len).max(from)
    }

    /// Tests an edit of the current best text, with known lengths corrected, and returns the
    /// outcome. As long as the text does not fail, corrects one more number by the comparisons that
    /// the run reported, and tests again: at most [`LEARNING`] times or, once number fields are
    /// known, once for each of them.
    pub async fn test(
        &mut self,
        work: &mut CurrentBest,
        rule: &'static str,
        edit: Edit,
    ) -> Outcome {
        let before = work.text();
        let mut edits = replacements(&edit);
        let learning = self.known.is_empty();
        for known in self.known.iter().filter(|known| known.length) {
            let old = known.form.read(&before, known.at).unwrap_or_default();
            let new = old.wrapping_sub(bytes_gone(&edits));
            put(
                &mut edits,
                &Rewrite {
                    at: known.at,
                    form: known.form,
                    old,
                    new,
                },
            );
        }
        let mut done: Vec<Rewrite> = Vec::new();
        let tries = if learning { LEARNING } else { self.known.len() };
        for _ in 0..=tries {
            let edit = Edit::Set(edits.clone());
            let outcome = work.ask(rule, edit.clone(), true).await;
            if outcome == Outcome::Fail {
                self.remember(&before, &edits, &done);
                return outcome;
            }
            let text = edit.of_best(&before);
            let comparisons = work.hints().comparisons;
            self.has_reported |= !comparisons.is_empty();
            let found = comparisons
                .iter()
                .rev()
                .find_map(|comparison| self.propose(&text, &edits, comparison, &done));
            let Some(rewrite) = found.filter(|_| done.len() < tries) else {
                return outcome;
            };
            let at = origin(&edits, rewrite.at);
            put(&mut edits, &Rewrite { at, ..rewrite });
            done.push(Rewrite { at, ..rewrite });
        }
        Outcome::Unresolved
    }

    /// Records a success: the text `before`, changed by `edits`, failed after the numbers in `done`
    /// were corrected. These numbers become known fields, which are corrected in later candidates,
    /// too. All known fields move to their positions in the new text.
    fn remember(&mut self, before: &[u8], edits: &[Replacement], done: &[Rewrite]) {
        let gone = bytes_gone(edits);
        for rewrite in done {
            let old = rewrite.form.read(before, rewrite.at).unwrap_or_default();
            let known = KnownField {
                at: rewrite.at,
                form: rewrite.form,
                length: old.checked_sub(gone) == Some(rewrite.new),
            };
            if !self.known.iter().any(|one| one.at == known.at) {
                self.known.push(known);
            }
        }
        // Fields behind deleted bytes have moved.
        for known in &mut self.known {
            known.at = moved(edits, known.at);
        }
    }

    /// Returns a correction that makes the two operands of the comparison `pair` equal. It replaces
    /// a number in `text` that is one operand, or differs from it by a small constant, by the other
    /// operand, with the same constant added. `text` is the current best text changed by `edits`.
    /// `None` if there is no such number, or if all such corrections are in `done`, which were made
    /// before.
    fn propose(
        &self,
        text: &[u8],
        edits: &[Replacement],
        pair: &Comparison,
        done: &[Rewrite],
    ) -> Option<Rewrite> {
        let sides = [(&pair.left, &pair.right), (&pair.right, &pair.left)];
        let offsets = std::iter::once(0).chain((1..=OFFSET).flat_map(|by| [by, -by]));
        offsets.into_iter().find_map(|offset| {
            sides.iter().find_map(|(is, wanted)| {
                let (is, wanted) = (number(is)?, number(wanted)?);
                let old = is.checked_add_signed(offset)?;
                let new = wanted.checked_add_signed(offset)?;
                self.places(text, edits, old, new, offset == 0)
                    .into_iter()
                    .map(|(at, form)| Rewrite { at, form, old, new })
                    .find(|rewrite| {
                        !done.iter().any(|one| {
                            one.at == origin(edits, rewrite.at) && one.new == rewrite.new
                        })
                    })
            })
        })
    }

    /// Returns the places, each as offset and encoding, at which `text` has the number `old` and
    /// `new` may replace it. `text` is the current best text changed by `edits`. Looks only at the
    /// number fields that were found before or, without any, near the ends of the text. `exact` is
    /// true if `old` is an operand that the program compared, false if it is an operand plus a
    /// constant.
    fn places(
        &self,
        text: &[u8],
        edits: &[Replacement],
        old: u64,
        new: u64,
        exact: bool,
    ) -> Vec<(usize, Form)> {
        if old == new {
            return Vec::new();
        }
        if !self.known.is_empty() {
            // Only known fields are corrected; a length is corrected before the run.
            let known = self.known.iter().filter(|known| !known.length || !exact);
            let placed = known.map(|known| (moved(edits, known.at), known.form));
            let holds = placed.filter(|(at, form)| form.read(text, *at) == Some(old));
            return holds.collect();
        }
        let near = |at: &usize| *at < NEAR || at + NEAR > text.len();
        let mut places = Vec::new();
        for form in Form::ALL {
            let fits = |number: u64| form.width == 8 || number >> (8 * form.width) == 0;
            // A small number of one byte occurs everywhere.
            if !fits(old) || !fits(new) || form.width == 1 && old < 16 {
                continue;
            }
            let found = (0..text.len())
                .filter(near)
                .find(|at| form.read(text, *at) == Some(old));
            places.extend(found.map(|at| (at, form)));
        }
        places
    }
}

/// Decodes an operand of 1 to 8 bytes in little-endian order; `None` for other sizes.
fn number(operand: &[u8]) -> Option<u64> {
    let width = operand.len();
    let form = Form { width, big: false };
    (1..=8).contains(&width).then(|| form.read(operand, 0))?
}

fn replacements(edit: &Edit) -> Vec<Replacement> {
    match edit {
        Edit::Cut(cuts) => cuts
            .iter()
            .map(|cut| Replacement {
                at: cut.clone(),
                with: Vec::new(),
            })
            .collect(),
        Edit::Set(replacements) => replacements.clone(),
        Edit::Keep(_) => Vec::new(),
    }
}

fn bytes_gone(edits: &[Replacement]) -> u64 {
    edits
        .iter()
        .map(|edit| (edit.at.len() - edit.with.len()) as u64)
        .sum()
}

/// Adds the correction of a number to the edits of a candidate, unless its bytes are deleted; it
/// replaces an earlier correction of the same bytes.
fn put(edits: &mut Vec<Replacement>, rewrite: &Rewrite) {
    let place = rewrite.at..rewrite.at + rewrite.form.width;
    edits.retain(|edit| {
        edit.with.is_empty() || edit.at.end <= place.start || edit.at.start >= place.end
    });
    let is_free = edits
        .iter()
        .all(|edit| edit.at.end <= place.start || edit.at.start >= place.end);
    if is_free {
        edits.push(Replacement {
            at: place,
            with: rewrite.form.write(rewrite.new),
        });
        edits.sort_by_key(|edit| edit.at.start);
    }
}

/// Converts a position in the text before `edits` into the position in the text after them; the
/// byte there must be kept by the edits.
fn moved(edits: &[Replacement], at: usize) -> usize {
    let before = edits.iter().filter(|edit| edit.at.end <= at);
    at - before
        .map(|edit| edit.at.len() - edit.with.len())
        .sum::<usize>()
}

/// Converts a position `at` in the text after `edits` to the position in the text before them.
fn origin(edits: &[Replacement], at: usize) -> usize {
    edits.iter().fold(at, |at, edit| {
        let moved = edit.at.len() - edit.with.len();
        if edit.at.start <= at { at + moved } else { at }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Full, Hints, Search};

    /// Computes a checksum that no real format has, so that no format can be recognized by it.
    fn checksum(bytes: &[u8]) -> u32 {
        bytes.iter().fold(0x0123_4567, |sum: u32, byte| {
            let scaled = u32::from(*byte).wrapping_mul(2_654_435);
            sum.rotate_left(7).wrapping_add(scaled)
        })
    }

    /// Makes a test file: a magic number, the length of the payload, the payload, and its checksum.
    fn file(payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
        [
            &b"QXYZ"[..],
            &length,
            payload,
            &checksum(payload).to_le_bytes(),
        ]
        .concat()
    }

    /// Reads a test file as the program under test would: fails if the file is valid and the
    /// payload has three certain bytes. Returns the outcome and the comparisons that were made.
    fn run(text: &[u8]) -> (Outcome, Vec<Comparison>) {
        let mut comparisons = Vec::new();
        let mut are_equal = |left: &[u8], right: &[u8]| {
            if left != right {
                comparisons.push(Comparison {
                    left: left.to_vec(),
                    right: right.to_vec(),
                });
            }
            left == right
        };
        let outcome = match text.split_at_checked(8) {
            Some((head, rest)) if rest.len() >= 4 => {
                let (payload, sum) = rest.split_at(rest.len() - 4);
                let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
                let is_valid = are_equal(&head[..4], b"QXYZ")
                    && are_equal(&length, &head[4..])
                    && are_equal(&checksum(payload).to_le_bytes(), sum);
                match is_valid && payload.windows(3).any(|part| part == b"BUG") {
                    true => Outcome::Fail,
                    false => Outcome::Pass,
                }
            }
            _ => Outcome::Pass,
        };
        (outcome, comparisons)
    }

    #[test]
    fn a_checksum_behind_the_deleted_bytes_is_corrected_each_time() {
        let noise = |count: u32, factor: u32| (0..count).map(move |at| (at * factor % 251) as u8);
        let payload: Vec<u8> = noise(200, 37)
            .chain(*b"BUG")
            .chain(noise(150, 91))
            .collect();
        let input = file(&payload);
        let mut search = Full::new(&input);
        let (mut best, mut text, mut tests) = (input.clone(), Vec::new(), 0);
        while let Some(candidate) = search.next() {
            candidate.write_into(&input, &best, &mut text);
            let (outcome, comparisons) = run(&text);
            if candidate.observed {
                search.hint(&Hints {
                    read: None,
                    comparisons,
                });
            }
            if outcome == Outcome::Fail {
                best.clone_from(&text);
            }
            search.tell(outcome);
            tests += 1;
        }
        assert_eq!(best, file(b"BUG"));
        assert!(tests < 1000, "{tests} tests");
    }
}
