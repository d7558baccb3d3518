//! Crashes that candidates run into while kept files are trimmed.

use std::collections::BTreeSet;

use super::books::Books;
use super::{CleanError, Engine, Watcher};
use crate::health::file_slip;
use crate::lock::lock;
use ddfuzz_exec::ExecError;
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_minimize::{CallbackError, Slip};
use ddfuzz_store::report::clean::CleanGroup;
use ddfuzz_store::{Entry, Kind, StoreError};
use ddfuzz_triage::{Found, Triager, Verdict};

/// A group of the output directory: what is told of it, and its entries.
struct Held {
    told: CleanGroup,
    entries: Vec<Entry>,
}

impl Held {
    /// Whether one of its entries was run into from an input with one of these names.
    fn is_slip_of(&self, names: &BTreeSet<String>) -> bool {
        let found = self.entries.iter().map(|entry| &entry.crash.found);
        found.flatten().any(|found| match found {
            Found::Slip { of, .. } => names.contains(of),
            _ => false,
        })
    }
}

impl Engine<'_> {
    /// Files a candidate of `text` that has crashed.
    pub(super) fn file_slip_of(
        &self,
        text: &[u8],
        slip: &Slip,
        test: Option<u64>,
    ) -> Result<(), CallbackError> {
        let (of, slip) = (ContentHash::of(text), self.slip_of_filed(slip)?);
        file_slip(self.store, &self.cleaning.filed_for, of, &slip, test)?;
        Ok(())
    }

    /// Minimizes the groups that are left to be, and tells of those that candidates of the trimmed
    /// contents have run into. Who filed them does not matter: this call, or one that was killed
    /// behind it and whose trimmed files are taken as they are.
    pub(super) fn take_slips(
        &self,
        trimmed: BTreeSet<String>,
        watcher: &mut dyn Watcher,
        books: &mut Books,
    ) -> Result<(), CleanError> {
        let waits = |held: &Held| held.entries.iter().all(|entry| entry.minimized.is_none());
        if self.held()?.iter().any(waits) {
            self.minimize_rest(watcher)?;
        }
        let mut names = trimmed;
        let mut rest = self.held()?;
        // Minimizing a group may run into further ones, and so on.
        loop {
            let (told, others): (Vec<Held>, Vec<Held>) = (rest.into_iter())
                .partition(|held| books.tells_of(&held.told) || held.is_slip_of(&names));
            if told.is_empty() {
                return Ok(());
            }
            for held in told {
                names.extend(held.entries.iter().map(|entry| entry.id.hash().to_owned()));
                books.slipped(held.told);
            }
            rest = others;
        }
    }

    /// The groups of the output directory, by kind and key.
    fn held(&self) -> Result<Vec<Held>, StoreError> {
        let reader = lock(self.store).reader().clone();
        let mut all = Vec::new();
        for kind in Kind::ALL {
            for group in reader.groups(kind)? {
                let major = group.record.major.short();
                all.push(Held {
                    entries: reader.entries(kind, &major)?,
                    told: CleanGroup {
                        folder: kind.folder().to_owned(),
                        class: group.record.class.to_string(),
                        major,
                        count: 0,
                    },
                });
            }
        }
        Ok(all)
    }

    /// The slip as the target that crashes are filed for has it: one that does not crash there has
    /// no record.
    fn slip_of_filed(&self, slip: &Slip) -> Result<Slip, ExecError> {
        let cleaning = self.cleaning;
        if cleaning.target == cleaning.filed_for || slip.crash.is_none() {
            return Ok(slip.clone());
        }
        let mut triager = Triager::of_target(&cleaning.filed_for, cleaning.way)?;
        let crash = match triager.examine(&slip.input)? {
            Verdict::Crash(crash) => Some(crash),
            Verdict::Flaky { .. } => None,
        };
        Ok(Slip {
            crash,
            ..slip.clone()
        })
    }
}
