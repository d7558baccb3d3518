//! The programs that crash and hang, compiled by the system's C compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The project.
const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Compiles `source` of the project into `folder`.
///
/// # Errors
/// When the compiler is missing or refuses, with what it says.
pub fn compile(folder: &Path, name: &str, source: &str, flags: &[&str]) -> Result<PathBuf, String> {
    let output = folder.join(name);
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let said = Command::new(&compiler)
        .args(["-w", "-pthread"])
        .args(flags)
        .arg("-o")
        .arg(&output)
        .arg(Path::new(HERE).join(source))
        .output()
        .map_err(|error| format!("starting {}: {error}", compiler.display()))?;
    match said.status.success() {
        true => Ok(output),
        false => Err(format!(
            "{source} does not compile: {}",
            String::from_utf8_lossy(&said.stderr).trim()
        )),
    }
}
