//! What minimizing a crash file of a cargo-fuzz project costs: `ddfuzz min` beside
//! `cargo fuzz tmin` as its users call it, and libFuzzer's own `-minimize_crash=1`.
//!
//! `cargo bench --bench tmin`; behind `--`, `--all` measures files of all sizes, and
//! `--ddfuzz FILE` another build of ddfuzz. The projects and their crash files are those of
//! `tests/cargo_fuzz`. Each tool minimizes the same file once, one after the other on one machine;
//! whether the result is still the same bug is asked of `ddfuzz triage`. A result of another bug
//! is none, whatever its size.
//!
//! `cargo test` only sees that it is built.

#[path = "../cost/mod.rs"]
mod cost;
mod projects;
mod tools;

use std::path::{Path, PathBuf};

use projects::{Built, PROJECTS};
use tools::{Shrunk, Tool};

/// What is promised: `cargo fuzz tmin` takes so many times as long, for a result that is no
/// smaller.
const PROMISED: f64 = 20.0;
/// The size of the files that are measured unless all are.
const SIZE: &str = "-1200";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // Cargo says so when it is to measure.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let all = arguments.iter().any(|argument| argument == "--all");
    let other = arguments.iter().position(|argument| argument == "--ddfuzz");
    let other = other.and_then(|at| arguments.get(at + 1));
    let own = PathBuf::from(env!("CARGO_BIN_EXE_ddfuzz"));
    let ddfuzz = other.map_or(own, PathBuf::from);
    let folder = tempfile::tempdir().expect("a temporary directory");
    if let Err(why) = table(&ddfuzz, folder.path(), all) {
        println!("skipped: {why}");
    }
}

fn table(ddfuzz: &Path, folder: &Path, all: bool) -> Result<(), String> {
    println!(
        "{:<24}{:<20}{:>8}{:>8}{:>10}{:>10}{:>9}{:>9}  same bug",
        "file", "by", "before", "after", "wall ms", "CPU ms", "x wall", "x CPU"
    );
    for project in PROJECTS {
        let built = Built::build(project, folder)?;
        for file in built.files(|name| all || name.ends_with(SIZE))? {
            row(&built, ddfuzz, &file)?;
        }
    }
    Ok(())
}

/// Minimizes one file by each tool.
fn row(built: &Built, ddfuzz: &Path, file: &Path) -> Result<(), String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{}, {name}", built.target);
    let bug = tools::bug(ddfuzz, built, file)?;
    let ours = Tool::Ddfuzz.shrink(ddfuzz, built, file)?;
    for tool in [Tool::Ddfuzz, Tool::Tmin, Tool::LibFuzzer] {
        let shrunk = match tool {
            Tool::Ddfuzz => ours.clone(),
            _ => tool.shrink(ddfuzz, built, file)?,
        };
        let is_same = tools::bug(ddfuzz, built, &shrunk.file)? == bug;
        print(&name, tool, &shrunk, &ours, is_same);
    }
    Ok(())
}

fn print(name: &str, tool: Tool, shrunk: &Shrunk, ours: &Shrunk, is_same: bool) {
    let (wall, cpu) = (
        shrunk.cost.wall.as_secs_f64(),
        shrunk.cost.cpu.as_secs_f64(),
    );
    let times = wall / ours.cost.wall.as_secs_f64();
    let verdict = match tool {
        Tool::Tmin => {
            let is_kept = times >= PROMISED && (ours.after <= shrunk.after || !is_same);
            let word = if is_kept { "kept" } else { "not kept" };
            format!("; promised >= {PROMISED}x, no larger: {word}")
        }
        Tool::Ddfuzz | Tool::LibFuzzer => String::new(),
    };
    println!(
        "{name:<24}{:<20}{:>8}{:>8}{:>10.0}{:>10.0}{times:>8.1}x{:>8.1}x  {}{verdict}",
        tool.name(),
        shrunk.before,
        shrunk.after,
        wall * 1e3,
        cpu * 1e3,
        cpu / ours.cost.cpu.as_secs_f64(),
        if is_same { "yes" } else { "no" },
    );
}
