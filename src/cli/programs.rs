//! The programs of this package, as clap knows them: for completions, man pages, and whoever wants
//! to know what a command line may say.

use clap::{Command, ValueEnum};

/// A program of this package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// The program `ddfuzz`.
    Ddfuzz,
    /// What `cargo ddfuzz` runs.
    CargoDdfuzz,
    /// The Cargo runner.
    #[value(skip)]
    Runner,
}

impl Program {
    /// All of them.
    pub const ALL: [Program; 3] = [Program::Ddfuzz, Program::CargoDdfuzz, Program::Runner];
    /// Those whose words a shell can complete: the runner is called by cargo, with anything.
    pub const COMPLETED: [Program; 2] = [Program::Ddfuzz, Program::CargoDdfuzz];

    /// The name of its file.
    pub fn name(self) -> &'static str {
        match self {
            Program::Ddfuzz => "ddfuzz",
            Program::CargoDdfuzz => "cargo-ddfuzz",
            Program::Runner => "ddfuzz-runner",
        }
    }

    /// Its whole command line, under the name of its file.
    pub fn command(self) -> Command {
        match self {
            Program::Ddfuzz => super::command(),
            Program::CargoDdfuzz => super::cargo::command().name(self.name()),
            Program::Runner => super::runner::command(),
        }
    }
}
