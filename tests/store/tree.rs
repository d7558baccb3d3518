//! Directories as values, to be compared.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Every file and folder below `root` by relative path: permission bits, and the bytes of a file.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let mode = metadata.permissions().mode() & 0o777;
            let bytes = metadata.is_file().then(|| fs::read(&path).unwrap());
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path.strip_prefix(root).unwrap().to_owned(), (mode, bytes));
        }
    }
    found
}

/// The relative paths of the files below `root`, but for the lock.
pub fn files(root: &Path) -> Vec<String> {
    let tree = tree(root).into_iter();
    tree.filter(|(_, (_, bytes))| bytes.is_some())
        .map(|(path, _)| path.to_str().unwrap().to_owned())
        .filter(|path| path != ".lock")
        .collect()
}
