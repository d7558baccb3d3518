//! The pass `lower`: lowers values in payloads (changeable bytes) of a file of a known format, such
//! as the size of a picture in its header, and deletes rows and columns of data together with
//! lowering the number that counts them.

use std::sync::Arc;

use crate::document::Document;
use crate::passes::container::{EACH, FEW_BYTES, FRUITLESS_FEW};
use crate::passes::current_best::CurrentBest;
use crate::passes::envelope::difference;
use crate::passes::field::Form;
use crate::passes::list::ListSearch;
use crate::passes::normalize::OtherBytes;
use crate::passes::units::Units;
use crate::{Edit, Outcome, Replacement};

/// Name, in logs, of the pass that lowers values in payloads (changeable bytes) of a file, such as
/// the size of a picture in a header.
const LOWER: &str = "lower";
/// In a payload (changeable bytes) of more than [`FEW_BYTES`] bytes, only the values of this many
/// bytes at its beginning are lowered, because they may be a header.
const HEADER: usize = 8;
/// Values of payloads (changeable bytes) are lowered only in a file whose largest payload has at
/// least this size, in bytes: it may be needed only because a header states its size.
const RESISTING: usize = 32;
/// Maximum number of tests of one step of the pass: lowering values, deleting rows, or deleting
/// columns. In lowering values, each success adds one test.
const MOST_LOWERED: usize = 64;
/// Minimum number of rows or columns of data that are deleted together with lowering their number.
const FEWEST_ROWS: usize = 8;
/// Maximum number of bytes at the beginning of a row that belong to no column, such as the filter
/// type of a row of PNG.
const MOST_HEAD: usize = 4;
/// Minimum number of bytes by which writing 0 over all bytes of a compressed payload (changeable
/// bytes) must shorten the file for the pass to try single bytes of the payload.
const WORTH_ZEROS: usize = 16;
/// Lowers values at the beginnings of payloads (changeable bytes), such as the width in the header
/// of a picture or the number of records in a table. Does so only if the largest payload still has
/// at least [`RESISTING`] bytes, since it may be needed only because a header states its size.
/// Returns the changed document (the parsed file).
pub(super) async fn lower(
    work: &mut CurrentBest,
    mut document: Arc<dyn Document>,
) -> Arc<dyn Document> {
    let payloads = document.payloads();
    let mut end = work.asked() + MOST_LOWERED;
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
        lower_bytes(work, head, &mut end).await;
        document = work.leave();
    }
    document
}

/// Deletes rows, and then columns, of the largest payload (data of the file that can be changed),
/// which may be a table such as the pixels of a picture. Candidates for the number of rows or
/// columns are numbers in small payloads that divide the size of the largest one, or of one of its
/// rows. Such a number is lowered, and as many rows or columns are deleted. Returns the changed
/// document (the parsed file).
pub(super) async fn drop_rows(
    work: &mut CurrentBest,
    mut document: Arc<dyn Document>,
) -> Arc<dyn Document> {
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

/// Returns all numbers, each once, that may be the number of rows of the payload (changeable data
/// of a file) with the index `data`: numbers that stand in small payloads, are at least 2, and
/// divide the size in bytes of payload `data`. The order is that of their places in the file.
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

/// Lowers the number of columns of a table, such as the pixels of a picture, in a parsed file.
/// `data`: index of the payload (bytes of the file that can be changed) that holds the table;
/// `rows`: its number of rows. Each number in another, small payload that fits the size of a row is
/// taken for the number of columns: the file is tested with a lower number, and with fewer columns
/// in each row. Ends when the search has made `end` tests in all. Returns the document (the parsed
/// file) with the smaller table.
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

/// The place of a number in the payloads (changeable bytes) of a document.
#[derive(Clone, Copy)]
struct Place {
    /// Index, in the document (the parsed file), of the payload (changeable bytes) that contains
    /// the number.
    payload: usize,
    form: Form,
    /// Offset, in bytes, of the number in its payload (changeable bytes).
    at: usize,
}

impl Place {
    /// Reads the number at this place (index of a payload (changeable bytes), offset and encoding)
    /// from `payloads`; `None` if the number is too large for this machine, or if the payload ends
    /// before the number does.
    fn number(&self, payloads: &[Arc<[u8]>]) -> Option<usize> {
        let number = self.form.read(&payloads[self.payload], self.at)?;
        usize::try_from(number).ok()
    }
}

/// Returns all places at which small payloads (changeable bytes) may contain a number, for each
/// width and byte order.
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

/// A guess that a number in one payload (changeable bytes) counts the columns of another payload,
/// which consists of rows of equal size. Rows of a picture are treated as columns of a single row.
struct Columns {
    place: Place,
    /// Value of the number, which is the number of columns if the guess is right.
    count: usize,
    /// Index, in the document (the parsed file), of the payload (changeable bytes) whose columns
    /// the number counts.
    data: usize,
    /// Number of rows of the payload (changeable bytes) whose columns are counted.
    rows: usize,
    /// Number of bytes at the beginning of each row that belong to no column.
    head: usize,
    /// Number of bytes of each row that belong to one column.
    size: usize,
}

impl Columns {
    /// Returns the guess that the number at `place` counts the columns of the payload (changeable
    /// bytes) at the index `data`, which has `rows` rows; `None` if the sizes do not fit, or if the
    /// payload or the number is too small.
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

    /// Finds by bisection the smallest number of columns with which the file still fails, the first
    /// or the last ones of each row, and deletes all other columns. Ends early when the search has
    /// made `end` tests in all. Returns the smaller document (the parsed file).
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

    /// Tests the file with only the first `columns` columns of each row and, if it does not fail,
    /// with only the last ones. Returns the document (the parsed file) that fails; `None` if
    /// neither does.
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

/// Writes 0 over bytes of compressed payloads (changeable bytes) whose values do not matter, where
/// that makes the file shorter. Ends in each payload after [`FRUITLESS_FEW`] successive bytes that
/// must keep their values. Returns the document (the parsed file).
pub(super) async fn write_zeros(
    work: &mut CurrentBest,
    mut document: Arc<dyn Document>,
) -> Arc<dyn Document> {
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

/// Lowers each of the first `head` bytes of the payload (changeable bytes) that passes edit at
/// present: tests 0 in its place and, if the file then does not fail, 1; otherwise halves the byte
/// as long as the file fails. Ends when the search has made `end` tests in all; each success raises
/// `end` by one.
async fn lower_bytes(work: &mut CurrentBest, head: usize, end: &mut usize) {
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

/// Tests the file with `value` written over the byte at position `at`. Does not test if the byte is
/// at most `value` already, or if there is no such byte (returns true), nor if the search has made
/// `end` tests in all (returns false). Otherwise returns whether the file still fails; success
/// raises `end` by one.
async fn lower_to(work: &mut CurrentBest, at: usize, value: u8, end: &mut usize) -> bool {
    if work.text().get(at).is_none_or(|byte| *byte <= value) {
        return true;
    }
    if work.asked() >= *end {
        return false;
    }
    let replacement = Replacement {
        at: at..at + 1,
        with: vec![value],
    };
    let is_lower = work.test(LOWER, Edit::Set(vec![replacement])).await == Outcome::Fail;
    *end += usize::from(is_lower);
    is_lower
}
