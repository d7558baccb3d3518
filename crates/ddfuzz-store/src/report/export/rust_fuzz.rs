//! A test that runs a harness of a cargo-fuzz project, through cargo.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::rust_literal::{string, word};
use super::rust_run::{RUN, limits};
use super::{Input, Reproducer};
use crate::Kind;

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

/// The crash does not show without a sanitizer: it takes the nightly toolchain.
const BY_CARGO_FUZZ: &str = r#"    let cargo_fuzz = |job: &str| {
        let mut command = Command::new("cargo");
        // The toolchain of this test is named there.
        command.env_remove("RUSTUP_TOOLCHAIN");
        command.args(["+nightly", "fuzz", job, "--fuzz-dir"]).arg(&dir);
        command.args(["--sanitizer", SANITIZER]).arg(HARNESS);
        command
    };
    let built = cargo_fuzz("build").output().expect("cargo can be started");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{HARNESS} cannot be built:\n{said}");
    let mut command = cargo_fuzz("run");
    command.arg(scratch.input()).arg("--").args(FLAGS);
"#;

const JUDGE: &str = r#"    let (ended, said) = run(&mut command);
    let passes = ended.as_ref().is_ok_and(|status| status.success());
    let how = ended.map_or_else(|over| over, |status| format!("it ends with {status}"));
    assert!(passes, "{HARNESS}: {how}:\n{said}");
}
"#;

/// A `#[test]` that runs the harness on the input and fails unless that ends with success. Where
/// the crash does not show without a sanitizer it asks `cargo fuzz`, else `cargo run`: on stable
/// Rust, with the target directory that the project has anyway.
pub fn rust_fuzz_test(of: &Reproducer, input: Input<'_>, project: FuzzProject<'_>) -> String {
    // Those of cargo-fuzz; it has one for each build, and none of them checks as UBSan does.
    let known = ["address", "leak", "memory", "thread"];
    let (job, sanitizer) = match of.sanitizers.first() {
        Some(flag) => {
            let flag = known.iter().find(|known| *known == flag);
            let flag = flag.unwrap_or(&"address");
            let text = format!("/// How it is compiled.\nconst SANITIZER: &str = \"{flag}\";\n");
            (BY_CARGO_FUZZ, text)
        }
        None => (BY_CARGO, String::new()),
    };
    let flags = match of.kind {
        Kind::Oom => format!("\"-rss_limit_mb={}\"", (of.limits.memory >> 20).max(1)),
        _ => String::new(),
    };
    let name = of.identifier();
    format!(
        "// {}\n\n{USES}\n\
         /// The input that causes the failure.\n{}\n\
         /// The cargo-fuzz project, relative to the Cargo.toml of this test.\n\
         const PROJECT: &[u8] = {};\n\
         /// Its harness.\nconst HARNESS: &str = {};\n{sanitizer}\
         /// Flags of libFuzzer.\nconst FLAGS: &[&str] = &[{flags}];\n\
         {}\n\
         #[test]\nfn {name}() {{\n    \
             let dir = Path::new(env!(\"CARGO_MANIFEST_DIR\")).join(OsStr::from_bytes(PROJECT));\n    \
             let scratch = Scratch::new({});\n{job}{JUDGE}{RUN}",
        of.title(),
        input.constant(),
        word(project.dir.as_os_str().as_bytes()),
        string(project.harness.as_bytes()),
        limits(of, None, None),
        string(name.as_bytes()),
    )
}
