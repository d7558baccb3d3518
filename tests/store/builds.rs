//! Builds of a program: their order, and what results of several of them tell.

use std::fs;
use std::path::{Path, PathBuf};

use ddfuzz::exec::{Limits, Program, Target, TargetRecord, Way};
use ddfuzz::minimize::log::{self, ContentHash, Line, StartLine};
use ddfuzz::store::{Build, Campaign, EntryId, Kind, Status, Store, merge};
use ddfuzz::triage::{Crash, Found};

use crate::sample::{campaign, crash, outcome};

fn target() -> Target {
    Target::new(Program::Path("/bin/cat".into()))
}

pub fn record() -> TargetRecord {
    TargetRecord::new(&target(), Way::Command)
}

/// The hash of the build with this name.
pub fn hash(name: &str) -> String {
    ContentHash::of(name.as_bytes()).to_string()
}

pub fn build(name: &str, seen: &str) -> Build {
    Build {
        blake3: hash(name),
        seen: seen.to_owned(),
        groups: Default::default(),
        failing: Default::default(),
        unchecked: Default::default(),
        failing_results: Default::default(),
        moved: Default::default(),
        places: Default::default(),
    }
}

/// A directory of a campaign that has run these builds at these times.
pub fn directory(folder: &Path, name: &str, builds: &[(&str, &str)]) -> Store {
    let campaign = Campaign {
        target: Some(record()),
        builds: builds
            .iter()
            .map(|(name, seen)| build(name, seen))
            .collect(),
        ..campaign(name)
    };
    Store::create_or_resume(&folder.join(name), campaign).unwrap()
}

/// Stores a crash of the directory's campaign.
fn file(store: &mut Store, campaign: &str) -> EntryId {
    file_in(store, campaign, "m")
}

/// Stores a crash of the directory's campaign in the group with the key of this name.
pub fn file_in(store: &mut Store, campaign: &str, major: &str) -> EntryId {
    let found = Found::File {
        path: "input".into(),
        campaign: Some(campaign.to_owned()),
    };
    let crash = Crash {
        found: Some(found),
        ..crash(major, "n")
    };
    store.file(Kind::Crash, &crash, b"original").unwrap().id
}

/// Writes a result of minimizing an entry with a build.
pub fn minimize(store: &mut Store, id: &EntryId, build: &str, result: &[u8]) {
    let way = log::TargetRecord::new(&target(), Way::Command);
    let mut start = StartLine::new(b"original", "full", way, None, Limits::default());
    start.build = Some(ContentHash::of(build.as_bytes()));
    let mut log = Line::Start(Box::new(start)).to_json().unwrap();
    // The input of each group is the same, but not its log.
    log.extend([id.major().as_bytes(), b" ", result, b"\n"].concat());
    fs::write(id.log(store.reader().root()), log).unwrap();
    store.write_minimized(id, result).unwrap();
    let outcome = outcome(result.len() as u64, true);
    store.write_outcome(id, &outcome).unwrap();
}

pub fn last_build(root: &Path) -> Build {
    let campaigns = Store::open_read(root).unwrap().campaigns().unwrap();
    campaigns.builds(&record()).unwrap().pop().unwrap()
}

/// The file names in an entry's folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn a_build_that_runs_now_is_the_last_one_whatever_the_clock_says() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("a");
    let mut a = directory(
        folder.path(),
        "a",
        &[("x", "2026-01-01"), ("y", "2030-01-01")],
    );
    a.record_build(&record(), build("x", "2026-02-01")).unwrap();
    assert_eq!(last_build(&root).blake3, hash("x"));
    // So it does in a merged directory, and where the records of an older version are out of order.
    let order = [("y", "2030-01-01"), ("x", "2026-02-01")];
    drop(directory(folder.path(), "b", &order));
    drop(directory(folder.path(), "c", &[("y", "2030-01-01")]));
    for inputs in [["b", "c"], ["c", "b"]] {
        let into = folder.path().join(inputs.concat());
        let inputs: Vec<PathBuf> = inputs.iter().map(|it| folder.path().join(it)).collect();
        merge(&inputs, &into).unwrap();
        assert_eq!(last_build(&into).blake3, hash("x"), "{inputs:?}");
        let mut store = Store::open(&into, None).unwrap();
        store
            .record_build(&record(), build("z", "2026-03-01"))
            .unwrap();
        assert_eq!(last_build(&into).blake3, hash("z"), "{inputs:?}");
    }
}

#[test]
fn of_two_results_that_of_the_newer_build_wins() {
    let builds: &[(&str, &str)] = &[("x", "1"), ("y", "3")];
    for inputs in [["old", "new"], ["new", "old"]] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut old = directory(folder.path(), "old", &builds[..1]);
        let mut new = directory(folder.path(), "new", builds);
        let id = file(&mut old, "old");
        assert_eq!(file(&mut new, "new"), id);
        minimize(&mut old, &id, "x", b"or");
        minimize(&mut new, &id, "y", b"origin");
        drop((old, new));
        let into = path(inputs[0]);
        merge(&[path(inputs[1])], &into).unwrap();
        let entry = Store::open_read(&into)
            .unwrap()
            .entry(&id)
            .unwrap()
            .unwrap();
        assert_eq!(entry.reproducer_bytes().unwrap(), b"origin", "{inputs:?}");
        // The smaller one is kept beside it.
        let archived = entry.archived().unwrap();
        assert_eq!(archived.len(), 1, "{inputs:?}");
        assert_eq!(archived[0].reproducer, b"or", "{inputs:?}");
        let before = names(&entry.folder).len();
        merge(&[path(inputs[1])], &into).unwrap();
        assert_eq!(names(&entry.folder).len(), before);
    }
}

#[test]
fn a_result_that_was_not_run_with_the_last_build_waits_for_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let builds: &[(&str, &str)] = &[("x", "1"), ("y", "3")];
    let mut old = directory(folder.path(), "old", &builds[..1]);
    let mut new = directory(folder.path(), "new", builds);
    let id = file(&mut old, "old");
    file(&mut new, "new");
    minimize(&mut old, &id, "x", b"or");
    // The build y was checked: the original fails with it, and waits to be minimized.
    let mut checked = build("y", "3");
    let groups = [(id.major().to_owned(), Status::Same)];
    checked.groups.insert(Kind::Crash, groups.into());
    checked.add_failing(Kind::Crash, id.major(), id.minor(), id.hash());
    new.record_build(&record(), checked).unwrap();
    drop((old, new));
    drop(directory(folder.path(), "empty", builds));
    for into in ["new", "empty"] {
        merge(&[path("old")], &path(into)).unwrap();
        let last = last_build(&path(into));
        let unchecked = last.unchecked.get(&Kind::Crash);
        let is_unchecked = unchecked.is_some_and(|all| all.contains(id.major()));
        assert!(is_unchecked && last.blake3 == hash("y"), "{into}: {last:?}");
        // A check ends this.
        let mut store = Store::open(&path(into), None).unwrap();
        let checked = Build {
            unchecked: Default::default(),
            ..last
        };
        store.record_build(&record(), checked).unwrap();
        assert!(last_build(&path(into)).unchecked.is_empty());
    }
}

#[test]
fn a_crash_of_another_build_tells_nothing_of_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = directory(folder.path(), "a", &[("x", "1")]);
    let id = file(&mut store, "a");
    minimize(&mut store, &id, "x", b"or");
    let status = |status| {
        let mut build = build("y", "2");
        build
            .groups
            .insert(Kind::Crash, [(id.major().to_owned(), status)].into());
        build
    };
    let root = folder.path().join("a");
    let shown = || {
        let reader = Store::open_read(&root).unwrap();
        let group = reader.group(Kind::Crash, id.major()).unwrap().unwrap();
        let builds = reader.campaigns().unwrap().last_builds();
        builds.status(&group).unwrap()
    };
    let status_now = || last_build(&root).status(Kind::Crash, id.major());
    let is_minimized = || {
        let reader = Store::open_read(&root).unwrap();
        reader.entry(&id).unwrap().unwrap().minimized.is_some()
    };
    for (before, is_kept) in [(Status::CannotTell, true), (Status::Fixed, false)] {
        store.record_build(&record(), status(before)).unwrap();
        store.set_running_build(&hash("x"));
        file(&mut store, "a");
        assert_eq!(status_now(), Some(before));
        assert!(is_minimized());
        // But the group is not shown as fixed until the last build is checked again.
        assert_eq!(shown(), Some(Status::Unchecked));
        let checked = Build {
            unchecked: Default::default(),
            ..last_build(&root)
        };
        store.record_build(&record(), checked).unwrap();
        assert_eq!(shown(), Some(before));
        store.set_running_build(&hash("y"));
        file(&mut store, "a");
        assert_eq!(status_now(), Some(Status::Same));
        // Only a result that the check has seen pass is set aside; else a check is asked for.
        assert_eq!(is_minimized(), is_kept);
        assert_eq!(last_build(&root).unchecked.is_empty(), !is_kept);
    }
}
