//! The crash that is held, before anything is left out.

use std::path::Path;

use super::Sought;
use crate::cli::script::Interestingness;
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
        return min::baseline(Some(&failing.path), &failing.bytes, target, way);
    }
    let path = sought.passing.as_ref().map(|input| input.path.as_path());
    let shown = path.unwrap_or(Path::new("the empty input"));
    let crash = min::baseline(Some(shown), sought.passing_bytes(), target, way);
    let crash = crash.map_err(|failure| match failure.exit {
        Exit::Baseline => has_to("does not crash", "must crash", shown),
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

/// Whether the failing input is interesting; inverted, the passing one.
pub(super) fn test(
    sought: &Sought,
    invert: bool,
    test: &mut Interestingness,
) -> Result<(), Failure> {
    let mut oracle = test.oracle()?;
    let failing = &sought.failing;
    if !invert {
        return test.baseline(&mut oracle, &failing.bytes, &failing.path);
    }
    let path = sought.passing.as_ref().map(|input| input.path.as_path());
    let shown = path.unwrap_or(Path::new("the empty input"));
    let tried = test.baseline(&mut oracle, sought.passing_bytes(), shown);
    tried.map_err(|failure| match failure.kind() {
        "not-failing" => has_to("is not interesting", "must be interesting", shown),
        _ => failure,
    })
}

/// What the passing input has to do where the test is inverted.
fn has_to(what: &str, must: &str, shown: &Path) -> Failure {
    let message = format!("{} {what}; with --invert it {must}", shown.display());
    Failure::new(Exit::Baseline, "not-passing", message)
        .hint("use --invert for a failure that something in the other input prevents")
}

/// What to say where half of the axiom does not hold.
pub(super) fn axiom(error: MinimizeError, sought: &Sought, invert: bool) -> Failure {
    let failing = &sought.failing.path;
    let passing = sought.passing.as_ref().map(|input| &input.path);
    match (&error, invert) {
        (MinimizeError::NotFailing { .. }, true) => {
            let message = format!(
                "{} fails, too, or its outcome is unresolved; with --invert it must not fail",
                failing.display()
            );
            Failure::new(Exit::Baseline, "not-failing", message)
                .path(failing)
                .hint("give an input that prevents the failure")
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
