//! Small programs that tell their coverage, and what a campaign on one has left.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ddfuzz::files::atomic::is_temporary;
use serde_json::Value;

use crate::compiled;
use crate::ddfuzz::{Desk, Said};
use crate::needs;
use crate::outcome::{files, record};

/// How a program is made to tell its coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Built {
    /// By `afl-clang-fast`, as a program with a fork server.
    Afl,
    /// By clang, as a harness of libFuzzer.
    Harness,
    /// By the same, with AddressSanitizer.
    Sanitized,
    /// By any C compiler, without instrumentation and symbols.
    Stripped,
    /// By any C compiler, without instrumentation.
    Plain,
}

impl Built {
    fn compiler(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Built::Afl => (
                "afl-clang-fast",
                &["-DPROGRAM", "-DLLVMFuzzerTestOneInput=take"],
            ),
            Built::Harness => ("clang", &["-fsanitize=fuzzer"]),
            Built::Sanitized => ("clang", &["-fsanitize=fuzzer,address"]),
            Built::Stripped => ("cc", &["-s"]),
            Built::Plain => ("cc", &[]),
        }
    }
}

/// `tests/campaign/programs/gates.c`, built so, with these macros.
pub fn gates(desk: &Desk, name: &str, built: Built, macros: &[&str]) -> Option<PathBuf> {
    program(
        desk,
        name,
        built,
        include_str!("../programs/gates.c"),
        macros,
    )
}

/// A program of this source as `name` on the desk; `None`, and said so, where it cannot be built.
pub fn program(
    desk: &Desk,
    name: &str,
    built: Built,
    source: &str,
    macros: &[&str],
) -> Option<PathBuf> {
    let (compiler, flags) = built.compiler();
    needs::program(compiler)?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let key = (source, built, macros);
    let made = compiled::try_once(folder, name, key, |own| {
        let (file, result) = (own.join("source.c"), own.join(name));
        std::fs::write(&file, source).expect("the source is written");
        let output = desk
            .command(compiler)
            .args(["-g", "-O1", "-fno-inline", "-w", "-o"])
            .args([&result, &file])
            .args(flags)
            .args(macros)
            .env("AFL_QUIET", "1")
            .output()
            .expect("the compiler runs");
        if !output.status.success() {
            needs::missing(compiler, &String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(result)
    })?;
    Some(desk.put(&made, name))
}

/// Calls ddfuzz with words, and more of them that may hold blanks.
pub fn call(desk: &Desk, words: &str, more: &[&str]) -> Said {
    let more: Vec<&OsStr> = more.iter().map(OsStr::new).collect();
    desk.call_with(words, &more)
}

/// The reproducers of a call's groups, sorted; each has been proved minimal.
#[track_caller]
pub fn minimal(result: &Value) -> Vec<Vec<u8>> {
    let groups = result["groups"].as_array().unwrap().iter();
    let mut texts: Vec<Vec<u8>> = groups
        .map(|group| {
            assert_eq!(group["claim"], "1-minimal", "{group}");
            let file = group["file"].as_str().unwrap();
            let bytes = std::fs::read(file).unwrap();
            assert_eq!(group["size_after"], bytes.len(), "{group}");
            bytes
        })
        .collect();
    texts.sort();
    texts
}

/// The names of the functions that the groups of an output directory crash in.
pub fn functions(out: &Path) -> BTreeSet<String> {
    let names = ["opened", "repeated", "divided", "spelled", "unsealed"];
    let crashes = files(out);
    let crashes = crashes.iter().filter(|path| path.ends_with("crash.json"));
    crashes
        .filter_map(|path| {
            let text = record(path).to_string();
            let name = names
                .iter()
                .find(|name| text.contains(&format!("\"{name}\"")));
            name.map(|name| (*name).to_owned())
        })
        .collect()
}

/// Fails unless everything that is stored is whole, and named by its content.
#[track_caller]
pub fn assert_whole(out: &Path) {
    for path in files(out) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let folder = path.parent().unwrap().file_name().unwrap();
        let folder = folder.to_string_lossy().into_owned();
        let hash = || {
            let bytes = std::fs::read(&path).unwrap();
            blake3::hash(&bytes).to_hex()[..16].to_owned()
        };
        let temporary = name.starts_with('.');
        if folder == "corpus" && !temporary {
            assert_eq!(name, hash(), "{}", path.display());
        }
        if name == "original" {
            assert_eq!(folder, hash(), "{}", path.display());
        }
        if name.ends_with(".json") && !temporary {
            record(&path);
        }
        if name == "crash.json" {
            assert!(
                path.with_file_name("original").is_file(),
                "{}",
                path.display()
            );
        }
    }
}

/// All inputs that the directory holds as its corpus. Temporary files are left out: they may be gone
/// before they are read.
pub fn corpus(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let is_kept = |path: &PathBuf| !is_temporary(path.file_name().unwrap());
    let kept = files(&out.join("corpus")).into_iter().filter(is_kept);
    kept.map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read(path).unwrap())
    })
    .collect()
}

/// Those of `inputs` that do not pass.
pub fn crashing(desk: &Desk, program: &str, out: &Path) -> Vec<Vec<u8>> {
    let folder = out.join("corpus");
    if files(&folder).is_empty() {
        return Vec::new();
    }
    let words = format!("triage --json {} -- ./{program}", folder.display());
    let told = desk.call(&words).json();
    let inputs = told["inputs"].as_array().unwrap().iter();
    inputs
        .filter(|input| !input["class"].is_null())
        .map(|input| std::fs::read(input["file"].as_str().unwrap()).unwrap())
        .collect()
}

/// The logs of minimizations that have ended, with their bytes.
pub fn ended(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let logs = files(out).into_iter();
    logs.filter(|path| path.ends_with("log.jsonl"))
        .filter_map(|path| Some((path.clone(), std::fs::read(path).ok()?)))
        .filter(|(_, bytes)| {
            let text = String::from_utf8_lossy(bytes);
            text.lines()
                .last()
                .is_some_and(|line| line.contains(r#""kind":"end""#))
        })
        .collect()
}
