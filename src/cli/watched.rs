//! A watch from its output directory to its result, whoever drops the files.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use super::reports::{ReportArgs, target_name};
use super::run::{Asked, Before, Told, open_store, report, screen};
use super::ui::campaign::Heading;
use super::{Exit, Failure, Output};
use crate::campaign::watch::{Producer, Watching, watch};
use crate::exec::Started;

/// What is watched, and where it is told.
pub struct Watched<'a> {
    /// What is watched.
    pub settings: &'a Watching,
    /// The output directory.
    pub out: &'a Path,
    /// Whether its campaign is gone on with.
    pub resume: bool,
    /// The seed, where there is one.
    pub seed: Option<u64>,
    /// Who drops the files, for people.
    pub engine: String,
    /// What runs are called.
    pub unit: &'static str,
    /// Lines instead of the whole screen.
    pub plain: bool,
    /// Files for CI servers.
    pub reports: &'a ReportArgs,
    /// Turns true when the user stops it.
    pub stop: &'a Arc<AtomicBool>,
}

impl Watched<'_> {
    /// Watches until it is over, and shows the result. `start` begins to drop files, once the
    /// output directory is there; `started` is the probe of the target.
    pub fn run<P: Producer>(
        self,
        started: Started,
        start: impl FnOnce() -> Result<P, Failure>,
        output: &Output,
    ) -> Result<Exit, Failure> {
        let Watching { minimizing, .. } = self.settings;
        let (target, way) = (&minimizing.target, minimizing.way);
        let asked = Asked {
            out: self.out,
            resume: self.resume,
            seed: self.seed,
        };
        let (store, campaign) = open_store(&asked, target, way)?;
        let before = Before::of(&store, self.resume && store.resumed())?;
        let heading = Heading {
            target: target_name(target),
            way: way.to_string(),
            engine: self.engine,
            seed: self.seed,
            out: self.out.to_string_lossy().into_owned(),
        };
        let mut screen = screen(self.plain, self.unit, heading, &store, self.stop, output)?;
        let store = Mutex::new(store);
        let mut producer = start()?;
        let (settings, id) = (self.settings, &campaign.id);
        let summary = watch(&store, id, settings, &mut producer, &mut *screen, self.stop);
        drop((producer, screen));
        // Only now: while it lives, what it has unpacked is there for the workers.
        drop(started);
        let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        let told = Told {
            unit: self.unit,
            minimizing,
            known: &settings.known,
            reports: self.reports,
            out: self.out,
            before,
            complaints: Vec::new(),
            tells_coverage: false,
        };
        report(&summary?, &store, &told, output)
    }
}
