//! The `Triager` runs an input again under ptrace, and returns the record or the keys of its crash.

use std::cell::OnceCell;
use std::time::{Duration, Instant, SystemTime};

use crate::capture::Trace;
use crate::class::{
    Classified, class_and_keys, classify_ending, classify_panic, classify_run, is_in_std,
};
use crate::crash::{CaptureWay, Run, record};
use crate::crash_copy;
use crate::messages::{Diagnostics, FatalMessage, Tool};
use crate::modules::ModuleCache;
use crate::report_frames::ReportFrames;
use crate::snapshot::Snapshot;
use crate::tracee::Start;
use crate::watchdog::follow;
use crate::{Class, Conditions, Crash, Key, Symbolizer};
use ddfuzz_exec::{CrashMessages, CrashSnapshots, Ended, ExecError, RerunReason, Sanitizer, lives};

/// Number of runs after which an input that does not crash counts as flaky.
const TRIES: u32 = 3;

/// The user's settings for keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of frames in the minor key, 1…5.
    pub depth: usize,
    /// Exact symbol names of functions whose frames are dropped.
    pub dropped: Vec<String>,
    /// Whether an input that does not crash is run again with LeakSanitizer's check at exit.
    pub leaks: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            depth: crate::keys::DEPTH,
            dropped: Vec::new(),
            leaks: false,
        }
    }
}

/// Result of the runs of one input.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The run crashed or exceeded a limit.
    Crash(Box<Crash>),
    /// No run of the input crashed.
    Flaky {
        /// Number of runs.
        tries: u32,
        /// How the last run ended.
        ended: Ended,
    },
}

/// Result of a single run, for the minimizer's oracle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quick {
    /// The input crashed or exceeded a limit.
    Crash {
        /// Class of the crash.
        class: Class,
        /// Major key: identifies the bug.
        major: Key,
        /// Minor key: identifies the path into the bug.
        minor: Key,
    },
    /// The run ended without a crash, within its limits.
    Ended(Ended),
}

/// Runs inputs again under ptrace and classifies their crashes. Several triagers may work at the
/// same time, in different threads.
pub struct Triager {
    start: Box<dyn Start>,
    settings: Settings,
    cache: ModuleCache,
    symbolizer: Symbolizer,
    reported: ReportFrames,
    /// Whether the system has refused ptrace, so that it is not tried again.
    refused: bool,
    /// Sanitizers and debug assertions of the program, cached.
    instrumentation: OnceCell<Option<Vec<String>>>,
}

/// End, snapshot, output and duration of one finished run.
struct Finished {
    ended: Ended,
    snapshot: Option<Box<Snapshot>>,
    diagnostics: Diagnostics,
    capture: CaptureWay,
    took: Duration,
}

impl Triager {
    /// Creates a triager for one target, with default settings.
    pub fn new(start: Box<dyn Start>) -> Triager {
        Triager::with_settings(start, Settings::default())
    }

    /// Creates a triager for one target.
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

    /// Returns the properties of runs on `input` that decide whether they can show `crash`. Where a
    /// sanitizer is needed and unknown, an extra run finds the sanitizers of the programs that a
    /// script starts.
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

    /// Returns sanitizers and debug assertions of the program; `None` where unknown.
    pub fn instrumentation(&self) -> Option<Vec<String>> {
        let known = || self.start.instrumentation();
        self.instrumentation.get_or_init(known).clone()
    }

    /// Whether a run that ended so may be a crash, so that it is worth a triage.
    pub fn suspects(&self, ended: Ended) -> bool {
        let crash_exit = self.start.crash_exit();
        ended.is_crash(crash_exit) || ended.is_suspect(crash_exit) && self.start.may_panic()
    }

    /// Sets whether [`examine`](Triager::examine) runs inputs that do not crash again to find
    /// leaks.
    pub fn look_for_leaks(&mut self, leaks: bool) {
        self.settings.leaks = leaks;
    }

    /// Runs the input up to three times, twice without address randomization and once with it,
    /// until it crashes or exceeds a limit, and returns the record. If enabled, a last run looks
    /// for leaks.
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

    /// Runs the input once and returns its keys only, without names and record.
    ///
    /// # Errors
    /// When the target cannot be started or traced.
    pub fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError> {
        self.key_at(input, false)
    }

    /// Runs the input once, with or without `random_addresses`, and returns its keys only.
    ///
    /// # Errors
    /// When the target cannot be started or traced.
    pub fn key_at(&mut self, input: &[u8], random_addresses: bool) -> Result<Quick, ExecError> {
        let run = self.run(input, random_addresses)?;
        if !self.crashed(&run) {
            return Ok(Quick::Ended(run.ended));
        }
        let Classified { class, keys, .. } = self.classify(&run, input)?;
        Ok(Quick::Crash {
            class,
            major: keys.major,
            minor: keys.minor,
        })
    }

    /// Whether the run is a crash, a hang or a memory blow-up.
    fn crashed(&self, run: &Finished) -> bool {
        let cut = matches!(run.ended, Ended::Timeout | Ended::OutOfMemory);
        cut || run.diagnostics.is_crash(run.ended, self.start.crash_exit())
    }

    fn crash(
        &mut self,
        run: Finished,
        input: &[u8],
        tries: u32,
        at: SystemTime,
    ) -> Result<Crash, ExecError> {
        let named = self.classify(&run, input)?;
        let report = run.diagnostics.report();
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
            diagnostics: &run.diagnostics,
            instrumentation: self.instrumentation(),
            sites: report.map_or_else(Default::default, |report| self.reported.sites(report)),
        };
        let snapshot = run.snapshot.as_deref();
        Ok(record(named, snapshot, &facts, &mut self.symbolizer))
    }

    /// Returns the record of a run without a trace: one that exceeded a limit, or a crash that did
    /// not happen again. Its keys depend on the class alone.
    pub fn untraced_record(&self, ended: Ended) -> Crash {
        let diagnostics = Diagnostics::default();
        let facts = self.single_run(ended, CaptureWay::Status, &diagnostics);
        let classified = Classified::of_class(classify_ending(ended));
        record(classified, None, &facts, &mut Symbolizer::default())
    }

    /// Returns the record of a crash that did not happen again, from the copy that the process made
    /// of itself; without a copy, as [`untraced_record`](Triager::untraced_record).
    pub fn record_from_copies(&mut self, ended: Ended, copies: Option<&CrashSnapshots>) -> Crash {
        let read = copies.map(|copies| crash_copy::read_copies(copies, ended, &mut self.cache));
        let Some((ended, Some(snapshot))) = read else {
            return self.untraced_record(ended);
        };
        let diagnostics = Diagnostics::default();
        let named = class_and_keys(&snapshot, self.settings.depth, &diagnostics);
        let facts = self.single_run(ended, CaptureWay::Copy, &diagnostics);
        record(named, Some(&snapshot), &facts, &mut self.symbolizer)
    }

    /// Returns the facts of a single run that another component made.
    fn single_run<'a>(
        &self,
        ended: Ended,
        capture: CaptureWay,
        diagnostics: &'a Diagnostics,
    ) -> Run<'a> {
        Run {
            ended,
            capture,
            way: self.start.way(),
            limits: self.start.limits(),
            tries: 1,
            at: SystemTime::now(),
            took: Duration::ZERO,
            diagnostics,
            instrumentation: self.instrumentation(),
            sites: Default::default(),
        }
    }

    fn classify(&mut self, run: &Finished, input: &[u8]) -> Result<Classified, ExecError> {
        let (snapshot, depth) = (run.snapshot.as_deref(), self.settings.depth);
        let class = classify_run(snapshot, run.ended, &run.diagnostics);
        let again = match &run.diagnostics.fatal {
            Some(FatalMessage::RustPanic(panic)) if class.0 == "rustpanic" && is_in_std(panic) => {
                self.start.run_again(input, RerunReason::Backtrace)?
            }
            _ => None,
        };
        let backtrace = again.as_ref().map(|again| &again.said.stderr[..]);
        let panic = classify_panic(class.clone(), snapshot, depth, &run.diagnostics, backtrace);
        Ok(match (panic, snapshot) {
            (Some(named), _) => named,
            (None, Some(snapshot)) => class_and_keys(snapshot, depth, &run.diagnostics),
            (None, None) => Classified::of_class(class),
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
        let leaks = run
            .diagnostics
            .report()
            .is_some_and(|it| it.tool == Tool::Lsan);
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
                    // A process that hides its memory (`PR_SET_DUMPABLE`) still copies itself.
                    let copied = hides.then(|| self.run_copied(input, aslr)).transpose()?;
                    let copied = copied.filter(|it| it.capture == CaptureWay::Copy);
                    return Ok(copied.unwrap_or(traced));
                }
                // Of a process that somebody has killed meanwhile, the refusal says nothing.
                None => self.refused = lives(tracee.pid()),
            }
        }
        self.run_copied(input, aslr)
    }

    fn run_copied(&mut self, input: &[u8], aslr: bool) -> Result<Finished, ExecError> {
        let began = Instant::now();
        let untraced = self.start.run_untraced(input, aslr)?;
        let (ended, snapshot) = match &untraced.copies {
            Some(copies) => crash_copy::read_copies(copies, untraced.ended, &mut self.cache),
            None => (untraced.ended, None),
        };
        let seen = (ended, snapshot, CaptureWay::Copy);
        Ok(self.finished(seen, untraced.said, began))
    }

    /// Combines end, snapshot and output of a run, and joins a sanitizer's report with the stack.
    fn finished(
        &mut self,
        (ended, snapshot, way): (Ended, Option<Box<Snapshot>>, CaptureWay),
        said: CrashMessages,
        began: Instant,
    ) -> Finished {
        let took = began.elapsed();
        let diagnostics = Diagnostics::of(ended, said);
        let (snapshot, reported) = match diagnostics.report() {
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
            diagnostics,
            capture,
            took,
        }
    }
}
