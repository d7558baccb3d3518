//! The fuzz study of ISSTA 2000 on the bundled targets: sixteen inputs each, and each that fails
//! minimized twice, by `ddfuzz` as users call it.

use std::path::{Path, PathBuf};
use std::process::Command;

use ddfuzz::campaign::generator::{InputName, Preset};
use serde_json::Value;

/// The targets, in the order of the table.
pub const TARGETS: [&str; 6] = ["nroff", "troff", "flex", "crtplot", "ul", "units"];
/// The searches that each failing input is minimized by.
pub const SEARCHES: [&str; 2] = ["ddmin", "full"];
/// The seed of the sixteen inputs.
pub const SEED: u64 = 2000;

/// What became of one input on one target.
pub struct Row {
    pub target: &'static str,
    pub input: InputName,
    /// `None` when the input passes.
    pub failure: Option<Failure>,
}

/// A failure, and what is left of the input.
pub struct Failure {
    pub class: String,
    pub major: String,
    /// By each of [`SEARCHES`].
    pub minimized: [Minimized; 2],
}

/// What one search has made of an input.
pub struct Minimized {
    /// Bytes.
    pub size: u64,
    /// Tests that were executed, the proof included.
    pub tests: u64,
    /// Whether the result is proven 1-minimal.
    pub proven: bool,
    /// Class and major key of the result, run anew.
    pub class: String,
    pub major: String,
}

/// One study: where ddfuzz is, where files go, and how long a search may take (seconds).
pub struct Study<'a> {
    pub ddfuzz: &'a Path,
    pub folder: &'a Path,
    pub seconds: u64,
}

/// The sixteen inputs, those of up to `longest` bytes.
pub fn inputs(longest: u64) -> Vec<InputName> {
    let all = Preset::Issta.inputs(SEED);
    all.filter(|input| input.length <= longest).collect()
}

impl Study<'_> {
    /// Runs one input on one target.
    ///
    /// # Errors
    /// What went wrong that is no result.
    pub fn row(&self, target: &'static str, input: InputName) -> Result<Row, String> {
        let file = self.folder.join(format!("{target}-{input}"));
        let mut bytes = Vec::new();
        input.write_into(&mut bytes);
        std::fs::write(&file, bytes).map_err(|error| error.to_string())?;
        let failure = match self.named(target, &file)? {
            None => None,
            Some((class, major)) => {
                let [first, second] = SEARCHES;
                let minimized = [
                    self.minimized(target, &file, first)?,
                    self.minimized(target, &file, second)?,
                ];
                Some(Failure {
                    class,
                    major,
                    minimized,
                })
            }
        };
        Ok(Row {
            target,
            input,
            failure,
        })
    }

    /// Class and major key of a crash; `None` when the input passes.
    fn named(&self, target: &str, file: &Path) -> Result<Option<(String, String)>, String> {
        let result = self.call(&["triage", "--target", target], file)?;
        let input = &result["inputs"][0];
        let text = |key: &str| input[key].as_str().map(str::to_owned);
        Ok(text("class").zip(text("major")))
    }

    fn minimized(&self, target: &str, file: &Path, search: &str) -> Result<Minimized, String> {
        let out = PathBuf::from(format!("{}.{search}", file.display()));
        let time = format!("{}s", self.seconds);
        let place = out.to_string_lossy();
        let words = [
            "min",
            "--target",
            target,
            "--search",
            search,
            "-o",
            &place,
            "--budget-time",
            &time,
        ];
        let result = self.call(&words, file)?;
        let number = |value: &Value| {
            let number = value.as_u64();
            number.ok_or_else(|| format!("{search} on {}: {result}", file.display()))
        };
        let (class, major) = self
            .named(target, &out)?
            .ok_or_else(|| format!("{}: the result passes", out.display()))?;
        Ok(Minimized {
            size: number(&result["size_after"])?,
            tests: number(&result["tests"]["executed"])?,
            proven: result["claim"] == "1-minimal",
            class,
            major,
        })
    }

    fn call(&self, words: &[&str], file: &Path) -> Result<Value, String> {
        let output = Command::new(self.ddfuzz)
            .args(words)
            .args(["--json", "--quiet", "--no-config"])
            .arg(file)
            .output()
            .map_err(|error| format!("{}: {error}", self.ddfuzz.display()))?;
        let result: Value = serde_json::from_slice(&output.stdout).map_err(|error| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("{words:?} on {}: {error}: {said}", file.display())
        })?;
        match result.get("error") {
            Some(error) => Err(format!("{words:?} on {}: {error}", file.display())),
            None => Ok(result),
        }
    }
}

impl Row {
    /// Whether each result is the failure that its search began with.
    pub fn is_same_failure(&self) -> bool {
        self.failure.iter().all(|failure| {
            let same = |result: &Minimized| {
                (&result.class, &result.major) == (&failure.class, &failure.major)
            };
            failure.minimized.iter().all(same)
        })
    }
}
