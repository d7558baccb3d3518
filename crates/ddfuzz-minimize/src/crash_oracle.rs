//! The oracle for crashes: a candidate fails if it crashes with the keys of the original crash.
//!
//! A crash with other keys is a slip; each slip is examined once.

use ddfuzz_delta::{Hints, Outcome};
use ddfuzz_exec::{Ended, ExecError, Executor, Freshness, Run, TimeLimit, observe::Observer};
use ddfuzz_triage::keys::frameless_keys;
use ddfuzz_triage::{Class, Crash, Key, Quick};
use std::time::{Duration, Instant};

use crate::crash_classifier::CrashClassifier;
use crate::log::KeyRecord;
use crate::slips::Slips;
use crate::time_limit::hang_search_limit;
use crate::{
    Answer, CutOff, Kind, Oracle, OracleError, PROOF_TIME_FACTOR, Process, Slip, SlipKeys,
};

/// Maximum number of runs of an input under a tracer to make its crash, which may be flaky, occur
/// again.
const CLASSIFY_RUNS: u32 = 10;

/// In the minimization of a hang, a candidate counts as hanging only if it has run for at least
/// this many times as long as the longest run so far that ended by itself.
const PATIENCE: u32 = 4;

/// The crash that a minimization preserves: class, keys, and ending of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCrash {
    /// Class of the crash, such as `hang`, `oom` or `exit:1`.
    pub class: Class,
    /// Major key of the crash, which identifies the bug.
    pub major: Key,
    /// Minor key of the crash, which identifies the call path into the bug.
    pub minor: Key,
    /// How a run with this crash ends: by a signal, an exit status, or a limit.
    pub ended: Ended,
}

impl From<&Crash> for HeldCrash {
    fn from(crash: &Crash) -> HeldCrash {
        HeldCrash {
            class: crash.class.clone(),
            major: crash.keys.major,
            minor: crash.keys.minor,
            ended: crash.ended,
        }
    }
}

impl From<&KeyRecord> for HeldCrash {
    fn from(key: &KeyRecord) -> HeldCrash {
        let ended = match key.class.0.as_str() {
            "hang" => Ended::Timeout,
            "oom" => Ended::OutOfMemory,
            _ => match key.class.exit_status() {
                Some(status) => Ended::Exit(status),
                // Any crash signal will do: keys are computed for all of them.
                None => Ended::Signal(libc::SIGSEGV),
            },
        };
        HeldCrash {
            class: key.class.clone(),
            major: key.major,
            minor: key.minor,
            ended,
        }
    }
}

/// Function that starts an executor that uses a new process for each run and has time limits ten
/// times as long.
pub type FreshExecutor = Box<dyn FnMut() -> Result<Box<dyn Executor>, ExecError> + Send>;

/// Tests whether a target still has one particular crash.
///
/// - PASS: the run ended without a crash.
/// - FAIL: the run crashed with the same class and major key (hash that identifies the bug). If
///   bytes were rewritten, the minor key (hash of the call path) must be the same, too.
/// - UNRESOLVED: the run had another crash (a [`Slip`]), exceeded a limit, had a crash that did not
///   occur again under the tracer, or was ended by a signal that does not count as a crash (such as
///   SIGTERM); or bytes were rewritten and the minor key changed.
pub struct CrashOracle {
    executor: Box<dyn Executor>,
    fresh: FreshExecutor,
    /// Executor for runs in fresh processes with longer time limits; `None` until its first use. It
    /// is not needed where `executor` can run an input in a fresh process.
    patient: Option<Box<dyn Executor>>,
    /// Time limits that apply until one is learned: of the runs of the search, and of the runs in
    /// fresh processes. `None` if runs in fresh processes need another executor, so that the limits
    /// of both executors apply.
    limits: Option<(TimeLimit, TimeLimit)>,
    /// Whether the user set the time limit, so that it is not learned.
    fixed_time: bool,
    /// Time limit learned from runs of the original input; `None` if none is learned, or not yet.
    learned: Option<TimeLimit>,
    slips: Slips,
    held: HeldCrash,
    crash_exit: Option<i32>,
    observing: LazyObserver,
    /// Whether the next run of the search is made in a new process, because it is the first run or
    /// the run before it has crashed.
    begins_anew: bool,
    /// Whether the last run in a fresh process ([`ask_fresh`](Oracle::ask_fresh)) crashed. The next
    /// one then most likely crashes, too, and is made under a tracer at once, which also classifies
    /// the crash.
    fresh_crashed: bool,
    /// Whether a candidate that was first run under a tracer reached a limit. Finding where it
    /// hangs takes the tracer longer than the run itself, so later candidates are first run without
    /// a tracer.
    has_hung: bool,
    /// Longest run of a candidate that ended by itself; measured only if the preserved crash is a
    /// hang.
    longest_end: Duration,
}

impl CrashOracle {
    /// Makes an oracle that tests for the crash `held`. `executor` runs the candidates of the
    /// search, and `fresh` starts the executor for runs in new processes; `classifier` runs
    /// crashing candidates again to compute their keys. `crash_exit` is an exit status that counts
    /// as a crash.
    pub fn new(
        executor: Box<dyn Executor>,
        fresh: FreshExecutor,
        classifier: Box<dyn CrashClassifier>,
        held: HeldCrash,
        crash_exit: Option<i32>,
    ) -> CrashOracle {
        CrashOracle {
            executor,
            fresh,
            patient: None,
            limits: None,
            fixed_time: false,
            learned: None,
            slips: Slips::new(classifier),
            held,
            crash_exit,
            observing: LazyObserver::Impossible,
            begins_anew: true,
            fresh_crashed: false,
            has_hung: false,
            longest_end: Duration::ZERO,
        }
    }

    /// Returns this oracle with an observer that reports which operands a run compares. `start` is
    /// called at its first use.
    pub fn observed_by(self, start: StartObserver) -> CrashOracle {
        CrashOracle {
            observing: LazyObserver::Unstarted(start),
            ..self
        }
    }

    /// Makes the executor of the search also run inputs in fresh processes, if it can, so that no
    /// other executor is started. `search` and `fresh` are the time limits of the search's runs and
    /// of the runs in fresh processes, which hold until a limit is learned.
    pub fn with_one_executor(mut self, search: TimeLimit, fresh: TimeLimit) -> CrashOracle {
        self.limits = Some((search, fresh));
        self
    }

    /// Makes the oracle keep the time limit of its target and ignore limits learned from runs.
    pub fn with_fixed_time(mut self) -> CrashOracle {
        self.fixed_time = true;
        self
    }

    /// Runs `candidate` by the executor of the search, and returns the result of the run. If the
    /// executor does not report the CPU time of a run, as where a process serves many runs, the
    /// wall time takes its place: in a program of one thread it is at least as long.
    fn run(&mut self, candidate: &[u8]) -> Result<Run, ExecError> {
        let begin = Instant::now();
        let run = self.executor.run(candidate)?;
        Ok(match run.cpu {
            Duration::ZERO => Run {
                cpu: begin.elapsed(),
                ..run
            },
            _ => run,
        })
    }

    /// Runs `candidate` in a fresh process, and returns the result of the run. It has a time limit
    /// that is longer than that of the search by the factor [`PROOF_TIME_FACTOR`].
    fn run_fresh(&mut self, candidate: &[u8]) -> Result<Run, ExecError> {
        let runs = self.run_fresh_some(&[candidate])?;
        if let Some(run) = runs.and_then(|runs| runs.last().copied()) {
            return Ok(run);
        }
        let patient = match &mut self.patient {
            Some(patient) => patient,
            none => {
                let patient = none.insert((self.fresh)()?);
                if let Some(limit) = self.learned {
                    patient.limit_time(limit.times(PROOF_TIME_FACTOR));
                }
                patient
            }
        };
        patient.run(candidate)
    }

    /// Runs the first of `candidates`, and as many of the next ones as the executor of the search
    /// takes in one request, up to the first run that does not end normally. Each run has a fresh
    /// process and the time limit of runs in fresh processes. Returns the runs in the order of
    /// `candidates`; `None`, without a run, if the executor of the search cannot run inputs in
    /// fresh processes.
    fn run_fresh_some(&mut self, candidates: &[&[u8]]) -> Result<Option<Vec<Run>>, ExecError> {
        let learned = self.learned.map(|it| (it, it.times(PROOF_TIME_FACTOR)));
        let limits = self.limits.map(|limits| learned.unwrap_or(limits));
        let Some((search, fresh)) = limits else {
            return Ok(None);
        };
        self.executor.limit_time(fresh);
        let runs = self.executor.run_fresh_some(candidates);
        self.executor.limit_time(search);
        let runs = runs?;
        if runs.is_none() {
            self.limits = None;
        }
        Ok(runs)
    }

    /// Tests `candidate` by a single run under a tracer, in a fresh process and within `time`; so a
    /// crash is also classified without a second run. `kind` says how the candidate was made, which
    /// decides which keys its crash must have. Returns `None` if traced runs are not cheap, or if
    /// the run decides nothing: it reached a limit, was ended by a signal that does not count as a
    /// crash, or ended in the same way as the preserved crash, but was not classified as a crash.
    fn ask_traced(
        &mut self,
        candidate: &[u8],
        kind: Kind,
        time: Option<TimeLimit>,
    ) -> Result<Option<Answer>, OracleError> {
        let by_limit = matches!(self.held.ended, Ended::Timeout | Ended::OutOfMemory);
        let Some(time) = time.filter(|_| !by_limit && !self.has_hung) else {
            return Ok(None);
        };
        let Some((quick, cpu)) = self.slips.classifier.key_within(candidate, time)? else {
            return Ok(None);
        };
        let answer = match quick {
            Quick::Crash {
                class,
                major,
                minor,
            } if cut_off_by(&class).is_none() => {
                self.compare(class, SlipKeys { major, minor }, candidate, kind)?
            }
            Quick::Ended(ended @ Ended::Exit(_))
                if !ended.is_crash(self.crash_exit) && ended != self.held.ended =>
            {
                Answer::of(Outcome::Pass)
            }
            Quick::Crash { .. } => {
                self.has_hung = true;
                return Ok(None);
            }
            Quick::Ended(_) => return Ok(None),
        };
        Ok(Some(Answer {
            cpu: Some(cpu),
            ..answer
        }))
    }

    /// Tests `candidate` if the crash to be preserved is a hang: by a run with only a part of the
    /// time limit and, if that run reaches it, by a run under a tracer with the whole limit, which
    /// decides. So only a candidate that hangs takes the whole limit, and only once. Returns
    /// `None`, without a run, if another crash is preserved, or if passing candidates take so long
    /// that the first run would need the whole limit.
    fn ask_hang(
        &mut self,
        candidate: &[u8],
        kind: Kind,
    ) -> Result<Option<(Answer, Run)>, OracleError> {
        let limit = self.search_limit();
        let Some(limit) = limit.filter(|_| self.held.class.is_hang()) else {
            return Ok(None);
        };
        let (part, patience) = (hang_search_limit(limit), self.longest_end * PATIENCE);
        let part = TimeLimit {
            cpu: part.cpu.max(patience),
            wall: part.wall.max(patience),
        };
        let part = part.at_most(limit);
        if part == limit {
            return Ok(None);
        }
        self.executor.limit_time(part);
        let run = self.run(candidate);
        self.executor.limit_time(limit);
        let run = run?;
        let answer = match run.ended {
            Ended::Timeout => match self.slips.classifier.key(candidate)? {
                Quick::Crash {
                    class,
                    major,
                    minor,
                } => self.judge_crash(class, SlipKeys { major, minor }, candidate, kind)?,
                Quick::Ended(ended) => judge_end(ended),
            },
            ended => self.judge(ended, candidate, kind)?,
        };
        Ok(Some((answer, run)))
    }

    /// Returns `answer`, the answer to a test of the search, with the fields that follow from the
    /// test's run: `run` is the result of this run, and `cost` is the wall time of the test. Also
    /// sets `begins_anew`: if the run has crashed, the next test begins a new process.
    fn answered(&mut self, answer: Answer, run: Run, cost: Duration) -> Answer {
        // The classifier runs the input in its own process, independently of this one.
        let named = answer.minor.is_some() || answer.slip.is_some();
        self.begins_anew = named;
        let process = match self.executor.freshness() {
            Freshness::Shared if !named => Process::Shared,
            _ => Process::Own,
        };
        Answer {
            cost,
            cpu: Some(run.cpu),
            read: run.read,
            process,
            ..answer
        }
    }

    /// Returns the time limit of the runs of the search; `None` if it is not known.
    fn search_limit(&self) -> Option<TimeLimit> {
        self.learned.or(self.limits.map(|(search, _)| search))
    }

    /// Returns the time limit of the runs in fresh processes that confirm a result; `None` if it is
    /// not known.
    fn fresh_limit(&self) -> Option<TimeLimit> {
        let learned = self.learned.map(|it| it.times(PROOF_TIME_FACTOR));
        learned.or(self.limits.map(|(_, fresh)| fresh))
    }

    /// Derives the answer (PASS, FAIL or UNRESOLVED) from how the run of `input` ended. If the run
    /// may have crashed, classifies the crash by a run under a tracer. `kind` says whether `input`
    /// was made by deleting only or by rewriting bytes.
    fn judge(&mut self, ended: Ended, input: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        let crash = ended.is_crash(self.crash_exit);
        let as_held = ended == self.held.ended;
        if crash || as_held || self.slips.classifier.suspects(ended, self.crash_exit) {
            let (quick, missed) = self.key(input, crash)?;
            match quick {
                Quick::Crash {
                    class,
                    major,
                    minor,
                } => {
                    let keys = SlipKeys { major, minor };
                    let answer = self.judge_crash(class, keys, input, kind)?;
                    return Ok(match answer.outcome {
                        Outcome::Fail => Answer { missed, ..answer },
                        _ => answer,
                    });
                }
                Quick::Ended(_) if crash || as_held => return Ok(unresolved(cut_off(ended))),
                Quick::Ended(_) => {}
            }
        }
        Ok(judge_end(ended))
    }

    /// Derives the answer for a candidate from the `class` and `keys` of its crash. UNRESOLVED if
    /// the run exceeded a limit while the crash to be kept is of another class; otherwise the
    /// result of [comparing](CrashOracle::compare) the keys. `input` is the candidate's text,
    /// `kind` how it was made.
    fn judge_crash(
        &mut self,
        class: Class,
        keys: SlipKeys,
        input: &[u8],
        kind: Kind,
    ) -> Result<Answer, OracleError> {
        match cut_off_by(&class) {
            Some(limit) if class != self.held.class => Ok(unresolved(Some(limit))),
            _ => self.compare(class, keys, input, kind),
        }
    }

    /// Classifies the crash of `input` by a run under a tracer: returns its class and keys, or how
    /// the traced run ended without a crash. If `crash` is true, `input` has crashed before: runs
    /// it up to ten times until the crash occurs again, and at last without a tracer, since a
    /// program may behave differently under one. Also returns how many traced runs have passed
    /// before the crash occurred again.
    fn key(&mut self, input: &[u8], crash: bool) -> Result<(Quick, u64), OracleError> {
        let mut quick = self.slips.classifier.key(input)?;
        let mut missed = 0;
        for _ in 1..CLASSIFY_RUNS {
            match quick {
                Quick::Ended(Ended::Exit(_)) if crash => missed += 1,
                Quick::Ended(_) if crash => {}
                _ => return Ok((quick, missed)),
            }
            quick = self.slips.classifier.key(input)?;
        }
        match quick {
            Quick::Ended(_) if crash => {
                let untraced = self.slips.classifier.key_untraced(input)?;
                Ok((untraced.unwrap_or(quick), 0))
            }
            _ => Ok((quick, missed)),
        }
    }

    /// Compares a crash on `input` with the crash that must be preserved. Gives FAIL if class and
    /// major key (hash that identifies the bug) are the same and the minor key (hash of the call
    /// path) is, too; if the candidate was made by deleting only (`kind`), its minor key may
    /// differ. Else gives UNRESOLVED and, if class or major key differ, a slip (record of a crash
    /// of another bug). A hang without a known place counts as the preserved hang, if their classes
    /// agree and the preserved one has no known place either.
    fn compare(
        &mut self,
        class: Class,
        keys: SlipKeys,
        input: &[u8],
        kind: Kind,
    ) -> Result<Answer, OracleError> {
        let is_anywhere = class.is_hang() && self.held.major == frameless_keys(&class).major;
        let keys = match is_anywhere && class == self.held.class {
            true => SlipKeys {
                major: self.held.major,
                minor: self.held.minor,
            },
            false => keys,
        };
        if class == self.held.class && keys.major == self.held.major {
            let same = kind == Kind::Deleting || keys.minor == self.held.minor;
            let outcome = if same {
                Outcome::Fail
            } else {
                Outcome::Unresolved
            };
            return Ok(Answer {
                minor: Some(keys.minor),
                ..Answer::of(outcome)
            });
        }
        let slip = self.slips.of(class, keys, input)?;
        Ok(Answer {
            slip: Some(slip),
            ..unresolved(None)
        })
    }
}

impl Oracle for CrashOracle {
    fn ask(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        let begin = Instant::now();
        if self.begins_anew
            && let Some(answer) = self.ask_traced(candidate, kind, self.search_limit())?
        {
            let named = answer.minor.is_some() || answer.slip.is_some();
            self.begins_anew = named;
            // Which runs are traced depends on what the same worker ran before, and so must not
            // show in the log: a run that passes counts as one of a shared process.
            let process = match named {
                true => Process::Own,
                false => Process::Shared,
            };
            return Ok(Answer {
                cost: begin.elapsed(),
                process,
                ..answer
            });
        }
        let (answer, run) = match self.ask_hang(candidate, kind)? {
            Some(asked) => asked,
            None => {
                let run = self.run(candidate)?;
                (self.judge(run.ended, candidate, kind)?, run)
            }
        };
        if answer.outcome == Outcome::Pass && self.held.class.is_hang() {
            self.longest_end = self.longest_end.max(begin.elapsed());
        }
        Ok(self.answered(answer, run, begin.elapsed()))
    }

    /// Tests `candidates` in their order by one request to the executor, up to the first one that
    /// does not pass. Tests only the first one, as [`ask`](Oracle::ask) does, if its run begins a
    /// new process (`begins_anew`).
    fn ask_several(&mut self, candidates: &[(&[u8], Kind)]) -> Result<Vec<Answer>, OracleError> {
        if self.begins_anew || candidates.len() < 2 {
            let first = candidates.first();
            let answer = first.map(|(candidate, kind)| self.ask(candidate, *kind));
            return Ok(Vec::from_iter(answer.transpose()?));
        }
        let begin = Instant::now();
        let texts: Vec<&[u8]> = candidates.iter().map(|(text, _)| *text).collect();
        let runs = self.executor.run_some(&texts)?;
        let each = begin.elapsed() / u32::try_from(runs.len()).unwrap_or(u32::MAX).max(1);
        let mut answers = Vec::with_capacity(runs.len());
        for (run, (candidate, kind)) in runs.into_iter().zip(candidates) {
            let begin = Instant::now();
            let answer = self.judge(run.ended, candidate, *kind)?;
            let answer = self.answered(answer, run, each + begin.elapsed());
            let passed = answer.outcome == Outcome::Pass;
            answers.push(answer);
            if !passed {
                break;
            }
        }
        Ok(answers)
    }

    /// Tests `candidates` in their order by one request to the executor of the search, each in a
    /// process of its own, up to the first run that crashes or does not end normally. Tests only
    /// the first candidate, as [`ask_fresh`](Oracle::ask_fresh) does, if the last run in a fresh
    /// process has crashed (the next one then most likely crashes, too), or if the executor of the
    /// search cannot run inputs in fresh processes.
    fn ask_fresh_several(
        &mut self,
        candidates: &[(&[u8], Kind)],
    ) -> Result<Vec<Answer>, OracleError> {
        let begin = Instant::now();
        let runs = match self.fresh_crashed || candidates.len() < 2 {
            true => None,
            false => {
                let texts: Vec<&[u8]> = candidates.iter().map(|(text, _)| *text).collect();
                self.run_fresh_some(&texts)?
            }
        };
        let Some(runs) = runs else {
            let first = candidates.first();
            let answer = first.map(|(candidate, kind)| self.ask_fresh(candidate, *kind));
            return Ok(Vec::from_iter(answer.transpose()?));
        };
        let each = begin.elapsed() / u32::try_from(runs.len()).unwrap_or(u32::MAX).max(1);
        let mut answers = Vec::with_capacity(runs.len());
        for (run, (candidate, kind)) in runs.into_iter().zip(candidates) {
            let begin = Instant::now();
            let answer = self.judge(run.ended, candidate, *kind)?;
            self.fresh_crashed = answer.minor.is_some() || answer.slip.is_some();
            answers.push(Answer {
                cost: each + begin.elapsed(),
                ..answer
            });
            if self.fresh_crashed {
                break;
            }
        }
        Ok(answers)
    }

    fn takes_several(&self) -> bool {
        let by_limit = matches!(self.held.ended, Ended::Timeout | Ended::OutOfMemory);
        self.executor.freshness() == Freshness::Shared && !by_limit
    }

    fn ask_observed(
        &mut self,
        candidate: &[u8],
        kind: Kind,
    ) -> Result<(Answer, Hints), OracleError> {
        let answer = self.ask(candidate, kind)?;
        // A run that exceeded a limit is not repeated.
        let hints = match answer.cut_off {
            Some(_) => Hints::default(),
            None => self.observing.hints(candidate)?,
        };
        Ok((answer, hints))
    }

    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        let begin = Instant::now();
        // Traced, a crash takes one run instead of two; a run that passes costs less without. Where
        // the search's executor makes no fresh runs, another one would have to be started.
        let traced = match self.fresh_crashed || self.limits.is_none() {
            true => self.ask_traced(candidate, kind, self.fresh_limit())?,
            false => None,
        };
        let answer = match traced {
            Some(answer) => answer,
            None => {
                let ended = self.run_fresh(candidate)?.ended;
                self.judge(ended, candidate, kind)?
            }
        };
        self.fresh_crashed = answer.minor.is_some() || answer.slip.is_some();
        Ok(Answer {
            cpu: None,
            cost: begin.elapsed(),
            ..answer
        })
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        if self.fixed_time {
            return;
        }
        self.learned = Some(learned);
        self.executor.limit_time(learned);
        if let Some(patient) = &mut self.patient {
            patient.limit_time(learned.times(PROOF_TIME_FACTOR));
        }
    }

    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        self.slips.record(slip)
    }
}

/// Returns the answer to a test whose run did not crash: PASS if the run ended by an exit,
/// UNRESOLVED if it exceeded a limit or was ended by a signal that does not count as a crash.
fn judge_end(ended: Ended) -> Answer {
    match ended {
        Ended::Timeout | Ended::OutOfMemory => unresolved(cut_off(ended)),
        // Another process ended the run by a signal that is no crash (PIPE, TERM, …).
        Ended::Signal(_) => unresolved(None),
        Ended::Exit(_) => Answer::of(Outcome::Pass),
    }
}

fn unresolved(cut_off: Option<CutOff>) -> Answer {
    Answer {
        cut_off,
        ..Answer::of(Outcome::Unresolved)
    }
}

/// Returns the limit that a crash of this class exceeded: time for a hang, memory for running out
/// of it; else `None`.
pub(super) fn cut_off_by(class: &Class) -> Option<CutOff> {
    match class.0.as_str() {
        "hang" => Some(CutOff::Time),
        "oom" => Some(CutOff::Memory),
        _ => None,
    }
}

fn cut_off(ended: Ended) -> Option<CutOff> {
    match ended {
        Ended::Timeout => Some(CutOff::Time),
        Ended::OutOfMemory => Some(CutOff::Memory),
        Ended::Exit(_) | Ended::Signal(_) => None,
    }
}

/// Function that starts an observer of the target's comparisons; returns `None` if runs cannot be
/// observed.
pub type StartObserver = Box<dyn FnMut() -> Result<Option<Box<dyn Observer>>, ExecError> + Send>;

/// An observer of the target's comparisons that is started at its first use. Its hints are optional
/// for the search, so a failure to observe is not an error.
pub(super) enum LazyObserver {
    Unstarted(StartObserver),
    Started(Box<dyn Observer>),
    Impossible,
}

impl LazyObserver {
    /// Runs `input` with the observer. Returns the number of bytes of `input` that the run has
    /// read, and the operands of the comparisons that it has made. If runs cannot be observed,
    /// returns hints without a number and without comparisons. Fails only if the run is abandoned.
    pub(super) fn hints(&mut self, input: &[u8]) -> Result<Hints, ExecError> {
        if let LazyObserver::Unstarted(start) = self {
            *self = match start() {
                Ok(Some(observer)) => LazyObserver::Started(observer),
                Err(ExecError::Abandoned) => return Err(ExecError::Abandoned),
                Ok(None) | Err(_) => LazyObserver::Impossible,
            };
        }
        let LazyObserver::Started(observer) = self else {
            return Ok(Hints::default());
        };
        Ok(match observer.observe(input) {
            Err(ExecError::Abandoned) => return Err(ExecError::Abandoned),
            Ok((run, comparisons)) => Hints {
                read: run.read.and_then(|bytes| usize::try_from(bytes).ok()),
                comparisons,
            },
            Err(_) => {
                *self = LazyObserver::Impossible;
                Hints::default()
            }
        })
    }
}
