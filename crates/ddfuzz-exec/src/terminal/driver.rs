//! Drives a target at a terminal: types one key after the other, each when the program waits for it,
//! and ends a program that does not end by itself (docs/decisions/0074).

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeSpec;
use nix::unistd::{Pid, getpgid};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::output_capture::{Excerpt, Sink};
use crate::proc_tree;
use crate::terminal::keys::{Stroke, strokes};
use crate::terminal::pty::Pty;

/// The end of a file, where lines are read.
const END_OF_FILE: &[u8] = b"\x04";
/// CPU time that a program may spend on one key before the next one is typed.
const WORK: Duration = Duration::from_millis(200);
/// However little of that it gets, no longer than this.
const LONGEST_WORK: Duration = Duration::from_secs(5);
/// How long to wait for a program that sleeps and does not read what was typed.
const UNREAD: Duration = Duration::from_millis(20);
/// How long a program may sleep after its terminal was hung up.
const GRACE: Duration = Duration::from_millis(20);
/// How long a stop may be one of a tracer's; a longer one is the target's own.
const TRACED: Duration = Duration::from_millis(50);
/// The shortest and longest time between two looks.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(2));

/// Types at a terminal during one run.
pub(super) struct Driver {
    pub(super) pty: Pty,
    /// Can be read when the run is over.
    pub(super) stop: Arc<EventFd>,
    pub(super) keys: Vec<u8>,
    pub(super) ending: Vec<u8>,
    pub(super) run: TerminalRun,
    /// How much the program has left unread while it slept.
    pub(super) unread: usize,
}

/// The result of a run at a terminal.
#[derive(Default)]
pub(super) struct TerminalRun {
    /// What it wrote there.
    pub(super) output: Excerpt,
    /// It did not end by itself, so its terminal was hung up.
    pub(super) hung_up: bool,
}

/// How long to wait until a program waits for a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// After [`WORK`].
    Bounded,
    /// As long as it works, up to the limits: a run that only computes is a hang.
    Limits,
}

impl Driver {
    /// Types at the terminal until the run is over.
    pub(super) fn drive(mut self) -> TerminalRun {
        let _ = self.work(); // over, or nothing left to do
        while !self.is_stopped(PAUSES.1 * 10) {
            self.listen();
        }
        self.listen();
        self.run
    }

    /// The whole course of a run; `None` as soon as it is over.
    fn work(&mut self) -> Option<()> {
        let session = self.await_session()?;
        self.settle(&session, Patience::Bounded)?;
        let (keys, ending) = (
            std::mem::take(&mut self.keys),
            std::mem::take(&mut self.ending),
        );
        let ends = [END_OF_FILE; 2].map(Stroke::Key);
        for stroke in strokes(&keys).chain(strokes(&ending)).chain(ends) {
            self.make(stroke);
            self.settle(&session, Patience::Bounded)?;
        }
        self.settle(&session, Patience::Limits)?;
        self.run.hung_up = true;
        session.hang_up(self.pty.foreground());
        self.await_death(&session)?;
        session.kill();
        Some(())
    }

    fn make(&mut self, stroke: Stroke<'_>) {
        match stroke {
            // What finds no room is lost, as it is to everybody who types to nobody.
            Stroke::Key(key) => drop(self.pty.type_in(key)),
            Stroke::Resize { rows, columns } => drop(self.pty.resize(rows, columns)),
        }
    }

    fn await_session(&mut self) -> Option<Session> {
        let mut pause = PAUSES.0;
        loop {
            if let Some(leader) = self.pty.leader()
                && let Ok(session) = Session::of(leader)
                // Else it may have been another process of the same id.
                && self.pty.leader() == Some(leader)
            {
                return Some(session);
            }
            if self.is_stopped(pause) {
                return None;
            }
            self.listen();
            pause = longer(pause);
        }
    }

    /// Waits until all processes sleep, and there is nothing to read for them; `None` when the run
    /// is over.
    fn settle(&mut self, session: &Session, patience: Patience) -> Option<()> {
        let mut waited = Wait::new();
        loop {
            self.listen();
            let unread = self.pty.unread();
            let activity = session.activity();
            // What is written fills the terminal: who waits for room sleeps, too.
            let quiet = !self.listen();
            match activity {
                Activity::Sleep if quiet && unread == 0 => {
                    self.unread = 0;
                    return self.goes_on(session, Duration::ZERO);
                }
                Activity::Sleep if quiet && self.is_unheeded(unread, &mut waited) => {
                    return self.goes_on(session, Duration::ZERO);
                }
                Activity::Sleep => {}
                Activity::Stopped => session.go_on(),
                Activity::Traced if waited.since_traced() => session.go_on(),
                Activity::Traced => {}
                Activity::Work if patience == Patience::Bounded && waited.too_long(session) => {
                    return self.goes_on(session, Duration::ZERO);
                }
                Activity::Work => waited.slept = None,
            }
            self.goes_on(session, waited.pause())?;
        }
    }

    /// Whether a sleeping program seems not to read what was typed. Once it seems so, it is not
    /// waited for again before it has read something.
    fn is_unheeded(&mut self, unread: usize, waited: &mut Wait) -> bool {
        let again = self.unread > 0 && unread >= self.unread;
        let slept = waited.slept.get_or_insert_with(Instant::now).elapsed();
        let unheeded = again || slept >= UNREAD;
        if unheeded {
            self.unread = unread;
        }
        unheeded
    }

    /// Waits for the end of a program whose terminal was hung up; `None` when it has ended.
    fn await_death(&mut self, session: &Session) -> Option<()> {
        let mut waited = Wait::new();
        loop {
            self.listen();
            match session.activity() {
                Activity::Sleep => {
                    if waited.slept.get_or_insert_with(Instant::now).elapsed() >= GRACE {
                        return Some(());
                    }
                }
                Activity::Stopped => session.go_on(),
                Activity::Traced if waited.since_traced() => session.go_on(),
                Activity::Traced => {}
                Activity::Work => waited.slept = None,
            }
            self.goes_on(session, waited.pause())?;
        }
    }

    /// Reads what was written to the terminal; returns whether there was something.
    fn listen(&mut self) -> bool {
        let output = &mut self.run.output;
        self.pty.take_output(&mut |bytes| output.push(bytes))
    }

    /// Waits for `pause`, or until something is written; `None` when the run is over.
    fn goes_on(&self, session: &Session, pause: Duration) -> Option<()> {
        let mut fds = [&*self.stop as &dyn AsFd, session.end(), self.pty.ours()]
            .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN));
        let _ = ppoll(&mut fds, Some(TimeSpec::from(pause)), None);
        let is_over = fds[..2].iter().any(|fd| fd.any() == Some(true));
        (!is_over).then_some(())
    }

    /// Whether the run is over; waits for `pause`, or until something is written.
    fn is_stopped(&self, pause: Duration) -> bool {
        let mut fds = [&*self.stop as &dyn AsFd, self.pty.ours()]
            .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN));
        let _ = ppoll(&mut fds, Some(TimeSpec::from(pause)), None);
        fds[0].any() == Some(true)
    }
}

/// How long a program has been waited for.
struct Wait {
    began: Instant,
    pause: Duration,
    /// Since when it sleeps.
    slept: Option<Instant>,
    traced: Option<Instant>,
    /// The CPU time that it had used at the first look.
    cpu: Option<Duration>,
}

impl Wait {
    fn new() -> Wait {
        Wait {
            began: Instant::now(),
            pause: PAUSES.0,
            slept: None,
            traced: None,
            cpu: None,
        }
    }

    /// How long to wait before the next look.
    fn pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = longer(pause);
        pause
    }

    /// Whether a traced process is stopped for so long that it must have stopped itself; true once
    /// in that time.
    fn since_traced(&mut self) -> bool {
        let over = self.traced.get_or_insert_with(Instant::now).elapsed() >= TRACED;
        if over {
            self.traced = None;
        }
        over
    }

    /// Whether a program has worked for longer than it may on one key.
    fn too_long(&mut self, session: &Session) -> bool {
        let elapsed = self.began.elapsed();
        if elapsed < PAUSES.1 {
            return false; // most are never asked
        }
        let cpu = session.cpu();
        let worked = cpu.saturating_sub(*self.cpu.get_or_insert(cpu));
        worked >= WORK || elapsed >= LONGEST_WORK
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 3 / 2).min(PAUSES.1)
}

/// A session: its leader, and all that descends from its server.
struct Session {
    /// A descriptor of the leader: unlike its id it never means another process.
    leader: OwnedFd,
    pid: Pid,
    server: Pid,
}

/// What the processes of a session do at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// One of them runs, waits for a processor or a disk, or ends.
    Work,
    /// All sleep, but for some that are stopped, as by ^Z.
    Stopped,
    /// The same where a tracer has stopped one, for a moment or for longer.
    Traced,
    /// All sleep.
    Sleep,
}

impl Session {
    /// The session that this process leads.
    ///
    /// # Errors
    /// When it has ended.
    fn of(pid: Pid) -> io::Result<Session> {
        // SAFETY: the call takes two numbers and gives a new descriptor or an error.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and owned by nobody else.
        let leader = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
        let server = proc_tree::parent(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Session {
            leader,
            pid,
            server,
        })
    }

    /// Becomes readable when the leader has ended, and with it the run.
    fn end(&self) -> &OwnedFd {
        &self.leader
    }

    /// What its processes do, confirmed by a second look where there are several threads.
    fn activity(&self) -> Activity {
        let (activity, threads) = self.seen();
        if activity != Activity::Sleep || threads < 2 {
            return activity;
        }
        // One after the other may have woken the next: they all sleep where none has run since
        // before the first of them was seen asleep.
        let before = proc_tree::switches(self.server);
        let (activity, _) = self.seen();
        match activity {
            Activity::Sleep if proc_tree::switches(self.server) != before => Activity::Work,
            activity => activity,
        }
    }

    /// What its processes do, looked at one after the other, and how many threads there are.
    fn seen(&self) -> (Activity, u64) {
        let (mut activity, mut threads) = (Activity::Sleep, 0);
        for (state, count) in proc_tree::states_below(self.server) {
            threads += count;
            activity = match state {
                b'S' | b'I' | b'Z' | b'X' => activity,
                b'T' if activity == Activity::Sleep => Activity::Stopped,
                b'T' => activity,
                b't' => Activity::Traced,
                _ => return (Activity::Work, threads),
            };
        }
        (activity, threads)
    }

    /// CPU time of all its processes.
    fn cpu(&self) -> Duration {
        proc_tree::usage_below(self.server).cpu
    }

    /// Continues its stopped processes.
    fn go_on(&self) {
        for pid in proc_tree::descendants(self.server) {
            let _ = kill(pid, Signal::SIGCONT);
        }
    }

    /// Sends the hang-up of its terminal as the kernel does: to its leader and the foreground group.
    fn hang_up(&self, foreground: Option<Pid>) {
        for pid in proc_tree::descendants(self.server) {
            if pid != self.pid && getpgid(Some(pid)).ok() == foreground {
                let _ = kill(pid, Signal::SIGHUP);
                let _ = kill(pid, Signal::SIGCONT);
            }
        }
        self.signal(libc::SIGHUP);
        self.signal(libc::SIGCONT);
    }

    /// Kills its leader. The server ends what is left then.
    fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    fn signal(&self, number: i32) {
        // SAFETY: the call takes numbers and a null pointer, which stands for no details.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.leader.as_raw_fd(),
                number,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            );
        }
    }
}

impl TerminalRun {
    /// The beginning and the end of what it wrote, with lines that end as those of files do.
    pub(super) fn text(&self) -> Vec<u8> {
        let all = self.output.bytes();
        let next = all.iter().skip(1).map(Some).chain([None]);
        let pairs = all.iter().zip(next);
        let kept = pairs.filter(|pair| !matches!(pair, (b'\r', Some(b'\n'))));
        kept.map(|(byte, _)| *byte).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_in_files() {
        let mut run = TerminalRun::default();
        run.output.push(b"a\r\nb\rc\r");
        run.output.push(b"\nd");
        assert_eq!(run.text(), b"a\nb\rc\nd");
    }
}
