//! The script that shows a crash without ddfuzz (`reproduce.sh`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{EntryId, Kind};
use crate::exec::Target;
use crate::files::shell::quoted;

/// What stands for the input file in an argument.
const INPUT_MARK: &[u8] = b"@@";

/// Finds the entry's folder, from any working directory, and the best input in it.
const FIND: &str = r#"
case $0 in
*/*) here=${0%/*} ;;
*) here=. ;;
esac
here=$(CDPATH= cd -- "$here" && pwd) || exit 70
input=$here/minimized
[ -f "$input" ] || input=$here/original
[ -f "$input" ] || {
    echo "$0: the input is not beside it" >&2
    exit 70
}
"#;

/// Runs where the program can do no harm, as ddfuzz does.
const SCRATCH: &str = r#"scratch=$(mktemp -d) || exit 70
trap 'cd / && rm -rf -- "$scratch"' EXIT
trap 'exit 130' HUP INT TERM
cp -- "$input" "$scratch/input" && mkdir -- "$scratch/cwd" || exit 70
ulimit -c 0
[ -n "${LC_ALL-}${LC_CTYPE-}${LANG-}" ] || {
    LANG=C.UTF-8
    export LANG
}
"#;

/// Ends with the program's status.
const END: &str = r#"status=$?
echo "ended with status $status" >&2
exit "$status"
"#;

/// A POSIX shell script that runs the target once on the reproducer beside it (`minimized`, or
/// `original` where there is none), from any working directory, and ends with its status.
///
/// `program` is the file to run; a relative one is taken from the output directory, four folders
/// above the script. Paths, arguments and variables may hold any bytes. The program's working
/// directory is the target's, or an empty scratch directory; its input is a copy. A hang is
/// ended by its CPU limit, and memory that runs away by its memory limit.
pub fn script(id: &EntryId, target: &Target, program: &Path) -> Vec<u8> {
    let mut text = format!(
        "#!/bin/sh\n\
         # Shows a crash without ddfuzz: group {}, way {}, input {}.\n\
         # Ends with the program's status; 128 + N says that signal N ended it.\n",
        id.major(),
        id.minor(),
        id.hash(),
    )
    .into_bytes();
    text.extend_from_slice(FIND.as_bytes());
    text.extend_from_slice(b"program=");
    if program.is_relative() {
        text.extend_from_slice(b"$here/../../../../");
    }
    text.extend(quoted(program.as_os_str().as_bytes()));
    text.push(b'\n');
    text.extend_from_slice(SCRATCH.as_bytes());
    text.extend_from_slice(limit(id.kind(), target).as_bytes());
    text.extend(b"cd -- ");
    match &target.cwd {
        Some(cwd) => text.extend(quoted(cwd.as_os_str().as_bytes())),
        None => text.extend(b"\"$scratch/cwd\""),
    }
    text.extend(b" || exit 70\n");
    text.extend(command(target, program));
    text.extend_from_slice(END.as_bytes());
    text
}

/// What keeps a finding that would use up the machine from doing so.
fn limit(kind: Kind, target: &Target) -> String {
    match kind {
        Kind::Hang => {
            let seconds = target.limits.cpu.as_secs() + 1;
            // SIGXCPU first, which names the reason; SIGKILL for what does not heed it.
            format!("ulimit -S -t {seconds}\nulimit -H -t {}\n", seconds + 5)
        }
        Kind::Oom => format!("ulimit -v {}\n", (target.limits.memory / 1024).max(1)),
        Kind::Crash | Kind::Flaky => String::new(),
    }
}

/// The line that runs the program.
fn command(target: &Target, program: &Path) -> Vec<u8> {
    let mut line = Vec::new();
    if target.env_only || !target.env.is_empty() {
        line.extend(if target.env_only {
            b"env -i -- TMPDIR=\"$scratch\" ".as_slice()
        } else {
            b"env -- "
        });
        for (name, value) in &target.env {
            line.extend(quoted(&[name.as_bytes(), b"=", value.as_bytes()].concat()));
            line.push(b' ');
        }
        if program.as_os_str().as_bytes().contains(&b'=') {
            // `env` would take such a path for one more variable.
            line.extend(b"sh -c 'exec \"$@\"' sh ");
        }
    }
    line.extend(b"\"$program\"");
    let mut takes_file = false;
    for arg in &target.args {
        line.push(b' ');
        let (text, marked) = argument(arg);
        line.extend(text);
        takes_file |= marked;
    }
    let stdin: &[u8] = if takes_file {
        b" </dev/null\n"
    } else {
        b" <\"$scratch/input\"\n"
    };
    line.extend(stdin);
    line
}

/// An argument as a shell word, and whether it names the input file.
fn argument(arg: &OsStr) -> (Vec<u8>, bool) {
    let mut rest = arg.as_bytes();
    let mut word = Vec::new();
    while let Some(at) = (rest.windows(INPUT_MARK.len())).position(|part| part == INPUT_MARK) {
        if at > 0 {
            word.extend(quoted(&rest[..at]));
        }
        word.extend(b"\"$scratch/input\"");
        rest = &rest[at + INPUT_MARK.len()..];
    }
    let marked = !word.is_empty();
    if !rest.is_empty() || !marked {
        word.extend(quoted(rest));
    }
    (word, marked)
}
