//! The settings of a file, checked against the commands that there are, and what of them a call
//! takes.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Arg, Command};

use super::file::{Setting, Value};
use super::nearest::nearest;
use super::option::{PROGRAM, TARGET, Words, words};
use super::refused;
use crate::cli::Failure;

/// The table of what several commands share.
pub const COMMON: &str = "common";
/// Options that mean another thing for each command, or are about a single call.
const OF_ONE_COMMAND: [&str; 5] = ["out", "log", "resume", "force", "export-test"];
/// Options about the file itself, and those that end a call at once.
pub(super) const OF_THE_CALL: [&str; 6] = [
    "config",
    "no-config",
    "help",
    "version",
    "compare",
    "no-sandbox",
];
/// Commands that know their target from what they read, unless their own table names one.
const WITH_A_TARGET_ON_RECORD: [&str; 2] = ["check", "log"];

/// A file of settings, and the commands it is for.
pub struct Merge<'a> {
    /// The file.
    pub path: &'a Path,
    /// Its directory, which relative paths are taken from.
    pub folder: &'a Path,
    /// The program that is called, built.
    pub root: &'a Command,
    /// All of `ddfuzz`, built.
    pub whole: &'a Command,
}

impl Merge<'_> {
    /// Fails at the first setting that no command could take.
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
        refused(self.path, setting.line, &message).hint(format!(
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
                return Err(refused(self.path, line, &message).hint("give it on the command line"));
            }
            if takers.is_empty() {
                let mut known = BTreeSet::new();
                names(command, &mut known);
                return Err(self.unknown(setting, &format!("key of [{table}]"), known));
            }
            if table == COMMON && OF_ONE_COMMAND.contains(&key) {
                let message = format!("{key} cannot be set for all commands at once");
                return Err(refused(self.path, line, &message).hint(format!(
                    "put it under the command that it is for, like [{}]",
                    takers[0].0
                )));
            }
            for (_, arg) in takers {
                words(arg, &setting.value, self.folder)
                    .map_err(|why| refused(self.path, line, &format!("{key} {why}")))?;
            }
        }
        Ok(())
    }

    fn unknown(&self, setting: &Setting, what: &str, known: BTreeSet<&str>) -> Failure {
        let message = format!("{} is not a {what}", setting.key);
        let failure = refused(self.path, setting.line, &message);
        match nearest(&setting.key, known.iter().copied()) {
            Some(name) => failure.hint(format!("did you mean {name}?")),
            None => {
                let known: Vec<&str> = known.into_iter().collect();
                failure.hint(format!("there are {}", known.join(", ")))
            }
        }
    }

    /// What a call of the command at `names` takes of the settings, which have been
    /// [checked](Merge::check): those of the most particular table first, none that `given`, the
    /// ids of options that the command line has, names or excludes.
    pub fn taken(
        &self,
        settings: &[Setting],
        names: &[&str],
        mut given: Vec<String>,
    ) -> Result<Words, Failure> {
        let (command, tables) = self.tables(settings, names);
        let mut taken = Words::default();
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
                let words = words(arg, &setting.value, self.folder)
                    .map_err(|why| refused(self.path, setting.line, &why))?;
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

    /// The command, and the tables that hold for it, the most general first.
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

/// The option of this long name.
fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command
        .get_arguments()
        .find(|arg| arg.get_long() == Some(name))
}

/// The commands without commands below them, and their option of this name.
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

/// The long names of all options of a command and of those below it, and their own.
fn names<'a>(command: &'a Command, known: &mut BTreeSet<&'a str>) {
    let options = command.get_arguments().filter_map(Arg::get_long);
    known.extend(options.filter(|name| !OF_THE_CALL.contains(name)));
    for below in command.get_subcommands() {
        names(below, known);
    }
}

/// Whether the command line, or a more particular table, says this already, or says what cannot
/// stand beside it.
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
