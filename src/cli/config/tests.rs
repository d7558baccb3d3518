//! Every option there is can be said in a file.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};

use super::file;
use super::merge::{Merge, OF_THE_CALL};
use super::option::is_flag;
use crate::cli::Cli;

/// Values of which each option takes one.
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
    let mut root = Cli::command();
    root.build();
    root
}

/// All commands without commands below them, by their names.
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

/// A value that the option takes, as TOML.
fn samples(arg: &Arg) -> Vec<String> {
    if is_flag(arg) {
        return vec!["true".to_owned()];
    }
    let named = arg.get_possible_values();
    let named = named.iter().map(|value| format!("{:?}", value.get_name()));
    named.chain(SAMPLES.map(str::to_owned)).collect()
}

/// What a file of one setting adds to a call of this command.
fn added(root: &Command, names: &[&str], key: &str, value: &str) -> Option<Vec<OsString>> {
    let merge = Merge {
        path: Path::new("/project/ddfuzz.toml"),
        folder: Path::new("/project"),
        root,
        whole: root,
    };
    let text = format!("[{}]\n{key} = {value}\n", names.join("."));
    let settings = file::parse(&text).unwrap();
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
            let words = words.unwrap_or_else(|| panic!("{names:?} {option}: none of {values:?}"));
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
