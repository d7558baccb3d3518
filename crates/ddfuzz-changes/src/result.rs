//! The result of a search as JSON, with file, line and commit of each change.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ddfuzz_minimize::Claim;
use ddfuzz_minimize::log::OsText;
use serde::Serialize;

use crate::ChangesError;
use crate::change_set::{ChangeSet, FileChange, Kind, Part, as_in_header};
use crate::find::Found;
use crate::repository::{Commit, Repository};

/// The result of `ddfuzz changes` as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct ChangesResult {
    /// What is proved: `1-minimal`, `1-minimal-difference` or `best-so-far`.
    pub claim: Claim,
    /// The changes, by file and line.
    pub changes: Vec<ChangeRecord>,
    /// What was searched for: `cause` or `difference`.
    pub goal: &'static str,
    /// Number of tests, by how they were answered.
    pub tests: TestCounts,
    /// Number of builds that were run, and that were not needed.
    pub builds: BuildCounts,
    /// Number of commits beside the failing one that could not be tested, so that the changes may
    /// be theirs.
    pub found_despite_unbuildable: u64,
    /// Number of found changes. The claim is about the removal of each one of them.
    pub removals: u64,
    /// Number of found changes without which the others do not build; 0 for a difference.
    pub removals_that_do_not_build: u64,
    /// Whether changes of several commits are needed together; false if the budget was used up.
    pub interference: bool,
    /// Whether the search ended because the budget of tests or of time was used up.
    pub budget_used_up: bool,
    /// Path of the patch with which the old version fails; null if a difference was searched for.
    pub cause: Option<OsText>,
    /// Path of the patch of the difference: it makes a version fail that passes without it. Null if
    /// there is none.
    pub difference: Option<OsText>,
    /// Path of the patch that has to be applied before `difference`; null if it applies to the old
    /// version.
    pub applied: Option<OsText>,
    /// Path of the log.
    pub log: OsText,
}

/// Number of tests of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TestCounts {
    /// Tests for which a version was built and, if it builds, run; without checks.
    pub executed: u64,
    /// Executed tests with the outcome UNRESOLVED, such as those of versions that do not build.
    pub unresolved: u64,
    /// Tests that were answered UNRESOLVED without a build, because a learned relation between
    /// changes says that the version does not build, or because its changes cannot be merged.
    pub predicted: u64,
    /// Tests that were answered by an earlier test of the same version.
    pub cached: u64,
    /// Tests of the old and the new version before the search, and of the result after it.
    pub checks: u64,
}

/// Number of builds of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BuildCounts {
    /// Builds that were run in this call, also those of versions tested ahead.
    pub run: u64,
    /// Tests that needed no build, because the same version was tested before.
    pub reused: u64,
}

/// A change, as it is found in the difference of both versions.
#[derive(Clone, Debug, Serialize)]
pub struct ChangeRecord {
    /// Path of the file.
    pub file: OsText,
    /// What is changed: `hunk`, `new file`, `deleted file`, `renamed file`, `mode`, `binary`,
    /// `type`.
    pub kind: &'static str,
    /// First line, counted from 1, and number of lines in the old version, as `git diff -U0` writes
    /// them; 0 and 0 if it has no such file.
    pub old: [u64; 2],
    /// First line, counted from 1, and number of lines in the new version; 0 and 0 if it has no
    /// such file.
    pub new: [u64; 2],
    /// The function around the lines, if git names one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// The commits that the change comes from, as far as known.
    pub commits: Vec<CommitRecord>,
}

/// A commit that a change comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitRecord {
    /// The id of the commit.
    pub commit: String,
    /// The name of the author.
    pub author: String,
    /// The date of the author, as YYYY-MM-DD.
    pub date: String,
    /// The first line of the message.
    pub subject: String,
}

impl From<&Commit> for CommitRecord {
    fn from(commit: &Commit) -> CommitRecord {
        CommitRecord {
            commit: commit.id.clone(),
            author: commit.author.clone(),
            date: commit.date.clone(),
            subject: commit.subject.clone(),
        }
    }
}

/// Describes the found changes by file and line. Where a change is also one between the versions
/// `old` and `new`, its lines are those of `git diff -U0` between them. Commits are named only with
/// `has_history`.
///
/// # Errors
/// If contents or commits cannot be read.
pub fn describe(
    repository: &Repository,
    found: &Found,
    (old, new): (&str, &str),
    has_history: bool,
) -> Result<Vec<ChangeRecord>, ChangesError> {
    let made = ChangeSet::new(repository.compare_trees(&found.passing, &found.failing)?);
    let whole = ChangeSet::new(repository.compare(old, new)?);
    let mut records = Vec::new();
    for part in made.units.iter().flatten() {
        let change = &made.files[part.file];
        let shown = same_change(repository, &made, *part, &whole)?;
        let (shown_in, shown) = shown.map_or((&made, *part), |part| (&whole, part));
        let file = &shown_in.files[shown.file];
        let commits = match has_history {
            true => {
                let of_file = commits_of(repository, found, (old, new), change)?;
                let is_whole = std::ptr::eq(shown_in, &whole);
                match (is_whole, shown.kind) {
                    (true, Kind::Hunk(hunk)) if of_file.len() > 1 => {
                        let lines = as_in_header(&file.hunks[hunk].new);
                        by_lines(repository, (old, new), file.path(), lines, of_file)?
                    }
                    _ => of_file,
                }
            }
            false => Vec::new(),
        };
        records.push(record(repository, file, shown.kind, commits)?);
    }
    Ok(records)
}

/// Chooses those of the commits which have brought the lines `lines` of a hunk in the new version;
/// all commits if none has, or if the hunk only deletes lines.
fn by_lines(
    repository: &Repository,
    versions: (&str, &str),
    path: &[u8],
    lines: [u64; 2],
    commits: Vec<CommitRecord>,
) -> Result<Vec<CommitRecord>, ChangesError> {
    if lines[1] == 0 {
        return Ok(commits);
    }
    let brought = repository.blame(versions, path)?;
    let first = lines[0].saturating_sub(1) as usize;
    let brought: Vec<&String> = (brought.iter().skip(first))
        .take(lines[1] as usize)
        .flatten()
        .collect();
    let chosen: Vec<CommitRecord> = commits
        .iter()
        .filter(|commit| brought.contains(&&commit.commit))
        .cloned()
        .collect();
    Ok(if chosen.is_empty() { commits } else { chosen })
}

fn record(
    repository: &Repository,
    file: &FileChange,
    kind: Kind,
    commits: Vec<CommitRecord>,
) -> Result<ChangeRecord, ChangesError> {
    let lines = |version: &Option<crate::Version>| -> Result<[u64; 2], ChangesError> {
        let Some(version) = version
            .as_ref()
            .filter(|version| crate::change_set::is_written(&version.entry))
        else {
            return Ok([0, 0]);
        };
        let text = repository.content(&version.entry.content)?;
        Ok(as_in_header(&(0..ddfuzz_delta::lines(&text).len())))
    };
    let (old, new, function) = match kind {
        Kind::Hunk(hunk) => {
            let hunk = &file.hunks[hunk];
            (
                as_in_header(&hunk.old),
                as_in_header(&hunk.new),
                hunk.function.clone(),
            )
        }
        _ => (lines(&file.old)?, lines(&file.new)?, String::new()),
    };
    Ok(ChangeRecord {
        file: OsText::from(OsStr::from_bytes(file.path())),
        kind: kind.name(),
        old,
        new,
        function,
        commits,
    })
}

/// Finds the change in `whole` that does the same to the same file: a hunk that replaces the same
/// text by the same text, or a change of the file with the same kind. Of several hunks, the
/// nearest; `None` if there is none.
fn same_change(
    repository: &Repository,
    made: &ChangeSet,
    part: Part,
    whole: &ChangeSet,
) -> Result<Option<Part>, ChangesError> {
    let change = &made.files[part.file];
    let wanted = texts(repository, change, part.kind)?;
    let mut same = Vec::new();
    for other in whole.units.iter().flatten() {
        let file = &whole.files[other.file];
        let (Some(one), Some(two)) = (path_before(change), path_before(file)) else {
            continue;
        };
        let is_same_kind =
            std::mem::discriminant(&other.kind) == std::mem::discriminant(&part.kind);
        if one != two || !is_same_kind || texts(repository, file, other.kind)? != wanted {
            continue;
        }
        let distance = match (part.kind, other.kind) {
            (Kind::Hunk(one), Kind::Hunk(two)) => change.hunks[one]
                .old
                .start
                .abs_diff(file.hunks[two].old.start),
            _ => 0,
        };
        same.push((distance, *other));
    }
    Ok(same
        .into_iter()
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, part)| part))
}

fn path_before(change: &FileChange) -> Option<&[u8]> {
    let version = change.old.as_ref().or(change.new.as_ref());
    version.map(|version| &version.path[..])
}

fn texts(
    repository: &Repository,
    change: &FileChange,
    kind: Kind,
) -> Result<(Vec<u8>, Vec<u8>), ChangesError> {
    match (kind, &change.old, &change.new) {
        (Kind::Hunk(_), Some(old), Some(new)) => {
            let (old, new) = (
                repository.content(&old.entry.content)?,
                repository.content(&new.entry.content)?,
            );
            Ok(change.texts(kind, &old, &new))
        }
        _ => Ok((Vec::new(), Vec::new())),
    }
}

/// Returns the commits that a change comes from: of the commits that the search found, those that
/// touch its file. If none does, returns the only commit found, or else all between the versions
/// `old` and `new` that touch the file.
fn commits_of(
    repository: &Repository,
    found: &Found,
    (old, new): (&str, &str),
    change: &FileChange,
) -> Result<Vec<CommitRecord>, ChangesError> {
    let mut touching = Vec::new();
    for path in [&change.old, &change.new]
        .into_iter()
        .flatten()
        .map(|version| &version.path)
    {
        for commit in repository.commits_of(old, new, path)? {
            if !touching.contains(&commit) {
                touching.push(commit);
            }
        }
    }
    let of_search: Vec<&Commit> = found
        .commits
        .iter()
        .filter(|commit| touching.contains(commit))
        .collect();
    Ok(match (of_search.is_empty(), found.commits.len()) {
        (false, _) => of_search.into_iter().map(CommitRecord::from).collect(),
        // A merge touches its files by other commits.
        (true, 1) => found.commits.iter().map(CommitRecord::from).collect(),
        (true, _) => touching.iter().map(CommitRecord::from).collect(),
    })
}
