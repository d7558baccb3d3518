//! Runs a target under a tracer: the child process waits just before its `execve`, or before `main`
//! if it is forked from the loaded target, until the tracer has seized it.

use nix::unistd::Pid;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs::File, io, path::PathBuf, time::Duration};

use crate::crash_snapshots::{CrashSnapshots, ServerMode};
use crate::launch::{Inject, Launch, Role};
use crate::output_capture::{DrainedPipe, Excerpt, OutputCapture, Written, tail};
use crate::private_dir::PrivateDir;
use crate::program::not_executed;
use crate::scratch::{Cleaned, Reports};
use crate::shared_server::{SearchLoop, SharedServerExecutor};
use crate::trace_server::{GRACE, TraceServer, gone};
use crate::{
    AbandonWhen, CrashMessages, Ended, ExecError, Executor, Limits, NotExecuted, RerunReason, Run,
    Sanitizer, Target, TimeLimit, Way, crash_snapshots, facts::TargetFacts,
    prepared_target::PreparedTarget, terminal::Console, ways,
};

/// How many fork servers are tried, one after the other, before starting a run fails.
const TRIES: u32 = 2;

/// Exit status of the dynamic loader when it cannot load a program.
const LOADER_EXIT: i32 = 127;
/// Beginnings of the messages in which the dynamic loader says why it cannot load a program.
const LOADER_ERRORS: [&str; 2] = [
    "error while loading shared libraries:",
    "symbol lookup error:",
];

/// A target that can be run under a tracer, again and again, one run at a time.
#[derive(Clone)]
pub struct Traceable {
    inner: Arc<Mutex<TraceServer>>,
}

impl Traceable {
    /// Prepares `target` for tracing. For [`Way::Harness`] a run calls the entry function (such as
    /// `LLVMFuzzerTestOneInput`), else `main`. Fails when the program is missing, cannot be
    /// executed, or has no entry function to call.
    pub fn new(target: &Target, way: Way) -> Result<Traceable, ExecError> {
        Traceable::at(PreparedTarget::prepare(target, way)?, target, way, None)
    }

    /// Prepares `target` for tracing; for the methods of execution `inject`, `snapshot` and
    /// `harness`, a fork server inside the loaded target forks the runs where the program permits
    /// it. Fails as [`new`](Traceable::new) does.
    pub fn forking(target: &Target, way: Way) -> Result<Traceable, ExecError> {
        Traceable::forking_at(target, way, Inject::Fork)
    }

    /// Prepares `target` as [`forking`](Traceable::forking) does; for the methods of execution
    /// `inject` and `snapshot`, runs are forked at the point of the program where `inject` forks
    /// them. Fails as [`new`](Traceable::new) does.
    pub(crate) fn forking_late(target: &Target, way: Way) -> Result<Traceable, ExecError> {
        Traceable::forking_at(target, way, ways::fork_point_of(target))
    }

    /// Prepares `target` for tracing, forking runs of its `main` at `point`.
    fn forking_at(target: &Target, way: Way, point: Inject) -> Result<Traceable, ExecError> {
        let mut prepared = PreparedTarget::prepare(target, way)?;
        if matches!(way, Way::Inject | Way::Snapshot) {
            prepared.see_through_script(target);
        }
        let inject = match (way, ways::not_injectable(&prepared)) {
            (Way::Inject | Way::Snapshot, None) => Some(point),
            (Way::Harness, None) => Some(Inject::Entry(ways::harness_entry(&prepared)?)),
            _ => None,
        };
        let forking = inject.map(|inject| prepared.launch(target, Role::Program, Some(inject)));
        let copying = crash_snapshots::copying(&prepared, target, way)?;
        let traceable = Traceable::at(prepared, target, way, None)?;
        let mut inner = traceable.lock();
        (inner.forking, inner.copying) = (forking, copying);
        inner.set_sanitizer_options(None);
        drop(inner);
        Ok(traceable)
    }

    /// Prepares a target that is run by its entry function, and starts its fork server. Also
    /// returns an executor for a search (such as minimization), whose runs that same server makes,
    /// many in one process. Fails as [`forking`](Traceable::forking) does, and if the fork server
    /// cannot be started.
    pub fn with_search(target: &Target) -> Result<(Traceable, Box<dyn Executor>), ExecError> {
        let traceable = Traceable::forking(target, Way::Harness)?;
        let mut inner = traceable.lock();
        let entry = match &inner.forking {
            Some(Launch {
                inject: Some(Inject::Entry(entry)),
                ..
            }) => *entry,
            _ => {
                let why = "no fork server calls its entry function";
                return Err(ExecError::unfit(Way::Harness, &inner.program, why));
            }
        };
        if let Some(forking) = &mut inner.forking {
            forking.inject = Some(Inject::Loop(entry));
        }
        inner.search = Some(SearchLoop::new(target.limits)?);
        inner.start_server(ServerMode::Forking)?;
        drop(inner);
        let executor = SharedServerExecutor::new(traceable.clone(), target);
        Ok((traceable, Box::new(executor)))
    }

    /// Prepares `target` as [`forking`](Traceable::forking) does, and records length and hash of
    /// what runs [write](Traced::written). Fails as [`new`](Traceable::new) does, and if no pipes
    /// can be created.
    pub fn listening(target: &Target, way: Way) -> Result<Traceable, ExecError> {
        let traceable = Traceable::forking(target, way)?;
        let private = PrivateDir::get()?;
        let capture = OutputCapture::open(&private).and_then(|capture| {
            let stdout = capture.stdout.writer();
            let mut inner = traceable.lock();
            inner.launch.stdout = Some(stdout.try_clone()?);
            if let Some(forking) = &mut inner.forking {
                forking.stdout = Some(stdout.try_clone()?);
            }
            inner.capture = Some(capture);
            Ok(())
        });
        capture.map_err(ExecError::system("listening to a target"))?;
        Ok(traceable)
    }

    /// Prepares `target` for tracing; each run executes the program anew and writes its stdout to
    /// `output`, at the current offset of that file. Fails as [`new`](Traceable::new) does.
    pub fn writing_to(target: &Target, way: Way, output: &File) -> Result<Traceable, ExecError> {
        let traceable = Traceable::new(target, way)?;
        let output = output.try_clone();
        let output = output.map_err(ExecError::system("sharing the file of a target's output"))?;
        traceable.lock().launch.stdout = Some(output);
        Ok(traceable)
    }

    /// Makes a traceable target of a prepared one. Each run writes its comparisons to the file
    /// `observed`, if given. Fails when `way` is the harness and the program has no entry function.
    pub(crate) fn at(
        mut prepared: PreparedTarget,
        target: &Target,
        way: Way,
        observed: Option<File>,
    ) -> Result<Traceable, ExecError> {
        let inject = match way {
            Way::Harness => Some(Inject::Once(ways::harness_entry(&prepared)?)),
            Way::Command | Way::Inject | Way::Snapshot | Way::Forkserver | Way::Mock => {
                observed.is_some().then_some(Inject::Pass)
            }
        };
        let stderr = DrainedPipe::open("ddfuzz-stderr", Excerpt::default())
            .map_err(ExecError::system("making a pipe"))?;
        let reports = match observed {
            None => prepared.reports()?,
            Some(_) => None,
        };
        let mut inner = TraceServer {
            server: None,
            mode: ServerMode::Executing,
            forking: None,
            search: None,
            copying: None,
            reruns: Reruns::new(target, way),
            program: prepared.program.clone(),
            may_panic: prepared.may_panic(),
            reports,
            launch: Launch {
                observed,
                ..prepared.launch(target, Role::Trace, inject)
            },
            input: prepared.input,
            scratch: prepared.scratch,
            stderr,
            capture: None,
            console: None,
            keys: Vec::new(),
            way,
            limits: target.limits,
            crash_exit: target.crash_exit,
        };
        inner.console = Console::of(target, inner.launch.identity);
        inner.set_sanitizer_options(None);
        Ok(Traceable {
            inner: Arc::new(Mutex::new(inner)),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, TraceServer> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the method of execution for which the target was prepared; its traced runs behave
    /// like the runs of this method.
    pub fn way(&self) -> Way {
        self.lock().way
    }

    /// Returns the conditions under which runs of the target are abandoned.
    pub fn abandon_when(&self) -> AbandonWhen {
        self.lock().launch.abandon_when.clone()
    }

    /// Returns the limits on each run of the target. At a terminal: the limits on the last run,
    /// whose wall time grows with the keys typed.
    pub fn limits(&self) -> Limits {
        self.lock().limits_now()
    }

    /// Replaces the time limits of all later runs of the target.
    pub fn limit_time(&self, time: TimeLimit) {
        let mut inner = self.lock();
        inner.limits = time.within(inner.limits);
    }

    /// Returns the exit status that counts as a crash of the target; `None` if no status does.
    pub fn crash_exit(&self) -> Option<i32> {
        self.lock().crash_exit
    }

    /// Returns the path of the program that runs; for a script, of the interpreter where it is
    /// known.
    pub fn program(&self) -> PathBuf {
        self.lock().program.clone()
    }

    /// Whether a run without address-space layout randomization is forked from the loaded target,
    /// and so takes about as long as an ordinary run of a fork server.
    pub fn forks(&self) -> bool {
        let inner = self.lock();
        inner.forking.is_some() && inner.console.is_none()
    }

    /// Whether the program can end by a Rust panic, according to its ELF file.
    pub fn may_panic(&self) -> bool {
        self.lock().may_panic
    }

    /// Returns this target with a separate fork server, with settings (such as sanitizer options)
    /// for running inputs again for the reason `why`.
    fn rerun(&self, why: RerunReason) -> Result<Traceable, ExecError> {
        let mut inner = self.lock();
        let rerun = inner.reruns.get(why)?;
        rerun.lock().limits = inner.limits;
        Ok(rerun)
    }

    /// Chooses the sanitizer options of later runs, which run inputs again for the reason `why`: a
    /// search for leaks, handlers of deadly signals, or a print of all options at the start.
    fn set_sanitizer_options(&self, why: RerunReason) {
        self.lock().set_sanitizer_options(Some(why));
    }

    /// Starts a child process for `input` that waits to be seized by a tracer. `random_addresses`:
    /// enables address-space layout randomization. Fails when the fork server cannot be started or
    /// breaks.
    pub fn start(&self, input: &[u8], random_addresses: bool) -> Result<Traced, ExecError> {
        let mode = match self.lock().forking {
            Some(_) if !random_addresses => ServerMode::Forking,
            _ => ServerMode::Executing,
        };
        self.start_in_mode(input, random_addresses, mode)
    }

    /// Starts a run that is not traced, but writes a snapshot of itself when it crashes; also
    /// returns the memory of the snapshots. `random_addresses`: whether the kernel places the
    /// process at random addresses. `None` where no library can be preloaded into the target. Fails
    /// as [`start`](Traceable::start) does.
    pub fn start_copied(
        &self,
        input: &[u8],
        random_addresses: bool,
    ) -> Result<Option<(Traced, Arc<CrashSnapshots>)>, ExecError> {
        let copies = match &self.lock().copying {
            Some((launch, copies)) => {
                let cleared = copies.clear();
                cleared.map_err(|source| launch.sharing_error(source))?;
                Arc::clone(copies)
            }
            None => return Ok(None),
        };
        let run = self.start_in_mode(input, random_addresses, ServerMode::Copying)?;
        Ok(Some((run, copies)))
    }

    fn start_in_mode(
        &self,
        input: &[u8],
        random_addresses: bool,
        mode: ServerMode,
    ) -> Result<Traced, ExecError> {
        let mut inner = self.lock();
        let mut tries = 0;
        loop {
            inner.launch.abandon_when.check()?;
            tries += 1;
            let asked = match inner.put_in_place(input, mode) {
                Ok(()) => inner.ask(input.len(), random_addresses),
                Err(error) if tries == TRIES => return Err(error),
                Err(_) => Err(gone()),
            };
            match asked {
                Ok(pid) => {
                    return Ok(Traced {
                        of: self.clone(),
                        pid,
                        executes: inner.mode != ServerMode::Forking,
                        released: false,
                        dies_with_server: false,
                        answer: None,
                    });
                }
                Err(broken) if tries == TRIES => return Err(inner.broken(&broken)),
                Err(_) => inner.server = None, // somebody has killed it since the run before
            }
        }
    }

    /// Runs `target` on `input` in a new process, untraced, and returns how its first process
    /// ended, whatever became of the processes that it started. Fails when the target cannot be
    /// run.
    pub fn status_of(target: &Target, input: &[u8]) -> Result<Ended, ExecError> {
        let (ended, _) = Traceable::new(target, Way::Command)?.run_untraced(input, true)?;
        Ok(ended)
    }

    /// Checks whether the program was loaded, after a run of `target` that ended by `ended`.
    ///
    /// # Errors
    /// [`ExecError::NotExecutable`] with the message of the dynamic loader, where it did not find a
    /// library or a symbol; also when the target cannot be run again to read that message.
    pub fn check_loaded(target: &Target, ended: Ended) -> Result<(), ExecError> {
        if ended != Ended::Exit(LOADER_EXIT) {
            return Ok(());
        }
        let traceable = Traceable::new(target, Way::Command)?;
        let (_, messages) = traceable.run_untraced(b"", true)?;
        let written = String::from_utf8_lossy(&messages.stderr).into_owned();
        let message = LOADER_ERRORS.iter().find_map(|error| written.find(error));
        match message.and_then(|at| written[at..].lines().next()) {
            Some(why) => Err(ExecError::NotExecutable {
                path: traceable.program(),
                why: NotExecuted::Library(why.to_owned()),
            }),
            None => Ok(()),
        }
    }

    /// Returns the names of the compiler instrumentation that decides which crashes the program can
    /// show ([`TargetFacts::instrumentation`]); `None` if the program is not an ELF file.
    pub fn instrumentation(&self) -> Option<Vec<String>> {
        self.lock().reruns.instrumentation()
    }

    /// Runs a script on `input` and returns the sanitizers in the programs that it starts, by their
    /// names in `-fsanitize=`. UndefinedBehaviorSanitizer is left out: its runtime can be linked
    /// without any checks. Fails when the target cannot be run.
    pub fn sanitizers_of_run(&self, input: &[u8]) -> Result<Vec<String>, ExecError> {
        // Not with a fork server: its sanitizers print their options when the server starts.
        let (_, said) = self.run_again(input, true, RerunReason::Introductions)?;
        let text = String::from_utf8_lossy(&said.stderr);
        let introduced = |it: &Sanitizer| {
            let line = format!("Available flags for {}:", it.title());
            *it != Sanitizer::Ubsan && text.contains(&line)
        };
        let found = Sanitizer::ALL.into_iter().filter(introduced);
        Ok(found.map(|it| it.flag().to_owned()).collect())
    }

    /// Runs an input again, without a tracer and with the settings for the reason `why`. Returns
    /// how the run ended and what it wrote. `random_addresses`: enables address-space layout
    /// randomization. Fails when the target cannot be run.
    pub fn run_again(
        &self,
        input: &[u8],
        random_addresses: bool,
        why: RerunReason,
    ) -> Result<(Ended, CrashMessages), ExecError> {
        self.rerun(why)?.run_untraced(input, random_addresses)
    }

    /// Runs an input without a tracer; `random_addresses` enables address-space layout
    /// randomization. Returns how the run's first process ended and what the run wrote. A run whose
    /// server dies counts as killed.
    fn run_untraced(
        &self,
        input: &[u8],
        random_addresses: bool,
    ) -> Result<(Ended, CrashMessages), ExecError> {
        let mut run = self.start(input, random_addresses)?.dying_with_server();
        run.release()?;
        let ended = run.wait()?;
        Ok((ended, run.crash_messages()))
    }
}

/// A child process that waits to be seized and is then traced to its end. Dropping it kills the
/// process.
pub struct Traced {
    of: Traceable,
    pid: Pid,
    executes: bool,
    released: bool,
    /// Whether the run counts as killed by SIGKILL if its server dies before the run has ended; if
    /// false, the server's death is an error.
    dies_with_server: bool,
    answer: Option<(Ended, Duration)>,
}

impl Traced {
    /// Returns the id of the child process of this run. Its parent is the fork server, not ddfuzz.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Whether the child process still has to execute the target; false if it is a forked copy of
    /// the target.
    pub fn executes(&self) -> bool {
        self.executes
    }

    /// Makes this run count as killed by SIGKILL if its fork server dies before the run has ended,
    /// because the target may have killed the server, its parent. By default, the server's death is
    /// an error.
    pub fn dying_with_server(mut self) -> Traced {
        self.dies_with_server = true;
        self
    }

    /// Lets the waiting child process continue, to its `execve` if it still has to execute the
    /// target; at a terminal, typing begins. Fails when the fork server is gone or the terminal
    /// cannot be reset.
    pub fn release(&mut self) -> Result<(), ExecError> {
        self.released = true;
        let mut inner = self.of.lock();
        inner.begin()?;
        let sent = match inner.server.as_mut() {
            Some(server) => server.send(b"g"),
            None => Err(gone()),
        };
        sent.map_err(|broken| inner.broken(&broken))
    }

    /// Waits until the released child process of this run ends, without a tracer and within the
    /// target's limits; returns how it ended. Fails when the program could not be executed, or the
    /// fork server broke.
    pub fn wait(&mut self) -> Result<Ended, ExecError> {
        self.wait_for_run().map(|run| run.ended)
    }

    /// Waits until the released child process of this run has ended, within the target's limits,
    /// and returns the result of the run. A tracer of the process must not keep it from ending.
    /// Fails as [`wait`](Traced::wait) does.
    pub fn wait_for_run(&mut self) -> Result<Run, ExecError> {
        let mut inner = self.of.lock();
        let limits = inner.limits_now();
        let waited = match &inner.server {
            Some(server) => server.wait(&limits),
            None => Err(gone()),
        };
        let killed = match waited {
            Ok(killed) => killed,
            Err(broken) if self.dies_with_server => {
                let answer = inner.end_of(broken)?;
                self.answer = Some(answer);
                None
            }
            Err(broken) => return Err(inner.broken(&broken)),
        };
        drop(inner);
        let (ended, cpu) = self.finish()?;
        let (ended, cpu) = match (killed, ended) {
            (Some(killed), Ended::Signal(libc::SIGKILL)) => (killed.why, cpu.max(killed.cpu)),
            (_, ended) => (ended, cpu),
        };
        let ended = self.of.lock().judge(ended);
        let read = self.read();
        Ok(Run { ended, cpu, read })
    }

    /// Returns the number of input bytes that the run has read from stdin; 0 if the input is in a
    /// file that the run has not read. `None` where the number cannot be told. The child process
    /// must be dead, or its tracer detached.
    pub fn read(&self) -> Option<u64> {
        self.of.lock().read_so_far()
    }

    /// Returns how the run ended, and its CPU time, as the fork server tells them. The child
    /// process must be dead, or its tracer detached.
    fn finish(&mut self) -> Result<(Ended, Duration), ExecError> {
        if let Some(answer) = self.answer {
            return Ok(answer);
        }
        let mut inner = self.of.lock();
        let reply = match inner.server.as_mut() {
            Some(server) => {
                let reply = server.reply(GRACE);
                server.leave_directory();
                reply
            }
            None => Err(gone()),
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(broken) if self.dies_with_server && self.released => {
                let answer = inner.end_of(broken)?;
                self.answer = Some(answer);
                return Ok(answer);
            }
            Err(broken) => return Err(inner.broken(&broken)),
        };
        let refused =
            (reply.exec_errno != 0).then(|| not_executed(&inner.launch.program, reply.exec_errno));
        drop(inner);
        let ended = Ended::from_wait_status(reply.status);
        let answer = (ended, Duration::from_micros(reply.cpu_us));
        // Also where the program was not executed: no second reply will come.
        self.answer = Some(answer);
        refused.map_or(Ok(answer), Err)
    }

    /// Returns the CPU time that the run has used; zero if its fork server broke. The child process
    /// must be dead, or its tracer detached.
    pub fn cpu(&mut self) -> Duration {
        self.finish().map_or(Duration::ZERO, |(_, cpu)| cpu)
    }

    /// Returns the ids of ddfuzz's threads that empty the pipes to which the run writes: while they
    /// wait for a processor, the run may have to wait, too.
    pub fn output_readers(&self) -> Vec<Pid> {
        self.of.lock().output_readers()
    }

    /// Returns the last 4 KiB that the run wrote to stderr or to its terminal.
    pub fn stderr_tail(&mut self) -> Vec<u8> {
        let mut inner = self.of.lock();
        match &mut inner.console {
            Some(console) => tail(console.output()),
            None => tail(inner.stderr.excerpt()),
        }
    }

    /// Returns what the run wrote about its crash: stderr, or the output on its terminal, and a
    /// sanitizer's report.
    pub fn crash_messages(&mut self) -> CrashMessages {
        let mut inner = self.of.lock();
        let report = inner.reports.as_ref().map(Reports::read);
        CrashMessages {
            stderr: match &mut inner.console {
                Some(console) => console.output(),
                None => inner.stderr.excerpt(),
            },
            report: report.unwrap_or_default(),
        }
    }

    /// Returns length and hash of what the run wrote to stdout and to stderr, complete once all its
    /// processes have ended. `None` where output is not captured, and at a terminal.
    pub fn written(&self) -> Option<(Written, Written)> {
        let inner = self.of.lock();
        let capture = inner.capture.as_ref()?;
        let at_terminal = inner.console.is_some();
        (!at_terminal).then(|| (capture.stdout.written(), capture.stderr.written()))
    }

    /// Returns device and inode of the files that hold the run's input, stdin included. Empty for a
    /// target at a terminal, which gets its input as typed keys.
    pub fn input_files(&self) -> Vec<(u64, u64)> {
        let inner = self.of.lock();
        match inner.console {
            Some(_) => Vec::new(),
            None => inner.input.identities(),
        }
    }
}

/// The state of a stopped run's files, before forks of the run change them:
/// [`restore`](Traced::restore) undoes these changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFiles {
    /// For each input file: whether it is where the target finds it, its size in bytes, and the
    /// time of its last change (seconds, nanoseconds).
    input: Vec<(bool, u64, i64, i64)>,
    /// Whether the working directory is empty.
    is_empty: bool,
}

impl Traced {
    /// Returns what shows whether a run has changed files: the states of its input files, and
    /// whether its working directory is empty.
    pub fn files(&self) -> RunFiles {
        let mut inner = self.of.lock();
        RunFiles {
            input: inner.input.states(),
            is_empty: inner.scratch.is_empty(),
        }
    }

    /// Undoes what a fork of the run has done to the run's files, whose state was `files` before:
    /// writes the input `bytes` again if the input was changed, moved or deleted, and empties the
    /// working directory if it was empty before.
    ///
    /// # Errors
    /// When the input cannot be written.
    pub fn restore(&self, files: &mut RunFiles, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.of.lock();
        if files.is_empty {
            let _ = inner.scratch.clean();
        }
        if inner.input.states() != files.input {
            inner.input.write(bytes)?;
            files.input = inner.input.states();
        }
        Ok(())
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let known = self.answer.is_some() || (self.released && self.finish().is_ok());
        let mut inner = self.of.lock();
        if !known {
            inner.server = None; // ends the child with everything else
        }
        if let Some(console) = &mut inner.console {
            console.finish();
        }
        if let Some(reports) = &mut inner.reports {
            reports.clear();
        }
        match inner.scratch.clean() {
            Ok(Cleaned::Same) => {}
            // The working directory of the server is gone; the next start reports an error.
            Ok(Cleaned::Replaced) | Err(_) => inner.server = None,
        }
    }
}

/// The target, prepared again for each [`RerunReason`], such as a search for memory leaks: a
/// separate fork server has the settings for that reason in its environment. Each server starts
/// when it is first needed.
pub(crate) struct Reruns {
    target: Target,
    way: Way,
    known: Vec<(RerunReason, Traceable)>,
}

impl Reruns {
    pub(crate) fn new(target: &Target, way: Way) -> Reruns {
        Reruns {
            target: target.clone(),
            way,
            known: Vec::new(),
        }
    }

    /// Returns the names of the program's compiler instrumentation; `None` if the program is not an
    /// ELF file or cannot be read.
    fn instrumentation(&self) -> Option<Vec<String>> {
        let facts = TargetFacts::of(&self.target).ok()?;
        facts.instrumentation()
    }

    /// Returns the target with a separate fork server, with settings for running inputs again for
    /// the reason `why`; it can be used while the original target is locked.
    pub(crate) fn get(&mut self, why: RerunReason) -> Result<Traceable, ExecError> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == why) {
            return Ok(known.clone());
        }
        let mut target = self.target.clone();
        if why == RerunReason::Backtrace {
            // The last definition of a variable wins.
            let variables = [("RUST_BACKTRACE", "1"), ("RUST_LIB_BACKTRACE", "0")];
            let set = variables.map(|(name, value)| (name.into(), value.into()));
            target.env.extend(set);
        }
        let mut way = self.way;
        if why == RerunReason::Leaks && way == Way::Harness {
            // Harness runs end with `_exit`, but LeakSanitizer checks for leaks in `exit`.
            (target, way) = (target.with_main_arguments(), Way::Command);
        }
        let made = Traceable::forking(&target, way)?;
        made.set_sanitizer_options(why);
        self.known.push((why, made.clone()));
        Ok(made)
    }
}
