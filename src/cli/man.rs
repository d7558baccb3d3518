//! `ddfuzz man`: man pages, one for each command.
//!
//! Localized here: `clap_mangen`, which makes them of the command line itself.

use std::io;
use std::path::PathBuf;

use clap::Command;
use clap_mangen::Man;
use serde::Serialize;

use super::generated::{self, MARK};
use super::programs::Program;
use super::{Exit, Failure, Output};

/// Write man pages, one for each command of ddfuzz, cargo-ddfuzz and ddfuzz-runner
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz man --to ~/.local/share/man/man1")]
pub struct Args {
    /// Write them into this directory
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Replace files of these names that ddfuzz has not generated
    #[arg(long)]
    force: bool,
}

/// How sections begin in the texts behind a command's help, and what they are called in a page.
const SECTIONS: [(&str, &str); 4] = [
    ("Example:", "EXAMPLES"),
    ("Examples:", "EXAMPLES"),
    ("Exit codes: ", "EXIT STATUS"),
    ("Environment:", "ENVIRONMENT"),
];

#[derive(Serialize)]
struct Written {
    directory: PathBuf,
    files: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args, output: &Output) -> Result<Exit, Failure> {
    let pages = pages().map_err(|error| Failure::new(Exit::Internal, "internal", error))?;
    generated::write(&args.to, &pages, args.force)?;
    let directory = std::path::absolute(&args.to).unwrap_or_else(|_| args.to.clone());
    let text = format!("{} man pages in {}", pages.len(), directory.display());
    let files = pages.into_iter().map(|(name, _)| name).collect();
    output.result(&text, &Written { directory, files });
    Ok(Exit::Done)
}

/// The pages (name, text) of all programs.
fn pages() -> io::Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for program in Program::ALL {
        let mut command = program.command().disable_help_subcommand(true);
        command.build();
        collect(&command, None, &mut pages)?;
    }
    Ok(pages)
}

fn collect(
    command: &Command,
    above: Option<&str>,
    pages: &mut Vec<(String, String)>,
) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    pages.push((format!("{name}.1"), page(command, above)?));
    let below = command.get_subcommands().filter(|one| !one.is_hide_set());
    below
        .into_iter()
        .try_for_each(|one| collect(one, Some(name), pages))
}

/// The page of a command; `above` is the page that lists it.
fn page(command: &Command, above: Option<&str>) -> io::Result<String> {
    let version = env!("CARGO_PKG_VERSION");
    let name = escaped(command.get_display_name().unwrap_or(command.get_name()));
    let man = Man::new(command.clone());
    // No date: the same version gives the same pages.
    let title = format!(
        ".\\\" {MARK} {version}: ddfuzz man\n.TH \"{name}\" 1 \"\" \"ddfuzz {version}\" \"ddfuzz\"\n"
    );
    let mut bytes = title.into_bytes();
    man.render_name_section(&mut bytes)?;
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    bytes.extend(format!(".SH SYNOPSIS\n{}\n", escaped(usage)).into_bytes());
    man.render_description_section(&mut bytes)?;
    if command.get_arguments().any(|one| !one.is_hide_set()) {
        man.render_options_section(&mut bytes)?;
    }
    if command.get_subcommands().any(|one| !one.is_hide_set()) {
        man.render_subcommands_section(&mut bytes)?;
    }
    let mut page = String::from_utf8_lossy(&bytes).into_owned();
    if let Some(text) = command.get_after_help() {
        behind(&text.to_string(), &mut page);
    }
    if let Some(above) = above {
        page.push_str(&format!(".SH SEE ALSO\n{}(1)\n", escaped(above)));
    }
    Ok(page)
}

/// The text behind a command's help: what is indented is a command line, and stays as it is.
fn behind(text: &str, page: &mut String) {
    let mut in_section = false;
    for line in text.lines() {
        let section = SECTIONS.iter().find(|(begins, _)| line.starts_with(begins));
        if let Some((begins, title)) = section {
            page.push_str(&format!(".SH {title}\n"));
            in_section = true;
            let rest = &line[begins.len()..];
            if !rest.is_empty() {
                page.push_str(&format!("{}\n", escaped(rest)));
            }
        } else if line.is_empty() {
            in_section = false;
        } else if let Some(command) = line.strip_prefix("  ") {
            page.push_str(&format!(".nf\n{}\n.fi\n", escaped(command)));
        } else {
            if !in_section {
                page.push_str(".SH NOTES\n");
                in_section = true;
            }
            page.push_str(&format!("{}\n", escaped(line)));
        }
    }
}

/// A line of text in roff's form.
fn escaped(line: &str) -> String {
    let text = line
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq");
    match text.starts_with('.') {
        true => format!("\\&{text}"),
        false => text,
    }
}
