//! A directory in which a study has put what two programs came to: show, check, export, merge.

use std::path::PathBuf;

use ddfuzz::exec::{Program, Target, TargetRecord, Way};
use ddfuzz::store::{Campaign, GroupTally, Kind, Store, StudyRecord, Tally, UtilityRecord, merge};
use ddfuzz::triage::{Found, Subject, Triager, Verdict};

use crate::ddfuzz::Desk;

/// Files the crash of a program on an input as a study does, and gives the group.
fn found(store: &mut Store, utility: &str, program: Program, input: &[u8]) -> GroupTally {
    let mut target = Target::new(program);
    target.env_only = true;
    let mut triager = Triager::of_target(&target, Way::Command).unwrap();
    let Verdict::Crash(mut crash) = triager.examine(input).unwrap() else {
        panic!("{utility} does not crash");
    };
    crash.found = Some(Found::Run {
        campaign: "c1".to_owned(),
        run: 0,
        input: "all:1:2".to_owned(),
    });
    crash.of = Some(Box::new(Subject {
        utility: utility.to_owned(),
        target: TargetRecord::new(&target, Way::Command),
    }));
    let filed = store.file(Kind::Crash, &crash, input).unwrap();
    if matches!(target.program, Program::Path(_)) {
        store.write_reproduce(&filed.id, &target).unwrap();
    }
    GroupTally {
        kind: Kind::Crash,
        major: crash.keys.major.short(),
        runs: 2,
        replayed: None,
    }
}

fn utility(name: &str, place: u64, groups: Vec<GroupTally>) -> UtilityRecord {
    UtilityRecord {
        utility: name.to_owned(),
        place,
        package: Some(format!("{name}-package")),
        version: Some("1.0".to_owned()),
        tallies: vec![Tally {
            channel: "stdin".to_owned(),
            kind: "all".to_owned(),
            runs: 100,
            crashes: 2 * groups.len() as u64,
            ..Tally::default()
        }],
        groups,
        done: true,
        ..UtilityRecord::default()
    }
}

/// The output directory `out` with a study of `bugs`, the program of two bugs, and `plot`, a bundled
/// one. Its campaign has no target of its own.
fn study(desk: &Desk) -> PathBuf {
    let program = desk.compile("tests/cli/programs/two_bugs.c", "bugs");
    empty_study(desk, |store| {
        let odd = found(store, "bugs", Program::Path(program.clone()), b"kkk");
        let even = found(store, "bugs", Program::Path(program), b"kk");
        let plot = found(store, "plot", Program::Bundled("crtplot".into()), b"a t");
        let missing = UtilityRecord {
            label: Some("missing".to_owned()),
            tallies: Vec::new(),
            ..utility("gone", 2, Vec::new())
        };
        vec![
            utility("bugs", 0, vec![odd, even]),
            utility("plot", 1, vec![plot]),
            missing,
        ]
    })
}

fn empty_study(desk: &Desk, utilities: impl FnOnce(&mut Store) -> Vec<UtilityRecord>) -> PathBuf {
    let out = desk.file("out");
    let campaign = Campaign {
        id: "c1".to_owned(),
        command_line: Vec::new(),
        settings: None,
        target: None,
        builds: Vec::new(),
        limits: None,
        ways: Vec::new(),
        seed: Some(1),
        started: "2026-01-02T03:04:05Z".to_owned(),
        host: "host".to_owned(),
    };
    let mut store = Store::create_or_resume(&out, campaign).unwrap();
    let utilities = utilities(&mut store);
    store
        .write_study(&StudyRecord {
            v: StudyRecord::VERSION,
            campaign: "c1".to_owned(),
            host: "host".to_owned(),
            system: "system".to_owned(),
            kernel: "6.1".to_owned(),
            started: "2026-01-02T03:04:05Z".to_owned(),
            seed: 1,
            list: "list".to_owned(),
            shard: None,
            sandbox: Vec::new(),
            utilities,
        })
        .unwrap();
    out
}

#[test]
fn a_study_is_shown_with_its_utilities_and_groups() {
    let desk = Desk::new();
    study(&desk);
    let text = desk.call("show out").exits(0).out;
    for expected in [
        "\nbugs     ●     100   4 ",
        "\n2 utilities run, 2 crash (100.0 %",
        "\nUTILITY  KIND     GROUP ",
        "\nplot     crashes  ",
        "\n2020          Linux ",
        "  bugs: sh ",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
    let shown = desk.call("show out --json").exits(0).json();
    let groups = shown["groups"].as_array().unwrap();
    let mut utilities: Vec<_> = (groups.iter())
        .map(|group| group["utility"].as_str().unwrap())
        .collect();
    utilities.sort_unstable();
    assert_eq!(utilities, ["bugs", "bugs", "plot"]);
    assert_eq!(shown["utilities"][2]["label"], "missing");
    assert_eq!(shown["utilities"][1]["crashes"], 2);
    let major = groups[0]["major"].as_str().unwrap();
    let block = desk.call(&format!("show out {major}")).exits(0).out;
    let of = format!(
        "crash {major} of {}",
        groups[0]["utility"].as_str().unwrap()
    );
    assert!(block.starts_with(&of), "{block}");
}

#[test]
fn a_study_is_written_into_files_and_foreign_ones_stay() {
    let desk = Desk::new();
    study(&desk);
    let words = "show out --markdown m.md --csv t.csv --html t.html";
    desk.call(words).exits(0);
    let text = |name: &str| String::from_utf8(desk.read(name)).unwrap();
    assert!(text("m.md").contains("| bugs | bugs-package 1.0 |"));
    assert!(text("t.csv").contains("\r\nbugs,bugs-package,1.0,host,stdin,100,4,"));
    let page = text("t.html");
    let link = page.split("<a href=\"").nth(1).unwrap();
    let link = link.split('"').next().unwrap();
    assert!(link.starts_with("out/crashes/"), "{link}");
    assert!(desk.file(link).is_file());
    // Ddfuzz's own are replaced, and nobody else's.
    desk.call(words).exits(0);
    for option in ["--csv", "--html", "--markdown"] {
        desk.write("mine", "utility,notes\n");
        let error = desk.call(&format!("show out --json {option} mine"));
        assert_eq!(error.exits(2).json()["error"]["kind"], "exists");
        assert_eq!(desk.read("mine"), b"utility,notes\n");
    }
    desk.call("run --target crtplot --runs 0 -o one").exits(0);
    let error = desk.call("show one --csv one.csv --json").exits(2).json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("no study"), "{message}");
    assert!(!desk.file("one.csv").exists());
}

#[test]
fn each_group_of_a_study_is_checked_with_its_own_program() {
    let desk = Desk::new();
    study(&desk);
    let result = desk.call("check out --json --jobs 2").exits(1).json();
    assert_eq!((&result["same"], &result["fixed"]), (&3.into(), &0.into()));
    let text = desk.call("check out").exits(1).out;
    assert!(text.starts_with("UTILITY  STATUS "), "{text}");
    // One of the two programs is mended.
    desk.script("bugs", "cat >/dev/null");
    let result = desk.call("check out --json").exits(1).json();
    let mut statuses: Vec<_> = (result["groups"].as_array().unwrap().iter())
        .map(|group| (group["utility"].as_str(), group["status"].as_str()))
        .collect();
    statuses.sort_unstable();
    let (bugs, plot) = (Some("bugs"), Some("plot"));
    let fixed = Some("fixed");
    assert_eq!(
        statuses,
        [(bugs, fixed), (bugs, fixed), (plot, Some("same"))]
    );
    // One that is named is run on everything, and shows nothing where it reads nothing.
    let result = desk.call("check out --json -- true").exits(1).json();
    assert_eq!(result["cannot_tell"], 3, "{result}");
    desk.is_left_clean();
}

#[test]
fn groups_whose_program_is_gone_are_named_and_the_others_are_checked() {
    let desk = Desk::new();
    study(&desk);
    std::fs::remove_file(desk.file("bugs")).unwrap();
    let said = desk.call("check out --json").exits(1);
    assert!(
        said.err.contains("is not checked: its program"),
        "{}",
        said.err
    );
    let result = said.json();
    assert_eq!(
        (&result["same"], &result["not_run"]),
        (&1.into(), &2.into())
    );
    let text = desk.call("check out").exits(1).out;
    assert!(
        text.contains("; 2 not run, because their programs no longer exist"),
        "{text}"
    );
    for group in std::fs::read_dir(desk.file("out/crashes")).unwrap() {
        let folder = group.unwrap().path();
        let shown = desk.call(&format!(
            "show out {}",
            folder.file_name().unwrap().display()
        ));
        if shown.out.contains("of plot") {
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
    let error = desk.call("check out --json").exits(3).json();
    assert!(error["error"]["message"].as_str().unwrap().contains("bugs"));
}

#[test]
fn a_study_beside_a_campaign_of_one_program_is_checked_with_both() {
    let desk = Desk::new();
    study(&desk);
    desk.write("odd", "kkk");
    desk.script("other", "read -r x; kill -SEGV $$");
    desk.call("triage odd -o one -- ./other").exits(1);
    desk.call("merge out one -o both").exits(0);
    let result = desk.call("check both --json").exits(1).json();
    assert_eq!((&result["same"], &result["other"]), (&4.into(), &0.into()));
}

#[test]
fn a_study_without_groups_is_checked_and_shown() {
    let desk = Desk::new();
    empty_study(&desk, |_| vec![utility("plot", 0, Vec::new())]);
    desk.call("check out").exits(0);
    let text = desk.call("show out").exits(0).out;
    assert!(
        text.contains("0 crash (0 %") && text.contains("no groups in out"),
        "{text}"
    );
}

#[test]
fn a_group_of_a_study_is_exported_with_its_own_program() {
    let desk = Desk::new();
    study(&desk);
    let shown = desk.call("show out --json").exits(0).json();
    for group in shown["groups"].as_array().unwrap() {
        let major = group["major"].as_str().unwrap();
        let call = format!("export {major} -o out --as script");
        let script = desk.call(&call).exits(0).out;
        let program = match group["utility"].as_str().unwrap() {
            "bugs" => desk.file("bugs").to_str().unwrap().to_owned(),
            _ => "crtplot".to_owned(),
        };
        assert!(script.contains(&program), "{program} in {script}");
    }
}

#[test]
fn an_exported_test_gives_the_program_no_more_of_the_environment_than_the_study_did() {
    let desk = Desk::new();
    desk.write(
        "nameless.c",
        "#include <stdlib.h>\nint main(void) { if (!getenv(\"NAME_OF_USER\")) abort(); }",
    );
    let source = desk.file("nameless.c");
    let program = desk.compile(source.to_str().unwrap(), "nameless");
    empty_study(&desk, |store| {
        let group = found(store, "nameless", Program::Path(program), b"");
        vec![utility("nameless", 0, vec![group])]
    });
    let shown = desk.call("show out --json").exits(0).json();
    let major = shown["groups"][0]["major"].as_str().unwrap();
    let call = format!("export {major} -o out --as script --to test.sh");
    desk.call(&call).exits(0);
    desk.write("input", "");
    let mut test = desk.command(desk.file("test.sh"));
    test.env("NAME_OF_USER", "set").arg("input");
    assert_eq!(test.status().unwrap().code(), Some(0));
}

#[test]
fn merged_studies_are_told_and_stay_the_same() {
    let desk = Desk::new();
    let out = study(&desk);
    let said = desk.call("merge out -o all").exits(0).out;
    assert!(said.contains("and the study of 3 utilities in"), "{said}");
    let result = desk.call("merge out out -o all --json").exits(0).json();
    assert_eq!(result["utilities"], 3);
    let tables = ["out", "all"].map(|name| {
        let shown = desk.call(&format!("show {name} --json")).exits(0).json();
        shown["utilities"].clone()
    });
    let mut tables = tables.map(|table| table.as_array().unwrap().clone());
    for row in tables.iter_mut().flatten() {
        row["reproduce"] = serde_json::Value::Null; // the path is another
    }
    assert_eq!(tables[0], tables[1]);
    merge(&[out], &desk.file("again")).unwrap();
    // A directory of one program says nothing of utilities.
    desk.call("run --target crtplot --runs 0 -o one").exits(0);
    let said = desk.call("merge one -o other --json").exits(0).json();
    assert_eq!(said.get("utilities"), None);
}

#[test]
fn studies_of_directories_are_compared() {
    let desk = Desk::new();
    study(&desk);
    desk.call("merge out -o later").exits(0);
    let shown = desk.call("show later --json").exits(0).json();
    let major = shown["groups"][0]["major"].as_str().unwrap();
    std::fs::remove_dir_all(desk.file("later/crashes").join(major)).unwrap();
    let compared = desk.call("revisit --compare out later --json").exits(0);
    let compared = compared.json();
    // What runs ended in a group says that it is there, also without its inputs.
    let utilities = compared["utilities"].as_array().unwrap().iter();
    let groups = utilities.flat_map(|one| one["groups"].as_array().unwrap());
    let changes: Vec<_> = groups.map(|group| group["change"].as_str()).collect();
    assert_eq!(changes, [Some("same"); 3]);
    let text = desk.call("revisit --compare out later out").exits(0).out;
    assert!(text.contains("groups in [3]: 0 new, 3 as before"), "{text}");
    desk.call("run --target crtplot --runs 0 -o one").exits(0);
    let error = desk.call("revisit --json --compare out one").exits(2);
    let message = error.json()["error"]["message"].to_string();
    assert!(message.contains("no study"), "{message}");
    desk.call("revisit --compare out").exits(2);
    desk.call("revisit --compare out nowhere").exits(2);
}
