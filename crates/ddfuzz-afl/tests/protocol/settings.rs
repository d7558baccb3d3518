//! Tests the settings from environment variables.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use ddfuzz_afl::{SEARCHES, Settings};

/// Reads the settings of an environment with these two variables.
fn read(search: Option<OsString>, steps: Option<OsString>) -> (Settings, Vec<String>) {
    Settings::from_env(|name| match name {
        Settings::SEARCH => search.clone(),
        Settings::STEPS => steps.clone(),
        _ => None,
    })
}

#[test]
fn each_search_is_taken_by_its_name() {
    for name in SEARCHES {
        let (_, problems) = read(Some(name.into()), None);
        assert_eq!(problems, [""; 0]);
    }
}

#[test]
fn variables_without_a_value_are_not_set() {
    let (settings, problems) = read(Some("".into()), Some("".into()));
    assert_eq!((settings.steps, problems.len()), (None, 0));
}

#[test]
fn a_number_of_steps_is_taken() {
    for (text, number) in [("0", 0), ("1", 1), ("5000", 5000)] {
        let (settings, problems) = read(None, Some(text.into()));
        assert_eq!((settings.steps, problems.len()), (Some(number), 0));
    }
}

#[test]
fn what_cannot_be_used_is_said_with_what_can() {
    let odd = OsString::from_vec(vec![0xff, b'x']);
    for search in ["dd-1999".into(), "SUBSET".into(), odd.clone()] {
        let (_, problems) = read(Some(search), None);
        let said = &problems[0];
        assert!(said.starts_with("DDFUZZ_AFL_SEARCH="), "{said}");
        assert!(
            said.contains("blocks, subset, full, ddmin, ddmin-2002"),
            "{said}"
        );
    }
    for steps in ["-1".into(), "many".into(), "99999999999".into(), odd] {
        let (settings, problems) = read(None, Some(steps));
        assert_eq!(settings.steps, None);
        assert!(problems[0].starts_with("DDFUZZ_AFL_STEPS="), "{problems:?}");
        assert!(problems[0].contains("whole number"), "{problems:?}");
    }
}
