//! The numbered changes between two versions of a program, and how some of them are applied to a
//! version.

mod neighbours;

use std::collections::{HashMap, hash_map};
use std::ops::Range;

use ddfuzz_delta::Config;

use crate::ChangesError;
use crate::outline::Outline;
use crate::repository::{Commit, Repository};
use crate::search::{Facts, UnitFacts};
use crate::text::{Words, is_unread};
use crate::tree::{Content, Entry, SUBMODULE, SYMLINK, Tree};
use neighbours::merge_neighbours;

/// Maximum number of differing files for which git is asked which commit made each change.
const MOST_BLAMED: usize = 300;

/// A file as it is in one version of the program: its path, mode and content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The path of the file, relative to the root of the tree.
    pub path: Vec<u8>,
    /// The mode and content of the file in this version.
    pub entry: Entry,
}

/// A hunk of `git diff -U0`: a range of lines of a file's old version, and the range of lines of
/// the new version that replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The range of lines of the file's old version that the hunk replaces, counted from 0; empty
    /// if the hunk only adds lines.
    pub old: Range<usize>,
    /// The range of lines of the file's new version that the hunk puts in, counted from 0; empty if
    /// the hunk only deletes lines.
    pub new: Range<usize>,
    /// Text that git prints behind the line numbers in the hunk's header: the nearest line before
    /// the hunk that begins a function, often not the function that contains the hunk; may be
    /// empty.
    pub function: String,
}

impl Hunk {
    /// Parses the header of a hunk, such as `@@ -3 +3,2 @@ int main()`; `None` for another line.
    pub fn parse(line: &[u8]) -> Option<Hunk> {
        let line = String::from_utf8_lossy(line);
        let (ranges, function) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        Some(Hunk {
            old: lines(old)?,
            new: lines(new)?,
            function: function.trim().to_owned(),
        })
    }
}

/// Converts `START,COUNT` in the header of a hunk to a range of lines, counted from 0; `None` for
/// text in another format. If COUNT is 0, START is the line before the empty range.
fn lines(text: &str) -> Option<Range<usize>> {
    let (start, count) = match text.split_once(',') {
        Some((start, count)) => (start.parse::<usize>().ok()?, count.parse().ok()?),
        None => (text.parse().ok()?, 1),
    };
    match count {
        0 => Some(start..start),
        _ => Some(start.checked_sub(1)?..start.checked_sub(1)?.checked_add(count)?),
    }
}

/// Converts a range of lines to the two numbers that stand for it in the header of a hunk: the
/// first line, counted from 1 (for an empty range, the line before it), and the number of lines.
pub fn as_in_header(lines: &Range<usize>) -> [u64; 2] {
    let start = lines.start + usize::from(!lines.is_empty());
    [start as u64, lines.len() as u64]
}

/// The difference of one file between the old and the new version of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file in the old version; `None` if the file was created.
    pub old: Option<Version>,
    /// The file in the new version; `None` if the file was deleted.
    pub new: Option<Version>,
    /// The hunks by which the content of the file changes; empty if it does not change, or has no
    /// lines (a binary file).
    pub hunks: Vec<Hunk>,
}

impl FileChange {
    /// Returns two facts from the git history of the file between the two commits `versions`.
    /// First, for each line of the new version, the id of the commit that added it (`None` for a
    /// line that the old version has, too); empty if the file has no hunks. Second, the commits
    /// that change the file, newest first, without merges. Fails if git cannot read the history.
    fn history(
        &self,
        repository: &Repository,
        versions: (&str, &str),
    ) -> Result<(Vec<Option<String>>, Vec<Commit>), ChangesError> {
        let brought = match (&self.new, self.hunks.is_empty()) {
            (Some(new), false) => repository.blame(versions, &new.path)?,
            _ => Vec::new(),
        };
        let touching = repository.commits_of(versions, self.path(), false)?;
        Ok((brought, touching))
    }

    /// Returns the functions in the texts of the file's old and new version, found by a grammar of
    /// its language; `None` if the file has no hunks, no grammar is known, or a text is too large.
    pub(crate) fn outlines(&self, old: &[u8], new: &[u8]) -> Option<[Outline; 2]> {
        if self.hunks.is_empty() {
            return None;
        }
        let outline = |text| Outline::of(self.path(), text);
        Some([outline(old)?, outline(new)?])
    }

    /// Checks whether the difference of the file may consist of hunks, which is so if the file is a
    /// regular one in both versions.
    pub fn has_lines(&self) -> bool {
        let is_regular = |version: &Version| version.entry.mode & 0o170000 == 0o100000;
        matches!((&self.old, &self.new), (Some(old), Some(new)) if is_regular(old) && is_regular(new))
    }

    /// Returns how many sections a patch made by git has for the file: two if the file's type
    /// changes (such as from a file to a symbolic link), else one.
    pub fn sections(&self) -> usize {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => 1 + usize::from(old.entry.mode >> 12 != new.entry.mode >> 12),
            _ => 1,
        }
    }

    /// Returns the name, in results, of a change of the kind `kind` in this file: `link` if the
    /// file is a symbolic link that gets a new target, `submodule` if it is a submodule that gets a
    /// new commit, else the name of the kind.
    pub fn kind_name(&self, kind: Kind) -> &'static str {
        let mode = self.new.as_ref().map(|new| new.entry.mode);
        match (kind, mode) {
            (Kind::Content, Some(SYMLINK)) => "link",
            (Kind::Content, Some(SUBMODULE)) => "submodule",
            _ => kind.name(),
        }
    }

    /// Returns the path of the file in the new version or, if the new version lacks the file, in
    /// the old version.
    pub fn path(&self) -> &[u8] {
        let version = self.new.as_ref().or(self.old.as_ref());
        version.map_or(b"", |version| &version.path)
    }

    /// Returns the single changes that make up the file's difference (such as a rename and several
    /// hunks), in the order in which they are numbered.
    fn kinds(&self) -> Vec<Kind> {
        let (old, new) = match (&self.old, &self.new) {
            (Some(old), Some(new)) => (old, new),
            (None, _) => return vec![Kind::Create],
            (_, None) => return vec![Kind::Delete],
        };
        if old.entry.mode >> 12 != new.entry.mode >> 12 {
            return vec![Kind::Replace];
        }
        let mut kinds = Vec::new();
        if old.path != new.path {
            kinds.push(Kind::Rename);
        }
        if old.entry.mode != new.entry.mode {
            kinds.push(Kind::Mode);
        }
        match self.hunks.len() {
            0 if old.entry.content != new.entry.content => kinds.push(Kind::Content),
            hunks => kinds.extend((0..hunks).map(Kind::Hunk)),
        }
        kinds
    }
}

/// What one change does to its file: creates, deletes or renames it, replaces some of its lines, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// This change creates the file.
    Create,
    /// This change deletes the file from the program's sources.
    Delete,
    /// This change renames the file, from its path in the old version to that in the new one.
    Rename,
    /// This change sets the mode (permissions) that the file has in the new version.
    Mode,
    /// The change replaces the whole content, which has no lines: of a binary file, a symbolic link
    /// (its target), or a submodule (its commit).
    Content,
    /// The change replaces the file by one of another type, such as a symbolic link.
    Replace,
    /// The change replaces lines of the file, by the hunk with this index in [`FileChange::hunks`].
    Hunk(usize),
}

impl Kind {
    /// Returns the name of this kind of change in results, such as `new file` or `hunk`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Create => "new file",
            Kind::Delete => "deleted file",
            Kind::Rename => "renamed file",
            Kind::Mode => "mode",
            Kind::Content => "binary",
            Kind::Replace => "type",
            Kind::Hunk(_) => "hunk",
        }
    }
}

/// A part of a change: what it does to one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index of the changed file in [`ChangeSet::files`].
    pub file: usize,
    /// What the change does to the file, such as to create it or to replace lines.
    pub kind: Kind,
}

/// The set of all changes between two versions of the program, numbered by file and line. A change
/// is usually one hunk, or the creation, deletion, renaming … of one file. Parts that can only be
/// applied together, for example because a file becomes a directory, are one change.
#[derive(Clone, Debug, Default)]
pub struct ChangeSet {
    /// The files that differ between the two versions.
    pub files: Vec<FileChange>,
    /// The changes between the two versions, which the search keeps or leaves out one by one; each
    /// consists of one or more parts.
    pub changes: Vec<Vec<Part>>,
}

impl ChangeSet {
    /// Splits the differences `files` between two versions into single changes and numbers them.
    pub fn new(files: Vec<FileChange>) -> ChangeSet {
        let parts = files.iter().enumerate().flat_map(|(file, change)| {
            change
                .kinds()
                .into_iter()
                .map(move |kind| Part { file, kind })
        });
        let mut changes: Vec<Vec<Part>> = parts.map(|part| vec![part]).collect();
        join_clashing(&files, &mut changes);
        ChangeSet { files, changes }
    }

    /// Returns the number of changes in the set.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Checks whether the set has no changes, because both versions have the same files.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Returns the tree `base` with the changes `kept` (indices of `changes`) applied. If a file in
    /// `base` differs from the file's old version, the changes are merged into it. Returns `None`
    /// if the changes conflict, if a renamed file would overwrite another one, or if a file would
    /// be where another needs a directory.
    ///
    /// # Errors
    /// If contents cannot be read.
    pub fn apply(
        &self,
        kept: &Config,
        base: &Tree,
        repository: &Repository,
    ) -> Result<Option<Tree>, ChangesError> {
        let mut chosen: HashMap<usize, Vec<Kind>> = HashMap::new();
        for part in kept.ranges().flatten().flat_map(|unit| &self.changes[unit]) {
            chosen.entry(part.file).or_default().push(part.kind);
        }
        let mut files: Vec<usize> = chosen.keys().copied().collect();
        files.sort_unstable();
        let mut tree = base.clone();
        // Old places first: a new file may need one of them.
        for file in &files {
            let moves = |kind: &Kind| matches!(kind, Kind::Delete | Kind::Rename);
            if let Some(old) = self.files[*file]
                .old
                .as_ref()
                .filter(|_| chosen[file].iter().any(moves))
            {
                tree.remove(&old.path);
            }
        }
        for file in files {
            match self.files[file].applied(&chosen[&file], base, repository)? {
                Applied::Clash => return Ok(None),
                Applied::Gone => {}
                // The rename would overwrite a file that the set of changes does not know of.
                Applied::Put(path, _) if self.is_occupied(file, &path, &tree) => return Ok(None),
                Applied::Put(path, entry) => tree.put(&path, entry),
            }
        }
        Ok(tree.file_as_directory().is_none().then_some(tree))
    }

    /// Checks whether a renamed file would overwrite another one at its new path `path` in the tree
    /// `tree`, from which the old places of renamed and deleted files are removed.
    fn is_occupied(&self, file: usize, path: &[u8], tree: &Tree) -> bool {
        let old = self.files[file].old.as_ref();
        old.is_some_and(|old| old.path != path) && tree.get(path).is_some()
    }

    /// Returns for each change of the set the id of the commit, between the two commits `versions`,
    /// that made the change; `None` if several commits touched it, or it is not known. The list is
    /// empty if there are fewer than two commits, or if more than 300 files differ.
    ///
    /// # Errors
    /// If git cannot read the history.
    pub fn commits(
        &self,
        repository: &Repository,
        versions: (&str, &str),
    ) -> Result<Vec<Option<String>>, ChangesError> {
        let is_one = repository.commit_count(versions)? < 2;
        if is_one || self.files.len() > MOST_BLAMED {
            return Ok(Vec::new());
        }
        let mut of_file = HashMap::new();
        let mut found = Vec::new();
        for parts in &self.changes {
            let change = &self.files[parts[0].file];
            let (brought, touching) = match of_file.entry(parts[0].file) {
                hash_map::Entry::Occupied(known) => known.into_mut(),
                hash_map::Entry::Vacant(new) => new.insert(change.history(repository, versions)?),
            };
            let lines = match parts[0].kind {
                Kind::Hunk(hunk) => in_range(brought, change.hunks[hunk].new.clone()),
                _ => &[],
            };
            found.push(match (&touching[..], lines) {
                ([only], _) => Some(only.id.clone()),
                (_, [first, rest @ ..]) if rest.iter().all(|id| id == first) => first.clone(),
                _ => None,
            });
        }
        Ok(found)
    }

    /// Returns the facts by which a search orders and divides the changes: their groups (directory,
    /// file, commit, function), the identifiers in their lines, and which changes probably require
    /// which others. `commit_of` has the result of [`commits`](ChangeSet::commits), or is empty.
    ///
    /// # Errors
    /// If contents cannot be read.
    pub fn facts(
        &self,
        repository: &Repository,
        commit_of: &[Option<String>],
    ) -> Result<Facts, ChangesError> {
        let mut units = vec![UnitFacts::default(); self.len()];
        let mut unread = Vec::new();
        let (mut old_words, mut new_words) = (Words::default(), Words::default());
        let mut texts: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for change in &self.files {
            let text = |version: &Option<Version>| match version {
                Some(version) if version.entry.mode != SUBMODULE => {
                    repository.content(&version.entry.content)
                }
                _ => Ok(Vec::new()),
            };
            let (old, new) = (text(&change.old)?, text(&change.new)?);
            old_words.add(&old);
            new_words.add(&new);
            texts.push((old, new));
        }
        let split = ddfuzz_delta::lines;
        let pairs = texts.iter().map(|(old, new)| [split(old), split(new)]);
        let lines: Vec<_> = pairs.collect();
        let mut outlines: HashMap<usize, Option<[Outline; 2]>> = HashMap::new();
        for (unit, parts) in self.changes.iter().enumerate() {
            let facts = &mut units[unit];
            let (file, (old, new)) = (parts[0].file, &texts[parts[0].file]);
            let outline = outlines
                .entry(file)
                .or_insert_with(|| self.files[file].outlines(old, new));
            facts.groups = self.groups(
                parts[0],
                outline.as_ref(),
                commit_of
                    .get(unit)
                    .map(|commit| commit.as_deref().unwrap_or_default()),
            );
            for part in parts {
                let [old, new] = &lines[part.file];
                let (removed, added) = self.files[part.file].texts(part.kind, old, new);
                facts.removes.extend(Words::of(&removed));
                facts.adds.extend(Words::of(&added));
                facts.undefines.extend(Words::defined(&removed));
                facts.defines.extend(Words::defined(&added));
            }
            if parts
                .iter()
                .all(|part| is_unread(self.files[part.file].path()))
            {
                unread.push(unit);
            }
        }
        let facts = Facts::of(
            &units,
            |word| old_words.has(word),
            |word| new_words.has(word),
        );
        Ok(facts.with_unread(&unread))
    }

    /// Returns the names of the groups that a change belongs to, from coarse to fine
    /// ([`UnitFacts::groups`]): directory, file, commit, function. `commit` is the id of the
    /// change's commit (empty if it is not known); if it is `None`, there is no group for the
    /// commit. A change that is not a hunk has the name of its kind in place of a function.
    fn groups(
        &self,
        part: Part,
        outlines: Option<&[Outline; 2]>,
        commit: Option<&str>,
    ) -> Vec<String> {
        let change = &self.files[part.file];
        let path = String::from_utf8_lossy(change.path()).into_owned();
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let function = match part.kind {
            Kind::Hunk(hunk) => {
                let hunk = &change.hunks[hunk];
                outlines.map_or_else(
                    || hunk.function.clone(),
                    |both| Outline::function_of(both, hunk),
                )
            }
            kind => kind.name().to_owned(),
        };
        let mut groups = vec![directory.to_owned(), path.clone()];
        groups.extend(commit.map(str::to_owned));
        groups.push(function);
        groups
    }
}

/// What becomes of a file in a tree when some of the changes of this file are applied: it gets new
/// content, it is deleted, or the changes conflict.
enum Applied {
    /// The changes cannot be applied, because they conflict with the file in the tree.
    Clash,
    /// The changes delete the file, so that the tree has no file at its path.
    Gone,
    /// The changes result in a file at this path, with this mode and content.
    Put(Vec<u8>, Entry),
}

impl FileChange {
    /// Applies the changes `chosen` of this file to the files `base`. Returns what becomes of the
    /// file: it is gone; it has a path and a new content; or there is a clash, because `base` has
    /// another file at the path than the changes expect.
    fn applied(
        &self,
        chosen: &[Kind],
        base: &Tree,
        repository: &Repository,
    ) -> Result<Applied, ChangesError> {
        let (old, new) = match (&self.old, &self.new) {
            (Some(old), Some(new)) => (old, new),
            (None, Some(new)) => {
                let free = base.get(&new.path).is_none_or(|there| *there == new.entry);
                return Ok(match free {
                    true => Applied::Put(new.path.clone(), new.entry.clone()),
                    false => Applied::Clash,
                });
            }
            (Some(old), None) => {
                let same = base.get(&old.path).is_none_or(|there| *there == old.entry);
                return Ok(if same { Applied::Gone } else { Applied::Clash });
            }
            (None, None) => return Ok(Applied::Gone),
        };
        let Some(there) = base.get(&old.path) else {
            return Ok(Applied::Clash);
        };
        let has = |kind| chosen.contains(&kind);
        let path = if has(Kind::Rename) {
            &new.path
        } else {
            &old.path
        };
        if has(Kind::Replace) {
            let same = *there == old.entry;
            let put = Applied::Put(path.clone(), new.entry.clone());
            return Ok(if same { put } else { Applied::Clash });
        }
        let mode = if has(Kind::Mode) {
            new.entry.mode
        } else {
            there.mode
        };
        let Some(content) = self.merged(chosen, &there.content, repository)? else {
            return Ok(Applied::Clash);
        };
        Ok(Applied::Put(path.clone(), Entry { mode, content }))
    }

    /// Applies those of the changes `chosen` that concern the content of the file (not its mode,
    /// for example) to `there`, a content of the file, and returns the result. If `there` is not
    /// the content of the old version, the changes are merged into it. `None` if they conflict with
    /// it, or if the old or the new version lacks the file.
    fn merged(
        &self,
        chosen: &[Kind],
        there: &Content,
        repository: &Repository,
    ) -> Result<Option<Content>, ChangesError> {
        let (Some(old), Some(new)) = (&self.old, &self.new) else {
            return Ok(None);
        };
        let (old, new) = (&old.entry.content, &new.entry.content);
        let is_old = there == old;
        if chosen.contains(&Kind::Content) {
            return Ok((is_old || there == new).then(|| new.clone()));
        }
        let mut kept: Vec<usize> = chosen
            .iter()
            .filter_map(|kind| match kind {
                Kind::Hunk(hunk) => Some(*hunk),
                _ => None,
            })
            .collect();
        kept.sort_unstable();
        if kept.is_empty() {
            return Ok(Some(there.clone()));
        }
        if is_old && kept.len() == self.hunks.len() {
            return Ok(Some(new.clone()));
        }
        let old_text = repository.content(old)?;
        let new_text = repository.content(new)?;
        let spliced = self.spliced(&kept, &old_text, &new_text);
        if is_old {
            return Ok(Some(Content::of(spliced)));
        }
        let ours = repository.content(there)?;
        if let Some(merged) = repository.merge(&old_text, &ours, &spliced)? {
            return Ok(Some(Content::of(merged)));
        }
        let others = repository.hunks_between(&old_text, &ours)?;
        if others.is_empty() {
            return Ok(None); // binary
        }
        let others: Vec<&Hunk> = others.iter().collect();
        let kept: Vec<&Hunk> = kept.iter().map(|hunk| &self.hunks[*hunk]).collect();
        let merged = merge_neighbours(&old_text, [(&ours, &others), (&new_text, &kept)]);
        Ok(merged.map(Content::of))
    }

    /// Returns the text `old` with the hunks `kept` applied: each replaces its lines of `old` by
    /// its lines of the text `new`.
    fn spliced(&self, kept: &[usize], old: &[u8], new: &[u8]) -> Vec<u8> {
        let (old, new) = (ddfuzz_delta::lines(old), ddfuzz_delta::lines(new));
        let mut text = Vec::new();
        let mut from = 0;
        for hunk in kept.iter().map(|hunk| &self.hunks[*hunk]) {
            text.extend(in_range(&old, from..hunk.old.start).concat());
            text.extend(in_range(&new, hunk.new.clone()).concat());
            from = hunk.old.end;
        }
        text.extend(in_range(&old, from..old.len()).concat());
        text
    }

    /// Returns the text that a change of the kind `kind` removes from the file, and the text that
    /// it adds; both are empty if the change is neither a hunk nor the creation or deletion of the
    /// file. `old` and `new` are the lines of the file in both versions.
    fn texts(&self, kind: Kind, old: &[&[u8]], new: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        match kind {
            Kind::Hunk(hunk) => {
                let hunk = &self.hunks[hunk];
                let removed = in_range(old, hunk.old.clone());
                (removed.concat(), in_range(new, hunk.new.clone()).concat())
            }
            Kind::Create => (Vec::new(), new.concat()),
            Kind::Delete => (old.concat(), Vec::new()),
            Kind::Rename | Kind::Mode | Kind::Content | Kind::Replace => (Vec::new(), Vec::new()),
        }
    }
}

/// Returns those of `lines` whose indices are in `range`; indices beyond the end of `lines` are
/// ignored.
pub(crate) fn in_range<T>(lines: &[T], range: Range<usize>) -> &[T] {
    let end = range.end.min(lines.len());
    &lines[range.start.min(end)..end]
}

/// Joins changes into one change if they can only be applied together: because one of them alone
/// would put a file where another file needs a directory, or both would put a file at the same
/// path.
fn join_clashing(files: &[FileChange], units: &mut Vec<Vec<Part>>) {
    let mut freed: HashMap<&[u8], usize> = HashMap::new();
    let mut taken: Vec<(&[u8], usize)> = Vec::new();
    for (unit, parts) in units.iter().enumerate() {
        let change = &files[parts[0].file];
        if let (Kind::Delete | Kind::Rename | Kind::Replace, Some(old)) =
            (parts[0].kind, &change.old)
        {
            freed.insert(&old.path, unit);
        }
        if let (Kind::Create | Kind::Rename, Some(new)) = (parts[0].kind, &change.new) {
            taken.push((&new.path, unit));
        }
    }
    let mut owner: Vec<usize> = (0..units.len()).collect();
    let find = |owner: &[usize], mut unit: usize| {
        while owner[unit] != unit {
            unit = owner[unit];
        }
        unit
    };
    let mut below: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (path, unit) in &freed {
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            below.entry(&path[..at]).or_default().push(*unit);
        }
    }
    for (path, unit) in taken {
        let folders = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let above = folders.filter_map(|(at, _)| freed.get(&path[..at]));
        let others = above
            .chain(freed.get(path))
            .chain(below.get(path).into_iter().flatten());
        for other in others {
            let (one, other) = (find(&owner, unit), find(&owner, *other));
            owner[one.max(other)] = one.min(other);
        }
    }
    let mut joined: Vec<Vec<Part>> = vec![Vec::new(); units.len()];
    for (unit, parts) in units.drain(..).enumerate() {
        joined[find(&owner, unit)].extend(parts);
    }
    joined.retain(|parts| !parts.is_empty());
    *units = joined;
}

/// Checks whether the content of a file is a Git LFS pointer: a short text that stands for a file
/// stored outside of the repository.
pub fn is_lfs_pointer(content: &[u8]) -> bool {
    content.len() < 1024 && content.starts_with(b"version https://git-lfs.github.com/spec/")
}

/// Checks whether an entry of a tree becomes a file on the disk: true for all but submodules.
pub fn is_written(entry: &Entry) -> bool {
    entry.mode != SUBMODULE
}

/// Checks whether an entry of a tree is a symbolic link.
pub fn is_link(entry: &Entry) -> bool {
    entry.mode == SYMLINK
}

#[cfg(test)]
mod tests;
