//! A target as a record: in logs and in campaign files.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Channel, Limits, Program, Sandbox, Target, Way};
use ddfuzz_model::files::OsText;

/// What is needed to run the target again, limits aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetRecord {
    /// Path of the program; null for a bundled one. Where the log has a `test`, that
    /// one.
    pub program: Option<OsText>,
    /// Name of the bundled target; null for a program.
    pub bundled: Option<String>,
    /// Arguments; `@@` stands for a file holding the input.
    pub args: Vec<OsText>,
    /// How the input gets there, where that is not on stdin or in a file of any name.
    #[serde(default, skip_serializing_if = "Channel::is_plain")]
    pub channel: Channel,
    /// Variables set on top of the inherited environment.
    pub env: Vec<(OsText, OsText)>,
    /// Present and true where nothing else is inherited.
    #[serde(default, skip_serializing_if = "is_false")]
    pub env_only: bool,
    /// Working directory; null for a scratch directory.
    pub cwd: Option<OsText>,
    /// The exit status that counts as a crash.
    pub crash_exit: Option<i32>,
    /// Present where it runs in a sandbox.
    #[serde(default, skip_serializing_if = "Sandbox::is_off")]
    pub sandbox: Sandbox,
    /// The way of execution.
    pub way: Way,
}

impl TargetRecord {
    /// The record of a target run in this way.
    pub fn new(target: &Target, way: Way) -> TargetRecord {
        let (program, bundled) = match &target.program {
            Program::Path(path) => (Some(OsText::from(path)), None),
            Program::Bundled(name) => (None, Some(name.clone())),
        };
        TargetRecord {
            program,
            bundled,
            args: target.args.iter().map(OsText::from).collect(),
            channel: target.channel.clone(),
            env: target
                .env
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            env_only: target.env_only,
            cwd: target.cwd.as_ref().map(OsText::from),
            crash_exit: target.crash_exit,
            sandbox: target.sandbox,
            way,
        }
    }

    /// The target again, with these limits; `None` where the record names no program.
    pub fn target(&self, limits: Limits) -> Option<Target> {
        let program = match (&self.program, &self.bundled) {
            (Some(path), _) => Program::Path(PathBuf::from(&path.0)),
            (None, Some(name)) => Program::Bundled(name.clone()),
            (None, None) => return None,
        };
        let pair = |(name, value): &(OsText, OsText)| (name.0.clone(), value.0.clone());
        Some(Target {
            program,
            args: self.args.iter().map(|arg| arg.0.clone()).collect(),
            channel: self.channel.clone(),
            env: self.env.iter().map(pair).collect(),
            env_only: self.env_only,
            cwd: self.cwd.as_ref().map(|cwd| PathBuf::from(&cwd.0)),
            limits,
            crash_exit: self.crash_exit,
            sandbox: self.sandbox,
        })
    }

    /// Whether both run the same program on the same terms; the way of execution may differ,
    /// because keys are equal by every way.
    pub fn same_target(&self, other: &TargetRecord) -> bool {
        *self
            == TargetRecord {
                way: self.way,
                ..other.clone()
            }
    }
}

/// Whether a field need not be written.
fn is_false(value: &bool) -> bool {
    !value
}
