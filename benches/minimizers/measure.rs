//! Running a tool within a limit, and what it cost.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::cost::{Cost, cpu_of_children};

/// How often a running tool is looked at.
const GLANCE: Duration = Duration::from_millis(2);
/// How often the CPU time of a running tool is read.
const READING: Duration = Duration::from_millis(100);
/// How many times its limit of CPU time a tool may last, as others use the processors, too.
pub const LASTING: u32 = 10;
/// How long is waited for what was killed.
const REAP_TIME: Duration = Duration::from_secs(10);

/// How a command ended.
pub enum Finished {
    /// By itself.
    Ended(ExitStatus),
    /// It took too long and was ended.
    TimedOut,
}

/// Makes this process the parent of what its children leave behind, so that nothing of a tool
/// outlives its measurement, and all CPU time is counted.
///
/// # Errors
/// Where the system refuses.
pub fn adopt_orphans() -> Result<(), String> {
    // SAFETY: prctl with these numbers changes one attribute of this process and reads no memory.
    let done = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    match done {
        0 => Ok(()),
        _ => Err(format!("prctl: {}", std::io::Error::last_os_error())),
    }
}

/// Runs a command until it and its descendants have used `limit` of CPU time, or [`LASTING`] times
/// that of wall time, and ends all that it left behind.
///
/// # Errors
/// When it cannot be started.
pub fn run(command: &mut Command, limit: Duration) -> Result<(Finished, Cost), String> {
    // What judges and verifiers left behind is none of this tool's.
    end_all_children();
    let (cpu, began) = (cpu_of_children(), Instant::now());
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let finished = wait(&mut child, limit)?;
    let wall = began.elapsed();
    end_all_children();
    let cpu = cpu_of_children().saturating_sub(cpu);
    Ok((finished, Cost { wall, cpu }))
}

fn wait(child: &mut Child, limit: Duration) -> Result<Finished, String> {
    let (began, mut read, mut used) = (Instant::now(), Instant::now(), Duration::ZERO);
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(Finished::Ended(status));
        }
        if read.elapsed() >= READING {
            (read, used) = (Instant::now(), cpu_of_running("self"));
        }
        if used >= limit || began.elapsed() >= limit * LASTING {
            // Already ended is as good.
            let _ = child.kill();
            child.wait().map_err(|error| error.to_string())?;
            return Ok(Finished::TimedOut);
        }
        std::thread::sleep(GLANCE);
    }
}

/// Kills and reaps until there is no child left: what a killed process leaves behind is adopted.
fn end_all_children() {
    let began = Instant::now();
    while began.elapsed() < REAP_TIME {
        for child in children("self") {
            // SAFETY: kill reads no memory; the process is a child of ours that was not waited
            // for, so that the number is still its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        // SAFETY: a null status is allowed, and nothing else is written.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => std::thread::sleep(GLANCE),
            reaped if reaped < 0 => return,
            _ => {}
        }
    }
}

/// The children of a process.
fn children(process: &str) -> Vec<libc::pid_t> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|number| number.parse().ok())
        .collect()
}

/// CPU time of the descendants of a process that are there, and of those that these waited for.
fn cpu_of_running(process: &str) -> Duration {
    // SAFETY: the call reads a constant of the system.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
    let of = |child: libc::pid_t| {
        let text = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        // The name stands in parentheses; behind it, user and system time, and those of children.
        let fields = text.rsplit(')').next().unwrap_or_default();
        let times = fields.split_whitespace().skip(11).take(4);
        let times: f64 = times.filter_map(|time| time.parse::<f64>().ok()).sum();
        Duration::from_secs_f64(times / ticks) + cpu_of_running(&child.to_string())
    };
    children(process).into_iter().map(of).sum()
}
