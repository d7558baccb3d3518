//! Paths as a test of Rust names them, which moves with its project.

use std::path::{Path, PathBuf};

/// The directory of the package that a file in `folder` (which need not be there yet) belongs to.
pub(super) fn package(folder: &Path) -> Option<PathBuf> {
    let folder = match folder == Path::new("") {
        true => Path::new("."),
        false => folder,
    };
    let folder = std::path::absolute(folder).ok()?;
    let there = folder.ancestors().find(|folder| folder.is_dir())?;
    let there = std::fs::canonicalize(there).ok()?;
    let is_package = |folder: &&Path| folder.join("Cargo.toml").is_file();
    there.ancestors().find(is_package).map(Path::to_owned)
}

/// `path` from the package's directory on, where both lie in one project: in a directory with a
/// `Cargo.toml` or a `.git`. Else as it is.
pub(super) fn from_package(path: &Path, package: Option<&Path>) -> PathBuf {
    let relative = package.and_then(|package| {
        let whole = std::fs::canonicalize(path).ok()?;
        let common = package
            .ancestors()
            .find(|folder| whole.starts_with(folder))?;
        let is_project =
            |folder: &Path| folder.join("Cargo.toml").is_file() || folder.join(".git").exists();
        // The project's root may lie above what both have in common.
        common.ancestors().find(|folder| is_project(folder))?;
        let up = package.strip_prefix(common).ok()?.components().count();
        let mut relative: PathBuf = std::iter::repeat_n("..", up).collect();
        relative.push(whole.strip_prefix(common).ok()?);
        Some(relative)
    });
    relative.unwrap_or_else(|| path.to_owned())
}
