//! Formats a minimized command line for people and as a shell script, and names the files of its
//! minimization.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::cli::Failure;
use crate::cli::results::{
    CONTINUE_OR_OVERWRITE, SCRIPT_ENDING, absolute, is_same_file, with_ending,
};
use crate::exec::{Channel, Program, Target};
use crate::files::shell::quoted;
use crate::files::{FileError, atomic, folder};
use crate::minimize::log::{Log, OsText, Part};
use crate::report::text::shell_word;
use crate::store::{hash_of, shell_channel};
use crate::triage::Crash;

/// Formats, for people to read, the shell command that runs the target on the file `input`, or on
/// an empty input if that is `None`. Unprintable bytes become escapes. A note in brackets says if
/// the input is typed at a terminal or needs another file name.
pub(in crate::cli) fn call_line(target: &Target, input: Option<&Path>) -> String {
    let (program, bundled) = match &target.program {
        Program::Path(path) => (path.clone().into_os_string(), false),
        Program::Bundled(name) => (OsString::from(name), true),
    };
    let mut words = Vec::new();
    if target.env_only || !target.env.is_empty() {
        words.push("env".to_owned());
    }
    if target.env_only {
        words.push("-i".to_owned());
    }
    for (name, value) in &target.env {
        words.push(shell_word(Path::new(&assignment(name, value))));
    }
    words.push(shell_word(Path::new(&program)));
    let input = input_path(input);
    let input = input.as_path();
    let is_plain = target.channel.is_plain();
    for arg in &target.args {
        words.push(match is_plain {
            true => shell_word(Path::new(&with_path(arg, input))),
            false => shell_word(Path::new(arg)), // by files of names that the script gives them
        });
    }
    match &target.channel {
        Channel::Plain if target.takes_file() => {}
        Channel::Terminal(_) => words.push(format!("(at a terminal: {})", shell_word(input))),
        Channel::Named(_) | Channel::TwoFiles => {
            words.push(format!("(@@ by {})", shell_word(input)));
        }
        Channel::Plain => words.push(format!("< {}", shell_word(input))),
    }
    match bundled {
        true => format!("{} (comes with ddfuzz)", words.join(" ")),
        false => words.join(" "),
    }
}

/// Generates a POSIX shell script that runs the target on the input as ddfuzz does, in a temporary
/// directory or the one of `--cwd`, and exits with the target's status. `None` for a bundled target
/// (one that comes with ddfuzz), which has no path.
pub(super) fn call_script(target: &Target, input: Option<&Path>, crash: &Crash) -> Option<Vec<u8>> {
    let Program::Path(program) = &target.program else {
        return None;
    };
    let input = input_path(input);
    let input = input.as_path();
    let mut text = format!(
        "#!/bin/sh\n\
         # Shows the crash {} of group {} by the command line that ddfuzz has minimized.\n\
         # Exits with the program's status; 128 + N means that signal N ended it.\n\
         scratch=$(mktemp -d) || exit 70\n\
         trap 'cd / && rm -rf -- \"$scratch\"' EXIT\n\
         trap 'exit 130' HUP INT TERM\n\
         ulimit -c 0\n",
        crash.class,
        crash.keys.major.short()
    )
    .into_bytes();
    text.extend(shell_channel::LOCALE.bytes());
    text.extend(b"cd -- ");
    match &target.cwd {
        Some(cwd) => text.extend(quoted(cwd.as_os_str().as_bytes())),
        None => text.extend(b"\"$scratch\""),
    }
    text.extend(b" || exit 70\ninput=");
    text.extend(quoted(input.as_os_str().as_bytes()));
    text.push(b'\n');
    text.extend(shell_channel::place_input(target));
    text.extend(shell_channel::run(
        target,
        &call_words(target, program),
        INPUT,
    ));
    text.extend(b"status=$?\necho \"ended with status $status\" >&2\nexit \"$status\"\n");
    Some(text)
}

/// Writes a shell script that shows a slip, another crash that was found while a command line was
/// minimized. The script is put beside the slip's stored input `path`, and runs the command line of
/// `target`. For a bundled target (one that comes with ddfuzz) no script is written.
pub(super) fn write_slip_script(
    target: &Target,
    path: &Path,
    crash: &Crash,
) -> Result<(), FileError> {
    match call_script(target, Some(path), crash) {
        Some(text) => atomic::write_program(&with_ending(path, SCRIPT_ENDING), &text),
        None => Ok(()),
    }
}

/// Expression in the generated shell script for the path of the input.
const INPUT: &[u8] = b"\"$input\"";

/// Formats the command that the generated shell script runs: `env` with the variables, the program
/// and its arguments, all quoted.
fn call_words(target: &Target, program: &Path) -> Vec<u8> {
    let mut text = b"env ".to_vec();
    if target.env_only {
        text.extend(b"-i ");
    }
    text.extend(b"-- TMPDIR=\"$scratch\" ");
    text.extend(shell_channel::variables(target));
    for (name, value) in &target.env {
        text.extend(quoted(assignment(name, value).as_bytes()));
        text.push(b' ');
    }
    if program.as_os_str().as_bytes().contains(&b'=') {
        // `env` would take such a path for one more variable.
        text.extend(shell_channel::RUN_PROGRAM);
    }
    text.extend(quoted(program.as_os_str().as_bytes()));
    let mut named = 0;
    for arg in &target.args {
        text.push(b' ');
        text.extend(shell_channel::argument(target, arg, INPUT, &mut named));
    }
    text
}

/// Returns the minimized arguments of the target, or its minimized environment variables (for
/// `part` `Env`), each followed by a NUL byte, as in `/proc/PID/cmdline`.
pub(in crate::cli) fn call_list(target: &Target, part: Part) -> Vec<u8> {
    let items: Vec<OsString> = match part {
        Part::Args | Part::Argument => target.args.clone(),
        Part::Env => {
            let all = target.env.iter();
            all.map(|(name, value)| assignment(name, value)).collect()
        }
    };
    let bytes = items.iter().map(|item| [item.as_bytes(), b"\0"].concat());
    bytes.flatten().collect()
}

/// Returns the absolute path of the input; that of `/dev/null` for `None`, which stands for an
/// empty input.
fn input_path(input: Option<&Path>) -> PathBuf {
    absolute(input.unwrap_or(Path::new("/dev/null")))
}

fn assignment(name: &OsStr, value: &OsStr) -> OsString {
    OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat())
}

/// Returns the argument of the target with each `@@` replaced by the path of the input.
fn with_path(arg: &OsStr, input: &Path) -> OsString {
    let mut text = Vec::new();
    let mut rest = arg.as_bytes();
    while let Some(at) = rest.windows(2).position(|pair| pair == b"@@") {
        text.extend(&rest[..at]);
        text.extend(input.as_os_str().as_bytes());
        rest = &rest[at + 2..];
    }
    text.extend(rest);
    OsString::from_vec(text)
}

const LOG: &str = ".log.jsonl";

/// The paths of the files that a minimization with `--args` or `--env-vars` writes. It minimizes
/// one part of the command line after another: whole arguments, the characters of an argument, the
/// environment, the input. Beside the log `crash.min.log.jsonl` of the input, each other part has a
/// log (`crash.min.args.log.jsonl`, `crash.min.arg-1.log.jsonl`, `crash.min.env.log.jsonl`; when it
/// is minimized again, `crash.min.args.2.log.jsonl`). There is also the script `crash.min.sh`, and
/// the folder `crash.min.inputs` of intermediate inputs.
pub(in crate::cli) struct CallFiles {
    prefix: PathBuf,
    log: PathBuf,
    /// Number of minimizations so far of each part of the command line. The key is the name of the
    /// part as in the file name of its log, such as `.args`; it is empty for the input.
    phases: BTreeMap<String, u64>,
}

impl CallFiles {
    /// Returns the paths of all files of a minimization of a command line, given the path of its
    /// main log; creates no file.
    pub(in crate::cli) fn beside(log: &Path) -> CallFiles {
        let name = log.as_os_str().as_bytes();
        let prefix = name.strip_suffix(LOG.as_bytes()).unwrap_or(name);
        CallFiles {
            prefix: PathBuf::from(OsString::from_vec(prefix.to_vec())),
            log: log.to_owned(),
            phases: BTreeMap::new(),
        }
    }

    /// Returns the path of the log for the next minimization of a part of a command line and its
    /// environment. `part` is the kind of part and its number, `None` for the input. Later calls
    /// for the same part return other paths.
    pub(super) fn next_log(&mut self, part: Option<(Part, usize)>) -> PathBuf {
        let label = part.map_or(String::new(), |(part, at)| match (part, at) {
            (Part::Args, 0) => ".args".to_owned(),
            (Part::Args, at) => format!(".args-{}", at + 1),
            (Part::Argument, at) => format!(".arg-{}", at + 1),
            (Part::Env, 0) => ".env".to_owned(),
            (Part::Env, at) => format!(".env-{}", at + 1),
        });
        let turn = self.phases.entry(label.clone()).or_insert(0);
        *turn += 1;
        match (label.as_str(), *turn) {
            ("", 1) => self.log.clone(),
            (label, 1) => with_ending(&self.prefix, &format!("{label}{LOG}")),
            (label, turn) => with_ending(&self.prefix, &format!("{label}.{turn}{LOG}")),
        }
    }

    /// Returns the path of the shell script that reproduces the crash with the minimized command
    /// line.
    pub(super) fn script(&self) -> PathBuf {
        with_ending(&self.prefix, ".sh")
    }

    /// Stores the input that the program gets while a part of its command line is minimized, in the
    /// folder of intermediate inputs; returns the path of the file.
    pub(super) fn store_input(&self, input: &[u8]) -> Result<PathBuf, FileError> {
        let folder = with_ending(&self.prefix, ".inputs");
        folder::create_all(&folder)?;
        let path = folder.join(hash_of(input));
        if !std::fs::read(&path).is_ok_and(|there| there == input) {
            atomic::write(&path, input)?;
        }
        Ok(path)
    }

    /// Returns the environment variables with which an earlier, interrupted minimization of the
    /// command line began, as its logs record them; those of this process may be different. `None`
    /// if no log records them.
    pub(super) fn logged_env(&self) -> Option<Vec<(OsString, OsString)>> {
        let logs = self.existing().into_iter().chain([self.log.clone()]);
        let starts = logs.filter_map(|path| Log::read_start(&path));
        let env = starts
            .filter(|start| start.target.env_only)
            .map(|start| start.target.env)
            .max_by_key(Vec::len)?;
        let pair = |(name, value): (OsText, OsText)| (name.0, value.0);
        Some(env.into_iter().map(pair).collect())
    }

    /// Fails if one of the paths `others` (input, result, exported test) is a log or the script
    /// that the minimization of the command line writes.
    pub(super) fn check_apart_from<'a>(
        &self,
        others: impl Iterator<Item = &'a Path>,
    ) -> Result<(), Failure> {
        let mut ours = self.existing();
        ours.push(self.script());
        for other in others {
            if ours
                .iter()
                .any(|file| file == other || is_same_file(file, other))
            {
                let message = format!(
                    "{} has the name of a file that --args or --env-vars writes",
                    other.display()
                );
                return Err(Failure::usage(message)
                    .path(other)
                    .hint("give another result file with -o, or another log with --log"));
            }
        }
        Ok(())
    }

    /// Fails if files of an earlier minimization of a command line exist: its script, or a log of a
    /// part. If `resume` is true, fails only if there is the script but no log.
    pub(super) fn check_none(&self, resume: bool) -> Result<(), Failure> {
        let existing = self.existing();
        if resume && self.has_logs() {
            return Ok(());
        }
        let Some(file) = existing.into_iter().next() else {
            return Ok(());
        };
        Err(Failure::exists(&file, CONTINUE_OR_OVERWRITE))
    }

    /// Returns true if there is a log of a part of the command line, in addition to the main log.
    pub(in crate::cli) fn has_logs(&self) -> bool {
        let script = self.script();
        self.existing().iter().any(|file| *file != script)
    }

    /// Removes the script and the logs, other than the main one, that an earlier minimization of a
    /// command line has left.
    pub(super) fn clear(&self) -> Result<(), Failure> {
        for file in self.existing() {
            std::fs::remove_file(&file).map_err(|e| Failure::file(&file, "removing", &e))?;
        }
        Ok(())
    }

    /// Returns the paths of those files of a minimized command line that exist: the script, and all
    /// logs but the main one.
    fn existing(&self) -> Vec<PathBuf> {
        let Some(name) = self.prefix.file_name() else {
            return Vec::new();
        };
        let entries = std::fs::read_dir(folder::parent(&self.prefix));
        let mut found: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|file| is_ours(file, name)))
            .collect();
        found.sort();
        found
    }
}

/// Returns true if `file` is the name of the script, or of a log other than the main one, of the
/// minimization whose file names begin with `prefix`; else false.
fn is_ours(file: &OsStr, prefix: &OsStr) -> bool {
    let rest = file.as_bytes().strip_prefix(prefix.as_bytes());
    let Some(rest) = rest.and_then(|rest| std::str::from_utf8(rest).ok()) else {
        return false;
    };
    if rest == ".sh" {
        return true;
    }
    let Some(rest) = rest
        .strip_suffix(LOG)
        .and_then(|rest| rest.strip_prefix('.'))
    else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (label, turn) = rest.split_once('.').unwrap_or((rest, "2"));
    let (kind, at) = label.split_once('-').unwrap_or((label, "1"));
    let known = matches!(kind, "args" | "arg" | "env") && is_number(at);
    is_number(turn) && (known || is_number(rest))
}
