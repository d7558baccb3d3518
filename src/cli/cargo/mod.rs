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

/// Run ddfuzz on a cargo-fuzz project: find crashes, group them by bug, and minimize each to its
/// shortest reproducer
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
    Build options are those of cargo fuzz.\n\n\
    Exit codes: 0 success, or no crash found; 1 crashes found; 2 wrong usage; 3 the build failed, \
    the target does not start, or the input does not crash it; 4 only crashes of known groups; 70 \
    internal error; 130 interrupted, the state is saved";

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
    let mut command = super::with_rare_options_last(Cli::command());
    for name in ["run", "min", "triage", "clean"] {
        command = command.mut_subcommand(name, |command| {
            let command = command.mut_arg("target", |arg| {
                arg.help("Target triple to build for [default: that of this machine]")
                    .help_heading(build::BUILD)
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
                    .help("Flags for libFuzzer, after `--`; they select --engine libfuzzer"),
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
