//! A running AFL++ fork server: one word requests a run, two words report it. Also kills the
//! processes that runs leave behind.

use nix::sys::signal::{Signal, kill};
use nix::{errno::Errno, unistd::Pid};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};
use std::{fs::File, io::Write, os::unix::fs::FileExt, path::PathBuf};

use crate::afl::handshake::{Handshake, HandshakeError, HandshakePipes};
use crate::hang_detector::{HangDetector, ObservedProcess};
use crate::launch::{Launch, ServerPipes};
use crate::run_directory::RunDirectory;
use crate::server::{
    Answer, RequestError, STARTUP, await_hello, check_descent, hidden_scratch, system,
};
use crate::watch::{GRACE, HangCheck, SLICE, WaitOutcome, Watch, wait_until_readable};
use crate::{
    AbandonWhen, Ended, ExecError, Limits, afl::shared_memory::Coverage, proc_tree,
    supervisor::Supervisor,
};

/// Number of runs of one target process after which ddfuzz looks for leftover child processes.
const SWEPT_EACH: u32 = 64;

pub(super) struct AflServer {
    pipes: ServerPipes,
    pid: Pid,
    persistent: bool,
    /// Process id of the target's process that waits for the next run; `None` if the next run gets
    /// a new process.
    waiting: Option<Pid>,
    /// True if the last run was killed while the fork server may believe that its process waits for
    /// the next input.
    killed: bool,
    child_processes: ChildProcesses,
    runs: u32,
    // Dropped last: kills what did not end when the pipes closed.
    supervisor: Supervisor,
    /// The target's scratch directory, if ddfuzz must check its size; `None` if the kernel limits
    /// the size.
    watched: Option<PathBuf>,
    /// The directory of the user in which the runs start, locked for one run at a time; `None` if
    /// it need not or cannot be locked, or if the runs have a directory of their own.
    directory: Option<RunDirectory>,
    /// An open descriptor of the scratch directory, if only the server's mount namespace shows the
    /// directory; else `None`.
    pub(super) scratch: Option<OwnedFd>,
    abandon_when: AbandonWhen,
}

/// Why an AFL++ fork server could not be started.
pub(super) enum AflStartError {
    Error(ExecError),
    Handshake(HandshakeError),
}

/// The wait status of a run that has ended before ddfuzz watches its limits; `None` if the run goes
/// on.
type EarlyStatus = Option<i32>;

impl AflServer {
    /// Starts the program and performs the handshake with its fork server; returns the server and
    /// the options that it reports. `shared`: whether to offer inputs in shared memory;
    /// `persistent`: whether one process of the program can make many runs.
    pub(super) fn start(
        launch: &Launch,
        stdin: &File,
        shared: bool,
        persistent: bool,
    ) -> Result<(AflServer, Handshake), AflStartError> {
        // AFL++'s runtime uses no shared page; the launcher closes the descriptor.
        let started = launch.start(stdin, stdin, None);
        let (supervisor, mut pipes) = started.map_err(|errno| {
            AflStartError::Error(system(launch, "starting the launcher", errno))
        })?;
        let (pid, _) = await_hello(launch, &mut pipes.reply).map_err(AflStartError::Error)?;
        let scratch = hidden_scratch(launch, &supervisor).map_err(AflStartError::Error)?;
        let handshake_pipes = HandshakePipes {
            control: &mut pipes.request,
            status: &mut pipes.reply,
            shared,
            abandon_when: &launch.abandon_when,
            timeout: STARTUP,
            began: Instant::now(),
        };
        let handshake = handshake_pipes
            .perform()
            .map_err(AflStartError::Handshake)?;
        let server = AflServer {
            pipes,
            pid,
            persistent,
            waiting: None,
            killed: false,
            child_processes: ChildProcesses::of(pid),
            runs: 0,
            supervisor,
            watched: launch.watched_scratch(),
            directory: launch.run_directory(),
            scratch,
            abandon_when: launch.abandon_when.clone(),
        };
        Ok((server, handshake))
    }

    /// Fails if /proc does not show the fork server's process as a descendant of ddfuzz's
    /// supervisor. Not to be called for a server whose coverage map is too small, which may have
    /// exited.
    pub(super) fn check_descent(&self, launch: &Launch) -> Result<(), ExecError> {
        check_descent(launch, &self.supervisor, self.pid)
    }

    /// Lets the fork server run the target once on the input that was written to its place (shared
    /// memory, stdin or a file), and kills the processes that the run leaves. Returns how the run
    /// ended, and whether so many processes are left that the server must be replaced.
    pub(super) fn run(
        &mut self,
        limits: &Limits,
        detector: &mut HangDetector,
        coverage: &Coverage,
    ) -> Result<(Answer, Leftovers), RequestError> {
        if let Some(directory) = &mut self.directory {
            directory.enter(&self.abandon_when);
        }
        let began = Instant::now();
        let word = u32::from(self.killed).to_ne_bytes();
        self.pipes
            .request
            .write_all(&word)
            .map_err(|_| RequestError::Died)?;
        let (child, ahead) = self.forked(detector.first_pause())?;
        let (waited, status, cpu) = match ahead {
            Some(status) => (None, status, began.elapsed()),
            None => {
                detector.begin();
                let process = &ForkedProcess { child, coverage };
                self.ended(child, limits, HangCheck { detector, process })?
            }
        };
        let stopped = libc::WIFSTOPPED(status);
        if waited.is_none() && self.died_waiting(child, status) {
            return Err(RequestError::Died);
        }
        let ended = match (waited, Ended::from_wait_status(status)) {
            _ if stopped && self.persistent => waited.unwrap_or(Ended::Exit(0)),
            // The process asked its parent to trace it; the server reports the signal as its end.
            _ if stopped => waited.unwrap_or(Ended::Signal(libc::WSTOPSIG(status))),
            (Some(why), Ended::Signal(libc::SIGKILL)) => why,
            (_, ended) => ended,
        };
        let waits = stopped && self.persistent && waited.is_none();
        self.killed = !waits && (stopped || waited.is_some());
        self.waiting = waits.then_some(child);
        let left = self.sweep(!waits);
        if let Some(directory) = &mut self.directory {
            directory.leave();
        }
        let answer = Answer {
            number: 0,
            ended,
            cpu,
            forked: false,
            refused: None,
        };
        Ok((answer, left))
    }

    /// Kills the target's process that waits for the next run, so that the next run gets a new
    /// process.
    pub(super) fn end_process(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            // If the process is gone already, the server will notice.
            let _ = kill(waiting, Signal::SIGKILL);
            self.killed = true;
        }
    }

    /// Returns true if the process `child` died of SIGKILL while it waited for its input: another
    /// process may have killed it before it read the input, so the run is repeated. Returns false
    /// if `status`, its wait status, is another one, or if `child` did not wait for its input.
    fn died_waiting(&self, child: Pid, status: i32) -> bool {
        self.waiting == Some(child)
            && Ended::from_wait_status(status) == Ended::Signal(libc::SIGKILL)
    }

    /// Reads from the fork server the process id of the run, and its wait status if the run ends
    /// soon: within the time `early`, or, if that is `None`, within a slice of time (10 ms). A run
    /// that goes on has no status yet.
    fn forked(&mut self, early: Option<Duration>) -> Result<(Pid, EarlyStatus), RequestError> {
        let mut words = [0; 8];
        let wanted = if early.is_some() { 4 } else { 8 };
        let mut length = self.receive(&mut words[..wanted])?;
        if length == 0 {
            if !(self.abandon_when).wait_until_readable(&self.pipes.reply, GRACE) {
                return Err(nonsense("does not accept requests"));
            }
            length = self.receive(&mut words[..wanted])?;
        }
        if length == 4 && early.is_some_and(|early| wait_until_readable(&self.pipes.reply, early)) {
            length += self.receive(&mut words[4..])?;
        }
        if !matches!(length, 4 | 8) {
            return Err(nonsense("sent an incomplete reply"));
        }
        let (pid, status) = (first(&words), first(&words[4..]));
        if pid <= 0 {
            let what = format!("sent {pid:#x} instead of a process id");
            return Err(nonsense(&what));
        }
        Ok((Pid::from_raw(pid), (length == 8).then_some(status)))
    }

    /// Waits for the end of the run in the process `child`, of which [`forked`](AflServer::forked)
    /// has read no status yet, and kills the run if it exceeds `limits` or if `look` finds that it
    /// hangs like a known hang. Returns why it was killed (`None` if it was not), its wait status
    /// and its CPU time.
    fn ended(
        &mut self,
        child: Pid,
        limits: &Limits,
        look: HangCheck<'_>,
    ) -> Result<(Option<Ended>, i32, Duration), RequestError> {
        let before = self.clocks(child);
        let killed = self.watch(limits, look)?;
        let cpu = self.clocks(child).since(before);
        let mut word = [0; 4];
        match self.receive(&mut word)? {
            4 => Ok((killed, first(&word), cpu)),
            _ => Err(nonsense("sent an incomplete reply")),
        }
    }

    fn clocks(&self, child: Pid) -> Clocks {
        Clocks {
            dead: proc_tree::reaped_cpu(self.pid).unwrap_or_default(),
            served: proc_tree::cpu_of(child).filter(|_| self.persistent),
        }
    }

    fn watch(&self, limits: &Limits, look: HangCheck<'_>) -> Result<Option<Ended>, RequestError> {
        let watch = Watch {
            reply: &self.pipes.reply,
            page: None,
            first: 0,
            server: self.pid,
            supervisor: self.supervisor.pid,
            scratch: self.watched.as_deref(),
            warm: self.persistent,
            output_readers: &[],
            abandon_when: &self.abandon_when,
        };
        match watch.wait(limits, Some(look)) {
            WaitOutcome::Ready => Ok(None),
            WaitOutcome::Abandoned => Err(RequestError::Abandoned),
            WaitOutcome::Killed(killed) => Ok(Some(killed.why)),
            WaitOutcome::Silent(why) => Err(RequestError::Silent(why)),
            WaitOutcome::Untaken => Err(RequestError::Died), // not without a page
        }
    }

    /// Kills leftover processes of earlier runs: at once if `now`, else after every [`SWEPT_EACH`]
    /// runs. Returns [`Leftovers::TooMuch`] if so many are left that the server must be replaced.
    fn sweep(&mut self, now: bool) -> Leftovers {
        self.runs = self.runs.wrapping_add(1);
        if !now && !self.runs.is_multiple_of(SWEPT_EACH) {
            return Leftovers::Nothing;
        }
        self.child_processes.sweep(self.waiting)
    }

    /// Reads bytes from the fork server into `words` until it is full or a slice of time (10 ms)
    /// has passed. Returns how many bytes arrived, possibly 0. Fails when the server has closed the
    /// connection.
    fn receive(&self, words: &mut [u8]) -> Result<usize, RequestError> {
        loop {
            let at = words.as_mut_ptr().cast();
            let socket = self.pipes.reply.as_raw_fd();
            // SAFETY: it writes into `words`, no more than its length.
            let got = unsafe { libc::recv(socket, at, words.len(), libc::MSG_WAITALL) };
            match (usize::try_from(got), Errno::last()) {
                (Ok(0), _) => return Err(RequestError::Died),
                (Ok(length), _) => return Ok(length),
                (Err(_), Errno::EINTR) => {}
                (Err(_), Errno::EAGAIN) => return Ok(0),
                (Err(_), _) => return Err(RequestError::Died),
            }
        }
    }
}

/// The process that a fork server has forked for a run, as hang detection observes it.
struct ForkedProcess<'a> {
    child: Pid,
    coverage: &'a Coverage,
}

impl ObservedProcess for ForkedProcess<'_> {
    fn process(&self) -> Option<Pid> {
        Some(self.child)
    }

    fn cpu(&self) -> Option<Duration> {
        proc_tree::cpu_of(self.child)
    }

    fn counters(&self, to: &mut Vec<u8>) -> bool {
        self.coverage.look(to);
        true
    }

    fn sleeps(&self) -> bool {
        !proc_tree::is_runnable(self.child)
    }
}

/// Two CPU times, that of a fork server's ended children and that of the target's process; read
/// before and after a run, they give the run's CPU time (docs/decisions/0033).
#[derive(Clone, Copy)]
struct Clocks {
    /// CPU time of all ended children that the fork server has reaped, which the kernel counts in
    /// clock ticks.
    dead: Duration,
    /// CPU time of the target's process, if it is alive and serves many runs; else `None`.
    served: Option<Duration>,
}

impl Clocks {
    /// Returns the CPU time of a run, as the difference between two readings: `before` is from the
    /// time when the run had already lasted 10 ms (`SLICE`), `self` from its end. If one process
    /// makes many runs, these 10 ms are added, since `before` counts them, too.
    fn since(self, before: Clocks) -> Duration {
        let dead = self.dead.saturating_sub(before.dead);
        match (before.served, self.served) {
            (Some(before), Some(now)) => now.saturating_sub(before) + SLICE,
            // The dead process's time includes what it used for earlier runs.
            (Some(before), None) => dead.saturating_sub(before) + SLICE,
            (None, _) => dead,
        }
    }
}

fn nonsense(what: &str) -> RequestError {
    RequestError::ProtocolBroken(format!("its fork server {what}"))
}

fn first(bytes: &[u8]) -> i32 {
    i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Number of runs between two searches for leftover processes, on kernels that do not list a
/// process's children.
const RUNS_PER_SEARCH: u32 = 256;
/// Number of readings of the list of child processes, with `PAUSE` in between, in which all killed
/// ones must be dead. Processes that take longer to die are left to the supervisors.
const PASSES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(1);
/// Maximum number of zombies of a fork server. Killed processes stay in its list of children as
/// zombies, because it reaps only the child of its run; a server with more zombies is replaced.
const MOST_DEAD: usize = 16;

/// The child processes of a fork server. The server is a child subreaper, so orphans among its
/// descendants are its children, too.
struct ChildProcesses {
    server: Pid,
    /// The /proc file in which the kernel lists the server's children, kept open so that a look
    /// takes one system call; `None` where it does not exist.
    list: Option<File>,
    /// Number of calls of [`has_leftovers`](ChildProcesses::has_leftovers).
    looks: u32,
    /// Process ids of zombies among the server's children, as found when the children were last
    /// listed.
    dead: Vec<Pid>,
}

/// Whether processes of a fork server's runs are left after an attempt to kill them: none is known,
/// or so many that the server must be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leftovers {
    /// No leftover process is alive, as far as known: none was found, or none was searched for this
    /// time.
    Nothing,
    /// The server has more than [`MOST_DEAD`] other children, or some still live after all passes;
    /// the server must be replaced.
    TooMuch,
}

impl ChildProcesses {
    pub(super) fn of(server: Pid) -> ChildProcesses {
        ChildProcesses {
            server,
            list: File::open(format!("/proc/{server}/task/{server}/children")).ok(),
            looks: 0,
            dead: Vec::new(),
        }
    }

    /// Kills the child processes that earlier runs left behind, and waits up to 50 ms for their
    /// death. `own`: the process that serves further runs, which is spared; `None` if there is
    /// none. Returns [`Leftovers::TooMuch`] if the server must be replaced.
    fn sweep(&mut self, own: Option<Pid>) -> Leftovers {
        if !self.has_leftovers(own) {
            return Leftovers::Nothing;
        }
        for _ in 0..PASSES {
            let others = proc_tree::children(self.server).into_iter();
            let others: Vec<Pid> = others.filter(|pid| Some(*pid) != own).collect();
            if others.len() > MOST_DEAD {
                return Leftovers::TooMuch;
            }
            let mut living = others.iter().filter(|pid| proc_tree::lives(**pid));
            let Some(first) = living.next() else {
                self.dead = others;
                return Leftovers::Nothing;
            };
            // Their children become the server's children, and are killed in the next pass.
            for pid in std::iter::once(first).chain(living) {
                let _ = kill(*pid, Signal::SIGKILL);
            }
            std::thread::sleep(PAUSE);
        }
        Leftovers::TooMuch
    }

    /// Returns true if the kernel's list of the server's children contains processes other than
    /// `own` and the zombies found before. On a kernel without such lists, returns true once in
    /// [`RUNS_PER_SEARCH`] calls, so that leftover processes are then searched for.
    fn has_leftovers(&mut self, own: Option<Pid>) -> bool {
        self.looks = self.looks.wrapping_add(1);
        let mut text = [0; 512];
        let listed = self.list.as_ref().map(|list| list.read_at(&mut text, 0));
        match listed {
            Some(Ok(length)) if length < text.len() => {
                numbers(&text[..length]).any(|pid| Some(pid) != own && !self.dead.contains(&pid))
            }
            Some(Ok(_)) => true,
            _ => self.looks.is_multiple_of(RUNS_PER_SEARCH),
        }
    }
}

fn numbers(text: &[u8]) -> impl Iterator<Item = Pid> {
    let words = text.split(|byte| *byte == b' ');
    words
        .filter(|word| !word.is_empty())
        .filter_map(|word| str::from_utf8(word).ok()?.parse().ok())
        .map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(dead: u64, served: Option<u64>) -> Clocks {
        Clocks {
            dead: Duration::from_millis(dead),
            served: served.map(Duration::from_millis),
        }
    }

    #[test]
    fn what_a_process_used_for_earlier_runs_does_not_count() {
        let used = |before: Clocks, now: Clocks| now.since(before).as_millis();
        assert_eq!(used(clocks(50, None), clocks(350, None)), 300);
        assert_eq!(used(clocks(50, Some(700)), clocks(50, Some(900))), 210);
        assert_eq!(used(clocks(50, Some(700)), clocks(950, None)), 210);
    }

    #[test]
    fn the_list_is_read_as_the_kernel_writes_it() {
        let found: Vec<Pid> = numbers(b"12 7 ").collect();
        assert_eq!(found, [Pid::from_raw(12), Pid::from_raw(7)]);
        assert_eq!(numbers(b"").count(), 0);
    }
}
