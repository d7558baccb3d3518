//! What commands print: results as text or JSON, messages, errors, and suggestions of what to type
//! next.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::cli::Exit;
use crate::cli::failure::Failure;
use crate::exec::facts::{Kind, TargetFacts};
use crate::exec::{Channel, Target};
use crate::minimize::Warning;
use crate::report::text::{printable, shell_operand};
use crate::triage::programs_avoiding_tracers;

/// Options of every command for its messages and results: `--json`, `--quiet`, `--verbose`,
/// `--color`.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Print the result as one JSON object on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Print fewer messages on stderr
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print more messages on stderr
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// When to use colours in messages
    #[arg(long, global = true, hide_short_help = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Whether the command writes a file to stdout, because the user named it `-`; messages then go
    /// to stderr.
    #[arg(skip)]
    pub stdout_taken: bool,
    /// Command line of `cargo ddfuzz check` for the fuzz target that was built, without the output
    /// directory; `None` if the program was not built by ddfuzz.
    #[arg(skip)]
    pub cargo_check: Option<String>,
}

/// Values of `--color`: when output is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Use colours on a terminal, unless NO_COLOR is set
    Auto,
    /// Use colours always
    Always,
    /// Use no colours
    Never,
}

impl Output {
    /// Returns the output settings for errors that occur before the command line is parsed; with
    /// `json`, the errors are also printed as JSON.
    pub fn early(json: bool) -> Output {
        Output {
            json,
            quiet: false,
            verbose: false,
            stdout_taken: false,
            cargo_check: None,
            color: match json {
                true => Color::Never,
                false => Color::Auto,
            },
        }
    }

    /// Prints a message on stderr, unless `--quiet` is given.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            tell(&printable_lines(text));
        }
    }

    /// Prints a message on stderr if `--verbose` is given.
    pub fn detail(&self, text: &str) {
        if self.verbose {
            tell(text);
        }
    }

    /// Prints the result of a command on stdout: `json` with `--json`, else `text`.
    pub fn result(&self, text: &str, json: &impl Serialize) {
        let line = match self.json {
            true => json_line(json),
            false => Ok(text.trim_end().to_owned()),
        };
        match line {
            Ok(line) => self.print(&line),
            Err(failure) => {
                IS_BROKEN.store(true, Ordering::Relaxed);
                self.failure(&failure);
            }
        }
    }

    /// Prints a text on stdout; on stderr if the command writes a file to stdout.
    pub fn print(&self, text: &str) {
        match self.stdout_taken {
            true => tell(text),
            false => print(text),
        }
    }

    /// Returns these output settings for a command that writes a file to stdout: its messages go to
    /// stderr.
    ///
    /// # Errors
    /// When `--json` is given, whose output would also go to stdout.
    pub fn beside_bytes(&self) -> Result<Output, Failure> {
        if self.json {
            return Err(
                Failure::usage("--json and a file named - cannot both go to stdout")
                    .hint("write the file elsewhere, or omit --json"),
            );
        }
        Ok(Output {
            stdout_taken: true,
            ..self.clone()
        })
    }

    /// Prints a failure of the command on stderr; with `--json`, also as JSON on stdout.
    pub fn failure(&self, failure: &Failure) {
        if self.json {
            self.result("", failure.report());
        }
        let text = printable_lines(&failure.to_string());
        match self.colored() {
            true => tell(&text.replacen("error:", "\x1b[1;31merror:\x1b[0m", 1)),
            false => tell(&text),
        }
    }

    /// Returns true if text on stderr is to be coloured: as `--color` says, or, with `auto`, if
    /// stderr is a terminal and NO_COLOR is not set.
    pub fn colored(&self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let is_refused = is_dumb() || std::env::var_os("NO_COLOR").is_some();
                std::io::stderr().is_terminal() && !is_refused
            }
        }
    }
}

/// Returns a result as one line of JSON.
///
/// # Errors
/// When the result cannot be written as JSON, for example because it has a path that is not UTF-8.
fn json_line(json: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(json).map_err(|error| {
        let message = format!("the result cannot be written as JSON: {error}");
        Failure::new(Exit::Internal, "internal", message)
            .hint("the command has done its work; without --json it prints its result")
    })
}

/// Returns true if TERM says that the terminal understands no control sequences, such as colors.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// Prints a line on stdout. A closed pipe (as in `ddfuzz show | head`) is ignored; other errors,
/// like a full disk, are reported on stderr.
pub fn print(line: &str) {
    print_bytes(format!("{line}\n").as_bytes());
}

/// Whether some of the output to stdout is missing, because writing it failed.
static IS_CUT_OFF: AtomicBool = AtomicBool::new(false);
/// Whether a result is missing, because it could not be written as JSON.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

/// Writes `bytes` to stdout unchanged. Returns true if all of them were written, and false if not.
pub fn print_bytes(bytes: &[u8]) -> bool {
    let mut stdout = std::io::stdout();
    let printed = stdout.write_all(bytes).and_then(|()| stdout.flush());
    match &printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            tell(&format!("error: writing the result to stdout: {error}"));
            IS_CUT_OFF.store(true, Ordering::Relaxed);
        }
        _ => {}
    }
    printed.is_ok()
}

/// Returns the exit code with which a command ends instead of `exit` if its output is incomplete:
/// that of an internal error if a result could not be written as JSON, and 2 instead of success if
/// writing to stdout failed, as on a full disk. Otherwise returns `exit`.
pub fn exit_code(exit: Exit) -> Exit {
    match exit {
        _ if IS_BROKEN.load(Ordering::Relaxed) => Exit::Internal,
        Exit::Done if IS_CUT_OFF.load(Ordering::Relaxed) => Exit::Usage,
        other => other,
    }
}

/// Prints a line on stderr; ignores an error in writing it.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Escapes control characters in each line of a text: names of files that others have made must not
/// move the cursor of the terminal.
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// Output directory that commands use when `-o` is absent.
const DEFAULT_OUT: &str = "ddfuzz-out";

/// Number of hex digits to which a suggested command shortens a major key (the hash that identifies
/// a crash group).
const DIGITS: usize = 6;

impl Output {
    /// Suggests commands for the crash groups in the output directory `out`: show the group with
    /// the key `major`, export it as a regression test in the language of `target`, and check all
    /// groups after a fix.
    pub fn suggest_for_groups(&self, out: &Path, major: &str, target: Option<&Target>) {
        let word = shell_operand(out);
        let option = match out == Path::new(DEFAULT_OUT) {
            true => String::new(),
            false => format!(" -o {word}"),
        };
        let digits = &major[..DIGITS.min(major.len())];
        self.suggest(&format!("ddfuzz show {word} {digits}"));
        if let Some(form) = target.and_then(test_form) {
            let command = format!("ddfuzz export {digits}{option} --as {form}");
            self.suggest(&format!("{command}  # a regression test"));
        }
        let check = self.cargo_check.as_deref().unwrap_or("ddfuzz check");
        self.suggest(&format!("{check} {word}  # after a fix"));
    }

    /// Prints a command line that the user could type next, unless the output is JSON.
    pub fn suggest(&self, command: &str) {
        if !self.json {
            self.say(&format!("next: {command}"));
        }
    }

    /// Prints a warning that the crash of the group with the key `major` occurs on any input, even
    /// an empty one.
    pub fn warn_of_any_input(&self, major: &str) {
        let what = Warning::AnyInputFails;
        self.say(&format!("warning: group {major} {what}"));
    }

    /// Prints a warning for each program that, as this call has found, fails without a tracer
    /// (ptrace), but not under one.
    pub fn warn_of_tracers(&self) {
        for program in programs_avoiding_tracers() {
            self.say(&format!(
                "warning: {} does not fail under a tracer (it may look for one, by PTRACE_TRACEME): \
                 its crashes were examined without one",
                program.display()
            ));
        }
    }
}

/// Returns the format of `ddfuzz export` for a regression test in the language of `target`, Rust or
/// C. `None` if the target is written in another language, or gets its input at a terminal, in a
/// file of a certain name, or in two files.
pub(super) fn test_form(target: &Target) -> Option<&'static str> {
    if target.channel != Channel::Plain {
        return None;
    }
    let facts = TargetFacts::of(target).ok()?;
    match facts.kind {
        Kind::Elf if facts.rust => Some("rust-test"),
        Kind::Elf if !facts.go => Some("c-test"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_result_that_is_no_json_is_an_internal_error() {
        assert_eq!(json_line(&Path::new("a")).unwrap(), "\"a\"");
        let failure = json_line(&Path::new(OsStr::from_bytes(b"\xff"))).unwrap_err();
        assert_eq!((failure.exit, failure.kind()), (Exit::Internal, "internal"));
        assert!(failure.message().contains("UTF-8"), "{failure}");
        assert!(json_line(failure.report()).unwrap().contains("\"hint\":"));
    }
}
