//! A parser compiled for each of the tools, with one bug, or none.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::planted::{folder, source};

/// With none of the bugs: `PLANTED_ONLY` of `parsers/planted.h`.
pub const NO_BUG: i32 = -1;

/// How a program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `clang -fsanitize=fuzzer`.
    LibFuzzer,
    /// `clang -fsanitize=fuzzer-no-link`, with LibAFL in place of libFuzzer.
    InProcess,
    /// `afl-clang-fast`: a process for each run.
    AflPlain,
    /// `afl-clang-fast -fsanitize=fuzzer`: a process for many runs.
    AflPersistent,
    /// The same, which also logs what it compares.
    AflCmplog,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::LibFuzzer => "libfuzzer",
            Kind::InProcess => "inprocess",
            Kind::AflPlain => "afl-plain",
            Kind::AflPersistent => "afl-persistent",
            Kind::AflCmplog => "afl-cmplog",
        }
    }
}

/// What is compiled.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name in tables, and that of its folder of seeds.
    pub name: &'static str,
    files: Vec<PathBuf>,
}

impl Subject {
    /// A parser with planted bugs.
    pub fn parser(name: &'static str) -> Subject {
        Subject {
            name,
            files: vec![source(name)],
        }
    }

    /// A program of `programs/`.
    pub fn program(name: &'static str) -> Subject {
        let mut files = vec![folder().join("programs").join(format!("{name}.c"))];
        if name == "larger" {
            let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets");
            let of_it = [
                "flex/emit.c",
                "flex/flex.c",
                "flex/line.c",
                "flex/pattern.c",
            ];
            let shared = ["flex/scanner.c", "guarded.c", "complain.c"];
            files.extend(of_it.iter().chain(&shared).map(|file| targets.join(file)));
        }
        Subject { name, files }
    }
}

/// Where programs are put, and the peers built of LibAFL, where there are any.
pub struct Builds {
    folder: PathBuf,
    /// Where cargo has put `libinprocess.a` and `forkserver`.
    pub peers: Option<PathBuf>,
}

impl Builds {
    /// Programs go to `folder`.
    pub fn new(folder: &Path, peers: Option<PathBuf>) -> Builds {
        Builds {
            folder: folder.to_owned(),
            peers,
        }
    }

    /// The program of a subject, which is compiled if it is not there.
    ///
    /// # Errors
    /// What the compiler said, or that there is none.
    pub fn program(&self, subject: &Subject, kind: Kind, only: i32) -> Result<PathBuf, String> {
        let name = format!("{}-{}-{only}", subject.name, kind.name());
        let program = self.folder.join(name);
        if program.exists() {
            return Ok(program);
        }
        let support = self.support()?;
        let mut compiler = compiler(kind);
        compiler.args(["-O1", "-g", "-DDDFUZZ_FIXED"]);
        compiler.arg(format!("-DPLANTED_ONLY={only}"));
        compiler.args(&subject.files);
        if kind == Kind::AflPlain {
            compiler.arg(source("stdin"));
        }
        compiler.arg(support).arg("-o").arg(&program);
        if kind == Kind::InProcess {
            let peers = self.peers.as_ref().ok_or("LibAFL's peers are not built")?;
            compiler.arg(peers.join("libinprocess.a"));
            compiler.args(["-lpthread", "-ldl", "-lm", "-lstdc++"]);
        }
        run(&mut compiler)?;
        Ok(program)
    }

    /// What no compiler for fuzzing may see.
    fn support(&self) -> Result<PathBuf, String> {
        let object = self.folder.join("planted.o");
        if !object.exists() {
            let mut compiler = Command::new("clang");
            compiler.args(["-O1", "-g", "-c"]).arg(source("planted"));
            run(compiler.arg("-o").arg(&object))?;
        }
        Ok(object)
    }
}

fn compiler(kind: Kind) -> Command {
    let (program, flags): (_, &[&str]) = match kind {
        Kind::LibFuzzer => ("clang", &["-fsanitize=fuzzer"]),
        // Clang's runtime has callbacks that do nothing, and would come before LibAFL's.
        Kind::InProcess => (
            "clang",
            &["-fsanitize=fuzzer-no-link", "-fno-sanitize-link-runtime"],
        ),
        Kind::AflPlain => ("afl-clang-fast", &[]),
        Kind::AflPersistent | Kind::AflCmplog => ("afl-clang-fast", &["-fsanitize=fuzzer"]),
    };
    let mut command = Command::new(program);
    command.args(flags).env("AFL_QUIET", "1");
    if kind == Kind::AflCmplog {
        command.env("AFL_LLVM_CMPLOG", "1");
    }
    command
}

/// The fuzzers of LibAFL's own parts, built by cargo below this project's `target`.
///
/// # Errors
/// What cargo said.
pub fn peers() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = root.join("target/bench-peers");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--manifest-path",
    ]);
    cargo.arg(root.join("benches/campaigns/peers/libafl/Cargo.toml"));
    cargo.arg("--target-dir").arg(&target);
    // Settings of the build of ddfuzz are none of theirs.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PROFILE_")) {
        cargo.env_remove(name);
    }
    run(&mut cargo)?;
    Ok(target.join("release"))
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program} cannot be started: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}
