//! The floors: the least that a new process, and a fork, cost on this machine.
//!
//! Both are C programs that do nothing but run a target again and again (`benches/ways/floors`);
//! they count no runs, enforce no limits, and could not tell a crash from another.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Subject;
use crate::cost::Cost;
use crate::difference::difference;
use crate::programs::{Programs, environment, input};

/// A program that is told a number of runs, and prints how many seconds they took.
pub struct Floor {
    name: &'static str,
    program: PathBuf,
    args: Vec<OsString>,
    /// The library that makes the runs; without one the program makes them, and its first argument
    /// is their number.
    preload: Option<PathBuf>,
    input: Vec<u8>,
}

/// `posix_spawn` and `waitpid` of `program`.
pub fn spawn(programs: &Programs, program: &Path) -> Floor {
    Floor {
        name: "floor: posix_spawn",
        program: programs.spawn_floor(),
        args: vec![program.into()],
        preload: None,
        input: input(),
    }
}

/// `posix_spawn` and `waitpid` of `program` with arguments.
pub fn spawn_with(programs: &Programs, program: &Path, args: &[&str]) -> Floor {
    let mut floor = spawn(programs, program);
    floor.args.extend(args.iter().map(Into::into));
    floor
}

/// A fork of a program that has the target linked in, and `waitpid`.
pub fn fork(program: PathBuf) -> Floor {
    Floor {
        name: "floor: fork",
        program,
        args: Vec::new(),
        preload: None,
        input: input(),
    }
}

/// What AFL++'s fork server in `program` costs by itself: the words of its protocol, and its runs.
/// `shared`: many inputs in one process, from shared memory.
pub fn afl(programs: &Programs, program: &Path, shared: bool) -> Floor {
    let mut args: Vec<OsString> = vec![program.into()];
    args.extend(shared.then(|| "shared".into()));
    Floor {
        name: AFL,
        program: programs.afl_floor(),
        args,
        preload: None,
        input: input(),
    }
}

/// What the tables call the floor of a fork server.
pub const AFL: &str = "floor: protocol";

/// A fork of `program` as it is in front of its `main`, with arguments, on the first `length` bytes
/// of the input, and `waitpid`.
pub fn fork_at_main(
    programs: &Programs,
    name: &'static str,
    program: &Path,
    args: &[&str],
    length: usize,
) -> Floor {
    let mut input = input();
    input.truncate(length);
    Floor {
        name,
        program: program.to_owned(),
        args: args.iter().map(Into::into).collect(),
        preload: Some(programs.fork_main()),
        input,
    }
}

impl Floor {
    fn series(&self, runs: u32) -> Duration {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(environment());
        match &self.preload {
            Some(library) => command
                .env("LD_PRELOAD", library)
                .env("FLOOR_RUNS", runs.to_string()),
            None => command.arg(runs.to_string()),
        };
        let mut child = command
            .args(&self.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the floor was compiled a moment ago");
        let mut stdin = child.stdin.take().expect("it was asked for");
        stdin
            .write_all(&self.input)
            .expect("the floor reads its input");
        drop(stdin);
        let output = child.wait_with_output().expect("it is our child");
        let said = String::from_utf8_lossy(&output.stdout);
        let seconds = said.trim().parse().ok().filter(|_| output.status.success());
        let seconds = seconds.unwrap_or_else(|| panic!("{} failed: {said}", self.name));
        Duration::from_secs_f64(seconds)
    }
}

impl Subject for Floor {
    fn name(&self) -> &str {
        self.name
    }

    fn measure(&mut self, runs: u32) -> Cost {
        difference(runs, |runs| self.series(runs))
    }
}
