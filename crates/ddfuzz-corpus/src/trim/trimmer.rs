//! Trims one file after the other.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::{CoverageOracle, Held, Left, TrimError, Trimmed, Trimming, Wanted, log, record};
use crate::Features;
use ddfuzz_minimize::log::{ContentHash, LogError, StartLine, TargetRecord};
use ddfuzz_minimize::{
    CallbackError, Claim, Counts, MinimizeError, Minimized, Options, OracleError, Proved, Slip,
    minimize,
};
use ddfuzz_model::files::{FileError, atomic, folder};

/// Runs of the result by which it is known what it reaches each time.
const STEADY: usize = 3;

/// Takes a crash that a candidate has run into, and the index of its test in the log of the file;
/// `None` for a check. Called once per (major, minor) of a file; a slip without its record, because
/// the crash was not seen again, may be followed by one that has it.
pub type OnSlip<'a> = &'a dyn Fn(&Slip, Option<u64>) -> Result<(), CallbackError>;

/// One file that is to be trimmed.
#[derive(Clone, Debug)]
pub struct ToTrim {
    /// Its content.
    pub input: Vec<u8>,
    /// What it has to reach.
    pub wanted: Wanted,
    /// Where `original`, `minimized`, `log.jsonl` and `trimmed.json` are written. No other file
    /// may use it.
    pub folder: PathBuf,
}

/// A started target that trims one file after the other.
pub struct Trimmer {
    trimming: Trimming,
    oracle: CoverageOracle,
}

impl Trimmer {
    pub(super) fn new(trimming: Trimming, oracle: CoverageOracle) -> Trimmer {
        Trimmer { trimming, oracle }
    }

    /// Trims a file, or goes on with one that was cut off. What was trimmed before with the same
    /// demands, by the same target and within the same bounds, is read and nothing run.
    ///
    /// # Errors
    /// When `stop` turned true ([`TrimError::is_interrupted`]; calling again goes on); when the
    /// target cannot be run, something cannot be written, or `on_slip` fails.
    pub fn trim(
        &mut self,
        file: &ToTrim,
        on_slip: OnSlip<'_>,
        stop: &AtomicBool,
    ) -> Result<Trimmed, TrimError> {
        let asked = record::asked(&file.input, &file.wanted, &self.trimming);
        let known = asked.and_then(|asked| record::read(&file.folder, asked));
        if let Some(trimmed) = known {
            return Ok(trimmed);
        }
        folder::create_all(&file.folder)?;
        keep(&file.folder.join("original"), &file.input)?;
        let (text, trimmed) = self.trim_anew(file, on_slip, stop)?;
        keep(&file.folder.join("minimized"), &text)?;
        if let Some(asked) = asked {
            record::write(&file.folder, asked, &trimmed)?;
        }
        Ok(trimmed)
    }

    fn trim_anew(
        &mut self,
        file: &ToTrim,
        on_slip: OnSlip<'_>,
        stop: &AtomicBool,
    ) -> Result<(Vec<u8>, Trimmed), TrimError> {
        let held = match self.oracle.know(&file.input, file.wanted.clone())? {
            Ok(held) => held,
            Err(left) => return self.leave(file, left, Counts::default()),
        };
        let minimized = match self.minimize(file, &held, on_slip, stop) {
            Err(MinimizeError::NotFailing { .. } | MinimizeError::Alternating { .. }) => {
                return self.leave(file, Left::Unsteady, Counts::default());
            }
            minimized => minimized?,
        };
        match self.oracle.steady(&minimized.text, STEADY)? {
            Some(features) => {
                let trimmed = trimmed(file, &minimized, features);
                Ok((minimized.text, trimmed))
            }
            None => self.leave(file, Left::ResultUnsteady, minimized.counts),
        }
    }

    /// Minimizes the file with its log. A log that is of other demands or of a larger budget, or
    /// damaged, is begun anew: it holds nothing that running does not give again.
    fn minimize(
        &mut self,
        file: &ToTrim,
        held: &Held,
        on_slip: OnSlip<'_>,
        stop: &AtomicBool,
    ) -> Result<Minimized, MinimizeError> {
        let path = file.folder.join("log.jsonl");
        let start = self.start_line(file, held);
        for _ in 0..2 {
            let result = self.minimize_in(&path, &start, file, on_slip, stop);
            match result {
                Err(MinimizeError::Log(LogError::Io { .. })) => return result,
                Err(MinimizeError::Log(_)) => remove(&path)?,
                Ok(minimized) if self.is_beyond_budget(&minimized) => remove(&path)?,
                result => return result,
            }
        }
        self.minimize_in(&path, &start, file, on_slip, stop)
    }

    fn is_beyond_budget(&self, minimized: &Minimized) -> bool {
        let budget = self.trimming.budget_tests;
        budget.is_some_and(|budget| minimized.counts.executed > budget)
    }

    fn minimize_in(
        &mut self,
        path: &Path,
        start: &StartLine,
        file: &ToTrim,
        on_slip: OnSlip<'_>,
        stop: &AtomicBool,
    ) -> Result<Minimized, MinimizeError> {
        let mut journal = log::open(path, start.clone())?;
        // What a log goes on with is what it began with.
        if let Some(coverage) = &journal.start().coverage {
            self.oracle.hold(Held::from(coverage));
            let learned = self.oracle.learn_to_sift(&file.input);
            learned.map_err(OracleError::from)?;
        }
        let mut options = Options {
            budget_tests: self.trimming.budget_tests,
            budget_time: self.trimming.budget_time,
            stop: Some(stop),
            log_inputs: self.trimming.log_inputs,
            on_slip: Box::new(on_slip),
            ..Options::default()
        };
        minimize(&file.input, &mut self.oracle, &mut journal, &mut options)
    }

    /// The first line of the file's log.
    fn start_line(&self, file: &ToTrim, held: &Held) -> StartLine {
        let Trimming { target, way, .. } = &self.trimming;
        let record = TargetRecord::new(target, *way);
        let search = &self.trimming.search;
        let mut start = StartLine::new(&file.input, search, record, None, target.limits);
        let build = self.trimming.build.as_deref();
        start.coverage = Some(held.record(self.oracle.places(), build));
        start
    }

    /// The file as it is.
    fn leave(
        &mut self,
        file: &ToTrim,
        left: Left,
        tests: Counts,
    ) -> Result<(Vec<u8>, Trimmed), TrimError> {
        let size = file.input.len() as u64;
        let trimmed = Trimmed {
            size_before: size,
            size_after: size,
            blake3: ContentHash::of(&file.input),
            tests,
            claim: Claim::BestSoFar,
            proved: Proved::default(),
            features: self.oracle.reached(&file.input, STEADY)?,
            left: Some(left),
            reused: false,
        };
        Ok((file.input.clone(), trimmed))
    }
}

fn trimmed(file: &ToTrim, minimized: &Minimized, features: Features) -> Trimmed {
    Trimmed {
        size_before: file.input.len() as u64,
        size_after: minimized.text.len() as u64,
        blake3: ContentHash::of(&minimized.text),
        tests: minimized.counts,
        claim: minimized.claim,
        proved: minimized.proved,
        features,
        left: None,
        reused: false,
    }
}

/// Writes a file, unless it holds just that.
fn keep(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    match std::fs::read(path) {
        Ok(there) if there == bytes => Ok(()),
        _ => atomic::write(path, bytes),
    }
}

fn remove(path: &Path) -> Result<(), LogError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LogError::io("removing", path)(error))
        }
        _ => Ok(()),
    }
}
