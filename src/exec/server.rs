//! A started server: one request, one reply.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::Pid;

use super::keeper::Keeper;
use super::launch::{Ends, Inject, Launch, Role};
use super::page::Page;
use super::protocol::{HELLO_SIZE, REPLY_SIZE, Reply, Request, Trouble, read_hello};
use super::watch::{self, Waited, Watch};
use super::{Ended, ExecError, Limits, Way, proc_tree};

/// How long a server may take to come up.
const STARTUP: Duration = Duration::from_secs(10);
/// How long the rest of a reply may take whose beginning is there.
const REST: Duration = Duration::from_secs(1);

/// A running server.
pub(crate) struct Server {
    ends: Ends,
    page: Page,
    seq: u64,
    warm: bool,
    pid: Pid,
    // Dropped last: the keeper kills what the closed pipes did not end.
    keeper: Keeper,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// The server died.
    #[error("it died")]
    Died,
    /// It was silent after its run was killed, which would have ended so.
    #[error("it does not answer")]
    Silent(Ended),
    /// It does not keep to the protocol.
    #[error("{0}")]
    Nonsense(String),
    /// The program could not be executed.
    #[error("executing the program failed: {0}")]
    Exec(nix::Error),
}

/// How a request was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) ended: Ended,
    pub(crate) cpu: Duration,
    /// Whether the run had descendants.
    pub(crate) forked: bool,
}

impl Server {
    /// Starts a server and waits for its hello. `warm`: one process serves many runs.
    pub(crate) fn start(
        launch: &Launch,
        stdin: &File,
        stderr: Option<&File>,
        warm: bool,
    ) -> Result<Server, ExecError> {
        let (page, page_file) =
            Page::create().map_err(|errno| system(launch, "sharing memory", errno))?;
        let (keeper, mut ends) = launch
            .start(stdin, &page_file, stderr)
            .map_err(|errno| system(launch, "starting the launcher", errno))?;
        let mut hello = [0; HELLO_SIZE];
        match read_within(&mut ends.reply, &mut hello, STARTUP) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                let why = format!("it did not start within {} s", STARTUP.as_secs());
                return Err(server_error(launch, &why));
            }
            Err(_) => return Err(server_error(launch, "it ended before its main function")),
        }
        let pid = read_hello(&hello).map_err(|trouble| startup_error(launch, trouble))?;
        let pid = Pid::from_raw(pid);
        if !proc_tree::descends(pid, keeper.pid()) {
            // Nothing could be told from it of the run, nor of what to kill.
            return Err(ExecError::Server {
                path: launch.program.clone(),
                why: "it is not in /proc (is that of another PID namespace?)".to_owned(),
            });
        }
        Ok(Server {
            ends,
            page,
            seq: 0,
            warm,
            pid,
            keeper,
        })
    }

    /// Asks for one run on the input that is in place.
    pub(crate) fn run(&mut self, length: usize, limits: &Limits) -> Result<Answer, Broken> {
        self.ask(length, false)?;
        loop {
            let waited = self.wait(limits)?;
            // The answer to a run before, given twice, is no answer.
            let Some(reply) = self.next_reply()? else {
                continue;
            };
            if reply.exec_errno != 0 {
                return Err(Broken::Exec(Errno::from_raw(reply.exec_errno)));
            }
            let ended = match (waited, Ended::from_wait_status(reply.status)) {
                (Some(why), Ended::Signal(libc::SIGKILL)) => why,
                (_, ended) => ended,
            };
            return Ok(Answer {
                ended: self.page.crashed().map_or(ended, Ended::Signal),
                forked: self.page.forked(),
                cpu: Duration::from_micros(reply.cpu_us),
            });
        }
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
        self.ends.request.write_all(bytes).map_err(|_| Broken::Died)
    }

    /// Waits for the reply to the last request, whose run this kills at its limits; gives why it
    /// was killed.
    pub(crate) fn wait(&self, limits: &Limits) -> Result<Option<Ended>, Broken> {
        let watch = Watch {
            reply: &self.ends.reply,
            page: &self.page,
            seq: self.seq,
            server: self.pid,
            keeper: self.keeper.pid(),
            warm: self.warm,
        };
        match watch.wait(limits) {
            Waited::Ready => Ok(None),
            Waited::Killed(why) => Ok(Some(why)),
            Waited::Silent(why) => Err(Broken::Silent(why)),
            Waited::Untaken => Err(Broken::Nonsense("it takes no requests".to_owned())),
        }
    }

    /// Takes the reply to the last request, within `timeout`.
    pub(crate) fn reply(&mut self, timeout: Duration) -> Result<Reply, Broken> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !watch::readable(&self.ends.reply, left) {
                return Err(Broken::Nonsense("it does not answer".to_owned()));
            }
            if let Some(reply) = self.next_reply()? {
                return Ok(reply);
            }
        }
    }

    /// Takes the reply that is there; `None` if it is to an earlier request.
    fn next_reply(&mut self) -> Result<Option<Reply>, Broken> {
        let mut bytes = [0; REPLY_SIZE];
        match read_within(&mut self.ends.reply, &mut bytes, REST) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(Broken::Died),
            Err(error) => return Err(Broken::Nonsense(format!("reading its answer: {error}"))),
        }
        let reply = Reply::from_bytes(&bytes);
        if reply.seq > self.seq {
            let (given, asked) = (reply.seq, self.seq);
            return Err(Broken::Nonsense(format!(
                "it answered run {given}, not {asked}"
            )));
        }
        Ok((reply.seq == self.seq).then_some(reply))
    }
}

/// Fills `buffer`, however slowly its bytes come, but not for longer than `timeout`.
fn read_within(from: &mut File, buffer: &mut [u8], timeout: Duration) -> std::io::Result<()> {
    let deadline = Instant::now() + timeout;
    let mut filled = 0;
    while filled < buffer.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if !watch::readable(&*from, left) {
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

fn system(launch: &Launch, what: &str, errno: Errno) -> ExecError {
    let hint = match errno {
        // What these mean where a server's high descriptors are asked for.
        Errno::EMFILE | Errno::EINVAL | Errno::EBADF => {
            " (are there too few file descriptors? raise `ulimit -n`)"
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
    match trouble {
        Trouble::Exec(errno) => ExecError::NotExecutable {
            path,
            why: std::io::Error::from_raw_os_error(errno).to_string(),
        },
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
            "it closes descriptors that it did not open, before its main function",
        ),
        Trouble::Nonsense => server_error(launch, "it does not speak the protocol"),
    }
}
