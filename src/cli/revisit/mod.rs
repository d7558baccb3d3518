//! `ddfuzz revisit`: the fuzz studies of 1990 to 2020 again, on this machine.

mod args;
mod compare;
mod directory;
mod plan;
pub mod reports;
mod result;
mod resumed;
mod sandbox;

use std::sync::{Mutex, PoisonError};

use super::{Exit, Failure, Output, known, signals, ui};
use crate::campaign::study::{self, StudySettings};
pub use args::Args;

/// Runs the command.
pub fn run(args: Args, output: &Output) -> Result<Exit, Failure> {
    if args.compare.is_asked() {
        return args.compare.run(output);
    }
    let output = &args.reports.check(output)?;
    let args = args.resumed()?;
    let planned = plan::plan(&args, output)?;
    if args.dry_run {
        return Ok(plan::show(&planned, output));
    }
    let held = sandbox::settle(&args, output)?;
    let known = known::read_both(args.known.as_deref(), None)?;
    let stop = signals::stop_flag()?;
    let deadline = signals::deadline(args.total_time, &stop)?;
    let limits = args.limits();
    let (store, campaign) = directory::open(&args, limits)?;
    let resumed = args.resume && store.resumed();
    let settings = StudySettings {
        known,
        deadline,
        ..plan::settings(&args, planned, &campaign, held)
    };
    output.detail(&format!("seed {}", settings.plan.seed));
    let mut screen = ui::Line::new(output);
    let store = Mutex::new(store);
    let summary = study::run(&store, &settings, &mut screen, &stop);
    drop(screen);
    let store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
    result::report(&summary?, &store, resumed, &args, output)
}
