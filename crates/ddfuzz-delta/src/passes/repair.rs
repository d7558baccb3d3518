//! Repair: numbers that a run found wrong are put right, whatever they mean.

use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::field::Form;
use crate::{Comparison, Edit, Outcome, Replacement};

/// Rewrites for one candidate while it is not known which bytes are fields.
const LEARNING: usize = 4;
/// An operand may differ from what is written by so much: sizes of headers, mostly.
const OFFSET: i64 = 16;
/// Fields are looked for so near to the ends.
const NEAR: usize = 64;

/// A field that a rewrite put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    at: usize,
    form: Form,
    /// Whether it gets less by each byte that goes.
    length: bool,
}

/// Bytes to write at a position of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rewrite {
    at: usize,
    form: Form,
    old: u64,
    new: u64,
}

/// Fields that are known by now.
///
/// After a refused run it looks at the last comparisons, newest first: an operand that stands in
/// the text is rewritten to the other one, and the run repeated. Once the fields are found nothing
/// else is rewritten.
#[derive(Debug, Default)]
pub(super) struct Repair {
    known: Vec<Known>,
    /// Whether a run told of comparisons at all.
    told: bool,
}

impl Repair {
    /// Deletes a byte in the middle and learns what puts that right; `None` where nothing does.
    pub async fn learn(work: &mut CurrentBest) -> Option<Repair> {
        let mut repair = Repair::default();
        for part in [4, 2, 3] {
            let at = work.len() * part / 5;
            let edit = Edit::Cut(std::iter::once(at..(at + 1).min(work.len())).collect());
            let outcome = repair.test(work, "repair", edit).await;
            if outcome == Outcome::Fail {
                return (!repair.known.is_empty()).then_some(repair);
            }
            if !repair.told {
                return None;
            }
            repair.known.clear();
        }
        None
    }

    /// What lies between the fields near the front and those near the end.
    pub fn between(&self, len: usize) -> Range<usize> {
        let (front, back): (Vec<&Known>, Vec<&Known>) =
            self.known.iter().partition(|known| known.at < len / 2);
        let from = front.iter().map(|known| known.at + known.form.width).max();
        let to = back.iter().map(|known| known.at).min();
        let from = from.unwrap_or(0).min(len);
        from..to.unwrap_or(len).max(from)
    }

    /// Tests an edit; where it is not FAIL, puts numbers right and tests it again.
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
            self.told |= !comparisons.is_empty();
            let found = comparisons
                .iter()
                .rev()
                .find_map(|comparison| self.propose(&text, comparison, &done));
            let Some(rewrite) = found.filter(|_| done.len() < tries) else {
                return outcome;
            };
            let at = origin(&edits, rewrite.at);
            put(&mut edits, &Rewrite { at, ..rewrite });
            done.push(Rewrite { at, ..rewrite });
        }
        Outcome::Unresolved
    }

    /// What was rewritten in a candidate that failed are fields.
    fn remember(&mut self, before: &[u8], edits: &[Replacement], done: &[Rewrite]) {
        let gone = bytes_gone(edits);
        for rewrite in done {
            let old = rewrite.form.read(before, rewrite.at).unwrap_or_default();
            let known = Known {
                at: rewrite.at,
                form: rewrite.form,
                length: old.checked_sub(gone) == Some(rewrite.new),
            };
            if !self.known.iter().any(|one| one.at == known.at) {
                self.known.push(known);
            }
        }
        // What lies behind bytes that went has moved.
        for known in &mut self.known {
            let moved = edits.iter().filter(|edit| edit.at.end <= known.at);
            known.at -= moved
                .map(|edit| edit.at.len() - edit.with.len())
                .sum::<usize>();
        }
    }

    /// How to make the operands of a comparison equal by writing into the text.
    fn propose(&self, text: &[u8], pair: &Comparison, done: &[Rewrite]) -> Option<Rewrite> {
        let sides = [(&pair.left, &pair.right), (&pair.right, &pair.left)];
        let offsets = std::iter::once(0).chain((1..=OFFSET).flat_map(|by| [by, -by]));
        offsets.into_iter().find_map(|offset| {
            sides.iter().find_map(|(is, wanted)| {
                let (is, wanted) = (number(is)?, number(wanted)?);
                let old = is.checked_add_signed(offset)?;
                let new = wanted.checked_add_signed(offset)?;
                self.places(text, old, new, offset == 0)
                    .into_iter()
                    .map(|(at, form)| Rewrite { at, form, old, new })
                    .find(|rewrite| {
                        !done
                            .iter()
                            .any(|one| one.at == rewrite.at && one.new == rewrite.new)
                    })
            })
        })
    }

    /// Where a number stands that may be rewritten to another.
    fn places(&self, text: &[u8], old: u64, new: u64, exact: bool) -> Vec<(usize, Form)> {
        if old == new {
            return Vec::new();
        }
        if !self.known.is_empty() {
            // A field whose place changes with what goes would be looked for in vain.
            let known = self.known.iter().filter(|known| !known.length || !exact);
            let holds = known.filter(|known| known.form.read(text, known.at) == Some(old));
            return holds.map(|known| (known.at, known.form)).collect();
        }
        let near = |at: &usize| *at < NEAR || at + NEAR > text.len();
        let mut places = Vec::new();
        for form in Form::ALL {
            let fits = |number: u64| form.width == 8 || number >> (8 * form.width) == 0;
            // A small number of one byte stands everywhere.
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

/// The number of an operand.
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

/// Adds a rewrite of bytes that stay, in the place of an earlier one there.
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

/// The position before the edits of what stands at a position behind them.
fn origin(edits: &[Replacement], at: usize) -> usize {
    edits.iter().fold(at, |at, edit| {
        let moved = edit.at.len() - edit.with.len();
        if edit.at.start <= at { at + moved } else { at }
    })
}
