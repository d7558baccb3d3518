//! `cargo ddfuzz install-runner`: sets `ddfuzz-runner` as Cargo's runner, so that a plain `cargo
//! fuzz run` groups and minimizes crashes.
//!
//! Only this file uses the crate `toml_edit`, which changes one setting and leaves the rest of the
//! file as it is.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, value};

use super::build::host_triple;
use crate::cli::{Exit, Failure, Output};
use crate::files::{atomic, folder};

/// Make a plain `cargo fuzz run` group and minimize the crashes that it finds
///
/// Sets `runner = "ddfuzz-runner"` for this machine's target triple in .cargo/config.toml of this
/// directory. Shows the change and asks first.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  cargo ddfuzz install-runner\n  cargo ddfuzz install-runner --remove"
)]
pub struct InstallRunnerArgs {
    /// Target triple of the programs [default: that of this machine]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Change Cargo's configuration without asking
    #[arg(short, long)]
    yes: bool,
    /// Remove the setting of ddfuzz-runner again
    #[arg(long)]
    remove: bool,
}

/// Name of the program that is set as Cargo's `runner`, so that Cargo starts fuzz targets through
/// it.
const RUNNER: &str = "ddfuzz-runner";

pub fn run(args: InstallRunnerArgs, output: &Output) -> Result<Exit, Failure> {
    let path = config_file();
    // If the file is a link, the file that it leads to is changed, so that it stays a link.
    let path = match path.is_symlink() {
        true => path.canonicalize().unwrap_or(path),
        false => path,
    };
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::file(&path, "reading", &error)),
    };
    let triple = match &args.target {
        Some(triple) => triple.clone(),
        None => host_triple(None)?,
    };
    let after = changed(&before, &triple, args.remove).map_err(|failure| failure.path(&path))?;
    if after == before {
        let state = if args.remove { "not" } else { "already" };
        output.result(
            &format!(
                "nothing to do: {RUNNER} is {state} set in {}",
                path.display()
            ),
            &serde_json::json!({ "file": path, "changed": false }),
        );
        return Ok(Exit::Done);
    }
    output.say(&format!("{}:\n{}", path.display(), shown(&before, &after)));
    if !args.yes && !agreed()? {
        output.say("nothing was changed");
        return Ok(Exit::Done);
    }
    if let Some(parent) = path.parent() {
        folder::create_all(parent)?;
    }
    // A change that another program has made in between must not be lost.
    if std::fs::read_to_string(&path).unwrap_or_default() != before {
        return Err(
            Failure::usage("another program has changed the file meanwhile")
                .path(&path)
                .hint("run the command again"),
        );
    }
    match after.trim().is_empty() {
        true => remove(&path)?,
        false => atomic::rewrite(&path, after.as_bytes())?,
    }
    let how = match args.remove {
        true => "`cargo fuzz run` no longer uses ddfuzz",
        false => {
            "`cargo fuzz run` now groups and minimizes the crashes that it finds; to run it without \
             ddfuzz once, set DDFUZZ_RUNNER=off; to undo the change: cargo ddfuzz install-runner \
             --remove"
        }
    };
    output.result(how, &serde_json::json!({ "file": path, "changed": true }));
    Ok(Exit::Done)
}

/// Removes Cargo's configuration file at `path`, and the directory that contains it if that is
/// empty afterwards.
fn remove(path: &Path) -> Result<(), Failure> {
    std::fs::remove_file(path).map_err(|error| Failure::file(path, "removing", &error))?;
    if let Some(parent) = path.parent() {
        // This fails, and the directory stays, if there are other files in it.
        let _ = std::fs::remove_dir(parent);
    }
    Ok(())
}

/// Returns the path of Cargo's configuration file for the working directory: `.cargo/config.toml`,
/// or `.cargo/config`, its older name, if such a file exists.
fn config_file() -> PathBuf {
    let old = Path::new(".cargo/config");
    match old.is_file() {
        true => old.to_owned(),
        false => PathBuf::from(".cargo/config.toml"),
    }
}

/// Returns the new text of Cargo's configuration file, whose present text is `before`. The setting
/// of `ddfuzz-runner` for the target triple `triple` is added, or if `remove` is true, removed.
/// Fails if the text is not valid TOML, or if a setting is to be added and another runner is set.
fn changed(before: &str, triple: &str, remove: bool) -> Result<String, Failure> {
    let mut file: DocumentMut = before.parse().map_err(|error: toml_edit::TomlError| {
        Failure::usage(format!("it is not valid TOML: {}", error.message()))
            .hint("fix the file, or run the command in another directory")
    })?;
    let tables = file.entry("target").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let tables = tables.as_table_like_mut().ok_or_else(|| odd("target"))?;
    let own = tables
        .entry(triple)
        .or_insert_with(|| Item::Table(Table::new()));
    let own = own.as_table_like_mut().ok_or_else(|| odd(triple))?;
    let ours = |item: &Item| item.as_str() == Some(RUNNER);
    match (own.get("runner"), remove) {
        (Some(runner), false) if !ours(runner) => {
            return Err(Failure::usage("another runner is set there already")
                .hint(format!("remove it, or set it to {RUNNER:?} yourself")));
        }
        (Some(runner), true) if ours(runner) => {
            own.remove("runner");
        }
        (Some(_), _) | (None, true) => return Ok(before.to_owned()),
        (None, false) => {
            own.insert("runner", value(RUNNER));
        }
    }
    if own.is_empty() {
        tables.remove(triple);
    }
    if tables.is_empty() {
        file.remove("target");
    }
    let after = file.to_string();
    let has_crlf = before.contains("\r\n") && !before.replace("\r\n", "").contains('\n');
    Ok(match has_crlf {
        // The parser has replaced each CR LF by a newline.
        true => after.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => after,
    })
}

fn odd(what: &str) -> Failure {
    Failure::usage(format!("`{what}` is not a table there")).hint("fix the file by hand")
}

/// Formats the difference between two texts as a diff: from the first line that differs to the
/// last, the lines of `before` with a `-`, then those of `after` with a `+`.
fn shown(before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let ends = old[same..].iter().rev().zip(new[same..].iter().rev());
    let same_end = ends.take_while(|(a, b)| a == b).count();
    let lines = |sign: char, lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| format!("  {sign}{line}")).collect()
    };
    let mut text = lines('-', &old[same..old.len() - same_end]);
    text.extend(lines('+', &new[same..new.len() - same_end]));
    text.join("\n")
}

/// Asks the user on the terminal whether Cargo's configuration is to be changed. Returns true if
/// the answer is yes, and false for any other answer. Fails without a terminal.
fn agreed() -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(
            Failure::usage("the change is not confirmed: stdin is not a terminal")
                .hint("the change is shown above; add --yes to make it without asking"),
        );
    }
    crate::cli::output::tell("make this change? [y/N]");
    let mut answer = String::new();
    // An answer that cannot be read counts as no.
    let _ = stdin.lock().read_line(&mut answer);
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
