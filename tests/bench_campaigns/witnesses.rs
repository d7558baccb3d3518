//! Each witness sets its own bug off and no other; seeds and chance set off none; and a parser
//! whose bugs are mended has none left.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::compiled::{once, run};
use crate::needs;
use crate::planted::{BUGS, Bug, seeds, source, witness};
use crate::stream::stream;

/// All bugs are in, or none.
const ALL: i32 = 0;
const NONE: i32 = -1;

const PLAIN: &[&str] = &["gcc", "-O1"];
const SANITIZED: &[&str] = &["gcc", "-O1", "-fsanitize=address,undefined"];

fn parsers() -> Vec<&'static str> {
    let mut parsers: Vec<&str> = BUGS.iter().map(|bug| bug.parser).collect();
    parsers.dedup();
    parsers
}

/// The parser as a program that reads its stdin.
fn program(parser: &str, compiler: &[&str], only: i32) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-campaigns");
    let files = [parser, "planted", "stdin"].map(source);
    let mut texts: Vec<String> = files.iter().map(|file| read(file)).collect();
    texts.push(read(&source("planted").with_extension("h")));
    once(&folder, parser, (compiler, only, texts), |own| {
        let program = own.join(parser);
        let (name, flags) = compiler.split_first().expect("a compiler has a name");
        let mut command = Command::new(name);
        command.args(flags).args(["-g", "-Wall", "-Wextra"]);
        command.arg(format!("-DPLANTED_ONLY={only}")).args(&files);
        run(command.arg("-o").arg(&program));
        program
    })
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).expect("the source is there")
}

/// How a run has ended.
struct Ran {
    /// Of what signal it died.
    signal: Option<i32>,
    code: Option<i32>,
    /// The bugs that have happened.
    canary: String,
    /// Runs, and in which of them a bug happened first.
    counted: [u64; 2],
}

fn ran(program: &Path, input: &[u8]) -> Ran {
    let folder = TempDir::new().expect("there is room");
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("there is room");
        path
    };
    let (input, canary) = (file("input", input), file("canary", b""));
    let runs = file("runs", &[0; 16]);
    let status = Command::new(program)
        .env("CANARY", &canary)
        .env("RUNS", &runs)
        .stdin(fs::File::open(&input).expect("it was written"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the program was built");
    let bytes = fs::read(&runs).expect("it was written");
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    Ran {
        signal: status.signal(),
        code: status.code(),
        canary: read(&canary),
        counted: [word(0), word(8)],
    }
}

fn crashes_with(bug: &Bug, program: &Path) {
    let ran = ran(program, &input(bug));
    assert_eq!(ran.canary, format!("{}\n", bug.name));
    assert!(
        ran.signal.is_some(),
        "{} ends with {:?}",
        bug.name,
        ran.code
    );
    assert_eq!(ran.counted, [1, 1], "{}", bug.name);
}

fn passes(program: &Path, input: &[u8]) {
    let ran = ran(program, input);
    let shown = String::from_utf8_lossy(input);
    assert_eq!(ran.code, Some(0), "{}: {shown:?}", program.display());
    assert_eq!(ran.canary, "", "{}: {shown:?}", program.display());
    assert_eq!(ran.counted, [1, 0]);
}

fn input(bug: &Bug) -> Vec<u8> {
    fs::read(witness(bug)).expect("each bug has a witness")
}

fn seeds_of(parser: &str) -> Vec<Vec<u8>> {
    let folder = fs::read_dir(seeds(parser)).expect("each parser has seeds");
    let files = folder.map(|entry| entry.expect("a file").path());
    files.map(|file| fs::read(file).expect("a file")).collect()
}

#[test]
fn each_witness_crashes_with_its_own_bug() {
    for bug in &BUGS {
        crashes_with(bug, &program(bug.parser, PLAIN, ALL));
        crashes_with(bug, &program(bug.parser, PLAIN, bug.number));
    }
}

#[test]
fn each_witness_crashes_as_clang_compiles_it() {
    if needs::program("clang").is_none() {
        return;
    }
    for bug in &BUGS {
        for flags in [&["clang", "-O1"], &["clang", "-O2"]] {
            crashes_with(bug, &program(bug.parser, flags, bug.number));
        }
    }
}

#[test]
fn a_parser_with_another_bug_survives_a_witness() {
    for bug in &BUGS {
        for other in BUGS.iter().filter(|other| other.parser == bug.parser) {
            if other.number != bug.number {
                passes(&program(bug.parser, PLAIN, other.number), &input(bug));
            }
        }
    }
}

#[test]
fn a_mended_parser_has_no_bug_left() {
    for bug in &BUGS {
        passes(&program(bug.parser, SANITIZED, NONE), &input(bug));
    }
    for parser in parsers() {
        let mended = program(parser, SANITIZED, NONE);
        for seed in seeds_of(parser) {
            passes(&mended, &seed);
        }
    }
}

#[test]
fn seeds_and_chance_set_no_bug_off() {
    for parser in parsers() {
        let program = program(parser, PLAIN, ALL);
        passes(&program, b"");
        let seeds = seeds_of(parser);
        assert!(!seeds.is_empty());
        for (number, seed) in (0..).zip(&seeds) {
            passes(&program, seed);
            // The seed with a byte of chance, at each of its places.
            let chance = stream(number, seed.len());
            for (at, byte) in chance.iter().enumerate() {
                let mut changed = seed.clone();
                changed[at] = *byte;
                passes(&program, &changed);
            }
        }
        for number in 0..100 {
            let length = usize::try_from(number).expect("a small number") * 3;
            passes(&program, &stream(1000 + number, length));
        }
    }
}
