//! What a loop tells of its runs besides how they ended: coverage, comparisons, and what ran before.

use std::fs::File;
use std::io;
use std::path::Path;

use super::coverage::{Covered, Reached, Telling};
use super::observe::InLoop;
use super::page::{Page, Slot};
use super::protocol::flag;
use super::recent::Recent;
use ddfuzz_delta::Comparison;

/// What was told, and is to be told.
#[derive(Default)]
pub(crate) struct Besides {
    pub(crate) telling: Telling,
    comparing: Option<InLoop>,
    /// Each run has a process of its own.
    pub(crate) fresh: bool,
    /// The process ends after the runs of the next call.
    pub(crate) last: bool,
    covered: Vec<Covered>,
    reached: Reached,
    pub(crate) recent: Recent,
}

impl Besides {
    /// Whether comparisons are told.
    pub(crate) fn compares(&self) -> bool {
        self.comparing.is_some()
    }

    /// Whether a loop takes one input at a time.
    pub(crate) fn takes_one(&self) -> bool {
        self.compares() || self.fresh
    }

    /// Turns comparisons on or off, for the next server of the program at `path`.
    pub(crate) fn compare(&mut self, on: bool, path: &Path) -> io::Result<()> {
        self.comparing = match on {
            true => Some(InLoop::new(path)?),
            false => None,
        };
        Ok(())
    }

    /// A new server is started: gives it what it needs, and where it tells what is compared.
    pub(crate) fn begin_server(&mut self, page: &Page) -> io::Result<Option<File>> {
        page.set_reached(self.reached.ranges())?;
        self.recent.clear();
        self.comparing.as_mut().map(InLoop::file).transpose()
    }

    /// A request is about to be sent: gives its flags.
    pub(crate) fn begin_request(&mut self) -> u64 {
        let counters = match self.telling {
            Telling::Nothing => 0,
            Telling::Every => flag::COUNTERS,
            Telling::Novel => flag::NOVEL,
        };
        let counters = match self.fresh || self.last {
            true => counters | flag::LAST,
            false => counters,
        };
        match &mut self.comparing {
            Some(comparing) => {
                comparing.begin();
                counters | flag::COMPARISONS
            }
            None => counters,
        }
    }

    /// A call has begun, of which nothing is told yet.
    pub(crate) fn forget(&mut self) {
        self.covered.clear();
    }

    /// A run has come back, and kept its counters there.
    pub(crate) fn take(&mut self, run: usize, page: &Page, slot: Slot) {
        if let Some(counters) = page.kept(slot) {
            self.reached.add(&counters);
            self.covered.push(Covered { run, counters });
        }
    }

    /// The coverage that was told of.
    pub(crate) fn covered(&self) -> &[Covered] {
        &self.covered
    }

    /// What the last run compared.
    pub(crate) fn compared(&mut self) -> Vec<Comparison> {
        let comparing = self.comparing.as_mut();
        comparing.map_or(Vec::new(), InLoop::comparisons)
    }
}
