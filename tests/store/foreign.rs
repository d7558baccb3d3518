//! Directories and names of other fuzzers.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ddfuzz::store::foreign::{CrashName, Fuzzer, Inputs, Layout, ReportedEnd, find};
use proptest::prelude::*;

fn parsed(name: &str) -> Option<(Fuzzer, ReportedEnd, bool)> {
    CrashName::parse(name).map(|name| (name.fuzzer, name.reported_end, name.exact))
}

const SHA1: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

#[test]
fn names_of_all_fuzzers_are_read() {
    use Fuzzer::{Afl, Honggfuzz, LibFuzzer};
    use ReportedEnd::{Crash, Leak, OutOfMemory, Signal, Slow, Timeout};
    let segv = Signal(11);
    for (name, expected) in [
        (
            "id:000000,sig:11,src:000002,time:31,execs:87,op:havoc,rep:4",
            (Afl, segv),
        ),
        ("id:000123,sig:06,sync:other,src:000001", (Afl, Signal(6))),
        ("id_000000,sig_11,src_000002", (Afl, segv)),
        ("id:000000,src:000001+000002,op:splice,+cov", (Afl, Timeout)),
        (
            "SIGSEGV.PC.555555555189.STACK.18e5a9d2.CODE.1.ADDR.0x0.INSTR.mov____%eax,(%rdx).fuzz",
            (Honggfuzz, segv),
        ),
        (
            "SIGABRT.PC.7f.STACK.0.CODE.-6.ADDR.(nil).INSTR.[NOT_MMAPED].2026-01-02.03:04:05.77.fuzz",
            (Honggfuzz, Signal(6)),
        ),
        (
            "SIGVTALRM.PC.1.STACK.2.CODE.3.ADDR.4.INSTR.x.fuzz",
            (Honggfuzz, Timeout),
        ),
        (&format!("crash-{SHA1}"), (LibFuzzer, Crash)),
        (&format!("timeout-{SHA1}"), (LibFuzzer, Timeout)),
        (&format!("oom-{SHA1}"), (LibFuzzer, OutOfMemory)),
        (&format!("leak-{SHA1}"), (LibFuzzer, Leak)),
        (&format!("slow-unit-{SHA1}"), (LibFuzzer, Slow)),
        (&format!("minimized-from-{SHA1}"), (LibFuzzer, Crash)),
    ] {
        assert_eq!(parsed(name), Some((expected.0, expected.1, true)), "{name}");
    }
    assert_eq!(parsed("crash-1"), Some((LibFuzzer, Crash, false)));
    for name in [
        "README.txt",
        "id:1",
        "id",
        "id:",
        "ideal",
        "id:00000x,sig:11",
        "SIGSEGV",
        "crash",
        "",
        "HONGGFUZZ.REPORT.TXT",
        "FOO.PC.1.STACK.2.CODE.3",
        "id-000000,sig-11",
    ] {
        assert_eq!(parsed(name), None, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(11),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_name_is_read_without_harm(
        name in "(id[:_]|SIG[A-Z]{2,8}|crash-|oom-)?[0-9a-f:,._=\u{e9}]{0,60}(\\.PC\\.|sig:[0-9-]{1,30})?.{0,9}"
    ) {
        if let Some(parsed) = CrashName::parse(&name) {
            prop_assert!(!parsed.describe().is_empty());
        }
    }
}

fn put(root: &Path, files: &[&str]) {
    for file in files {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file).unwrap();
    }
}

/// The inputs below `root`, relative to it.
fn found(root: &Path) -> (Vec<String>, Inputs) {
    let mut inputs = Inputs::default();
    find(root, &mut inputs).unwrap();
    let short = |path: &Path| {
        path.strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .into_owned()
    };
    let paths = inputs.inputs.iter().map(|input| short(&input.path));
    (paths.collect(), inputs)
}

fn layouts(inputs: &Inputs) -> Vec<Layout> {
    inputs.directories.iter().map(|one| one.layout).collect()
}

#[test]
fn only_crashes_and_hangs_of_afl_are_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let (crash, hang) = ("id:000000,sig:11,src:000000", "id:000001,src:000000");
    let files = [
        "main/fuzzer_stats".to_owned(),
        format!("main/crashes/{crash}"),
        "main/crashes/README.txt".to_owned(),
        format!("main/crashes.2026-01-02-03:04:05/{crash}"),
        format!("main/hangs/{hang}"),
        "main/queue/id:000000,time:0,orig:a".to_owned(),
        "main/queue/.state/auto_extras/x".to_owned(),
        "second/fuzzer_setup".to_owned(),
        // Named by a custom mutator of nobody's knowledge.
        format!("second/crashes/{crash}"),
        "second/crashes/odd".to_owned(),
    ];
    put(dir.path(), &files.each_ref().map(String::as_str));
    let (paths, inputs) = found(dir.path());
    let expected = [
        format!("main/crashes/{crash}"),
        format!("main/crashes.2026-01-02-03:04:05/{crash}"),
        format!("main/hangs/{hang}"),
        format!("second/crashes/{crash}"),
    ];
    assert_eq!(paths, expected);
    let promises: Vec<_> = inputs
        .inputs
        .iter()
        .map(|input| input.named.unwrap().reported_end)
        .collect();
    assert_eq!(promises[2], ReportedEnd::Timeout);
    assert_eq!(promises[3], ReportedEnd::Signal(11));
    let passed: usize = inputs.directories.iter().map(|one| one.skipped.len()).sum();
    assert_eq!(passed, 5, "{:?}", inputs.directories);
    assert_eq!(found(&dir.path().join("main/crashes")).0, [crash]);
}

#[test]
fn artifacts_and_workspaces_are_told_from_what_lies_beside() {
    let dir = tempfile::tempdir().unwrap();
    let hongg = "SIGSEGV.PC.1.STACK.2.CODE.1.ADDR.0x0.INSTR.mov.fuzz";
    let crash = format!("fuzz/artifacts/ul/crash-{SHA1}");
    let files = [
        "fuzz/Cargo.toml".to_owned(),
        "fuzz/fuzz_targets/ul.rs".to_owned(),
        "fuzz/corpus/ul/seed".to_owned(),
        crash.clone(),
        "fuzz/artifacts/ul/notes".to_owned(),
        "fuzz/artifacts/ul/corpus/seed".to_owned(),
        format!("hongg/{hongg}"),
        "hongg/HONGGFUZZ.REPORT.TXT".to_owned(),
        "hongg/input/seed".to_owned(),
        "plain/crash-1".to_owned(),
        "plain/below/anything".to_owned(),
    ];
    put(dir.path(), &files.each_ref().map(String::as_str));
    let (paths, inputs) = found(dir.path());
    let expected = [
        crash,
        format!("hongg/{hongg}"),
        "plain/crash-1".to_owned(),
        "plain/below/anything".to_owned(),
    ];
    assert_eq!(paths, expected);
    use Layout::{CargoFuzz, Honggfuzz, LibFuzzer, Plain};
    let expected = [Plain, CargoFuzz, Plain, LibFuzzer, Honggfuzz, Plain, Plain];
    assert_eq!(layouts(&inputs), expected);
}

#[test]
fn odd_entries_are_listed_and_nothing_leads_round_in_a_circle() {
    let dir = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"odd\n\xff");
    std::fs::write(dir.path().join(name), "x").unwrap();
    std::os::unix::fs::symlink(".", dir.path().join("round")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join("dangling")).unwrap();
    let (paths, inputs) = found(dir.path());
    assert_eq!(paths, ["dangling", "odd\n\u{fffd}"]);
    assert_eq!(inputs.directories[0].skipped.len(), 1);
    assert!(inputs.inputs[1].path.ends_with(name));
}

#[test]
fn of_an_output_directory_of_ours_the_inputs_as_found_are_inputs() {
    use crate::sample::{campaign, crash};
    use ddfuzz::store::{Kind, Store};
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("out");
    let mut store = Store::create_or_resume(&root, campaign("c")).unwrap();
    let one = store.file(Kind::Crash, &crash("a", "b"), b"one").unwrap();
    store.write_minimized(&one.id, b"o").unwrap();
    store.file(Kind::Hang, &crash("h", "h"), b"two").unwrap();
    // What a killed writer left is an input, too.
    std::fs::remove_file(one.path.join("crash.json")).unwrap();
    store.add_to_corpus(b"corpus").unwrap();
    let (paths, inputs) = found(dir.path());
    assert_eq!(paths.len(), 2);
    assert!(paths.iter().all(|path| path.ends_with("original")));
    assert_eq!(layouts(&inputs), [Layout::Plain, Layout::Ddfuzz]);
}
