//! The ways of execution by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A way to run a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// A new process and `execve` for each run.
    Command,
    /// A fork server injected into an unmodified, dynamically linked program.
    Inject,
    /// The fork server that AFL++'s compilers put into the program.
    Forkserver,
    /// The target's entry function called in-process, in a child forked from a small zygote.
    Harness,
    /// The scripted mock of the tests.
    Mock,
}

impl Way {
    /// All ways in which programs are run, the one that works for everything first.
    pub const REAL: [Way; 4] = [Way::Command, Way::Inject, Way::Forkserver, Way::Harness];

    /// The name used on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Way::Command => "command",
            Way::Inject => "inject",
            Way::Forkserver => "forkserver",
            Way::Harness => "harness",
            Way::Mock => "mock",
        }
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
