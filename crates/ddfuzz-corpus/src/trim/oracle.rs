//! The oracle of trimming: whether a candidate keeps the coverage of its file.

use std::time::{Duration, Instant};

use super::{RequiredFeatures, SkipReason, TrimCondition, TrimError};
use crate::Features;
use ddfuzz_delta::Outcome;
use ddfuzz_exec::{
    CoverageReporting, Ended, ExecError, Executor, Freshness, Target, TimeLimit, Way, start,
    start_covered,
};
use ddfuzz_minimize::{
    Answer, CutOff, Kind, Oracle, OracleError, PROOF_TIME_FACTOR, Process, Slip, SlipKeys, Slips,
};
use ddfuzz_triage::{Crash, Quick, Triager};

/// Runs of the original in fresh processes before it is trimmed.
const KNOWING: usize = 2;
/// Runs of it in the shared process; the first one only does what happens once in a process.
const SIFTING: usize = 4;

/// Maps runs of a target to outcomes for one file of a corpus.
///
/// - FAIL: a run in a fresh process met the condition: exit status and required features.
/// - PASS: it ended by itself, and did not.
/// - UNRESOLVED: a crash (a [`Slip`]), or a run that was cut off.
///
/// Where the way of execution runs many inputs in one process, that process is a prefilter: a
/// candidate that does not reach the required features there is refused; any other is run in a
/// fresh process, which decides. So effects of earlier runs are never taken for the candidate's
/// own. Features that are reached only once in a process are not asked of the prefilter.
pub struct CoverageOracle {
    /// As fast as the way allows: a prefilter where many inputs share one process.
    quick: Box<dyn Executor>,
    /// A process for each run, with a longer time limit.
    fresh: Box<dyn Executor>,
    slips: Slips,
    crash_exit: Option<i32>,
    held: TrimCondition,
    prefilter: Prefilter,
}

/// How the quick executor decides.
enum Prefilter {
    /// On everything: each of its runs has a separate process.
    Whole,
    /// By these of the required features. Candidates that reach them are run in a fresh process.
    Coarse(Features),
    /// On nothing: there the original does not behave the same each time.
    Torn,
}

impl CoverageOracle {
    /// An oracle for `target`, which is run by `way`; it has the empty condition.
    ///
    /// # Errors
    /// When the target cannot be started; [`TrimError::NoCoverage`] where it tells none.
    pub fn start(target: &Target, way: Way) -> Result<CoverageOracle, TrimError> {
        let mut patient = target.clone();
        let time = TimeLimit::from(target.limits).times(PROOF_TIME_FACTOR);
        patient.limits = time.within(target.limits);
        let fresh = start_covered(&patient, way)?;
        if fresh.places().is_none_or(|places| places == 0) {
            return Err(TrimError::NoCoverage { way });
        }
        let mut quick = start(target, Some(way), Freshness::Shared)?.executor;
        quick.report_coverage(CoverageReporting::Every);
        Ok(CoverageOracle {
            prefilter: Prefilter::for_runs(quick.freshness()),
            quick,
            fresh,
            slips: Slips::new(Box::new(Triager::of_target(target, way)?)),
            crash_exit: target.crash_exit,
            held: TrimCondition::nothing(),
        })
    }

    /// How many instrumented places the target has.
    pub fn places(&self) -> usize {
        self.fresh.places().unwrap_or_default()
    }

    /// The condition for `input` with the required features `wanted`, from its runs in fresh
    /// processes; or why it cannot be trimmed.
    ///
    /// # Errors
    /// When the target cannot be run any more.
    pub fn know(
        &mut self,
        input: &[u8],
        wanted: RequiredFeatures,
    ) -> Result<Result<TrimCondition, SkipReason>, ExecError> {
        let mut reached: Option<(i32, Features)> = None;
        for _ in 0..KNOWING {
            let run = self.fresh.run(input)?;
            let Ended::Exit(exit) = run.ended else {
                return Ok(Err(SkipReason::EndsBadly));
            };
            // A status that may be a crash could not be told from one without naming each run.
            let suspect = self.slips.classifier.suspects(run.ended, self.crash_exit);
            if suspect || run.ended.is_crash(self.crash_exit) {
                return Ok(Err(SkipReason::EndsBadly));
            }
            let Some(counters) = self.fresh.coverage() else {
                return Ok(Err(SkipReason::Unsteady));
            };
            if !wanted.must.are_in(counters) {
                return Ok(Err(SkipReason::Unsteady));
            }
            let found = Features::of_counters(counters);
            reached = match reached {
                None => Some((exit, found)),
                Some((before, earlier)) if before == exit => Some((exit, earlier.or(&found))),
                Some(_) => return Ok(Err(SkipReason::Unsteady)),
            };
        }
        let (exit, found) = reached.unwrap_or_default();
        let besides = match &wanted.may {
            Some(may) => found.less(&wanted.must).less(may),
            None => Features::default(),
        };
        Ok(Ok(TrimCondition {
            exit,
            wanted,
            besides,
        }))
    }

    /// Sets the condition, and forgets the slips of earlier files.
    pub fn hold(&mut self, held: TrimCondition) {
        self.held = held;
        self.prefilter = Prefilter::for_runs(self.quick.freshness());
        self.slips.forget();
    }

    /// Finds out by which features candidates of `input` can be prefiltered.
    ///
    /// # Errors
    /// When the target cannot be run any more.
    pub fn learn_prefilter(&mut self, input: &[u8]) -> Result<(), ExecError> {
        if matches!(self.prefilter, Prefilter::Whole) {
            return Ok(());
        }
        let mut prefiltered = self.held.wanted.must.clone();
        for number in 0..SIFTING {
            let ended = self.quick.run(input)?.ended;
            let Some(counters) = self.quick.coverage() else {
                self.prefilter = Prefilter::Torn;
                return Ok(());
            };
            if ended != Ended::Exit(self.held.exit) {
                self.prefilter = Prefilter::Torn;
                return Ok(());
            }
            // What happens once in a process has happened then.
            if number > 0 {
                prefiltered = prefiltered.of_which_in(counters);
            }
        }
        self.prefilter = Prefilter::Coarse(prefiltered);
        Ok(())
    }

    /// The features that all of `times` runs in fresh processes reach; `None` where one of them
    /// does not meet the condition.
    ///
    /// # Errors
    /// When the target cannot be run any more.
    pub fn steady(&mut self, text: &[u8], times: usize) -> Result<Option<Features>, ExecError> {
        let mut steady: Option<Features> = None;
        for _ in 0..times {
            let run = self.fresh.run(text)?;
            let counters = self.fresh.coverage();
            let (Ended::Exit(exit), Some(counters)) = (run.ended, counters) else {
                return Ok(None);
            };
            let found = Features::of_counters(counters);
            if exit != self.held.exit || !self.held.is_met_by(&found) {
                return Ok(None);
            }
            steady = Some(steady.map_or(found.clone(), |before| before.and(&found)));
        }
        Ok(steady)
    }

    /// The features that all of `times` runs in fresh processes reach, whatever the condition is.
    ///
    /// # Errors
    /// When the target cannot be run any more.
    pub fn reached(&mut self, text: &[u8], times: usize) -> Result<Features, ExecError> {
        let mut reached: Option<Features> = None;
        for _ in 0..times {
            let run = self.fresh.run(text)?;
            let counters = self.fresh.coverage().filter(|_| run.ended.is_exit());
            let found = counters.map_or(Features::default(), Features::of_counters);
            reached = Some(reached.map_or(found.clone(), |before| before.and(&found)));
        }
        Ok(reached.unwrap_or_default())
    }

    /// The outcome of a run that did not end with the required status.
    fn judge(&mut self, ended: Ended, input: &[u8]) -> Result<Answer, OracleError> {
        let crash = ended.is_crash(self.crash_exit);
        if crash || self.slips.classifier.suspects(ended, self.crash_exit) {
            match self.slips.classifier.key(input)? {
                Quick::Crash {
                    class,
                    major,
                    minor,
                } => {
                    let keys = SlipKeys { major, minor };
                    let slip = self.slips.of(class, keys, input)?;
                    return Ok(Answer {
                        slip: Some(slip),
                        ..Answer::of(Outcome::Unresolved)
                    });
                }
                Quick::Ended(_) if crash => return Ok(Answer::of(Outcome::Unresolved)),
                Quick::Ended(_) => {}
            }
        }
        let cut_off = match ended {
            Ended::Timeout => Some(CutOff::Time),
            Ended::OutOfMemory => Some(CutOff::Memory),
            Ended::Exit(_) => return Ok(Answer::of(Outcome::Pass)),
            Ended::Signal(_) => None,
        };
        Ok(Answer {
            cut_off,
            ..Answer::of(Outcome::Unresolved)
        })
    }

    /// Asks the quick executor; `None` where a fresh process has to decide.
    fn prefilter(&mut self, candidate: &[u8]) -> Result<Option<Answer>, OracleError> {
        if matches!(self.prefilter, Prefilter::Torn) {
            return Ok(None);
        }
        let run = self.quick.run(candidate)?;
        let counters = self.quick.coverage();
        let answer = match (&self.prefilter, counters) {
            (Prefilter::Coarse(prefiltered), Some(counters))
                if run.ended == Ended::Exit(self.held.exit) =>
            {
                if prefiltered.are_in(counters) {
                    return Ok(None);
                }
                Answer::of(Outcome::Pass)
            }
            (Prefilter::Whole, Some(counters)) if run.ended == Ended::Exit(self.held.exit) => {
                self.held.judge(counters)
            }
            _ => self.judge(run.ended, candidate)?,
        };
        // The classifier runs in a process of its own: what it has named does not rest on ours.
        let process = match (&self.prefilter, &answer.slip) {
            (Prefilter::Whole, _) | (_, Some(_)) => Process::Own,
            _ => Process::Shared,
        };
        Ok(Some(Answer {
            process,
            cpu: known(run.cpu),
            read: run.read,
            ..answer
        }))
    }

    /// Asks a fresh process.
    fn decide(&mut self, candidate: &[u8]) -> Result<Answer, OracleError> {
        let run = self.fresh.run(candidate)?;
        let answer = match self.fresh.coverage() {
            Some(counters) if run.ended == Ended::Exit(self.held.exit) => self.held.judge(counters),
            _ => self.judge(run.ended, candidate)?,
        };
        Ok(Answer {
            cpu: known(run.cpu),
            read: run.read,
            ..answer
        })
    }
}

impl Prefilter {
    fn for_runs(freshness: Freshness) -> Prefilter {
        match freshness {
            Freshness::Shared => Prefilter::Coarse(Features::default()),
            Freshness::Fresh => Prefilter::Whole,
        }
    }
}

/// A process that serves many runs does not tell the CPU time of one.
fn known(cpu: Duration) -> Option<Duration> {
    (cpu != Duration::ZERO).then_some(cpu)
}

impl Oracle for CoverageOracle {
    fn ask(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        let begin = Instant::now();
        let answer = match self.prefilter(candidate)? {
            Some(answer) => answer,
            None => self.decide(candidate)?,
        };
        Ok(Answer {
            cost: begin.elapsed(),
            ..answer
        })
    }

    fn ask_fresh(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        let begin = Instant::now();
        let answer = self.decide(candidate)?;
        Ok(Answer {
            cost: begin.elapsed(),
            ..answer
        })
    }

    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        self.slips.record(slip)
    }
}
