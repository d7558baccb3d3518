//! The pass over records of one size in files of unknown or damaged formats: it guesses by tests
//! how large a record is, and which number counts the records or their bytes.

use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::field::{Field, Form, Meaning};
use crate::passes::list::ListSearch;
use crate::passes::protocol::Protocol;
use crate::passes::ranges::overlap;
use crate::passes::units::Units;

/// Sizes, in bytes, of texts in which records of equal size are searched for; smaller results are
/// left to cheaper passes.
const SIZES: Range<usize> = 96..1 << 16;
/// Number of bytes at the beginning of a text in which numbers that count records, or their bytes,
/// are searched for.
const FRONT: usize = 96;
/// Maximum number of bytes at the end of a text that may follow the bytes which a length field
/// counts.
const SLACK: usize = 16;
/// Sizes of records, in bytes, that are tried.
const STRIDES: [usize; 18] = [
    12, 16, 8, 24, 20, 40, 56, 64, 32, 4, 18, 10, 28, 36, 48, 6, 14, 22,
];
/// Maximum number of guesses (a record size, with the numbers that count the records) that are
/// tested in one text.
const GUESSES: usize = 160;
/// Number of tests that a search must have made for each of the [`GUESSES`], before any guess is
/// tested.
const TESTS_PER_GUESS: usize = 8;

/// Deletes records of equal size from a binary text, and lowers the number that counts the records
/// or their bytes, or both. Runs only in a search that has made many tests already. Returns true if
/// the text became smaller.
pub(super) async fn strides(work: &mut CurrentBest) -> bool {
    let before = work.reductions();
    if work.asked() < GUESSES * TESTS_PER_GUESS {
        return false;
    }
    while SIZES.contains(&work.len()) && !work.is_text() {
        let text = work.text();
        let mut found = None;
        for guess in guesses(&text).into_iter().take(GUESSES) {
            if let Some(protocol) = confirmed(work, guess).await {
                found = Some(protocol);
                break;
            }
        }
        let Some(mut records) = found else { break };
        ListSearch::new(work, &mut records).reduce().await;
    }
    work.reductions() > before
}

/// Tests the guess that a text has certain records, by deleting one in its middle or, if the text
/// then does not fail, one in its last quarter instead; at the ends of a text, records are mostly
/// needed. If one of the two texts fails, returns the guess without the deleted record; else
/// `None`.
async fn confirmed(work: &mut CurrentBest, mut guess: Protocol) -> Option<Protocol> {
    let before = work.reductions();
    let count = guess.len();
    for nth in [count / 2, count - count.div_ceil(4)] {
        ListSearch::new(work, &mut guess).delete(nth..nth + 1).await;
        if work.reductions() > before {
            return Some(guess);
        }
    }
    None
}

/// Guesses how a text is made of records of equal size: returns binary formats with one or two
/// number fields, which state the size of all records in bytes, or how many there are. Formats that
/// leave the fewest bytes outside of the records come first.
fn guesses(text: &[u8]) -> Vec<Protocol> {
    let numbers = numbers(text);
    let lengths: Vec<&Field> = (numbers.iter())
        .filter(|(field, number)| {
            let end = field.scope.start.saturating_add(*number);
            field.form.width > 1 && end <= text.len() && text.len() - end <= SLACK
        })
        .map(|(field, _)| field)
        .collect();
    let mut found: Vec<(usize, Protocol)> = Vec::new();
    for stride in STRIDES {
        let with = |fields: Vec<Field>| records(text, stride, fields);
        for length in &lengths {
            found.push((0, with(vec![(*length).clone()])));
        }
        for (field, number) in &numbers {
            // The first record may be at the beginning of the text, with the number inside.
            let all = number.checked_mul(stride);
            let Some(left) = all.and_then(|all| text.len().checked_sub(all)) else {
                continue;
            };
            let count = Field {
                meaning: Meaning::Count,
                ..field.clone()
            };
            let apart = |length: &&&Field| !overlap(&length.place(), &count.place());
            for length in lengths.iter().filter(apart) {
                found.push((left, with(vec![(*length).clone(), count.clone()])));
            }
            found.push((left, with(vec![count])));
        }
    }
    found.retain(|(_, protocol)| protocol.len() >= 2);
    // Of equally good ones, those of the sizes that are tried first.
    found.sort_by_key(|(left, _)| *left);
    found.into_iter().map(|(_, protocol)| protocol).collect()
}

/// Returns all numbers in the first [`FRONT`] bytes of the text that are at least 2 and at most the
/// size of the text, read in each width and byte order. Each comes with the field in which it
/// stands, which is described as the length of all bytes after it.
fn numbers(text: &[u8]) -> Vec<(Field, usize)> {
    let places = || 0..FRONT.min(text.len());
    let all = Form::ALL
        .iter()
        .flat_map(|form| places().map(move |at| (at, *form)));
    all.filter_map(|(at, form)| {
        let number = usize::try_from(form.read(text, at)?).ok()?;
        (2..=text.len()).contains(&number).then(|| {
            let scope = at + form.width..text.len();
            let meaning = Meaning::Length;
            let field = Field {
                at,
                form,
                scope,
                meaning,
            };
            (field, number)
        })
    })
    .collect()
}

/// Describes a text as a binary format with the number fields `fields` and with records of `stride`
/// bytes each. The last record ends at the end of the text; there are as many as fit between the
/// last field and the end of the text.
fn records(text: &[u8], stride: usize, fields: Vec<Field>) -> Protocol {
    let front = fields.iter().map(|field| field.scope.start).max();
    let room = text.len() - front.unwrap_or_default();
    let first = text.len() - room / stride * stride;
    let starts = (first..text.len()).step_by(stride);
    Protocol {
        rule: "strides",
        fields,
        pieces: starts.map(|start| start..start + stride).collect(),
    }
}
