//! Follows one run of a tracee to its end, within its limits.

use std::io;
use std::sync::mpsc;

use nix::errno::Errno;

use super::capture::{Trace, Tracer};
use super::hang::{Cut, Order};
use super::modules::ModuleCache;
use super::snapshot::{Event, Snapshot};
use super::tracee::{Start, Tracee};
use super::watch::{Held, await_end};
use ddfuzz_exec::{Ended, ExecError, Limits};

/// What the tracing thread says.
enum News {
    Seized(nix::Result<()>),
    Ended(nix::Result<Trace>),
}

/// Traces a process to its end; `None` where the system refuses to.
pub(super) fn follow(
    tracee: &mut dyn Tracee,
    start: &dyn Start,
    cache: &mut ModuleCache,
) -> Result<Option<Trace>, ExecError> {
    let (pid, executes) = (tracee.pid(), tracee.executes());
    let crash_exit = start.crash_exit();
    let held = Held::new(pid).map_err(|source| system("holding the target's process", source))?;
    let order = Order::within(start.limits().memory);
    let ordered = &order;
    let (sender, news) = mpsc::channel();
    std::thread::scope(|scope| {
        // A thread of its own: what it waits for is what it traces, and when it ends the kernel
        // kills whatever it still traces.
        scope.spawn(
            move || match Tracer::seize(pid, executes, crash_exit, cache, ordered) {
                Ok(tracer) => {
                    // Nobody listens only if the thread that started this one is gone.
                    let _ = sender.send(News::Seized(Ok(())));
                    let _ = sender.send(News::Ended(tracer.follow()));
                }
                Err(error) => drop(sender.send(News::Seized(Err(error)))),
            },
        );
        match news.recv() {
            Ok(News::Seized(Ok(()))) => {}
            Ok(News::Seized(Err(Errno::EPERM | Errno::ENOSYS))) => return Ok(None),
            Ok(News::Seized(Err(error))) => return Err(system("tracing the target", error.into())),
            _ => {
                return Err(system(
                    "tracing the target",
                    io::ErrorKind::BrokenPipe.into(),
                ));
            }
        }
        if let Err(error) = tracee.release() {
            held.kill();
            return Err(error);
        }
        collect(&news, &held, start.limits(), &order).map(Some)
    })
}

/// Waits for the end of a released process.
fn collect(
    news: &mpsc::Receiver<News>,
    held: &Held,
    limits: Limits,
    order: &Order,
) -> Result<Trace, ExecError> {
    let (last, killed) = await_end(news, held, limits, order);
    let mut trace = match last {
        Some(News::Ended(Ok(trace))) => trace,
        Some(News::Ended(Err(error))) => {
            return Err(system("waiting for the target", error.into()));
        }
        _ => {
            return Err(system(
                "tracing the target",
                io::ErrorKind::BrokenPipe.into(),
            ));
        }
    };
    if killed && trace.ended == Ended::Signal(libc::SIGKILL) {
        trace.ended = match order.given() {
            Some(Cut::Memory) => Ended::OutOfMemory,
            _ => Ended::Timeout,
        };
    }
    trace.snapshot = trace
        .snapshot
        .filter(|snapshot| explains(snapshot, trace.ended));
    Ok(trace)
}

/// Whether what was read belongs to this end: an exit does not follow from a signal that the
/// target has handled.
fn explains(snapshot: &Snapshot, ended: Ended) -> bool {
    match (snapshot.event, ended) {
        (Event::Signal { .. }, Ended::Signal(_)) => true,
        (Event::Exit(status), Ended::Exit(ended)) => status == ended,
        (Event::OutOfTime, Ended::Timeout) | (Event::OutOfMemory, Ended::OutOfMemory) => true,
        _ => false,
    }
}

fn system(what: &str, source: io::Error) -> ExecError {
    ExecError::System {
        what: what.to_owned(),
        source,
    }
}
