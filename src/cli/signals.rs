//! Ctrl-C and SIGTERM: the first signal asks the command to end with its state saved, the second
//! one, if it does not belong to the same request, ends it at once. SIGHUP, sent when the terminal is closed, also asks the command to end.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use super::failure::CONTINUE;
use super::{Exit, Failure, Output, ui};
use crate::campaign::Deadline;
use crate::exec::AbandonWhen;

/// Installs handlers for SIGINT, SIGTERM and, unless it is ignored, SIGHUP, and returns a flag that
/// turns true when one of these signals arrives; later calls return the same flag. A SIGINT
/// or SIGTERM that arrives more than 300 ms after the first ends ddfuzz at once.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    static INSTALLED: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stop) = &*installed {
        return Ok(Arc::clone(stop));
    }
    let stop = install()?;
    *installed = Some(Arc::clone(&stop));
    Ok(stop)
}

fn install() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    // Both the kernel and the shell send it when a terminal is closed: a second one says nothing.
    if !is_ignored(SIGHUP) {
        flag::register(SIGHUP, Arc::clone(&stop))
            .map_err(|error| Failure::new(Exit::Internal, "system", error))?;
    }
    let first = Arc::new(AtomicI64::new(0));
    for signal in [SIGINT, SIGTERM] {
        let (stop, first) = (Arc::clone(&stop), Arc::clone(&first));
        let on_signal = move || match repeats(&first, monotonic_ms()) {
            false => stop.store(true, Ordering::Relaxed),
            true => {
                ui::campaign::restore_terminal();
                low_level::exit(Exit::Interrupted as i32)
            }
        };
        // SAFETY: what is called is async-signal-safe.
        unsafe { low_level::register(signal, on_signal) }
            .map_err(|error| Failure::new(Exit::Internal, "system", error))?;
    }
    explain_delay(Arc::clone(&stop))?;
    Ok(stop)
}

/// Time after the first signal in which others count as the same request: `timeout` of coreutils
/// signals the process and then its group, so that each of its signals arrives twice.
const SAME_REQUEST_MS: i64 = 300;

/// Returns true if a signal that arrives at `now` is a second request to end. `first` is the time
/// of the first signal, 0 until there is one. Times are milliseconds of the monotonic clock.
fn repeats(first: &AtomicI64, now: i64) -> bool {
    match first.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => false,
        Err(first) => now - first > SAME_REQUEST_MS,
    }
}

/// Returns the time of the monotonic clock in milliseconds. The function is async-signal-safe.
fn monotonic_ms() -> i64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call only writes `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

/// Returns true if this process ignores `signal`, as it does SIGHUP when it was started by `nohup`.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all fields of a sigaction may be zero; the call only writes it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Starts a thread that prints a message on a terminal if the command has not ended a second after
/// the first signal.
fn explain_delay(stop: Arc<AtomicBool>) -> Result<(), Failure> {
    let watch = move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(SIGNAL_INTERVAL * 5);
        }
        std::thread::sleep(Duration::from_secs(1));
        if std::io::stderr().is_terminal() && !ui::campaign::owns_terminal() {
            eprintln!(
                "stopping; a second signal (Ctrl-C) stops at once, and loses nothing but what is \
                 being done"
            );
        }
    };
    let watching = std::thread::Builder::new().spawn(watch);
    watching.map_err(|error| Failure::new(Exit::Internal, "system", error))?;
    Ok(())
}

/// Makes the first SIGINT or SIGTERM end ddfuzz at once, together with all processes that it
/// traces, with the error "interrupted" and `hint`. This is for commands that have nothing to save.
pub fn end_at_first(
    stop: &Arc<AtomicBool>,
    hint: Option<&str>,
    output: &Output,
) -> Result<(), Failure> {
    let (stop, output) = (Arc::clone(stop), output.clone());
    let interrupted = match hint {
        Some(hint) => Failure::interrupted().hint(hint),
        None => Failure::interrupted(),
    };
    let watch = move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(SIGNAL_INTERVAL);
        }
        // A progress line may stand where the message begins.
        if std::io::stderr().is_terminal() {
            eprint!("\r\u{1b}[K");
        }
        output.failure(&interrupted);
        std::process::exit(Exit::Interrupted as i32);
    };
    let watching = std::thread::Builder::new().spawn(watch);
    watching.map_err(|error| Failure::new(Exit::Internal, "system", error))?;
    Ok(())
}

/// Interval at which ddfuzz checks whether a signal has arrived.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(20);

/// Starts the timer of `--total-time`, which sets the flag `stop` when the time `total` is over, as
/// Ctrl-C does. Without `total` there is no limit.
pub fn deadline(total: Option<Duration>, stop: &Arc<AtomicBool>) -> Result<Deadline, Failure> {
    let deadline = Deadline::begin(total, stop);
    deadline.map_err(|error| Failure::new(Exit::Internal, "system", error))
}

/// Returns the condition that abandons runs of a target (kills them at once) as soon as `stop` is
/// true.
pub fn abandon_at(stop: &Arc<AtomicBool>) -> AbandonWhen {
    let stop = Arc::clone(stop);
    AbandonWhen::default().or(move || stop.load(Ordering::Relaxed))
}

/// Returns `result`, or `otherwise` in place of a failure that comes from stopping this call of
/// ddfuzz, such as a run that was abandoned. This is for work that a stopped call may leave out.
pub fn unless_interrupted<T>(result: Result<T, Failure>, otherwise: T) -> Result<T, Failure> {
    match result {
        Err(failure) if failure.exit == Exit::Interrupted => Ok(otherwise),
        result => result,
    }
}

/// Returns `result`. If it is a failure to run the target or an internal error (exit code 3 or 70),
/// and `stop` is true, returns the failure "interrupted" instead: Ctrl-C also kills a target that
/// is being started, which causes such failures.
pub fn unless_stopped<T>(stop: &AtomicBool, result: Result<T, Failure>) -> Result<T, Failure> {
    let of_target = |exit| matches!(exit, Exit::Baseline | Exit::Internal);
    result.map_err(|failure| match stop.load(Ordering::Relaxed) {
        true if of_target(failure.exit) => Failure::interrupted().hint(CONTINUE),
        _ => failure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_of_one_request_do_not_count_as_second_ones() {
        let first = AtomicI64::new(0);
        assert!(!repeats(&first, 5000));
        assert!(!repeats(&first, 5001));
        assert!(!repeats(&first, 5000 + SAME_REQUEST_MS));
        assert!(repeats(&first, 5001 + SAME_REQUEST_MS));
    }
}
