//! Which comparisons a run makes, with both operands, in the order of the program.
//!
//! A run that is observed ends as any other does, only slower: it is for the few questions that
//! are worth it. There are three sources, and all that a target offers are combined:
//!
//! 1. **Functions.** A library that is preloaded into observed runs only (`runtime/observe.c`)
//!    takes the place of `memcmp`, `strcmp` and their like.
//! 2. **Callbacks** of `-fsanitize-coverage=trace-cmp`. The same library has them; where the
//!    program defines its own, it writes a jump over their entries.
//! 3. **Instructions** of unmodified programs, on x86-64: breakpoints on each `cmp` of the main
//!    executable, which is what static programs, too, can be asked by.
//!
//! Everything is bounded by counts, never by the clock, so that a target that does the same each
//! time is seen to do the same.

#[cfg(target_arch = "x86_64")]
mod breakpoints;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_breakpoints.rs"]
mod breakpoints;
mod history;
pub(crate) mod image;

use ddfuzz_delta::Comparison;
use nix::errno::Errno;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crate::observe::breakpoints::{BreakpointPlan, Tracer};
use crate::observe::history::{ComparisonRing, History};
use crate::observe::image::{Hook, Image};
use crate::prepared_target::PreparedTarget;
use crate::traceable::{Traceable, Traced};
use crate::{ExecError, Run, Target, Way, ways};

/// A started target whose runs report what they compare.
pub trait Observer: Send {
    /// Runs the target once on `input`, in a process of its own. Beside the run: the last
    /// comparisons (at most 256, each pair of operands once) whose operands differed, oldest
    /// first, each operand of at most 64 bytes.
    ///
    /// # Errors
    /// When the target, or the server that runs it, cannot be started or answers nonsense.
    fn observe(&mut self, input: &[u8]) -> Result<(Run, Vec<Comparison>), ExecError>;

    /// What the comparisons come from.
    fn sources(&self) -> Sources;
}

/// Where the comparisons of a target come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Whether functions that compare bytes, and callbacks of libraries, are observed.
    pub functions: bool,
    /// How many of the program's own callbacks are observed.
    pub callbacks: usize,
    /// How many of its instructions are observed.
    pub instructions: usize,
}

impl Sources {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Sources::default()
    }
}

/// Prepares `target` to be observed as the way `way` runs it; `None` where nothing of it can be
/// observed (a script, for one, or a static program on a machine that is not an x86-64).
///
/// # Errors
/// When the program is missing or cannot be executed.
pub fn start(target: &Target, way: Way) -> Result<Option<Box<dyn Observer>>, ExecError> {
    let observer = ComparisonObserver::new(target, way)?;
    Ok(match observer.sources().is_empty() {
        true => None,
        false => Some(Box::new(observer)),
    })
}

/// A run that is stopped again and again uses more time than it would alone.
const MORE_CPU: Duration = Duration::from_secs(1);
const MORE_WALL: Duration = Duration::from_secs(5);

/// A target whose runs are observed.
struct ComparisonObserver {
    target: Traceable,
    /// Where the preloaded library reports; `None` where nothing can be preloaded.
    ring: Option<ComparisonRing>,
    /// Callbacks over which it writes jumps.
    jumping: Vec<Hook>,
    /// The breakpoints; `None` where there are none, or the system has refused to trace.
    plan: Option<BreakpointPlan>,
    sources: Sources,
}

impl ComparisonObserver {
    /// Finds out what can be observed of `target`. It has no sources where nothing can be.
    pub(crate) fn new(target: &Target, way: Way) -> Result<ComparisonObserver, ExecError> {
        let mut patient = target.clone();
        let limits = &mut patient.limits;
        limits.cpu = limits.cpu.saturating_mul(2).saturating_add(MORE_CPU);
        limits.wall = limits.wall.saturating_mul(2).saturating_add(MORE_WALL);
        let prepared = PreparedTarget::prepare(&patient, way)?;
        let ring = match ways::not_injectable(&prepared) {
            Some(_) => None,
            None => Some(ComparisonRing::create().map_err(sharing)?),
        };
        // A file that is no program of this machine has no facts.
        let image = match prepared.facts {
            Some(_) => Image::read(&prepared.program),
            None => None,
        };
        let hooks = image
            .as_ref()
            .map_or(&[][..], |image| image.hooks.as_slice());
        let can_jump =
            |hook: &&Hook| ring.is_some() && cfg!(target_arch = "x86_64") && hook.takes_jump();
        let (jumping, listened): (Vec<&Hook>, Vec<&Hook>) = hooks.iter().partition(can_jump);
        let jumping: Vec<Hook> = jumping.into_iter().copied().collect();
        let listened = listened.into_iter().filter(|hook| hook.takes_breakpoint());
        let listened: Vec<Hook> = listened.copied().collect();
        let plan = image.map(|image| BreakpointPlan::of(image, &listened));
        let plan = plan.filter(|plan| plan.len() > 0);
        let traced = plan.as_ref().map_or(0, BreakpointPlan::len);
        let listened = listened.len().min(traced);
        let observed = match &ring {
            Some(ring) => Some(ring.file().map_err(sharing)?),
            None => None,
        };
        Ok(ComparisonObserver {
            sources: Sources {
                functions: ring.is_some(),
                callbacks: jumping.len() + listened,
                instructions: traced - listened,
            },
            target: Traceable::at(prepared, &patient, way, observed)?,
            ring,
            jumping,
            plan,
        })
    }

    /// Runs the process, which waits before its `execve`, under the plan's breakpoints; `None`
    /// where the system refuses to trace it.
    fn trace(
        plan: &BreakpointPlan,
        mut process: Traced,
        ring: Option<&mut ComparisonRing>,
        history: &mut History,
    ) -> Result<Option<Run>, ExecError> {
        let pid = process.pid();
        let (sender, seized) = mpsc::channel();
        std::thread::scope(move |scope| {
            // A thread of its own: what it waits for is what it traces, and when it ends the
            // kernel kills whatever it still traces.
            scope.spawn(move || match Tracer::seize(pid, plan, ring, history) {
                Ok(tracer) => {
                    // Nobody listens only if the thread that started this one is gone.
                    let _ = sender.send(Ok(()));
                    tracer.follow();
                }
                Err(error) => drop(sender.send(Err(error))),
            });
            match seized.recv() {
                Ok(Ok(())) => {}
                Ok(Err(Errno::EPERM | Errno::ENOSYS)) => return Ok(None),
                Ok(Err(error)) => return Err(tracing(error)),
                Err(_) => return Err(tracing(Errno::ECHILD)),
            }
            process.release()?;
            // Where this fails the process is dropped, and so killed, before the tracer, which
            // ends with it, is waited for.
            process.wait_for_run().map(Some)
        })
    }
}

impl Observer for ComparisonObserver {
    fn observe(&mut self, input: &[u8]) -> Result<(Run, Vec<Comparison>), ExecError> {
        let mut history = History::default();
        loop {
            if let Some(ring) = &mut self.ring {
                ring.reset(self.jumping.iter()).map_err(sharing)?;
            }
            let mut process = self.target.start(input, false)?;
            let run = match &self.plan {
                Some(plan) => {
                    ComparisonObserver::trace(plan, process, self.ring.as_mut(), &mut history)?
                }
                None => {
                    process.release()?;
                    Some(process.wait_for_run()?)
                }
            };
            let Some(run) = run else {
                self.plan = None; // not asked again
                self.sources.instructions = 0;
                self.sources.callbacks = self.jumping.len();
                continue;
            };
            if let Some(ring) = &mut self.ring {
                ring.drain(&mut history);
            }
            return Ok((run, history.into_comparisons()));
        }
    }

    fn sources(&self) -> Sources {
        self.sources
    }
}

fn sharing(source: std::io::Error) -> ExecError {
    ExecError::System {
        what: "sharing memory with a run that is observed".to_owned(),
        source,
    }
}

fn tracing(errno: Errno) -> ExecError {
    ExecError::System {
        what: "tracing a run that is observed".to_owned(),
        source: errno.into(),
    }
}

/// Observes the comparisons of the runs of a loop: those of functions and callbacks, at the speed of
/// the loop.
pub(crate) struct LoopObserver {
    ring: ComparisonRing,
    hooks: Vec<Hook>,
}

impl LoopObserver {
    /// For the program at `path`.
    pub(crate) fn new(path: &Path) -> io::Result<LoopObserver> {
        let mut hooks = Image::read(path).map_or(Vec::new(), |image| image.hooks);
        hooks.retain(|hook| cfg!(target_arch = "x86_64") && hook.takes_jump());
        let mut ring = ComparisonRing::create()?;
        ring.reset(hooks.iter())?;
        Ok(LoopObserver { ring, hooks })
    }

    /// The file in which another server reports.
    pub(crate) fn file(&mut self) -> io::Result<File> {
        self.ring.reset(self.hooks.iter())?;
        self.ring.file()
    }

    /// A run is about to begin.
    pub(crate) fn begin(&mut self) {
        self.ring.skip();
    }

    /// The comparisons of the run: the last ones (at most 256, each pair of operands once) whose
    /// operands differed, oldest first.
    pub(crate) fn comparisons(&mut self) -> Vec<Comparison> {
        let mut history = History::default();
        self.ring.drain(&mut history);
        history.into_comparisons()
    }
}
