//! The oracle of trimming: decides by runs whether a candidate keeps the coverage of its file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{KnownRuns, SkipReason, TrimError};
use crate::Features;
use ddfuzz_delta::Outcome;
use ddfuzz_exec::{
    CoverageReporting, Ended, ExecError, Executor, Freshness, Run, RunCoverage, Target, TimeLimit,
    Way, start, start_covered,
};
use ddfuzz_minimize::log::{CoverageRecord, Numbers};
use ddfuzz_minimize::{
    Answer, CutOff, Kind, Oracle, OracleError, PROOF_TIME_FACTOR, Process, Slip, SlipKeys, Slips,
};
use ddfuzz_triage::{Crash, Quick, Triager};

/// The features that a trimmed file must reach, and others that it may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredFeatures {
    /// Features that every run of the trimmed file must reach. If the original does not reach them
    /// in every run, the file is skipped.
    pub required: Features,
    /// Other features that runs of the trimmed file may reach; `None` allows all. Flaky features
    /// must be included, because otherwise candidates that happen to reach one are rejected. The
    /// features of the original are always allowed.
    pub allowed: Option<Arc<Features>>,
}

impl RequiredFeatures {
    /// Makes the requirement for a file's candidates: to reach each of the features `steady`, and
    /// no others but those of `unsteady`.
    pub fn signature(steady: Features, unsteady: &Features) -> RequiredFeatures {
        let allowed = steady.or(unsteady);
        RequiredFeatures {
            required: steady,
            allowed: Some(Arc::new(allowed)),
        }
    }

    /// Makes the requirement that a file reaches the features `kept_for`, which are the reason why
    /// the cleanup keeps it. It may reach any other features.
    pub fn worth(kept_for: Features) -> RequiredFeatures {
        RequiredFeatures {
            required: kept_for,
            allowed: None,
        }
    }
}

/// The condition that every run of a candidate must meet so that the candidate may replace the
/// file: the exit status, and the reached features.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrimCondition {
    /// Exit status that each run of a candidate must have.
    pub exit: i32,
    /// Features that each candidate must reach, and other features that it may reach.
    pub wanted: RequiredFeatures,
    /// Features that a run of the original file reached although they are neither required nor
    /// otherwise allowed; candidates may reach them, too.
    pub of_original: Features,
}

impl TrimCondition {
    /// Makes the condition for the candidates of a file: `exit` is the exit status of the
    /// original's runs, `found` are the features that they reached, and `wanted` says which
    /// features candidates must reach and which others they may reach.
    fn of(exit: i32, found: &Features, wanted: RequiredFeatures) -> TrimCondition {
        let of_original = match &wanted.allowed {
            Some(allowed) => found.less(&wanted.required).less(allowed),
            None => Features::default(),
        };
        TrimCondition {
            exit,
            wanted,
            of_original,
        }
    }

    /// Returns true if a run of a candidate with the required exit status and the features `found`
    /// meets this condition; false if it lacks a required feature or reaches one that is not
    /// allowed.
    pub fn is_met_by(&self, found: &Features) -> bool {
        let required = &self.wanted.required;
        let fits = |allowed: &Arc<Features>| {
            self.of_original
                .has_all(&found.less(required).less(allowed))
        };
        found.has_all(required) && self.wanted.allowed.as_ref().is_none_or(fits)
    }

    /// Returns the outcome for a candidate whose run had the required exit status and the hit
    /// counters `counters` (modulo 256): FAIL if the run reached all required features and only
    /// allowed ones, else PASS.
    pub(super) fn judge(&self, counters: &[u8]) -> Answer {
        // The required features are checked first: they reject most candidates.
        let met = self.wanted.required.are_in(counters)
            && (self.wanted.allowed.is_none() || self.is_met_by(&Features::of_counters(counters)));
        Answer::of(match met {
            true => Outcome::Fail,
            false => Outcome::Pass,
        })
    }

    /// Returns the outcome of a candidate by its `run` and the hit counters `counters` of that run.
    /// `None` if the run did not end with the exit status that the trimming requires, or if it
    /// reported no counters.
    fn judge_run(&self, run: &Run, counters: Option<&[u8]>) -> Option<Answer> {
        let counters = counters.filter(|_| run.ended == Ended::Exit(self.exit))?;
        Some(self.judge(counters))
    }

    /// Converts this condition for trimming a file to its record in the log, for a target with
    /// `places` instrumented places (edges) and the build id `build`.
    pub fn record(&self, places: usize, build: Option<&str>) -> CoverageRecord {
        CoverageRecord {
            exit: self.exit,
            places: places as u64,
            build: build.map(str::to_owned),
            must: Numbers::from(&self.wanted.required),
            may: self.wanted.allowed.as_deref().map(Numbers::from),
            besides: Numbers::from(&self.of_original),
        }
    }
}

impl From<&CoverageRecord> for TrimCondition {
    fn from(record: &CoverageRecord) -> TrimCondition {
        TrimCondition {
            exit: record.exit,
            wanted: RequiredFeatures {
                required: record.must.clone().into(),
                allowed: record.may.clone().map(|may| Arc::new(may.into())),
            },
            of_original: record.besides.clone().into(),
        }
    }
}

/// Number of times that an original file is run, in fresh processes, before it is trimmed: all runs
/// must exit with the same status and reach the required features.
const ORIGINAL_RUNS: usize = 2;
/// Number of times that the original file is run in the process that its candidates will share,
/// before any of them is run; the first of these runs only initializes the process.
const PREFILTER_RUNS: usize = 4;

/// Maps runs of a target to outcomes, for one file at a time.
///
/// - FAIL: a run in a fresh process met the condition: exit status and required features.
/// - PASS: the run ended by itself without meeting it.
/// - UNRESOLVED: the run crashed (a [`Slip`]) or exceeded a limit.
///
/// If one process can run many inputs, it is a prefilter: a candidate that misses required features
/// there is rejected; others are run in a fresh process, which decides. So effects of earlier runs
/// are never attributed to the candidate. The prefilter ignores features that are reached only once
/// per process.
pub struct CoverageOracle {
    /// The fastest executor of the target. If many inputs share its process, it only serves to
    /// reject candidates early.
    quick: Box<dyn Executor>,
    /// Executor that starts a new process for each run, with a longer time limit.
    fresh: Box<dyn Executor>,
    slips: Slips,
    crash_exit: Option<i32>,
    held: TrimCondition,
    prefilter: Prefilter,
    known: KnownRuns,
    /// Number of candidates of the present file that were rejected without a run, because earlier
    /// rounds have run them.
    spared: u64,
}

/// Which candidates need no run in a fresh process, because a run of the quick executor, whose runs
/// may share a process, decides them: all, those that lack certain features, or none.
enum Prefilter {
    /// The quick executor decides about every candidate, since each of its runs has a separate
    /// process.
    Whole,
    /// The quick executor rejects candidates that do not reach the contained features; others are
    /// run in a fresh process.
    Coarse(Features),
    /// The quick executor decides nothing, because the original file does not behave the same in
    /// all of its runs.
    Unusable,
}

/// What a run of a candidate by the quick executor says about the outcome of the candidate.
enum Verdict {
    /// The run decides the outcome, which is given here.
    Decided(Answer),
    /// The run does not decide the outcome: a run in a fresh process must.
    Undecided,
    /// The run did not end with the required exit status, or reported no coverage: the outcome
    /// depends on how the run ended.
    EndedOtherwise,
}

impl CoverageOracle {
    /// Starts the oracle for `target`. Until [`hold`](CoverageOracle::hold) sets the condition of a
    /// file, the condition is exit status 0 and no features.
    ///
    /// # Errors
    /// When the target cannot be started; [`TrimError::NoCoverage`] if it reports no coverage.
    pub fn start(target: &Target, way: Way) -> Result<CoverageOracle, TrimError> {
        let mut patient = target.clone();
        let time = TimeLimit::from(target.limits).times(PROOF_TIME_FACTOR);
        patient.limits = time.within(target.limits);
        let mut fresh = start_covered(&patient, way)?;
        if fresh.cover_blocks()?.is_err() || fresh.counter_count().is_none_or(|places| places == 0)
        {
            return Err(TrimError::NoCoverage { way });
        }
        let mut quick = start(target, Some(way), Freshness::Shared)?.executor;
        quick.report_coverage(CoverageReporting::Every);
        let _ = quick.cover_blocks()?; // `fresh` has shown that they can be covered
        Ok(CoverageOracle {
            prefilter: Prefilter::for_runs(quick.freshness()),
            quick,
            fresh,
            slips: Slips::new(Box::new(Triager::of_target(target, way)?)),
            crash_exit: target.crash_exit,
            held: TrimCondition::default(),
            known: KnownRuns::default(),
            spared: 0,
        })
    }

    /// Prepares for trimming the next file: `known` is what runs in earlier rounds of trimming have
    /// shown of this file's contents. Sets the count of candidates rejected by such runs to 0.
    pub(super) fn begin_file(&mut self, known: KnownRuns) {
        (self.known, self.spared) = (known, 0);
    }

    /// Ends the work on a file. Returns what runs have shown of the file's contents, and how many
    /// of its candidates were rejected without a new run, because runs of earlier rounds have
    /// rejected them.
    pub(super) fn end_file(&mut self) -> (KnownRuns, u64) {
        let spared = std::mem::take(&mut self.spared);
        (std::mem::take(&mut self.known), spared)
    }

    /// Returns the outcome PASS if a known run of the candidate shows that it does not meet the
    /// condition of the present file; else `None`.
    fn known_answer(&mut self, candidate: &[u8]) -> Option<Answer> {
        let rejected = self.known.rejects(candidate, &self.held);
        self.spared += u64::from(rejected);
        rejected.then(|| Answer::of(Outcome::Pass))
    }

    /// Returns the number of instrumented places (edges) of the target.
    pub fn counter_count(&self) -> usize {
        self.fresh.counter_count().unwrap_or_default()
    }

    /// Finds out what a smaller candidate must fulfil to replace the file with the content `input`:
    /// it must reach the required features `wanted`, and have the exit status of the original.
    /// Returns this condition, or else the reason why the file cannot be trimmed. Runs the original
    /// in fresh processes, unless enough such runs are known from earlier rounds.
    pub fn know(
        &mut self,
        input: &[u8],
        wanted: RequiredFeatures,
    ) -> Result<Result<TrimCondition, SkipReason>, ExecError> {
        let known = self.known.met(input, ORIGINAL_RUNS);
        if let Some(met) = known.filter(|met| met.each_time.has_all(&wanted.required)) {
            return Ok(Ok(TrimCondition::of(met.exit, &met.ever, wanted)));
        }
        let mut reached: Option<(i32, Features)> = None;
        for (run, counters) in self.fresh_runs(input, ORIGINAL_RUNS)? {
            let Ended::Exit(exit) = run.ended else {
                return Ok(Err(SkipReason::EndsBadly));
            };
            // Each run would have to be triaged to tell this exit status from a crash.
            let suspect = self.slips.classifier.suspects(run.ended, self.crash_exit);
            if suspect || run.ended.is_crash(self.crash_exit) {
                return Ok(Err(SkipReason::EndsBadly));
            }
            let Some(counters) = counters.filter(|counters| wanted.required.are_in(counters))
            else {
                return Ok(Err(SkipReason::Unsteady));
            };
            let found = Features::of_counters(&counters);
            reached = match reached {
                None => Some((exit, found)),
                Some((before, earlier)) if before == exit => Some((exit, earlier.or(&found))),
                Some(_) => return Ok(Err(SkipReason::Unsteady)),
            };
        }
        let (exit, found) = reached.unwrap_or_default();
        Ok(Ok(TrimCondition::of(exit, &found, wanted)))
    }

    /// Runs the content `text` of a file `times` times in fresh processes; returns each run with
    /// its hit counters, which are `None` if the run did not report them.
    fn fresh_runs(&mut self, text: &[u8], times: usize) -> Result<Vec<CountedRun>, ExecError> {
        let mut all: Vec<CountedRun> = Vec::with_capacity(times);
        while all.len() < times {
            let runs = self.fresh.run_some(&vec![text; times - all.len()])?;
            let covered = self.fresh.covered();
            let counters = |number| counters_of(covered, number).map(<[u8]>::to_vec);
            let runs = runs.into_iter().enumerate();
            all.extend(runs.map(|(number, run)| (run, counters(number))));
        }
        Ok(all)
    }

    /// Sets `held` as the condition that the candidates of the next file must meet, and forgets the
    /// crashes of earlier files.
    pub fn hold(&mut self, held: TrimCondition) {
        self.held = held;
        self.prefilter = Prefilter::for_runs(self.quick.freshness());
        self.slips.forget();
    }

    /// Runs the original `input` by the quick executor, whose runs may share a process, to learn
    /// which of the required features are seen there. A candidate that lacks one of these is then
    /// rejected without a run in a fresh process. If a run of the original has another exit status
    /// than required, or reports no coverage, the quick executor decides nothing for this file.
    pub fn learn_prefilter(&mut self, input: &[u8]) -> Result<(), ExecError> {
        if matches!(self.prefilter, Prefilter::Whole) {
            return Ok(());
        }
        let mut prefiltered = self.held.wanted.required.clone();
        for number in 0..PREFILTER_RUNS {
            let ended = self.quick.run(input)?.ended;
            let counters = self.quick.coverage();
            let Some(counters) = counters.filter(|_| ended == Ended::Exit(self.held.exit)) else {
                self.prefilter = Prefilter::Unusable;
                return Ok(());
            };
            // The first run may reach features that are reached once per process.
            if number > 0 {
                prefiltered = prefiltered.of_which_in(counters);
            }
        }
        self.prefilter = Prefilter::Coarse(prefiltered);
        Ok(())
    }

    /// Returns the features that the content `text` reaches in each of `times` runs in fresh
    /// processes; known runs are not made again. `None` if a run does not meet the condition for
    /// candidates of the present file.
    pub fn rerun(&mut self, text: &[u8], times: usize) -> Result<Option<Features>, ExecError> {
        let known = self.known.met(text, times);
        if let Some(met) = known.filter(|met| met.exit == self.held.exit) {
            return Ok(Some(met.each_time.clone()));
        }
        let mut steady: Option<Features> = None;
        for (run, counters) in self.fresh_runs(text, times)? {
            let (Ended::Exit(exit), Some(counters)) = (run.ended, counters) else {
                return Ok(None);
            };
            let found = Features::of_counters(&counters);
            if exit != self.held.exit || !self.held.is_met_by(&found) {
                return Ok(None);
            }
            steady = Some(steady.map_or(found.clone(), |before| before.and(&found)));
        }
        Ok(steady)
    }

    /// Runs the content `text` `times` times in fresh processes, and returns the features that
    /// every run reached, whether or not the runs meet the condition for candidates.
    pub fn reached(&mut self, text: &[u8], times: usize) -> Result<Features, ExecError> {
        let mut reached: Option<Features> = None;
        for (run, counters) in self.fresh_runs(text, times)? {
            let counters = counters.filter(|_| run.ended.is_exit());
            let found = counters.map_or(Features::default(), |counters| {
                Features::of_counters(&counters)
            });
            reached = Some(reached.map_or(found.clone(), |before| before.and(&found)));
        }
        Ok(reached.unwrap_or_default())
    }

    /// Returns the outcome of a run that did not end with the required exit status; `ended` says
    /// how it ended: UNRESOLVED if it crashed or exceeded a limit, else PASS.
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

    /// Runs a candidate by the quick executor, whose runs may share a process. Returns the outcome
    /// if this run decides it, and `None` if a run in a fresh process must decide.
    fn prefilter(&mut self, candidate: &[u8]) -> Result<Option<Answer>, OracleError> {
        if matches!(self.prefilter, Prefilter::Unusable) {
            return Ok(None);
        }
        let run = self.quick.run(candidate)?;
        let verdict = self
            .prefilter
            .judge(&self.held, &run, self.quick.coverage());
        self.quick_answer(candidate, &run, verdict)
    }

    /// Returns the outcome of `candidate`, given its run `run` by the quick executor and what this
    /// run says (`verdict`); `None` if the run does not decide.
    fn quick_answer(
        &mut self,
        candidate: &[u8],
        run: &Run,
        verdict: Verdict,
    ) -> Result<Option<Answer>, OracleError> {
        let answer = match verdict {
            Verdict::Undecided => return Ok(None),
            Verdict::Decided(answer) => answer,
            Verdict::EndedOtherwise => self.judge(run.ended, candidate)?,
        };
        // The crash classifier has a separate process, so its verdict does not depend on earlier
        // runs.
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

    /// Runs a candidate in a fresh process, and returns the outcome.
    fn decide(&mut self, candidate: &[u8]) -> Result<Answer, OracleError> {
        let run = self.fresh.run(candidate)?;
        let counters = self.fresh.coverage().map(<[u8]>::to_vec);
        self.answer_of(&run, counters.as_deref(), candidate)
    }

    /// Returns the outcome of testing `candidate`, from its `run` in a fresh process and the hit
    /// counters that the run has reported, and records the run for later rounds.
    fn answer_of(
        &mut self,
        run: &Run,
        counters: Option<&[u8]>,
        candidate: &[u8],
    ) -> Result<Answer, OracleError> {
        let answer = match self.held.judge_run(run, counters) {
            Some(answer) => answer,
            None => self.judge(run.ended, candidate)?,
        };
        self.known
            .note(candidate, &self.held, run, counters, answer.outcome);
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

    /// Returns what `run`, a run of a candidate by the quick executor with the hit counters
    /// `counters` (`None` if it reported none), says about the outcome under the condition `held`.
    fn judge(&self, held: &TrimCondition, run: &Run, counters: Option<&[u8]>) -> Verdict {
        let counters = counters.filter(|_| run.ended == Ended::Exit(held.exit));
        match (self, counters) {
            (Prefilter::Coarse(features), Some(counters)) if features.are_in(counters) => {
                Verdict::Undecided
            }
            (Prefilter::Coarse(_), Some(_)) => Verdict::Decided(Answer::of(Outcome::Pass)),
            (Prefilter::Whole, Some(counters)) => Verdict::Decided(held.judge(counters)),
            _ => Verdict::EndedOtherwise,
        }
    }
}

/// A run of the target, with its coverage hit counters if it reported them.
type CountedRun = (Run, Option<Vec<u8>>);

/// Returns the hit counters of the run with the index `number` among the runs of one call of an
/// executor; `None` if it reported none.
fn counters_of(covered: &[RunCoverage], number: usize) -> Option<&[u8]> {
    let of_run = covered.iter().find(|covered| covered.run == number);
    of_run.map(|covered| &covered.counters[..])
}

/// Returns the CPU time of a run, but `None` if it is 0: then it is unknown, as in a process that
/// runs many inputs.
fn known(cpu: Duration) -> Option<Duration> {
    (cpu != Duration::ZERO).then_some(cpu)
}

impl Oracle for CoverageOracle {
    fn ask(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        let begin = Instant::now();
        let answer = match self.known_answer(candidate) {
            Some(answer) => answer,
            None => match self.prefilter(candidate)? {
                Some(answer) => answer,
                None => self.decide(candidate)?,
            },
        };
        Ok(Answer {
            cost: begin.elapsed(),
            ..answer
        })
    }

    /// Runs several candidates by one request to the quick executor, if its runs share a process,
    /// and those whose outcome is then undecided also in a fresh process; else asks for the first
    /// candidate only. Returns the outcomes up to the first that is not PASS.
    fn ask_several(&mut self, candidates: &[(&[u8], Kind)]) -> Result<Vec<Answer>, OracleError> {
        let begin = Instant::now();
        let (Prefilter::Coarse(_), true) = (&self.prefilter, candidates.len() > 1) else {
            let first = candidates.first();
            let answer = first.map(|(candidate, kind)| self.ask(candidate, *kind));
            return Ok(Vec::from_iter(answer.transpose()?));
        };
        let known = |text: &[u8]| self.known.rejects(text, &self.held);
        let known: Vec<bool> = candidates.iter().map(|(text, _)| known(text)).collect();
        let open = candidates.iter().zip(&known).filter(|(_, known)| !**known);
        let open: Vec<&[u8]> = open.map(|((text, _), _)| *text).collect();
        let runs = match open.is_empty() {
            true => Vec::new(),
            false => self.quick.run_some(&open)?,
        };
        let covered = self.quick.covered();
        let verdicts = runs.iter().enumerate().map(|(number, run)| {
            let counters = counters_of(covered, number);
            (*run, self.prefilter.judge(&self.held, run, counters))
        });
        let verdicts: Vec<(Run, Verdict)> = verdicts.collect();
        let (mut verdicts, mut answers) = (verdicts.into_iter(), Vec::<Answer>::new());
        let passes = |answer: &Answer| answer.outcome == Outcome::Pass;
        for ((candidate, _), known) in candidates.iter().zip(known) {
            if !answers.last().is_none_or(passes) {
                break;
            }
            self.spared += u64::from(known);
            let verdict = match known {
                true => None,
                false => verdicts.next(),
            };
            answers.push(match verdict {
                Some((run, verdict)) => match self.quick_answer(candidate, &run, verdict)? {
                    Some(answer) => answer,
                    None => self.decide(candidate)?,
                },
                None if known => Answer::of(Outcome::Pass),
                None => break,
            });
        }
        let cost = begin.elapsed() / u32::try_from(answers.len()).unwrap_or(1).max(1);
        answers.iter_mut().for_each(|answer| answer.cost = cost);
        Ok(answers)
    }

    fn ask_fresh(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        let begin = Instant::now();
        let answer = match self.known_answer(candidate) {
            Some(answer) => answer,
            None => self.decide(candidate)?,
        };
        Ok(Answer {
            cost: begin.elapsed(),
            ..answer
        })
    }

    fn takes_several(&self) -> bool {
        true
    }

    fn ask_fresh_several(
        &mut self,
        candidates: &[(&[u8], Kind)],
    ) -> Result<Vec<Answer>, OracleError> {
        let begin = Instant::now();
        let known = candidates.iter().map(|(text, _)| self.known_answer(text));
        let known: Vec<Option<Answer>> = known.collect();
        let open = candidates.iter().zip(&known);
        let open = open.filter(|(_, known)| known.is_none());
        let texts: Vec<&[u8]> = open.map(|((text, _), _)| *text).collect();
        let runs = match texts.is_empty() {
            true => Vec::new(),
            false => self.fresh.run_some(&texts)?,
        };
        let cost = begin.elapsed() / u32::try_from(runs.len()).unwrap_or(1).max(1);
        let covered = self.fresh.covered();
        let counters = |number| counters_of(covered, number).map(<[u8]>::to_vec);
        let counters: Vec<Option<Vec<u8>>> = (0..runs.len()).map(counters).collect();
        let mut runs = runs.iter().zip(counters);
        let mut answers = Vec::with_capacity(candidates.len());
        for ((text, _), known) in candidates.iter().zip(known) {
            let answer = match known {
                Some(answer) => answer,
                None => match runs.next() {
                    Some((run, counters)) => self.answer_of(run, counters.as_deref(), text)?,
                    None => break,
                },
            };
            answers.push(Answer { cost, ..answer });
        }
        Ok(answers)
    }

    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        self.slips.record(slip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::set;

    fn condition(wanted: RequiredFeatures) -> TrimCondition {
        TrimCondition {
            wanted,
            ..TrimCondition::default()
        }
    }

    #[test]
    fn the_same_signature_is_all_of_it_and_nothing_else() {
        let wanted = condition(RequiredFeatures::signature(set(&[1, 9]), &set(&[20])));
        assert!(wanted.is_met_by(&set(&[1, 9])));
        assert!(wanted.is_met_by(&set(&[1, 9, 20])));
        assert!(!wanted.is_met_by(&set(&[1])));
        assert!(!wanted.is_met_by(&set(&[1, 9, 30])));
    }

    #[test]
    fn what_a_file_is_worth_may_come_with_anything() {
        let wanted = condition(RequiredFeatures::worth(set(&[9])));
        assert!(wanted.is_met_by(&set(&[2, 9])));
        assert!(!wanted.is_met_by(&set(&[1, 2])));
    }

    fn held() -> TrimCondition {
        TrimCondition {
            exit: 3,
            wanted: RequiredFeatures::signature(set(&[9]), &set(&[1])),
            of_original: set(&[40]),
        }
    }

    #[test]
    fn what_the_original_reaches_also_is_allowed_and_not_asked_for() {
        assert!(held().is_met_by(&set(&[1, 9])));
        assert!(held().is_met_by(&set(&[9, 40])));
        assert!(!held().is_met_by(&set(&[9, 41])));
        assert!(!held().is_met_by(&set(&[1, 40])));
    }

    #[test]
    fn a_log_holds_all_of_it() {
        let record = held().record(6, Some("build"));
        assert_eq!(TrimCondition::from(&record), held());
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(
            serde_json::from_str::<CoverageRecord>(&json).unwrap(),
            record
        );
    }
}
