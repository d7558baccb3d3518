//! The planted bugs: each in its own group, with a reproducer of its own.

use std::path::Path;

use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::projects::{ALL, Project, TWO_PANICS};

/// The major keys of a project's crash files by the beginning of their names, in order.
fn majors(project: Project, inputs: &[Value]) -> Vec<Vec<&Value>> {
    let of_bug = |(begin, class): (&str, &str)| -> Vec<&Value> {
        let mut keys = Vec::new();
        for input in inputs {
            let file = Path::new(input["file"].as_str().unwrap());
            let name = file.file_name().unwrap().to_string_lossy();
            if name.starts_with(begin) {
                assert_eq!(input["class"], class, "{input}");
                keys.push(&input["major"]);
            }
        }
        assert_eq!(keys.len(), 3, "{begin}");
        keys.dedup();
        keys
    };
    project.bugs.map(of_bug).into()
}

#[test]
fn crash_files_of_each_project_fall_into_a_group_for_each_bug() {
    for project in ALL {
        let desk = Desk::new();
        let Some(program) = project.build(false, desk.path()) else {
            return;
        };
        let words = format!("triage {} --json -- ./", project.artifacts().display());
        let words = words + &program.file_name().unwrap().to_string_lossy();
        let result = desk.call(&words).exits(1).json();
        assert_eq!(result["groups"].as_array().unwrap().len(), 2, "{result}");
        let majors = majors(project, result["inputs"].as_array().unwrap());
        assert_eq!([majors[0].len(), majors[1].len()], [1, 1], "{majors:?}");
        assert_ne!(majors[0], majors[1], "{}", project.name);
    }
}

#[test]
fn a_fixed_build_crashes_on_none_of_them() {
    for project in ALL {
        let desk = Desk::new();
        if project.build(true, desk.path()).is_none() {
            return;
        }
        let (files, target) = (project.artifacts(), project.target);
        let words = format!("triage {} --json -- ./{target}", files.display());
        let result = desk.call(&words).exits(0).json();
        for input in result["inputs"].as_array().unwrap() {
            assert!(input["class"].is_null(), "{input}");
        }
    }
}

#[test]
fn a_reproducer_is_proven_minimal_and_still_of_its_bug() {
    for project in ALL {
        let desk = Desk::new();
        if project.build(false, desk.path()).is_none() {
            return;
        }
        for (bug, class) in project.bugs {
            let file = project.artifacts().join(format!("{bug}1200"));
            let (file, target) = (file.display(), project.target);
            let words = format!("triage {file} --json -- ./{target}");
            let before = desk.call(&words).exits(1).json();
            let words = format!("min {file} --json -o {bug} -- ./{target}");
            let result = desk.call(&words).exits(0).json();
            assert_eq!(result["claim"], "1-minimal", "{result}");
            assert_eq!(result["outcome"]["class"], class);
            assert_eq!(result["outcome"]["major"], before["inputs"][0]["major"]);
            // Records go as a whole: what is left is what the bug needs.
            assert!(result["size_after"].as_u64().unwrap() <= 21, "{result}");
        }
    }
}

#[test]
fn a_campaign_finds_both_bugs_behind_a_magic_number() {
    let desk = Desk::new();
    let Some(program) = TWO_PANICS.build(false, desk.path()) else {
        return;
    };
    let words = "run --time 100s --seed 1 --json -o out";
    let until: [&std::ffi::OsStr; 4] = [
        "--until".as_ref(),
        "2 groups".as_ref(),
        "--".as_ref(),
        program.as_ref(),
    ];
    let result = desk.call_with(words, &until).exits(1).json();
    let groups = result["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{result}");
    for group in groups {
        assert_eq!(group["claim"], "1-minimal", "{group}");
    }
}
