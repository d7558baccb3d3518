//! A running server of ddfuzz's own protocol: ddfuzz sends a request, and the server runs the
//! target and replies.

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::{errno::Errno, unistd::Pid};
use std::io::{ErrorKind, IoSliceMut, Read, Write};
use std::time::{Duration, Instant};
use std::{cell::Cell, fs::File, os::fd::OwnedFd, path::PathBuf};

use crate::blocks;
use crate::hang_detector::{HangDetector, ObservedProcess};
use crate::launch::{Inject, Launch, Role, ServerPipes};
use crate::program::not_executed;
use crate::protocol::{
    ForkPoint, HELLO_SIZE, REPLY_SIZE, Reply, Request, Trouble, flag, read_hello,
};
use crate::refusals::{self, RefusalReason};
use crate::run_directory::RunDirectory;
use crate::shared_page::{Page, PageLayout, RunOutcome};
use crate::watch::{HangCheck, Killed, WaitOutcome, Watch};
use crate::{
    AbandonWhen, Ended, ExecError, Limits, Way, proc_tree, proc_tree::outer_pid,
    supervisor::Supervisor,
};

/// How long a fork server may take to start until it sends its first message.
pub(crate) const STARTUP: Duration = Duration::from_secs(10);
/// How long the rest of a fork server's reply may take once its first byte has arrived.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// A running fork server, which runs the target on request, and the pipes and memory shared with
/// it.
pub(crate) struct Server {
    pipes: ServerPipes,
    pub(crate) page: Page,
    /// Number of the last run that was requested from the fork server; runs are numbered from 1.
    seq: u64,
    /// Number of the first run of the last request; a request may be for several runs.
    first: u64,
    pid: Pid,
    /// The point in the program at which the fork server forks its runs.
    pub(crate) fork_point: ForkPoint,
    /// The target's scratch directory, if ddfuzz must check its size; `None` if the kernel limits
    /// it.
    watched: Option<PathBuf>,
    /// The directory of the user in which the runs start, locked for one run at a time; `None` if
    /// it need not or cannot be locked, or if the runs have a directory of their own.
    directory: Option<RunDirectory>,
    /// Whether the fork server reports process ids of its own PID namespace, which differ from
    /// ddfuzz's.
    numbers_processes: bool,
    /// The process that runs many inputs: its id in the shared memory (the one in its own PID
    /// namespace), and its id for ddfuzz; `None` if it was not looked up yet, or is gone.
    runner: Cell<Option<(Pid, Pid)>>,
    /// Threads of ddfuzz that empty the pipes to which runs write; empty where there are none.
    pub(crate) output_readers: Vec<Pid>,
    abandon_when: AbandonWhen,
    /// The target's scratch directory, opened, if it is a mount that only processes in the fork
    /// server's mount namespace see; else `None`.
    scratch: Option<OwnedFd>,
    // Dropped last: kills what did not end when the pipes closed.
    supervisor: Supervisor,
}

/// Why a request to a fork server got no answer: the server died, was silent, broke the protocol,
/// or could not execute the program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// ddfuzz no longer waits for the reply, because the run was abandoned; the fork server may
    /// still be making the run.
    #[error("the run was abandoned")]
    Abandoned,
    /// The fork server died.
    #[error("it died")]
    Died,
    /// The fork server did not reply after its run was killed at a limit; holds how the run ended.
    #[error("it does not answer")]
    Silent(Ended),
    /// The fork server broke the protocol; the text says in which way.
    #[error("{0}")]
    ProtocolBroken(String),
    /// The fork server could not execute the program; holds the error of `execve`.
    #[error("executing the program failed: {0}")]
    Exec(nix::Error),
}

/// How one run ended, according to a fork server's reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// Index of the run among the runs of its request, from 0.
    pub(crate) number: usize,
    pub(crate) ended: Ended,
    pub(crate) cpu: Duration,
    /// Whether the target started other processes in the run.
    pub(crate) forked: bool,
    /// Why the process that runs many inputs has refused the run, so that a fork of the server made
    /// it; `None` if it was not refused.
    pub(crate) refused: Option<RefusalReason>,
}

impl Server {
    /// Starts a fork server as `launch` describes and waits for its first message (hello). `stdin`:
    /// the target's stdin; `stderr`: where its stderr goes, `None` for /dev/null or the file in
    /// `launch`; `page`: new memory to share with the server.
    pub(crate) fn start(
        launch: &Launch,
        stdin: &File,
        stderr: Option<&File>,
        page: Page,
    ) -> Result<Server, ExecError> {
        let (supervisor, mut pipes) = launch
            .start(stdin, &page.file, stderr)
            .map_err(|errno| system(launch, "starting the launcher", errno))?;
        let (told, fork_point) = await_hello(launch, &mut pipes.reply)?;
        let pid = match launch.numbers_processes() {
            true => outer_pid(told, supervisor.pid).unwrap_or(told),
            false => told,
        };
        check_descent(launch, &supervisor, pid)?;
        Ok(Server {
            watched: launch.watched_scratch(),
            directory: launch.run_directory(),
            numbers_processes: launch.numbers_processes(),
            runner: Cell::new(None),
            output_readers: Vec::new(),
            abandon_when: launch.abandon_when.clone(),
            scratch: hidden_scratch(launch, &supervisor)?,
            pipes,
            page,
            seq: 0,
            first: 0,
            pid,
            fork_point,
            supervisor,
        })
    }

    /// Requests one run on the input that was written last, `length` bytes long, and waits until
    /// the run ends; it is killed at `limits`. Returns the answer of the server.
    pub(crate) fn run(&mut self, length: usize, limits: &Limits) -> Result<Answer, RequestError> {
        self.ask(length, 0)?;
        self.answer(limits, None)
    }

    /// Requests runs of several inputs in one process; `places` are the inputs' offsets and
    /// lengths, in bytes, in the shared file; `flags` say what is observed; `detector` recognises
    /// hangs. The answer is about the last run that was made: all runs before it returned normally,
    /// and the inputs after it were not run.
    pub(crate) fn run_all(
        &mut self,
        places: &[(u64, u64)],
        flags: u64,
        limits: &Limits,
        detector: &mut HangDetector,
    ) -> Result<Answer, RequestError> {
        self.page.put_inputs(places).map_err(not_shared)?;
        self.first = self.seq + 1;
        self.seq += places.len() as u64;
        let used = |server: &Server| {
            LoopProcess::new(server)
                .used()
                .filter(|_| places.len() == 1)
        };
        let before = used(self);
        self.request(self.first, places.len(), flags)?;
        let mut answer = self.answer(limits, Some(detector))?;
        // A new process has used CPU time for these runs only.
        if let Some((process, now)) = used(self) {
            let before = before.filter(|(other, _)| *other == process);
            let cpu = now.saturating_sub(before.map_or(Duration::ZERO, |(_, before)| before));
            answer.cpu = answer.cpu.max(cpu);
        }
        Ok(answer)
    }

    /// Ends the process that runs many inputs, and returns the server, whose next request gets a
    /// new process. `None` if the fork server has died or does not answer; it is then killed.
    pub(crate) fn end_process(mut self) -> Option<Server> {
        self.ask(0, flag::LAST).ok()?;
        self.reply(REPLY_TIMEOUT).ok()?;
        self.leave_directory();
        Some(self)
    }

    /// Waits for the fork server's answer to the last request, which is about its last run, and
    /// returns it; kills the run if it exceeds `limits`. `detector` observes runs that take long,
    /// to recognise hangs.
    fn answer(
        &mut self,
        limits: &Limits,
        mut detector: Option<&mut HangDetector>,
    ) -> Result<Answer, RequestError> {
        loop {
            let looping = LoopProcess::new(self);
            let look = detector.as_deref_mut().map(|detector| HangCheck {
                detector,
                process: &looping,
            });
            let waited = self.watch(limits, look)?;
            // A repeated answer to an earlier run is ignored.
            let Some(reply) = self.next_reply()? else {
                continue;
            };
            self.leave_directory();
            if reply.exec_errno != 0 {
                return Err(RequestError::Exec(Errno::from_raw(reply.exec_errno)));
            }
            let number = usize::try_from(reply.seq - self.first).unwrap_or(usize::MAX);
            self.seq = reply.seq;
            let mut cpu = Duration::from_micros(reply.cpu_us);
            let ended = match (waited, Ended::from_wait_status(reply.status)) {
                (Some(killed), Ended::Signal(libc::SIGKILL)) if killed.run == reply.seq => {
                    cpu = cpu.max(killed.cpu);
                    killed.why
                }
                // The kill was for the previous run, which had just returned.
                (Some(_), Ended::Signal(libc::SIGKILL)) if number > 0 => {
                    return self.returned_answer(number - 1);
                }
                (_, ended) => ended,
            };
            return Ok(Answer {
                number,
                ended: self.page.crashed().map_or(ended, Ended::Signal),
                forked: self.page.forked(),
                refused: self.page.refused(),
                cpu,
            });
        }
    }

    /// Makes the answer for a run that returned normally, from the shared memory; `number` is its
    /// index in the last request, from 0. Fails if the memory cannot be read.
    pub(crate) fn returned_answer(&self, number: usize) -> Result<Answer, RequestError> {
        let outcomes = self.page.outcomes(number + 1).map_err(not_shared)?;
        let RunOutcome { status, cpu, .. } = outcomes[number];
        Ok(Answer {
            number,
            ended: Ended::from_wait_status(status),
            cpu,
            forked: false,
            refused: None,
        })
    }

    /// Sends a request, with `flags`, for one run on an input of `length` bytes, without waiting
    /// for the reply.
    pub(crate) fn ask(&mut self, length: usize, flags: u64) -> Result<(), RequestError> {
        self.seq += 1;
        self.first = self.seq;
        self.request(self.seq, length, flags)
    }

    /// Returns the paths of the shared libraries that the server process has loaded, from its
    /// /proc/PID/maps; empty if that cannot be read.
    pub(crate) fn libraries(&self) -> Vec<PathBuf> {
        let maps = std::fs::read(format!("/proc/{}/maps", self.pid));
        maps.map_or(Vec::new(), |maps| blocks::libraries_in(&maps))
    }

    /// Returns the number of the first run of the last request.
    pub(crate) fn first_run(&self) -> u64 {
        self.first
    }

    fn request(&mut self, seq: u64, count: usize, flags: u64) -> Result<(), RequestError> {
        let request = Request {
            seq,
            count: count as u64,
            flags,
        };
        if let Some(directory) = &mut self.directory {
            directory.enter(&self.abandon_when);
        }
        self.send(&request.to_bytes())
    }

    /// Unlocks, after a run has ended, the directory of the user in which the runs start (`--cwd`),
    /// so that other runs can use it.
    pub(crate) fn leave_directory(&mut self) {
        if let Some(directory) = &mut self.directory {
            directory.leave();
        }
    }

    /// Takes out the open descriptor of the target's scratch directory, which only the fork
    /// server's mount namespace shows; `None` if there is none.
    pub(crate) fn take_scratch(&mut self) -> Option<OwnedFd> {
        self.scratch.take()
    }

    /// Translates `told`, a process id that the fork server reported, into the id that the process
    /// has for ddfuzz, if their PID namespaces differ; `None` where the process is gone.
    pub(crate) fn process(&self, told: Pid) -> Option<Pid> {
        match self.numbers_processes {
            true => outer_pid(told, self.pid),
            false => Some(told),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), RequestError> {
        self.pipes
            .request
            .write_all(bytes)
            .map_err(|_| RequestError::Died)
    }

    /// Waits for the reply to the last request, and kills the run if it exceeds `limits`. Returns
    /// which limit the killed run exceeded; `None` if it was not killed.
    pub(crate) fn wait(&self, limits: &Limits) -> Result<Option<Killed>, RequestError> {
        self.watch(limits, None)
    }

    fn watch(
        &self,
        limits: &Limits,
        look: Option<HangCheck<'_>>,
    ) -> Result<Option<Killed>, RequestError> {
        let watch = Watch {
            reply: &self.pipes.reply,
            page: Some(&self.page),
            first: self.first,
            server: self.pid,
            supervisor: self.supervisor.pid,
            scratch: self.watched.as_deref(),
            warm: self.page.layout != PageLayout::Single,
            output_readers: &self.output_readers,
            abandon_when: &self.abandon_when,
        };
        match watch.wait(limits, look) {
            WaitOutcome::Ready => Ok(None),
            WaitOutcome::Abandoned => Err(RequestError::Abandoned),
            WaitOutcome::Killed(killed) => Ok(Some(killed)),
            WaitOutcome::Silent(why) => Err(RequestError::Silent(why)),
            WaitOutcome::Untaken => Err(RequestError::ProtocolBroken(
                "it does not accept requests".to_owned(),
            )),
        }
    }

    /// Reads the fork server's reply to the last request; fails if none comes within `timeout`.
    pub(crate) fn reply(&mut self, timeout: Duration) -> Result<Reply, RequestError> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !self
                .abandon_when
                .wait_until_readable(&self.pipes.reply, left)
            {
                return Err(match self.abandon_when.is_met() {
                    true => RequestError::Abandoned,
                    false => RequestError::ProtocolBroken("it does not answer".to_owned()),
                });
            }
            if let Some(reply) = self.next_reply()? {
                return Ok(reply);
            }
        }
    }

    /// Reads one reply of the fork server; returns `None` if the reply belongs to an earlier
    /// request or run.
    fn next_reply(&mut self) -> Result<Option<Reply>, RequestError> {
        let mut bytes = [0; REPLY_SIZE];
        let never = &AbandonWhen::default();
        match read_within(&mut self.pipes.reply, &mut bytes, REPLY_TIMEOUT, never) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(RequestError::Died);
            }
            Err(error) => {
                return Err(RequestError::ProtocolBroken(format!(
                    "its reply cannot be read: {error}"
                )));
            }
        }
        let reply = Reply::from_bytes(&bytes);
        if reply.seq > self.seq {
            let (given, asked) = (reply.seq, self.seq);
            return Err(RequestError::ProtocolBroken(format!(
                "it replied to run {given} instead of {asked}"
            )));
        }
        Ok((reply.seq >= self.first).then_some(reply))
    }
}

/// The process that runs many inputs one after the other, as hang detection observes it.
struct LoopProcess<'a> {
    server: &'a Server,
}

impl LoopProcess<'_> {
    fn new(server: &Server) -> LoopProcess<'_> {
        LoopProcess { server }
    }

    /// Returns the id and the CPU time so far of the process that runs the inputs; `None` if it is
    /// gone.
    fn used(&self) -> Option<(Pid, Duration)> {
        Some((self.process()?, self.cpu()?))
    }
}

impl ObservedProcess for LoopProcess<'_> {
    fn process(&self) -> Option<Pid> {
        let (runner, told) = (&self.server.runner, self.server.page.child());
        if !matches!(runner.get(), Some((known, _)) if known == told) {
            let process = self.server.process(told);
            runner.set(process.map(|process| (told, process)));
        }
        runner.get().map(|(_, process)| process)
    }

    fn cpu(&self) -> Option<Duration> {
        let cpu = proc_tree::cpu_of(self.process()?);
        if cpu.is_none() {
            self.server.runner.set(None);
        }
        cpu
    }

    fn counters(&self, to: &mut Vec<u8>) -> bool {
        let page = &self.server.page;
        let (Some(process), Some(base)) = (self.process(), page.counters_at()) else {
            return false;
        };
        let len = page.layout.counters();
        to.resize(len, 0);
        let remote = [RemoteIoVec { base, len }];
        let read = process_vm_readv(process, &mut [IoSliceMut::new(to)], &remote);
        read == Ok(len)
    }

    fn sleeps(&self) -> bool {
        self.process()
            .is_some_and(|process| !proc_tree::is_runnable(process))
    }
}

fn not_shared(error: std::io::Error) -> RequestError {
    RequestError::ProtocolBroken(format!("memory cannot be shared with it: {error}"))
}

/// Waits for a fork server's first message (hello); returns the server's process id and the point
/// of the program where it forks runs. Fails when no message came in time, or when the message says
/// why the server cannot serve.
pub(crate) fn await_hello(
    launch: &Launch,
    reply: &mut File,
) -> Result<(Pid, ForkPoint), ExecError> {
    let mut hello = [0; HELLO_SIZE];
    match read_within(reply, &mut hello, STARTUP, &launch.abandon_when) {
        Ok(()) => {}
        Err(_) if launch.abandon_when.is_met() => return Err(ExecError::Abandoned),
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            let why = format!("it did not start within {} s", STARTUP.as_secs());
            return Err(server_error(launch, &why));
        }
        Err(_) => return Err(server_error(launch, "it exited before its main function")),
    }
    let hello = read_hello(&hello).map_err(|trouble| startup_error(launch, trouble))?;
    Ok((Pid::from_raw(hello.0), hello.1))
}

/// Returns the target's scratch directory, opened, where ddfuzz cannot see the directory, because
/// only the fork server's mount namespace shows it; the supervisor sends the descriptor. `None`
/// where ddfuzz can see it.
pub(crate) fn hidden_scratch(
    launch: &Launch,
    supervisor: &Supervisor,
) -> Result<Option<OwnedFd>, ExecError> {
    if !launch.hides_scratch() {
        return Ok(None);
    }
    match supervisor.receive() {
        Ok(Some(directory)) => Ok(Some(directory)),
        Ok(None) => Err(server_error(
            launch,
            "its supervisor created no temporary directory",
        )),
        Err(errno) => Err(system(launch, "opening the temporary directory", errno)),
    }
}

/// Fails if /proc does not show the fork server `pid` as a living descendant of the supervisor
/// process.
pub(crate) fn check_descent(
    launch: &Launch,
    supervisor: &Supervisor,
    pid: Pid,
) -> Result<(), ExecError> {
    if !proc_tree::descends(pid, supervisor.pid) {
        // Without /proc, neither the run nor its processes can be observed.
        return Err(ExecError::Server {
            path: launch.program.clone(),
            why: "it is not in /proc (is /proc mounted for another PID namespace?)".to_owned(),
        });
    }
    Ok(())
}

/// Fills `buffer` with bytes from the pipe `from`. Fails if that takes longer than `timeout`, if
/// the pipe is closed before, or, as at a timeout, if a condition of `abandon_when` is met.
pub(crate) fn read_within(
    from: &mut File,
    buffer: &mut [u8],
    timeout: Duration,
    abandon_when: &AbandonWhen,
) -> std::io::Result<()> {
    let deadline = Instant::now() + timeout;
    let mut filled = 0;
    while filled < buffer.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if !abandon_when.wait_until_readable(&*from, left) {
            return Err(ErrorKind::TimedOut.into());
        }
        match from.read(&mut buffer[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn system(launch: &Launch, what: &str, errno: Errno) -> ExecError {
    let hint = match errno {
        // Errors that say that the server's high descriptor numbers are not available.
        Errno::EMFILE | Errno::EINVAL | Errno::EBADF => {
            " (too few file descriptors? raise `ulimit -n`)"
        }
        _ => "",
    };
    ExecError::System {
        what: format!("{what} for {}{hint}", launch.program.display()),
        source: errno.into(),
    }
}

fn server_error(launch: &Launch, why: &str) -> ExecError {
    match launch.role {
        Role::Program => {
            let way = match launch.inject {
                Some(Inject::Fork | Inject::Defer) | None => Way::Inject,
                Some(Inject::Restore) => Way::Snapshot,
                Some(_) => Way::Harness,
            };
            ExecError::unfit(way, &launch.program, why)
        }
        Role::Afl => ExecError::unfit(Way::Forkserver, &launch.program, why),
        Role::Serve | Role::Trace => ExecError::Server {
            path: launch.program.clone(),
            why: why.to_owned(),
        },
    }
}

pub(crate) fn startup_error(launch: &Launch, trouble: Trouble) -> ExecError {
    let path = &launch.program;
    match trouble {
        Trouble::Exec(errno) => not_executed(path, errno),
        Trouble::Setup(errno) => ExecError::System {
            what: format!(
                "setting the limits, user or directory of {}",
                path.display()
            ),
            source: std::io::Error::from_raw_os_error(errno),
        },
        Trouble::Threads => server_error(launch, "it starts threads before its main function"),
        Trouble::Children => server_error(launch, "it starts processes before its main function"),
        Trouble::Descriptors => server_error(
            launch,
            "it closes file descriptors that it did not open before its main function",
        ),
        Trouble::Unfit(reason) => server_error(launch, refusals::why_unfit(reason)),
        Trouble::ProtocolBroken => server_error(launch, "it does not speak the protocol"),
    }
}
