//! The programs' command line.

use std::process::{Command, Stdio};

use crate::running::{TARGETS, program};

#[test]
fn a_second_argument_is_a_usage_error() {
    for target in TARGETS {
        let output = Command::new(program(target)).args(["one", "two"]).output();
        let output = output.expect("the program starts");
        assert_eq!(output.status.code(), Some(2), "{target}");
        assert!(
            String::from_utf8_lossy(&output.stderr).starts_with("usage: "),
            "{target}"
        );
    }
}

#[test]
fn a_missing_file_is_a_usage_error_that_names_it() {
    for target in TARGETS {
        let output = Command::new(program(target)).arg("no-such-file").output();
        let output = output.expect("the program starts");
        assert_eq!(output.status.code(), Some(2), "{target}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("no-such-file"),
            "{target}"
        );
    }
}

#[test]
fn empty_input_is_harmless() {
    for target in TARGETS {
        for variant in [target.to_owned(), format!("{target}-fixed")] {
            let output = Command::new(program(&variant))
                .stdin(Stdio::null())
                .output();
            let code = output.expect("the program starts").status.code();
            // No rules is what flex complains of.
            assert_eq!(code, Some(i32::from(target == "flex")), "{variant}");
        }
    }
}
