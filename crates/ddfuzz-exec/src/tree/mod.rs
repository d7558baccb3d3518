//! Programs that start others: a crash of a descendant is a crash of the run (crash-keys.md, "What
//! a crash is"; docs/decisions/0034).
//!
//! Runs are bare until one is seen to have had descendants. That run is repeated, and all later
//! ones are run, with the whole tree of processes traced.

mod traced_run;
mod tracer;

use std::time::{Duration, Instant};

use super::served::Served;
use super::traced::Traceable;
use super::{Ended, ExecError, Executor, Freshness, Run, Target, TimeLimit, Way};
use traced_run::Followed;

/// How many runs of a program that can start others are traced at first, to see whether it does
/// where the server cannot: by `command`, a program that ignores the ends of its children.
const CALIBRATION: u32 = 3;
/// How often a traced run is tried whose server or tracer breaks, and how long.
const MOST_TRIES: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// How the next run is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Traced, for so many runs to come.
    Calibrating(u32),
    /// As the way makes it.
    Bare,
    /// Traced, as all runs from here on.
    Traced,
    /// Bare, because the system refuses to trace.
    Refused,
}

/// An executor whose runs end in the crash of a descendant where there is one.
pub(crate) struct Tree {
    bare: Served,
    target: Target,
    traced: Option<Traceable>,
    mode: Mode,
}

impl Tree {
    /// Watches over the runs of `bare`, which serves `target`.
    pub(crate) fn new(bare: Served, target: &Target) -> Tree {
        let mode = match bare.may_fork() && bare.way() == Way::Command {
            true => Mode::Calibrating(CALIBRATION),
            false => Mode::Bare,
        };
        Tree {
            bare,
            target: target.clone(),
            traced: None,
            mode,
        }
    }

    /// A traced run; `None` where there is none to be had, for now or for ever.
    fn follow(&mut self, input: &[u8]) -> Result<Option<Followed>, ExecError> {
        let began = Instant::now();
        for _ in 0..MOST_TRIES {
            match traced_run::run(self.traceable()?, input) {
                Ok(Some(followed)) => return Ok(Some(followed)),
                Ok(None) => {
                    self.mode = Mode::Refused;
                    self.traced = None;
                    return Ok(None);
                }
                Err(_) if began.elapsed() > PATIENCE => return Ok(None),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    fn traceable(&mut self) -> Result<&Traceable, ExecError> {
        match &mut self.traced {
            Some(traceable) => Ok(traceable),
            empty => Ok(empty.insert(Traceable::new(&self.target, self.bare.way())?)),
        }
    }

    /// What was learned of the target by a traced run.
    fn learn(&mut self, forked: bool) {
        self.mode = match self.mode {
            _ if forked => Mode::Traced,
            Mode::Calibrating(left) if left > 1 => Mode::Calibrating(left - 1),
            Mode::Calibrating(_) => Mode::Bare,
            mode => mode,
        };
        if self.mode == Mode::Bare {
            self.traced = None;
        }
    }
}

impl Executor for Tree {
    fn run(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        loop {
            if matches!(self.mode, Mode::Calibrating(_) | Mode::Traced)
                && let Some(followed) = self.follow(input)?
            {
                self.learn(followed.forked);
                if matches!(followed.run.ended, Ended::Timeout | Ended::OutOfMemory) {
                    self.traced = None; // what could not be killed at once may hold its input
                }
                return Ok(followed.run);
            }
            // Also where traced runs break again and again: of what a target does to those who
            // run it, this says the last word.
            let run = self.bare.run(input)?;
            if !self.bare.forked() || self.mode != Mode::Bare {
                return Ok(run);
            }
            self.mode = Mode::Traced;
        }
    }

    fn way(&self) -> Way {
        self.bare.way()
    }

    fn freshness(&self) -> Freshness {
        self.bare.freshness()
    }

    fn coverage(&mut self) -> Option<&[u8]> {
        self.bare.coverage()
    }

    fn limit_time(&mut self, time: TimeLimit) {
        self.bare.limit_time(time);
        self.target.limits = time.within(self.target.limits);
        if let Some(traced) = &self.traced {
            traced.limit_time(time);
        }
    }
}
