//! One run of a target with all its descendants traced.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::errno::Errno;

use super::tracer::{Seen, Tracer};
use crate::proc_tree::lives;
use crate::traced::{Traceable, Traced};
use crate::{Ended, ExecError, Run};

/// How long the tracer may take to see the ends of processes that the server has collected.
const GRACE: Duration = Duration::from_secs(10);

/// A run whose descendants were seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Followed {
    /// The run; where a descendant crashed, that is its ending.
    pub(super) run: Run,
    /// Whether there were descendants.
    pub(super) forked: bool,
}

/// The tracing thread, and where it says what it sees.
type Tracing = (JoinHandle<()>, mpsc::Receiver<News>);

/// What the tracing thread says.
enum News {
    Seized(nix::Result<()>),
    Gone(Seen),
}

/// Runs the target on `input`; `None` where the system refuses to trace.
///
/// # Errors
/// When the target cannot be started, or what serves or traces it breaks.
pub(super) fn run(target: &Traceable, input: &[u8]) -> Result<Option<Followed>, ExecError> {
    let process = target.start(input, false)?;
    let Some((tracer, news)) = seize(&process)? else {
        return Ok(None);
    };
    let mut run = release(process)?;
    // All have ended, or the server would not have answered. What the kernel cannot kill would
    // hold the tracer for ever.
    let Ok(News::Gone(seen)) = news.recv_timeout(GRACE) else {
        return Err(tracing(Errno::ETIMEDOUT));
    };
    let _ = tracer.join(); // it has nothing left to do
    if let Some(signal) = seen.crash {
        run.ended = Ended::Signal(signal);
    }
    Ok(Some(Followed {
        run,
        forked: seen.forked,
    }))
}

/// Where this fails the process is dropped, and so killed.
fn release(mut process: Traced) -> Result<Run, ExecError> {
    process.release()?;
    process.wait_for_run()
}

/// Seizes the process from a thread of its own: what that waits for is what it traces, and when
/// it ends the kernel kills whatever it still traces.
fn seize(process: &Traced) -> Result<Option<Tracing>, ExecError> {
    let pid = process.pid();
    let (sender, news) = mpsc::channel();
    let tracer = std::thread::Builder::new()
        .name("ddfuzz-tree".to_owned())
        .spawn(move || match Tracer::seize(pid) {
            Ok(tracer) => {
                // Nobody listens only if the run has been given up.
                let _ = sender.send(News::Seized(Ok(())));
                let _ = sender.send(News::Gone(tracer.follow()));
            }
            Err(errno) => drop(sender.send(News::Seized(Err(errno)))),
        })
        .map_err(|source| ExecError::System {
            what: "starting a thread".to_owned(),
            source,
        })?;
    match news.recv() {
        Ok(News::Seized(Ok(()))) => Ok(Some((tracer, news))),
        Ok(News::Seized(Err(Errno::EPERM | Errno::ENOSYS))) if lives(pid) => Ok(None),
        Ok(News::Seized(Err(errno))) => Err(tracing(errno)),
        _ => Err(tracing(Errno::ECHILD)),
    }
}

fn tracing(errno: Errno) -> ExecError {
    ExecError::System {
        what: "tracing the descendants of a run".to_owned(),
        source: errno.into(),
    }
}
