//! Builds a fuzz target with cargo-fuzz, using a Rust toolchain that supports sanitizers.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::{Args, ValueEnum};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::project::Project;
use crate::cli::{Exit, Failure, Output, signals};

/// Heading of the options of `cargo fuzz build` in `--help`.
pub(super) const BUILD_HEADING: &str = "Build (the options of cargo fuzz)";

/// Build options of a fuzz target, named as in cargo-fuzz.
#[derive(Args, Clone, Debug)]
pub struct BuildArgs {
    /// Directory of the cargo-fuzz project [default: fuzz/ in this directory, or in the nearest one
    /// above it that has one]
    #[arg(help_heading = BUILD_HEADING, long, value_name = "DIR")]
    pub fuzz_dir: Option<PathBuf>,
    /// Build without optimizations
    #[arg(help_heading = BUILD_HEADING, short = 'D', long, conflicts_with = "release")]
    dev: bool,
    /// Build with optimizations [default]
    #[arg(help_heading = BUILD_HEADING, short = 'O', long)]
    release: bool,
    /// Build with debug assertions and overflow checks [default, unless -O]
    #[arg(help_heading = BUILD_HEADING, short = 'a', long)]
    debug_assertions: bool,
    /// Sanitizer to build with
    #[arg(help_heading = BUILD_HEADING, short, long, value_enum, default_value_t = Sanitizer::Address)]
    sanitizer: Sanitizer,
    /// Build without the default features
    #[arg(help_heading = BUILD_HEADING, long)]
    no_default_features: bool,
    /// Build with all features
    #[arg(help_heading = BUILD_HEADING, long, conflicts_with_all = ["no_default_features", "features"])]
    all_features: bool,
    /// Build with these features
    #[arg(help_heading = BUILD_HEADING, long)]
    features: Option<String>,
    /// Also build the standard library
    #[arg(help_heading = BUILD_HEADING, long)]
    build_std: bool,
    /// Build with additional checks for undefined behaviour
    #[arg(help_heading = BUILD_HEADING, short, long)]
    careful: bool,
    /// Unstable flags for cargo (-Z)
    #[arg(help_heading = BUILD_HEADING, short = 'Z', value_name = "FLAG")]
    unstable: Vec<String>,
    /// Directory for build artifacts
    #[arg(help_heading = BUILD_HEADING, long, value_name = "DIR")]
    target_dir: Option<PathBuf>,
    /// Number of codegen units
    #[arg(help_heading = BUILD_HEADING, long, value_name = "N")]
    codegen_units: Option<u32>,
    /// Whether the linker removes dead code
    #[arg(help_heading = BUILD_HEADING, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    strip_dead_code: Option<bool>,
    /// Do not set `cfg(fuzzing)`
    #[arg(help_heading = BUILD_HEADING, long)]
    no_cfg_fuzzing: bool,
    /// Do not instrument comparisons for the fuzzer
    #[arg(help_heading = BUILD_HEADING, long)]
    no_trace_compares: bool,
    /// Instrument divisions for the fuzzer
    #[arg(help_heading = BUILD_HEADING, long)]
    trace_div: bool,
    /// Instrument array indices for the fuzzer
    #[arg(help_heading = BUILD_HEADING, long)]
    trace_gep: bool,
    /// Whether to disable the compiler's branch folding
    #[arg(help_heading = BUILD_HEADING, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    disable_branch_folding: Option<bool>,
}

/// Time between two checks whether a build has ended, or whether the user has stopped ddfuzz.
const BUILD_INTERVAL: Duration = Duration::from_millis(20);

/// Runs a build to its end, and returns how it exited. If the user stops ddfuzz meanwhile, ends all
/// processes of the build, and fails.
fn finish(command: &mut Command) -> Result<ExitStatus, Failure> {
    let stop = signals::stop_flag()?;
    let build = command.process_group(0).spawn();
    let mut build = build.map_err(|error| no_cargo(&error))?;
    loop {
        let ended = build.try_wait().map_err(|error| no_cargo(&error))?;
        if let Some(status) = ended {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) {
            let group = Pid::from_raw(build.id().cast_signed());
            // Cargo keeps what is built.
            let _ = killpg(group, Signal::SIGTERM);
            let _ = build.wait();
            return Err(Failure::interrupted());
        }
        std::thread::sleep(BUILD_INTERVAL);
    }
}

#[derive(Clone, Debug)]
pub struct Built {
    /// Absolute path of the built fuzz target.
    pub program: PathBuf,
    pub toolchain: Toolchain,
}

/// Values of `--sanitizer`: the sanitizers that cargo-fuzz can build a fuzz target with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sanitizer {
    /// Build with AddressSanitizer
    Address,
    /// Build with LeakSanitizer
    Leak,
    /// Build with MemorySanitizer
    Memory,
    /// Build with ThreadSanitizer
    Thread,
    /// Build without a sanitizer; stable Rust suffices
    None,
}

impl BuildArgs {
    /// Builds the fuzz target `target` with `cargo fuzz build`.
    ///
    /// # Errors
    /// When a tool that is needed is not installed, or the build fails; the error says which
    /// command helps.
    pub fn build(
        &self,
        project: &Project,
        target: &str,
        triple: Option<&str>,
        output: &Output,
    ) -> Result<Built, Failure> {
        project.check(target)?;
        let toolchain = choose_toolchain(self.needs_nightly(), output)?;
        let mut command = cargo(toolchain);
        command
            .args(["fuzz", "build", "--fuzz-dir"])
            .arg(&project.fuzz_dir)
            .args(self.flags(triple))
            .arg(target);
        if output.verbose {
            command.arg("--verbose");
        }
        output.detail(&format!("building: {command:?}"));
        // Nothing but the result goes to stdout.
        command.stdout(std::io::stderr());
        if output.quiet {
            command
                .stdout(Stdio::null())
                .env("CARGO_TERM_QUIET", "true");
        }
        let status = finish(&mut command)?;
        if !status.success() {
            let message = format!("cargo fuzz could not build {target} ({status})");
            return Err(Failure::new(Exit::Baseline, "build", message).hint(format!(
                "fix the errors shown above; to build only: cargo {}fuzz build{} {target}",
                toolchain_word(toolchain),
                self.shown(triple)
            )));
        }
        let triple = match triple {
            Some(triple) => triple.to_owned(),
            None => host_triple(toolchain)?,
        };
        let folder = self
            .target_dir
            .as_ref()
            .unwrap_or(&project.target_directory);
        let profile = if self.dev { "debug" } else { "release" };
        let program = folder.join(triple).join(profile).join(target);
        let program = std::path::absolute(&program).unwrap_or(program);
        check_program(&program)?;
        Ok(Built { program, toolchain })
    }

    /// Returns true if the build options need the nightly compiler, as sanitizers and all unstable
    /// features do.
    fn needs_nightly(&self) -> bool {
        self.sanitizer != Sanitizer::None
            || self.build_std
            || self.careful
            || !self.unstable.is_empty()
    }

    /// Returns the build options, except `--fuzz-dir`, as arguments of `cargo fuzz build`.
    pub fn flags(&self, triple: Option<&str>) -> Vec<OsString> {
        let mut flags: Vec<OsString> = Vec::new();
        let switches = [
            (self.dev, "--dev"),
            (self.release, "--release"),
            (self.debug_assertions, "--debug-assertions"),
            (self.no_default_features, "--no-default-features"),
            (self.all_features, "--all-features"),
            (self.build_std, "--build-std"),
            (self.careful, "--careful"),
            (self.no_cfg_fuzzing, "--no-cfg-fuzzing"),
            (self.no_trace_compares, "--no-trace-compares"),
            (self.trace_div, "--trace-div"),
            (self.trace_gep, "--trace-gep"),
        ];
        let set = switches.into_iter().filter(|(is_set, _)| *is_set);
        flags.extend(set.map(|(_, flag)| flag.into()));
        if self.sanitizer != Sanitizer::Address {
            let name = self.sanitizer.to_possible_value();
            let name = name.map_or_else(String::new, |value| value.get_name().to_owned());
            flags.push(format!("--sanitizer={name}").into());
        }
        let mut valued = |name: &str, value: Option<String>| {
            flags.extend(value.map(|value| format!("--{name}={value}").into()));
        };
        valued("features", self.features.clone());
        valued("codegen-units", self.codegen_units.map(|n| n.to_string()));
        valued(
            "strip-dead-code",
            self.strip_dead_code.map(|on| on.to_string()),
        );
        valued(
            "disable-branch-folding",
            self.disable_branch_folding.map(|on| on.to_string()),
        );
        valued("target", triple.map(str::to_owned));
        for flag in &self.unstable {
            flags.push(format!("-Z{flag}").into());
        }
        if let Some(dir) = &self.target_dir {
            let mut flag = OsString::from("--target-dir=");
            flag.push(std::path::absolute(dir).unwrap_or(dir.clone()));
            flags.push(flag);
        }
        flags
    }

    /// Formats the build options that the user has given as words of a shell command line, with a
    /// space before each.
    pub fn shown(&self, triple: Option<&str>) -> String {
        let mut words = self.flags(triple);
        if let Some(dir) = &self.fuzz_dir {
            words.extend(["--fuzz-dir".into(), dir.clone().into_os_string()]);
        }
        let words = words
            .iter()
            .map(|word| format!(" {}", crate::report::text::shell_word(Path::new(word))));
        words.collect()
    }
}

fn check_program(program: &Path) -> Result<(), Failure> {
    if program.is_file() {
        return Ok(());
    }
    let message = "cargo fuzz has built the target, but the program is not where it is expected";
    Err(Failure::new(Exit::Baseline, "build", message)
        .path(program)
        .hint("give the directory that cargo builds in: --target-dir DIR"))
}

/// Name of a Rust toolchain for rustup; `None` stands for the active one.
pub type Toolchain = Option<&'static str>;

/// Name of the toolchain to use if the active one does not support sanitizers.
const NIGHTLY: &str = "nightly";

/// Returns the Rust toolchain to build with: `None` for the active one, if it suffices, else the
/// installed nightly one. The active one does not suffice if `needs_nightly` is true and it accepts
/// no unstable options.
///
/// # Errors
/// When neither suffices, or cargo-fuzz is not installed; the error says which command installs it.
pub fn choose_toolchain(needs_nightly: bool, output: &Output) -> Result<Toolchain, Failure> {
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

/// Formats a Rust toolchain as an argument of `cargo`: `+nightly `, or nothing for the active one.
pub fn toolchain_word(toolchain: Toolchain) -> String {
    toolchain
        .map(|name| format!("+{name} "))
        .unwrap_or_default()
}

/// Returns a command that runs `cargo` of the given Rust toolchain.
pub fn cargo(toolchain: Toolchain) -> Command {
    let mut command = Command::new("cargo");
    command.stdin(Stdio::null());
    if let Some(name) = toolchain {
        // The variables that cargo has set for this process belong to the other toolchain.
        command.env("RUSTUP_TOOLCHAIN", name);
        for set in ["CARGO", "RUSTC", "RUSTDOC"] {
            command.env_remove(set);
        }
    }
    command
}

/// Builds the failure for a `cargo` that cannot be started because of `error`.
pub fn no_cargo(error: &io::Error) -> Failure {
    Failure::new(
        Exit::Baseline,
        "cargo-missing",
        format!("cargo cannot be run: {error}"),
    )
    .hint("install Rust with rustup, and add ~/.cargo/bin to PATH")
}

/// Returns true if the compiler of the given Rust toolchain accepts unstable options, as a nightly
/// one does.
fn is_unstable(toolchain: Toolchain) -> Result<bool, Failure> {
    if std::env::var_os("RUSTC_BOOTSTRAP").is_some_and(|set| set != OsStr::new("0")) {
        return Ok(true);
    }
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    if let Some(name) = toolchain {
        command = Command::new("rustc");
        command.env("RUSTUP_TOOLCHAIN", name);
        // Without this variable, rustup would download a toolchain that is not installed.
        command.env("RUSTUP_AUTO_INSTALL", "0");
    }
    let output = command.arg("-V").stdin(Stdio::null()).output();
    let output = output.map_err(|error| no_cargo(&error))?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && ["-nightly", "-dev"].iter().any(|mark| said.contains(mark)))
}

/// Returns the target triple that the toolchain's compiler builds for by default.
pub fn host_triple(toolchain: Toolchain) -> Result<String, Failure> {
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
