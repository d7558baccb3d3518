//! Which failures of an output directory were found on a target, where the directory has results
//! of several: only those are minimized by its runs, or checked with a new build of it.

use std::collections::{HashMap, HashSet};

use ddfuzz_exec::{Target, TargetRecord, Way};
use ddfuzz_store::{Build, Campaign, CampaignFile, Entry, Kind, Reader, StoreError};
use ddfuzz_triage::Found;

/// Greatest number of slips that are followed from a failure to the one that was found by a run or
/// in a file.
const MAX_SLIPS: usize = 64;

/// The campaigns on a target, and the failures that they have found.
pub(crate) struct Finders {
    /// What tells the failures apart; `None` if the directory has results of one target only.
    several: Option<Several>,
}

/// What a directory with results of several targets has of one of them.
struct Several {
    /// Ids of the campaigns on the target.
    campaigns: HashSet<String>,
    /// Files that these campaigns have run: the hash of their content (16 hex digits), and the major
    /// key of their crash (12 hex digits).
    files: HashSet<(String, String)>,
    /// How the input with this hash (16 hex digits) was found, and its major key.
    found: HashMap<String, (Option<Found>, String)>,
}

impl Finders {
    /// Reads what was found on the target that `now` records, in the directory of `reader` with the
    /// campaigns `all`; `None` stands for a study, which records the target of each of its failures. Everything counts as found on it if no campaign
    /// was, since the program may have been moved, and in a directory made by a merge, whose
    /// campaigns may have run the program at other paths.
    pub(crate) fn of(
        reader: &Reader,
        all: &CampaignFile,
        now: Option<&TargetRecord>,
    ) -> Result<Finders, StoreError> {
        let ours = |one: &&Campaign| now.is_some_and(|now| one.is_of(now));
        let campaigns: HashSet<String> = all.all().filter(ours).map(|one| one.id.clone()).collect();
        let is_of_several = !campaigns.is_empty() && campaigns.len() < all.all().count();
        if all.current.is_none() || !is_of_several {
            return Ok(Finders { several: None });
        }
        let mut files = HashSet::new();
        for line in reader.triaged()? {
            if let Some(crash) = line.crash.filter(|_| campaigns.contains(&line.campaign)) {
                files.insert((line.input.short().to_string(), crash.major.short()));
            }
        }
        let mut found = HashMap::new();
        for kind in Kind::ALL {
            for group in reader.groups(kind)? {
                let major = group.record.major.short();
                for entry in reader.entries(kind, &major)? {
                    let (hash, how) = (entry.id.hash().to_owned(), entry.crash.found);
                    found.insert(hash, (how, major.clone()));
                }
            }
        }
        Ok(Finders {
            several: Some(Several {
                campaigns,
                files,
                found,
            }),
        })
    }

    /// Reads what was found on `target`, by whatever way.
    pub(crate) fn of_target(reader: &Reader, target: &Target) -> Result<Finders, StoreError> {
        let now = TargetRecord::new(target, Way::Command);
        Finders::of(reader, &reader.campaigns()?, Some(&now))
    }

    /// Checks whether a failure was found on the target: by a run, in a file, or while another one
    /// of the target was minimized. A failure whose record is a study's is left to its reader.
    pub(crate) fn include(&self, entry: &Entry) -> bool {
        let Some(several) = self.several.as_ref().filter(|_| entry.crash.of.is_none()) else {
            return true;
        };
        let (mut hash, mut major) = (entry.id.hash(), entry.id.major());
        let mut found = entry.crash.found.as_ref();
        for _ in 0..MAX_SLIPS {
            match found {
                Some(Found::Run { campaign, .. }) => return several.campaigns.contains(campaign),
                Some(Found::File { .. }) => {
                    let file = (hash.to_owned(), major.to_owned());
                    return several.files.contains(&file);
                }
                Some(Found::Slip { of, .. }) => {
                    let Some((how, of_major)) = several.found.get(of) else {
                        return false;
                    };
                    (hash, major, found) = (of, of_major, how.as_ref());
                }
                None => return false,
            }
        }
        false
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
