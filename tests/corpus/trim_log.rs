//! The log of a trimmed file.

use ddfuzz::corpus::trim::ToTrim;
use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::trim::trim;
use crate::trim_targets::{WORDS, forkserver, harness, kept};

const INPUT: &[u8] = b"(((12 abc key 77 lo lock)))";

/// A log without what differs from call to call.
fn timeless(log: &[u8]) -> Vec<Value> {
    let lines = log.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let mut line: Value = serde_json::from_slice(line).unwrap();
            let object = line.as_object_mut().unwrap();
            for key in ["us", "cpu_us", "spent_ms"] {
                object.remove(key);
            }
            line
        })
        .collect()
}

#[test]
fn replay_gives_the_same_bytes_and_verify_proves_the_claim() {
    for words in WORDS {
        let desk = Desk::new();
        let Some(trimming) = words(&desk) else {
            continue;
        };
        let file = kept(&trimming, INPUT, b"lock", desk.file("file"));
        let (trimmed, text, _) = trim(&trimming, &file);
        desk.call("log replay file/log.jsonl -o rebuilt").exits(0);
        assert_eq!(desk.read("rebuilt"), text);
        // Whatever way sifts, only fresh runs prove.
        let proven = desk
            .call("log verify --json file/log.jsonl")
            .exits(0)
            .json();
        assert_eq!(proven["holds"], true);
        assert_eq!(proven["claim"], "1-minimal");
        assert_eq!(proven["proved"]["done"], trimmed.proved.of);
        let shown = desk.call("log show --json file/log.jsonl").exits(0).json();
        assert_eq!(shown["start"]["key"], Value::Null);
        assert_eq!(shown["start"]["coverage"]["exit"], 0);
        assert!(
            desk.call("log show file/log.jsonl")
                .exits(0)
                .out
                .contains("1-minimal")
        );
    }
}

#[test]
fn a_result_that_lost_its_coverage_is_refused() {
    let desk = Desk::new();
    let Some(trimming) = harness(&desk) else {
        return;
    };
    let file = kept(&trimming, INPUT, b"lock", desk.file("file"));
    trim(&trimming, &file);
    // Of a log that asks for something else the result does not hold.
    let other = kept(&trimming, INPUT, b"key", desk.file("other"));
    trim(&trimming, &other);
    let first = |name: &str| {
        let log = String::from_utf8(desk.read(name)).unwrap();
        let (first, rest) = log.split_once('\n').unwrap();
        (first.to_owned(), rest.to_owned())
    };
    let (start, _) = first("other/log.jsonl");
    let (_, rest) = first("file/log.jsonl");
    desk.write("forged", format!("{start}\n{rest}"));
    let said = desk.call("log verify --json forged --input file/original");
    let proven = said.exits(1).json();
    assert_eq!(
        (&proven["holds"], &proven["result"]),
        (&Value::from(false), &Value::from("PASS"))
    );
}

#[test]
fn another_build_or_a_target_without_coverage_is_named() {
    let desk = Desk::new();
    let (Some(trimming), Some(other)) = (harness(&desk), forkserver(&desk)) else {
        return;
    };
    let file = kept(&trimming, INPUT, b"lock", desk.file("file"));
    trim(&trimming, &file);
    let ddfuzz::exec::Program::Path(other) = other.target.program else {
        panic!("a program of its own");
    };
    let call = |words: &str| desk.call(&format!("log verify --json file/log.jsonl {words}"));
    let words = format!("--exec forkserver -- {}", other.display());
    let error = call(&words).exits(1).json();
    assert_eq!(error["error"]["kind"], "target");
    let error = call("--exec command --target ul").exits(3).json();
    assert_eq!(error["error"]["kind"], "coverage");
    desk.script("test.sh", "exit 0");
    let error = call("--test test.sh").exits(2).json();
    assert_eq!(error["error"]["kind"], "usage");
    // Another build may have as many places.
    let ddfuzz::exec::Program::Path(program) = &trimming.target.program else {
        panic!("a program of its own");
    };
    call(&format!("-- {}", program.display())).exits(0);
    let mut append = std::fs::OpenOptions::new();
    let mut append = append.append(true).open(program).unwrap();
    std::io::Write::write_all(&mut append, b"\0").unwrap();
    drop(append);
    let error = call("").exits(1).json();
    assert_eq!(error["error"]["kind"], "target");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("another build"), "{message}");
}

#[test]
fn a_log_cut_anywhere_is_gone_on_with_to_the_same_result() {
    let desk = Desk::new();
    let Some(trimming) = harness(&desk) else {
        return;
    };
    let file = kept(&trimming, INPUT, b"lock", desk.file("file"));
    let (whole, text, _) = trim(&trimming, &file);
    let log = desk.read("file/log.jsonl");
    for part in 0..12 {
        let folder = desk.file(&format!("cut-{part}"));
        std::fs::create_dir(&folder).unwrap();
        let cut = log.len() * part / 11;
        std::fs::write(folder.join("log.jsonl"), &log[..cut]).unwrap();
        let cut = ToTrim {
            folder: folder.clone(),
            known: Default::default(),
            ..file.clone()
        };
        let (resumed, resumed_text, _) = trim(&trimming, &cut);
        assert_eq!((resumed, resumed_text), (whole.clone(), text.clone()));
        let resumed = std::fs::read(folder.join("log.jsonl")).unwrap();
        assert_eq!(timeless(&resumed), timeless(&log));
    }
}

#[test]
fn a_log_of_something_else_is_begun_anew() {
    let desk = Desk::new();
    let Some(trimming) = harness(&desk) else {
        return;
    };
    let file = kept(&trimming, INPUT, b"lock", desk.file("file"));
    for (name, log) in [
        ("other", &b"{\"v\":1}\n"[..]),
        ("none", b"\n\n"),
        ("text", b"?\n"),
    ] {
        let folder = desk.file(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("log.jsonl"), log).unwrap();
        let file = ToTrim {
            folder,
            known: Default::default(),
            ..file.clone()
        };
        assert_eq!(trim(&trimming, &file).1, b"lock");
    }
}
