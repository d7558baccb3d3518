//! A feedback that is interested in what passed.

use std::borrow::Cow;

use libafl::Error;
use libafl::executors::ExitKind;
use libafl::feedbacks::{Feedback, StateInitializer};
use libafl_bolts::Named;

/// Interested in each run that passed: put before other feedbacks it keeps crashes out of the
/// corpus.
///
/// LibAFL asks the feedback of each run that the objective has rejected. An objective that knows
/// duplicates rejects them, so without this each duplicate that covers something new would become
/// an entry of the corpus that crashes each time, and hands on its crash to all its offspring:
///
/// ```
/// use ddfuzz_campaign::Passed;
/// use libafl::feedbacks::ConstFeedback;
/// use libafl::feedback_and_fast;
///
/// let coverage = ConstFeedback::new(true); // a `MaxMapFeedback`, say
/// let feedback = feedback_and_fast!(Passed, coverage);
/// # let _: libafl::feedbacks::FastAndFeedback<Passed, ConstFeedback> = feedback;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed;

impl Named for Passed {
    fn name(&self) -> &Cow<'static, str> {
        static NAME: Cow<'static, str> = Cow::Borrowed("Passed");
        &NAME
    }
}

impl<S> StateInitializer<S> for Passed {}

impl<EM, I, OT, S> Feedback<EM, I, OT, S> for Passed {
    fn is_interesting(
        &mut self,
        _state: &mut S,
        _manager: &mut EM,
        _input: &I,
        _observers: &OT,
        exit_kind: &ExitKind,
    ) -> Result<bool, Error> {
        Ok(*exit_kind == ExitKind::Ok)
    }
}
