//! Parses what git prints (commits, differences, patches), and writes paths as git reads them.

use crate::ChangesError;
use crate::change_set::{FileChange, Hunk, Version};
use crate::tree::{Content, Entry, Tree};

/// A git commit: its id, its parents, and what results show of it (author, date, subject).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The id of the commit, in hex digits.
    pub id: String,
    /// The ids of the commit's parents, in hex digits; several for a merge.
    pub parents: Vec<String>,
    /// The name of the commit's author.
    pub author: String,
    /// The author date of the commit, as YYYY-MM-DD.
    pub date: String,
    /// The subject of the commit: the first line of its message.
    pub subject: String,
}

/// Returns the path of a file as a C string literal in quotes, as `git fast-import` reads paths.
pub(crate) fn quoted(path: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b' '..=b'~' => text.push(*byte),
            _ => text.extend(format!("\\{byte:03o}").into_bytes()),
        }
    }
    text.push(b'"');
    text
}

/// Parses the output of `git log -z` with the format `FORMAT` (five fields with unit separators) to
/// commits. An entry that does not have this format is left out.
pub(crate) fn commits(text: &[u8]) -> Vec<Commit> {
    let commit = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let fields: Vec<&str> = line.trim_start_matches('\n').splitn(5, '\x1f').collect();
        let [id, parents, author, date, subject] = fields[..] else {
            return None;
        };
        Some(Commit {
            id: id.to_owned(),
            parents: parents.split_whitespace().map(str::to_owned).collect(),
            author: author.to_owned(),
            date: date.to_owned(),
            subject: subject.trim_end().to_owned(),
        })
    };
    text.split(|byte| *byte == 0).filter_map(commit).collect()
}

/// Returns `path`, the path of a file in a version, as a vector. Returns an error if a component of
/// the path is empty, `.`, `..` or `.git` (in any case): git would not check such a path out,
/// because it may lead out of the directory of the version. Objects of a repository can have such
/// paths.
fn checked(path: &[u8]) -> Result<Vec<u8>, ChangesError> {
    let is_invalid = |part: &[u8]| {
        part.is_empty() || [b".", &b".."[..]].contains(&part) || part.eq_ignore_ascii_case(b".git")
    };
    match path.split(|byte| *byte == b'/').any(is_invalid) {
        true => Err(invalid(path)),
        false => Ok(path.to_vec()),
    }
}

fn invalid(path: &[u8]) -> ChangesError {
    ChangesError::InvalidPath {
        path: String::from_utf8_lossy(path).into_owned(),
    }
}

/// Parses the output of `git ls-tree -r -z` to the files of a version. Returns an error if a path
/// may lead out of the directory of the version, or if one path is that of a file and of a
/// directory.
pub(crate) fn tree(text: &[u8]) -> Result<Tree, ChangesError> {
    let mut entries = Vec::new();
    for line in text.split(|byte| *byte == 0) {
        let Some(tab) = line.iter().position(|byte| *byte == b'\t') else {
            continue;
        };
        let header = String::from_utf8_lossy(&line[..tab]);
        let words: Vec<&str> = header.split(' ').collect();
        if let [mode, _, id] = words[..]
            && let Ok(mode) = u32::from_str_radix(mode, 8)
        {
            let content = Content::Object(id.into());
            entries.push((checked(&line[tab + 1..])?, Entry { mode, content }));
        }
    }
    let tree = Tree::of(entries.into_iter());
    match tree.file_as_directory() {
        Some(path) => Err(invalid(path)),
        None => Ok(tree),
    }
}

/// Parses the output of `git diff-tree --raw -z` to the files that differ, with their modes and
/// object ids in both versions. The lists of hunks are left empty. Returns an error if a path may
/// lead out of the directory of the version.
pub(crate) fn raw_changes(text: &[u8]) -> Result<Vec<FileChange>, ChangesError> {
    let mut fields = text.split(|byte| *byte == 0);
    let mut found = Vec::new();
    while let Some(header) = fields.next().filter(|header| header.starts_with(b":")) {
        let header = String::from_utf8_lossy(&header[1..]);
        let words: Vec<&str> = header.split(' ').collect();
        let [old_mode, new_mode, old_id, new_id, status] = words[..] else {
            break;
        };
        let Some(path) = fields.next() else {
            break;
        };
        let new_path = match status.starts_with('R') || status.starts_with('C') {
            true => fields.next().unwrap_or(path),
            false => path,
        };
        let version = |path: &[u8], mode: &str, id: &str| {
            let mode = u32::from_str_radix(mode, 8).unwrap_or(0);
            let content = Content::Object(id.into());
            Ok::<_, ChangesError>(match mode {
                0 => None,
                _ => Some(Version {
                    path: checked(path)?,
                    entry: Entry { mode, content },
                }),
            })
        };
        found.push(FileChange {
            old: version(path, old_mode, old_id)?,
            new: version(new_path, new_mode, new_id)?,
            hunks: Vec::new(),
        });
    }
    Ok(found)
}

/// Parses a patch of git without context lines (`-U0`) to the hunks of each of its files, in the
/// order of the files. A file without hunks (binary, mode, rename) has an empty list.
pub(crate) fn hunks(patch: &[u8]) -> Vec<Vec<Hunk>> {
    let mut files: Vec<Vec<Hunk>> = Vec::new();
    let mut body = 0;
    for line in patch.split(|byte| *byte == b'\n') {
        if body > 0 {
            // "\ No newline at end of file" is not counted in the header.
            body -= usize::from(!line.starts_with(b"\\"));
        } else if line.starts_with(b"diff --git ") {
            files.push(Vec::new());
        } else if let (Some(hunk), Some(file)) = (Hunk::parse(line), files.last_mut()) {
            body = hunk.old.len() + hunk.new.len();
            file.push(hunk);
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_read_from_a_patch_whose_lines_look_like_headers() {
        let patch = b"diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1 +1,2 @@ fn main\n\
-diff --git a/x b/x\n\\ No newline at end of file\n+@@ -1 +1 @@\n+b\n@@ -4,0 +6 @@\n+c\ndiff --git a/g b/g\n\
old mode 100644\nnew mode 100755\n";
        let found = hunks(patch);
        let ranges: Vec<Vec<_>> = found
            .iter()
            .map(|file| {
                file.iter()
                    .map(|hunk| (hunk.old.clone(), hunk.new.clone()))
                    .collect()
            })
            .collect();
        assert_eq!(ranges, [vec![(0..1, 0..2), (4..4, 5..6)], vec![]]);
        assert_eq!(found[0][0].function, "fn main");
    }

    #[test]
    fn paths_that_git_does_not_check_out_are_refused() {
        let listed = |path: &str| format!("100644 blob 12\t{path}\0");
        let changed = |path: &str| format!(":100644 100644 12 34 M\0{path}\0");
        for path in ["a/b", "...", "a/..b", "git", ".gitignore", "-"] {
            assert!(tree(listed(path).as_bytes()).is_ok(), "{path}");
            assert!(raw_changes(changed(path).as_bytes()).is_ok(), "{path}");
        }
        for path in [
            "../a",
            "a/../b",
            "..",
            "/a",
            "a//b",
            "a/",
            "./a",
            "a/.",
            ".git/config",
            "a/.GIT/b",
            ".Git",
        ] {
            assert!(tree(listed(path).as_bytes()).is_err(), "{path}");
            assert!(raw_changes(changed(path).as_bytes()).is_err(), "{path}");
        }
        // A link and a directory of the same name.
        let both = "120000 blob 12\td\x00100644 blob 34\td/f\0";
        assert!(tree(both.as_bytes()).is_err());
    }

    #[test]
    fn a_path_is_quoted_as_a_string_of_c() {
        assert_eq!(quoted(b"a \"b\"\\\xff\n"), br#""a \"b\"\\\377\012""#);
    }
}
