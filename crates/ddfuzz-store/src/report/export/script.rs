//! Generates an interestingness test for other reducers: a shell script that calls `ddfuzz triage`.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use ddfuzz_exec::{Program, Target, Way};
use ddfuzz_model::files::shell::quoted;
use ddfuzz_triage::Crash;

/// Shell code of an interestingness test that finds the program ddfuzz: by the variable `DDFUZZ`,
/// else at the path in `$built`, else in `PATH`.
const FIND: &str = r#"
ddfuzz=${DDFUZZ:-$built}
[ -x "$ddfuzz" ] || ddfuzz=ddfuzz
command -v "$ddfuzz" >/dev/null || {
    echo "$0: ddfuzz is not found; DDFUZZ=PATH says where it is" >&2
    exit 125
}
ddfuzz=$(command -v "$ddfuzz")
"#;

/// Shell code of an interestingness test that sets `$input` to the path of the input: the first
/// argument, else the file `$name` in the working directory, else a temporary file with the bytes
/// from stdin.
const ANYWHERE: &str = r#"if [ $# -gt 0 ]; then
    input=$1
elif [ -f "./$name" ]; then
    input=./$name
else
    input=$(mktemp) || exit 125
    trap 'rm -f -- "$input"' EXIT
    trap 'exit 125' HUP INT TERM
    cat >"$input" || exit 125
fi
"#;

/// Shell code of an interestingness test that exits with 125 if the input file does not exist.
const THERE: &str = r#"case $input in
/*) ;;
*) input=./$input ;;
esac
[ -f "$input" ] || {
    echo "$0: there is no input $input" >&2
    exit 125
}
"#;

/// Shell code of an interestingness test that judges the answer of `ddfuzz triage`: it exits with 0
/// for a crash of the test's group, and with 125 for any other failure. If the input does not
/// crash, the code that follows in the script decides.
const JUDGE: &str = r#"case $? in
0 | 1) ;;
*) exit 125 ;;
esac
case $said in
*'"major":"'"$major"'"'*) exit 0 ;;
*'"ended":"timeout"'* | *'"ended":"out of memory"'*) exit 125 ;;
*'"class":null'*) ;;
*) exit 125 ;;
esac
"#;

/// Generates the shell code that turns the answer of `ddfuzz triage` into an exit status: 0 for a
/// crash of the test's group, 1 for no crash, 125 for anything else. "No crash" also gives 125 if
/// the program was compiled without one of the sanitizers `needed`, since it cannot show the crash
/// then.
fn judge(needed: &[String]) -> String {
    let lines = needed.iter().map(|flag| {
        format!(
            "case $said in\n\
             *'\"instrumentation\":null'* | *'\"instrumentation\":['*'\"{flag}\"'*) ;;\n\
             *)\n    \
                 echo \"$0: compile the program with -fsanitize={flag}\" >&2\n    \
                 exit 125\n    \
                 ;;\n\
             esac\n"
        )
    });
    let lines: String = lines.collect();
    format!("{JUDGE}{lines}exit 1\n")
}

/// Where an interestingness test takes its input from: its argument, else a file, else stdin; or
/// only a file in the current directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// The test takes its input from its first argument; without an argument, from a file in the
    /// current directory; without that file, from stdin (docs/src/interestingness.md).
    Anywhere,
    /// The test takes its input from a file in the current directory, as creduce and cvise require.
    File,
}

/// Generates a POSIX shell script, an interestingness test: it exits with 0 if its input causes a
/// crash of the group of `crash`, with 1 if the input causes no crash, and with 125 if it causes
/// another crash or the script cannot decide. The script runs `ddfuzz triage` on the target in the
/// given way of execution, so that it identifies crashes as the minimization does.
///
/// `taking` says where the script takes its input from, and `name` is the file name of the input in
/// the current directory. `ddfuzz` is the path of the program ddfuzz to call, unless the
/// environment variable `DDFUZZ` names another.
pub fn interestingness_test(
    taking: InputSource,
    name: &OsStr,
    crash: &Crash,
    (target, way): (&Target, Way),
    ddfuzz: &Path,
) -> Vec<u8> {
    let class = super::printable(&crash.class.0);
    let major = crash.keys.major.short();
    let source = match taking {
        InputSource::Anywhere => {
            "The input is the first argument; without one, the file `name` (see below) in the\n\
             # current directory; if there is no such file, stdin."
        }
        InputSource::File => "The input is the file `name` (see below) in the current directory.",
    };
    let mut text = format!(
        "#!/bin/sh\n\
         # Interestingness test of ddfuzz {}: exits with 0 if an input causes the crash {class}\n\
         # of group {major}, with 1 if it causes none, with 125 if it causes another or\n\
         # the test cannot decide. {source}\n\
         # It runs ddfuzz: the path in the variable DDFUZZ, the path below, or ddfuzz in PATH.\n\
         major={major}\n",
        env!("CARGO_PKG_VERSION"),
    )
    .into_bytes();
    for (variable, value) in [("name", name), ("built", ddfuzz.as_os_str())] {
        text.extend(variable.as_bytes());
        text.push(b'=');
        text.extend(quoted(value.as_bytes()));
        text.push(b'\n');
    }
    text.extend(FIND.as_bytes());
    text.extend(match taking {
        InputSource::Anywhere => ANYWHERE.bytes(),
        InputSource::File => "input=./$name\n".bytes(),
    });
    text.extend(THERE.as_bytes());
    text.extend(call(crash, target, way));
    text.extend(judge(&crash.needed_sanitizers()).bytes());
    text
}

/// Generates the shell code that sets `$said` to the output of `ddfuzz triage` for the input.
fn call(crash: &Crash, target: &Target, way: Way) -> Vec<u8> {
    let mut text = b"said=$(".to_vec();
    if target.env_only {
        // The target inherits the environment of ddfuzz. `env` would take a path with `=` for a
        // variable, `nice` does not.
        text.extend(b"env -i nice -n 0 ");
    }
    text.extend(b"\"$ddfuzz\" triage --no-config --json --quiet ");
    text.extend(options(target, way));
    if crash.class.is_leak() {
        text.extend(b" --leaks");
    }
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
    text
}

/// Generates the command-line options of `ddfuzz triage` that describe the target.
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
    if !target.sandbox.is_off() {
        line.push_str(" --sandbox");
    }
    if let Program::Bundled(name) = &target.program {
        line.push_str(&format!(" --target {name}"));
    }
    let mut line = line.into_bytes();
    for option in target.channel.options() {
        line.push(b' ');
        line.extend(quoted(option.as_bytes()));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use ddfuzz_exec::Sandbox;

    #[test]
    fn a_target_in_a_sandbox_is_tested_in_one() {
        let mut target = Target::new(Program::Path("/bin/vi".into()));
        let has_sandbox = |target: &Target| options(target, Way::Inject).ends_with(b" --sandbox");
        assert!(!has_sandbox(&target));
        target.sandbox = Sandbox::On;
        assert!(has_sandbox(&target));
    }
}
