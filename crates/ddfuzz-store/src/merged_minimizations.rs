//! The minimizations of one input in two output directories that are merged: which one becomes the
//! current one, and which ones are archived beside it.
//!
//! All minimizations of an input are kept, with one exception: a minimization whose log is the
//! beginning of another minimization's log is an earlier state of that minimization, and is
//! dropped. So what is kept does not depend on the order of merging. The names of archived files
//! are made of their content.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;
use std::path::Path;

use crate::group::RejectedResults;
use crate::merged_builds::TargetBuilds;
use crate::{Minimized, StoreError, hash_of, json, layout, reader};
use ddfuzz_minimize::log::Log;

/// Text that the names of archived files contain in place of a build's hash, if the log of the
/// minimization names no build.
const UNKNOWN_BUILD: &str = "earlier";
/// Number of characters of a build's hash in the names of archived files.
const BUILD_DIGITS: usize = 16;

/// The files of one minimization of an input: log, reproducer and result.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Minimization {
    /// Content of the log; `None` if it is missing, or nothing but zero bytes, as a power cut
    /// leaves it.
    pub(super) log: Option<Vec<u8>>,
    /// Content of the reproducer (smallest failing input found); `None` if there is none.
    pub(super) reproducer: Option<Vec<u8>>,
    /// Content of the result file; `None` until the minimization has ended.
    pub(super) outcome: Option<Vec<u8>>,
    /// Size of the input that is minimized, in bytes.
    original: u64,
}

impl Minimization {
    /// Reads the minimization in an entry's folder, whose input has the size `original`: the
    /// current minimization or, if `archived` is given, the archived one whose file names have this
    /// ending.
    pub(super) fn read(
        folder: &Path,
        archived: Option<&str>,
        original: u64,
    ) -> Result<Minimization, StoreError> {
        let name = |name: &str| match archived {
            Some(ending) => format!("{name}.{ending}"),
            None => name.to_owned(),
        };
        let bytes = |file| json::bytes(&folder.join(name(file)));
        Ok(Minimization {
            log: bytes(layout::LOG)?.filter(|log| log.iter().any(|byte| *byte != 0)),
            reproducer: bytes(layout::MINIMIZED)?,
            outcome: bytes(layout::OUTCOME)?,
            original,
        })
    }

    /// Returns true if there is neither a log nor a reproducer, so that nothing is lost if the
    /// minimization is dropped.
    fn is_empty(&self) -> bool {
        self.log.is_none() && self.reproducer.is_none()
    }

    /// Returns whether there is no file of the minimization.
    fn is_absent(&self) -> bool {
        self.is_empty() && self.outcome.is_none()
    }

    /// Returns the result as parsed from its file, whether or not it belongs to the reproducer;
    /// `None` if the file is missing or damaged.
    fn parsed(&self) -> Option<Minimized> {
        serde_json::from_slice(self.outcome.as_ref()?).ok()
    }

    /// Returns the content of the file with the reproducer as parsed by the harness, taken from the
    /// result; `None` if the result does not have it.
    pub(super) fn debug(&self) -> Option<Vec<u8>> {
        let text = self.parsed()?.debug?;
        Some(format!("{text}\n").into_bytes())
    }

    /// Returns whether the result `outcome` belongs to the reproducer: it states the size that the
    /// reproducer has or, without a reproducer file, the size of the whole input.
    fn fits(&self, outcome: &Minimized) -> bool {
        let size = self.reproducer.as_ref().map(|bytes| bytes.len() as u64);
        size.unwrap_or(self.original) == outcome.size_after
    }

    /// Returns whether the minimization has a result, and the result belongs to the reproducer (has
    /// the size that the result states).
    pub(super) fn has_result(&self) -> bool {
        self.parsed().is_some_and(|outcome| self.fits(&outcome))
    }

    /// Returns whether the minimization has a result that does not belong to the reproducer,
    /// because the result states another size than the reproducer has.
    pub(super) fn is_damaged(&self) -> bool {
        self.parsed().is_some_and(|outcome| !self.fits(&outcome))
    }

    /// Returns the blake3 hash of the log, which identifies the minimization in records; `None`
    /// without a log.
    pub(super) fn log_hash(&self) -> Option<String> {
        Some(blake3::hash(self.log.as_ref()?).to_hex().to_string())
    }

    /// Returns the hash of the program with which the minimization was begun, as its log says;
    /// `None` if there is no log, or the log names no program.
    pub(super) fn build(&self) -> Option<String> {
        let log = self.log.as_ref()?;
        let end = log.iter().position(|byte| *byte == b'\n')?;
        let first = Log::parse(&log[..=end]).ok()?;
        Some(first.start?.build?.to_string())
    }

    /// Returns the ending that a merge appends to the names of the files when it archives the
    /// minimization: 16 digits of the build's hash (`earlier` if no build is known), `-`, and the
    /// hash of the log (without a log, the hash of the reproducer).
    fn ending(&self) -> String {
        let build = self.build();
        let build: String = match &build {
            Some(build) => build.chars().take(BUILD_DIGITS).collect(),
            None => UNKNOWN_BUILD.to_owned(),
        };
        let named_by = self.log.as_ref().or(self.reproducer.as_ref());
        format!("{build}-{}", hash_of(named_by.map_or(&[], Vec::as_slice)))
    }

    /// Returns true if `other` need not be kept beside this minimization. There are two cases: the
    /// log of `other` is the beginning of this minimization's log; or both have the same log (if
    /// neither has one, the same reproducer), and this minimization is no worse than `other`.
    fn replaces(&self, other: &Minimization) -> bool {
        let is_same = match (&self.log, &other.log) {
            (Some(own), Some(others)) if own != others => return own.starts_with(others),
            (own, others) => {
                own == others && (own.is_some() || self.reproducer == other.reproducer)
            }
        };
        is_same && compare((self, None), (other, None)).is_le()
    }
}

/// The rank of a minimization of an input; the smaller, the better. A merge keeps, of two
/// minimizations of the same input in the two directories, the one with the smaller rank.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Whether the size that the result states is not that of the reproducer (or, without a
    /// reproducer file, of the whole input).
    damaged: bool,
    /// Whether the minimization has no result, or its result only says that it was given up, for
    /// example because the crash did not occur again.
    unfinished: bool,
    /// Index (by age, the oldest first) of the newest build with which the result is known to fail.
    /// A newer build is better: the bug that a result of an older build shows may be fixed in it.
    build: Reverse<Option<usize>>,
    unproved: bool,
    size: u64,
}

impl Rank {
    fn of(minimization: &Minimization, build: Option<usize>) -> Rank {
        let outcome = minimization.parsed();
        let size = minimization.reproducer.as_ref().map(|it| it.len() as u64);
        Rank {
            damaged: (outcome.as_ref()).is_some_and(|outcome| !minimization.fits(outcome)),
            unfinished: (outcome.as_ref()).is_none_or(|outcome| outcome.given_up.is_some()),
            build: Reverse(build),
            unproved: !outcome.is_some_and(|outcome| outcome.is_proved()),
            size: size.unwrap_or(u64::MAX),
        }
    }
}

/// Compares two minimizations of one input, `a` and `b`; the better one is less. `a_build` and
/// `b_build` are the indices of the newest builds with which their results are known to fail. The
/// criteria, from the first to the last: intact before damaged, finished before unfinished, the
/// newer build, proved minimal before not proved, size and bytes of the reproducer, text of the
/// result and of the log.
fn compare(
    (a, a_build): (&Minimization, Option<usize>),
    (b, b_build): (&Minimization, Option<usize>),
) -> Ordering {
    // An existing file comes before a missing one.
    let by_file = |a: &Option<Vec<u8>>, b: &Option<Vec<u8>>| match (a, b) {
        (Some(a), Some(b)) => a.cmp(b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    };
    let by_log = || match (&a.log, &b.log) {
        // Of a log and its beginning the log tells more.
        (Some(a), Some(b)) if a.starts_with(b) || b.starts_with(a) => b.len().cmp(&a.len()),
        (a, b) => by_file(a, b),
    };
    (Rank::of(a, a_build).cmp(&Rank::of(b, b_build)))
        .then_with(|| by_file(&a.reproducer, &b.reproducer))
        .then_with(|| by_file(&a.outcome, &b.outcome))
        .then_with(by_log)
}

/// The minimizations of one input in the output directory that is merged and in the destination,
/// and which of them becomes the destination's current one.
pub(super) struct CurrentMinimizations {
    /// The current minimization in the directory that is merged.
    pub(super) theirs: Minimization,
    /// The current minimization in the destination.
    pub(super) ours: Minimization,
    /// The archived minimizations in the directory that is merged.
    their_archive: Vec<ArchivedMinimization>,
    /// The archived minimizations in the destination.
    our_archive: Vec<ArchivedMinimization>,
    /// The minimizations that must not become the current one: at least one of the two directories
    /// records that their results no longer fail, or that they were archived for another reason
    /// than a merge.
    pub(super) rejected: RejectedResults,
    /// Whether `rejected` differs from the record in the destination, which must then be written
    /// anew.
    pub(super) has_new_rejected: bool,
    /// Whether the destination takes over the current minimization of the directory that is merged.
    pub(super) is_taken: bool,
    /// Whether the destination keeps its current minimization (or, if it had none, gets none).
    pub(super) is_kept: bool,
    /// The archived minimization that becomes the destination's current one; `None` if no archived
    /// one does.
    restored: Option<Minimization>,
}

impl CurrentMinimizations {
    /// Reads the minimizations of an entry from its folders in the directory that is merged
    /// (`from`) and in the destination (`into`), and chooses the best as the destination's current
    /// one. It chooses among the current ones, and the archived ones with a log and a result. A
    /// minimization whose result no longer fails, or that was archived for another reason than a
    /// merge, is not chosen. `original`: size of the input in bytes; `builds`: the builds of the
    /// entry's target, if there are several.
    pub(super) fn read(
        from: &Path,
        into: &Path,
        original: u64,
        builds: Option<&TargetBuilds>,
    ) -> Result<CurrentMinimizations, StoreError> {
        let theirs = Minimization::read(from, None, original)?;
        let ours = Minimization::read(into, None, original)?;
        let our_archive = archived(into, original)?;
        let their_archive = archived(from, original)?;
        let recorded = RejectedResults::read(into)?;
        let mut rejected = RejectedResults::read(from)?.united(recorded.clone());
        let archives = || our_archive.iter().chain(&their_archive);
        let set_aside = archives().filter(|one| !one.is_of_merge());
        (rejected.logs).extend(set_aside.filter_map(|one| one.minimization.log_hash()));
        let passes = |one: &Minimization| {
            !rejected.logs.is_empty()
                && one.log_hash().is_some_and(|it| rejected.logs.contains(&it))
        };
        let age = |one: &Minimization| builds.and_then(|builds| builds.newest_failing(one));
        let with_result = archives().map(|one| &one.minimization);
        let with_result = with_result.filter(|one| one.has_result() && one.log.is_some());
        let current = [&ours, &theirs].into_iter().filter(|one| !one.is_absent());
        let candidates = current.chain(with_result).filter(|one| !passes(one));
        // The first of equal ones.
        let best = candidates.min_by(|a, b| compare((a, age(a)), (b, age(b))));
        let is_kept = best.map_or(!passes(&ours), |best| *best == ours);
        let is_taken = !is_kept && best.is_some_and(|best| *best == theirs);
        let restored = best.filter(|_| !is_kept && !is_taken).cloned();
        Ok(CurrentMinimizations {
            has_new_rejected: rejected != recorded,
            is_taken,
            is_kept,
            restored,
            theirs,
            ours,
            their_archive,
            our_archive,
            rejected,
        })
    }

    /// Returns the minimization that is the destination's current one after the merge; `None` if
    /// there is none, so that the input is still to be minimized.
    pub(super) fn chosen(&self) -> Option<&Minimization> {
        let chosen = match (self.is_taken, self.is_kept) {
            (true, _) => &self.theirs,
            (false, true) => &self.ours,
            (false, false) => self.restored.as_ref()?,
        };
        (!chosen.is_absent()).then_some(chosen)
    }

    /// Returns true if both directories have the same current minimization after the merge: the one
    /// chosen for the destination is that of the directory that is merged into it.
    pub(super) fn are_same(&self) -> bool {
        match self.chosen() {
            Some(chosen) => *chosen == self.theirs,
            None => self.theirs.is_absent(),
        }
    }
}

/// An archived minimization of an entry, and the ending that distinguishes the names of its files
/// from those of the current minimization.
struct ArchivedMinimization {
    ending: String,
    minimization: Minimization,
}

impl ArchivedMinimization {
    /// Returns true if a merge has archived the minimization, because another one was better; false
    /// if it was archived after a rebuild of the program.
    fn is_of_merge(&self) -> bool {
        self.ending == self.minimization.ending()
    }
}

/// Reads the archived minimizations in an entry's folder, sorted by their endings.
fn archived(folder: &Path, original: u64) -> Result<Vec<ArchivedMinimization>, StoreError> {
    let mut endings = BTreeSet::new();
    for name in reader::sorted_names(folder, |_| true)? {
        let of = |file: &str| name.strip_prefix(file)?.strip_prefix('.');
        // The name of the result file begins with that of the reproducer.
        let files = [layout::OUTCOME, layout::LOG, layout::MINIMIZED];
        let is_current = files.contains(&name.as_str());
        let ending = files.iter().find_map(|file| of(file));
        endings.extend(ending.filter(|_| !is_current).map(str::to_owned));
    }
    let read = |ending: String| {
        let minimization = Minimization::read(folder, Some(&ending), original)?;
        Ok(ArchivedMinimization {
            ending,
            minimization,
        })
    };
    endings.into_iter().map(read).collect()
}

/// What a merge changes in the archived minimizations of an entry in the destination.
pub(super) struct ArchiveChanges<'a> {
    /// Minimizations to archive, each with the ending of the names that its files get.
    pub(super) added: Vec<(String, &'a Minimization)>,
    /// Endings of the names of archived files to remove: files that an earlier merge wrote, and
    /// that another minimization makes unnecessary ([`Minimization::replaces`]).
    pub(super) removed: Vec<String>,
}

impl<'a> ArchiveChanges<'a> {
    /// Finds what a merge changes in the archived minimizations of the entry in the destination,
    /// from the entry's minimizations in both directories, `current`. Added to the archive are the
    /// archived ones of the directory that is merged, and both directories' current ones, unless
    /// chosen as the new current one. A minimization that another one covers
    /// ([`Minimization::replaces`]) is not added or, if an earlier merge has archived it, removed.
    pub(super) fn of(current: &'a CurrentMinimizations) -> ArchiveChanges<'a> {
        let (ours, theirs) = (&current.our_archive, &current.their_archive);
        let replaced = [
            (&current.ours, current.is_kept),
            (&current.theirs, current.is_taken),
        ];
        let replaced = replaced.into_iter().filter(|(_, is_chosen)| !is_chosen);
        let chosen = current.chosen().into_iter();
        let held = ours.iter().map(|one| &one.minimization);
        // The first of equal ones stays.
        let all: Vec<&Minimization> = chosen
            .clone()
            .chain(held)
            .chain(replaced.map(|(one, _)| one))
            .chain(theirs.iter().map(|one| &one.minimization))
            .collect();
        let is_needless = |at: usize| {
            let one = all[at];
            let tells_all = |(other_at, other): (usize, &&Minimization)| {
                other_at != at && other.replaces(one) && (other_at < at || !one.replaces(other))
            };
            one.is_empty() || all.iter().enumerate().any(tells_all)
        };
        let first = chosen.count();
        let (new, end) = (first + ours.len(), all.len());
        let added = (new..end).filter(|at| !is_needless(*at));
        let added: Vec<_> = added.map(|at| (all[at].ending(), all[at])).collect();
        let needless = (first..new).filter(|at| is_needless(*at));
        let needless = needless.map(|at| &ours[at - first]);
        let is_written =
            |one: &&ArchivedMinimization| added.iter().any(|(ending, _)| *ending == one.ending);
        let removed = needless.filter(|one| one.is_of_merge() && !is_written(one));
        ArchiveChanges {
            removed: removed.map(|one| one.ending.clone()).collect(),
            added,
        }
    }
}
