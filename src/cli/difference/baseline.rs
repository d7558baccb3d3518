//! The crash that is held, before anything is left out.

use std::path::Path;

use super::Sought;
use crate::cli::{Exit, Failure, min};
use crate::exec::{Target, Way};
use crate::minimize::MinimizeError;
use crate::triage::Crash;

/// The crash of the failing input; inverted, that of the passing one.
pub(super) fn crash(
    sought: &Sought,
    invert: bool,
    target: &Target,
    way: Way,
) -> Result<Crash, Failure> {
    let failing = &sought.failing;
    if !invert {
        return min::baseline(&failing.path, &failing.bytes, target, way);
    }
    let path = sought.passing.as_ref().map(|input| input.path.as_path());
    let shown = path.unwrap_or(Path::new("the empty input"));
    let crash = min::baseline(shown, sought.passing_bytes(), target, way);
    let crash = crash.map_err(|failure| match failure.exit {
        Exit::Baseline => {
            let message = format!(
                "{} does not crash, but with --invert it has to",
                shown.display()
            );
            Failure::new(Exit::Baseline, "not-passing", message)
                .hint("--invert is for a crash that something in the other input prevents")
        }
        _ => failure,
    })?;
    Ok(match path {
        Some(_) => crash,
        // The empty input has no file.
        None => Crash {
            found: None,
            ..crash
        },
    })
}

/// What to say where half of the axiom does not hold.
pub(super) fn axiom(error: MinimizeError, sought: &Sought, invert: bool) -> Failure {
    let failing = &sought.failing.path;
    let passing = sought.passing.as_ref().map(|input| &input.path);
    match (&error, invert) {
        (MinimizeError::NotFailing { .. }, true) => {
            let message = format!(
                "{} crashes too, or is unresolved: with --invert it has to end without a crash",
                failing.display()
            );
            Failure::new(Exit::Baseline, "not-failing", message)
                .path(failing)
                .hint("name an input that prevents the crash")
        }
        (MinimizeError::NotFailing { .. }, false) => Failure::from(error).path(failing),
        (MinimizeError::NotPassing { .. }, _) => {
            let failure = Failure::from(error);
            passing
                .iter()
                .fold(failure, |failure, path| failure.path(path))
        }
        _ => Failure::from(error),
    }
}
