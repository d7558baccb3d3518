//! Drives a target at a terminal: types each key when the program waits for it, and ends a program
//! that does not exit by itself (docs/decisions/0074).

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};
use nix::{sys::eventfd::EventFd, sys::time::TimeSpec};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use std::{fs::File, io, sync::Arc};

use crate::output_capture::{Excerpt, Sink};
use crate::terminal::blocked_call::goes_on_by_itself;
use crate::terminal::{Stroke, strokes};
use crate::{proc_tree, terminal::pty::Pty};

/// The byte that the end-of-file key (^D) sends; it ends the program's input if the terminal is in
/// line mode.
const END_OF_FILE: &[u8] = b"\x04";
/// CPU time that a program may spend on one key at its terminal before the next one is typed.
const WORK: Duration = Duration::from_millis(200);
/// Longest wall time that a program may spend on one key at its terminal before the next one is
/// typed.
const LONGEST_WORK: Duration = Duration::from_secs(5);
/// How long the driver waits for a program at the terminal that sleeps without reading the typed
/// bytes, before it types the next key.
const UNREAD: Duration = Duration::from_millis(20);
/// How long a program may sleep after its terminal was hung up, before the driver kills it.
const GRACE: Duration = Duration::from_millis(20);
/// Longest time for which a process at the terminal may be stopped by a tracer; if it is stopped
/// longer, it counts as stopped by itself.
const TRACED: Duration = Duration::from_millis(50);
/// The shortest and the longest pause between two checks of what the processes at a terminal do.
const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(2));

/// The state of the thread that types an input at a target's terminal during one run.
pub(super) struct Driver {
    pub(super) pty: Pty,
    /// An event descriptor that becomes readable when the run at the terminal has ended.
    pub(super) stop: Arc<EventFd>,
    pub(super) keys: Vec<u8>,
    pub(super) ending: Vec<u8>,
    pub(super) run: TerminalRun,
    /// Time until which the driver, at the end of the input, waits for a program that sleeps for a
    /// given time.
    pub(super) until: Instant,
    /// Number of typed bytes that the program had left unread when the driver last gave up waiting
    /// for it; 0 if it has read all since.
    pub(super) unread: usize,
}

/// The result of a run at a terminal: its output, and whether the terminal was hung up.
#[derive(Default)]
pub(super) struct TerminalRun {
    /// The first 4 KiB and the last 64 KiB of the output that the target wrote to its terminal.
    pub(super) output: Excerpt,
    /// True if the driver hung up the terminal, because the run did not exit by itself.
    pub(super) hung_up: bool,
}

/// The limit on how long the driver waits until the program has processed a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitLimit {
    /// The driver waits at most for [`WORK`] of the program's CPU time and [`LONGEST_WORK`] of wall
    /// time.
    Bounded,
    /// The driver waits until the run exceeds its own limits, since a program that computes without
    /// end hangs. For a program that sleeps for a given time, it waits until [`Driver::until`]
    /// only.
    Limits,
}

impl Driver {
    /// Types the input and reads the output until the run has ended; returns the result of the run.
    pub(super) fn drive(mut self) -> TerminalRun {
        let _ = self.work(); // over, or nothing left to do
        while !self.is_stopped(PAUSES.1 * 10) {
            self.listen();
        }
        self.listen();
        self.run
    }

    /// Types the whole input and then the keys that end the program. If the program still runs
    /// then, hangs up its terminal and waits for its death. Returns `Some` after all of this, and
    /// `None` if the run ended earlier.
    fn work(&mut self) -> Option<()> {
        let session = self.await_session()?;
        self.settle(&session, WaitLimit::Bounded)?;
        let (keys, ending) = (
            std::mem::take(&mut self.keys),
            std::mem::take(&mut self.ending),
        );
        let ends = [END_OF_FILE; super::LAST_KEYS].map(Stroke::Key);
        for stroke in strokes(&keys).chain(strokes(&ending)).chain(ends) {
            self.make(stroke);
            self.settle(&session, WaitLimit::Bounded)?;
        }
        self.settle(&session, WaitLimit::Limits)?;
        self.run.hung_up = true;
        session.hang_up(self.pty.foreground());
        self.await_death(&session)?;
        session.kill();
        Some(())
    }

    fn make(&mut self, stroke: Stroke<'_>) {
        match stroke {
            // Bytes that the terminal's full queue does not take are lost.
            Stroke::Key(key) => drop(self.pty.type_in(key)),
            Stroke::Resize { rows, columns } => drop(self.pty.resize(rows, columns)),
        }
    }

    fn await_session(&mut self) -> Option<Session> {
        let mut pause = PAUSES.0;
        loop {
            if let Some(leader) = self.pty.leader()
                && let Ok(session) = Session::of(leader)
                // Otherwise the leader may be another process with the same id.
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

    /// Waits until all processes of the terminal's session sleep and no output is left to read, but
    /// not longer than `limit`, and at most [`UNREAD`] for a program that sleeps and does not read
    /// its keys. Returns `Some` then, and `None` if the run has ended.
    fn settle(&mut self, session: &Session, limit: WaitLimit) -> Option<()> {
        let mut waited = Wait::new();
        loop {
            self.listen();
            let unread = self.pty.unread();
            let activity = session.activity();
            // A full terminal blocks its writers, so its output is read first.
            let quiet = !self.listen();
            let is_last = limit == WaitLimit::Limits;
            match activity {
                Activity::Sleep if is_last && self.goes_on(session, unread) => {}
                Activity::Sleep if quiet && unread == 0 => {
                    self.unread = 0;
                    return self.await_output(session, Duration::ZERO);
                }
                Activity::Sleep if quiet && self.ignores_keys(unread, &mut waited) => {
                    return self.await_output(session, Duration::ZERO);
                }
                Activity::Sleep => {}
                Activity::Stopped => session.go_on(),
                Activity::Traced if waited.has_stopped_itself() => session.go_on(),
                Activity::Traced => {}
                Activity::Work if limit == WaitLimit::Bounded && waited.too_long(session) => {
                    return self.await_output(session, Duration::ZERO);
                }
                Activity::Work => waited.slept = None,
            }
            self.await_output(session, waited.pause())?;
        }
    }

    /// Returns true if processes of the session may go on by themselves before the time
    /// `self.until`: they sleep for a given time, as in a script with `sleep 1`. Returns true also
    /// if one of them ran or ended while the driver looked at them one after the other: the states
    /// that it saw may then never have been true at the same time. `unread`: number of typed bytes
    /// that are unread.
    fn goes_on(&self, session: &Session, unread: usize) -> bool {
        if Instant::now() >= self.until {
            return false;
        }
        let before = proc_tree::switches(session.server);
        // This must be asked before the calls are read: as soon as the tracer knows of the end, the
        // parent of the ended process wakes up.
        let ends = proc_tree::ends_at_tracer(session.server);
        let calls = proc_tree::calls_below(session.server);
        ends || goes_on_by_itself(&calls, unread > 0)
            || proc_tree::switches(session.server) != before
    }

    /// Returns true if a sleeping program seems not to read the keys: it left `unread` bytes unread
    /// for [`UNREAD`], or did so before and has read nothing since.
    fn ignores_keys(&mut self, unread: usize, waited: &mut Wait) -> bool {
        let again = self.unread > 0 && unread >= self.unread;
        let slept = waited.slept.get_or_insert_with(Instant::now).elapsed();
        let unheeded = again || slept >= UNREAD;
        if unheeded {
            self.unread = unread;
        }
        unheeded
    }

    /// Waits until a program whose terminal was hung up has slept for [`GRACE`], and returns `Some`
    /// then; stopped processes are continued meanwhile. Returns `None` if the run ends before.
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
                Activity::Traced if waited.has_stopped_itself() => session.go_on(),
                Activity::Traced => {}
                Activity::Work => waited.slept = None,
            }
            self.await_output(session, waited.pause())?;
        }
    }

    /// Reads the target's output from the terminal; returns whether there was any.
    fn listen(&mut self) -> bool {
        let output = &mut self.run.output;
        self.pty.take_output(&mut |bytes| output.push(bytes))
    }

    /// Waits for `pause` or for output on the terminal; returns `None` if the run has ended by
    /// then.
    fn await_output(&self, session: &Session, pause: Duration) -> Option<()> {
        let mut fds = [&*self.stop as &dyn AsFd, &session.leader, &self.pty.ours]
            .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN));
        let _ = ppoll(&mut fds, Some(TimeSpec::from(pause)), None);
        let is_over = fds[..2].iter().any(|fd| fd.any() == Some(true));
        (!is_over).then_some(())
    }

    /// Waits for `pause` or for output on the terminal; returns whether the run has ended.
    fn is_stopped(&self, pause: Duration) -> bool {
        let mut fds = [&*self.stop as &dyn AsFd, &self.pty.ours]
            .map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN));
        let _ = ppoll(&mut fds, Some(TimeSpec::from(pause)), None);
        fds[0].any() == Some(true)
    }
}

/// Measures how long the driver has waited for the program to process a key.
struct Wait {
    began: Instant,
    pause: Duration,
    /// Time at which the program at the terminal began to sleep; `None` while it works.
    slept: Option<Instant>,
    /// Time at which a process was first seen stopped, possibly by a tracer; `None` if no such stop
    /// is being timed.
    traced: Option<Instant>,
    /// CPU time of the program when the wait for a key first measured it; `None` before.
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

    /// Returns the pause before the driver next looks at the program's processes; each pause is
    /// longer than the previous one, up to a limit.
    fn pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = longer(pause);
        pause
    }

    /// Returns true if a process has been stopped for so long that it must have stopped itself: a
    /// tracer's stop is shorter. Returns true once for each stop.
    fn has_stopped_itself(&mut self) -> bool {
        let over = self.traced.get_or_insert_with(Instant::now).elapsed() >= TRACED;
        if over {
            self.traced = None;
        }
        over
    }

    /// Returns true if the program has worked on the last key for so long ([`WORK`] or
    /// [`LONGEST_WORK`]) that the next one is typed now.
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

/// The session of a target's terminal: its leader, and all descendants of the server that runs the
/// target.
struct Session {
    /// A pidfd of the session's leading process; unlike a process id, it never refers to a later
    /// process.
    leader: OwnedFd,
    pid: Pid,
    server: Pid,
    /// Files of `/proc` about a session of one process; `None` where they cannot be opened.
    files: Option<SessionFiles>,
}

/// The files of `/proc` that tell the state of a terminal session whose only process is its leading
/// one. They stay open, since they are read at least once after each key.
struct SessionFiles {
    /// The file of `/proc` that tells the state of the leading process and its number of threads.
    stat: File,
    /// The file of `/proc` that lists the children of the leading process.
    children: File,
    /// The file of `/proc` that lists the children of the server: the leading process, and
    /// processes whose parents have ended.
    siblings: File,
}

/// What the processes of a terminal's session do at one moment: work, sleep, or be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// At least one process of the session is running, runnable, waiting for a disk, or exiting.
    Work,
    /// Some processes of the session are stopped, as by ^Z; all others sleep.
    Stopped,
    /// A tracer has stopped at least one process of the session; all others sleep or are stopped.
    Traced,
    /// All processes of the session sleep.
    Sleep,
}

impl Session {
    /// Opens the session that the process `pid` leads. Fails when the process has ended.
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
            files: SessionFiles::open(pid, server).ok(),
        })
    }

    /// Returns what the processes of the terminal's session do now: work, sleep, or are stopped. If
    /// they all sleep but have several threads, looks twice, because threads may wake one another
    /// between two looks.
    fn activity(&self) -> Activity {
        let files = self.files.as_ref();
        if let Some(activity) = files.and_then(|files| files.activity(self.pid)) {
            return activity;
        }
        let (activity, threads) = self.activity_and_threads();
        if activity != Activity::Sleep || threads < 2 {
            return activity;
        }
        // Threads may wake one another between two looks: all of them sleep only if none has run
        // since before the first look.
        let before = proc_tree::switches(self.server);
        let (activity, _) = self.activity_and_threads();
        match activity {
            Activity::Sleep if proc_tree::switches(self.server) != before => Activity::Work,
            activity => activity,
        }
    }

    /// Looks once at the state of each thread of the session's processes. Returns whether any of
    /// them works, else whether any is traced or stopped, else that all sleep; and the number of
    /// threads.
    fn activity_and_threads(&self) -> (Activity, usize) {
        let states = proc_tree::states_below(self.server);
        let mut activity = Activity::Sleep;
        for state in &states {
            activity = match state {
                b'S' | b'I' | b'Z' | b'X' => activity,
                b'T' if activity == Activity::Sleep => Activity::Stopped,
                b'T' => activity,
                b't' => Activity::Traced,
                _ => return (Activity::Work, states.len()),
            };
        }
        (activity, states.len())
    }

    fn cpu(&self) -> Duration {
        proc_tree::usage_below(self.server).cpu
    }

    fn go_on(&self) {
        for pid in proc_tree::descendants(self.server) {
            let _ = kill(pid, Signal::SIGCONT);
        }
    }

    /// Sends SIGHUP to the session's leader and foreground group, as the kernel does when a
    /// terminal hangs up.
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

    /// Kills the session's leader. The server that runs the target ends the other processes.
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

impl SessionFiles {
    fn open(leader: Pid, server: Pid) -> io::Result<SessionFiles> {
        let of = |pid: Pid, name: &str| File::open(format!("/proc/{pid}/task/{pid}/{name}"));
        Ok(SessionFiles {
            stat: File::open(format!("/proc/{leader}/stat"))?,
            children: of(leader, "children")?,
            siblings: of(server, "children")?,
        })
    }

    /// Determines in few system calls what the session does: it works if the process `leader` does,
    /// and sleeps if `leader` sleeps and is its only process, with one thread. `None` in all other
    /// cases, which take a look at all processes.
    fn activity(&self, leader: Pid) -> Option<Activity> {
        let mut line = [0; 512];
        let read = |file: &File, line: &mut [u8; 512]| file.read_at(line, 0).ok();
        let length = read(&self.stat, &mut line)?;
        // The state stands behind the name, which may have any bytes; the number of threads is 17
        // words further.
        let name = line[..length].iter().rposition(|byte| *byte == b')')?;
        let mut words = line[name + 1..length].split(|byte| *byte == b' ').skip(1);
        let (state, threads) = (words.next()?, words.nth(16)?);
        match state {
            b"R" | b"D" => return Some(Activity::Work),
            b"S" if threads == b"1" => {}
            _ => return None,
        }
        if read(&self.children, &mut line)? != 0 {
            return None;
        }
        let length = read(&self.siblings, &mut line)?;
        let alone = line[..length].trim_ascii_end() == leader.to_string().as_bytes();
        alone.then_some(Activity::Sleep)
    }
}

impl TerminalRun {
    /// Returns the first 4 KiB and the last 64 KiB of the output on the terminal, with `\n` as line
    /// ends.
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
