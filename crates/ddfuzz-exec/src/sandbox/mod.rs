//! What a target may do to the machine, beyond the limits that every target has.

mod covers;
mod disk;
mod offers;
mod ruleset;
mod seccomp;
mod walls;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use covers::covers;
pub(crate) use disk::is_overfull;
use offers::Part;
pub use offers::{Offered, keep_files, offers};
pub(crate) use ruleset::version as landlock_version;
pub(crate) use walls::{Handed, Walls};

/// Whether a target runs in a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// Limits, an unprivileged user and a scratch directory are all.
    #[default]
    Off,
    /// It may write to its scratch directory only, reach no network, and see no other processes,
    /// as far as the kernel allows; `HOME` is the scratch directory.
    On,
}

impl Sandbox {
    /// Whether it need not be recorded.
    pub fn is_off(&self) -> bool {
        *self == Sandbox::Off
    }
}
