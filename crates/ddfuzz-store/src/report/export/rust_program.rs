//! A test that runs a program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::fails::{self, Need};
use super::rust_literal::{string, word};
use super::rust_run::{RUN, limits};
use super::{Input, Reproducer};
use ddfuzz_exec::{Sanitizer, Target, sanitizer_options};

/// A program with all that an exported test gives it.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    /// The program: absolute, or relative to the manifest's directory of a test of Rust.
    pub program: &'a Path,
    /// Arguments (with `@@` for the input), variables and directory, as its `main` takes them.
    pub target: &'a Target,
    /// Its sanitizers, as `-fsanitize=` names them.
    pub sanitizers: &'a [String],
}

impl Called<'_> {
    /// Whether it may have a sanitizer.
    pub(super) fn is_sanitized(&self, of: &Reproducer) -> bool {
        !self.sanitizers.is_empty() || of.class.sanitizer().is_some()
    }

    /// Whether it may have one that needs terabytes of address space.
    pub(super) fn is_shadowed(&self, of: &Reproducer) -> bool {
        let known = self.sanitizers.iter();
        let mut all = known
            .filter_map(|flag| Sanitizer::of_flag(flag))
            .chain(of.class.sanitizer());
        all.any(Sanitizer::shadows)
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
    let uses = uses(takes_file);
    let arguments: Vec<String> = called.target.args.iter().map(quoted).collect();
    let needs = fails::needs(of);
    format!(
        "// {}\n\n{uses}\n\
         /// The input that causes the failure.\n{}\n\
         /// The program, relative to the Cargo.toml of this test.\nconst PROGRAM: &[u8] = {};\n\
         /// Its arguments{}.\nconst ARGUMENTS: &[&[u8]] = &[{}];\n{}\n\
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
        limits(
            of,
            fails::time_limit(of, called.is_sanitized(of)),
            of.memory()
        ),
        if needs.is_empty() { "" } else { LACKS },
        string(name.as_bytes()),
        start(of, called),
        surroundings(called),
        if takes_file { TO_FILE } else { TO_STDIN },
        judge(of),
        if takes_file { WITH_PATH } else { "" },
        sanitizers(of, called),
        lacking(&needs),
    )
}

/// What it imports: no more than it uses.
fn uses(takes_file: bool) -> String {
    let mut uses = USES.to_owned();
    if !takes_file {
        uses = uses.replace("{OsStr, OsString}", "OsStr");
        uses = uses.replace("{OsStrExt, OsStringExt}", "OsStrExt");
    }
    uses
}

fn quoted(bytes: &OsString) -> String {
    word(bytes.as_bytes())
}

/// The statement that makes the command. Only a shell can set limits.
fn start(of: &Reproducer, called: &Called<'_>) -> String {
    let mut limits = String::new();
    if let Some(bytes) = of.memory().filter(|_| !called.is_shadowed(of)) {
        // As a backstop twice the memory, as writable private memory.
        limits.push_str(&format!("ulimit -d {}; ", (bytes / 512).max(1)));
    }
    if of.class.0 == "stackoverflow" {
        limits.push_str("ulimit -S -s 8192 2>/dev/null; ");
    }
    match limits.is_empty() {
        true => "    let mut command = Command::new(program);\n".to_owned(),
        false => format!(
            "    let mut command = Command::new(\"sh\");\n    \
             command.args([\"-c\", \"{limits}exec \\\"$0\\\" \\\"$@\\\"\"]).arg(program);\n"
        ),
    }
}

/// The statements on its directory and variables.
fn surroundings(called: &Called<'_>) -> String {
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
    for (name, value) in &called.target.env {
        lines.push_str(&format!(
            "    command.env({}, {});\n",
            text(name),
            text(value)
        ));
    }
    // Also in a program that had none they are to abort.
    lines.push_str("    tell_sanitizers(&mut command, &scratch.0);\n");
    lines
}

/// The statements that say whether it failed.
fn judge(of: &Reproducer) -> String {
    let statuses = fails::statuses(of).into_iter();
    let mut all: Vec<String> = statuses.map(|status| status.to_string()).collect();
    // By these a shell says that a signal ended what it ran.
    all.push("129..=159".to_owned());
    let all = all.join(" | ");
    format!(
        "    let (ended, said) = run(&mut command);\n    \
         let status = ended.unwrap_or_else(|over| panic!(\"{{over}}:\\n{{said}}\"));\n    \
         let reports = reports(&scratch.0);\n    \
         assert!(reports.is_empty(), \"it ends with {{status}}:\\n{{reports}}\\n{{said}}\");\n    \
         let failed = status.signal().is_some() || matches!(status.code(), Some({all}));\n    \
         assert!(!failed, \"it ends with {{status}}:\\n{{said}}\");\n}}\n"
    )
}

/// The functions by which sanitizers are told to fail as they did, and their reports are read.
fn sanitizers(of: &Reproducer, called: &Called<'_>) -> String {
    let names = Sanitizer::ALL.map(|one| format!("\"{}\"", one.variable()));
    let inherited = match called.target.env_only {
        true => "",
        false => ".or_else(|| std::env::var_os(name))",
    };
    let options = sanitizer_options(of.leaks(), of.memory().map(|bytes| bytes >> 20));
    format!(
        r#"
/// What sanitizers are told.
const OPTIONS: &str = {};

/// Tells them, after the user's own options: of one given twice the later one holds.
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

/// What they have reported.
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

/// The statements that ask whether the program can show the crash.
const LACKS: &str = r#"    let lacks = lacking(&program);
    let path = program.display();
    assert!(lacks.is_none(), "cannot tell: compile {path} with {}", lacks.unwrap_or_default());
"#;

/// The functions that say what the program is to be compiled with, and is not.
fn lacking(needs: &[Need]) -> String {
    if needs.is_empty() {
        return String::new();
    }
    let lines = needs.iter().map(|need| {
        let texts = need.texts.iter().map(|text| string(text.as_bytes()));
        let texts: Vec<String> = texts.collect();
        format!(
            "    (&[{}], {}, {}),\n",
            texts.join(", "),
            need.checked,
            string(need.flag.as_bytes())
        )
    });
    let lines: String = lines.collect();
    format!(
        "\n/// One of these texts stands in programs that were compiled so.\n\
         const NEEDS: &[(&[&str], bool, &str)] = &[\n{lines}];\n{LACKING}"
    )
}

const LACKING: &str = r#"
/// What the program was to be compiled with to show this crash, and was not. Of a script that is
/// not known.
fn lacking(program: &Path) -> Option<&'static str> {
    let bytes = std::fs::read(program).expect("it can be read");
    let has = |text: &&str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    let is_there = |(texts, checked, _): &(&[&str], bool, &str)| {
        texts.iter().any(has) && (!checked || has_type(&bytes))
    };
    let missing = NEEDS.iter().find(|need| !is_there(need));
    missing.filter(|_| bytes.starts_with(b"\x7fELF")).map(|(_, _, flag)| *flag)
}

/// Whether the name of a type stands there as UndefinedBehaviorSanitizer is told it, `'int'`. Two of
/// them are of its runtime, which other sanitizers have, too.
fn has_type(bytes: &[u8]) -> bool {
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"_ *".contains(byte);
    bytes.split(|byte| *byte == 0).any(|text| match text {
        [b'\'', name @ .., b'\''] => {
            !name.is_empty() && name.iter().all(letter) && name != b"bool" && name != b"BOOL"
        }
        _ => false,
    })
}
"#;
