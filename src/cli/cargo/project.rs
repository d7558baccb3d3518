//! A cargo-fuzz project: where it is, and what it has.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::cli::fuzz_manifest::{is_fuzz_crate, nearest};
use crate::cli::{Exit, Failure};

/// A cargo-fuzz project.
#[derive(Debug)]
pub struct Project {
    /// The directory of its manifest, absolute.
    pub fuzz_dir: PathBuf,
    /// Its fuzz targets, sorted.
    pub targets: Vec<String>,
    /// Where cargo puts what it builds.
    pub target_directory: PathBuf,
}

/// What `cargo metadata` says.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Project {
    /// The project of `--fuzz-dir`, or that of the working directory or of the nearest one above
    /// it: a cargo-fuzz crate itself, or what has one in its folder `fuzz`.
    ///
    /// # Errors
    /// When there is none, or its manifest cannot be read.
    pub fn find(named: Option<&Path>) -> Result<Project, Failure> {
        let here = std::env::current_dir()
            .map_err(|error| Failure::file(Path::new("."), "finding", &error))?;
        let fuzz_dir = match named {
            Some(named) => {
                let dir = here.join(named);
                match is_fuzz_crate(&dir) {
                    true => dir,
                    false => return Err(no_fuzz_crate(&dir)),
                }
            }
            None => nearest(&here).ok_or_else(|| none_above(&here))?,
        };
        Project::read(fuzz_dir)
    }

    fn read(fuzz_dir: PathBuf) -> Result<Project, Failure> {
        let manifest = fuzz_dir.join("Cargo.toml");
        let output = Command::new("cargo")
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .arg("--manifest-path")
            .arg(&manifest)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| super::toolchain::no_cargo(&error))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let message = format!("cargo cannot read the project: {}", said.trim());
            return Err(Failure::usage(message)
                .path(&manifest)
                .hint("fix the manifest"));
        }
        let unread = |why: &dyn std::fmt::Display| {
            let message = format!("the output of `cargo metadata` is not understood: {why}");
            Failure::new(Exit::Internal, "system", message).path(&manifest)
        };
        let metadata: Metadata =
            serde_json::from_slice(&output.stdout).map_err(|error| unread(&error))?;
        let own = std::fs::canonicalize(&manifest).unwrap_or(manifest.clone());
        let is_own = |package: &&Package| {
            std::fs::canonicalize(&package.manifest_path).is_ok_and(|path| path == own)
        };
        let package = metadata.packages.iter().find(is_own);
        let package = package.ok_or_else(|| unread(&"the package is not in it"))?;
        let binaries = package.targets.iter();
        let binaries = binaries.filter(|target| target.kind.iter().any(|kind| kind == "bin"));
        let mut targets: Vec<String> = binaries.map(|target| target.name.clone()).collect();
        targets.sort();
        Ok(Project {
            fuzz_dir,
            targets,
            target_directory: metadata.target_directory,
        })
    }

    /// Makes sure that there is a fuzz target of this name.
    ///
    /// # Errors
    /// When there is none; the error names those that there are.
    pub fn check(&self, target: &str) -> Result<(), Failure> {
        if self.targets.iter().any(|one| one == target) {
            return Ok(());
        }
        let message = format!("there is no fuzz target {target}");
        let hint = match self.targets.is_empty() {
            true => format!("add it: cargo fuzz add {target}"),
            false => format!(
                "there are {}; add it: cargo fuzz add {target}",
                self.targets.join(", ")
            ),
        };
        Err(Failure::usage(message).path(&self.fuzz_dir).hint(hint))
    }

    /// The folder of a target's corpus.
    pub fn corpus(&self, target: &str) -> PathBuf {
        self.fuzz_dir.join("corpus").join(target)
    }

    /// The folder of the inputs that were found to fail.
    pub fn artifacts(&self, target: &str) -> PathBuf {
        self.fuzz_dir.join("artifacts").join(target)
    }
}

fn no_fuzz_crate(dir: &Path) -> Failure {
    let hint = match dir.file_name() == Some(OsStr::new("fuzz")) {
        true => "create one: cargo fuzz init",
        false => {
            "give the directory whose Cargo.toml has `cargo-fuzz = true` under [package.metadata]"
        }
    };
    Failure::usage("this is not a cargo-fuzz project")
        .path(dir)
        .hint(hint)
}

fn none_above(here: &Path) -> Failure {
    Failure::usage("there is no cargo-fuzz project in this directory or above it")
        .path(here)
        .hint("create one: cargo fuzz init; or give its directory: --fuzz-dir DIR")
}
