//! The cargo-fuzz project that a program was built from.
//!
//! Localized here: `toml`, for manifests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cli::Failure;

/// A harness of a cargo-fuzz project.
pub(super) struct Harness {
    /// The directory of the project's manifest, absolute.
    pub(super) dir: PathBuf,
    /// The name of its binary.
    pub(super) name: OsString,
}

/// What a manifest says of itself.
enum Manifest {
    /// A cargo-fuzz project with a binary of that name.
    WithBinary,
    /// A cargo-fuzz project without one.
    Without,
    /// Something else.
    Other,
}

fn read(dir: &Path, name: &str) -> Manifest {
    let text = std::fs::read_to_string(dir.join("Cargo.toml")).unwrap_or_default();
    let Ok(manifest) = text.parse::<toml::Table>() else {
        return Manifest::Other;
    };
    let metadata = manifest
        .get("package")
        .and_then(|package| package.get("metadata"));
    let marked = metadata.and_then(|metadata| metadata.get("cargo-fuzz"));
    if marked.and_then(toml::Value::as_bool) != Some(true) {
        return Manifest::Other;
    }
    let binaries = manifest.get("bin").and_then(toml::Value::as_array);
    let mut names = binaries.into_iter().flatten().map(|bin| bin.get("name"));
    match names.any(|known| known.and_then(toml::Value::as_str) == Some(name)) {
        true => Manifest::WithBinary,
        false => Manifest::Without,
    }
}

/// The harness that `program` is: that of the project in `asked`, or of one whose target directory
/// or whose workspace's it lies in; `None` where it is none.
pub(super) fn harness(program: &Path, asked: Option<&Path>) -> Result<Option<Harness>, Failure> {
    let Some(name) = program.file_name() else {
        return Ok(None);
    };
    let text = name.to_string_lossy();
    let of = |dir: &Path| Harness {
        dir: dir.to_owned(),
        name: name.to_owned(),
    };
    if let Some(asked) = asked {
        let dir = std::path::absolute(asked);
        let dir = dir.map_err(|error| Failure::file(asked, "finding", &error))?;
        let message = match read(&dir, &text) {
            Manifest::WithBinary => return Ok(Some(of(&dir))),
            Manifest::Without => format!("its Cargo.toml has no [[bin]] {text:?}"),
            Manifest::Other => "it has no Cargo.toml of a cargo-fuzz project".to_owned(),
        };
        return Err(Failure::usage(message)
            .path(asked)
            .hint("name the directory of the manifest that cargo-fuzz uses, often fuzz/"));
    }
    // <fuzz>/target/<triple>/release/NAME, or the same below the workspace that fuzz/ is in.
    let folders = program.ancestors().skip(1).take(6);
    for folder in folders {
        for dir in [folder.to_owned(), folder.join("fuzz")] {
            if let Manifest::WithBinary = read(&dir, &text) {
                return Ok(Some(of(&dir)));
            }
        }
    }
    Ok(None)
}
