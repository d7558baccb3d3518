//! The bundled `ul` with AFL++'s fork server in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What `ul` is made of.
const UL: [&str; 4] = ["main.c", "ul/ul.c", "complain.c", "guarded.c"];
/// As crates/ddfuzz-exec/build.rs compiles it, so that it dies of the same input.
const FLAGS: [&str; 6] = [
    "-std=c11",
    "-O1",
    "-fno-omit-frame-pointer",
    "-fno-inline",
    "-fno-stack-protector",
    "-U_FORTIFY_SOURCE",
];

/// A compiled program, removed at the end with the directory it stands in.
pub struct Instrumented {
    /// The program.
    pub path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Instrumented {
    /// Compiles it; fails, and says why, where `afl-clang-fast` is missing or does not work.
    pub fn ul() -> Result<Instrumented, String> {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        // The target may be another user.
        let everybody = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), everybody).map_err(|error| error.to_string())?;
        let path = directory.path().join("ul");
        let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets");
        let said = Command::new("afl-clang-fast")
            .args(FLAGS)
            .arg("-o")
            .arg(&path)
            .args(UL.map(|file| targets.join(file)))
            .output()
            .map_err(|error| format!("starting afl-clang-fast: {error}"))?;
        match said.status.success() {
            true => Ok(Instrumented {
                path,
                _directory: directory,
            }),
            false => Err(format!(
                "afl-clang-fast does not compile ul: {}",
                String::from_utf8_lossy(&said.stderr).trim()
            )),
        }
    }
}
