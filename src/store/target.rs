//! A target as a record, without loss where names are not UTF-8.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::exec::{Limits, Program, Target};

/// An argument, variable or path as JSON: a string where it is UTF-8, else `{"base64": …}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(pub OsString);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Plain(String),
    Encoded { base64: String },
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => Written::Plain(text.to_owned()),
            None => Written::Encoded {
                base64: STANDARD.encode(self.0.as_bytes()),
            },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        Ok(Text(match Written::deserialize(deserializer)? {
            Written::Plain(text) => text.into(),
            Written::Encoded { base64 } => {
                OsString::from_vec(STANDARD.decode(base64).map_err(D::Error::custom)?)
            }
        }))
    }
}

/// [`Program`] as a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProgramRecord {
    Path(Text),
    Bundled(String),
}

/// [`Target`] as a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetRecord {
    program: ProgramRecord,
    args: Vec<Text>,
    env: Vec<(Text, Text)>,
    cwd: Option<Text>,
    limits: Limits,
    crash_exit: Option<i32>,
}

impl From<&Target> for TargetRecord {
    fn from(target: &Target) -> TargetRecord {
        TargetRecord {
            program: match &target.program {
                Program::Path(path) => ProgramRecord::Path(Text(path.clone().into())),
                Program::Bundled(name) => ProgramRecord::Bundled(name.clone()),
            },
            args: target.args.iter().cloned().map(Text).collect(),
            env: (target.env.iter().cloned())
                .map(|(name, value)| (Text(name), Text(value)))
                .collect(),
            cwd: target.cwd.clone().map(|cwd| Text(cwd.into())),
            limits: target.limits,
            crash_exit: target.crash_exit,
        }
    }
}

impl From<TargetRecord> for Target {
    fn from(record: TargetRecord) -> Target {
        Target {
            args: record.args.into_iter().map(|arg| arg.0).collect(),
            env: (record.env.into_iter())
                .map(|(name, value)| (name.0, value.0))
                .collect(),
            cwd: record.cwd.map(|cwd| PathBuf::from(cwd.0)),
            limits: record.limits,
            crash_exit: record.crash_exit,
            ..Target::new(match record.program {
                ProgramRecord::Path(path) => Program::Path(path.0.into()),
                ProgramRecord::Bundled(name) => Program::Bundled(name),
            })
        }
    }
}
