//! `cargo ddfuzz list`: the fuzz targets of a project.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::out;
use super::project::Project;
use crate::cli::{Exit, Failure, Output};
use crate::report::{size, text};
use crate::store::{Kind, Reader};

/// List the fuzz targets of the project
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cargo ddfuzz list")]
pub struct Args {
    /// Directory of the cargo-fuzz project [default: fuzz/ in this directory, or in the nearest one
    /// above it that has one]
    #[arg(long, value_name = "DIR")]
    fuzz_dir: Option<PathBuf>,
}

#[derive(Serialize)]
struct Listed {
    fuzz_dir: PathBuf,
    targets: Vec<FuzzTarget>,
}

#[derive(Serialize)]
struct FuzzTarget {
    name: String,
    /// Files of its corpus.
    corpus: u64,
    /// Failing inputs.
    artifacts: u64,
    /// Groups of crashes in its output directory; null where there is none.
    groups: Option<u64>,
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args, output: &Output) -> Result<Exit, Failure> {
    let project = Project::find(args.fuzz_dir.as_deref())?;
    let targets = project.targets.iter().map(|name| {
        let place = out::choose(Path::new("ddfuzz-out"), name, Path::new(name));
        let groups = groups(&place, name);
        FuzzTarget {
            name: name.clone(),
            corpus: files(&project.corpus(name)),
            artifacts: files(&project.artifacts(name)),
            out: groups.and_then(|_| std::path::absolute(place).ok()),
            groups,
        }
    });
    let listed = Listed {
        targets: targets.collect(),
        fuzz_dir: project.fuzz_dir.clone(),
    };
    let lines = listed.targets.iter().map(|target| {
        let groups = match target.groups {
            Some(count) => format!(", {}", size::counted(count, "group")),
            None => String::new(),
        };
        format!(
            "{}: {} in its corpus, {}{groups}",
            text::printable(&target.name),
            size::counted(target.corpus, "input"),
            size::counted(target.artifacts, "artifact"),
        )
    });
    let text: Vec<String> = lines.collect();
    let text = match text.is_empty() {
        true => "no fuzz targets; add one: cargo fuzz add NAME".to_owned(),
        false => text.join("\n"),
    };
    output.result(&text, &listed);
    Ok(Exit::Done)
}

/// How many groups of crashes the output directory has of this target.
fn groups(out: &Path, name: &str) -> Option<u64> {
    let program = out::last_target(out)?.program?;
    if Path::new(&program.0).file_name()? != name {
        return None;
    }
    let groups = Reader::open(out).ok()?.groups(Kind::Crash).ok()?;
    Some(groups.len() as u64)
}

fn files(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.count() as u64
}
