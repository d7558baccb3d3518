//! Runs an input again to see how it crashes.

use std::time::{Duration, Instant, SystemTime};

use super::capture::Trace;
use super::class::classify_ending;
use super::follow::follow;
use super::modules::ModuleCache;
use super::quick::{Named, name};
use super::record::{Run, record};
use super::snapshot::Snapshot;
use super::tracee::{Start, Tracee};
use super::{Class, Crash, Key};
use crate::exec::{Ended, ExecError, lives};

/// How often an input is run before it counts as flaky.
const TRIES: u32 = 3;

/// What the user may choose about keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Frames in the minor key, 1…5.
    pub depth: usize,
    /// Exact names (as in the symbol table) of functions whose frames are dropped.
    pub dropped: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            depth: super::keys::DEPTH,
            dropped: Vec::new(),
        }
    }
}

/// What the runs of one input showed.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It crashes, or goes over its limits: a hang, or a memory blow-up.
    Crash(Box<Crash>),
    /// None of the tries did.
    Flaky {
        /// How often it was run.
        tries: u32,
        /// How the last try ended.
        ended: Ended,
    },
}

/// What one run of one input showed, as far as the minimizer's oracle asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quick {
    /// It crashed, or went over its limits.
    Crash {
        /// What kind of death.
        class: Class,
        /// Which bug.
        major: Key,
        /// Which way into it.
        minor: Key,
    },
    /// It ended within its limits, and without a crash.
    Ended(Ended),
}

/// Runs inputs again under ptrace and names their crashes. Several may work at a time, each in a
/// thread of its own.
pub struct Triager {
    start: Box<dyn Start>,
    settings: Settings,
    cache: ModuleCache,
    /// The system has refused to trace once, so it is not asked again.
    refused: bool,
}

/// One finished run.
struct Finished {
    ended: Ended,
    snapshot: Option<Box<Snapshot>>,
    tracee: Option<Box<dyn Tracee>>,
    stderr: Vec<u8>,
    took: Duration,
}

impl Finished {
    fn stderr(&mut self) -> &[u8] {
        if let Some(mut tracee) = self.tracee.take() {
            self.stderr = tracee.stderr_tail();
        }
        &self.stderr
    }
}

impl Triager {
    /// A triager for one target, with default settings.
    pub fn new(start: Box<dyn Start>) -> Triager {
        Triager::with_settings(start, Settings::default())
    }

    /// A triager for one target.
    pub fn with_settings(start: Box<dyn Start>, settings: Settings) -> Triager {
        let cache = ModuleCache::new(settings.dropped.clone());
        Triager {
            start,
            settings,
            cache,
            refused: false,
        }
    }

    /// Runs the input up to three times, twice without randomization of addresses and once with
    /// it, until it crashes or goes over its limits, and records that.
    ///
    /// # Errors
    /// When the target cannot be started or traced.
    pub fn examine(&mut self, input: &[u8]) -> Result<Verdict, ExecError> {
        let at = SystemTime::now();
        let mut ended = Ended::Exit(0);
        for try_number in 1..=TRIES {
            let mut run = self.run(input, try_number == TRIES)?;
            if self.is_named(run.ended) {
                let stderr = run.stderr().to_vec();
                let named = self.name(&run, || stderr.clone());
                let facts = Run {
                    ended: run.ended,
                    traced: !self.refused,
                    way: self.start.way(),
                    limits: self.start.limits(),
                    tries: try_number,
                    at,
                    took: run.took,
                    stderr: &stderr,
                };
                return Ok(Verdict::Crash(Box::new(record(
                    named,
                    run.snapshot.as_deref(),
                    &facts,
                ))));
            }
            ended = run.ended;
        }
        Ok(Verdict::Flaky {
            tries: TRIES,
            ended,
        })
    }

    /// Runs the input once, for its keys only: no names, no record.
    ///
    /// # Errors
    /// When the target cannot be started or traced.
    pub fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError> {
        let mut run = self.run(input, false)?;
        if !self.is_named(run.ended) {
            return Ok(Quick::Ended(run.ended));
        }
        let mut tracee = run.tracee.take();
        let untraced = std::mem::take(&mut run.stderr);
        let stderr = || {
            tracee
                .as_mut()
                .map_or(untraced, |tracee| tracee.stderr_tail())
        };
        let Named { class, keys, .. } = self.name(&run, stderr);
        Ok(Quick::Crash {
            class,
            major: keys.major,
            minor: keys.minor,
        })
    }

    /// The record of a run that was not watched: one over its limits, or a crash that did not
    /// come again. Its keys rest on the class alone.
    pub fn unwatched(&self, ended: Ended) -> Crash {
        let facts = Run {
            ended,
            traced: false,
            way: self.start.way(),
            limits: self.start.limits(),
            tries: 1,
            at: SystemTime::now(),
            took: Duration::ZERO,
            stderr: &[],
        };
        record(Named::of_class(classify_ending(ended)), None, &facts)
    }

    /// Whether a run that ended so has a name: a crash, a hang or a memory blow-up.
    fn is_named(&self, ended: Ended) -> bool {
        let cut = matches!(ended, Ended::Timeout | Ended::OutOfMemory);
        cut || ended.is_crash(self.start.crash_exit())
    }

    fn name(&self, run: &Finished, stderr: impl FnOnce() -> Vec<u8>) -> Named {
        match &run.snapshot {
            Some(snapshot) => name(snapshot, self.settings.depth, stderr),
            None => Named::of_class(classify_ending(run.ended)),
        }
    }

    fn run(&mut self, input: &[u8], aslr: bool) -> Result<Finished, ExecError> {
        let began = Instant::now();
        if !self.refused {
            let mut tracee = self.start.start(input, aslr)?;
            match follow(&mut *tracee, &*self.start, &mut self.cache)? {
                Some(trace) => {
                    let Trace { ended, snapshot } = trace;
                    let stderr = Vec::new();
                    let took = began.elapsed();
                    return Ok(Finished {
                        ended,
                        snapshot,
                        tracee: Some(tracee),
                        stderr,
                        took,
                    });
                }
                // Of a process that somebody has killed meanwhile, the refusal says nothing.
                None => self.refused = lives(tracee.pid()),
            }
        }
        let untraced = self.start.run_untraced(input, aslr)?;
        Ok(Finished {
            ended: untraced.ended,
            snapshot: None,
            tracee: None,
            stderr: untraced.stderr_tail,
            took: began.elapsed(),
        })
    }
}
