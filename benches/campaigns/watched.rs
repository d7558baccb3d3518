//! A tool at work, with all processes that it has started: what they cost so far, and their end.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a tool may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(30);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(50);

/// Has this process adopt what tools leave behind, so that it can be ended, and its CPU time counts.
///
/// # Errors
/// Those of the call.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: the call takes numbers only.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends what a tool that has ended left behind, as `afl-fuzz` does with the server whose comparisons
/// it has logged: it is now a child of this process, which has no others.
///
/// # Errors
/// Those of reading `/proc`.
pub fn end_orphans() -> io::Result<()> {
    let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
    // An orphan may leave orphans.
    loop {
        let all = processes()?;
        let mut orphans = all.iter().filter(|(_, it)| it.parent == own).peekable();
        if orphans.peek().is_none() {
            return Ok(());
        }
        for (id, _) in orphans {
            signal(*id, libc::SIGKILL);
            let mut status = 0;
            // SAFETY: waits for a child, with a status of our own.
            unsafe { libc::waitpid(*id, &raw mut status, 0) };
        }
    }
}

/// A tool that was started.
pub struct Watched {
    child: Child,
}

/// A process, by `/proc/PID/stat`.
struct Process {
    parent: i32,
    /// Clock ticks: its own, and those of its children that have ended.
    ticks: u64,
}

impl Watched {
    /// Starts it, without any input or output.
    ///
    /// # Errors
    /// Those of starting it.
    pub fn start(command: &mut Command) -> io::Result<Watched> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn()?;
        Ok(Watched { child })
    }

    /// Lets it work until it ends, or `enough` says so of the CPU time that was spent; then ends
    /// it, and all that it has started.
    ///
    /// # Errors
    /// Those of waiting, and of `enough`.
    pub fn until(mut self, mut enough: impl FnMut(Duration) -> io::Result<bool>) -> io::Result<()> {
        let mut most = Duration::ZERO;
        while self.child.try_wait()?.is_none() {
            // Who ends while it is looked at is not counted, and was in the look before.
            most = most.max(self.cpu()?);
            if enough(most)? {
                return self.end();
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn id(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(i32::MAX)
    }

    /// CPU time of it and of all its descendants.
    fn cpu(&self) -> io::Result<Duration> {
        let processes = processes()?;
        let ticks: u64 = family(&processes, self.id())
            .iter()
            .filter_map(|id| processes.get(id))
            .map(|process| process.ticks)
            .sum();
        // SAFETY: asks for a number.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let per_second = u64::try_from(per_second).unwrap_or(100).max(1);
        Ok(Duration::from_millis(ticks * 1000 / per_second))
    }

    /// Asks it to end, and kills what does not.
    fn end(mut self) -> io::Result<()> {
        signal(self.id(), libc::SIGINT);
        let deadline = Instant::now() + GRACE;
        while self.child.try_wait()?.is_none() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
        if self.child.try_wait()?.is_none() {
            self.child.kill()?;
        }
        self.child.wait()?;
        Ok(())
    }
}

fn signal(id: i32, signal: i32) {
    // SAFETY: sends a signal to a process that this has started.
    unsafe { libc::kill(id, signal) };
}

/// `root` and all its descendants.
fn family(processes: &HashMap<i32, Process>, root: i32) -> Vec<i32> {
    let mut family = vec![root];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        let children = processes.iter().filter(|(_, it)| it.parent == parent);
        family.extend(children.map(|(id, _)| *id));
        at += 1;
    }
    family
}

fn processes() -> io::Result<HashMap<i32, Process>> {
    let mut processes = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let id = name.to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some((id, process)) = id.and_then(|id| Some((id, read(id)?))) {
            processes.insert(id, process);
        }
    }
    Ok(processes)
}

/// `None` where it has ended.
fn read(id: i32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // Behind the name, which may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        // utime, stime, cutime, cstime.
        ticks: (11..15).filter_map(number).sum(),
    })
}
