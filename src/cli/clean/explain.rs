//! `--explain FILE`: why a file was kept, or left out.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::{Exit, Failure, Output};
use crate::corpus::{Fate, Place, explain};
use crate::files::OsText;
use crate::report::clean::CleanResult;
use crate::report::text::printable;

#[derive(Serialize)]
struct Explained {
    file: OsText,
    kept: bool,
    in_corpus: bool,
    why: String,
}

/// Explains `files` by the cleanup that `out` holds.
pub fn run(out: &Path, files: &[PathBuf], output: &Output) -> Result<Exit, Failure> {
    let place = Place::of(out);
    let result = read(&place.result())?;
    let mut all = Vec::new();
    for file in files {
        let Fate {
            kept,
            in_corpus,
            why,
        } = explain(&place, &result, file).map_err(|error| Failure::from(error).path(file))?;
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        let file = OsText::from(&file);
        all.push(Explained {
            file,
            kept,
            in_corpus,
            why,
        });
    }
    let corpus = result.corpus.iter().map(|one| one.0.to_string_lossy());
    let corpus: Vec<String> = corpus.map(|one| printable(&one)).collect();
    let not_in = format!("not in the corpus {}", corpus.join(", "));
    let lines: Vec<String> = (all.iter())
        .map(|one| {
            let what = match (one.kept, one.in_corpus) {
                (true, _) => "kept",
                (false, true) => "left out",
                (false, false) => &*not_in,
            };
            let file = printable(&one.file.0.to_string_lossy());
            format!("{file}: {what}: {}", printable(&one.why))
        })
        .collect();
    #[derive(Serialize)]
    struct All {
        explained: Vec<Explained>,
    }
    output.result(&lines.join("\n"), &All { explained: all });
    Ok(Exit::Done)
}

fn read(path: &Path) -> Result<CleanResult, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::file(path, "reading", &error)
            .hint("give the output directory of a finished `ddfuzz clean` with -o")
    })?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::usage(format!(
            "{} is not the result of a cleanup: {error}",
            path.display()
        ))
        .path(path)
        .hint("clean the corpus again")
    })
}
