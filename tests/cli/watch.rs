//! `ddfuzz watch` beside fuzzers that run.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ddfuzz::{Desk, Said};
use crate::needs;

/// Notes each run, takes a while, and dies of the letter k.
const SLOW: &str = "x=$(cat); [ -n \"$x\" ] && echo $x >>$DESK/tmp/runs; sleep 0.02; \
                    case $x in k*) kill -SEGV $$;; esac; exit 0";
const FILES: usize = 40;

/// A process that somebody else has started, with all its children; it dies with this.
struct Fuzzer(Child);

impl Fuzzer {
    fn start(command: &mut Command) -> Fuzzer {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let command = command.stderr(Stdio::null()).process_group(0);
        Fuzzer(command.spawn().unwrap())
    }
}

impl Drop for Fuzzer {
    fn drop(&mut self) {
        // Asked first: afl-fuzz removes its shared memory, which nobody else does.
        signal(pid_of(&self.0), libc::SIGTERM);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(10) && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(-pid_of(&self.0), libc::SIGKILL);
        let _ = self.0.wait();
    }
}

fn pid_of(child: &Child) -> i32 {
    i32::try_from(child.id()).unwrap()
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: a signal to a child of ours that has not been waited for, or to its group.
    unsafe { libc::kill(pid, signal) };
}

pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(100), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn watch(desk: &Desk, words: &str, program: &str) -> Said {
    desk.call_with(&format!("watch {words}"), &["--", program].map(OsStr::new))
}

fn journal(desk: &Desk) -> Vec<Value> {
    let text = std::fs::read_to_string(desk.file("out/triage.jsonl")).unwrap_or_default();
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Forty files, of which half crash.
fn desk_of_files() -> Desk {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    for index in 0..FILES {
        let letter = if index % 2 == 0 { "k" } else { "h" };
        desk.write(&format!("in/{index:02}"), format!("{letter}{index}"));
    }
    desk.script("slow", SLOW);
    desk
}

#[test]
fn files_that_a_process_drops_in_pieces_are_minimized_while_it_runs() {
    let desk = Desk::new();
    let script = "mkdir drop; printf harmless >drop/1; sleep 0.1; for i in 1 2 3 4 5; do \
                  printf xxxx >>drop/2; sleep 0.05; done; printf t >>drop/2; \
                  printf zzzt >drop/tmp; mv drop/tmp drop/3; sleep 1000";
    let _fuzzer = Fuzzer::start(desk.command("sh").args(["-c", script]));
    let said = desk.call("watch drop --target crtplot --until first --json");
    let result = said.exits(1).json();
    assert_eq!(result["ended_by"], "until");
    let [group] = &result["groups"].as_array().unwrap()[..] else {
        panic!("one group: {result}");
    };
    assert_eq!(group["claim"], "1-minimal");
    assert_eq!(
        std::fs::read(group["file"].as_str().unwrap()).unwrap(),
        b"t"
    );
    let script = Path::new(group["file"].as_str().unwrap()).with_file_name("reproduce.sh");
    let status = Command::new(script).output().unwrap().status;
    assert_eq!(status.code(), Some(128 + libc::SIGSEGV));
}

#[test]
fn after_a_kill_nothing_is_run_again_that_was_done() {
    let desk = desk_of_files();
    let words = "in -o out --once --exec command --minimize off";
    let mut child = desk.start(&format!("watch {words} -- ./slow"));
    wait_for("it does nothing", || journal(&desk).len() >= 6);
    child.kill().unwrap();
    child.wait().unwrap();
    desk.is_left_clean();
    let done = journal(&desk);
    assert!(done.len() < FILES);
    std::fs::remove_file(desk.file("tmp/runs")).unwrap();
    let resumed = watch(&desk, &format!("{words} --resume --json"), "./slow");
    let result = resumed.exits(1).json();
    let runs = String::from_utf8(desk.read("tmp/runs")).unwrap();
    for text in runs.lines() {
        let hash = blake3::hash(text.as_bytes()).to_hex();
        let again = done.iter().any(|line| line["input"] == hash.as_str());
        assert!(!again, "{text} is run again: {runs}");
    }
    assert_eq!(result["resumed"], true);
    assert_eq!(result["groups"][0]["runs_seen"], FILES as u64 / 2);
    assert_eq!(result["new_groups"], 1);
    // And a third call has nothing to run at all.
    std::fs::remove_file(desk.file("tmp/runs")).unwrap();
    let third = watch(&desk, &format!("{words} --resume --json"), "./slow");
    assert_eq!(
        third.exits(0).json()["groups"][0]["runs_seen"],
        FILES as u64 / 2
    );
    assert!(!desk.file("tmp/runs").exists());
}

/// The log of the one minimization.
fn log_of(desk: &Desk) -> Vec<u8> {
    let mut folders = vec![desk.file("out/crashes")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_name() == "log.jsonl" {
                return std::fs::read(entry.path()).unwrap();
            }
            folders.push(entry.path());
        }
    }
    Vec::new()
}

fn lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn after_a_kill_a_minimization_goes_on_where_it_was() {
    let desk = Desk::new();
    desk.script("slow", SLOW);
    std::fs::create_dir(desk.file("in")).unwrap();
    desk.write("in/crash", "k and more of what is not needed for it at all");
    let words = "in -o out --exec command --search ddmin";
    let mut child = desk.start(&format!("watch {words} -- ./slow"));
    wait_for("it does not minimize", || lines(&log_of(&desk)) >= 8);
    child.kill().unwrap();
    child.wait().unwrap();
    desk.is_left_clean();
    let before = log_of(&desk);
    let whole = before.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let words = format!("{words} --resume --once --json");
    let result = watch(&desk, &words, "./slow").exits(1).json();
    assert_eq!(result["groups"][0]["size_after"], 1, "{result}");
    assert!(log_of(&desk).starts_with(&before[..whole]));
    // It is done, and stays so.
    let after = log_of(&desk);
    watch(&desk, &words, "./slow").exits(0);
    assert_eq!(log_of(&desk), after);
}

#[test]
fn an_interrupt_ends_with_130_and_the_state_saved() {
    // Where the tests are started by nohup, it is ignored, as it should be.
    // SAFETY: all fields of a sigaction may be zero; the call only writes it.
    let ignored = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut action);
        action.sa_sigaction == libc::SIG_IGN
    };
    let hangup = (!ignored).then_some(libc::SIGHUP);
    for number in [libc::SIGINT, libc::SIGTERM].into_iter().chain(hangup) {
        let desk = desk_of_files();
        let words = "in -o out --exec command --search ddmin";
        let mut child = desk.start(&format!("watch {words} -- ./slow"));
        wait_for("it does nothing", || journal(&desk).len() >= 3);
        // As a terminal does.
        signal(-pid_of(&child), number);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        desk.is_left_clean();
        let words = format!("{words} --resume --once --json");
        let result = watch(&desk, &words, "./slow").exits(1).json();
        let group = &result["groups"][0];
        assert_eq!(group["runs_seen"], FILES as u64 / 2);
        assert_eq!(group["size_after"], 1);
        let mut inputs: Vec<_> = journal(&desk)
            .iter()
            .map(|line| line["input"].to_string())
            .collect();
        inputs.sort();
        inputs.dedup();
        assert_eq!((inputs.len(), journal(&desk).len()), (FILES, FILES));
    }
}

#[test]
fn places_that_cannot_be_watched_are_refused_with_what_to_do() {
    let desk = Desk::new();
    let said = desk.call("watch nothing --once --target crtplot").exits(2);
    assert!(said.err.contains("without --once"), "{}", said.err);
    desk.call("run --target crtplot-fixed --runs 1 -o out")
        .exits(0);
    let said = desk.call("watch out -o out --target crtplot").exits(2);
    assert!(said.err.contains("with -o"), "{}", said.err);
    let said = desk.call("watch in").exits(2);
    assert!(said.err.contains("--target NAME"), "{}", said.err);
    let said = desk
        .call("watch in -o out --resume --target ul --time 1s")
        .exits(2);
    assert!(said.err.contains("another target"), "{}", said.err);
    let said = desk.call("watch in -o out --resume --target crtplot-fixed --time 1s");
    let said = said.exits(2);
    assert!(
        said.err.contains("continue it with `ddfuzz run --resume`"),
        "{}",
        said.err
    );
}

#[test]
fn settings_of_a_file_hold_for_it_too() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    desk.write("in/1", "t");
    desk.write(
        "ddfuzz.toml",
        "[watch]\ntarget = \"crtplot\"\nonce = true\nminimize = \"off\"\n",
    );
    let result = desk.call("watch in --json").exits(1).json();
    assert_eq!(result["new_groups"], 1);
    let said = desk.call("watch in").exits(4);
    assert!(said.out.contains("1 input in "), "{}", said.out);
    assert!(
        said.out.contains("1 crash group (none new)"),
        "{}",
        said.out
    );
}

/// A bug of two bytes, of which a seed has at least the first.
const BUG: &str = "static volatile int *volatile nowhere;\n\
    __attribute__((noinline)) static void fall(void) { *nowhere = 1; }\n\
    static void parse(const unsigned char *c, unsigned long n) {\n\
    if (n > 3 && c[0] == 'b' && c[1] == 'u') fall();\n}\n";

#[test]
fn crashes_of_afl_are_minimized_while_it_fuzzes() {
    if needs::program("afl-fuzz").is_none() || needs::program("afl-clang-fast").is_none() {
        return;
    }
    let desk = Desk::new();
    let main = "#include <unistd.h>\nint main(void) { unsigned char c[64]; \
                long n = read(0, c, sizeof c); if (n > 0) parse(c, n); return 0; }\n";
    desk.write("bugs.c", format!("{BUG}{main}"));
    let compiler = &mut desk.command("afl-clang-fast");
    let made = compiler
        .args(["-O1", "-o", "bugs", "bugs.c"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    std::fs::create_dir(desk.file("seeds")).unwrap();
    // One bit away from the bug, for AFL++ takes a minute to find two bytes.
    desk.write("seeds/1", "btseline");
    let mut afl = desk.command("afl-fuzz");
    for name in [
        "AFL_NO_UI",
        "AFL_SKIP_CPUFREQ",
        "AFL_NO_AFFINITY",
        "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES",
    ] {
        afl.env(name, "1");
    }
    afl.args("-s 1 -E 400000 -i seeds -o afl -- ./bugs".split(' '));
    let _fuzzer = Fuzzer::start(&mut afl);
    let more = ["--", "./bugs"].map(OsStr::new);
    let said = desk.call_with("watch afl --json -o out --until first --time 100s", &more);
    let result = said.exits(1).json();
    proved(&result);
    // Neither the queue nor what AFL++ writes about itself was run.
    let crashes = journal(&desk);
    assert!(
        crashes.iter().all(|line| !line["crash"].is_null()),
        "{crashes:?}"
    );
}

#[test]
fn crashes_of_libfuzzer_that_goes_on_are_minimized() {
    if needs::program("clang").is_none() {
        return;
    }
    let desk = Desk::new();
    let entry = "#include <stddef.h>\n#include <stdint.h>\n\
                 int LLVMFuzzerTestOneInput(const uint8_t *c, size_t n) \
                 { parse(c, n); return 0; }\n";
    desk.write("bugs.c", format!("{BUG}{entry}"));
    let compiler = &mut desk.command("clang");
    let made = compiler
        .args(["-O1", "-g", "-fsanitize=fuzzer", "-o", "bugs", "bugs.c"])
        .output()
        .unwrap();
    if !made.status.success() {
        needs::missing("libFuzzer", &String::from_utf8_lossy(&made.stderr));
        return;
    }
    for folder in ["corpus", "artifacts"] {
        std::fs::create_dir(desk.file(folder)).unwrap();
    }
    desk.write("corpus/1", "baseline");
    let mut fuzzer = desk.command("./bugs");
    fuzzer.args(
        "-fork=1 -ignore_crashes=1 -seed=1 -max_len=16 -max_total_time=100 \
         -artifact_prefix=artifacts/ corpus"
            .split(' '),
    );
    let _fuzzer = Fuzzer::start(&mut fuzzer);
    let more = ["--", "./bugs"].map(OsStr::new);
    let said = desk.call_with(
        "watch artifacts --json -o out --until first --time 100s",
        &more,
    );
    proved(&said.exits(1).json());
}

/// The bug has its group and its shortest input.
fn proved(result: &Value) {
    assert_eq!(result["ended_by"], "until", "{result}");
    let [group] = &result["groups"].as_array().unwrap()[..] else {
        panic!("one group: {result}");
    };
    assert_eq!(group["claim"], "1-minimal", "{group}");
    let bytes = std::fs::read(group["file"].as_str().unwrap()).unwrap();
    assert_eq!((bytes.len(), &bytes[..2]), (4, &b"bu"[..]));
}

#[test]
fn a_smaller_input_of_a_known_crash_is_kept_by_a_later_call_too() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("found")).unwrap();
    let call = |words: &str| {
        let program = "x=$(cat); case $x in k*) kill -SEGV $$;; esac";
        let words = format!("watch found --once --minimize off -o out --json{words}");
        desk.call_with(&words, &["--", "sh", "-c", program].map(OsStr::new))
    };
    desk.write("found/large", "k".repeat(500));
    call("").exits(1);
    desk.write("found/small", "kkk");
    call(" --resume");
    let sizes = desk.call("show out --json").exits(0).json();
    assert_eq!(sizes["groups"][0]["size_before"], 3, "{sizes}");
}

#[test]
fn a_flaky_group_that_fails_once_more_after_a_rebuild_is_flaky() {
    let desk = Desk::new();
    std::fs::create_dir(desk.file("in")).unwrap();
    // Each content crashes in its first run only.
    let program = |build: u32| {
        let crash = "mkdir $DESK/tmp/ran-$(cat) 2>/dev/null && kill -SEGV $$; exit 0";
        desk.script("once", &format!("# build {build}\n{crash}"))
    };
    let words = "watch in --once -o out --exec command --jobs 1 --minimize off -q";
    let watch = |more: &str, program: &Path| {
        desk.call(&format!("{words} {more} -- {}", program.display()));
    };
    desk.write("in/1", "one");
    watch("", &program(1));
    desk.write("in/2", "two");
    watch("--resume", &program(2));
    let file: Value = serde_json::from_slice(&desk.read("out/ddfuzz.json")).unwrap();
    let builds = file["builds"].as_array().unwrap();
    assert_eq!(builds.len(), 2, "{file}");
    let groups = builds[1]["groups"]["flaky"].as_object().unwrap();
    let states: Vec<&Value> = groups.values().collect();
    assert_eq!(states, ["flaky"], "{file}");
    desk.is_left_clean();
}

#[test]
fn what_could_read_nothing_does_not_end_as_if_nothing_crashed() {
    let desk = Desk::new();
    desk.write("in", "more than four bytes");
    let words = "watch in --once --max-len 4 --json -o out --target ul";
    let result = desk.call(words).exits(2).json();
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("1 path could not be read"), "{result}");
}
