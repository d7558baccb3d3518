//! Merging: what stays.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ddfuzz::exec::{Program, Target, TargetRecord, Way};
use ddfuzz::store::{Build, Campaign, Kind, Merged, Status, Store, StoreError, merge};
use tempfile::TempDir;

use crate::reproduce::run;
use crate::sample::{by_run, campaign, crash, key, outcome};
use crate::tree::{files, tree};

fn store(folder: &Path, name: &str) -> Store {
    Store::create_or_resume(&folder.join(name), campaign(name)).unwrap()
}

#[test]
fn entries_are_united_and_counts_are_the_larger_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (mut a, mut b) = (store(folder.path(), "a"), store(folder.path(), "b"));
    a.file(Kind::Crash, &by_run(crash("m", "n"), 0), b"1")
        .unwrap();
    a.set_seen(Kind::Crash, key("m"), "a", 3).unwrap();
    a.set_seen(Kind::Crash, key("m"), "x", 9).unwrap();
    b.file(Kind::Crash, &by_run(crash("m", "n"), 5), b"2")
        .unwrap();
    b.file(Kind::Oom, &by_run(crash("m", "n"), 5), b"2")
        .unwrap();
    b.set_seen(Kind::Crash, key("m"), "b", 4).unwrap();
    b.set_seen(Kind::Crash, key("m"), "x", 7).unwrap();
    b.save_state(&1).unwrap();
    // Both writers are still at work.
    let out = folder.path().join("out");
    let inputs = ["a", "b"].map(|name| folder.path().join(name));
    let merged = merge(&inputs, &out).unwrap();
    assert_eq!(
        merged,
        Merged {
            groups: 2,
            new_entries: 3
        }
    );
    assert_eq!(
        merge(&inputs, &out).unwrap(),
        Merged {
            groups: 2,
            new_entries: 0
        }
    );
    let reader = Store::open_read(&out).unwrap();
    let group = reader.groups(Kind::Crash).unwrap().remove(0);
    let seen: Vec<(&str, u64)> = group
        .record
        .seen
        .iter()
        .map(|(campaign, runs)| (campaign.as_str(), *runs))
        .collect();
    assert_eq!(seen, [("a", 3), ("b", 4), ("x", 9)]);
    assert_eq!(group.record.representatives.len(), 1);
    let file = reader.campaigns().unwrap();
    assert_eq!(file.current, None);
    assert_eq!(file.others, ["a", "b"].map(campaign));
    assert!(!files(&out).contains(&"state.json".to_owned()));
}

/// The files of an explanation.
const EXPLANATION: [&str; 4] = [
    "explanation.html",
    "explanation.json",
    "explanation.txt",
    "explanation.passing",
];

/// Two directories that have the same entry, with these outcomes (reproducer, finished, proved).
fn one_entry_twice(sides: [(&[u8], Option<bool>); 2]) -> (TempDir, Vec<u8>, Option<bool>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, (reproducer, finished)) in ["a", "b"].iter().zip(sides) {
        let mut store = store(folder.path(), name);
        let id = store
            .file(Kind::Crash, &by_run(crash("m", "n"), 0), b"original")
            .unwrap()
            .id;
        store.write_minimized(&id, reproducer).unwrap();
        let log = id.log(store.reader().root());
        fs::write(&log, reproducer).unwrap();
        for name in EXPLANATION {
            fs::write(log.with_file_name(name), reproducer).unwrap();
        }
        if let Some(proved) = finished {
            store
                .write_outcome(&id, &outcome(reproducer.len() as u64, proved))
                .unwrap();
        }
    }
    let out = folder.path().join("out");
    merge(&["a", "b"].map(|name| folder.path().join(name)), &out).unwrap();
    let reader = Store::open_read(&out).unwrap();
    let entry = reader
        .entries(Kind::Crash, &key("m").short())
        .unwrap()
        .remove(0);
    let reproducer = entry.reproducer_bytes().unwrap();
    assert_eq!(
        fs::read(entry.log()).unwrap(),
        reproducer,
        "the log comes with its reproducer"
    );
    for name in EXPLANATION {
        let explanation = fs::read(entry.log().with_file_name(name)).unwrap();
        assert_eq!(explanation, reproducer, "{name} comes with its reproducer");
    }
    (
        folder,
        reproducer,
        entry.minimized.map(|minimized| minimized.is_proved()),
    )
}

#[test]
fn files_that_a_power_cut_has_emptied_are_replaced_by_a_repeated_merge() {
    let folder = tempfile::tempdir().unwrap();
    let (a, out) = (folder.path().join("a"), folder.path().join("out"));
    let mut store = store(folder.path(), "a");
    let filed = store.file(Kind::Crash, &by_run(crash("m", "n"), 0), b"1");
    let entry = filed.unwrap().id.folder(&a);
    for name in ["reproduce.sh", "explanation.json", "explanation.html"] {
        fs::write(entry.join(name), format!("{name}\n")).unwrap();
    }
    drop(store);
    let inputs = [a.clone()];
    merge(&inputs, &out).unwrap();
    let whole = tree(&out);
    let merged = out.join(entry.strip_prefix(&a).unwrap());
    for name in ["original", "crash.json", "reproduce.sh", "explanation.json"] {
        for blank in [&b""[..], b"\0\0\0"] {
            fs::write(merged.join(name), blank).unwrap();
            assert_eq!(merge(&inputs, &out).unwrap().new_entries, 0);
            assert_eq!(tree(&out), whole, "{name}");
        }
    }
}

#[test]
fn a_finished_minimization_wins_over_a_half_finished_one() {
    let (_, reproducer, proved) = one_entry_twice([(b"short", None), (b"longer", Some(false))]);
    assert_eq!((&reproducer[..], proved), (&b"longer"[..], Some(false)));
}

#[test]
fn a_reproducer_wins_over_a_crash_that_was_given_up() {
    for given_up in ["a", "b"] {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            let mut store = store(folder.path(), name);
            let filed = store.file(Kind::Crash, &by_run(crash("m", "n"), 0), b"original");
            let id = filed.unwrap().id;
            if name != given_up {
                store.write_minimized(&id, b"short").unwrap();
                continue;
            }
            let mut nothing = outcome(8, false);
            (nothing.size_before, nothing.given_up) = (8, Some("it passes".to_owned()));
            store.write_outcome(&id, &nothing).unwrap();
        }
        let out = folder.path().join("out");
        merge(&["a", "b"].map(|name| folder.path().join(name)), &out).unwrap();
        let reader = Store::open_read(&out).unwrap();
        let entries = reader.entries(Kind::Crash, &key("m").short()).unwrap();
        assert_eq!(entries[0].reproducer_bytes().unwrap(), b"short");
        assert_eq!(entries[0].minimized, None, "{given_up}");
    }
}

#[test]
fn a_proved_minimization_wins_over_a_shorter_one_that_is_not() {
    let (_, reproducer, proved) =
        one_entry_twice([(b"short", Some(false)), (b"longer", Some(true))]);
    assert_eq!((&reproducer[..], proved), (&b"longer"[..], Some(true)));
}

#[test]
fn of_two_proved_minimizations_the_shorter_one_wins_and_then_the_lesser() {
    let (_, reproducer, _) = one_entry_twice([(b"longer", Some(true)), (b"short", Some(true))]);
    assert_eq!(reproducer, b"short");
    let (_, reproducer, _) = one_entry_twice([(b"zz", Some(true)), (b"aa", Some(true))]);
    assert_eq!(reproducer, b"aa");
    let (_, reproducer, proved) = one_entry_twice([(b"zz", None), (b"z", None)]);
    assert_eq!((&reproducer[..], proved), (&b"z"[..], None));
}

/// As a copy that failed leaves files: cut off, and so before the whole ones in order and size.
#[test]
fn inputs_that_are_cut_off_never_replace_whole_ones() {
    let folder = tempfile::tempdir().unwrap();
    let ids = ["a", "b"].map(|name| {
        let mut store = store(folder.path(), name);
        let crash = by_run(crash("m", "n"), 0);
        let id = store.file(Kind::Crash, &crash, b"original").unwrap().id;
        store.write_minimized(&id, b"whole").unwrap();
        store.write_outcome(&id, &outcome(5, true)).unwrap();
        id
    });
    let cut = ids[1].folder(&folder.path().join("b"));
    fs::write(cut.join("original"), "orig").unwrap();
    fs::write(cut.join("minimized"), "who").unwrap();
    for (out, inputs) in [("ab", ["a", "b"]), ("ba", ["b", "a"])] {
        let out = folder.path().join(out);
        merge(&inputs.map(|name| folder.path().join(name)), &out).unwrap();
        let entry = Store::open_read(&out)
            .unwrap()
            .entry(&ids[0])
            .unwrap()
            .unwrap();
        assert_eq!(entry.original_bytes().unwrap(), b"original", "{inputs:?}");
        assert_eq!(entry.reproducer_bytes().unwrap(), b"whole", "{inputs:?}");
    }
}

#[test]
fn a_record_of_another_group_does_not_replace_that_groups_own() {
    let folder = tempfile::tempdir().unwrap();
    let (mut theirs, mut ours) = (store(folder.path(), "theirs"), store(folder.path(), "ours"));
    let foreign = theirs
        .file(Kind::Crash, &by_run(crash("m", "n"), 0), b"1")
        .unwrap();
    let own = ours
        .file(Kind::Crash, &by_run(crash("o", "n"), 0), b"2")
        .unwrap();
    ours.set_seen(Kind::Crash, key("o"), "ours", 3).unwrap();
    drop((theirs, ours));
    let record = |name: &str, major: &str| {
        let path = folder
            .path()
            .join(name)
            .join("crashes")
            .join(major)
            .join("group.json");
        (fs::read(&path).unwrap(), path)
    };
    let (before, own) = record("ours", own.id.major());
    let text = String::from_utf8(before.clone())
        .unwrap()
        .replace("\"ours\": 3", "\"x\": 999999");
    let (_, foreign) = record("theirs", foreign.id.major());
    fs::write(foreign, text).unwrap();
    merge(&[folder.path().join("theirs")], &folder.path().join("ours")).unwrap();
    assert_eq!(fs::read(own).unwrap(), before);
}

#[test]
fn what_is_no_regular_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut input = store(folder.path(), "a");
    let filed = [b"1", b"2", b"3"].map(|bytes| {
        let found = by_run(crash("m", "n"), 0);
        input
            .file(Kind::Crash, &found, bytes)
            .unwrap()
            .id
            .folder(&folder.path().join("a"))
    });
    drop(input);
    let replace = |path: &Path| {
        let _ = fs::remove_file(path);
        let made = std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap();
        assert!(made.success());
    };
    replace(&filed[0].join("crash.json"));
    replace(&filed[1].join("explanation.txt"));
    replace(&filed[1].join("reproduce.sh"));
    std::os::unix::fs::symlink("/dev/zero", filed[2].join("minimized")).unwrap();
    let out = folder.path().join("out");
    merge(&[folder.path().join("a")], &out).unwrap();
    for root in [folder.path().join("a"), out] {
        let group = Store::open_read(&root)
            .unwrap()
            .groups(Kind::Crash)
            .unwrap()
            .remove(0);
        let entries = group.entries().unwrap();
        assert_eq!(entries.len(), 2);
        for entry in entries {
            assert_eq!(entry.explanation(), None);
            assert!(!entry.script_has_gdb());
            assert_eq!(
                entry.reproducer_bytes().unwrap(),
                entry.original_bytes().unwrap()
            );
        }
    }
}

#[test]
fn a_program_without_its_hash_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let mut store = store(folder.path(), name);
        let program = store.install_program("ul", b"#!/bin/sh\n").unwrap();
        if name == "a" {
            fs::write(program, "#!/b").unwrap();
        }
    }
    let out = folder.path().join("out");
    for (input, expected) in [("a", None), ("b", Some(&b"#!/bin/sh\n"[..]))] {
        merge(&[folder.path().join(input)], &out).unwrap();
        let merged = tree(&out);
        let program = merged.iter().find(|(file, _)| file.ends_with("ul"));
        let program = program.and_then(|(_, (_, bytes))| bytes.as_deref());
        assert_eq!(program, expected, "{input}");
    }
}

#[test]
fn scripts_and_their_programs_come_along_and_work() {
    let folder = tempfile::tempdir().unwrap();
    let mut scripts = Vec::new();
    for name in ["a", "b"] {
        let mut store = store(folder.path(), name);
        let id = store
            .file(Kind::Crash, &by_run(crash(name, "n"), 0), b"1")
            .unwrap()
            .id;
        let program = format!("#!/bin/sh\necho {name}\n");
        store.install_program("ul", program.as_bytes()).unwrap();
        let target = ddfuzz::exec::Target::new(ddfuzz::exec::Program::Bundled("ul".to_owned()));
        let script = store.write_reproduce(&id, &target).unwrap();
        scripts.push((
            name,
            script
                .strip_prefix(folder.path().join(name))
                .unwrap()
                .to_owned(),
        ));
    }
    let out = folder.path().join("out");
    merge(&["a", "b"].map(|name| folder.path().join(name)), &out).unwrap();
    for (name, script) in scripts {
        let output = run(&out.join(script));
        assert_eq!(output.stdout, format!("{name}\n").as_bytes());
    }
}

#[test]
fn merging_into_an_input_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let a = folder.path().join("a");
    drop(store(folder.path(), "a"));
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&a, &link).unwrap();
    let before = tree(&a);
    for into in [
        a.clone(),
        link,
        folder.path().join("x/../a"),
        a.join("new"),
        a.join("new/er"),
    ] {
        let error = merge(std::slice::from_ref(&a), &into);
        // Where a part of the path is missing, the system's answer is as good.
        let Err(error) = error else {
            panic!("merged into {}", into.display())
        };
        assert!(
            matches!(error, StoreError::MergeIntoInput { .. }),
            "{error}"
        );
        assert!(error.hint().is_some());
    }
    assert_eq!(tree(&a), before);
}

#[test]
fn a_directory_that_is_not_ours_is_refused_on_either_side() {
    let folder = tempfile::tempdir().unwrap();
    drop(store(folder.path(), "a"));
    let (a, foreign) = (folder.path().join("a"), folder.path().join("foreign"));
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("x"), "x").unwrap();
    let error = merge(std::slice::from_ref(&a), &foreign).unwrap_err();
    assert!(matches!(error, StoreError::NotOurs { .. }));
    let out = folder.path().join("out");
    for inputs in [
        vec![a.clone(), foreign],
        vec![a, folder.path().join("none")],
    ] {
        merge(&inputs, &out).unwrap_err();
        assert!(
            !out.exists(),
            "nothing is made before all inputs are known to be good"
        );
    }
}

#[test]
fn merging_into_a_campaigns_directory_keeps_its_campaign_and_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let mut a = store(folder.path(), "a");
    a.file(Kind::Crash, &by_run(crash("m", "n"), 0), b"1")
        .unwrap();
    let b = store(folder.path(), "b");
    b.save_state(&7).unwrap();
    drop(b);
    let (input, into) = (folder.path().join("a"), folder.path().join("b"));
    merge(std::slice::from_ref(&input), &into).unwrap();
    let mut b = Store::create_or_resume(&into, campaign("c")).unwrap();
    assert!(b.resumed());
    assert_eq!(b.campaigns().current, Some(campaign("b")));
    assert_eq!(b.reader().load_state().unwrap(), Some(7));
    let filed = b
        .file(Kind::Crash, &by_run(crash("m", "n"), 0), b"1")
        .unwrap();
    assert!(filed.already && !filed.new_major);
}

#[test]
fn a_group_that_one_copy_has_seen_fail_is_not_called_fixed() {
    let folder = tempfile::tempdir().unwrap();
    let target = TargetRecord::new(&Target::new(Program::Path("/bin/cat".into())), Way::Command);
    let build = |blake3: &str, seen: &str, status: Option<Status>| Build {
        blake3: blake3.to_owned(),
        seen: seen.to_owned(),
        groups: status
            .map(|status| (Kind::Crash, BTreeMap::from([("g".to_owned(), status)])))
            .into_iter()
            .collect(),
        failing: BTreeMap::new(),
        unchecked: BTreeMap::new(),
        failing_results: Default::default(),
        moved: Default::default(),
        places: Default::default(),
    };
    let copy = |name: &str, builds: Vec<Build>| {
        let campaign = Campaign {
            target: Some(target.clone()),
            builds,
            ..campaign("one")
        };
        drop(Store::create_or_resume(&folder.path().join(name), campaign).unwrap());
    };
    let first = || build("x", "1", None);
    copy("old", vec![first(), build("y", "2", Some(Status::Fixed))]);
    copy("new", vec![first(), build("y", "2", Some(Status::Same))]);
    let later = || build("z", "3", Some(Status::Flaky));
    let all = vec![first(), build("y", "2", Some(Status::Fixed)), later()];
    copy("later", all);
    let checked_again = build("z", "4", Some(Status::Fixed));
    copy("again", vec![first(), checked_again]);
    let builds = |inputs: &[&str], out: &str| {
        let inputs: Vec<PathBuf> = inputs.iter().map(|name| folder.path().join(name)).collect();
        merge(&inputs, &folder.path().join(out)).unwrap();
        let reader = Store::open_read(&folder.path().join(out)).unwrap();
        let file = reader.campaigns().unwrap();
        file.builds(&target).unwrap()
    };
    let same = vec![first(), build("y", "2", Some(Status::Same))];
    assert_eq!(builds(&["old", "new"], "a"), same);
    assert_eq!(builds(&["new", "old"], "b"), same);
    let all: Vec<Build> = same.iter().cloned().chain([later()]).collect();
    assert_eq!(builds(&["old", "later", "new"], "c"), all);
    // Into a directory whose own campaign it is.
    assert_eq!(builds(&["new"], "old"), same);
    assert_eq!(builds(&["later"], "new"), all);
    // One build, checked at two times.
    let last = builds(&["later", "again"], "d").pop();
    assert_eq!(last, Some(build("z", "4", Some(Status::Flaky))));
}

#[test]
fn a_result_that_was_set_aside_since_it_passes_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut newer = store(folder.path(), "newer");
    let of_run = by_run(crash("m", "n"), 0);
    let id = newer.file(Kind::Crash, &of_run, b"original").unwrap().id;
    let minimize = |store: &mut Store, log: &str, result: &[u8]| {
        store.write_minimized(&id, result).unwrap();
        fs::write(id.log(store.reader().root()), log).unwrap();
        let outcome = outcome(result.len() as u64, true);
        store.write_outcome(&id, &outcome).unwrap();
    };
    minimize(&mut newer, "first", b"or");
    merge(&[path("newer")], &path("older")).unwrap();
    let entry = newer.reader().entry(&id).unwrap().unwrap();
    newer.archive_passing(&entry).unwrap();
    let result_of = |name: &str| {
        let reader = Store::open_read(&path(name)).unwrap();
        let entry = reader.entry(&id).unwrap().unwrap();
        let is_minimized = entry.minimized.is_some();
        is_minimized.then(|| entry.reproducer_bytes().unwrap())
    };
    for (name, inputs) in [("a", ["newer", "older"]), ("b", ["older", "newer"])] {
        merge(&inputs.map(path), &path(name)).unwrap();
        assert_eq!(result_of(name), None, "{name}");
        // The merged directory knows it, too.
        merge(&[path("older")], &path(name)).unwrap();
        assert_eq!(result_of(name), None, "{name}");
    }
    // No file is lost.
    for name in ["a", "b"] {
        let entry = Store::open_read(&path(name)).unwrap().entry(&id).unwrap();
        let archived = entry.unwrap().archived().unwrap();
        let [archived] = &archived[..] else {
            panic!("{name}: {archived:?}")
        };
        assert_eq!(archived.reproducer, b"or", "{name}");
        assert_eq!(fs::read(&archived.log).unwrap(), b"first", "{name}");
    }
    // The same bytes, found by a later search, are another result.
    minimize(&mut newer, "second", b"or");
    merge(&["newer", "older"].map(path), &path("c")).unwrap();
    assert_eq!(result_of("c").as_deref(), Some(&b"or"[..]));
}
