//! A minimization whose result is a file, whatever the oracle.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use super::Shown;
use crate::campaign::Finished;
use crate::cli::results::{forget, text_of};
use crate::cli::slips::{keep_slip, slip_on_file, unlisted};
use crate::cli::{Exit, Failure};
use crate::files::atomic;
use crate::minimize::log::{OsText, StartLine};
use crate::minimize::{Journal, MinRecord, MinimizeError, Minimized, Options};

/// What is minimized, and where to.
pub(super) struct IntoFile<'a> {
    /// The input's file.
    pub(super) path: &'a Path,
    pub(super) input: &'a [u8],
    pub(super) result: &'a Path,
    pub(super) log: &'a Path,
    pub(super) shown: &'a Shown<'a>,
}

impl IntoFile<'_> {
    /// Minimizes, or goes on with a minimization whose log is there. `options` are the budgets; `by`
    /// is what minimizes, whatever the oracle and its workers.
    pub(super) fn minimize(
        &self,
        mut start: StartLine,
        options: Options<'_>,
        by: impl FnOnce(&[u8], &mut Journal, &mut Options<'_>) -> Result<Minimized, MinimizeError>,
    ) -> Result<(Finished, MinRecord), Failure> {
        let (result, log) = (self.result, self.log);
        let absolute = std::path::absolute(self.path);
        start.input = absolute.ok().map(|path| OsText(path.into()));
        let begun = log.exists();
        let mut journal =
            Journal::resume(log, start).map_err(|error| Failure::from(error).path(log))?;
        let start: StartLine = journal.start().clone();
        let slips = RefCell::new(Vec::new());
        let mut options = Options {
            on_reduce: Box::new(|best| Ok(atomic::write(result, best)?)),
            on_slip: Box::new(|slip, _| {
                slips
                    .borrow_mut()
                    .push(keep_slip(result, &slip.input, &slip.keys)?);
                Ok(())
            }),
            ..self.shown.screen.watch(options)
        };
        let minimized = by(self.input, &mut journal, &mut options);
        let minimized = minimized.map_err(|error| self.failure(error, begun))?;
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
        for path in unlisted(&slips.borrow(), &record.slips) {
            self.shown.tell_of_stray(path);
        }
        Ok((Finished { start, minimized }, record))
    }

    fn failure(&self, error: MinimizeError, begun: bool) -> Failure {
        let of_input = matches!(
            error,
            MinimizeError::NotFailing { .. } | MinimizeError::Alternating { .. }
        );
        if !begun {
            forget(self.log, &error);
            if matches!(error, MinimizeError::Alternating { .. }) && is_empty(self.result) {
                // What seemed to be the result for a moment.
                let _ = std::fs::remove_file(self.result);
            }
        }
        let failure = Failure::from(error);
        match of_input {
            true => failure.path(self.path),
            false => failure,
        }
    }
}

fn is_empty(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|facts| facts.is_file() && facts.len() == 0)
}
