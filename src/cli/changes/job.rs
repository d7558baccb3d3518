//! Runs one search for failure-inducing changes (`ddfuzz changes`): prepares its folder and log,
//! starts its workers, and writes its result.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::ChangesArgs;
use super::crash::SoughtFailure;
use super::failure::FREE_SPACE;
use super::search_log::{logged, open_log, start_line};
use super::subject::{Subject, Versions};
use crate::changes::{
    Budget, BuildCounts, ChangeRecord, ChangeSet, ChangesError, ChangesResult, Commit, Found, Goal,
    Repository, SUBMODULE, Session, TestCounts, Workers, describe, find, remove_folder,
};
use crate::cli::{Exit, Failure, Output, ui};
use crate::files::{Lock, OsText, atomic, folder, space};
use crate::minimize::log::{Line, Log};

/// Name of the search algorithm in the logs of `ddfuzz changes`.
pub(super) const SEARCH: &str = "changes";

/// Paths of the files of a search for changes, in the folder `changes` of the output directory.
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    /// Returns the paths of a search's files in the output directory `out`; creates nothing. Fails
    /// if `out` is relative and the current directory is unknown.
    pub fn of(out: &Path) -> Result<Files, Failure> {
        let out =
            std::path::absolute(out).map_err(|error| Failure::file(out, "finding", &error))?;
        Ok(Files {
            folder: out.join("changes"),
        })
    }

    pub fn log(&self) -> PathBuf {
        self.folder.join("log.jsonl")
    }

    fn named(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Fails if the folder `changes` may contain files that ddfuzz has not written: a file has the
    /// name of one that a search writes, and there is neither a lock file nor a log of an earlier
    /// search.
    fn check_free(&self) -> Result<(), Failure> {
        let is_there = |name: &&str| std::fs::symlink_metadata(self.named(name)).is_ok();
        let names = ["lock", "work", "log.jsonl"].into_iter().chain(RESULTS);
        match names.into_iter().find(is_there) {
            Some(name) if !is_lock(&self.named("lock")) && !is_log(&self.log()) => {
                let path = self.named(name);
                let message = format!("{} was not written by ddfuzz", path.display());
                Err(Failure::new(Exit::Usage, "exists", message)
                    .path(&path)
                    .hint("replace it with --force, or give another output directory with -o"))
            }
            _ => Ok(()),
        }
    }

    /// Removes the result of an earlier search, so that it never stands beside the log of another
    /// search.
    pub fn remove_results(&self) -> Result<(), Failure> {
        for name in RESULTS {
            let path = self.named(name);
            match std::fs::remove_file(&path) {
                Err(error) if std::fs::symlink_metadata(&path).is_ok() => {
                    return Err(Failure::file(&path, "removing", &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the path of the folder for the worktrees and the private git repository of a search;
    /// the folder exists only while the search runs.
    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Creates the folder `changes` in the output directory, and locks it until the returned lock
    /// is dropped; removes worktrees that a killed search has left. If the output directory is new
    /// or empty, also writes a `.gitignore` there that excludes everything. Fails if another search
    /// has locked the folder, or if the folder has files that no search wrote and `force` is not
    /// set.
    fn prepare(&self, force: bool, output: &Output) -> Result<Lock, Failure> {
        if !force {
            self.check_free()?;
        }
        let out = self.folder.parent().unwrap_or(&self.folder);
        folder::create_all(out)?;
        let is_empty = std::fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
        if is_empty {
            atomic::write(&out.join(".gitignore"), b"*\n")?;
        }
        folder::create_all(&self.folder)?;
        let lock = Lock::acquire(&self.named("lock")).map_err(|error| {
            Failure::new(Exit::Usage, "locked", error)
                .path(&self.folder)
                .hint("another search uses this output directory: wait for it, or give another with -o")
        })?;
        if self.work().exists() {
            output.detail("removing the worktrees of a search that was killed");
            remove(&self.work())?;
        }
        std::fs::create_dir_all(self.work())
            .map_err(|error| Failure::file(&self.work(), "creating", &error))?;
        Ok(lock)
    }
}

/// Names of the files with the result of a search, in the folder `changes`.
const RESULTS: [&str; 4] = [
    "changes.json",
    "cause.patch",
    "difference.patch",
    "applied.patch",
];

/// Returns true if `path` is the lock file of a search, that is a regular file with nothing but a
/// process id; else false.
fn is_lock(path: &Path) -> bool {
    let is_file = std::fs::symlink_metadata(path).is_ok_and(|facts| facts.is_file());
    let text = std::fs::read(path).unwrap_or_default();
    is_file && text.len() < 16 && text.iter().all(u8::is_ascii_digit)
}

/// Returns true if `path` is a log whose first line is that of a search for changes; else false.
fn is_log(path: &Path) -> bool {
    let start = Log::read(path).ok().and_then(|log| log.start);
    start.is_some_and(|start| start.search == SEARCH)
}

fn remove(path: &Path) -> Result<(), Failure> {
    match remove_folder(path) {
        Err(error) if path.exists() => Err(Failure::file(path, "removing", &error)),
        _ => Ok(()),
    }
}

/// A guard that removes the folder of the worktrees when it is dropped, so that it is removed
/// however the search ends.
struct CleanUp(PathBuf);

impl Drop for CleanUp {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next call.
        let _ = remove_folder(&self.0);
    }
}

/// Number of free bytes below which a failed search is reported as stopped by a full disk.
const LEAST_SPACE: u64 = 1 << 16;

/// Runs the search for changes, writes its results to files, and returns the result. If it fails
/// while the disk is full, the full disk is reported as the cause, because git and other commands
/// do not always name it.
pub(super) fn search(
    args: &ChangesArgs,
    subject: &Subject,
    stop: &Arc<AtomicBool>,
    output: &Output,
) -> Result<ChangesResult, Failure> {
    let files = Files::of(&args.out)?;
    search_in(&files, args, subject, stop, output).map_err(|failure| {
        let is_blamed = ["git", "file", "system", "log"].contains(&failure.kind());
        let is_full = space::free(&files.folder).is_some_and(|free| free < LEAST_SPACE);
        match is_blamed && is_full {
            true => Failure::new(Exit::Usage, "disk-full", failure.message())
                .path(&files.folder)
                .hint(FREE_SPACE),
            false => with_hint(failure, subject),
        }
    })
}

/// Adds a hint to the `failure` of a search in two cases, and returns it. If a version does not
/// have the expected outcome and the program's path is absolute, all versions ran the same program:
/// the hint is to give a path inside the version. If the new version does not fail, or no change in
/// it matters, and the repository has uncommitted modifications: the hint is to commit them.
fn with_hint(failure: Failure, subject: &Subject) -> Failure {
    let is_outcome = ["old-not-passing", "not-failing"].contains(&failure.kind());
    if let Some(hint) = subject.same_program_hint().filter(|_| is_outcome) {
        return failure.hint(hint);
    }
    let is_about_new = ["not-failing", "no-change"].contains(&failure.kind());
    match is_about_new && subject.versions.lack_modifications() {
        true => failure.hint(
            "the modified files of the repository are not in the second version: commit them, or \
             give two directories",
        ),
        false => failure,
    }
}

fn search_in(
    files: &Files,
    args: &ChangesArgs,
    subject: &Subject,
    stop: &Arc<AtomicBool>,
    output: &Output,
) -> Result<ChangesResult, Failure> {
    let _lock = files.prepare(args.force, output)?;
    let work = files.work();
    let _clean_up = CleanUp(work.clone());
    let Opened {
        repository,
        old,
        new,
        line,
    } = open(args, subject, &work, output)?;
    let recipe = subject.recipe(args, &repository, &new, output)?;
    let mut workers = Workers::start(args.jobs as usize, &recipe, &repository, &work, stop)?;
    let versions = (old.clone(), new.clone());
    let logged = logged(files, args)?;
    let was_over = logged.as_ref().is_some_and(has_end);
    if let Some(sought) = SoughtFailure::of(&recipe) {
        sought.recall(args, logged.as_ref());
        sought.learn(args, subject, &repository, (&old, &new), &mut workers)?;
    }
    let mut start = start_line(args, subject, &recipe, (&old, &new), line.is_some());
    start.size = ChangeSet::new(repository.compare(&old, &new)?).len() as u64;
    let (past, writer) = open_log(files, start, logged, output)?;
    let mut session = Session::new(
        Arc::clone(&repository),
        versions,
        past,
        Some(writer),
        Some(workers),
        Arc::clone(stop),
    );
    session.limit(Budget {
        tests: args.budget_tests,
        time: args.budget_time,
    });
    show_progress(&mut session, output);
    let goal = goal(args);
    let length = || std::fs::metadata(files.log()).map_or(0, |facts| facts.len());
    let before = length();
    let found = find(&mut session, goal, line.as_deref());
    let found = found.map_err(|error| named_versions(error, subject, (&old, &new)))?;
    if was_over && length() == before {
        output.say("the search was finished earlier: nothing was run");
    }
    let has_history = !matches!(subject.versions, Versions::Directories { .. });
    let changes = describe(&repository, &found, (&old, &new), has_history)?;
    write_results(files, &repository, goal, &found, |patches| {
        result_of(goal, &session, &found, changes, patches, files)
    })
}

/// Returns the goal of a search. With `--difference` it is a single change that makes a passing
/// version fail; else it is a smallest set of changes that makes the old version fail.
fn goal(args: &ChangesArgs) -> Goal {
    match args.difference {
        true => Goal::Difference,
        false => Goal::Cause,
    }
}

/// Returns true if the last line of a log records the end of the search.
fn has_end(log: &Log) -> bool {
    matches!(log.lines.last(), Some((_, Line::End(_))))
}

/// The two versions of a search for changes, opened in a private repository.
struct Opened {
    repository: Arc<Repository>,
    /// Id of the commit that the old version has in the private repository.
    old: String,
    new: String,
    /// The commits after the old version up to the new one, oldest first, if the search begins with
    /// whole commits; `None` if it begins with all single changes.
    line: Option<Vec<Commit>>,
}

/// Makes both versions available in a private repository below the folder `work`; returns the
/// repository, with the commits of the versions. Warns if the commits between the versions cannot
/// be used, and if submodules or Git LFS files change.
fn open(
    args: &ChangesArgs,
    subject: &Subject,
    work: &Path,
    output: &Output,
) -> Result<Opened, Failure> {
    let (repository, old, new) = subject.versions.open(&work.join("repository"), &args.out)?;
    let line = match args.no_history {
        true => None,
        false => subject.versions.line(&repository, &old, &new)?,
    };
    warn(
        subject,
        args,
        line.as_deref(),
        &repository,
        (&old, &new),
        output,
    )?;
    let repository = Arc::new(repository);
    Ok(Opened {
        repository,
        old,
        new,
        line,
    })
}

/// Makes a search for changes show its progress on a terminal: the current step, the number of
/// tests, and the number of changes in the smallest set that has failed so far.
fn show_progress(session: &mut Session<'_>, output: &Output) {
    let bar = ui::bar(output);
    session.show_by(move |status| {
        let best = match status.best {
            0 => String::new(),
            best => format!(", {best} changes are left"),
        };
        bar.set_message(format!("{}: {} tests{best}", status.rule, status.executed));
    });
}

/// Makes the result of a search for changes from what it has `found`; the result is printed and
/// written to `changes.json`.
fn result_of(
    goal: Goal,
    session: &Session<'_>,
    found: &Found,
    changes: Vec<ChangeRecord>,
    patches: Patches,
    files: &Files,
) -> ChangesResult {
    ChangesResult {
        claim: found.end.claim,
        interference: found.interference && !are_of_one_commit(&changes),
        changes,
        goal: match goal {
            Goal::Cause => "cause",
            Goal::Difference => "difference",
        },
        tests: TestCounts {
            executed: session.counts.executed,
            unresolved: session.unresolved,
            predicted: session.counts.predicted,
            cached: session.counts.cached,
            checks: session.counts.checks,
        },
        builds: BuildCounts {
            run: session.workers.as_ref().map_or(0, |workers| workers.builds),
            reused: session.reused,
        },
        found_despite_unbuildable: found.unbuildable_commits as u64,
        removals: found.end.size,
        removals_that_do_not_build: found.unbuildable as u64,
        alternates: found.alternates,
        budget_used_up: session.is_spent(),
        cause: patches.cause.map(|path| OsText::from(&path)),
        difference: patches.difference.map(|path| OsText::from(&path)),
        applied: patches.applied.map(|path| OsText::from(&path)),
        log: OsText::from(&files.log()),
    }
}

/// Returns true if all of the changes belong to one commit; else false.
fn are_of_one_commit(changes: &[ChangeRecord]) -> bool {
    let names = |change: &ChangeRecord, id: &str| change.commits.iter().any(|it| it.commit == id);
    let mut first = changes.iter().flat_map(|change| &change.commits);
    first.any(|it| changes.iter().all(|change| names(change, &it.commit)))
}

/// Paths of the patch files that a search for changes has written; `None` for a patch that the
/// search's result does not have.
#[derive(Default)]
struct Patches {
    cause: Option<PathBuf>,
    difference: Option<PathBuf>,
    applied: Option<PathBuf>,
}

/// Writes the result of a search: removes the files of an earlier result, then writes patches of
/// what was found (`found`), and last `changes.json` with the record that `result` makes from the
/// paths of the patches.
fn write_results(
    files: &Files,
    repository: &Repository,
    goal: Goal,
    found: &Found,
    result: impl FnOnce(Patches) -> ChangesResult,
) -> Result<ChangesResult, Failure> {
    let mut patches = Patches::default();
    let write = |name: &str, bytes: &[u8]| -> Result<PathBuf, Failure> {
        let path = files.named(name);
        atomic::write(&path, bytes)?;
        Ok(path)
    };
    files.remove_results()?;
    let patch = repository.patch(&found.passing, &found.failing)?;
    match goal {
        Goal::Cause => patches.cause = Some(write("cause.patch", &patch)?),
        Goal::Difference => patches.difference = Some(write("difference.patch", &patch)?),
    }
    let before = match (goal, &found.in_history) {
        (Goal::Difference, _) => Some(&found.passing),
        (Goal::Cause, Some((before, after))) => {
            let patch = repository.patch(before, after)?;
            patches.difference = Some(write("difference.patch", &patch)?);
            Some(before)
        }
        (Goal::Cause, None) => None,
    };
    if let Some(before) = before {
        let patch = repository.patch(&found.old, before)?;
        if !patch.is_empty() {
            patches.applied = Some(write("applied.patch", &patch)?);
        }
    }
    let result = result(patches);
    let json = serde_json::to_vec_pretty(&result)
        .map_err(|error| Failure::new(Exit::Internal, "internal", error))?;
    write("changes.json", &json)?;
    Ok(result)
}

/// Returns the error `error` with the commit ids `old` and `new` of the two versions replaced by
/// the names that the user has typed.
fn named_versions(
    error: ChangesError,
    subject: &Subject,
    (old, new): (&str, &str),
) -> ChangesError {
    let named = |shown: String| match [old, new].contains(&shown.as_str()) {
        true => subject.versions.shown(shown == old),
        false => shown,
    };
    match error {
        ChangesError::OldNotPassing {
            shown,
            what,
            output,
        } => ChangesError::OldNotPassing {
            shown: named(shown),
            what,
            output,
        },
        ChangesError::NewNotFailing {
            shown,
            what,
            output,
        } => ChangesError::NewNotFailing {
            shown: named(shown),
            what,
            output,
        },
        ChangesError::Alternating { shown, outcomes } => ChangesError::Alternating {
            shown: named(shown),
            outcomes,
        },
        other => other,
    }
}

/// Prints warnings before a search for changes. One says why the search cannot use the commits from
/// the old to the new version (`line` is then `None`). The other says that submodules or Git LFS
/// files change, whose contents are missing in the versions that are built.
fn warn(
    subject: &Subject,
    args: &ChangesArgs,
    line: Option<&[Commit]>,
    repository: &Repository,
    (old, new): (&str, &str),
    output: &Output,
) -> Result<(), Failure> {
    let is_range = !matches!(subject.versions, Versions::Directories { .. });
    if is_range && line.is_none() && !args.no_history && old != new {
        let why = match subject.versions.are_shallow() {
            true => "the clone is shallow (`git fetch --unshallow` gets the whole history)",
            false => "the first version is not on the first-parent line of the second",
        };
        output.say(&format!("warning: {why}; all changes are searched at once"));
    }
    let changes = repository.compare(old, new)?;
    let versions = changes
        .iter()
        .flat_map(|change| [&change.old, &change.new])
        .flatten();
    let (mut submodules, mut pointers) = (0, 0);
    for version in versions {
        if version.entry.mode == SUBMODULE {
            submodules += 1;
        } else if crate::changes::is_lfs_pointer(&repository.content(&version.entry.content)?) {
            pointers += 1;
        }
    }
    if submodules > 0 {
        output.say("warning: a submodule changes, and submodules are not checked out: their folders are empty");
    }
    if pointers > 0 {
        output
            .say("warning: files of Git LFS change: builds get their pointers, not their contents");
    }
    Ok(())
}
