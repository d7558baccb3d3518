//! Runs inputs for what can be seen of them from outside.

use std::time::Duration;

use super::observed::{Observed, Stacks};
use super::record::Output;
use ddfuzz_exec::{ExecError, Target, TimeLimit, Traceable, Way, Written};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_triage::reads::{ReadStacks, Reads};

/// How an input is run in one of its rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// By itself, with its addresses randomized.
    Randomized,
    /// With its reads watched, and more time.
    Watched,
}

impl Round {
    /// The runs of each input. What takes too long shows it in the first one, within its own
    /// limits; what hangs on addresses is another thing in the others. Stacks are told relative to
    /// modules, so that addresses are nothing to them.
    pub(super) const ALL: [Round; 3] = [Round::Randomized, Round::Watched, Round::Watched];
}

/// A target that is listened to, and whose reads are watched.
pub(super) struct Runner {
    target: Traceable,
    /// What watches its reads; `None` where it is fed in memory.
    reads: Option<ReadStacks>,
    /// The limits on its time by itself, and watched.
    time: TimeLimit,
    patient: TimeLimit,
}

/// A run that is stopped again and again uses more time than it would alone.
const MORE_CPU: Duration = Duration::from_secs(1);
const MORE_WALL: Duration = Duration::from_secs(5);

impl Runner {
    /// # Errors
    /// When the program is missing or cannot be executed.
    pub(super) fn new(target: &Target, way: Way) -> Result<Runner, ExecError> {
        let time = TimeLimit::from(target.limits);
        let double = time.times(2);
        Ok(Runner {
            time,
            patient: TimeLimit {
                cpu: double.cpu.saturating_add(MORE_CPU),
                wall: double.wall.saturating_add(MORE_WALL),
            },
            target: Traceable::listening(target, way)?,
            reads: (way != Way::Harness).then(ReadStacks::default),
        })
    }

    /// Runs an input once.
    ///
    /// # Errors
    /// When the target cannot be run.
    pub(super) fn run(&mut self, input: &[u8], round: Round) -> Result<Observed, ExecError> {
        let asks = round == Round::Watched;
        (self.target).limit_time(if asks { self.patient } else { self.time });
        let mut run = self.target.start(input, !asks)?;
        let (ended, reads) = match self.reads.as_mut().filter(|_| asks) {
            Some(watched) => watched.follow(&mut run)?,
            None => {
                run.release()?;
                (run.wait_for_run()?, None)
            }
        };
        let stacks = match asks {
            true => Stacks::Asked(reads.map(|reads| hash(&reads))),
            false => Stacks::NotAsked,
        };
        let written = run.written();
        Ok(Observed {
            ended: ended.ended,
            stdout: written.map(|(stdout, _)| output(stdout)),
            stderr: written.map(|(_, stderr)| output(stderr)),
            read: ended.read,
            stacks,
        })
    }
}

fn output(written: Written) -> Output {
    Output {
        bytes: written.bytes,
        hash: ContentHash::from_bytes(written.hash),
    }
}

/// The hash of the stacks, in their order.
fn hash(reads: &Reads) -> ContentHash {
    let mut text = Vec::new();
    for stack in &reads.stacks {
        for (module, offset) in stack {
            text.extend((module.len() as u64).to_le_bytes());
            text.extend(module.as_bytes());
            text.extend(offset.to_le_bytes());
        }
        // No module's name is so long.
        text.extend(u64::MAX.to_le_bytes());
    }
    ContentHash::of(&text)
}
