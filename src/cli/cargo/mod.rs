//! `cargo ddfuzz`: the commands of ddfuzz on a cargo-fuzz project, which stays as it is.

mod artifacts;
mod build;
mod clean;
mod harness;
mod init;
mod install_runner;
pub mod libfuzzer;
mod list;
mod min;
mod out;
mod project;
mod run;
mod toolchain;
mod triage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::config::ConfigArgs;
use super::{Exit, Output};
pub use artifacts::{Written, reproducers};
pub use out::choose as choose_out;

/// ddfuzz on a cargo-fuzz project: every crash becomes its shortest reproducer while the campaign
/// runs.
#[derive(Parser)]
#[command(
    name = "cargo ddfuzz",
    bin_name = "cargo ddfuzz",
    version,
    max_term_width = 100,
    after_help = EXAMPLE
)]
struct Cli {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(subcommand)]
    command: Subcommands,
}

const EXAMPLE: &str = "Example:\n  cargo ddfuzz run parse --time 60s\n\n\
    Options of builds are those of cargo fuzz. Exit codes are those of ddfuzz: 0 nothing found, \
    or the job done; 1 crashes found; 2 usage; 3 the build or the baseline failed; 4 only groups \
    known before; 70 internal error; 130 interrupted, state saved";

#[derive(Subcommand)]
enum Subcommands {
    // As large as all others together.
    Run(Box<run::Args>),
    Min(min::Args),
    Triage(triage::Args),
    Clean(Box<clean::Args>),
    List(list::Args),
    Init(init::Args),
    InstallRunner(install_runner::Args),
}

/// Parses the command line, runs the command, and gives its exit code.
pub fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    // Cargo names the subcommand, too.
    if words.get(1).is_some_and(|word| word == "ddfuzz") {
        words.remove(1);
    }
    super::called(words, command(), &super::command(), |matches| {
        let cli = Cli::from_arg_matches(matches)?;
        Ok((cli.output.clone(), move |output: &Output| cli.run(output)))
    })
}

/// The command line: where the options of ddfuzz mean something else here, their help says so.
pub fn command() -> Command {
    let mut command = Cli::command();
    for name in ["run", "min", "triage", "clean"] {
        command = command.mut_subcommand(name, |command| {
            let command = command.mut_arg("target", |arg| {
                arg.help("Build for this triple [default: that of this machine]")
                    .help_heading("The build, as for cargo fuzz")
                    .value_name("TRIPLE")
            });
            let command = match name {
                // Without, they are the artifacts of the project.
                "triage" => command.mut_arg("inputs", |arg| arg.required(false)),
                _ => command,
            };
            // Last, for clap goes by the order of changes.
            command.mut_arg("program", |arg| match name {
                "run" => arg
                    .value_name("FLAG")
                    .help("Flags for libFuzzer; they choose --engine libfuzzer"),
                _ => arg.hide(true),
            })
        });
    }
    command
}

impl Cli {
    fn run(self, output: &Output) -> Result<Exit, super::Failure> {
        match self.command {
            Subcommands::Run(args) => run::run(*args, output),
            Subcommands::Min(args) => min::run(args, output),
            Subcommands::Triage(args) => triage::run(args, output),
            Subcommands::Clean(args) => clean::run(*args, output),
            Subcommands::List(args) => list::run(&args, output),
            Subcommands::Init(args) => init::run(&args, output),
            Subcommands::InstallRunner(args) => install_runner::run(&args, output),
        }
    }
}
