//! Repeats a run with another server when a server has died, does not answer or breaks the
//! protocol. The servers of ddfuzz's own protocol and of AFL++ share this code.

use std::time::{Duration, Instant};
use std::{io, io::ErrorKind, path::PathBuf};

use crate::scratch::{Cleaned, Scratch};
use crate::server::{Answer, RequestError};
use crate::{AbandonWhen, Ended, ExecError, launch::Launch};

/// Number of runs after which a fork server is replaced, which bounds the memory that it leaks.
pub(crate) const RUNS_PER_SERVER: u64 = 20_000;
/// How many fork servers are tried, one after the other, if they do not answer a request, before
/// the run counts as failed.
const MOST_RUNS: u32 = 3;
/// How many fork servers are tried, one after the other, if they cannot be started, before the run
/// counts as failed.
const MOST_STARTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);
/// How long writing an input waits for space on a full disk: another worker's target may fill the
/// disk until its run ends.
const FULL: Duration = Duration::from_secs(10);

/// A target behind a fork server, which can be replaced by a new server to repeat a run.
pub(crate) trait Retriable {
    /// Writes the first input to where the target reads it, and as many further inputs as one
    /// request to the fork server takes.
    fn put_in_place(&mut self, inputs: &[&[u8]]) -> io::Result<()>;
    /// Tries once to run the inputs that were written for the target last, beginning with `input`;
    /// starts a fork server if none runs. Returns the answer about the last run that was made.
    fn attempt(&mut self, input: &[u8]) -> Result<Answer, Failure>;
    /// Returns the error to report if each further try to run the inputs would fail as `failure`
    /// did; `None` if trying again may succeed.
    fn lasting(&self, failure: &Failure) -> Option<ExecError>;
    fn stop(&mut self);
    fn launch(&self) -> &Launch;
    fn scratch(&mut self) -> &mut Scratch;

    /// Returns the conditions under which runs of the target are abandoned.
    fn abandon_when(&self) -> &AbandonWhen {
        &self.launch().abandon_when
    }

    /// Empties the target's working directory after all processes of the run have ended. If the
    /// target has removed the directory, creates a new one and stops the fork server, which is in
    /// the old one.
    fn clean(&mut self) -> Result<(), ExecError> {
        let cleaned = self.scratch().clean();
        if cleaned.map_err(|source| self.launch().directory_error(source))? == Cleaned::Replaced {
            self.stop(); // it stands in a directory that is gone
        }
        Ok(())
    }

    fn program(&self) -> PathBuf {
        self.launch().program.clone()
    }
}

/// Why one try at running inputs behind a fork server has failed.
pub(crate) enum Failure {
    /// The fork server could not be started.
    Start(ExecError),
    /// The fork server did not answer, or broke the protocol.
    Request(RequestError),
}

/// Requests from the fork server to run the target on the first of `inputs` and on as many of those
/// after it as one request takes, and returns the server's answer. If that fails, tries again with
/// the first input alone, each time with a new fork server, until [`MOST_RUNS`] requests or
/// [`MOST_STARTS`] starts of a server have failed; then returns the result of [`give_up`]. Fails
/// without a further try if the run is abandoned, or if no further try can help
/// ([`Retriable::lasting`]).
pub(crate) fn run(target: &mut impl Retriable, inputs: &[&[u8]]) -> Result<Answer, ExecError> {
    let (mut runs, mut starts) = (0, 0);
    let first = inputs.first().copied().unwrap_or_default();
    // After a failure the first input runs alone: the server may have died of it.
    let mut asked = inputs;
    loop {
        target.abandon_when().check()?;
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
        target.abandon_when().check()?;
        asked = &inputs[..inputs.len().min(1)];
        std::thread::sleep(PAUSE);
        // Neither the next try nor a later run may see files of this try. A process of this try may
        // still write some, if somebody has killed the supervisors, which would kill it.
        let renewed = target.scratch().renew();
        renewed.map_err(|source| target.launch().directory_error(source))?;
        if runs == MOST_RUNS || starts == MOST_STARTS {
            return give_up(target.program(), failure);
        }
    }
}

/// Returns the result of a run that several fork servers, one after the other, failed to make;
/// `failure` is why the last one failed. If that server died, the run counts as ended by SIGKILL,
/// and if it was silent, as ended at its limit, because the target may have caused either. Else
/// returns the error, which names `path`, the program.
fn give_up(path: PathBuf, failure: Failure) -> Result<Answer, ExecError> {
    let ended = match failure {
        Failure::Start(error) => return Err(error),
        // If each server died, the target killed it: that counts as a death by SIGKILL. If each was
        // silent, the target stopped it until it was killed at its limit.
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
        refused: None,
    })
}

fn write_inputs(target: &mut impl Retriable, inputs: &[&[u8]]) -> Result<(), ExecError> {
    let deadline = Instant::now() + FULL;
    loop {
        match target.put_in_place(inputs) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::StorageFull && Instant::now() < deadline => {
                target.abandon_when().check()?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_dir::PrivateDir;
    use std::fs;
    use std::os::fd::AsRawFd;

    /// A target for tests whose fork servers die of each request, and leave a process behind.
    struct Dying {
        scratch: Scratch,
        /// The opened working directory of the process that the last server has left behind.
        held: Option<fs::File>,
        abandon_when: AbandonWhen,
        tries: u32,
    }

    impl Dying {
        fn new(abandon_when: AbandonWhen) -> Dying {
            let private = PrivateDir::get().unwrap();
            Dying {
                scratch: Scratch::create(&private.fresh("test"), None).unwrap(),
                held: None,
                abandon_when,
                tries: 0,
            }
        }
    }

    impl Retriable for Dying {
        fn put_in_place(&mut self, _: &[&[u8]]) -> io::Result<()> {
            Ok(())
        }

        fn attempt(&mut self, _: &[u8]) -> Result<Answer, Failure> {
            self.tries += 1;
            self.held = fs::File::open(self.scratch.path()).ok();
            Err(Failure::Request(RequestError::Died))
        }

        fn lasting(&self, _: &Failure) -> Option<ExecError> {
            None
        }

        fn stop(&mut self) {}

        fn launch(&self) -> &Launch {
            unreachable!("only errors of the directory need it")
        }

        fn abandon_when(&self) -> &AbandonWhen {
            &self.abandon_when
        }

        fn program(&self) -> PathBuf {
            PathBuf::new()
        }

        fn scratch(&mut self) -> &mut Scratch {
            &mut self.scratch
        }
    }

    #[test]
    fn what_still_runs_of_a_run_that_is_given_up_leaves_nothing_to_the_next() {
        let mut target = Dying::new(AbandonWhen::default());
        let path = target.scratch.path().to_owned();
        let answer = run(&mut target, &[b"input"]).unwrap();
        assert_eq!(answer.ended, Ended::Signal(libc::SIGKILL));
        let held = target.held.expect("the directory is there");
        fs::write(format!("/proc/self/fd/{}/late", held.as_raw_fd()), "x").unwrap_err();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn an_abandoned_run_is_not_tried_again_and_has_no_end() {
        let mut target = Dying::new(AbandonWhen::default().or(|| true));
        assert!(matches!(
            run(&mut target, &[b"input"]),
            Err(ExecError::Abandoned)
        ));
        assert_eq!(target.tries, 0);
        let seen = std::sync::atomic::AtomicU32::new(0);
        let after_one = move || seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0;
        let mut target = Dying::new(AbandonWhen::default().or(after_one));
        assert!(matches!(
            run(&mut target, &[b"input"]),
            Err(ExecError::Abandoned)
        ));
        assert_eq!(target.tries, 1);
    }
}
