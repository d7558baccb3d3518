//! The passes over a file of a known format: its parts are deleted, and its payloads (changeable
//! bytes) are reduced, while lengths, counts, offsets and checksums stay correct.

use std::ops::Range;
use std::sync::Arc;

use crate::document::{Document, Format, Structure};
use crate::passes::by_structure::reduce_lines;
use crate::passes::current_best::CurrentBest;
use crate::passes::envelope::difference;
use crate::passes::list::ListSearch;
use crate::passes::lower::{drop_rows, lower, write_zeros};
use crate::passes::markup::markup;
use crate::passes::normalize::normalize;
use crate::passes::parts::{
    FRUITLESS_PARTS, GroupKind, delete_columns, delete_groups_and_parts, delete_parts, delete_tied,
    raise_items, unwrap_items,
};
use crate::passes::structure::structure;
use crate::passes::units::{Bytes, Positions, Units};
use crate::{Edit, Outcome};

/// Name, in logs, of the pass that reduces payloads (changeable bytes) of a file of a known format.
const PAYLOAD: &str = "payload";
/// Name, in logs, of the test in which compressed payloads (changeable bytes) of a file are
/// compressed anew.
const REPACK: &str = "repack";
/// Name, in logs, of the test in which a file is rewritten with the same content in fewer bytes.
const COMPACT: &str = "compact";
/// Number of successive needed bytes of a payload (changeable bytes) after which the reduction of
/// the payload ends. At the end of the search, single deletions still try all bytes of the file.
const FRUITLESS_BYTES: usize = 128;
/// Sizes, in bytes, of records that a payload (changeable bytes) may consist of, such as the colors
/// of a palette. If no single byte of a payload of [`FEW_BYTES`] or more could be deleted, whole
/// records of these sizes are tried.
const RECORDS: [usize; 3] = [2, 3, 4];
/// Maximum size, in bytes, of payloads (changeable bytes) that count as small, such as headers.
pub(super) const FEW_BYTES: usize = 32;
/// Number of successive tests of single bytes, all needed, after which the reduction of a small
/// payload (changeable bytes) ends. The same number of needed records ends the deletion of records
/// from a larger payload.
pub(super) const FRUITLESS_FEW: usize = 8;
/// Maximum number of payloads (changeable bytes) of a file that are reduced one by one; if there
/// are more, all are reduced together.
pub(super) const EACH: usize = 32;
/// Minimum size, in bytes, of payloads (changeable bytes) that are reduced as texts, by lines and
/// brackets.
const TEXT: usize = 32;
/// Minimum size, in bytes, of payloads (changeable bytes) in which it is tested whether the values
/// of bytes matter.
const NORMALIZED: usize = 4;
/// Name, in logs, of the pass that replaces pieces of a file by their shortest valid form.
const LEAST: &str = "least";
/// Name, in logs, of the pass that removes a region of a file and lets the offsets that referred to
/// it refer to other bytes.
const SHARE: &str = "share";
/// Minimum size, in bytes, of a region of a file whose removal is tested. The offsets that refer to
/// the region are then made to refer to other bytes.
const WORTH_SHARING: usize = 4;
/// Minimum size, in bytes, of a region for two tests of its removal: offsets then refer to the
/// beginning of the file in one test, and to the largest other region in the other. For a smaller
/// region, only the first test is made.
const WORTH_TWO_TESTS: usize = 8;
/// Maximum number of regions of a file, the largest ones, whose removal is tested by letting
/// offsets refer to other bytes.
const MOST_SHARED: usize = 16;
/// Maximum number of rounds in which payloads (changeable bytes), values and parts are reduced in
/// turn.
const ROUNDS: usize = 3;
/// Minimum size of a file, in bytes, whose payloads (changeable bytes) are reduced roughly before
/// they are reduced thoroughly.
const LARGE: usize = 1024;
/// Number of successive tests that delete little, after which a step of the rough reduction of a
/// payload (changeable bytes) ends.
const IMPATIENT: usize = 12;
/// Maximum number of rounds in which payloads (changeable bytes) are reduced roughly.
const ROUGH_ROUNDS: usize = 8;
/// One round of rough reduction must delete at least the file's size, in bytes, divided by this
/// number for another round to follow.
const WORTH_ANOTHER: usize = 32;

/// How carefully a payload (changeable bytes) is reduced: roughly, which ends after a few fruitless
/// tests, or thoroughly.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// Each step of the reduction of a payload (changeable bytes) ends after [`IMPATIENT`]
    /// successive tests that delete little.
    Rough,
    /// Each step of the reduction of a payload (changeable bytes) tries all that it can, up to the
    /// step's own limits.
    Thorough,
}

/// Number of tests, counted from the opening of a file by its format, in which the format must
/// prove useful: if none of them has reduced the file, payloads (changeable bytes) are no longer
/// reduced.
const TRIAL: usize = 40;

/// The first [`TRIAL`] tests that reduce a file by its format; they show whether the format helps.
struct Trial {
    /// Number of tests of the search that gave FAIL before the trial; if there are as many after
    /// it, the trial has reduced nothing.
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

/// Reduces a file by its format: deletes parts, reduces payloads (changeable bytes), and lowers
/// values. Returns true if a changed file still failed, and so became the current best text; false,
/// without a test, if the file is not of the format.
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
    document = delete_columns(work, document).await;
    document = raise_items(work, document).await;
    document = compact(work, document, format).await;
    document = repack(work, document).await;
    document = least(work, document).await;
    document = reduce_roughly(work, document, format, &trial).await;
    document = reduce_carefully(work, document, format, &trial).await;
    document = unwrap_items(work, document).await;
    let tied = work.reductions();
    delete_tied(work, document).await;
    // What nothing refers to any more may be bytes of no format.
    if work.reductions() > tied
        && let Some(document) = format.open(&work.text())
    {
        reduce_carefully(work, document, format, &trial).await;
    }
    work.reductions() > before
}

/// Parses a file anew after other passes have changed it, deletes its parts, and replaces items by
/// items inside of them. Does nothing if `known` is not a file format.
pub(super) async fn delete_parts_again(work: &mut CurrentBest, known: &Structure) {
    if let Structure::Format(format) = known
        && let Some(document) = format.open(&work.text())
    {
        let document = delete_parts(work, document).await;
        raise_items(work, document).await;
    }
}

/// Reduces payloads (changeable bytes), lowers values, lets offsets share regions, and deletes
/// parts of a file, in rounds until nothing changes. Returns the smaller document (the parsed
/// file).
async fn reduce_carefully(
    work: &mut CurrentBest,
    mut document: Arc<dyn Document>,
    format: &dyn Format,
    trial: &Trial,
) -> Arc<dyn Document> {
    for _ in 0..ROUNDS {
        let (payloads, size) = (work.reductions(), work.len());
        document = reduce_payloads(work, document, trial, Care::Thorough).await;
        document = reduce_equal(work, document).await;
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
        document = compact(work, document, format).await;
        if work.reductions() == parts && !lowered {
            break;
        }
    }
    document
}

/// Reduces a large file in rough rounds: each reduces payloads (changeable bytes) and lowers
/// values, ending a step after [`IMPATIENT`] tests that delete little, and then deletes parts.
/// Rounds repeat as long as they delete much, because a part may be needed only by a payload, and a
/// payload only by another one. Returns the smaller document (the parsed file).
async fn reduce_roughly(
    work: &mut CurrentBest,
    mut document: Arc<dyn Document>,
    format: &dyn Format,
    trial: &Trial,
) -> Arc<dyn Document> {
    for _ in 0..ROUGH_ROUNDS {
        let size = work.len();
        if size < LARGE {
            break;
        }
        document = reduce_payloads(work, document, trial, Care::Rough).await;
        work.limit_fruitless(Some(IMPATIENT));
        document = lower(work, document).await;
        work.limit_fruitless(None);
        document = delete_parts(work, document).await;
        document = compact(work, document, format).await;
        if (size - work.len()) * WORTH_ANOTHER < size {
            break;
        }
    }
    document
}

/// Tests the file rewritten with the same content in as few bytes as possible, if its format can be
/// rewritten. If the new file still fails, deletes parts of it, and repeats both as long as the
/// file becomes smaller. Returns the smaller document (the parsed file).
async fn compact(
    work: &mut CurrentBest,
    mut document: Arc<dyn Document>,
    format: &dyn Format,
) -> Arc<dyn Document> {
    for _ in 0..ROUGH_ROUNDS {
        let size = work.len();
        let Some(compact) = format.compact(&work.text()) else {
            break;
        };
        if let Some(edit) = difference(&work.text(), &compact.text())
            && work.test(COMPACT, edit).await != Outcome::Fail
        {
            break;
        }
        document = delete_parts(work, compact).await;
        if work.len() == size {
            break;
        }
    }
    document
}

/// Tests the file with its compressed payloads compressed anew. If it still fails, returns the new
/// document, whose decompressed payloads can be changed; if not, returns a document that treats
/// compressed payloads as bytes. Makes no test if the new file equals the old one or is larger.
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

/// Reduces the payloads (changeable bytes) of a file, the largest first, and returns the document
/// (the parsed file) with the reduced payloads. First tests each payload without all of its
/// content; then reduces the needed ones one by one. With [`Care::Rough`], leaves out small ones,
/// such as headers. If there are more than [`EACH`] payloads, reduces all of them together, as one
/// text. Stops early if the first tests by the format, which `trial` watches, have not reduced the
/// file.
async fn reduce_payloads(
    work: &mut CurrentBest,
    mut document: Arc<dyn Document>,
    trial: &Trial,
    care: Care,
) -> Arc<dyn Document> {
    let payloads = document.payloads();
    let mut order: Vec<usize> = (0..payloads.len()).collect();
    if order.len() > EACH {
        work.enter(document, 0..payloads.len());
        delete_contents(work, &payloads).await;
        let len = work.len();
        if len > 0 && work.cut(PAYLOAD, 0..len).await != Outcome::Fail {
            reduce_content(work, care).await;
        }
        work.limit_fruitless(None);
        return work.leave();
    }
    order.sort_by_key(|index| std::cmp::Reverse(payloads[*index].len()));
    if care == Care::Rough {
        order.retain(|index| payloads[*index].len() > FEW_BYTES);
    }
    for is_whole in [true, false] {
        let mut needed = Vec::new();
        for index in order {
            if trial.has_failed(work) {
                return document;
            }
            work.enter(document, index..index + 1);
            let len = work.len();
            match is_whole {
                true if len > 0 && work.cut(PAYLOAD, 0..len).await != Outcome::Fail => {
                    needed.push(index);
                }
                true => {}
                false => reduce_content(work, care).await,
            }
            work.limit_fruitless(None);
            document = work.leave();
        }
        order = needed;
    }
    document
}

/// Deletes the whole contents of those payloads (changeable bytes) that the failure does not need.
/// `payloads` are the contents; joined, they must be the text that passes edit at present.
async fn delete_contents(work: &mut CurrentBest, payloads: &[Arc<[u8]>]) {
    let mut start = 0;
    let places = payloads.iter().map(|payload| {
        let place = start..start + payload.len();
        start = place.end;
        vec![place]
    });
    let places = places.filter(|place| !place[0].is_empty());
    let mut contents = Positions::new(PAYLOAD, places.collect());
    let mut list = ListSearch::new(work, &mut contents).stop_after(FRUITLESS_PARTS);
    list.reduce().await;
}

/// Deletes bytes of the payload (changeable bytes) that passes edit at present, and writes `0` over
/// bytes whose values do not matter. `care`: whether each step ends after a few tests that delete
/// little, or tries all that it can.
async fn reduce_content(work: &mut CurrentBest, care: Care) {
    let len = work.len();
    let limit = (care == Care::Rough).then_some(IMPATIENT);
    let is_text = work.is_text() && len >= TEXT;
    if is_text {
        work.limit_fruitless(limit);
        markup(work).await;
        work.limit_fruitless(limit);
        structure(work, 1).await;
        work.limit_fruitless(limit);
        reduce_lines(work).await;
        // Single bytes of a text with a structure are few, compared with what else is left of the file.
        if care == Care::Rough && work.len() < len {
            return;
        }
    } else if len >= NORMALIZED {
        work.limit_fruitless(limit);
        normalize(work).await;
    }
    work.limit_fruitless(limit);
    let fruitless = match work.len() {
        0..=FEW_BYTES => FRUITLESS_FEW,
        _ => FRUITLESS_BYTES,
    };
    let bytes = work.len();
    delete_groups(work, 1, fruitless).await;
    if care == Care::Rough {
        return;
    }
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

/// Reduces the payload (changeable bytes) that passes edit at present, and that is a text, with the
/// same care ([`Care::Thorough`]) as payloads of a file of a known format.
pub(super) async fn reduce_text(work: &mut CurrentBest) {
    reduce_content(work, Care::Thorough).await;
    work.limit_fruitless(None);
}

/// Deletes bytes from all payloads (changeable bytes) with the same content at once, such as a name
/// that must be the same at several places. Returns the document (the parsed file) with the reduced
/// payloads.
async fn reduce_equal(work: &mut CurrentBest, document: Arc<dyn Document>) -> Arc<dyn Document> {
    let mut equal = EqualPayloads {
        document,
        at: Vec::new(),
        len: 0,
    };
    let count = equal.document.payloads().len();
    for first in 0..count.min(EACH * EACH) {
        let payloads = equal.document.payloads();
        let content = &payloads[first];
        let same = |index: &usize| payloads[*index] == *content;
        if content.len() < NORMALIZED || (0..first).any(|index| same(&index)) {
            continue;
        }
        equal.at = (first..count).filter(same).collect();
        equal.len = content.len();
        if equal.at.len() > 1 {
            let mut list = ListSearch::new(work, &mut equal).stop_after(FRUITLESS_FEW);
            list.reduce().await;
        }
    }
    equal.document
}

/// The bytes of several payloads (changeable bytes) of a document that have the same content, as
/// units of a list search: deleting a unit deletes the byte at one position from all of these
/// payloads.
struct EqualPayloads {
    document: Arc<dyn Document>,
    /// Indices, in the document (the parsed file), of the payloads (changeable bytes) that have the
    /// same content.
    at: Vec<usize>,
    /// Size of each of the payloads (changeable bytes), in bytes.
    len: usize,
}

impl EqualPayloads {
    /// Returns a copy of the document (the parsed file) in which the bytes at the positions `cuts`
    /// are deleted from all payloads of this list, which have equal contents.
    fn without(&self, cuts: &[Range<usize>]) -> Arc<dyn Document> {
        let mut payloads = self.document.payloads();
        let content = payloads[self.at[0]].clone();
        let is_kept = |at: &usize| !cuts.iter().any(|cut| cut.contains(at));
        let kept = (0..content.len()).filter(is_kept).map(|at| content[at]);
        let kept: Arc<[u8]> = kept.collect();
        for index in &self.at {
            payloads[*index] = kept.clone();
        }
        self.document.with(&payloads)
    }
}

impl Units for EqualPayloads {
    fn rule(&self) -> &'static str {
        PAYLOAD
    }

    fn len(&self) -> usize {
        self.len
    }

    fn edit(&self, work: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        difference(&work.text(), &self.without(cuts).text())
    }

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        self.document = self.without(cuts);
        self.len -= cuts.iter().map(Range::len).sum::<usize>();
        vec![0; cuts.len()]
    }
}

/// Replaces pieces of the file, such as bodies of functions, by their shortest valid form; then
/// deletes parts that only these pieces needed. Returns the smaller document (the parsed file).
async fn least(work: &mut CurrentBest, document: Arc<dyn Document>) -> Arc<dyn Document> {
    delete_groups_and_parts(work, document, REDUCIBLE).await
}

/// The pieces of a document (a parsed file) that have a shorter valid form, as groups that a search
/// deletes: to delete one is to replace it by that form.
const REDUCIBLE: GroupKind = GroupKind {
    rule: LEAST,
    count: |document| document.reducible(),
    without: |document, groups| document.reduced(groups),
    fruitless: FRUITLESS_PARTS,
    is_all_untested: true,
};

/// Deletes groups of `group` neighboring bytes from the payload (changeable bytes) that passes edit
/// at present. Ends when `fruitless` groups in a row were needed.
async fn delete_groups(work: &mut CurrentBest, group: usize, fruitless: usize) {
    let mut groups = Bytes::within(PAYLOAD, 0..work.len(), group);
    ListSearch::new(work, &mut groups)
        .stop_after(fruitless)
        .reduce()
        .await;
}

/// Removes regions of the file to which offsets refer, the largest first. The offsets then refer to
/// the beginning of the file or to the largest other region, which works where the program does not
/// look at the content that they lead to. Returns the smaller document (the parsed file).
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
        // A small region is hardly worth a second test.
        let is_small = sizes[region] < WORTH_TWO_TESTS;
        let others = others
            .max_by_key(|other| sizes[*other])
            .filter(|_| !is_small);
        for with in std::iter::once(None).chain(others.map(Some)) {
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
