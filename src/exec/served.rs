//! The executor behind all ways of execution that speak our own protocol: they differ in what the
//! server is, and share how it is asked, watched and started again.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;

use super::attempts::{self, Attempts, Failure, RUNS_PER_SERVER};
use super::input::Input;
use super::launch::{Inject, Launch, Role};
use super::offered;
use super::place::Place;
use super::scratch::{Cleaned, Scratch};
use super::server::{Answer, Broken, Server};
use super::{Ended, ExecError, Executor, Freshness, Limits, Run, Target, TimeLimit, Way};

/// A target behind a server.
pub(crate) struct Served {
    // First, so that the server is gone before its directory and group are removed.
    server: Option<Server>,
    runs: u64,
    way: Way,
    /// One process serves many runs.
    warm: bool,
    limits: Limits,
    launch: Launch,
    input: Input,
    /// Where each run finds the input as a file of its own, besides.
    offered: Option<PathBuf>,
    scratch: Scratch,
}

impl Served {
    /// Starts the server at once, so that a target that cannot be served is an error now.
    pub(crate) fn start(
        target: &Target,
        place: Place,
        way: Way,
        role: Role,
        inject: Option<Inject>,
    ) -> Result<Served, ExecError> {
        Served::offering(target, place, None, way, role, inject)
    }

    /// The same, with the input also put into the file `offered` of the target's directory.
    pub(crate) fn offering(
        target: &Target,
        place: Place,
        offered: Option<PathBuf>,
        way: Way,
        role: Role,
        inject: Option<Inject>,
    ) -> Result<Served, ExecError> {
        let launch = place.launch(target, role, inject);
        let mut served = Served {
            server: None,
            runs: 0,
            way,
            warm: matches!(inject, Some(Inject::Loop(_))),
            limits: target.limits,
            launch,
            input: place.input,
            offered,
            scratch: place.scratch,
        };
        served.server()?;
        Ok(served)
    }

    fn server(&mut self) -> Result<&mut Server, ExecError> {
        if self.runs >= RUNS_PER_SERVER {
            self.server = None;
            self.runs = 0;
        }
        match &mut self.server {
            Some(server) => Ok(server),
            empty => {
                let started = Server::start(&self.launch, self.input.stdin(), None, self.warm)?;
                Ok(empty.insert(started))
            }
        }
    }
}

/// Errors of a fork or an execve that pass: of the moment's load, not of the program.
fn passes(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::EAGAIN | Errno::ENOMEM | Errno::ETXTBSY | Errno::EMFILE | Errno::ENFILE
    )
}

impl Attempts for Served {
    fn put_in_place(&mut self, input: &[u8]) -> io::Result<()> {
        if let Some(path) = &self.offered {
            offered::write(path, input)?;
            self.input.distrust()?;
        }
        self.input.write(input)
    }

    fn attempt(&mut self, input: &[u8]) -> Result<Answer, Failure> {
        let limits = self.limits;
        let server = self.server().map_err(Failure::Start)?;
        let answer = server.run(input.len(), &limits);
        self.runs += 1;
        answer.map_err(Failure::Broken)
    }

    fn lasting(&self, failure: &Failure) -> Option<ExecError> {
        match failure {
            // A loop whose target closed the input has an errno, too.
            Failure::Broken(Broken::Exec(errno)) if !passes(*errno) && !self.warm => {
                Some(ExecError::NotExecutable {
                    path: self.program(),
                    why: errno.desc().to_owned(),
                })
            }
            _ => None,
        }
    }

    fn stop(&mut self) {
        self.server = None;
    }

    fn clean(&mut self) -> Result<(), ExecError> {
        let cleaned = self.scratch.clean();
        if cleaned.map_err(|source| self.launch.lost(source))? == Cleaned::Replaced {
            self.server = None; // it stands in a directory that is gone
        }
        Ok(())
    }

    fn finish(&mut self, ended: Ended, cpu: Duration) -> Result<Run, ExecError> {
        if !self.warm || !matches!(ended, Ended::Exit(_)) {
            self.clean()?;
        }
        let read = if self.way == Way::Harness {
            None
        } else {
            self.input.read_so_far()
        };
        Ok(Run { ended, cpu, read })
    }

    fn program(&self) -> PathBuf {
        self.launch.program.clone()
    }
}

impl Executor for Served {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        attempts::run(self, input)
    }

    fn way(&self) -> Way {
        self.way
    }

    fn freshness(&self) -> Freshness {
        match self.warm {
            true => Freshness::Shared,
            false => Freshness::Fresh,
        }
    }

    fn limit_time(&mut self, time: TimeLimit) {
        self.limits = time.within(self.limits);
    }
}
