//! The counts of all steps, for the result.

use crate::health::{FailingInput, Quarantine};
use crate::measure::Contents;
use crate::{Amount, Excluded};
use ddfuzz_exec::Ended;
use ddfuzz_model::files::OsText;
use ddfuzz_store::report::clean::{CleanGroup, Distributions, Step, StepName, UnreadFile};

/// Unreadable files that are named at most.
const NAMED: usize = 16;

/// The counts of all steps.
#[derive(Debug, Default)]
pub(super) struct CleanTotals {
    pub before: Amount,
    pub duplicates: Amount,
    pub unreadable: Amount,
    pub oversized: Amount,
    pub crashes: Amount,
    pub hangs: Amount,
    pub ooms: Amount,
    pub flaky: Amount,
    pub groups: Vec<CleanGroup>,
    pub unread: Vec<UnreadFile>,
    pub runs: u64,
    pub known: u64,
    pub spread: Distributions,
}

impl CleanTotals {
    /// Counts the runs that measuring took.
    pub fn runs_of(&mut self, contents: &Contents) {
        self.runs += contents.progress().runs;
    }

    /// Counts the files of the corpus.
    pub fn begin(&mut self, contents: &Contents) {
        self.runs_of(contents);
        self.known = contents.progress().reused;
        let tally = contents.tally();
        // A file that was listed was there, even if it was gone when it was to be read: else the
        // steps would take out what was never in.
        self.before = tally.before + tally.vanished.amount();
        self.duplicates = tally.duplicates;
        self.oversized = tally.oversized.amount();
        let unread: [&Excluded; 3] = [&tally.unread, &tally.vanished, &tally.listing.unread];
        self.unreadable = tally.unread.amount() + tally.vanished.amount();
        for aside in [&tally.oversized].into_iter().chain(unread) {
            let room = NAMED.saturating_sub(self.unread.len());
            self.unread
                .extend(aside.examples().take(room).map(|(path, why)| UnreadFile {
                    file: OsText::from(path),
                    why: why.to_owned(),
                }));
        }
    }

    /// Counts a file that cannot be read any more.
    pub fn gone(&mut self, path: &std::path::Path, bytes: u64) {
        self.unreadable.add(bytes);
        if self.unread.len() < NAMED {
            self.unread.push(UnreadFile {
                file: OsText::from(path),
                why: "it was removed or changed".to_owned(),
            });
        }
    }

    /// Counts a failing input that is not filed.
    pub fn unfiled(&mut self, ended: Ended, bytes: u64) {
        match ended {
            Ended::Timeout => self.hangs.add(bytes),
            Ended::OutOfMemory => self.ooms.add(bytes),
            _ => self.crashes.add(bytes),
        }
    }

    /// Counts failing inputs that were filed.
    pub fn filed(&mut self, failing: &[FailingInput], filed: &Quarantine) {
        for input in failing
            .iter()
            .filter(|input| filed.gone.contains(&input.content))
        {
            self.gone(&input.path, input.size);
        }
        self.crashes = self.crashes + filed.crashes;
        self.hangs = self.hangs + filed.hangs;
        self.ooms = self.ooms + filed.ooms;
        self.flaky = self.flaky + filed.flaky;
        for held in &filed.groups {
            let folder = held.kind.folder().to_owned();
            let major = held.major.short();
            let count = held.amount.files;
            let class = held.class.to_string();
            self.group(CleanGroup {
                folder,
                major,
                class,
                count,
            });
        }
    }

    /// Adds a group, or its contents where the group is known.
    fn group(&mut self, new: CleanGroup) {
        match self.groups.iter_mut().find(|known| is_same(known, &new)) {
            Some(known) => known.count += new.count,
            None => self.groups.push(new),
        }
    }

    /// Whether this group is counted.
    pub fn has_group(&self, group: &CleanGroup) -> bool {
        self.groups.iter().any(|known| is_same(known, group))
    }

    /// Adds a group that a trimming candidate ran into.
    pub fn slipped(&mut self, group: CleanGroup) {
        self.group(CleanGroup { count: 0, ..group });
    }

    /// The steps before the subset, and what each left out.
    pub fn steps(&self) -> Vec<Step> {
        let crashes = self.crashes + self.flaky;
        let steps = [
            (StepName::Duplicates, self.duplicates),
            (StepName::Unreadable, self.unreadable),
            (StepName::Oversized, self.oversized),
            (StepName::Crashes, crashes),
            (StepName::Hangs, self.hangs),
            (StepName::Ooms, self.ooms),
        ];
        let steps = steps.map(|(step, Amount { files, bytes })| Step { step, files, bytes });
        steps.to_vec()
    }

    /// The files that these steps did not leave out.
    pub fn left(&self) -> Amount {
        let steps = self.steps().into_iter();
        steps.fold(self.before, |left, step| Amount {
            files: left.files.saturating_sub(step.files),
            bytes: left.bytes.saturating_sub(step.bytes),
        })
    }
}

fn is_same(one: &CleanGroup, other: &CleanGroup) -> bool {
    one.folder == other.folder && one.major == other.major
}
