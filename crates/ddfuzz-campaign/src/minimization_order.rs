//! The order in which the entries (stored inputs) of a group are minimized.
//!
//! First comes the founder (first finding). When the group has a result, inputs follow that may
//! give a smaller result: inputs smaller than the result, and inputs found by runs that are at most
//! a tenth as large as the smallest input minimized so far. Some inputs are *slips*: candidates
//! that crashed in this group while an entry of another group was minimized. A slip is recorded in
//! the log of the minimization that met it, and most are small, because a search has reduced them.
//! Last come the variants: inputs with minor keys (finer hashes of crashes) that no result of the
//! group has.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::path::Path;
use std::sync::Mutex;

use crate::{
    CampaignError, Minimizing, StoreWriter, Variants, failures_of_target::FailuresOfTarget, lock,
};
use ddfuzz_minimize::{LeastSlip, MinimizeError, least_slips, log::Log};
use ddfuzz_store::{Entry, EntryId, Group, Kind, Reader, StoreError};
use ddfuzz_triage::{Found, Triager, Verdict};

/// An input larger than the smallest result of its group may still give a smaller result. It is
/// minimized if its size is at most that of the smallest input minimized so far in the group,
/// divided by this number.
const SIZE_DIVISOR: u64 = 10;

/// How urgent it is to minimize an entry (a stored failing input), the most urgent first: founders
/// of groups of crashes, inputs that may give smaller results, hangs, memory blow-ups, and last
/// further minor keys (finer hashes of crashes) of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// The entry is the founder (first finding) of a group of crashes, and a run of the fuzzer
    /// found it.
    Found,
    /// The entry is the founder (first finding) of a group of crashes that was found only by
    /// chance, while another group was minimized.
    Slipped,
    /// The entry was found by a run of the fuzzer in a group that has a minimized result, and is so
    /// small that it may give a smaller result.
    Smaller,
    /// The entry was met by chance during a minimization, in a group that has a minimized result,
    /// and is so small that it may give a smaller result.
    SmallerSlip,
    /// The entry is the founder (first finding) of a group of hangs; each of its failing runs takes
    /// long.
    Hang,
    /// The entry is the founder (first finding) of a group of memory blow-ups.
    Oom,
    /// The entry has a minor key (finer hash of crashes, within a group) that no minimized result
    /// of its group has.
    Variant,
}

impl Priority {
    /// Returns the priority with which the founder (first finding) of a group is minimized; `kind`
    /// is the kind of the group, `slipped` says whether the group was found only during a
    /// minimization. `None` if groups of this kind are never minimized.
    pub(crate) fn of(kind: Kind, slipped: bool) -> Option<Priority> {
        match kind {
            Kind::Crash if slipped => Some(Priority::Slipped),
            Kind::Crash => Some(Priority::Found),
            Kind::Hang => Some(Priority::Hang),
            Kind::Oom => Some(Priority::Oom),
            // A crash that does not reproduce cannot be minimized.
            Kind::Flaky => None,
        }
    }
}

/// Position of an entry in the order in which the founder (first finding) of a group is chosen, the
/// lowest first: whether the entry was found by a run (0), in a file (1) or by a minimization (2),
/// the number of the run or of the minimization's test, and the path of the file or the name of the
/// minimized entry.
pub(crate) type Rank = (u8, u64, String);

/// Returns the position of an entry in the order in which founders are chosen; `found` is how the
/// entry was found. Entries found by runs come first, in the order of the runs. Those from files
/// follow, by path, and then slips (found by chance while another entry was minimized), by the
/// number of the test and the name of the minimized entry. Entries of unknown origin come last.
pub(crate) fn rank(found: Option<&Found>) -> Rank {
    match found {
        Some(Found::Run { run, .. }) => (0, *run, String::new()),
        Some(Found::Slip { of, test, .. }) => (2, test.unwrap_or(u64::MAX), of.clone()),
        Some(Found::File { path, .. }) => (1, 0, path.to_string_lossy().into_owned()),
        None => (3, 0, String::new()),
    }
}

/// Returns true if `found`, the way in which an entry was found, is a slip: a candidate that
/// crashed in another way while another entry was minimized. Otherwise false.
pub(crate) fn is_slip(found: Option<&Found>) -> bool {
    matches!(found, Some(Found::Slip { .. }))
}

/// All entries (stored inputs) of one group of crashes, which counts as one bug; in a study of many
/// utilities, only the entries of one utility.
pub(crate) struct Bug<'a> {
    root: &'a Path,
    entries: Vec<&'a Entry>,
    /// The entries whose results count: their minimization is complete and was not given up, and
    /// the result is not suspected to pass with the last build ([`is_result`]).
    results: Vec<&'a Entry>,
}

impl<'a> Bug<'a> {
    fn new(reader: &'a Reader, failures: &FailuresOfTarget, entries: Vec<&'a Entry>) -> Bug<'a> {
        let counts = |entry: &&Entry| is_result(failures, entry);
        Bug {
            root: reader.root(),
            results: entries.iter().copied().filter(counts).collect(),
            entries,
        }
    }

    /// Makes a bug of those `entries` of one group that `failures` includes, without separating the
    /// utilities of a study.
    pub(crate) fn of(
        reader: &'a Reader,
        failures: &FailuresOfTarget,
        entries: &'a [Entry],
    ) -> Bug<'a> {
        let found = entries.iter().filter(|entry| failures.include(entry));
        Bug::new(reader, failures, found.collect())
    }

    /// Divides the entries of one group into bugs. In a study of many utilities there is one bug
    /// for each utility; otherwise all entries are one bug.
    pub(crate) fn all(
        reader: &'a Reader,
        failures: &FailuresOfTarget,
        entries: &'a [Entry],
    ) -> Vec<Bug<'a>> {
        let mut of_utilities: BTreeMap<Option<&str>, Vec<&Entry>> = BTreeMap::new();
        for entry in entries {
            of_utilities.entry(utility(entry)).or_default().push(entry);
        }
        let bugs = of_utilities.into_values();
        bugs.map(|entries| Bug::new(reader, failures, entries))
            .collect()
    }

    /// Returns true if at least one entry of the bug (group of crashes) has a result that counts
    /// ([`is_result`]): its minimization is complete and was not given up, and the result is not
    /// suspected to pass with the last build. Otherwise false.
    pub(crate) fn has_result(&self) -> bool {
        !self.results.is_empty()
    }

    /// Returns the entries of the bug that wait to be minimized while it has no result: those that
    /// are not minimized. If the bug has a result, returns none.
    fn waiting(&self) -> impl Iterator<Item = &'a Entry> {
        let open = self.entries.iter().copied();
        let has_result = self.has_result();
        open.filter(move |entry| !has_result && entry.minimized.is_none())
    }

    /// Returns the entry of the bug (group of crashes) to minimize first; `None` if an entry has a
    /// result already. Entries found by runs come first, in the order of the runs, then entries
    /// from files: one whose minimization has begun, else the smallest, since file names do not
    /// tell which came first.
    pub(crate) fn founder(&self) -> Option<&'a Entry> {
        let place = |entry: &&'a Entry| {
            let (place, run, name) = rank(entry.crash.found.as_ref());
            let is_file = matches!(entry.crash.found, Some(Found::File { .. }));
            let (not_begun, size) = match is_file {
                true => (!self.is_begun(entry), size(entry)),
                false => (false, 0),
            };
            (place, not_begun, run, size, name)
        };
        self.waiting().min_by_key(place)
    }

    /// Returns the entry of the bug (group of crashes) to minimize first: one whose minimization
    /// was begun and interrupted, or else the one found first. `None` if an entry has a result
    /// already.
    pub(crate) fn founder_or_begun(&self) -> Option<&'a Entry> {
        let place = |entry: &&'a Entry| {
            let found = entry.crash.found.as_ref();
            (!self.is_begun(entry), rank(found))
        };
        self.waiting().min_by_key(place)
    }

    /// Returns the next entry that may give a smaller result than those minimized so far, among the
    /// entries found by runs or given as files: an entry whose minimization has begun, else the one
    /// found first. `None` if there is none, or nothing was minimized. Slips (inputs that crashed
    /// by chance while other entries were minimized) have no influence on the choice.
    pub(crate) fn smaller_of_runs(&self) -> Option<&'a Entry> {
        let is_found = |entry: &&Entry| !is_slip(entry.crash.found.as_ref());
        let order = |entry: &&Entry| {
            let (place, run, name) = rank(entry.crash.found.as_ref());
            (!self.is_begun(entry), place, run, size(entry), name)
        };
        let reached = SmallestSizes::of(self.results.iter().copied().filter(is_found));
        let smaller = self.entries.iter().copied().filter(is_found);
        let smaller = smaller.filter(|entry| self.is_open(entry));
        let smaller = smaller.filter(|entry| reached.may_be_beaten_by(size(entry)));
        smaller.min_by_key(order)
    }

    /// Returns the smallest entry that may give a smaller result than the bug (group of crashes)
    /// has; an entry whose minimization has begun comes first. `None` if there is none, or nothing
    /// was minimized. Ignores slips (inputs found by chance during a minimization) whose test has
    /// no number, since which of them occur depends on the number of workers.
    pub(crate) fn smaller(&self) -> Option<&'a Entry> {
        let reached = SmallestSizes::of(self.results.iter().copied());
        let order = |entry: &&Entry| {
            let begun = self.is_begun(entry);
            (!begun, size(entry), rank(entry.crash.found.as_ref()))
        };
        let is_stray =
            |entry: &&Entry| matches!(entry.crash.found, Some(Found::Slip { test: None, .. }));
        let open = self.entries.iter().copied();
        let open = open.filter(|entry| self.is_open(entry) && !is_stray(entry));
        let is_smaller = |entry: &&Entry| match is_slip(entry.crash.found.as_ref()) {
            true => reached.is_larger_than(size(entry)),
            false => reached.may_be_beaten_by(size(entry)),
        };
        open.filter(is_smaller).min_by_key(order)
    }

    /// Returns the entry of the bug (group of crashes) to minimize next as a variant, that is, an
    /// entry whose minor key (finer hash of crashes) no minimized reproducer has. Prefers entries
    /// whose minimization has begun, then minor keys that were met while this bug was minimized,
    /// then the minor key found first, then the smallest entry. `None` if there is no variant,
    /// nothing was minimized, or the reproducers already have more than `most` minor keys.
    pub(crate) fn variant(&self, most: usize) -> Option<&'a Entry> {
        let shown = self.minors_of_results();
        if most == 0 || shown.len() > most || !self.has_result() {
            return None;
        }
        // First the keys that a minimization of this bug has met, then in the order of finding.
        let mut firsts: BTreeMap<&str, (bool, Rank)> = BTreeMap::new();
        for entry in &self.entries {
            let place = (!self.is_own_slip(entry), rank(entry.crash.found.as_ref()));
            let first = firsts.entry(entry.id.minor()).or_insert(place.clone());
            *first = place.min(first.clone());
        }
        let order = |entry: &&Entry| {
            let minor = entry.id.minor();
            let begun = self.is_begun(entry);
            (!begun, firsts.get(minor).cloned(), size(entry))
        };
        let open = self.entries.iter().copied();
        open.filter(|entry| self.is_open(entry) && !shown.contains(entry.id.minor()))
            .min_by_key(order)
    }

    /// Returns the minor keys (12 hex digits) of the bug's results. A result is left out if it has
    /// another minor key than the input that was minimized to it.
    fn minors_of_results(&self) -> BTreeSet<&'a str> {
        let shown = self.results.iter();
        let shown = shown.filter(|entry| !entry.shows_another_minor());
        shown.map(|entry| entry.id.minor()).collect()
    }

    /// Returns true if the minimization of an entry has begun, that is, if it has a log; otherwise
    /// false.
    pub(crate) fn is_begun(&self, entry: &Entry) -> bool {
        entry.id.log(self.root).exists()
    }

    fn is_open(&self, entry: &Entry) -> bool {
        entry.minimized.is_none()
    }

    /// Returns true if the entry was found by chance while another entry of the same group was
    /// minimized: a candidate of the minimization crashed with another minor key (finer hash of
    /// crashes). Otherwise false.
    fn is_own_slip(&self, entry: &Entry) -> bool {
        let Some(Found::Slip { of, .. }) = &entry.crash.found else {
            return false;
        };
        self.entries.iter().any(|other| other.id.hash() == of)
    }
}

/// Returns true if an entry counts as a result of its group: its minimization is complete and was
/// not given up, and the last build of the program does not make its result doubtful
/// ([`FailuresOfTarget::doubts`]). Otherwise false.
pub(crate) fn is_result(failures: &FailuresOfTarget, entry: &Entry) -> bool {
    was_minimized(entry) && !failures.doubts(entry)
}

/// Returns true if the minimization of an entry is complete and was not given up; otherwise false.
fn was_minimized(entry: &Entry) -> bool {
    let outcome = entry.minimized.as_ref();
    outcome.is_some_and(|outcome| outcome.given_up.is_none())
}

/// Two sizes of a bug (group of crashes) that tell which further inputs may give a smaller result:
/// the size of its smallest result, and the size of the smallest input that was minimized, before
/// its minimization. The two may come from different inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SmallestSizes {
    /// Size of the smallest minimized result of a bug, in bytes; `None` without results.
    result: Option<u64>,
    /// Size of the smallest input of a bug that was minimized, in bytes, before its minimization;
    /// `None` if no input was minimized.
    input: Option<u64>,
}

impl SmallestSizes {
    /// Computes the two sizes from `entries` (stored inputs): the size of the smallest minimized
    /// result, and the original size of the smallest input that was minimized. Entries without a
    /// result are ignored.
    pub(crate) fn of<'a>(entries: impl Iterator<Item = &'a Entry>) -> SmallestSizes {
        let mut reached = SmallestSizes::default();
        let results = entries.filter_map(|entry| entry.minimized.as_ref());
        results.for_each(|result| reached.take(result.size_before, result.size_after));
        reached
    }

    /// Takes an input of `before` bytes that was minimized to `after` bytes into account: lowers
    /// the size of the smallest input to `before`, and the size of the smallest result to `after`,
    /// if these are smaller.
    pub(crate) fn take(&mut self, before: u64, after: u64) {
        let least = |held: Option<u64>, size: u64| Some(held.map_or(size, |held| size.min(held)));
        (self.input, self.result) = (least(self.input, before), least(self.result, after));
    }

    /// Returns true if minimizing an input of `size` bytes may give a smaller result than all
    /// results so far: it is smaller than the smallest result, or at most a tenth as large as the
    /// smallest input that was minimized. Otherwise false; also false if there is no result.
    pub(crate) fn may_be_beaten_by(&self, size: u64) -> bool {
        self.largest_promising_size()
            .is_some_and(|largest| size <= largest)
    }

    /// Returns true if the bug's smallest result is larger than `size` bytes; false if it is not,
    /// or if there is no result.
    fn is_larger_than(&self, size: u64) -> bool {
        self.result.is_some_and(|result| size < result)
    }

    /// Returns the largest size in bytes of inputs that may give a smaller result than all so far:
    /// one byte less than the smallest result, or a tenth of the smallest input that was minimized,
    /// whichever is more. `None` if there is no result yet, or the smallest result is empty.
    pub(crate) fn largest_promising_size(&self) -> Option<u64> {
        let smaller = self.result?.checked_sub(1)?;
        Some(smaller.max(self.input? / SIZE_DIVISOR))
    }
}

/// Returns the entries to minimize next, at most one for each bug (group, and utility in a study),
/// the most urgent first. With `last`, also returns those that are minimized after all others:
/// groups and smaller inputs that were found only during minimizations, hangs, memory blow-ups, and
/// variants (inputs with further minor keys). Leaves out failures that `failures` does not include,
/// since runs of the target say nothing of them, and groups that no longer fail with the last
/// build.
pub(crate) fn pending(
    reader: &Reader,
    failures: &FailuresOfTarget,
    variants: Variants,
    last: bool,
) -> Result<Vec<EntryId>, StoreError> {
    let kinds: &[Kind] = match last {
        true => &[Kind::Crash, Kind::Hang, Kind::Oom],
        false => &[Kind::Crash],
    };
    let mut pending = Vec::new();
    for kind in kinds.iter().copied() {
        for group in reader.groups(kind)? {
            pending.extend(pending_of_group(reader, failures, variants, last, &group)?);
        }
    }
    pending.sort();
    Ok(pending.into_iter().map(|(.., id)| id).collect())
}

/// An entry to minimize, with the values that decide its turn, the lowest first: its priority,
/// whether its minimization has not begun yet, its position by the way it was found, and its id.
pub(crate) type PendingEntry = (Priority, bool, Rank, EntryId);

/// Returns the entries of one group to minimize next, as [`pending`] does for all groups: at most
/// one for each bug (the group or, in a study, each utility in it), with its place in the order of
/// minimization. Returns none if the group no longer failed with the last build. `variants`:
/// maximum number of further minor keys (finer hashes of crashes) that are minimized; `last`:
/// whether also to return entries that are minimized after all others.
pub(crate) fn pending_of_group(
    reader: &Reader,
    failures: &FailuresOfTarget,
    variants: Variants,
    last: bool,
    group: &Group,
) -> Result<Vec<PendingEntry>, StoreError> {
    let (kind, major) = (group.kind, group.record.major.short());
    if failures.is_gone(kind, &major) {
        return Ok(Vec::new());
    }
    let mut entries = reader.entries(kind, &major)?;
    entries.retain(|entry| failures.include(entry));
    let mut pending = Vec::new();
    for bug in Bug::all(reader, failures, &entries) {
        let most = variants.most(&group.record.class);
        let Some((priority, entry)) = next_of(&bug, kind, most, last) else {
            continue;
        };
        // A slip whose minimization has begun comes before founders that wait.
        let order = match priority {
            Priority::Slipped => Priority::Found,
            priority => priority,
        };
        let place = rank(entry.crash.found.as_ref());
        pending.push((order, !bug.is_begun(entry), place, entry.id.clone()));
    }
    Ok(pending)
}

/// Returns the next entry to minimize in the group of crashes with this major key (12 hex digits),
/// among the inputs that runs have found and that may give a smaller result; `None` if there is
/// none. Failures that `failures` does not include are left out.
pub(crate) fn smaller_of_runs(
    reader: &Reader,
    failures: &FailuresOfTarget,
    major: &str,
) -> Result<Option<EntryId>, StoreError> {
    let entries = reader.entries(Kind::Crash, major)?;
    let bug = Bug::of(reader, failures, &entries);
    Ok(bug.smaller_of_runs().map(|entry| entry.id.clone()))
}

/// Returns the entry of `bug` (a group of crashes; in a study, those of one utility) to minimize
/// next, and its priority; `None` if there is none. `variants` is the maximum number of minor keys
/// (finer hashes of crashes) that are minimized besides the first one. With `last`, also returns
/// entries that are minimized after all others: hangs, memory blow-ups, variants, and entries found
/// only during minimizations.
fn next_of<'a>(
    bug: &Bug<'a>,
    kind: Kind,
    variants: usize,
    last: bool,
) -> Option<(Priority, &'a Entry)> {
    if let Some(founder) = bug.founder() {
        let slipped = is_slip(founder.crash.found.as_ref());
        let priority = Priority::of(kind, slipped)?;
        return (last || !slipped).then_some((priority, founder));
    }
    if kind != Kind::Crash {
        // Each run of a hang or a blow-up takes long, so one result is enough.
        return None;
    }
    let of_runs = bug
        .smaller_of_runs()
        .map(|entry| (Priority::Smaller, entry));
    let of_slips = || bug.smaller().map(|entry| (Priority::SmallerSlip, entry));
    let variant = || {
        bug.variant(variants)
            .map(|entry| (Priority::Variant, entry))
    };
    match last {
        true => of_runs.or_else(of_slips).or_else(variant),
        false => of_runs,
    }
}

/// Returns true if an entry would be minimized for its minor key (finer hash of crashes) alone (as
/// a variant): its group has a result, the entry is not expected to give a smaller one, and no
/// result has its minor key. The minimization then keeps that minor key. Entries that `failures`
/// does not include are ignored.
pub(crate) fn is_variant(
    reader: &Reader,
    failures: &FailuresOfTarget,
    entry: &Entry,
    variants: Variants,
) -> Result<bool, StoreError> {
    let most = variants.most(&entry.crash.class);
    if most == 0 || entry.id.kind() != Kind::Crash {
        return Ok(false);
    }
    let mut entries = reader.entries(entry.id.kind(), entry.id.major())?;
    entries.retain(|one| failures.include(one) || one.id == entry.id);
    let is_of = |bug: &Bug<'_>| bug.entries.iter().any(|one| one.id == entry.id);
    let bug = Bug::all(reader, failures, &entries).into_iter().find(is_of);
    Ok(bug.is_some_and(|bug| {
        let is_smaller = |smaller: &Entry| smaller.id == entry.id;
        let of_size =
            bug.smaller_of_runs().is_some_and(is_smaller) || bug.smaller().is_some_and(is_smaller);
        bug.has_result() && !of_size && !bug.minors_of_results().contains(entry.id.minor())
    }))
}

/// A queue of slips (inputs that crashed in other groups while entries were minimized). It is
/// filled from the logs of minimizations, each of which is read only once.
#[derive(Debug, Default)]
pub(crate) struct SlippedInputs {
    /// Entries whose logs were read for slips (inputs with another crash), or are in the queue to
    /// be read.
    seen: HashSet<EntryId>,
    /// Minimized entries whose logs are still to be read for slips (inputs with another crash).
    unread: VecDeque<EntryId>,
    /// Slips that were read from logs and are still to be handled: inputs that crashed in another
    /// group while an entry was minimized, each with the id of the minimized entry.
    slips: VecDeque<(EntryId, LeastSlip)>,
    /// The store's count of changes of groups at the time when all groups were last searched for
    /// minimized entries. `None` before the first search, and if the store does not count changes.
    changes: Option<u64>,
}

impl SlippedInputs {
    /// Returns the next slip (input that crashed in another group during a minimization) to store,
    /// and the entry that was minimized; `None` if there are no more. A slip is to be stored if it
    /// is smaller than all results of the group in which it crashed, and than all entries of this
    /// group that wait to be minimized. Groups whose major key (12 hex digits) `accepts` rejects
    /// are left out.
    pub(crate) fn next<S: StoreWriter>(
        &mut self,
        store: &Mutex<S>,
        accepts: &dyn Fn(&str) -> bool,
    ) -> Result<Option<(Entry, LeastSlip)>, CampaignError> {
        let reader = lock(store).reader().clone();
        loop {
            while let Some((of, slip)) = self.slips.pop_front() {
                if let Some(entry) = reader.entry(&of)?
                    && accepts(&slip.keys.major.short())
                    && is_smaller(&reader, &entry, &slip)?
                {
                    return Ok(Some((entry, slip)));
                }
            }
            if !self.read_next(store, &reader)? {
                return Ok(None);
            }
        }
    }

    /// Reads the slips (inputs with another crash) from the log of one more finished minimization.
    /// Returns true if a log was read, and false if all logs were read before.
    fn read_next<S: StoreWriter>(
        &mut self,
        store: &Mutex<S>,
        reader: &Reader,
    ) -> Result<bool, CampaignError> {
        if self.unread.is_empty() {
            for major in self.changed(store, reader)? {
                for entry in reader.entries(Kind::Crash, &major)? {
                    if entry.minimized.is_some() && self.seen.insert(entry.id.clone()) {
                        self.unread.push_back(entry.id);
                    }
                }
            }
        }
        let Some(id) = self.unread.pop_front() else {
            return Ok(false);
        };
        if let Some(entry) = reader.entry(&id)? {
            let slips = slips_of(&entry)?.into_iter();
            self.slips.extend(slips.map(|slip| (id.clone(), slip)));
        }
        Ok(true)
    }

    /// Returns the major keys (12 hex digits) of the groups of crashes that have changed in the
    /// store since the last call, since further entries of them may have been minimized. Returns
    /// all groups in the first call, and if the store does not count changes.
    fn changed<S: StoreWriter>(
        &mut self,
        store: &Mutex<S>,
        reader: &Reader,
    ) -> Result<Vec<String>, StoreError> {
        let changes = lock(store).changed_since(self.changes.unwrap_or_default());
        let before = self.changes;
        self.changes = changes.as_ref().map(|(count, _)| *count);
        if let (Some(_), Some((_, groups))) = (before, changes) {
            let of_crashes = groups.into_iter().filter(|(kind, _)| *kind == Kind::Crash);
            return Ok(of_crashes.map(|(_, major)| major).collect());
        }
        let groups = reader.groups(Kind::Crash)?.into_iter();
        Ok(groups.map(|group| group.record.major.short()).collect())
    }

    /// Stores the next slip ([`SlippedInputs::next`]) as an entry of the group in which it crashed,
    /// and returns true; returns false if no slip remains. A slip is an input that crashed in
    /// another group while an entry was minimized. It is skipped if it does not crash in the same
    /// group again when it is run with the settings `minimizing`, or if `accepts` rejects the
    /// group's major key (12 hex digits).
    pub(crate) fn file_next<S: StoreWriter>(
        &mut self,
        store: &Mutex<S>,
        minimizing: &Minimizing,
        accepts: &dyn Fn(&str) -> bool,
    ) -> Result<bool, CampaignError> {
        while let Some((entry, slip)) = self.next(store, accepts)? {
            if file_slip(store, minimizing, &entry, &slip)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Runs the input of `slip`, which had another crash when `entry` was minimized. If it crashes with
/// the recorded major key (hash that identifies a bug) again, stores it as an entry of the group
/// with this major key, and returns true; otherwise returns false.
pub(crate) fn file_slip<S: StoreWriter>(
    store: &Mutex<S>,
    minimizing: &Minimizing,
    entry: &Entry,
    slip: &LeastSlip,
) -> Result<bool, CampaignError> {
    let minimizing = minimizing.of(&entry.crash);
    let mut triager = Triager::of_target(&minimizing.target, minimizing.way)?;
    let Verdict::Crash(crash) = triager.examine(&slip.input)? else {
        return Ok(false);
    };
    let kind = Kind::of_class(&crash.class);
    if kind != Kind::Crash || crash.keys.major != slip.keys.major {
        return Ok(false);
    }
    let crash = crash.into_slip(entry.id.hash(), &entry.crash, Some(slip.test));
    lock(store).file(kind, &crash, &slip.input)?;
    Ok(true)
}

/// Returns the slips (inputs with another crash) in the log of an entry's minimization, the
/// smallest of each major and minor key (coarse and fine hash); none if the log does not exist, or
/// is damaged.
fn slips_of(entry: &Entry) -> Result<Vec<LeastSlip>, CampaignError> {
    let path = entry.log();
    if !path.exists() {
        return Ok(Vec::new());
    }
    let original = entry.original_bytes()?;
    let log = Log::read(&path).map_err(MinimizeError::from);
    match log.and_then(|log| least_slips(&original, &log)) {
        Err(MinimizeError::Log(error)) if error.is_damage() => Ok(Vec::new()),
        slips => Ok(slips?),
    }
}

/// Returns true if `slip`, a crash met while `entry` was minimized, is to be stored: its input is
/// smaller than all results of the group in which it crashed, and than all entries of this group
/// that are not minimized yet. In a study, only entries of the same utility are compared. False if
/// the group has no result.
fn is_smaller(reader: &Reader, entry: &Entry, slip: &LeastSlip) -> Result<bool, StoreError> {
    let mut entries = reader.entries(Kind::Crash, &slip.keys.major.short())?;
    entries.retain(|other| utility(other) == utility(entry));
    let size = slip.input.len() as u64;
    let is_open = |other: &Entry| other.minimized.is_none();
    let waits = |other: &Entry| is_open(other) && self::size(other) <= size;
    let builds = reader.campaigns()?.last_builds();
    let counts = |other: &&Entry| was_minimized(other) && !builds.doubts(other);
    let reached = SmallestSizes::of(entries.iter().filter(counts));
    Ok(reached.is_larger_than(size) && !entries.iter().any(waits))
}

/// Returns the utility (system program) in whose runs a study has found an entry; `None` if no
/// study has found it.
fn utility(entry: &Entry) -> Option<&str> {
    entry.crash.of.as_ref().map(|of| of.utility.as_str())
}

/// Returns the size of an entry's original input, in bytes; `u64::MAX` if the file is missing.
pub(crate) fn size(entry: &Entry) -> u64 {
    let facts = entry.original().metadata();
    facts.map_or(u64::MAX, |facts| facts.len())
}
