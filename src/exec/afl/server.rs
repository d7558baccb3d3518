//! A started fork server: one word asks for a run, two tell of it.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::super::keeper::Keeper;
use super::super::launch::{Ends, Launch};
use super::super::server::{Answer, Broken, STARTUP, await_hello, check_descent, system};
use super::super::watch::{GRACE, SLICE, Waited, Watch, readable};
use super::super::{Ended, ExecError, Limits, proc_tree};
use super::family::{Family, Left};
use super::greeting::{Dialogue, Greeting, Refused};
use super::process_clock::cpu_of;

/// In a process that serves many runs it is looked for what they have left behind after so many.
const SWEPT_EACH: u32 = 64;

/// A running fork server.
pub(super) struct AflServer {
    ends: Ends,
    pid: Pid,
    /// One process serves many runs.
    persistent: bool,
    /// The process that waits for the next run, and the CPU time that it has used.
    waiting: Option<(Pid, Duration)>,
    /// The last run was killed: the server may take its process for one that waits.
    killed: bool,
    family: Family,
    runs: u32,
    // Dropped last: the keeper kills what the closed pipes did not end.
    keeper: Keeper,
}

/// Why no server has come up.
pub(super) enum NoServer {
    Error(ExecError),
    Refused(Refused),
}

/// A word that a run is told by, where it has been read ahead.
type Ahead = Option<i32>;

impl AflServer {
    /// Starts the program and takes its greeting. `shared`: inputs are offered in shared memory.
    pub(super) fn start(
        launch: &Launch,
        stdin: &File,
        shared: bool,
        persistent: bool,
    ) -> Result<(AflServer, Greeting), NoServer> {
        // It has no use for a page of ours; the launcher closes whatever stands there.
        let started = launch.start(stdin, stdin, None);
        let (keeper, mut ends) = started
            .map_err(|errno| NoServer::Error(system(launch, "starting the launcher", errno)))?;
        let pid = await_hello(launch, &mut ends.reply).map_err(NoServer::Error)?;
        let dialogue = Dialogue {
            control: &mut ends.request,
            status: &mut ends.reply,
            shared,
            patience: STARTUP,
            began: Instant::now(),
        };
        let greeting = dialogue.greet().map_err(NoServer::Refused)?;
        check_descent(launch, &keeper, pid).map_err(NoServer::Error)?;
        let server = AflServer {
            ends,
            pid,
            persistent,
            waiting: None,
            killed: false,
            family: Family::of(pid),
            runs: 0,
            keeper,
        };
        Ok((server, greeting))
    }

    /// Asks for one run on the input that is in place. Gives how it ended, and whether the server
    /// can go on.
    pub(super) fn run(&mut self, limits: &Limits) -> Result<(Answer, Left), Broken> {
        let began = Instant::now();
        let word = u32::from(self.killed).to_ne_bytes();
        self.ends
            .request
            .write_all(&word)
            .map_err(|_| Broken::Died)?;
        if !readable(&self.ends.reply, GRACE) {
            return Err(Broken::Nonsense(
                "its fork server takes no requests".to_owned(),
            ));
        }
        let (child, ahead) = self.forked()?;
        let (waited, status, reaped) = self.ended(ahead, limits)?;
        let stopped = libc::WIFSTOPPED(status);
        if waited.is_none() && self.died_waiting(child, status) {
            return Err(Broken::Died);
        }
        let ended = match (waited, Ended::from_wait_status(status)) {
            _ if stopped && self.persistent => waited.unwrap_or(Ended::Exit(0)),
            // It has asked to be traced by the server, which takes the signal for its end.
            _ if stopped => waited.unwrap_or(Ended::Signal(libc::WSTOPSIG(status))),
            (Some(why), Ended::Signal(libc::SIGKILL)) => why,
            (_, ended) => ended,
        };
        let cpu = self.cpu(child, reaped, began.elapsed());
        let waits = stopped && self.persistent && waited.is_none();
        self.killed = !waits && (stopped || waited.is_some());
        if !waits {
            self.waiting = None;
        }
        let left = self.sweep(!waits);
        Ok((Answer { ended, cpu }, left))
    }

    /// Whether the process may have been killed by somebody else before it saw the input. A new
    /// one will tell.
    fn died_waiting(&self, child: Pid, status: i32) -> bool {
        let waited = self.waiting.is_some_and(|(pid, _)| pid == child);
        waited && Ended::from_wait_status(status) == Ended::Signal(libc::SIGKILL)
    }

    /// Takes the process id of the run, and what came with it.
    fn forked(&mut self) -> Result<(Pid, Ahead), Broken> {
        let mut bytes = [0; 8];
        let length = self.read(&mut bytes, 4)?;
        let (pid, status) = (first(&bytes), first(&bytes[4..]));
        if pid <= 0 {
            return Err(Broken::Nonsense(format!(
                "its fork server tells of a run by {pid:#x} instead of a process id"
            )));
        }
        Ok((Pid::from_raw(pid), (length == 8).then_some(status)))
    }

    /// Waits for the end of the run. Gives why it was killed, if so, its status, and the CPU time
    /// of the dead, if the run was so long that it was looked at.
    fn ended(
        &mut self,
        ahead: Ahead,
        limits: &Limits,
    ) -> Result<(Option<Ended>, i32, Option<Duration>), Broken> {
        if let Some(status) = ahead {
            return Ok((None, status, None));
        }
        let (mut killed, mut reaped) = (None, None);
        if !readable(&self.ends.reply, SLICE) {
            let before = proc_tree::reaped_cpu(self.pid);
            killed = self.watch(limits)?;
            let after = proc_tree::reaped_cpu(self.pid);
            reaped = before
                .zip(after)
                .map(|(before, after)| after.saturating_sub(before));
        }
        let mut bytes = [0; 4];
        self.read(&mut bytes, 4)?;
        Ok((killed, first(&bytes), reaped))
    }

    fn watch(&self, limits: &Limits) -> Result<Option<Ended>, Broken> {
        let watch = Watch {
            reply: &self.ends.reply,
            page: None,
            seq: 0,
            server: self.pid,
            keeper: self.keeper.pid(),
            warm: self.persistent,
        };
        match watch.wait(limits) {
            Waited::Ready => Ok(None),
            Waited::Killed(why) => Ok(Some(why)),
            Waited::Silent(why) => Err(Broken::Silent(why)),
            Waited::Untaken => Err(Broken::Died), // not without a page
        }
    }

    /// CPU time of the run. That of a process that waits for its next run is exact. That of one
    /// that has ended is known to its parent alone; the kernel shows it in ticks, so that it is
    /// asked for only where the run took some of them. Of shorter runs there is the wall time.
    fn cpu(&mut self, child: Pid, reaped: Option<Duration>, wall: Duration) -> Duration {
        if self.persistent
            && let Some(now) = cpu_of(child)
        {
            let before = match self.waiting {
                Some((pid, cpu)) if pid == child => cpu,
                _ => Duration::ZERO,
            };
            self.waiting = Some((child, now));
            return now.saturating_sub(before);
        }
        reaped.unwrap_or_else(|| wall.min(SLICE))
    }

    /// Kills what runs have left behind: at once where it may be looked for at each run, or where
    /// the run's own process is gone.
    fn sweep(&mut self, now: bool) -> Left {
        self.runs = self.runs.wrapping_add(1);
        if !now && !self.runs.is_multiple_of(SWEPT_EACH) {
            return Left::Nothing;
        }
        self.family.sweep(self.waiting.map(|(pid, _)| pid))
    }

    /// Reads at least `least` bytes, which the server writes at once.
    fn read(&mut self, buffer: &mut [u8], least: usize) -> Result<usize, Broken> {
        let mut length = 0;
        while length < least || !length.is_multiple_of(4) {
            if length > 0 && !readable(&self.ends.reply, GRACE) {
                return Err(Broken::Nonsense(
                    "its fork server tells half a word".to_owned(),
                ));
            }
            match self.ends.reply.read(&mut buffer[length..]) {
                Ok(0) => return Err(Broken::Died),
                Ok(count) => length += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Broken::Died),
            }
        }
        Ok(length)
    }
}

fn first(bytes: &[u8]) -> i32 {
    i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
