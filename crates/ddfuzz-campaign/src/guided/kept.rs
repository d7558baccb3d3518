//! What goes to the corpus is stored.

use std::borrow::Cow;

use libafl::Error;
use libafl::corpus::Testcase;
use libafl::executors::ExitKind;
use libafl::feedbacks::{Feedback, StateInitializer};
use libafl::inputs::BytesInput;
use libafl_bolts::Named;

use super::executor::fail;
use super::remote::Remote;

/// Has what goes to the corpus stored, as `corpus/HASH` of the output directory.
pub(super) struct Kept {
    name: Cow<'static, str>,
    remote: Remote,
}

impl Kept {
    /// Stores through `remote`.
    pub(super) fn new(remote: Remote) -> Kept {
        Kept {
            name: Cow::Borrowed("kept"),
            remote,
        }
    }
}

impl Named for Kept {
    fn name(&self) -> &Cow<'static, str> {
        &self.name
    }
}

impl<S> StateInitializer<S> for Kept {}

impl<EM, OT, S> Feedback<EM, BytesInput, OT, S> for Kept {
    fn is_interesting(
        &mut self,
        _state: &mut S,
        _manager: &mut EM,
        _input: &BytesInput,
        _observers: &OT,
        _exit_kind: &ExitKind,
    ) -> Result<bool, Error> {
        Ok(true)
    }

    fn append_metadata(
        &mut self,
        _state: &mut S,
        _manager: &mut EM,
        _observers: &OT,
        testcase: &mut Testcase<BytesInput>,
    ) -> Result<(), Error> {
        match testcase.input() {
            Some(input) => self
                .remote
                .keep(input.as_ref())
                .map_err(|error| fail(&error)),
            None => Ok(()),
        }
    }
}
