//! Each program does to the inputs of its case what the case says.

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::families::{Case, FAMILIES, Set, cases, family};
use crate::needs;
use crate::programs::{Driver, compile};

/// The programs of a case.
struct Programs {
    folder: TempDir,
    program: PathBuf,
    judge: PathBuf,
}

impl Programs {
    fn new(case: &Case) -> Programs {
        let folder = tempfile::tempdir().expect("there is room");
        let [program, judge] = [Driver::Program, Driver::Judge].map(|driver| {
            compile(case, driver, folder.path()).unwrap_or_else(|why| panic!("{why}"))
        });
        Programs {
            folder,
            program,
            judge,
        }
    }
}

/// A case with its programs.
struct Built<'a> {
    case: Case,
    programs: &'a Programs,
}

impl Built<'_> {
    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let file = self.programs.folder.path().join(name);
        fs::write(&file, content).expect("there is room");
        file
    }

    /// The exit status of the program, `None` for a crash.
    fn ends(&self, input: &Path) -> Option<i32> {
        let status = Command::new(&self.programs.program).arg(input).status();
        let status = status.expect("the program was built");
        assert_eq!(status.code().is_none(), status.signal().is_some());
        status.code()
    }

    fn judged(&self, input: &Path) -> Option<i32> {
        let mut judge = Command::new(&self.programs.judge);
        judge.arg(input).env("BENCH_BUG", self.case.bug);
        judge.status().expect("the judge was built").code()
    }

    /// How many distinct deletions were tried, and the place of one that still fails, or -1.
    fn deletions(&self, input: &Path) -> (usize, i64) {
        let mut judge = Command::new(&self.programs.judge);
        judge.arg("--deletions").arg(input);
        let output = judge.env("BENCH_BUG", self.case.bug).output();
        let text = String::from_utf8(output.expect("the judge was built").stdout);
        let text = text.expect("two numbers");
        let (distinct, removable) = text.trim().split_once(' ').expect("two numbers");
        (
            distinct.parse().expect("a number"),
            removable.parse().expect("a number"),
        )
    }
}

/// Does it for all cases of both sets.
fn each_case(check: impl Fn(&Built<'_>)) {
    if needs::program("gcc").is_none() {
        return;
    }
    // Most cases of the two sets are one program with two inputs.
    let mut built = HashMap::new();
    for case in Set::ALL.into_iter().flat_map(cases) {
        let which = (case.source, case.defines.clone());
        let programs = built.entry(which).or_insert_with(|| Programs::new(&case));
        check(&Built { case, programs });
    }
}

#[test]
fn each_input_and_its_known_minimum_crash_in_the_named_bug() {
    each_case(|built| {
        let name = built.case.name();
        let input = built.file("input", &built.case.input);
        let minimum = built.file("minimum", &built.case.minimum);
        let empty = built.file("empty", b"");
        assert_eq!(built.ends(&input), None, "{name}: the input");
        assert_eq!(built.ends(&minimum), None, "{name}: the minimum");
        assert!(
            matches!(built.ends(&empty), Some(0 | 1)),
            "{name}: the empty input"
        );
        assert_eq!(
            built.judged(&input),
            Some(0),
            "{name}: the bug of the input"
        );
        assert_eq!(
            built.judged(&minimum),
            Some(0),
            "{name}: the bug of the minimum"
        );
        assert_eq!(built.judged(&empty), Some(1), "{name}: the empty input");
        let runs = built.case.minimum.chunk_by(|one, next| one == next).count();
        assert_eq!(built.deletions(&minimum), (runs, -1), "{name}: 1-minimal");
    });
}

#[test]
fn each_family_of_the_table_has_a_case_in_both_sets() {
    for set in Set::ALL {
        let cases = cases(set);
        for family in FAMILIES {
            let of_it = cases.iter().filter(|case| case.family == family.name);
            // The line of the paper is one; what is held out in its place is another family. Files of
            // the machine are a set of their own.
            let elsewhere = match set {
                Set::Tuned | Set::Seed(_) => ["element", "real"],
                _ => ["select", "real"],
            };
            let is_here = !elsewhere.contains(&family.name);
            assert_eq!(of_it.count() > 0, is_here, "{} {}", set.name(), family.name);
        }
    }
}

#[test]
fn each_case_belongs_to_a_family_of_the_table() {
    for set in Set::ALL {
        let cases = cases(set);
        for case in &cases {
            assert!(family(case.family).is_some(), "{}", case.name());
            assert!(case.minimum.len() <= case.input.len(), "{}", case.name());
        }
        let mut names: Vec<String> = cases.iter().map(Case::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), cases.len());
    }
}

#[test]
fn the_held_out_inputs_are_others() {
    let [tuned, held_out] = Set::ALL.map(cases);
    for (one, other) in tuned.iter().zip(&held_out) {
        assert_eq!(one.variant, other.variant);
        assert_ne!(one.input, other.input, "{}", one.name());
    }
}

#[test]
fn the_inputs_of_a_case_are_the_same_each_time() {
    for (one, again) in cases(Set::Tuned).iter().zip(&cases(Set::Tuned)) {
        assert_eq!(one.input, again.input, "{}", one.name());
        assert_eq!(one.defines, again.defines, "{}", one.name());
    }
}
