//! Runs one minimization: of a crash, with the result in an output directory; or of a crash or by
//! an interestingness test, with the result in a file.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::call_script::write_slip_script;
use super::{MinArgs, MinScreen, wrapper};
use crate::campaign::{
    CampaignError, Finished, Minimizing, StartedTarget, kind_of, record_first_build,
};
use crate::cli::Failure;
use crate::cli::interestingness::{Interestingness, no_group};
use crate::cli::results::{
    ResultPlace, find_in_store, recorded_path, remove_useless_log, store_slip,
};
use crate::cli::run::{campaign_of, workers};
use crate::cli::target::install_bundled;
use crate::exec::Target;
use crate::files::{FileError, atomic};
use crate::minimize::log::{OsText, StartLine};
use crate::minimize::{
    BoxedOracle, Journal, MinRecord, MinimizeError, Minimized, Options, Workers,
    minimize_by_workers,
};
use crate::store::{EntryId, Filed, Kind, Store, StoreError};
use crate::triage::Crash;

/// A minimization of an input that crashes the target: the input, its crash, and the running target
/// that has shown it.
pub(super) struct CrashJob<'a> {
    pub(super) minimizing: Minimizing,
    pub(super) screen: &'a MinScreen<'a>,
    pub(super) path: &'a Path,
    pub(super) crash: Crash,
    pub(super) input: Vec<u8>,
    /// Wall time of the runs that have shown the crash; it counts for `--budget-time`.
    pub(super) shown_in: Duration,
    /// The target and the triager, which analyses crashes, as they were started to find the crash.
    pub(super) started: StartedTarget,
}

impl CrashJob<'_> {
    pub(super) fn into_file(
        mut self,
        result: &Path,
        log: &Path,
    ) -> Result<(Finished, MinRecord), Failure> {
        self.say_wrapper()?;
        let began = Instant::now();
        let start = self.minimizing.start_line(&self.input, &self.crash);
        let into = FileJob {
            path: self.path,
            input: &self.input,
            result,
            log,
            screen: self.screen,
            call: None,
        };
        let options = Options {
            shown_in: Some(self.shown_in + began.elapsed()),
            ..self.minimizing.options(self.screen.stop)
        };
        into.minimize(start, options, |input, journal, options| {
            let minimizing = &self.minimizing;
            self.screen.say_crash(&self.crash, minimizing.way);
            let started = Some(self.started);
            minimizing.minimize_started(started, input, &self.crash, journal, options)
        })
    }

    /// Shows the advice not to run the program by a wrapper, if a wrapper takes most of the CPU
    /// time of the runs.
    fn say_wrapper(&mut self) -> Result<(), Failure> {
        let triager = &mut self.started.triager;
        if let Some(advice) = wrapper::advice(&self.minimizing.target, triager, &self.input)? {
            self.screen.screen.say(&advice);
        }
        Ok(())
    }

    pub(super) fn into_directory(mut self, out: &Path) -> Result<(Finished, MinRecord), Failure> {
        self.say_wrapper()?;
        drop(self.started);
        let shown_in = self.shown_in;
        let Minimizing { target, way, .. } = &self.minimizing;
        let fresh = campaign_of(target, *way, None);
        let mut store = Store::create_or_resume(out, fresh.clone())?;
        let campaign = store.join_campaign(fresh)?;
        record_first_build(&mut store, target)?;
        install_bundled(&mut store, target)?;
        let kind = kind_of(&self.crash);
        let crash = self.crash.of_campaign(campaign.clone());
        let filed = store.file(kind, &crash, &self.input)?;
        count_input(&mut store, &filed, &crash, &campaign)?;
        let store = Mutex::new(store);
        self.screen.say_crash(&self.crash, *way);
        let minimize = |id: &EntryId| {
            let options = Options {
                shown_in: Some(shown_in),
                ..self.minimizing.options(self.screen.stop)
            };
            let options = self.screen.screen.watch(options, false);
            let finished = self.minimizing.entry_with(&store, id, options)?;
            if let Some(note) = &finished.note {
                self.screen.screen.say(note);
            }
            Ok::<_, CampaignError>(finished)
        };
        let (mut id, mut finished) = (filed.id.clone(), minimize(&filed.id)?);
        while let Some(smaller) = finished.smaller.take() {
            (finished, id) = (minimize(&smaller)?, smaller);
        }
        let mut record = MinRecord::new(&finished.minimized, &finished.start, Duration::ZERO);
        record.size_before = self.input.len() as u64;
        let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        let reader = store.reader();
        let entry = match reader.entry(&id)? {
            // The crash did not occur again, and was moved to `flaky/`.
            None => reader.entry(&id.among(Kind::Flaky))?,
            there => there,
        };
        if let Some(entry) = entry {
            record.output = recorded_path(&entry.reproducer());
            record.log = recorded_path(&entry.log());
        }
        find_in_store(&store, &mut record.slips)?;
        Ok((finished, record))
    }
}

/// Counts the user's input as one run of the campaign with the id `campaign` in the group that
/// stores the input (`filed`). If the input was already stored before, it is counted only if this
/// campaign has no runs in the group yet, so that repeated calls count it once.
fn count_input(
    store: &mut Store,
    filed: &Filed,
    crash: &Crash,
    campaign: &str,
) -> Result<(), StoreError> {
    let kind = filed.id.kind();
    let group = store.reader().group(kind, filed.id.major())?;
    let before = group.and_then(|group| group.record.seen.get(campaign).copied());
    let before = before.unwrap_or_default();
    let seen = match filed.already {
        true => before.max(1),
        false => before + 1,
    };
    store.set_seen(kind, crash.keys.major, campaign, seen)
}

/// A minimization of one input that writes a result file and a log.
pub(super) struct FileJob<'a> {
    pub(super) path: &'a Path,
    pub(super) input: &'a [u8],
    pub(super) result: &'a Path,
    pub(super) log: &'a Path,
    pub(super) screen: &'a MinScreen<'a>,
    /// The target whose command line is minimized together with the input; a slip (another crash)
    /// then gets a script with the command line. `None` if only the input is minimized.
    pub(super) call: Option<&'a Target>,
}

impl FileJob<'_> {
    /// Minimizes the input, or continues the minimization that the log records, and returns the
    /// result. Meanwhile writes each better input to the result file, at most ten times per second.
    /// `start`: first line of a new log. `by`: makes the search, given the input to begin with, the
    /// log, and the options.
    pub(super) fn minimize(
        &self,
        mut start: StartLine,
        options: Options<'_>,
        by: impl FnOnce(&[u8], &mut Journal, &mut Options<'_>) -> Result<Minimized, MinimizeError>,
    ) -> Result<(Finished, MinRecord), Failure> {
        let (result, log) = (self.result, self.log);
        let absolute = std::path::absolute(self.path);
        start.input = absolute.ok().map(|path| OsText(path.into()));
        let begun = log.exists();
        let mut journal =
            Journal::resume(log, start).map_err(|error| Failure::unresumable(error, log))?;
        let start: StartLine = journal.start().clone();
        let slips = RefCell::new(Vec::new());
        let mut file = ResultFile::at(result);
        let mut options = Options {
            on_reduce: Box::new(|best| Ok(file.put(best)?)),
            on_slip: Box::new(|slip, _| {
                let path = store_slip(result, &slip.input, &slip.keys)?;
                if let (Some(target), Some(crash)) = (self.call, &slip.crash) {
                    write_slip_script(target, &path, crash)?;
                }
                slips.borrow_mut().push(path);
                Ok(())
            }),
            ..self.screen.screen.watch(options, false)
        };
        let minimized = by(self.input, &mut journal, &mut options);
        drop(options);
        let minimized = match minimized {
            Ok(minimized) => minimized,
            Err(error) => {
                // If this fails, too, the log still has the best input.
                let _ = file.write_pending();
                return Err(self.failure(error, begun));
            }
        };
        atomic::write(result, &minimized.text)
            .map_err(|error| Failure::unwritten(result, error))?;
        let mut record = MinRecord::new(&minimized, &start, Duration::ZERO);
        record.output = recorded_path(result);
        record.log = recorded_path(log);
        self.screen.name_slips(&mut record, result, &slips.borrow());
        Ok((Finished::new(start, minimized), record))
    }

    fn failure(&self, error: MinimizeError, begun: bool) -> Failure {
        let of_input = matches!(
            error,
            MinimizeError::NotFailing { .. } | MinimizeError::Alternating { .. }
        );
        if !begun {
            remove_useless_log(self.log, &error);
            if matches!(error, MinimizeError::Alternating { .. }) && is_empty_file(self.result) {
                // The empty file was the result only for a moment.
                let _ = std::fs::remove_file(self.result);
            }
        }
        let failure = Failure::from(error);
        match of_input {
            true => failure.path(self.path),
            false => failure,
        }
    }
}

/// Minimum time between two writes of the result file while the search runs.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);

/// The result file while a minimization runs. It is given each better input, and written at most
/// ten times per second; better inputs that are not written are in the log.
struct ResultFile<'a> {
    path: &'a Path,
    /// Time of the last write of the result file; `None` before the first write.
    written: Option<Instant>,
    /// The best input so far, if it is not written to the result file yet; else `None`.
    pending: Option<Vec<u8>>,
}

impl ResultFile<'_> {
    fn at(path: &Path) -> ResultFile<'_> {
        ResultFile {
            path,
            written: None,
            pending: None,
        }
    }

    /// Takes `best`, a better input, for the result file. Writes it now, or, if the last write was
    /// less than 100 ms ago, remembers it for later.
    fn put(&mut self, best: &[u8]) -> Result<(), FileError> {
        self.pending = Some(best.to_owned());
        match self.written {
            Some(written) if written.elapsed() < WRITE_INTERVAL => Ok(()),
            _ => self.write_pending(),
        }
    }

    /// Writes the best input to the result file if the file does not have it yet.
    fn write_pending(&mut self) -> Result<(), FileError> {
        if let Some(best) = self.pending.take() {
            atomic::write_unsynced(self.path, &best)?;
            self.written = Some(Instant::now());
        }
        Ok(())
    }
}

fn is_empty_file(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|facts| facts.is_file() && facts.len() == 0)
}

/// Runs `ddfuzz min --test`: minimizes the input at `path` as long as the interestingness test
/// `script` accepts it. Returns the finished minimization, and its result for JSON.
pub(super) fn minimize_by_test(
    script: &Path,
    args: &MinArgs,
    path: &Path,
    input: &[u8],
    screen: &MinScreen<'_>,
) -> Result<(Finished, MinRecord), Failure> {
    let test = Interestingness::find(script, &args.target, path)?;
    let mut test = test.abandoned_when(screen.abandon_when.clone());
    let place = args.place()?;
    let ResultPlace::File { results, log } = &place else {
        return Err(no_group());
    };
    let mut oracle = test.oracle()?;
    let began = Instant::now();
    test.baseline(&mut oracle, input, path)?;
    if let Some(advice) = wrapper::advice_on_test(&test.as_target(), input)? {
        screen.screen.say(&advice);
    }
    let mut start = test.start_line(input, &args.search, args.results.no_cache);
    match &args.grammar {
        Some(name) => start.name_structure(name),
        None => start.use_structure(args.structure(Some(path), input).as_deref()),
    }
    // Reading a large input takes time, too.
    let shown_in = Some(began.elapsed());
    if args.results.force {
        place.clear()?;
    }
    let options = Options {
        budget_tests: args.results.budget_tests,
        budget_time: args.results.budget_time,
        shown_in,
        stop: Some(screen.stop),
        log_inputs: args.results.log_inputs,
        ..Options::default()
    };
    let into = FileJob {
        path,
        input,
        result: &results[0],
        log,
        screen,
        call: None,
    };
    let make = || Ok(Box::new(test.one_more()?) as BoxedOracle<'_>);
    let workers = Workers::new(Box::new(oracle), &make, workers(args.jobs));
    into.minimize(start, options, |input, journal, options| {
        minimize_by_workers(input, workers, journal, options)
    })
}
