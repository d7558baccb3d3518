//! Finds the changes at the places (files and lines) that the messages of a failed build name.

use ddfuzz_delta::Config;

use crate::change_set::{ChangeSet, Kind};

/// Maximum number of changes that are tried near one place in a failed build's messages: the build
/// may fail there because the version lacks them.
const NEAREST: usize = 4;

/// The changes of a set at or near the places (file and line) that the messages of a failed build
/// name, split into those that the built version has and those that it lacks. Each list has indices
/// into the set, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Changes that the built version lacks and that are nearest to the places in the build's
    /// messages, at any distance: at most `NEAREST` for each place.
    pub near: Vec<usize>,
    /// Changes that the built version lacks and that would change exactly the lines that the
    /// build's messages name.
    pub missing: Vec<usize>,
    /// Changes that the built version has and that have changed exactly the lines that the build's
    /// messages name.
    pub within: Vec<usize>,
}

/// Finds the changes of `set` at or near the places `at`, which the messages of a failed build
/// name; the built version has the changes `kept` of the set. A place is a path and a line, counted
/// from 1. The line 0 stands for a whole file; its path may be given without its first folders.
pub fn around(set: &ChangeSet, kept: &Config, at: &[(Vec<u8>, u64)]) -> Around {
    let mut found = Around::default();
    for (path, line) in at {
        let (made, mut missing): (Vec<_>, Vec<_>) = distances(set, kept, path, *line)
            .into_iter()
            .partition(|(_, unit)| kept.contains(*unit));
        missing.sort_unstable();
        let there = missing.iter().filter(|(distance, _)| *distance == 0);
        found.missing.extend(there.map(|(_, unit)| *unit));
        let nearest = missing.into_iter().take(NEAREST);
        found.near.extend(nearest.map(|(_, unit)| unit));
        let made = made.into_iter().filter(|(distance, _)| *distance == 0);
        found.within.extend(made.map(|(_, unit)| unit));
    }
    for units in [&mut found.near, &mut found.missing, &mut found.within] {
        units.sort_unstable();
        units.dedup();
    }
    found
}

/// Returns, for each change of the file at `path`, its distance from the line `line` of a version
/// that has the changes `kept`, and its index in `set`. The distance is in lines; it is 0 for a
/// change of the file as a whole, and for every change if `line` is 0.
fn distances(set: &ChangeSet, kept: &Config, path: &[u8], line: u64) -> Vec<(u64, usize)> {
    let mut hunks = Vec::new();
    let mut found = Vec::new();
    for (unit, parts) in set.changes.iter().enumerate() {
        for part in parts {
            let file = &set.files[part.file];
            let is_there = file.path() == path || line == 0 && file.path().ends_with(path);
            match part.kind {
                Kind::Hunk(hunk) if is_there && line > 0 => hunks.push((&file.hunks[hunk], unit)),
                _ if is_there => found.push((0, unit)),
                _ => {}
            }
        }
    }
    hunks.sort_by_key(|(hunk, _)| hunk.old.start);
    let line = line.saturating_sub(1) as i64;
    // Number of lines that the kept changes before a line have added.
    let mut shift = 0;
    for (hunk, unit) in hunks {
        let begin = hunk.old.start as i64 + shift;
        let (old, new) = (hunk.old.len() as i64, hunk.new.len() as i64);
        let length = match kept.contains(unit) {
            true => {
                shift += new - old;
                new
            }
            false => old,
        };
        let distance = match line {
            line if line < begin => begin - line,
            line => (line - (begin + length - 1)).max(0),
        };
        found.push((distance.unsigned_abs(), unit));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change_set::{FileChange, Hunk, Version};
    use crate::search::config;
    use crate::tree::{Content, Entry};

    #[test]
    fn lines_are_those_of_the_version_and_not_of_the_new_one() {
        let hunk = |old: std::ops::Range<usize>, new: std::ops::Range<usize>| Hunk {
            old,
            new,
            function: String::new(),
        };
        // Ten lines are added at the top, line 20 is changed, and two lines after line 29 are
        // deleted.
        let version = |text: &str| {
            let entry = Entry {
                mode: 0o100_644,
                content: Content::Object(text.into()),
            };
            Some(Version {
                path: b"a.c".to_vec(),
                entry,
            })
        };
        let file = FileChange {
            old: version("1"),
            new: version("2"),
            hunks: vec![
                hunk(0..0, 0..10),
                hunk(20..21, 30..31),
                hunk(30..32, 40..40),
            ],
        };
        let set = ChangeSet::new(vec![file]);
        let at =
            |kept: &[usize], line: u64| around(&set, &config(kept), &[(b"a.c".to_vec(), line)]);
        assert_eq!(at(&[1], 21).within, [1]);
        assert_eq!(at(&[1], 22).within, [] as [usize; 0]);
        assert_eq!(at(&[0, 1], 31).within, [1]);
        assert_eq!(at(&[0], 5).within, [0]);
        assert_eq!(at(&[0, 1, 2], 21).near, [] as [usize; 0]);
        assert_eq!(at(&[1], 21).near, [0, 2]);
        assert_eq!(
            around(&set, &config(&[0]), &[(b"b.c".to_vec(), 1)]),
            Around::default()
        );
    }
}
