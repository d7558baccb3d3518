//! Drives a minimization: asks the oracle, writes the log, and feeds outcomes to the search.

use ddfuzz_delta::{Hints, Outcome};
use ddfuzz_exec::ExecError;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::log::{Base64, CheckLine, Line, LogError, Source, What};
use crate::options::CallbackError;
use crate::progress::{NextStep, Progress};
use crate::question::{Answerer, Reply};
use crate::requests::SingleOracle;
use crate::{
    Answer, Journal, MinimizeError, MinimizePhase, Minimized, Options, Oracle, OracleError, Slip,
    SlipKeys,
};

/// Shortest time between two calls of the caller's status callback.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);

/// Minimizes `input` by the answers of `oracle`, with `journal` as its log.
///
/// The steps are: run the input three times (more often if it is flaky); run the empty input, which
/// is the result if it fails; run the search until it ends or a budget is used up; test in fresh
/// processes each removal of a single byte that the search left open; and confirm the result in
/// fresh processes, three times or as often as the log's first line says. A budget of time ends
/// each of these steps ([`Options::budget_time`]). Each run is a line of the log. Lines that the
/// journal already has are used as answers first. If they end because a smaller budget was used up,
/// the search continues.
///
/// # Errors
/// [`MinimizeError::NotFailing`] if no run of the input fails; [`MinimizeError::Alternating`] if
/// the outcome of a script does not depend on the input; [`MinimizeError::Interrupted`] if the
/// caller asked to stop; [`MinimizeError::Log`] if the log does not fit this input and search;
/// [`MinimizeError::UnknownSearch`] or [`MinimizeError::UnknownStructure`] if there is none of the
/// name in the log; errors of the oracle and of callbacks. Except after a log error, the log is
/// valid and can be resumed.
pub fn minimize(
    input: &[u8],
    oracle: &mut dyn Oracle,
    journal: &mut Journal,
    options: &mut Options<'_>,
) -> Result<Minimized, MinimizeError> {
    drive(input, &mut SingleOracle::new(oracle), journal, options)
}

/// Shortest time between two test lines that record the wall time of the minimization.
const RECORD_INTERVAL: Duration = Duration::from_secs(1);

/// Smallest size, in bytes, of an input whose search is watched, because one of its steps may take
/// long and must then be interrupted: the decompressed content of the input may be hundreds of
/// times larger.
const SLOW: usize = 1 << 12;

/// Interval of the checks, during a step of the search that takes long, whether the user has
/// stopped the minimization or its time is over; if so, the step is interrupted.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);

/// Size in bytes from which a new best text is passed to the caller only if it is at most half as
/// large as the last one passed, and at the end.
const LARGE: usize = 1 << 20;

/// Minimizes `input`, with `journal` as its log, and returns the result. `answerer` runs the tests:
/// a single oracle, or a pool of workers that run predicted tests ahead.
pub(super) fn drive(
    input: &[u8],
    answerer: &mut dyn Answerer,
    journal: &mut Journal,
    options: &mut Options<'_>,
) -> Result<Minimized, MinimizeError> {
    let progress = Progress::new(input, journal.start())?;
    let mut driver = Driver {
        progress,
        answerer,
        options,
        begin: Instant::now(),
        earlier: Duration::ZERO,
        recorded: Duration::ZERO,
        shown: None,
        reported: HashSet::new(),
        reported_strays: HashSet::new(),
        passed: usize::MAX,
        is_behind: false,
    };
    let mut result = driver.go_through(journal);
    if driver.is_behind {
        let passed = driver.report_best();
        result = result.and_then(|minimized| passed.map(|()| minimized));
    }
    // However the minimization ended, all crashes that were met are reported.
    driver.answerer.finish();
    let filed = driver.report_unclaimed_slips();
    match result {
        Ok(_) | Err(MinimizeError::Interrupted { .. }) => filed.and(result),
        Err(_) => result,
    }
}

struct Driver<'a, 'o> {
    progress: Progress<'a>,
    answerer: &'a mut dyn Answerer,
    options: &'a mut Options<'o>,
    begin: Instant,
    /// Wall time of the minimization before this call (after a resume), as its log tells; it counts
    /// for the time budget.
    earlier: Duration,
    /// Wall time of the minimization that a test line recorded last; zero before the first.
    recorded: Duration,
    /// Time of the last call of the status callback; `None` before the first.
    shown: Option<Instant>,
    /// Keys of the slips (crashes of other bugs) passed to the caller, each with whether its crash
    /// record was included.
    reported: HashSet<(SlipKeys, bool)>,
    /// Keys of the slips (crashes of other bugs) that were passed to the caller from tests which
    /// workers ran ahead but the search did not need; each with whether its crash record was
    /// included.
    reported_strays: HashSet<(SlipKeys, bool)>,
    /// Size of the last best text that was passed to the caller, in bytes; [`usize::MAX`] before
    /// the first.
    passed: usize,
    /// Whether the caller has not yet received the present best text, because a large one is passed
    /// on rarely.
    is_behind: bool,
}

impl Lines for Driver<'_, '_> {
    fn next_line(&mut self) -> Result<Option<Line>, MinimizeError> {
        loop {
            let stopped = self.options.stopped();
            let spent = self.spent();
            let executed = self.progress.texts().counts.executed;
            let what = match self.progress.next_step() {
                NextStep::Nothing => return Ok(None),
                NextStep::NotFailing { last, tries } => {
                    return Err(MinimizeError::NotFailing { last, tries });
                }
                NextStep::Alternating { rate, empty } => {
                    return Err(MinimizeError::Alternating { rate, empty });
                }
                NextStep::Write(Line::End(mut end)) => {
                    end.tests.speculative = self.answerer.finish();
                    self.report_unclaimed_slips()?;
                    return Ok(Some(Line::End(end)));
                }
                NextStep::Write(line) => return Ok(Some(line)),
                NextStep::Interrupted if self.options.stopped() => {
                    return Err(self.interrupted());
                }
                NextStep::Interrupted => {
                    self.progress.end_by_budget();
                    continue;
                }
                _ if stopped => return Err(self.interrupted()),
                NextStep::Test(pending) if pending.known().is_some() => {
                    let known = pending.known();
                    if !self.ends_by_time() {
                        return Ok(self.known_test(known));
                    }
                    continue;
                }
                NextStep::Check(what) => Some(what),
                NextStep::Test(_) if spent => {
                    self.progress.end_by_budget();
                    continue;
                }
                NextStep::Test(_) => None,
            };
            if self.ends_by_time() {
                continue;
            }
            let left = self.options.left(executed);
            let Some((mut answer, hints)) = self.answer(left)? else {
                return Ok(None);
            };
            self.progress.judge_minor_key(&mut answer);
            self.report_slip(answer.slip.as_mut(), what)?;
            self.report_unclaimed_slips()?;
            return Ok(match what {
                Some(what) => Some(check_line(what, &answer)),
                None if self.progress.is_vote(answer.outcome) => {
                    Some(check_line(What::Vote, &answer))
                }
                None => self.test_line(Source::Run, answer, &hints),
            });
        }
    }

    fn continue_with_budget(&mut self) -> bool {
        let more = self.progress.ended_by_budget() && !self.spent();
        if more {
            self.progress.continue_search();
        }
        more
    }
}

impl Driver<'_, '_> {
    fn go_through(&mut self, journal: &mut Journal) -> Result<Minimized, MinimizeError> {
        self.feed_past(journal)?;
        self.show();
        match self.progress.texts().original().len() {
            SLOW.. => self.continue_watched(journal)?,
            _ => self.continue_log(journal)?,
        }
        // There is no next line only after the end line, so there is a result.
        let minimized = self.progress.minimized();
        minimized.ok_or(MinimizeError::Log(LogError::Empty))
    }

    /// Runs and logs all that the minimization still needs. A step of the search that takes long is
    /// interrupted when the caller asks to stop, or when the time budget is used up.
    fn continue_watched(&mut self, journal: &mut Journal) -> Result<(), MinimizeError> {
        let flag = Arc::new(AtomicBool::new(false));
        self.progress.interrupt_by(Arc::clone(&flag));
        let (stop, is_done) = (self.options.stop, AtomicBool::new(false));
        let shown = self.options.shown_in.unwrap_or_default();
        let left = self.options.budget_time;
        let left = left.map(|budget| budget.saturating_sub(self.time() + shown));
        let end = left.and_then(|left| Instant::now().checked_add(left));
        let is_over = || {
            stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
                || end.is_some_and(|end| Instant::now() >= end)
        };
        let watch = || {
            while !is_done.load(Ordering::Relaxed) && !is_over() {
                thread::park_timeout(WATCH_INTERVAL);
            }
            flag.store(true, Ordering::Relaxed);
        };
        thread::scope(|scope| {
            // Without a thread, such a step goes on to its end.
            let watcher = thread::Builder::new().spawn_scoped(scope, watch);
            let result = self.continue_log(journal);
            is_done.store(true, Ordering::Relaxed);
            watcher.iter().for_each(|watcher| watcher.thread().unpark());
            result
        })
    }

    /// Runs and logs, line by line, all that the minimization still needs up to the end of its log.
    fn continue_log(&mut self, journal: &mut Journal) -> Result<(), MinimizeError> {
        while let Some(line) = self.next_line_or_more()? {
            journal.append(&line)?;
            self.feed(&line, None)?;
            (self.options.on_line)(&line);
            self.show();
            // There is none if the outcome does not depend on the input.
            if gives_new_best(&line) && self.progress.reduced().is_some() {
                self.report_new_best()?;
            }
        }
        Ok(())
    }

    /// Brings the state of the minimization up to the end of the lines that the log already has.
    /// Passes the best text (the smallest that fails) to the caller if it differs from the input.
    fn feed_past(&mut self, journal: &mut Journal) -> Result<(), MinimizeError> {
        let past = journal.take_past();
        let workers = self.answerer.workers();
        (self.earlier, self.recorded) = (wall_time(&past, workers), recorded_time(&past));
        for (number, line) in past {
            self.feed(&line, Some(number))?;
        }
        self.reported = self
            .progress
            .slips()
            .iter()
            .map(|keys| (*keys, true))
            .collect();
        match self.progress.reduced() {
            Some(_) => self.report_best(),
            None => Ok(()),
        }
    }

    fn feed(&mut self, line: &Line, number: Option<u64>) -> Result<(), MinimizeError> {
        self.progress.feed(line).map_err(|why| {
            // Lines of this call are always valid, so only earlier lines need a number.
            MinimizeError::Log(LogError::Disagrees {
                line: number.unwrap_or_default(),
                why,
            })
        })?;
        if matches!(line, Line::Check(check) if check.what == What::Baseline)
            && let Some(limit) = self.progress.time_limit()
        {
            self.answerer.limit_time(limit);
        }
        Ok(())
    }

    /// Makes the log line of the pending test without a run: `known` is the outcome of the test,
    /// and how it is known (such as by an earlier test of the same text). `None` if `known` is
    /// `None`, or no test is pending.
    fn known_test(&mut self, known: Option<(Outcome, Source)>) -> Option<Line> {
        let (outcome, source) = known?;
        self.test_line(source, Answer::of(outcome), &Hints::default())
    }

    /// Has the run made that is due, and returns its answer; `left`: how many tests the budget
    /// admits. If the run is abandoned, the minimization is interrupted before it.
    fn answer(&mut self, left: Option<u64>) -> Result<Option<(Answer, Hints)>, MinimizeError> {
        match self.answerer.answer(&self.progress, left) {
            Err(OracleError::Exec(ExecError::Abandoned)) => Err(self.interrupted()),
            answered => Ok(answered?),
        }
    }

    /// Checks whether the caller's budget of tests or of time is used up.
    fn spent(&self) -> bool {
        let executed = self.progress.texts().counts.executed;
        self.options.spent(executed, self.time())
    }

    /// Ends the present stage of the minimization if the budget of time is used up, and returns
    /// true. Returns false if there is time left, or if the stage still needs a run whatever the
    /// time, such as the first run of the input.
    fn ends_by_time(&mut self) -> bool {
        let is_shown = self.options.shown_in.is_some();
        self.options.is_out_of_time(self.time()) && self.progress.end_by_time(is_shown)
    }

    /// Returns the wall time of the minimization so far, over all calls.
    fn time(&self) -> Duration {
        self.earlier + self.options.worked(self.begin)
    }

    fn test_line(&mut self, source: Source, answer: Answer, hints: &Hints) -> Option<Line> {
        let pending = self.progress.texts().pending()?;
        let minor = answer.minor.filter(|_| answer.outcome == Outcome::Fail);
        let reply = Reply {
            minor: minor.filter(|minor| self.progress.minor() != Some(*minor)),
            comparisons: pending.is_observed().then(|| logged(hints)),
            ..Reply::from_answer(source, &answer, self.options.log_inputs)
        };
        let mut line = self.progress.test_line(&reply)?;
        let time = self.time();
        if time >= self.recorded + RECORD_INTERVAL {
            self.recorded = time;
            line.spent_ms = Some(time.as_millis().try_into().unwrap_or(u64::MAX));
        }
        Some(Line::Test(line))
    }

    /// Completes a slip (a crash of another bug) with its crash record and passes it to the caller,
    /// before the log line of its run is written: once per pair of crash keys, and once more with a
    /// record if the first time had none. `what` is the purpose of the check that had the slip,
    /// `None` for a test; only the slip of a test comes with an index.
    fn report_slip(
        &mut self,
        slip: Option<&mut Slip>,
        what: Option<What>,
    ) -> Result<(), MinimizeError> {
        let Some(slip) = slip else { return Ok(()) };
        if self.reported.contains(&(slip.keys, true)) {
            return Ok(());
        }
        self.complete(slip)?;
        if !self.reported.insert((slip.keys, slip.crash.is_some())) {
            return Ok(());
        }
        let test = match what {
            Some(_) => None,
            None => Some(self.progress.texts().tests()),
        };
        (self.options.on_slip)(slip, test).map_err(callback_failed("another crash"))
    }

    /// Passes those slips (crashes of other bugs) to the caller's callback that are in no line of
    /// the log, because they occurred in tests that workers made in advance and the search did not
    /// need. Each pair of crash keys is passed once.
    fn report_unclaimed_slips(&mut self) -> Result<(), MinimizeError> {
        for mut slip in self.answerer.unclaimed_slips() {
            let with_record = (slip.keys, true);
            if self.reported.contains(&with_record) || self.reported_strays.contains(&with_record) {
                continue;
            }
            // If the target can no longer be run, the next test reports it.
            let _ = self.complete(&mut slip);
            if self
                .reported_strays
                .insert((slip.keys, slip.crash.is_some()))
            {
                (self.options.on_slip)(&slip, None).map_err(callback_failed("another crash"))?;
            }
        }
        Ok(())
    }

    /// Adds the crash record to a slip (a crash of another bug) that has none.
    fn complete(&mut self, slip: &mut Slip) -> Result<(), OracleError> {
        if slip.crash.is_none() {
            slip.crash = self.answerer.record(slip)?;
        }
        Ok(())
    }

    /// Passes the best text to the caller. A text of [`LARGE`] bytes or more is passed only if it
    /// is at most half as large as the last one that was passed; otherwise it is passed at the end.
    fn report_new_best(&mut self) -> Result<(), MinimizeError> {
        let size = self.progress.result().len();
        if size >= LARGE && size > self.passed / 2 {
            self.is_behind = true;
            return Ok(());
        }
        self.report_best()
    }

    fn report_best(&mut self) -> Result<(), MinimizeError> {
        let best = self.progress.result();
        (self.passed, self.is_behind) = (best.len(), false);
        (self.options.on_reduce)(best).map_err(callback_failed("the reproducer"))
    }

    /// Calls the caller's status callback, at most once in [`STATUS_INTERVAL`].
    fn show(&mut self) {
        let Some(on_status) = &mut self.options.on_status else {
            return;
        };
        let now = Instant::now();
        if self
            .shown
            .is_none_or(|shown| now - shown >= STATUS_INTERVAL)
        {
            self.shown = Some(now);
            on_status(&self.progress.standing());
        }
    }

    fn interrupted(&self) -> MinimizeError {
        let standing = self.progress.standing();
        MinimizeError::Interrupted {
            size: self.progress.texts().best().len() as u64,
            executed: standing.executed,
            confirming: standing
                .runs
                .filter(|_| standing.phase == MinimizePhase::Confirm),
        }
    }
}

/// Returns the wall time of the minimization that left the lines `past` in its log: the time that a
/// test line recorded last, and that of the checks and tests after it. Runs of several workers
/// overlap, but all tests after a record take at most the interval between two. Logs of older
/// versions have no record; their tests are taken to be run by `workers`, the present number of
/// workers.
pub fn wall_time(past: &[(u64, Line)], workers: u32) -> Duration {
    let (mut tests, mut checks) = (Duration::ZERO, Duration::ZERO);
    let recorded = recorded_time(past);
    for (_, line) in past {
        match line {
            Line::Test(test) if test.spent_ms.is_some() => {
                (tests, checks) = (Duration::ZERO, Duration::ZERO);
            }
            Line::Test(test) => tests += Duration::from_micros(test.us),
            Line::Check(check) => checks += Duration::from_micros(check.us),
            _ => {}
        }
    }
    let most = match recorded.is_zero() {
        true => RECORD_INTERVAL.max(tests / workers.max(1)),
        false => RECORD_INTERVAL,
    };
    recorded + checks + tests.min(most)
}

/// Returns the wall time that a test line recorded last; zero without any.
fn recorded_time(past: &[(u64, Line)]) -> Duration {
    let recorded = past.iter().rev().find_map(|(_, line)| match line {
        Line::Test(test) => test.spent_ms,
        _ => None,
    });
    Duration::from_millis(recorded.unwrap_or(0))
}

/// Checks whether this log line makes another text the best (the smallest failing so far): a
/// `reduce` line, or an empty input that fails.
fn gives_new_best(line: &Line) -> bool {
    match line {
        Line::Reduce(_) => true,
        Line::Check(check) => check.what == What::Axiom && check.outcome == Outcome::Fail,
        _ => false,
    }
}

pub(super) fn check_line(what: What, answer: &Answer) -> Line {
    Line::Check(CheckLine {
        what,
        outcome: answer.outcome,
        us: micros(answer.cost),
        cpu_us: match what {
            What::Baseline => answer.cpu.map(micros),
            What::Axiom | What::Confirm | What::Vote => None,
        },
        read: answer.read.filter(|_| what == What::Baseline),
        slowest_us: None,
        minor: answer.minor,
        cut_off: answer.cut_off,
        process: answer.process,
        slip: answer.slip.as_ref().map(|slip| slip.keys),
        missed: answer.missed,
        passing: false,
    })
}

/// Returns the pairs of operands that were compared in an observed run, in the form in which the
/// log stores them.
fn logged(hints: &Hints) -> Vec<(Base64, Base64)> {
    let pairs = hints.comparisons.iter();
    let pairs = pairs.map(|pair| (Base64(pair.left.clone()), Base64(pair.right.clone())));
    pairs.collect()
}

pub(super) fn micros(cost: Duration) -> u64 {
    cost.as_micros().try_into().unwrap_or(u64::MAX)
}

pub(super) fn callback_failed(what: &'static str) -> impl FnOnce(CallbackError) -> MinimizeError {
    move |source| MinimizeError::Callback { what, source }
}

/// Produces the lines of a log one by one, and can continue a log that ended because of a budget.
pub(super) trait Lines {
    /// Produces and returns the next line of the log, for which it runs the target if needed;
    /// `None` after the end line.
    fn next_line(&mut self) -> Result<Option<Line>, MinimizeError>;

    /// Continues the search if the log ended only because a budget smaller than the present one was
    /// used up. Returns `true` if the search continues.
    fn continue_with_budget(&mut self) -> bool;

    /// Produces and returns the next line of the log like `next_line`; if the log has ended because
    /// of a smaller budget, continues the search first. `None` if that is not possible, or the log
    /// is complete.
    fn next_line_or_more(&mut self) -> Result<Option<Line>, MinimizeError> {
        match self.next_line()? {
            None if self.continue_with_budget() => self.next_line(),
            line => Ok(line),
        }
    }
}
