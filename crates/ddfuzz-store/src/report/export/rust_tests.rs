//! Exported tests in Rust that use only the standard library: of a program, of a harness of a
//! cargo-fuzz project, and of a function of the crate under test.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use super::{Need, OF_SIGNALS, Reproducer, needs, statuses, time_limit};
use crate::Kind;
use ddfuzz_exec::{LOCALE, Sanitizer, Target, sanitizer_options};
use ddfuzz_model::files::shell::quoted;

/// A program and how an exported test calls it: path, arguments, environment, sanitizers.
#[derive(Clone, Copy, Debug)]
pub struct ProgramCall<'a> {
    /// Path of the program: absolute, or relative to the directory of the test's `Cargo.toml`.
    pub program: &'a Path,
    /// Target of the recorded run, which gives the program's arguments (with `@@` for the input),
    /// environment and working directory.
    pub target: &'a Target,
    /// Sanitizers with which the program is compiled, as in `-fsanitize=`.
    pub sanitizers: &'a [String],
}

impl ProgramCall<'_> {
    /// Returns whether the program is possibly compiled with a sanitizer, according to the known
    /// compiler flags or the class of the crash.
    pub(super) fn is_sanitized(&self, of: &Reproducer) -> bool {
        !self.sanitizers.is_empty() || of.class.sanitizer().is_some()
    }

    /// Returns whether the program is possibly compiled with a sanitizer that maps terabytes of
    /// address space, which rules out a limit on it.
    pub(super) fn is_shadowed(&self, of: &Reproducer) -> bool {
        let known = self.sanitizers.iter();
        let mut all = known
            .filter_map(|flag| Sanitizer::of_flag(flag))
            .chain(of.class.sanitizer());
        all.any(Sanitizer::shadows)
    }
}

const PROGRAM_USES: &str = "use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
";

const TO_FILE: &str = r#"    let input = scratch.input();
    command.stdin(Stdio::null());
    for argument in ARGUMENTS {
        command.arg(with_path(argument, input.as_os_str().as_bytes()));
    }
"#;

const TO_STDIN: &str = r#"    let input = std::fs::File::open(scratch.input()).expect("it was written");
    command.stdin(input);
    command.args(ARGUMENTS.iter().map(|argument| OsStr::from_bytes(argument)));
"#;

const WITH_PATH: &str = include_str!("templates/with_path.rs.in");

/// Generates the source text of a Rust `#[test]` that runs the program on the input. The test fails
/// if the program crashes, fails in the way recorded or, for a hang, exceeds its limit.
pub fn rust_program_test(of: &Reproducer, input: Input<'_>, called: &ProgramCall<'_>) -> String {
    let name = of.identifier();
    let takes_file = called.target.takes_file();
    let uses = uses(takes_file);
    let arguments = called
        .target
        .args
        .iter()
        .map(|argument| word(argument.as_bytes()));
    let arguments: Vec<String> = arguments.collect();
    let needs = needs(of);
    format!(
        "// {}\n\n{uses}\n\
         /// The input that causes the failure.\n{}\n\
         /// The program, relative to the Cargo.toml of this test.\nconst PROGRAM: &[u8] = {};\n\
         /// Arguments of the program{}.\nconst ARGUMENTS: &[&[u8]] = &[{}];\n{}\n\
         #[test]\nfn {name}() {{\n    \
             let program = Path::new(env!(\"CARGO_MANIFEST_DIR\")).join(OsStr::from_bytes(PROGRAM));\n    \
             assert!(program.is_file(), \"{{}} is missing: build it first\", program.display());\n{}    \
             let scratch = Scratch::new({});\n{}{}{}{}{RUN}{}{}{}",
        of.title(),
        input.constant(),
        word(called.program.as_os_str().as_bytes()),
        if takes_file {
            "; @@ is replaced by the path of a file with the input"
        } else {
            ""
        },
        arguments.join(", "),
        limits(of, time_limit(of, called.is_sanitized(of)), of.memory()),
        if needs.is_empty() { "" } else { LACKS },
        string(name.as_bytes()),
        start(of, called),
        surroundings(called),
        if takes_file { TO_FILE } else { TO_STDIN },
        judge(of),
        if takes_file { WITH_PATH } else { "" },
        sanitizers(of, called),
        lacking_function(&needs),
    )
}

/// Returns the `use` lines of an exported Rust test, without unused imports. `takes_file` says that
/// the program reads its input from a file.
fn uses(takes_file: bool) -> String {
    let mut uses = PROGRAM_USES.to_owned();
    if !takes_file {
        uses = uses.replace("{OsStr, OsString}", "OsStr");
        uses = uses.replace("{OsStrExt, OsStringExt}", "OsStrExt");
    }
    uses
}

/// Generates the Rust statement of an exported test that creates the command which runs the
/// program; if there are limits, the command is a shell that sets them.
fn start(of: &Reproducer, called: &ProgramCall<'_>) -> String {
    let mut limits = String::new();
    if let Some(bytes) = of.data(called.is_shadowed(of)) {
        limits.push_str(&format!("ulimit -d {}; ", (bytes / 1024).max(1)));
    }
    if let Some(ms) = time_limit(of, called.is_sanitized(of)) {
        // Ends the program also where the test itself was killed.
        limits.push_str(&format!("ulimit -t {}; ", ms.saturating_mul(2) / 1000 + 1));
    }
    if of.class.0 == "stackoverflow" {
        limits.push_str("ulimit -S -s 8192 2>/dev/null; ");
    }
    if limits.is_empty() {
        return "    let mut command = Command::new(program);\n".to_owned();
    }
    let script = [
        limits.as_bytes(),
        b"exec ",
        &odd_variables(called.target),
        b"\"$0\" \"$@\"",
    ];
    format!(
        "    let mut command = Command::new(\"sh\");\n    \
         command.arg(\"-c\").arg(OsStr::from_bytes({})).arg(program);\n",
        word(&script.concat()),
    )
}

/// Generates the shell words that set those environment variables of the target whose names are not
/// identifiers, because shells do not pass these on; empty if there are none.
fn odd_variables(target: &Target) -> Vec<u8> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut words = Vec::new();
    for (name, value) in &target.env {
        let name = name.as_bytes();
        if !name.iter().all(is_word) || name.first().is_some_and(u8::is_ascii_digit) {
            words.extend(quoted(&[name, b"=", value.as_bytes()].concat()));
            words.push(b' ');
        }
    }
    match words.is_empty() {
        true => words,
        // `nice` runs also programs whose paths `env` would take for variables.
        false => [b"env -- ", &words[..], b"\"$(command -v nice)\" -n 0 "].concat(),
    }
}

/// Generates the Rust statements of an exported test that set the program's working directory and
/// environment.
fn surroundings(called: &ProgramCall<'_>) -> String {
    let mut lines = match &called.target.cwd {
        Some(cwd) => format!("    command.current_dir({});\n", os_str(cwd.as_os_str())),
        None => "    command.current_dir(&scratch.0);\n".to_owned(),
    };
    if called.target.env_only {
        lines.push_str("    command.env_clear().env(\"TMPDIR\", &scratch.0);\n");
    } else {
        lines.push_str(&locale());
    }
    if !called.target.sandbox.is_off() {
        // As in ddfuzz's sandbox.
        lines.push_str("    command.env(\"HOME\", &scratch.0);\n");
    }
    lines.push_str(&own_variables(called.target));
    // Sanitizers must also abort in a program that was found without any.
    lines.push_str("    tell_sanitizers(&mut command, &scratch.0);\n");
    lines
}

fn os_str(text: &OsStr) -> String {
    format!("OsStr::from_bytes({})", word(text.as_bytes()))
}

/// Generates the Rust statements of an exported test that set a UTF-8 locale if none is set, as
/// ddfuzz does.
fn locale() -> String {
    format!(
        "    let is_set = |name: &&str| std::env::var_os(name).map_or(false, |it| !it.is_empty());\n    \
         if !{LOCALE:?}.iter().any(is_set) {{\n        \
             command.env(\"LANG\", \"C.UTF-8\");\n    \
         }}\n"
    )
}

/// Generates the Rust statements of an exported test that set the target's own environment
/// variables.
fn own_variables(target: &Target) -> String {
    let variables = target.env.iter().map(|(name, value)| {
        let (name, value) = (os_str(name), os_str(value));
        format!("    command.env({name}, {value});\n")
    });
    variables.collect()
}

/// Generates the Rust statements of an exported test that decide whether the program failed.
fn judge(of: &Reproducer) -> String {
    let statuses = statuses(of).into_iter();
    let mut all: Vec<String> = statuses.map(|status| status.to_string()).collect();
    if of.of_descendant {
        all.push(format!("{OF_SIGNALS:?}"));
    }
    let mut failed = match all.is_empty() {
        true => String::new(),
        false => format!(" || matches!(status.code(), Some({}))", all.join(" | ")),
    };
    if let Some(message) = of.message() {
        failed += &format!(" || said.contains({})", string(message.as_bytes()));
    }
    format!(
        "    let (ended, said) = run(&mut command);\n    \
         let status = ended.unwrap_or_else(|over| panic!(\"{{}}:\\n{{}}\", over, said));\n    \
         let reports = reports(&scratch.0);\n    \
         assert!(reports.is_empty(), \"it ends with {{}}:\\n{{}}\\n{{}}\", status, reports, said);\n    \
         let failed = status.signal().is_some(){failed};\n    \
         assert!(!failed, \"it ends with {{}}:\\n{{}}\", status, said);\n}}\n"
    )
}

/// Generates the Rust functions of an exported test that set sanitizer options and read sanitizer
/// reports.
fn sanitizers(of: &Reproducer, called: &ProgramCall<'_>) -> String {
    let names = Sanitizer::ALL.map(|one| format!("\"{}\"", one.variable()));
    let inherited = match called.target.env_only {
        true => "",
        false => ".or_else(|| std::env::var_os(name))",
    };
    let options = sanitizer_options(of.leaks(), of.memory().map(|bytes| bytes >> 20));
    format!(
        r#"
/// Options of sanitizers, in the form `name=value:name=value` of their environment variables, that
/// an exported test sets.
const OPTIONS: &str = {};

/// Appends `OPTIONS` to the variables of sanitizers; of an option given twice the last one counts.
fn tell_sanitizers(command: &mut Command, scratch: &Path) {{
    for name in [
        {},
    ] {{
        let own = command.get_envs().find(|(known, _)| *known == name);
        let own = own.and_then(|(_, value)| value).map(OsStr::to_owned);
        let mut value = own{inherited}.unwrap_or_default();
        if !value.is_empty() {{
            value.push(":");
        }}
        value.push(OPTIONS);
        value.push(":log_path=");
        value.push(scratch.join("report"));
        command.env(name, value);
    }}
}}

/// Returns the reports that sanitizers have written into the directory `scratch`.
fn reports(scratch: &Path) -> String {{
    let mut all = String::new();
    for entry in std::fs::read_dir(scratch).into_iter().flatten().flatten() {{
        if entry.file_name().as_bytes().starts_with(b"report.") {{
            let report = std::fs::read(entry.path()).unwrap_or_default();
            all.push_str(&String::from_utf8_lossy(&report));
        }}
    }}
    all
}}
"#,
        string(options.as_bytes()),
        names.join(",\n        "),
    )
}

/// Rust statements of the generated test that make it fail if the program was compiled without a
/// sanitizer or check that is needed to show the crash.
const LACKS: &str = r#"    let lacks = lacking(&program);
    let path = program.display();
    assert!(lacks.is_none(), "cannot tell: compile {path} with {}", lacks.unwrap_or_default());
"#;

/// Rust statements of a generated test that calls a function of the crate: they fail if the test
/// program was compiled without a sanitizer or check that is needed to show the crash.
const CALL_LACKS: &str = r#"    let lacks = lacking(Path::new("/proc/self/exe"));
    assert!(lacks.is_none(), "cannot tell: compile this test with {}", lacks.unwrap_or_default());
"#;

/// Generates the Rust functions of an exported test that find out which needed compiler flag
/// (sanitizer or debug assertions) the program was not compiled with.
fn lacking_function(needs: &[Need]) -> String {
    if needs.is_empty() {
        return String::new();
    }
    let lines = needs.iter().map(|need| {
        let texts = need.texts.iter().map(|text| {
            let backwards: Vec<u8> = text.iter().rev().copied().collect();
            word(&backwards)
        });
        let texts: Vec<String> = texts.collect();
        format!(
            "    (&[{}], {}, {}),\n",
            texts.join(", "),
            need.needs_type_name,
            string(need.flag.as_bytes())
        )
    });
    let lines: String = lines.collect();
    format!(
        "\n/// One of these texts, which are backwards here, stands in programs that were compiled so.\n\
         const NEEDS: &[(&[&[u8]], bool, &str)] = &[\n{lines}];\n{LACKING}"
    )
}

const LACKING: &str = include_str!("templates/lacking.rs.in");

/// A harness (fuzz target) of a cargo-fuzz project, as an exported test refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuzzProject<'a> {
    /// Directory of the cargo-fuzz project: absolute, or relative to the directory of the test's
    /// `Cargo.toml`.
    pub dir: &'a Path,
    /// Name of the harness (fuzz target) in the cargo-fuzz project.
    pub harness: &'a OsStr,
}

/// Rust statements of the generated test that build and run the harness without sanitizers, on
/// stable Rust.
const BY_CARGO: &str = include_str!("templates/cargo.rs.in");

/// Rust statements of the generated test that build and run the harness with a sanitizer, which
/// needs nightly Rust.
const BY_CARGO_FUZZ: &str = include_str!("templates/cargo_fuzz.rs.in");

const JUDGE: &str = r#"    let (ended, said) = run(&mut command);
    let passes = ended.as_ref().is_ok_and(|status| status.success());
    let how = ended.map_or_else(|over| over, |status| format!("it ends with {status}"));
    assert!(passes, "{}: {}:\n{}", HARNESS, how, said);
}
"#;

/// Generates the source text of a Rust `#[test]` that runs the harness on the input and fails
/// unless the run succeeds. It calls `cargo fuzz` if the crash needs a sanitizer, else `cargo run`
/// with stable Rust. The run has the environment variables and the flags of `target`, the target of
/// the recorded run.
pub fn rust_fuzz_test(
    of: &Reproducer,
    input: Input<'_>,
    project: FuzzProject<'_>,
    target: &Target,
) -> String {
    // The sanitizers of cargo-fuzz, which has one for each build; none of them checks like UBSan.
    let known = ["address", "leak", "memory", "thread"];
    let (job, sanitizer) = match of.sanitizers.first() {
        Some(flag) => {
            let flag = known.iter().find(|known| *known == flag);
            let flag = flag.unwrap_or(&"address");
            let text = format!("/// How it is compiled.\nconst SANITIZER: &str = \"{flag}\";\n");
            (BY_CARGO_FUZZ, text)
        }
        None => (BY_CARGO, String::new()),
    };
    let flags = target.args.iter().filter(|flag| *flag != "@@");
    let mut flags: Vec<String> = flags.map(|flag| string(flag.as_bytes())).collect();
    if of.kind == Kind::Oom {
        let limit = (of.limits.memory >> 20).max(1);
        flags.push(format!("\"-rss_limit_mb={limit}\""));
    }
    let flags = flags.join(", ");
    let name = of.identifier();
    let uses = uses(false).replace("{CommandExt, ExitStatusExt}", "CommandExt");
    format!(
        "// {}\n\n{uses}\n\
         /// The input that causes the failure.\n{}\n\
         /// The cargo-fuzz project, relative to the Cargo.toml of this test.\n\
         const PROJECT: &[u8] = {};\n\
         /// Name of the harness.\nconst HARNESS: &str = {};\n{sanitizer}\
         /// Flags of libFuzzer.\nconst FLAGS: &[&str] = &[{flags}];\n\
         {}\n\
         #[test]\nfn {name}() {{\n    \
             let dir = Path::new(env!(\"CARGO_MANIFEST_DIR\")).join(OsStr::from_bytes(PROJECT));\n    \
             let scratch = Scratch::new({});\n{job}{}{}{JUDGE}{RUN}",
        of.title(),
        input.constant(),
        word(project.dir.as_os_str().as_bytes()),
        string(project.harness.as_bytes()),
        limits(of, None, None),
        string(name.as_bytes()),
        locale(),
        own_variables(target),
    )
}

/// Generates the source text of a Rust `#[test]` that evaluates the expression `call`, in which
/// `INPUT` is the input. The test fails if the expression panics, or if the test was compiled
/// without a sanitizer or check that is needed to show the crash; for a hang also if the expression
/// does not end within a limit. A crash ends the whole test process.
pub fn rust_call_test(of: &Reproducer, input: Input<'_>, call: &str) -> String {
    let needs = needs(of);
    let call = format!("let _ = {};", call.trim());
    let body = match of.kind.of_limits(&of.class) {
        Kind::Hang => format!(
            "    let limit = std::time::Duration::from_millis({});\n    \
             let (ended, end) = std::sync::mpsc::channel();\n    \
             let called = std::thread::spawn(move || {{\n        \
                 let _ended = ended; // at the end of the call, also by a panic\n        \
                 {call}\n    \
             }});\n    \
             let end: Result<(), _> = end.recv_timeout(limit);\n    \
             let over = end == Err(std::sync::mpsc::RecvTimeoutError::Timeout);\n    \
             assert!(!over, \"it does not end within {{:?}}\", limit);\n    \
             called.join().expect(\"it panics\");\n",
            of.run_limit().as_millis()
        ),
        _ => format!("    {call}\n"),
    };
    let (uses, lacks) = match needs.is_empty() {
        true => ("", ""),
        false => ("use std::path::Path;\n\n", CALL_LACKS),
    };
    format!(
        "// {}\n\n{uses}\
         /// The input that causes the failure.\n{}\n\
         #[test]\nfn {}() {{\n{lacks}{body}}}\n{}",
        of.title(),
        input.constant(),
        of.identifier(),
        lacking_function(&needs),
    )
}

/// Generates the Rust constants of an exported test with the limits of a run: wall time, CPU time
/// in ms, memory in bytes (`None`: no limit).
pub(super) fn limits(of: &Reproducer, time: Option<u64>, memory: Option<u64>) -> String {
    let time = match time {
        Some(limit) => format!("Some(Duration::from_millis({limit}))"),
        None => "None".to_owned(),
    };
    format!(
        "/// Limit on the time of a run.\nconst LIMIT: Duration = Duration::from_millis({});\n\
         /// Limit on the CPU time of a run.\nconst TIME: Option<Duration> = {time};\n\
         /// Limit on the memory of a run, in bytes.\nconst MEMORY: Option<u64> = {memory:?};\n",
        of.run_limit().as_millis(),
    )
}

/// Rust code of the generated tests that runs a program within its limits, in a temporary
/// directory. A program over a limit is killed with its process group; its output is read all the
/// time, because a hanging program may print without end.
pub(super) const RUN: &str = include_str!("templates/run.rs.in");

/// Maximum number of input bytes that an exported test has in a literal; a larger input becomes a
/// separate file.
pub const LITERAL_BYTES: usize = 4096;

/// Where an exported test has the bytes of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// The input's bytes are a literal in the source of the test.
    Inline(&'a [u8]),
    /// The input's bytes are in a file with this path, relative to the test's file.
    File(&'a str),
}

impl Input<'_> {
    pub(super) fn constant(self) -> String {
        match self {
            Input::Inline(bytes) => {
                format!("const INPUT: &[u8] = {};\n", byte_string(bytes, WIDTH))
            }
            Input::File(name) => format!(
                "const INPUT: &[u8] = include_bytes!({});\n",
                string(name.as_bytes())
            ),
        }
    }
}

/// Approximate number of characters per line of a byte string literal.
const WIDTH: usize = 80;

/// Quotes bytes as a Rust byte string literal, continued on a new line after `width` characters and
/// after each newline. A blank at the start of a line is escaped, because a continuation skips
/// blanks.
pub(super) fn byte_string(bytes: &[u8], width: usize) -> String {
    let mut text = String::from("b\"");
    let mut column = 0;
    let breaks = bytes.len() > width / 2;
    if breaks {
        text.push_str("\\\n    ");
    }
    for (at, &byte) in bytes.iter().enumerate() {
        let begins = column == 0 && breaks;
        let word = match byte {
            b'\n' => "\\n".to_owned(),
            b'\r' => "\\r".to_owned(),
            b'\t' => "\\t".to_owned(),
            b' ' if begins => "\\x20".to_owned(),
            b'"' => "\\\"".to_owned(),
            b'\\' => "\\\\".to_owned(),
            b' '..=b'~' => (byte as char).to_string(),
            _ => format!("\\x{byte:02x}"),
        };
        column += word.len();
        text.push_str(&word);
        let ends = column >= width || byte == b'\n';
        if breaks && ends && at + 1 < bytes.len() {
            text.push_str("\\\n    ");
            column = 0;
        }
    }
    text.push('"');
    text
}

/// Quotes bytes as a Rust byte string literal in one line.
pub(super) fn word(bytes: &[u8]) -> String {
    byte_string(bytes, usize::MAX)
}

/// Quotes text as a Rust string literal; invalid UTF-8 is replaced.
pub(super) fn string(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let escaped: String = text
        .chars()
        .map(|character| character.escape_default().to_string())
        .collect();
    format!("\"{escaped}\"")
}
