//! Runs git, without the environment variables that lead it to other repositories, and reports its
//! failures as `ChangesError`.

use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::ChangesError;

/// Returns a command that runs git, without the environment variables `GIT_*` of this process,
/// which may point to another repository.
pub(crate) fn git() -> Command {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        if name.as_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .stdin(Stdio::null());
    command
}

/// Runs the git command `command` to its end and returns what it printed to stdout; an error if git
/// cannot be started or fails.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>, ChangesError> {
    let done = command.output().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => ChangesError::NoGit,
        _ => ChangesError::System {
            what: "starting git".to_owned(),
            source,
        },
    })?;
    finished(command_line(command), done)
}

/// Runs the git command `command` to its end and calls `take` with each line that it prints to
/// stdout, which may be far more text than memory has room for; fails as [`output`] does.
pub(crate) fn each_line(
    command: &mut Command,
    mut take: impl FnMut(&[u8]),
) -> Result<(), ChangesError> {
    let failed = ChangesError::system("reading what git prints");
    let mut errors = tempfile::tempfile().map_err(&failed)?;
    command.stdout(Stdio::piped());
    command.stderr(errors.try_clone().map_err(&failed)?);
    let mut child = command
        .spawn()
        .map_err(ChangesError::system("starting git"))?;
    let (mut line, mut read) = (Vec::new(), Ok(0));
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = BufReader::new(stdout);
        loop {
            line.clear();
            read = stdout.read_until(b'\n', &mut line);
            if !matches!(read, Ok(1..)) {
                break;
            }
            take(&line);
        }
    }
    let status = child.wait().map_err(&failed)?;
    read.map_err(&failed)?;
    let mut stderr = Vec::new();
    let said = errors
        .rewind()
        .and_then(|()| errors.read_to_end(&mut stderr));
    said.map_err(&failed)?;
    let stdout = Vec::new();
    let done = Output {
        status,
        stdout,
        stderr,
    };
    finished(command_line(command), done).map(drop)
}

/// Returns what a git command printed to stdout, given how it ended (`done`); `what` are its
/// arguments, for the error message. If git was ended by a signal (by Ctrl-C at the terminal, for
/// example), the error is `System`, not `Git`, because git has not refused anything.
pub(crate) fn finished(what: String, done: Output) -> Result<Vec<u8>, ChangesError> {
    match done.status.code() {
        Some(0) => Ok(done.stdout),
        Some(_) => Err(ChangesError::Git {
            what,
            message: String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        }),
        None => Err(ChangesError::System {
            what: format!("running git {what}"),
            source: std::io::Error::other(done.status.to_string()),
        }),
    }
}

pub(crate) fn command_line(command: &Command) -> String {
    let words = command.get_args().map(|word| word.to_string_lossy());
    words.collect::<Vec<_>>().join(" ")
}

pub(crate) fn line(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).trim_end().to_owned()
}

/// Returns the id of the commit that `revision` names in the repository at `folder`.
///
/// # Errors
/// If the folder is in no repository, or there is no such revision.
pub fn resolve(folder: &Path, revision: &str) -> Result<String, ChangesError> {
    let top = output(git_in(folder).args(["rev-parse", "--git-dir"]));
    top.map_err(|error| match error {
        ChangesError::Git { message, .. } => ChangesError::NoRepository {
            folder: folder.to_owned(),
            message,
        },
        other => other,
    })?;
    let named = format!("{revision}^{{commit}}");
    let mut command = git_in(folder);
    command
        .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
        .arg(named);
    output(&mut command).map(line).map_err(|error| match error {
        ChangesError::Git { .. } => ChangesError::UnknownRevision {
            revision: revision.to_owned(),
            folder: folder.to_owned(),
            shallow: is_shallow(folder),
        },
        other => other,
    })
}

/// Checks whether the repository at `folder` is a shallow clone, whose history is cut off.
pub fn is_shallow(folder: &Path) -> bool {
    let shallow = output(git_in(folder).args(["rev-parse", "--is-shallow-repository"]));
    shallow.is_ok_and(|text| text.starts_with(b"true"))
}

/// Checks whether files that git tracks in the repository at `folder` differ from the commit that
/// is checked out. The index of the repository is not written.
///
/// # Errors
/// If git cannot compare the files with the commit.
pub fn is_modified(folder: &Path) -> Result<bool, ChangesError> {
    let words = ["status", "--porcelain", "--untracked-files=no"];
    Ok(!output(git_in(folder).args(words))?.is_empty())
}

/// Checks whether the commit `ancestor` is an ancestor of the commit `commit`, or the same, in the
/// repository at `folder`; false if one of them is missing.
pub fn is_ancestor(folder: &Path, ancestor: &str, commit: &str) -> bool {
    let words = ["merge-base", "--is-ancestor", ancestor, commit];
    output(git_in(folder).args(words)).is_ok()
}

pub(crate) fn git_in(folder: &Path) -> Command {
    let mut command = git();
    command.arg("-C").arg(folder);
    command
}

pub(crate) fn isolated(command: &mut Command) -> Command {
    let mut isolated = Command::new(command.get_program());
    isolated.args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => isolated.env(name, value),
            None => isolated.env_remove(name),
        };
    }
    isolated
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    isolated.env("GIT_ATTR_NOSYSTEM", "1");
    isolated
}

pub(crate) fn fed(command: &mut Command, input: &[u8]) -> Result<Vec<u8>, ChangesError> {
    let what = command_line(command);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(ChangesError::system("starting git"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A git that fails closes its end; its message says why.
        let _ = stdin.write_all(input);
    }
    let done = child
        .wait_with_output()
        .map_err(ChangesError::system("waiting for git"))?;
    finished(what, done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_one_by_one_and_a_failure_has_its_message() {
        let mut lines = Vec::new();
        let all = each_line(git().arg("version"), |line| lines.push(line.to_vec()));
        all.expect("git prints its version");
        assert!(lines.len() == 1 && lines[0].starts_with(b"git version"));
        let failed = each_line(git().arg("no-such-command"), |_| ());
        let is_told = |error: &ChangesError| error.to_string().contains("no-such-command");
        assert!(failed.as_ref().is_err_and(is_told), "{failed:?}");
    }
}
