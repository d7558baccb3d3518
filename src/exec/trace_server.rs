//! The server behind a traceable target, and what its runs are given and leave behind.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::Pid;

use super::again::Twins;
use super::copies::Copies;
use super::input::Input;
use super::launch::Launch;
use super::page::Shape;
use super::protocol::flag;
use super::reports::Reports;
use super::scratch::Scratch;
use super::server::{Broken, Server};
use super::serving::Serving;
use super::stderr::Stderr;
use super::{Again, ExecError, Limits, Way};

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
        if self.serving != serving {
            self.server = None;
        }
        if self.server.is_none() {
            self.start_server(serving)?;
        }
        Ok(())
    }

    fn start_server(&mut self, serving: Serving) -> Result<(), ExecError> {
        let launch = match (serving, &self.forking, &self.copying) {
            (Serving::Forking, Some(forking), _) => forking,
            (Serving::Copying, _, Some((copying, _))) => copying,
            _ => &self.launch,
        };
        let page = launch.page(Shape::Single)?;
        let stderr = Some(self.stderr.writer());
        match Server::start(launch, self.input.stdin(), stderr, page) {
            Ok(server) => {
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
        Ok(Pid::from_raw(reply.status))
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
