//! What LibAFL is told of a run besides its coverage: how it ended, and by which signal.

use std::borrow::Cow;

use libafl::observers::Observer;
use libafl_bolts::Named;
use serde::{Deserialize, Serialize};

use ddfuzz_exec::Ended;

/// How the last run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EndObserver {
    name: Cow<'static, str>,
    /// `None` before the first run.
    pub(super) ended: Option<Ended>,
}

impl EndObserver {
    /// An observer that has seen nothing.
    pub(super) fn new() -> EndObserver {
        EndObserver {
            name: Cow::Borrowed("ended"),
            ended: None,
        }
    }
}

impl Named for EndObserver {
    fn name(&self) -> &Cow<'static, str> {
        &self.name
    }
}

impl<I, S> Observer<I, S> for EndObserver {}
