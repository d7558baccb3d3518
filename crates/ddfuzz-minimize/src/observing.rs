//! What else the runs of a target tell, where a search asks for it.

use ddfuzz_delta::Hints;
use ddfuzz_exec::ExecError;
use ddfuzz_exec::observe::Observer;

/// Starts what observes the runs of a target; `None` where nothing can be observed.
pub type StartObserver = Box<dyn FnMut() -> Result<Option<Box<dyn Observer>>, ExecError> + Send>;

/// An observer that is started when it is first asked. Hints are no outcome: where they cannot be
/// had there are none, and nobody fails for that.
pub(super) enum Observing {
    Unstarted(StartObserver),
    Started(Box<dyn Observer>),
    Impossible,
}

impl Observing {
    /// What a run on `input` tells.
    pub(super) fn hints(&mut self, input: &[u8]) -> Hints {
        if let Observing::Unstarted(start) = self {
            *self = match start() {
                Ok(Some(observer)) => Observing::Started(observer),
                Ok(None) | Err(_) => Observing::Impossible,
            };
        }
        let Observing::Started(observer) = self else {
            return Hints::default();
        };
        match observer.observe(input) {
            Ok((run, comparisons)) => Hints {
                read: run.read.and_then(|bytes| usize::try_from(bytes).ok()),
                comparisons,
            },
            Err(_) => {
                *self = Observing::Impossible;
                Hints::default()
            }
        }
    }
}
