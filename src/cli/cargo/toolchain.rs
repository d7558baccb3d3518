//! What cargo-fuzz needs to build: itself, and a Rust that knows sanitizers.

use std::ffi::OsStr;
use std::io;
use std::process::{Command, Stdio};

use crate::cli::{Exit, Failure, Output};

/// The toolchain that builds, by its name for rustup; `None` for the active one.
pub type Toolchain = Option<&'static str>;

/// Where the active toolchain is too stable for sanitizers.
const NIGHTLY: &str = "nightly";

/// Chooses the toolchain: the active one where it can do it, else the installed nightly one.
///
/// # Errors
/// When there is none, or no cargo-fuzz; the error says which command installs it.
pub fn choose(needs_nightly: bool, output: &Output) -> Result<Toolchain, Failure> {
    let toolchain = match needs_nightly && !is_unstable(None)? {
        true if is_unstable(Some(NIGHTLY)).unwrap_or(false) => {
            output.say(
                "building with nightly Rust: the active toolchain does not support sanitizers",
            );
            Some(NIGHTLY)
        }
        true => {
            return Err(Failure::new(Exit::Baseline, "nightly-missing", NEEDS).hint(INSTALLS));
        }
        false => None,
    };
    let mut version = cargo(toolchain);
    let version = version.args(["fuzz", "--version"]).output();
    let version = version.map_err(|error| no_cargo(&error))?;
    match version.status.success() {
        true => Ok(toolchain),
        false => Err(Failure::new(
            Exit::Baseline,
            "cargo-fuzz-missing",
            "cargo-fuzz is not installed",
        )
        .hint("install it: cargo install cargo-fuzz")),
    }
}

const NEEDS: &str =
    "cargo-fuzz builds with a sanitizer, which needs nightly Rust, and none is installed";
const INSTALLS: &str = "install it: rustup toolchain install nightly; or build without the \
                        sanitizer: --sanitizer none";

/// The word that names the toolchain behind `cargo`, with a space; empty for the active one.
pub fn word(toolchain: Toolchain) -> String {
    toolchain
        .map(|name| format!("+{name} "))
        .unwrap_or_default()
}

/// Cargo of this toolchain.
pub fn cargo(toolchain: Toolchain) -> Command {
    let mut command = Command::new("cargo");
    command.stdin(Stdio::null());
    if let Some(name) = toolchain {
        // What cargo has set for us is of the other toolchain.
        command.env("RUSTUP_TOOLCHAIN", name);
        for set in ["CARGO", "RUSTC", "RUSTDOC"] {
            command.env_remove(set);
        }
    }
    command
}

/// Why cargo cannot be called.
pub fn no_cargo(error: &io::Error) -> Failure {
    Failure::new(
        Exit::Baseline,
        "cargo-missing",
        format!("cargo cannot be run: {error}"),
    )
    .hint("install Rust with rustup, and add ~/.cargo/bin to PATH")
}

/// Whether the compiler takes unstable options.
fn is_unstable(toolchain: Toolchain) -> Result<bool, Failure> {
    if std::env::var_os("RUSTC_BOOTSTRAP").is_some_and(|set| set != OsStr::new("0")) {
        return Ok(true);
    }
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    if let Some(name) = toolchain {
        command = Command::new("rustc");
        command.env("RUSTUP_TOOLCHAIN", name);
        // Else rustup would go and fetch it.
        command.env("RUSTUP_AUTO_INSTALL", "0");
    }
    let output = command.arg("-V").stdin(Stdio::null()).output();
    let output = output.map_err(|error| no_cargo(&error))?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && ["-nightly", "-dev"].iter().any(|mark| said.contains(mark)))
}

/// The triple that the compiler builds for where nobody says.
///
/// # Errors
/// When it cannot be asked.
pub fn host(toolchain: Toolchain) -> Result<String, Failure> {
    let mut command = Command::new("rustc");
    if let Some(name) = toolchain {
        command.env("RUSTUP_TOOLCHAIN", name);
    }
    let output = command.arg("-vV").stdin(Stdio::null()).output();
    let output = output.map_err(|error| no_cargo(&error))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| {
        let message = "`rustc -vV` does not name its host";
        Failure::new(Exit::Baseline, "cargo-missing", message)
    })
}
