//! Which failures of an output directory were found on a target, where the directory has results
//! of several: only those are minimized by its runs, or checked with a new build of it.

use std::collections::HashSet;

use ddfuzz_exec::{Target, TargetRecord, Way};
use ddfuzz_store::{Build, Campaign, CampaignFile, Entry, Reader, StoreError};
use ddfuzz_triage::Found;

/// The campaigns on a target, and the failures that they have found.
#[derive(Debug)]
pub(crate) struct Finders {
    /// What tells the failures apart; `None` if the directory has results of one target only.
    several: Option<Several>,
}

/// What a directory with results of several targets has of one of them.
#[derive(Debug)]
struct Several {
    /// Ids of the campaigns on the target.
    campaigns: HashSet<String>,
    /// Files that these campaigns have run: the hash of their content (16 hex digits), and the major
    /// key of their crash (12 hex digits).
    files: HashSet<(String, String)>,
}

impl Finders {
    /// Reads what was found on the target that `now` records, in the directory of `reader` with the
    /// campaigns `all`; `None` stands for a study, which records the target of each of its failures.
    /// Everything counts as found on it if no campaign was, since the program may have been moved.
    fn of(
        reader: &Reader,
        all: &CampaignFile,
        now: Option<&TargetRecord>,
    ) -> Result<Finders, StoreError> {
        let ours = |one: &&Campaign| now.is_some_and(|now| one.is_of(now));
        let campaigns: HashSet<String> = all.all().filter(ours).map(|one| one.id.clone()).collect();
        if campaigns.is_empty() || campaigns.len() == all.all().count() {
            return Ok(Finders { several: None });
        }
        let mut files = HashSet::new();
        for line in reader.triaged()? {
            if let Some(crash) = line.crash.filter(|_| campaigns.contains(&line.campaign)) {
                files.insert((line.input.short().to_string(), crash.major.short()));
            }
        }
        let several = Some(Several { campaigns, files });
        Ok(Finders { several })
    }

    /// Reads what was found on the target of the campaign with this id, one of `all`.
    pub(crate) fn of_campaign(
        reader: &Reader,
        all: &CampaignFile,
        id: &str,
    ) -> Result<Finders, StoreError> {
        let own = all.all().find(|one| one.id == id);
        Finders::of(reader, all, own.and_then(|own| own.target.as_ref()))
    }

    /// Reads what was found on `target`, by whatever way.
    pub(crate) fn of_target(reader: &Reader, target: &Target) -> Result<Finders, StoreError> {
        let now = TargetRecord::new(target, Way::Command);
        Finders::of(reader, &reader.campaigns()?, Some(&now))
    }

    /// Checks whether a failure was found on the target: by a run, in a file, or while another one
    /// of the target was minimized. A failure whose record is a study's is left to its reader.
    ///
    /// A record of an older version names no campaign: that of a file counts if the journal of
    /// triage has the file, and that of a slip does not, since a run of the wrong target would show
    /// it as flaky.
    pub(crate) fn include(&self, entry: &Entry) -> bool {
        let Some(several) = self.several.as_ref().filter(|_| entry.crash.of.is_none()) else {
            return true;
        };
        match (entry.crash.campaign(), &entry.crash.found) {
            (Some(campaign), _) => several.campaigns.contains(campaign),
            (None, Some(Found::File { .. })) => {
                let file = (entry.id.hash().to_owned(), entry.id.major().to_owned());
                several.files.contains(&file)
            }
            (None, _) => false,
        }
    }
}

/// Checks whether the directory's own campaign, or another one there, is on `target`; true if none
/// records a target, as in a study.
pub(crate) fn may_be_of(campaigns: &CampaignFile, target: &Target) -> bool {
    let now = TargetRecord::new(target, Way::Command);
    campaigns.all().any(|one| one.is_of(&now)) || campaigns.all().all(|one| one.target.is_none())
}

/// Returns the builds of the program that an output directory records, oldest first; `None` if the
/// directory's own campaign is not on `target`, so that its builds are those of another program.
pub(crate) fn builds<'a>(campaigns: &'a CampaignFile, target: &Target) -> Option<&'a [Build]> {
    let now = TargetRecord::new(target, Way::Command);
    let own = campaigns.current.as_ref().filter(|own| own.is_of(&now));
    own.map(|own| own.builds.as_slice())
}
