//! The command line of a program with subcommands: what clap is told of it, and which function runs
//! each subcommand.
//!
//! To describe the options of all subcommands to clap takes longer than the rest of a start, so the
//! parser of a call has only the subcommands that occur in its words.

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Id, Parser};

use super::config::ConfigArgs;
use super::output::Output;
use super::{Exit, Failure, run, target};

/// Headings in `--help` above options that only few users need.
const RARE: [&str; 2] = [target::CHANNEL_HEADING, run::NETWORK];

/// A function that carries out a subcommand of ddfuzz, whose command line is parsed already.
pub type Job = Box<dyn FnOnce(&Output) -> Result<Exit, Failure>>;

/// Options of a program before its subcommand.
#[derive(Parser)]
#[command(
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct CommonArgs {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    config: ConfigArgs,
}

/// A subcommand: its name, its options, and the function that runs it.
pub struct Subcommand {
    name: &'static str,
    /// A function that adds the options and help texts of the subcommand to clap's description of
    /// it.
    describe: fn(Command) -> Command,
    /// Converts the parsed options of the subcommand to a function that runs it.
    understand: Understand,
}

/// A function that converts the parsed options of a subcommand to a function that runs the
/// subcommand with them.
type Understand = Box<dyn Fn(&ArgMatches) -> Result<Job, clap::Error>>;

/// Returns the subcommand `name`, which has the options `A` and is carried out by `run`.
pub fn subcommand<A: Args + 'static>(
    name: &'static str,
    run: fn(A, &Output) -> Result<Exit, Failure>,
) -> Subcommand {
    Subcommand {
        name,
        describe: A::augment_args,
        understand: Box::new(move |matches| {
            let args = A::from_arg_matches(matches)?;
            Ok(Box::new(move |output: &Output| run(args, output)))
        }),
    }
}

/// The command line of a program: `ddfuzz` or `cargo ddfuzz`.
pub struct CommandLine {
    /// A function that adds the name, help texts and version of the program to clap's description
    /// of it.
    pub program: fn(Command) -> Command,
    /// A function that changes clap's description of a subcommand for this program.
    pub adapt: fn(Command) -> Command,
    pub subcommands: Vec<Subcommand>,
}

impl CommandLine {
    /// Returns the parser of all subcommands, with the texts of `--help`.
    pub fn command(&self) -> Command {
        self.with_subcommands(|_| true)
    }

    /// Returns a parser of the command line that knows only the subcommands whose names occur in
    /// `words`. It parses `words` like the parser of all subcommands, and takes less time to make.
    pub fn command_for(&self, words: &[OsString]) -> Command {
        self.with_subcommands(|name| words.iter().any(|word| word == name))
    }

    fn with_subcommands(&self, is_wanted: impl Fn(&str) -> bool) -> Command {
        let root = (self.program)(CommonArgs::command());
        let wanted = self.subcommands.iter().filter(|one| is_wanted(one.name));
        root.subcommands(wanted.map(|one| {
            let described = (one.describe)(Command::new(one.name));
            (self.adapt)(with_rare_options_last(described))
        }))
    }

    /// Returns the output settings of a parsed call, and a function that runs the call.
    pub fn understand(&self, matches: &ArgMatches) -> Result<(Output, Job), clap::Error> {
        let common = CommonArgs::from_arg_matches(matches)?;
        let called = matches.subcommand().and_then(|(name, below)| {
            let called = self.subcommands.iter().find(|one| one.name == name)?;
            Some((called.understand)(below))
        });
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        Ok((common.output, called.ok_or_else(missing)??))
    }
}

/// Returns `command` with the options under the headings in `RARE` at the end of its help. Each of
/// them is modified without effect: clap lists modified options last, and headings in the order of
/// their first options.
fn with_rare_options_last(command: Command) -> Command {
    let is_rare = |arg: &&Arg| {
        arg.get_help_heading()
            .is_some_and(|one| RARE.contains(&one))
    };
    let rare = command.get_arguments().filter(is_rare);
    let rare: Vec<Id> = rare.map(|arg| arg.get_id().clone()).collect();
    rare.into_iter()
        .fold(command, |command, id| command.mut_arg(id, |arg| arg))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{cargo, command_line};

    /// Parses the command line `words` by `parser`, and returns the debug text of the subcommand
    /// with its options, so that tests can compare what two parsers have understood.
    fn parsed(parser: Command, words: &[OsString]) -> Result<String, clap::Error> {
        let matches = parser.try_get_matches_from(words)?;
        Ok(format!("{:?}", matches.subcommand()))
    }

    #[test]
    fn the_parser_of_one_call_understands_it_as_that_of_all_subcommands_does() {
        let (own, project) = (command_line(), cargo::command_line());
        for (line, call, described) in [
            (&own, "ddfuzz run --target ul --time 10s -v", 1),
            (&own, "ddfuzz --color never log show x.jsonl --json", 2),
            (&own, "ddfuzz -q min run -o merge -- triage", 4),
            (&own, "ddfuzz check", 1),
            (&project, "ddfuzz triage parse", 1),
            (&project, "ddfuzz run parse -- -runs=1", 1),
        ] {
            let words: Vec<OsString> = call.split(' ').map(OsString::from).collect();
            let parser = line.command_for(&words);
            assert_eq!(parser.get_subcommands().count(), described, "{call}");
            let all = parsed(line.command(), &words).expect(call);
            assert_eq!(parsed(parser, &words).expect(call), all, "{call}");
        }
    }

    #[test]
    fn what_no_subcommand_accepts_the_parser_of_one_call_refuses() {
        let own = command_line();
        for call in [
            "ddfuzz",
            "ddfuzz --version",
            "ddfuzz help run",
            "ddfuzz runs",
            "ddfuzz run --nothing",
        ] {
            let words: Vec<OsString> = call.split(' ').map(OsString::from).collect();
            assert!(parsed(own.command_for(&words), &words).is_err(), "{call}");
        }
    }
}
