//! The pass over binary formats: records with a count, frames with a length, and numbers that a run
//! shows to be wrong.

use crate::Outcome;
use crate::passes::beginnings::{beginnings, beginnings_in};
use crate::passes::chained::{chained, framed, unchecked};
use crate::passes::current_best::CurrentBest;
use crate::passes::detect::{SCOPE, blocks, frames, frames_in, payload, records};
use crate::passes::field::Field;
use crate::passes::framed::LARGEST_FRAME;
use crate::passes::list::ListSearch;
use crate::passes::protocol::Protocol;
use crate::passes::repair::Repair;
use crate::passes::units::{Bytes, Units};

/// Maximum size, in bytes, of texts in which [`binary`] looks for records, and for numbers (such as
/// lengths and checksums) that only the comparisons of a run show. In a larger text, of up to
/// [`LARGEST_FRAME`] bytes, [`binary`] looks for frames only.
pub(super) const LARGEST: usize = 1 << 14;

/// Maximum number of guesses of each kind that are tested for one text. A guess says where the text
/// has counts, lengths and checksums.
const READINGS: usize = 4;

/// Minimum size, in bytes, of texts in which numbers are looked for by the comparisons of a run. A
/// smaller text has room for hardly a byte beside a length and a checksum, and observing a run
/// means another start of the program.
const SMALLEST_OBSERVED: usize = 9;

/// Minimum size, in bytes, of texts without control characters in which numbers are looked for by
/// the comparisons of a run. In a smaller one, the length of the rest would be a control character.
const SMALLEST_OBSERVED_TEXT: usize = 33;

/// Deletes records and bytes of a text by its binary format, and returns whether a format was
/// found. If `observes_all`, the comparisons of runs are looked at however small the text is.
///
/// Invariant: lengths, counts and checksums that were correct in the text stay correct.
pub(super) async fn binary(work: &mut CurrentBest, observes_all: bool) -> bool {
    let len = work.len();
    if !(2..=LARGEST_FRAME).contains(&len) {
        return false;
    }
    // If the last byte can be deleted without corrections, no number protects the text.
    if work.cut("bytes", len - 1..len).await == Outcome::Fail {
        return false;
    }
    if len > LARGEST {
        return reduce_frame(work).await;
    }
    if reduce_records(work).await {
        return true;
    }
    // What looks like records may be bytes of one payload, which the frame then reduces on.
    let has_framed = reduce_framed_records(work).await;
    if reduce_frame(work).await || has_framed {
        return true;
    }
    let least = match work.is_text() {
        true => SMALLEST_OBSERVED_TEXT,
        false => SMALLEST_OBSERVED,
    };
    (observes_all || work.len() >= least) && reduce_by_repair(work).await
}

/// Finds a count that is followed by as many records, or records with checksums that no number
/// counts; deletes records, lowering the count, and then deletes bytes inside of the remaining
/// records. Returns whether such records were found.
async fn reduce_records(work: &mut CurrentBest) -> bool {
    let counted = records(&work.text()).into_iter();
    let others = match work.is_text() {
        true => Vec::new(),
        false => chained(&work.text()),
    };
    let readings = counted
        .take(READINGS)
        .chain(others.into_iter().take(READINGS));
    reduce_readings(work, readings.collect(), usize::MAX).await
}

/// Finds records whose size together a length field states; deletes records, lowering that length,
/// and then deletes bytes inside of the remaining records. Returns whether such records were found.
async fn reduce_framed_records(work: &mut CurrentBest) -> bool {
    if work.is_text() {
        return false;
    }
    let mut readings = framed(&work.text());
    readings.truncate(READINGS);
    reduce_readings(work, readings, usize::MAX).await
}

/// Deletes records that no number counts and that have no checksum: each has a length, or all begin
/// with the same bytes. Then deletes bytes that the lengths of the remaining records count, until
/// `most_needed` successive bytes turn out to be needed. Returns whether such records were found.
pub(super) async fn unchecked_records(work: &mut CurrentBest, most_needed: usize) -> bool {
    if work.is_text() || work.len() > LARGEST {
        return false;
    }
    let text = work.text();
    let mut readings = unchecked(&text);
    readings.truncate(READINGS);
    readings.extend(beginnings(&text));
    reduce_readings(work, readings, most_needed).await
}

/// Deletes blocks in the middle of a binary text (see [`blocks`]), whose length fields then become
/// 0, as long as a whole block can be deleted. Then deletes records and bytes inside of remaining
/// blocks, as far as tests confirm guesses of their formats, until `most_needed` successive bytes
/// turn out to be needed. Returns whether the text became shorter.
pub(super) async fn delete_blocks(work: &mut CurrentBest, most_needed: usize) -> bool {
    let before = work.reductions();
    let protocol = |field: &Field, pieces| Protocol {
        rule: "payload",
        fields: vec![field.clone()],
        pieces,
    };
    let mut round = None;
    while round != Some(work.reductions()) {
        round = Some(work.reductions());
        for field in blocks(&work.text()) {
            let mut block = protocol(&field, vec![field.scope.clone()]);
            let mut list = ListSearch::new(work, &mut block);
            if list.delete(0..1).await.is_some() {
                break;
            }
        }
    }
    let text = work.text();
    let needed = blocks(&text).into_iter().take(READINGS);
    let readings = needed.flat_map(|field| beginnings_in(&text, &field));
    let has_records = reduce_readings(work, readings.collect(), most_needed).await;
    if work.len() > LARGEST {
        return work.reductions() > before;
    }
    let text = work.text();
    let needed = blocks(&text).into_iter().take(READINGS);
    let readings = needed.flat_map(|field| frames_in(&text, &field));
    for mut record in readings.take(READINGS).collect::<Vec<_>>() {
        if confirm_reading(work, &mut record).await {
            let mut list = ListSearch::new(work, &mut record).stop_after(most_needed);
            list.reduce().await;
            return true;
        }
    }
    if !has_records {
        let blocks = blocks(&text).into_iter().take(READINGS);
        let readings = blocks.map(|field| payload(&protocol(&field, Vec::new())));
        reduce_readings(work, readings.collect(), most_needed).await;
    }
    work.reductions() > before
}

/// Tests guesses of how the text consists of records, until a test confirms one; then deletes
/// records, and bytes inside of the remaining records, until `most_needed` successive bytes turn
/// out to be needed. Returns whether a guess was confirmed.
async fn reduce_readings(
    work: &mut CurrentBest,
    readings: Vec<Protocol>,
    most_needed: usize,
) -> bool {
    for mut records in readings {
        if confirm_reading(work, &mut records).await {
            ListSearch::new(work, &mut records).reduce().await;
            let mut bytes = payload(&records);
            let mut list = ListSearch::new(work, &mut bytes).stop_after(most_needed);
            list.reduce().await;
            return true;
        }
    }
    false
}

/// Finds a length field, perhaps with a checksum, and deletes bytes that the length counts. Returns
/// whether such a field was found.
async fn reduce_frame(work: &mut CurrentBest) -> bool {
    let is_text = work.is_text();
    let readings = frames(&work.text(), SCOPE).into_iter();
    // In a text, a letter may equal a size by chance.
    let meant = |frame: &Protocol| !is_text || frame.has_wide_field();
    for mut frame in readings.filter(meant).take(READINGS).collect::<Vec<_>>() {
        if confirm_reading(work, &mut frame).await {
            ListSearch::new(work, &mut frame).reduce().await;
            retry_other_checksum(work, &frame).await;
            return true;
        }
    }
    false
}

/// Guesses, after the format `frame` of a text was found, that its checksum is at another place
/// than in `frame` (a sum that makes the total of all bytes zero may be the first or the last
/// byte), with the same length field. Tests such guesses one after the other; if a test confirms
/// one, deletes the bytes that can be deleted by that format, and ends.
async fn retry_other_checksum(work: &mut CurrentBest, frame: &Protocol) {
    let Some(length) = frame.fields.first() else {
        return;
    };
    let others = frames(&work.text(), 1).into_iter();
    let same = |other: &Protocol| {
        let found = other.fields.first();
        found.is_some_and(|found| (found.at, found.form) == (length.at, length.form))
            && other.fields.len() > 1
            && other.pieces != frame.pieces
    };
    for mut other in others.filter(same).take(READINGS).collect::<Vec<_>>() {
        if confirm_reading(work, &mut other).await {
            ListSearch::new(work, &mut other).reduce().await;
            return;
        }
    }
}

/// Deletes bytes of a text whose numbers (such as lengths and checksums) must be corrected after
/// each deletion, in formats that are recognized only by the comparisons of a run. Returns whether
/// such numbers were found.
async fn reduce_by_repair(work: &mut CurrentBest) -> bool {
    let Some(repair) = Repair::learn(work).await else {
        return false;
    };
    let mut bytes = Bytes::within("repair", repair.between(work.len()), 1);
    work.repair_by(Some(repair));
    ListSearch::new(work, &mut bytes).reduce().await;
    work.repair_by(None);
    true
}

/// Tests the guess `protocol`, by which certain pieces of the text (records or bytes) can be
/// deleted: deletes the last piece or, if the text then does not fail, the first one or one in the
/// middle instead. Returns true if one of these texts fails, which confirms the guess; false if
/// none does.
async fn confirm_reading(work: &mut CurrentBest, protocol: &mut Protocol) -> bool {
    let before = work.reductions();
    let Some(end) = protocol.len().checked_sub(1) else {
        return false;
    };
    for nth in [end, 0, end / 2] {
        ListSearch::new(work, protocol).delete(nth..nth + 1).await;
        if work.reductions() > before {
            return true;
        }
    }
    false
}
