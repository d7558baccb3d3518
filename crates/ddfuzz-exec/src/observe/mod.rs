//! Which comparisons a run makes, with both operands, in the order in which the program makes them.
//!
//! A run that is observed ends as any other run does, but takes longer, so only selected inputs are
//! observed. There are three sources of comparisons, and all that a target offers are combined:
//!
//! 1. **Functions.** A library that is preloaded into observed runs only (`runtime/observe.c`)
//!    replaces `memcmp`, `strcmp` and similar functions.
//! 2. **Callbacks** of `-fsanitize-coverage=trace-cmp`. The same library defines them; where the
//!    program defines its own, the library writes a jump over their first instructions.
//! 3. **Instructions** of unmodified programs, on x86-64: breakpoints on each `cmp` of the main
//!    executable. This works for static programs, too. A harness with callbacks is observed by its
//!    callbacks and by functions only.
//!
//! All limits are counts, never times, so that equal runs of a target have equal observations.

#[cfg(target_arch = "x86_64")]
mod breakpoints;
/// A stub for processors whose instructions are not decoded: it sets no breakpoints.
#[cfg(not(target_arch = "x86_64"))]
mod breakpoints {
    use super::history::{ComparisonRing, History};
    use super::image::{Hook, Image};
    use nix::unistd::Pid;
    use std::convert::Infallible;

    pub(crate) struct BreakpointPlan;

    impl BreakpointPlan {
        pub(crate) fn of(_: Image, _: &[Hook]) -> BreakpointPlan {
            BreakpointPlan
        }

        pub(crate) fn len(&self) -> usize {
            0
        }
    }

    pub(crate) struct Tracer(Infallible);

    impl Tracer {
        pub(crate) fn seize(
            _: Pid,
            _: &BreakpointPlan,
            _: Option<&mut ComparisonRing>,
            _: &mut History,
        ) -> nix::Result<Tracer> {
            Err(nix::Error::ENOSYS)
        }

        pub(crate) fn follow(self) {
            match self.0 {}
        }
    }
}
mod history;
pub(crate) mod image;

use ddfuzz_delta::Comparison;
use nix::errno::Errno;
use std::{fs::File, io, path::Path, sync::mpsc, time::Duration};

use crate::observe::breakpoints::{BreakpointPlan, Tracer};
use crate::observe::history::{ComparisonRing, History};
use crate::observe::image::{Hook, Image};
use crate::traceable::{Traceable, Traced};
use crate::{
    ExecError, Executor, Freshness, Run, Target, Way, prepared_target::PreparedTarget,
    server_executor::ServerExecutor, ways,
};

/// A started target whose runs report their comparisons.
pub trait Observer: Send {
    /// Runs the target once on `input`. Also returns the last comparisons (at
    /// most 256, each pair of operands once) whose operands differed, oldest first, of each operand
    /// the first 64 bytes. Fails when the target, or the server that runs it, cannot be started or
    /// breaks its protocol.
    fn observe(&mut self, input: &[u8]) -> Result<(Run, Vec<Comparison>), ExecError>;

    /// Returns which comparisons of the target are observed: those of library functions, of how
    /// many callbacks, and of how many instructions.
    fn sources(&self) -> ComparisonSources;
}

/// Which comparisons of a target are observed: those of library functions, callbacks and compare
/// instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparisonSources {
    /// True if library functions that compare bytes, and callbacks in libraries, are observed.
    pub functions: bool,
    /// Number of comparison callbacks (of `-fsanitize-coverage=trace-cmp`) in the program that are
    /// observed.
    pub callbacks: usize,
    /// Number of compare instructions in the program that are observed by breakpoints.
    pub instructions: usize,
}

impl ComparisonSources {
    /// Returns true if no comparison of the target can be observed.
    pub fn is_empty(&self) -> bool {
        *self == ComparisonSources::default()
    }
}

/// Starts `target`, run by the method of execution `way`, with its comparisons observed. `None` if
/// nothing can be observed, for example of a script, or of a static program on a processor other
/// than x86-64. `freshness`: whether each run has a new process; by all methods except `harness`,
/// each run always has one. Fails when the program is missing or cannot be executed.
pub fn start(
    target: &Target,
    way: Way,
    freshness: Freshness,
) -> Result<Option<Box<dyn Observer>>, ExecError> {
    if way == Way::Harness
        && let Some(observer) = HarnessObserver::new(target, freshness)?
    {
        return Ok(Some(Box::new(observer)));
    }
    let observer = ComparisonObserver::new(target, way)?;
    Ok(match observer.sources().is_empty() {
        true => None,
        false => Some(Box::new(observer)),
    })
}

/// Limit on the CPU time of an observed run: twice the target's limit, and this much more, because
/// breakpoints make runs slower.
const MORE_CPU: Duration = Duration::from_secs(1);
/// Limit on the wall time of an observed run: twice the target's limit, and this much more, because
/// breakpoints make runs slower.
const MORE_WALL: Duration = Duration::from_secs(5);

/// Returns `target` with longer time limits, for observed runs: twice its own, plus [`MORE_CPU`]
/// and [`MORE_WALL`].
fn with_more_time(target: &Target) -> Target {
    let mut patient = target.clone();
    let limits = &mut patient.limits;
    limits.cpu = limits.cpu.saturating_mul(2).saturating_add(MORE_CPU);
    limits.wall = limits.wall.saturating_mul(2).saturating_add(MORE_WALL);
    patient
}

/// An observer of the comparisons in a target's runs: by the preloaded library, and by breakpoints.
struct ComparisonObserver {
    target: Traceable,
    /// The ring to which the preloaded library writes comparisons; `None` if nothing can be
    /// preloaded.
    ring: Option<ComparisonRing>,
    /// The program's comparison callbacks that the preloaded library patches with jumps.
    jumping: Vec<Hook>,
    /// The breakpoints to set in the program to observe comparisons; `None` if there are none, or
    /// the system has refused to trace.
    plan: Option<BreakpointPlan>,
    sources: ComparisonSources,
}

impl ComparisonObserver {
    /// Prepares `target` for runs that `way` describes, and finds which of its comparisons can be
    /// observed; possibly none.
    pub(crate) fn new(target: &Target, way: Way) -> Result<ComparisonObserver, ExecError> {
        let patient = with_more_time(target);
        let prepared = PreparedTarget::prepare(&patient, way)?;
        let ring = match ways::not_injectable(&prepared) {
            Some(_) => None,
            None => Some(ComparisonRing::create().map_err(sharing)?),
        };
        // A file that is no program for this machine has no facts.
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
            sources: ComparisonSources {
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

    /// Makes a run under a tracer, to observe the comparisons that it makes. `process` is the run's
    /// process, which waits before its `execve`. The tracer sets the breakpoints of `plan` at
    /// compare instructions and comparison callbacks, reads the comparisons that the preloaded
    /// library writes to `ring`, and adds the last comparisons of both sources to `history`.
    /// Returns how the run ended; `None` if the system refuses to trace.
    fn trace(
        plan: &BreakpointPlan,
        mut process: Traced,
        ring: Option<&mut ComparisonRing>,
        history: &mut History,
    ) -> Result<Option<Run>, ExecError> {
        let pid = process.pid();
        let (sender, seized) = mpsc::channel();
        std::thread::scope(move |scope| {
            // A tracer needs its own thread: it waits for what the thread traces, and when the
            // thread ends the kernel kills what it still traces.
            scope.spawn(move || match Tracer::seize(pid, plan, ring, history) {
                Ok(tracer) => {
                    // Sending fails only if the receiving thread is gone.
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
            // On an error, dropping the process kills it, and so ends the tracer before the scope
            // waits for it.
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

    fn sources(&self) -> ComparisonSources {
        self.sources
    }
}

fn sharing(source: std::io::Error) -> ExecError {
    ExecError::system("sharing memory with a run that is observed")(source)
}

fn tracing(errno: Errno) -> ExecError {
    ExecError::system("tracing a run that is observed")(errno.into())
}

/// An observer of a harness that reports its comparisons by callbacks. One server makes all runs:
/// executing the program anew with breakpoints would take tens of milliseconds with a sanitizer,
/// and would also report what the sanitizer compares when it starts.
struct HarnessObserver {
    executor: ServerExecutor,
    callbacks: usize,
}

impl HarnessObserver {
    /// Prepares the entry function of `target` for observed runs, with [`Freshness::Fresh`] each in
    /// a new process; its fork server starts with the first run. `None` if the program has no
    /// comparison callbacks that a jump can replace, or no entry function that can be called. Fails
    /// when the program is missing or cannot be executed.
    fn new(target: &Target, freshness: Freshness) -> Result<Option<HarnessObserver>, ExecError> {
        let executor = match ways::observed_harness(&with_more_time(target), freshness) {
            Ok(executor) => executor,
            Err(ExecError::WayUnfit { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let callbacks = executor.observed_callbacks();
        Ok((callbacks > 0).then_some(HarnessObserver {
            executor,
            callbacks,
        }))
    }
}

impl Observer for HarnessObserver {
    fn observe(&mut self, input: &[u8]) -> Result<(Run, Vec<Comparison>), ExecError> {
        let run = self.executor.run(input)?;
        Ok((run, self.executor.compared()))
    }

    fn sources(&self) -> ComparisonSources {
        ComparisonSources {
            functions: true,
            callbacks: self.callbacks,
            instructions: 0,
        }
    }
}

/// Observes comparisons in the runs of a harness loop, a process that runs many inputs. It sees the
/// calls of comparison functions, such as `memcmp`, and of the comparison callbacks that the
/// compiler has inserted; it sets no breakpoints.
pub(crate) struct LoopObserver {
    ring: ComparisonRing,
    hooks: Vec<Hook>,
}

impl LoopObserver {
    pub(crate) fn new(path: &Path) -> io::Result<LoopObserver> {
        let mut hooks = image::hooks_of(path);
        hooks.retain(|hook| cfg!(target_arch = "x86_64") && hook.takes_jump());
        let mut ring = ComparisonRing::create()?;
        ring.reset(hooks.iter())?;
        Ok(LoopObserver { ring, hooks })
    }

    /// Returns the number of the program's comparison callbacks that are observed.
    pub(crate) fn callbacks(&self) -> usize {
        let callbacks = self.hooks.iter().filter(|hook| hook.takes_breakpoint());
        callbacks.count()
    }

    pub(crate) fn file(&mut self) -> io::Result<File> {
        self.ring.reset(self.hooks.iter())?;
        self.ring.file()
    }

    /// Forgets the comparisons that earlier runs of the process made, before a run begins.
    pub(crate) fn begin(&mut self) {
        self.ring.skip();
    }

    /// Returns the comparisons of the present run: the last ones (at most 256, each pair of
    /// operands once) whose operands differed, oldest first.
    pub(crate) fn comparisons(&mut self) -> Vec<Comparison> {
        let mut history = History::default();
        self.ring.drain(&mut history);
        history.into_comparisons()
    }
}
