//! `ddfuzz gen`.

use std::io::Read;
use std::process::Stdio;

use ddfuzz::campaign::generator::InputName;
use serde_json::json;

use crate::ddfuzz::{Desk, keys};
use crate::watch::wait_for;

/// What a call sends to stdout.
fn bytes(desk: &Desk, words: &str) -> Vec<u8> {
    let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    let output = command.args(words.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    output.stdout
}

/// The input of a name.
fn named(name: &str) -> Vec<u8> {
    let name: InputName = name.parse().unwrap();
    let mut bytes = Vec::new();
    name.write_into(&mut bytes);
    bytes
}

#[test]
fn options_mean_what_they_mean_to_fuzz() {
    let desk = Desk::new();
    for (options, name) in [
        ("1000 -s 1", "bytes:0000000000000001:1000"),
        ("-0 -s 1 1000", "bytes+nul:0000000000000001:1000"),
        ("-p -s 255 1000", "printable:00000000000000ff:1000"),
        ("-p -0 -s 1 1000", "printable+nul:0000000000000001:1000"),
        ("-p -a -s 1 1000", "bytes:0000000000000001:1000"),
        ("-a -p -s 1 1000", "printable:0000000000000001:1000"),
        ("10 -s 1 -l", "bytes+strings255:0000000000000001:10"),
        (
            "10 -s 1 -l 80 -p",
            "printable+strings80:0000000000000001:10",
        ),
        ("10 -s 1 -l=80", "bytes+strings80:0000000000000001:10"),
        ("-s -1 10", "bytes:ffffffffffffffff:10"),
        ("-s 38 -m 37 10", "bytes:0000000000000001:10"),
        ("-s 1 -s 2 10", "bytes:0000000000000002:10"),
    ] {
        assert!(
            bytes(&desk, &format!("gen {options}")) == named(name),
            "{options}"
        );
        let said = desk.call(&format!("gen {options} --print-name")).exits(0);
        assert_eq!(said.out.trim(), name, "{options}");
        assert!(
            bytes(&desk, &format!("gen --name {name}")) == named(name),
            "{name}"
        );
    }
}

#[test]
fn without_a_length_it_is_drawn_from_the_seed() {
    let desk = Desk::new();
    let name = desk.call("gen -s 7 --print-name").exits(0).out;
    assert_eq!(name.trim(), "bytes:0000000000000007:72372");
    assert_eq!(bytes(&desk, "gen -s 7").len(), 72372);
    let other = desk.call("gen -s 8 --print-name").exits(0).out;
    assert!(!other.contains(":72372"), "{other}");
}

#[test]
fn the_seed_comes_first_and_the_epilog_last() {
    let desk = Desk::new();
    let epilog = ["-e", "\\n\\x41\\101"].map(std::ffi::OsStr::new);
    let said = desk.call_with("gen -x -p -s -5 -m 3 8", &epilog).exits(0);
    let random = named("printable:fffffffffffffffe:8");
    let expected = [b"-2\n", &random[..], b"\nAA"].concat();
    assert_eq!(said.out.as_bytes(), expected);
}

#[test]
fn what_is_recorded_is_replayed_and_never_overwritten() {
    let desk = Desk::new();
    let sent = bytes(&desk, "gen -x -p -s 3 100 -o record");
    assert_eq!(desk.read("record"), sent);
    assert_eq!(bytes(&desk, "gen -r record"), sent);
    let epilog = [b"-", &b"end"[..]].concat();
    let replayed = bytes(&desk, "gen -r record -e -end -o again");
    assert_eq!(replayed, [&sent[..], &epilog].concat());
    let refused = desk.call("gen 5 -o record").exits(2);
    assert!(refused.err.contains("exists already") && refused.out.is_empty());
    assert_eq!(desk.read("record"), sent);
    desk.call("gen -r missing -o other").exits(2);
    desk.call("gen -r tmp").exits(2);
    assert!(!desk.file("other").exists());
}

#[test]
fn a_closed_stdout_ends_it_silently() {
    let desk = Desk::new();
    let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    command.args(["gen", "-p", "100000000", "-s", "1"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    assert_eq!(first[..], named("printable:0000000000000001:10"));
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn a_hundred_million_bytes_need_no_more_memory_than_few() {
    let desk = Desk::new();
    let limit = 64 << 10;
    // The limit of the shell is in KiB of address space: a whole input would not fit.
    let script = format!("ulimit -v {limit}; exec \"$0\" gen -0 -s 1 100000000");
    let mut command = desk.command("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_ddfuzz")]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut child.stdout.take().unwrap(), &mut hasher).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(hasher.count(), 100_000_000);
    assert_eq!(&hasher.finalize().to_hex()[..16], "9bbb3e28e244c2bf");
}

#[test]
fn characters_can_come_slowly() {
    let desk = Desk::new();
    let begun = std::time::Instant::now();
    let slow = bytes(&desk, "gen -s 1 -d 0.02 5");
    assert_eq!(slow, named("bytes:0000000000000001:5"));
    // Never less, however fast the machine is.
    assert!(begun.elapsed().as_millis() >= 100);
}

#[test]
fn a_wait_between_characters_ends_at_an_interrupt() {
    let desk = Desk::new();
    let mut child = desk.start("gen -s 1 5 -d 1000h -o slow");
    let names = || -> Vec<String> {
        let entries = std::fs::read_dir(desk.path()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name != "tmp").collect()
    };
    // The unfinished file has its first character: ddfuzz waits.
    let waits = || {
        let sizes = names().into_iter();
        let mut sizes =
            sizes.map(|name| std::fs::metadata(desk.file(&name)).map_or(0, |it| it.len()));
        sizes.any(|size| size == 1)
    };
    wait_for("the first character", waits);
    // SAFETY: a signal to a child of ours that has not been waited for.
    unsafe { libc::kill(i32::try_from(child.id()).unwrap(), libc::SIGINT) };
    let mut ended = None;
    wait_for("the end", || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    let ended = ended.unwrap();
    assert_eq!(ended.code(), Some(130));
    assert_eq!(names(), Vec::<String>::new());
}

#[test]
fn a_preset_is_a_directory_of_names() {
    let desk = Desk::new();
    let result = desk
        .call("gen --preset small3 --count 6 --seed 9 -o in/ --json")
        .exits(0)
        .json();
    assert_eq!(keys(&result), ["bytes", "files"]);
    let files = result["files"].as_array().unwrap();
    let mut kinds = Vec::new();
    for file in files {
        let name = file["name"].as_str().unwrap();
        kinds.push(name.split(':').next().unwrap());
        assert_eq!(desk.read(&format!("in/{name}")), named(name));
    }
    let expected = [
        "bytes+nul",
        "bytes",
        "printable",
        "bytes+nul+strings100",
        "bytes+strings100",
        "printable+strings100",
    ];
    assert_eq!(kinds, expected);
    // The same again finds everything done; a file of somebody else is left alone.
    let again = desk
        .call("gen --preset small3 --count 6 --seed 9 -o in/ --json")
        .exits(0);
    assert_eq!(again.json(), result);
    let name = files[2]["name"].as_str().unwrap();
    desk.write(&format!("in/{name}"), "mine");
    desk.call("gen --preset small3 --count 6 --seed 9 -o in/")
        .exits(2);
    assert_eq!(desk.read(&format!("in/{name}")), b"mine");
}

#[test]
fn json_is_one_object() {
    let desk = Desk::new();
    let named = desk.call("gen --json --print-name -s 1 5").exits(0).json();
    assert_eq!(
        named,
        json!({"name": "bytes:0000000000000001:5", "bytes": 5})
    );
    let named = desk
        .call("gen --json --print-name -s 1 -l 5 5")
        .exits(0)
        .json();
    assert_eq!(
        named,
        json!({"name": "bytes+strings5:0000000000000001:5", "bytes": null})
    );
    let written = desk.call("gen --json -s 1 5 -o file").exits(0).json();
    assert_eq!(written["bytes"], 5);
    assert_eq!(
        written["files"][0]["file"],
        desk.file("file").to_str().unwrap()
    );
    let both = desk.call("gen --json -s 1 5").exits(2).json();
    assert_eq!(both["error"]["kind"], "usage");
}

#[test]
fn wrong_calls_say_what_to_write() {
    let desk = Desk::new();
    for (words, says) in [
        ("gen --name all:1", "write it like"),
        ("gen -s one", "whole number"),
        ("gen -l 0 5", "0"),
        ("gen -m 0 5", "0"),
        ("gen -e \\q 5", "escape of C"),
        ("gen --preset small9 -o d", "small1"),
        ("gen --preset small1", "--out"),
        ("gen --preset small1 -o -", "--preset"),
        ("gen --name all:1:1 -p", "--printable"),
        ("gen --count 5", "--preset"),
    ] {
        let said = desk.call(words).exits(2);
        assert!(said.err.contains(says), "{words}: {}", said.err);
    }
}
