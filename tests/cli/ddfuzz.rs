//! The program under test, called as a user calls it, in a directory of its own.
#![allow(
    dead_code,
    reason = "each test program that includes this uses a part of it"
)]

#[path = "../compiled/mod.rs"]
pub mod compiled;

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// No call takes longer than this; one that does has gone wrong.
pub const LONGEST: Duration = Duration::from_secs(600);

/// A user's directory. Every process that is started here carries a mark in its environment, by
/// which it is found again, be it an orphan in a session of its own.
pub struct Desk {
    dir: tempfile::TempDir,
}

/// What a call said, and its exit code; `None` where a signal ended it.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// The one JSON object on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        let ended = self.out.ends_with('\n');
        assert_eq!(self.out.lines().count(), 1, "one line on stdout: {self:?}");
        assert!(ended, "a whole line on stdout: {self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Itself, when it ended so.
    #[track_caller]
    pub fn exits(self, code: i32) -> Said {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

impl Desk {
    /// An empty directory, in memory where the machine has such a place: results are synced.
    /// Temporary files of targets go to a folder beside it that everybody may write to, for
    /// targets run as nobody where ddfuzz runs as root.
    pub fn new() -> Desk {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let dir = dir.unwrap();
        let allow = |path: &Path, mode| {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        allow(&dir.path().join("tmp"), 0o1777);
        allow(dir.path(), 0o755);
        Desk { dir }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.file(name), bytes).unwrap();
        self.file(name)
    }

    /// Writes an executable script of these lines.
    pub fn script(&self, name: &str, lines: &str) -> PathBuf {
        let path = self.write(name, format!("#!/bin/sh\n{lines}\n"));
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Reads a file.
    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Calls any program with the desk's mark.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env("DESK", self.path())
            .env("TMPDIR", self.file("tmp"))
            .env_remove("NO_COLOR");
        command
    }

    /// Calls ddfuzz with these words.
    pub fn call(&self, words: &str) -> Said {
        self.call_with(words, &[])
    }

    /// Calls ddfuzz with words, and further arguments that may hold blanks.
    pub fn call_with(&self, words: &str, more: &[&OsStr]) -> Said {
        let mut command = self.command(env!("CARGO_BIN_EXE_ddfuzz"));
        command.args(words.split_whitespace()).args(more);
        let output = assert_cmd::Command::from_std(command)
            .timeout(LONGEST)
            .output()
            .unwrap();
        Said {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts ddfuzz with these words, in a process group of its own, and lets it run.
    pub fn start(&self, words: &str) -> Child {
        use std::os::unix::process::CommandExt;
        let mut command = self.command(env!("CARGO_BIN_EXE_ddfuzz"));
        command
            .args(words.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        command.spawn().unwrap()
    }

    /// Runs a shell script, which finds ddfuzz as `$DD`, in a mount namespace of its own; what the
    /// system said, where it does not permit that.
    pub fn in_mount_namespace(&self, text: &str) -> Result<String, String> {
        let run = |text: &str| {
            let mut command = self.command("unshare");
            command.args(["--mount", "sh", "-euc", text]);
            command.env("DD", env!("CARGO_BIN_EXE_ddfuzz"));
            let output = command.output().expect("unshare belongs to every system");
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            (output, err)
        };
        let (probe, err) = run("mount -t tmpfs -o size=16k tmpfs \"$DESK\"");
        if !probe.status.success() {
            return Err(err);
        }
        let (output, err) = run(text);
        assert!(output.status.success(), "{}: {err}", output.status);
        Ok(String::from_utf8(output.stdout).unwrap())
    }

    /// Processes with the desk's mark that live now; zombies are no longer marked.
    pub fn processes(&self) -> Vec<String> {
        let mark = format!("DESK={}", self.path().display());
        let marked = |process: &PathBuf| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes())
        };
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.map(|entry| entry.path())
            .filter(marked)
            .map(|process| {
                let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
                format!("{}: {}", process.display(), String::from_utf8_lossy(&line))
            })
            .collect()
    }

    /// Fails when a process with the desk's mark lives on. What was killed this moment may take
    /// a moment to be gone.
    #[track_caller]
    pub fn is_left_clean(&self) {
        let mut left = self.processes();
        for _ in 0..100 {
            if left.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
            left = self.processes();
        }
        panic!("left behind: {left:?}");
    }

    /// Compiles a C program of the tests, once for all desks, and gives the path of a copy.
    pub fn compile(&self, source: &str, name: &str) -> PathBuf {
        const FLAGS: [&str; 3] = ["-O1", "-fno-inline", "-Wall"];
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let text = std::fs::read(&file).unwrap();
        let made = compiled::once(folder, name, (source, text, FLAGS), |own| {
            let program = own.join(name);
            let mut compiler = self.command("cc");
            compiled::run(compiler.args(FLAGS).arg("-o").args([&program, &file]));
            program
        });
        self.put(&made, name)
    }

    /// A copy of a program as `name` on the desk, put in its place in one step. Another process
    /// writes it: a file that this one has open for writing at the moment when another test starts
    /// a process cannot be executed.
    pub fn put(&self, program: &Path, name: &str) -> PathBuf {
        let (new, place) = (self.file(&format!("{name}.new")), self.file(name));
        compiled::run(self.command("cp").arg(program).arg(&new));
        std::fs::rename(new, &place).unwrap();
        place
    }
}

/// Random moments from a fixed seed (xorshift, Marsaglia 2003).
pub struct Moments(pub u64);

impl Moments {
    /// A moment within `longest`.
    pub fn next(&mut self, longest: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        longest * (self.0 % 1000) as u32 / 1000
    }

    /// The same, the early ones more often, for a start is full of steps.
    pub fn early(&mut self, longest: Duration) -> Duration {
        self.next(longest).min(self.next(longest))
    }
}

/// The keys of a JSON object, in alphabetical order.
#[track_caller]
pub fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().expect("an object");
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}
