//! Repeats a run with another server where one died, is silent or breaks the protocol. All servers
//! share this, whatever protocol they speak.

use std::io;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::launch::Launch;
use crate::scratch::{Cleaned, Scratch};
use crate::server::{Answer, RequestError};
use crate::{Ended, ExecError};

/// A server is replaced after this many runs, which bounds what it leaks.
pub(crate) const RUNS_PER_SERVER: u64 = 20_000;
/// How many servers in turn are asked for a run: the first may have been killed by somebody else.
const MOST_RUNS: u32 = 3;
/// How many of them may fail to start. The program is known to start: an executor has started it
/// before.
const MOST_STARTS: u32 = 10;
/// The pause between two tries, for troubles that pass.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a full disk is waited for: another worker's target may fill it until its run ends.
const FULL: Duration = Duration::from_secs(10);

/// A target behind a server, for which runs can be repeated with another server.
pub(crate) trait Retriable {
    /// Writes the first of the inputs where the target finds it, and as many others as one request
    /// takes.
    fn put_in_place(&mut self, inputs: &[&[u8]]) -> io::Result<()>;
    /// Tries one run on the inputs in place, of which `input` is the first. Starts a server where
    /// there is none.
    fn attempt(&mut self, input: &[u8]) -> Result<Answer, Failure>;
    /// The error that every further try would meet.
    fn lasting(&self, failure: &Failure) -> Option<ExecError>;
    /// Ends the server.
    fn stop(&mut self);
    /// How to start the server.
    fn launch(&self) -> &Launch;
    /// The working directory.
    fn scratch(&mut self) -> &mut Scratch;

    /// Empties the working directory after the run's processes have ended.
    fn clean(&mut self) -> Result<(), ExecError> {
        let cleaned = self.scratch().clean();
        if cleaned.map_err(|source| self.launch().lost(source))? == Cleaned::Replaced {
            self.stop(); // it stands in a directory that is gone
        }
        Ok(())
    }

    /// The program, for errors.
    fn program(&self) -> PathBuf {
        self.launch().program.clone()
    }
}

/// Why a try at a run has failed.
pub(crate) enum Failure {
    /// No server came up.
    Start(ExecError),
    /// The server did not answer as it should.
    Request(RequestError),
}

/// Runs the target on the first of `inputs`, and on as many others as one request takes, with as many
/// servers as that needs.
pub(crate) fn run(target: &mut impl Retriable, inputs: &[&[u8]]) -> Result<Answer, ExecError> {
    let (mut runs, mut starts) = (0, 0);
    let first = inputs.first().copied().unwrap_or_default();
    // After a failure the first input runs alone: the server may have died of it.
    let mut asked = inputs;
    loop {
        write_inputs(target, asked)?;
        let failure = match target.attempt(first) {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        if let Some(error) = target.lasting(&failure) {
            return Err(error);
        }
        match failure {
            Failure::Start(_) => starts += 1,
            Failure::Request(_) => runs += 1,
        }
        target.stop();
        asked = &inputs[..inputs.len().min(1)];
        if runs == MOST_RUNS || starts == MOST_STARTS {
            return give_up(target.program(), failure);
        }
        std::thread::sleep(PAUSE);
        // The next one must not see what this one has left, or still writes.
        let renewed = target.scratch().renew();
        renewed.map_err(|source| target.launch().lost(source))?;
    }
}

/// The answer or error for a run that several servers have not answered.
fn give_up(path: PathBuf, failure: Failure) -> Result<Answer, ExecError> {
    let ended = match failure {
        Failure::Start(error) => return Err(error),
        // The target has killed each of them, which from the outside is a death by SIGKILL
        // like any other; or it has made them stop, and was killed at its limit.
        Failure::Request(RequestError::Died) => Ended::Signal(libc::SIGKILL),
        Failure::Request(RequestError::Silent(ended)) => ended,
        Failure::Request(broken) => {
            let why = broken.to_string();
            return Err(ExecError::Server { path, why });
        }
    };
    Ok(Answer {
        number: 0,
        ended,
        cpu: Duration::ZERO,
        forked: false,
    })
}

fn write_inputs(target: &mut impl Retriable, inputs: &[&[u8]]) -> Result<(), ExecError> {
    let deadline = Instant::now() + FULL;
    loop {
        match target.put_in_place(inputs) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::StorageFull && Instant::now() < deadline => {
                std::thread::sleep(PAUSE);
            }
            Err(source) => {
                let size = inputs.first().map_or(0, |input| input.len());
                let what = format!("writing an input of {size} bytes");
                return Err(ExecError::System { what, source });
            }
        }
    }
}
