//! What is cleaned: a program, the corpus of its campaigns, and who else cleans that.

use std::path::PathBuf;

use crate::builds::{Builds, root, sources};
use crate::tools::Peer;
use ddfuzz::exec::Way;

/// A program whose corpus is cleaned.
pub struct Subject {
    /// Its table, and its corpus.
    pub name: &'static str,
    /// Headline of its table.
    pub title: &'static str,
    /// How ddfuzz runs it.
    pub way: Way,
    /// What ddfuzz runs, and the ruler.
    pub program: PathBuf,
    /// Its corpus is that of campaigns on this program.
    pub fuzzed: PathBuf,
    /// Its corpus has this name: two subjects may share one.
    pub corpus: &'static str,
    /// Whether its program is a libFuzzer, which counts by itself.
    pub is_libfuzzer: bool,
    /// What its campaigns begin with.
    pub seeds: PathBuf,
    /// The others, each with its own program where it needs one.
    pub peers: Vec<Peer>,
}

/// How one is built.
pub type Make = fn(&Builds) -> Result<Subject, String>;

/// All of them, by name.
pub const ALL: [(&str, Make); 5] = [
    ("bundled", bundled),
    ("cpp", cpp),
    ("flaky", flaky),
    ("afl", afl),
    ("afl-plain", afl_plain),
];

fn bundled(builds: &Builds) -> Result<Subject, String> {
    let program = builds.bundled("flex", "clang", true)?;
    Ok(Subject {
        name: "bundled",
        title: "the bundled target flex as a libFuzzer program",
        way: Way::Harness,
        fuzzed: program.clone(),
        corpus: "bundled",
        is_libfuzzer: true,
        seeds: root().join("corpora/flex/seeds"),
        peers: vec![
            Peer::Merge(program.clone()),
            Peer::CargoFuzz("flex"),
            Peer::AflCmin(builds.bundled("flex", "afl-clang-fast", true)?),
        ],
        program,
    })
}

fn cpp(builds: &Builds) -> Result<Subject, String> {
    let program = builds.document("clang++")?;
    Ok(Subject {
        name: "cpp",
        title: "a C++ libFuzzer target, benches/cleanup/document.cc",
        way: Way::Harness,
        fuzzed: program.clone(),
        corpus: "cpp",
        is_libfuzzer: true,
        seeds: sources().join("seeds"),
        peers: vec![
            Peer::Merge(program.clone()),
            Peer::AflCmin(builds.document("afl-clang-fast++")?),
        ],
        program,
    })
}

fn flaky(builds: &Builds) -> Result<Subject, String> {
    let program = builds.hashed()?;
    Ok(Subject {
        name: "flaky",
        title: "a C++ libFuzzer target with AddressSanitizer and a randomly seeded hash table, \
                benches/cleanup/hashed.cc",
        way: Way::Harness,
        fuzzed: program.clone(),
        corpus: "flaky",
        is_libfuzzer: true,
        seeds: sources().join("settings"),
        peers: vec![Peer::Merge(program.clone())],
        program,
    })
}

fn afl(builds: &Builds) -> Result<Subject, String> {
    let program = builds.bundled("nroff", "afl-clang-fast", true)?;
    Ok(Subject {
        name: "afl",
        title: "an AFL++ target, nroff: persistent, inputs in shared memory",
        way: Way::Forkserver,
        fuzzed: program.clone(),
        corpus: "afl",
        is_libfuzzer: false,
        seeds: root().join("corpora/nroff/seeds"),
        peers: vec![Peer::AflCmin(program.clone())],
        program,
    })
}

fn afl_plain(builds: &Builds) -> Result<Subject, String> {
    let program = builds.bundled("nroff", "afl-clang-fast", false)?;
    Ok(Subject {
        name: "afl-plain",
        title: "the same AFL++ target with a process for each run",
        peers: vec![Peer::AflCmin(program.clone())],
        program,
        ..afl(builds)?
    })
}
