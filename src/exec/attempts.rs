//! Runs that are tried again with another server, where one has died, is silent or talks
//! nonsense: what all servers share, whatever they speak.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::server::{Answer, Broken};
use super::{Ended, ExecError, Run};

/// Servers are replaced after so many runs, so that what they leak stays bounded.
pub(super) const RUNS_PER_SERVER: u64 = 100_000;
/// How many servers in turn a run is asked of: the first may have been killed by somebody else.
const MOST_RUNS: u32 = 3;
/// How many of them may not even come up. The program is known to start: an executor has started
/// it before.
const MOST_STARTS: u32 = 10;
/// Between two of them, so that what lasts a moment passes.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the disk may be full: another worker's target fills it until its run has ended.
const FULL: Duration = Duration::from_secs(10);

/// A target behind a server, as far as trying again is concerned.
pub(super) trait Attempts {
    /// Puts the input where the target finds it.
    fn put_in_place(&mut self, input: &[u8]) -> io::Result<()>;
    /// One try at a run on the input that is in place, with a new server where there is none.
    fn attempt(&mut self, input: &[u8]) -> Result<Answer, Failure>;
    /// The error that another try would meet, too.
    fn lasting(&self, failure: &Failure) -> Option<ExecError>;
    /// Ends the server.
    fn stop(&mut self);
    /// Empties the working directory, in which nothing runs any more.
    fn clean(&mut self) -> Result<(), ExecError>;
    /// What is left to do after a run that ended so.
    fn finish(&mut self, ended: Ended, cpu: Duration) -> Result<Run, ExecError>;
    /// The program, for errors.
    fn program(&self) -> PathBuf;
}

/// Why a try at a run has failed.
pub(super) enum Failure {
    /// No server came up.
    Start(ExecError),
    /// The server did not answer as it should.
    Broken(Broken),
}

/// Runs the target once on `input`, with as many servers as that takes.
pub(super) fn run(target: &mut impl Attempts, input: &[u8]) -> Result<Run, ExecError> {
    let (mut runs, mut starts) = (0, 0);
    loop {
        write_input(target, input)?;
        let failure = match target.attempt(input) {
            Ok(answer) => return target.finish(answer.ended, answer.cpu),
            Err(failure) => failure,
        };
        if let Some(error) = target.lasting(&failure) {
            return Err(error);
        }
        match failure {
            Failure::Start(_) => starts += 1,
            Failure::Broken(_) => runs += 1,
        }
        target.stop();
        if runs == MOST_RUNS || starts == MOST_STARTS {
            return give_up(target, failure);
        }
        std::thread::sleep(PAUSE);
        target.clean()?; // the next one must not see what this one has left
    }
}

/// What is to be said of a run that several servers have not answered.
fn give_up(target: &mut impl Attempts, failure: Failure) -> Result<Run, ExecError> {
    match failure {
        Failure::Start(error) => Err(error),
        // The target has killed each of them, which from the outside is a death by SIGKILL
        // like any other; or it has made them stop, and was killed at its limit.
        Failure::Broken(Broken::Died) => {
            target.finish(Ended::Signal(libc::SIGKILL), Duration::ZERO)
        }
        Failure::Broken(Broken::Silent(ended)) => target.finish(ended, Duration::ZERO),
        Failure::Broken(broken) => Err(ExecError::Server {
            path: target.program(),
            why: broken.to_string(),
        }),
    }
}

fn write_input(target: &mut impl Attempts, input: &[u8]) -> Result<(), ExecError> {
    let deadline = Instant::now() + FULL;
    loop {
        match target.put_in_place(input) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::StorageFull && Instant::now() < deadline => {
                std::thread::sleep(PAUSE);
            }
            Err(source) => {
                let what = format!("writing an input of {} bytes", input.len());
                return Err(ExecError::System { what, source });
            }
        }
    }
}
