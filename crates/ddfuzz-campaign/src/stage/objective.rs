//! [`GroupObjective`], a LibAFL objective that knows which crashes are stored; the metadata of its
//! solutions; and [`Passed`], a feedback that keeps crashes out of the corpus.

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

use crate::classifier::{FailedRun, FailedRunSlot, Submission, Suspect, SuspectClassifier};
use crate::{CampaignError, CrashSink};
use ddfuzz_exec::{Ended, Target, Way};
use ddfuzz_store::EntryId;
use ddfuzz_triage::{Class, Keys};

/// A LibAFL [`Feedback`] to be used as objective. It is interested in a run only if its crash is
/// the first of its minor key (finer hash of crashes, within a group), or its input is smaller than
/// all stored inputs of its minor key.
///
/// Each run that did not pass is run again under a tracer to be classified, which takes some
/// milliseconds; all are counted. An interesting input is stored in the crash sink and synced
/// before LibAFL receives it, and its testcase carries a [`GroupMetadata`]. The state lives in the
/// output directory, so a restarted fuzzer knows the same groups.
///
/// A run that cannot be classified (the target cannot be started, the disk is full) is interesting,
/// so that LibAFL keeps it as a solution; the stage classifies the solution when this is possible
/// again.
///
/// Two traps. LibAFL offers duplicates that an objective rejects to the feedback: put [`Passed`]
/// before the feedback. And an executor that runs the target in the fuzzer's own process calls
/// objectives in the handler of the fatal signal, where no process can be started: use LibAFL's
/// `CrashFeedback` there, and the stage alone. The executor must report exit statuses that are
/// crashes (`crash_exitcode`): a run that it calls [`ExitKind::Ok`] is no crash, unless the
/// executor puts another end into its [`FailedRunSlot`].
pub struct GroupObjective<D> {
    sink: Arc<Mutex<D>>,
    classifier: SuspectClassifier,
    failed_run: FailedRunSlot,
    /// Whether the objective stores runs that it cannot classify as flaky crashes; if false, it
    /// leaves these runs to the stage.
    stores_unclassified: bool,
    /// Metadata for the solution made from the last run: its stored entry. `None` if the input of
    /// the last run was not stored.
    stored: Option<GroupMetadata>,
    /// The last warning that a run could not be classified, so that it is logged only once; `None`
    /// if the last run could be classified.
    trouble: Option<String>,
}

impl<D: CrashSink> GroupObjective<D> {
    /// Creates an objective that submits crashes to `sink`, and classifies runs of `target` with
    /// the way of execution `way`.
    ///
    /// # Errors
    /// When the program is missing or cannot be executed.
    pub fn new(
        sink: Arc<Mutex<D>>,
        target: &Target,
        way: Way,
    ) -> Result<GroupObjective<D>, CampaignError> {
        Ok(GroupObjective {
            sink,
            classifier: SuspectClassifier::new(target, way)?,
            failed_run: FailedRunSlot::default(),
            stores_unclassified: false,
            stored: None,
            trouble: None,
        })
    }

    /// Returns this objective with the slot through which the executor passes to the objective what
    /// it observed of a failed run.
    #[must_use]
    pub fn reading(mut self, failed_run: FailedRunSlot) -> GroupObjective<D> {
        self.failed_run = failed_run;
        self
    }

    /// Makes the objective file each run that it cannot classify among the flaky crashes. This is
    /// for a fuzzer that keeps its solutions in memory, where no stage could find the input later.
    #[must_use]
    pub fn storing_unclassified(mut self) -> GroupObjective<D> {
        self.stores_unclassified = true;
        self
    }

    /// Classifies a run that did not pass and submits it to the crash sink. Returns true if LibAFL
    /// should keep the input as a solution, because it was stored or could not be classified.
    /// Returns false if the run was only counted, or is no crash.
    fn classify<EM, I, S>(
        &mut self,
        state: &mut S,
        manager: &mut EM,
        input: &I,
        exit_kind: ExitKind,
        observed: FailedRun,
    ) -> Result<bool, Error>
    where
        EM: EventFirer<I, S>,
        I: HasTargetBytes + Input,
        S: HasExecutions,
    {
        let suspect = Suspect {
            input: &input.target_bytes(),
            run: state.executions().saturating_sub(1),
            name: &input.generate_name(None),
            ended: Some(observed.ended.unwrap_or_else(|| ended_of(exit_kind))),
            observed,
        };
        let (classifier, sink) = (&mut self.classifier, &*self.sink);
        let submission = match classifier.submit(sink, &suspect) {
            Err(_) if self.stores_unclassified => classifier.submit_unclassified(sink, &suspect),
            submission => submission,
        };
        match submission {
            Ok(submission) => {
                self.trouble = None;
                if let Submission::Stored(id, crash) = submission {
                    let (class, keys) = (crash.class, crash.keys);
                    self.stored = Some(GroupMetadata { id, class, keys });
                }
                Ok(self.stored.is_some())
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

/// Converts LibAFL's exit kind to how a run ended; a crash becomes a death by signal 0, since
/// LibAFL does not tell the signal.
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
        self.stored = None;
        let observed = self.failed_run.take();
        let suspects = |ended| self.classifier.suspects(ended);
        match exit_kind {
            ExitKind::Ok if !observed.ended.is_some_and(suspects) => Ok(false),
            kind => self.classify(state, manager, input, *kind, observed),
        }
    }

    fn append_metadata(
        &mut self,
        _state: &mut S,
        _manager: &mut EM,
        _observers: &OT,
        testcase: &mut Testcase<I>,
    ) -> Result<(), Error> {
        if let Some(stored) = self.stored.take() {
            testcase.add_metadata(stored);
        }
        Ok(())
    }
}

/// A LibAFL feedback that is interested in each run that passed. Put before other feedbacks, it
/// keeps crashes out of the corpus.
///
/// LibAFL evaluates the feedback for each run that the objective has rejected. An objective that
/// knows duplicates rejects them, so a duplicate crash with new coverage would become an entry of
/// the corpus that crashes, like most of its mutants:
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

/// Metadata of a LibAFL solution that is stored in an output directory of ddfuzz. A stage does not
/// submit a solution with this metadata again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMetadata {
    /// Entry of the solution in the output directory.
    pub id: EntryId,
    /// Class of the solution's crash, such as a signal or a kind of sanitizer report.
    pub class: Class,
    /// Major and minor key (coarse and fine hash) of the solution's crash.
    pub keys: Keys,
}

libafl_bolts::impl_serdeany!(GroupMetadata);
