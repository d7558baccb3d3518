//! The fuzz study of ISSTA 2000, on the short ones of its inputs.

use std::path::Path;

#[path = "../../../benches/issta/study.rs"]
#[allow(dead_code, reason = "the bench uses more of it")]
mod study;

use study::{Study, TARGETS, inputs};

#[test]
fn short_inputs_of_the_study_fail_and_keep_their_failure() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study {
        ddfuzz: Path::new(env!("CARGO_BIN_EXE_ddfuzz")),
        folder: folder.path(),
        seconds: 60,
    };
    let inputs = inputs(1_000);
    assert_eq!(inputs.len(), 4);
    let mut failing = Vec::new();
    for target in TARGETS {
        for input in &inputs {
            let row = study.row(target, *input).unwrap();
            assert!(row.is_same_failure(), "{target} {input}");
            if let Some(failure) = row.failure {
                failing.push(target);
                for minimized in failure.minimized {
                    assert!(minimized.proven && minimized.size < 100, "{target} {input}");
                }
            }
        }
    }
    failing.dedup();
    // Those of the others take longer runs than a thousand characters.
    assert_eq!(failing, ["troff", "crtplot", "units"]);
}
