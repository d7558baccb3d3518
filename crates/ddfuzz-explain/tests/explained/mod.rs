//! Small programs that tests compile and explain.
#![allow(
    dead_code,
    reason = "each test program that includes this uses a part of it"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ddfuzz_exec::{Program, Target};
use ddfuzz_explain::chain::Confidence;
use ddfuzz_explain::report::{FrameRecord, LinkRecord, WriterRecord};
use ddfuzz_explain::{Explanation, Request, explain};

#[path = "../../../../tests/compiled/mod.rs"]
mod compiled;

/// Flags of most programs: each variable has a place, and nothing guards the stack.
pub const PLAIN: &[&str] = &["-g", "-O0", "-fno-stack-protector"];

/// Compiles the program `name` of `tests/programs`, once for all tests.
pub fn program(name: &str, flags: &[&str]) -> PathBuf {
    program_by("gcc", name, flags)
}

/// Compiles the program `name` of `tests/programs` with another compiler.
pub fn program_by(compiler: &str, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name);
    let text = std::fs::read(&source).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("explain");
    let stem = name.split('.').next().unwrap();
    compiled::once(&folder, stem, (compiler, &text, flags), |own| {
        let made = own.join(stem);
        let mut command = Command::new(compiler);
        compiled::run(command.args(flags).arg(&source).arg("-o").arg(&made));
        made
    })
}

/// The program with these arguments.
pub fn target(program: &Path, args: &[&str]) -> Target {
    let mut target = Target::new(Program::Path(program.to_owned()));
    target.args = args.iter().map(Into::into).collect();
    target
}

/// A request for two inputs.
pub fn request(target: Target, failing: &[u8], passing: Option<&[u8]>) -> Request {
    Request {
        passing_target: target.clone(),
        failing_target: target,
        failing: failing.to_vec(),
        passing: passing.map(<[u8]>::to_vec),
        others: Vec::new(),
        wrong: None,
        slice: None,
        raw: false,
        budget: Duration::from_secs(900),
    }
}

/// Explains an input of a program on stdin. The statement that fails is never among the conditions
/// whose other decision averts the failure. A statement at which to look first is called confirmed
/// only where the chain calls a link of it confirmed.
pub fn explained(program: &Path, failing: &[u8], passing: Option<&[u8]>) -> Explanation {
    let it = explain(&request(target(program, &[]), failing, passing)).unwrap();
    let failing = (&it.crash.file, it.crash.line);
    for condition in &it.critical {
        let place = &condition.place[0];
        assert_ne!((&place.file, place.line), failing, "{place:?}");
    }
    for suspect in it
        .look_first
        .iter()
        .filter(|it| it.why.contains("(confirmed)"))
    {
        let place = &suspect.place[0];
        let is_its = |by: &FrameRecord| (&by.file, by.line) == (&place.file, place.line);
        let sure = (it.chain.iter()).filter(|it| it.confidence == Confidence::Confirmed);
        let mut writers = sure.flat_map(|link| match &link.writer {
            Some(WriterRecord::Statement(by)) => vec![by],
            Some(WriterRecord::Missed(by)) => std::iter::once(by).chain(&link.instead).collect(),
            _ => Vec::new(),
        });
        assert!(writers.any(is_its), "{suspect:?}");
    }
    it
}

/// The variables of a chain that are confirmed, with the functions that wrote them; `input` for
/// what was read.
pub fn confirmed(it: &Explanation) -> Vec<(&str, &str)> {
    let sure = it
        .chain
        .iter()
        .filter(|link| link.confidence == Confidence::Confirmed);
    sure.map(|link| (link.variable.as_str(), writer(link)))
        .collect()
}

/// Who wrote a variable.
pub fn writer(link: &LinkRecord) -> &str {
    match &link.writer {
        Some(WriterRecord::Statement(place) | WriterRecord::Missed(place)) => &place.function,
        Some(WriterRecord::Input) => "input",
        Some(WriterRecord::Kernel) => "kernel",
        None => "",
    }
}
