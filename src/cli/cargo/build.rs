//! Building a fuzz target, through cargo-fuzz and its own flags.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::{Args, ValueEnum};

use super::project::Project;
use super::toolchain::{self, Toolchain, cargo};
use crate::cli::{Exit, Failure, Output};

/// The heading of these options in the help.
pub(super) const BUILD: &str = "Build (the options of cargo fuzz)";

/// How the fuzz target is built: the options of cargo-fuzz, by their names there.
#[derive(Args, Clone, Debug)]
pub struct BuildArgs {
    /// Directory of the cargo-fuzz project [default: fuzz/ in this directory, or in the nearest one
    /// above it that has one]
    #[arg(help_heading = BUILD, long, value_name = "DIR")]
    pub fuzz_dir: Option<PathBuf>,
    /// Build without optimizations
    #[arg(help_heading = BUILD, short = 'D', long, conflicts_with = "release")]
    dev: bool,
    /// Build with optimizations [default]
    #[arg(help_heading = BUILD, short = 'O', long)]
    release: bool,
    /// Build with debug assertions and overflow checks [default, unless -O]
    #[arg(help_heading = BUILD, short = 'a', long)]
    debug_assertions: bool,
    /// Sanitizer to build with
    #[arg(help_heading = BUILD, short, long, value_enum, default_value_t = Sanitizer::Address)]
    sanitizer: Sanitizer,
    /// Build without the default features
    #[arg(help_heading = BUILD, long)]
    no_default_features: bool,
    /// Build with all features
    #[arg(help_heading = BUILD, long, conflicts_with_all = ["no_default_features", "features"])]
    all_features: bool,
    /// Build with these features
    #[arg(help_heading = BUILD, long)]
    features: Option<String>,
    /// Also build the standard library
    #[arg(help_heading = BUILD, long)]
    build_std: bool,
    /// Build with additional checks for undefined behaviour
    #[arg(help_heading = BUILD, short, long)]
    careful: bool,
    /// Unstable flags for cargo
    #[arg(help_heading = BUILD, short = 'Z', value_name = "FLAG")]
    unstable: Vec<String>,
    /// Directory for build artifacts
    #[arg(help_heading = BUILD, long, value_name = "DIR")]
    target_dir: Option<PathBuf>,
    /// Number of codegen units
    #[arg(help_heading = BUILD, long, value_name = "N")]
    codegen_units: Option<u32>,
    /// Whether the linker removes dead code
    #[arg(help_heading = BUILD, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    strip_dead_code: Option<bool>,
    /// Do not set `cfg(fuzzing)`
    #[arg(help_heading = BUILD, long)]
    no_cfg_fuzzing: bool,
    /// Do not instrument comparisons
    #[arg(help_heading = BUILD, long)]
    no_trace_compares: bool,
    /// Instrument divisions
    #[arg(help_heading = BUILD, long)]
    trace_div: bool,
    /// Instrument array indices
    #[arg(help_heading = BUILD, long)]
    trace_gep: bool,
    /// Whether to disable branch folding
    #[arg(help_heading = BUILD, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    disable_branch_folding: Option<bool>,
}

/// A fuzz target that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// Its program, absolute.
    pub program: PathBuf,
    /// What built it.
    pub toolchain: Toolchain,
}

/// Sanitizers that cargo-fuzz builds with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sanitizer {
    /// AddressSanitizer
    Address,
    /// LeakSanitizer
    Leak,
    /// MemorySanitizer
    Memory,
    /// ThreadSanitizer
    Thread,
    /// None; stable Rust suffices to build
    None,
}

impl BuildArgs {
    /// Builds the target.
    ///
    /// # Errors
    /// When something that is needed is not installed, or the build fails; the error says which
    /// command helps.
    pub fn build(
        &self,
        project: &Project,
        target: &str,
        triple: Option<&str>,
        output: &Output,
    ) -> Result<Built, Failure> {
        project.check(target)?;
        let toolchain = toolchain::choose(self.needs_nightly(), output)?;
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
        let status = command.status();
        let status = status.map_err(|error| toolchain::no_cargo(&error))?;
        if !status.success() {
            let message = format!("cargo fuzz could not build {target} ({status})");
            return Err(Failure::new(Exit::Baseline, "build", message).hint(format!(
                "fix the errors shown above; to build only: cargo {}fuzz build{} {target}",
                toolchain::word(toolchain),
                self.shown(triple)
            )));
        }
        let triple = match triple {
            Some(triple) => triple.to_owned(),
            None => toolchain::host(toolchain)?,
        };
        let folder = self
            .target_dir
            .as_ref()
            .unwrap_or(&project.target_directory);
        let profile = if self.dev { "debug" } else { "release" };
        let program = folder.join(triple).join(profile).join(target);
        let program = std::path::absolute(&program).unwrap_or(program);
        found(&program)?;
        Ok(Built { program, toolchain })
    }

    /// Sanitizers, and whatever else is unstable, need the nightly compiler.
    fn needs_nightly(&self) -> bool {
        self.sanitizer != Sanitizer::None
            || self.build_std
            || self.careful
            || !self.unstable.is_empty()
    }

    /// The flags for cargo-fuzz.
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

    /// The options that the user has given, for a command line.
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

fn found(program: &Path) -> Result<(), Failure> {
    if program.is_file() {
        return Ok(());
    }
    let message = "cargo fuzz has built the target, but the program is not where it is expected";
    Err(Failure::new(Exit::Baseline, "build", message)
        .path(program)
        .hint("give the directory that cargo builds in: --target-dir DIR"))
}
