//! The `main` function of a target: `NAME [FILE]`.

use std::ffi::{OsString, c_int};
use std::fs::File;
use std::io;
use std::io::Read;
use std::process::ExitCode;

/// Exit status of the program for wrong usage, or if the input cannot be read.
const USAGE: u8 = 2;

/// Runs the harness function `entry` on the file that the program's only argument names or, without
/// an argument, on stdin. The exit status is 2 if there are more arguments or the input cannot be
/// read.
pub fn run(entry: unsafe extern "C" fn(*const u8, usize) -> c_int) -> ExitCode {
    restore_default_signals();
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    let file = args.next();
    if args.next().is_some() {
        eprintln!("usage: {} [FILE]", name.display());
        return USAGE.into();
    }
    let input = match read(file.as_ref()) {
        // A heap block of exact size, so that heap checkers detect reads beyond it.
        Ok(input) => input.into_boxed_slice(),
        Err(error) => {
            let file = file.unwrap_or_else(|| "standard input".into());
            eprintln!(
                "{}: cannot read {}: {error}",
                name.display(),
                file.display()
            );
            return USAGE.into();
        }
    };
    // Not inlined, so that stacks are the same as in calls from other processes.
    let entry = std::hint::black_box(entry);
    // SAFETY: the slice is all that the entry reads, and lives until it returns.
    let status = unsafe { entry(input.as_ptr(), input.len()) };
    // Only the low eight bits, as the kernel and the mode `harness` do.
    ExitCode::from((status & 0xff) as u8)
}

fn read(file: Option<&OsString>) -> io::Result<Vec<u8>> {
    let mut input = Vec::new();
    match file {
        Some(file) => File::open(file)?.read_to_end(&mut input)?,
        None => io::stdin().lock().read_to_end(&mut input)?,
    };
    Ok(input)
}

/// Sets the signals whose actions Rust's start-up code has changed back to their default actions. A
/// run then ends in the same way as when another process calls `target_main`, where this start-up
/// code does not run.
fn restore_default_signals() {
    #[cfg(target_os = "linux")]
    {
        const SIGNALS: [c_int; 3] = [7, 11, 13]; // SIGBUS, SIGSEGV, SIGPIPE
        const DEFAULT: usize = 0; // SIG_DFL
        unsafe extern "C" {
            fn signal(number: c_int, handler: usize) -> usize;
        }
        for number in SIGNALS {
            // SAFETY: the default answer runs no code of ours; nothing else runs yet that could
            // set another one meanwhile.
            unsafe { signal(number, DEFAULT) };
        }
    }
}
