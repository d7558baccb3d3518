//! Ctrl-C and SIGTERM: the first signal asks the command to end with its state saved, the second
//! ends it at once. SIGHUP, sent when the terminal is closed, also asks the command to end.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use super::failure::CONTINUE;
use super::{Exit, Failure, Output, ui};
use crate::campaign::Deadline;
use crate::exec::AbandonWhen;

/// Installs handlers for SIGINT, SIGTERM and, unless it is ignored, SIGHUP, and returns a flag that
/// turns true when one of these signals arrives; later calls return the same flag. A second SIGINT
/// or SIGTERM ends ddfuzz at once.
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
    for signal in [SIGINT, SIGTERM] {
        let stopping = Arc::clone(&stop);
        // SAFETY: what is called is async-signal-safe.
        let restored = unsafe {
            low_level::register(signal, move || {
                if stopping.load(Ordering::Relaxed) {
                    ui::campaign::restore_terminal();
                }
            })
        };
        // In this order: the first signal finds the flag down and only raises it.
        restored
            .and_then(|_| {
                flag::register_conditional_shutdown(
                    signal,
                    Exit::Interrupted as i32,
                    Arc::clone(&stop),
                )
            })
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::new(Exit::Internal, "system", error))?;
    }
    explain_delay(Arc::clone(&stop))?;
    Ok(stop)
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
/// the first signal: the current run goes on until its time limit.
fn explain_delay(stop: Arc<AtomicBool>) -> Result<(), Failure> {
    let watch = move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(SIGNAL_INTERVAL * 5);
        }
        std::thread::sleep(Duration::from_secs(1));
        if std::io::stderr().is_terminal() && !ui::campaign::owns_terminal() {
            eprintln!(
                "stopping when the current run ends; a second signal (Ctrl-C) stops at once, and \
                 loses nothing but that run"
            );
        }
    };
    let watching = std::thread::Builder::new().spawn(watch);
    watching.map_err(|error| Failure::new(Exit::Internal, "system", error))?;
    Ok(())
}

/// Makes the first SIGINT or SIGTERM end ddfuzz at once, together with all processes that it
/// traces, with the error "interrupted". This is for commands that have nothing to save.
pub fn end_at_first(stop: &Arc<AtomicBool>, output: &Output) -> Result<(), Failure> {
    let (stop, output) = (Arc::clone(stop), output.clone());
    let watch = move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(SIGNAL_INTERVAL);
        }
        output.failure(&Failure::interrupted());
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
