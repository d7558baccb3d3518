//! The crash whose cause `ddfuzz changes` searches for, and the program that crashes: learned from
//! the new version, or from the log of an earlier call.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::ChangesArgs;
use super::search_log::is_refuted;
use super::subject::{Subject, is_expected};
use crate::changes::{BuildBase, ChangesError, Recipe, Report, Repository, TestKind, Workers};
use crate::cli::Failure;
use crate::minimize::log::Log;

/// Sets the crash whose cause is searched for, and whether the program lies in the versions'
/// directories, to what the log `logged` of an earlier call says. Does nothing if that call has
/// ended with a refuted check, and with `--run`; the crash stays with `--group`.
pub(super) fn recall_failure(args: &ChangesArgs, recipe: &Recipe, logged: Option<&Log>) {
    let TestKind::Program {
        program,
        is_inside,
        held,
        ..
    } = &recipe.test
    else {
        return;
    };
    let logged = logged.filter(|log| !is_refuted(log));
    let start = logged.and_then(|log| log.start.as_ref());
    if let Some(logged) = start.and_then(|start| start.target.program.as_ref()) {
        let _ = is_inside.set(logged.0 == inside(program) && logged.0 != *program);
    }
    if let Some(start) = start.filter(|_| args.group.is_none())
        && let (Some(key), Some(changes)) = (&start.key, &start.changes)
    {
        let _ = held.set(crate::changes::HeldFailure {
            class: key.class.to_string(),
            major: key.major,
            minor: key.minor,
            stable: changes.stable.as_ref().and_then(|key| key.parse().ok()),
        });
    }
}

/// Returns the path by which a program of the versions' directories is recorded, which is not
/// looked for in PATH: `program` itself if it has a slash, else the name behind `./`.
pub(super) fn inside(program: &OsStr) -> OsString {
    match program.as_bytes().contains(&b'/') {
        true => program.to_owned(),
        false => Path::new(".").join(program).into_os_string(),
    }
}

/// Builds and runs the new version to learn the crash whose cause is searched for, unless that
/// crash is known by `--group` or by the log of an earlier call; and to learn whether a program
/// that is given by a name lies in the version's directory. Fails if the new version does not
/// crash, or not as `--expect` says. Does nothing with `--run`.
pub(super) fn learn_failure(
    args: &ChangesArgs,
    subject: &Subject,
    recipe: &Recipe,
    repository: &Repository,
    (old, new): (&str, &str),
    workers: &mut Workers,
) -> Result<(), Failure> {
    let TestKind::Program {
        program,
        is_inside,
        held,
        ..
    } = &recipe.test
    else {
        return Ok(());
    };
    let is_settled = is_inside.get().is_some() || inside(program) == *program;
    if held.get().is_some() && is_settled {
        return Ok(());
    }
    // The first build is that of the old version, on which the result is built at the end.
    workers.run(
        &Arc::new(repository.tree(old)?),
        &BuildBase::Any,
        Vec::new(),
    )?;
    let tree = Arc::new(repository.tree(new)?);
    let report = workers.run(&tree, &BuildBase::Any, Vec::new())?;
    let _ = is_inside.set(report.is_inside);
    if held.get().is_some() {
        return Ok(());
    }
    let is_wanted = |report: &Report| {
        let expect = args.expect.as_deref();
        (report.failure.as_ref())
            .is_some_and(|failure| expect.is_none_or(|expect| is_expected(expect, failure)))
    };
    if !is_wanted(&report) {
        workers.check_not_stale(&tree, &subject.versions.shown(false), is_wanted)?;
        return Err(not_failing(subject, args, report).into());
    }
    if let Some(failure) = report.failure {
        let _ = held.set(failure);
    }
    Ok(())
}

/// Returns the error for a new version that does not crash, or not as `--expect` says.
fn not_failing(subject: &Subject, args: &ChangesArgs, report: Report) -> ChangesError {
    let other = report.failure.map(|failure| {
        let expect = args.expect.as_deref().unwrap_or_default();
        format!(
            "its crash is {} {}, not {expect}",
            failure.class,
            failure.major.short()
        )
    });
    ChangesError::NewNotFailing {
        shown: subject.versions.shown(false),
        what: other.unwrap_or(report.what),
        output: report.output,
    }
}
