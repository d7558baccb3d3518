//! Manifests of cargo-fuzz projects.
//!
//! Localized here: `toml`, for manifests.

use std::path::{Path, PathBuf};

use serde::Deserialize;

#[derive(Deserialize)]
struct Manifest {
    package: Package,
    #[serde(default)]
    bin: Vec<Binary>,
}

#[derive(Deserialize)]
struct Package {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "cargo-fuzz")]
    cargo_fuzz: bool,
}

#[derive(Deserialize)]
struct Binary {
    name: String,
}

/// The names of the binaries that the manifest in this directory lists; `None` where it is not
/// marked as one of cargo-fuzz.
pub fn fuzz_binaries(dir: &Path) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(dir.join("Cargo.toml")).ok()?;
    let manifest: Manifest = toml::from_str(&text).ok()?;
    let names = manifest.bin.into_iter().map(|binary| binary.name);
    manifest
        .package
        .metadata
        .cargo_fuzz
        .then(|| names.collect())
}

/// The nearest crate of cargo-fuzz: this directory or one above it, or the folder `fuzz` of one.
pub fn nearest(here: &Path) -> Option<PathBuf> {
    here.ancestors().find_map(|dir| {
        let inside = dir.join("fuzz");
        match is_fuzz_crate(dir) {
            true => Some(dir.to_owned()),
            false => is_fuzz_crate(&inside).then_some(inside),
        }
    })
}

/// Whether the manifest in this directory is marked as one of cargo-fuzz.
pub fn is_fuzz_crate(dir: &Path) -> bool {
    fuzz_binaries(dir).is_some()
}
