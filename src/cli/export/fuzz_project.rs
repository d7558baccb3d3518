//! The cargo-fuzz project that a program was built from.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cli::Failure;
use crate::cli::fuzz_manifest::{fuzz_binaries, nearest};

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
    match fuzz_binaries(dir) {
        None => Manifest::Other,
        Some(names) if names.iter().any(|known| known == name) => Manifest::WithBinary,
        Some(_) => Manifest::Without,
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
            .hint("give the directory of the manifest that cargo-fuzz uses, often fuzz/"));
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
    // The target directory may be anywhere. Then it is the user who stands in the project.
    let here = std::env::current_dir().unwrap_or_default();
    let near = nearest(&here).filter(|_| is_of_cargo_fuzz(program));
    Ok(near
        .filter(|dir| matches!(read(dir, &text), Manifest::WithBinary))
        .map(|dir| of(&dir)))
}

/// Whether a program stands where cargo-fuzz puts what it builds: `<triple>/<profile>/NAME`.
fn is_of_cargo_fuzz(program: &Path) -> bool {
    let mut above = program.ancestors().skip(1).filter_map(Path::file_name);
    let profile = above
        .next()
        .is_some_and(|name| name == "release" || name == "debug");
    profile
        && above
            .next()
            .is_some_and(|triple| triple.to_string_lossy().contains("-linux-"))
}
