//! Finds records of a binary format that no number counts: each has a length, and some formats give
//! each a checksum, too. A length field may state the size of all of them together.

use std::cmp::Reverse;
use std::ops::Range;

use crate::passes::detect::{FEWEST, HEADER, SCOPE, TYPES, frames};
use crate::passes::field::{Checksum, Field, Form, Meaning};
use crate::passes::protocol::Protocol;
use crate::passes::ranges::overlap;

/// Minimum number of bits that the checksums of all records must have together, for their agreement
/// with the covered bytes not to be chance.
const LEAST_BITS: usize = 32;
/// Minimum number of records without checksums: fewer may end at the end of a text by chance.
const LEAST_UNCHECKED: usize = 8;
/// Maximum number of length fields of the whole text that are tried as the one around all records.
const FRAMES: usize = 8;
/// Maximum number of records in which a text is divided; a text with more is not read in this
/// format.
const MOST_RECORDS: usize = 4096;

/// The layout of a record: some bytes (such as its type) before its length and after it, the
/// payload whose bytes the length counts, and a checksum.
#[derive(Clone, Copy, Debug)]
struct Layout {
    before: usize,
    length: Form,
    after: usize,
    /// Width of the checksum at the end of the record, in bytes; 0 if it has none.
    check: usize,
}

/// Finds binary formats in which records follow each other up to the end of the text. Each record
/// has a length and a checksum, which must agree with its bytes. Formats with more records come
/// first: those with fewer miss the first records of the text.
pub(super) fn chained(text: &[u8]) -> Vec<Protocol> {
    divided(text, 0..HEADER.min(text.len()), &[1, 2, 4], |_, _, _| true)
}

/// Finds binary formats in which at least [`LEAST_UNCHECKED`] records follow each other up to the
/// end of the text, each with a length and without a checksum. Formats with more records come first:
/// those with fewer are more likely chance.
pub(super) fn unchecked(text: &[u8]) -> Vec<Protocol> {
    let is_meant = |_, _, records| records >= LEAST_UNCHECKED;
    divided(text, 0..HEADER.min(text.len()), &[0], is_meant)
}

/// Finds binary formats with a length field near the front of the text that states the size of all
/// records together; the format may have a checksum of them, too. Lengths of one byte often lead to
/// the end by chance: without checksums, there must be at least [`LEAST_UNCHECKED`] such records,
/// directly behind the length of them all, with a type of at most one byte. Formats with more
/// records come first.
pub(super) fn framed(text: &[u8]) -> Vec<Protocol> {
    let frames = frames(text, SCOPE).into_iter();
    let around = frames.filter(Protocol::has_wide_field).take(FRAMES);
    let mut found: Vec<Protocol> = around.flat_map(|frame| inside(text, &frame)).collect();
    found.sort_by_key(|protocol| Reverse(protocol.pieces.len()));
    found
}

/// Finds records that fill the bytes that are counted by a length: the first field of `frame`.
/// Returns each format with the fields of `frame` added.
fn inside(text: &[u8], frame: &Protocol) -> Vec<Protocol> {
    let Some(scope) = frame.fields.first().map(|length| &length.scope) else {
        return Vec::new();
    };
    // A checksum at the front stands before the records.
    let is_free = |start: &usize| {
        let mut fields = frame.fields.iter();
        !fields.any(|field| overlap(&field.place(), &(*start..scope.end)))
    };
    let starts = (scope.start..scope.end.min(scope.start + HEADER)).filter(is_free);
    let is_meant = |start, layout: Layout, records| {
        let is_plain = start == scope.start && layout.before <= 1 && layout.after == 0;
        layout.check > 0 || layout.length.width > 1 || is_plain && records >= LEAST_UNCHECKED
    };
    let mut found = divided(&text[..scope.end], starts, &[0, 1, 2, 4], is_meant);
    for protocol in &mut found {
        protocol.fields.extend(frame.fields.iter().cloned());
        // The order of correction: lengths, and checksums from inside to outside.
        protocol.fields.sort_by_key(|field| match field.meaning {
            Meaning::Length | Meaning::Count => 0,
            Meaning::Check(_) => 1 + field.scope.len(),
        });
    }
    found
}

/// Finds binary formats in which records follow each other from one of the offsets `starts` up to
/// the end of the text, with checksums of one of the widths `checks`, in bytes. `is_meant` gets the
/// offset, the layout and the number of records, and returns false if they are likely to be chance.
/// Formats with more records come first.
fn divided(
    text: &[u8],
    starts: impl Iterator<Item = usize>,
    checks: &'static [usize],
    is_meant: impl Fn(usize, Layout, usize) -> bool,
) -> Vec<Protocol> {
    let tried = starts.flat_map(|start| layouts(checks).map(move |layout| (start, layout)));
    let found = tried.filter_map(|(start, layout)| {
        let payloads = layout.payloads(text, start)?;
        let is_meant = is_meant(start, layout, payloads.len());
        is_meant.then(|| layout.protocol(text, payloads))?
    });
    let mut found: Vec<Protocol> = found.collect();
    found.sort_by_key(|protocol| Reverse(protocol.pieces.len()));
    found
}

fn layouts(checks: &'static [usize]) -> impl Iterator<Item = Layout> {
    let around = TYPES
        .into_iter()
        .flat_map(|before| TYPES.map(|after| (before, after)));
    let forms = || Form::ALL.into_iter();
    around.flat_map(move |(before, after)| {
        forms().flat_map(move |length| {
            checks.iter().map(move |check| Layout {
                before,
                length,
                after,
                check: *check,
            })
        })
    })
}

impl Layout {
    /// Reads the records of `text` from the offset `start` on, and returns the ranges of their
    /// payloads; `None` if the last record does not end at the end of the text.
    fn payloads(self, text: &[u8], start: usize) -> Option<Vec<Range<usize>>> {
        let mut payloads = Vec::new();
        let mut at = start;
        while at < text.len() {
            let length = self.length.read(text, at + self.before)?;
            let payload = at + self.before + self.length.width + self.after;
            let end = payload.checked_add(usize::try_from(length).ok()?)?;
            at = end.checked_add(self.check)?;
            if at > text.len() || payloads.len() == MOST_RECORDS {
                return None;
            }
            payloads.push(payload..end);
        }
        (payloads.len() >= FEWEST).then_some(payloads)
    }

    /// Returns the offset in the text of the length field of a record whose payload has the range
    /// `payload`.
    fn length_at(self, payload: &Range<usize>) -> usize {
        payload.start - self.after - self.length.width
    }

    /// Returns the binary format of a text whose records have this layout, with payloads in the
    /// ranges `payloads`. If the layout has a checksum, finds the known checksum that agrees in all
    /// records; `None` if no known checksum does.
    fn protocol(self, text: &[u8], payloads: Vec<Range<usize>>) -> Option<Protocol> {
        let checks = match self.check {
            0 => Vec::new(),
            _ => self.checks(text, &payloads)?,
        };
        let lengths = payloads.iter().map(|payload| Field {
            at: self.length_at(payload),
            form: self.length,
            scope: payload.clone(),
            meaning: Meaning::Length,
        });
        let start = |payload: &Range<usize>| self.length_at(payload) - self.before;
        let records = payloads.iter();
        let pieces = records.map(|payload| start(payload)..payload.end + self.check);
        Some(Protocol {
            rule: "records",
            fields: lengths.chain(checks).collect(),
            pieces: pieces.collect(),
        })
    }

    /// Finds the known checksum (kind, byte order and covered bytes) that agrees in all records, and
    /// returns its field in each record; `None` if there is none.
    fn checks(self, text: &[u8], payloads: &[Range<usize>]) -> Option<Vec<Field>> {
        let heads = [0, self.after, self.before + self.length.width + self.after];
        let (checksum, form, head) = Checksum::ALL
            .into_iter()
            .filter(|(_, widths)| widths.contains(&self.check))
            .flat_map(|(checksum, _)| heads.map(|head| (checksum, head)))
            .flat_map(|(checksum, head)| {
                let width = self.check;
                [false, true].map(|big| (checksum, Form { width, big }, head))
            })
            .find(|(checksum, form, head)| {
                self.agree(text, payloads, *head, |covered| {
                    form.write(checksum.of(covered))
                })
            })?;
        let checks = payloads.iter().map(|payload| Field {
            at: payload.end,
            form,
            scope: payload.start - head..payload.end,
            meaning: Meaning::Check(checksum),
        });
        Some(checks.collect())
    }

    /// Returns true if the checksum behind each of the `payloads` of `text` is what `sum` computes
    /// of the payload and the `head` bytes before it. Returns false also if the checksums have
    /// fewer than [`LEAST_BITS`] bits together, since they may then agree by chance; checksums of a
    /// single byte or of zeros only do not count.
    fn agree(
        self,
        text: &[u8],
        payloads: &[Range<usize>],
        head: usize,
        sum: impl Fn(&[u8]) -> Vec<u8>,
    ) -> bool {
        let mut bits = 0;
        let all = payloads.iter().all(|payload| {
            let covered = &text[payload.start - head..payload.end];
            let is_telling = covered.len() > 1 && covered.iter().any(|byte| *byte != 0);
            bits += 8 * self.check * usize::from(is_telling);
            text[payload.end..payload.end + self.check] == sum(covered)
        });
        all && bits >= LEAST_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a record for a test: the length of the payload in two bytes, the type `kind`, the
    /// payload, and the exclusive or of the bytes of the payload.
    fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u16).to_le_bytes();
        let sum = payload.iter().fold(0, |all, byte| all ^ byte);
        [&length[..], &[kind], payload, &[sum]].concat()
    }

    #[test]
    fn records_are_found_by_their_lengths_and_checksums() {
        let records: Vec<Vec<u8>> = [
            record(2, b"zzz9"),
            record(9, b""),
            record(1, b"hello"),
            record(3, b"world!"),
            record(3, b"some more"),
        ]
        .into();
        let text = [&b"RECS"[..], &records.concat()].concat();
        let found = chained(&text);
        let first = &found[0];
        assert_eq!(first.pieces.len(), 5);
        assert_eq!(first.pieces[0], 4..12);
        assert_eq!(first.pieces[4].end, text.len());
        // One wrong checksum, and bytes after the last record.
        let mut damaged = text.clone();
        damaged[11] ^= 1;
        let is_whole = |text: &[u8]| chained(text).iter().any(|it| it.pieces.len() == 5);
        assert!(!is_whole(&damaged));
        assert!(!is_whole(&[&text[..], b"x"].concat()));
        // Zeros agree with everything.
        assert!(chained(&[0; 64]).is_empty());
    }

    #[test]
    fn records_are_found_inside_of_a_length_of_them_all() {
        let record = |payload: &[u8]| {
            let length = (payload.len() as u16).to_le_bytes();
            [b"t", &length[..], payload].concat()
        };
        let records = [
            record(b"hello"),
            record(b"you"),
            record(b"all"),
            record(b""),
        ]
        .concat();
        let length = (records.len() as u32).to_be_bytes();
        let text = [b"MAGI", &length[..], &records, b"tail"].concat();
        let first = framed(&text).swap_remove(0);
        assert_eq!(first.pieces, [8..16, 16..22, 22..28, 28..31]);
        assert_eq!(first.fields.iter().map(|it| it.at).max(), Some(29));
        let around = first.fields.iter().find(|it| it.at == 4).unwrap();
        assert_eq!((around.form.width, around.scope.clone()), (4, 8..31));
        // A wrong length of them all.
        let damaged = [b"MAGI", &[0, 0, 9, 9][..], &records, b"tail"].concat();
        assert!(framed(&damaged).is_empty());
        // A checksum in front of the records is no part of one.
        let sum = Checksum::Crc32.of(&records).to_be_bytes()[4..].to_vec();
        let summed = [&length[..], &sum, &records].concat();
        let all = framed(&summed);
        assert!(!all.is_empty());
        for found in all {
            let pieces = found.pieces.iter();
            let mut checks = found.fields.iter().filter(|it| it.at == 4);
            assert!(checks.all(|it| pieces.clone().all(|piece| !overlap(piece, &it.place()))));
        }
    }
}
