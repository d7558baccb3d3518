//! The step that separates failing inputs: they are stored in groups, and are not kept.

use std::collections::HashSet;

use super::result::CleanTotals;
use super::{CleanError, CleanPhase, Engine};
use crate::measure::Contents;
use crate::quarantine::{FailingInput, Quarantine, QuarantineSettings, quarantine};
use ddfuzz_campaign::{Progress, Screen};
use ddfuzz_minimize::log::ContentHash;

/// A screen for triage within a cleanup: shows its messages on the screen of the cleanup, and drops
/// its progress.
struct Notes<'a>(&'a mut dyn Screen<CleanPhase>);

impl Screen for Notes<'_> {
    fn progress(&mut self, _: &Progress) {}

    fn note(&mut self, text: &str) {
        self.0.note(text);
    }
}

impl Engine<'_> {
    /// Stores the failing inputs of a corpus in crash groups. Returns the numbers of the contents
    /// that may be kept, in two lists: those whose first run did not fail, and those whose first
    /// run failed, but whose further runs did not.
    pub(super) fn sort_out(
        &self,
        contents: &Contents,
        screen: &mut dyn Screen<CleanPhase>,
        totals: &mut CleanTotals,
    ) -> Result<(Vec<usize>, Vec<usize>), CleanError> {
        let (mut healthy, mut failing, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..contents.len() {
            if !contents.is_suspicious(number) {
                healthy.push(number);
                continue;
            }
            let id = contents.id(number);
            failing.push(FailingInput {
                path: contents.path(number)?,
                content: ContentHash::from_bytes(*id.blake3()),
                size: id.size(),
                ended: contents.first_run(number)?.ended,
                passed_before: false,
            });
            numbers.push(number);
        }
        let well = self.file(&failing, screen, totals)?;
        let recovered = (failing.iter().zip(numbers))
            .filter(|(input, _)| well.contains(&input.content))
            .map(|(_, number)| number);
        Ok((healthy, recovered.collect()))
    }

    /// Stores failing inputs of a corpus in crash groups and minimizes each new group; if the user
    /// wants no groups, only counts the inputs in `totals`. Returns the hashes of inputs that did
    /// not fail when they were run again.
    pub(super) fn file(
        &self,
        failing: &[FailingInput],
        screen: &mut dyn Screen<CleanPhase>,
        totals: &mut CleanTotals,
    ) -> Result<Vec<ContentHash>, CleanError> {
        if failing.is_empty() {
            return Ok(Vec::new());
        }
        let Some(groups) = &self.cleaning.groups else {
            failing
                .iter()
                .for_each(|input| totals.unfiled(input.ended, input.size));
            return Ok(Vec::new());
        };
        let inputs = failing.len() as u64;
        screen.progress(&CleanPhase::Filing { inputs });
        let filed = self.quarantine(failing, groups, screen)?;
        totals.count_filed(failing, &filed);
        totals.unstored += self.unstored(&filed)?;
        Ok(filed.well)
    }

    /// Returns the number of failing contents that are stored in no entry of the output directory.
    /// There are such contents because a group does not store every input that fails, but one for
    /// each minor key (finer hash of crashes).
    fn unstored(&self, filed: &Quarantine) -> Result<u64, CleanError> {
        let groups = self.group_entries()?;
        let entries = groups.iter().flat_map(|group| &group.entries);
        let stored: HashSet<&str> = entries.map(|entry| entry.id.hash()).collect();
        let hashes = filed.stored.iter().map(|(content, ..)| content.short());
        let missing = hashes.filter(|hash| !stored.contains(&*hash.to_string()));
        Ok(missing.count() as u64)
    }

    /// Minimizes the crash groups of the campaign that are not minimized yet, including crashes
    /// that trimming caused.
    pub(super) fn minimize_rest(
        &self,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<(), CleanError> {
        let Some(groups) = &self.cleaning.groups else {
            return Ok(());
        };
        self.quarantine(&[], groups, screen).map(drop)
    }

    fn quarantine(
        &self,
        failing: &[FailingInput],
        groups: &QuarantineSettings,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<Quarantine, CleanError> {
        let mut notes = Notes(screen);
        let (store, stop) = (self.store, self.stop);
        let filed = quarantine(store, self.campaign, failing, groups, &mut notes, stop)?;
        match filed.interrupted {
            true => Err(CleanError::Interrupted),
            false => Ok(filed),
        }
    }
}
