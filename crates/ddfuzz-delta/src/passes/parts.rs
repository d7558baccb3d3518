//! The pass `parts`: deletes parts of a file of a known format, from the outermost to the
//! innermost.

use std::ops::Range;
use std::sync::Arc;

use crate::Edit;
use crate::document::{Document, InnerItems};
use crate::passes::current_best::CurrentBest;
use crate::passes::envelope::difference;
use crate::passes::list::ListSearch;
use crate::passes::units::Units;

/// Name, in logs, of the pass that deletes parts of a file of a known format.
const PARTS: &str = "parts";
/// Name, in logs, of the pass that replaces items of a nested format by items inside of them.
pub(super) const RAISE: &str = "raise";
/// Number of successive items that cannot be replaced by an item inside of them, after which no
/// further ones are tried.
const FRUITLESS_WRAPPERS: usize = 8;
/// Maximum size, in bytes, of texts in which items are replaced by all of the items directly inside
/// of them.
const UNWRAPPED: usize = 256;
/// Number of successive parts of a file that turn out to be needed for the failure, after which the
/// deletion of parts ends.
pub(super) const FRUITLESS_PARTS: usize = 32;
/// The deletion of tied groups (groups of bytes that are mostly deleted together with a part,
/// [`Document::tied`]) ends after this many successive groups that the failure needs.
const FRUITLESS_TIED: usize = 8;
/// A part with at least this many parts directly inside of it gets a list search over these alone.
/// All other parts of one depth are searched in one list.
const CROWDED: usize = 16;
/// The deletion of parts of all depths together must delete at least the file's size, in bytes,
/// divided by this number; otherwise parts are deleted once more, depth by depth.
const WORTHWHILE: usize = 4;
/// Number of successive tests that delete little, after which each of two passes ends: the deletion
/// of parts of all depths together, and the replacement of items by items inside of them.
const IMPATIENT: usize = 24;

/// Deletes the parts of `document` (a parsed file) that the failure does not need. Tests the file
/// without all parts, and then searches one list of all parts, whatever their depths in the tree.
/// If that deletes less than the file's size divided by [`WORTHWHILE`], or ends early, searches a
/// list for each depth, the outermost first. Returns the smaller document.
pub(super) async fn delete_parts(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
) -> Arc<dyn Document> {
    let mut parts = Parts::of(document, Scope::All);
    let all = 0..parts.len();
    if all.is_empty() {
        return parts.document;
    }
    let size = work.len();
    work.limit_fruitless(Some(IMPATIENT));
    let mut list = ListSearch::new(work, &mut parts).stop_after(FRUITLESS_PARTS);
    list.delete(all).await;
    list.reduce().await;
    let mut document = parts.document;
    // A part may go although one inside of it is needed as long as it is there.
    let is_done = !work.is_limit_reached() && (size - work.len()) * WORTHWHILE >= size;
    work.limit_fruitless(None);
    if is_done || !Places::of(document.as_ref()).depths.contains(&1) {
        return document;
    }
    for depth in 0.. {
        let places = Places::of(document.as_ref());
        if !places.depths.contains(&depth) {
            break;
        }
        // A part that precedes a list mostly keeps its index when parts of the list are deleted.
        let mut scopes = places.crowded(depth);
        scopes.push(Scope::Rest(depth));
        for scope in scopes {
            let mut parts = Parts::of(document, scope);
            let mut list = ListSearch::new(work, &mut parts).stop_after(FRUITLESS_PARTS);
            list.reduce().await;
            document = parts.document;
        }
    }
    document
}

/// Replaces items of `document`, such as lists, by the largest item inside of them, and then
/// deletes parts that only the replaced items needed. Ends after [`IMPATIENT`] successive tests
/// that delete little. Returns the smaller document (the parsed file).
pub(super) async fn raise_items(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
) -> Arc<dyn Document> {
    if document.wrappers() == 0 {
        return document;
    }
    let before = work.reductions();
    work.limit_fruitless(Some(IMPATIENT));
    let document = delete_groups_of(work, document, WRAPPERS).await;
    work.limit_fruitless(None);
    delete_parts_since(work, document, before).await
}

/// The kind of groups for a search that raises items: to delete an item that contains other items
/// is to replace it by the largest item inside of it.
const WRAPPERS: GroupKind = GroupKind {
    rule: RAISE,
    count: |document| document.wrappers(),
    without: |document, wrappers| document.unwrapped(wrappers, InnerItems::Largest),
    fruitless: FRUITLESS_WRAPPERS,
    is_all_untested: true,
};

/// If the text is small, replaces items (values of a format such as CBOR, for example a list) by
/// all of the items directly inside of them, and then deletes parts that only the replaced items
/// needed. Returns the smaller document (the parsed file).
pub(super) async fn unwrap_items(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
) -> Arc<dyn Document> {
    match work.len() {
        0..=UNWRAPPED => delete_groups_and_parts(work, document, SHELLS).await,
        _ => document,
    }
}

/// The kind of groups for a search that removes the shells around items of a document: an item that
/// contains other items is replaced by all of the items directly inside of it.
const SHELLS: GroupKind = GroupKind {
    without: |document, wrappers| document.unwrapped(wrappers, InnerItems::All),
    ..WRAPPERS
};

/// Deletes columns of the picture in `document`, and then parts that only those columns needed,
/// such as colors. Returns the smaller document (the parsed file).
pub(super) async fn delete_columns(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
) -> Arc<dyn Document> {
    match document.columns() {
        0 | 1 => document,
        _ => delete_groups_and_parts(work, document, COLUMNS).await,
    }
}

/// The columns of a picture, as groups of bytes that a search deletes: each column is deleted from
/// all rows at once.
const COLUMNS: GroupKind = GroupKind {
    rule: PARTS,
    count: |document| document.columns(),
    without: |document, columns| document.without_columns(columns),
    fruitless: FRUITLESS_PARTS,
    is_all_untested: false,
};

/// Deletes tied groups of `document` ([`Document::tied`]: groups of bytes that are mostly deleted
/// together with a part) without their parts, such as directory entries whose files stay. Ends
/// after [`FRUITLESS_TIED`] successive needed groups. Returns the smaller document.
pub(super) async fn delete_tied(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
) -> Arc<dyn Document> {
    delete_groups_of(work, document, TIED).await
}

/// The tied groups of a document ([`Document::tied`]), as groups of bytes that a search deletes by
/// themselves; mostly they are deleted together with another part.
const TIED: GroupKind = GroupKind {
    rule: PARTS,
    count: |document| document.tied(),
    without: |document, groups| document.without_tied(groups),
    fruitless: FRUITLESS_TIED,
    is_all_untested: false,
};

/// Describes the pieces of a document (a parsed file) that one pass deletes or makes smaller: how
/// many there are, what the document is without some of them, and when the list search over them
/// ends.
pub(super) struct GroupKind {
    /// Name, in logs, of the pass that deletes pieces of this kind.
    pub rule: &'static str,
    /// Returns how many pieces of this kind a document has.
    pub count: fn(&dyn Document) -> usize,
    /// Returns a copy of a document without the pieces with these indices, or with something
    /// smaller in place of each.
    pub without: fn(&dyn Document, &[usize]) -> Arc<dyn Document>,
    /// Number of successive needed pieces after which the search ends.
    pub fruitless: usize,
    /// True if the document (the parsed file) without all of the pieces is worth a test of its own;
    /// false if it was probably tested before.
    pub is_all_untested: bool,
}

/// Deletes those pieces of this `kind` from `document` (a parsed file) that the failure does not
/// need. Returns the smaller document.
async fn delete_groups_of(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
    kind: GroupKind,
) -> Arc<dyn Document> {
    let fruitless = kind.fruitless;
    let mut groups = Groups { document, kind };
    if groups.len() > 0 {
        let mut list = ListSearch::new(work, &mut groups).stop_after(fruitless);
        list.reduce().await;
    }
    groups.document
}

/// Deletes those pieces of the given `kind` (such as columns) from `document` (a parsed file) that
/// the failure does not need, and then parts that only those pieces needed. Returns the smaller
/// document.
pub(super) async fn delete_groups_and_parts(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
    kind: GroupKind,
) -> Arc<dyn Document> {
    let before = work.reductions();
    let document = delete_groups_of(work, document, kind).await;
    delete_parts_since(work, document, before).await
}

/// Deletes parts of `document` (a parsed file) if a test has reduced the text since the search had
/// `before` reductions (tests that gave FAIL, [`CurrentBest::reductions`]), because fewer parts may
/// be needed then. Returns the smaller document, or `document` itself.
async fn delete_parts_since(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
    before: usize,
) -> Arc<dyn Document> {
    match work.reductions() > before {
        true => delete_parts(work, document).await,
        false => document,
    }
}

/// All pieces of one kind in `document` (a parsed file): the units that a list search tries to
/// delete.
struct Groups {
    document: Arc<dyn Document>,
    kind: GroupKind,
}

impl Groups {
    /// Returns the document (a parsed file) without those of its pieces whose indices are in the
    /// ranges `cuts`.
    fn without(&self, cuts: &[Range<usize>]) -> Arc<dyn Document> {
        let groups: Vec<usize> = cuts.iter().cloned().flatten().collect();
        (self.kind.without)(self.document.as_ref(), &groups)
    }
}

impl Units for Groups {
    fn rule(&self) -> &'static str {
        self.kind.rule
    }

    fn len(&self) -> usize {
        (self.kind.count)(self.document.as_ref())
    }

    fn edit(&self, work: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        difference(&work.text(), &self.without(cuts).text())
    }

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        self.document = self.without(cuts);
        vec![0; cuts.len()]
    }

    fn is_all_untested(&self) -> bool {
        self.kind.is_all_untested
    }
}

/// The position of each part of a document in the tree of parts: its depth, the part around it, and
/// the number of parts inside of it.
struct Places {
    /// For each part, the number of parts around it.
    depths: Vec<usize>,
    /// For each part, the index of the part directly around it; `None` for an outermost part.
    around: Vec<Option<usize>>,
    /// For each part, the number of parts directly inside of it.
    inside: Vec<usize>,
}

impl Places {
    fn of(document: &dyn Document) -> Places {
        let last = document.parts();
        let mut places = Places {
            depths: Vec::with_capacity(last.len()),
            around: Vec::with_capacity(last.len()),
            inside: vec![0; last.len()],
        };
        let mut open: Vec<usize> = Vec::new();
        for index in 0..last.len() {
            while open.last().is_some_and(|part| last[*part] <= index) {
                open.pop();
            }
            places.depths.push(open.len());
            places.around.push(open.last().copied());
            open.last()
                .into_iter()
                .for_each(|part| places.inside[*part] += 1);
            open.push(index);
        }
        places
    }

    /// Returns the lists of parts of a file ([`Scope::Inside`]) that are searched on their own: one
    /// for each part at depth `depth - 1` that has at least [`CROWDED`] parts directly inside of
    /// it. The last such part of the file comes first.
    fn crowded(&self, depth: usize) -> Vec<Scope> {
        let parts = (0..self.inside.len()).rev();
        let crowded =
            parts.filter(|part| self.depths[*part] + 1 == depth && self.inside[*part] >= CROWDED);
        crowded.map(Scope::Inside).collect()
    }

    /// Returns true if the part with the index `part` is in the list of parts that `scope`
    /// describes: all parts, those directly inside of one part, or those of one depth.
    fn is_in(&self, part: usize, scope: Scope) -> bool {
        match (scope, self.around[part]) {
            (Scope::All, _) => true,
            (Scope::Inside(parent), around) => around == Some(parent),
            (Scope::Rest(depth), Some(around)) => {
                self.depths[part] == depth && self.inside[around] < CROWDED
            }
            (Scope::Rest(depth), None) => depth == 0,
        }
    }
}

/// Selects the parts of a document (a parsed file) that one list search tries to delete.
#[derive(Clone, Copy)]
enum Scope {
    /// All parts of the document (the parsed file) are in the list.
    All,
    /// The parts that are directly inside of the part with this index are in the list.
    Inside(usize),
    /// The parts at this depth (with this number of parts around them) are in the list, except
    /// those that have an [`Inside`](Scope::Inside) list of their own.
    Rest(usize),
}

/// Some of the deletable parts of a document as units of a list search. Deleting a part deletes all
/// parts inside of it, too.
struct Parts {
    document: Arc<dyn Document>,
    scope: Scope,
    /// Index, among all parts of the document (the parsed file) in pre-order, of each part in the
    /// list.
    at: Vec<usize>,
    /// For each unit of the list, the index in the list of the unit after the last unit inside of
    /// it.
    last: Vec<usize>,
}

impl Parts {
    fn of(document: Arc<dyn Document>, scope: Scope) -> Parts {
        let places = Places::of(document.as_ref());
        let parts = 0..places.depths.len();
        let at: Vec<usize> = parts.filter(|part| places.is_in(*part, scope)).collect();
        let last = match scope {
            Scope::All => document.parts(),
            Scope::Inside(_) | Scope::Rest(_) => (1..=at.len()).collect(),
        };
        Parts {
            document,
            scope,
            at,
            last,
        }
    }

    /// Returns the units to delete for the ranges `cuts` of indices: a unit is deleted if it and
    /// all units inside of it lie in one of the ranges. A unit inside of a returned one is not
    /// returned, because it is deleted with it. Indices beyond the end of the list are ignored,
    /// because a deletion may also delete parts that are later in the list.
    fn tops(&self, cuts: &[Range<usize>]) -> Vec<usize> {
        let mut tops = Vec::new();
        for cut in cuts {
            let mut at = cut.start;
            while at < cut.end.min(self.at.len()) {
                match self.last[at] <= cut.end {
                    true => {
                        tops.push(at);
                        at = self.last[at];
                    }
                    false => at += 1,
                }
            }
        }
        tops
    }

    /// Returns the document (a parsed file) without the parts that are the units of this list with
    /// the indices `tops`.
    fn without(&self, tops: &[usize]) -> Arc<dyn Document> {
        let gone: Vec<usize> = tops.iter().map(|top| self.at[*top]).collect();
        self.document.without(&gone)
    }
}

impl Units for Parts {
    fn rule(&self) -> &'static str {
        PARTS
    }

    fn len(&self) -> usize {
        self.at.len()
    }

    fn edit(&self, work: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        let tops = self.tops(cuts);
        if tops.is_empty() {
            return None;
        }
        difference(&work.text(), &self.without(&tops).text())
    }

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        let tops = self.tops(cuts);
        let gone_within = |cut: &Range<usize>| -> usize {
            let inside = tops.iter().filter(|top| cut.contains(top));
            inside.map(|top| self.last[*top] - top).sum()
        };
        let stand = cuts
            .iter()
            .map(|cut| cut.len() - gone_within(cut))
            .collect();
        *self = Parts::of(self.without(&tops), self.scope);
        stand
    }

    fn is_all_untested(&self) -> bool {
        false
    }
}
