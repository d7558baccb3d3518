//! Structured inputs: what a harness makes of a reproducer.

use ::ddfuzz::exec::{Program, Target, debug_text};

use crate::ddfuzz::Desk;
use crate::needs;
use crate::projects::{ARBITRARY, TWO_PANICS};

/// The group that was minimized; tests of its minimization may have met other crashes.
fn minimized_group(shown: &serde_json::Value) -> &serde_json::Value {
    let groups = shown["groups"].as_array().unwrap();
    let mut minimized = groups.iter().filter(|group| group["claim"] == "1-minimal");
    minimized.next().unwrap_or_else(|| panic!("{shown}"))
}

#[test]
fn the_value_of_a_structured_input_stands_beside_its_reproducer() {
    let desk = Desk::new();
    if ARBITRARY.build(false, desk.path()).is_none() {
        return;
    }
    let file = ARBITRARY.artifacts().join("closed-300");
    let words = format!("min {} -q -o out/ -- ./ops", file.display());
    desk.call(&words).exits(0);
    let shown = desk.call("show out --json").exits(0).json();
    let group = minimized_group(&shown);
    let debug = group["debug"].as_str().unwrap();
    assert!(debug.starts_with("Plan {\n    limit: "), "{debug}");
    for part in ["Open {", "Close(", "Add {"] {
        assert!(debug.contains(part), "{debug}");
    }
    let beside = std::path::Path::new(group["file"].as_str().unwrap()).with_file_name("debug.txt");
    assert_eq!(
        std::fs::read_to_string(beside).unwrap(),
        format!("{debug}\n")
    );
    let major = group["major"].as_str().unwrap();
    let block = desk.call(&format!("show out {major}")).exits(0).out;
    assert!(
        block.contains("\n  debug   Plan {\n              limit: "),
        "{block}"
    );
    // Elsewhere it is what it was.
    desk.call("merge out -o both").exits(0);
    let merged = desk.call("show both --json").exits(0).json();
    let group = minimized_group(&merged);
    assert_eq!(group["debug"], debug);
    let file = std::path::Path::new(group["file"].as_str().unwrap());
    assert!(file.with_file_name("debug.txt").is_file());
}

#[test]
fn plain_bytes_have_no_value_to_show() {
    let desk = Desk::new();
    if TWO_PANICS.build(false, desk.path()).is_none() {
        return;
    }
    let file = TWO_PANICS.artifacts().join("count-300");
    let words = format!("min {} -q -o out/ -- ./parse", file.display());
    desk.call(&words).exits(0);
    let shown = desk.call("show out --json").exits(0).json();
    let group = &shown["groups"][0];
    assert!(group["debug"].is_null(), "{group}");
    let beside = std::path::Path::new(group["file"].as_str().unwrap()).with_file_name("debug.txt");
    assert!(!beside.exists());
}

#[test]
fn an_input_of_which_no_value_can_be_built_has_none() {
    let desk = Desk::new();
    let Some(program) = ARBITRARY.build(false, desk.path()) else {
        return;
    };
    let target = Target::new(Program::Path(program));
    let text = debug_text(&target, &[7; 40]).unwrap().unwrap();
    assert!(text.starts_with("Plan {"), "{text}");
    assert_eq!(debug_text(&target, b"").unwrap(), None);
}

#[test]
fn a_harness_in_c_is_not_asked() {
    let desk = Desk::new();
    if needs::program("clang").is_none() {
        return;
    }
    let source = desk.write(
        "plain.c",
        "int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) {\n\
           return size && *data == 'x' ? __builtin_trap(), 0 : 0;\n\
         }\n",
    );
    let mut clang = desk.command("clang");
    clang.args(["-fsanitize=fuzzer", "-o", "plain"]).arg(source);
    let output = clang.output().unwrap();
    if !output.status.success() {
        needs::missing("libFuzzer", &String::from_utf8_lossy(&output.stderr));
        return;
    }
    let target = Target::new(Program::Path(desk.file("plain")));
    assert_eq!(debug_text(&target, b"x").unwrap(), None);
}
