//! Runs an input again to see how it crashes.

use std::cell::OnceCell;
use std::time::{Duration, Instant, SystemTime};

use super::class::{classify_ending, classify_told};
use super::reported::ReportFrames;
use super::said::Tool;
use super::snapshot::Snapshot;
use super::told::{Told, Words};
use super::{Class, Conditions, Crash, Key, Symbolizer};
use crate::capture::Trace;
use crate::copied;
use crate::follow::follow;
use crate::modules::ModuleCache;
use crate::quick::Named;
use crate::quick::is_in_std;
use crate::quick::name;
use crate::quick::name_panic;
use crate::record::CaptureWay;
use crate::record::Run;
use crate::record::record;
use crate::tracee::Start;
use ddfuzz_exec::{CrashMessages, CrashSnapshots, Ended, ExecError, RerunReason, Sanitizer, lives};

/// How often an input is run before it counts as flaky.
const TRIES: u32 = 3;

/// What the user may choose about keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Frames in the minor key, 1…5.
    pub depth: usize,
    /// Exact names (as in the symbol table) of functions whose frames are dropped.
    pub dropped: Vec<String>,
    /// Whether an input that does not crash is run once more to look for leaks, which a program
    /// with LeakSanitizer does when it exits.
    pub leaks: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            depth: super::keys::DEPTH,
            dropped: Vec::new(),
            leaks: false,
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
    symbolizer: Symbolizer,
    reported: ReportFrames,
    /// The system has refused to trace once, so it is not asked again.
    refused: bool,
    /// What the program was compiled with, once that was asked.
    instrumentation: OnceCell<Option<Vec<String>>>,
}

/// One finished run.
struct Finished {
    ended: Ended,
    snapshot: Option<Box<Snapshot>>,
    told: Told,
    capture: CaptureWay,
    took: Duration,
}

impl Triager {
    /// A triager for one target, with default settings.
    pub fn new(start: Box<dyn Start>) -> Triager {
        Triager::with_settings(start, Settings::default())
    }

    /// A triager for one target.
    pub fn with_settings(start: Box<dyn Start>, settings: Settings) -> Triager {
        let cache = ModuleCache::new(settings.dropped.clone());
        let program = start.program();
        let reported = ReportFrames::new(program.as_deref(), settings.dropped.clone());
        Triager {
            start,
            settings,
            cache,
            symbolizer: Symbolizer::default(),
            reported,
            refused: false,
            instrumentation: OnceCell::new(),
        }
    }

    /// Under which conditions runs on `input` are made, which is to show this crash. Where a
    /// sanitizer is needed for that, the programs that a script starts are asked for theirs, by one
    /// run more.
    ///
    /// # Errors
    /// When the target cannot be run.
    pub fn conditions(&mut self, input: &[u8], crash: &Crash) -> Result<Conditions, ExecError> {
        let sanitizer = crash.class.sanitizer();
        let is_asked = sanitizer.is_some_and(|it| it != Sanitizer::Ubsan);
        let instrumentation = match self.instrumentation() {
            None if is_asked => self.start.sanitizers_of_run(input)?,
            known => known,
        };
        Ok(Conditions {
            instrumentation,
            limits: self.start.limits(),
            crash_exit: self.start.crash_exit(),
        })
    }

    /// What the program was compiled with; `None` where that is not known.
    pub fn instrumentation(&self) -> Option<Vec<String>> {
        let known = self
            .instrumentation
            .get_or_init(|| self.start.instrumentation());
        known.clone()
    }

    /// Whether a run that ended so may be a crash, so that it is worth being asked.
    pub fn suspects(&self, ended: Ended) -> bool {
        let crash_exit = self.start.crash_exit();
        ended.is_crash(crash_exit) || ended.is_suspect(crash_exit) && self.start.may_panic()
    }

    /// Whether inputs that do not crash are run once more by [`examine`](Triager::examine) to look
    /// for leaks.
    pub fn look_for_leaks(&mut self, leaks: bool) {
        self.settings.leaks = leaks;
    }

    /// Runs the input up to three times, twice without randomization of addresses and once with
    /// it, until it crashes or goes over its limits, and records that. Where leaks are looked for
    /// it is run once more for them.
    ///
    /// # Errors
    /// When the target cannot be started or traced.
    pub fn examine(&mut self, input: &[u8]) -> Result<Verdict, ExecError> {
        let at = SystemTime::now();
        let mut ended = Ended::Exit(0);
        for try_number in 1..=TRIES {
            let run = self.run(input, try_number == TRIES)?;
            if self.crashed(&run) {
                let crash = self.crash(run, input, try_number, at)?;
                return Ok(Verdict::Crash(Box::new(crash)));
            }
            ended = run.ended;
        }
        if self.settings.leaks
            && let Some(run) = self.leak(input)?
        {
            // Of one run that looked for them, one has found them.
            let crash = self.crash(run, input, 1, at)?;
            return Ok(Verdict::Crash(Box::new(crash)));
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
        self.key_at(input, false)
    }

    /// The same; with `random_addresses` by `execve`, as a program is run elsewhere.
    ///
    /// # Errors
    /// As [`key`](Triager::key).
    pub fn key_at(&mut self, input: &[u8], random_addresses: bool) -> Result<Quick, ExecError> {
        let run = self.run(input, random_addresses)?;
        if !self.crashed(&run) {
            return Ok(Quick::Ended(run.ended));
        }
        let Named { class, keys, .. } = self.name(&run, input)?;
        Ok(Quick::Crash {
            class,
            major: keys.major,
            minor: keys.minor,
        })
    }

    /// Whether the run has a name: as a crash, a hang or a memory blow-up.
    fn crashed(&self, run: &Finished) -> bool {
        let cut = matches!(run.ended, Ended::Timeout | Ended::OutOfMemory);
        cut || run.told.is_crash(run.ended, self.start.crash_exit())
    }

    fn crash(
        &mut self,
        run: Finished,
        input: &[u8],
        tries: u32,
        at: SystemTime,
    ) -> Result<Crash, ExecError> {
        let named = self.name(&run, input)?;
        let report = run.told.report();
        let facts = Run {
            ended: run.ended,
            capture: match run.capture {
                CaptureWay::Status if named.place.is_some() => CaptureWay::Text,
                capture => capture,
            },
            way: self.start.way(),
            limits: self.start.limits(),
            tries,
            at,
            took: run.took,
            told: &run.told,
            instrumentation: self.instrumentation(),
            sites: report.map_or_else(Default::default, |report| self.reported.sites(report)),
        };
        Ok(record(
            named,
            run.snapshot.as_deref(),
            &facts,
            &mut self.symbolizer,
        ))
    }

    /// The record of a run that was not watched: one over its limits, or a crash that did not
    /// come again. Its keys rest on the class alone.
    pub fn unwatched(&self, ended: Ended) -> Crash {
        let told = Told::default();
        let facts = self.seen_once(ended, CaptureWay::Status, &told);
        record(
            Named::of_class(classify_ending(ended)),
            None,
            &facts,
            &mut Symbolizer::default(),
        )
    }

    /// The record of a crash that did not come again, by the copy of itself that the process has
    /// left; without one, as [`unwatched`](Triager::unwatched).
    pub fn left_behind(&mut self, ended: Ended, copies: Option<&CrashSnapshots>) -> Crash {
        let read = copies.map(|copies| copied::read_copies(copies, ended, &mut self.cache));
        let Some((ended, Some(snapshot))) = read else {
            return self.unwatched(ended);
        };
        let told = Told::default();
        let named = name(&snapshot, self.settings.depth, &told);
        let facts = self.seen_once(ended, CaptureWay::Copy, &told);
        record(named, Some(&snapshot), &facts, &mut self.symbolizer)
    }

    /// A run that was made once, and not by us.
    fn seen_once<'a>(&self, ended: Ended, capture: CaptureWay, told: &'a Told) -> Run<'a> {
        Run {
            ended,
            capture,
            way: self.start.way(),
            limits: self.start.limits(),
            tries: 1,
            at: SystemTime::now(),
            took: Duration::ZERO,
            told,
            instrumentation: self.instrumentation(),
            sites: Default::default(),
        }
    }

    fn name(&mut self, run: &Finished, input: &[u8]) -> Result<Named, ExecError> {
        let (snapshot, depth) = (run.snapshot.as_deref(), self.settings.depth);
        let class = classify_told(snapshot, run.ended, &run.told);
        let again = match &run.told.words {
            Some(Words::RustPanic(panic)) if class.0 == "rustpanic" && is_in_std(panic) => {
                self.start.run_again(input, RerunReason::Backtrace)?
            }
            _ => None,
        };
        let backtrace = again.as_ref().map(|again| &again.said.stderr[..]);
        let panic = name_panic(class.clone(), snapshot, depth, &run.told, backtrace);
        Ok(match (panic, snapshot) {
            (Some(named), _) => named,
            (None, Some(snapshot)) => name(snapshot, depth, &run.told),
            (None, None) => Named::of_class(class),
        })
    }

    /// Runs the input with LeakSanitizer; `None` where nothing leaks.
    fn leak(&mut self, input: &[u8]) -> Result<Option<Finished>, ExecError> {
        let began = Instant::now();
        let Some(again) = self.start.run_again(input, RerunReason::Leaks)? else {
            return Ok(None);
        };
        let seen = (again.ended, None, CaptureWay::Status);
        let run = self.finished(seen, again.said, began);
        let leaks = run.told.report().is_some_and(|it| it.tool == Tool::Lsan);
        Ok((leaks && self.crashed(&run)).then_some(run))
    }

    fn run(&mut self, input: &[u8], aslr: bool) -> Result<Finished, ExecError> {
        let began = Instant::now();
        if !self.refused {
            let mut tracee = self.start.start(input, aslr)?;
            match follow(&mut *tracee, &*self.start, &mut self.cache)? {
                Some(Trace { ended, snapshot }) => {
                    let hides = snapshot.as_ref().is_some_and(|snapshot| snapshot.torn);
                    let seen = (ended, snapshot, CaptureWay::Ptrace);
                    let traced = self.finished(seen, tracee.said(), began);
                    return if hides {
                        self.copy_instead(traced, input, aslr)
                    } else {
                        Ok(traced)
                    };
                }
                // Of a process that somebody has killed meanwhile, the refusal says nothing.
                None => self.refused = lives(tracee.pid()),
            }
        }
        self.run_copied(input, aslr)
    }

    /// The run of a process that hid its memory from its tracer (`PR_SET_DUMPABLE`), made again
    /// for its copy; without one, what was seen of it.
    fn copy_instead(
        &mut self,
        traced: Finished,
        input: &[u8],
        aslr: bool,
    ) -> Result<Finished, ExecError> {
        let copied = self.run_copied(input, aslr)?;
        Ok(match copied.capture {
            CaptureWay::Copy => copied,
            _ => traced,
        })
    }

    fn run_copied(&mut self, input: &[u8], aslr: bool) -> Result<Finished, ExecError> {
        let began = Instant::now();
        let untraced = self.start.run_untraced(input, aslr)?;
        let (ended, snapshot) = copied::read(&untraced, &mut self.cache);
        let seen = (ended, snapshot, CaptureWay::Copy);
        Ok(self.finished(seen, untraced.said, began))
    }

    /// What is known of a run, from how it ended and what was read off it, in which way; and from
    /// what it said.
    fn finished(
        &mut self,
        (ended, snapshot, way): (Ended, Option<Box<Snapshot>>, CaptureWay),
        said: CrashMessages,
        began: Instant,
    ) -> Finished {
        let took = began.elapsed();
        let told = Told::of(ended, said);
        let (snapshot, reported) = match told.report() {
            Some(report) => {
                let (mut snapshot, reported) = self.reported.join(snapshot, ended, report);
                if let Some(snapshot) = &mut snapshot {
                    snapshot.owner = self.reported.owner(report);
                }
                (snapshot, reported)
            }
            None => (snapshot, false),
        };
        let capture = match (&snapshot, reported) {
            (_, true) => CaptureWay::Report,
            (Some(_), false) => way,
            (None, false) => CaptureWay::Status,
        };
        Finished {
            ended,
            snapshot,
            told,
            capture,
            took,
        }
    }
}
