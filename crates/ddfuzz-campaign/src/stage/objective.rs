//! An objective that knows groups, what testcases record of theirs, and a feedback for inputs that
//! passed.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use libafl::corpus::Testcase;
use libafl::events::{EventFirer, LogSeverity};
use libafl::executors::ExitKind;
use libafl::feedbacks::{Feedback, StateInitializer};
use libafl::inputs::{HasTargetBytes, Input};
use libafl::state::HasExecutions;
use libafl::{Error, HasMetadata};
use libafl_bolts::Named;
use serde::{Deserialize, Serialize};

use super::classifier::{FiledFinding, Finding, FindingClassifier, FindingOutcome, Seen, Sight};
use crate::crash_sink::CrashSink;
use crate::error::CampaignError;
use ddfuzz_exec::{Ended, Target, Way};
use ddfuzz_store::EntryId;
use ddfuzz_triage::{Class, Keys};

/// A LibAFL [`Feedback`] to be used as objective: interested in exactly those runs that are the
/// first of a way into a bug, or smaller than all inputs stored of it.
///
/// Each run that did not pass is run again under a tracer to be classified, some milliseconds; all
/// are counted. What is interesting is filed at the desk, synced, when LibAFL is told of it, and
/// its testcase carries a [`GroupMetadata`]. The state lives in the output directory, so that a
/// restart of the fuzzer knows what was known.
///
/// A run that cannot be classified (the target cannot be started, the disk is full) is interesting,
/// so that it is in LibAFL's solutions: the stage takes it from there when that is possible again.
///
/// Two traps. Duplicates that an objective rejects are offered to the feedback: put
/// [`Passed`] before it. And an executor that runs the target in the fuzzer's own
/// process calls objectives in the handler of the signal it died of, where nothing can be started:
/// use LibAFL's `CrashFeedback` there, and the stage alone. Exit statuses that are crashes have to
/// be told by the executor (`crash_exitcode`): what it calls [`ExitKind::Ok`] is none, unless it
/// leaves another end in its [`Sight`].
pub struct GroupObjective<D> {
    desk: Arc<Mutex<D>>,
    classifier: FindingClassifier,
    sight: Sight,
    files_unnamed: bool,
    handed_in: Option<Box<FiledFinding>>,
    /// Why the last run could not be classified, so that it is said once.
    trouble: Option<String>,
}

impl<D: CrashSink> GroupObjective<D> {
    /// An objective that hands in at `desk`, and classifies runs of `target` in the way `way`.
    ///
    /// # Errors
    /// When the program is missing or cannot be executed.
    pub fn new(
        desk: Arc<Mutex<D>>,
        target: &Target,
        way: Way,
    ) -> Result<GroupObjective<D>, CampaignError> {
        Ok(GroupObjective {
            desk,
            classifier: FindingClassifier::new(target, way)?,
            sight: Sight::default(),
            files_unnamed: false,
            handed_in: None,
            trouble: None,
        })
    }

    /// Reads what the executor leaves there: how runs ended that do not come again.
    #[must_use]
    pub fn seeing(mut self, sight: Sight) -> GroupObjective<D> {
        self.sight = sight;
        self
    }

    /// Files runs that cannot be classified as crashes that were seen once: for a fuzzer that keeps
    /// its solutions in memory, so that no stage could ever come back to them.
    #[must_use]
    pub fn filing_unnamed(mut self) -> GroupObjective<D> {
        self.files_unnamed = true;
        self
    }

    fn name_run<EM, I, S>(
        &mut self,
        state: &mut S,
        manager: &mut EM,
        input: &I,
        exit_kind: ExitKind,
        seen: Seen,
    ) -> Result<bool, Error>
    where
        EM: EventFirer<I, S>,
        I: HasTargetBytes + Input,
        S: HasExecutions,
    {
        let finding = Finding {
            input: &input.target_bytes(),
            run: state.executions().saturating_sub(1),
            name: &input.generate_name(None),
            ended: Some(seen.ended.unwrap_or_else(|| ended_of(exit_kind))),
            seen,
        };
        let became = match self.classifier.take(&self.desk, &finding) {
            Err(_) if self.files_unnamed => self.classifier.hand_in_unnamed(&self.desk, &finding),
            became => became,
        };
        match became {
            Ok(FindingOutcome::Filed(handed_in)) => {
                self.trouble = None;
                self.handed_in = Some(handed_in);
                Ok(true)
            }
            Ok(FindingOutcome::Counted | FindingOutcome::Unseen) => {
                self.trouble = None;
                Ok(false)
            }
            Err(error) => {
                let trouble =
                    format!("a crash could not be classified: {error}; it is kept as a solution");
                if self.trouble.as_ref() != Some(&trouble) {
                    manager.log(state, LogSeverity::Warn, trouble.clone())?;
                    self.trouble = Some(trouble);
                }
                Ok(true)
            }
        }
    }
}

/// How a run of this kind ended, as far as LibAFL knows: not by which signal.
fn ended_of(exit_kind: ExitKind) -> Ended {
    match exit_kind {
        ExitKind::Timeout => Ended::Timeout,
        ExitKind::Oom => Ended::OutOfMemory,
        ExitKind::Ok | ExitKind::Crash | ExitKind::Diff { .. } => Ended::Signal(0),
    }
}

impl<D> Named for GroupObjective<D> {
    fn name(&self) -> &Cow<'static, str> {
        static NAME: Cow<'static, str> = Cow::Borrowed("GroupObjective");
        &NAME
    }
}

impl<D, S> StateInitializer<S> for GroupObjective<D> {}

impl<D, EM, I, OT, S> Feedback<EM, I, OT, S> for GroupObjective<D>
where
    D: CrashSink,
    EM: EventFirer<I, S>,
    I: HasTargetBytes + Input,
    S: HasExecutions,
{
    fn is_interesting(
        &mut self,
        state: &mut S,
        manager: &mut EM,
        input: &I,
        _observers: &OT,
        exit_kind: &ExitKind,
    ) -> Result<bool, Error> {
        self.handed_in = None;
        let seen = self.sight.take();
        let suspect = seen
            .ended
            .is_some_and(|ended| self.classifier.suspects(ended));
        match exit_kind {
            ExitKind::Ok if !suspect => Ok(false),
            kind => self.name_run(state, manager, input, *kind, seen),
        }
    }

    fn append_metadata(
        &mut self,
        _state: &mut S,
        _manager: &mut EM,
        _observers: &OT,
        testcase: &mut Testcase<I>,
    ) -> Result<(), Error> {
        if let Some(handed_in) = self.handed_in.take() {
            testcase.add_metadata(GroupMetadata {
                id: handed_in.id,
                class: handed_in.class,
                keys: handed_in.keys,
            });
        }
        Ok(())
    }
}

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

/// Of a solution: what it is, and where it is filed. By it the stage knows that it was handed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMetadata {
    /// Its entry in the output directory.
    pub id: EntryId,
    /// What kind of death.
    pub class: Class,
    /// Which bug, and which way into it.
    pub keys: Keys,
}

libafl_bolts::impl_serdeany!(GroupMetadata);
