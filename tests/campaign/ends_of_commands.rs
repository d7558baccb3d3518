//! No command waits for a run when its call ends: what is under way is abandoned, counts as nothing,
//! and is made again by the next call, which comes to the result of a call that nobody has stopped.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ddfuzz::{Desk, Said};
use crate::outcome::{assert_same, files, log, outcome};

/// A program that dies of a `k`. While there is a file `tmp/hold`, it sleeps for ever on inputs that
/// begin with an `h`, and on those of fewer than 40 bytes that begin with a `k`, or, if built with
/// ANY, on all but the empty one. It says so by the file `tmp/begun`.
const STUCK: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
#ifndef ANY
#define ANY 0
#endif
int main(void)
{
    static char text[1 << 16];
    long length = 0, more;
    while ((more = read(0, text + length, sizeof text - length)) > 0) length += more;
    int waits = text[0] == 'h' || (text[0] == 'k' && length < 40) || ANY;
    if (length > 0 && waits && access(DESK "/tmp/hold", F_OK) == 0) {
        close(open(DESK "/tmp/begun", O_CREAT | O_WRONLY, 0666));
        for (;;) pause();
    }
    if (text[0] == 'k') raise(SIGSEGV);
    return 0;
}
"#;

/// A call that takes so long has waited for a run, whose limits are out of reach.
const STALLED: Duration = Duration::from_secs(120);

/// A desk with the program `stuck`, a crash file, a folder of inputs, one of which the program may
/// wait on, and an interestingness test.
fn desk() -> Desk {
    let desk = Desk::new();
    compile(&desk, "stuck", 0);
    std::fs::create_dir(desk.file("in")).unwrap();
    let crash = format!("k{}", "x".repeat(60));
    desk.write("crash", &crash);
    desk.write("in/0", &crash);
    desk.write("in/1", "held up");
    desk.write("in/2", "sound");
    desk.write("in/3", format!("{crash}x"));
    desk.write("in/4", "well");
    desk.script("test.sh", "$DESK/stuck <$1; [ $? -gt 128 ]");
    desk
}

fn compile(desk: &Desk, name: &str, any: u8) {
    let source = desk.write("stuck.c", STUCK);
    let mut compiler = Command::new("cc");
    let place = format!("-DDESK=\"{}\"", desk.path().display());
    let built = compiler.args(["-O1", &place, &format!("-DANY={any}")]);
    let built = built.arg(source).arg("-o").arg(desk.file(name));
    assert!(built.status().expect("the compiler runs").success());
}

/// Lets the program wait for ever from now on.
fn hold(desk: &Desk) {
    desk.write("tmp/hold", "");
}

fn release(desk: &Desk) {
    for name in ["tmp/hold", "tmp/begun"] {
        std::fs::remove_file(desk.file(name)).unwrap();
    }
}

/// Starts ddfuzz with these words, and gives what it said when it has ended; with `signal`, sends it
/// SIGTERM as soon as a run waits for ever.
fn ended(desk: &Desk, words: &str, signal: bool) -> Said {
    let _ = std::fs::remove_file(desk.file("tmp/begun"));
    let [out, err] = ["said", "told"].map(|name| File::create(desk.file(name)).unwrap());
    let mut ddfuzz = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    let ddfuzz = ddfuzz.args(words.split_whitespace()).stdin(Stdio::null());
    let mut child = ddfuzz.stdout(out).stderr(err).spawn().unwrap();
    let began = Instant::now();
    let mut sent = !signal;
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if !sent && desk.file("tmp/begun").exists() {
            // SAFETY: a plain system call; the child is not reaped, so that its id is its own.
            unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
            sent = true;
        }
        if began.elapsed() > STALLED {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{words}: waits for a run");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let [out, err] = ["said", "told"].map(|name| String::from_utf8(desk.read(name)).unwrap());
    for word in ["panicked", "abandon", "internal"] {
        assert!(
            !err.contains(word) && !out.contains(word),
            "{words}: {out}{err}"
        );
    }
    desk.is_left_clean();
    Said { code, out, err }
}

fn interrupted(desk: &Desk, words: &str) -> Said {
    ended(desk, words, true).exits(130)
}

/// What ddfuzz said that was to end, by the words for a time and a directory, while a run waits for
/// ever; and the directory. The time is longer where the machine is so busy that no run begins.
fn ended_in_time(desk: &Desk, words: impl Fn(&str, &str) -> String) -> (Said, String) {
    for time in ["500ms", "2s", "8s", "32s"] {
        let out = format!("out-{time}");
        let said = ended(desk, &words(time, &out), false);
        if desk.file("tmp/begun").exists() {
            return (said, out);
        }
    }
    panic!("no run begins");
}

/// No file of `out` is of a hang, or of a crash that did not come again.
#[track_caller]
fn has_no_verdict(desk: &Desk, out: &str) {
    for path in files(&desk.file(out)) {
        let name = path.strip_prefix(desk.path()).unwrap().to_string_lossy();
        let is_of = |kind: &str| name.contains(&format!("/{kind}/"));
        assert!(!is_of("hangs") && !is_of("flaky"), "{name}");
    }
    let journal = std::fs::read_to_string(desk.file(out).join("triage.jsonl"));
    let journal = journal.unwrap_or_default();
    assert!(!journal.contains("timeout"), "{journal}");
    let hash = blake3::hash(b"held up").to_hex();
    assert!(!journal.contains(hash.as_str()), "{journal}");
}

/// What an output directory came to, but for its journal, whose order depends on the workers, and
/// the counts of its calls.
fn result_of(desk: &Desk, out: &str) -> BTreeMap<String, String> {
    let mut all = outcome(&desk.file(out));
    all.remove("triage.jsonl");
    all.remove("state.json");
    all.retain(|name, _| !name.starts_with("studies/"));
    all
}

#[test]
fn a_signal_ends_a_watch() {
    let desk = desk();
    for way in ["command", "inject"] {
        let words = |out: &str| {
            let limits = "--timeout 9000 --minimize off";
            format!("watch in --once --exec {way} {limits} -o {out} -- ./stuck")
        };
        let calm = format!("calm-{way}");
        desk.call(&words(&calm)).exits(1);
        hold(&desk);
        interrupted(&desk, &words(way));
        has_no_verdict(&desk, way);
        release(&desk);
        desk.call(&words(&format!("{way} --resume"))).exits(1);
        assert_same(&result_of(&desk, way), &result_of(&desk, &calm), way);
    }
}

#[test]
fn the_time_ends_a_watch() {
    let desk = desk();
    hold(&desk);
    for option in ["--time", "--total-time"] {
        let (said, out) = ended_in_time(&desk, |time, out| {
            let limits = "--exec inject --timeout 9000 --minimize off";
            format!("watch in {option} {time} {limits} --json -o {out}{option} -- ./stuck")
        });
        let result = said.json();
        assert_eq!(result["ended_by"], "time", "{result}");
        assert_eq!(result["groups"].as_array().unwrap().len(), 1, "{result}");
        assert!(said.err.contains("not examined"), "{said:?}");
        assert_eq!(said.code, Some(1), "{said:?}");
        has_no_verdict(&desk, &format!("{out}{option}"));
    }
}

#[test]
fn results_that_wait_for_an_abandoned_run_count() {
    let desk = desk();
    hold(&desk);
    let words = "--jobs 2 --exec inject --timeout 9000 --minimize off --json";
    for time in ["500ms", "2s", "8s", "32s"] {
        let call = format!("watch in {words} --time {time} -o out-{time} -- ./stuck");
        let result = ended(&desk, &call, false).json();
        if result["runs"] == 4 {
            assert_eq!(result["groups"][0]["runs_seen"], 2, "{result}");
            let journal = String::from_utf8(desk.read(&format!("out-{time}/triage.jsonl")));
            assert_eq!(journal.unwrap().lines().count(), 4);
            return;
        }
    }
    panic!("not all other files are run in time");
}

#[test]
fn a_new_group_ends_a_watch_that_waits_for_it() {
    let desk = desk();
    hold(&desk);
    let words = "--until first --jobs 2 --exec inject --timeout 9000 --minimize off --json";
    for out in ["1", "2", "3", "4", "5"] {
        let call = format!("watch in {words} -o {out} -- ./stuck");
        let result = ended(&desk, &call, false).exits(1).json();
        assert_eq!(result["ended_by"], "until", "{result}");
        has_no_verdict(&desk, out);
        if desk.file("tmp/begun").exists() {
            return;
        }
    }
    panic!("no run was under way");
}

#[test]
fn a_time_that_ends_the_start_of_a_watch_is_told() {
    let desk = Desk::new();
    desk.script("never", "touch $DESK/tmp/begun; exec sleep 100000");
    std::fs::create_dir(desk.file("in")).unwrap();
    let words = "watch in --total-time 1s --exec command --timeout 9000 -o out -- ./never";
    let said = ended(&desk, words, false).exits(3);
    assert!(said.err.contains("the time was over"), "{said:?}");
}

#[test]
fn a_signal_ends_a_triage() {
    let desk = desk();
    let words = "triage in --exec inject --timeout 9000 --jobs 2 --json";
    let calm = desk.call(&format!("{words} -o calm -- ./stuck")).exits(1);
    hold(&desk);
    for out in ["", "-o out"] {
        let said = interrupted(&desk, &format!("{words} {out} -- ./stuck")).json();
        assert_eq!(said["interrupted"], true, "{said}");
        for input in said["inputs"].as_array().unwrap() {
            assert_ne!(input["ended"], "timeout", "{said}");
        }
    }
    has_no_verdict(&desk, "out");
    release(&desk);
    let again = desk.call(&format!("{words} -o out --resume -- ./stuck"));
    assert_eq!(again.exits(1).json(), calm.json());
    let stored = |out: &str| result_of(&desk, out).into_keys().collect::<Vec<_>>();
    assert_eq!(stored("out"), stored("calm"));
}

/// Fails unless `min` with these words, of which `OUT` stands for the result, comes to the same
/// result and log, whether or not it is stopped while it waits for a run.
fn min_ends_and_goes_on(desk: &Desk, words: &str) {
    let words_of = |out: &str| words.replace("OUT", out);
    desk.call(&words_of("calm")).exits(0);
    hold(desk);
    interrupted(desk, &words_of("out"));
    let text = std::fs::read_to_string(desk.file("out.log.jsonl")).unwrap_or_default();
    assert!(!text.contains("timeout"), "{text}");
    release(desk);
    desk.call(&format!("{} ", words_of("out --resume")))
        .exits(0);
    assert_eq!(desk.read("out"), desk.read("calm"), "{words}");
    let [out, calm] = ["out", "calm"].map(|name| log(&desk.file(&format!("{name}.log.jsonl"))));
    assert_eq!(out, calm, "{words}");
}

#[test]
fn a_signal_ends_a_minimization() {
    for way in ["command", "inject"] {
        for jobs in [1, 2] {
            let options = format!("--exec {way} --timeout 9000 --jobs {jobs}");
            min_ends_and_goes_on(&desk(), &format!("min crash -o OUT {options} -- ./stuck"));
        }
    }
}

#[test]
fn a_signal_ends_a_minimization_by_a_test() {
    let words = "min crash --test ./test.sh --timeout 9000 --jobs 1 -o OUT";
    min_ends_and_goes_on(&desk(), words);
}

#[test]
fn a_signal_ends_a_minimization_of_the_command_line() {
    let desk = desk();
    let words = |out: &str| {
        let options = "--args --exec inject --timeout 9000 --jobs 1";
        format!("min crash {options} -o {out} -- ./stuck one two")
    };
    desk.call(&words("calm")).exits(0);
    hold(&desk);
    interrupted(&desk, &words("out"));
    release(&desk);
    desk.call(&words("out --resume")).exits(0);
    assert_eq!(desk.read("out"), desk.read("calm"));
}

#[test]
fn a_signal_ends_the_minimization_of_groups() {
    let desk = desk();
    for out in ["calm", "out"] {
        let words = format!("triage crash -o {out} --timeout 9000 -- ./stuck");
        desk.call(&words).exits(1);
    }
    desk.call("min calm --jobs 1").exits(0);
    hold(&desk);
    let said = interrupted(&desk, "min out --jobs 1 --json").json();
    assert_eq!(said["minimized"], 0, "{said}");
    has_no_verdict(&desk, "out");
    release(&desk);
    desk.call("min out --jobs 1").exits(0);
    assert_same(&result_of(&desk, "out"), &result_of(&desk, "calm"), "min");
}

#[test]
fn a_signal_ends_an_isolation() {
    let desk = desk();
    let words = |out: &str| format!("diff --empty crash --timeout 9000 -o {out} -- ./stuck");
    desk.call(&words("calm")).exits(0);
    hold(&desk);
    interrupted(&desk, &words("out"));
    release(&desk);
    desk.call(&words("out --resume")).exits(0);
    assert_eq!(desk.read("out"), desk.read("calm"));
    let [out, calm] = ["out", "calm"].map(|name| log(&desk.file(&format!("{name}.log.jsonl"))));
    assert_eq!(out, calm);
}

/// The call of a study of the utility `odd`, outside of the sandbox, in which it could not tell that
/// it waits.
fn study(desk: &Desk, options: &str, out: &str) -> String {
    let program = desk.file("odd").display().to_string();
    let options = format!("{options} --no-sandbox --no-sandbox --timeout 9000 --seed 1 --jobs 2");
    format!("revisit {program} --channel stdin {options} --json -o {out}")
}

/// The row of the only utility in the result of a study.
fn utility(result: &Value) -> &Value {
    &result["utilities"][0]
}

#[test]
fn a_signal_ends_a_study() {
    let desk = Desk::new();
    compile(&desk, "odd", 1);
    let calm = desk.call(&study(&desk, "--runs 200", "calm")).json();
    hold(&desk);
    let said = interrupted(&desk, &study(&desk, "--runs 200", "out")).json();
    assert_eq!(utility(&said)["hangs"], 0, "{said}");
    release(&desk);
    let resumed = desk
        .call(&study(&desk, "--runs 200 --resume", "out"))
        .json();
    for key in ["channels", "crashes", "hangs", "label", "runs", "slow"] {
        assert_eq!(utility(&resumed)[key], utility(&calm)[key], "{key}");
    }
    assert_same(&result_of(&desk, "out"), &result_of(&desk, "calm"), "study");
}

#[test]
fn the_time_ends_a_study() {
    let desk = Desk::new();
    compile(&desk, "odd", 1);
    hold(&desk);
    for option in ["--time", "--total-time"] {
        let (said, _) = ended_in_time(&desk, |time, out| {
            study(
                &desk,
                &format!("{option} {time}"),
                &format!("{out}{option}"),
            )
        });
        let result = said.exits(0).json();
        assert_eq!(result["ended_by"], "time", "{result}");
        assert_eq!(utility(&result)["hangs"], 0, "{result}");
        assert_eq!(utility(&result)["crashes"], 0, "{result}");
    }
}

#[test]
fn a_signal_ends_a_check() {
    let desk = desk();
    desk.call("triage crash -o out --timeout 9000 -- ./stuck")
        .exits(1);
    desk.call("min out").exits(0);
    hold(&desk);
    for jobs in [1, 2] {
        let said = interrupted(&desk, &format!("check out --jobs {jobs} --json"));
        let text = format!("{}{}", said.out, said.err);
        for verdict in ["fixed", "hang", "flaky"] {
            let of_group = format!("\"status\":\"{verdict}\"");
            assert!(!text.contains(&of_group), "{text}");
        }
    }
    release(&desk);
    desk.call("check out").exits(1);
}

#[test]
fn a_signal_ends_a_cleanup() {
    let desk = desk();
    let words = |out: &str| {
        let options = "--timeout 9000 --jobs 2 --minimize off --json";
        format!("clean in {options} -o {out} -- ./stuck")
    };
    desk.call(&words("calm")).exits(0);
    hold(&desk);
    interrupted(&desk, &words("out"));
    has_no_verdict(&desk, "out");
    release(&desk);
    desk.call(&words("out")).exits(0);
    let kept = |out: &str| {
        let all = files(&desk.file(out).join("corpus")).into_iter();
        let all: Vec<_> = all
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        all
    };
    assert!(!kept("calm").is_empty());
    assert_eq!(kept("out"), kept("calm"));
}
