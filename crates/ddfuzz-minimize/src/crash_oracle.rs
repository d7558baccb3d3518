//! The oracle that keeps a crash by its keys: a candidate fails if it crashes with the same key.
//!
//! Other crashes that candidates run into are slips; each is examined once.

use ddfuzz_delta::{Hints, Outcome};
use ddfuzz_exec::{Ended, ExecError, Executor, Freshness, TimeLimit, observe::Observer};
use ddfuzz_triage::{Class, Crash, Key, Quick, Triager, Verdict};
use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::log::KeyRecord;
use crate::{Answer, CutOff, Kind, Oracle, OracleError, PATIENCE, Process, Slip, SlipKeys};

/// How many traced runs a crash gets to occur again.
const NAMING: u32 = 10;

/// The crash that a minimization keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCrash {
    /// Its class.
    pub class: Class,
    /// Its major key: which bug.
    pub major: Key,
    /// Its minor key: by which path.
    pub minor: Key,
    /// How its runs end.
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
            class => match class.strip_prefix("exit:").map(str::parse) {
                Some(Ok(status)) => Ended::Exit(status),
                // Which signal does not matter: all that are crashes are keyed.
                _ => Ended::Signal(libc::SIGSEGV),
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

/// Starts an executor with a process for each run, and time limits ten times as long.
pub type FreshExecutor = Box<dyn FnMut() -> Result<Box<dyn Executor>, ExecError> + Send>;

/// Maps runs of a target to outcomes for one crash.
///
/// - PASS: the run ended by itself without a crash.
/// - FAIL: it crashed with the held class and major key, and the held minor key where bytes were
///   rewritten.
/// - UNRESOLVED: another crash (a [`Slip`]), a run over its limits, or a crash that did not occur
///   again when it was traced.
pub struct CrashOracle {
    executor: Box<dyn Executor>,
    fresh: FreshExecutor,
    /// Started when it is first asked.
    patient: Option<Box<dyn Executor>>,
    /// The limit on time is the user's.
    fixed_time: bool,
    /// The limit on time that was learned.
    learned: Option<TimeLimit>,
    slips: Slips,
    held: HeldCrash,
    crash_exit: Option<i32>,
    observing: LazyObserver,
}

impl CrashOracle {
    /// An oracle for the crash `held`; `crash_exit` is the exit status that counts as a crash.
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
            fixed_time: false,
            learned: None,
            slips: Slips::new(classifier),
            held,
            crash_exit,
            observing: LazyObserver::Impossible,
        }
    }

    /// The same oracle, which can tell what runs compare: `start` is called at the first question
    /// for that.
    pub fn observed_by(self, start: StartObserver) -> CrashOracle {
        CrashOracle {
            observing: LazyObserver::Unstarted(start),
            ..self
        }
    }

    /// The same with the limit on time that it has, which is not to be learned.
    pub fn with_fixed_time(mut self) -> CrashOracle {
        self.fixed_time = true;
        self
    }

    /// The outcome of a run that ended like this.
    fn judge(&mut self, ended: Ended, input: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        let crash = ended.is_crash(self.crash_exit);
        let as_held = ended == self.held.ended;
        if crash || as_held || self.slips.keyer.suspects(ended, self.crash_exit) {
            match self.key(input, crash)? {
                Quick::Crash {
                    class,
                    major,
                    minor,
                } => {
                    if let Some(limit) = cut_off_by(&class)
                        && class != self.held.class
                    {
                        return Ok(unresolved(Some(limit)));
                    }
                    return self.compare(class, SlipKeys { major, minor }, input, kind);
                }
                Quick::Ended(_) if crash || as_held => return Ok(unresolved(cut_off(ended))),
                Quick::Ended(_) => {}
            }
        }
        Ok(match ended {
            Ended::Timeout | Ended::OutOfMemory => unresolved(cut_off(ended)),
            // A signal that is no crash (PIPE, TERM, …) ended the run from outside.
            Ended::Signal(_) => unresolved(None),
            Ended::Exit(_) => Answer::of(Outcome::Pass),
        })
    }

    /// Classifies the crash of a run. It repeats the run, because a flaky crash does not occur each time.
    fn key(&mut self, input: &[u8], crash: bool) -> Result<Quick, OracleError> {
        let mut quick = self.slips.keyer.key(input)?;
        for _ in 1..NAMING {
            if !crash || matches!(quick, Quick::Crash { .. }) {
                break;
            }
            quick = self.slips.keyer.key(input)?;
        }
        Ok(quick)
    }

    /// The outcome of a crash with these keys.
    fn compare(
        &mut self,
        class: Class,
        keys: SlipKeys,
        input: &[u8],
        kind: Kind,
    ) -> Result<Answer, OracleError> {
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
        let run = self.executor.run(candidate)?;
        // A process that serves many runs does not tell the CPU time of one; it is not above this,
        // unless by threads.
        let cpu = match run.cpu {
            Duration::ZERO => begin.elapsed(),
            cpu => cpu,
        };
        let answer = self.judge(run.ended, candidate, kind)?;
        // The classifier runs the input in a process of its own: its answer does not depend on ours.
        let named = answer.minor.is_some() || answer.slip.is_some();
        let process = match self.executor.freshness() {
            Freshness::Shared if !named => Process::Shared,
            _ => Process::Own,
        };
        Ok(Answer {
            cost: begin.elapsed(),
            cpu: Some(cpu),
            read: run.read,
            process,
            ..answer
        })
    }

    fn ask_observed(
        &mut self,
        candidate: &[u8],
        kind: Kind,
    ) -> Result<(Answer, Hints), OracleError> {
        let answer = self.ask(candidate, kind)?;
        // A run that was cut off would only take its time once more.
        let hints = match answer.cut_off {
            Some(_) => Hints::default(),
            None => self.observing.hints(candidate),
        };
        Ok((answer, hints))
    }

    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        let begin = Instant::now();
        let patient = match &mut self.patient {
            Some(patient) => patient,
            none => {
                let patient = none.insert((self.fresh)()?);
                if let Some(learned) = self.learned {
                    patient.limit_time(learned.times(PATIENCE));
                }
                patient
            }
        };
        let ended = patient.run(candidate)?.ended;
        let answer = self.judge(ended, candidate, kind)?;
        Ok(Answer {
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
            patient.limit_time(learned.times(PATIENCE));
        }
    }

    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        self.slips.record(slip)
    }
}

fn unresolved(cut_off: Option<CutOff>) -> Answer {
    Answer {
        cut_off,
        ..Answer::of(Outcome::Unresolved)
    }
}

/// The limit that a run of this class has gone over.
fn cut_off_by(class: &Class) -> Option<CutOff> {
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

/// Classifies a crashing input: runs it again under a tracer and computes the keys of its crash.
pub trait CrashClassifier: Send {
    /// The keys only, as quickly as possible.
    ///
    /// # Errors
    /// When the target cannot be run under a tracer.
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError>;

    /// Whether a run that ended so may be a crash; `crash_exit` is the exit status that counts as
    /// one. What the run wrote decides, by [`key`](CrashClassifier::key).
    fn suspects(&self, ended: Ended, crash_exit: Option<i32>) -> bool {
        ended.is_suspect(crash_exit)
    }

    /// The whole record; `None` where no try crashed.
    ///
    /// # Errors
    /// As [`key`](CrashClassifier::key).
    fn examine(&mut self, input: &[u8]) -> Result<Option<Box<Crash>>, ExecError>;
}

impl CrashClassifier for Triager {
    fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError> {
        Triager::key(self, input)
    }

    fn suspects(&self, ended: Ended, _crash_exit: Option<i32>) -> bool {
        Triager::suspects(self, ended)
    }

    fn examine(&mut self, input: &[u8]) -> Result<Option<Box<Crash>>, ExecError> {
        Ok(match Triager::examine(self, input)? {
            Verdict::Crash(crash) => Some(crash),
            Verdict::Flaky { .. } => None,
        })
    }
}

/// Starts what observes the runs of a target; `None` where nothing can be observed.
pub type StartObserver = Box<dyn FnMut() -> Result<Option<Box<dyn Observer>>, ExecError> + Send>;

/// An observer that is started at its first use. Hints are optional: where it cannot observe, there
/// are none, and that is no error.
pub(super) enum LazyObserver {
    Unstarted(StartObserver),
    Started(Box<dyn Observer>),
    Impossible,
}

impl LazyObserver {
    /// The hints from a run on `input`.
    pub(super) fn hints(&mut self, input: &[u8]) -> Hints {
        if let LazyObserver::Unstarted(start) = self {
            *self = match start() {
                Ok(Some(observer)) => LazyObserver::Started(observer),
                Ok(None) | Err(_) => LazyObserver::Impossible,
            };
        }
        let LazyObserver::Started(observer) = self else {
            return Hints::default();
        };
        match observer.observe(input) {
            Ok((run, comparisons)) => Hints {
                read: run.read.and_then(|bytes| usize::try_from(bytes).ok()),
                comparisons,
            },
            Err(_) => {
                *self = LazyObserver::Impossible;
                Hints::default()
            }
        }
    }
}

/// Makes [`Slip`]s of other crashes, and examines each once.
pub struct Slips {
    /// Names crashes.
    pub keyer: Box<dyn CrashClassifier>,
    /// Slips whose whole crash is on record.
    examined: HashSet<SlipKeys>,
}

impl Slips {
    /// With this classifier.
    pub fn new(classifier: Box<dyn CrashClassifier>) -> Slips {
        Slips {
            keyer: classifier,
            examined: HashSet::new(),
        }
    }

    /// The slip into a crash of this name, with the whole crash the first time.
    ///
    /// # Errors
    /// When the target cannot be run.
    pub fn of(&mut self, class: Class, keys: SlipKeys, input: &[u8]) -> Result<Slip, OracleError> {
        let mut slip = Slip {
            class,
            keys,
            crash: None,
            input: input.to_vec(),
        };
        if !self.examined.contains(&keys) {
            slip.crash = self.record(&slip)?;
        }
        Ok(slip)
    }

    /// The whole crash of a slip; `None` where it did not come again.
    ///
    /// # Errors
    /// When the target cannot be run.
    pub fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        let crash = self.keyer.examine(&slip.input)?;
        if crash.is_some() {
            self.examined.insert(slip.keys);
        }
        Ok(crash)
    }

    /// From here on each crash is examined once more.
    pub fn forget(&mut self) {
        self.examined.clear();
    }
}
