//! What commands print: results as text or JSON, messages, errors, and suggestions what to type next.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::exec::facts::{Kind, TargetFacts};
use crate::exec::{Channel, Target};
use crate::minimize::Warning;
use crate::report::text::shell_word;

/// Options of every command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Print the result as one JSON object on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Print fewer messages
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Print more messages
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// When to use colours
    #[arg(long, global = true, hide_short_help = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Whether stdout is taken by a file that the user named `-`; texts then go to stderr.
    #[arg(skip)]
    pub stdout_taken: bool,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Output {
    /// Returns the output settings for errors that occur before the options are parsed.
    pub fn early(json: bool) -> Output {
        Output {
            json,
            quiet: false,
            verbose: false,
            stdout_taken: false,
            color: match json {
                true => Color::Never,
                false => Color::Auto,
            },
        }
    }

    /// Prints a message on stderr, unless `--quiet`.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            tell(text);
        }
    }

    /// Prints a message on stderr with `--verbose`.
    pub fn detail(&self, text: &str) {
        if self.verbose {
            tell(text);
        }
    }

    /// Prints the result of a command on stdout: as JSON with `--json`, else as text.
    pub fn result(&self, text: &str, json: &impl Serialize) {
        let line = match self.json {
            true => serde_json::to_string(json).unwrap_or_else(|error| {
                format!("{{\"error\":{{\"kind\":\"internal\",\"message\":\"{error}\"}}}}")
            }),
            false => text.trim_end().to_owned(),
        };
        self.print(&line);
    }

    /// Prints a text on stdout, or on stderr if stdout is taken by a file named `-`.
    pub fn print(&self, text: &str) {
        match self.stdout_taken {
            true => tell(text),
            false => print(text),
        }
    }

    /// Returns output settings for a command that writes a file to stdout: texts go to stderr.
    /// Errors: `--json`.
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

    /// Prints an error, also as JSON on stdout with `--json`.
    pub fn failure(&self, failure: &Failure) {
        if self.json {
            self.result("", failure.report());
        }
        let text = failure.to_string();
        match self.colored() {
            true => tell(&text.replacen("error:", "\x1b[1;31merror:\x1b[0m", 1)),
            false => tell(&text),
        }
    }

    /// Whether text on stderr is coloured.
    pub fn colored(&self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
            }
        }
    }
}

/// Prints a line on stdout. A closed pipe is ignored, as for `ddfuzz show | head`; other errors,
/// like a full disk, are reported on stderr.
pub fn print(line: &str) {
    print_bytes(format!("{line}\n").as_bytes());
}

/// Writes bytes to stdout unchanged.
pub fn print_bytes(bytes: &[u8]) {
    let mut stdout = std::io::stdout();
    let printed = stdout.write_all(bytes).and_then(|()| stdout.flush());
    match printed {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            tell(&format!("error: writing the result to stdout: {error}"));
        }
        _ => {}
    }
}

/// Prints a line on stderr; errors are ignored.
pub fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Output directory that commands use when `-o` is absent.
const DEFAULT_OUT: &str = "ddfuzz-out";

/// Number of hex digits of a major key that a suggested command contains.
const DIGITS: usize = 6;

impl Output {
    /// Suggests commands for the groups in `out`: show the group `major`, export it as a regression
    /// test in the language of `target`, and check the groups after a fix.
    pub fn suggest_for_groups(&self, out: &Path, major: &str, target: Option<&Target>) {
        let word = shell_word(out);
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
        self.suggest(&format!("ddfuzz check {word}  # after a fix"));
    }

    /// Prints a command line for the user to type next, unless the output is JSON.
    pub fn suggest(&self, command: &str) {
        if !self.json {
            self.say(&format!("next: {command}"));
        }
    }

    /// Warns that the group `major` crashes whatever the input is.
    pub fn warn_of_any_input(&self, major: &str) {
        let what = Warning::AnyInputFails;
        self.say(&format!("warning: group {major} {what}"));
    }
}

/// Returns the export format of a regression test in the language of the target; `None` if the
/// target is written in another language, or reads a terminal, a named file or two files.
fn test_form(target: &Target) -> Option<&'static str> {
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
