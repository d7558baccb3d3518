//! The command line: one file per subcommand, or a folder.
//!
//! Localized here: `clap` (arguments), `signal-hook` (Ctrl-C) and
//! `indicatif` (the progress line, in [`ui`]).

mod amounts;
mod behaviour;
pub mod cargo;
mod channel;
mod check;
mod clean;
mod completions;
mod config;
mod dashes;
mod difference;
mod doctor;
mod exit;
mod export;
mod failure;
mod fuzz_manifest;
mod generate;
mod generated;
mod generator;
mod keys;
mod known;
mod log;
mod log_show;
mod man;
mod memory;
mod merge;
mod min;
mod next;
mod oracles;
mod output;
mod programs;
mod recorded;
mod reports;
mod results;
mod revisit;
mod run;
pub mod runner;
mod script;
mod seeds;
mod show;
mod shrinking;
mod signals;
mod slips;
mod target;
mod triage;
pub mod ui;
mod watch;
mod watched;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, ColorChoice, CommandFactory, FromArgMatches, Id, Parser, Subcommand};

pub use exit::Exit;
use failure::Failure;
use output::Output;
pub use programs::Program;

/// Fuzz programs, group their crashes by bug, and minimize each to its shortest reproducer while
/// the campaign runs
#[derive(Parser)]
#[command(name = "ddfuzz", version, max_term_width = 100, after_help = EXAMPLE)]
struct Cli {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    config: config::ConfigArgs,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLE: &str = "Example:\n  ddfuzz run --target ul --time 10s\n\n\
    Exit codes: 0 success, or no crash found; 1 crashes found, or a check failed; 2 wrong usage; \
    3 the target does not start, or the input does not crash it; 4 only crashes of known groups; \
    70 internal error; 130 interrupted, the state is saved";

#[derive(Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Min(min::Args),
    Diff(difference::diff::Args),
    Max(difference::max::Args),
    Triage(triage::Args),
    Watch(watch::Args),
    Check(check::Args),
    Clean(Box<clean::Args>),
    Revisit(Box<revisit::Args>),
    Log(log::Args),
    Show(show::Args),
    Export(export::Args),
    Merge(merge::Args),
    Gen(generate::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// The command line of `ddfuzz`.
fn command() -> clap::Command {
    with_rare_options_last(Cli::command())
}

/// Headings of the help whose options few users need.
const RARE: [&str; 2] = [channel::HEADING, run::NETWORK];

/// The command line with rare options at the end of each help: clap shows headings in the order of
/// their first options, and puts an option that is changed behind all others.
fn with_rare_options_last(mut root: clap::Command) -> clap::Command {
    let is_rare = |arg: &&Arg| {
        arg.get_help_heading()
            .is_some_and(|one| RARE.contains(&one))
    };
    let names: Vec<String> = (root.get_subcommands())
        .map(|command| command.get_name().to_owned())
        .collect();
    for name in names {
        root = root.mut_subcommand(name, |command| {
            let rare = command.get_arguments().filter(is_rare);
            let rare: Vec<Id> = rare.map(|arg| arg.get_id().clone()).collect();
            rare.into_iter()
                .fold(command, |command, id| command.mut_arg(id, |arg| arg))
        });
    }
    root
}

/// Parses the command line with the settings of a file, runs the command, and gives its exit code.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    called(words, command(), &command(), |matches| {
        let cli = Cli::from_arg_matches(matches)?;
        Ok((cli.output.clone(), move |output: &Output| cli.run(output)))
    })
}

/// One call of a program with this command line; `whole` has the tables of the file of settings.
/// `understand` makes of the matches what is to be done.
fn called<Job: FnOnce(&Output) -> Result<Exit, Failure>>(
    typed: Vec<OsString>,
    root: clap::Command,
    whole: &clap::Command,
    understand: impl FnOnce(&ArgMatches) -> Result<(Output, Job), clap::Error>,
) -> ExitCode {
    memory::give_back();
    let asks_json = wants_json(&typed);
    let dashes::Words { words: typed, hint } = dashes::complete(typed, &root);
    let call = match config::complete(typed, root.clone(), whole) {
        Ok(call) => call,
        Err(failure) => {
            Output::early(asks_json).failure(&failure);
            return failure.exit.into();
        }
    };
    let root = root.color(color(&call.words));
    let matches = root.try_get_matches_from(&call.words);
    let (output, job) = match matches.and_then(|matches| understand(&matches)) {
        Ok(job) => job,
        Err(error) => return usage(&error, &call, hint.as_deref()),
    };
    if let Some(settings) = &call.settings {
        output.detail(&settings.to_string());
    }
    match job(&output) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output.failure(&failure);
            failure.exit.into()
        }
    }
}

impl Cli {
    fn run(self, output: &Output) -> Result<Exit, Failure> {
        match self.command {
            Command::Run(args) => run::run(*args, output),
            Command::Min(args) => min::run(args, output),
            Command::Diff(args) => difference::diff::run(args, output),
            Command::Max(args) => difference::max::run(args, output),
            Command::Triage(args) => triage::run(args, output),
            Command::Watch(args) => watch::run(args, output),
            Command::Check(args) => check::run(args, output),
            Command::Clean(args) => clean::run(*args, output),
            Command::Revisit(args) => revisit::run(*args, output),
            Command::Log(args) => log::run(args, output),
            Command::Show(args) => show::run(args, output),
            Command::Export(args) => export::run(args, output),
            Command::Merge(args) => merge::run(args, output),
            Command::Gen(args) => generate::run(args, output),
            Command::Doctor(args) => doctor::run(args, output),
            Command::Completions(args) => completions::run(&args, output),
            Command::Man(args) => man::run(&args, output),
        }
    }
}

/// Whether the answer is to be JSON. What stands behind `--` is the target's.
fn wants_json(words: &[OsString]) -> bool {
    let mut own = words.iter().take_while(|word| *word != "--");
    own.any(|word| word == "--json")
}

/// What --color says of help and of wrong command lines, which come before it is understood.
fn color(words: &[OsString]) -> ColorChoice {
    let own: Vec<&OsString> = words.iter().take_while(|word| *word != "--").collect();
    let says = |value: &str| {
        let joined = OsString::from(format!("--color={value}"));
        let apart = |pair: &[&OsString]| pair[0] == "--color" && pair[1] == value;
        own.contains(&&joined) || own.windows(2).any(apart)
    };
    match (says("never"), says("always")) {
        (true, false) => ColorChoice::Never,
        (false, true) => ColorChoice::Always,
        // By the terminal and NO_COLOR.
        _ => ColorChoice::Auto,
    }
}

/// Help and version are no errors; anything else is a wrong command line.
fn usage(error: &clap::Error, call: &config::Call, hint: Option<&str>) -> ExitCode {
    if !error.use_stderr() {
        // Nothing can be done about a closed stdout.
        let _ = error.print();
        return Exit::Done.into();
    }
    let settings = call
        .settings
        .as_ref()
        .filter(|file| !file.arguments.is_empty());
    if wants_json(&call.words) {
        let message = error.to_string();
        let sentence = message.lines().take_while(|line| !line.is_empty());
        let sentence = sentence.map(str::trim).collect::<Vec<_>>().join(" ");
        let sentence = sentence.trim_start_matches("error: ");
        let hint = hint.unwrap_or("see --help");
        let hint = match settings {
            Some(settings) => format!("{hint}; {settings}"),
            None => hint.to_owned(),
        };
        Output::early(true).failure(&Failure::usage(sentence).hint(hint));
    } else {
        let _ = error.print();
        if let Some(hint) = hint {
            output::tell(&format!("hint: {hint}"));
        }
        if let Some(settings) = settings {
            output::tell(&format!("hint: {settings}; --no-config ignores that file"));
        }
    }
    Exit::Usage.into()
}
