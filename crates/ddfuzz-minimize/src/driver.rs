//! Runs a minimization to its end: asks the oracle, writes the log, and feeds the search.

use ddfuzz_delta::{Hints, Outcome};
use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::log::{Base64, CheckLine, Line, LogError, Source, What};
use crate::options::CallbackError;
use crate::progress::{NextStep, Progress};
use crate::question::{Answerer, Reply, SingleOracle};
use crate::{
    Answer, Journal, MinimizeError, Minimized, Options, Oracle, OracleError, Slip, SlipKeys,
};

/// The least time between two reports of the status.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);

/// Minimizes `input`, whose log is `journal`, by the answers of `oracle`.
///
/// It runs the input three times (more often where it is flaky), then the empty input (the axiom),
/// which is the result if it fails. Then it runs the search until it ends or a budget does. What the
/// search does not prove is tested in fresh processes; the result is confirmed three times in fresh
/// processes. Every run is a line of the log. Lines that the journal has already are taken as answers
/// first. If they end by a budget, and this one is larger, the search goes on.
///
/// # Errors
/// [`MinimizeError::NotFailing`] where no run of the input fails; [`MinimizeError::Alternating`]
/// where a script's outcome does not depend on the input; [`MinimizeError::Interrupted`]
/// where the caller asked to stop; a log that does not follow from this input and search; an
/// oracle or a callback that failed. The log is valid and can be resumed in each of these cases
/// but the log's own.
pub fn minimize(
    input: &[u8],
    oracle: &mut dyn Oracle,
    journal: &mut Journal,
    options: &mut Options<'_>,
) -> Result<Minimized, MinimizeError> {
    drive(input, &mut SingleOracle(oracle), journal, options)
}

/// Minimizes by the answers of `answerer`.
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
        shown: None,
        filed: HashSet::new(),
        strayed: HashSet::new(),
    };
    let result = driver.go_through(journal);
    // However it ended, no crash is lost that was met.
    driver.answerer.finish();
    let filed = driver.file_unclaimed_slips();
    match result {
        Ok(_) | Err(MinimizeError::Interrupted { .. }) => filed.and(result),
        Err(_) => result,
    }
}

struct Driver<'a, 'o> {
    progress: Progress,
    answerer: &'a mut dyn Answerer,
    options: &'a mut Options<'o>,
    begin: Instant,
    /// Time of the tests that were logged before this call.
    earlier: Duration,
    /// When the status was last reported.
    shown: Option<Instant>,
    /// Slips handed over in this call, and whether their record was there.
    filed: HashSet<(SlipKeys, bool)>,
    /// The same of slips that belong to no test.
    strayed: HashSet<(SlipKeys, bool)>,
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
                    self.file_unclaimed_slips()?;
                    return Ok(Some(Line::End(end)));
                }
                NextStep::Write(line) => return Ok(Some(line)),
                NextStep::Test(pending) if pending.known().is_some() => {
                    let known = pending.known();
                    return Ok(known.and_then(|(outcome, source)| {
                        self.test_line(source, Answer::of(outcome), &Hints::default())
                    }));
                }
                _ if stopped => return Err(self.interrupted()),
                NextStep::Check(what) => Some(what),
                NextStep::Test(_) if spent => {
                    self.progress.cease();
                    continue;
                }
                NextStep::Test(_) => None,
            };
            let left = self.options.left(executed);
            let Some((mut answer, hints)) = self.answerer.answer(&self.progress, left)? else {
                return Ok(None);
            };
            self.progress.weigh(&mut answer);
            self.file(answer.slip.as_mut(), what)?;
            self.file_unclaimed_slips()?;
            return Ok(match what {
                Some(what) => Some(check_line(what, &answer)),
                None if self.progress.is_vote(answer.outcome) => {
                    Some(check_line(What::Vote, &answer))
                }
                None => self.test_line(Source::Run, answer, &hints),
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

impl Driver<'_, '_> {
    fn go_through(&mut self, journal: &mut Journal) -> Result<Minimized, MinimizeError> {
        self.go_over_past(journal)?;
        self.show();
        while let Some(line) = self.next_line_or_more()? {
            journal.append(&line)?;
            self.feed(&line, None)?;
            (self.options.on_line)(&line);
            self.show();
            // A test that alternates has none, even if the empty input fails.
            if gives_new_best(&line) && self.progress.reduced().is_some() {
                self.hand_over_best()?;
            }
        }
        // Nothing more is wanted only behind the end line, so that there is a result.
        let minimized = self.progress.minimized();
        minimized.ok_or(MinimizeError::Log(LogError::Empty))
    }

    /// Feeds the lines that the log has already.
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
        })?;
        if matches!(line, Line::Check(check) if check.what == What::Baseline)
            && let Some(limit) = self.progress.time_limit()
        {
            self.answerer.limit_time(limit);
        }
        Ok(())
    }

    /// Whether a budget is used up.
    fn spent(&self) -> bool {
        let executed = self.progress.texts().counts.executed;
        let time = self.earlier + self.options.worked(self.begin);
        self.options.spent(executed, time)
    }

    fn test_line(&self, source: Source, answer: Answer, hints: &Hints) -> Option<Line> {
        let pending = self.progress.texts().pending()?;
        let minor = answer.minor.filter(|_| answer.outcome == Outcome::Fail);
        let reply = Reply {
            minor: minor.filter(|minor| self.progress.minor() != Some(*minor)),
            comparisons: pending.is_observed().then(|| logged(hints)),
            ..Reply::from_answer(source, &answer, self.options.log_inputs)
        };
        self.progress.test_line(&reply).map(Line::Test)
    }

    /// Hands a slip over, once for its keys, before its line is written.
    fn file(&mut self, slip: Option<&mut Slip>, what: Option<What>) -> Result<(), MinimizeError> {
        let Some(slip) = slip else { return Ok(()) };
        if self.filed.contains(&(slip.keys, true)) {
            return Ok(());
        }
        self.complete(slip)?;
        if !self.filed.insert((slip.keys, slip.crash.is_some())) {
            return Ok(());
        }
        let test = match what {
            Some(_) => None,
            None => Some(self.progress.texts().tests()),
        };
        (self.options.on_slip)(slip, test).map_err(not_kept("another crash"))
    }

    /// Hands over the slips of wasted tests, once per keys, if no test slipped into them before.
    fn file_unclaimed_slips(&mut self) -> Result<(), MinimizeError> {
        for mut slip in self.answerer.unclaimed_slips() {
            let with_record = (slip.keys, true);
            if self.filed.contains(&with_record) || self.strayed.contains(&with_record) {
                continue;
            }
            // A target that cannot be run any more is the error of a test, not of this.
            let _ = self.complete(&mut slip);
            if self.strayed.insert((slip.keys, slip.crash.is_some())) {
                (self.options.on_slip)(&slip, None).map_err(not_kept("another crash"))?;
            }
        }
        Ok(())
    }

    /// Adds the record, where another test than the first of its keys has it.
    fn complete(&mut self, slip: &mut Slip) -> Result<(), OracleError> {
        if slip.crash.is_none() {
            slip.crash = self.answerer.record(slip)?;
        }
        Ok(())
    }

    fn hand_over_best(&mut self) -> Result<(), MinimizeError> {
        let best = self.progress.result();
        (self.options.on_reduce)(best).map_err(not_kept("the reproducer"))
    }

    /// Reports the status, unless it did so just now.
    fn show(&mut self) {
        let Some(on_standing) = &mut self.options.on_standing else {
            return;
        };
        let now = Instant::now();
        if self
            .shown
            .is_none_or(|shown| now - shown >= STATUS_INTERVAL)
        {
            self.shown = Some(now);
            on_standing(&self.progress.standing());
        }
    }

    fn interrupted(&self) -> MinimizeError {
        let texts = self.progress.texts();
        MinimizeError::Interrupted {
            size: texts.best().len() as u64,
            executed: texts.counts.executed,
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
        minor: answer.minor,
        cut_off: answer.cut_off,
        process: answer.process,
        slip: answer.slip.as_ref().map(|slip| slip.keys),
    })
}

/// Comparisons as they are logged.
fn logged(hints: &Hints) -> Vec<(Base64, Base64)> {
    let pairs = hints.comparisons.iter();
    let pairs = pairs.map(|pair| (Base64(pair.left.clone()), Base64(pair.right.clone())));
    pairs.collect()
}

pub(super) fn micros(cost: Duration) -> u64 {
    cost.as_micros().try_into().unwrap_or(u64::MAX)
}

pub(super) fn not_kept(what: &'static str) -> impl FnOnce(CallbackError) -> MinimizeError {
    move |source| MinimizeError::Callback { what, source }
}

/// Produces the lines of a log one by one, and can continue after an end by a budget.
pub(super) trait Lines {
    /// The next line, asking the oracle where needed; `None` after the last.
    fn next_line(&mut self) -> Result<Option<Line>, MinimizeError>;

    /// Continues after an end by a smaller budget than this one; returns whether it does.
    fn goes_on(&mut self) -> bool;

    /// The next line, also after an end by a smaller budget.
    fn next_line_or_more(&mut self) -> Result<Option<Line>, MinimizeError> {
        match self.next_line()? {
            None if self.goes_on() => self.next_line(),
            line => Ok(line),
        }
    }
}
