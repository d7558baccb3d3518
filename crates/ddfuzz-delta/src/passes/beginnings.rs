//! Finds records of a binary format that begin with the same bytes, such as a type or the high
//! bytes of a length, however the format states where they end.

use std::collections::HashMap;
use std::ops::Range;

use crate::passes::field::Field;
use crate::passes::protocol::Protocol;

/// Numbers of bytes that may be equal at the beginnings of records.
const WIDTHS: [usize; 3] = [4, 3, 2];
/// Minimum number of records that begin alike; fewer places may be alike by chance.
const LEAST: usize = 4;
/// Minimum size of a record, in bytes, on average.
const LEAST_SIZE: usize = 8;
/// Maximum number of guesses for one text.
const MOST: usize = 48;

/// Guesses that records begin wherever the same few bytes stand, and that the text can lose each
/// record but the last, up to where the next one begins. Beginnings that occur more often come
/// first, of equally frequent ones those nearer to the front of the text.
pub(super) fn beginnings(text: &[u8]) -> Vec<Protocol> {
    let mut found: Vec<Vec<usize>> = WIDTHS
        .iter()
        .flat_map(|width| occurrences(text, *width))
        .filter(|places| (LEAST..=text.len() / LEAST_SIZE).contains(&places.len()))
        .collect();
    // The order does not depend on that of the hash table: a search is replayed from its log.
    found.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    found.dedup();
    found.truncate(MOST);
    let protocols = found.iter().map(|places| Protocol {
        rule: "records",
        fields: Vec::new(),
        pieces: between(places),
    });
    protocols.collect()
}

/// Guesses that the bytes of `text` that the length field `length` counts consist of records which
/// all begin with the same bytes: four, three or two. Returns for each of these numbers, in this
/// order, a format whose pieces are the records, and whose field `length` is corrected when records
/// are deleted. Leaves out formats with fewer than four records, or with less than eight bytes per
/// record on average, and repetitions.
pub(super) fn beginnings_in(text: &[u8], length: &Field) -> Vec<Protocol> {
    let block = &text[length.scope.clone()];
    let likely = LEAST..=block.len() / LEAST_SIZE;
    let mut found: Vec<Vec<usize>> = WIDTHS
        .iter()
        .filter_map(|width| {
            let mut places = places_of(block.get(..*width)?, block);
            places.push(block.len());
            likely.contains(&(places.len() - 1)).then_some(places)
        })
        .collect();
    found.dedup();
    let protocols = found.iter().map(|places| Protocol {
        rule: "records",
        fields: vec![length.clone()],
        pieces: between(places)
            .into_iter()
            .map(|piece| length.scope.start + piece.start..length.scope.start + piece.end)
            .collect(),
    });
    protocols.collect()
}

/// Returns the ascending offsets at which `bytes` occurs in `text`; of occurrences that overlap
/// only the first counts.
fn places_of(bytes: &[u8], text: &[u8]) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    for (at, window) in text.windows(bytes.len()).enumerate() {
        if window == bytes && places.last().is_none_or(|last| at - last >= bytes.len()) {
            places.push(at);
        }
    }
    places
}

/// Returns, for each different sequence of `width` bytes in the text, in no particular order, the
/// ascending offsets at which it occurs; of occurrences that overlap only the first counts.
fn occurrences(text: &[u8], width: usize) -> Vec<Vec<usize>> {
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (at, bytes) in text.windows(width).enumerate() {
        let found = places.entry(bytes).or_default();
        if found.last().is_none_or(|last| at - last >= width) {
            found.push(at);
        }
    }
    places.into_values().collect()
}

/// Returns the ranges between neighboring offsets.
fn between(places: &[usize]) -> Vec<Range<usize>> {
    places.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::field::{Form, Meaning};

    #[test]
    fn records_begin_where_the_same_bytes_stand() {
        let text = b"HEAD\x06\0ab0123456\x06\0defgh\x06\0i78901234\x06\0jklm56\x06\0n";
        let found = beginnings(text);
        let first = &found[0];
        assert_eq!(first.pieces.len(), 4);
        assert_eq!(first.pieces[0], 4..15);
        assert!(first.pieces.iter().all(|piece| text[piece.start] == 6));
        assert!(
            beginnings(b"no bytes are twice here")
                .iter()
                .all(|it| it.pieces.len() > 2)
        );
        assert!(beginnings(&[0; 64]).is_empty());
    }

    #[test]
    fn records_in_a_block_begin_as_it_does() {
        let text = b"HEAD\x27RECa0123456RECbRECc0123456789RECd012345tail";
        let length = Field {
            at: 4,
            form: Form {
                width: 1,
                big: false,
            },
            scope: 5..44,
            meaning: Meaning::Length,
        };
        let [found] = &beginnings_in(text, &length)[..] else {
            panic!("all records begin with three equal bytes");
        };
        assert_eq!(found.pieces, [5..16, 16..20, 20..34, 34..44]);
        assert_eq!(found.fields, std::slice::from_ref(&length));
        let shifted = Field {
            scope: 8..44,
            ..length
        };
        assert!(beginnings_in(text, &shifted).is_empty());
    }
}
