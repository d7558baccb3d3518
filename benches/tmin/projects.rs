//! The projects, copied and built as their users do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Their folders in `tests/cargo_fuzz`, and their fuzz targets.
pub const PROJECTS: [(&str, &str); 3] = [
    ("two_panics", "parse"),
    ("arbitrary", "ops"),
    ("cpp_asan", "sessions"),
];

/// A project that is built.
pub struct Built {
    /// Its fuzz target.
    pub target: &'static str,
    /// Whether its bugs are found by AddressSanitizer; the others panic.
    pub has_reports: bool,
    /// The program.
    pub program: PathBuf,
    /// Where results are written.
    pub work: PathBuf,
    project: PathBuf,
    build: PathBuf,
    artifacts: PathBuf,
}

impl Built {
    /// Copies a project below `target` and builds its fuzz target, unless it is there as it is now.
    /// Results are written into `work`.
    pub fn build((name, target): (&str, &'static str), work: &Path) -> Result<Built, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (tests, folder) = (
            root.join("tests/cargo_fuzz"),
            root.join("target/bench-tmin"),
        );
        let (project, build) = (folder.join(name), folder.join("target"));
        copy(&tests.join("projects").join(name), &project).map_err(|error| error.to_string())?;
        let mut built = Built {
            target,
            has_reports: name.ends_with("_asan"),
            program: PathBuf::new(),
            work: work.to_owned(),
            artifacts: tests.join("artifacts").join(name),
            project,
            build,
        };
        let output = built.cargo_fuzz("build").output();
        let output = output.map_err(|error| format!("cargo: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(said.lines().last().unwrap_or("it failed").to_owned());
        }
        let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        built.program = built.build.join(triple).join("release").join(target);
        Ok(built)
    }

    /// `cargo fuzz COMMAND TARGET`, of the nightly toolchain.
    pub fn cargo_fuzz(&self, command: &str) -> Command {
        let mut call = Command::new("cargo");
        // Settings of the build of ddfuzz are none of theirs.
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PROFILE_")) {
            call.env_remove(name);
        }
        call.env_remove("RUSTUP_TOOLCHAIN")
            .env("CARGO_TARGET_DIR", &self.build)
            .current_dir(&self.project)
            .args(["+nightly", "fuzz", command, self.target]);
        call
    }

    /// Where cargo-fuzz has its artifacts written.
    pub fn cargo_fuzz_artifacts(&self) -> PathBuf {
        self.project.join("fuzz/artifacts").join(self.target)
    }

    /// Its crash files of these names, in order.
    pub fn files(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, String> {
        let all = fs::read_dir(&self.artifacts).map_err(|error| error.to_string())?;
        let mut files: Vec<PathBuf> = all.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            is_wanted(&name)
        });
        files.sort();
        Ok(files)
    }
}

/// Copies what differs: cargo builds again what is newer.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copied = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &copied)?,
            false if fs::read(&copied).ok() == Some(fs::read(entry.path())?) => {}
            false => drop(fs::copy(entry.path(), copied)?),
        }
    }
    Ok(())
}
