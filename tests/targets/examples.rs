//! Ordinary use: every example gives what stands beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::running::{TARGETS, program, run};

/// What a run on an example must give.
struct Expected {
    input: PathBuf,
    output: Vec<u8>,
    complaints: Vec<u8>,
}

/// The examples of a target: `NAME.in` with `NAME.out` beside it, and `NAME.err` where the tool
/// complains of its input.
fn examples(target: &str) -> BTreeMap<String, Expected> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("targets")
        .join(target)
        .join("examples");
    let files = fs::read_dir(folder).expect("each target has examples");
    let files = files.map(|entry| entry.expect("the folder is readable").path());
    let inputs = files.filter(|file| file.extension().is_some_and(|extension| extension == "in"));
    inputs
        .map(|input| {
            let name = input
                .file_stem()
                .expect("it has a name")
                .to_string_lossy()
                .into_owned();
            let output = fs::read(input.with_extension("out")).expect("the output stands beside");
            let complaints = fs::read(input.with_extension("err")).unwrap_or_default();
            (
                name,
                Expected {
                    input,
                    output,
                    complaints,
                },
            )
        })
        .collect()
}

fn assert_as_expected(got: &Output, expected: &Expected, what: &str) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&got.stdout), text(&expected.output), "{what}");
    assert_eq!(text(&got.stderr), text(&expected.complaints), "{what}");
    let status = i32::from(!expected.complaints.is_empty());
    assert_eq!(got.status.code(), Some(status), "{what}");
}

#[test]
fn each_target_has_ten_examples_that_it_does_not_complain_of() {
    for target in TARGETS {
        let ordinary = examples(target)
            .into_values()
            .filter(|example| example.complaints.is_empty());
        assert!(ordinary.count() >= 10, "{target}");
    }
}

#[test]
fn every_example_on_stdin_gives_what_stands_beside_it() {
    for target in TARGETS {
        for (name, example) in examples(target) {
            let input = fs::read(&example.input).expect("the example is readable");
            for variant in [target.to_owned(), format!("{target}-fixed")] {
                assert_as_expected(
                    &run(&variant, &input),
                    &example,
                    &format!("{variant}: {name}"),
                );
            }
        }
    }
}

#[test]
fn every_example_as_a_file_gives_what_stands_beside_it() {
    for target in TARGETS {
        for (name, example) in examples(target) {
            for variant in [target.to_owned(), format!("{target}-fixed")] {
                let output = Command::new(program(&variant)).arg(&example.input).output();
                let output = output.expect("the program starts");
                assert_as_expected(&output, &example, &format!("{variant}: {name}"));
            }
        }
    }
}

#[test]
fn every_seed_of_the_corpora_is_harmless() {
    for target in TARGETS {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpora")
            .join(target)
            .join("seeds");
        let files: Vec<PathBuf> = fs::read_dir(seeds)
            .expect("each target has seeds")
            .map(|entry| entry.expect("the folder is readable").path())
            .collect();
        assert!((3..=8).contains(&files.len()), "{target}");
        for file in files {
            let output = run(target, &fs::read(&file).expect("the seed is readable"));
            assert_eq!(output.status.code(), Some(0), "{}", file.display());
        }
    }
}
