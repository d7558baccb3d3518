//! The server behind a traceable target, and what its runs are given and leave behind.

use nix::errno::Errno;
use nix::unistd::Pid;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::crash_copies::{Copies, Serving};
use crate::input::Input;
use crate::launch::Launch;
use crate::output_capture::{Hearing, Stderr};
use crate::page::Shape;
use crate::protocol::flag;
use crate::scratch::{Reports, Scratch};
use crate::server::{Broken, Server};
use crate::terminal::Console;
use crate::traceable::Twins;
use crate::{Again, Ended, ExecError, Limits, Way};

/// How long the last word on a run may take after its tracer is done with it.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// A server and what belongs to it.
pub(super) struct Inner {
    // First, so that the server is gone before its directory and group are removed.
    pub(super) server: Option<Server>,
    /// What runs the same inputs once more.
    pub(super) twins: Twins,
    pub(super) program: PathBuf,
    pub(super) may_panic: bool,
    /// Where the target's sanitizer, if it has one, reports.
    pub(super) reports: Option<Reports>,
    /// What the server does.
    pub(super) serving: Serving,
    pub(super) launch: Launch,
    /// Where runs can be forked: spares them their `execve`, and all that the program does before
    /// its `main`. Addresses are the server's, and so fixed.
    pub(super) forking: Option<Launch>,
    /// Where runs can be copied when they die, and where to.
    pub(super) copying: Option<(Launch, Arc<Copies>)>,
    pub(super) input: Input,
    pub(super) scratch: Scratch,
    pub(super) stderr: Stderr,
    /// What listens to all that runs write, where somebody asks for that.
    pub(super) hearing: Option<Hearing>,
    /// Where inputs are typed, of a target at a terminal; and the next one.
    pub(super) console: Option<Console>,
    pub(super) keys: Vec<u8>,
    pub(super) way: Way,
    pub(super) limits: Limits,
    pub(super) crash_exit: Option<i32>,
}

impl Inner {
    /// Says what the target's sanitizer is told from the next start of a server on.
    pub(super) fn tell_sanitizers(&mut self, why: Option<Again>) {
        let log_path = self.reports.as_ref().map(Reports::log_path);
        let copying = self.copying.as_mut().map(|(launch, _)| launch);
        for launch in [Some(&mut self.launch), self.forking.as_mut(), copying] {
            if let Some(told) = launch.and_then(|launch| launch.sanitizing.as_mut()) {
                told.log_path.clone_from(&log_path);
                told.leaks = why == Some(Again::Leaks);
                told.signals = why == Some(Again::Signals);
                told.introduces = why == Some(Again::Introductions);
            }
        }
    }

    pub(super) fn put_in_place(&mut self, input: &[u8], serving: Serving) -> Result<(), ExecError> {
        let system = |source| ExecError::System {
            what: "writing an input".to_owned(),
            source,
        };
        self.input.write(input).map_err(system)?;
        self.stderr.clear();
        if self.console.is_some() {
            self.keys = input.to_owned();
        }
        if self.serving != serving {
            self.server = None;
        }
        if self.server.is_none() {
            self.start_server(serving)?;
        }
        Ok(())
    }

    fn start_server(&mut self, serving: Serving) -> Result<(), ExecError> {
        let theirs = self.console.as_mut().map(Console::renew).transpose();
        let theirs = theirs.map_err(|source| self.launch.without_terminal(source))?;
        let launch = match (serving, &mut self.forking, &mut self.copying) {
            (Serving::Forking, Some(forking), _) => forking,
            (Serving::Copying, _, Some((copying, _))) => copying,
            _ => &mut self.launch,
        };
        launch.terminal = theirs;
        let page = launch.page(Shape::Single)?;
        let stderr = match &self.hearing {
            Some(hearing) => hearing.stderr.writer(),
            None => self.stderr.writer(),
        };
        match Server::start(launch, self.input.stdin(), Some(stderr), page) {
            Ok(mut server) => {
                let entered = self.scratch.enter(server.take_scratch());
                entered.map_err(|source| self.launch.lost(source))?;
                self.server = Some(server);
                self.serving = serving;
                Ok(())
            }
            Err(ExecError::WayUnfit { .. }) if serving == Serving::Forking => {
                self.forking = None; // as if there were none
                self.start_server(Serving::Executing)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn ask(&mut self, length: usize, random_addresses: bool) -> Result<Pid, Broken> {
        let server = self.server.as_mut().ok_or_else(gone)?;
        let flags = match (self.serving == Serving::Forking, random_addresses) {
            (true, _) => flag::TRACED,
            (false, true) => flag::RANDOM_ADDRESSES,
            (false, false) => 0,
        };
        server.ask(length, flags)?;
        let reply = server.reply(GRACE)?;
        if !reply.ready() {
            return Err(Broken::Exec(Errno::from_raw(reply.exec_errno)));
        }
        server.process(Pid::from_raw(reply.status)).ok_or_else(gone)
    }

    /// Begins to type, where the target is at a terminal. Its child goes on in a moment.
    pub(super) fn begin(&mut self) -> Result<(), ExecError> {
        if let Some(hearing) = &self.hearing {
            hearing.clear(); // of what its server has written when it was started, too
        }
        let Some(console) = &mut self.console else {
            return Ok(());
        };
        let begun = console.begin(&self.keys);
        begun.map_err(|source| self.launch.without_terminal(source))
    }

    /// How a run ended that the server says ended so.
    pub(super) fn judge(&mut self, ended: Ended) -> Ended {
        match &mut self.console {
            Some(console) => console.judge(ended),
            None => ended,
        }
    }

    /// Limits on the run of the input that is in place.
    pub(super) fn limits_now(&self) -> Limits {
        let mut limits = self.limits;
        if let Some(console) = &self.console {
            limits.wall = limits.wall.saturating_add(console.patience(&self.keys));
        }
        limits
    }

    pub(super) fn broken(&mut self, why: &Broken) -> ExecError {
        self.server = None;
        ExecError::Server {
            path: self.launch.program.clone(),
            why: why.to_string(),
        }
    }
}

pub(super) fn gone() -> Broken {
    Broken::Died
}
