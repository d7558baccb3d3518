//! Runs bundled programs on inputs.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use ddfuzz::exec::{Ended, bundled};
use nix::sys::resource::{Resource, setrlimit};

/// All targets, by name.
pub const TARGETS: [&str; 6] = ["crtplot", "flex", "nroff", "troff", "ul", "units"];

/// A bundled program as a file. All of them are written before the first one runs: a program that
/// is still open for writing in a process just forked cannot be started.
pub fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(write_programs).join(name)
}

fn write_programs() -> PathBuf {
    setrlimit(Resource::RLIMIT_CORE, 0, 0).expect("limits can be lowered");
    let mut hash = blake3::Hasher::new();
    for name in bundled::names() {
        hash.update(bundled::program(name).expect("it is listed"));
    }
    // Equal programs are shared by all runs of the tests, so that nothing is left to clean up.
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = parent.join(format!("targets-{}", &hash.finalize().to_hex()[..16]));
    if folder.exists() {
        return folder;
    }
    let new = tempfile::tempdir_in(parent).expect("the folder is writable");
    for name in bundled::names() {
        let file = new.path().join(name);
        fs::write(&file, bundled::program(name).expect("it is listed")).expect("there is room");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    }
    // Another test process may have been faster; its programs are the same.
    if fs::rename(new.path(), &folder).is_err() {
        assert!(folder.exists());
    }
    folder
}

/// A file that holds the input and vanishes with its handle, to be read from its start.
pub fn input_file(input: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("there is room");
    file.write_all(input).expect("there is room");
    file.rewind().expect("a file can be rewound");
    file
}

/// Runs a program with the input on stdin.
pub fn run(name: &str, input: &[u8]) -> Output {
    let mut command = Command::new(program(name));
    command.stdin(Stdio::from(input_file(input)));
    command.output().expect("the program starts")
}

/// How a run with the input on stdin ends; what it writes is dropped.
pub fn ending(name: &str, input: &[u8]) -> Ended {
    ended(Command::new(program(name)), input)
}

/// The same with every address where it always is (no address space randomization).
pub fn ending_at_fixed_addresses(name: &str, input: &[u8]) -> Ended {
    let mut command = Command::new(program(name));
    // SAFETY: personality is a bare system call, which is all that may happen between fork and
    // exec. Where it is refused, addresses are random, which the program must bear as well.
    unsafe {
        command.pre_exec(|| {
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            Ok(())
        });
    }
    ended(command, input)
}

fn ended(mut command: Command, input: &[u8]) -> Ended {
    command.stdin(Stdio::from(input_file(input)));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().expect("the program starts");
    Ended::from_wait_status(status.into_raw())
}
