//! What one option of the command line takes, and a setting as words of it.

use std::any::TypeId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command};

use super::file::Value;

/// The id of the option that names a bundled target, and that of the program behind `--`, which
/// one setting stands for.
pub const TARGET: &str = "target";
/// See [`TARGET`].
pub const PROGRAM: &str = "program";

/// A setting as words of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Options; none for a flag that is off.
    pub options: Vec<OsString>,
    /// A program with its arguments, for behind `--`.
    pub program: Vec<OsString>,
}

/// Whether an option is one that is either given or not.
pub fn is_flag(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// The words of a setting for this option, or what is wrong with it. Relative paths are taken
/// from `folder`.
pub fn words(arg: &Arg, value: &Value, folder: &Path) -> Result<Words, String> {
    let name = arg.get_long().unwrap_or_default();
    if let (TARGET, Value::List(words)) = (arg.get_id().as_str(), value) {
        return program(words, folder);
    }
    let values = match (value, arg.get_action()) {
        (Value::Flag(on), ArgAction::SetTrue) => {
            let options = on.then(|| OsString::from(format!("--{name}")));
            return Ok(Words {
                options: options.into_iter().collect(),
                ..Words::default()
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
        option.push(text(arg, value, folder)?);
        options.push(option);
    }
    check(arg, &options)?;
    Ok(Words {
        options,
        ..Words::default()
    })
}

/// One value of an option, as it stands behind its name.
fn text(arg: &Arg, value: &Value, folder: &Path) -> Result<OsString, String> {
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

/// A program and its arguments. A program without a slash is looked for in PATH.
fn program(words: &[Value], folder: &Path) -> Result<Words, String> {
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
    Ok(Words {
        program,
        ..Words::default()
    })
}

/// Has clap look at the words of one option alone.
fn check(arg: &Arg, options: &[OsString]) -> Result<(), String> {
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
