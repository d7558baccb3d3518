//! One minimization of a crash: into a file, or into an output directory.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Shown;
use super::into_file::IntoFile;
use crate::campaign::{Finished, Minimizing};
use crate::cli::Failure;
use crate::cli::results::text_of;
use crate::cli::run::campaign_of;
use crate::cli::slips::find_in_store;
use crate::cli::target::install_bundled;
use crate::minimize::MinRecord;
use crate::store::{Kind, Store};
use crate::triage::Crash;

/// The minimization of a crash.
pub(super) struct Job<'a> {
    pub(super) minimizing: Minimizing,
    pub(super) shown: &'a Shown<'a>,
    pub(super) path: &'a Path,
    pub(super) crash: Crash,
    pub(super) input: Vec<u8>,
}

impl Job<'_> {
    pub(super) fn into_file(
        self,
        result: &Path,
        log: &Path,
    ) -> Result<(Finished, MinRecord), Failure> {
        let start = self.minimizing.start_line(&self.input, &self.crash);
        let into = IntoFile {
            path: self.path,
            input: &self.input,
            result,
            log,
            shown: self.shown,
        };
        let options = self.minimizing.options(self.shown.stop);
        into.minimize(start, options, |input, journal, options| {
            let minimizing = &self.minimizing;
            self.shown.tell_of(&self.crash, minimizing.way);
            minimizing.minimize(input, &self.crash, journal, options)
        })
    }

    pub(super) fn into_directory(self, out: &Path) -> Result<(Finished, MinRecord), Failure> {
        let Minimizing { target, way, .. } = &self.minimizing;
        let mut store = Store::create_or_resume(out, campaign_of(target, *way, None))?;
        install_bundled(&mut store, target)?;
        let kind = Kind::of_class(&self.crash.class);
        let filed = store.file(kind, &self.crash, &self.input)?;
        let store = Mutex::new(store);
        self.shown.tell_of(&self.crash, *way);
        let options = self.minimizing.options(self.shown.stop);
        let options = self.shown.screen.watch(options);
        let finished = self.minimizing.entry_with(&store, &filed.id, options)?;
        let mut record = MinRecord::new(&finished.minimized, &finished.start, Duration::ZERO);
        let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        let reader = store.reader();
        let entry = match reader.entry(&filed.id)? {
            // It did not come again.
            None => reader.entry(&filed.id.among(Kind::Flaky))?,
            there => there,
        };
        if let Some(entry) = entry {
            record.output = text_of(&entry.reproducer());
            record.log = text_of(&entry.log());
        }
        find_in_store(&store, &mut record.slips)?;
        Ok((finished, record))
    }
}
