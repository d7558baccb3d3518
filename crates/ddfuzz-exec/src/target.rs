//! How to start a target.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{Channel, Limits, Sandbox};

/// Which program a target is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// An installed program, by absolute path.
    Path(PathBuf),
    /// A bundled target, by name (`ul`, or `ul-fixed` for the variant without the bug).
    Bundled(String),
}

/// A program, its arguments, and everything else that a run of it depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The program.
    pub program: Program,
    /// Its arguments, without the program's name; `@@` stands for a file holding the input.
    /// Without one the input goes to stdin.
    pub args: Vec<OsString>,
    /// How the input gets there, more exactly.
    pub channel: Channel,
    /// Variables set on top of the inherited environment.
    pub env: Vec<(OsString, OsString)>,
    /// Whether `env` is all there is, but for `TMPDIR`: nothing is inherited.
    pub env_only: bool,
    /// The working directory; a scratch directory where `None`. `TMPDIR` is a scratch directory
    /// in any case.
    pub cwd: Option<PathBuf>,
    /// Limits on each run.
    pub limits: Limits,
    /// The exit status that counts as a crash (`--crash-exit`).
    pub crash_exit: Option<i32>,
    /// What it may do to the machine.
    pub sandbox: Sandbox,
}

impl Target {
    /// A target with default limits that reads its input from stdin.
    pub fn new(program: Program) -> Target {
        Target {
            program,
            args: Vec::new(),
            channel: Channel::Plain,
            env: Vec::new(),
            env_only: false,
            cwd: None,
            limits: Limits::default(),
            crash_exit: None,
            sandbox: Sandbox::Off,
        }
    }

    /// Whether the input goes to a file named in the arguments instead of stdin.
    pub fn takes_file(&self) -> bool {
        !matches!(self.channel, Channel::Terminal(_)) && self.names_file()
    }

    /// Whether the arguments name a file: the input, or at a terminal a text to work on.
    pub fn names_file(&self) -> bool {
        let is_named = |arg: &OsString| arg.to_string_lossy().contains("@@");
        self.args.iter().any(is_named)
    }
}
