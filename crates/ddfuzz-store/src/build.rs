//! Builds of the program that a campaign fuzzes, and what each made of the groups.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Kind;

/// What became of a group when the program was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// None of its inputs fails any more.
    Fixed,
    /// None fails, or one fails otherwise, in a build or within limits where the crash could not
    /// show itself.
    #[serde(rename = "cannot tell")]
    CannotTell,
    /// It failed now and then, or does now.
    Flaky,
    /// An input fails, but otherwise.
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
    /// What it made of the groups found before, by kind and major key (12 hex digits); empty for
    /// the first build.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<Kind, BTreeMap<String, Status>>,
}

impl Build {
    /// What became of a group with this build, where that was looked at.
    pub fn status(&self, kind: Kind, major: &str) -> Option<Status> {
        self.groups.get(&kind)?.get(major).copied()
    }
}
