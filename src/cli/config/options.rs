//! Checks the settings of `ddfuzz.toml` against the options of the commands, and converts them to
//! words of a command line.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command};

use super::file::{Setting, Value};
use super::settings_error;
use crate::cli::Failure;

/// Name of the table in `ddfuzz.toml` whose settings apply to all commands that have the option.
pub const COMMON: &str = "common";
/// Options that can be set in `ddfuzz.toml` for one command, but not for all commands at once.
const OF_ONE_COMMAND: [&str; 7] = [
    "out",
    "log",
    "resume",
    "force",
    "export-test",
    "html",
    "markdown",
];
/// Options that cannot be set in `ddfuzz.toml`: those about the settings file itself, and those
/// that only make sense for a single call.
pub(super) const OF_THE_CALL: [&str; 6] = [
    "config",
    "no-config",
    "help",
    "version",
    "compare",
    "no-sandbox",
];
/// Commands that read their target from recorded files; the target in the table `common` of
/// `ddfuzz.toml` does not apply to them.
const WITH_A_TARGET_ON_RECORD: [&str; 2] = ["check", "log"];

/// Converts the settings of a settings file to options of the command line. It knows the file's
/// path, and the command-line parsers that check the settings.
pub struct SettingsMerger<'a> {
    /// Path of the settings file, which error messages name.
    pub path: &'a Path,
    /// Directory of the settings file; relative paths in the file start there.
    pub folder: &'a Path,
    /// Command-line parser (clap) of the running program, `ddfuzz` or `cargo ddfuzz`: settings are
    /// converted for its commands.
    pub root: &'a Command,
    /// Command-line parser (clap) of `ddfuzz`, with all its commands: settings are checked against
    /// their options.
    pub whole: &'a Command,
}

impl SettingsMerger<'_> {
    /// Checks all settings of the file. Fails at the first setting that no command accepts; the
    /// error names the setting's line and the most similar known name.
    pub fn check(&self, settings: &[Setting]) -> Result<(), Failure> {
        for setting in settings {
            let Value::Table(inner) = &setting.value else {
                return Err(self.outside_of_tables(setting));
            };
            match self.whole.find_subcommand(&setting.key) {
                _ if setting.key == COMMON => self.check_table(inner, self.whole, COMMON)?,
                Some(command) => self.check_table(inner, command, &setting.key)?,
                None => {
                    let names = self.whole.get_subcommands().map(Command::get_name);
                    let names = names.chain([COMMON]).filter(|name| *name != "help");
                    return Err(self.unknown(setting, "table", names.collect()));
                }
            }
        }
        Ok(())
    }

    fn outside_of_tables(&self, setting: &Setting) -> Failure {
        let message = format!("{} is in no table", setting.key);
        settings_error(self.path, setting.line, &message).hint(format!(
            "put it under [{COMMON}], or under the command that it is for, like [run]"
        ))
    }

    fn check_table(
        &self,
        settings: &[Setting],
        command: &Command,
        table: &str,
    ) -> Result<(), Failure> {
        for setting in settings {
            let (key, line) = (setting.key.as_str(), setting.line);
            let below = (table != COMMON).then(|| command.find_subcommand(key));
            if let (Value::Table(inner), Some(Some(below))) = (&setting.value, below) {
                self.check_table(inner, below, &format!("{table}.{key}"))?;
                continue;
            }
            let takers = with_option(command, key);
            if OF_THE_CALL.contains(&key) {
                let message = format!("{key} cannot be set in a settings file");
                return Err(
                    settings_error(self.path, line, &message).hint("give it on the command line")
                );
            }
            if takers.is_empty() {
                let mut known = BTreeSet::new();
                names(command, &mut known);
                return Err(self.unknown(setting, &format!("key of [{table}]"), known));
            }
            if table == COMMON && OF_ONE_COMMAND.contains(&key) {
                let message = format!("{key} cannot be set for all commands at once");
                return Err(settings_error(self.path, line, &message).hint(format!(
                    "put it under the command that it is for, like [{}]",
                    takers[0].0
                )));
            }
            for (_, arg) in takers {
                setting_words(arg, &setting.value, self.folder)
                    .map_err(|why| settings_error(self.path, line, &format!("{key} {why}")))?;
            }
        }
        Ok(())
    }

    fn unknown(&self, setting: &Setting, what: &str, known: BTreeSet<&str>) -> Failure {
        let message = format!("{} is not a {what}", setting.key);
        let failure = settings_error(self.path, setting.line, &message);
        match nearest_name(&setting.key, known.iter().copied()) {
            Some(name) => failure.hint(format!("did you mean {name}?")),
            None => {
                let known: Vec<&str> = known.into_iter().collect();
                failure.hint(format!("there are {}", known.join(", ")))
            }
        }
    }

    /// Converts settings to command-line words for the command `names` (names of subcommands,
    /// outermost first). The settings must have passed [`SettingsMerger::check`]. If several tables
    /// have the same setting, the most specific table counts. `given`: ids of the options on the
    /// command line; these, and options that conflict with them, are left out.
    pub fn taken(
        &self,
        settings: &[Setting],
        names: &[&str],
        mut given: Vec<String>,
    ) -> Result<SettingWords, Failure> {
        let (command, tables) = self.tables(settings, names);
        let mut taken = SettingWords::default();
        for (table, settings) in tables.into_iter().rev() {
            let mut present = Vec::new();
            for setting in settings {
                let option = option(command, &setting.key);
                let Some(arg) = option.filter(|_| !matches!(setting.value, Value::Table(_))) else {
                    continue;
                };
                let on_record = table == COMMON
                    && setting.key == TARGET
                    && WITH_A_TARGET_ON_RECORD.contains(&names[0]);
                if on_record || is_excluded(command, arg, &given) {
                    continue;
                }
                let words = setting_words(arg, &setting.value, self.folder)
                    .map_err(|why| settings_error(self.path, setting.line, &why))?;
                present.push(match words.program.is_empty() {
                    true => arg.get_id().to_string(),
                    false => PROGRAM.to_owned(),
                });
                taken.options.extend(words.options);
                taken.program.extend(words.program);
            }
            given.extend(present);
        }
        Ok(taken)
    }

    /// Returns the parser of the command `names` (subcommand names, outermost first), and those
    /// tables of the settings file that apply to this command, the most general first.
    fn tables<'s>(
        &'s self,
        settings: &'s [Setting],
        names: &[&'s str],
    ) -> (&'s Command, Vec<(&'s str, &'s [Setting])>) {
        let mut tables: Vec<(&str, &[Setting])> = Vec::new();
        let table = |settings: &'s [Setting], name: &str| {
            let found = settings.iter().find(|setting| setting.key == name);
            match found.map(|setting| &setting.value) {
                Some(Value::Table(inner)) => Some(&inner[..]),
                _ => None,
            }
        };
        tables.extend(table(settings, COMMON).map(|inner| (COMMON, inner)));
        let mut command = self.root;
        let mut level = Some(settings);
        for name in names {
            command = command.find_subcommand(name).unwrap_or(command);
            level = level.and_then(|level| table(level, name));
            tables.extend(level.map(|inner| (*name, inner)));
        }
        (command, tables)
    }
}

/// Returns the option of a command with the long name `name`; `None` if the command has no such
/// option.
fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command
        .get_arguments()
        .find(|arg| arg.get_long() == Some(name))
}

/// Returns the names of those commands, at or below `command` and without subcommands, that have
/// the option `--name`, each with its option.
fn with_option<'a>(command: &'a Command, name: &str) -> Vec<(&'a str, &'a Arg)> {
    let own = option(command, name).map(|arg| (command.get_name(), arg));
    let below = command
        .get_subcommands()
        .filter(|one| one.get_name() != "help");
    let below: Vec<(&str, &Arg)> = below.flat_map(|one| with_option(one, name)).collect();
    match below.is_empty() {
        true => own.into_iter().collect(),
        false => below,
    }
}

/// Adds to `known` the long names of all options of a command and its subcommands that can be set
/// in a settings file.
fn names<'a>(command: &'a Command, known: &mut BTreeSet<&'a str>) {
    let options = command.get_arguments().filter_map(Arg::get_long);
    known.extend(options.filter(|name| !OF_THE_CALL.contains(name)));
    for below in command.get_subcommands() {
        names(below, known);
    }
}

/// Returns true if the option `arg` from a table of the settings file must be left out, because it
/// or an option in conflict with it is in `given`, the ids of the options that come from the
/// command line or from a more specific table. Else false.
fn is_excluded(command: &Command, arg: &Arg, given: &[String]) -> bool {
    let id = arg.get_id().as_str();
    let is_given = |id: &str| given.iter().any(|one| one == id);
    if is_given(id) || id == TARGET && is_given(PROGRAM) {
        return true;
    }
    let excludes = |one: &Arg, other: &str| {
        let all = match one.is_global_set() {
            true => Vec::new(),
            false => command.get_arg_conflicts_with(one),
        };
        all.iter().any(|arg| arg.get_id() == other)
    };
    given.iter().any(|other| {
        excludes(arg, other)
            || id == TARGET && by_program(command).is_some_and(|one| excludes(one, other))
            || command
                .get_arguments()
                .find(|arg| arg.get_id() == other.as_str())
                .is_some_and(|other| excludes(other, id))
    })
}

fn by_program(command: &Command) -> Option<&Arg> {
    command.get_arguments().find(|arg| arg.get_id() == PROGRAM)
}

/// Id in the command-line parser of the argument that names a bundled target. In `ddfuzz.toml`,
/// `target` may also be a list: a program and its arguments.
pub const TARGET: &str = "target";
/// Id in the command-line parser of the argument for the target program and its arguments, which
/// stand after `--`.
pub const PROGRAM: &str = "program";

/// Words for the command line, converted from settings in `ddfuzz.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingWords {
    /// Options converted from settings, each as one word (`--name=value`, or `--name` for a flag
    /// that is on).
    pub options: Vec<OsString>,
    /// The target program and its arguments from the settings file, to be put after `--`.
    pub program: Vec<OsString>,
}

/// Returns true if an option is a flag, which takes no value.
pub fn is_flag(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// Converts the value of a setting to command-line words for the option `arg`. Relative paths start
/// at `folder`. The error says what is wrong with the value.
pub fn setting_words(arg: &Arg, value: &Value, folder: &Path) -> Result<SettingWords, String> {
    let name = arg.get_long().unwrap_or_default();
    if let (TARGET, Value::List(words)) = (arg.get_id().as_str(), value) {
        return program_words(words, folder);
    }
    let values = match (value, arg.get_action()) {
        (Value::Flag(on), ArgAction::SetTrue) => {
            let options = on.then(|| OsString::from(format!("--{name}")));
            return Ok(SettingWords {
                options: options.into_iter().collect(),
                ..SettingWords::default()
            });
        }
        (_, ArgAction::SetTrue) => {
            return Err(format!("is true or false, not {}", value.kind()));
        }
        (Value::List(all), ArgAction::Append) => &all[..],
        (_, _) => std::slice::from_ref(value),
    };
    let mut options = Vec::new();
    for value in values {
        let mut option = OsString::from(format!("--{name}="));
        option.push(value_text(arg, value, folder)?);
        options.push(option);
    }
    check_values(arg, &options)?;
    Ok(SettingWords {
        options,
        ..SettingWords::default()
    })
}

/// Converts a value from the settings file to the text that stands on the command line as a value
/// of the option `arg`; a relative path starts at `folder`. The error says what is wrong with the
/// value.
fn value_text(arg: &Arg, value: &Value, folder: &Path) -> Result<OsString, String> {
    let takes = |kind: TypeId| arg.get_value_parser().type_id() == kind;
    let is_path = takes(TypeId::of::<PathBuf>());
    let is_text =
        is_path || takes(TypeId::of::<String>()) || takes(TypeId::of::<(OsString, OsString)>());
    match value {
        Value::Text(text) if text.is_empty() => Err("is an empty text".to_owned()),
        Value::Text(text) if text.contains('\0') => Err("has a null character".to_owned()),
        Value::Text(text) if is_path => Ok(folder.join(text).into_os_string()),
        Value::Text(text) => Ok(text.into()),
        Value::Number(number) if !is_text => Ok(number.into()),
        other if is_text => Err(format!("is a text in quotes, not {}", other.kind())),
        other => Err(format!("is a text or a number, not {}", other.kind())),
    }
}

/// Converts the setting `target`, a list, to a program and its arguments; fails if the list is
/// empty or an element is not a text. A program without a slash is searched in PATH.
fn program_words(words: &[Value], folder: &Path) -> Result<SettingWords, String> {
    let mut program = Vec::new();
    for word in words {
        match word {
            Value::Text(text) if text.contains('\0') => {
                return Err("has a null character".to_owned());
            }
            Value::Text(text) => program.push(OsString::from(text)),
            other => {
                let kind = other.kind();
                return Err(format!("is a list of texts in quotes, and {kind} is in it"));
            }
        }
    }
    match program.first_mut() {
        None => return Err("is an empty list: its first element is the program".to_owned()),
        Some(name) if name.is_empty() => {
            return Err("begins with an empty string: its first element is the program".to_owned());
        }
        Some(name) if name.to_string_lossy().contains('/') => {
            *name = folder.join(&*name).into_os_string();
        }
        Some(_) => {}
    }
    Ok(SettingWords {
        program,
        ..SettingWords::default()
    })
}

/// Checks with clap that the option `arg` accepts the words `options`. The error says why it does
/// not accept them.
fn check_values(arg: &Arg, options: &[OsString]) -> Result<(), String> {
    let alone = arg
        .clone()
        .required(false)
        .conflicts_with(Resettable::Reset)
        .requires(Resettable::Reset)
        .required_unless_present(Resettable::Reset);
    let command = Command::new("ddfuzz")
        .no_binary_name(true)
        .disable_help_flag(true)
        .arg(alone);
    let Err(error) = command.try_get_matches_from(options) else {
        return Ok(());
    };
    let said = error.to_string();
    let sentence = said.lines().take_while(|line| !line.is_empty());
    let sentence = sentence.map(str::trim).collect::<Vec<_>>().join(" ");
    let sentence = sentence.trim_start_matches("error: ");
    Err(format!("cannot be used: {sentence}"))
}

/// Returns the name in `known` that is most similar to `name`, by edit distance, for "did you
/// mean"; `None` if none is close.
pub fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let edits = known.into_iter().map(|one| (edits(name, one), one));
    let most = 1 + name.chars().count() / 3;
    edits
        .filter(|(edits, _)| *edits <= most)
        .min()
        .map(|(_, one)| one)
}

/// Computes the Levenshtein distance of two names in characters.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, of_one) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (at, of_other) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(of_one != *of_other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::path::Path;

    use clap::{Arg, Command};

    use crate::cli::command_line;
    use crate::cli::config::file::parse;

    #[test]
    fn a_slip_of_the_pen_is_understood_and_another_word_is_not() {
        let known = ["timeout", "time", "runs", "budget-time"];
        assert_eq!(nearest_name("tiem", known), Some("time"));
        assert_eq!(nearest_name("budget_time", known), Some("budget-time"));
        assert_eq!(nearest_name("colour", known), None);
    }

    /// Sample values of settings, as TOML: each option accepts at least one of them.
    const SAMPLES: [&str; 14] = [
        "\"all:00000000000000ff:10\"",
        "\"2/5\"",
        "\"small1\"",
        "\"3\"",
        "3",
        "\"3s\"",
        "\"K=V\"",
        "\"20%\"",
        "\"2M\"",
        "\"first\"",
        "\"127.0.0.1:1\"",
        "\"x\"",
        "\"24x80\"",
        "[\"x\"]",
    ];

    fn root() -> Command {
        let mut root = command_line().command();
        root.build();
        root
    }

    /// Returns all commands without subcommands at or below `command`, with their names.
    fn leaves<'a>(command: &'a Command, names: &[&'a str]) -> Vec<(Vec<&'a str>, &'a Command)> {
        let below: Vec<&Command> = (command.get_subcommands())
            .filter(|below| below.get_name() != "help")
            .collect();
        if below.is_empty() {
            return vec![(names.to_vec(), command)];
        }
        let deeper = |below: &&'a Command| leaves(below, &[names, &[below.get_name()]].concat());
        below.iter().flat_map(deeper).collect()
    }

    /// Returns sample values for the option, as TOML; the option accepts at least one of them.
    fn samples(arg: &Arg) -> Vec<String> {
        if is_flag(arg) {
            return vec!["true".to_owned()];
        }
        let named = arg.get_possible_values();
        let named = named.iter().map(|value| format!("{:?}", value.get_name()));
        named.chain(SAMPLES.map(str::to_owned)).collect()
    }

    /// Returns the words that a settings file with the one setting `key = value`, in the table of
    /// the command `names`, adds to the command line of that command; `None` if the file is
    /// refused.
    fn added(root: &Command, names: &[&str], key: &str, value: &str) -> Option<Vec<OsString>> {
        let merge = SettingsMerger {
            path: Path::new("/project/ddfuzz.toml"),
            folder: Path::new("/project"),
            root,
            whole: root,
        };
        let text = format!("[{}]\n{key} = {value}\n", names.join("."));
        let settings = parse(&text).unwrap();
        merge.check(&settings).ok()?;
        let taken = merge.taken(&settings, names, Vec::new()).ok()?;
        Some(taken.options)
    }

    #[test]
    fn every_option_of_every_command_can_be_said_in_a_file() {
        let root = root();
        let mut seen = 0;
        for (names, command) in leaves(&root, &[]) {
            for arg in command.get_arguments() {
                let Some(name) = arg.get_long().filter(|name| !OF_THE_CALL.contains(name)) else {
                    continue;
                };
                let option = format!("--{name}");
                let values = samples(arg);
                let words = values
                    .iter()
                    .find_map(|value| added(&root, &names, name, value));
                let words =
                    words.unwrap_or_else(|| panic!("{names:?} {option}: none of {values:?}"));
                let [word] = &words[..] else {
                    panic!("{names:?} {option}: {words:?}");
                };
                let word = word.to_str().unwrap();
                assert!(
                    word == option || word.starts_with(&format!("{option}=")),
                    "{word}"
                );
                seen += 1;
            }
        }
        assert!(seen > 150, "only {seen} options were seen");
    }

    #[test]
    fn a_flag_that_is_off_adds_nothing_and_a_wrong_type_is_refused() {
        let root = root();
        assert_eq!(added(&root, &["run"], "resume", "false"), Some(Vec::new()));
        for (key, value) in [
            ("resume", "1"),
            ("runs", "true"),
            ("runs", "[1, 2]"),
            ("out", "7"),
            ("target", "7"),
            ("target", "[]"),
            ("target", "[\"cat\", 7]"),
            ("env", "{ K = \"V\" }"),
            ("seed", "2026-01-01"),
        ] {
            assert_eq!(added(&root, &["run"], key, value), None, "{key} = {value}");
        }
    }
}
