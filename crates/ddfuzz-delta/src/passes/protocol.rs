//! Deletes pieces of a binary format while its lengths, counts and checksums stay correct.

use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::field::{Field, Meaning};
use crate::passes::ranges::{gone_within, moved, moved_range, union};
use crate::passes::units::Units;
use crate::{Edit, Replacement};

/// A binary format of the tested text: its number fields, and the pieces that can be deleted.
///
/// Invariant: a field that was correct is correct after each edit.
#[derive(Clone, Debug)]
pub(super) struct Protocol {
    pub rule: &'static str,
    /// The fields of the format: lengths and counts first, then checksums by ascending size of the
    /// ranges that they cover, which is the order of correction.
    pub fields: Vec<Field>,
    /// The pieces of the text that can be deleted in this binary format, as ranges: records, or
    /// single bytes.
    pub pieces: Vec<Range<usize>>,
}

impl Protocol {
    /// Returns true if a field has more than one byte: a single byte often equals a size by chance.
    pub fn has_wide_field(&self) -> bool {
        self.fields.iter().any(|field| field.form.width > 1)
    }

    fn places(&self, cuts: &[Range<usize>]) -> Vec<Range<usize>> {
        union(
            cuts.iter()
                .flat_map(|cut| self.pieces[cut.clone()].iter().cloned())
                .collect(),
        )
    }

    /// Returns the fields (lengths, counts, checksums) that are left when the ranges `gone` of the
    /// text are deleted: each at its new position, and with it the range of the old text that it
    /// describes.
    fn fields_after(&self, gone: &[Range<usize>]) -> Vec<(Field, Range<usize>)> {
        let stay = self
            .fields
            .iter()
            .filter(|field| gone_within(gone, &field.place()) == 0);
        let fields = stay.map(|field| {
            let behind = Field {
                at: moved(gone, field.at),
                scope: moved_range(gone, &field.scope),
                ..field.clone()
            };
            (behind, field.scope.clone())
        });
        fields.collect()
    }

    /// Returns `text` without the ranges `gone`. Lengths, counts and checksums of the binary format
    /// are corrected; counts are lowered by `pieces`, the number of deleted pieces.
    fn without(&self, text: &[u8], gone: &[Range<usize>], pieces: usize) -> Vec<u8> {
        let mut left = Edit::Cut(gone.to_vec()).of_best(text);
        for (field, scope) in self.fields_after(gone) {
            let bytes = gone_within(gone, &scope);
            let number = field.form.read(&left, field.at).unwrap_or_default();
            let right = match field.meaning {
                Meaning::Check(checksum) => checksum.of(&left[field.scope.clone()]),
                Meaning::Length => number.wrapping_sub(bytes as u64),
                Meaning::Count if bytes > 0 => number.wrapping_sub(pieces as u64),
                Meaning::Count => number,
            };
            left[field.place()].copy_from_slice(&field.form.write(right));
        }
        left
    }
}

impl Units for Protocol {
    fn rule(&self) -> &'static str {
        self.rule
    }

    fn len(&self) -> usize {
        self.pieces.len()
    }

    fn edit(&self, work: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        let text = work.text();
        let gone = self.places(cuts);
        let pieces = cuts.iter().map(Range::len).sum();
        let left = self.without(&text, &gone, pieces);
        let mut edits: Vec<Replacement> = gone
            .iter()
            .map(|cut| Replacement {
                at: cut.clone(),
                with: Vec::new(),
            })
            .collect();
        for field in self
            .fields
            .iter()
            .filter(|field| gone_within(&gone, &field.place()) == 0)
        {
            let to = moved(&gone, field.at);
            let with = &left[to..to + field.form.width];
            if text[field.place()] != *with {
                edits.push(Replacement {
                    at: field.place(),
                    with: with.to_vec(),
                });
            }
        }
        edits.sort_by_key(|edit| edit.at.start);
        Some(Edit::Set(edits))
    }

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let gone = self.places(cuts);
        self.fields = self
            .fields_after(&gone)
            .into_iter()
            .map(|(field, _)| field)
            .collect();
        for cut in cuts.iter().rev() {
            self.pieces.drain(cut.clone());
        }
        for piece in &mut self.pieces {
            *piece = moved_range(&gone, piece);
        }
        vec![0; cuts.len()]
    }
}
