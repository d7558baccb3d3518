//! What does not end well: it goes to its groups.

use super::books::Books;
use super::{CleanError, Doing, Engine, Watcher};
use crate::health::{Ill, Quarantine, Quarantining, quarantine};
use crate::measure::Contents;
use ddfuzz_campaign::{Progress, Screen};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_store::report::GroupView;

/// What the one who files has to say.
struct Notes<'a>(&'a mut dyn Watcher);

impl Screen for Notes<'_> {
    fn progress(&mut self, _: &Progress) {}

    fn minimized(&mut self, _: &GroupView) {}

    fn note(&mut self, text: &str) {
        self.0.say(text);
    }
}

impl Engine<'_> {
    /// The numbers of the contents that ended well, and of those that did so on each try behind
    /// the first; the others are filed.
    pub(super) fn sort_out(
        &self,
        contents: &Contents,
        watcher: &mut dyn Watcher,
        books: &mut Books,
    ) -> Result<(Vec<usize>, Vec<usize>), CleanError> {
        let (mut healthy, mut ills, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..contents.len() {
            if !contents.is_suspicious(number) {
                healthy.push(number);
                continue;
            }
            let id = contents.id(number);
            ills.push(Ill {
                path: contents.path(number)?,
                content: ContentHash::from_bytes(*id.blake3()),
                size: id.size(),
                ended: contents.seen(number)?.ended,
                again: false,
            });
            numbers.push(number);
        }
        let well = self.file(&ills, watcher, books)?;
        let recovered = (ills.iter().zip(numbers))
            .filter(|(ill, _)| well.contains(&ill.content))
            .map(|(_, number)| number);
        Ok((healthy, recovered.collect()))
    }

    /// Files what does not end well, and minimizes its groups; gives what ended well after all.
    pub(super) fn file(
        &self,
        ills: &[Ill],
        watcher: &mut dyn Watcher,
        books: &mut Books,
    ) -> Result<Vec<ContentHash>, CleanError> {
        if ills.is_empty() {
            return Ok(Vec::new());
        }
        let Some(groups) = &self.cleaning.groups else {
            ills.iter()
                .for_each(|ill| books.unfiled(ill.ended, ill.size));
            return Ok(Vec::new());
        };
        let inputs = ills.len() as u64;
        watcher.doing(Doing::Filing { inputs });
        let filed = self.quarantine(ills, groups, watcher)?;
        books.filed(ills, &filed);
        Ok(filed.well)
    }

    /// Minimizes the groups of the campaign that are left to be, those that were only slipped into
    /// included.
    pub(super) fn minimize_rest(&self, watcher: &mut dyn Watcher) -> Result<(), CleanError> {
        let Some(groups) = &self.cleaning.groups else {
            return Ok(());
        };
        self.quarantine(&[], groups, watcher).map(drop)
    }

    fn quarantine(
        &self,
        ills: &[Ill],
        groups: &Quarantining,
        watcher: &mut dyn Watcher,
    ) -> Result<Quarantine, CleanError> {
        let mut notes = Notes(watcher);
        let (store, stop) = (self.store, self.stop);
        let filed = quarantine(store, self.campaign, ills, groups, &mut notes, stop)?;
        match filed.interrupted {
            true => Err(CleanError::Interrupted),
            false => Ok(filed),
        }
    }
}
