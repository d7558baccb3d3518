//! The server behind a [`Traceable`](crate::Traceable), with the input, the directories and the
//! captured output of its runs.

use nix::{errno::Errno, unistd::Pid};
use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::crash_snapshots::{CrashSnapshots, ServerMode};
use crate::output_capture::{DrainedPipe, Excerpt, OutputCapture};
use crate::scratch::{Reports, Scratch};
use crate::server::{RequestError, Server};
use crate::shared_server::SearchLoop;
use crate::{
    Ended, ExecError, Limits, RerunReason, Way, input::Input, launch::Launch, protocol::flag,
    shared_page::PageLayout, terminal::Console, traceable::Reruns,
};

/// How long a tracer's fork server may take for each of its replies: that a child process is ready
/// to be traced, and how the child ended once it is dead.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// The fork server of a target that is run under a tracer, and the resources that it uses.
pub(crate) struct TraceServer {
    // The first field: the server ends before its directory and control group are removed.
    pub(crate) server: Option<Server>,
    pub(crate) reruns: Reruns,
    pub(crate) program: PathBuf,
    pub(crate) may_panic: bool,
    pub(crate) reports: Option<Reports>,
    /// How the running fork server starts runs (by `execve`, by fork, or with snapshots of
    /// crashes); if no server runs, how the next one will.
    pub(crate) mode: ServerMode,
    pub(crate) launch: Launch,
    /// How to launch a fork server that forks runs at `main`, which saves the `execve`; all its
    /// runs have the same memory addresses. `None` where forking does not work.
    pub(crate) forking: Option<Launch>,
    /// The state of a search (such as minimization) whose runs the forking server also makes, many
    /// in one process; `None` where a search has a server of its own.
    pub(crate) search: Option<SearchLoop>,
    /// How to launch a fork server whose runs write snapshots of themselves when they crash, and
    /// the memory for the snapshots; `None` where no library can be preloaded.
    pub(crate) copying: Option<(Launch, Arc<CrashSnapshots>)>,
    pub(crate) input: Input,
    pub(crate) scratch: Scratch,
    pub(crate) stderr: DrainedPipe<Excerpt>,
    /// Computes length and hash of what runs write to stdout and stderr; `None` if that is not
    /// needed.
    pub(crate) capture: Option<OutputCapture>,
    /// The terminal at which inputs are typed; `None` if the target has no terminal.
    pub(crate) console: Option<Console>,
    pub(crate) keys: Vec<u8>,
    pub(crate) way: Way,
    pub(crate) limits: Limits,
    pub(crate) crash_exit: Option<i32>,
}

impl TraceServer {
    /// Sets the sanitizer options of the fork servers that start later: where reports are written,
    /// and what `why`, the reason to run inputs again, needs: a search for leaks, handlers of
    /// deadly signals, or a print of all options at the start. `None`: ordinary runs, which need
    /// nothing of this.
    pub(crate) fn set_sanitizer_options(&mut self, why: Option<RerunReason>) {
        let log_path = self.reports.as_ref().map(Reports::log_path);
        let copying = self.copying.as_mut().map(|(launch, _)| launch);
        for launch in [Some(&mut self.launch), self.forking.as_mut(), copying] {
            if let Some(told) = launch.and_then(|launch| launch.sanitizer_settings.as_mut()) {
                told.log_path.clone_from(&log_path);
                told.leaks = why == Some(RerunReason::Leaks);
                told.signals = why == Some(RerunReason::Signals);
                told.introduces = why == Some(RerunReason::Introductions);
            }
        }
    }

    pub(crate) fn put_in_place(&mut self, input: &[u8], mode: ServerMode) -> Result<(), ExecError> {
        let written = match &mut self.search {
            Some(search) if mode == ServerMode::Forking => search.inputs.write(&[input]),
            _ => self.input.write(input),
        };
        written.map_err(ExecError::system("writing an input"))?;
        self.stderr.clear();
        if self.console.is_some() {
            self.keys = input.to_owned();
        }
        if self.mode != mode {
            self.server = None;
        }
        if self.server.is_none() {
            self.start_server(mode)?;
        }
        Ok(())
    }

    pub(crate) fn start_server(&mut self, mode: ServerMode) -> Result<(), ExecError> {
        let theirs = self.console.as_mut().map(Console::renew).transpose();
        let theirs = theirs.map_err(|source| self.launch.terminal_error(source))?;
        let launch = match (mode, &mut self.forking, &mut self.copying) {
            (ServerMode::Forking, Some(forking), _) => forking,
            (ServerMode::Copying, _, Some((copying, _))) => copying,
            _ => &mut self.launch,
        };
        launch.terminal = theirs;
        launch.inputs = self.input.identities();
        let (layout, stdin) = match &mut self.search {
            Some(search) if mode == ServerMode::Forking => {
                search.begin_server();
                (PageLayout::Loop { counters: 0 }, search.inputs.reader())
            }
            _ => (PageLayout::Single, self.input.stdin()),
        };
        let page = launch.page(layout)?;
        let stderr = match &self.capture {
            Some(capture) => capture.stderr.writer(),
            None => self.stderr.writer(),
        };
        match Server::start(launch, stdin, Some(stderr), page) {
            Ok(mut server) => {
                let entered = self.scratch.enter(server.take_scratch());
                entered.map_err(|source| self.launch.directory_error(source))?;
                server.output_readers = self.output_readers();
                self.server = Some(server);
                self.mode = mode;
                Ok(())
            }
            Err(ExecError::WayUnfit { .. })
                if mode == ServerMode::Forking && self.search.is_none() =>
            {
                self.forking = None; // as if there were none
                self.start_server(ServerMode::Executing)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn ask(
        &mut self,
        length: usize,
        random_addresses: bool,
    ) -> Result<Pid, RequestError> {
        let is_forking = self.mode == ServerMode::Forking;
        let length = match self.search.is_some() && is_forking {
            true => self.put_first()?,
            false => length,
        };
        let server = self.server.as_mut().ok_or_else(gone)?;
        let flags = match (is_forking, random_addresses) {
            (true, _) => flag::TRACED,
            (false, true) => flag::RANDOM_ADDRESSES,
            (false, false) => 0,
        };
        server.ask(length, flags)?;
        let reply = server.reply(GRACE)?;
        if !reply.ready() {
            return Err(RequestError::Exec(Errno::from_raw(reply.exec_errno)));
        }
        server.process(Pid::from_raw(reply.status)).ok_or_else(gone)
    }

    /// Prepares what belongs to a run, just before the waiting process continues: clears the
    /// captured output, marks the input as unread and, if the target is at a terminal, starts
    /// typing the input.
    pub(crate) fn begin(&mut self) -> Result<(), ExecError> {
        self.input.forget_accesses();
        if let Some(capture) = &self.capture {
            capture.clear(); // of what its server has written when it was started, too
        }
        let wall = self.limits_now().wall;
        let Some(console) = &mut self.console else {
            return Ok(());
        };
        let begun = console.begin(&self.keys, wall);
        begun.map_err(|source| self.launch.terminal_error(source))
    }

    /// Returns the number of bytes that a run has read of its input on stdin, by the file offset; 0
    /// if the input is in a file that the run has not read. `None` where neither can be told: for
    /// an entry function, for an input file that was read, and in a sandbox, where input files keep
    /// no time of access.
    pub(crate) fn read_so_far(&self) -> Option<u64> {
        let is_unread = || (self.launch.policy.is_none() && self.input.is_unread()).then_some(0);
        match self.way {
            Way::Harness => None,
            _ => self.input.read_so_far().or_else(is_unread),
        }
    }

    /// Returns how a run ended, which seems to be `ended`: if the target died because ddfuzz hung
    /// up its terminal at the end of the input, the run counts as a normal exit; else `ended`.
    pub(crate) fn judge(&mut self, ended: Ended) -> Ended {
        match &mut self.console {
            Some(console) => console.judge(ended),
            None => ended,
        }
    }

    /// Returns the limits for the run of the current input: the target's, with the wall time
    /// extended by each key that is typed at a terminal.
    pub(crate) fn limits_now(&self) -> Limits {
        let mut limits = self.limits;
        if let Some(console) = &self.console {
            limits.wall = limits
                .wall
                .saturating_add(console.extra_wall_time(&self.keys));
        }
        limits
    }

    /// Returns the ids of ddfuzz's threads that empty the pipes to which runs write: while one of
    /// them waits for a processor, a run may have to wait, too.
    pub(crate) fn output_readers(&self) -> Vec<Pid> {
        match &self.capture {
            Some(capture) => capture.readers(),
            None => self.stderr.reader().into_iter().collect(),
        }
    }

    /// Returns how a run counts as ended if the server has not reported its end, and the run's CPU
    /// time. `why`: the reason why the server has not reported it. If the server has died, the
    /// target may have killed it together with the run, so the run counts as killed by SIGKILL,
    /// with no CPU time. Fails if the server lives and does not answer or breaks the protocol.
    pub(crate) fn end_of(&mut self, why: RequestError) -> Result<(Ended, Duration), ExecError> {
        if !matches!(why, RequestError::Died) {
            return Err(self.broken(&why));
        }
        self.server = None;
        // The next run must not see files of this one.
        let renewed = self.scratch.renew();
        renewed.map_err(|source| self.launch.directory_error(source))?;
        Ok((Ended::Signal(libc::SIGKILL), Duration::ZERO))
    }

    pub(crate) fn broken(&mut self, why: &RequestError) -> ExecError {
        self.server = None;
        if matches!(why, RequestError::Abandoned) {
            return ExecError::Abandoned;
        }
        ExecError::Server {
            path: self.launch.program.clone(),
            why: why.to_string(),
        }
    }
}

pub(crate) fn gone() -> RequestError {
    RequestError::Died
}
