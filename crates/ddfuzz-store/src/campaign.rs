//! The campaign that a directory belongs to (`ddfuzz.json`), its builds, and whether the directory
//! may be opened.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Kind, StoreError, json, layout, reader};
use ddfuzz_exec::{Limits, TargetRecord, Way};
use ddfuzz_model::files::{OsText, atomic};

/// One campaign: what was run, where and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// Its id, which no other campaign has.
    #[serde(rename = "campaign")]
    pub id: String,
    /// The command line that began it, as it was typed.
    pub command_line: Vec<OsText>,
    /// The settings that a file added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsFile>,
    /// Its target; `None` where there are several (`revisit`).
    pub target: Option<TargetRecord>,
    /// The builds of the program that were run, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<Build>,
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

/// A file of settings, and what it adds to a command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsFile {
    /// The file, absolute.
    pub file: OsText,
    /// What it adds: its settings, as the command line would say them.
    pub arguments: Vec<OsText>,
}

impl std::fmt::Display for SettingsFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = self.file.0.to_string_lossy();
        if self.arguments.is_empty() {
            return write!(f, "{file} adds nothing to this command");
        }
        write!(f, "{file} adds")?;
        let all = self.arguments.iter();
        all.map(|argument| argument.0.to_string_lossy())
            .try_for_each(|argument| write!(f, " {argument}"))
    }
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
            version: VERSION,
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
        if version != VERSION {
            return Err(StoreError::OtherVersion {
                path: root.to_owned(),
                found: version,
                known: VERSION,
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

    /// Adds another campaign. Where two records of one id differ, the least as text stays, so that
    /// the order of the calls does not matter.
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

/// The state of a group after the program was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// None of its inputs fails any more.
    Fixed,
    /// No input fails as it did, but the crash could not show itself in this build or within these
    /// limits.
    #[serde(rename = "cannot tell")]
    CannotTell,
    /// It failed sometimes, or does now.
    Flaky,
    /// An input fails in another way.
    Other,
    /// An input fails as it did.
    Same,
}

impl Status {
    /// The name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Status::Fixed => "fixed",
            Status::CannotTell => "cannot tell",
            Status::Flaky => "flaky",
            Status::Other => "other",
            Status::Same => "same",
        }
    }
}

/// A build of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The blake3 of the program's file, 64 hex digits.
    pub blake3: String,
    /// When it was first seen, RFC 3339 in UTC.
    pub seen: String,
    /// The state of the groups found before, by kind and major key (12 hex digits); empty for the
    /// first build.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<Kind, BTreeMap<String, Status>>,
}

impl Build {
    /// The state of a group with this build, where it was checked.
    pub fn status(&self, kind: Kind, major: &str) -> Option<Status> {
        self.groups.get(&kind)?.get(major).copied()
    }
}

/// The version of the output directory's contract.
pub const VERSION: u64 = 1;

/// What is at the path of an output directory.
#[derive(Debug)]
pub(super) enum DirectoryState {
    /// Nothing, or an empty directory.
    Nothing,
    /// An output directory.
    Ours(Box<CampaignFile>),
}

/// Examines the path, without changing anything.
///
/// # Errors
/// When it is no output directory, or of another version, or its campaign file is damaged.
pub(super) fn examine(root: &Path) -> Result<DirectoryState, StoreError> {
    if let Some(file) = CampaignFile::read(root)? {
        return Ok(DirectoryState::Ours(Box::new(file)));
    }
    // A lock and temporary files are what a writer leaves that was killed before all else; what
    // git is to ignore a user may have said before.
    let foreign = |name: &str| {
        let ours = [layout::LOCK, layout::IGNORE.0].contains(&name);
        !ours && !atomic::is_temporary(name.as_ref())
    };
    let empty = reader::sorted_names(root, foreign)?.is_empty() && !has_undecodable(root);
    if empty && (root.is_dir() || !exists(root)) {
        Ok(DirectoryState::Nothing)
    } else {
        Err(StoreError::NotOurs {
            path: root.to_owned(),
        })
    }
}

/// The output directory that `path` lies in, or that lies in it under the usual name.
pub(super) fn near(path: &Path) -> Option<PathBuf> {
    let is_ours = |folder: &Path| folder.join(layout::CAMPAIGN).is_file();
    let below = path.join(layout::USUAL);
    if is_ours(&below) {
        return Some(below);
    }
    let whole = std::fs::canonicalize(path).ok()?;
    let above = whole.ancestors().skip(1).find(|folder| is_ours(folder))?;
    Some(above.to_owned())
}

/// Whether anything, be it a dangling link, has this name.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Whether the folder has names that are not UTF-8, which listings leave out.
fn has_undecodable(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|entries| {
        (entries.flatten()).any(|entry| entry.file_name().into_string().is_err())
    })
}
