//! What minimizing a crash file of a cargo-fuzz project costs: `ddfuzz min` beside
//! `cargo fuzz tmin` as its users call it, and libFuzzer's own `-minimize_crash=1`.
//!
//! `cargo bench --bench tmin`; behind `--`, `--all` measures files of all sizes, and `--ddfuzz
//! FILE` another build of ddfuzz. The projects and their crash files are those of
//! `tests/cargo_fuzz`; their programs are built once, and kept in target/bench-tmin. Each tool
//! minimizes the same file once, one after the other on one machine; whether the result is still
//! the same bug is asked of `ddfuzz triage`. A result of another bug is none, whatever its size.
//!
//! `cargo test` only sees that it is built.

#[path = "../cost/mod.rs"]
mod cost;
mod floor;
mod projects;
#[path = "../promise/mod.rs"]
mod promise;
mod tools;

use std::path::{Path, PathBuf};

use cost::Cost;
use floor::{Runs, WORK, floor};
use projects::{Built, PROJECTS};
use promise::{Floor, Goal, compare, compare_to_floor, not_measured};
use tools::{Shrunk, Tool};

/// What is promised: `cargo fuzz tmin` takes so many times as much CPU time, for a result that is no
/// smaller.
const PROMISED: f64 = 20.0;
/// The wall time that is promised, in milliseconds: of a panic, and of a report of AddressSanitizer.
const WALL: (f64, f64) = (250.0, 500.0);
/// The CPU time that is promised for a file that is minimal already, in milliseconds: what each
/// minimization costs at least.
const LEAST: f64 = 120.0;
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
    if let Err(why) = table(&ddfuzz, all) {
        println!("{}", not_measured("minimizing cargo-fuzz artifacts", &why));
    }
}

fn table(ddfuzz: &Path, all: bool) -> Result<(), String> {
    let work = tempfile::tempdir().map_err(|error| error.to_string())?;
    println!(
        "{:<24}{:<26}{:>8}{:>8}{:>10}{:>10}{:>9}{:>9}  same bug",
        "file", "by", "before", "after", "wall ms", "CPU ms", "x wall", "x CPU"
    );
    for project in PROJECTS {
        let built = Built::build(project, work.path())?;
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
    let least = floor(built, Runs::of(&ours.file)?, &ours.file)?;
    let most = if built.has_reports { WALL.1 } else { WALL.0 };
    let figure = format!("min {name}: wall time");
    let wall = ours.cost.wall.as_secs_f64() * 1e3;
    let bare = Floor {
        work: WORK,
        measured: least.wall.as_secs_f64() * 1e3,
    };
    let verdict = compare_to_floor(&figure, wall, "ms", Goal::AtMost(most), bare);
    println!("{name}: {wall:.0} ms, {verdict}");
    for tool in Tool::ALL {
        let shrunk = match tool {
            Tool::Ddfuzz => ours.clone(),
            _ => tool.shrink(ddfuzz, built, file)?,
        };
        let is_same = tools::bug(ddfuzz, built, &shrunk.file)? == bug;
        print(&name, tool, &shrunk, (&ours, least), is_same);
    }
    minimal_row(built, ddfuzz, &name, &ours.file)
}

/// Minimizes `result`, a file that is minimal already.
fn minimal_row(built: &Built, ddfuzz: &Path, name: &str, result: &Path) -> Result<(), String> {
    let minimal = built.work.join("minimal");
    std::fs::copy(result, &minimal).map_err(|error| error.to_string())?;
    let again = Tool::Ddfuzz.shrink(ddfuzz, built, &minimal)?;
    let cpu = again.cost.cpu.as_secs_f64() * 1e3;
    let figure = format!("min {name}: CPU time for its minimal file");
    let least = floor(built, Runs::of(&again.file)?, &minimal)?;
    let bare = Floor {
        work: WORK,
        measured: least.cpu.as_secs_f64() * 1e3,
    };
    let verdict = compare_to_floor(&figure, cpu, "ms", Goal::AtMost(LEAST), bare);
    println!(
        "{name}, its {} bytes again: {cpu:.0} ms, {verdict}",
        again.before
    );
    Ok(())
}

fn print(name: &str, tool: Tool, shrunk: &Shrunk, (ours, least): (&Shrunk, Cost), is_same: bool) {
    let (wall, cpu) = (
        shrunk.cost.wall.as_secs_f64(),
        shrunk.cost.cpu.as_secs_f64(),
    );
    let times = wall / ours.cost.wall.as_secs_f64();
    let by_cpu = cpu / ours.cost.cpu.as_secs_f64();
    let by = tool.name();
    let verdict = match tool {
        Tool::Tmin | Tool::LongTmin => {
            let figure = format!("min {name}: CPU time of {by}");
            let bare = Floor {
                work: WORK,
                measured: cpu / least.cpu.as_secs_f64(),
            };
            let verdict = compare_to_floor(&figure, by_cpu, "x", Goal::AtLeast(PROMISED), bare);
            // A result of another bug is no measure.
            let theirs = if is_same { shrunk.after } else { shrunk.before };
            let size = ours.after as f64 / theirs.max(1) as f64;
            let figure = format!("min {name}: bytes, to {by}");
            let size = compare(&figure, size, "x", Goal::AtMost(1.0));
            format!("; CPU time, {verdict}; bytes, {size}")
        }
        Tool::Ddfuzz | Tool::LibFuzzer => String::new(),
    };
    println!(
        "{name:<24}{by:<26}{:>8}{:>8}{:>10.0}{:>10.0}{times:>8.1}x{by_cpu:>8.1}x  {}{verdict}",
        shrunk.before,
        shrunk.after,
        wall * 1e3,
        cpu * 1e3,
        if is_same { "yes" } else { "no" },
    );
}
