//! A million tiny files: memory, and the rate beside that of bare runs.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ddfuzz::exec::{Freshness, Program, Target, Way, start};

use crate::builds::Builds;
use crate::options::Options;
use crate::promise::{Floor, Goal, compare, compare_to_floor};

/// Mebibytes of resident memory at most, and files per second at least.
const PROMISED: (f64, f64) = (200.0, 400_000.0);
/// Files in one folder.
const FILES: usize = 10_000;
/// Bare runs that a rate is of.
const RUNS: usize = 200_000;
/// Bare runs that are asked for at once.
const AT_ONCE: usize = 64;

/// Measures, and prints the table.
///
/// # Errors
/// Where the files cannot be made, or something cannot be run.
pub fn measure(options: &Options, builds: &Builds) -> Result<(), String> {
    let (program, count) = (builds.tiny()?, options.scale);
    let corpus = corpus(builds, count)?;
    let bare = bare_rate(&program)?;
    // The first time, the files may not be in memory, as they are for the cleanup after it.
    read_rate(&corpus)?;
    let read = read_rate(&corpus)?;
    let work = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = Command::new(&builds.ddfuzz);
    command.args(["clean", "-q", "--json", "--jobs", "1"]);
    command.args(["--exec", "harness", "--trim", "off"]);
    command.arg(&corpus).arg("-o").arg(work.path().join("out"));
    command.arg("--").arg(&program);
    let (wall, memory) = run(&mut command)?;
    let rate = count as f64 / wall.as_secs_f64();
    println!("\nscale: {count} files of at most 7 bytes, one worker");
    println!("  bare runs:   {bare:>10.0}/s");
    println!("  read alone:  {read:>10.0}/s");
    let figure = format!("cleanup of {count} tiny files: rate");
    let floor = Floor {
        work: "reading each file, and a bare run",
        measured: 1.0 / (1.0 / bare + 1.0 / read),
    };
    let goal = Goal::AtLeast(PROMISED.1);
    let verdict = compare_to_floor(&figure, rate, "files/s", goal, floor);
    println!(
        "  cleaned:     {rate:>10.0}/s, {:.2} of it, {verdict}",
        rate / bare
    );
    let memory = (memory >> 20) as f64;
    let figure = format!("cleanup of {count} tiny files: memory");
    let verdict = compare(&figure, memory, "MiB", Goal::AtMost(PROMISED.0));
    println!("  memory:      {memory:>10.0} MiB at most, {verdict}");
    Ok(())
}

/// `count` different files, in folders. Made once.
fn corpus(builds: &Builds, count: usize) -> Result<PathBuf, String> {
    let text = |error: std::io::Error| error.to_string();
    let whole = builds.folder.join(format!("corpus-scale-{count}"));
    if whole.exists() {
        return Ok(whole);
    }
    let growing = whole.with_extension("new");
    for index in 0..count {
        let folder = growing.join((index / FILES).to_string());
        if index % FILES == 0 {
            fs::create_dir_all(&folder).map_err(text)?;
        }
        let name = folder.join(index.to_string());
        fs::write(name, index.to_string()).map_err(text)?;
    }
    fs::rename(&growing, &whole).map_err(text)?;
    Ok(whole)
}

/// Files per second of a loop that reads all files and does nothing with them.
fn read_rate(corpus: &Path) -> Result<f64, String> {
    let text = |error: std::io::Error| error.to_string();
    let (mut count, began) = (0, Instant::now());
    for folder in fs::read_dir(corpus).map_err(text)? {
        for file in fs::read_dir(folder.map_err(text)?.path()).map_err(text)? {
            std::hint::black_box(fs::read(file.map_err(text)?.path()).map_err(text)?);
            count += 1;
        }
    }
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}

/// Runs per second of the same way of execution, with nothing around it.
fn bare_rate(program: &Path) -> Result<f64, String> {
    let target = Target::new(Program::Path(program.to_owned()));
    let started = start(&target, Some(Way::Harness), Freshness::Shared);
    let mut executor = started.map_err(|error| error.to_string())?.executor;
    let inputs: Vec<String> = (0..RUNS).map(|index| index.to_string()).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(String::as_bytes).collect();
    let began = Instant::now();
    for mut some in inputs.chunks(AT_ONCE) {
        while !some.is_empty() {
            let runs = executor.run_some(some).map_err(|error| error.to_string())?;
            some = &some[runs.len()..];
        }
    }
    Ok(RUNS as f64 / began.elapsed().as_secs_f64())
}

/// Wall time of a command, and the most memory that it had resident, in bytes.
fn run(command: &mut Command) -> Result<(Duration, u64), String> {
    let began = Instant::now();
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.spawn().map_err(|error| error.to_string())?;
    let id = libc::pid_t::try_from(child.id()).map_err(|error| error.to_string())?;
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: waits for a child of ours, which nobody else waits for, and writes no more than the
    // two that it is given; all zeroes are a value of the structure.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(id, &raw mut status, 0, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    let status = ExitStatus::from_raw(status);
    match waited == id && status.success() {
        true => Ok((
            began.elapsed(),
            usage.ru_maxrss.unsigned_abs().saturating_mul(1024),
        )),
        false => Err(format!("{command:?}: {status}")),
    }
}
