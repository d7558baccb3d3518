//! README and the book say what is true: their commands are run, all of their command lines parse,
//! and links lead to headings that are there.
//!
//! Which commands of ddfuzz are run is seen in the documents. A block (```` ```sh ````, and
//! ```` ```console ```` with what is said) is run unless the line above it is
//! `<!-- not run: REASON -->`.
#![cfg(all(feature = "cli", feature = "campaign"))]

mod anchors;
mod blocks;
mod lines;
#[path = "../needs/mod.rs"]
mod needs;
mod output;
mod run;
mod stage;
#[expect(dead_code, reason = "sources are not read here")]
#[path = "../tree/mod.rs"]
mod tree;

use std::path::{Path, PathBuf};

/// README and the pages of the book, with their text.
fn documents() -> Vec<(PathBuf, String)> {
    let is_ours = |file: &PathBuf| {
        let is_page = file.parent() == Some(Path::new("docs/src"));
        file == Path::new("README.md") || is_page && file.extension().is_some_and(|one| one == "md")
    };
    let documents = tree::files().into_iter().filter(is_ours);
    let documents: Vec<_> = documents
        .map(|file| {
            let text = std::fs::read_to_string(tree::root().join(&file)).expect("it is UTF-8");
            (file, text)
        })
        .collect();
    assert!(documents.len() > 20, "only {} documents", documents.len());
    documents
}
