//! Where a campaign shows its course.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Args;
use crate::campaign::{Generator, Screen, Settings};
use crate::cli::reports::target_name;
use crate::cli::ui::campaign::{Full, Heading};
use crate::cli::{Failure, Output, show, ui};
use crate::store::{Kind, Store};

/// What the screen shows of the campaign from the beginning.
pub(super) fn heading(args: &Args, settings: &Settings) -> Heading {
    Heading {
        target: target_name(&settings.minimizing.target),
        way: settings.minimizing.way.to_string(),
        engine: match settings.generator {
            Generator::Classic => "classic generator".to_owned(),
            Generator::Guided => "guided by coverage".to_owned(),
        },
        seed: Some(settings.seed),
        out: args.out.to_string_lossy().into_owned(),
    }
}

/// The whole terminal where there is one, else lines, in which runs are told as `unit`.
pub fn screen(
    plain: bool,
    unit: &'static str,
    heading: Heading,
    store: &Store,
    stop: &Arc<AtomicBool>,
    output: &Output,
) -> Result<Box<dyn Screen>, Failure> {
    let mut known = Vec::new();
    if !plain {
        for kind in Kind::ALL {
            known.extend(show::views(store.reader(), kind)?);
        }
        if let Some(full) = Full::take(output, heading, store.reader(), stop, &known) {
            return Ok(Box::new(full));
        }
    }
    Ok(Box::new(ui::Line::new(output).counting(unit)))
}
