//! How kept files are named.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ddfuzz_store::hash_of;

/// Names files by their content, or as they are called below the corpus.
pub(super) struct Names {
    /// The corpus, absolute; `None` where contents name the files.
    roots: Option<Vec<PathBuf>>,
    taken: HashSet<PathBuf>,
    /// Folders that names stand in.
    folders: HashSet<PathBuf>,
}

impl Names {
    /// Names for files of `roots`, as they are called there if `keep`.
    pub fn new(roots: &[PathBuf], keep: bool) -> Names {
        let absolute = |root: &PathBuf| std::path::absolute(root).unwrap_or_else(|_| root.clone());
        Names {
            roots: keep.then(|| roots.iter().map(absolute).collect()),
            taken: HashSet::new(),
            folders: HashSet::new(),
        }
    }

    /// A name for this content of the file `path`, that no other has.
    pub fn name(&mut self, path: &Path, bytes: &[u8]) -> PathBuf {
        let hash = hash_of(bytes);
        let plain = match &self.roots {
            None => PathBuf::from(&hash),
            Some(roots) => below(roots, path),
        };
        // Two corpora may each have a file of this name, or one a folder that is a file in the
        // other.
        let mut longer = plain.clone().into_os_string();
        longer.push(format!("-{hash}"));
        let numbered = (1..).map(|more: u64| PathBuf::from(format!("{hash}-{more}")));
        let mut names = [plain, PathBuf::from(longer), PathBuf::from(&hash)]
            .into_iter()
            .chain(numbered);
        let free = names.find(|name| !self.is_taken(name));
        let name = free.unwrap_or_default();
        let folders = name.ancestors().skip(1).map(Path::to_owned);
        self.folders.extend(folders);
        self.taken.insert(name.clone());
        name
    }

    fn is_taken(&self, name: &Path) -> bool {
        let mut above = name.ancestors().skip(1);
        self.taken.contains(name)
            || self.folders.contains(name)
            || above.any(|above| self.taken.contains(above))
    }
}

/// The path below the corpus that it stands in; a file that was named itself has its own name.
fn below(roots: &[PathBuf], path: &Path) -> PathBuf {
    let found = roots.iter().find_map(|root| path.strip_prefix(root).ok());
    match found {
        Some(below) if !below.as_os_str().is_empty() => below.to_owned(),
        _ => PathBuf::from(path.file_name().map_or_else(OsString::new, OsString::from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_name_files_unless_names_are_kept() {
        let roots = [PathBuf::from("/corpus"), PathBuf::from("/single")];
        let mut by_content = Names::new(&roots, false);
        let path = Path::new("/corpus/a/id:000001");
        assert_eq!(by_content.name(path, b"x"), PathBuf::from(hash_of(b"x")));
        let mut kept = Names::new(&roots, true);
        assert_eq!(kept.name(path, b"x"), PathBuf::from("a/id:000001"));
        assert_eq!(
            kept.name(Path::new("/single"), b"x"),
            PathBuf::from("single")
        );
    }

    #[test]
    fn no_name_is_given_twice_nor_that_of_a_folder() {
        let roots = [PathBuf::from("/one"), PathBuf::from("/two")];
        let mut names = Names::new(&roots, true);
        assert_eq!(names.name(Path::new("/one/a"), b"x"), PathBuf::from("a"));
        let other = format!("a-{}", hash_of(b"y"));
        assert_eq!(names.name(Path::new("/two/a"), b"y"), PathBuf::from(&other));
        for expected in [hash_of(b"y"), format!("{}-1", hash_of(b"y"))] {
            let name = names.name(Path::new("/two/a"), b"y");
            assert_eq!(name, PathBuf::from(expected));
        }
        let below = names.name(Path::new("/two/a/b"), b"z");
        assert_eq!(below, PathBuf::from(hash_of(b"z")));
    }
}
