//! The arrows between the modules point one way, and each dependency stays in its place.

mod dependencies;
mod modules;
mod paths;
mod pure;
#[path = "../tree/mod.rs"]
mod tree;

use std::path::{Path, PathBuf};

use paths::Paths;

/// The source files of the library and the program, with the paths they use.
fn sources() -> Vec<(PathBuf, Paths)> {
    let all = tree::rust_files().into_iter();
    all.filter(|(file, _)| file.starts_with("src"))
        .map(|(file, text)| {
            let paths = Paths::of(&file, &text);
            (file, paths)
        })
        .collect()
}

/// The module that a file of `src/` belongs to: its folder there, or its own name.
fn module_of(file: &Path) -> String {
    let inside = file.strip_prefix("src").unwrap_or(file);
    let first = inside.iter().next().map(Path::new);
    let name = first.and_then(Path::file_stem);
    name.unwrap_or_default().to_string_lossy().into_owned()
}
