//! The journal of `ddfuzz check` (`checks.jsonl`): one line for each checked group whose result
//! differs from that of the group's previous check.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Kind, Reader, Status, layout};
use ddfuzz_model::files::OsText;

/// The result of the last `ddfuzz check` of a group: whether its reproducer still fails alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCheck {
    /// Verdict of the check: fixed, same, other, flaky or cannot tell.
    pub status: Status,
    /// Time, as RFC 3339 in UTC, of the first check that came to this result. Later checks with the
    /// same result do not change it.
    pub at: String,
    /// Id of the commit that was checked out in the program's git repository; absent if the program
    /// is in no repository, or if tracked files differed from the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// A line of the journal of `ddfuzz check`: the result of checking one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Kind of failure of the checked group: crash, flaky crash, hang or out of memory.
    pub kind: Kind,
    /// First 12 hex digits of the major key, which identifies the checked group.
    pub major: String,
    /// The verdict on the group, the time of the check, and the commit of the program.
    #[serde(flatten)]
    pub result: LastCheck,
    /// Absolute path of the git repository that contains the checked program; absent if `commit` is
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<OsText>,
}

impl Checked {
    /// Returns the path of the journal in the output directory `out`.
    pub fn journal(out: &Path) -> PathBuf {
        out.join(layout::CHECKS)
    }

    /// Returns true if `other`, a result for the same group, has the same verdict, commit and
    /// repository as this one; the times are not compared.
    pub fn is_as(&self, other: &Checked) -> bool {
        let told = |it: &Checked| (it.result.status, it.result.commit.clone());
        told(self) == told(other) && self.repository == other.repository
    }
}

/// Result of the last check of each group, by the group's kind and major key (12 hex digits).
pub type LastChecks = HashMap<(Kind, String), LastCheck>;

impl Reader {
    /// Returns the results of the last checks of groups, by kind and major key (12 hex digits);
    /// none if no `ddfuzz check` was made, or its journal cannot be read.
    pub fn last_checks(&self) -> LastChecks {
        let text = std::fs::read(Checked::journal(self.root())).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n');
        let checks = lines.filter_map(|line| serde_json::from_slice::<Checked>(line).ok());
        checks.map(|it| ((it.kind, it.major), it.result)).collect()
    }
}
