//! Which entries (stored failures) of an output directory a call of ddfuzz counts, minimizes and
//! checks, and which builds of the program it compares: [`FailuresOfTarget`].
//!
//! A directory may hold failures of several targets, found with several builds of their programs by
//! several campaigns. Three rules tell which of them a call on one target concerns:
//!
//! - **Target.** A target is a program with its arguments, environment, directory and input
//!   channel, however runs are made. A failure was found on the target of the campaign that its
//!   record names. For calls without a campaign, it was also found on a target if the journal of
//!   triage (the record of files that were run) has the same crash of the same content for a
//!   campaign
//!   on this target. Only failures that were found on the target are counted as known, minimized
//!   and
//!   checked by runs of the target. If no campaign is on the target, the program may have been
//!   moved,
//!   and the failures of the campaigns with the nearest target count: one that differs only in the
//!   program's directory, else one whose program has the same file name, else all. If a run of
//!   such a program does not show a crash, nothing is recorded for the crash.
//! - **Build.** The builds of a program are those that all campaigns on its target record. When the
//!   present build is not the last one recorded, all groups of the target are checked first. A
//!   group that did not show the same crash in this check is *gone*, until a run fails in it again:
//!   its entries are not minimized, and none of its inputs counts as known, so that the input of
//!   the
//!   failing run is stored. A crash is called flaky only if it was found with the last build.
//! - **Campaign.** Counts of runs, the checkpoint and the groups that are not new belong to a
//!   campaign; where its findings are stored does not depend on it.

use std::collections::HashSet;

use ddfuzz_exec::{Target, TargetRecord, Way};
use ddfuzz_store::{Build, Campaign, CampaignFile, Entry, Kind, Reader, StoreError};

/// Which failures in an output directory count as found on one target (a failure does if its record
/// names a campaign on the target), and which groups of the target are gone, that is, did not fail
/// any more when they were checked with the last build.
#[derive(Debug)]
pub struct FailuresOfTarget {
    /// Which failures count as found on the target; `None` if all failures of the directory do.
    selection: Option<FailureSelection>,
    /// Whether a campaign of the directory is on exactly this target, or no campaign records a
    /// target. If false, the program may have been moved, or may be a different program.
    is_recorded: bool,
    /// Whether a campaign of the directory is on this target, or on one that differs only in the
    /// directory of the program's file.
    is_same_but_moved: bool,
    /// Whether a campaign of the directory is on a target whose program has the same file name.
    is_near: bool,
    /// The groups that did not fail any more when they were checked with the last build, and in
    /// which no run has failed since: by kind and major key (12 hex digits).
    gone: HashSet<(Kind, String)>,
    /// The last build of the target's program; `None` if none is recorded.
    last: Option<Build>,
}

/// Selects the failures that count as found on one target, in an output directory with results of
/// several targets.
#[derive(Debug)]
struct FailureSelection {
    /// Ids of the campaigns whose failures count as found on the target.
    campaigns: HashSet<String>,
    /// The crashes that triage has found for these campaigns, as its journal records them: the hash
    /// of the input's content (16 hex digits) and the major key (12 hex digits) of each.
    files: HashSet<(String, String)>,
    /// Whether a failure of another campaign also counts if its input's content and its major key
    /// (hash that identifies a bug) are in `files`.
    shares: bool,
}

/// How near the target of a campaign is to the target that is run in this call of ddfuzz, the
/// nearest first: the same, moved to another directory, a program of the same file name, or
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    Same,
    /// The two targets are the same except for the directory of the program's file.
    Moved,
    /// The two targets have programs of the same file name, and differ otherwise.
    SameName,
    Other,
}

impl Nearness {
    fn of(campaign: &Campaign, now: Option<&TargetRecord>) -> Nearness {
        let Some((record, now)) = campaign.target.as_ref().zip(now) else {
            return Nearness::Other;
        };
        let name = |record: &TargetRecord| match (&record.program, &record.bundled) {
            (Some(path), _) => std::path::Path::new(&path.0).file_name().map(Into::into),
            (None, name) => name.clone().map(std::ffi::OsString::from),
        };
        let moved = TargetRecord {
            program: now.program.clone(),
            ..record.clone()
        };
        let is_named_so = name(record).is_some() && name(record) == name(now);
        match is_named_so && record.bundled == now.bundled {
            _ if now.same_target(record) => Nearness::Same,
            true if now.same_target(&moved) => Nearness::Moved,
            true => Nearness::SameName,
            false => Nearness::Other,
        }
    }
}

impl FailuresOfTarget {
    /// Determines which failures in the directory of `reader` count as found on the target `now`:
    /// those of the campaigns whose target is nearest to `now` ([`Nearness`]). `now` is `None` in a
    /// study, where each failure has its own target; all failures count then. `all`: the campaigns
    /// of the directory. `shares`: whether failures of other campaigns also count, if triage has
    /// found the same crash of the same content for one of the nearest campaigns.
    fn of(
        reader: &Reader,
        all: &CampaignFile,
        now: Option<&TargetRecord>,
        shares: bool,
    ) -> Result<FailuresOfTarget, StoreError> {
        let nearest = all.all().map(|one| Nearness::of(one, now)).min();
        let nearest = nearest.unwrap_or(Nearness::Other);
        let ours = all.all().filter(|one| Nearness::of(one, now) == nearest);
        let campaigns: HashSet<String> = ours.map(|one| one.id.clone()).collect();
        let builds = now.and_then(|now| all.builds(now)).unwrap_or_default();
        let mut failures = FailuresOfTarget {
            selection: None,
            is_recorded: nearest == Nearness::Same || all.all().all(|one| one.target.is_none()),
            is_same_but_moved: nearest <= Nearness::Moved,
            is_near: nearest != Nearness::Other,
            gone: builds.last().map(gone_with).unwrap_or_default(),
            last: builds.last().cloned(),
        };
        if nearest == Nearness::Other || campaigns.len() == all.all().count() {
            return Ok(failures);
        }
        let mut files = HashSet::new();
        for line in reader.triaged()? {
            if let Some(crash) = line.crash.filter(|_| campaigns.contains(&line.campaign)) {
                files.insert((line.input.short().to_string(), crash.major.short()));
            }
        }
        failures.selection = Some(FailureSelection {
            campaigns,
            files,
            shares,
        });
        Ok(failures)
    }

    /// Returns which failures in the directory of `reader` were found on the target of the campaign
    /// `id`: by this campaign, or by another one on the same target. `all` are the campaigns of this
    /// directory.
    pub(crate) fn of_campaign(
        reader: &Reader,
        all: &CampaignFile,
        id: &str,
    ) -> Result<FailuresOfTarget, StoreError> {
        let own = all.all().find(|one| one.id == id);
        FailuresOfTarget::of(reader, all, own.and_then(|own| own.target.as_ref()), false)
    }

    /// Returns which failures of the directory of `reader` count as found on `target`: those of
    /// campaigns on it, and those that the journal of triage (record of the inputs run) records for
    /// such a campaign.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn of_target(reader: &Reader, target: &Target) -> Result<FailuresOfTarget, StoreError> {
        FailuresOfTarget::of(reader, &reader.campaigns()?, Some(&record_of(target)), true)
    }

    /// Returns true if the failure `entry` counts as found on the target: its record names a
    /// campaign on the target, or triage has found the same crash of the same content on the
    /// target. Findings of triage count for records that name no campaign (of older versions of
    /// ddfuzz), and for all others if the selection shares failures. Always true for a failure that
    /// a study has found, and if all failures of the directory count.
    pub fn include(&self, entry: &Entry) -> bool {
        let Some(selection) = self.selection.as_ref().filter(|_| entry.crash.of.is_none()) else {
            return true;
        };
        let campaign = entry.crash.campaign();
        let in_journal = || {
            let file = (entry.id.hash().to_owned(), entry.id.major().to_owned());
            selection.files.contains(&file)
        };
        campaign.is_some_and(|campaign| selection.campaigns.contains(campaign))
            || (selection.shares || campaign.is_none()) && in_journal()
    }

    /// Checks whether a campaign of the directory is on this target, or on one that differs only in
    /// the directory of the program: with the same arguments, input channel and environment.
    pub fn is_same_but_moved(&self) -> bool {
        self.is_same_but_moved
    }

    /// Returns true if a campaign of the directory is on a program with the same file name as the
    /// target's. If false, the directory says nothing of the target, and all its failures count as
    /// found on the target.
    pub fn is_near(&self) -> bool {
        self.is_near
    }

    /// Returns the number of groups that a minimization on this target leaves out: those that have
    /// no minimized result, and no failure found on the target. Groups of flaky crashes do not
    /// count.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn left_out(&self, reader: &Reader) -> Result<u64, StoreError> {
        let mut left_out = 0;
        for kind in [Kind::Crash, Kind::Hang, Kind::Oom] {
            for group in reader.groups(kind)? {
                let entries = reader.entries(kind, &group.record.major.short())?;
                let counts = |entry: &Entry| entry.minimized.is_some() || self.include(entry);
                left_out += u64::from(!entries.is_empty() && !entries.iter().any(counts));
            }
        }
        Ok(left_out)
    }

    /// Returns true if the failure `entry` counts as not reproducible when a run of the target does
    /// not fail as recorded. Only failures stored by a campaign on exactly this target, or by a
    /// study, do; any other failure may still occur on the target on which it was found.
    pub(crate) fn can_refute(&self, entry: &Entry) -> bool {
        let is_own = |selection: &FailureSelection| {
            let campaign = entry.crash.campaign();
            campaign.is_none_or(|campaign| selection.campaigns.contains(campaign))
        };
        entry.crash.of.is_some()
            || self.is_recorded && self.include(entry) && self.selection.as_ref().is_none_or(is_own)
    }

    /// Checks whether a group is gone: it did not show the same crash when it was checked with the
    /// last build, and no run has failed in the group since.
    pub(crate) fn is_gone(&self, kind: Kind, major: &str) -> bool {
        !self.gone.is_empty() && self.gone.contains(&(kind, major.to_owned()))
    }

    /// Returns true if it is unknown whether `entry` fails with the last build: the check of its
    /// group stopped at another entry that still fails ([`Build::doubts`]), while the bug that
    /// `entry` shows may be fixed. The result of such an entry does not count for the group, and
    /// its sizes do not keep other inputs from being stored.
    pub(crate) fn doubts(&self, entry: &Entry) -> bool {
        self.last.as_ref().is_some_and(|build| build.doubts(entry))
    }

    /// Records that a run has failed in a group, given by kind and major key (hash that identifies
    /// a bug). Returns true if the group was gone (did not fail with the last build), and false if
    /// it was not.
    pub(crate) fn forget_gone(&mut self, kind: Kind, major: &str) -> bool {
        !self.gone.is_empty() && self.gone.remove(&(kind, major.to_owned()))
    }
}

/// Returns the groups, by kind and major key (12 hex digits), that did not show the same crash when
/// they were checked with `build`.
pub(crate) fn gone_with(build: &Build) -> HashSet<(Kind, String)> {
    let mut gone = HashSet::new();
    for (kind, groups) in &build.groups {
        for (major, status) in groups {
            if !status.is_as_before(*kind) {
                gone.insert((*kind, major.clone()));
            }
        }
    }
    gone
}

/// Returns true if the failure `entry` was found with the last build of `target`'s program that the
/// output directory records. Returns false if its group was checked with the last build, since the
/// entry then is older. Otherwise returns true if its campaign has recorded the last build as its
/// own last one; if its campaign has recorded no build, true if no different build is recorded at
/// all.
pub(crate) fn is_of_last_build(campaigns: &CampaignFile, target: &Target, entry: &Entry) -> bool {
    let builds = campaigns.builds(&record_of(target)).unwrap_or_default();
    let Some(last) = builds.last() else {
        return true;
    };
    let is_last = |build: &Build| build.blake3 == last.blake3;
    let (kind, major) = (entry.id.kind(), entry.id.major());
    let has_status = |build: &Build| is_last(build) && build.status(kind, major).is_some();
    if builds.iter().any(has_status) {
        return false;
    }
    let own = campaigns
        .all()
        .find(|one| Some(&*one.id) == entry.crash.campaign());
    match own.and_then(|own| own.builds.last()) {
        Some(build) => is_last(build),
        None => builds.iter().all(is_last),
    }
}

/// Returns the record of a target (program, arguments, environment), in which the way of execution
/// is always `command`. So two campaigns on one target have equal records, even if they run it in
/// different ways.
pub(crate) fn record_of(target: &Target) -> TargetRecord {
    TargetRecord::new(target, Way::Command)
}
