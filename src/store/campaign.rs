//! Whose directory it is (`ddfuzz.json`).

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{StoreError, json, layout, open};
use crate::exec::{Limits, TargetRecord, Way};
use crate::files::OsText;

/// One campaign: what was run, where and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// Its id, which no other campaign has.
    #[serde(rename = "campaign")]
    pub id: String,
    /// The command line that began it.
    pub command_line: Vec<OsText>,
    /// What it runs; `None` where there are several targets (`revisit`).
    pub target: Option<TargetRecord>,
    /// Limits on each run of it.
    pub limits: Option<Limits>,
    /// The ways of execution used.
    pub ways: Vec<Way>,
    /// The seed of its generator, if it has one.
    pub seed: Option<u64>,
    /// When it began, RFC 3339 in UTC ([`super::rfc3339`]).
    pub started: String,
    /// The machine it began on.
    pub host: String,
}

/// The campaign file. The fields of the campaign that the directory belongs to stand at the top
/// level; a directory that [`super::merge()`] made belongs to none, and has only `campaigns`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CampaignFile {
    /// The version of the directory's contract.
    pub version: u64,
    /// The campaign that the directory belongs to, and that `--resume` goes on with.
    #[serde(flatten)]
    pub current: Option<Campaign>,
    /// Other campaigns whose findings are here, by id.
    #[serde(rename = "campaigns")]
    pub others: Vec<Campaign>,
}

impl CampaignFile {
    /// The file of a directory that belongs to `current`.
    pub(super) fn of(current: Option<Campaign>) -> CampaignFile {
        CampaignFile {
            version: open::VERSION,
            current,
            others: Vec::new(),
        }
    }

    /// Reads the file of the directory `root`; `None` where there is none.
    pub(super) fn read(root: &Path) -> Result<Option<CampaignFile>, StoreError> {
        let path = root.join(layout::CAMPAIGN);
        let Some(value) = json::read::<Value>(&path)? else {
            return Ok(None);
        };
        let damaged = |why: String| StoreError::Damaged {
            path: path.clone(),
            why,
        };
        // The version first: nothing else can be expected of a file of another one.
        let version = (value.get("version").and_then(Value::as_u64))
            .ok_or_else(|| damaged("it has no version".to_owned()))?;
        if version != open::VERSION {
            return Err(StoreError::OtherVersion {
                path: root.to_owned(),
                found: version,
                known: open::VERSION,
            });
        }
        let current = match value.get("campaign") {
            None => None,
            Some(_) => {
                Some(Campaign::deserialize(&value).map_err(|error| damaged(error.to_string()))?)
            }
        };
        let others = match value.get("campaigns") {
            None => Vec::new(),
            Some(others) => Vec::deserialize(others).map_err(|error| damaged(error.to_string()))?,
        };
        Ok(Some(CampaignFile {
            version,
            current,
            others,
        }))
    }

    /// Writes the file into the directory `root`.
    pub(super) fn write(&self, root: &Path) -> Result<(), StoreError> {
        json::write(&root.join(layout::CAMPAIGN), self)
    }

    /// Takes in another campaign: one record an id, the least as text where two differ, so that
    /// the result does not depend on the order of taking in.
    pub(super) fn take(&mut self, campaign: Campaign) {
        if self.current.as_ref().is_some_and(|c| c.id == campaign.id) {
            return;
        }
        match (self.others).binary_search_by(|other| other.id.cmp(&campaign.id)) {
            Err(at) => self.others.insert(at, campaign),
            Ok(at) => {
                let text = |campaign: &Campaign| serde_json::to_string(campaign).ok();
                if text(&campaign) < text(&self.others[at]) {
                    self.others[at] = campaign;
                }
            }
        }
    }

    /// All campaigns whose findings are here.
    pub fn all(&self) -> impl Iterator<Item = &Campaign> {
        self.current.iter().chain(&self.others)
    }
}
