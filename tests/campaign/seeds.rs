//! Seeds: which files give them, and what a campaign makes of them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ddfuzz::campaign::{Plan, RunInput, Seeds, SkippedSeeds};

use crate::ddfuzz::Desk;
use crate::outcome::{assert_same, outcome, record};

fn read(paths: &[&Path], max_len: u64) -> (Seeds, SkippedSeeds) {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    Seeds::read(&paths, max_len).unwrap()
}

fn contents(seeds: &Seeds) -> Vec<&[u8]> {
    let mut all: Vec<&[u8]> = seeds.all().iter().map(|seed| &seed.bytes[..]).collect();
    all.sort_unstable();
    all
}

#[test]
fn files_are_found_at_any_depth_whatever_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join(OsStr::from_bytes(b"\xff\n \x01")), "deep").unwrap();
    fs::write(folder.path().join(".hidden"), "hidden").unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    fs::write(folder.path().join("empty too"), "").unwrap();
    fs::write(folder.path().join("again"), "deep").unwrap();
    fs::write(folder.path().join("long"), "longer than others").unwrap();
    let (seeds, left_out) = read(&[folder.path()], 10);
    assert_eq!(contents(&seeds), [&b""[..], b"deep", b"hidden"]);
    let expected = SkippedSeeds {
        too_long: 1,
        again: 2,
        ..SkippedSeeds::default()
    };
    assert_eq!(left_out, expected);
}

#[test]
fn names_and_places_do_not_change_the_seeds() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two/below"));
    fs::create_dir_all(&one).unwrap();
    fs::create_dir_all(&two).unwrap();
    for number in 0..50 {
        fs::write(one.join(format!("{number}")), format!("seed {number}")).unwrap();
        fs::write(
            two.join(format!("x{}", 99 - number)),
            format!("seed {number}"),
        )
        .unwrap();
    }
    let (first, second) = (
        read(&[&one], 99).0,
        read(&[&folder.path().join("two")], 99).0,
    );
    assert_eq!(first, second);
    assert_eq!(first.digest(), second.digest());
    assert!(
        first
            .all()
            .windows(2)
            .all(|pair| pair[0].hash < pair[1].hash)
    );
    let (fewer, _) = read(&[&one.join("7"), &one.join("8")], 99);
    assert_eq!(fewer.len(), 2);
    assert_ne!(fewer.digest(), first.digest());
}

#[test]
fn links_are_followed_and_circles_end() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
    fs::create_dir_all(inside.join("below")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("file"), "outside").unwrap();
    fs::write(folder.path().join("single"), "single").unwrap();
    symlink(&outside, inside.join("directory")).unwrap();
    symlink(folder.path().join("single"), inside.join("below/file")).unwrap();
    symlink(&inside, inside.join("below/circle")).unwrap();
    symlink(inside.join("itself"), inside.join("itself")).unwrap();
    symlink("nowhere", inside.join("dangling")).unwrap();
    let (seeds, left_out) = read(&[&inside], 99);
    assert_eq!(contents(&seeds), [&b"outside"[..], b"single"]);
    assert_eq!(left_out.no_files, 2);
}

#[test]
fn fifos_are_passed_over_below_and_refused_where_named() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    fs::write(folder.path().join("file"), "file").unwrap();
    let (seeds, left_out) = read(&[folder.path()], 99);
    assert_eq!((seeds.len(), left_out.no_files), (1, 1));
    let error = Seeds::read(std::slice::from_ref(&fifo), 99).unwrap_err();
    let expected = format!(
        "the seeds in {} cannot be read: it is a fifo, not a file",
        fifo.display()
    );
    assert_eq!(error.to_string(), expected);
    let missing = folder.path().join("missing");
    let error = Seeds::read(std::slice::from_ref(&missing), 99).unwrap_err();
    let expected = format!(
        "the seeds in {} cannot be read: it does not exist",
        missing.display()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn each_seed_is_run_once_as_it_is_and_then_half_of_all_runs_are_mutations() {
    let seeds = Seeds::of((0..20_u8).map(|byte| vec![byte; 9]));
    let plan = Plan {
        seed: 3,
        max_len: 1 << 20,
    };
    let drawn: Vec<RunInput> = (0..4040).map(|run| plan.draw(run, &seeds)).collect();
    for (run, input) in drawn[..40].iter().enumerate() {
        match input {
            RunInput::Generated(name) => assert!(run % 2 == 0 && *name == plan.input(run as u64)),
            RunInput::FromSeed(name) => {
                let expected = format!("seed+{}", seeds.all()[run / 2].hash);
                assert!(run % 2 == 1 && name.to_string() == expected, "{name}");
            }
        }
    }
    let mutated = |input: &&RunInput| matches!(input, RunInput::FromSeed(_));
    let count = drawn[40..].iter().filter(mutated).count();
    assert!((1800..2200).contains(&count), "{count}");
    let odd = drawn[40..]
        .iter()
        .skip(1)
        .step_by(2)
        .filter(mutated)
        .count();
    assert!((800..1200).contains(&odd), "not by turns: {odd}");
}

#[test]
fn without_seeds_the_inputs_are_those_of_the_classic_generator() {
    let plan = Plan {
        seed: 8,
        max_len: 1 << 20,
    };
    for run in 0..500 {
        let drawn = plan.draw(run, &Seeds::default());
        assert_eq!(drawn, RunInput::Generated(plan.input(run)));
    }
}

/// A directory with seeds for `troff`, none of which crashes.
fn write_seeds(desk: &Desk) {
    fs::create_dir(desk.file("seeds")).unwrap();
    for (name, text) in [
        ("a", ".ft R\nplain\n"),
        ("b", "\\fBbold\\fP\n"),
        ("c", ".in 3\n"),
    ] {
        desk.write(&format!("seeds/{name}"), text);
    }
    desk.write("words", "point=\"\\\\D'l 1i 0'\"\nfont=\"\\x0a.ft \"\n");
}

const BASE: &str = "run --target troff --runs 400 --max-len 2000 --seed 11 --minimize off \
                    --seeds seeds --dict words -q";

#[test]
fn a_campaign_with_seeds_does_not_depend_on_workers_or_names() {
    let desk = Desk::new();
    write_seeds(&desk);
    desk.call(&format!("{BASE} -o alone --jobs 1")).exits(1);
    let alone = outcome(&desk.file("alone"));
    assert!(
        alone
            .keys()
            .filter(|name| name.starts_with("corpus/"))
            .count()
            == 3
    );
    let mutated = alone
        .values()
        .any(|text| text.contains("\"input\":\"seed+"));
    assert!(mutated, "no group was found by a mutated seed: {alone:?}");
    fs::rename(desk.file("seeds/a"), desk.file("seeds/z")).unwrap();
    desk.call(&format!("{BASE} -o other --jobs 4")).exits(1);
    assert_same(&outcome(&desk.file("other")), &alone, "4 workers");
    // The seeds are only read.
    assert_eq!(desk.read("seeds/z"), b".ft R\nplain\n");
    assert_eq!(fs::read_dir(desk.file("seeds")).unwrap().count(), 3);
}

#[test]
fn a_resumed_campaign_has_the_same_seeds() {
    let desk = Desk::new();
    write_seeds(&desk);
    let facts = |out: &str| {
        let mut all = outcome(&desk.file(out));
        all.remove("state.json");
        all
    };
    desk.call(&format!("{BASE} -o whole")).exits(1);
    let part = BASE.replace("400", "150");
    desk.call(&format!("{part} -o parts")).exits(1);
    // The seeds are in the output directory.
    let rest = BASE.replace("400", "250").replace("--seeds seeds ", "");
    desk.call(&format!("{rest} -o parts --resume")).exits(4);
    assert_same(&facts("parts"), &facts("whole"), "resumed without --seeds");

    desk.write("seeds/d", "one more");
    let said = desk.call(&format!("{BASE} -o parts --resume")).exits(2);
    assert!(said.err.contains("other seeds"), "{said:?}");
    fs::remove_file(desk.file("seeds/d")).unwrap();
    desk.write("words", "other=\"words\"\n");
    let said = desk.call(&format!("{BASE} -o parts --resume")).exits(2);
    assert!(said.err.contains("other dictionaries"), "{said:?}");
    assert_same(&facts("parts"), &facts("whole"), "refused");
}

#[test]
fn a_campaign_without_seeds_is_not_resumed_with_some() {
    let desk = Desk::new();
    write_seeds(&desk);
    let bare = "run --target ul --runs 20 --max-len 100 --seed 1 --minimize off -o out -q";
    desk.call(bare).exits(0);
    assert!(record(&desk.file("out/state.json"))["state"]["seeds"].is_null());
    assert!(!desk.file("out/corpus").exists());
    let said = desk
        .call(&format!("{bare} --resume --seeds seeds"))
        .exits(2);
    assert!(said.err.contains("other seeds"), "{said:?}");
    let said = desk.call(&format!("{bare} --resume --dict words")).exits(2);
    assert!(said.err.contains("other dictionaries"), "{said:?}");
    desk.call(&format!("{bare} --resume")).exits(0);
}

#[test]
fn words_without_seeds_are_seeds_themselves() {
    let desk = Desk::new();
    desk.write("words", "one=\"first\"\ntwo=\"second\"\n");
    let words = "run --target ul --runs 20 --max-len 100 --seed 1 --minimize off -o out -q";
    desk.call(&format!("{words} --dict words")).exits(0);
    let kept = fs::read_dir(desk.file("out/corpus")).unwrap();
    assert_eq!(kept.count(), 2);
    desk.call(&format!("{words} --dict words --resume"))
        .exits(0);
    // The words are in the output directory, also where a merge has added seeds of others.
    fs::remove_file(desk.file("words")).unwrap();
    desk.write("out/corpus/0000000000000000", "more");
    desk.call("run --resume --runs 20 --minimize off -o out -q")
        .exits(0);
    desk.write("words", "other=\"third\"\n");
    let said = desk
        .call(&format!("{words} --dict words --resume"))
        .exits(2);
    assert!(said.err.contains("other dictionaries"), "{said:?}");
}

#[test]
fn a_campaign_that_was_killed_while_it_copied_its_seeds_has_all_of_them() {
    let desk = Desk::new();
    write_seeds(&desk);
    desk.call(&format!("{BASE} -o whole")).exits(1);
    let part = BASE.replace("400", "150");
    desk.call(&format!("{part} -o parts")).exits(1);
    let copied = fs::read_dir(desk.file("parts/corpus")).unwrap();
    for copy in copied.skip(1) {
        fs::remove_file(copy.unwrap().path()).unwrap();
    }
    // Where they are gone, there is no campaign with other seeds in place of this one.
    fs::rename(desk.file("seeds"), desk.file("away")).unwrap();
    let resume = "run --resume --runs 250 --minimize off -q -o parts";
    let said = desk.call(resume).exits(2);
    assert!(
        said.err.contains("not complete") && said.err.contains("--seeds"),
        "{said:?}"
    );
    fs::rename(desk.file("away"), desk.file("seeds")).unwrap();
    desk.call(resume).exits(4);
    let facts = |out: &str| {
        let mut all = outcome(&desk.file(out));
        all.remove("state.json");
        all
    };
    assert_same(&facts("parts"), &facts("whole"), "resumed");
}

#[test]
fn what_gives_no_seed_is_an_error_that_says_why() {
    let desk = Desk::new();
    fs::create_dir(desk.file("none")).unwrap();
    desk.write("long", [b'x'; 300]);
    let base = "run --target ul --runs 20 --max-len 100 -o out";
    for (words, expected) in [
        ("--seeds none", "no file in what --seeds names"),
        ("--seeds long", "longer than 100 bytes"),
        (
            "--seeds missing",
            "missing cannot be read: it does not exist",
        ),
        (
            "--dict missing",
            "missing cannot be read: it does not exist",
        ),
        ("--dict long", "long, line 1: there is no value"),
    ] {
        let said = desk.call(&format!("{base} {words}")).exits(2);
        assert!(said.err.contains(expected), "{words}: {said:?}");
    }
    assert!(!desk.file("out").exists(), "nothing was begun");
    let said = desk
        .call("run --bundled-seeds --runs 1 -- /bin/true")
        .exits(2);
    assert!(said.err.contains("works only with --target"), "{said:?}");
}

#[test]
fn the_seeds_of_every_bundled_target_make_a_campaign() {
    for target in ["crtplot", "flex", "nroff", "troff", "ul", "units-fixed"] {
        let desk = Desk::new();
        let words = "--runs 40 --seed 2 --max-len 3000 --minimize off --bundled-seeds -q -o out";
        let said = desk.call(&format!("run --target {target} {words}"));
        assert!(matches!(said.code, Some(0 | 1)), "{said:?}");
        assert!(fs::read_dir(desk.file("out/corpus")).unwrap().count() >= 4);
    }
}
