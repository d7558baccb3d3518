//! `ddfuzz completions`: scripts by which shells complete the command line.
//!
//! Localized here: `clap_complete`, which makes them of the command line itself.

use std::path::PathBuf;

use clap_complete::{Generator, Shell, generate};
use serde::Serialize;

use super::generated::{self, MARK};
use super::programs::Program;
use super::{Exit, Failure, Output};

/// Print a script by which a shell completes the command line
#[derive(clap::Args)]
#[command(after_help = "Example:\n  source <(ddfuzz completions bash)\n  \
                  source <(ddfuzz completions bash --program cargo-ddfuzz)\n  \
                  ddfuzz completions zsh --to ~/.zfunc\n  \
                  ddfuzz completions fish --to ~/.config/fish/completions")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
    /// The program whose words are completed
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Program::Ddfuzz)]
    program: Program,
    /// Write the scripts of all programs into this directory, under the names that the shell looks
    /// for
    #[arg(long, value_name = "DIR", conflicts_with = "program")]
    to: Option<PathBuf>,
    /// Replace files of these names that ddfuzz has not generated
    #[arg(long, requires = "to")]
    force: bool,
}

/// Has bash complete `cargo ddfuzz`, too: cargo's own script asks no script of a subcommand.
const OF_CARGO: &str = include_str!("completions.bash");

#[derive(Serialize)]
struct Scripts {
    shell: String,
    files: Vec<PathBuf>,
    text: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, output: &Output) -> Result<Exit, Failure> {
    let shell = args.shell.to_string();
    let Some(folder) = &args.to else {
        let text = script(args.shell, args.program);
        let scripts = Scripts {
            shell,
            files: Vec::new(),
            text: Some(text.clone()),
        };
        output.result(&text, &scripts);
        return Ok(Exit::Done);
    };
    let scripts = Program::COMPLETED.map(|program| {
        let name = match args.shell {
            // The name by which it is looked for when the command is first completed.
            Shell::Bash => program.name().to_owned(),
            shell => shell.file_name(program.name()),
        };
        (name, script(args.shell, program))
    });
    generated::write(folder, &scripts, args.force)?;
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
    let files: Vec<PathBuf> = scripts.iter().map(|(name, _)| folder.join(name)).collect();
    let lines: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let scripts = Scripts {
        shell,
        files,
        text: None,
    };
    output.result(&lines.join("\n"), &scripts);
    Ok(Exit::Done)
}

fn script(shell: Shell, program: Program) -> String {
    let name = program.name();
    // clap_complete loses the subcommands of a program with a hyphen in its name, of bash.
    let plain = name.replace('-', "_");
    let called = if shell == Shell::Bash { &plain } else { name };
    let mut bytes = Vec::new();
    generate(shell, &mut program.command(), called, &mut bytes);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if shell == Shell::Bash {
        text = text.replace(
            &format!(" default {plain}\n"),
            &format!(" default {name}\n"),
        );
        if program == Program::CargoDdfuzz {
            text.push_str(OF_CARGO);
        }
    }
    // In each of the shells this begins a comment; zsh wants its own first.
    let version = env!("CARGO_PKG_VERSION");
    text.push_str(&format!(
        "\n# {MARK} {version}: ddfuzz completions {shell}\n"
    ));
    text
}
