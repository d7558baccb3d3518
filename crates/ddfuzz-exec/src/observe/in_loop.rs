//! What the runs of a loop compare: told by functions and callbacks alone, at the speed of the
//! loop.

use std::fs::File;
use std::io;
use std::path::Path;

use super::history::History;
use super::hook::Hook;
use super::image::Image;
use super::told::Told;
use ddfuzz_delta::Comparison;

/// The memory that a loop tells in.
pub(crate) struct InLoop {
    told: Told,
    hooks: Vec<Hook>,
}

impl InLoop {
    /// For the program at `path`.
    pub(crate) fn new(path: &Path) -> io::Result<InLoop> {
        let mut hooks = Image::read(path).map_or(Vec::new(), |image| image.hooks);
        hooks.retain(|hook| cfg!(target_arch = "x86_64") && hook.takes_jump());
        let mut told = Told::create()?;
        told.reset(hooks.iter())?;
        Ok(InLoop { told, hooks })
    }

    /// The memory, made ready for another server.
    pub(crate) fn file(&mut self) -> io::Result<File> {
        self.told.reset(self.hooks.iter())?;
        self.told.file()
    }

    /// A run is about to begin.
    pub(crate) fn begin(&mut self) {
        self.told.skip();
    }

    /// What it has compared: the last comparisons (at most 256, each pair of operands once) whose
    /// operands differed, oldest first.
    pub(crate) fn comparisons(&mut self) -> Vec<Comparison> {
        let mut history = History::default();
        self.told.drain(&mut history);
        history.into_comparisons()
    }
}
