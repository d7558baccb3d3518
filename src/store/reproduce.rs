//! The script that shows a crash without ddfuzz (`reproduce.sh`).

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) mod channel;

use super::{EntryId, Kind};
use crate::exec::{
    Channel, LARGEST_ALLOCATION, SANITIZER_OPTIONS, SANITIZERS, Target, is_sanitized,
};
use crate::files::shell::quoted;
use crate::triage::Class;

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

/// The copy of the input.
const COPY: &[u8] = b"\"$scratch/input\"";

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
/// ended by its CPU limit or, where it sleeps, by `timeout`; memory that runs away by a limit on
/// it. A sanitizer is told what it was told in the run, except that it says names. `class` is
/// what the entry's record says; `root` is the output directory.
pub fn script(
    id: &EntryId,
    class: &Class,
    target: &Target,
    program: &Path,
    root: &Path,
) -> Vec<u8> {
    let sanitized = is_sanitized(&root.join(program)) || SANITIZED.contains(&tool(class));
    let mut text = format!(
        "#!/bin/sh\n\
         # Shows a crash without ddfuzz: group {}, way {}, input {}.\n\
         # Ends with the program's status; 128 + N says that signal N ended it.\n{}",
        id.major(),
        id.minor(),
        id.hash(),
        how_it_shows(id.kind(), class),
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
    text.extend_from_slice(limit(id.kind(), target, sanitized).as_bytes());
    if sanitized {
        text.extend_from_slice(options(id.kind(), class, target).as_bytes());
    }
    text.extend(b"cd -- ");
    match &target.cwd {
        Some(cwd) => text.extend(quoted(cwd.as_os_str().as_bytes())),
        None => text.extend(b"\"$scratch/cwd\""),
    }
    text.extend(b" || exit 70\n");
    text.extend(channel::place_input(target));
    let mut line = Vec::new();
    if id.kind() == Kind::Hang {
        line.extend(patience(target).bytes());
    }
    line.extend(command(target, program, sanitized));
    text.extend(channel::run(target, &line, COPY));
    text.extend_from_slice(END.as_bytes());
    text
}

/// The tools of which reports make a class.
const SANITIZED: [&str; 5] = ["asan", "lsan", "msan", "tsan", "ubsan"];

fn tool(class: &Class) -> &str {
    class.0.split(':').next().unwrap_or_default()
}

/// How the crash shows, where that is not by a signal.
fn how_it_shows(kind: Kind, class: &Class) -> String {
    match (kind, tool(class)) {
        (Kind::Hang, _) => "# It hangs: 152 (SIGXCPU) says that its processor time was up, 124 or \
                            137 that its time was up.\n"
            .to_owned(),
        (Kind::Oom, _) => "# It fills the memory: it gets no more than its limit, and ends as it \
                           does then.\n"
            .to_owned(),
        (_, "rustpanic") => "# It panics: 101 is the status of a Rust program that panics; 134 \
                             (SIGABRT) where panics abort.\n"
            .to_owned(),
        (_, "exit") => format!(
            "# The crash is its status: {}.\n",
            class.0.strip_prefix("exit:").unwrap_or_default()
        ),
        (_, tool) if SANITIZED.contains(&tool) => {
            "# A sanitizer reports it, and aborts: 134 (SIGABRT).\n".to_owned()
        }
        _ => String::new(),
    }
}

/// What keeps a finding that would use up the machine from doing so.
fn limit(kind: Kind, target: &Target, sanitized: bool) -> String {
    match kind {
        Kind::Hang => {
            let seconds = target.limits.cpu.as_secs() + 1;
            // SIGXCPU first, which names the reason; SIGKILL for what does not heed it.
            format!("ulimit -S -t {seconds}\nulimit -H -t {}\n", seconds + 5)
        }
        // The shadow of a sanitizer is larger than any limit: it has one of its own.
        Kind::Oom if !sanitized => format!("ulimit -v {}\n", (target.limits.memory / 1024).max(1)),
        Kind::Oom | Kind::Crash | Kind::Flaky => String::new(),
    }
}

/// What ends a run that sleeps, and uses no processor time, in front of the program.
fn patience(target: &Target) -> String {
    let limits = &target.limits;
    // As long as a run may take at most: behind the limit on processor time, also where others use
    // the processor.
    let seconds = limits
        .wall
        .max(limits.cpu)
        .as_secs()
        .saturating_mul(10)
        .saturating_add(5);
    let foreground = match target.channel {
        // Else it could not read from there.
        Channel::Terminal(_) => "--foreground ",
        _ => "",
    };
    format!("timeout {foreground}-k 5 {seconds} ")
}

/// The options that sanitizers get.
fn options(kind: Kind, class: &Class, target: &Target) -> String {
    let leaks = u8::from(tool(class) == "lsan");
    let memory = match kind {
        Kind::Oom => {
            let allocation = target.fuzzer_limits().and_then(|limits| limits.allocation);
            let allocation = allocation.map_or_else(String::new, |limit| {
                format!(":{LARGEST_ALLOCATION}={limit}")
            });
            let resident = (target.limits.memory >> 20).max(1);
            format!(":hard_rss_limit_mb={resident}{allocation}")
        }
        _ => String::new(),
    };
    format!("options={SANITIZER_OPTIONS}:detect_leaks={leaks}{memory}:symbolize=1\n")
}

/// The words that run the program.
fn command(target: &Target, program: &Path, sanitized: bool) -> Vec<u8> {
    let mut line = Vec::new();
    let own = channel::variables(target);
    let sandboxed = !target.sandbox.is_off();
    if target.env_only || sandboxed || !target.env.is_empty() || sanitized || !own.is_empty() {
        line.extend(if target.env_only {
            b"env -i -- TMPDIR=\"$scratch\" ".as_slice()
        } else {
            b"env -- "
        });
        if sandboxed {
            // As it had there; what the target sets comes behind it.
            line.extend(b"HOME=\"$scratch/cwd\" ");
        }
        line.extend(own);
        for (name, value) in &target.env {
            line.extend(quoted(&[name.as_bytes(), b"=", value.as_bytes()].concat()));
            line.push(b' ');
        }
        if sanitized {
            line.extend(sanitizer_variables(target));
        }
        if program.as_os_str().as_bytes().contains(&b'=') {
            // `env` would take such a path for one more variable.
            line.extend(b"sh -c 'exec \"$@\"' sh ");
        }
    }
    line.extend(b"\"$program\"");
    let mut named = 0;
    for arg in &target.args {
        line.push(b' ');
        line.extend(channel::argument(target, arg, COPY, &mut named));
    }
    line
}

/// The variables of sanitizers, our options behind the user's own.
fn sanitizer_variables(target: &Target) -> Vec<u8> {
    let mut words = Vec::new();
    for name in SANITIZERS {
        words.extend(format!("{name}=").bytes());
        let set = target.env.iter().rev().find(|(known, _)| known == name);
        match set {
            Some((_, value)) if !value.is_empty() => {
                words.extend(quoted(&[value.as_bytes(), b":"].concat()));
            }
            None if !target.env_only => words.extend(format!("\"${{{name}:+${name}:}}\"").bytes()),
            _ => {}
        }
        words.extend(b"\"$options\" ");
    }
    words
}
