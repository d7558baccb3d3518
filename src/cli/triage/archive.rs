//! The output directory of a triage: what is filed, and what is done.

use std::path::Path;

use super::tally::Tally;
use crate::cli::Failure;
use crate::cli::run::campaign_of;
use crate::cli::target::install_bundled;
use crate::exec::{Target, Way};
use crate::minimize::log::ContentHash;
use crate::report::Trace;
use crate::store::{CrashLine, Entry, EntryId, Kind, Store, StoreError, TriageJournal, Triaged};
use crate::triage::{Crash, Found};

/// An output directory that is written while inputs are run.
pub struct Archive {
    store: Store,
    journal: TriageJournal,
    campaign: String,
    /// As its `main` takes one input, for scripts.
    target: Target,
}

impl Archive {
    /// Opens the directory; with `resume`, `tally` is told what was done there before.
    pub fn open(
        out: &Path,
        target: &Target,
        way: Way,
        resume: bool,
        tally: &mut Tally,
    ) -> Result<Archive, Failure> {
        let fresh = campaign_of(target, way, None);
        let mut store = Store::create_or_resume(out, fresh.clone())?;
        let (journal, mut lines) = store.triage_journal()?;
        lines.retain(|line| resume && tally.is_of_target(line));
        // Counts go on where they were, whatever campaign has begun there since.
        let campaign = match lines.last() {
            Some(line) => line.campaign.clone(),
            None => fresh.id.clone(),
        };
        if lines.is_empty() && store.resumed() {
            store.begin(fresh)?;
        }
        lines.into_iter().for_each(|line| tally.recall(line));
        install_bundled(&mut store, target)?;
        // What the script runs without ddfuzz is its `main`.
        let target = target.by_main();
        Ok(Archive {
            store,
            journal,
            campaign,
            target,
        })
    }

    /// Files a crash of the file `path`.
    pub fn file(
        &mut self,
        kind: Kind,
        crash: &Crash,
        path: &Path,
        input: &[u8],
    ) -> Result<(), StoreError> {
        let found = Some(Found::File {
            path: path.to_owned(),
        });
        let crash = Crash {
            found,
            ..crash.clone()
        };
        let filed = self.store.file(kind, &crash, input)?;
        self.store.write_reproduce(&filed.id, &self.target)?;
        Ok(())
    }

    /// Whether this content is filed in the place of this line.
    pub fn has(&self, line: &CrashLine, input: ContentHash) -> bool {
        self.entry(line, input).is_some()
    }

    /// The trace of the crash that is filed in the place of this line.
    pub fn trace(&self, line: &CrashLine, input: ContentHash) -> Option<Trace> {
        let entry = self.entry(line, input)?;
        Some(Trace::of(&entry.crash, Some(&entry.folder)))
    }

    fn entry(&self, line: &CrashLine, input: ContentHash) -> Option<Entry> {
        let (major, minor) = (line.major.short(), line.minor.short());
        let hash = input.short().to_string();
        let id = EntryId::from_names(line.kind, &major, &minor, &hash)?;
        self.store.reader().entry(&id).ok().flatten()
    }

    /// Notes what is done.
    pub fn note(&mut self, line: Triaged) -> Result<(), StoreError> {
        let campaign = self.campaign.clone();
        self.journal.add(&Triaged { campaign, ..line })
    }

    /// Writes how often each group was met, and the journal through to the device.
    pub fn close(mut self, tally: &Tally) -> Result<(), StoreError> {
        self.journal.sync()?;
        for ((kind, major), count) in tally.seen() {
            match self.store.set_seen(kind, major, &self.campaign, count) {
                // Somebody has tidied up meanwhile, or the input is not to be read any more.
                Err(StoreError::NoSuch { .. }) => {}
                answer => answer?,
            }
        }
        Ok(())
    }
}
