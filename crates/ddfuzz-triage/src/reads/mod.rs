//! From where in its code a program reads its input: the stacks of its reads.
//!
//! The run is traced from system call to system call. Where one takes bytes of the input, the stack
//! is walked from outside, as for a crash; that needs nothing of the program, be it stripped or
//! static. Programs that buffer their input show where a buffer was to be filled.

mod calls;
mod tracer;

use std::io;
use std::sync::Arc;
use std::sync::mpsc;

use nix::errno::Errno;

use super::modules::ModuleCache;
use ddfuzz_exec::{ExecError, Run, Traced, lives};
use tracer::Tracer;

/// One stack of calls, innermost first: names of modules (`exe` for the main executable) and
/// offsets from their load bias, in bytes. At most [`DEPTH`] frames of the program's own modules.
pub type ReadStack = Vec<(Arc<str>, u64)>;

/// Frames of one stack.
pub const DEPTH: usize = 8;

/// From where one run has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// The stacks, in the order of the reads; one that is the same as the one before stands once.
    pub stacks: Vec<ReadStack>,
    /// Whether the run was not followed to its end: it made too many reads, or other system calls.
    pub cut: bool,
}

/// Follows runs for their reads.
pub struct ReadStacks {
    cache: ModuleCache,
    /// The system has refused to trace once, so it is not asked again.
    refused: bool,
}

impl Default for ReadStacks {
    fn default() -> ReadStacks {
        ReadStacks {
            cache: ModuleCache::new(Vec::new()),
            refused: false,
        }
    }
}

impl ReadStacks {
    /// Lets a run go that waits to be seized, to its end within its limits. `None` for its reads
    /// where the system refuses to trace it, and where there is no file that has the input.
    ///
    /// # Errors
    /// When the server is gone, or the run cannot be waited for.
    pub fn follow(&mut self, run: &mut Traced) -> Result<(Run, Option<Reads>), ExecError> {
        let inputs = run.input_files();
        if self.refused || inputs.is_empty() {
            run.release()?;
            return Ok((run.wait_for_run()?, None));
        }
        let (pid, executes) = (run.pid(), run.executes());
        let (sender, seized) = mpsc::channel();
        let cache = &mut self.cache;
        let mut refused = false;
        let followed = std::thread::scope(|scope| {
            // A thread of its own: what it waits for is what it traces, and when it ends the
            // kernel kills whatever it still traces.
            let tracer = scope.spawn(move || match Tracer::seize(pid, executes, inputs, cache) {
                Ok(tracer) => {
                    // Nobody listens only if the thread that started this one is gone.
                    let _ = sender.send(Ok(()));
                    Some(tracer.follow())
                }
                Err(error) => {
                    let _ = sender.send(Err(error));
                    None
                }
            });
            match seized.recv() {
                Ok(Ok(())) => {}
                // Of a process that somebody has killed meanwhile, the refusal says nothing.
                Ok(Err(Errno::EPERM | Errno::ENOSYS)) => refused = lives(pid),
                Ok(Err(error)) => return Err(tracing(error.into())),
                Err(_) => return Err(tracing(io::ErrorKind::BrokenPipe.into())),
            }
            run.release()?;
            let ended = run.wait_for_run()?;
            let reads = tracer.join();
            Ok((
                ended,
                reads.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            ))
        });
        self.refused |= refused;
        followed
    }
}

fn tracing(source: io::Error) -> ExecError {
    ExecError::System {
        what: "tracing the reads of a target".to_owned(),
        source,
    }
}
