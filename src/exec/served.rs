//! The executor behind all ways of execution: they differ in what the server is, and share how
//! it is asked, watched and started again.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::input::Input;
use super::launch::{Inject, Launch, Role};
use super::offered;
use super::place::Place;
use super::scratch::{Cleaned, Scratch};
use super::server::{Answer, Broken, Server};
use super::{Ended, ExecError, Executor, Freshness, Limits, Run, Target, TimeLimit, Way};

/// Servers are replaced after so many runs, so that what they leak stays bounded.
const RUNS_PER_SERVER: u64 = 20_000;
/// How many servers in turn a run is asked of: the first may have been killed by somebody else.
const MOST_RUNS: u32 = 3;
/// How many of them may not even come up. The program is known to start: an executor has started
/// it before.
const MOST_STARTS: u32 = 10;
/// Between two of them, so that what lasts a moment passes.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the disk may be full: another worker's target fills it until its run has ended.
const FULL: Duration = Duration::from_secs(10);

/// A target behind a server.
pub(crate) struct Served {
    // First, so that the server is gone before its directory and group are removed.
    server: Option<Server>,
    runs: u64,
    way: Way,
    /// One process serves many runs.
    warm: bool,
    /// By its file, the program may start others.
    may_fork: bool,
    /// The last run had descendants.
    forked: bool,
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
            // What a script does cannot be known.
            may_fork: place.facts.is_none_or(|facts| facts.may_fork),
            forked: false,
            limits: target.limits,
            launch,
            input: place.input,
            offered,
            scratch: place.scratch,
        };
        served.server()?;
        Ok(served)
    }

    /// Whether the program may start others, by what its file says.
    pub(crate) fn may_fork(&self) -> bool {
        self.may_fork
    }

    /// Whether the last run had descendants, as far as the server could see.
    pub(crate) fn forked(&self) -> bool {
        self.forked
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

    /// One try at a run.
    fn attempt(&mut self, length: usize) -> Result<Answer, Failure> {
        let limits = self.limits;
        let server = self.server().map_err(Failure::Start)?;
        let answer = server.run(length, &limits);
        self.runs += 1;
        answer.map_err(Failure::Broken)
    }

    /// Empties the working directory, in which nothing runs any more.
    fn clean(&mut self) -> Result<(), ExecError> {
        let cleaned = self.scratch.clean();
        if cleaned.map_err(|source| self.launch.lost(source))? == Cleaned::Replaced {
            self.server = None; // it stands in a directory that is gone
        }
        Ok(())
    }

    /// What could not be killed at once may still hold the input.
    fn renew_input(&mut self) -> Result<(), ExecError> {
        self.server = None;
        self.input.renew().map_err(|source| ExecError::System {
            what: "making a new input".to_owned(),
            source,
        })
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
        if matches!(ended, Ended::Timeout | Ended::OutOfMemory) {
            self.renew_input()?;
        }
        Ok(Run { ended, cpu, read })
    }

    /// What is to be said of a run that several servers have not answered.
    fn give_up(&mut self, failure: Failure) -> Result<Run, ExecError> {
        let server = |why: String| ExecError::Server {
            path: self.launch.program.clone(),
            why,
        };
        match failure {
            Failure::Start(error) => Err(error),
            // The target has killed each of them, which from the outside is a death by SIGKILL
            // like any other; or it has made them stop, and was killed at its limit.
            Failure::Broken(Broken::Died) => {
                self.finish(Ended::Signal(libc::SIGKILL), Duration::ZERO)
            }
            Failure::Broken(Broken::Silent(ended)) => self.finish(ended, Duration::ZERO),
            Failure::Broken(broken) => Err(server(broken.to_string())),
        }
    }

    fn put_in_place(&mut self, input: &[u8]) -> io::Result<()> {
        if let Some(path) = &self.offered {
            offered::write(path, input)?;
            self.input.distrust()?;
        }
        self.input.write(input)
    }

    fn write_input(&mut self, input: &[u8]) -> Result<(), ExecError> {
        let deadline = Instant::now() + FULL;
        loop {
            match self.put_in_place(input) {
                Ok(()) => return Ok(()),
                Err(error)
                    if error.kind() == ErrorKind::StorageFull && Instant::now() < deadline =>
                {
                    std::thread::sleep(PAUSE);
                }
                Err(source) => {
                    let what = format!("writing an input of {} bytes", input.len());
                    return Err(ExecError::System { what, source });
                }
            }
        }
    }
}

/// Why a try at a run has failed.
enum Failure {
    Start(ExecError),
    Broken(Broken),
}

/// Errors of a fork or an execve that pass: of the moment's load, not of the program.
fn passes(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::EAGAIN | Errno::ENOMEM | Errno::ETXTBSY | Errno::EMFILE | Errno::ENFILE
    )
}

impl Executor for Served {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        let (mut runs, mut starts) = (0, 0);
        self.forked = false;
        loop {
            self.write_input(input)?;
            let failure = match self.attempt(input.len()) {
                Ok(answer) => {
                    self.forked = answer.forked;
                    return self.finish(answer.ended, answer.cpu);
                }
                // A loop whose target closed the input has an errno, too.
                Err(Failure::Broken(Broken::Exec(errno))) if !passes(errno) && !self.warm => {
                    return Err(ExecError::NotExecutable {
                        path: self.launch.program.clone(),
                        why: errno.desc().to_owned(),
                    });
                }
                Err(failure) => failure,
            };
            match failure {
                Failure::Start(_) => starts += 1,
                Failure::Broken(_) => runs += 1,
            }
            self.server = None;
            if runs == MOST_RUNS || starts == MOST_STARTS {
                return self.give_up(failure);
            }
            std::thread::sleep(PAUSE);
            self.clean()?; // the next one must not see what this one has left
        }
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
