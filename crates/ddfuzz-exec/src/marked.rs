//! The processes of a server whose keepers were killed together. Then nobody is above them, and
//! they are known by what none of them can change: the environment that they were started with.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::proc_tree;

/// How often it is looked for them, and how far apart: what is killed takes its time to die, and
/// what forks meanwhile is met in the next pass.
const PASSES: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// Kills all processes in whose first environment `scratch`, the scratch directory of one executor,
/// is the value of a variable (docs/decisions/0001).
pub(crate) fn kill_marked(scratch: &Path) {
    let mark = mark(scratch);
    for _ in 0..PASSES {
        let left = marked(&mark);
        if left.is_empty() {
            return;
        }
        // The stopped ones start no others while the rest is being killed.
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            for pid in &left {
                let _ = kill(*pid, signal);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// How it stands in an environment.
fn mark(scratch: &Path) -> Vec<u8> {
    [b"=", scratch.as_os_str().as_bytes(), b"\0"].concat()
}

/// The living processes that were started so. The dead have no environment.
fn marked(mark: &[u8]) -> Vec<Pid> {
    let number = |name: &OsStr| name.to_str()?.parse().ok().map(Pid::from_raw);
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let pid = number(&entry.file_name())?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let bears = environment.windows(mark.len()).any(|part| part == mark);
            (bears && proc_tree::lives(pid)).then_some(pid)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_what_was_started_with_the_whole_mark_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let start = |value: &Path| {
            let mut command = Command::new("sleep");
            command.arg("60").env("TMPDIR", value).spawn().unwrap()
        };
        let (mut ours, mut other) = (start(dir.path()), start(&dir.path().join("1")));
        // A child counts as started before it has its environment.
        for child in [&ours, &other] {
            let environment = format!("/proc/{}/environ", child.id());
            while std::fs::read(&environment).unwrap().is_empty() {
                std::thread::yield_now();
            }
        }
        kill_marked(dir.path());
        assert_eq!(ours.wait().unwrap().code(), None);
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
