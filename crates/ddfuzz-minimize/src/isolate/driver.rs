//! Runs a search between two ends to its end, and checks that a log is about these inputs.

use ddfuzz_delta::Dd;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::driver::{Lines, check_line, not_kept};
use crate::isolate::progress::{NextStep, Progress};
use crate::isolate::{Isolated, Side, Subject};
use crate::log::{ContentHash, DifferenceRecord, Line, LogError, Source, StartLine, What};
use crate::question::Reply;
use crate::{Answer, CallbackError, Journal, Kind, MinimizeError, Options, Oracle, Slip, SlipKeys};

/// Takes a new text of one end.
pub type OnSide<'a> = Box<dyn FnMut(Side, &[u8]) -> Result<(), CallbackError> + 'a>;

/// Maximizes or isolates between the inputs of `subject`, as the first line of `journal` says,
/// by the answers of `oracle`.
///
/// The failing input is run three times, then the passing one (the axiom); then the search goes on
/// until it ends or a budget does; what its own outcomes do not prove is tested in fresh processes,
/// and the ends are confirmed three times likewise. Every run is a line of the log; lines that the
/// journal has already are taken as answers first; if they end by a budget, and this one is larger,
/// the search goes on. `on_side` is called with each new text of an
/// end after its `reduce` line is synced, and with both once after a resume;
/// [`Options::on_reduce`] is not called.
///
/// # Errors
/// [`MinimizeError::NotFailing`] where no run of the failing input fails,
/// [`MinimizeError::NotPassing`] where the passing one fails; else as
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
        handed: HashSet::new(),
    };
    driver.take_up(journal.take_past())?;
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
    /// Time of the tests that were logged before this call.
    earlier: Duration,
    /// Slips handed over in this call or before, and whether with their record.
    handed: HashSet<(SlipKeys, bool)>,
}

impl Lines for Driver<'_, '_, '_> {
    fn next_line(&mut self) -> Result<Option<Line>, MinimizeError> {
        let mut room = Vec::new();
        loop {
            let (stopped, spent) = (self.options.stopped(), self.spent());
            let (what, answer) = match self.progress.next_step(&mut room) {
                NextStep::Nothing => return Ok(None),
                NextStep::Stop(error) => return Err(error),
                NextStep::Write(line) => return Ok(Some(line)),
                NextStep::Test { pending, .. } if pending.known().is_some() => {
                    return Ok(pending.known().and_then(|(outcome, source)| {
                        self.test_line(source, &Answer::of(outcome))
                    }));
                }
                _ if stopped => return Err(self.interrupted()),
                // What a claim rests on has a process of its own.
                NextStep::Check { what, text } => {
                    (Some(what), self.oracle.ask_fresh(text, Kind::Deleting)?)
                }
                NextStep::Test { .. } if spent => {
                    self.progress.cease();
                    continue;
                }
                NextStep::Test { pending, text } if pending.phase.is_some() => {
                    (None, self.oracle.ask_fresh(text, Kind::Deleting)?)
                }
                NextStep::Test { text, .. } => (None, self.oracle.ask(text, Kind::Deleting)?),
            };
            if let Some(slip) = &answer.slip {
                self.hand_over_slip(slip, what)?;
            }
            return Ok(match what {
                Some(what) => Some(check_line(what, &answer)),
                None => self.test_line(Source::Run, &answer),
            });
        }
    }

    fn goes_on(&mut self) -> bool {
        let more = self.progress.can_go_on() && !self.spent();
        if more {
            self.progress.go_on();
        }
        more
    }
}

impl Driver<'_, '_, '_> {
    /// Feeds the lines that the log has already.
    fn take_up(&mut self, past: Vec<(u64, Line)>) -> Result<(), MinimizeError> {
        for (number, line) in &past {
            self.earlier += Duration::from_micros(match line {
                Line::Check(check) => check.us,
                Line::Test(test) => test.us,
                Line::Start(_) | Line::Reduce(_) | Line::End(_) => 0,
            });
            self.feed(line, *number, false)?;
        }
        let logged = self.progress.slips().iter();
        self.handed = logged.map(|keys| (*keys, true)).collect();
        let moved = past.iter().any(|(_, line)| matches!(line, Line::Reduce(_)));
        if moved {
            self.hand_over(Side::Passing)?;
            self.hand_over(Side::Failing)?;
        }
        Ok(())
    }

    /// Feeds a line; where an end moves with it, `tells` says whether to hand that over.
    fn feed(&mut self, line: &Line, number: u64, tells: bool) -> Result<(), MinimizeError> {
        let fed = self.progress.feed(line);
        let moved = fed.map_err(|why| LogError::Disagrees { line: number, why })?;
        match moved.filter(|_| tells) {
            Some(side) => self.hand_over(side),
            None => Ok(()),
        }
    }

    fn hand_over(&mut self, side: Side) -> Result<(), MinimizeError> {
        let text = self.progress.sides().end(side);
        (self.on_side)(side, &text).map_err(not_kept("a result"))
    }

    /// Whether a budget is used up.
    fn spent(&self) -> bool {
        let executed = self.progress.sides().counts.executed;
        let time = self.earlier + self.options.worked(self.begin);
        self.options.spent(executed, time)
    }

    fn interrupted(&self) -> MinimizeError {
        let sides = self.progress.sides();
        MinimizeError::Interrupted {
            size: sides.end(sides.sought()).len() as u64,
            executed: sides.counts.executed,
        }
    }

    fn test_line(&self, source: Source, answer: &Answer) -> Option<Line> {
        let reply = Reply::from_answer(source, answer, self.options.log_inputs);
        self.progress.test_line(&reply).map(Line::Test)
    }

    /// Hands a slip over, once for its keys, before its line is written.
    fn hand_over_slip(&mut self, slip: &Slip, what: Option<What>) -> Result<(), MinimizeError> {
        let new = !self.handed.contains(&(slip.keys, true))
            && self.handed.insert((slip.keys, slip.crash.is_some()));
        let test = what.is_none().then(|| self.progress.sides().tests);
        match new {
            true => (self.options.on_slip)(slip, test).map_err(not_kept("another crash")),
            false => Ok(()),
        }
    }
}

/// The first line does not hold.
fn at_start(why: &str) -> LogError {
    let why = why.to_owned();
    LogError::Disagrees { line: 1, why }
}

/// What a start line says of the difference, if it is about this one.
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

/// What a start line says of the difference.
pub(super) fn difference_of(start: &StartLine) -> Result<&DifferenceRecord, LogError> {
    let record = start.difference.as_ref();
    record.ok_or_else(|| at_start("it is not of a difference"))
}

/// Whether a start line is about these inputs.
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
