//! `--into DIR`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ddfuzz::Desk;

/// A desk with the groups of two bugs in `out`.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("odd", "k");
    desk.write("even", "kk");
    desk.call("triage odd even -o out -- ./two_bugs").exits(1);
    desk
}

fn files(value: &Value) -> Vec<PathBuf> {
    let all = value.as_array().unwrap().iter();
    all.map(|file| file.as_str().unwrap().into()).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

const INTO: &str = "export -o out --into tests/regressions --json";

#[test]
fn exporting_again_changes_nothing() {
    let desk = desk();
    let first = desk.call(INTO).exits(0).json();
    let written = files(&first["written"]);
    assert_eq!(written.len(), 3);
    assert_eq!(name(&written[2]), "main.rs");
    let before: Vec<_> = written
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    let again = desk.call(INTO).exits(0).json();
    assert_eq!(files(&again["unchanged"]), written);
    assert_eq!(again["written"], Value::Array(Vec::new()));
    let after: Vec<_> = written
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    assert_eq!(before, after);
}

#[test]
fn an_edited_test_is_never_overwritten() {
    let desk = desk();
    let written = files(&desk.call(INTO).exits(0).json()["written"]);
    let edited = std::fs::read_to_string(&written[0]).unwrap() + "// a remark\n";
    std::fs::write(&written[0], &edited).unwrap();
    // Another version of ddfuzz, or of the group, would have written something else.
    let other = std::fs::read_to_string(&written[1]).unwrap();
    let (first, rest) = other.split_once('\n').unwrap();
    let rest = rest.replace("it ends with", "it ended with");
    let seal = format!(
        "{}{}",
        &first[..first.len() - 64],
        blake3::hash(rest.as_bytes())
    );
    std::fs::write(&written[1], format!("{seal}\n{rest}")).unwrap();
    let again = desk.call(INTO).exits(0).json();
    assert_eq!(files(&again["edited"])[0], written[0]);
    assert_eq!(files(&again["written"])[0], written[1]);
    assert_eq!(std::fs::read_to_string(&written[0]).unwrap(), edited);
    assert_eq!(std::fs::read_to_string(&written[1]).unwrap(), other);
}

#[test]
fn an_edited_main_is_told_which_line_it_lacks() {
    let desk = desk();
    let written = files(&desk.call(INTO).exits(0).json()["written"]);
    let module = name(&written[0]).trim_end_matches(".rs");
    std::fs::write(&written[2], format!("    mod {module};\nmod own;\n")).unwrap();
    let again = desk.call(INTO).exits(0).json();
    let other = name(&written[1]).trim_end_matches(".rs");
    assert_eq!(again["to_add"][0], format!("mod {other};"));
    assert_eq!(again["to_add"].as_array().unwrap().len(), 1);
    let said = desk
        .call("export -o out --into tests/regressions")
        .exits(0)
        .out;
    assert!(
        said.contains(&format!("add to main.rs:\n  mod {other};")),
        "{said}"
    );
    let main = std::fs::read_to_string(&written[2]).unwrap();
    assert!(main.contains("mod own;"));
}

#[test]
fn a_large_input_stands_beside_its_test() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("crash", "k".repeat(4098));
    desk.call("triage crash -o out -- ./two_bugs").exits(1);
    let written = files(&desk.call(INTO).exits(0).json()["written"]);
    let text = std::fs::read_to_string(&written[0]).unwrap();
    let beside = written[0].with_extension("bin");
    assert!(
        text.contains(&format!("include_bytes!(\"{}\")", name(&beside))),
        "{text}"
    );
    assert_eq!(std::fs::read(&beside).unwrap(), desk.read("crash"));
    std::fs::write(&beside, "edited").unwrap();
    let again = desk.call(INTO).exits(0).json();
    assert_eq!(files(&again["edited"])[0], beside);
    assert_eq!(std::fs::read(&beside).unwrap(), b"edited");
    // On stdout there is no place beside.
    let test = written[0].file_stem().unwrap().to_str().unwrap();
    let words = format!("export {} -o out --as rust-test", &test[2..]);
    let text = desk.call(&words).exits(0).out;
    assert!(text.matches("kkkk").count() > 1000, "{text}");
    desk.call(&format!("{words} --to one.rs")).exits(0);
    assert_eq!(desk.read("one.rs.bin"), desk.read("crash"));
}

#[test]
fn a_group_without_a_complete_input_is_left_out() {
    let desk = desk();
    let shown = desk.call("show out --json").exits(0).json();
    let major = shown["groups"][0]["major"].as_str().unwrap();
    let folder = desk.file("out/crashes").join(&major[..12]);
    remove_records(&folder);
    let said = desk.call(INTO).exits(2);
    let result = said.json();
    assert_eq!(result["left_out"][0]["major"], major[..12]);
    let why = result["left_out"][0]["why"].as_str().unwrap();
    assert!(why.contains("no complete input"), "{why}");
    // The test of the other one, and main.rs.
    assert_eq!(files(&result["written"]).len(), 2, "{result}");
    // Without any other there is nothing to write.
    let other = shown["groups"][1]["major"].as_str().unwrap();
    remove_records(&desk.file("out/crashes").join(&other[..12]));
    let error = desk.call(INTO).exits(2).json();
    assert_eq!(error["error"]["kind"], "incomplete", "{error}");
}

/// Removes the records of all crashes below `folder`.
fn remove_records(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => remove_records(&path),
            false if path.ends_with("crash.json") => std::fs::remove_file(path).unwrap(),
            false => {}
        }
    }
}
