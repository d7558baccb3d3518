//! The command line: a file or folder per subcommand. This file parses the command line and runs
//! the subcommand.
//!
//! Only the command line uses `clap` (arguments), `signal-hook` (Ctrl-C) and `indicatif` (progress
//! lines, in [`ui`]).

mod behaviour;
mod campaign_args;
pub mod cargo;
mod changes;
mod check;
mod clean;
mod config;
mod difference;
mod doctor;
mod explain;
mod export;
mod failure;
mod generate;
mod interestingness;
mod log;
mod man_and_completions;
mod merge;
mod min;
mod output;
mod recorded_conditions;
mod report;
mod reports;
mod results;
mod revisit;
mod run;
pub mod runner;
mod show;
mod signals;
mod subcommands;
mod target;
mod triage;
pub mod ui;
mod values;
mod watch;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, ColorChoice};

pub use failure::Exit;
pub use man_and_completions::Program;

use crate::exec::find_program;
use config::options::PROGRAM;
use failure::{DISTURBED, Failure};
use output::Output;
use subcommands::{CommandLine, subcommand};

const ABOUT: &str = "Fuzz programs, group their crashes by bug, and minimize each to its shortest \
    reproducer while the campaign runs";

const EXAMPLE: &str = "Example:\n  ddfuzz run --target ul --time 10s\n\n\
    Exit codes: 0 success, or no crash found; 1 crashes found, or a check failed; 2 wrong usage; \
    3 the target does not start, or the input does not crash it; 4 only crashes of known groups; \
    70 internal error; 130 interrupted, the state is saved";

/// Returns the command line of `ddfuzz`.
fn command_line() -> CommandLine {
    CommandLine {
        program: |root| {
            let root = root.name("ddfuzz").about(ABOUT).after_help(EXAMPLE);
            root.version(env!("CARGO_PKG_VERSION"))
        },
        adapt: |subcommand| subcommand,
        subcommands: vec![
            subcommand("run", run::run),
            subcommand("min", min::run),
            subcommand("diff", difference::diff),
            subcommand("max", difference::max),
            subcommand("triage", triage::run),
            subcommand("watch", watch::run),
            subcommand("check", check::run),
            subcommand("changes", changes::run),
            subcommand("clean", clean::run),
            subcommand("revisit", revisit::run),
            subcommand("log", log::run),
            subcommand("show", show::run),
            subcommand("explain", explain::run),
            subcommand("report", report::run),
            subcommand("export", export::run),
            subcommand("merge", merge::run),
            subcommand("gen", generate::run),
            subcommand("doctor", doctor::run),
            subcommand("completions", man_and_completions::run_completions),
            subcommand("man", man_and_completions::run_man),
        ],
    }
}

/// Runs `ddfuzz`: parses the command line and the settings file, runs the subcommand, and returns
/// its exit code.
pub fn main() -> ExitCode {
    called(std::env::args_os().collect(), &command_line())
}

/// Runs one call of `ddfuzz` or `cargo ddfuzz`, whichever `line` describes: adds options from the
/// settings file (`ddfuzz.toml`) to the words that the user typed, parses them, runs the
/// subcommand, and returns its exit code.
fn called(typed: Vec<OsString>, line: &CommandLine) -> ExitCode {
    release_freed_memory();
    let asks_json = wants_json(&typed);
    let ParsedCall {
        call,
        hint,
        matches,
    } = match parse(typed, line) {
        Ok(parsed) => parsed,
        Err(failure) => {
            Output::early(asks_json).failure(&failure);
            return failure.exit.into();
        }
    };
    let is_resumable = matches.as_ref().is_ok_and(has_resume);
    let continuation = matches.as_ref().map_or("", continuation);
    let (output, job) = match matches.and_then(|matches| line.understand(&matches)) {
        Ok(job) => job,
        Err(error) => return usage(&error, &call, hint.as_deref()),
    };
    if let Some(settings) = &call.settings {
        output.detail(&settings.to_string());
    }
    let done = catch_unwind(AssertUnwindSafe(|| job(&output)));
    output.warn_of_tracers();
    match done.unwrap_or_else(|panic| Err(Failure::of_panic(&*panic))) {
        Ok(exit) => output::exit_code(exit).into(),
        Err(failure) => {
            let failure = match is_resumable {
                true => failure.of_resumable(),
                false => failure,
            };
            let failure = failure.continued_by(continuation);
            output.failure(&failure);
            failure.exit.into()
        }
    }
}

/// A command line, and the result of parsing it with clap.
struct ParsedCall {
    /// The words of the command line that were parsed, with those added from the settings file.
    call: config::Call,
    /// Hint for the user that `--` seems to be missing; `None` if there is none.
    hint: Option<String>,
    matches: Result<ArgMatches, clap::Error>,
}

/// Parses the words that the user typed, after a missing `--` was inserted and options from the
/// settings file were added. Fails if that file cannot be used.
///
/// Most calls have no settings file and nothing to insert. They are parsed once, by a parser that
/// has no more than the called subcommand.
fn parse(typed: Vec<OsString>, line: &CommandLine) -> Result<ParsedCall, Failure> {
    if !config::may_switch_off(&typed) {
        let root = line.command_for(&typed).color(color(&typed));
        if let Ok(matches) = root.try_get_matches_from(&typed)
            && !config::has_settings_file(&matches)?
        {
            return Ok(ParsedCall {
                call: config::Call {
                    words: typed,
                    settings: None,
                },
                hint: None,
                matches: Ok(matches),
            });
        }
    }
    let root = line.command();
    let CompletedWords { words, hint } = insert_dashes(typed, &root);
    let call = config::complete(words, root.clone(), command_line().command())?;
    let root = root.color(color(&call.words));
    Ok(ParsedCall {
        matches: root.try_get_matches_from(&call.words).map_err(without_tip),
        call,
        hint,
    })
}

/// Removes from a usage error clap's tip to put a word that begins with `-` after `--`: the words
/// there are the target's.
fn without_tip(mut error: clap::Error) -> clap::Error {
    error.remove(clap::error::ContextKind::Suggested);
    error
}

/// Returns a hint for people how the call with this parsed command line can be continued after an
/// interruption.
fn continuation(matches: &ArgMatches) -> &'static str {
    let is_given = |matches: &ArgMatches, name: &str| matches.ids().any(|id| id == name);
    match matches.subcommand() {
        Some(("clean" | "changes", _)) => "continue with the same command",
        Some(("triage", triage)) if !is_given(triage, "out") => {
            "with -o DIR a triage can be continued by --resume"
        }
        Some((_, below)) => continuation(below),
        None if is_given(matches, "resume") => failure::CONTINUE,
        None => "run the same command again: it begins anew",
    }
}

/// Returns true if the subcommand of a parsed command line has the option `--resume`, given or not.
fn has_resume(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, below)) => has_resume(below),
        // A flag that is not given has the value false.
        None => matches.ids().any(|id| id == "resume"),
    }
}

/// Returns true if the command line has `--json`; words after `--` belong to the target.
fn wants_json(words: &[OsString]) -> bool {
    let mut own = words.iter().take_while(|word| *word != "--");
    own.any(|word| word == "--json")
}

/// Finds the value of `--color` in the words of a command line. Needed for help texts and usage
/// errors, which clap prints before it has parsed that option.
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
        _ if output::is_dumb() => ColorChoice::Never,
        // By the terminal and NO_COLOR.
        _ => ColorChoice::Auto,
    }
}

/// Prints the help, version or usage error that clap returned as `error`, with a hint if there is
/// one, and returns the exit code.
fn usage(error: &clap::Error, call: &config::Call, hint: Option<&str>) -> ExitCode {
    if !error.use_stderr() {
        return match error.print() {
            // Nothing can be done about a closed stdout.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                output::tell(&format!("error: writing to stdout: {error}"));
                Exit::Usage.into()
            }
            _ => Exit::Done.into(),
        };
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

/// The words of a command line, into which a missing `--` was inserted if it is clear where it
/// belongs; if it is not clear, a hint.
pub struct CompletedWords {
    /// The words of the command line, with `--` inserted before the target program if it was
    /// missing and the command line has only one meaning with it.
    pub words: Vec<OsString>,
    /// Hint that `--` seems to be missing; `None` if it is not missing, or was inserted.
    pub hint: Option<String>,
}

/// Inserts a missing `--` before the target program: the first word that ddfuzz does not accept and
/// that names a program. If options of ddfuzz follow that program, they might be meant for it; so
/// the words stay unchanged, and a hint is returned.
pub fn insert_dashes(words: Vec<OsString>, root: &clap::Command) -> CompletedWords {
    let unchanged = |words, hint| CompletedWords { words, hint };
    if words.iter().any(|word| word == "--") {
        return unchanged(words, None);
    }
    let Some(stray) = stray_program(&words, root) else {
        return unchanged(words, None);
    };
    let mut root = root.clone();
    root.build();
    for at in (0..words.len()).filter(|at| words[*at] == stray.as_str()) {
        let mut completed = words.clone();
        completed.insert(at, "--".into());
        let Ok(matches) = root.clone().try_get_matches_from(&completed) else {
            continue;
        };
        let Some((name, leaf)) = matches.subcommand() else {
            continue;
        };
        let program = leaf.try_get_many::<OsString>(PROGRAM).ok().flatten();
        if program.is_none_or(|mut program| program.next() != words.get(at)) {
            continue;
        }
        let command = root.find_subcommand(name);
        let is_own = |word: &OsString| command.is_some_and(|command| is_option(word, command));
        if words[at..].iter().any(is_own) {
            let hint =
                format!("options of ddfuzz come first, then `--`, then the program: -- {stray} …");
            return unchanged(words, Some(hint));
        }
        return unchanged(completed, None);
    }
    unchanged(words, None)
}

/// Returns the first of the command-line words `words` that clap, by the description `root` of all
/// subcommands, does not accept as an argument, if this word names an executable program; else
/// `None`.
fn stray_program(words: &[OsString], root: &clap::Command) -> Option<String> {
    let error = root.clone().try_get_matches_from(words).err()?;
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word)))
            if !word.starts_with('-') && find_program(word.as_ref()).is_ok() =>
        {
            Some(word.clone())
        }
        _ => None,
    }
}

/// Returns true if a word of the command line is an option of `command`, such as `--jobs=4` or
/// `-o`.
fn is_option(word: &OsString, command: &clap::Command) -> bool {
    let word = word.to_string_lossy();
    command.get_arguments().any(|arg| {
        let long = arg.get_long().map(|name| format!("--{name}"));
        let short = arg.get_short().map(|name| format!("-{name}"));
        let name = word.split('=').next().unwrap_or_default();
        long.is_some_and(|long| long == name) || short.is_some_and(|short| short == word)
    })
}

/// Minimum size in bytes of heap blocks that glibc returns to the system as soon as they are freed.
#[cfg(target_env = "gnu")]
const LARGE_BLOCK: i32 = 1 << 20;
/// Maximum number of bytes of free memory that glibc keeps at the end of its heap; it returns more
/// to the system.
#[cfg(target_env = "gnu")]
const SPARE_HEAP: i32 = 4 << 20;

/// Configures glibc so that it returns freed large blocks to the system. By default, after the
/// first large block was freed, glibc keeps freed blocks of this size (up to 32 MiB), such as the
/// program files that each worker reads for symbols.
fn release_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes numbers, and changes how the C library allocates from here on.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK);
        libc::mallopt(libc::M_TRIM_THRESHOLD, SPARE_HEAP);
    }
}

#[cfg(all(test, target_env = "gnu", target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Returns true if a heap block has its own memory mapping: glibc stores a flag for that in the
    /// word before the block.
    fn is_mapped(block: &[u8]) -> bool {
        const IS_MMAPPED: usize = 2;
        // SAFETY: glibc keeps the size of a block and its flags in the word before it.
        let size = unsafe { block.as_ptr().cast::<usize>().sub(1).read() };
        size & IS_MMAPPED != 0
    }

    #[test]
    fn only_a_command_with_that_option_is_to_be_repeated_with_resume() {
        let full = || {
            let error = std::io::Error::from(std::io::ErrorKind::StorageFull);
            let error = crate::files::FileError::at("write", "out/x".as_ref())(error);
            Failure::from(crate::store::StoreError::from(error))
        };
        let hint = |failure: Failure| failure.report().error.hint.clone().unwrap_or_default();
        assert!(hint(full()).ends_with("repeat the command"));
        assert!(hint(full().of_resumable()).ends_with("repeat the command with --resume"));
        let is_resumable = |words: &str| {
            let matches = command_line()
                .command()
                .try_get_matches_from(words.split(' '));
            has_resume(&matches.expect("a command line"))
        };
        for words in ["merge a b -o c", "check out", "report out", "log show x"] {
            assert!(!is_resumable(&format!("ddfuzz {words}")), "{words}");
        }
        for words in ["run --target ul", "min x --resume -- y", "triage x -- y"] {
            assert!(is_resumable(&format!("ddfuzz {words}")), "{words}");
        }
    }

    #[test]
    fn an_interrupted_command_names_only_what_continues_it() {
        let hint = |words: &str| {
            let matches = command_line()
                .command()
                .try_get_matches_from(words.split(' '));
            let continuation = continuation(&matches.expect("a command line"));
            let failure = Failure::interrupted().hint(failure::CONTINUE);
            let failure = failure.continued_by(continuation);
            failure.report().error.hint.clone().unwrap_or_default()
        };
        for (words, continued) in [
            ("ddfuzz run --target ul", failure::CONTINUE),
            ("ddfuzz min x -- y", failure::CONTINUE),
            ("ddfuzz triage x -o out -- y", failure::CONTINUE),
            (
                "ddfuzz triage x -- y",
                "with -o DIR a triage can be continued by --resume",
            ),
            ("ddfuzz clean x -o y -- z", "continue with the same command"),
            (
                "ddfuzz log verify x",
                "run the same command again: it begins anew",
            ),
            (
                "ddfuzz check out",
                "run the same command again: it begins anew",
            ),
        ] {
            assert_eq!(hint(words), continued, "{words}");
        }
    }

    #[test]
    fn a_large_block_is_given_back_though_one_like_it_was_freed_before() {
        release_freed_memory();
        for _ in 0..3 {
            let block = vec![1; 20 << 20];
            assert!(is_mapped(&block));
            drop(block);
        }
        assert!(!is_mapped(&vec![1; 64 << 10]));
    }
}
