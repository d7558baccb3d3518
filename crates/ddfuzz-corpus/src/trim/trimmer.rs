//! Trims one file after the other, with a log of each, and keeps the result so that nothing is run
//! again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::required::{features, numbers};
use super::{
    CoverageOracle, RequiredFeatures, SkipReason, TrimCondition, TrimError, TrimSettings, Trimmed,
};
use crate::Features;
use ddfuzz_minimize::log::{
    ContentHash, Log, LogError, LogWriter, Medium, Numbers, StartLine, TargetRecord,
};
use ddfuzz_minimize::{
    CallbackError, Claim, Counts, Journal, MinimizeError, Minimized, Options, OracleError, Proved,
    Slip, minimize,
};
use ddfuzz_model::files::{Appender, FileError, atomic, folder};

/// Runs of the result to know the features that it reaches each time.
const STEADY: usize = 3;

/// Called with a crash that a candidate ran into, and the index of its test in the log of the file;
/// `None` for a check. Called once per (major, minor) of a file; a slip without its record, because
/// the crash was not seen again, may be followed by one that has it.
pub type OnSlip<'a> = &'a dyn Fn(&Slip, Option<u64>) -> Result<(), CallbackError>;

/// One file that is to be trimmed.
#[derive(Clone, Debug)]
pub struct ToTrim {
    /// Its content.
    pub input: Vec<u8>,
    /// The required features.
    pub wanted: RequiredFeatures,
    /// Where `original`, `minimized`, `log.jsonl` and `trimmed.json` are written. No other file
    /// may use it.
    pub folder: PathBuf,
}

/// A started target that trims one file after the other.
pub struct Trimmer {
    trimming: TrimSettings,
    oracle: CoverageOracle,
}

impl Trimmer {
    pub(super) fn new(trimming: TrimSettings, oracle: CoverageOracle) -> Trimmer {
        Trimmer { trimming, oracle }
    }

    /// Trims a file, or continues one that was interrupted. Nothing is run for a file that was
    /// trimmed before with the same requirement, target and bounds: its result is read.
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
        let asked = asked(&file.input, &file.wanted, &self.trimming);
        let known = asked.and_then(|asked| read(&file.folder, asked));
        if let Some(trimmed) = known {
            return Ok(trimmed);
        }
        folder::create_all(&file.folder)?;
        keep(&file.folder.join("original"), &file.input)?;
        let (text, trimmed) = self.trim_anew(file, on_slip, stop)?;
        keep(&file.folder.join("minimized"), &text)?;
        if let Some(asked) = asked {
            write(&file.folder, asked, &trimmed)?;
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
                return self.leave(file, SkipReason::Unsteady, Counts::default());
            }
            minimized => minimized?,
        };
        match self.oracle.steady(&minimized.text, STEADY)? {
            Some(features) => {
                let trimmed = trimmed(file, &minimized, features);
                Ok((minimized.text, trimmed))
            }
            None => self.leave(file, SkipReason::ResultUnsteady, minimized.counts),
        }
    }

    /// Minimizes the file with its log. A log that is damaged, or has another condition or a larger
    /// budget, is replaced.
    fn minimize(
        &mut self,
        file: &ToTrim,
        held: &TrimCondition,
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
        let mut journal = open(path, start.clone())?;
        // What a log goes on with is what it began with.
        if let Some(coverage) = &journal.start().coverage {
            self.oracle.hold(TrimCondition::from(coverage));
            let learned = self.oracle.learn_prefilter(&file.input);
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
    fn start_line(&self, file: &ToTrim, held: &TrimCondition) -> StartLine {
        let TrimSettings { target, way, .. } = &self.trimming;
        let record = TargetRecord::new(target, *way);
        let search = &self.trimming.search;
        let mut start = StartLine::new(&file.input, search, record, None, target.limits);
        let build = self.trimming.build.as_deref();
        start.coverage = Some(held.record(self.oracle.places(), build));
        start
    }

    /// The result for a file that stays as it is.
    fn leave(
        &mut self,
        file: &ToTrim,
        left: SkipReason,
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

/// The file's name in its folder.
const NAME: &str = "trimmed.json";

/// The result of a file on disk; written last.
#[derive(Serialize, Deserialize)]
struct TrimRecord {
    /// The hash of the request: [`asked`].
    asked: ContentHash,
    size_before: u64,
    size_after: u64,
    blake3: ContentHash,
    tests: Counts,
    claim: Claim,
    proved: Proved,
    features: Numbers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<SkipReason>,
}

/// A hash of all that the result depends on: the file, its requirement, the target, the search and
/// its bounds.
pub(super) fn asked(
    input: &[u8],
    wanted: &RequiredFeatures,
    trimming: &TrimSettings,
) -> Option<ContentHash> {
    let target = TargetRecord::new(&trimming.target, trimming.way);
    let bounds = (trimming.budget_tests, trimming.budget_time);
    let wanted = (numbers(&wanted.must), wanted.may.as_deref().map(numbers));
    let asked = (
        ContentHash::of(input),
        wanted,
        (target, trimming.target.limits, &trimming.build),
        (&trimming.search, bounds, trimming.log_inputs),
    );
    let text = serde_json::to_vec(&asked).ok()?;
    Some(ContentHash::of(&text))
}

/// The result of an earlier call with the same request; `None` where there is none, or it is
/// damaged.
pub(super) fn read(folder: &Path, asked: ContentHash) -> Option<Trimmed> {
    let bytes = std::fs::read(folder.join(NAME)).ok()?;
    let record: TrimRecord = serde_json::from_slice(&bytes).ok()?;
    if record.asked != asked {
        return None;
    }
    let minimized = std::fs::read(folder.join("minimized")).ok()?;
    if ContentHash::of(&minimized) != record.blake3 {
        return None;
    }
    Some(Trimmed {
        size_before: record.size_before,
        size_after: record.size_after,
        blake3: record.blake3,
        tests: record.tests,
        claim: record.claim,
        proved: record.proved,
        features: features(&record.features),
        left: record.left,
        reused: true,
    })
}

/// Writes the result.
pub(super) fn write(folder: &Path, asked: ContentHash, trimmed: &Trimmed) -> Result<(), FileError> {
    let record = TrimRecord {
        asked,
        size_before: trimmed.size_before,
        size_after: trimmed.size_after,
        blake3: trimmed.blake3,
        tests: trimmed.tests,
        claim: trimmed.claim,
        proved: trimmed.proved,
        features: numbers(&trimmed.features),
        left: trimmed.left,
    };
    let path = folder.join(NAME);
    let mut text =
        serde_json::to_vec(&record).map_err(|error| FileError::at("write", &path)(error.into()))?;
    text.push(b'\n');
    atomic::write(&path, &text)
}

/// How an end line begins.
const END: &[u8] = br#"{"kind":"end""#;

/// Creates the log at `path`, or continues it.
///
/// # Errors
/// As [`Journal::resume`].
pub(super) fn open(path: &Path, start: StartLine) -> Result<Journal, LogError> {
    let log = match path.try_exists().map_err(LogError::io("reading", path))? {
        true => Log::read(path)?,
        false => Log::parse(&[])?,
    };
    let file = Appender::open(path).map_err(system_error);
    let file = file.map_err(LogError::io("opening", path))?;
    let medium = SyncedAtEnd { file, ended: false };
    Journal::go_on(log, start, LogWriter::on(Box::new(medium), path))
}

/// A log that is synced at its end only: a sync for each reduction would take longer than the
/// tests, and what a power cut removes is computed again.
struct SyncedAtEnd {
    file: Appender,
    ended: bool,
}

impl Medium for SyncedAtEnd {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.ended = line.starts_with(END);
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        self.file.append(line).map_err(system_error)
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.ended {
            true => self.file.sync().map_err(system_error),
            false => Ok(()),
        }
    }
}

/// The system's error alone: what was done to which file, errors of the log say themselves.
fn system_error(error: FileError) -> io::Error {
    match error.io().raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.io().kind(), error.to_string()),
    }
}
