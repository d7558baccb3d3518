//! The crash whose cause `ddfuzz changes` searches for, and the program that crashes: learned from
//! the new version, or from the log of an earlier call.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::ChangesArgs;
use super::search_log::is_refuted;
use super::subject::{Subject, is_expected};
use crate::changes::{
    BuildBase, ChangesError, CrashIdentity, Recipe, Report, Repository, TestKind, Workers,
};
use crate::cli::Failure;
use crate::minimize::log::Log;

/// The failure whose cause is searched for, and the program that shows it. A search with `--run`
/// has no such failure, because the command of `--run` decides what fails.
pub(super) struct SoughtFailure<'a> {
    program: &'a OsStr,
    /// Whether each version has its own program, since the program's path is in the directory of
    /// the version; empty as long as this is not known.
    is_inside: &'a OnceLock<bool>,
    /// Class and keys of the failure whose cause is searched for; empty until they are known.
    expected: &'a OnceLock<CrashIdentity>,
}

impl<'a> SoughtFailure<'a> {
    /// Returns the failure that the search explains, which the tests of `recipe` look for. `None`
    /// with `--run`: a command of the user then decides what fails.
    pub(super) fn of(recipe: &'a Recipe) -> Option<SoughtFailure<'a>> {
        match &recipe.test {
            TestKind::Program {
                program,
                is_inside,
                expected,
                ..
            } => Some(SoughtFailure {
                program,
                is_inside,
                expected,
            }),
            _ => None,
        }
    }

    /// Takes over from the log `logged` of an earlier call which failure is searched for (unless
    /// `--group` names it), and whether the program is in the directory of the version. Does
    /// nothing without a log, or if the earlier call ended because a check failed ([`is_refuted`]).
    pub(super) fn recall(&self, args: &ChangesArgs, logged: Option<&Log>) {
        let logged = logged.filter(|log| !is_refuted(log));
        let start = logged.and_then(|log| log.start.as_ref());
        if let Some(logged) = start.and_then(|start| start.target.program.as_ref()) {
            let is_inside = logged.0 == inside(self.program) && logged.0 != *self.program;
            let _ = self.is_inside.set(is_inside);
        }
        if let Some(start) = start.filter(|_| args.group.is_none())
            && let (Some(key), Some(changes)) = (&start.key, &start.changes)
        {
            let _ = self.expected.set(CrashIdentity {
                class: key.class.to_string(),
                major: key.major,
                minor: key.minor,
                stable: changes.stable.as_ref().and_then(|key| key.parse().ok()),
            });
        }
    }

    /// Builds and runs the new version to learn two facts, unless they are known: the failure that
    /// the new version shows (known with `--group` or from an earlier call), and, for a program
    /// given by a name only, whether it is in the directory of the version. Fails if the new
    /// version does not crash, or crashes otherwise than `--expect` says.
    pub(super) fn learn(
        &self,
        args: &ChangesArgs,
        subject: &Subject,
        repository: &Repository,
        (old, new): (&str, &str),
        workers: &mut Workers,
    ) -> Result<(), Failure> {
        let is_settled = self.is_inside.get().is_some() || inside(self.program) == *self.program;
        if self.expected.get().is_some() && is_settled {
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
        let _ = self.is_inside.set(report.is_inside);
        if self.expected.get().is_some() {
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
            let _ = self.expected.set(failure);
        }
        Ok(())
    }
}

/// Returns the path under which a program in the directory of a version is recorded: `program`
/// itself if it contains a slash, else `./` followed by `program`, so that it is not looked for in
/// PATH.
pub(super) fn inside(program: &OsStr) -> OsString {
    match program.as_bytes().contains(&b'/') {
        true => program.to_owned(),
        false => Path::new(".").join(program).into_os_string(),
    }
}

/// Returns the error for a new version that does not crash, or whose crash is not the one that
/// `--expect` names; `report` says what its run did.
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
