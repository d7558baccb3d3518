//! Runs the C compiler that the `cc` crate finds.

use std::path::Path;

/// Compiles and links `sources` into `output`; ends the build with the compiler's own words if
/// that fails.
pub fn link(output: &Path, kind: &[&str], sources: &[&str], flags: &[&str]) {
    let compiler = cc::Build::new()
        .opt_level(2)
        .debug(false)
        .cargo_metadata(false)
        .get_compiler();
    let mut command = std::process::Command::new(compiler.path());
    command.args(["-std=c11", "-Wall", "-Wextra"]);
    command
        .args(kind)
        .args(sources)
        .arg("-o")
        .arg(output)
        .args(flags);
    match command.output() {
        Ok(done) if done.status.success() => {}
        Ok(done) => panic!(
            "{command:?} failed:\n{}",
            String::from_utf8_lossy(&done.stderr)
        ),
        Err(error) => {
            panic!("{command:?} cannot be run: {error}. Install a C compiler (gcc or clang).")
        }
    }
}
