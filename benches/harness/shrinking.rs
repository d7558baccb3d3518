//! Minimization: `ddfuzz min` (with one worker, as its peers have), libFuzzer's
//! `-minimize_crash=1`, and `cargo fuzz tmin`, of the same failing input.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Plan;
use crate::build::Binary;
use crate::cost::{Cost, measure};

/// What is promised: a peer takes so many times as long, for a result that is no smaller.
const PROMISED: f64 = 20.0;
/// Runs in vain after which a peer's round ends. `cargo fuzz tmin` ends with a result only where
/// it gets more than its own 255.
const RUNS: &str = "100000";

/// Measures, and prints the table.
pub fn table(plan: &Plan, folder: &Path, binaries: &[Binary]) -> Result<(), String> {
    println!("minimization, once; peers may take {} s", plan.seconds);
    println!(
        "{:<18}{:<20}{:>8}{:>8}{:>10}{:>10}{:>10}{:>10}  promised",
        "binary", "by", "before", "after", "wall ms", "CPU ms", "x wall", "x CPU"
    );
    let input = folder.join("failing");
    fs::write(&input, failing()).map_err(|error| error.to_string())?;
    for binary in binaries {
        let ours = by_ddfuzz(&binary.faulty, &input, folder)?;
        let theirs = by_libfuzzer(plan, &binary.faulty, &input, folder)?;
        ours.print(binary.name, "ddfuzz min", None);
        theirs.print(binary.name, "-minimize_crash=1", Some(&ours));
    }
    match cargo_fuzz(folder) {
        Ok((project, binary)) => {
            let input = folder.join("failing-ul");
            fs::write(&input, failing_ul()).map_err(|error| error.to_string())?;
            let ours = by_ddfuzz(&binary, &input, folder)?;
            ours.print("cargo-fuzz, ul", "ddfuzz min", None);
            let theirs = by_tmin(plan, &project, &input)?;
            theirs.print("cargo-fuzz, ul", "cargo fuzz tmin", Some(&ours));
        }
        Err(why) => println!("cargo fuzz tmin is left out: {why}"),
    }
    Ok(())
}

/// What a tool made of the input.
struct Shrunk {
    before: usize,
    after: usize,
    cost: Cost,
}

impl Shrunk {
    fn print(&self, binary: &str, by: &str, ours: Option<&Shrunk>) {
        let verdict = ours.map_or(String::new(), |ours| {
            let wall = self.cost.wall.as_secs_f64() / ours.cost.wall.as_secs_f64();
            let cpu = self.cost.cpu.as_secs_f64() / ours.cost.cpu.as_secs_f64();
            let kept = wall >= PROMISED && cpu >= PROMISED && ours.after <= self.after;
            let word = if kept { "kept" } else { "not kept" };
            format!("{wall:>9.0}x{cpu:>9.0}x  >= {PROMISED}: {word}")
        });
        println!(
            "{binary:<18}{by:<20}{:>8}{:>8}{:>10.0}{:>10.0}{verdict}",
            self.before,
            self.after,
            self.cost.wall.as_secs_f64() * 1e3,
            self.cost.cpu.as_secs_f64() * 1e3,
        );
    }
}

fn size(path: &Path) -> Result<usize, String> {
    let facts = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    usize::try_from(facts.len()).map_err(|error| error.to_string())
}

/// `may_fail`: a peer ends so where it gets no further.
fn quietly(command: &mut Command, may_fail: bool) -> Result<Cost, String> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let (status, cost) = measure(|| command.status());
    match status {
        Ok(status) if may_fail || status.success() => Ok(cost),
        other => Err(format!("{command:?}: {other:?}")),
    }
}

fn by_ddfuzz(binary: &Path, input: &Path, folder: &Path) -> Result<Shrunk, String> {
    let result = folder.join("result");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ddfuzz"));
    command
        .args(["min", "--jobs", "1", "--force", "-q", "-o"])
        .arg(&result)
        .arg(input);
    let cost = quietly(command.arg("--").arg(binary), false)?;
    Ok(Shrunk {
        before: size(input)?,
        after: size(&result)?,
        cost,
    })
}

fn by_libfuzzer(plan: &Plan, binary: &Path, input: &Path, folder: &Path) -> Result<Shrunk, String> {
    let artifacts = tempfile::tempdir_in(folder).map_err(|error| error.to_string())?;
    let mut command = Command::new(binary);
    command
        .arg("-minimize_crash=1")
        .arg(format!("-runs={RUNS}"))
        .arg(format!("-max_total_time={}", plan.seconds))
        .arg(format!("-artifact_prefix={}/", artifacts.path().display()))
        .arg(input);
    let cost = quietly(&mut command, true)?;
    Ok(Shrunk {
        before: size(input)?,
        after: smallest_in(artifacts.path()).map_or_else(|| size(input), Ok)?,
        cost,
    })
}

fn smallest_in(folder: &Path) -> Option<usize> {
    let files = fs::read_dir(folder).ok()?.flatten();
    files.filter_map(|file| size(&file.path()).ok()).min()
}

/// This project's `fuzz/`, built as its users do: the project, and the binary.
fn cargo_fuzz(folder: &Path) -> Result<(PathBuf, PathBuf), String> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let target = folder.join("cargo-fuzz");
    let output = fuzz(&project, &target, &["build", "ul"]).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(said.lines().last().unwrap_or("it failed").to_owned());
    }
    let platforms = fs::read_dir(&target).map_err(|error| error.to_string())?;
    let mut binaries = platforms.flatten().map(|at| at.path().join("release/ul"));
    let binary = binaries.find(|file| file.is_file());
    let binary = binary.ok_or_else(|| format!("no ul in {}", target.display()))?;
    Ok((project, binary))
}

fn fuzz(project: &Path, target: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .args(["+nightly", "fuzz"])
        .args(words)
        .args(["--fuzz-dir", "."])
        .arg("--target-dir")
        .arg(target)
        .current_dir(project);
    command
}

fn by_tmin(plan: &Plan, project: &Path, input: &Path) -> Result<Shrunk, String> {
    let target = input.with_file_name("cargo-fuzz");
    let artifacts = project.join("artifacts");
    if artifacts.exists() {
        return Err(format!("{} stands in the way", artifacts.display()));
    }
    let mut command = fuzz(project, &target, &["tmin", "ul", "--runs", RUNS]);
    command
        .arg(input)
        .arg("--")
        .arg(format!("-max_total_time={}", plan.seconds));
    let cost = quietly(&mut command, true)?;
    let after = smallest_in(&artifacts.join("ul")).map_or_else(|| size(input), Ok)?;
    fs::remove_dir_all(&artifacts).map_err(|error| error.to_string())?;
    Ok(Shrunk {
        before: size(input)?,
        after,
        cost,
    })
}

/// 2000 bytes, of which the parser needs eight.
fn failing() -> Vec<u8> {
    let mut text: Vec<u8> = (0..2000_u32)
        .map(|i| b"0123456789,;:-_+*/ \n"[(i * 7 % 20) as usize])
        .collect();
    for (at, byte) in [(100, b'('), (500, b'('), (900, b'('), (1300, b'(')] {
        text[at] = byte;
    }
    for (at, byte) in [(300, b'a'), (700, b'b'), (1500, b'c'), (1999, b'!')] {
        text[at] = byte;
    }
    text
}

/// A line that is too long for `ul`, among others.
fn failing_ul() -> Vec<u8> {
    [
        b"x\n".to_vec(),
        b"a".repeat(600),
        b"_\x08".repeat(300),
        b"\n".to_vec(),
    ]
    .concat()
}
