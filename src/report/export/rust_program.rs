//! A test that runs a program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::fails::{Fails, SANITIZERS as REPORTERS};
use super::rust_literal::{string, word};
use super::rust_run::RUN;
use super::{Input, Reproducer};
use crate::exec::{SANITIZER_OPTIONS, SANITIZERS, Target};

/// A program with all that an exported test gives it.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    /// The program: absolute, or relative to the manifest's directory of a test of Rust.
    pub program: &'a Path,
    /// Arguments (with `@@` for the input), variables and directory, as its `main` takes them.
    pub target: &'a Target,
    /// Whether it was compiled with a sanitizer.
    pub sanitized: bool,
}

impl Called<'_> {
    /// The variables that it gets, those of sanitizers included.
    pub(super) fn variables(&self, of: &Reproducer) -> Vec<(OsString, OsString)> {
        let mut all = self.target.env.clone();
        let tool = of.class.0.split(':').next().unwrap_or_default();
        if !self.sanitized && !REPORTERS.contains(&tool) {
            return all;
        }
        let leaks = u8::from(tool == "lsan");
        let limit = match of.memory() {
            Some(kib) => format!(":hard_rss_limit_mb={}", (kib >> 10).max(1)),
            None => String::new(),
        };
        let options = format!("{SANITIZER_OPTIONS}:detect_leaks={leaks}{limit}:symbolize=1");
        for name in SANITIZERS {
            let at = all.iter().position(|(known, _)| known == name);
            let mut value = at.map(|at| all.remove(at).1).unwrap_or_default();
            if !value.is_empty() {
                value.push(":");
            }
            // Of an option given twice the later one holds.
            value.push(&options);
            all.push((name.into(), value));
        }
        all
    }

    /// The limit on memory in KiB, where a shell may set it: the shadow of a sanitizer is larger
    /// than any.
    pub(super) fn memory(&self, of: &Reproducer) -> Option<u64> {
        of.memory().filter(|_| !self.sanitized)
    }
}

const USES: &str = "use std::ffi::{OsStr, OsString};
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

const WITH_PATH: &str = r#"
/// The argument with the input's path in place of each `@@`.
fn with_path(argument: &[u8], path: &[u8]) -> OsString {
    let (mut rest, mut text) = (argument, Vec::new());
    while let Some(at) = rest.windows(2).position(|pair| pair == b"@@") {
        text.extend_from_slice(&rest[..at]);
        text.extend_from_slice(path);
        rest = &rest[at + 2..];
    }
    text.extend_from_slice(rest);
    OsString::from_vec(text)
}
"#;

/// A `#[test]` that runs the program on the input, and fails if a signal ends it, or what else
/// ends it where it crashes; of a hang, if it does not end.
pub fn rust_program_test(of: &Reproducer, input: Input<'_>, called: &Called<'_>) -> String {
    let name = of.identifier();
    let takes_file = called.target.takes_file();
    let uses = uses(takes_file, &Fails::of(of));
    let arguments: Vec<String> = called.target.args.iter().map(quoted).collect();
    format!(
        "// {}\n\n{uses}\n\
         /// The input that made it fail.\n{}\n\
         /// The program, from the manifest of this test on.\nconst PROGRAM: &[u8] = {};\n\
         /// Its arguments{}.\nconst ARGUMENTS: &[&[u8]] = &[{}];\n\
         /// No run takes longer.\nconst LIMIT: Duration = Duration::from_millis({});\n\n\
         #[test]\nfn {name}() {{\n    \
             let program = Path::new(env!(\"CARGO_MANIFEST_DIR\")).join(OsStr::from_bytes(PROGRAM));\n    \
             assert!(program.is_file(), \"{{}} is missing: build it first\", program.display());\n    \
             let scratch = Scratch::new({});\n{}{}{}{}{RUN}{}",
        of.title(),
        input.constant(),
        word(called.program.as_os_str().as_bytes()),
        if takes_file {
            "; @@ stands for a file with the input"
        } else {
            ""
        },
        arguments.join(", "),
        of.patience().as_millis(),
        string(name.as_bytes()),
        start(of, called),
        surroundings(of, called),
        if takes_file { TO_FILE } else { TO_STDIN },
        judge(of),
        if takes_file { WITH_PATH } else { "" },
    )
}

/// What it imports: no more than it uses.
fn uses(takes_file: bool, fails: &Fails) -> String {
    let mut uses = USES.to_owned();
    if !takes_file {
        uses = uses.replace("{OsStr, OsString}", "OsStr");
        uses = uses.replace("{OsStrExt, OsStringExt}", "OsStrExt");
    }
    if *fails == Fails::Unless0 {
        uses = uses.replace("{CommandExt, ExitStatusExt}", "CommandExt");
    }
    uses
}

fn quoted(bytes: &OsString) -> String {
    word(bytes.as_bytes())
}

/// The statement that makes the command. Only a shell can set a limit on memory.
fn start(of: &Reproducer, called: &Called<'_>) -> String {
    match called.memory(of) {
        None => "    let mut command = Command::new(program);\n".to_owned(),
        Some(kib) => format!(
            "    let mut command = Command::new(\"sh\");\n    \
             command.args([\"-c\", \"ulimit -v {kib}; exec \\\"$0\\\" \\\"$@\\\"\"]).arg(program);\n"
        ),
    }
}

/// The statements on its directory and variables.
fn surroundings(of: &Reproducer, called: &Called<'_>) -> String {
    let text = |bytes: &OsStr| format!("OsStr::from_bytes({})", word(bytes.as_bytes()));
    let mut lines = match &called.target.cwd {
        Some(cwd) => format!("    command.current_dir({});\n", text(cwd.as_os_str())),
        None => "    command.current_dir(&scratch.0);\n".to_owned(),
    };
    if called.target.env_only {
        lines.push_str("    command.env_clear().env(\"TMPDIR\", &scratch.0);\n");
    }
    if !called.target.sandbox.is_off() {
        // As it had there.
        lines.push_str("    command.env(\"HOME\", &scratch.0);\n");
    }
    for (name, value) in called.variables(of) {
        lines.push_str(&format!(
            "    command.env({}, {});\n",
            text(&name),
            text(&value)
        ));
    }
    lines
}

/// The statements that say whether it failed.
fn judge(of: &Reproducer) -> String {
    let fails = match Fails::of(of) {
        Fails::Unless0 => "!status.success()".to_owned(),
        Fails::With(statuses) => {
            let mut all: Vec<String> = statuses.iter().map(i32::to_string).collect();
            // By these a shell says that a signal ended what it ran.
            all.push("129..=159".to_owned());
            let all = all.join(" | ");
            format!("status.signal().is_some() || matches!(status.code(), Some({all}))")
        }
    };
    format!(
        "    let (ended, said) = run(&mut command, LIMIT);\n    \
         let Some(status) = ended else {{\n        \
             panic!(\"it does not end within {{LIMIT:?}}:\\n{{said}}\");\n    \
         }};\n    \
         assert!(!({fails}), \"it ends with {{status}}:\\n{{said}}\");\n}}\n"
    )
}
