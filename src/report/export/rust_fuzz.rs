//! A test that runs a harness of a cargo-fuzz project, through cargo.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::fails::SANITIZERS;
use super::rust_literal::{string, word};
use super::rust_run::RUN;
use super::{Input, Reproducer};
use crate::store::Kind;

/// A harness of a cargo-fuzz project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuzzProject<'a> {
    /// The directory of its manifest, absolute or relative to the manifest's of the test.
    pub dir: &'a Path,
    /// The name of the harness.
    pub harness: &'a OsStr,
}

const USES: &str = "use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
";

/// On stable Rust, without sanitizers.
const BY_CARGO: &str = r#"    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--bin", HARNESS]);
    build.arg("--manifest-path").arg(dir.join("Cargo.toml"));
    let built = build.output().expect("cargo can be started");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{HARNESS} cannot be built:\n{said}");
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--bin", HARNESS]);
    command.arg("--manifest-path").arg(dir.join("Cargo.toml"));
    command.arg("--").args(FLAGS).arg(scratch.input());
"#;

/// The crash was a sanitizer's report: it takes the nightly toolchain.
const BY_CARGO_FUZZ: &str = r#"    let cargo_fuzz = |job: &str| {
        let mut command = Command::new("cargo");
        // The toolchain of this test is named there.
        command.env_remove("RUSTUP_TOOLCHAIN");
        command.args(["+nightly", "fuzz", job, "--fuzz-dir"]).arg(&dir).arg(HARNESS);
        command
    };
    let built = cargo_fuzz("build").output().expect("cargo can be started");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{HARNESS} cannot be built:\n{said}");
    let mut command = cargo_fuzz("run");
    command.arg(scratch.input()).arg("--").args(FLAGS);
"#;

const JUDGE: &str = r#"    let (ended, said) = run(&mut command, LIMIT);
    let passes = ended.is_some_and(|status| status.success());
    let how = ended.map_or(format!("not within {LIMIT:?}"), |status| status.to_string());
    assert!(passes, "{HARNESS} ends with {how}:\n{said}");
}
"#;

/// A `#[test]` that runs the harness on the input and fails unless that ends with success. Where
/// the crash is a sanitizer's report it asks `cargo fuzz`, else `cargo run`: on stable Rust, with
/// the target directory that the project has anyway.
pub fn rust_fuzz_test(of: &Reproducer, input: Input<'_>, project: FuzzProject<'_>) -> String {
    let tool = of.class.0.split(':').next().unwrap_or_default();
    let job = match SANITIZERS.contains(&tool) {
        true => BY_CARGO_FUZZ,
        false => BY_CARGO,
    };
    let flags = match of.kind {
        Kind::Oom => format!("\"-rss_limit_mb={}\"", (of.limits.memory >> 20).max(1)),
        _ => String::new(),
    };
    let name = of.identifier();
    format!(
        "// {}\n\n{USES}\n\
         /// The input that made it fail.\n{}\n\
         /// The cargo-fuzz project, from the manifest of this test on.\n\
         const PROJECT: &[u8] = {};\n\
         /// Its harness.\nconst HARNESS: &str = {};\n\
         /// Flags of libFuzzer.\nconst FLAGS: &[&str] = &[{flags}];\n\
         /// No run takes longer.\nconst LIMIT: Duration = Duration::from_millis({});\n\n\
         #[test]\nfn {name}() {{\n    \
             let dir = Path::new(env!(\"CARGO_MANIFEST_DIR\")).join(OsStr::from_bytes(PROJECT));\n    \
             let scratch = Scratch::new({});\n{job}{JUDGE}{RUN}",
        of.title(),
        input.constant(),
        word(project.dir.as_os_str().as_bytes()),
        string(project.harness.as_bytes()),
        of.patience().as_millis(),
        string(name.as_bytes()),
    )
}
