//! A target: its program, arguments, input channel, environment, limits and sandbox; and its record
//! in logs and campaign files.

use ddfuzz_model::files::{Base64, OsText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{ffi::OsString, path::PathBuf, time::Duration};

use crate::{AbandonWhen, Sandbox, Way};

/// The program of a target: an installed one, or one that comes with ddfuzz.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// An installed program: a path, or a name without `/` that is looked for in PATH.
    Path(PathBuf),
    /// A bundled target, by name (`ul`, or `ul-fixed` for the variant without the bug).
    Bundled(String),
}

/// A program with its arguments and everything else that its runs depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The program of the target, which is executed for runs.
    pub program: Program,
    /// Arguments without the program's name. What `@@` stands for depends on `channel`: usually a
    /// file with the input.
    pub args: Vec<OsString>,
    /// How the input reaches the program: on stdin, in files or at a terminal.
    pub channel: Channel,
    /// Environment variables of the program, set in addition to the inherited ones.
    pub env: Vec<(OsString, OsString)>,
    /// Whether the target inherits no environment variables, and gets only `env` and what ddfuzz
    /// itself sets, such as `TMPDIR`.
    pub env_only: bool,
    /// Working directory of runs; `None` for a scratch directory. `TMPDIR` is always a scratch
    /// directory.
    pub cwd: Option<PathBuf>,
    /// Limits on the time, memory, file size and processes of each run of the target.
    pub limits: Limits,
    /// The exit status that counts as a crash (`--crash-exit`); `None` if no status does.
    pub crash_exit: Option<i32>,
    /// Whether the target runs in a sandbox, and so may change no files of the user.
    pub sandbox: Sandbox,
    /// Whether runs by the method of execution `snapshot` (one process makes many runs) share the
    /// random numbers, the times and the process id that the program reads before its first use of
    /// the input. Runs in fresh processes never share them.
    pub freeze_start: bool,
    /// Conditions under which runs of the target are abandoned, without a result; none by default.
    /// The conditions are not part of the target's description, and are not recorded.
    pub abandon_when: AbandonWhen,
}

impl Target {
    /// Makes a target with default limits that reads its input from stdin.
    pub fn new(program: Program) -> Target {
        Target {
            program,
            args: Vec::new(),
            channel: Channel::Plain,
            env: Vec::new(),
            env_only: false,
            cwd: None,
            limits: Limits::default(),
            crash_exit: None,
            sandbox: Sandbox::Off,
            freeze_start: false,
            abandon_when: AbandonWhen::default(),
        }
    }

    /// Returns this target with other conditions under which its runs are abandoned: `conditions`.
    #[must_use]
    pub fn abandoned_when(mut self, conditions: AbandonWhen) -> Target {
        self.abandon_when = conditions;
        self
    }

    /// Whether the input is in a file that the arguments name by `@@`; false if it is on stdin or
    /// typed at a terminal.
    pub fn takes_file(&self) -> bool {
        !matches!(self.channel, Channel::Terminal(_)) && self.names_file()
    }

    /// Whether the arguments contain `@@`, which stands for a file: with the input, or at a
    /// terminal with a sample text.
    pub fn names_file(&self) -> bool {
        let is_named = |arg: &OsString| arg.to_string_lossy().contains("@@");
        self.args.iter().any(is_named)
    }
}

/// How an input reaches the `main` of a target: on stdin, in files, or at a terminal. Entry
/// functions are given the input itself, whatever the channel; they are not called at a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// The input is on stdin or, where an argument contains `@@`, in a file of any name.
    #[default]
    Plain,
    /// The input is in a file of this name; `@@` in the arguments stands for its path.
    Named(OsText),
    /// The input is split into two files: the first `@@` in the arguments stands for a file with
    /// the input up to its first byte [`SEPARATOR`], each further `@@` for a file with what follows
    /// that byte.
    TwoFiles,
    /// The input is typed as keystrokes at a terminal; `@@` in the arguments stands for a file with
    /// a text to work on.
    Terminal(Terminal),
}

/// Size of the pseudo terminal that a target gets, and the keystrokes that end the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Terminal {
    /// Height of the target's terminal, in lines.
    pub rows: u16,
    /// Width of the target's terminal, in characters.
    pub columns: u16,
    /// Keystrokes that end the target, which are typed after the input.
    pub ending: Base64,
}

impl Default for Terminal {
    /// Returns a terminal of 24 lines of 80 characters, without keystrokes that end the program.
    fn default() -> Terminal {
        Terminal {
            rows: 24,
            columns: 80,
            ending: Base64(Vec::new()),
        }
    }
}

/// ASCII's file separator, which splits an input for [`Channel::TwoFiles`].
pub const SEPARATOR: u8 = 0x1c;

impl Channel {
    /// Makes the channel that passes inputs in a file called `name`.
    pub fn named(name: impl Into<OsString>) -> Channel {
        Channel::Named(OsText(name.into()))
    }

    /// Returns the command-line options of ddfuzz that select this input channel; empty for the
    /// default.
    pub fn options(&self) -> Vec<OsString> {
        match self {
            Channel::Plain => Vec::new(),
            Channel::Named(name) => {
                let mut option = OsString::from("--file-name=");
                option.push(&name.0);
                vec![option]
            }
            Channel::TwoFiles => vec!["--two-files".into()],
            Channel::Terminal(terminal) => {
                let size = format!("--terminal={}x{}", terminal.rows, terminal.columns);
                let keys = terminal.ending.0.iter();
                let keys: String = keys.map(|byte| format!("\\x{byte:02x}")).collect();
                let ending = (!keys.is_empty()).then(|| format!("--ending={keys}").into());
                [size.into()].into_iter().chain(ending).collect()
            }
        }
    }

    /// Whether this is the default input channel (stdin, or a file of any name), which is not
    /// recorded.
    pub fn is_plain(&self) -> bool {
        *self == Channel::Plain
    }
}

/// Returns the two parts of an input for [`Channel::TwoFiles`]: before and after its first byte
/// [`SEPARATOR`]. Without such a byte, the second part is empty.
pub fn two_files(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|byte| *byte == SEPARATOR) {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, &[]),
    }
}

/// Limits on one run. A run that computes without end is found by its CPU time, which does not
/// depend on how busy the machine is; a run that sleeps is found by its wall time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Limit on the CPU time of all processes of a run together.
    #[serde(rename = "cpu_ms", with = "millis")]
    #[schemars(with = "u64")]
    pub cpu: Duration,
    /// Limit on the wall time of a run.
    #[serde(rename = "wall_ms", with = "millis")]
    #[schemars(with = "u64")]
    pub wall: Duration,
    /// Limit on the resident memory of a run, in bytes.
    pub memory: u64,
    /// Limit on the size of each file that a run may write, in bytes.
    pub file_size: u64,
    /// Limit on the number of processes and threads that exist at one time.
    pub processes: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::with_cpu(Duration::from_secs(1))
    }
}

impl Limits {
    /// Returns the default limits, but with the limit `cpu` on CPU time, and with twice as much
    /// wall time, at least 2 s.
    pub fn with_cpu(cpu: Duration) -> Limits {
        Limits {
            cpu,
            wall: cpu.saturating_mul(2).max(Duration::from_secs(2)),
            memory: 1 << 30,
            file_size: 64 << 20,
            processes: 64,
        }
    }
}

/// Serializes durations as whole milliseconds, and deserializes them.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.as_millis().try_into().unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

/// The record of a target in logs and output directories: everything that is needed to run it
/// again, except the limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetRecord {
    /// Path of the program, or of the interestingness test if the log has one; null for a bundled
    /// target.
    pub program: Option<OsText>,
    /// Name of the bundled target (a program that ddfuzz contains); null for another program.
    pub bundled: Option<String>,
    /// Arguments of the target without the program's name. What `@@` stands for depends on
    /// `channel`: usually the path of a file with the input.
    pub args: Vec<OsText>,
    /// How the target gets its input; absent if on stdin or in a file of any name.
    #[serde(default, skip_serializing_if = "Channel::is_plain")]
    pub channel: Channel,
    /// Environment variables of the target, set in addition to the inherited ones.
    pub env: Vec<(OsText, OsText)>,
    /// True if the target gets only the variables of `env` and inherits none; else absent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub env_only: bool,
    /// Working directory of the target's runs; null for a scratch directory.
    pub cwd: Option<OsText>,
    /// Exit status of the target that counts as a crash; null if no status does.
    pub crash_exit: Option<i32>,
    /// Whether the target runs in a sandbox; absent if it does not.
    #[serde(default, skip_serializing_if = "Sandbox::is_off")]
    pub sandbox: Sandbox,
    /// True if the runs that one process makes (`way` is `snapshot`) share the random numbers, the
    /// times and the process id that the program reads before its first use of the input; else
    /// absent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub freeze_start: bool,
    /// Way of execution by which the target is run, such as `harness` or `command`.
    pub way: Way,
}

impl TargetRecord {
    /// Makes the record of `target`, run by the method of execution `way`.
    pub fn new(target: &Target, way: Way) -> TargetRecord {
        let (program, bundled) = match &target.program {
            Program::Path(path) => (Some(OsText::from(path)), None),
            Program::Bundled(name) => (None, Some(name.clone())),
        };
        TargetRecord {
            program,
            bundled,
            args: target.args.iter().map(OsText::from).collect(),
            channel: target.channel.clone(),
            env: target
                .env
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            env_only: target.env_only,
            cwd: target.cwd.as_ref().map(OsText::from),
            crash_exit: target.crash_exit,
            sandbox: target.sandbox,
            freeze_start: target.freeze_start,
            way,
        }
    }

    /// Builds the target from its record, with `limits`; `None` if the record names no program.
    pub fn target(&self, limits: Limits) -> Option<Target> {
        let program = match (&self.program, &self.bundled) {
            (Some(path), _) => Program::Path(PathBuf::from(&path.0)),
            (None, Some(name)) => Program::Bundled(name.clone()),
            (None, None) => return None,
        };
        let pair = |(name, value): &(OsText, OsText)| (name.0.clone(), value.0.clone());
        Some(Target {
            program,
            args: self.args.iter().map(|arg| arg.0.clone()).collect(),
            channel: self.channel.clone(),
            env: self.env.iter().map(pair).collect(),
            env_only: self.env_only,
            cwd: self.cwd.as_ref().map(|cwd| PathBuf::from(&cwd.0)),
            limits,
            crash_exit: self.crash_exit,
            sandbox: self.sandbox,
            freeze_start: self.freeze_start,
            abandon_when: AbandonWhen::default(),
        })
    }

    /// Whether both records describe the same target: program, arguments, environment, directory
    /// and input channel. How runs are made may differ (method of execution, sandbox, shared
    /// starts): crash keys do not depend on it.
    pub fn same_target(&self, other: &TargetRecord) -> bool {
        *self
            == TargetRecord {
                way: self.way,
                sandbox: self.sandbox,
                freeze_start: self.freeze_start,
                ..other.clone()
            }
    }
}

/// Whether a boolean field of a record is false, so that it is not written.
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_separator_ends_a_file() {
        assert_eq!(two_files(b"a\x1cb\x1cc"), (&b"a"[..], &b"b\x1cc"[..]));
        assert_eq!(two_files(b"ab"), (&b"ab"[..], &b""[..]));
        assert_eq!(two_files(b"\x1c"), (&b""[..], &b""[..]));
    }
}
