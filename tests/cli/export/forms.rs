//! The forms that are text alone, and how a group is named.

use serde_json::Value;

use crate::ddfuzz::Desk;

/// A desk with a group of a bundled target in `ddfuzz-out`, and its major key.
fn desk() -> (Desk, String) {
    let desk = Desk::new();
    desk.write("crash", "a t b\n");
    let result = desk
        .call("triage crash -o ddfuzz-out --json --target crtplot")
        .exits(1)
        .json();
    let major = result["groups"][0]["major"].as_str().unwrap().to_owned();
    (desk, major)
}

#[test]
fn a_reproducer_that_has_lost_its_content_is_none() {
    let (desk, major) = desk();
    desk.call("min ddfuzz-out").exits(0);
    let group = || desk.call("show --json").exits(0).json()["groups"][0].clone();
    let before = group();
    assert!(before["size_after"].as_u64() < before["size_before"].as_u64());
    let file = before["file"].as_str().unwrap();
    assert!(file.ends_with("/minimized"), "{file}");
    std::fs::write(file, "").unwrap();
    let after = group();
    assert_eq!(after["size_after"], before["size_before"]);
    assert!(after["file"].as_str().unwrap().ends_with("/original"));
    let said = desk.call(&format!("export {major} --as base64")).exits(0);
    assert_eq!(said.out, "YSB0IGIK\n");
    assert!(said.err.contains("has lost its content"), "{said:?}");
}

#[test]
fn bytes_are_written_as_array_dump_and_base64() {
    let (desk, major) = desk();
    let of = |form: &str| {
        desk.call(&format!("export {major} --as {form}"))
            .exits(0)
            .out
    };
    assert_eq!(of("base64"), "YSB0IGIK\n");
    let dump = of("hexdump");
    assert!(dump.starts_with("00000000  61 20 74 20 62 0a "), "{dump}");
    assert!(dump.ends_with("|a t b.|\n00000006\n"), "{dump}");
    let array = of("c-array");
    assert!(
        array.contains("0x61, 0x20, 0x74, 0x20, 0x62, 0x0a,"),
        "{array}"
    );
    assert!(array.contains(&format!("group_{major}_")), "{array}");
    let words = format!("export {major} --as base64 --json");
    let result = desk.call(&words).exits(0).json();
    assert_eq!((&result["size"], &result["to"]), (&6.into(), &Value::Null));
    assert_eq!(result["text"], "YSB0IGIK\n");
}

#[test]
fn a_group_is_named_by_digits_or_by_a_path_to_it() {
    let (desk, major) = desk();
    let folder = format!("ddfuzz-out/crashes/{major}");
    let minor = std::fs::read_dir(desk.file(&folder)).unwrap().flatten();
    let minor = minor.map(|entry| entry.path()).find(|path| path.is_dir());
    let entry = std::fs::read_dir(minor.unwrap()).unwrap().next().unwrap();
    let file = entry.unwrap().path().join("original");
    for name in [&major[..4], &major, &folder, file.to_str().unwrap()] {
        let out = desk
            .call(&format!("export {name} --as base64"))
            .exits(0)
            .out;
        assert_eq!(out, "YSB0IGIK\n", "{name}");
    }
    // A group of the output directory comes before a file of the same name.
    desk.write(&major[..4], "");
    let named = desk.call(&format!("export {} --as base64", &major[..4]));
    assert_eq!(named.exits(0).out, "YSB0IGIK\n");
    std::fs::remove_file(desk.file(&major[..4])).unwrap();
    let ignored = desk.call(&format!("export {major} --as base64 --fuzz-dir ."));
    assert!(ignored.exits(2).err.contains("--fuzz-dir"));
    let error = |name: &str| {
        let words = format!("export {name} --as base64 --json");
        desk.call(&words).exits(2).json()["error"].clone()
    };
    assert!(
        error(&major[..3])["message"]
            .as_str()
            .unwrap()
            .contains("too short")
    );
    // Where none is named, there is a list to choose from.
    for name in ["0000", "zz", &major[..3]] {
        let error = error(name);
        let message = error["message"].as_str().unwrap();
        let line = format!("\n  {major}  ");
        assert!(message.contains(&line), "{message}");
        assert!(
            error["hint"].as_str().unwrap().contains("4 or more hex"),
            "{error}"
        );
    }
    let said = desk.call("export zz").exits(2);
    assert!(said.err.contains(&major), "{}", said.err);
    assert_eq!(error("crash")["kind"], "usage");
    assert_eq!(error("no/such/file")["kind"], "file");
    assert_eq!(error("ddfuzz-out")["kind"], "usage");
}

#[test]
fn a_file_is_overwritten_only_by_force() {
    let (desk, major) = desk();
    desk.write("taken", "precious");
    let words = format!("export {major} --as base64 --to taken");
    let error = desk.call(&format!("{words} --json")).exits(2).json();
    assert_eq!(error["error"]["kind"], "exists");
    assert_eq!(desk.read("taken"), b"precious");
    desk.call(&format!("{words} --force")).exits(0);
    assert_eq!(desk.read("taken"), b"YSB0IGIK\n");
    // The group's own files are not even then.
    let folder = desk.file("ddfuzz-out/crashes").join(&major);
    let found = std::fs::read_dir(folder).unwrap().flatten();
    let minor = found.map(|entry| entry.path()).find(|path| path.is_dir());
    let entry = std::fs::read_dir(minor.unwrap()).unwrap().next().unwrap();
    let original = entry.unwrap().path().join("original");
    let words = format!(
        "export {major} --as base64 --force --to {}",
        original.display()
    );
    desk.call(&words).exits(2);
    assert_eq!(std::fs::read(original).unwrap(), desk.read("crash"));
}

#[test]
fn options_without_an_effect_are_refused() {
    let (desk, major) = desk();
    for words in [
        format!("export {major}"),
        "export --as base64".to_owned(),
        format!("export {major} --as base64 --call f(INPUT)"),
        format!("export {major} --as rust-test --call f()"),
        format!("export {major} --as c-test --into tests"),
        format!("export {major} --as rust-test --fuzz-dir ."),
    ] {
        let error = desk.call(&format!("{words} --json")).exits(2).json();
        assert_eq!(error["error"]["kind"], "usage", "{words}");
    }
}

#[test]
fn a_program_that_is_gone_leaves_the_forms_without_it() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("crash", "k");
    desk.call("triage crash -o ddfuzz-out -- ./two_bugs")
        .exits(1);
    std::fs::remove_file(desk.file("two_bugs")).unwrap();
    let group = std::fs::read_dir(desk.file("ddfuzz-out/crashes"))
        .unwrap()
        .next();
    let group = group.unwrap().unwrap().path();
    let of = |form: &str| desk.call(&format!("export {} --json {form}", group.display()));
    of("--as base64").exits(0);
    of("--as rust-test --call parse(INPUT)").exits(0);
    let error = of("--as rust-test").exits(2).json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("no longer exists"), "{message}");
}

#[test]
fn only_the_input_of_an_earlier_test_is_overwritten() {
    let desk = Desk::new();
    desk.write("crash", format!("a t b{}\n", " b".repeat(4000)));
    let found = desk
        .call("triage crash -o out --json --target crtplot")
        .exits(1);
    let major = found.json()["groups"][0]["major"].clone();
    let major = major.as_str().unwrap();
    let words = format!("export {major} -o out --as rust-test --call f(INPUT) --to t.rs");
    desk.write("t.rs", "fn mine() {}");
    desk.write("t.rs.bin", "mine");
    let refused = desk.call(&format!("{words} --force")).exits(2);
    assert!(refused.err.contains("t.rs.bin"), "{refused:?}");
    assert_eq!(desk.read("t.rs.bin"), b"mine");
    assert_eq!(desk.read("t.rs"), b"fn mine() {}");
    std::fs::remove_file(desk.file("t.rs.bin")).unwrap();
    for _ in 0..2 {
        desk.call(&format!("{words} --force")).exits(0);
        assert_eq!(desk.read("t.rs.bin"), desk.read("crash"));
    }
}
