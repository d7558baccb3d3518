//! The in-process entry starts afresh at each call.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::running::{TARGETS, input_file, run};
use crate::stream::stream;

/// The targets' folder.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("targets")
}

/// Builds the fixed variant of a target with a `main` that calls the entry for each input.
fn build(target: &str, program: &Path) {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let sources = fs::read_dir(folder().join(target)).expect("each target has a folder");
    let sources = sources.map(|entry| entry.expect("the folder is readable").path());
    let status = Command::new(compiler)
        .args(["-std=c11", "-O1", "-DDDFUZZ_FIXED", "-I"])
        .arg(folder())
        .arg("-o")
        .arg(program)
        .args(sources.filter(|file| file.extension().is_some_and(|extension| extension == "c")))
        .args(["guarded.c", "complain.c"].map(|file| folder().join(file)))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/targets/reentry.c"))
        .status()
        .expect("the C compiler that built the targets is there");
    assert!(status.success(), "{target}");
}

/// All examples and some random inputs.
fn inputs(target: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder().join(target).join("examples"))
        .expect("each target has examples")
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|file| file.extension().is_some_and(|extension| extension == "in"))
        .collect();
    files.sort();
    let examples = files
        .iter()
        .map(|file| fs::read(file).expect("the example is readable"));
    examples
        .chain((0..5).map(|seed| stream(seed, 5000)))
        .collect()
}

#[test]
fn calls_in_one_process_do_what_calls_in_many_do() {
    let scratch = tempfile::tempdir().expect("there is room");
    for target in TARGETS {
        let program = scratch.path().join(target);
        build(target, &program);
        // Twice over, so that each input comes after every other one.
        let inputs = [inputs(target), inputs(target)].concat();
        let mut together = Vec::new();
        let mut expected = Vec::new();
        for input in &inputs {
            let length = u32::try_from(input.len()).expect("inputs are short");
            together.extend(length.to_le_bytes());
            together.extend(input);
            let output = run(&format!("{target}-fixed"), input);
            let status = output.status.code().expect("it exits");
            expected.extend(output.stdout);
            expected.extend(format!("\n= {status}\n").bytes());
        }
        let output = Command::new(&program)
            .stdin(Stdio::from(input_file(&together)))
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{target}");
        assert!(
            output.stdout == expected,
            "{target}: a call depends on those before it"
        );
    }
}
