//! A call as people and shells see it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::exec::{Channel, Program, Target};
use crate::files::shell::quoted;
use crate::minimize::log::Part;
use crate::report::text::shell_word;
use crate::store::shell_channel;
use crate::triage::Crash;

/// The command line of a call on the input at `input`, none for an empty one. Bytes that a
/// terminal cannot show stand as escapes: what has them is run by the script.
pub(in crate::cli) fn line(target: &Target, input: Option<&Path>) -> String {
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
    let input = absolute(input);
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

/// A POSIX shell script that makes the call as ddfuzz does, in a scratch directory or that of the
/// target, and ends with the program's status; `None` for a bundled target, whose program is
/// nowhere.
pub(super) fn script(target: &Target, input: Option<&Path>, crash: &Crash) -> Option<Vec<u8>> {
    let Program::Path(program) = &target.program else {
        return None;
    };
    let input = absolute(input);
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
    text.extend(b"cd -- ");
    match &target.cwd {
        Some(cwd) => text.extend(quoted(cwd.as_os_str().as_bytes())),
        None => text.extend(b"\"$scratch\""),
    }
    text.extend(b" || exit 70\ninput=");
    text.extend(quoted(input.as_os_str().as_bytes()));
    text.push(b'\n');
    text.extend(shell_channel::place_input(target));
    text.extend(shell_channel::run(target, &call(target, program), INPUT));
    text.extend(b"status=$?\necho \"ended with status $status\" >&2\nexit \"$status\"\n");
    Some(text)
}

/// The input, in the script.
const INPUT: &[u8] = b"\"$input\"";

/// The words of a call.
fn call(target: &Target, program: &Path) -> Vec<u8> {
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
        text.extend(b"/bin/sh -c 'exec \"$@\"' sh ");
    }
    text.extend(quoted(program.as_os_str().as_bytes()));
    let mut named = 0;
    for arg in &target.args {
        text.push(b' ');
        text.extend(shell_channel::argument(target, arg, INPUT, &mut named));
    }
    text
}

/// The part of a call that a log is about, each item with a NUL byte behind it, as in
/// `/proc/PID/cmdline`.
pub(in crate::cli) fn list(target: &Target, part: Part) -> Vec<u8> {
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

/// The input's absolute path; that of nothing for an empty one.
fn absolute(input: Option<&Path>) -> PathBuf {
    let path = input.unwrap_or(Path::new("/dev/null"));
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn assignment(name: &OsStr, value: &OsStr) -> OsString {
    OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat())
}

/// The argument with the input's path in place of each `@@`.
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
