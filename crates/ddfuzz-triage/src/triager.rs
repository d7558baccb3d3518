//! The `Triager` runs an input again under ptrace, and returns the record or the keys of its crash.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::avoiding_tracers::avoiding;
use crate::capture::Trace;
use crate::class::{
    Classified, class_and_keys, classify_ending, classify_panic, classify_run, is_in_std,
    panicking_stack,
};
use crate::crash::{CaptureWay, Run, record};
use crate::crash_copy;
use crate::hang::InterruptReason;
use crate::messages::{Diagnostics, FatalMessage, Tool, comes_with, shown_line};
use crate::modules::ModuleCache;
use crate::report_frames::ReportFrames;
use crate::snapshot::{End, RawFrame, Snapshot};
use crate::tracee::Start;
use crate::watchdog::TracingThread;
use crate::wrapper::Wrapper;
use crate::{Conditions, Crash, Quick, Settings, Symbolizer, Verdict};
use ddfuzz_exec::{
    CrashMessages, CrashSnapshots, Ended, ExecError, RerunReason, Sanitizer, TimeLimit, Way, lives,
};

/// Maximum number of times that triage runs an input; an input that crashes in none of these runs
/// counts as flaky.
pub(crate) const TRIES: u32 = 3;

/// One run of an input, with class and keys of its crash, and with all that its crash record needs:
/// another run might crash by another bug.
pub struct KeyedRun {
    run: Finished,
    /// Class, keys and frames of the run's crash; `None` if the run ended without a crash.
    classified: Option<Classified>,
    at: SystemTime,
}

impl KeyedRun {
    /// Returns how the run ended: by a signal, with an exit status, or by exceeding a limit.
    pub fn ended(&self) -> Ended {
        self.run.ended
    }

    /// Returns class and keys of the run's crash; if it did not crash, how it ended.
    pub fn quick(&self) -> Quick {
        match &self.classified {
            Some(Classified { class, keys, .. }) => Quick::Crash {
                class: class.clone(),
                major: keys.major,
                minor: keys.minor,
            },
            None => Quick::Ended(self.run.ended),
        }
    }
}

/// Runs inputs again under ptrace, and classifies their crashes. Several triagers may work at the
/// same time, in different threads.
pub struct Triager {
    start: Box<dyn Start>,
    settings: Settings,
    cache: ModuleCache,
    tracer: TracingThread,
    symbolizer: Symbolizer,
    reported: ReportFrames,
    /// Whether the system has refused ptrace; if so, all further runs are made without it.
    refused: bool,
    /// Path of the target's program; `None` where it is unknown.
    program: Option<PathBuf>,
    /// Hash of the last input that crashed neither traced nor, in a later run, untraced.
    passed_untraced: Option<u64>,
    /// Last line on stderr of the last input that did not crash in [`Triager::examine`].
    last_line: Option<String>,
    /// Time limits of the runs by [`Triager::examine`]; `None` for the target's own limits.
    examining: Option<TimeLimit>,
    /// Whether crash records name functions, source lines and the program's compiler options.
    names: bool,
    /// Cached names of the sanitizers and Rust debug assertions that the target was compiled with;
    /// the inner `None` means unknown.
    instrumentation: OnceCell<Option<Vec<String>>>,
    /// Latest backtraces of panics in Rust's standard library, the newest first.
    backtraces: VecDeque<Backtrace>,
    /// The target's program as a wrapper, if it executed another program in its place in the last
    /// traced run; else `None`.
    pub(crate) wrapper: Option<Wrapper>,
}

/// Maximum number of backtraces of Rust panics that a triager keeps.
const MOST_BACKTRACES: usize = 16;

/// What a run with `RUST_BACKTRACE` wrote to stderr, and location and stack of the run's panic.
struct Backtrace {
    location: String,
    stack: Vec<RawFrame>,
    stderr: Vec<u8>,
}

/// The result of one finished run: how it ended, the snapshot of its crash, what it printed, and
/// how long it took.
struct Finished {
    ended: Ended,
    snapshot: Option<Box<Snapshot>>,
    diagnostics: Diagnostics,
    capture: CaptureWay,
    took: Duration,
    /// CPU time of the finished run; zero where it is unknown.
    cpu: Duration,
    /// Number of input bytes that the finished run has read; `None` where it is unknown.
    read: Option<u64>,
}

impl Triager {
    /// Creates a triager for the target that `start` runs, with default settings.
    pub fn new(start: Box<dyn Start>) -> Triager {
        Triager::with_settings(start, Settings::default())
    }

    /// Creates a triager for the target that `start` runs, with the given settings.
    pub fn with_settings(start: Box<dyn Start>, settings: Settings) -> Triager {
        let cache = ModuleCache::new(settings.dropped.clone());
        let program = start.program();
        let reported = ReportFrames::new(program.as_deref(), settings.dropped.clone());
        Triager {
            start,
            settings,
            cache,
            tracer: TracingThread::default(),
            symbolizer: Symbolizer::default(),
            reported,
            refused: false,
            program,
            passed_untraced: None,
            last_line: None,
            examining: None,
            names: true,
            instrumentation: OnceCell::new(),
            backtraces: VecDeque::new(),
            wrapper: None,
        }
    }

    /// Returns the sanitizers, limits and crash exit status of runs on `input`, which decide
    /// whether such a run can show `crash` at all. If the crash needs a sanitizer (other than
    /// UndefinedBehaviorSanitizer) and the target's sanitizers are unknown, an extra run finds the
    /// sanitizers of the programs that the target, a script, starts.
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
            program: self.start.program(),
        })
    }

    /// Returns the names of the sanitizers and Rust debug assertions that the target was compiled
    /// with; `None` where unknown.
    pub fn instrumentation(&self) -> Option<Vec<String>> {
        let known = || self.start.instrumentation();
        self.instrumentation.get_or_init(known).clone()
    }

    /// Returns the names of the target's sanitizers and Rust debug assertions for a crash record;
    /// `None` if unknown, or if records are made without names.
    fn named_instrumentation(&self) -> Option<Vec<String>> {
        self.names.then(|| self.instrumentation()).flatten()
    }

    /// Checks whether a run that ended as `ended` may have crashed, so that its input should be run
    /// again under a tracer: an exit with the status of a panic counts if the target can panic.
    pub fn suspects(&self, ended: Ended) -> bool {
        let crash_exit = self.start.crash_exit();
        ended.is_crash(crash_exit) || ended.is_suspect(crash_exit) && self.start.may_panic()
    }

    /// Makes all later crash records lack names of functions, source lines and the program's
    /// compiler options, for callers that need class and keys only: reading names from a large
    /// program takes longer than many runs.
    pub fn leave_out_names(&mut self) {
        self.names = false;
        self.symbolizer.turn_off();
    }

    /// Sets whether [`examine`](Triager::examine), if an input does not crash, runs it once more to
    /// find memory leaks.
    pub fn look_for_leaks(&mut self, leaks: bool) {
        self.settings.leaks = leaks;
    }

    /// Returns the last line that the program wrote to stderr in the last run by
    /// [`examine`](Triager::examine) that did not crash; `None` if it wrote none.
    pub fn last_line(&self) -> Option<&str> {
        self.last_line.as_deref()
    }

    /// Sets the time limits of the runs that [`examine`](Triager::examine) makes; other runs keep
    /// the target's limits. While a hang is minimized, the target's limits are shorter than usual,
    /// and a run that exceeds them need not be a hang; so `examine` uses the full limits, `time`.
    pub fn examine_within(&mut self, time: TimeLimit) {
        self.examining = Some(time);
    }

    /// Runs `input` until it crashes or exceeds a limit, at most three times (twice without address
    /// randomization, then once with it), and returns the crash record. If no run crashed and leak
    /// search is enabled, a last run looks for leaks.
    ///
    /// # Errors
    /// When the target cannot be started or traced.
    pub fn examine(&mut self, input: &[u8]) -> Result<Verdict, ExecError> {
        let Some(time) = self.examining else {
            return self.examine_now(input);
        };
        let usual = TimeLimit::from(self.start.limits());
        self.start.limit_time(time);
        let verdict = self.examine_now(input);
        self.start.limit_time(usual);
        verdict
    }

    fn examine_now(&mut self, input: &[u8]) -> Result<Verdict, ExecError> {
        let at = SystemTime::now();
        let (mut ended, mut read) = (Ended::Exit(0), None);
        for try_number in 1..=TRIES {
            let run = self.run(input, try_number == TRIES)?;
            if self.crashed(&run) {
                let crash = self.crash(&run, input, try_number, at)?;
                return Ok(Verdict::Crash(Box::new(crash)));
            }
            (ended, read) = (run.ended, run.read);
            self.last_line = shown_line(&run.diagnostics.stderr);
        }
        let failed = match self.fails_untraced(input)? {
            None if self.settings.leaks => self.leak(input)?,
            failed => failed,
        };
        if let Some(run) = failed {
            // The record names one try: the run without a tracer, or the one that looked for leaks.
            let crash = self.crash(&run, input, 1, at)?;
            return Ok(Verdict::Crash(Box::new(crash)));
        }
        Ok(Verdict::Flaky {
            tries: TRIES,
            ended,
            read,
        })
    }

    /// Runs `input` once, without address randomization, and returns class and keys of its crash,
    /// without looking up names for a crash record.
    ///
    /// # Errors
    /// When the target cannot be started or traced.
    pub fn key(&mut self, input: &[u8]) -> Result<Quick, ExecError> {
        self.key_at(input, false)
    }

    /// Runs `input` once, with or without address randomization, and returns class and keys of its
    /// crash, without looking up names for a crash record.
    ///
    /// # Errors
    /// When the target cannot be started or traced.
    pub fn key_at(&mut self, input: &[u8], random_addresses: bool) -> Result<Quick, ExecError> {
        let run = self.run(input, random_addresses)?;
        Ok(self.keyed(run, input, SystemTime::now())?.quick())
    }

    /// Runs `input` once, as [`key`](Triager::key) does, but returns the whole run, from which
    /// [`record`](Triager::record) can make a crash record.
    ///
    /// # Errors
    /// When the target cannot be started or traced.
    pub fn key_run(&mut self, input: &[u8]) -> Result<KeyedRun, ExecError> {
        let at = SystemTime::now();
        let run = self.run(input, false)?;
        self.keyed(run, input, at)
    }

    fn keyed(
        &mut self,
        run: Finished,
        input: &[u8],
        at: SystemTime,
    ) -> Result<KeyedRun, ExecError> {
        let classified = match self.crashed(&run) {
            true => Some(self.classify(&run, input)?),
            false => None,
        };
        Ok(KeyedRun {
            run,
            classified,
            at,
        })
    }

    /// Makes the crash record of the run `keyed`; `None` if the run ended without a crash.
    pub fn record(&mut self, keyed: KeyedRun) -> Option<Crash> {
        let named = keyed.classified?;
        Some(self.record_of(&keyed.run, named, 1, keyed.at))
    }

    /// Runs `input` once, with the time limit `time`; returns class and keys of its crash, and the
    /// CPU time of the run. Returns `None` without a run for targets whose traced runs cannot be
    /// forked from the loaded target, because such traced runs take much longer than untraced ones.
    ///
    /// # Errors
    /// When the target cannot be started or traced.
    pub fn key_within(
        &mut self,
        input: &[u8],
        time: TimeLimit,
    ) -> Result<Option<(Quick, Duration)>, ExecError> {
        let is_cheap = self.start.way() == Way::Harness && self.start.forks();
        if self.is_untraced() || !is_cheap {
            return Ok(None);
        }
        let usual = TimeLimit::from(self.start.limits());
        self.start.limit_time(time);
        let run = self.run(input, false);
        self.start.limit_time(usual);
        let keyed = self.keyed(run?, input, SystemTime::now())?;
        Ok(Some((keyed.quick(), keyed.run.cpu)))
    }

    /// Runs `input`, which has crashed but not under a tracer, up to three times without a tracer.
    /// If each run crashes, the program [avoids tracers](crate::programs_avoiding_tracers), and
    /// class and keys of the crash are returned; otherwise returns `None`.
    ///
    /// # Errors
    /// When the target cannot be started.
    pub fn key_untraced(&mut self, input: &[u8]) -> Result<Option<Quick>, ExecError> {
        let run = self.fails_untraced(input)?;
        let keyed = run.map(|run| self.keyed(run, input, SystemTime::now()));
        Ok(keyed.transpose()?.map(|keyed| keyed.quick()))
    }

    /// Runs an input that has not crashed under a tracer up to three times without a tracer. If
    /// each run crashes or exceeds a limit, notes that the program avoids tracers, so that all its
    /// later runs are made without a tracer, and returns the last of the three runs; otherwise
    /// returns `None`.
    fn fails_untraced(&mut self, input: &[u8]) -> Result<Option<Finished>, ExecError> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(input);
        // An input that has passed without a tracer before is flaky: it says nothing of tracers.
        if self.is_untraced() || self.passed_untraced == Some(hash) {
            return Ok(None);
        }
        let mut last = None;
        for _ in 0..TRIES {
            let run = self.run_copied(input, false)?;
            if !self.crashed(&run) {
                self.passed_untraced = Some(hash);
                return Ok(None);
            }
            last = Some(run);
        }
        if let Some(program) = &self.program {
            avoiding().insert(program.clone());
        }
        Ok(last)
    }

    /// Checks whether runs are made without a tracer, because the system has refused ptrace or the
    /// program avoids tracers.
    fn is_untraced(&self) -> bool {
        self.refused || (self.program.as_ref()).is_some_and(|program| avoiding().contains(program))
    }

    /// Checks whether a run failed: by a crash signal, by the exit status that counts as a crash,
    /// by an exit after a Rust panic or a sanitizer's report file, or by exceeding its time or
    /// memory limit.
    fn crashed(&self, run: &Finished) -> bool {
        let cut = matches!(run.ended, Ended::Timeout | Ended::OutOfMemory);
        cut || run.diagnostics.is_crash(run.ended, self.start.crash_exit())
    }

    fn crash(
        &mut self,
        run: &Finished,
        input: &[u8],
        tries: u32,
        at: SystemTime,
    ) -> Result<Crash, ExecError> {
        let named = self.classify(run, input)?;
        Ok(self.record_of(run, named, tries, at))
    }

    /// Makes a crash record of `run`; `named`: class and keys; `at`: time when its first try began.
    fn record_of(
        &mut self,
        run: &Finished,
        named: Classified,
        tries: u32,
        at: SystemTime,
    ) -> Crash {
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
            read: run.read,
            diagnostics: &run.diagnostics,
            instrumentation: self.named_instrumentation(),
            sites: report.map_or_else(Default::default, |report| self.reported.sites(report)),
        };
        let snapshot = run.snapshot.as_deref();
        record(named, snapshot, &facts, &mut self.symbolizer)
    }

    /// Builds the crash record of a run whose stack was not read, from how it ended: it exceeded a
    /// limit, or its crash did not happen again in triage. The keys depend on the class of the
    /// crash alone.
    pub fn untraced_record(&self, ended: Ended) -> Crash {
        let diagnostics = Diagnostics::default();
        let facts = self.single_run(ended, CaptureWay::Status, &diagnostics);
        let classified = Classified::of_class(classify_ending(ended));
        record(classified, None, &facts, &mut Symbolizer::default())
    }

    /// Builds the record of a crash that did not happen again, from the copy of registers and stack
    /// that the dying process made of itself; without a copy, from the way the run ended alone.
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

    /// Returns the facts for the crash record of a run that another part of ddfuzz has made, not
    /// this triager: there was one try, and how long it took is unknown.
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
            read: None,
            diagnostics,
            instrumentation: self.named_instrumentation(),
            sites: Default::default(),
        }
    }

    fn classify(&mut self, run: &Finished, input: &[u8]) -> Result<Classified, ExecError> {
        let (snapshot, depth) = (run.snapshot.as_deref(), self.settings.depth);
        let class = classify_run(snapshot, run.ended, &run.diagnostics);
        let backtrace = match &run.diagnostics.fatal {
            Some(FatalMessage::RustPanic(panic)) if class.0 == "rustpanic" && is_in_std(panic) => {
                self.backtrace(&panic.location, snapshot, input)?
            }
            _ => None,
        };
        let backtrace = backtrace.as_deref();
        let panic = classify_panic(class.clone(), snapshot, depth, &run.diagnostics, backtrace);
        Ok(match (panic, snapshot) {
            (Some(named), _) => named,
            (None, Some(snapshot)) => class_and_keys(snapshot, depth, &run.diagnostics),
            (None, None) => Classified::of_class(class),
        })
    }

    /// Returns what a run of the input with `RUST_BACKTRACE` writes to stderr; `None` if the target
    /// does not support such runs. For a panic at the same `location` and with the same stack as an
    /// earlier one, returns the backtrace of the earlier panic, without a run: making a backtrace
    /// takes the target much longer than an ordinary run.
    fn backtrace(
        &mut self,
        location: &str,
        snapshot: Option<&Snapshot>,
        input: &[u8],
    ) -> Result<Option<Vec<u8>>, ExecError> {
        let stack = snapshot.and_then(panicking_stack);
        let is_same = |it: &&Backtrace| it.location == location && Some(&it.stack[..]) == stack;
        if let Some(known) = self.backtraces.iter().find(is_same) {
            return Ok(Some(known.stderr.clone()));
        }
        let again = self.start.run_again(input, RerunReason::Backtrace)?;
        let stderr = again.map(|again| again.messages.stderr);
        if let (Some(stack), Some(stderr)) = (stack, &stderr) {
            self.backtraces.truncate(MOST_BACKTRACES - 1);
            self.backtraces.push_front(Backtrace {
                location: location.to_owned(),
                stack: stack.to_vec(),
                stderr: stderr.clone(),
            });
        }
        Ok(stderr)
    }

    /// Runs the input again with LeakSanitizer's check at exit. Returns the result of this run if
    /// the sanitizer reported a leak, else `None`.
    fn leak(&mut self, input: &[u8]) -> Result<Option<Finished>, ExecError> {
        let began = Instant::now();
        let Some(again) = self.start.run_again(input, RerunReason::Leaks)? else {
            return Ok(None);
        };
        let seen = (again.ended, None, CaptureWay::Status);
        let run = self.finished(seen, again.messages, began);
        let leaks = run
            .diagnostics
            .report()
            .is_some_and(|it| it.tool == Tool::Lsan);
        Ok((leaks && self.crashed(&run)).then_some(run))
    }

    /// Runs the input once, with randomized addresses if `aslr` is true. If the run crashes after a
    /// return to a wrong address, runs the input again, once for each suspected stack slot, until
    /// the function whose return address was overwritten is found ([`ReturnSlotWatch`]).
    ///
    /// [`ReturnSlotWatch`]: crate::overwritten_return::ReturnSlotWatch
    fn run(&mut self, input: &[u8], aslr: bool) -> Result<Finished, ExecError> {
        let mut run = self.run_once(input, aslr)?;
        let slots = match &run.snapshot {
            Some(snapshot) if run.capture == CaptureWay::Ptrace => snapshot.wrong_returns.clone(),
            _ => Vec::new(),
        };
        for slot in slots {
            let mut tracee = self.start.start(input, aslr)?;
            let (start, cache) = (&*self.start, &mut self.cache);
            let again = self.tracer.follow(&mut *tracee, start, cache, Some(slot))?;
            let found = again.and_then(|(trace, _)| trace.snapshot);
            let found = found.filter(|it| it.end == End::Smashed && it.wrong_returns.is_empty());
            if found.is_some() {
                run.snapshot = found;
                break;
            }
        }
        Ok(run)
    }

    fn run_once(&mut self, input: &[u8], aslr: bool) -> Result<Finished, ExecError> {
        let began = Instant::now();
        if !self.is_untraced() {
            let mut tracee = self.start.start(input, aslr)?;
            let (start, cache) = (&*self.start, &mut self.cache);
            match self.tracer.follow(&mut *tracee, start, cache, None)? {
                Some((
                    Trace {
                        ended,
                        snapshot,
                        wrapper,
                    },
                    reason,
                )) => {
                    self.wrapper = wrapper;
                    let hides = snapshot.as_ref().is_some_and(|snapshot| snapshot.torn);
                    let seen = (ended, snapshot, CaptureWay::Ptrace);
                    let traced = Finished {
                        cpu: tracee.cpu(),
                        read: tracee.read(),
                        ..self.finished(seen, tracee.crash_messages(), began)
                    };
                    // If only the tracer made the run slow, the run without a tracer counts.
                    if ended == Ended::Timeout && reason == Some(InterruptReason::Delayed) {
                        let untraced = self.run_copied(input, aslr)?;
                        let is_quicker = untraced.ended != Ended::Timeout;
                        return Ok(if is_quicker { untraced } else { traced });
                    }
                    // A process that hides its memory (`PR_SET_DUMPABLE`) still copies itself.
                    let copied = hides.then(|| self.run_copied(input, aslr)).transpose()?;
                    let copied = copied.filter(|it| it.capture == CaptureWay::Copy);
                    return Ok(copied.unwrap_or(traced));
                }
                // A refusal does not count if somebody has killed the process meanwhile.
                None => self.refused = lives(tracee.pid()),
            }
        }
        self.run_copied(input, aslr)
    }

    /// Returns false if the process that died at `snapshot` surely has no sanitizer `tool`: it ran
    /// the target's program itself, which was compiled without the sanitizer, and no library of the
    /// sanitizer is on the stack. Else returns true.
    fn may_have(&self, snapshot: &Snapshot, tool: Tool) -> bool {
        let mut frames = snapshot.frames.iter();
        let of_program = frames.find(|frame| &*frame.module == "exe");
        let real = |path: &Path| path.canonicalize().ok();
        let is_program = (of_program.and_then(|frame| frame.path.as_deref()))
            .zip(self.start.program())
            .is_some_and(|(path, program)| real(path).is_some_and(|it| Some(it) == real(&program)));
        let library = format!("lib{}.", tool.name());
        let clang_library = format!("libclang_rt.{}", tool.name());
        let is_of_tool =
            |name: &str| name.starts_with(&library) || name.starts_with(&clang_library);
        if !is_program
            || snapshot
                .frames
                .iter()
                .any(|frame| is_of_tool(&frame.module))
        {
            return true;
        }
        let instrumentation = self.instrumentation();
        instrumentation.is_none_or(|all| all.iter().any(|flag| comes_with(tool, flag)))
    }

    fn run_copied(&mut self, input: &[u8], aslr: bool) -> Result<Finished, ExecError> {
        let began = Instant::now();
        let untraced = self.start.run_untraced(input, aslr)?;
        let (ended, snapshot) = match &untraced.copies {
            Some(copies) => crash_copy::read_copies(copies, untraced.ended, &mut self.cache),
            None => (untraced.ended, None),
        };
        let seen = (ended, snapshot, CaptureWay::Copy);
        Ok(Finished {
            read: untraced.read,
            ..self.finished(seen, untraced.messages, began)
        })
    }

    /// Builds the result of a finished run from how it ended, the snapshot of its process, and its
    /// output; where the stack could not be unwound, the stack frames of a sanitizer's report
    /// replace it.
    fn finished(
        &mut self,
        (ended, snapshot, way): (Ended, Option<Box<Snapshot>>, CaptureWay),
        said: CrashMessages,
        began: Instant,
    ) -> Finished {
        let took = began.elapsed();
        let diagnostics = Diagnostics::of_process(ended, said, |tool| {
            snapshot.as_deref().is_none_or(|it| self.may_have(it, tool))
        });
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
            cpu: Duration::ZERO,
            read: None,
        }
    }
}
