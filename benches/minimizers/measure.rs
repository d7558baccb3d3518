//! Running a tool within a limit, and what it cost.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::cost::{Cost, cpu_of_children};

/// How often a running tool is looked at.
const GLANCE: Duration = Duration::from_millis(2);
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

/// Runs a command for at most `limit`, and ends all that it left behind.
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
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(Finished::Ended(status));
        }
        if began.elapsed() >= limit {
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
        for child in children() {
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

/// The children of this process.
fn children() -> Vec<libc::pid_t> {
    let file = format!("/proc/self/task/{}/children", std::process::id());
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect()
}
