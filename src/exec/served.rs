//! The executor behind all ways of execution: they differ in what the server is, and share how
//! it is asked, watched and started again.

use super::input::Input;
use super::launch::{Inject, Launch, Role};
use super::place::Place;
use super::scratch::Scratch;
use super::server::{Broken, Server};
use super::{Ended, ExecError, Executor, Limits, Run, Target, Way};

/// Servers are replaced after so many runs, so that what they leak stays bounded.
const RUNS_PER_SERVER: u64 = 100_000;

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
    scratch: Option<Scratch>,
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
        let launch = place.launch(target, role, inject);
        let mut served = Served {
            server: None,
            runs: 0,
            way,
            warm: matches!(inject, Some(Inject::Loop(_))),
            limits: target.limits,
            launch,
            input: place.input,
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

    fn finish(&mut self, ended: Ended, cpu: std::time::Duration) -> Run {
        let in_process = self.warm && matches!(ended, Ended::Exit(_));
        if let Some(scratch) = &mut self.scratch
            && !in_process
        {
            scratch.clean();
        }
        let read = if self.way == Way::Harness {
            None
        } else {
            self.input.read_so_far()
        };
        Run { ended, cpu, read }
    }
}

impl Executor for Served {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        self.input
            .write(input)
            .map_err(|source| ExecError::System {
                what: format!("writing an input of {} bytes", input.len()),
                source,
            })?;
        for _ in 0..2 {
            let limits = self.limits;
            let answer = self.server()?.run(input.len(), &limits);
            self.runs += 1;
            match answer {
                Ok(answer) => return Ok(self.finish(answer.ended, answer.cpu)),
                Err(Broken::Exec(errno)) => {
                    return Err(ExecError::NotExecutable {
                        path: self.launch.program.clone(),
                        why: errno.desc().to_owned(),
                    });
                }
                Err(Broken::Gone(_)) => self.server = None,
            }
        }
        // A fresh server broke on this input as well: the target killed it, which from the
        // outside is a death by SIGKILL like any other.
        Ok(self.finish(Ended::Signal(libc::SIGKILL), std::time::Duration::ZERO))
    }

    fn way(&self) -> Way {
        self.way
    }
}
