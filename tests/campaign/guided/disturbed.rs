//! The output directory or the program changes while a guided campaign runs.

use std::time::Duration;

use super::processes::Running;
use super::targets::{Built, assert_whole, corpus, gates};
use crate::ddfuzz::Desk;
use crate::needs;

/// Runs a shell script, which finds ddfuzz as `$DD`, in a mount namespace of its own; `None`, and
/// said so, where the machine does not permit that.
fn script(desk: &Desk, text: &str) -> Option<String> {
    let said = desk.in_mount_namespace(text);
    said.map_err(|why| needs::missing("mount", &why)).ok()
}

#[test]
fn a_full_disk_is_waited_for_and_the_campaign_goes_on_by_itself() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &[]).is_none() {
        return;
    }
    for when in ["inline", "worker"] {
        let text = format!(
            "mkdir -p disk; mount -t tmpfs -o size=64k tmpfs disk; : >said
             timeout 100 $DD run --json --seed 1 --max-len 64 --runs 150000 --jobs 2 \\
                --minimize {when} -o disk/out -- ./gates 2>said & pid=$!
             while kill -0 $pid && ! grep -q 'disk is full' said; do sleep 0.05; done
             sleep 0.5; mount -o remount,size=64m tmpfs disk
             code=0; wait $pid || code=$?
             echo \"code $code\"
             cat said >&2
             grep -c 'disk is full' said; grep -c 'there is space again' said"
        );
        let Some(said) = script(&desk, &text) else {
            return;
        };
        let lines: Vec<&str> = said.lines().collect();
        let result: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(result["runs"], 150_000, "{when}: {said}");
        assert_eq!(
            result["groups"].as_array().unwrap().len(),
            3,
            "{when}: {said}"
        );
        for group in result["groups"].as_array().unwrap() {
            assert_eq!(group["claim"], "1-minimal", "{when}: {said}");
        }
        assert_eq!(lines[1..], ["code 1", "1", "1"], "{when}: {said}");
        desk.is_left_clean();
    }
}

#[test]
fn on_a_disk_that_stays_full_the_campaign_ends_at_its_time() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &[]).is_none() {
        return;
    }
    for when in ["inline", "after", "worker"] {
        let text = format!(
            "mkdir -p disk; mount -t tmpfs -o size=64k tmpfs disk
             code=0; timeout 100 $DD run --json --seed 1 --max-len 64 --time 4s --jobs 2 \\
                --minimize {when} -o disk/out -- ./gates 2>said || code=$?
             echo \"code $code\"
             cat said >&2
             grep -c 'disk is full' said; grep -c 'there is space again' said || true"
        );
        let Some(said) = script(&desk, &text) else {
            return;
        };
        let lines: Vec<&str> = said.lines().collect();
        let result: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(result["ended_by"], "time", "{when}: {said}");
        let warnings = result["warnings"].to_string();
        assert!(warnings.contains("disk was full"), "{when}: {said}");
        assert_eq!(lines[1..], ["code 1", "1", "0"], "{when}: {said}");
        desk.is_left_clean();
    }
}

#[test]
fn a_read_only_disk_is_an_error() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &[]).is_none() {
        return;
    }
    let text = "mkdir -p disk; mount -t tmpfs tmpfs disk
         $DD run -q --seed 1 --max-len 64 --runs 500 -o disk/old -- ./gates >said 2>&1 || true
         mount -o remount,ro tmpfs disk
         for words in 'disk/new' 'disk/old' 'disk/old --resume'; do
             code=0; timeout 100 $DD run --json --runs 9 -o $words -- ./gates 2>>said || code=$?
             echo \"code $code\"
         done";
    let Some(said) = script(&desk, text) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 6, "{said}");
    for call in 0..3 {
        assert!(lines[2 * call].contains("Read-only file system"), "{said}");
        assert_eq!(lines[2 * call + 1], "code 2", "{said}");
    }
    desk.is_left_clean();
}

#[test]
fn an_output_directory_that_is_removed_meanwhile_is_an_error() {
    let desk = Desk::new();
    if gates(&desk, "gates", Built::Harness, &[]).is_none() {
        return;
    }
    let words = "run --json --seed 1 --max-len 64 --jobs 2 -o out -- ./gates";
    let mut running = Running::start(&desk, "call", words);
    running.until(&desk, "a corpus", |desk, _| {
        !corpus(&desk.file("out")).is_empty()
    });
    std::fs::rename(desk.file("out"), desk.file("elsewhere")).unwrap();
    assert_eq!(running.ends(&desk), Some(2), "{}", running.said(&desk));
    let error = running.result(&desk)["error"].clone();
    assert!(
        error["message"].as_str().unwrap().contains("renamed"),
        "{error}"
    );
    assert!(error["path"].as_str().unwrap().ends_with("out"), "{error}");
    assert_whole(&desk.file("elsewhere"));
    desk.is_left_clean();
}

#[test]
fn a_program_that_is_built_anew_is_noticed_and_its_groups_are_checked() {
    let desk = Desk::new();
    let macros: [&[&str]; 2] = [&["-DFEW"], &["-DFEW", "-DNONE", "-DWORD"]];
    if gates(&desk, "gates", Built::Harness, macros[0]).is_none() {
        return;
    }
    let mended = gates(&desk, "mended", Built::Harness, macros[1]).unwrap();
    let words = "run --json --plain --seed 1 --max-len 16 --jobs 2 -o out -- ./gates";
    let mut running = Running::start(&desk, "call", words);
    running.says(&desk, "claim=1-minimal");
    desk.put(&mended, "gates");
    // One group or two are known by now, and the new program has neither bug.
    running.says(&desk, " fixed");
    // The workers run what is there now.
    running.until(&desk, "what only the new program has", |desk, _| {
        super::targets::functions(&desk.file("out")).contains("spelled")
    });
    running.signal(libc::SIGINT);
    assert_eq!(running.ends(&desk), Some(130), "{}", running.said(&desk));
    let result = running.result(&desk);
    assert_eq!(result["rebuilt"], true, "{result}");
    desk.is_left_clean();
}

#[test]
fn a_program_that_is_away_for_a_while_is_waited_for_however_long_the_campaign_has_run() {
    let desk = Desk::new();
    // Slow, so that the long wait costs little.
    let macros = ["-DFEW", "-DNONE", "-DSLOW=20000"];
    if gates(&desk, "gates", Built::Harness, &macros).is_none() {
        return;
    }
    let other = gates(&desk, "other", Built::Harness, &["-DFEW"]).unwrap();
    let words = "run --json --plain --seed 1 --max-len 16 --jobs 1 -o out -- ./gates";
    let mut running = Running::start(&desk, "call", words);
    running.until(&desk, "a corpus", |desk, _| {
        !corpus(&desk.file("out")).is_empty()
    });
    // Longer than workers may take to call, when all was begun.
    std::thread::sleep(Duration::from_secs(31));
    std::fs::remove_file(desk.file("gates")).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    desk.put(&other, "gates");
    running.says(&desk, "claim=1-minimal");
    running.signal(libc::SIGINT);
    assert_eq!(running.ends(&desk), Some(130), "{}", running.said(&desk));
    desk.is_left_clean();
}
