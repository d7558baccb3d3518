//! Reports of studies of many utilities.

mod compare;
mod csv;
mod html;
mod json;
mod markdown;
mod rates;
mod rows;
mod significance;
mod summary;
mod table;

use ddfuzz::report::GroupView;
use ddfuzz::report::study::StudyGroup;
use ddfuzz::store::{GroupTally, Kind, Replayed, StudyRecord, Tally, UtilityRecord};
use ddfuzz::triage::{Class, Key};

use crate::sample::view;

/// A name that means something to a terminal, to Markdown, HTML, CSV and a spreadsheet.
const HOSTILE: &str = "=x\x1b[2J|<script>\"alert(1)\"</script>,`a`\n*b*\u{202e}";

/// A study on a machine that came to this.
fn study(campaign: &str, host: &str, utilities: Vec<UtilityRecord>) -> StudyRecord {
    StudyRecord {
        v: StudyRecord::VERSION,
        campaign: campaign.to_owned(),
        host: host.to_owned(),
        system: "Debian GNU/Linux 12".to_owned(),
        kernel: "6.1".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        seed: 1,
        list: "debian-12".to_owned(),
        shard: None,
        sandbox: Vec::new(),
        utilities,
    }
}

/// Runs by a channel on a kind of input, of which so many crashed and hung.
fn tally(channel: &str, kind: &str, runs: u64, crashes: u64, hangs: u64) -> Tally {
    Tally {
        channel: channel.to_owned(),
        kind: kind.to_owned(),
        runs,
        crashes,
        hangs,
        ooms: 0,
        high_exits: 0,
        slow: 0,
    }
}

/// A utility of the package `PACKAGE 1.0`.
fn utility(name: &str, place: u64, tallies: Vec<Tally>) -> UtilityRecord {
    UtilityRecord {
        utility: name.to_owned(),
        place,
        package: Some(format!("{name}-package")),
        version: Some("1.0".to_owned()),
        tallies,
        done: true,
        ..UtilityRecord::default()
    }
}

/// One that cannot be run.
fn refused(name: &str, place: u64, label: &str) -> UtilityRecord {
    UtilityRecord {
        label: Some(label.to_owned()),
        ..utility(name, place, Vec::new())
    }
}

/// The key of a name.
fn key(name: &str) -> Key {
    Key::of([name.as_bytes()])
}

/// Runs that ended in a group, with a reproducer that always fails.
fn ended_in(kind: Kind, major: &str, runs: u64) -> GroupTally {
    GroupTally {
        kind,
        major: key(major).short(),
        runs,
        replayed: Some(Replayed {
            hits: 10,
            tries: 10,
            fixed_hits: None,
        }),
    }
}

/// What a directory has of a group of a utility, with a reproducer of `size` bytes.
fn group(utility: &str, kind: Kind, major: &str, size: usize) -> StudyGroup {
    let class = match kind {
        Kind::Hang => "hang",
        Kind::Oom => "oom",
        Kind::Crash | Kind::Flaky => "segv",
    };
    StudyGroup {
        utility: utility.to_owned(),
        view: GroupView {
            kind,
            major: key(major),
            class: Class(class.to_owned()),
            reproducer: vec![b'A'; size],
            utility: Some(utility.to_owned()),
            file: format!("/out/{major}/minimized").into(),
            log: Some(format!("/out/{major}/log.jsonl").into()),
            script: Some(format!("/out/{major}/reproduce.sh").into()),
            ..view()
        },
        stable: None,
        build: None,
    }
}

/// A study in which `boxes` crashes and hangs, `cat` is well and `su` was not run.
fn small() -> (Vec<StudyRecord>, Vec<StudyGroup>) {
    let mut boxes = utility(
        "boxes",
        0,
        vec![
            tally("stdin", "all", 600, 3, 1),
            tally("cp a.txt", "all", 400, 0, 0),
        ],
    );
    boxes.groups = vec![
        ended_in(Kind::Hang, "loop", 1),
        ended_in(Kind::Crash, "crash", 3),
    ];
    let cat = utility("cat", 1, vec![tally("stdin", "all", 600, 0, 0)]);
    let groups = vec![
        group("boxes", Kind::Crash, "crash", 1),
        group("boxes", Kind::Hang, "loop", 0),
    ];
    let utilities = vec![boxes, cat, refused("su", 2, "setuid")];
    (vec![study("c1", "host", utilities)], groups)
}
