//! `ddfuzz min --jobs`: any number of workers writes the same log.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::Value;

use crate::crashes;
use crate::ddfuzz::{Desk, Said};
use crate::log_lines::lasting;

/// Words that minimize `crash` into `name` by this many jobs. A process for each test makes a test
/// so slow that workers are worth it.
fn words(name: &str, jobs: u32) -> String {
    format!("min crash --json --target ul --exec command --jobs {jobs} -o {name}")
}

#[test]
fn a_bundled_target_has_one_log_whatever_the_number_of_jobs() {
    let desk = Desk::new();
    desk.write("crash", crashes::for_ul());
    let one = desk.call(&words("one", 1)).exits(0).json();
    assert_eq!(one["tests"]["speculative"], 0);
    for jobs in [2, 7] {
        let name = format!("by-{jobs}");
        let mut record = desk.call(&words(&name, jobs)).exits(0).json();
        record["tests"]["speculative"] = one["tests"]["speculative"].clone();
        for key in [
            "claim",
            "size_after",
            "tests",
            "proved",
            "outcome",
            "minor_after",
            "slips",
        ] {
            assert_eq!(record[key], one[key], "{key}, {jobs} jobs");
        }
        assert_eq!(desk.read(&name), desk.read("one"));
        let logs = [&name, "one"].map(|name| desk.read(&format!("{name}.log.jsonl")));
        assert_eq!(lasting(&logs[0]), lasting(&logs[1]), "{jobs} jobs");
        desk.call(&format!("log replay {name}.log.jsonl")).exits(0);
    }
    desk.is_left_clean();
}

#[test]
fn an_output_directory_holds_the_same_log_too() {
    let desk = Desk::new();
    desk.write("crash", crashes::for_ul());
    let logs = [1, 3].map(|jobs| {
        let record = desk.call(&words(&format!("dir-{jobs}/"), jobs));
        let record = record.exits(0).json();
        lasting(&std::fs::read(record["log"].as_str().unwrap()).unwrap())
    });
    assert_eq!(logs[0], logs[1]);
    desk.is_left_clean();
}

#[test]
fn jobs_that_were_killed_leave_nothing_behind_and_others_go_on_to_the_same_log() {
    let desk = Desk::new();
    desk.write("crash", crashes::for_ul());
    desk.call(&words("whole", 1)).exits(0);
    let whole = desk.read("whole.log.jsonl");
    for (jobs, most, others) in [(7, 300, 2), (2, 1500, 7), (2, 2600, 1)] {
        let name = format!("cut-{most}");
        let log = format!("{name}.log.jsonl");
        let mut child = desk.start(&words(&name, jobs));
        let written = || std::fs::read(desk.file(&log)).unwrap_or_default();
        while written().iter().filter(|byte| **byte == b'\n').count() < most
            && child.try_wait().unwrap().is_none()
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        desk.is_left_clean();
        let words = words(&name, others);
        desk.call(&format!("{words} --resume")).exits(0);
        assert_eq!(
            lasting(&desk.read(&log)),
            lasting(&whole),
            "{jobs}, {others}"
        );
        assert_eq!(desk.read(&name), desk.read("whole"));
    }
}

#[test]
fn a_slip_that_only_a_test_in_vain_met_is_kept_and_told() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    for (number, length) in [22, 48, 101].into_iter().enumerate() {
        let mut crash = vec![b'.'; length];
        crash[number * 7 + 3] = b'k';
        desk.write("crash", &crash);
        let kept = [1, 7].map(|jobs| {
            let words = format!("min crash --json --exec command --jobs {jobs} -o {number}-{jobs}");
            let said = desk.call(&format!("{words} -- ./two_bugs")).exits(0);
            let record = said.json();
            let folder = desk.file(&format!("{number}-{jobs}.slips"));
            let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let files: Vec<_> = files.map(|file| file.path()).collect();
            for file in &files {
                let told = said.err.contains(file.to_str().unwrap());
                let named = |slip: &Value| {
                    let keys = [&slip["major"], &slip["minor"]].map(|key| key.as_str().unwrap());
                    let name = file.file_name().unwrap().to_str().unwrap();
                    name.starts_with(&keys.join("-"))
                };
                let listed = record["slips"].as_array().unwrap().iter().any(named);
                assert!(told || listed, "{file:?}: {said:?}");
            }
            (record, files.len())
        });
        for key in ["major", "minor"] {
            let of = |record: &Value| -> Vec<Value> {
                let slips = record["slips"].as_array().unwrap().iter();
                slips.map(|slip| slip[key].clone()).collect()
            };
            assert_eq!(of(&kept[0].0), of(&kept[1].0));
        }
        assert!(kept[1].1 >= kept[0].1);
    }
    desk.is_left_clean();
}

#[test]
fn tests_run_by_several_workers_have_the_log_of_one() {
    let desk = Desk::new();
    desk.write("in", "int main() { return 0 ? 1 : 2; }");
    // Each run leaves a file in its directory: none is shared.
    let lines = "[ \"$(ls)\" = in ] || exit 0; touch seen; grep -q 'r.*?.*:' in";
    desk.script("test.sh", lines);
    let logs = [1, 2, 5].map(|jobs| {
        let words = format!("min in --json --test test.sh --jobs {jobs} -o by-{jobs}");
        let record = desk.call(&words).exits(0).json();
        assert_eq!(record["claim"], "1-minimal");
        assert_eq!(desk.read(&format!("by-{jobs}")), b"r?:");
        lasting(&desk.read(&format!("by-{jobs}.log.jsonl")))
    });
    assert_eq!(logs[0], logs[1]);
    assert_eq!(logs[0], logs[2]);
    desk.is_left_clean();
}

#[test]
fn turns_of_calls_by_several_workers_have_the_logs_of_one() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/options.c", "options");
    desk.write("crash", "some ! input");
    let call = "min crash --json --args --env-vars --env MODE=deep --env FOO=bar";
    let program = "-- ./options -v -x --some-depth=99 -z more @@";
    let by = [1, 3].map(|jobs| {
        let words = format!("{call} --jobs {jobs} -o by-{jobs} {program}");
        let record = desk.call(&words).exits(0).json();
        let phases = record["phases"].as_array().unwrap().iter();
        let logs = phases.map(|phase| {
            let log = std::fs::read(phase["log"].as_str().unwrap()).unwrap();
            let mut lines = lasting(&log);
            // Where inputs of turns are kept is named after the result.
            lines[0].as_object_mut().unwrap().remove("input");
            lines
        });
        (logs.collect::<Vec<_>>(), desk.read(&format!("by-{jobs}")))
    });
    assert_eq!(by[0], by[1]);
    desk.is_left_clean();
}

/// A test that fails at once where another of its kind runs, and accepts every input with an `a`.
const LOCKING: &str = "exec 9>>LOCK\n\
    flock --nonblock 9 || exit 1\n\
    sleep 0.05\n\
    grep -q a \"$1\"";

#[test]
fn tests_that_disturb_each_other_are_named_as_what_makes_the_result_flaky() {
    let desk = Desk::new();
    let lock = desk.file("lock");
    desk.script(
        "locking.sh",
        &LOCKING.replace("LOCK", lock.to_str().unwrap()),
    );
    desk.write("in", "some text with an a in it, and more text");
    let words = |jobs| format!("min in -o by-{jobs} --jobs {jobs} --test ./locking.sh");
    let alone = desk.call(&words(1)).exits(0);
    assert!(!alone.err.contains("--jobs"), "{}", alone.err);
    assert_eq!(desk.read("by-1"), b"a");
    let together = desk.call(&words(4)).exits(0);
    assert!(together.err.contains("--jobs 1"), "{}", together.err);
}

/// A program that crashes, unless another one of its kind runs.
const CRASHING_ALONE: &str = "exec 9>>LOCK\n\
    flock --nonblock 9 || exit 0\n\
    sleep 0.2\n\
    case $(cat) in *1) kill -ABRT $$;; esac\n\
    kill -SEGV $$";

/// A desk with the program `alone`, which crashes unless another one of its kind runs.
fn desk_of_lonely() -> Desk {
    let desk = Desk::new();
    let lock = desk.write("lock", "");
    std::fs::set_permissions(&lock, Permissions::from_mode(0o666)).unwrap();
    let lines = CRASHING_ALONE.replace("LOCK", lock.to_str().unwrap());
    desk.script("alone", &lines);
    std::fs::create_dir(desk.file("in")).unwrap();
    for (number, signal) in [(0, 11), (1, 6)] {
        let file = format!("in/id:00000{number},sig:{signal}");
        desk.write(&file, number.to_string());
    }
    desk
}

#[test]
fn files_that_crash_only_alone_are_said_to_when_several_are_triaged_at_a_time() {
    let desk = desk_of_lonely();
    let call = |jobs| {
        desk.call(&format!(
            "triage in --json --exec command --jobs {jobs} -- ./alone"
        ))
    };
    let alone = call(1).exits(1);
    assert!(!alone.err.contains("--jobs"), "{}", alone.err);
    let groups = |said: &Said| said.json()["groups"].as_array().map(Vec::len);
    assert_eq!(groups(&alone), Some(2));
    let together = call(2).exits(1);
    let is_said = together.err.contains("--jobs 1");
    assert!(is_said || groups(&together) == Some(2), "{}", together.err);
}

#[test]
fn what_fails_when_it_is_checked_alone_is_not_called_fixed() {
    let desk = desk_of_lonely();
    let triage = "triage in -o out --exec command --jobs 1 -- ./alone";
    desk.call(triage).exits(1);
    let check = desk.call("check out --json --jobs 2").exits(1).json();
    assert_eq!(check["same"], 2, "{check}");
}

/// A program that crashes, unless another one of its kind has run at the same time.
const DISTURBED: &str = "mkdir RUNS/$$; sleep 0.1\n\
    set -- RUNS/*; rmdir RUNS/$$\n\
    test $# -gt 1 || kill -SEGV $$";

#[test]
fn an_input_that_does_not_fail_beside_others_is_said_to_fail_alone() {
    let desk = Desk::new();
    let runs = desk.file("runs");
    std::fs::create_dir(&runs).unwrap();
    std::fs::set_permissions(&runs, Permissions::from_mode(0o777)).unwrap();
    desk.script(
        "disturbed",
        &DISTURBED.replace("RUNS", runs.to_str().unwrap()),
    );
    desk.write("in", "input");
    let together = desk.call("min in --exec command --jobs 4 --budget-tests 5 -- ./disturbed");
    let is_said = together.err.contains("--jobs 1");
    assert!(is_said || together.code == Some(0), "{}", together.err);
}
