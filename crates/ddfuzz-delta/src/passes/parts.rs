//! The pass `parts`: deletes parts of a file of a known format, from the outermost to the innermost.

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
/// Name, in logs, of the pass that writes items in place of items around them.
pub(super) const RAISE: &str = "raise";
/// Number of successive items that cannot be replaced by one inside of them, after which no further ones
/// are.
const FRUITLESS_WRAPPERS: usize = 8;
/// Maximum size, in bytes, of texts in which all items inside of an item are written in place of it.
const UNWRAPPED: usize = 256;
/// Number of successive parts of a file that turn out to be needed for the failure, after which the
/// deletion of parts ends.
pub(super) const FRUITLESS_PARTS: usize = 32;
/// Number of successive groups that are otherwise deleted together with others and turn out to be needed,
/// after which the deletion of such groups ends.
const FRUITLESS_TIED: usize = 8;
/// Minimum number of parts directly inside of one part for them to be a list of their own.
const CROWDED: usize = 16;
/// Fraction of the bytes, as a divisor, that the deletion of parts of all depths together must delete, or
/// parts are deleted depth by depth as well.
const WORTHWHILE: usize = 4;
/// Number of tests without much gain after which parts of all depths are no longer deleted together.
const IMPATIENT: usize = 24;

/// Deletes the parts of `document` that the failure does not need: first all parts, in one test, and
/// parts of all depths together; if that gains little, or takes long, parts of one depth after the other, the
/// outermost first. Returns the smaller document.
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

/// Writes items of `document`, such as inner lists, in place of items around them, and deletes parts that
/// only those needed. Ends after [`IMPATIENT`] tests without much gain. Returns the smaller document.
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

/// Items that contain another item: to delete one is to write the largest item inside of it in place of it.
const WRAPPERS: GroupKind = GroupKind {
    rule: RAISE,
    count: |document| document.wrappers(),
    without: |document, wrappers| document.unwrapped(wrappers, InnerItems::Largest),
    fruitless: FRUITLESS_WRAPPERS,
    is_all_untested: true,
};

/// Writes all items that are directly inside of an item in place of it, in a small text, and deletes parts
/// that only the item needed. Returns the smaller document.
pub(super) async fn unwrap_items(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
) -> Arc<dyn Document> {
    match work.len() {
        0..=UNWRAPPED => delete_groups_and_parts(work, document, SHELLS).await,
        _ => document,
    }
}

/// Items that contain other items: to delete one is to write all that are inside of it in place of it.
const SHELLS: GroupKind = GroupKind {
    without: |document, wrappers| document.unwrapped(wrappers, InnerItems::All),
    ..WRAPPERS
};

/// Deletes columns of the picture in `document`, and parts that only those needed, such as colors.
/// Returns the smaller document.
pub(super) async fn delete_columns(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
) -> Arc<dyn Document> {
    match document.columns() {
        0 | 1 => document,
        _ => delete_groups_and_parts(work, document, COLUMNS).await,
    }
}

/// Columns of a picture.
const COLUMNS: GroupKind = GroupKind {
    rule: PARTS,
    count: |document| document.columns(),
    without: |document, columns| document.without_columns(columns),
    fruitless: FRUITLESS_PARTS,
    is_all_untested: false,
};

/// Deletes the groups of `document` that are otherwise deleted together with others, such as the
/// entries of a directory whose files stay. Ends after [`FRUITLESS_TIED`] successive needed ones.
/// Returns the smaller document.
pub(super) async fn delete_tied(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
) -> Arc<dyn Document> {
    delete_groups_of(work, document, TIED).await
}

/// Groups that are deleted together with others.
const TIED: GroupKind = GroupKind {
    rule: PARTS,
    count: |document| document.tied(),
    without: |document, groups| document.without_tied(groups),
    fruitless: FRUITLESS_TIED,
    is_all_untested: false,
};

/// Which groups of a document are deleted, and how.
pub(super) struct GroupKind {
    /// Name, in logs, of the pass.
    pub rule: &'static str,
    /// Returns how many such groups a document has.
    pub count: fn(&dyn Document) -> usize,
    /// Returns a copy of a document without the groups with these indices, or with less in place of them.
    pub without: fn(&dyn Document, &[usize]) -> Arc<dyn Document>,
    /// Number of successive needed groups after which the search ends.
    pub fruitless: usize,
    /// Whether the document without all of them may be untested.
    pub is_all_untested: bool,
}

/// Deletes the groups of this kind from `document`. Returns the smaller document.
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

/// Deletes the groups of this kind from `document`, and then parts that only those groups needed.
/// Returns the smaller document.
pub(super) async fn delete_groups_and_parts(
    work: &mut CurrentBest,
    document: Arc<dyn Document>,
    kind: GroupKind,
) -> Arc<dyn Document> {
    let before = work.reductions();
    let document = delete_groups_of(work, document, kind).await;
    delete_parts_since(work, document, before).await
}

/// Deletes parts of `document` if anything was deleted since there were `before` reductions. Returns the
/// smaller document.
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

/// The groups of one kind in a document, as units of a list search.
struct Groups {
    document: Arc<dyn Document>,
    kind: GroupKind,
}

impl Groups {
    /// Returns the document without the groups in the ranges `cuts`.
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

/// Where the parts of a document are in its tree.
struct Places {
    /// Number of parts around each part.
    depths: Vec<usize>,
    /// Index of the part around each part; `None` for the outermost ones.
    around: Vec<Option<usize>>,
    /// Number of parts directly inside of each part.
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

    /// Returns the scopes of the parts with many parts of `depth` inside, from the last to the first.
    fn crowded(&self, depth: usize) -> Vec<Scope> {
        let parts = (0..self.inside.len()).rev();
        let crowded =
            parts.filter(|part| self.depths[*part] + 1 == depth && self.inside[*part] >= CROWDED);
        crowded.map(Scope::Inside).collect()
    }

    /// Returns true if the part with the index `part` is in the scope.
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

/// Which parts of a document are in a list.
#[derive(Clone, Copy)]
enum Scope {
    /// All parts.
    All,
    /// The parts directly inside of the part with this index.
    Inside(usize),
    /// The parts with so many parts around them, but for those with many parts beside them.
    Rest(usize),
}

/// Some of the deletable parts of a document as units of a list search. Deleting a part deletes all
/// parts inside of it, too.
struct Parts {
    document: Arc<dyn Document>,
    scope: Scope,
    /// Indices of the parts, in pre-order over all parts of the document.
    at: Vec<usize>,
    /// For each unit, the index in the list of the unit that follows the last one inside of it.
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

    /// Returns the units that the ranges `cuts` delete, without those inside of another deleted one.
    /// There may be fewer units than the list had before: some are deleted together with others.
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

    /// Returns the document without the units `tops`.
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
