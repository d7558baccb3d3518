//! Full and read-only disks, and what is left in shared memory: in a mount namespace of the
//! test's own, where nothing else is.

use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::needs;

/// Runs a shell script, which finds ddfuzz as `$DD`, in a mount namespace of its own; `None`, and
/// said so, where the machine does not permit that.
pub fn script(desk: &Desk, text: &str) -> Option<String> {
    let said = desk.in_mount_namespace(text);
    said.map_err(|why| needs::missing("mount", &why)).ok()
}

/// Of a campaign's result, what does not depend on the machine.
#[track_caller]
fn assert_same(one: &Value, other: &Value) {
    for key in [
        "major",
        "minor",
        "runs_seen",
        "size_before",
        "size_after",
        "claim",
    ] {
        assert_eq!(one["groups"][0][key], other["groups"][0][key], "{key}");
    }
    assert_eq!(one["runs"], other["runs"]);
    let count = |result: &Value| result["groups"].as_array().unwrap().len();
    assert_eq!(count(one), count(other));
}

const CAMPAIGN: &str = "run --json --target ul --search ddmin --runs 400 --max-len 2000 --seed 7";

#[test]
fn a_campaign_on_a_full_disk_goes_on_by_itself_when_there_is_room() {
    let desk = Desk::new();
    let words = format!("{CAMPAIGN} -o out");
    let undisturbed = Desk::new().call(&words).exits(1).json();
    for when in ["inline", "after", "worker"] {
        // There is room for the program and the first entries, and none for the log.
        let text = format!(
            "mkdir -p disk; mount -t tmpfs -o size=256k tmpfs disk; cd disk
             : >../said
             timeout 100 $DD {words} --minimize {when} 2>../said & pid=$!
             while kill -0 $pid && ! grep -q 'disk is full' ../said; do sleep 0.05; done
             sleep 0.5; mount -o remount,size=64m tmpfs .
             code=0; wait $pid || code=$?
             echo \"code $code\"
             grep -c 'disk is full' ../said; grep -c 'there is space again' ../said"
        );
        let Some(said) = script(&desk, &text) else {
            return;
        };
        let lines: Vec<&str> = said.lines().collect();
        let result: Value = serde_json::from_str(lines[0]).unwrap();
        assert_same(&result, &undisturbed);
        assert_eq!(lines[1..], ["code 1", "1", "1"], "{when}: {said}");
        desk.is_left_clean();
    }
}

#[test]
fn a_campaign_that_waits_for_room_can_be_stopped_and_goes_on_later() {
    let desk = Desk::new();
    let words = format!("{CAMPAIGN} -o out");
    let undisturbed = Desk::new().call(&words).exits(1).json();
    let text = format!(
        "mkdir disk; mount -t tmpfs -o size=256k tmpfs disk; cd disk
         $DD {words} 2>../said & pid=$!
         while kill -0 $pid && ! grep -q 'disk is full' ../said; do sleep 0.05; done
         kill -TERM $pid; code=0; wait $pid || code=$?
         echo \"code $code\"
         timeout 100 $DD show --json out
         mount -o remount,size=64m tmpfs .
         timeout 100 $DD {words} --resume || true"
    );
    let Some(said) = script(&desk, &text) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    let json = |line: usize| serde_json::from_str::<Value>(lines[line]).unwrap();
    assert_eq!(json(0)["ended_by"], "interrupted", "{said}");
    assert_eq!(lines[1], "code 130");
    // What was found until then is there.
    assert_eq!(
        json(2)["groups"][0]["major"],
        undisturbed["groups"][0]["major"]
    );
    assert_eq!(json(3)["resumed"], true);
    assert_same(&json(3), &undisturbed);
    desk.is_left_clean();
}

#[test]
fn a_campaign_on_a_disk_that_stays_full_ends_at_its_time() {
    let desk = Desk::new();
    let words = "run --json --target ul --search ddmin --time 3s --max-len 2000 --seed 7 -o out";
    for when in ["inline", "after", "worker"] {
        let text = format!(
            "mkdir -p disk; mount -t tmpfs -o size=256k tmpfs disk; cd disk
             code=0; timeout 100 $DD {words} --minimize {when} 2>../said || code=$?
             echo \"code $code\"
             grep -c 'disk is full' ../said; grep -c 'there is space again' ../said || true
             timeout 100 $DD show --json out"
        );
        let Some(said) = script(&desk, &text) else {
            return;
        };
        let lines: Vec<&str> = said.lines().collect();
        let result: Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(result["ended_by"], "time", "{when}: {said}");
        let warnings = result["warnings"].to_string();
        assert!(warnings.contains("disk was full"), "{when}: {said}");
        assert_eq!(lines[1..4], ["code 1", "1", "0"], "{when}: {said}");
        // What is told is what is stored.
        let shown: Value = serde_json::from_str(lines[4]).unwrap();
        assert_eq!(
            shown["groups"][0]["major"], result["groups"][0]["major"],
            "{when}: {said}"
        );
        desk.is_left_clean();
    }
}

#[test]
fn a_watch_on_a_disk_that_stays_full_ends_at_its_time() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("found")).unwrap();
    for more in 0..40 {
        let input = [crate::crashes::for_ul(), vec![b'x'; 20_000 + more]].concat();
        std::fs::write(desk.file(&format!("found/{more}")), input).unwrap();
    }
    let text = "mkdir -p disk; mount -t tmpfs -o size=128k tmpfs disk; cd disk
         code=0; timeout 100 $DD watch ../found --json --target ul --time 3s -o out 2>../said || code=$?
         echo \"code $code\"
         grep -c 'disk is full' ../said; grep -c 'there is space again' ../said || true";
    let Some(said) = script(&desk, text) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    let result: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(result["ended_by"], "time", "{said}");
    assert!(
        result["warnings"].to_string().contains("disk was full"),
        "{said}"
    );
    assert_eq!(lines[1..4], ["code 1", "1", "0"], "{said}");
    assert!(said.contains("the files stay where they are"), "{said}");
    desk.is_left_clean();
}

#[test]
fn a_study_whose_crashes_find_no_room_does_not_end_as_if_there_were_none() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/large.c", "large");
    let text = "mkdir -p disk; mount -t tmpfs -o size=90k tmpfs disk; cd disk
         code=0; timeout 100 $DD revisit ../large --no-sandbox --no-sandbox --seed 3 --time 6s \
           --jobs 1 --json -o out 2>../said || code=$?
         echo \"code $code\"";
    let Some(said) = script(&desk, text) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    let result: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(lines[1], "code 1", "{said}");
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("could not be stored"), "{said}");
    desk.is_left_clean();
}

#[test]
fn a_campaign_is_not_begun_on_a_full_disk() {
    let desk = Desk::new();
    let text = "mkdir disk; mount -t tmpfs -o size=4k tmpfs disk; cd disk
         head -c 4096 /dev/zero >filled || true
         code=0; timeout 100 $DD run --json --target ul --runs 9 -o out || code=$?
         echo \"code $code\"";
    let Some(said) = script(&desk, text) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    let report: Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(report["error"]["kind"], "disk-full", "{said}");
    assert_eq!(lines[1], "code 2");
}

#[test]
fn a_full_disk_does_not_harm_what_min_has_reached() {
    let desk = Desk::new();
    desk.write("crash", crate::crashes::for_ul());
    let text = "mkdir disk; mount -t tmpfs -o size=64k tmpfs disk
         code=0; timeout 100 $DD min crash --json --search ddmin -o disk/small --target ul || code=$?
         echo \"code $code\"
         mount -o remount,size=16m tmpfs disk
         timeout 100 $DD min crash --json --search ddmin --resume -o disk/small --target ul
         timeout 100 $DD log verify disk/small.log.jsonl";
    let Some(said) = script(&desk, text) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    let json = |line: usize| serde_json::from_str::<serde_json::Value>(lines[line]).unwrap();
    assert!(
        json(0)["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("--resume"),
        "{said}"
    );
    assert_eq!(lines[1], "code 2");
    assert_eq!(json(2)["size_after"], 517);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn explain_and_export_say_what_to_do_about_a_full_disk() {
    let desk = crate::explain::recs();
    desk.call("triage bad -o out -- ./recs @@").exits(1);
    let text = "mkdir disk; mount -t tmpfs -o size=8k tmpfs disk
         head -c 8192 /dev/zero >disk/filled
         group=$(ls out/crashes)
         for words in 'explain bad good -o disk/new -- ./recs @@' \\
                      \"export out/crashes/$group --as c-test --to disk/test.c\"
         do
             code=0; timeout 100 $DD --json $words || code=$?
             echo \"code $code\"
         done";
    let Some(said) = script(&desk, text) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    for call in lines.chunks(2) {
        let report: Value = serde_json::from_str(call[0]).unwrap();
        let error = &report["error"];
        assert_eq!(error["kind"], "disk-full", "{said}");
        let hint = "free some space, and repeat the command";
        assert_eq!(error["hint"], hint, "{said}");
        assert_eq!(call[1], "code 2");
    }
}

#[test]
fn a_read_only_disk_is_an_error() {
    let desk = Desk::new();
    desk.write("crash", "t");
    let text = "mkdir disk; mount -t tmpfs tmpfs disk; cp crash disk
         $DD run --target crtplot --runs 20 --max-len 500 --seed 1 -q -o disk/old >/dev/null || true
         mount -o remount,ro tmpfs disk
         for words in 'run --target crtplot --runs 9 -o disk/new' \\
                      'run --target crtplot --runs 9 -o disk/old' \\
                      'min disk/crash --target crtplot'
         do
             code=0; timeout 100 $DD --json $words || code=$?
             echo \"code $code\"
         done
         timeout 100 $DD show --json disk/old";
    let Some(said) = script(&desk, text) else {
        return;
    };
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 7, "{said}");
    for call in 0..3 {
        let report: serde_json::Value = serde_json::from_str(lines[2 * call]).unwrap();
        let message = report["error"]["message"].as_str().unwrap();
        assert!(message.contains("Read-only file system"), "{said}");
        assert_eq!(lines[2 * call + 1], "code 2", "{said}");
    }
    assert!(lines[6].contains("\"size_after\":1"));
}

#[test]
fn nothing_is_left_in_shared_memory_and_the_next_call_sweeps_after_a_killed_one() {
    let desk = Desk::new();
    desk.write("crash", "a t");
    let text = "mount -t tmpfs -o mode=1777 tmpfs /dev/shm
         unset TMPDIR; cd /
         here=$(mktemp -d); cd $here; printf 'a t' > crash
         for way in harness inject command; do
             timeout 100 $DD run -q --target crtplot --exec $way --runs 30 --seed 1 -o $way >/dev/null || true
             timeout 100 $DD min crash -q --target crtplot --exec $way -o $way.min >/dev/null
             echo $way: $(ls -A /dev/shm)
         done
         $DD run -q --target crtplot --seed 1 -o killed >/dev/null & pid=$!
         while ! [ -e killed/state.json ]; do sleep 0.02; done
         kill -KILL $pid; wait $pid || true
         ls /dev/shm | grep -c '^ddfuzz-'
         timeout 100 $DD triage crash -q --target crtplot >/dev/null || true
         echo after: $(ls -A /dev/shm)
         cd /; rm -rf $here";
    let Some(said) = script(&desk, text) else {
        return;
    };
    assert_eq!(said, "harness:\ninject:\ncommand:\n1\nafter:\n");
    desk.is_left_clean();
}
