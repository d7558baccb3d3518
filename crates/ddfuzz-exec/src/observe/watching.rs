//! The observer: a target run under a tracer, with what it is told by.

use std::sync::mpsc;
use std::time::Duration;

use nix::errno::Errno;

use super::breakpoints::{Plan, Tracer};
use super::history::History;
use super::hook::Hook;
use super::image::Image;
use super::told::Told;
use super::{Observer, Sources};
use crate::place::Place;
use crate::traced::{Traceable, Traced};
use crate::{ExecError, Run, Target, Way, inject};
use ddfuzz_delta::Comparison;

/// A run that is stopped again and again uses more time than it would alone.
const MORE_CPU: Duration = Duration::from_secs(1);
const MORE_WALL: Duration = Duration::from_secs(5);

/// A target whose runs are observed.
pub(crate) struct Watching {
    target: Traceable,
    /// Where the preloaded library tells; `None` where nothing can be preloaded.
    told: Option<Told>,
    /// Callbacks that jump into it.
    jumping: Vec<Hook>,
    /// The breakpoints; `None` where there are none, or the system has refused to trace.
    plan: Option<Plan>,
    sources: Sources,
}

impl Watching {
    /// Finds out what can be observed of `target`. A target of which nothing can be has no
    /// sources.
    pub(crate) fn new(target: &Target, way: Way) -> Result<Watching, ExecError> {
        let mut patient = target.clone();
        let limits = &mut patient.limits;
        limits.cpu = limits.cpu.saturating_mul(2).saturating_add(MORE_CPU);
        limits.wall = limits.wall.saturating_mul(2).saturating_add(MORE_WALL);
        let place = Place::prepare(&patient, way)?;
        let told = match inject::unfit(&place) {
            Some(_) => None,
            None => Some(Told::create().map_err(sharing)?),
        };
        // A file that is no program of this machine has no facts.
        let image = match place.facts {
            Some(_) => Image::read(&place.program),
            None => None,
        };
        let hooks = image
            .as_ref()
            .map_or(&[][..], |image| image.hooks.as_slice());
        let can_jump =
            |hook: &&Hook| told.is_some() && cfg!(target_arch = "x86_64") && hook.takes_jump();
        let (jumping, listened): (Vec<&Hook>, Vec<&Hook>) = hooks.iter().partition(can_jump);
        let jumping: Vec<Hook> = jumping.into_iter().copied().collect();
        let listened = listened
            .into_iter()
            .filter(|hook| hook.can_be_listened_to());
        let listened: Vec<Hook> = listened.copied().collect();
        let plan = image.map(|image| Plan::of(image, &listened));
        let plan = plan.filter(|plan| plan.len() > 0);
        let traced = plan.as_ref().map_or(0, Plan::len);
        let listened = listened.len().min(traced);
        let observed = match &told {
            Some(told) => Some(told.file().map_err(sharing)?),
            None => None,
        };
        Ok(Watching {
            sources: Sources {
                functions: told.is_some(),
                callbacks: jumping.len() + listened,
                instructions: traced - listened,
            },
            target: Traceable::at(place, &patient, way, observed)?,
            told,
            jumping,
            plan,
        })
    }

    /// Runs the process, which waits before its `execve`, under the plan's breakpoints; `None`
    /// where the system refuses to trace it.
    fn trace(
        plan: &Plan,
        mut process: Traced,
        told: Option<&mut Told>,
        history: &mut History,
    ) -> Result<Option<Run>, ExecError> {
        let pid = process.pid();
        let (sender, seized) = mpsc::channel();
        std::thread::scope(move |scope| {
            // A thread of its own: what it waits for is what it traces, and when it ends the
            // kernel kills whatever it still traces.
            scope.spawn(move || match Tracer::seize(pid, plan, told, history) {
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

impl Observer for Watching {
    fn observe(&mut self, input: &[u8]) -> Result<(Run, Vec<Comparison>), ExecError> {
        let mut history = History::default();
        loop {
            if let Some(told) = &mut self.told {
                told.reset(self.jumping.iter()).map_err(sharing)?;
            }
            let mut process = self.target.start(input, false)?;
            let run = match &self.plan {
                Some(plan) => Watching::trace(plan, process, self.told.as_mut(), &mut history)?,
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
            if let Some(told) = &mut self.told {
                told.drain(&mut history);
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
