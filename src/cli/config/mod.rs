//! `ddfuzz.toml`: what a command line can say, in a file of the project.
//!
//! The settings become words of the command line, put in before they are parsed, so that each
//! option there is can be said in the file, and none has to be read twice.

mod file;
mod find;
mod merge;
mod nearest;
pub mod option;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};

use super::Failure;
use crate::files::OsText;
use crate::store::SettingsFile;
use merge::Merge;
use option::{Words, is_flag};

/// Which file of settings is read.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Settings file")]
pub struct ConfigArgs {
    /// Read settings from this file [default: ddfuzz.toml in this directory, or in the nearest one
    /// above it]. --no-FLAG switches a flag off that the file switches on
    #[arg(long, global = true, hide_short_help = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read no settings file
    #[arg(long, global = true, hide_short_help = true)]
    no_config: bool,
}

/// The words of a call, those of the file among them.
pub struct Call {
    /// The whole command line.
    pub words: Vec<OsString>,
    /// Where words come from that the user has not typed.
    pub settings: Option<SettingsFile>,
}

static SETTINGS: OnceLock<SettingsFile> = OnceLock::new();

/// The file of settings of this call, if it has one.
pub fn settings() -> Option<&'static SettingsFile> {
    SETTINGS.get()
}

/// Puts the settings of the file into the command line `words` of the program `root`, and keeps
/// where they come from. `whole` is ddfuzz, whose commands the file has tables for.
pub fn complete(words: Vec<OsString>, mut root: Command, whole: &Command) -> Result<Call, Failure> {
    root.build();
    let mut whole = whole.clone();
    whole.build();
    let typed = Typed::read(words, &root);
    let call = typed.complete(&root, &whole)?;
    if let Some(settings) = &call.settings {
        // There is one call in a process.
        let _ = SETTINGS.set(settings.clone());
    }
    Ok(call)
}

/// What the user has typed.
struct Typed {
    /// The words, without those that only take back what a file says.
    words: Vec<OsString>,
    /// Flags that are taken back, with the word that does so.
    taken_back: Vec<(String, OsString)>,
}

impl Typed {
    fn read(words: Vec<OsString>, root: &Command) -> Typed {
        let mut flags = Vec::new();
        let mut options = Vec::new();
        long_names(root, &mut flags, &mut options);
        let end = words.iter().position(|word| word == "--");
        let end = end.unwrap_or(words.len());
        let mut typed = Typed {
            words: Vec::new(),
            taken_back: Vec::new(),
        };
        for (at, word) in words.into_iter().enumerate() {
            let name = word.to_str().filter(|_| at < end).and_then(off);
            let known = |name: &str| flags.iter().any(|flag| flag == name);
            match name.filter(|name| known(name)).map(str::to_owned) {
                Some(name)
                    if !options
                        .iter()
                        .any(|one| word == format!("--{one}").as_str()) =>
                {
                    typed.taken_back.push((name, word));
                }
                _ => typed.words.push(word),
            }
        }
        typed
    }

    fn complete(self, root: &Command, whole: &Command) -> Result<Call, Failure> {
        let lenient = root.clone().ignore_errors(true);
        // Help and versions need no settings.
        let Ok(matches) = lenient.try_get_matches_from(&self.words) else {
            return Ok(self.into_typed());
        };
        let (names, leaf) = called(&matches);
        let Some(command) = command_of(root, &names) else {
            return Ok(self.into_typed());
        };
        let known = |name: &String| {
            let mut all = command.get_arguments();
            all.any(|arg| is_flag(arg) && arg.get_long() == Some(name))
        };
        if !self.taken_back.iter().all(|(name, _)| known(name)) {
            return Ok(self.into_typed());
        }
        let Some(path) = path(leaf)? else {
            return Ok(Call {
                words: self.words,
                settings: None,
            });
        };
        let text = find::text_of(&path)?;
        let settings = file::parse(&text).map_err(|error| {
            let message = format!("it is not valid TOML: {}", error.why);
            refused(&path, error.line, &message)
        })?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let merge = Merge {
            path: &path,
            folder,
            root,
            whole,
        };
        merge.check(&settings)?;
        let mut given = given(command, leaf);
        if root.get_name() != whole.get_name() {
            // A project's targets are its own.
            given.extend([option::TARGET.to_owned(), option::PROGRAM.to_owned()]);
        }
        for arg in command.get_arguments() {
            let back = |(name, _): &(String, OsString)| arg.get_long() == Some(name);
            if self.taken_back.iter().any(back) {
                given.push(arg.get_id().to_string());
            }
        }
        let taken = merge.taken(&settings, &names, given)?;
        Ok(self.with(&path, taken))
    }

    /// The call without a file: clap says what is wrong with it.
    fn into_typed(mut self) -> Call {
        let end = self.words.iter().position(|word| word == "--");
        let end = end.unwrap_or(self.words.len());
        let back = self.taken_back.into_iter().map(|(_, word)| word);
        self.words.splice(end..end, back);
        Call {
            words: self.words,
            settings: None,
        }
    }

    fn with(self, path: &Path, taken: Words) -> Call {
        let mut words = self.words;
        let found = words.iter().position(|word| word == "--");
        let end = found.unwrap_or(words.len());
        let mut all: Vec<OsString> = taken.options.clone();
        if !taken.program.is_empty() {
            all.push("--".into());
            all.extend(taken.program.clone());
            if found.is_none() {
                words.push("--".into());
            }
            words.extend(taken.program);
        }
        words.splice(end..end, taken.options);
        Call {
            words,
            settings: Some(SettingsFile {
                file: OsText(path.into()),
                arguments: all.into_iter().map(OsText).collect(),
            }),
        }
    }
}

/// The flag that a word takes back: `--no-NAME`, or `--NAME=false`.
fn off(word: &str) -> Option<&str> {
    let name = word.strip_prefix("--")?;
    name.strip_prefix("no-").or(name.strip_suffix("=false"))
}

/// The long names of all flags, and of all options.
fn long_names(command: &Command, flags: &mut Vec<String>, options: &mut Vec<String>) {
    for arg in command.get_arguments() {
        let Some(name) = arg.get_long() else {
            continue;
        };
        options.push(name.to_owned());
        if is_flag(arg) {
            flags.push(name.to_owned());
        }
    }
    for below in command.get_subcommands() {
        long_names(below, flags, options);
    }
}

/// The names of the command that is called, and what it was called with.
fn called(matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut names, mut leaf) = (Vec::new(), matches);
    while let Some((name, below)) = leaf.subcommand() {
        names.push(name);
        leaf = below;
    }
    (names, leaf)
}

/// The command of these names, which has none below it.
fn command_of<'a>(root: &'a Command, names: &[&str]) -> Option<&'a Command> {
    let mut command = root;
    for name in names {
        command = command.find_subcommand(name)?;
    }
    let is_last = !command.has_subcommands() && command.get_name() != "help";
    (is_last && !names.is_empty()).then_some(command)
}

/// The ids of all that the command line names.
fn given(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let ids = command.get_arguments().map(|arg| arg.get_id().as_str());
    let typed = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    typed.map(str::to_owned).collect()
}

/// The file of settings: absolute, for targets run elsewhere.
fn path(matches: &ArgMatches) -> Result<Option<PathBuf>, Failure> {
    // Where the command line has mistakes, defaults may be missing.
    let named = matches.try_get_one::<PathBuf>("config").ok().flatten();
    let without = matches.try_get_one::<bool>("no_config").ok().flatten();
    if without == Some(&true) {
        return match named {
            None => Ok(None),
            Some(_) => {
                Err(Failure::usage("both --config and --no-config are given")
                    .hint("give one of them"))
            }
        };
    }
    let here = || {
        std::env::current_dir().map_err(|error| {
            Failure::file(Path::new("."), "finding", &error)
                .hint("--no-config reads no settings file")
        })
    };
    match named {
        Some(named) => std::path::absolute(named)
            .map(Some)
            .map_err(|error| Failure::file(named, "finding", &error)),
        None => Ok(find::nearest_above(&here()?)),
    }
}

/// An error in the file; `line` 0 stands for the whole of it.
fn refused(path: &Path, line: usize, message: &str) -> Failure {
    let place = match line {
        0 => path.display().to_string(),
        line => format!("{}, line {line}", path.display()),
    };
    Failure::new(super::Exit::Usage, "config", format!("{place}: {message}")).path(path)
}

#[cfg(test)]
mod tests;
