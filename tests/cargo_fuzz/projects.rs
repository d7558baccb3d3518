//! The projects, copied and built by cargo-fuzz, once for all tests.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::ddfuzz::compiled;
use crate::needs;

/// A project with its planted bugs.
#[derive(Clone, Copy, Debug)]
pub struct Project {
    /// Its folder in `projects/`, and that of its crash files in `artifacts/`.
    pub name: &'static str,
    /// Its fuzz target.
    pub target: &'static str,
    /// For each bug how the names of its crash files begin, and its class.
    pub bugs: [(&'static str, &'static str); 2],
    /// An input that passes and is near both bugs; none where a campaign finds them as soon without.
    pub seed: Option<&'static str>,
}

pub const TWO_PANICS: Project = Project {
    name: "two_panics",
    target: "parse",
    bugs: [("column-", "rustpanic"), ("count-", "rustpanic")],
    seed: Some("RC1\nC\x03a,bV\x020xN\x011"),
};

pub const ARBITRARY: Project = Project {
    name: "arbitrary",
    target: "ops",
    bugs: [("closed-", "rustpanic"), ("overdrawn-", "rustpanic")],
    seed: None,
};

pub const CPP_ASAN: Project = Project {
    name: "cpp_asan",
    target: "sessions",
    bugs: [
        ("freed-", "asan:heap-use-after-free"),
        ("overflow-", "asan:heap-buffer-overflow"),
    ],
    seed: Some("+a one\n?a\n=a two\n-a\n+b x\n"),
};

pub const ALL: [Project; 3] = [TWO_PANICS, ARBITRARY, CPP_ASAN];

/// Where the project comes from.
fn source(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cargo_fuzz")
        .join(folder)
}

impl Project {
    /// Its unminimized crash files.
    pub fn artifacts(&self) -> PathBuf {
        source("artifacts").join(self.name)
    }

    /// Copies it into a folder, which becomes its own.
    pub fn copy_to(&self, folder: &Path) {
        copy(&source("projects").join(self.name), folder);
    }

    /// Builds its fuzz target, or the one without the bugs, and gives a copy of the program in
    /// `folder`; `None`, and said so, where the machine cannot build it.
    pub fn build(&self, fixed: bool, folder: &Path) -> Option<PathBuf> {
        let workshop = Workshop::enter()?;
        let base = workshop.base();
        let project = base.join(self.name);
        self.copy_to(&project);
        let mut command = cargo_fuzz(&project);
        command.args(["build", self.target]);
        if fixed {
            command.args(["--features", "fixed"]);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", self.name);
        let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let built = base.join("target").join(triple).join("release");
        let program = folder.join(self.target);
        std::fs::copy(built.join(self.target), &program).unwrap();
        Some(program)
    }
}

/// Where projects are built, by one test at a time: with one target directory, so that what they
/// share is built once.
pub struct Workshop {
    base: PathBuf,
    _lock: File,
}

impl Workshop {
    /// Waits for the others, those of other test programs too; `None`, and said so, where the
    /// machine cannot build.
    pub fn enter() -> Option<Workshop> {
        needs::program("cargo-fuzz")?;
        needs::program("c++")?;
        let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo_fuzz");
        std::fs::create_dir_all(&base).unwrap();
        let lock = File::create(base.join("lock")).unwrap();
        lock.lock().unwrap();
        Some(Workshop { base, _lock: lock })
    }

    /// The directory for projects and what is built of them.
    pub fn base(&self) -> &Path {
        &self.base
    }
}

/// Has `command` build as a user does, not as part of the build of these tests, into the target
/// directory of the workshop. Only libFuzzer is clang's where there is one.
pub fn as_user(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if [
            "CARGO",
            "RUSTC",
            "RUSTFLAGS",
            "RUSTDOC",
            "RUSTUP_TOOLCHAIN",
            "RUST_RECURSION_COUNT",
        ]
        .contains(&&*text)
            || text.starts_with("CARGO_") && text != "CARGO_HOME"
        {
            command.env_remove(&name);
        }
    }
    if !nightly_works() {
        // What sanitizers need of the compiler, the stable one has, too, and hides.
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    if let Some(library) = compiled::libfuzzer() {
        command.env("CUSTOM_LIBFUZZER_PATH", library);
    }
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo_fuzz");
    command.env("CARGO_TARGET_DIR", base.join("target"))
}

/// `cargo fuzz` in a project, as its user calls it.
pub fn cargo_fuzz(project: &Path) -> Command {
    let mut command = Command::new("cargo");
    as_user(&mut command);
    if nightly_works() {
        command.arg("+nightly");
    }
    command.arg("fuzz").current_dir(project);
    command
}

/// Whether cargo has a nightly toolchain.
pub fn nightly_works() -> bool {
    static WORKS: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| {
        let mut command = Command::new("cargo");
        command.args(["+nightly", "--version"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    });
    *WORKS
}

/// Copies a folder with all that is in it. Files that are there already with the same content are
/// left alone: cargo builds anew what is younger.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &copied);
        } else if std::fs::read(&path).ok() != std::fs::read(&copied).ok() {
            std::fs::copy(&path, &copied).unwrap();
        }
    }
}
