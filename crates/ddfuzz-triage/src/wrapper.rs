//! Commands that only execute another program in their place, such as the shims by which version
//! managers put interpreters into `PATH`, and the CPU time that a run spends in them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::Pid;

use crate::Triager;
use ddfuzz_exec::{proc_bytes, tree_cpu};

/// Minimum CPU time that a wrapper must take in a run to be reported; with less, it takes hardly
/// longer than any program takes to start.
const DEAR: Duration = Duration::from_millis(20);

/// Environment variables whose changes by a wrapper are not reported, because shells change them on
/// their own: the last command, the directories, and the depth of nested shells.
const MEANINGLESS: [&str; 4] = ["_", "PWD", "OLDPWD", "SHLVL"];

/// Command line and environment of a process at one of its `execve`s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Executed {
    /// The command line: the words of `argv`, first the name of the program.
    command: Vec<OsString>,
    /// The environment variables: values by names.
    environment: BTreeMap<OsString, OsString>,
}

impl Executed {
    /// Reads the command line and the environment of the process `pid`, which has just made an
    /// `execve`; `None` if the process is gone.
    pub(crate) fn by(pid: Pid) -> Option<Executed> {
        let words = |file: &str| -> Option<Vec<OsString>> {
            let bytes = proc_bytes(Path::new(&format!("/proc/{pid}/{file}"))).ok()?;
            let words = bytes.split_inclusive(|byte| *byte == 0);
            let words = words.map(|word| word.strip_suffix(&[0]).unwrap_or(word));
            Some(
                words
                    .map(|word| OsStr::from_bytes(word).to_owned())
                    .collect(),
            )
        };
        let variable = |word: OsString| {
            let at = word.as_bytes().iter().position(|byte| *byte == b'=')?;
            let (name, value) = (&word.as_bytes()[..at], &word.as_bytes()[at + 1..]);
            let [name, value] = [name, value].map(|it| OsStr::from_bytes(it).to_owned());
            Some((name, value))
        };
        Some(Executed {
            command: words("cmdline")?,
            environment: words("environ")?.into_iter().filter_map(variable).collect(),
        })
    }
}

/// A wrapper in one run: the target's program, which has not done the work itself, but executed
/// another program in its place (a further `execve` in the first process of the run).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// Path of the program that the process executed last, in place of the wrapper.
    pub program: PathBuf,
    /// CPU time that the process and its descendants have spent up to the last `execve` of the
    /// process, which is the time that the wrapper takes.
    pub spent: Duration,
    /// CPU time of the whole run: what the process and its descendants have spent when the process
    /// ends; 0 before its end.
    pub total: Duration,
    /// Command line and environment of the wrapper: those of the first `execve` of the process.
    wrapper: Executed,
    /// Command line and environment that the wrapper gives to the program: those of the last
    /// `execve` of the process.
    wrapped: Executed,
}

impl Wrapper {
    /// Returns what is known of a wrapper when the process `pid` has just executed another program
    /// in its place. `wrapper` is the first `execve` of the process. `None` if the process is gone.
    pub(crate) fn by(pid: Pid, wrapper: &Executed) -> Option<Wrapper> {
        Some(Wrapper {
            program: std::fs::read_link(format!("/proc/{pid}/exe")).ok()?,
            spent: tree_cpu(pid),
            total: Duration::ZERO,
            wrapper: wrapper.clone(),
            wrapped: Executed::by(pid)?,
        })
    }

    /// Returns true if the wrapper takes more than half of the run's CPU time, and at least 20 ms.
    pub fn is_dear(&self) -> bool {
        self.spent >= DEAR && self.spent * 2 > self.total
    }

    /// Returns the arguments that the wrapper adds on its own when it calls the program: the
    /// program's arguments without the last `common` ones. `None` unless the last `common`
    /// arguments of the wrapper and of the program exist and are the same.
    pub fn own_arguments(&self, common: usize) -> Option<&[OsString]> {
        let ends = |command: &'_ [OsString]| -> Option<usize> {
            command.len().checked_sub(common).filter(|at| *at > 0)
        };
        let (wrapper, wrapped) = (&self.wrapper.command, &self.wrapped.command);
        let (from, to) = (ends(wrapper)?, ends(wrapped)?);
        (wrapper[from..] == wrapped[to..]).then(|| &wrapped[1..to])
    }

    /// Returns the names of the environment variables that the wrapper has set, changed or removed,
    /// in alphabetical order, without those that shells change on their own (`MEANINGLESS`).
    pub fn changed_variables(&self) -> Vec<&OsStr> {
        let (before, after) = (&self.wrapper.environment, &self.wrapped.environment);
        let names = before.keys().chain(after.keys());
        let mut names: Vec<&OsStr> = names
            .filter(|name| before.get(*name) != after.get(*name))
            .map(OsString::as_os_str)
            .filter(|name| !MEANINGLESS.iter().any(|it| name == it))
            // Functions that a shell exports, and others drop.
            .filter(|name| !name.as_encoded_bytes().starts_with(b"BASH_FUNC_"))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Triager {
    /// Returns the target's program as a wrapper, as the last traced run has shown it; `None` if
    /// the first process of that run executed no program but the target's, if the end of the
    /// process was not seen, or if no run was traced.
    pub fn wrapper(&self) -> Option<&Wrapper> {
        self.wrapper.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(command: &[&str], environment: &[(&str, &str)]) -> Executed {
        let pair = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
        Executed {
            command: command.iter().map(OsString::from).collect(),
            environment: environment.iter().map(pair).collect(),
        }
    }

    fn wrapper(spent: u64, total: u64) -> Wrapper {
        Wrapper {
            program: "/usr/bin/python3.11".into(),
            spent: Duration::from_millis(spent),
            total: Duration::from_millis(total),
            wrapper: executed(
                &["/usr/bin/env", "python3", "./a.py", "-x", "/tmp/input"],
                &[("A", "1"), ("PATH", "/bin"), ("SHLVL", "1")],
            ),
            wrapped: executed(
                &["python3", "./a.py", "-x", "/tmp/input"],
                &[("B", "1"), ("PATH", "/shims:/bin"), ("SHLVL", "2")],
            ),
        }
    }

    #[test]
    fn a_wrapper_is_dear_if_most_of_a_run_is_its() {
        assert!(wrapper(48, 71).is_dear());
        assert!(!wrapper(48, 97).is_dear());
        assert!(!wrapper(12, 14).is_dear());
    }

    #[test]
    fn what_the_program_is_called_with_is_known_if_the_ends_agree() {
        let it = wrapper(48, 71);
        assert_eq!(it.own_arguments(2), Some(&[OsString::from("./a.py")][..]));
        assert_eq!(it.own_arguments(3), Some(&[][..]));
        assert_eq!(it.own_arguments(4), None);
        assert_eq!(it.own_arguments(9), None);
        let mut other = it;
        other.wrapped.command[3] = "/tmp/another".into();
        assert_eq!(other.own_arguments(1), None);
    }

    #[test]
    fn changed_variables_are_those_that_mean_something() {
        let it = wrapper(48, 71);
        assert_eq!(it.changed_variables(), ["A", "B", "PATH"]);
    }
}
