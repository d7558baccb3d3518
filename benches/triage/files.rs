//! Many crash files by `ddfuzz triage`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Bugs of `many.c`.
const BUGS: usize = 20;

/// What a call of `ddfuzz triage` came to.
pub struct Called {
    /// Wall time.
    pub wall: Duration,
    /// The largest resident set, of ddfuzz or one of its children, in KiB.
    pub peak_kib: i64,
    /// Groups found.
    pub groups: usize,
    /// Files that crashed.
    pub crashed: usize,
}

/// Writes `count` crash files of twenty bugs, each another text of one of two routes.
///
/// # Errors
/// Where they cannot be written.
pub fn write(folder: &Path, count: usize) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for at in 0..count {
        let letter = char::from(b'a' + (at % BUGS) as u8);
        let route = if (at / BUGS).is_multiple_of(2) {
            "#"
        } else {
            ""
        };
        let noise = "x".repeat(at % 97);
        let text = format!("{letter}{at}{route} {noise}\n");
        let path = folder.join(format!("crash-{at:05}"));
        std::fs::write(path, text).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Triages a directory by two workers.
///
/// # Errors
/// Where ddfuzz cannot be run, or does not print its result.
pub fn triage(folder: &Path, program: &Path) -> Result<Called, String> {
    let began = Instant::now();
    let child = Command::new(env!("CARGO_BIN_EXE_ddfuzz"))
        .args(["triage", "--json", "-q", "--jobs", "2"])
        .arg(folder)
        .arg("--")
        .arg(program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("starting ddfuzz: {error}"))?;
    let (pid, mut stdout) = (child.id(), child.stdout);
    let mut text = String::new();
    if let Some(stdout) = &mut stdout {
        std::io::Read::read_to_string(stdout, &mut text).map_err(|error| error.to_string())?;
    }
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both structures are valid for the time of the call, and zeroes are a valid usage;
    // the process is a child of ours that nobody else waits for.
    let usage = unsafe {
        libc::wait4(pid.cast_signed(), &mut status, 0, usage.as_mut_ptr());
        usage.assume_init()
    };
    let wall = began.elapsed();
    let counts = |key: &str| text.matches(key).count();
    match libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 1 {
        true => Ok(Called {
            wall,
            peak_kib: usage.ru_maxrss,
            groups: counts("\"representative\":"),
            crashed: counts("\"ended\":\"SIG"),
        }),
        false => Err(format!("ddfuzz triage ended with status {status:#x}")),
    }
}
