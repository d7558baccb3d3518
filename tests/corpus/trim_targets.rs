//! What is trimmed for: instrumented programs, and what their runs reach.

use std::path::{Path, PathBuf};
use std::process::Command;

use ddfuzz::corpus::Features;
use ddfuzz::corpus::trim::{RequiredFeatures, ToTrim, TrimSettings};
use ddfuzz::exec::{Program, Target, Way, start_covered};

use crate::ddfuzz::Desk;
use crate::{compiled, needs};

/// A program of these flags by this compiler, as `name` on the desk, which everybody may reach;
/// `None`, and said so, where it cannot be built.
fn compile(
    desk: &Desk,
    compiler: &str,
    name: &str,
    flags: &[&str],
    sources: &[PathBuf],
) -> Option<PathBuf> {
    needs::program(compiler)?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus-programs");
    let read = |path: &PathBuf| std::fs::read(path).unwrap();
    let key: Vec<Vec<u8>> = sources.iter().map(read).collect();
    let made = compiled::try_once(&folder, name, (flags, key), |own| {
        let program = own.join(name);
        let mut command = Command::new(compiler);
        command.args(["-O1", "-w", "-o"]).arg(&program);
        command.args(sources).args(flags).env("AFL_QUIET", "1");
        let output = command.output().expect("the compiler runs");
        if !output.status.success() {
            needs::missing(compiler, &String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(program)
    })?;
    // Another process writes it: what this one has open for writing when a test starts a process
    // cannot be executed.
    let place = desk.file(name);
    let copied = desk.command("cp").arg(made).arg(&place).status();
    assert!(copied.unwrap().success());
    Some(place)
}

fn source(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join(name)
}

/// A target whose runs have time enough on a busy machine.
fn patient(program: PathBuf) -> Target {
    let mut target = Target::new(Program::Path(program));
    target.limits.wall = std::time::Duration::from_secs(60);
    target
}

/// The words as a libFuzzer harness: many runs in one process.
pub fn harness(desk: &Desk) -> Option<TrimSettings> {
    let sources = [source("tests/corpus/programs/words.c")];
    let program = compile(
        desk,
        "clang",
        "words-harness",
        &["-fsanitize=fuzzer"],
        &sources,
    )?;
    Some(TrimSettings::of_target(patient(program), Way::Harness))
}

/// The words as a program compiled by AFL++: a process for each run.
pub fn forkserver(desk: &Desk) -> Option<TrimSettings> {
    by_afl(desk, "words-afl", "-DWITH_MAIN")
}

/// The same in persistent mode: many runs in one process.
pub fn persistent(desk: &Desk) -> Option<TrimSettings> {
    by_afl(desk, "words-afl-loop", "-DWITH_LOOP")
}

fn by_afl(desk: &Desk, name: &str, how: &str) -> Option<TrimSettings> {
    let sources = [source("tests/corpus/programs/words.c")];
    // Functions with libFuzzer's names are not instrumented by AFL++.
    let flags = [how, "-DLLVMFuzzerTestOneInput=read_all"];
    let program = compile(desk, "afl-clang-fast", name, &flags, &sources)?;
    Some(TrimSettings::of_target(patient(program), Way::Forkserver))
}

/// The words in each of these forms.
pub const WORDS: [fn(&Desk) -> Option<TrimSettings>; 3] = [harness, forkserver, persistent];

/// The bundled `troff` without its bugs, as a libFuzzer harness.
pub fn troff(desk: &Desk) -> Option<TrimSettings> {
    let folder = source("targets/troff");
    let mut sources: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    let others = [
        "tests/corpus/programs/entry.c",
        "targets/guarded.c",
        "targets/complain.c",
    ];
    sources.extend(others.map(source));
    let include = format!("-I{}", source("targets").display());
    let flags = ["-fsanitize=fuzzer", "-DDDFUZZ_FIXED", &include];
    let program = compile(desk, "clang", "troff-harness", &flags, &sources)?;
    Some(TrimSettings::of_target(patient(program), Way::Harness))
}

/// What runs of these in fresh processes reach.
pub fn reach<const N: usize>(trimming: &TrimSettings, inputs: [&[u8]; N]) -> [Features; N] {
    let mut executor = start_covered(&trimming.target, trimming.way).unwrap();
    inputs.map(|input| {
        let run = executor.run(input).unwrap();
        assert!(run.ended.is_exit(), "{:?}", run.ended);
        Features::of_counters(executor.coverage().unwrap())
    })
}

/// To be trimmed to what `kept_for` reaches and nothing does that is empty, whatever else that
/// reaches.
pub fn kept(trimming: &TrimSettings, input: &[u8], kept_for: &[u8], folder: PathBuf) -> ToTrim {
    let [all, kept, none] = reach(trimming, [input, kept_for, b""]);
    let required = kept.less(&none).and(&all);
    ToTrim {
        input: input.to_vec(),
        wanted: RequiredFeatures {
            required,
            allowed: None,
        },
        folder,
        known: Default::default(),
    }
}
