//! The program may be built anew while its crashes are watched for.

use super::engine::{Engine, Over};
use crate::error::CampaignError;
use crate::orders::is_of_target;
use crate::rebuild::Rebuild;
use crate::settings::When;
use ddfuzz_store::{StoreError, Triaged};

impl<'a> Engine<'a> {
    /// What is done about other builds of the program.
    pub(super) fn rebuild(&self) -> Rebuild<'a> {
        Rebuild {
            store: self.store,
            minimizing: &self.settings.minimizing,
            jobs: self.settings.jobs,
            stop: self.stop,
        }
    }

    /// Begins with the build that is on record.
    pub(super) fn begin_build(&mut self) -> Result<(), CampaignError> {
        self.gone = self.rebuild().not_the_same();
        match self.settings.when {
            When::Inline | When::Worker => self.enqueue_founders(),
            When::After | When::Off => Ok(()),
        }
    }

    /// Whether what was done has ended because the program is another one.
    pub(super) fn is_rebuilt(&mut self, done: &Result<(), CampaignError>) -> bool {
        let failed = done.as_ref().is_err_and(is_of_target);
        if !self.stopped() && failed && self.build.is_another() {
            self.over = Some(Over::Rebuilt);
        }
        !self.stopped() && self.over == Some(Over::Rebuilt)
    }

    /// Takes the program as it is now: all groups are checked, and all files are looked at again,
    /// as they would be by a call that goes on with another build.
    pub(super) fn take_build(&mut self) -> Result<(), CampaignError> {
        self.over = None;
        if self.build.settle(self.stop)? {
            self.rebuild().recheck(&self.build, self.screen)?;
        }
        if self.stopped() {
            return Ok(());
        }
        self.books.begin_anew()?;
        self.queue.begin_anew();
        self.shrinking.begin_anew();
        self.early.clear();
        (self.next, self.last_looks) = (0, 0);
        self.begin_build()
    }

    /// A group that was fixed may have come again.
    pub(super) fn note_return(&mut self, line: &Triaged) -> Result<(), StoreError> {
        if let Some(crash) = &line.crash {
            let group = (crash.kind, crash.major.short());
            if self.gone.remove(&group) {
                self.rebuild().seen_again(group.0, &group.1)?;
            }
        }
        Ok(())
    }
}
