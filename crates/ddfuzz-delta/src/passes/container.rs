//! The passes over a file of a known format: its parts are deleted, and its payloads are reduced,
//! while lengths, counts, offsets and checksums stay correct.

use std::ops::Range;
use std::sync::Arc;

use crate::document::{Document, Format};
use crate::passes::current_best::CurrentBest;
use crate::passes::envelope::difference;
use crate::passes::field::Form;
use crate::passes::list::ListSearch;
use crate::passes::markup::markup;
use crate::passes::normalize::{OtherBytes, normalize};
use crate::passes::script::reduce_lines;
use crate::passes::structure::{FEWEST_PAIRS, structure};
use crate::passes::units::{Bytes, Units};
use crate::{Edit, Outcome, Replacement};

/// Name, in logs, of the pass that deletes parts of a file of a known format.
const PARTS: &str = "parts";
/// Name, in logs, of the pass that reduces payloads of a file of a known format.
const PAYLOAD: &str = "payload";
/// Name, in logs, of the test in which compressed payloads of a file are compressed anew.
const REPACK: &str = "repack";
/// Name, in logs, of the pass that lowers values in payloads of a file, such as the size of a
/// picture in a header.
const LOWER: &str = "lower";
/// Number of successive parts of a file that turn out to be needed for the failure, after which the
/// deletion of parts ends.
const FRUITLESS_PARTS: usize = 32;
/// Number of successive bytes of a payload that turn out to be needed for the failure, after which
/// the reduction of the payload ends; the final round of single deletions still tries all bytes of
/// the file.
const FRUITLESS_BYTES: usize = 128;
/// Sizes, in bytes, of records that are deleted whole from a payload of [`FEW_BYTES`] or more in
/// which no byte could be deleted.
const RECORDS: [usize; 3] = [2, 3, 4];
/// Maximum size, in bytes, of payloads that count as small, such as headers.
const FEW_BYTES: usize = 32;
/// Number of successive bytes or records that turn out to be needed for the failure, after which
/// the reduction of a small payload, or the deletion of records from a larger one, ends.
const FRUITLESS_FEW: usize = 8;
/// Number of bytes at the beginning of a payload of more than [`FEW_BYTES`] that are taken for a
/// header; only the values of these are lowered.
const HEADER: usize = 8;
/// Maximum number of payloads of a file that are reduced one by one; if there are more, all are
/// reduced together.
const EACH: usize = 32;
/// Minimum size, in bytes, of payloads that are reduced as texts, by lines and brackets.
const TEXT: usize = 32;
/// Minimum size, in bytes, of payloads in which it is tested whether the values of bytes matter.
const NORMALIZED: usize = 4;
/// Name, in logs, of the pass by which references of a file to different regions come to share the
/// same bytes.
const SHARE: &str = "share";
/// Minimum size, in bytes, of a region of a file for which it is tested to let references lead to
/// other bytes instead, so that the region can be deleted.
const WORTH_SHARING: usize = 8;
/// Maximum number of regions of a file for which it is tested to let references lead to other bytes
/// instead; the largest regions are chosen.
const MOST_SHARED: usize = 16;
/// Minimum size, in bytes, that the largest payload must still have after its reduction for values
/// in headers to be lowered: perhaps it is needed only because a header asks for so much.
const RESISTING: usize = 32;
/// Maximum number of tests that lower values in headers of a file, in each round over the payloads.
const MOST_LOWERED: usize = 64;
/// Minimum number of rows or columns that are dropped together with the number that counts them.
const FEWEST_ROWS: usize = 8;
/// Maximum number of bytes of a row that belong to no column, as the filter of a row of PNG.
const MOST_HEAD: usize = 4;
/// Minimum number of bytes by which the file must become shorter if all bytes of a payload are 0, for
/// 0 to be written over bytes that must stay.
const WORTH_ZEROS: usize = 16;
/// Maximum number of rounds over parts and payloads.
const ROUNDS: usize = 3;

/// Number of tests, counted from the opening of a file by its format, after which payloads are no
/// longer reduced if none of these tests has reduced the file.
const TRIAL: usize = 40;

/// The first [`TRIAL`] tests that reduce a file by its format; they show whether the format helps.
struct Trial {
    /// Number of reductions of the search before the first test of the trial.
    reductions: usize,
    /// Number of tests, counted from the beginning of the search, at which the trial ends.
    end: usize,
}

impl Trial {
    /// Returns true if the first [`TRIAL`] tests by the format have been made and none of them has
    /// reduced the file.
    fn has_failed(&self, work: &CurrentBest) -> bool {
        work.asked() >= self.end && work.reductions() == self.reductions
    }
}

/// Reduces a file by its format: deletes parts, reduces payloads, and lowers values. Returns true
/// if a changed file still failed, and so became the current best; false, without a test, if the
/// file is not of the format.
pub(super) async fn container(work: &mut CurrentBest, format: &dyn Format) -> bool {
    let before = work.reductions();
    let Some(document) = format.open(&work.text()) else {
        return false;
    };
    let trial = Trial {
        reductions: before,
        end: work.asked() + TRIAL,
    };
    let mut document = delete_parts(work, document).await;
    document = repack(work, document).await;
    for _ in 0..ROUNDS {
        let (payloads, size) = (work.reductions(), work.len());
        document = reduce_payloads(work, document, &trial).await;
        let values = work.reductions();
        document = lower(work, document).await;
        let mut lowered = work.reductions() > values;
        document = share(work, document).await;
        let shared = work.reductions();
        if work.len() == size {
            document = drop_rows(work, document).await;
        }
        if work.len() == size {
            document = write_zeros(work, document).await;
        }
        lowered |= work.reductions() > shared;
        if work.reductions() == payloads {
            break;
        }
        // Parts may be needed only by a payload that is gone, and payloads only by a greater value.
        let parts = work.reductions();
        document = delete_parts(work, document).await;
        if work.reductions() == parts && !lowered {
            break;
        }
    }
    work.reductions() > before
}

/// Deletes the parts of `document` that the failure does not need; the first test deletes all
/// parts. Returns the smaller document.
async fn delete_parts(work: &mut CurrentBest, document: Arc<dyn Document>) -> Arc<dyn Document> {
    let mut parts = Parts::of(document);
    let all = 0..parts.len();
    let mut list = ListSearch::new(work, &mut parts).stop_after(FRUITLESS_PARTS);
    if !all.is_empty() {
        list.delete(all).await;
        list.reduce().await;
    }
    parts.document
}

/// Tests the file with its compressed payloads compressed anew. If it still fails, returns the new
/// document, whose decompressed payloads can be changed; if not, one that treats compressed
/// payloads as bytes. Makes no test if the new file equals the old one or is larger.
async fn repack(work: &mut CurrentBest, document: Arc<dyn Document>) -> Arc<dyn Document> {
    let Some(repacked) = document.repacked() else {
        return document;
    };
    let text = repacked.text();
    if text == *work.text() || text.len() > work.len() {
        return repacked;
    }
    let Some(edit) = difference(&work.text(), &text) else {
        return document.opaque();
    };
    match work.test(REPACK, edit).await {
        Outcome::Fail => repacked,
        Outcome::Pass | Outcome::Unresolved => document.opaque(),
    }
}

/// Reduces the payloads of a file one by one, the largest first, and returns the document with the
/// reduced payloads. If there are more than [`EACH`], reduces all together, as one text. Stops
/// early if `trial` has failed.
async fn reduce_payloads(
    work: &mut CurrentBest,
    mut document: Arc<dyn Document>,
    trial: &Trial,
) -> Arc<dyn Document> {
    let payloads = document.payloads();
    let mut order: Vec<usize> = (0..payloads.len()).collect();
    if order.len() > EACH {
        work.enter(document, 0..payloads.len());
        reduce_payload(work).await;
        return work.leave();
    }
    order.sort_by_key(|index| std::cmp::Reverse(payloads[*index].len()));
    for index in order {
        if trial.has_failed(work) {
            break;
        }
        work.enter(document, index..index + 1);
        reduce_payload(work).await;
        document = work.leave();
    }
    document
}

/// Deletes bytes of the payload that the current best is restricted to, and writes `0` over bytes
/// whose values do not matter.
async fn reduce_payload(work: &mut CurrentBest) {
    let len = work.len();
    if len == 0 || work.cut(PAYLOAD, 0..len).await == Outcome::Fail {
        return;
    }
    let is_text = work.is_text() && len >= TEXT;
    if is_text {
        markup(work).await;
        structure(work, FEWEST_PAIRS).await;
        reduce_lines(work).await;
    } else if len >= NORMALIZED {
        normalize(work).await;
    }
    let fruitless = match work.len() {
        0..=FEW_BYTES => FRUITLESS_FEW,
        _ => FRUITLESS_BYTES,
    };
    let bytes = work.len();
    delete_groups(work, 1, fruitless).await;
    // Records, such as those of a palette, can only be deleted whole.
    let is_rigid = work.len() == bytes && bytes >= FEW_BYTES;
    for group in RECORDS {
        if is_rigid && work.len().is_multiple_of(group) {
            delete_groups(work, group, FRUITLESS_FEW).await;
        }
    }
    if is_text && work.len() >= NORMALIZED {
        normalize(work).await;
    }
}

/// Deletes unneeded groups of `group` bytes from the payload that the current best is restricted
/// to, until `fruitless` successive groups turn out to be needed.
async fn delete_groups(work: &mut CurrentBest, group: usize, fruitless: usize) {
    let mut groups = Bytes::within(PAYLOAD, 0..work.len(), group);
    ListSearch::new(work, &mut groups)
        .stop_after(fruitless)
        .reduce()
        .await;
}

/// Lowers values at the beginning of payloads, such as the width in the header of a picture or the
/// number of records in a table, if a large payload is left: it may be needed only because a header
/// asks for so much. Returns the changed document.
async fn lower(work: &mut CurrentBest, mut document: Arc<dyn Document>) -> Arc<dyn Document> {
    let payloads = document.payloads();
    let end = work.asked() + MOST_LOWERED;
    if payloads.len() > EACH || payloads.iter().all(|payload| payload.len() < RESISTING) {
        return document;
    }
    let mut order: Vec<usize> = (0..payloads.len()).collect();
    order.retain(|index| !payloads[*index].is_empty());
    order.sort_by_key(|index| payloads[*index].len());
    for index in order {
        work.enter(document, index..index + 1);
        let head = match work.len() {
            len @ 0..=FEW_BYTES => len,
            _ => HEADER,
        };
        lower_bytes(work, head, end).await;
        document = work.leave();
    }
    document
}

/// Lowers numbers in small payloads together with the size of the largest payload: where a number
/// divides this size, it may be that of the rows of a picture, and each row goes with its bytes;
/// then, where a number divides the size of the rows, it may be that of the columns. Returns the
/// file.
async fn drop_rows(work: &mut CurrentBest, mut document: Arc<dyn Document>) -> Arc<dyn Document> {
    let payloads = document.payloads();
    let largest = (0..payloads.len()).max_by_key(|index| payloads[*index].len());
    let Some(data) = largest.filter(|_| payloads.len() <= EACH) else {
        return document;
    };
    let end = work.asked() + MOST_LOWERED;
    document = drop_columns(work, document, (data, 1), end).await;
    let (before, end) = (work.reductions(), work.asked() + MOST_LOWERED);
    for rows in counts(&document.payloads(), data) {
        document = drop_columns(work, document, (data, rows), end).await;
        if work.reductions() > before {
            break;
        }
    }
    document
}

/// Returns the different numbers from 2 in small payloads that divide the size of the payload at the
/// index `data`, in their order: each may be the number of rows in it.
fn counts(payloads: &[Arc<[u8]>], data: usize) -> Vec<usize> {
    let size = payloads[data].len();
    let mut counts = Vec::new();
    for count in places(payloads).filter_map(|place| place.number(payloads)) {
        if (2..=size).contains(&count) && size.is_multiple_of(count) && !counts.contains(&count) {
            counts.push(count);
        }
    }
    counts
}

/// Lowers each number in a small payload that may be the number of columns in the payload at the
/// index `data`, whose bytes are `rows` rows, together with the size of the rows, until the search
/// has asked for `end` tests. Returns the file.
async fn drop_columns(
    work: &mut CurrentBest,
    mut document: Arc<dyn Document>,
    (data, rows): (usize, usize),
    end: usize,
) -> Arc<dyn Document> {
    let payloads = document.payloads();
    for place in places(&payloads) {
        if let Some(columns) = Columns::of(&document.payloads(), place, data, rows) {
            document = columns.reduce(work, document, end).await;
        }
    }
    document
}

/// The place of a number in the payloads of a document.
#[derive(Clone, Copy)]
struct Place {
    /// Index of the payload with the number.
    payload: usize,
    form: Form,
    /// Offset, in bytes, of the number in its payload.
    at: usize,
}

impl Place {
    /// Reads the number; `None` if it is too large for a size.
    fn number(&self, payloads: &[Arc<[u8]>]) -> Option<usize> {
        let number = self.form.read(&payloads[self.payload], self.at)?;
        usize::try_from(number).ok()
    }
}

/// Returns the places of all numbers that small payloads may contain, in each form.
fn places(payloads: &[Arc<[u8]>]) -> impl Iterator<Item = Place> {
    let small = payloads.iter().enumerate();
    let small = small.filter(|(_, payload)| payload.len() <= FEW_BYTES);
    small.flat_map(|(payload, text)| {
        Form::ALL.into_iter().flat_map(move |form| {
            let offsets = (0..text.len()).step_by(form.width);
            offsets.map(move |at| Place { payload, form, at })
        })
    })
}

/// A number in a payload that may be the number of columns in another payload. The rows of a picture
/// are columns of a payload with one row.
struct Columns {
    place: Place,
    /// The number.
    count: usize,
    /// Index of the payload with the columns.
    data: usize,
    /// Number of rows in the payload.
    rows: usize,
    /// Number of bytes at the beginning of each row that belong to no column.
    head: usize,
    /// Number of bytes of each row that belong to one column.
    size: usize,
}

impl Columns {
    /// Reads the number at `place`; `None` if it cannot be that of the columns in `rows` rows of a
    /// large payload.
    fn of(payloads: &[Arc<[u8]>], place: Place, data: usize, rows: usize) -> Option<Columns> {
        let count = place.number(payloads)?;
        let whole = payloads[data].len();
        let row = whole / rows;
        if count < FEWEST_ROWS || whole < RESISTING || row < count || place.payload == data {
            return None;
        }
        let head = row % count;
        let fits = whole.is_multiple_of(rows) && (head == 0 || rows > 1 && head <= MOST_HEAD);
        fits.then_some(Columns {
            place,
            count,
            data,
            rows,
            head,
            size: row / count,
        })
    }

    /// Finds by bisection how few columns at the beginning or at the end of the rows still fail,
    /// until the search has asked for `end` tests. Returns the file.
    async fn reduce(
        &self,
        work: &mut CurrentBest,
        mut document: Arc<dyn Document>,
        end: usize,
    ) -> Arc<dyn Document> {
        let (mut fewest, mut most) = (0, self.count);
        while most - fewest > 1 && work.asked() < end {
            let columns = match fewest {
                0 => 1,
                _ => fewest + (most - fewest) / 2,
            };
            match self.keep(work, document.as_ref(), columns).await {
                Some(fewer) => (document, most) = (fewer, columns),
                None => fewest = columns,
            }
        }
        document
    }

    /// Tests the file with the first, or else the last, `columns` columns of each row; returns it if
    /// it fails.
    async fn keep(
        &self,
        work: &mut CurrentBest,
        document: &dyn Document,
        columns: usize,
    ) -> Option<Arc<dyn Document>> {
        let Place { payload, form, at } = self.place;
        let mut payloads = document.payloads();
        let data = payloads[self.data].clone();
        let (row, kept) = (data.len() / self.rows, self.size * columns);
        let mut counted = payloads[payload].to_vec();
        counted[at..at + form.width].copy_from_slice(&form.write(columns as u64));
        payloads[payload] = counted.into();
        for from in [self.head, row - kept] {
            let rows = data.chunks_exact(row);
            let rows = rows.map(|row| [&row[..self.head], &row[from..from + kept]].concat());
            payloads[self.data] = rows.collect::<Vec<_>>().concat().into();
            let fewer = document.with(&payloads);
            let edit = difference(&work.text(), &fewer.text())?;
            if work.test(LOWER, edit).await == Outcome::Fail {
                return Some(fewer);
            }
        }
        None
    }
}

/// Writes 0 over bytes of compressed payloads, where that makes the file shorter. Ends in each payload
/// after [`FRUITLESS_FEW`] consecutive needed bytes. Returns the file.
async fn write_zeros(work: &mut CurrentBest, mut document: Arc<dyn Document>) -> Arc<dyn Document> {
    let payloads = document.payloads().len();
    for index in (0..payloads).filter(|_| payloads <= EACH) {
        work.enter(document, index..index + 1);
        let all = 0..work.len();
        let mut others = OtherBytes::within(work, LOWER, all, 0);
        let zeros = others.written(0..others.len());
        if work.shortened_by(&zeros) >= WORTH_ZEROS {
            let mut list = ListSearch::new(work, &mut others).stop_after(FRUITLESS_FEW);
            list.reduce().await;
        }
        document = work.leave();
    }
    document
}

/// Lets references to different regions share bytes: where the content of a region does not matter,
/// but its size does, the region may be read from the beginning of the file or from the largest
/// other region. Large regions come first. Returns the file.
async fn share(work: &mut CurrentBest, mut document: Arc<dyn Document>) -> Arc<dyn Document> {
    let mut sizes = document.regions();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.retain(|region| sizes[*region] >= WORTH_SHARING);
    order.sort_by_key(|region| std::cmp::Reverse(sizes[*region]));
    order.truncate(MOST_SHARED);
    let mut gone: Vec<usize> = Vec::new();
    for original in order {
        // The regions that are gone by now no longer count.
        let region = original - gone.iter().filter(|other| **other < original).count();
        let others = (0..sizes.len()).filter(|other| *other != region);
        for with in [None, others.max_by_key(|other| sizes[*other])] {
            let Some(shared) = document.sharing(region, with) else {
                continue;
            };
            let Some(edit) = difference(&work.text(), &shared.text()) else {
                continue;
            };
            if work.test(SHARE, edit).await == Outcome::Fail {
                document = shared;
                sizes.remove(region);
                gone.push(original);
                break;
            }
        }
    }
    document
}

/// Lowers each of the first `head` bytes of the payload that the current best is restricted to:
/// tests it as 0, else as 1, else as half of its value again and again, until the search has asked
/// for `end` tests.
async fn lower_bytes(work: &mut CurrentBest, head: usize, end: usize) {
    for at in 0..head.min(work.len()) {
        for value in [0, 1] {
            if lower_to(work, at, value, end).await {
                break;
            }
        }
        // The value is a limit: half of it may do.
        while let Some(value @ 4..) = work.text().get(at).copied() {
            if !lower_to(work, at, value / 2, end).await {
                break;
            }
        }
    }
}

/// Tests the file with `value` written over the byte at position `at`, if that is larger and the
/// search has asked for less than `end` tests. Returns whether the byte is at most `value`
/// afterwards; true if there is no such byte.
async fn lower_to(work: &mut CurrentBest, at: usize, value: u8, end: usize) -> bool {
    if work.text().get(at).is_none_or(|byte| *byte <= value) {
        return true;
    }
    if work.asked() >= end {
        return false;
    }
    let replacement = Replacement {
        at: at..at + 1,
        with: vec![value],
    };
    work.test(LOWER, Edit::Set(vec![replacement])).await == Outcome::Fail
}

/// The deletable parts of a document as units of a list search. Deleting a part deletes all parts
/// inside of it, too.
struct Parts {
    document: Arc<dyn Document>,
    /// For each part of the document, the index of the part that follows its last descendant in
    /// pre-order.
    last: Vec<usize>,
}

impl Parts {
    fn of(document: Arc<dyn Document>) -> Parts {
        let last = document.parts();
        Parts { document, last }
    }

    /// Returns the indices of the parts that the ranges `cuts` delete, without those inside of
    /// another deleted part.
    fn gone(&self, cuts: &[Range<usize>]) -> Vec<usize> {
        let mut gone = Vec::new();
        for cut in cuts {
            let mut at = cut.start;
            while at < cut.end {
                match self.last[at] <= cut.end {
                    true => {
                        gone.push(at);
                        at = self.last[at];
                    }
                    false => at += 1,
                }
            }
        }
        gone
    }
}

impl Units for Parts {
    fn rule(&self) -> &'static str {
        PARTS
    }

    fn len(&self) -> usize {
        self.last.len()
    }

    fn edit(&self, work: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        let gone = self.gone(cuts);
        if gone.is_empty() {
            return None;
        }
        difference(&work.text(), &self.document.without(&gone).text())
    }

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let tops = self.gone(cuts);
        let gone_within = |cut: &Range<usize>| -> usize {
            let inside = tops.iter().filter(|top| cut.contains(top));
            inside.map(|top| self.last[*top] - top).sum()
        };
        let stand = cuts
            .iter()
            .map(|cut| cut.len() - gone_within(cut))
            .collect();
        *self = Parts::of(self.document.without(&tops));
        stand
    }

    fn is_all_untested(&self) -> bool {
        false
    }
}
