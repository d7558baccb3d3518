//! Runs one search of `ddfuzz max` or `ddfuzz diff`: its baseline, its failure criterion, and the
//! files of its result.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{SearchArgs, SearchTask};
use crate::campaign::{Minimizing, note_running_build};
use crate::cli::interestingness::{Interestingness, no_group};
use crate::cli::results::{
    ResultArgs, ResultPlace, find_in_store, recorded_path, remove_useless_log, slip_on_file,
    store_slip, with_ending,
};
use crate::cli::run::campaign_of;
use crate::cli::target::install_bundled;
use crate::cli::{Exit, Failure, min};
use crate::delta::Dd;
use crate::exec::{Target, Way};
use crate::files::atomic;
use crate::minimize::isolate::{DifferenceResult, Isolated, Side, Subject, isolate};
use crate::minimize::log::{
    ContentHash, DifferenceRecord, Goal, LogError, PassingRecord, StartLine,
};
use crate::minimize::{Inverted, Journal, MinimizeError, OnSlip, Options, Oracle};
use crate::store::{Kind, Store, hash_of};
use crate::triage::{Crash, Triager};

pub(super) struct DifferenceJob<'a> {
    pub task: &'a SearchTask,
    pub args: &'a SearchArgs,
    pub criterion: &'a FailureCriterion,
    /// Time of the runs that have shown that the failing input fails; `None` if there were none.
    pub shown_in: Option<Duration>,
    pub stop: &'a AtomicBool,
}

/// The result of a search of `max` or `diff`, and its JSON record.
type Done = (Isolated, DifferenceResult);

impl DifferenceJob<'_> {
    pub fn to_files(&self, results: &[PathBuf], log: &Path) -> Result<Done, Failure> {
        let result = &results[0];
        let slips = RefCell::new(Vec::new());
        let on_slip: OnSlip<'_> = Box::new(|slip, _| {
            let kept = store_slip(result, &slip.input, &slip.keys)?;
            slips.borrow_mut().push(kept);
            Ok(())
        });
        let (isolated, mut record) = self.search(results, log, on_slip)?;
        for slip in &mut record.slips {
            *slip = slip_on_file(result, slip, &slips.borrow());
        }
        Ok((isolated, record))
    }

    pub fn to_directory(&self, out: &Path) -> Result<Done, Failure> {
        let FailureCriterion::Crash { minimizing, crash } = self.criterion else {
            return Err(no_group());
        };
        let Minimizing { target, way, .. } = minimizing.as_ref();
        let fresh = campaign_of(target, *way, None);
        let mut store = Store::create_or_resume(out, fresh.clone())?;
        let campaign = store.join_campaign(fresh)?;
        note_running_build(&mut store, target)?;
        install_bundled(&mut store, target)?;
        let (passing, failing) = (self.task.passing_bytes(), &*self.task.failing.bytes);
        let (crashing, other) = match self.args.invert {
            true => (passing, failing),
            false => (failing, passing),
        };
        let crash = crash.of_campaign(campaign);
        let id = store
            .file(Kind::of_class(&crash.class), &crash, crashing)?
            .id;
        let result = id.folder(store.reader().root()).join(self.name(other));
        let place = self.files(&result)?;
        let ResultPlace::File { results, log } = &place else {
            return Err(
                Failure::usage("a directory has the name of the result file").path(&result),
            );
        };
        let store = Mutex::new(store);
        let done = self.search(results, log, Minimizing::file_slips(&store, &id, &crash));
        let (isolated, mut record) = done?;
        let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        find_in_store(&store, &mut record.slips)?;
        Ok((isolated, record))
    }

    /// Returns the name of the result file in a crash's folder: `max` or `diff`. `other`: the input
    /// that does not crash; if it is not empty, `-` and its hash are appended to the name.
    fn name(&self, other: &[u8]) -> String {
        let goal = match self.task.goal {
            Goal::Maximize => "max",
            Goal::Isolate => "diff",
        };
        match other {
            [] => goal.to_owned(),
            _ => format!("{goal}-{}", hash_of(other)),
        }
    }

    /// Chooses the paths of the results and of the log; the results are named after the file
    /// `result`. With `--force`, earlier files at these paths are removed; else, if the log exists,
    /// its search is continued.
    fn files(&self, result: &Path) -> Result<ResultPlace, Failure> {
        let results = &self.args.results;
        let log = results.log.clone();
        let log = log.unwrap_or_else(|| with_ending(result, ".log.jsonl"));
        let there = ResultArgs {
            out: Some(result.to_owned()),
            resume: !results.force && (results.resume || log.exists()),
            log: Some(log),
            ..results.clone()
        };
        let program = self.args.target.program_file();
        let mut only_read = self.task.paths();
        let test = self.args.test.as_deref();
        only_read.extend(test.into_iter().chain(program.as_deref()));
        let place = ResultPlace::choose(&there, &only_read, result, self.task.endings())?;
        if results.force {
            place.clear()?;
        }
        Ok(place)
    }

    fn start_line(&self, subject: &Subject) -> StartLine {
        let SearchTask { failing, units, .. } = self.task;
        let start = self
            .criterion
            .start_line(&failing.bytes, &self.args.results);
        let passing = self.task.passing.as_ref().map(|input| PassingRecord {
            blake3: ContentHash::of(&input.bytes),
            size: input.bytes.len() as u64,
            path: recorded_path(&input.path),
        });
        StartLine {
            input: recorded_path(&failing.path),
            difference: Some(DifferenceRecord {
                goal: self.task.goal,
                units: *units,
                deltas: subject.deltas() as u64,
                passing,
                inverted: self.args.invert,
                monotone: self.args.monotone,
                ordered: self.args.order,
            }),
            ..start
        }
    }

    fn search(
        &self,
        results: &[PathBuf],
        log: &Path,
        on_slip: OnSlip<'_>,
    ) -> Result<Done, Failure> {
        let began = Instant::now();
        let begun = log.exists();
        let asked = &self.args.results;
        let (passing, failing) = (self.task.passing_bytes(), &self.task.failing.bytes);
        let subject = Subject::new(self.task.units, passing, failing);
        let journal = Journal::resume(log, self.start_line(&subject));
        let mut journal = journal.map_err(|error| not_continued(error, log))?;
        let start = journal.start().clone();
        let oracle = self.criterion.oracle()?;
        let mut oracle: Box<dyn Oracle> = match self.args.invert {
            true => Box::new(Inverted(oracle)),
            false => oracle,
        };
        let mut options = Options {
            budget_tests: asked.budget_tests,
            budget_time: asked.budget_time,
            // Comparing large inputs takes time, too.
            shown_in: self.shown_in.map(|shown| shown + began.elapsed()),
            log_inputs: asked.log_inputs,
            stop: Some(self.stop),
            on_slip,
            ..Options::default()
        };
        let on_side = Box::new(|side, text: &[u8]| {
            if let Some(file) = self.file_of(side, results) {
                atomic::write(file, text)?;
            }
            Ok(())
        });
        let isolated = isolate(
            &subject,
            oracle.as_mut(),
            &mut journal,
            &mut options,
            on_side,
        );
        let isolated = isolated.map_err(|error| self.failure(error, log, begun))?;
        self.write_ends(&isolated, results)?;
        let input = self.task.failing.path.as_path();
        let path = |side| recorded_path(self.file_of(side, results).unwrap_or(input));
        let record = DifferenceResult {
            passing: path(Side::Passing),
            failing: path(Side::Failing),
            output: recorded_path(&results[0]),
            log: recorded_path(log),
            ..DifferenceResult::new(&isolated, &start, began.elapsed())
        };
        Ok((isolated, record))
    }

    fn write_ends(&self, isolated: &Isolated, results: &[PathBuf]) -> Result<(), Failure> {
        for (side, text) in [
            (Side::Passing, &isolated.passing),
            (Side::Failing, &isolated.failing),
        ] {
            if let Some(file) = self.file_of(side, results) {
                atomic::write(file, text).map_err(|error| Failure::unwritten(file, error))?;
            }
        }
        Ok(())
    }

    /// Returns the path, among `results`, of the file for one side of the result: the passing or
    /// the failing input. `None` for the failing side of `max`, since that is the user's own input.
    fn file_of<'r>(&self, side: Side, results: &'r [PathBuf]) -> Option<&'r Path> {
        let file = match (self.task.goal, side) {
            (Goal::Maximize, Side::Passing) | (Goal::Isolate, Side::Failing) => results.first(),
            (Goal::Isolate, Side::Passing) => results.get(1),
            (Goal::Maximize, Side::Failing) => None,
        };
        file.map(PathBuf::as_path)
    }

    fn failure(&self, error: MinimizeError, log: &Path, begun: bool) -> Failure {
        if !begun {
            remove_useless_log(log, &error);
        }
        axiom_failure(error, self.task, self.args.invert)
    }
}

/// What decides in `ddfuzz max` and `ddfuzz diff` whether a candidate fails: a crash or an
/// interestingness test.
pub(super) enum FailureCriterion {
    /// A candidate fails if the program crashes on it with the same keys (hashes of the stack) as
    /// the crash in `crash`.
    Crash {
        minimizing: Box<Minimizing>,
        crash: Box<Crash>,
    },
    /// A candidate fails if the interestingness test accepts it.
    Test(Box<Interestingness>),
}

impl FailureCriterion {
    /// Creates the oracle that decides whether a candidate fails; it does not swap PASS and FAIL
    /// for `--invert`.
    pub(super) fn oracle(&self) -> Result<Box<dyn Oracle>, Failure> {
        Ok(match self {
            FailureCriterion::Crash { minimizing, crash } => {
                Box::new(minimizing.oracle(crash.as_ref())?)
            }
            FailureCriterion::Test(test) => Box::new(test.oracle()?),
        })
    }

    /// Builds the first line of the log of `max` or `diff`. It sets a fixed time limit for runs:
    /// adapting it to the time of the crashing run would cut off passing runs, which may take
    /// longer.
    pub(super) fn start_line(&self, failing: &[u8], results: &ResultArgs) -> StartLine {
        let start = match self {
            FailureCriterion::Crash { minimizing, crash } => minimizing.start_line(failing, crash),
            FailureCriterion::Test(test) => test.start_line(failing, Dd::NAME, results.no_cache),
        };
        StartLine {
            learn_limit: false,
            ..start
        }
    }
}

/// Runs the failing input of a search before it begins, and returns its crash; fails if it does not
/// crash. With `invert`, PASS and FAIL are swapped: the passing input is run and must crash.
pub(super) fn baseline_crash(
    task: &SearchTask,
    invert: bool,
    target: &Target,
    way: Way,
) -> Result<Crash, Failure> {
    let failing = &task.failing;
    let mut triager = Triager::of_target(target, way)?;
    if !invert {
        return min::baseline(target, Some(&failing.path), &failing.bytes, &mut triager);
    }
    let path = task.passing.as_ref().map(|input| input.path.as_path());
    let shown = path.unwrap_or(Path::new("the empty input"));
    let crash = min::baseline(target, Some(shown), task.passing_bytes(), &mut triager);
    let crash = crash.map_err(|failure| match failure.exit {
        Exit::Baseline => has_to("does not crash", "must crash", shown),
        _ => failure,
    })?;
    Ok(match path {
        Some(_) => crash,
        // The empty input has no file.
        None => Crash {
            found: None,
            ..crash
        },
    })
}

/// Checks that the interestingness test accepts the failing input, or with `invert` the passing
/// one; fails if it does not.
pub(super) fn check_baseline_test(
    task: &SearchTask,
    invert: bool,
    test: &mut Interestingness,
) -> Result<(), Failure> {
    let mut oracle = test.oracle()?;
    let failing = &task.failing;
    if !invert {
        return test.baseline(&mut oracle, &failing.bytes, &failing.path);
    }
    let path = task.passing.as_ref().map(|input| input.path.as_path());
    let shown = path.unwrap_or(Path::new("the empty input"));
    let tried = test.baseline(&mut oracle, task.passing_bytes(), shown);
    tried.map_err(|failure| match failure.kind() {
        "not-failing" => has_to("is not interesting", "must be interesting", shown),
        _ => failure,
    })
}

/// Creates the failure for a search with `--invert` whose passing input, at the path `shown`, does
/// not behave as it must. `what`: how the input behaves. `must`: how the input has to behave. Both
/// are words for the message.
fn has_to(what: &str, must: &str, shown: &Path) -> Failure {
    let message = format!("{} {what}; with --invert it {must}", shown.display());
    Failure::new(Exit::Baseline, "not-passing", message)
        .hint("use --invert for a failure that something in the other input prevents")
}

/// Converts the error of a search of `max` or `diff` to a failure. If an input does not behave as
/// it must (the failing one does not fail, or the passing one fails), the failure names this input.
/// `invert`: whether PASS and FAIL are swapped.
pub(super) fn axiom_failure(error: MinimizeError, task: &SearchTask, invert: bool) -> Failure {
    let failing = &task.failing.path;
    let passing = task.passing.as_ref().map(|input| &input.path);
    match (&error, invert) {
        (MinimizeError::NotFailing { .. }, true) => {
            let message = format!(
                "{} fails, too, or its outcome is unresolved; with --invert it must not fail",
                failing.display()
            );
            Failure::new(Exit::Baseline, "not-failing", message)
                .path(failing)
                .hint("give an input that prevents the failure")
        }
        (MinimizeError::NotFailing { .. }, false) => Failure::from(error).path(failing),
        (MinimizeError::NotPassing { .. }, _) => {
            let failure = Failure::from(error);
            passing
                .iter()
                .fold(failure, |failure, path| failure.path(path))
        }
        _ => Failure::from(error),
    }
}

/// Returns the failure of a search that cannot write its log at `log`, or finds there the log of
/// another search, which it must not continue.
fn not_continued(error: LogError, log: &Path) -> Failure {
    let is_unwritten = matches!(error, LogError::Io { .. });
    let failure = Failure::from(error).path(log);
    match is_unwritten {
        true => failure,
        false => failure.hint("start again with --force, or give another log with --log"),
    }
}
