//! `ddfuzz clean`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::ddfuzz::Desk;

/// Lines that overstrike, underline and move, in which `ul` reaches this and that.
pub fn corpus(desk: &Desk, folder: &str, count: u32) {
    std::fs::create_dir_all(desk.file(folder)).unwrap();
    for number in 0..count {
        desk.write(&format!("{folder}/f{number}"), text(number));
    }
}

/// What `ul` dies of.
pub fn crash() -> Vec<u8> {
    [&b"x".repeat(600)[..], b"\n"].concat()
}

/// The text of this number, which no other has (xorshift, Marsaglia 2003).
fn text(number: u32) -> Vec<u8> {
    let mut state = u64::from(number) * 0x9e37_79b9 + 77;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let letters = b"abc _\x08\n\t\r\x0b\x1b789\x0e\x0f";
    let drawn = (0..draw(120)).map(|_| letters[draw(letters.len() as u64) as usize]);
    drawn.chain(number.to_string().into_bytes()).collect()
}

/// All files below a folder, by their paths below it.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap().flatten() {
            let path = entry.path();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(path),
                false => {
                    let below = path.strip_prefix(folder).unwrap().to_owned();
                    found.insert(below, std::fs::read(&path).unwrap());
                }
            }
        }
    }
    found
}

/// Cleans `in` into `out` by the words, with the target `ul`.
fn clean(desk: &Desk, words: &str) -> Value {
    let words = format!("clean {words} --json --jobs 2 --trim-tests 60 --target ul");
    desk.call(&words).exits(0).json()
}

/// Checks that all features of the corpus are kept; trimmed files may reach further ones.
fn assert_nothing_is_lost(result: &Value) {
    let count = |key: &str| result[key].as_u64().unwrap();
    let gained = result["gained"].as_array().unwrap().len() as u64;
    assert!(count("edges_before") <= count("edges_after"), "{result}");
    assert_eq!(
        count("features_before") + gained,
        count("features_after"),
        "{result}"
    );
    assert_eq!(result["missing"].as_array().unwrap().len(), 0);
}

#[test]
fn what_is_kept_reaches_all_that_the_corpus_did() {
    let desk = Desk::new();
    corpus(&desk, "in", 150);
    desk.write("in/again", text(3));
    desk.write("in/crash", crash());
    let before = files(&desk.file("in"));
    let result = clean(&desk, "in -o out");
    assert_eq!(result["before"]["files"], 152);
    assert_eq!(result["duplicates"], 1);
    assert_eq!(result["crashes"], 1);
    assert_eq!(result["hangs"], 0);
    assert!(result["edges_before"].as_u64().unwrap() > 20, "{result}");
    assert_nothing_is_lost(&result);
    let kept = files(&desk.file("out/corpus"));
    assert_eq!(result["after"]["files"], kept.len() as u64);
    let bytes: usize = kept.values().map(Vec::len).sum();
    assert_eq!(result["after"]["bytes"], bytes as u64);
    assert!(kept.len() < 75, "{result}");
    for (name, bytes) in &kept {
        let hash = blake3::hash(bytes).to_hex();
        assert_eq!(name.to_str(), Some(&hash[..16]));
    }
    let named = result["kept"].as_array().unwrap();
    assert_eq!(named.len(), kept.len());
    for one in named {
        let file = Path::new(one["file"].as_str().unwrap());
        assert!(file.is_absolute() && file.is_file(), "{one}");
        assert!(!one["why"].as_str().unwrap().is_empty());
    }
    // The crash is in its group, minimized; the corpus was only read.
    let groups = desk.call("show out --json").json();
    assert_eq!(groups["groups"].as_array().unwrap().len(), 1, "{groups}");
    assert!(
        groups["groups"][0]["size_after"].as_u64() < Some(601),
        "{groups}"
    );
    assert_eq!(files(&desk.file("in")), before);
    desk.is_left_clean();
}

#[test]
fn the_result_depends_on_the_contents_alone() {
    let desk = Desk::new();
    corpus(&desk, "in", 80);
    clean(&desk, "in -o first");
    // Other names, in another order, some of them twice, and below each other.
    std::fs::create_dir_all(desk.file("other/below")).unwrap();
    for number in (0..80).rev() {
        desk.write(&format!("other/below/x{}", number * 7 % 80), text(number));
    }
    desk.write("other/twice", text(5));
    let words = "clean other -o second --json --jobs 1 --trim-tests 60 --target ul";
    desk.call(words).exits(0);
    assert_eq!(
        files(&desk.file("first/corpus")),
        files(&desk.file("second/corpus"))
    );
    desk.is_left_clean();
}

#[test]
fn a_second_call_runs_no_content_again() {
    let desk = Desk::new();
    corpus(&desk, "in", 60);
    let first = clean(&desk, "in -o out");
    let kept = files(&desk.file("out/corpus"));
    let second = clean(&desk, "in -o out");
    assert_eq!(second["known"], 60, "{second}");
    assert_eq!(second["after"], first["after"]);
    assert_eq!(files(&desk.file("out/corpus")), kept);
    // What was trimmed is not trimmed again: the logs are as they were.
    assert!(first["trim_runs"].as_u64() > Some(0), "{first}");
    assert_eq!(second["trim_runs"], 0, "{second}");
    desk.is_left_clean();
}

#[test]
fn trimmed_files_have_logs_that_replay_and_verify() {
    let desk = Desk::new();
    corpus(&desk, "in", 40);
    clean(&desk, "in -o out");
    let mut logs = 0;
    for entry in std::fs::read_dir(desk.file("out/trimmed"))
        .unwrap()
        .flatten()
    {
        let log = entry.path().join("log.jsonl");
        if !log.is_file() || logs == 3 {
            continue;
        }
        logs += 1;
        let original = entry.path().join("original");
        let words = [log.as_os_str(), OsStr::new("--input"), original.as_os_str()];
        desk.call_with("log replay", &words).exits(0);
        desk.call_with("log verify", &words).exits(0);
    }
    assert_eq!(logs, 3);
    desk.is_left_clean();
}

#[test]
fn a_corpus_is_replaced_in_place_and_the_old_one_kept() {
    let desk = Desk::new();
    corpus(&desk, "in/below", 40);
    let before = files(&desk.file("in"));
    let words = "clean in -o out --in-place --keep-names --json --trim off --target ul";
    let result = desk.call(words).exits(0).json();
    assert_eq!(files(&desk.file("in.old")), before);
    let after = files(&desk.file("in"));
    assert_eq!(result["after"]["files"], after.len() as u64);
    assert!(after.len() < 40 && after.keys().all(|name| before.contains_key(name)));
    assert!(desk.file("in/below").is_dir());
    let refused = desk.call(words).exits(2);
    assert!(refused.out.contains("in.old"), "{refused:?}");
    assert_eq!(files(&desk.file("in.old")), before);
    desk.call(&format!("{words} --delete-old")).exits(0);
    assert!(!desk.file("in.old").exists());
    assert_eq!(files(&desk.file("in")), after);
    desk.is_left_clean();
}

#[test]
fn only_what_brings_something_is_added_to_another_corpus() {
    let desk = Desk::new();
    corpus(&desk, "all", 60);
    std::fs::create_dir(desk.file("mine")).unwrap();
    for number in 0..30 {
        desk.write(&format!("mine/m{number}"), text(number));
    }
    let mine = files(&desk.file("mine"));
    let result = clean(&desk, "all --onto mine -o out");
    assert_nothing_is_lost(&result);
    let grown = files(&desk.file("mine"));
    assert!(
        mine.iter()
            .all(|(name, bytes)| grown.get(name) == Some(bytes))
    );
    let added = (grown.len() - mine.len()) as u64;
    assert_eq!(result["after"]["files"], added);
    assert!(added > 0 && added < 30, "{result}");
    // Now there is nothing more to be had.
    let again = clean(&desk, "all --onto mine -o again");
    assert_eq!(again["after"]["files"], 0, "{again}");
    assert_eq!(files(&desk.file("mine")), grown);
    desk.is_left_clean();
}

#[test]
fn the_fate_of_each_file_is_explained() {
    let desk = Desk::new();
    corpus(&desk, "in", 60);
    desk.write("in/crash", crash());
    desk.write("in/other", [&b"yy"[..], &crash()].concat());
    desk.write("in/long", b"x\n".repeat(3000));
    let words = "clean in -o out --max-len 4000 --json --jobs 2 --target ul";
    let result = desk.call(words).exits(0).json();
    let kept: BTreeSet<&str> = (result["kept"].as_array().unwrap().iter())
        .map(|kept| kept["from"].as_str().unwrap())
        .collect();
    let explain = |file: &str| {
        desk.call(&format!("clean -o out --explain {file}"))
            .exits(0)
            .out
    };
    let first = kept.first().unwrap();
    let copy = desk.write("copy", std::fs::read(first).unwrap());
    assert!(explain(first).contains(": kept: "), "{}", explain(first));
    let same = explain(copy.to_str().unwrap());
    assert!(same.contains("left out") && same.contains(first), "{same}");
    let other = (0..60).map(|number| desk.file(&format!("in/f{number}")));
    let other = other.map(|path| path.to_str().unwrap().to_owned());
    let other = other
        .into_iter()
        .find(|path| !kept.contains(&path[..]))
        .unwrap();
    assert!(
        explain(&other).contains("are reached by"),
        "{}",
        explain(&other)
    );
    for (file, why) in [
        ("in/crash", "crashes/"),
        ("in/other", "it fails like the inputs in crashes/"),
        ("in/long", "--max-len"),
    ] {
        let said = explain(file);
        assert!(said.contains(why), "{said}");
    }
    desk.is_left_clean();
}

#[test]
fn a_file_that_was_never_in_the_corpus_is_told_from_one_that_is_gone() {
    let desk = Desk::new();
    corpus(&desk, "in", 20);
    let words = "clean in -o out --json --jobs 2 --target ul";
    let result = desk.call(words).exits(0).json();
    let explain = |file: &str| {
        let said = desk.call(&format!("clean -o out --explain {file}"));
        said.exits(0).out
    };
    let not_in = format!(": not in the corpus {}: ", desk.file("in").display());
    desk.write("stranger", "never in the corpus");
    for file in ["in/none", "stranger"] {
        let said = explain(file);
        assert!(
            said.contains(&not_in) && !said.contains("left out"),
            "{said}"
        );
    }
    let first = result["kept"][0]["from"].as_str().unwrap();
    std::fs::remove_file(first).unwrap();
    let gone = explain(first);
    assert!(
        gone.contains(": kept: ") && gone.contains("no longer exists"),
        "{gone}"
    );
}

#[test]
fn a_target_without_coverage_keeps_one_input_of_each_behaviour() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    for (name, text) in [
        ("a", "one\n"),
        ("b", "two\n"),
        ("c", "1\n2\n"),
        ("d", "3\n4\n"),
    ] {
        desk.write(&format!("in/{name}"), text);
    }
    let words = ["--", "/usr/bin/wc", "-l"].map(OsStr::new);
    let said = desk.call_with("clean in -o out --json --exec command", &words);
    let said = said.exits(0);
    let why = "reports no coverage (blocks are covered by the ways inject and snapshot only)";
    assert!(said.err.contains(why), "{said:?}");
    let result = said.json();
    assert_eq!(result["edges_before"], Value::Null);
    assert_eq!(result["after"]["files"], 2, "{result}");
    desk.is_left_clean();
}

/// Blocks for some letters, each of which may stand in any place.
const LETTERS: &str = "\
#include <unistd.h>
volatile int place;
int main(void) {
    char text[64];
    long length = read(0, text, sizeof text);
    for (long at = 0; at < length; at++) {
        if (text[at] == 'a') place = 1;
        if (text[at] == 'b') place = 2;
        if (text[at] == 'c') { place = 3; if (at > 0 && text[at - 1] == 'b') place = 4; }
    }
    return 0;
}
";

#[test]
#[cfg(target_arch = "x86_64")]
fn an_unmodified_program_is_cleaned_by_its_blocks() {
    if crate::needs::program("cc").is_none() {
        return;
    }
    let desk = Desk::new();
    desk.write("letters.c", LETTERS);
    let words = ["-O1", "-s", "-o", "letters", "letters.c"];
    let made = desk.command("cc").args(words).status();
    assert!(made.unwrap().success());
    std::fs::create_dir(desk.file("in")).unwrap();
    for (name, text) in [
        ("a", "a"),
        ("more", "xxaxx"),
        ("b", "b"),
        ("ab", "abzzz"),
        ("bc", "zbcz"),
        ("other", "zz"),
        ("c", "cz"),
    ] {
        desk.write(&format!("in/{name}"), text);
    }
    let mut told = Vec::new();
    for (way, jobs) in [("inject", 1), ("snapshot", 2), ("snapshot", 1)] {
        let out = format!("{way}-{jobs}");
        let words = format!("clean in -o {out} --exec {way} --jobs {jobs} --json -- ./letters");
        let result = desk.call(&words).exits(0).json();
        assert_eq!(result["edges_before"], result["edges_after"], "{result}");
        assert!(result["edges_before"].as_u64() > Some(5), "{result}");
        told.push((
            result["edges_before"].clone(),
            files(&desk.file(&format!("{out}/corpus"))),
        ));
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0], told[2]);
    let kept: BTreeSet<&[u8]> = told[0].1.values().map(|text| &text[..]).collect();
    assert_eq!(kept, BTreeSet::from([&b"a"[..], b"zbcz"]));
    let text = desk.call("clean in -o text -- ./letters").exits(0).out;
    assert!(text.contains(" blocks before, "), "{text}");
    let words = "clean in -o trimmed --trim worth --json -- ./letters";
    let result = desk.call(words).exits(0).json();
    assert_eq!(result["trimmed_bytes"], 2, "{result}");
    let kept = files(&desk.file("trimmed/corpus"));
    assert!(kept.values().any(|text| text == b"bc"), "{kept:?}");
    desk.is_left_clean();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_that_starts_others_is_cleaned_by_its_blocks() {
    // Not dash, which blocks SIGTRAP meanwhile.
    if crate::needs::program("bash").is_none() {
        return;
    }
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    for (name, text) in [
        ("child", "/bin/true\n"),
        ("same", "/bin/true \n"),
        ("none", "case 1 in 1) echo $((1+2));; esac\n"),
    ] {
        desk.write(&format!("in/{name}"), text);
    }
    let words = "clean in -o out --json -- bash";
    let result = desk.call(words).exits(0).json();
    assert_eq!(result["edges_before"], result["edges_after"], "{result}");
    assert!(result["edges_before"].as_u64() > Some(100), "{result}");
    desk.is_left_clean();
}

#[test]
fn what_the_user_has_is_never_written_over() {
    let desk = Desk::new();
    corpus(&desk, "in", 10);
    std::fs::create_dir_all(desk.file("out/corpus")).unwrap();
    desk.write("out/corpus/mine", "mine");
    for words in [
        "clean in -o out --target ul",
        "clean in -o in --target ul",
        "clean in --delete-old --target ul",
        "clean none -o fresh --target ul",
        "clean in --onto none -o fresh --target ul",
        "clean -o fresh --target ul",
        "clean in -o fresh --skip subset --trim worth --target ul",
        "clean in -o fresh --skip subset --trim-tests 9 --target ul",
    ] {
        let said = desk.call(words).exits(2);
        assert!(
            said.err.contains("hint") || said.err.contains("error"),
            "{said:?}"
        );
    }
    assert_eq!(desk.read("out/corpus/mine"), b"mine");
    assert_eq!(files(&desk.file("in")).len(), 10);
    assert!(!desk.file("fresh").exists());
}

#[test]
fn nothing_is_written_where_nothing_would_be_left() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    let empty = desk.call("clean in -o out --target ul").exits(1);
    assert!(empty.err.contains("nothing would be left"), "{empty:?}");
    desk.write("in/short", "short");
    let none = desk
        .call("clean in -o out --max-len 0 --target ul")
        .exits(1);
    assert!(none.err.contains("--max-len"), "{none:?}");
    std::fs::remove_file(desk.file("in/short")).unwrap();
    desk.write("in/crash", crash());
    let crash = desk
        .call("clean in -o out --in-place --minimize off --target ul")
        .exits(1);
    assert!(crash.err.contains("nothing would be left"), "{crash:?}");
    assert_eq!(files(&desk.file("in")).len(), 1);
    assert!(!desk.file("out/corpus").exists());
    desk.is_left_clean();
}

#[test]
fn names_need_not_be_text() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    for (number, name) in [&b"new\nline"[..], b"\xff\xfe", b"-o", b" "]
        .iter()
        .enumerate()
    {
        let path = desk.file("in").join(OsStr::from_bytes(name));
        std::fs::write(path, text(number as u32 + 9)).unwrap();
    }
    let words = "in -o out --keep-names --skip subset --trim off";
    let result = clean(&desk, words);
    assert_eq!(result["after"]["files"], 4, "{result}");
    assert_eq!(files(&desk.file("out/corpus")), files(&desk.file("in")));
    desk.is_left_clean();
}

#[test]
fn the_directory_of_afl_names_its_target() {
    let desk = Desk::new();
    let queue = "afl/default/queue";
    std::fs::create_dir_all(desk.file(queue).join(".state")).unwrap();
    desk.write("afl/default/queue/.state/x", "no input");
    desk.write("afl/default/plot_data", "no input");
    for (number, text) in ["a\n", "b\nb\n"].iter().enumerate() {
        desk.write(
            &format!("{queue}/id:00000{number},src:000000,op:havoc"),
            text,
        );
    }
    let stats = "command_line      : afl-fuzz -i in -o afl -- /usr/bin/wc -l\n";
    desk.write("afl/default/fuzzer_stats", stats);
    let said = desk.call("clean afl -o out --json").exits(0);
    assert!(said.err.contains("/usr/bin/wc -l"), "{said:?}");
    assert_eq!(said.json()["before"]["files"], 2);
    let refused = desk.call("clean afl -o other --in-place").exits(2);
    assert!(
        refused.err.contains("output directory of a fuzzer"),
        "{refused:?}"
    );
    desk.is_left_clean();
}

#[test]
fn a_cleanup_in_the_directory_of_a_campaign_leaves_it_to_be_resumed() {
    let desk = Desk::new();
    let run = "run --target ul --generator classic --runs 40 --seed 1 --max-len 20 --jobs 1 \
               --minimize off --json -o out";
    let first = desk.call(run).exits(0).json();
    assert_eq!(first["runs"], 40, "{first}");
    corpus(&desk, "in", 5);
    desk.write("in/crash", crash());
    let state = desk.read("out/state.json");
    let campaigns = || {
        let text = desk.read("out/ddfuzz.json");
        let file: Value = serde_json::from_slice(&text).unwrap();
        let others = file["campaigns"].as_array().unwrap();
        let id = |campaign: &Value| campaign["campaign"].as_str().unwrap().to_owned();
        (id(&file), others.iter().map(id).collect::<Vec<_>>())
    };
    let (own, others) = campaigns();
    assert!(others.is_empty(), "{others:?}");
    for _ in 0..2 {
        let words = "clean in -o out --json --jobs 1 --trim off --minimize off --target ul";
        let result = desk.call(words).exits(0).json();
        assert_eq!(result["groups"].as_array().unwrap().len(), 1, "{result}");
    }
    assert_eq!(desk.read("out/state.json"), state);
    let (still, others) = campaigns();
    assert_eq!((&still, others.len()), (&own, 1));
    // A cleanup for another target does not take its place either.
    let other = "clean in -o out --json --jobs 1 --trim off --minimize off --target crtplot";
    desk.call(other).exits(0);
    let (still, others) = campaigns();
    assert_eq!((&still, others.len()), (&own, 2));
    // The campaign goes on with the run after its last.
    let more = run.replace("--runs 40 --seed 1 --max-len 20", "--runs 30 --resume");
    let second = desk.call(&more).exits(0).json();
    assert_eq!(second["runs"], 30, "{second}");
    let state: Value = serde_json::from_slice(&desk.read("out/state.json")).unwrap();
    assert_eq!(state["state"]["next"], 70, "{state}");
    assert_eq!(campaigns().0, own);
    desk.is_left_clean();
}

#[test]
fn an_empty_corpus_makes_no_output_directory() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.file("empty/below")).unwrap();
    let said = desk.call("clean empty -o out --target ul").exits(1);
    assert!(
        said.err.contains("no input that can be read"),
        "{}",
        said.err
    );
    assert!(!desk.file("out").exists());
}
