//! Trims one file after the other, with a log and a stored result for each, so that no work is
//! repeated; and many files by several workers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::{
    CoverageOracle, KnownRuns, RequiredFeatures, SkipReason, TrimCondition, TrimError,
    TrimSettings, Trimmed,
};
use crate::Features;
use ddfuzz_campaign::program_hash;
use ddfuzz_minimize::log::{
    ContentHash, Log, LogError, LogWriter, Numbers, StartLine, TargetRecord,
};
use ddfuzz_minimize::{
    CallbackError, Claim, Counts, Journal, MinimizeError, Minimized, Options, OracleError, Proved,
    Slip, minimize, trim_search,
};
use ddfuzz_model::files::{FileError, atomic};
use ddfuzz_model::pool::{TaskPool, Worker, lock};

/// Number of runs of a file after trimming, to find the features that it reaches in every run.
const STEADY: usize = 3;

/// A function that is called with a crash of a candidate, once per file for each pair of major and
/// minor key (coarse and fine hash of the crash). The number is the index of the candidate's test
/// in the log of the file (`None` if a check of the log crashed). If the crash did not occur again,
/// the call has no crash record; another call with the record may follow.
pub type OnSlip<'a> = &'a dyn Fn(&Slip, Option<u64>) -> Result<(), CallbackError>;

/// A file to trim: its content, the features that it must keep, and the folder for the results.
#[derive(Clone, Debug)]
pub struct ToTrim {
    /// Content of the file before it is trimmed.
    pub input: Vec<u8>,
    /// Features that the trimmed file must reach, and others that it may reach.
    pub wanted: RequiredFeatures,
    /// Folder for `original`, `minimized`, `log.jsonl` and `trimmed.json` of the file to be
    /// trimmed; no other file may use it.
    pub folder: PathBuf,
    /// What runs in earlier rounds have shown of the file's candidates; trimming adds its own runs.
    /// Clones of this `ToTrim` share this value.
    pub known: Arc<Mutex<KnownRuns>>,
}

/// Trims files (makes them smaller by delta debugging) one after the other, by a target that is
/// already started.
pub struct Trimmer {
    trimming: TrimSettings,
    oracle: CoverageOracle,
}

impl Trimmer {
    pub(super) fn new(trimming: TrimSettings, oracle: CoverageOracle) -> Trimmer {
        Trimmer { trimming, oracle }
    }

    /// Trims a file, or continues an interrupted call. If the file was already trimmed with the
    /// same required features, target and budget, the stored result is returned.
    ///
    /// # Errors
    /// When `stop` turns true ([`TrimError::is_interrupted`]; another call continues), the target
    /// cannot be run, a file cannot be written, or `on_slip` fails.
    pub fn trim(
        &mut self,
        file: &ToTrim,
        on_slip: OnSlip<'_>,
        stop: &AtomicBool,
    ) -> Result<Trimmed, TrimError> {
        let asked = request_hash(&file.input, &file.wanted, &self.trimming);
        let made = std::fs::create_dir_all(&file.folder);
        made.map_err(FileError::at("make the folder", &file.folder))?;
        keep(&file.folder.join("original"), &file.input)?;
        let stored = asked.and_then(|asked| read(&file.folder, asked));
        if let Some((trimmed, known)) = stored {
            *lock(&file.known) = known;
            return Ok(trimmed);
        }
        self.oracle.begin_file(lock(&file.known).clone());
        let (text, mut trimmed) = self.trim_anew(file, on_slip, stop)?;
        let (known, spared) = self.oracle.end_file();
        trimmed.spared = spared;
        keep(&file.folder.join("minimized"), &text)?;
        if let Some(asked) = asked {
            write(&file.folder, asked, &trimmed, &known)?;
        }
        *lock(&file.known) = known;
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
        match self.oracle.rerun(&minimized.text, STEADY)? {
            Some(features) => {
                let trimmed = trimmed(file, &minimized, features);
                Ok((minimized.text, trimmed))
            }
            None => self.leave(file, SkipReason::ResultUnsteady, minimized.counts),
        }
    }

    /// Trims a file by delta debugging, logs each test in the file's folder, and returns the
    /// result. `held`: the condition that candidates must meet.
    ///
    /// With a limit on time, the log of an interrupted call is continued. Without one, the log is
    /// removed and begun anew: what the runs of the interrupted call have shown is lost, so that
    /// later rounds of trimming could need more tests than without the interruption. A log is also
    /// begun anew if it is damaged, is of another input, target, search or condition, or has more
    /// tests than the budget allows.
    fn minimize(
        &mut self,
        file: &ToTrim,
        held: &TrimCondition,
        on_slip: OnSlip<'_>,
        stop: &AtomicBool,
    ) -> Result<Minimized, MinimizeError> {
        let path = file.folder.join("log.jsonl");
        let start = self.start_line(file, held);
        if self.trimming.budget_time.is_none() {
            remove(&path)?;
        }
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
        // A continued log keeps the condition of its first line.
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

    /// Returns the first line of a file's log, which records the target, the search and the
    /// condition `held` for candidates.
    fn start_line(&self, file: &ToTrim, held: &TrimCondition) -> StartLine {
        let TrimSettings { target, way, .. } = &self.trimming;
        let record = TargetRecord::new(target, *way);
        let search = self.trimming.search.as_deref();
        let search = search.unwrap_or_else(|| trim_search(&file.input));
        let mut start = StartLine::new(&file.input, search, record, None, target.limits);
        start.build = program_hash(&target.program).ok();
        let build = self.trimming.build.as_deref();
        start.coverage = Some(held.record(self.oracle.counter_count(), build));
        start
    }

    /// Returns the unchanged content of a file that is not trimmed, with the result. `left`: the
    /// reason. `tests`: the counts of the tests made so far. Runs the file again to find its
    /// features.
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
            spared: 0,
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
        spared: 0,
    }
}

/// Writes `bytes` to the file at `path` atomically, unless it has this content already. The file is
/// not synced, since the whole corpus is synced once it is written; a file that a power cut has
/// damaged is written again.
fn keep(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    match std::fs::read(path) {
        Ok(there) if there == bytes => Ok(()),
        _ => atomic::write_unsynced(path, bytes),
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

/// File name of the stored result of trimming, in the folder of each trimmed file.
const NAME: &str = "trimmed.json";

/// The stored result of trimming a file. The record is written after all other files of the folder
/// that belongs to the trimmed file.
#[derive(Serialize, Deserialize)]
struct TrimRecord {
    /// Hash of all that the result of trimming depends on, as computed by [`request_hash`]: file,
    /// required features, target, search and budget.
    asked: ContentHash,
    #[serde(flatten)]
    trimmed: Trimmed,
    /// What runs have shown of the file's candidates, in this round of trimming and earlier ones.
    #[serde(default)]
    known: KnownRuns,
}

/// Hashes all that the result of trimming a file depends on: the file, its required features, the
/// target, the search and the budget. `None` if it cannot be encoded.
pub(super) fn request_hash(
    input: &[u8],
    wanted: &RequiredFeatures,
    trimming: &TrimSettings,
) -> Option<ContentHash> {
    let target = TargetRecord::new(&trimming.target, trimming.way);
    let bounds = (trimming.budget_tests, trimming.budget_time);
    let wanted = (
        Numbers::from(&wanted.required),
        wanted.allowed.as_deref().map(Numbers::from),
    );
    let asked = (
        ContentHash::of(input),
        wanted,
        (target, trimming.target.limits, &trimming.build),
        (&trimming.search, bounds, trimming.log_inputs),
    );
    let text = serde_json::to_vec(&asked).ok()?;
    Some(ContentHash::of(&text))
}

/// Reads the stored result of trimming and the known runs from a file's folder. `None` if no result
/// is stored, it is damaged, or the stored hash of all that it depends on is not `asked`.
pub(super) fn read(folder: &Path, asked: ContentHash) -> Option<(Trimmed, KnownRuns)> {
    let bytes = std::fs::read(folder.join(NAME)).ok()?;
    let record: TrimRecord = serde_json::from_slice(&bytes).ok()?;
    let minimized = std::fs::read(folder.join("minimized")).ok()?;
    let is_valid = record.asked == asked && ContentHash::of(&minimized) == record.trimmed.blake3;
    let trimmed = Trimmed {
        reused: true,
        ..record.trimmed
    };
    is_valid.then_some((trimmed, record.known))
}

/// Writes the result of trimming a file into the file's folder, with what runs have shown of its
/// candidates (`known`), and the hash `asked` of all that the result depends on.
pub(super) fn write(
    folder: &Path,
    asked: ContentHash,
    trimmed: &Trimmed,
    known: &KnownRuns,
) -> Result<(), FileError> {
    let record = TrimRecord {
        asked,
        trimmed: trimmed.clone(),
        known: known.clone(),
    };
    let path = folder.join(NAME);
    let mut text =
        serde_json::to_vec(&record).map_err(|error| FileError::at("write", &path)(error.into()))?;
    text.push(b'\n');
    keep(&path, &text)
}

/// Opens the log of a file's trimming at `path`, or creates it with the first line `start`; new
/// lines follow its last line.
///
/// # Errors
/// As [`Journal::resume`].
pub(super) fn open(path: &Path, start: StartLine) -> Result<Journal, LogError> {
    let log = match path.try_exists().map_err(LogError::io("reading", path))? {
        true => Log::read(path)?,
        false => Log::parse(&[])?,
    };
    Journal::go_on(log, start, LogWriter::resume(path)?.unsynced())
}

/// Callbacks and stop flag of trimming many files, which are numbered from 0.
pub struct TrimWatch<'a> {
    /// Called with the result of each file, one call at a time, in the order in which files are
    /// finished.
    pub on_trimmed: OnTrimmed<'a>,
    /// Called with each crash of a candidate, one call at a time, and once per file for each pair
    /// of major and minor key (coarse and fine hash of the crash). The order of calls depends on
    /// the workers; the set of crashes does not.
    pub on_slip: OnSlipOf<'a>,
    /// Flag of the user's stop: when it turns true, all workers stop, and another call continues
    /// from their logs.
    pub stop: &'a AtomicBool,
}

/// Trims `files` by `jobs` worker threads, each with its own process of the target; at most `jobs`
/// files are in memory. Each result depends on its file only. `watch` has the callbacks for results
/// and crashes, and the stop flag.
///
/// # Errors
/// As [`Trimmer::trim`](super::Trimmer::trim), for the first file that failed; all workers have
/// stopped then.
pub fn trim_all<F>(
    trimming: &TrimSettings,
    files: F,
    jobs: usize,
    watch: TrimWatch<'_>,
) -> Result<(), TrimError>
where
    F: IntoIterator<Item = ToTrim>,
    F::IntoIter: Send,
{
    let TrimWatch {
        on_trimmed,
        on_slip,
        stop,
    } = watch;
    let (on_trimmed, on_slip) = (Mutex::new(on_trimmed), Mutex::new(on_slip));
    let goes_on = || !stop.load(Ordering::Relaxed);
    let interrupted = AtomicBool::new(false);
    let work = |worker: &Worker<'_, _, (), TrimError>| {
        // The target is started for the first file: there may be none.
        let mut trimmer = None;
        while let Some((number, file)) = worker.next_task() {
            let trimmer = match &mut trimmer {
                Some(trimmer) => trimmer,
                none => none.insert(trimming.start()?),
            };
            let on_slip = |slip: &Slip, test| (lock(&on_slip))(number, slip, test);
            match trimmer.trim(&file, &on_slip, stop) {
                // An error of another worker comes before the interruption.
                Err(error) if error.is_interrupted() => break,
                trimmed => (lock(&on_trimmed))(number, trimmed?).map_err(TrimError::Callback)?,
            }
        }
        interrupted.fetch_or(!goes_on(), Ordering::Relaxed);
        Ok(())
    };
    let pool = TaskPool::new(jobs, &goes_on);
    pool.run(files.into_iter().enumerate(), work, |failed| {
        failed.unwrap_or(Ok(()))
    })?;
    match interrupted.into_inner() {
        true => Err(TrimError::Interrupted),
        false => Ok(()),
    }
}

/// Callback for each trimmed file, with the number of the file and its result.
pub type OnTrimmed<'a> = &'a mut (dyn FnMut(usize, Trimmed) -> Result<(), CallbackError> + Send);
/// Callback for a crash of a candidate, with the number of the file that was being trimmed, the
/// crash, and the index of the candidate's test (`None` if a check of the file's log crashed).
pub type OnSlipOf<'a> =
    &'a mut (dyn FnMut(usize, &Slip, Option<u64>) -> Result<(), CallbackError> + Send);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::set;

    #[test]
    fn a_stored_result_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let asked = ContentHash::of(b"request");
        let mut trimmed = Trimmed {
            size_before: 9,
            size_after: 3,
            blake3: ContentHash::of(b"abc"),
            tests: Counts::default(),
            claim: Claim::OneMinimal,
            proved: Proved::default(),
            features: set(&[3, 800]),
            left: None,
            reused: false,
            spared: 0,
        };
        let minimized = folder.path().join("minimized");
        keep(&minimized, b"abcd").unwrap();
        let before = std::fs::File::open(&minimized).unwrap();
        keep(&minimized, b"abc").unwrap();
        // A reader of the file sees all old bytes or all new ones.
        assert_eq!(std::io::read_to_string(before).unwrap(), "abcd");
        let known = KnownRuns::default();
        write(folder.path(), asked, &trimmed, &known).unwrap();
        let text = std::fs::read_to_string(folder.path().join(NAME)).unwrap();
        assert!(
            text.starts_with("{\"asked\":\"") && !text.contains("reused"),
            "{text}"
        );
        trimmed.reused = true;
        assert_eq!(read(folder.path(), asked), Some((trimmed, known)));
        assert_eq!(read(folder.path(), ContentHash::of(b"other")), None);
    }
}
