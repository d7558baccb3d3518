//! Generates `reproduce.sh`, the script that shows a crash without ddfuzz.

use std::{os::unix::ffi::OsStrExt, path::Path};

pub mod channel;

use super::{EntryId, Kind};
use ddfuzz_exec::{
    Channel, LARGEST_ALLOCATION, Sanitizer, Target, is_script, program_facts, sanitizer_options,
};
use ddfuzz_model::files::shell::quoted;
use ddfuzz_triage::Class;

/// Shell code of `reproduce.sh` that sets `$here` to the script's folder and `$input` to the
/// smallest failing input in it.
const FIND: &str = r#"
case $0 in
*/*) here=${0%/*} ;;
*) here=. ;;
esac
here=$(CDPATH= cd -- "$here" && pwd) || exit 70
input=$here/minimized
[ -f "$input" ] || input=$here/original
[ -f "$input" ] || {
    echo "$0: the input is not beside this script" >&2
    exit 70
}
"#;

/// Shell code of `reproduce.sh` that prepares a run: makes a temporary directory with a copy of the
/// input and an empty working directory, arranges that it is removed when the script ends, and
/// disables core dumps.
const SCRATCH: &str = r#"scratch=$(mktemp -d) || exit 70
trap 'cd / && rm -rf -- "$scratch"' EXIT
trap 'exit 130' HUP INT TERM
cp -- "$input" "$scratch/input" && mkdir -- "$scratch/cwd" || exit 70
ulimit -c 0
"#;

/// Shell word in `reproduce.sh` for the path of the input's copy in the temporary directory.
const COPY: &[u8] = b"\"$scratch/input\"";

/// Shell code in `reproduce.sh` that begins the part for gdb, which runs if the first argument is
/// `gdb`.
const GDB: &str = "if [ \"${1-}\" = gdb ]; then\n    shift\n";

/// Returns whether the text of a `reproduce.sh` has a part that shows the crash in gdb.
pub(super) fn has_gdb(script: &[u8]) -> bool {
    let part = GDB.as_bytes();
    script.windows(part.len()).any(|window| window == part)
}

/// Shell code at the end of `reproduce.sh` that prints the program's exit status and exits with it.
const END: &str = r#"status=$?
echo "ended with status $status" >&2
exit "$status"
"#;

/// Generates a POSIX shell script that runs the target once on the input beside the script
/// (`minimized`, or `original` if that does not exist) and exits with the target's status.
///
/// `program` is the file to run; a relative path starts at the output directory `root`, four
/// folders above the script. Paths, arguments and variables may hold any bytes. The program runs in
/// the target's working directory or an empty temporary directory, on a copy of the input. A hang
/// is stopped by a CPU limit or by `timeout`, excessive memory by a memory limit. Sanitizers get
/// the same options as under ddfuzz, but symbolize their reports. `class` is the class in the
/// entry's crash record.
///
/// With `gdb` as its first argument the script runs the program in gdb up to the crash, and passes
/// further arguments to gdb.
pub fn script(
    id: &EntryId,
    class: &Class,
    target: &Target,
    program: &Path,
    root: &Path,
) -> Vec<u8> {
    let kind = id.kind().of_limits(class);
    let with_gdb = runs_in_gdb(class, target, &root.join(program));
    let facts = program_facts(&root.join(program)).unwrap_or_default();
    let sanitized = facts.sanitized || class.sanitizer().is_some();
    let shadowed = facts.shadowed || class.sanitizer().is_some_and(Sanitizer::shadows);
    let mut text = head(id, class, with_gdb).into_bytes();
    text.extend(FIND.as_bytes());
    text.extend(b"program=");
    if program.is_relative() {
        text.extend(b"$here/../../../../");
    }
    text.extend(quoted(program.as_os_str().as_bytes()));
    text.push(b'\n');
    text.extend(SCRATCH.as_bytes());
    text.extend(channel::LOCALE.as_bytes());
    if sanitized {
        text.extend(options(kind, class, target).as_bytes());
    }
    text.extend(b"cd -- ");
    match &target.cwd {
        Some(cwd) => text.extend(quoted(cwd.as_os_str().as_bytes())),
        None => text.extend(b"\"$scratch/cwd\""),
    }
    text.extend(b" || exit 70\n");
    text.extend(channel::place_input(target));
    let variables = variables(target, sanitized);
    if with_gdb {
        let start = sets_hidden_variables(target).then(|| start_in_gdb(&variables, program));
        text.extend(gdb(kind, class, target, shadowed, &variables, start));
    }
    text.extend(limit(kind, class, target, shadowed).as_bytes());
    let mut line = Vec::new();
    if kind == Kind::Hang {
        line.extend(timeout_command(target).bytes());
    }
    line.extend(&variables);
    if !variables.is_empty() && program.as_os_str().as_bytes().contains(&b'=') {
        // `env` would take a path with `=` for a variable.
        line.extend(channel::RUN_PROGRAM);
    }
    line.extend(command(target));
    text.extend(channel::run(target, &line, COPY));
    text.extend(END.as_bytes());
    text
}

/// Generates the comment at the top of `reproduce.sh`, which says what the script shows and how to
/// call it.
fn head(id: &EntryId, class: &Class, with_gdb: bool) -> String {
    format!(
        "#!/bin/sh\n\
         # Shows a crash without ddfuzz: group {}, variant {}, input {}.\n\
         # Exits with the program's status; 128 + N means that signal N ended it.\n{}{}",
        id.major(),
        id.minor(),
        id.hash(),
        how_it_shows(id.kind().of_limits(class), class),
        if with_gdb { IN_GDB } else { "" },
    )
}

/// Returns the part of a crash's class before its first `:`, which names the tool that reported the
/// crash (`asan` in `asan:heap-buffer-overflow`); the whole class if it contains no `:`.
fn tool(class: &Class) -> &str {
    class.0.split(':').next().unwrap_or_default()
}

/// Generates the comment in `reproduce.sh` that explains the exit status of a failing run; empty if
/// the crash is a plain signal.
fn how_it_shows(kind: Kind, class: &Class) -> String {
    let text = match (kind, tool(class)) {
        (Kind::Hang, _) => {
            "It hangs: 152 (SIGXCPU) means that its CPU time was used up, 124 or 137 that its time \
             was up"
        }
        (Kind::Oom, _) => {
            "It runs out of memory: its memory is limited, and it ends as it does then"
        }
        (_, "rustpanic") => {
            "It panics: 101 is the status of a Rust program that panics, 134 (SIGABRT) if panics \
             abort"
        }
        (_, "exit") => {
            let status = class.0.strip_prefix("exit:").unwrap_or_default();
            return format!("# The crash is its status: {status}.\n");
        }
        _ if class.sanitizer().is_some() => "A sanitizer reports it, and aborts: 134 (SIGABRT)",
        _ => return String::new(),
    };
    format!("# {text}.\n")
}

/// Returns the limit on writable private memory, in bytes, with which `reproduce.sh` runs the
/// program. For an out-of-memory failure it is `memory`, the memory limit of the recorded run. For
/// a crash by a signal it is twice `memory`, as in the recorded run, because an allocation that
/// failed may have caused the crash. `None` for other failures, and if a sanitizer maps terabytes
/// of memory (`shadowed`).
pub(crate) fn data_limit(kind: Kind, class: &Class, memory: u64, shadowed: bool) -> Option<u64> {
    let is_signal = matches!(tool(class), "segv" | "bus" | "ill" | "abrt" | "trap");
    let bytes = match kind.of_limits(class) {
        Kind::Oom => memory,
        Kind::Crash if is_signal => memory.saturating_mul(2),
        _ => return None,
    };
    Some(bytes.max(1024)).filter(|_| !shadowed)
}

/// Generates the `ulimit` lines of `reproduce.sh` that limit CPU time for a hang, or memory
/// ([`data_limit`]). `shadowed` means that a sanitizer maps terabytes of address space, which rules
/// out a memory limit.
fn limit(kind: Kind, class: &Class, target: &Target, shadowed: bool) -> String {
    match kind {
        Kind::Hang => {
            let seconds = target.limits.cpu.as_secs() + 1;
            // SIGXCPU first, which names the reason; SIGKILL if the program ignores it.
            format!("ulimit -S -t {seconds}\nulimit -H -t {}\n", seconds + 5)
        }
        // A sanitizer's shadow memory exceeds any limit; its own options limit memory.
        Kind::Oom | Kind::Crash | Kind::Flaky => {
            match data_limit(kind, class, target.limits.memory, shadowed) {
                Some(bytes) => format!("ulimit -d {}\n", bytes / 1024),
                None => String::new(),
            }
        }
    }
}

/// Generates the `timeout` command of `reproduce.sh`, which stops a hang that sleeps and so never
/// reaches a CPU limit.
fn timeout_command(target: &Target) -> String {
    let seconds = channel::wall_seconds(&target.limits);
    let foreground = match target.channel {
        // Without this option the program could not read from the terminal.
        Channel::Terminal(_) => "--foreground ",
        _ => "",
    };
    format!("timeout {foreground}-k 5 {seconds} ")
}

/// Generates the line of `reproduce.sh` that sets the shell variable `$options`: the sanitizer
/// options of the run, such as whether leaks are reported, and the memory limit for an
/// out-of-memory crash.
fn options(kind: Kind, class: &Class, target: &Target) -> String {
    let leaks = class.is_leak();
    let is_oom = kind == Kind::Oom;
    let memory = is_oom.then_some(target.limits.memory >> 20);
    let allocation = target.fuzzer_limits().and_then(|limits| limits.allocation);
    let allocation = allocation
        .filter(|_| is_oom)
        .map_or_else(String::new, |limit| {
            format!(":{LARGEST_ALLOCATION}={limit}")
        });
    format!("options={}{allocation}\n", sanitizer_options(leaks, memory))
}

/// Line of the comment at the top of `reproduce.sh` that explains how to use gdb.
const IN_GDB: &str = "# To stop at the crash in gdb: sh reproduce.sh gdb. More arguments are for gdb: sh \
                      reproduce.sh gdb -batch -ex bt\n";

/// Returns whether gdb can show a crash of this class. It cannot show leaks (LeakSanitizer needs to
/// trace the process itself), targets at a terminal (gdb uses it), and scripts.
fn runs_in_gdb(class: &Class, target: &Target, program: &Path) -> bool {
    let at_terminal = matches!(target.channel, Channel::Terminal(_));
    tool(class) != "lsan" && !at_terminal && !is_script(program)
}

/// Returns true if the target sets an environment variable that gdb would not pass on to it. gdb
/// starts the program through a shell, which drops variables whose names are not identifiers, and
/// gdb sets some variables itself.
fn sets_hidden_variables(target: &Target) -> bool {
    let is_identifier = |name: &[u8]| {
        let begins = name.first().is_some_and(|byte| !byte.is_ascii_digit());
        let fits = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        begins && name.iter().all(fits)
    };
    target.env.iter().any(|(name, _)| {
        let name = name.as_bytes();
        !is_identifier(name) || [&b"LINES"[..], b"COLUMNS", b"SHELL"].contains(&name)
    })
}

/// Generates the lines of `reproduce.sh` that write the script `$scratch/start`, through which gdb
/// starts the program with its environment variables, and that set `$start` to the path of this
/// script, quoted for gdb's shell.
fn start_in_gdb(variables: &[u8], program: &Path) -> Vec<u8> {
    let mut line = b"exec ".to_vec();
    // The script's own variables are not the program's.
    match variables.strip_prefix(b"env -- ") {
        Some(rest) => line.extend([b"env -u scratch -u options -- ", rest].concat()),
        None => line.extend(variables),
    }
    if program.as_os_str().as_bytes().contains(&b'=') {
        line.extend(channel::RUN_PROGRAM);
    }
    line.extend(b"\"$@\"\n");
    let mut end = b"END".to_vec();
    while line.windows(end.len()).any(|part| part == end) {
        end.push(b'_');
    }
    let mut text = b"    cat >\"$scratch/start\" <<'".to_vec();
    text.extend([&end[..], b"' || exit 70\n", &line, &end, b"\n"].concat());
    text.extend(b"    export scratch options\n");
    text.extend(quoted_twice("start", "start"));
    text
}

/// Generates the line of `reproduce.sh` that sets a variable to the path of a file in `$scratch`.
/// Each `'` in the path is escaped, so that the value can stand between single quotes in gdb's
/// shell.
fn quoted_twice(variable: &str, file: &str) -> Vec<u8> {
    format!("    {variable}=$(printf %s \"$scratch/{file}\" | sed \"s/'/'\\\\\\\\''/g\")\n")
        .into_bytes()
}

/// Generates the lines of `reproduce.sh` that run the program in gdb if the script's first argument
/// is `gdb`. gdb's setting `exec-wrapper` gives the program its input and its limits. The program's
/// environment is set by the shell lines `start` ([`start_in_gdb`]) or, without them, by
/// `variables`, shell words that stand before the command `gdb`.
fn gdb(
    kind: Kind,
    class: &Class,
    target: &Target,
    shadowed: bool,
    variables: &[u8],
    start: Option<Vec<u8>>,
) -> Vec<u8> {
    let mut text = GDB.as_bytes().to_vec();
    let wrapper = match kind {
        Kind::Hang => {
            let seconds = target.limits.cpu.as_secs() + 1;
            format!("prlimit --cpu={seconds}:{}", seconds + 5)
        }
        Kind::Oom | Kind::Crash | Kind::Flaky => {
            match data_limit(kind, class, target.limits.memory, shadowed) {
                Some(bytes) => format!("prlimit --data={bytes}"),
                // `exec-wrapper` needs a command; this one changes nothing.
                None => "nice -n 0".to_owned(),
            }
        }
    };
    let stdin = match target.takes_file() {
        true => "/dev/null",
        false => "'$stdin'",
    };
    // Quoted twice: in double quotes of the script, in single quotes of gdb's shell.
    text.extend(quoted_twice("stdin", "input"));
    let by = start.as_ref().map_or("", |_| " sh '$start'");
    text.extend(start.iter().flatten());
    text.extend(b"    ");
    match start.is_some() || variables.is_empty() {
        true => text.extend(b"env -- "),
        false => text.extend(variables),
    }
    text.extend(b"SHELL=/bin/sh gdb -q -ex 'unset environment LINES' \\\n");
    text.extend(b"        -ex 'unset environment COLUMNS' ");
    text.extend(format!("-ex \"set exec-wrapper <{stdin} {wrapper}{by}\" ").bytes());
    text.extend(stops_at(class));
    text.extend(b"-ex run \\\n        \"$@\" --args ");
    text.extend(command(target));
    text.extend(b"\n    exit\nfi\n");
    text
}

/// Returns the gdb options that stop the program at a Rust panic or at its exit, for failures
/// without a signal; empty for other failures.
fn stops_at(class: &Class) -> &'static [u8] {
    match tool(class) {
        "rustpanic" => b"-ex 'set breakpoint pending on' -ex 'break rust_panic' ",
        "exit" => b"-ex 'catch syscall exit_group' ",
        _ => b"",
    }
}

/// Generates the `env` command of `reproduce.sh` that sets the environment variables of the
/// program, with those for sanitizer options if `sanitized`; empty if none is to be set.
fn variables(target: &Target, sanitized: bool) -> Vec<u8> {
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
            // As in ddfuzz's sandbox; the target's own variables come later.
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
    }
    line
}

/// Generates the shell words of `reproduce.sh` that call the target: its program and its arguments,
/// with the path of the input file in place of `@@`.
fn command(target: &Target) -> Vec<u8> {
    let mut line = b"\"$program\"".to_vec();
    let mut named = 0;
    for arg in &target.args {
        line.push(b' ');
        line.extend(channel::argument(target, arg, COPY, &mut named));
    }
    line
}

/// Generates the shell words of `reproduce.sh` that set the environment variables with sanitizer
/// options. ddfuzz's options come after the user's own, since the last one counts if an option is
/// given twice.
fn sanitizer_variables(target: &Target) -> Vec<u8> {
    let mut words = Vec::new();
    for name in Sanitizer::ALL.map(Sanitizer::variable) {
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
