//! The tools, and whether what they made is still the same bug.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cost::{Cost, measure};
use crate::projects::Built;

/// Runs in vain after which a round of libFuzzer ends: what `cargo fuzz tmin` has by default.
const RUNS: &str = "-runs=255";

/// Who minimizes.
#[derive(Clone, Copy, Debug)]
pub enum Tool {
    /// `ddfuzz min`, as it is called without options.
    Ddfuzz,
    /// `cargo fuzz tmin`, as it is called without options.
    Tmin,
    /// `cargo fuzz tmin --runs 100000`.
    LongTmin,
    /// The program's own `-minimize_crash=1`, without cargo around it.
    LibFuzzer,
}

/// What a tool made of a file.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The size of the file, in bytes.
    pub before: usize,
    /// That of the result.
    pub after: usize,
    /// The result.
    pub file: PathBuf,
    /// What it took.
    pub cost: Cost,
}

impl Tool {
    /// All, ddfuzz first.
    pub const ALL: [Tool; 4] = [Tool::Ddfuzz, Tool::Tmin, Tool::LongTmin, Tool::LibFuzzer];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Ddfuzz => "ddfuzz min",
            Tool::Tmin => "cargo fuzz tmin",
            Tool::LongTmin => "tmin --runs 100000",
            Tool::LibFuzzer => "-minimize_crash=1",
        }
    }

    /// Minimizes `input`, a copy of which it is given.
    pub fn shrink(self, ddfuzz: &Path, built: &Built, input: &Path) -> Result<Shrunk, String> {
        let copied = built.work.join("input");
        fs::copy(input, &copied).map_err(|error| error.to_string())?;
        let result = built.work.join("result");
        let artifacts = match self {
            Tool::Tmin | Tool::LongTmin => built.cargo_fuzz_artifacts(),
            Tool::Ddfuzz | Tool::LibFuzzer => built.work.join("artifacts"),
        };
        let _ = fs::remove_dir_all(&artifacts);
        fs::create_dir_all(&artifacts).map_err(|error| error.to_string())?;
        let mut command = match self {
            Tool::Ddfuzz => Command::new(ddfuzz),
            Tool::Tmin | Tool::LongTmin => built.cargo_fuzz("tmin"),
            Tool::LibFuzzer => Command::new(&built.program),
        };
        match self {
            Tool::Ddfuzz => {
                command.args(["min", "--force", "-q", "-o"]);
                command.arg(&result).arg(&copied).arg("--");
                command.arg(&built.program);
            }
            Tool::Tmin => drop(command.arg(&copied)),
            Tool::LongTmin => drop(command.args(["--runs", "100000"]).arg(&copied)),
            Tool::LibFuzzer => {
                let prefix = format!("-artifact_prefix={}/", artifacts.display());
                command.args(["-minimize_crash=1", RUNS, &prefix]);
                command.arg(&copied);
            }
        }
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (status, cost) = measure(|| command.status());
        let status = status.map_err(|error| format!("{command:?}: {error}"))?;
        // The others end so where they get no further.
        if matches!(self, Tool::Ddfuzz) && !status.success() {
            return Err(format!("{command:?}: {status}"));
        }
        let file = match self {
            Tool::Ddfuzz => result,
            Tool::Tmin | Tool::LongTmin | Tool::LibFuzzer => {
                smallest_in(&artifacts).unwrap_or(copied)
            }
        };
        Ok(Shrunk {
            before: size(input)?,
            after: size(&file)?,
            file,
            cost,
        })
    }
}

/// The major key of the crash that a file makes; null where it makes none.
pub fn bug(ddfuzz: &Path, built: &Built, file: &Path) -> Result<Value, String> {
    let mut command = Command::new(ddfuzz);
    command.args(["triage", "--json"]).arg(file).arg("--");
    let output = command.arg(&built.program).output();
    let output = output.map_err(|error| error.to_string())?;
    let result: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{command:?}: {error}"))?;
    Ok(result["inputs"][0]["major"].clone())
}

fn smallest_in(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.flatten();
    let files = files.map(|entry| entry.path());
    files.min_by_key(|file| size(file).unwrap_or(usize::MAX))
}

fn size(file: &Path) -> Result<usize, String> {
    let facts = fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    usize::try_from(facts.len()).map_err(|error| error.to_string())
}
