//! Runs of a server with a runner: a process that runs many inputs. Runs that the runner refuses
//! are made by forks of the server.

use std::io;

use super::ServerExecutor;
use crate::input::InputChannel;
use crate::output_capture::Written;
use crate::program_trust::{RUNNER_CPU, RUNNER_WALL};
use crate::refusals::RefusalReason;
use crate::{Ended, ExecError, Limits, Run, retry};

impl ServerExecutor {
    /// Runs the first of `inputs`, and as many of those after it as one request takes, in the
    /// runner (the process that makes many runs), and returns the results. If the last of these
    /// runs did not end by an exit, it does not count, and a fork of the server makes it again.
    pub(super) fn run_restored(&mut self, inputs: &[&[u8]]) -> Result<Vec<Run>, ExecError> {
        let answer = retry::run(self, inputs)?;
        (self.forked, self.refused) = (answer.forked, answer.refused);
        if self.captures && answer.refused.is_some() {
            // No fork has made the run, so that nothing is written twice.
            self.clear_capture();
            let run = self.run_forked(inputs[0])?;
            self.refused = answer.refused;
            return Ok(vec![run]);
        }
        // Whether the runner, and not a fork, made the last run. If no server is left, several have
        // died of the run, and their forks with them. A fork that the server made for this request,
        // and that timed out, counts like the runner, because it had the runner's shorter limits.
        let is_of_runner =
            self.server.is_some() && (answer.refused.is_none() || answer.ended == Ended::Timeout);
        if self.server.is_none() {
            self.refused = Some(RefusalReason::Died);
        }
        let mut runs = self.finish(answer)?;
        if is_of_runner && !answer.ended.is_exit() {
            runs.pop();
            self.clear_capture();
            if let Some(blocks) = &mut self.blocks {
                blocks.first_run = answer.number;
            }
            runs.push(self.run_forked(inputs[answer.number])?);
            self.refused = answer.refused.or(Some(RefusalReason::Died));
        }
        Ok(runs)
    }

    /// Runs an input in a new process that the server forks, not in the runner (the process that
    /// makes many runs). Returns the result of the run.
    pub(crate) fn run_forked(&mut self, input: &[u8]) -> Result<Run, ExecError> {
        self.set_forking(true);
        let answer = retry::run(self, &[input]);
        self.set_forking(false);
        let answer = answer?;
        (self.forked, self.refused) = (answer.forked, Some(RefusalReason::Asked));
        let runs = self.finish(answer)?;
        runs.last().copied().ok_or_else(|| self.nothing_run())
    }

    /// Runs one input, as a whole call of the executor, in a new process that the server forks, not
    /// in the runner (the process that makes many runs). Returns a list with the one run.
    pub(crate) fn run_by_fork(&mut self, input: &[u8]) -> Result<Vec<Run>, ExecError> {
        self.begin_call();
        let run = self.run_forked(input)?;
        self.end_call(&[input], vec![run])
    }

    /// Returns the limits for the runs of the next request. If a single process makes many runs
    /// (the runner), their time limits are shorter than the target's; a run that exceeds them is
    /// made again by a fork of the server.
    pub(super) fn request_limits(&self) -> Limits {
        match &self.input_channel {
            InputChannel::Runner(inputs) if !inputs.writes_itself => Limits {
                cpu: self.limits.cpu.min(RUNNER_CPU),
                wall: self.limits.wall.min(RUNNER_WALL),
                ..self.limits
            },
            _ => self.limits,
        }
    }

    pub(super) fn set_forking(&mut self, on: bool) {
        if let InputChannel::Runner(inputs) = &mut self.input_channel {
            inputs.writes_itself = on;
        }
    }

    /// Runs an input in the runner (the process that makes many runs) or, if `forked`, in a fork of
    /// the server. Returns how the run ended, and length and hash of its stdout and of its stderr.
    /// If the runner refuses the run, a fork makes it, and these are its results.
    pub(crate) fn run_captured(
        &mut self,
        input: &[u8],
        forked: bool,
    ) -> Result<(Run, [Written; 2]), ExecError> {
        self.captures = true;
        let run = self.run_and_capture(input, forked);
        self.captures = false;
        let (stdout, stderr) = self.capture.as_ref().map_or_else(
            || Err(self.nothing_run()),
            |capture| Ok((capture.stdout.written(), capture.stderr.written())),
        )?;
        Ok((run?, [stdout, stderr]))
    }

    pub(super) fn run_and_capture(&mut self, input: &[u8], forked: bool) -> Result<Run, ExecError> {
        self.clear_capture();
        if let Some(blocks) = &mut self.blocks {
            blocks.forget_doubt();
        }
        let run = match forked {
            true => self.run_forked(input)?,
            false => {
                let runs = self.run_restored(&[input])?;
                runs.last().copied().ok_or_else(|| self.nothing_run())?
            }
        };
        self.resolve_doubt(0, input, run)
    }

    /// Sets whether the target's stdout and stderr are captured from the program's start. If `on`
    /// is false, they lead to /dev/null up to the fork point, which a program can notice.
    pub(crate) fn capture_all(&mut self, on: bool) -> io::Result<()> {
        let stdout = self.capture.as_ref().filter(|_| on);
        let stdout = stdout.map(|capture| capture.stdout.writer().try_clone());
        self.launch.stdout = stdout.transpose()?;
        self.captures_all = on;
        self.server = None;
        Ok(())
    }

    pub(super) fn clear_capture(&self) {
        if let Some(capture) = &self.capture {
            capture.clear();
        }
    }

    /// Returns why the runner (the process that makes many runs) has refused the last run; `None`
    /// if it has made the run.
    pub(crate) fn refused(&self) -> Option<RefusalReason> {
        self.refused
    }

    pub(crate) fn nothing_run(&self) -> ExecError {
        ExecError::Server {
            path: self.launch.program.clone(),
            why: "no run was made".to_owned(),
        }
    }
}
