//! The files of the project, as git knows them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The project's directory.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files that are committed or would be, relative to [`root`], sorted.
pub fn files() -> Vec<PathBuf> {
    let output = Command::new("git")
        // The directory may belong to somebody else than who runs the tests.
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .args(["--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git is installed: the tests of the tree ask it for the project's files");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut files: Vec<PathBuf> = output
        .stdout
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
        // Deleted ones stay in git's index until the next commit.
        .filter(|file| root().join(file).is_file())
        .collect();
    files.sort();
    files.dedup();
    assert!(files.len() > 100, "git knows only {} files", files.len());
    files
}

/// Those of the files that are written in Rust, with their text.
pub fn rust_files() -> Vec<(PathBuf, String)> {
    let rust = files()
        .into_iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    rust.map(|file| {
        let text = std::fs::read_to_string(root().join(&file)).expect("Rust files are UTF-8");
        (file, text)
    })
    .collect()
}
