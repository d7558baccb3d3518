//! The programs whose corpora are cleaned, each compiled once for each of the tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where programs and corpora are kept.
pub struct Builds {
    /// Below `target`.
    pub folder: PathBuf,
    /// The ddfuzz that is measured.
    pub ddfuzz: PathBuf,
}

/// The project's own folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The sources of this bench.
pub fn sources() -> PathBuf {
    root().join("benches/cleanup")
}

impl Builds {
    /// Makes the folder, for this ddfuzz.
    ///
    /// # Errors
    /// Those of making it.
    pub fn new(ddfuzz: PathBuf) -> Result<Builds, String> {
        let folder = root().join("target/bench-cleanup");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Builds { folder, ddfuzz })
    }

    /// The reader of documents, by `clang++ -fsanitize=fuzzer` or AFL++'s compiler.
    ///
    /// # Errors
    /// What the compiler said, or that there is none.
    pub fn document(&self, compiler: &str) -> Result<PathBuf, String> {
        let files = [sources().join("document.cc")];
        let name = format!("document-{compiler}");
        self.program(
            &name,
            compiler,
            &["-std=c++17", "-fsanitize=fuzzer"],
            &files,
        )
    }

    /// The reader of settings with a hashed table, by `clang++ -fsanitize=fuzzer,address`.
    ///
    /// # Errors
    /// What the compiler said, or that there is none.
    pub fn hashed(&self) -> Result<PathBuf, String> {
        let files = [sources().join("hashed.cc")];
        let flags = ["-std=c++17", "-fsanitize=fuzzer,address"];
        self.program("hashed", "clang++", &flags, &files)
    }

    /// A bundled target without its bugs, by this compiler: with an entry for fuzzers, or reading
    /// its stdin.
    ///
    /// # Errors
    /// What the compiler said, or that there is none.
    pub fn bundled(&self, target: &str, compiler: &str, by_entry: bool) -> Result<PathBuf, String> {
        let targets = root().join("targets");
        let mut files = c_files(&targets.join(target))?;
        files.extend(["guarded.c", "complain.c"].map(|file| targets.join(file)));
        files.push(sources().join("entry.c"));
        let mut flags = vec!["-DDDFUZZ_FIXED"];
        match by_entry {
            true => flags.push("-fsanitize=fuzzer"),
            false => files.push(sources().join("stdin.c")),
        }
        let way = if by_entry { "entry" } else { "stdin" };
        self.program(
            &format!("{target}-{compiler}-{way}"),
            compiler,
            &flags,
            &files,
        )
    }

    /// The smallest target: what a run costs is what running costs.
    ///
    /// # Errors
    /// What the compiler said, or that there is none.
    pub fn tiny(&self) -> Result<PathBuf, String> {
        let files = [sources().join("tiny.c")];
        self.program("tiny", "clang", &["-fsanitize=fuzzer"], &files)
    }

    /// A program, which is compiled if it is not there.
    fn program(
        &self,
        name: &str,
        compiler: &str,
        flags: &[&str],
        files: &[PathBuf],
    ) -> Result<PathBuf, String> {
        let program = self.folder.join(name);
        if program.exists() {
            return Ok(program);
        }
        let mut command = Command::new(compiler);
        command.args(["-O1", "-g"]).args(flags).args(files);
        command.arg("-o").arg(&program).env("AFL_QUIET", "1");
        run(&mut command)?;
        Ok(program)
    }

    /// Builds a harness of the project's own cargo-fuzz project, as its users do.
    ///
    /// # Errors
    /// What cargo said, or that it is not installed.
    pub fn cargo_fuzz_build(&self, target: &str) -> Result<(), String> {
        run(&mut self.cargo_fuzz("build", target))
    }

    /// `cargo fuzz COMMAND TARGET` of that project, by the nightly toolchain.
    pub fn cargo_fuzz(&self, command: &str, target: &str) -> Command {
        let mut call = Command::new("cargo");
        call.env_remove("RUSTUP_TOOLCHAIN")
            .env("CARGO_TARGET_DIR", self.folder.join("fuzz"))
            .current_dir(root())
            .args(["+nightly", "fuzz", command, target]);
        call
    }
}

/// The C files of a folder, in an order that is not the file system's.
fn c_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let files = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    Ok(files)
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
