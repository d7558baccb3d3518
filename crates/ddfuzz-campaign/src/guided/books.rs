//! What the process that writes the output directory knows: the ledger, and the desk.

use std::sync::Mutex;

use crate::ledger::{Ledger, lock};
use crate::minimizing::Variants;
use crate::stage::{LocalDesk, SharedStore};
use ddfuzz_store::{Kind, KnownGroups, Store, StoreError};
use ddfuzz_triage::Key;

type SharedDesk<'a> = LocalDesk<SharedStore<&'a Mutex<Store>>>;

/// The books of a campaign.
pub(super) struct Books<'a> {
    store: &'a Mutex<Store>,
    pub(super) ledger: Ledger<'a>,
    pub(super) desk: SharedDesk<'a>,
    known: &'a KnownGroups,
    variants: Variants,
}

impl<'a> Books<'a> {
    /// Opens them.
    pub(super) fn open(
        store: &'a Mutex<Store>,
        campaign: &str,
        mut ledger: Ledger<'a>,
        known: &'a KnownGroups,
        variants: Variants,
    ) -> Result<Books<'a>, StoreError> {
        let desk = open_desk(store, campaign, known, variants)?;
        // A killed call may have written the counts of groups after its last checkpoint.
        for kind in Kind::ALL {
            for group in lock(store).reader().groups(kind)? {
                let told = group.record.seen.get(campaign).copied().unwrap_or(0);
                ledger
                    .checkpoint
                    .have_counted(kind, group.record.major.short(), told);
            }
        }
        Ok(Books {
            store,
            ledger,
            desk,
            known,
            variants,
        })
    }

    /// Reads anew what waits to be minimized.
    pub(super) fn reopen(&mut self) -> Result<(), StoreError> {
        let campaign = self.desk.campaign().to_owned();
        self.desk.flush()?;
        self.desk = open_desk(self.store, &campaign, self.known, self.variants)?;
        Ok(())
    }

    /// Counts runs that ended in a group.
    pub(super) fn count(&mut self, kind: Kind, major: Key, runs: u64) {
        let seen = &mut self.ledger.checkpoint;
        seen.count_runs(kind, major.short(), runs);
    }

    /// Whether the user does not want to hear of this group.
    pub(super) fn is_muted(&self, major: &str) -> bool {
        let store = lock(self.store);
        store.reader().is_muted(Kind::Crash, major, self.known)
    }
}

fn open_desk<'a>(
    store: &'a Mutex<Store>,
    campaign: &str,
    known: &KnownGroups,
    variants: Variants,
) -> Result<SharedDesk<'a>, StoreError> {
    let desk = LocalDesk::new(SharedStore::new(store), campaign)?;
    Ok(desk.muting(known.clone()).varying(variants))
}
