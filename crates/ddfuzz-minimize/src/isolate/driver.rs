//! Drives a search between a passing and a failing input to its end, and checks that a log belongs
//! to these inputs.

use ddfuzz_delta::Dd;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::driver::{Lines, callback_failed, check_line};
use crate::isolate::progress::{NextStep, Progress};
use crate::isolate::{Isolated, Side, Subject};
use crate::log::{ContentHash, DifferenceRecord, Line, LogError, Source, StartLine, What};
use crate::question::Reply;
use crate::{
    Answer, CallbackError, Journal, Kind, MinimizeError, Options, Oracle, OracleError, Slip,
    SlipKeys,
};
use ddfuzz_exec::ExecError;

/// Callback that stores the new text of one side of a search between a passing and a failing input;
/// it is called with the side (passing or failing) and the text.
pub type OnSide<'a> = Box<dyn FnMut(Side, &[u8]) -> Result<(), CallbackError> + 'a>;

/// Maximizes or isolates between the two inputs of `subject`, by the answers of `oracle`; the first
/// line of `journal` names the goal.
///
/// The steps are: run the failing input three times and the passing input once; run the search
/// until it ends or a budget is used up; test in fresh processes the single deltas (bytes or edits)
/// that the search left open; and confirm both sides in fresh processes, three times or as often as
/// the log's first line says. A budget of time ends each of these steps, but for one run of each
/// side ([`Options::budget_time`]). Each run is a line of the log. Lines that the journal already
/// has are used as answers first. If an earlier call with a smaller budget wrote these lines and
/// ended there, the search continues after them.
/// `on_side` is called with each new text of a side after its `reduce` line is synced, and with
/// both sides once after a resume. [`Options::on_reduce`] is not called.
///
/// # Errors
/// [`MinimizeError::NotFailing`] if no run of the failing input fails;
/// [`MinimizeError::NotPassing`] if the passing input fails; otherwise as
/// [`minimize`](crate::minimize()).
pub fn isolate(
    subject: &Subject,
    oracle: &mut dyn Oracle,
    journal: &mut Journal,
    options: &mut Options<'_>,
    on_side: OnSide<'_>,
) -> Result<Isolated, MinimizeError> {
    let progress = Progress::new(subject, journal.start())?;
    let mut driver = Driver {
        progress,
        oracle,
        options,
        on_side,
        begin: Instant::now(),
        earlier: Duration::ZERO,
        reported: HashSet::new(),
    };
    driver.feed_past(journal.take_past())?;
    while let Some(line) = driver.next_line_or_more()? {
        journal.append(&line)?;
        driver.feed(&line, 0, true)?;
        (driver.options.on_line)(&line);
    }
    let isolated = driver.progress.isolated();
    isolated.ok_or(MinimizeError::Log(LogError::Empty))
}

struct Driver<'a, 'o, 's> {
    progress: Progress,
    oracle: &'a mut dyn Oracle,
    options: &'a mut Options<'o>,
    on_side: OnSide<'s>,
    begin: Instant,
    /// Wall time of the tests and checks that the log had before this call (after a resume); it
    /// counts for the time budget.
    earlier: Duration,
    /// Keys of the slips (crashes of other bugs) that were passed to the caller, by this call or by
    /// an earlier one before a resume. Each comes with whether its crash record was included.
    reported: HashSet<(SlipKeys, bool)>,
}

impl Lines for Driver<'_, '_, '_> {
    fn next_line(&mut self) -> Result<Option<Line>, MinimizeError> {
        let mut room = Vec::new();
        loop {
            let (stopped, spent) = (self.options.stopped(), self.spent());
            if !stopped && self.options.is_out_of_time(self.time()) {
                let is_shown = self.options.shown_in.is_some();
                self.progress.end_by_time(is_shown);
            }
            let (what, answer) = match self.progress.next_step(&mut room) {
                NextStep::Nothing => return Ok(None),
                NextStep::Stop(error) => return Err(error),
                NextStep::Write(line) => return Ok(Some(line)),
                _ if stopped => return Err(self.interrupted()),
                NextStep::Test { pending, .. } if pending.known().is_some() => {
                    return Ok(pending.known().and_then(|(outcome, source)| {
                        self.test_line(source, &Answer::of(outcome))
                    }));
                }
                // Tests that a claim rests on run in fresh processes.
                NextStep::Check { what, text } => {
                    (Some(what), self.oracle.ask_fresh(text, Kind::Deleting))
                }
                NextStep::Test { .. } if spent => {
                    self.progress.end_by_budget();
                    continue;
                }
                NextStep::Test { pending, text } if pending.phase.is_some() => {
                    (None, self.oracle.ask_fresh(text, Kind::Deleting))
                }
                NextStep::Test { text, .. } => (None, self.oracle.ask(text, Kind::Deleting)),
            };
            let answer = match answer {
                Err(OracleError::Exec(ExecError::Abandoned)) => return Err(self.interrupted()),
                answer => answer?,
            };
            if let Some(slip) = &answer.slip {
                self.report_slip(slip, what)?;
            }
            return Ok(match what {
                Some(what) => Some(self.check_line(what, &answer)),
                None => self.test_line(Source::Run, &answer),
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

impl Driver<'_, '_, '_> {
    /// Feeds the lines that the log already has to the state of the search, and passes both sides
    /// (texts) to the caller if they have changed.
    fn feed_past(&mut self, past: Vec<(u64, Line)>) -> Result<(), MinimizeError> {
        for (number, line) in &past {
            self.earlier += Duration::from_micros(match line {
                Line::Check(check) => check.us,
                Line::Test(test) => test.us,
                Line::Start(_) | Line::Reduce(_) | Line::End(_) => 0,
            });
            self.feed(line, *number, false)?;
        }
        let logged = self.progress.slips().iter();
        self.reported = logged.map(|keys| (*keys, true)).collect();
        let moved = past.iter().any(|(_, line)| matches!(line, Line::Reduce(_)));
        if moved {
            self.report_end(Side::Passing)?;
            self.report_end(Side::Failing)?;
        }
        Ok(())
    }

    /// Feeds a log line to the state of the search. If the passing or the failing side changes with
    /// it and `report` is true, passes the text of that side to the caller. Fails if the line
    /// contradicts the state, or if the caller cannot store the text. `number`: the line's number
    /// in the log, for the error.
    fn feed(&mut self, line: &Line, number: u64, report: bool) -> Result<(), MinimizeError> {
        let fed = self.progress.feed(line);
        let moved = fed.map_err(|why| LogError::Disagrees { line: number, why })?;
        match moved.filter(|_| report) {
            Some(side) => self.report_end(side),
            None => Ok(()),
        }
    }

    fn report_end(&mut self, side: Side) -> Result<(), MinimizeError> {
        let text = self.progress.sides().end(side);
        (self.on_side)(side, &text).map_err(callback_failed("a result"))
    }

    /// Checks whether the caller's budget of tests or of time is used up.
    fn spent(&self) -> bool {
        let executed = self.progress.sides().counts.executed;
        self.options.spent(executed, self.time())
    }

    /// Returns the wall time of the search so far, over all calls.
    fn time(&self) -> Duration {
        self.earlier + self.options.worked(self.begin)
    }

    fn check_line(&self, what: What, answer: &Answer) -> Line {
        let mut line = check_line(what, answer);
        if let Line::Check(check) = &mut line {
            check.passing = self.progress.confirms_passing_early();
        }
        line
    }

    fn interrupted(&self) -> MinimizeError {
        let sides = self.progress.sides();
        MinimizeError::Interrupted {
            size: sides.end(sides.goal_side()).len() as u64,
            executed: sides.counts.executed,
            confirming: None,
        }
    }

    fn test_line(&self, source: Source, answer: &Answer) -> Option<Line> {
        let reply = Reply::from_answer(source, answer, self.options.log_inputs);
        self.progress.test_line(&reply).map(Line::Test)
    }

    /// Passes a slip (a crash of another bug) to the caller before the log line of its run is
    /// written, once per pair of crash keys.
    fn report_slip(&mut self, slip: &Slip, what: Option<What>) -> Result<(), MinimizeError> {
        let new = !self.reported.contains(&(slip.keys, true))
            && self.reported.insert((slip.keys, slip.crash.is_some()));
        let test = what.is_none().then(|| self.progress.sides().tests);
        match new {
            true => (self.options.on_slip)(slip, test).map_err(callback_failed("another crash")),
            false => Ok(()),
        }
    }
}

/// Makes the error that the first line of a log is inconsistent, for the reason `why`.
fn at_start(why: &str) -> LogError {
    let why = why.to_owned();
    LogError::Disagrees { line: 1, why }
}

/// Returns the record of a `diff` or `max` search in a log's start line. `Err` if the line belongs
/// to other inputs than those of `subject`, or to another search.
pub(super) fn record_of<'a>(
    subject: &Subject,
    start: &'a StartLine,
) -> Result<&'a DifferenceRecord, LogError> {
    let record = difference_of(start)?;
    if start.search != Dd::NAME {
        return Err(at_start("its search is not dd"));
    }
    check_inputs(subject.passing(), subject.failing(), start, record)?;
    if record.units != subject.units() || record.deltas != subject.deltas() as u64 {
        return Err(at_start("it counts other deltas than these inputs give"));
    }
    Ok(record)
}

/// Returns the record of a `diff` or `max` search in a log's start line; `Err` for a log of `min`.
pub(super) fn difference_of(start: &StartLine) -> Result<&DifferenceRecord, LogError> {
    let record = start.difference.as_ref();
    record.ok_or_else(|| at_start("it is not of a difference"))
}

/// Checks that a log's start line belongs to the inputs `passing` and `failing`, by their hashes;
/// `Err` names the input that does not match.
pub(super) fn check_inputs(
    passing: &[u8],
    failing: &[u8],
    start: &StartLine,
    record: &DifferenceRecord,
) -> Result<(), LogError> {
    let same_failing = start.input_blake3 == ContentHash::of(failing);
    if !same_failing || start.size != failing.len() as u64 {
        return Err(LogError::Mismatch { what: "input" });
    }
    let empty = ContentHash::of(b"");
    let logged = record.passing.as_ref().map_or(empty, |one| one.blake3);
    match logged == ContentHash::of(passing) {
        true => Ok(()),
        false => Err(LogError::Mismatch {
            what: "passing input",
        }),
    }
}
