//! Which entry of a group is minimized next.
//!
//! First the founder. Once the group has a result, inputs that may end smaller: those that are
//! smaller than the result, and of those that runs have found also each of at most a tenth of the
//! smallest input that was minimized. Other minimizations meet inputs of the group on their way, as
//! their logs tell; most of these are small because the search has made them so. Last the variants:
//! inputs of minor keys that no result of the group shows.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::path::Path;
use std::sync::Mutex;

use crate::{CampaignError, Minimizing, StoreWriter, Variants, lock};
use ddfuzz_minimize::{LeastSlip, MinimizeError, least_slips, log::Log};
use ddfuzz_store::{Entry, EntryId, Kind, Reader, StoreError};
use ddfuzz_triage::{Crash, Found, Triager, Verdict};

/// An input of at most this part of all that were minimized may end smaller than they have.
const PART: u64 = 10;

/// The priority of an entry to minimize; the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// The founder of a group of crashes that a run has found.
    Found,
    /// The same of crashes that only a minimization slipped into.
    Slipped,
    /// A smaller input that a run has found, of a group with a result.
    Smaller,
    /// The same, wherever it was found.
    SmallerSlip,
    /// The founder of a group of hangs, each run of which takes long.
    Hang,
    /// The same of memory blow-ups.
    Oom,
    /// An input of a minor key that no result shows.
    Variant,
}

impl Priority {
    /// The turn of the founder of a group of this kind; `None`: never.
    pub(crate) fn of(kind: Kind, slipped: bool) -> Option<Priority> {
        match kind {
            Kind::Crash if slipped => Some(Priority::Slipped),
            Kind::Crash => Some(Priority::Found),
            Kind::Hang => Some(Priority::Hang),
            Kind::Oom => Some(Priority::Oom),
            // What does not come again cannot be held.
            Kind::Flaky => None,
        }
    }
}

/// The place of a founder among others.
pub(crate) type Rank = (u8, u64, String);

/// Orders founders: by run, then files, then slips by what they slipped from and when.
pub(crate) fn rank(found: Option<&Found>) -> Rank {
    match found {
        Some(Found::Run { run, .. }) => (0, *run, String::new()),
        Some(Found::Slip { of, test }) => (2, test.unwrap_or(u64::MAX), of.clone()),
        Some(Found::File { path }) => (1, 0, path.to_string_lossy().into_owned()),
        None => (3, 0, String::new()),
    }
}

/// Whether a minimization has met it, and no run.
pub(crate) fn is_slip(found: Option<&Found>) -> bool {
    matches!(found, Some(Found::Slip { .. }))
}

/// The entries of one bug, of one program.
pub(crate) struct Bug<'a> {
    root: &'a Path,
    entries: Vec<&'a Entry>,
}

impl<'a> Bug<'a> {
    pub(crate) fn of(reader: &'a Reader, entries: &'a [Entry]) -> Bug<'a> {
        Bug {
            root: reader.root(),
            entries: entries.iter().collect(),
        }
    }

    /// The bugs of a group: one for each utility that is in it, in a study of many programs.
    pub(crate) fn all(reader: &'a Reader, entries: &'a [Entry]) -> Vec<Bug<'a>> {
        let mut of_utilities: BTreeMap<Option<&str>, Vec<&Entry>> = BTreeMap::new();
        for entry in entries {
            of_utilities.entry(utility(entry)).or_default().push(entry);
        }
        let of = |entries| Bug {
            root: reader.root(),
            entries,
        };
        of_utilities.into_values().map(of).collect()
    }

    /// Whether an entry has a result.
    pub(crate) fn has_result(&self) -> bool {
        self.entries.iter().any(|entry| entry.minimized.is_some())
    }

    /// The entry to minimize first, where none has a result: by the runs that found it; of several
    /// files, whose names do not say which of them was first, the smallest.
    pub(crate) fn founder(&self) -> Option<&'a Entry> {
        let place = |entry: &&&'a Entry| {
            let (place, run, name) = rank(entry.crash.found.as_ref());
            let is_file = matches!(entry.crash.found, Some(Found::File { .. }));
            let (waits, size) = match is_file {
                true => (!self.is_begun(entry), size(entry)),
                false => (false, 0),
            };
            (place, waits, run, size, name)
        };
        let founder = self.entries.iter().min_by_key(place).copied();
        founder.filter(|_| !self.has_result())
    }

    /// The same, but what was begun goes on.
    pub(crate) fn founder_or_begun(&self) -> Option<&'a Entry> {
        let place = |entry: &&&'a Entry| {
            let found = entry.crash.found.as_ref();
            (!self.is_begun(entry), rank(found))
        };
        let founder = self.entries.iter().min_by_key(place).copied();
        founder.filter(|_| !self.has_result())
    }

    /// The first entry found by a run, or given as a file, that is smaller than what those before
    /// it came to. It depends on nothing but the runs, so it is the same whenever it is asked for.
    pub(crate) fn smaller_of_runs(&self) -> Option<&'a Entry> {
        let found = (self.entries.iter()).filter(|entry| !is_slip(entry.crash.found.as_ref()));
        let found: Vec<&Entry> = found.copied().collect();
        let order = |entry: &&Entry| {
            let (place, run, name) = rank(entry.crash.found.as_ref());
            (!self.is_begun(entry), place, run, size(entry), name)
        };
        let reached = SmallestSizes::by(&found);
        let smaller = found.into_iter().filter(|entry| self.is_open(entry));
        let smaller = smaller.filter(|entry| reached.is_beaten_by(size(entry)));
        smaller.min_by_key(order)
    }

    /// The smallest entry, wherever it was found, that is smaller than the results of all others.
    /// What belongs to no test of a log, it leaves: whether such an input is met may hang on
    /// workers.
    pub(crate) fn smaller(&self) -> Option<&'a Entry> {
        let reached = SmallestSizes::by(&self.entries);
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
            false => reached.is_beaten_by(size(entry)),
        };
        open.filter(is_smaller).min_by_key(order)
    }

    /// The smallest entry of a minor key that no result shows, where the results of the group show
    /// no more keys than these `most` beside the first.
    pub(crate) fn variant(&self, most: usize) -> Option<&'a Entry> {
        let shown = self.shown();
        if most == 0 || shown.len() > most || !self.has_result() {
            return None;
        }
        // The keys that a result has had on its way first, then as they were found.
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

    /// The minor keys that results show, where they are those of their inputs.
    fn shown(&self) -> BTreeSet<&'a str> {
        let shows = |entry: &&&Entry| entry.minimized.is_some() && !entry.shows_another_minor();
        let shown = self.entries.iter().filter(shows);
        shown.map(|entry| entry.id.minor()).collect()
    }

    pub(crate) fn is_begun(&self, entry: &Entry) -> bool {
        entry.id.log(self.root).exists()
    }

    fn is_open(&self, entry: &Entry) -> bool {
        entry.minimized.is_none()
    }

    /// Whether the minimization of an entry of the bug has filed it, for its minor key.
    fn is_own_slip(&self, entry: &Entry) -> bool {
        let Some(Found::Slip { of, .. }) = &entry.crash.found else {
            return false;
        };
        self.entries.iter().any(|other| other.id.hash() == of)
    }
}

/// The smallest sizes of the inputs of a bug.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SmallestSizes {
    /// Size of the smallest result, in bytes.
    result: Option<u64>,
    /// Size of the smallest input that was minimized.
    input: Option<u64>,
}

impl SmallestSizes {
    fn by(entries: &[&Entry]) -> SmallestSizes {
        let mut reached = SmallestSizes::default();
        let results = entries.iter().filter_map(|entry| entry.minimized.as_ref());
        results.for_each(|result| reached.take(result.size_before, result.size_after));
        reached
    }

    /// The sizes of all entries.
    pub(crate) fn of(entries: &[Entry]) -> SmallestSizes {
        SmallestSizes::by(&entries.iter().collect::<Vec<_>>())
    }

    /// Takes in a minimization from one size to another.
    pub(crate) fn take(&mut self, before: u64, after: u64) {
        let least = |held: Option<u64>, size: u64| Some(held.map_or(size, |held| size.min(held)));
        (self.input, self.result) = (least(self.input, before), least(self.result, after));
    }

    /// Whether an input of this size is minimized, too: it may end smaller.
    pub(crate) fn is_beaten_by(&self, size: u64) -> bool {
        self.most().is_some_and(|most| size <= most)
    }

    /// Whether the smallest result has more bytes than these.
    fn is_larger_than(&self, size: u64) -> bool {
        self.result.is_some_and(|result| size < result)
    }

    /// The greatest size of such an input; `None` where nothing was minimized, or nothing can be
    /// smaller.
    pub(crate) fn most(&self) -> Option<u64> {
        let smaller = self.result?.checked_sub(1)?;
        Some(smaller.max(self.input? / PART))
    }
}

/// The entries to minimize next of all groups, in this order. With `last` also what is minimized
/// after all else: groups that were only slipped into, hangs and memory blow-ups, and variants.
pub(crate) fn pending(
    reader: &Reader,
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
            let entries = reader.entries(kind, &group.record.major.short())?;
            for bug in Bug::all(reader, &entries) {
                let most = variants.most(&group.record.class);
                let Some((priority, entry)) = next_of(&bug, kind, most, last) else {
                    continue;
                };
                // A slip that was begun continues before others are begun.
                let order = match priority {
                    Priority::Slipped => Priority::Found,
                    priority => priority,
                };
                let place = rank(entry.crash.found.as_ref());
                pending.push((order, !bug.is_begun(entry), place, entry.id.clone()));
            }
        }
    }
    pending.sort();
    Ok(pending.into_iter().map(|(.., id)| id).collect())
}

/// The next smaller input that runs have found of the group of crashes with this major key (12 hex
/// digits).
pub(crate) fn smaller_of_runs(reader: &Reader, major: &str) -> Result<Option<EntryId>, StoreError> {
    let entries = reader.entries(Kind::Crash, major)?;
    let bug = Bug::of(reader, &entries);
    Ok(bug.smaller_of_runs().map(|entry| entry.id.clone()))
}

/// What is minimized next of one bug.
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
        // Each run of these takes long: one result is enough.
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

/// Whether an entry is minimized for its minor key, which its minimization then holds.
pub(crate) fn is_variant(
    reader: &Reader,
    entry: &Entry,
    variants: Variants,
) -> Result<bool, StoreError> {
    let most = variants.most(&entry.crash.class);
    if most == 0 || entry.id.kind() != Kind::Crash {
        return Ok(false);
    }
    let entries = reader.entries(entry.id.kind(), entry.id.major())?;
    let is_of = |bug: &Bug<'_>| bug.entries.iter().any(|one| one.id == entry.id);
    let bug = Bug::all(reader, &entries).into_iter().find(is_of);
    Ok(bug.is_some_and(|bug| {
        let is_smaller = |smaller: &Entry| smaller.id == entry.id;
        let of_size =
            bug.smaller_of_runs().is_some_and(is_smaller) || bug.smaller().is_some_and(is_smaller);
        bug.has_result() && !of_size && !bug.shown().contains(entry.id.minor())
    }))
}

/// Inputs that minimizations have met in other groups: each log is read once.
#[derive(Debug, Default)]
pub(crate) struct SlippedInputs {
    seen: HashSet<EntryId>,
    unread: VecDeque<EntryId>,
    slips: VecDeque<(EntryId, LeastSlip)>,
}

impl SlippedInputs {
    /// The next input that is smaller than the smallest of its group, with the entry whose
    /// minimization has met it. Of groups that are not `wanted` there is none.
    pub(crate) fn next(
        &mut self,
        reader: &Reader,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Option<(Entry, LeastSlip)>, CampaignError> {
        loop {
            while let Some((of, slip)) = self.slips.pop_front() {
                if let Some(entry) = reader.entry(&of)?
                    && wanted(&slip.keys.major.short())
                    && is_smaller(reader, &entry, &slip)?
                {
                    return Ok(Some((entry, slip)));
                }
            }
            if !self.read_next(reader)? {
                return Ok(None);
            }
        }
    }

    /// Reads one more log; whether there was one.
    fn read_next(&mut self, reader: &Reader) -> Result<bool, CampaignError> {
        if self.unread.is_empty() {
            for group in reader.groups(Kind::Crash)? {
                for entry in reader.entries(Kind::Crash, &group.record.major.short())? {
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

    /// Files the next of these inputs; whether there was one that crashes as it did.
    pub(crate) fn file_next<S: StoreWriter>(
        &mut self,
        shelf: &Mutex<S>,
        minimizing: &Minimizing,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<bool, CampaignError> {
        let reader = lock(shelf).reader().clone();
        while let Some((entry, slip)) = self.next(&reader, wanted)? {
            if file_slip(shelf, minimizing, &entry, &slip)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Files an input that the minimization of `entry` has met, if it still crashes so.
pub(crate) fn file_slip<S: StoreWriter>(
    shelf: &Mutex<S>,
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
    let found = Found::Slip {
        of: entry.id.hash().to_owned(),
        test: Some(slip.test),
    };
    let crash = Crash {
        found: Some(found),
        of: entry.crash.of.clone(),
        ..*crash
    };
    lock(shelf).file(kind, &crash, &slip.input)?;
    Ok(true)
}

/// The slips of the entry's minimization; none where its log is gone, or holds no more.
fn slips_of(entry: &Entry) -> Result<Vec<LeastSlip>, CampaignError> {
    let path = entry.log();
    if !path.exists() {
        return Ok(Vec::new());
    }
    let log = Log::read(&path).map_err(MinimizeError::from)?;
    Ok(least_slips(&entry.original_bytes()?, &log)?)
}

/// Whether it is smaller than the smallest of its group, of the program that `entry` is of.
fn is_smaller(reader: &Reader, entry: &Entry, slip: &LeastSlip) -> Result<bool, StoreError> {
    let mut entries = reader.entries(Kind::Crash, &slip.keys.major.short())?;
    entries.retain(|other| utility(other) == utility(entry));
    let size = slip.input.len() as u64;
    let is_open = |other: &Entry| other.minimized.is_none();
    // One that waits already, and is no larger, is as good.
    let waits = |other: &Entry| is_open(other) && self::size(other) <= size;
    Ok(SmallestSizes::of(&entries).is_larger_than(size) && !entries.iter().any(waits))
}

/// The utility that an entry is of, in a study of many programs.
fn utility(entry: &Entry) -> Option<&str> {
    entry.crash.of.as_ref().map(|of| of.utility.as_str())
}

/// The size of an entry's input as found, in bytes; the largest there is where it is gone.
pub(crate) fn size(entry: &Entry) -> u64 {
    let facts = entry.original().metadata();
    facts.map_or(u64::MAX, |facts| facts.len())
}
