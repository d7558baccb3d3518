//! The result of a search as JSON, with file, line and commit of each change.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::iter::repeat;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use ddfuzz_minimize::Claim;
use ddfuzz_minimize::log::OsText;
use serde::Serialize;

use crate::ChangesError;
use crate::change_set::{ChangeSet, FileChange, Hunk, Kind, Part, as_in_header, in_range};
use crate::find::Found;
use crate::outline::Outline;
use crate::repository::{Commit, Repository};
use crate::tree::Content;

/// The result of the command `ddfuzz changes`, as it is written to JSON.
#[derive(Clone, Debug, Serialize)]
pub struct ChangesResult {
    /// What is proved of the found changes: `1-minimal`, `1-minimal-difference` or `best-so-far`.
    pub claim: Claim,
    /// The found failure-inducing changes, each with file, lines and commits.
    pub changes: Vec<ChangeRecord>,
    /// What the search was to find: `cause` (a minimal set of changes that makes the old version
    /// fail) or `difference` (between a version that passes and one that fails).
    pub goal: &'static str,
    /// How many tests the search ran, and how many it answered without running them.
    pub tests: TestCounts,
    /// How many builds the search ran, and how many tests needed none.
    pub builds: BuildCounts,
    /// Number of commits that could not be tested, so that the found changes may come from one of
    /// them instead of the commit known to fail.
    pub found_despite_unbuildable: u64,
    /// Number of found changes, for each of which the claim says what the version without it does.
    pub removals: u64,
    /// Number of found changes that cannot be left out because the version with all others does not
    /// build; 0 if a difference was searched for.
    pub removals_that_do_not_build: u64,
    /// Whether the failure needs changes of several commits together; false if the budget was used
    /// up, or if one commit is named for all of the changes.
    pub interference: bool,
    /// Whether the version without one of the found changes passed in one test and failed in
    /// another, so that the claim is `best-so-far` only.
    pub alternates: bool,
    /// Whether the search ended early because its budget of tests or of time was used up.
    pub budget_used_up: bool,
    /// Path of the file with the patch that makes the old version fail; null if a difference was
    /// searched for.
    pub cause: Option<OsText>,
    /// Path of the file with the patch of the difference: applied to a version that passes, it
    /// makes that version fail. Null if no difference was searched for.
    pub difference: Option<OsText>,
    /// Path of the file with the patch that turns the old version into the version to which the
    /// patch `difference` applies; null if it applies to the old version itself.
    pub applied: Option<OsText>,
    /// Path of the search's log, which records all tests.
    pub log: OsText,
}

/// Counts of the tests of a search for failure-inducing changes, by how each was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TestCounts {
    /// Number of tests that the search ran: each built a version and, if it was built without
    /// error, tested it. Checks are not counted.
    pub executed: u64,
    /// Number of executed tests with the outcome UNRESOLVED, such as those of versions that do not
    /// build.
    pub unresolved: u64,
    /// Number of tests that were answered UNRESOLVED without a build, because the version lacks a
    /// change that another one is known to require, or because its changes cannot be merged.
    pub predicted: u64,
    /// Number of tests that were answered without a run, because a version with the same files was
    /// tested before.
    pub cached: u64,
    /// Number of checks: tests of the old and the new version before the search, and of the version
    /// with the found changes after it.
    pub checks: u64,
}

/// Counts of the builds of a search for failure-inducing changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BuildCounts {
    /// Number of builds that this call of `ddfuzz changes` ran, also of versions that were tested
    /// ahead.
    pub run: u64,
    /// Number of tests that needed no build, because a version with the same files was tested
    /// before.
    pub reused: u64,
}

/// A found change for the result: its file, its lines in the old and the new version, and its
/// commits.
#[derive(Clone, Debug, Serialize)]
pub struct ChangeRecord {
    /// Path of the changed file in the version to which the patch applies.
    pub file: OsText,
    /// Path of the changed file in the new version, if it differs from `file`, because the file was
    /// renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_file: Option<OsText>,
    /// What the change does to the file: `hunk`, `new file`, `deleted file`, `renamed file`,
    /// `mode`, `binary`, `link`, `submodule`, `type`.
    pub kind: &'static str,
    /// Whether this record and the one before it belong to one change, and cannot be left out
    /// without each other (for example because a file becomes a directory).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
    /// The lines of the old version that the change replaces: first line, counted from 1, and
    /// number of lines, as `git diff -U0` writes them; 0 and 0 if the old version has no such file.
    pub old: [u64; 2],
    /// The lines of the new version that the change puts in: first line, counted from 1, and number
    /// of lines, as `git diff -U0` writes them; 0 and 0 if the new version has no such file.
    pub new: [u64; 2],
    /// Name of the function that contains the first of the changed lines; empty if no function
    /// does, if no grammar of the file's language is known, and for changes that are not hunks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// The commits from which the change comes, as far as they are known, newest first. Empty if
    /// the versions have no git history, or if no commit between them makes the change, because the
    /// old version's own branch has changed these lines, and the new version has them as they were
    /// before.
    pub commits: Vec<CommitRecord>,
    /// Whether the versions have a git history, but no commit in it makes the change.
    #[serde(skip)]
    pub is_of_no_commit: bool,
}

/// The git commit from which a change comes, as results show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitRecord {
    /// The id of the commit, in hex digits.
    pub commit: String,
    /// The name of the commit's author.
    pub author: String,
    /// The author date of the commit, as YYYY-MM-DD.
    pub date: String,
    /// The subject of the commit: the first line of its message.
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

/// Returns a record for each found change, with file, lines and commits. If the difference between
/// the commits `old` and `new` contains the same change, the record has the lines from there.
/// Without `has_history`, no commits are looked up.
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
    let mut of_path: HashMap<&[u8], Vec<Part>> = HashMap::new();
    for part in whole.changes.iter().flatten() {
        let path = path_before(&whole.files[part.file]);
        of_path.entry(path).or_default().push(*part);
    }
    let texts = texts(repository, &made, &whole)?;
    let split = texts
        .iter()
        .map(|(content, text)| (*content, ddfuzz_delta::lines(text)));
    let lines: Lines<'_> = split.collect();
    let mut history = History {
        repository,
        found,
        versions: (old, new),
        commits: HashMap::new(),
        brought: HashMap::new(),
    };
    let mut functions = Functions {
        texts: &texts,
        of_file: HashMap::new(),
    };
    let mut records = Vec::new();
    let units = made.changes.iter();
    let parts = units.flat_map(|parts| parts.iter().zip([false].into_iter().chain(repeat(true))));
    for (part, joined) in parts {
        let change = &made.files[part.file];
        let others = of_path
            .get(path_before(change))
            .map_or(&[][..], |parts| parts);
        let shown = same_change(change, part.kind, (&whole, others), &lines);
        let (file, kind) = match shown {
            Some(shown) => (&whole.files[shown.file], shown.kind),
            None => (change, part.kind),
        };
        let commits = match has_history {
            true => {
                let other = shown.as_ref().or(others.first());
                let whole = other.map(|other| &whole.files[other.file]);
                history.commits_of((part.file, change), whole, shown.map(|shown| shown.kind))?
            }
            false => Vec::new(),
        };
        let function =
            functions.function_of((shown.is_some(), shown.unwrap_or(*part).file), file, kind);
        records.push(ChangeRecord {
            joined,
            is_of_no_commit: has_history && commits.is_empty(),
            ..record(repository, file, (kind, function), commits)?
        });
    }
    Ok(records)
}

/// The lines of the contents of files, each content read and split once.
type Lines<'t> = HashMap<&'t Content, Vec<&'t [u8]>>;

/// Reads the old and the new content of files with hunks: of all such files in the set of changes
/// `made`, and of those files in the set `whole` whose paths are also in `made`. Returns the bytes
/// of each content.
fn texts<'s>(
    repository: &Repository,
    made: &'s ChangeSet,
    whole: &'s ChangeSet,
) -> Result<HashMap<&'s Content, Vec<u8>>, ChangesError> {
    let paths: HashSet<&[u8]> = made.files.iter().map(path_before).collect();
    let mut texts = HashMap::new();
    for file in made.files.iter().chain(&whole.files) {
        if file.hunks.is_empty() || !paths.contains(path_before(file)) {
            continue;
        }
        for version in [&file.old, &file.new].into_iter().flatten() {
            let content = &version.entry.content;
            if !texts.contains_key(content) {
                texts.insert(content, repository.content(content)?);
            }
        }
    }
    Ok(texts)
}

/// The commits from which found changes come, looked up once for each file.
struct History<'a> {
    repository: &'a Repository,
    found: &'a Found,
    /// The ids of the commits of the old and of the new version.
    versions: (&'a str, &'a str),
    /// The commits of the files in the set of found changes, by the index of the file.
    commits: HashMap<usize, Vec<CommitRecord>>,
    /// For each line of a file of the new version, by the path of the file, the commit that added
    /// the line; `None` for a line that the old version has already ([`Repository::blame`]).
    brought: HashMap<Vec<u8>, Vec<Option<String>>>,
}

impl History<'_> {
    /// Returns the commits from which a found change comes: for a hunk, the commits that added its
    /// lines; for another change, the commits that touch the file. `file` is the index of its file
    /// among the found changes, and `change` all that these change in the file. `whole` is the
    /// difference of the file between the old and the new version, and `kind` the found change in
    /// this difference.
    fn commits_of(
        &mut self,
        (file, change): (usize, &FileChange),
        whole: Option<&FileChange>,
        kind: Option<Kind>,
    ) -> Result<Vec<CommitRecord>, ChangesError> {
        if let (Some(Kind::Hunk(hunk)), Some(whole)) = (kind, whole) {
            let hunk = &whole.hunks[hunk];
            let brought = self.brought(whole, hunk.new.clone())?;
            if !brought.is_empty() {
                return Ok(brought);
            }
            if self.is_of_old_branch(whole, hunk)? {
                return Ok(Vec::new());
            }
        }
        // The found changes may have a change of a file without its renaming.
        self.touching(file, [Some(change), whole]).cloned()
    }

    /// Returns true if a hunk, whose new lines no commit after the old version added, was made on
    /// the branch of the old version. This is so if the branch has commits that the new version
    /// lacks, and has added all lines that the hunk removes, or deleted the lines that the hunk
    /// adds.
    fn is_of_old_branch(&self, file: &FileChange, hunk: &Hunk) -> Result<bool, ChangesError> {
        let (old, new) = self.versions;
        if self.repository.commit_count((new, old))? == 0 {
            return Ok(false);
        }
        let Some(before) = file.old.as_ref().filter(|_| !hunk.old.is_empty()) else {
            return Ok(true);
        };
        let added = self.repository.blame((new, old), &before.path)?;
        let added = in_range(&added, hunk.old.clone());
        Ok(added.iter().all(Option::is_some) || !hunk.new.is_empty())
    }

    /// Returns the commits, possibly merges, that added the lines `lines` (counted from 0) of the
    /// file `file` in the new version, newest first; empty if the old version has these lines
    /// already, or if `lines` is empty.
    fn brought(
        &mut self,
        file: &FileChange,
        lines: Range<usize>,
    ) -> Result<Vec<CommitRecord>, ChangesError> {
        if lines.is_empty() {
            return Ok(Vec::new());
        }
        let brought = match self.brought.entry(file.path().to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.repository.blame(self.versions, file.path())?),
        };
        let mut ids: Vec<&str> = Vec::new();
        for id in in_range(brought, lines).iter().flatten() {
            if !ids.contains(&id.as_str()) {
                ids.push(id);
            }
        }
        let commits = self.repository.commits(&ids)?;
        Ok(commits.iter().map(CommitRecord::from).collect())
    }

    /// Returns the commits from which the found changes of the file with the index `file` probably
    /// come, newest first. These are the commits of the search's result that touch the file, under
    /// any of its paths in `changes`. If no commit of the result touches it: the only commit of the
    /// result, if there is just one (a merge touches its files by other commits); else all commits
    /// between the two versions that touch the file.
    fn touching(
        &mut self,
        file: usize,
        changes: [Option<&FileChange>; 2],
    ) -> Result<&Vec<CommitRecord>, ChangesError> {
        let new = match self.commits.entry(file) {
            Entry::Occupied(known) => return Ok(known.into_mut()),
            Entry::Vacant(new) => new,
        };
        let versions = changes.into_iter().flatten();
        let versions = versions
            .flat_map(|change| [&change.new, &change.old])
            .flatten();
        let mut paths: Vec<&[u8]> = Vec::new();
        for version in versions {
            if !paths.contains(&&version.path[..]) {
                paths.push(&version.path);
            }
        }
        let mut touching = Vec::new();
        for path in &paths {
            let commits = self
                .repository
                .commits_of(self.versions, path, paths.len() > 1)?;
            for commit in commits {
                if !touching.contains(&commit) {
                    touching.push(commit);
                }
            }
        }
        let found = &self.found.commits;
        let of_search: Vec<&Commit> = touching.iter().filter(|it| found.contains(it)).collect();
        Ok(new.insert(match (of_search.is_empty(), found.len()) {
            (false, _) => of_search.into_iter().map(CommitRecord::from).collect(),
            // A merge touches its files by other commits.
            (true, 1) => found.iter().map(CommitRecord::from).collect(),
            (true, _) => touching.iter().map(CommitRecord::from).collect(),
        }))
    }
}

/// The functions in the files with hunks, found once for each file.
struct Functions<'t> {
    texts: &'t HashMap<&'t Content, Vec<u8>>,
    /// The functions in the old and the new version of a file; `None` if no grammar of its language
    /// is known. The key is whether the file is one of the difference between the old and the new
    /// version (else one of the found changes), and its index.
    of_file: HashMap<(bool, usize), Option<[Outline; 2]>>,
}

impl Functions<'_> {
    /// Returns the name of the function that contains the first line of the hunk `kind` of `file`;
    /// empty if no function does, and for changes that are not hunks. `key` is the key of the
    /// file's functions in `of_file`.
    fn function_of(&mut self, key: (bool, usize), file: &FileChange, kind: Kind) -> String {
        let Kind::Hunk(hunk) = kind else {
            return String::new();
        };
        let texts = self.texts;
        let text = |version: &Option<crate::Version>| texts.get(&version.as_ref()?.entry.content);
        let outlines = self
            .of_file
            .entry(key)
            .or_insert_with(|| file.outlines(text(&file.old)?, text(&file.new)?));
        let both = outlines.as_ref();
        both.map_or_else(String::new, |both| {
            Outline::function_of(both, &file.hunks[hunk])
        })
    }
}

fn record(
    repository: &Repository,
    file: &FileChange,
    (kind, function): (Kind, String),
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
    let (old, new) = match kind {
        Kind::Hunk(hunk) => {
            let hunk = &file.hunks[hunk];
            (as_in_header(&hunk.old), as_in_header(&hunk.new))
        }
        _ => (lines(&file.old)?, lines(&file.new)?),
    };
    let path = |path: &[u8]| OsText::from(OsStr::from_bytes(path));
    let is_renamed = path_before(file) != file.path();
    Ok(ChangeRecord {
        file: path(path_before(file)),
        new_file: is_renamed.then(|| path(file.path())),
        kind: file.kind_name(kind),
        joined: false,
        old,
        new,
        function,
        commits,
        is_of_no_commit: false,
    })
}

/// Finds the change of the kind `kind` in the file `change` again in another difference: the set
/// `whole`, of which `others` are the changes of one path. A hunk is found by its removed and added
/// text, another change by its kind. Of several such hunks, returns the one nearest to the given
/// one in the file; `None` if there is none.
fn same_change(
    change: &FileChange,
    kind: Kind,
    (whole, others): (&ChangeSet, &[Part]),
    lines: &Lines<'_>,
) -> Option<Part> {
    let wanted = replaced(change, kind, lines);
    let is_same = |other: &&Part| {
        let is_same_kind = std::mem::discriminant(&other.kind) == std::mem::discriminant(&kind);
        is_same_kind && replaced(&whole.files[other.file], other.kind, lines) == wanted
    };
    let distance = |other: &&Part| match (kind, other.kind) {
        (Kind::Hunk(one), Kind::Hunk(two)) => {
            let start = whole.files[other.file].hunks[two].old.start;
            change.hunks[one].old.start.abs_diff(start)
        }
        _ => 0,
    };
    others.iter().filter(is_same).min_by_key(distance).copied()
}

/// Returns the path of a file in the old version or, if the old version lacks the file, in the new
/// version.
fn path_before(change: &FileChange) -> &[u8] {
    let version = change.old.as_ref().or(change.new.as_ref());
    version.map_or(b"", |version| &version.path)
}

/// Returns the lines that a hunk removes, and those that it adds; `None` for a change of another
/// kind.
fn replaced<'l>(
    change: &FileChange,
    kind: Kind,
    lines: &'l Lines<'_>,
) -> Option<[&'l [&'l [u8]]; 2]> {
    let (Kind::Hunk(hunk), Some(old), Some(new)) = (kind, &change.old, &change.new) else {
        return None;
    };
    let hunk = &change.hunks[hunk];
    Some([
        in_range(lines.get(&old.entry.content)?, hunk.old.clone()),
        in_range(lines.get(&new.entry.content)?, hunk.new.clone()),
    ])
}
