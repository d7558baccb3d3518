//! One minimization of a crash: into a file, or into an output directory.

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::slips::{keep_slip, slip_on_file};
use super::{Args, text_of};
use crate::campaign::{Finished, Minimizing};
use crate::cli::run::campaign_of;
use crate::cli::target::install_bundled;
use crate::cli::{Exit, Failure};
use crate::files::atomic;
use crate::minimize::log::{OsText, StartLine};
use crate::minimize::{Journal, MinRecord, MinimizeError, Options, minimize};
use crate::store::{Kind, Store};
use crate::triage::Crash;

/// A minimization about to be made.
pub(super) struct Job<'a> {
    pub(super) minimizing: Minimizing,
    pub(super) stop: &'a AtomicBool,
    pub(super) args: &'a Args,
    pub(super) crash: Crash,
    pub(super) input: Vec<u8>,
}

impl Job<'_> {
    pub(super) fn into_file(
        self,
        result: &Path,
        log: &Path,
    ) -> Result<(Finished, MinRecord), Failure> {
        let mut start = self.minimizing.start_line(&self.input, &self.crash);
        let absolute = std::path::absolute(&self.args.input);
        start.input = absolute.ok().map(|path| OsText(path.into()));
        let begun = log.exists();
        let mut journal =
            Journal::resume(log, start).map_err(|error| Failure::from(error).path(log))?;
        let start: StartLine = journal.start().clone();
        let mut oracle = self.minimizing.oracle(&self.crash)?;
        let slips = RefCell::new(Vec::new());
        let mut options = Options {
            on_reduce: Box::new(|best| Ok(atomic::write(result, best)?)),
            on_slip: Box::new(|slip, _| {
                slips
                    .borrow_mut()
                    .push(keep_slip(result, &slip.input, &slip.keys)?);
                Ok(())
            }),
            ..self.minimizing.options(self.stop)
        };
        let minimized = minimize(&self.input, &mut oracle, &mut journal, &mut options);
        let minimized = minimized.map_err(|error| {
            if !begun && matches!(error, MinimizeError::NotFailing { .. }) {
                // Nothing was tested, and the log would be in the way of the same command. That it
                // cannot be removed is no news beside the error.
                let _ = std::fs::remove_file(log);
            }
            self.failure(error)
        })?;
        drop(options);
        atomic::write(result, &minimized.text)
            .map_err(|error| Failure::new(Exit::Usage, "output", error).path(result))?;
        let mut record = MinRecord::new(&minimized, &start, Duration::ZERO);
        record.output = text_of(result);
        record.log = text_of(log);
        record.slips = record
            .slips
            .iter()
            .map(|slip| slip_on_file(result, slip, &slips.borrow()))
            .collect();
        Ok((Finished { start, minimized }, record))
    }

    fn failure(&self, error: MinimizeError) -> Failure {
        let of_input = matches!(error, MinimizeError::NotFailing { .. });
        let failure = Failure::from(error);
        match of_input {
            true => failure.path(&self.args.input),
            false => failure,
        }
    }

    pub(super) fn into_directory(self, out: &Path) -> Result<(Finished, MinRecord), Failure> {
        let Minimizing { target, way, .. } = &self.minimizing;
        let mut store = Store::create_or_resume(out, campaign_of(target, *way, None))?;
        install_bundled(&mut store, target)?;
        let filed = store.file(Kind::Crash, &self.crash, &self.input)?;
        let store = Mutex::new(store);
        let finished = self.minimizing.entry(&store, &filed.id, self.stop)?;
        let mut record = MinRecord::new(&finished.minimized, &finished.start, Duration::ZERO);
        let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = store.reader().entry(&filed.id)? {
            record.output = text_of(&entry.reproducer());
            record.log = text_of(&entry.log());
        }
        for slip in &mut record.slips {
            let entries = store.reader().entries(Kind::Crash, &slip.major)?;
            let found = entries.iter().find(|entry| entry.id.minor() == slip.minor);
            slip.file = found.and_then(|entry| text_of(&entry.original()));
        }
        Ok((finished, record))
    }
}
