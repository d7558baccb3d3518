//! Settings file `ddfuzz.toml`: finds the file, checks that no fuzzed program could have written
//! it, parses it, and adds its settings to the command line.
//!
//! Settings become words of the command line before clap parses it: each option can stand in the
//! file, and no option is parsed twice.

pub mod file;
pub mod options;

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command};
use nix::unistd::{Uid, User};

use crate::cli::Failure;
use crate::cli::config::options::{SettingWords, SettingsMerger, is_flag};
use crate::files::regular::Unread;
use crate::files::{OsText, regular};
use crate::store::SettingsFile;

/// Options that name the settings file to read, or switch it off.
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

/// The command line of this process, completed with options from the settings file.
pub struct Call {
    pub words: Vec<OsString>,
    /// The settings file that was read, and the words that were taken from it; `None` if none was
    /// read.
    pub settings: Option<SettingsFile>,
}

static SETTINGS: OnceLock<SettingsFile> = OnceLock::new();

/// Returns the settings file that this process has read; `None` if it has read none.
pub fn settings() -> Option<&'static SettingsFile> {
    SETTINGS.get()
}

/// Adds the settings of `ddfuzz.toml` to `words`, the command line of the program whose parser is
/// `root`, and returns the completed command line together with the file, because results record
/// it. `whole` is the parser of `ddfuzz`: the file may have a table for each of its commands,
/// whichever program is called.
pub fn complete(
    words: Vec<OsString>,
    mut root: Command,
    mut whole: Command,
) -> Result<Call, Failure> {
    root.build();
    whole.build();
    let typed = Typed::read(words, &root);
    let call = typed.complete(&root, &whole)?;
    if let Some(settings) = &call.settings {
        // There is one call in a process.
        let _ = SETTINGS.set(settings.clone());
    }
    Ok(call)
}

/// The command line as the user has typed it. Words that switch flags off are stored separately.
struct Typed {
    /// The typed words of the command line, except those that switch a flag off.
    words: Vec<OsString>,
    /// Flags that the command line switches off (`--no-FLAG`), each with the word that switches it
    /// off.
    taken_back: Vec<(String, OsString)>,
}

impl Typed {
    fn read(words: Vec<OsString>, root: &Command) -> Typed {
        let mut flags = Vec::new();
        flag_names(root, &mut flags);
        let end = words.iter().position(|word| word == "--");
        let end = end.unwrap_or(words.len());
        // Another command's option may have the form of a flag that this one switches off:
        // `--no-sandbox` of `revisit`.
        let called = words[..end].iter().fold(root, |command, word| {
            command.find_subcommand(word).unwrap_or(command)
        });
        let is_option = |word: &OsString| {
            let mut names = called.get_arguments().filter_map(Arg::get_long);
            names.any(|name| *word == format!("--{name}").as_str())
        };
        let mut typed = Typed {
            words: Vec::new(),
            taken_back: Vec::new(),
        };
        for (at, word) in words.into_iter().enumerate() {
            let name = word.to_str().filter(|_| at < end).and_then(off);
            let known = |name: &str| flags.iter().any(|flag| flag == name);
            match name.filter(|name| known(name)).map(str::to_owned) {
                Some(name) if !is_option(&word) => typed.taken_back.push((name, word)),
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
        let text = trusted_text(&path)?;
        let settings = file::parse(&text).map_err(|error| {
            let message = format!("it is not valid TOML: {}", error.why);
            settings_error(&path, error.line, &message)
        })?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let merge = SettingsMerger {
            path: &path,
            folder,
            root,
            whole,
        };
        merge.check(&settings)?;
        let mut given = given(command, leaf);
        if root.get_name() != whole.get_name() || reads_directory(&names, leaf) {
            // The target is that of the cargo-fuzz project, or the one that the output directory
            // records.
            given.extend([options::TARGET.to_owned(), options::PROGRAM.to_owned()]);
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

    /// Returns the command line as the user has typed it, without settings from the file, so that
    /// clap reports errors in what was typed.
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

    fn with(self, path: &Path, taken: SettingWords) -> Call {
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

/// Returns true if the called command works on the groups of an output directory by the target that
/// the directory records; else false. `names`: names of the subcommand, outermost first. `leaf`:
/// its parsed arguments.
fn reads_directory(names: &[&str], leaf: &ArgMatches) -> bool {
    let inputs = match names {
        ["min"] => "input",
        ["explain"] => "inputs",
        _ => return false,
    };
    let mut values = leaf
        .try_get_raw(inputs)
        .ok()
        .flatten()
        .into_iter()
        .flatten();
    let first = values.next().map(Path::new);
    first.is_some_and(|path| path.join("ddfuzz.json").is_file())
}

/// Returns NAME if `word` is `--no-NAME` or `--NAME=false`, which switch the flag `--NAME` off;
/// else `None`.
fn off(word: &str) -> Option<&str> {
    let name = word.strip_prefix("--")?;
    name.strip_suffix("=false").or(name.strip_prefix("no-"))
}

/// Returns true if one of the words before `--` may switch a flag off: its form is `--no-NAME` or
/// `--NAME=false`, and it is not `--no-config`.
pub fn may_switch_off(words: &[OsString]) -> bool {
    let mut own = words.iter().take_while(|word| *word != "--");
    own.any(|word| {
        let word = word.to_str().filter(|word| *word != "--no-config");
        word.and_then(off).is_some()
    })
}

/// Returns true if the call with this parsed command line reads a settings file.
pub fn has_settings_file(matches: &ArgMatches) -> Result<bool, Failure> {
    let (_, leaf) = called(matches);
    Ok(path(leaf)?.is_some())
}

/// Appends the long names of all flags (options without a value) of a command and its subcommands
/// to `flags`.
fn flag_names(command: &Command, flags: &mut Vec<String>) {
    let own = command.get_arguments().filter(|arg| is_flag(arg));
    flags.extend(own.filter_map(Arg::get_long).map(str::to_owned));
    for below in command.get_subcommands() {
        flag_names(below, flags);
    }
}

/// Returns the names of the subcommand that the user called, outermost first (`log`, `show`), and
/// its parsed arguments.
fn called(matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut names, mut leaf) = (Vec::new(), matches);
    while let Some((name, below)) = leaf.subcommand() {
        names.push(name);
        leaf = below;
    }
    (names, leaf)
}

/// Returns clap's parser of the subcommand with these `names`, outermost first; `None` if there is
/// no such subcommand, if it only groups further subcommands, or if it is `help`.
fn command_of<'a>(root: &'a Command, names: &[&str]) -> Option<&'a Command> {
    let mut command = root;
    for name in names {
        command = command.find_subcommand(name)?;
    }
    let is_last = !command.has_subcommands() && command.get_name() != "help";
    (is_last && !names.is_empty()).then_some(command)
}

/// Returns the ids of the arguments that the user has given on the command line.
fn given(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let ids = command.get_arguments().map(|arg| arg.get_id().as_str());
    let typed = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
    typed.map(str::to_owned).collect()
}

/// Returns the absolute path of the settings file to read: the one that `--config` names, else the
/// nearest `ddfuzz.toml`, in the current directory or one above it. `None` if there is none, or
/// with `--no-config`. Fails if both options are given.
fn path(matches: &ArgMatches) -> Result<Option<PathBuf>, Failure> {
    // If the command line has mistakes, default values may be missing.
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
        None => Ok(nearest_above(&here()?)),
    }
}

/// Builds the failure for an error in the settings file at line number `line`; 0 means the whole
/// file.
fn settings_error(path: &Path, line: usize, message: &str) -> Failure {
    let place = match line {
        0 => path.display().to_string(),
        line => format!("{}, line {line}", path.display()),
    };
    Failure::new(super::Exit::Usage, "config", format!("{place}: {message}")).path(path)
}

/// File name of the settings file in a project directory.
pub const FILE_NAME: &str = "ddfuzz.toml";
/// Maximum size of a settings file, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// Returns the path of the settings file in `folder`, or in the nearest directory above it that has
/// one; `None` if none has.
pub fn nearest_above(folder: &Path) -> Option<PathBuf> {
    let named = folder.ancestors().map(|one| one.join(FILE_NAME));
    // A link that leads nowhere counts as found, so that reading it gives an error.
    named
        .into_iter()
        .find(|path| path.symlink_metadata().is_ok())
}

/// Reads the settings file; fails if a fuzzed program could have written it, or if it is too large
/// or not UTF-8.
pub fn trusted_text(path: &Path) -> Result<String, Failure> {
    let bytes = regular::read(path, LARGEST_FILE).map_err(|error| unread(path, &error))?;
    trust(path)?;
    String::from_utf8(bytes).map_err(|error| {
        let read = error
            .as_bytes()
            .iter()
            .take(error.utf8_error().valid_up_to());
        let line = 1 + read.filter(|byte| **byte == b'\n').count();
        settings_error(path, line, "it is not UTF-8 text")
    })
}

fn unread(path: &Path, error: &Unread) -> Failure {
    let why = match error {
        Unread::Missing => "there is no such file".to_owned(),
        Unread::TooLarge { limit } => {
            format!("it is larger than {limit} bytes, the limit for a settings file")
        }
        Unread::NotAFile(kind) => format!("it is {kind}, not a settings file"),
        Unread::Refused(why) => format!("it cannot be read: {why}"),
    };
    untrusted(path, &why)
}

/// Fails if everybody or the user `nobody` can write the settings file or its directory. The file
/// names the program to run; a fuzzed program, which may run as `nobody`, could otherwise choose
/// what is executed next.
fn trust(path: &Path) -> Result<(), Failure> {
    let real = path
        .canonicalize()
        .map_err(|error| Failure::file(path, "finding", &error))?;
    let facts = |path: &Path| {
        path.metadata()
            .map_err(|error| Failure::file(path, "reading", &error))
    };
    let file = facts(&real)?;
    if let Some(why) = who_else(&file, &file) {
        return Err(untrusted(path, &format!("the file {why}")));
    }
    // The directory of a link is checked, too: who can write there could change the link.
    for folder in [path.parent(), real.parent()].into_iter().flatten() {
        let folder = match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        };
        if let Some(why) = who_else(&facts(folder)?, &file) {
            return Err(untrusted(path, &format!("its directory {why}")));
        }
    }
    Ok(())
}

/// Returns who else can change the file or directory with the metadata `facts`, as the end of a
/// sentence: everybody, or the user `nobody`, under which fuzzed programs run. `None` if neither
/// can. A directory that everybody can write is safe if it is sticky and both it and the settings
/// file (with the metadata `file`) belong to the user or root.
fn who_else(facts: &Metadata, file: &Metadata) -> Option<&'static str> {
    let mode = facts.permissions().mode();
    let us = Uid::effective().as_raw();
    let own = |facts: &Metadata| facts.uid() == us || facts.uid() == 0;
    // In a sticky directory only owners replace files.
    let kept = facts.is_dir() && mode & 0o1000 != 0 && own(facts) && own(file);
    if mode & 0o002 != 0 && !kept {
        return Some(match own(facts) {
            true => "can be written by everybody, including a fuzzed program",
            false => "belongs to another user and can be written by everybody",
        });
    }
    let nobody = User::from_name("nobody").ok().flatten();
    let nobody = nobody.map_or(65534, |user| user.uid.as_raw());
    let foreign = facts.uid() == nobody && us != nobody;
    foreign.then_some("belongs to the user nobody, as whom fuzzed programs run")
}

fn untrusted(path: &Path, why: &str) -> Failure {
    settings_error(path, 0, why).hint(
        "check the path, and that only you can write to the file and its directory; --config \
         FILE reads another file, --no-config reads none",
    )
}
