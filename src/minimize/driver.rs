//! Runs a minimization to its end.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::course::Reply;
use super::log::{CheckLine, Line, LogError, Source, What};
use super::options::CallbackError;
use super::progress::{Progress, Want};
use super::{
    Answer, Journal, Kind, MinimizeError, Minimized, Options, Oracle, OracleError, Slip, SlipKeys,
};
use crate::delta::Outcome;

/// Minimizes `input`, whose log is `journal`, with `oracle` as the judge.
///
/// The input is run three times, then the empty input (the axiom), then the search goes on until
/// it ends or a budget does; what its own outcomes do not prove is tested in fresh processes, and
/// the result is confirmed three times likewise. Every run is a line of the log. Lines that the
/// journal held already are taken as answers first. Where the empty input fails, it is the result.
///
/// # Errors
/// [`MinimizeError::NotFailing`] where no run of the input fails; [`MinimizeError::Interrupted`]
/// where the caller asked to stop; a log that does not follow from this input and search; an
/// oracle or a callback that failed. The log is valid and can be resumed in each of these cases
/// but the log's own.
pub fn minimize(
    input: &[u8],
    oracle: &mut dyn Oracle,
    journal: &mut Journal,
    options: &mut Options<'_>,
) -> Result<Minimized, MinimizeError> {
    let progress = Progress::new(input, journal.start())?;
    let mut driver = Driver {
        progress,
        oracle,
        options,
        begin: Instant::now(),
        earlier: Duration::ZERO,
        filed: HashSet::new(),
    };
    driver.go_over_past(journal)?;
    while let Some(line) = driver.next_line()? {
        journal.append(&line)?;
        driver.feed(&line, None)?;
        (driver.options.on_line)(&line);
        if gives_new_best(&line) {
            driver.hand_over_best()?;
        }
    }
    // Nothing more is wanted only behind the end line, so that there is a result.
    let minimized = driver.progress.minimized();
    minimized.ok_or(MinimizeError::Log(LogError::Empty))
}

struct Driver<'a, 'o> {
    progress: Progress,
    oracle: &'a mut dyn Oracle,
    options: &'a mut Options<'o>,
    begin: Instant,
    /// Time of the tests that were logged before this call.
    earlier: Duration,
    /// Slips handed over in this call, and whether their record was there.
    filed: HashSet<(SlipKeys, bool)>,
}

impl Driver<'_, '_> {
    /// Feeds the lines that the log held already.
    fn go_over_past(&mut self, journal: &mut Journal) -> Result<(), MinimizeError> {
        for (number, line) in journal.take_past() {
            let us = match &line {
                Line::Test(test) => test.us,
                Line::Check(check) => check.us,
                _ => 0,
            };
            self.earlier += Duration::from_micros(us);
            self.feed(&line, Some(number))?;
        }
        self.filed = self
            .progress
            .slips()
            .iter()
            .map(|keys| (*keys, true))
            .collect();
        match self.progress.reduced() {
            Some(_) => self.hand_over_best(),
            None => Ok(()),
        }
    }

    fn feed(&mut self, line: &Line, number: Option<u64>) -> Result<(), MinimizeError> {
        self.progress.feed(line).map_err(|why| {
            // A line of our own always follows; its number would be that behind the past ones.
            MinimizeError::Log(LogError::Disagrees {
                line: number.unwrap_or_default(),
                why,
            })
        })
    }

    /// The line that comes next, asking the oracle where it has to be asked.
    fn next_line(&mut self) -> Result<Option<Line>, MinimizeError> {
        loop {
            let stopped = self.options.stopped();
            let executed = self.progress.course().counts.executed;
            let spent = self
                .options
                .spent(executed, self.earlier + self.begin.elapsed());
            let asked = match self.progress.want() {
                Want::Nothing => return Ok(None),
                Want::NotFailing { last, tries } => {
                    return Err(MinimizeError::NotFailing { last, tries });
                }
                Want::Write(line) => return Ok(Some(line)),
                Want::Test { asked, .. } if asked.known().is_some() => {
                    let outcome = asked.known().unwrap_or(Outcome::Unresolved);
                    return Ok(self.test_line(Source::Cache, Answer::of(outcome)));
                }
                _ if stopped => return Err(self.interrupted()),
                Want::Check { what, text } => (Some(what), check(self.oracle, what, text)),
                Want::Test { .. } if spent => {
                    self.progress.cease();
                    continue;
                }
                Want::Test { asked, text } if asked.in_proof() => {
                    (None, self.oracle.ask_fresh(text, asked.kind()))
                }
                Want::Test { asked, text } => (None, self.oracle.ask(text, asked.kind())),
            };
            let (what, answer) = (asked.0, asked.1?);
            self.file(answer.slip.as_ref(), what)?;
            return Ok(match what {
                Some(what) => Some(check_line(what, &answer)),
                None => self.test_line(Source::Run, answer),
            });
        }
    }

    fn test_line(&self, source: Source, answer: Answer) -> Option<Line> {
        let reply = Reply::from_answer(source, &answer, self.options.log_inputs);
        self.progress.test_line(&reply).map(Line::Test)
    }

    /// Hands a slip over, once for its keys, before its line is written.
    fn file(&mut self, slip: Option<&Slip>, what: Option<What>) -> Result<(), MinimizeError> {
        let Some(slip) = slip else { return Ok(()) };
        let with_record = slip.crash.is_some();
        let known = self.filed.contains(&(slip.keys, true));
        if known || !self.filed.insert((slip.keys, with_record)) {
            return Ok(());
        }
        let test = match what {
            Some(_) => None,
            None => Some(self.progress.course().tests()),
        };
        (self.options.on_slip)(slip, test).map_err(not_kept("a slip"))
    }

    fn hand_over_best(&mut self) -> Result<(), MinimizeError> {
        let best = self.progress.course().best();
        (self.options.on_reduce)(best).map_err(not_kept("the reproducer"))
    }

    fn interrupted(&self) -> MinimizeError {
        let course = self.progress.course();
        MinimizeError::Interrupted {
            size: course.best().len() as u64,
            executed: course.counts.executed,
        }
    }
}

/// Whether the best is another one after this line.
fn gives_new_best(line: &Line) -> bool {
    match line {
        Line::Reduce(_) => true,
        Line::Check(check) => check.what == What::Axiom && check.outcome == Outcome::Fail,
        _ => false,
    }
}

/// Runs a text aside from the search.
fn check(oracle: &mut dyn Oracle, what: What, text: &[u8]) -> Result<Answer, OracleError> {
    match what {
        // The axiom proves that a result of one byte is minimal.
        What::Confirm | What::Axiom => oracle.ask_fresh(text, Kind::Deleting),
        What::Baseline | What::Vote => oracle.ask(text, Kind::Deleting),
    }
}

pub(super) fn check_line(what: What, answer: &Answer) -> Line {
    Line::Check(CheckLine {
        what,
        outcome: answer.outcome,
        us: micros(answer.cost),
        minor: answer.minor,
        cut_off: answer.cut_off,
        slip: answer.slip.as_ref().map(|slip| slip.keys),
    })
}

pub(super) fn micros(cost: Duration) -> u64 {
    cost.as_micros().try_into().unwrap_or(u64::MAX)
}

pub(super) fn not_kept(what: &'static str) -> impl FnOnce(CallbackError) -> MinimizeError {
    move |source| MinimizeError::Callback { what, source }
}
