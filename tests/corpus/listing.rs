//! Which files below a path are inputs.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use ddfuzz::corpus::listing::{Layout, Listing, ListingReport};

use crate::seats::Seats;

/// What is listed below the corpus, as paths from there, and what else was met.
fn listed(seats: &Seats) -> (BTreeSet<PathBuf>, ListingReport) {
    list(&[seats.corpus()], seats)
}

fn list(roots: &[PathBuf], seats: &Seats) -> (BTreeSet<PathBuf>, ListingReport) {
    let mut listing = Listing::new(roots, Some(&seats.out())).unwrap();
    let mut found = BTreeSet::new();
    for one in &mut listing {
        let path = one.strip_prefix(seats.corpus()).unwrap().to_owned();
        assert!(found.insert(path), "{one:?} is listed twice");
    }
    (found, listing.into_report())
}

fn set(names: &[&str]) -> BTreeSet<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn whys(report: &ListingReport) -> Vec<&str> {
    report.passed_over.examples().map(|(_, why)| why).collect()
}

#[test]
fn files_of_any_name_are_listed_however_deep() {
    let seats = Seats::new();
    let odd = Path::new(OsStr::from_bytes(b"a\n\xff b/\t\xc3("));
    seats.put(odd, "1");
    seats.put("-rf", "2");
    seats.put("deep/er/file", "3");
    seats.put(".hidden", "4");
    seats.put(".git/objects/ab", "no input");
    seats.put(".ddfuzz-tmp-1a2b", "no input");
    let (found, report) = listed(&seats);
    let mut expected = set(&["-rf", "deep/er/file", ".hidden"]);
    expected.insert(odd.to_owned());
    assert_eq!(found, expected);
    assert_eq!(report.passed_over.amount().files, 2);
    assert!(whys(&report).contains(&"a hidden directory"));
}

#[test]
fn links_to_files_are_followed_and_nothing_that_blocks_is_opened() {
    let seats = Seats::new();
    let file = seats.put("file", "1");
    let at = |name: &str| seats.corpus().join(name);
    symlink(&file, at("link")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    symlink("loop", at("loop")).unwrap();
    symlink(seats.corpus(), at("round")).unwrap();
    symlink("/dev/zero", at("zero")).unwrap();
    let made = Command::new("mkfifo").arg(at("fifo")).status().unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(at("socket")).unwrap();
    let (found, report) = listed(&seats);
    assert_eq!(found, set(&["file", "link"]));
    assert_eq!(report.passed_over.amount().files, 6);
    for why in [
        "a link to a directory",
        "a link that leads nowhere",
        "a fifo",
        "a socket",
        "a device",
    ] {
        assert!(whys(&report).contains(&why), "{why}: {report:?}");
    }
}

#[test]
fn what_is_named_is_entered_through_a_link_and_only_once() {
    let seats = Seats::new();
    seats.put("sub/file", "1");
    let other = seats.put("other", "2");
    let link = seats.path().join("link");
    symlink(seats.corpus(), &link).unwrap();
    let roots = [
        seats.corpus(),
        seats.corpus().join("sub"),
        seats.corpus().join("."),
    ];
    assert_eq!(list(&roots, &seats).0, set(&["sub/file", "other"]));
    let through: Vec<_> = Listing::new(std::slice::from_ref(&link), None)
        .unwrap()
        .collect();
    assert_eq!(through.len(), 2);
    let twice: Vec<_> = Listing::new(&[other.clone(), other], None)
        .unwrap()
        .collect();
    assert_eq!(twice.len(), 1);
}

#[test]
fn an_output_directory_below_the_corpus_is_passed_over() {
    let seats = Seats::new();
    seats.put("file", "1");
    seats.put("out/clean.journal", "no input");
    let out = seats.corpus().join("out");
    let mut listing = Listing::new(&[seats.corpus()], Some(&out)).unwrap();
    assert_eq!(listing.by_ref().count(), 1);
    let report = listing.into_report();
    assert_eq!(whys(&report), ["the output directory"]);
    let error = Listing::new(std::slice::from_ref(&out), Some(&out)).err();
    let error = error.expect("nothing is cleaned into itself").to_string();
    assert!(error.contains("it is the output directory"), "{error}");
}

#[test]
fn of_afl_the_queue_and_what_failed_is_taken() {
    let seats = Seats::new();
    let entry = "id:000000,time:0,execs:0,orig:seed";
    for instance in ["main", "second"] {
        for (name, content) in [
            ("fuzzer_stats", "no input"),
            ("cmdline", "no input"),
            ("plot_data", "no input"),
            ("fuzz_bitmap", "no input"),
            (".synced/main", "no input"),
            ("queue/.state/deterministic_done/id:000000", "no input"),
            ("queue/id:000000,time:0,execs:0,orig:seed", "1"),
            (
                "queue/id:000001,src:000000,time:1,execs:9,op:flip1,pos:0,+cov",
                "2",
            ),
            ("crashes/README.txt", "no input"),
            (
                "crashes/id:000000,sig:11,src:000000,time:1,execs:9,op:havoc,rep:2",
                "3",
            ),
            (
                "crashes.2026-01-02-03:04:05/id:000000,sig:06,src:000000,time:1",
                "4",
            ),
            (
                "hangs/id:000000,src:000000,time:1,execs:9,op:havoc,rep:2",
                "5",
            ),
        ] {
            seats.put(Path::new(instance).join(name), content);
        }
    }
    let (found, report) = listed(&seats);
    assert_eq!(found.len(), 10, "{found:?}");
    for path in &found {
        let content = std::fs::read(seats.corpus().join(path)).unwrap();
        assert_eq!(content.len(), 1, "{path:?}");
    }
    let main = seats.corpus().join("main");
    assert_eq!(report.recognised[&main], Layout::AflInstance);
    // A queue that is named itself is known by what stands in it, or beside it.
    let (found, _) = list(&[main.join("queue")], &seats);
    assert_eq!(found.len(), 2);
    assert!(found.contains(&Path::new("main/queue").join(entry)));
    assert_eq!(list(&[main.join("crashes")], &seats).0.len(), 1);
}

#[test]
fn of_cargo_fuzz_and_ddfuzz_the_corpus_is_taken() {
    let seats = Seats::new();
    for (name, content) in [
        ("package/Cargo.toml", "no input"),
        ("package/src/lib.rs", "no input"),
        ("package/fuzz/Cargo.toml", "no input"),
        ("package/fuzz/fuzz_targets/parse.rs", "no input"),
        ("package/fuzz/artifacts/parse/crash-1", "no input"),
        ("package/fuzz/corpus/parse/0a", "1"),
        ("package/fuzz/corpus/parse/crash-2", "2"),
        ("campaign/ddfuzz.json", "no input"),
        ("campaign/crashes/a/b/c/original", "no input"),
        ("campaign/corpus/0123456789abcdef", "3"),
        ("honggfuzz/HONGGFUZZ.REPORT.TXT", "no input"),
        (
            "honggfuzz/SIGSEGV.PC.1.STACK.2.CODE.1.ADDR.0x0.INSTR.x.fuzz",
            "4",
        ),
        ("honggfuzz/input/0000.00000001.honggfuzz.cov", "5"),
    ] {
        seats.put(name, content);
    }
    let (found, _) = listed(&seats);
    assert_eq!(found.len(), 5, "{found:?}");
    for path in &found {
        let content = std::fs::read(seats.corpus().join(path)).unwrap();
        assert_eq!(content.len(), 1, "{path:?}");
    }
}

#[test]
fn what_was_named_and_is_no_corpus_is_an_error() {
    let seats = Seats::new();
    symlink("nowhere", seats.path().join("dangling")).unwrap();
    for (path, why) in [
        (seats.path().join("missing"), "it does not exist"),
        (seats.path().join("dangling"), "a link that leads nowhere"),
        (PathBuf::from("/dev/null"), "a device"),
    ] {
        let error = Listing::new(std::slice::from_ref(&path), None)
            .err()
            .unwrap();
        assert!(error.to_string().contains(why), "{error}");
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
    }
}
