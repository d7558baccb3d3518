//! `--export-test FILE`: an interestingness test for the crash, which other reducers can use.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::results::{Place, is_same_file};
use crate::cli::{Exit, Failure};
use crate::exec::{Program, Target, Way};
use crate::files::atomic;
use crate::files::shell::quoted;
use crate::triage::Crash;

/// Finds ddfuzz and the input. `$name` and `$built` are set before.
const FIND: &str = r#"
ddfuzz=${DDFUZZ:-$built}
[ -x "$ddfuzz" ] || ddfuzz=ddfuzz
command -v "$ddfuzz" >/dev/null || {
    echo "$0: ddfuzz is not found; DDFUZZ=PATH says where it is" >&2
    exit 125
}
if [ $# -gt 0 ]; then
    input=$1
elif [ -f "./$name" ]; then
    input=./$name
else
    input=$(mktemp) || exit 125
    trap 'rm -f -- "$input"' EXIT
    trap 'exit 125' HUP INT TERM
    cat >"$input" || exit 125
fi
case $input in
/*) ;;
*) input=./$input ;;
esac
[ -f "$input" ] || {
    echo "$0: there is no input $input" >&2
    exit 125
}
"#;

/// Reads the answer. A crash of another group is no pass.
const JUDGE: &str = r#"case $? in
0 | 1) ;;
*) exit 125 ;;
esac
case $said in
*'"major":"'"$major"'"'*) exit 0 ;;
*'"ended":"timeout"'* | *'"ended":"out of memory"'*) exit 125 ;;
*'"class":null'*) exit 1 ;;
esac
exit 125
"#;

/// Makes sure that the file may be written, before anything is run.
pub(super) fn check(args: &Args, place: &Place) -> Result<(), Failure> {
    let Some(file) = &args.export_test else {
        return Ok(());
    };
    let mut taken: Vec<&Path> = args.input.as_deref().into_iter().collect();
    if let Place::File { results, log } = place {
        taken.extend(results.iter().chain([log]).map(PathBuf::as_path));
    }
    if taken
        .iter()
        .any(|one| *one == file || is_same_file(one, file))
    {
        let message = format!("{} is the input, the result or the log", file.display());
        return Err(Failure::usage(message)
            .path(file)
            .hint("name another file with --export-test"));
    }
    if file.is_dir() || (file.exists() && !args.results.force && !args.results.resume) {
        return Err(exists(file));
    }
    Ok(())
}

/// Writes the test for `crash` where it is asked for. With `--resume`, one that is there stays.
pub(super) fn write(args: &Args, crash: &Crash, target: &Target, way: Way) -> Result<(), Failure> {
    let Some(file) = &args.export_test else {
        return Ok(());
    };
    let name = args.input.as_deref().and_then(Path::file_name);
    let name = name.unwrap_or(OsStr::new("input"));
    let text = text(name, crash, target, way);
    let written = match args.results.force {
        true => atomic::write_program(file, &text),
        false => match atomic::create_new_program(file, &text) {
            Err(error) if error.is_existing() && args.results.resume => Ok(()),
            Err(error) if error.is_existing() => return Err(exists(file)),
            written => written,
        },
    };
    written.map_err(|error| Failure::new(Exit::Usage, "output", error).path(file))
}

fn exists(file: &Path) -> Failure {
    let message = format!("{} exists already", file.display());
    Failure::new(Exit::Usage, "exists", message)
        .path(file)
        .hint("--force overwrites it, --export-test names another")
}

/// The script: it asks `ddfuzz triage`, and so names crashes as the minimization does.
fn text(name: &OsStr, crash: &Crash, target: &Target, way: Way) -> Vec<u8> {
    let (class, major) = (&crash.class, crash.keys.major.short());
    let mut text = format!(
        "#!/bin/sh\n\
         # Interestingness test of ddfuzz {}: exits with 0 where an input causes the crash {class}\n\
         # of group {major}, with 1 where it causes none, with 125 where it causes another or\n\
         # cannot be told. The input is the first argument; without one, the file named below in\n\
         # the current directory; where there is none either, stdin. It needs ddfuzz, in PATH or\n\
         # where DDFUZZ=PATH says.\n\
         major={major}\n",
        env!("CARGO_PKG_VERSION"),
    )
    .into_bytes();
    let built = std::env::current_exe().unwrap_or_else(|_| "ddfuzz".into());
    for (variable, value) in [("name", name), ("built", built.as_os_str())] {
        text.extend(variable.as_bytes());
        text.push(b'=');
        text.extend(quoted(value.as_bytes()));
        text.push(b'\n');
    }
    text.extend(FIND.as_bytes());
    text.extend(b"said=$(\"$ddfuzz\" triage --no-config --json --quiet ");
    text.extend(options(target, way));
    text.extend(b" \"$input\"");
    if let Program::Path(program) = &target.program {
        text.extend(b" -- ");
        text.extend(quoted(program.as_os_str().as_bytes()));
        for arg in &target.args {
            text.push(b' ');
            text.extend(quoted(arg.as_bytes()));
        }
    }
    text.extend(b")\n");
    text.extend(JUDGE.as_bytes());
    text
}

/// How the target is run.
fn options(target: &Target, way: Way) -> Vec<u8> {
    let limits = &target.limits;
    let mut line = format!(
        "--exec {way} --timeout {}ms --memory {}",
        limits.cpu.as_millis().max(1),
        limits.memory
    );
    if let Some(status) = target.crash_exit {
        line.push_str(&format!(" --crash-exit {status}"));
    }
    if let Program::Bundled(name) = &target.program {
        line.push_str(&format!(" --target {name}"));
    }
    let mut line = line.into_bytes();
    if let Some(cwd) = &target.cwd {
        line.extend(b" --cwd=");
        line.extend(quoted(cwd.as_os_str().as_bytes()));
    }
    for (name, value) in &target.env {
        line.extend(b" --env=");
        line.extend(quoted(&[name.as_bytes(), b"=", value.as_bytes()].concat()));
    }
    line
}
