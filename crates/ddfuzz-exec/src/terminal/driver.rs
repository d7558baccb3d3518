//! Works at a terminal: types one key after the other, each when the program waits for it, and
//! ends what does not end by itself (docs/decisions/0074).

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeSpec;
use nix::unistd::{Pid, getpgid};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::proc_tree;
use crate::terminal::keys::{Stroke, strokes};
use crate::terminal::pty::Pty;

/// The end of a file, where lines are read.
const END_OF_FILE: &[u8] = b"\x04";
/// CPU time that a program may spend on one key before the next one is typed.
const WORK: Duration = Duration::from_millis(200);
/// However little of that it gets, no longer than this.
const LONGEST_WORK: Duration = Duration::from_secs(5);
/// How long a program that does not read is waited for while it sleeps.
const UNREAD: Duration = Duration::from_millis(20);
/// How long a program may sleep after its terminal was hung up.
const GRACE: Duration = Duration::from_millis(20);
/// How long a tracer's stop is taken for one of its own moments.
const TRACED: Duration = Duration::from_millis(50);
/// The shortest and longest time between two looks.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(2));

/// Who works at a terminal during one run.
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

/// What is known of a run at a terminal.
#[derive(Default)]
pub(super) struct TerminalRun {
    /// What it wrote there.
    pub(super) output: TerminalOutput,
    /// It did not end by itself, so that its terminal was hung up.
    pub(super) hung_up: bool,
}

/// When a program is given up that does not come to wait for a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// After [`WORK`].
    Bounded,
    /// Never, as long as it works: a run that only computes is a hang.
    Limits,
}

impl Driver {
    /// Works at the terminal until the run is over.
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

    /// Whether a program that sleeps is not going to read what was typed, as far as can be told;
    /// one that has been seen to do so is not waited for again before it has read something.
    fn is_unheeded(&mut self, unread: usize, waited: &mut Wait) -> bool {
        let again = self.unread > 0 && unread >= self.unread;
        let slept = waited.slept.get_or_insert_with(Instant::now).elapsed();
        let unheeded = again || slept >= UNREAD;
        if unheeded {
            self.unread = unread;
        }
        unheeded
    }

    /// Waits for the end of a program that was told to; `None` when it is there.
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

    /// Takes what was written to the terminal; gives whether there was something.
    fn listen(&mut self) -> bool {
        let output = &mut self.run.output;
        self.pty.take_output(&mut |bytes| output.push(bytes))
    }

    /// Waits for so long, or until something is written; `None` when the run is over.
    fn goes_on(&self, session: &Session, pause: Duration) -> Option<()> {
        let mut fds = [&*self.stop as &dyn AsFd, session.end(), self.pty.ours()]
            .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN));
        let _ = ppoll(&mut fds, Some(TimeSpec::from(pause)), None);
        let is_over = fds[..2].iter().any(|fd| fd.any() == Some(true));
        (!is_over).then_some(())
    }

    /// Whether the run is over, waiting for that or for something written for so long.
    fn is_stopped(&self, pause: Duration) -> bool {
        let mut fds = [&*self.stop as &dyn AsFd, self.pty.ours()]
            .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN));
        let _ = ppoll(&mut fds, Some(TimeSpec::from(pause)), None);
        fds[0].any() == Some(true)
    }
}

/// Waiting for a program, and since when.
struct Wait {
    began: Instant,
    pause: Duration,
    /// Since when it sleeps.
    slept: Option<Instant>,
    traced: Option<Instant>,
    /// What it had used when it was first asked.
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

    /// Whether a tracer holds a process for so long that it must have been stopped; once in that
    /// time.
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

/// A session: the process that leads it, and all that descends from its server.
struct Session {
    /// Unlike its id this never comes to mean another process.
    leader: OwnedFd,
    pid: Pid,
    server: Pid,
}

/// What processes do at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// One of them runs, waits for a processor or a disk, or ends.
    Work,
    /// All sleep, but for some that are stopped, as by ^Z.
    Stopped,
    /// The same where a tracer has stopped one: for a moment, or as long as it is stopped.
    Traced,
    /// All sleep.
    Sleep,
}

impl Session {
    /// The session that this process leads.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn of(pid: Pid) -> io::Result<Session> {
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

    /// Can be read once its leader has ended: with that the run is over.
    pub(super) fn end(&self) -> &OwnedFd {
        &self.leader
    }

    /// What its processes do.
    pub(super) fn activity(&self) -> Activity {
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

    /// What they do, seen one after the other; and how many threads they have.
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
    pub(super) fn cpu(&self) -> Duration {
        proc_tree::usage_below(self.server).cpu
    }

    /// Lets go on what is stopped.
    fn go_on(&self) {
        for pid in proc_tree::descendants(self.server) {
            let _ = kill(pid, Signal::SIGCONT);
        }
    }

    /// Tells it that its terminal is gone, as the system does: its leader, and the group in the
    /// foreground.
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

    /// Ends it: what is left without its leader, the server ends.
    pub(super) fn kill(&self) {
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

/// How much of the end is kept, in bytes; and of the beginning: as of what is written to stderr.
const KEPT: usize = 1 << 16;
const BEGINNING: usize = 4096;
/// Stands where something is missing between the two.
const GAP: &[u8] = b"\n[...]\n";

/// What was heard of a run.
#[derive(Default)]
pub(super) struct TerminalOutput {
    beginning: Vec<u8>,
    tail: Vec<u8>,
    lost: bool,
}

impl TerminalOutput {
    /// Hears more.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = BEGINNING.saturating_sub(self.beginning.len());
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.beginning.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        // Twice as much is let in before it is moved.
        if self.tail.len() > 2 * KEPT {
            self.lost = true;
            self.tail.drain(..self.tail.len() - KEPT);
        }
    }

    /// All of it, with lines that end as those of files do.
    pub(super) fn text(&self) -> Vec<u8> {
        let surplus = self.tail.len().saturating_sub(KEPT);
        let gap = if self.lost || surplus > 0 { GAP } else { b"" };
        let all = [&self.beginning, gap, &self.tail[surplus..]].concat();
        let behind = all.iter().skip(1).map(Some).chain([None]);
        let pairs = all.iter().zip(behind);
        let kept = pairs.filter(|pair| !matches!(pair, (b'\r', Some(b'\n'))));
        kept.map(|(byte, _)| *byte).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_in_files_and_the_middle_of_a_flood_is_lost() {
        let mut output = TerminalOutput::default();
        output.push(b"a\r\nb\rc\r");
        output.push(b"\nd");
        assert_eq!(output.text(), b"a\nb\rc\nd");
        for _ in 0..100 {
            output.push(&[b'x'; 4096]);
        }
        output.push(b"the end");
        let text = output.text();
        assert_eq!(text.len(), BEGINNING - 2 + GAP.len() + KEPT);
        assert!(text.starts_with(b"a\nb\rc\ndxx") && text.ends_with(b"the end"));
    }
}
