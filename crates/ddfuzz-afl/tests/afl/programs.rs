//! Builds and finds what a campaign needs: the programs of AFL++, the targets, the libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{compiled, needs};

/// The installed programs of AFL++ and a C compiler.
pub struct Tools {
    pub fuzz: PathBuf,
    pub showmap: PathBuf,
    compiler: PathBuf,
    cc: PathBuf,
}

impl Tools {
    /// Finds the tools; prints a message and returns `None` if one is missing.
    pub fn found() -> Option<Tools> {
        Some(Tools {
            fuzz: needs::program("afl-fuzz")?,
            showmap: needs::program("afl-showmap")?,
            compiler: needs::program("afl-clang-fast")?,
            cc: needs::program("cc")?,
        })
    }

    /// Compiles a parser of the benchmarks without its planted bugs, and returns the path of the
    /// program. It reads stdin and counts its runs.
    pub fn parser(&self, name: &str) -> PathBuf {
        let folder = manifest().join("../../benches/campaigns/parsers");
        let files = [name, "planted", "stdin"].map(|file| folder.join(file).with_extension("c"));
        let key = files.each_ref().map(|file| std::fs::read(file).unwrap());
        compiled::once(target(), &format!("trimmed-{name}"), key, |own| {
            let program = own.join(name);
            let mut compile = Command::new(&self.compiler);
            compile.env("AFL_QUIET", "1");
            compile
                .args(["-O1", "-DPLANTED_ONLY=-1", "-o"])
                .arg(&program);
            compiled::run(compile.args(&files));
            program
        })
    }

    /// Compiles a library that prints when the trimming of a queue entry begins and ends, and
    /// returns its path.
    pub fn meter(&self) -> PathBuf {
        let source = manifest().join("tests/afl/meter.c");
        let key = std::fs::read(&source).unwrap();
        compiled::once(target(), "meter", key, |own| {
            let library = own.join("meter.so");
            let mut compile = Command::new(&self.cc);
            compile
                .args(["-shared", "-fPIC", "-O1", "-o"])
                .arg(&library);
            compiled::run(compile.arg(&source));
            library
        })
    }
}

/// Returns the path of the library under test, as built by Cargo.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let folders = test.ancestors().skip(1).take(2);
    let mut files = folders.map(|folder| folder.join("libddfuzz_afl.so"));
    let found = files.find(|file| file.is_file());
    found.expect("cargo builds the library beside its tests")
}

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}
