//! A started server: one request, one reply.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use super::launch::{Ends, Inject, Keeper, Launch, Role};
use super::page::Page;
use super::protocol::{HELLO_SIZE, REPLY_SIZE, Reply, Request, Trouble, read_hello};
use super::watch::{self, Waited};
use super::{Ended, ExecError, Limits, Way};

/// How long a server may take to come up.
const STARTUP: Duration = Duration::from_secs(20);

/// A running server.
pub(crate) struct Server {
    ends: Ends,
    page: Page,
    seq: u64,
    warm: bool,
    // Dropped last: the keeper kills what the closed pipes did not end.
    _keeper: Keeper,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// The server is gone, or does not keep to the protocol.
    #[error("{0}")]
    Gone(String),
    /// The program could not be executed.
    #[error("executing the program failed: {0}")]
    Exec(nix::Error),
}

/// How a request was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) ended: Ended,
    pub(crate) cpu: Duration,
}

impl Server {
    /// Starts a server and waits for its hello. `warm`: one process serves many runs.
    pub(crate) fn start(
        launch: &Launch,
        stdin: &File,
        stderr: Option<&File>,
        warm: bool,
    ) -> Result<Server, ExecError> {
        let failed = |what: &str| {
            let what = format!("{what} for {}", launch.program.display());
            move |errno: nix::Error| ExecError::System {
                what,
                source: errno.into(),
            }
        };
        let (page, page_file) = Page::create().map_err(failed("sharing memory"))?;
        let (keeper, mut ends) = launch
            .start(stdin, &page_file, stderr)
            .map_err(failed("starting the launcher"))?;
        if !watch::readable(&ends.reply, STARTUP) {
            return Err(server_error(launch, "it did not start within 20 s"));
        }
        let mut hello = [0; HELLO_SIZE];
        match ends.reply.read_exact(&mut hello) {
            Ok(()) => {}
            Err(_) => return Err(server_error(launch, "it ended before its main function")),
        }
        read_hello(&hello).map_err(|trouble| startup_error(launch, trouble))?;
        Ok(Server {
            ends,
            page,
            seq: 0,
            warm,
            _keeper: keeper,
        })
    }

    /// Asks for one run on the input that is in place.
    pub(crate) fn run(&mut self, length: usize, limits: &Limits) -> Result<Answer, Broken> {
        self.ask(length, false)?;
        let waited = watch::wait(&self.ends.reply, &self.page, limits, self.warm);
        if waited == Waited::Silent {
            return Err(Broken::Gone("it does not answer".to_owned()));
        }
        let reply = self.reply()?;
        if reply.exec_errno != 0 {
            return Err(Broken::Exec(nix::Error::from_raw(reply.exec_errno)));
        }
        let ended = match (waited, Ended::from_wait_status(reply.status)) {
            (Waited::Killed(why), Ended::Signal(libc::SIGKILL)) => why,
            (_, ended) => ended,
        };
        Ok(Answer {
            ended,
            cpu: Duration::from_micros(reply.cpu_us),
        })
    }

    /// Sends the next request.
    pub(crate) fn ask(&mut self, length: usize, random_addresses: bool) -> Result<(), Broken> {
        self.seq += 1;
        let request = Request {
            seq: self.seq,
            length: length as u64,
            random_addresses,
        };
        self.send(&request.to_bytes())
    }

    /// Sends raw bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.ends
            .request
            .write_all(bytes)
            .map_err(|_| Broken::Gone("it is gone".to_owned()))
    }

    /// Reads the next reply.
    pub(crate) fn reply(&mut self) -> Result<Reply, Broken> {
        let mut bytes = [0; REPLY_SIZE];
        self.ends
            .reply
            .read_exact(&mut bytes)
            .map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => Broken::Gone("it died".to_owned()),
                _ => Broken::Gone(error.to_string()),
            })?;
        let reply = Reply::from_bytes(&bytes);
        if reply.seq != self.seq {
            return Err(Broken::Gone(format!(
                "it answered run {}, not {}",
                reply.seq, self.seq
            )));
        }
        Ok(reply)
    }

    /// Waits for the reply to the last request, whose child this kills at its limits; gives why
    /// it was killed.
    pub(crate) fn watch(&mut self, limits: &Limits) -> Option<Ended> {
        match watch::wait(&self.ends.reply, &self.page, limits, self.warm) {
            Waited::Killed(why) => Some(why),
            Waited::Ready | Waited::Silent => None,
        }
    }

    /// Waits for at most `timeout` for a reply.
    pub(crate) fn replies_within(&self, timeout: Duration) -> bool {
        watch::readable(&self.ends.reply, timeout)
    }
}

fn server_error(launch: &Launch, why: &str) -> ExecError {
    match launch.role {
        Role::Program => ExecError::WayUnfit {
            way: match launch.inject {
                Some(Inject::Fork) | None => Way::Inject.name(),
                Some(_) => Way::Harness.name(),
            },
            path: launch.program.clone(),
            why: why.to_owned(),
        },
        Role::Serve | Role::Trace => ExecError::Server {
            path: launch.program.clone(),
            why: why.to_owned(),
        },
    }
}

fn startup_error(launch: &Launch, trouble: Trouble) -> ExecError {
    let path = launch.program.clone();
    let system = |what: &str, errno| ExecError::System {
        what: format!("{what} {}", path.display()),
        source: std::io::Error::from_raw_os_error(errno),
    };
    match trouble {
        Trouble::Exec(errno) => ExecError::NotExecutable {
            path: path.clone(),
            why: std::io::Error::from_raw_os_error(errno).to_string(),
        },
        Trouble::Threads => server_error(launch, "it starts threads before its main function"),
        Trouble::Setup(errno) => system("setting the limits, user or directory of", errno),
        Trouble::Nonsense => server_error(launch, "it does not speak the protocol"),
    }
}
