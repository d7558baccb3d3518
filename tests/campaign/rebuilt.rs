//! The program is built anew, between two calls and while it is fuzzed.

use std::path::Path;

use serde_json::Value;

use crate::ddfuzz::Desk;
use crate::outcome::record;

/// A program with two bugs, or with what stands in their places.
fn build(desk: &Desk, name: &str, odd: &str, even: &str) {
    let source = format!(
        "#include <unistd.h>\nint place; volatile int *volatile nowhere;\n\
         volatile int *volatile somewhere = &place;\n\
         __attribute__((noinline)) static void odd(void) {{ {odd} }}\n\
         __attribute__((noinline)) static void even(void) {{ {even} }}\n\
         int main(void) {{ char c[64]; long n = read(0, c, sizeof c);\n\
         if (n > 2 && c[0] > 'm') {{ if (c[1] & 1) odd(); else even(); }}\n\
         return 0; }}\n"
    );
    let file = desk.write("program.c", source);
    let new = desk.file(&format!("{name}.new"));
    let mut compiler = desk.command("cc");
    let compiler = compiler.args(["-g1", "-O1", "-fno-inline"]);
    let built = compiler.arg(&file).arg("-o").arg(&new).status();
    assert!(built.expect("the compiler runs").success());
    std::fs::rename(new, desk.file(name)).unwrap();
}

const CRASH: &str = "*nowhere = 1;";
/// As many instructions, so that all else keeps its place, and with it its key.
const NO_CRASH: &str = "*somewhere = 1;";

fn builds(out: &Path) -> Vec<Value> {
    let file = record(&out.join("ddfuzz.json"));
    file["builds"].as_array().unwrap().clone()
}

/// Checks whether a minimization below this folder has begun: its log exists.
fn has_log(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    (entries.map(|entry| entry.path())).any(|path| path.ends_with("log.jsonl") || has_log(&path))
}

/// How many groups have this status.
fn with_status(result: &Value, status: Option<&str>) -> usize {
    let groups = result["groups"].as_array().unwrap().iter();
    groups
        .filter(|group| group["status"].as_str() == status)
        .count()
}

#[test]
fn a_resumed_campaign_checks_its_groups_with_the_new_build() {
    let desk = Desk::new();
    build(&desk, "program", CRASH, CRASH);
    let words = "run --json --runs 60 --max-len 2000 --seed 3 -o out";
    let first = desk.call(&format!("{words} -- ./program")).exits(1).json();
    assert_eq!(
        (with_status(&first, None), &first["rebuilt"]),
        (2, &false.into())
    );
    // The same again is no other build.
    let same = desk.call(&format!("{words} --resume -- ./program")).json();
    assert_eq!(
        (builds(&desk.file("out")).len(), &same["rebuilt"]),
        (1, &false.into())
    );
    build(&desk, "program", NO_CRASH, CRASH);
    let call = desk.call(&format!("{words} --resume -- ./program"));
    assert!(
        call.err.contains("rebuilt; checking 2 groups"),
        "{}",
        call.err
    );
    assert!(call.err.contains("1 fixed"), "{}", call.err);
    let second = call.json();
    assert_eq!(second["rebuilt"], true);
    assert_eq!(with_status(&second, Some("fixed")), 1, "{second}");
    assert_eq!(with_status(&second, Some("same")), 1, "{second}");
    let shown = desk.call("show out").exits(0).out;
    assert!(shown.contains("1-minimal, fixed"), "{shown}");
    let recorded = builds(&desk.file("out"));
    assert_eq!(recorded.len(), 2);
    assert_ne!(recorded[0]["blake3"], recorded[1]["blake3"]);
    // What comes back is not fixed any more.
    build(&desk, "program", CRASH, CRASH);
    let third = desk.call(&format!("{words} --resume -- ./program")).json();
    assert_eq!(with_status(&third, Some("fixed")), 0, "{third}");
    desk.is_left_clean();
}

#[test]
fn a_bug_that_a_new_build_gives_another_key_is_no_new_one() {
    let desk = Desk::new();
    let words = "run --json --runs 60 --max-len 2000 --seed 3 -o out --resume -- ./program";
    build(&desk, "program", CRASH, NO_CRASH);
    desk.call(&words.replace("--resume ", "")).exits(1);
    // More instructions before the crash: it is at another place of the program, and in another
    // line.
    let longer = format!("*somewhere = 2;\n{CRASH}");
    build(&desk, "program", &longer, NO_CRASH);
    let moved = desk.call(words).exits(4).json();
    assert_eq!(moved["groups"].as_array().unwrap().len(), 2, "{moved}");
    assert_eq!(with_status(&moved, Some("same")), 1, "{moved}");
    assert_eq!(moved["new_groups"], 0, "{moved}");
    let groups = || moved["groups"].as_array().unwrap().iter();
    let (old, new) = (
        groups().find(|it| it["status"] == "same").unwrap(),
        groups().find(|it| it["status"].is_null()).unwrap(),
    );
    assert_eq!(new["known_as"], old["major"], "{moved}");
    assert_eq!(old["frame_now"], new["frame"], "{moved}");
    assert_ne!(old["frame"], new["frame"], "{moved}");
    let place = |it: &serde_json::Value, name: &str| it[name].as_str().unwrap().to_owned();
    let shown = desk.call(&format!("show out {}", place(old, "major"))).out;
    let (now, before) = (place(old, "frame_now"), place(old, "frame"));
    assert!(shown.contains(&format!("  where   {now}\n")), "{shown}");
    assert!(
        shown.contains(&format!("with an earlier build: {before}\n")),
        "{shown}"
    );
    let line = now.rsplit(':').next().unwrap();
    let marked = shown.lines().find(|line| line.contains("          > "));
    assert!(marked.unwrap().contains(&format!("> {line} | ")), "{shown}");
    let listed = desk.call("show out").out;
    assert_eq!(listed.matches(&now).count(), 2, "{listed}");
    assert!(
        listed.contains(&format!("was {}", place(old, "major"))),
        "{listed}"
    );
    // The other bug is new.
    build(&desk, "program", &longer, CRASH);
    let other = desk.call(words).exits(1).json();
    assert_eq!(other["new_groups"], 1, "{other}");
}

#[test]
fn founders_that_do_not_crash_any_more_wait_until_they_do() {
    let desk = Desk::new();
    build(&desk, "program", CRASH, CRASH);
    let words = "run --json --max-len 2000 --seed 3 -o out --runs";
    desk.call(&format!("{words} 60 --minimize off -- ./program"))
        .exits(1);
    build(&desk, "program", NO_CRASH, CRASH);
    let resume = format!("{words} 1 --resume -- ./program");
    let result = desk.call(&resume).json();
    assert_eq!(with_status(&result, Some("fixed")), 1, "{result}");
    for group in result["groups"].as_array().unwrap() {
        let fixed = group["status"] == "fixed";
        assert_eq!(group["claim"].is_null(), fixed, "{group}");
    }
    build(&desk, "program", CRASH, CRASH);
    let result = desk.call(&resume).json();
    for group in result["groups"].as_array().unwrap() {
        assert_eq!(group["claim"], "1-minimal", "{group}");
    }
}

#[test]
fn a_program_that_is_built_anew_while_it_is_fuzzed_is_noticed() {
    let desk = Desk::new();
    build(&desk, "program", CRASH, NO_CRASH);
    let words = "run --json --max-len 2000 --seed 3 --jobs 2 -o out --time 60s -- ./program";
    let words = words.replace(" -- ", " --until 2_groups -- ");
    let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    let words = words.split(' ').map(|word| word.replace('_', " "));
    let child = command
        .args(words)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..3000 {
        if desk.file("out/crashes").is_dir() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    build(&desk, "program", NO_CRASH, CRASH);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    let result: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(result["ended_by"], "until", "{said}");
    assert_eq!(result["rebuilt"], true, "{said}");
    assert_eq!(with_status(&result, Some("fixed")), 1, "{result}");
    // The other bug was found by the new build, which nothing was known of before.
    assert_eq!(with_status(&result, None), 1, "{result}");
    assert!(said.contains("rebuilt"), "{said}");
    desk.is_left_clean();
}

#[test]
fn a_program_that_is_missing_when_the_time_ends_is_a_failure() {
    let desk = Desk::new();
    build(&desk, "program", NO_CRASH, NO_CRASH);
    // The first run without the program tells that it is missing.
    let words = "run --json --exec command --generator classic --total-time 10s --time 10s -o out";
    let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    let child = command
        .args(words.split(' ').chain(["--", "./program"]))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let file = desk.file("out/ddfuzz.json");
    for _ in 0..3000 {
        // From then on it is watched.
        if record(&file)["builds"][0].is_object() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::fs::remove_file(desk.file("program")).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(said.contains("is missing: waiting"), "{said}");
    let result: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(result["error"]["kind"], "program-missing", "{result}");
    desk.is_left_clean();
}

#[test]
fn bugs_that_are_fixed_while_they_are_minimized_are_not_flaky() {
    let desk = Desk::new();
    let slowly = |bug: &str| format!("usleep(50000); {bug}");
    let (crash, no_crash) = (slowly(CRASH), slowly(NO_CRASH));
    for (number, when) in ["inline", "worker", "after"].iter().enumerate() {
        build(&desk, "program", &crash, &crash);
        build(&desk, "fixed", &no_crash, &no_crash);
        let words = "run --json --jobs 1 --runs 60 --max-len 2000 --seed 3 --minimize";
        let words = format!("{words} {when} -o {number} -- ./program");
        let child = desk
            .command(env!("CARGO_BIN_EXE_ddfuzz"))
            .args(words.split(' '))
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        for _ in 0..3000 {
            if has_log(&desk.file(&number.to_string())) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        std::fs::rename(desk.file("fixed"), desk.file("program")).unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        let result: Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(result["flaky"], 0, "{when}: {result} {said}");
        assert_eq!(result["rebuilt"], true, "{when}: {result} {said}");
        let fixed = with_status(&result, Some("fixed"));
        let groups = result["groups"].as_array().unwrap().len();
        assert!(fixed > 0 && fixed == groups, "{when}: {result} {said}");
    }
    desk.is_left_clean();
}

#[test]
fn the_stage_checks_the_groups_of_its_directory_with_the_new_build() {
    use ddfuzz::campaign::{CrashSink, GroupRegistry, Report};
    use ddfuzz::exec::{Program, Target, Way};
    use ddfuzz::store::Kind;
    use ddfuzz::triage::{Triager, Verdict};

    let desk = Desk::new();
    build(&desk, "program", CRASH, CRASH);
    let (target, out) = (
        Target::new(Program::Path(desk.file("program"))),
        desk.file("out"),
    );
    let open = || GroupRegistry::open(&out, &target, Way::Command).unwrap();
    let crash = |input: &[u8]| {
        let mut triager = Triager::of_target(&target, Way::Command).unwrap();
        match triager.examine(input).unwrap() {
            Verdict::Crash(crash) => *crash,
            Verdict::Flaky { .. } => panic!("it does not crash"),
        }
    };
    let (odd, even) = (crash(b"zaz"), crash(b"zbz"));
    let mut registry = open();
    for (crash, input) in [(&odd, b"zaz"), (&even, b"zbz")] {
        let report = Report {
            kind: Kind::Crash,
            crash,
            input,
            run: 7,
            name: "7",
        };
        assert!(registry.submit(&report).unwrap().is_some());
    }
    drop(registry);
    // The same build knows them, and so does one in which only one of them is fixed.
    assert_eq!(open().known().unwrap().len(), 2);
    build(&desk, "program", NO_CRASH, CRASH);
    for _ in 0..2 {
        let known = open().known().unwrap();
        let known: Vec<_> = known.iter().map(|known| known.major).collect();
        assert_eq!(known, [even.keys.major]);
    }
    let builds = builds(&out);
    let status = &builds.last().unwrap()["groups"]["crash"];
    assert_eq!(status[odd.keys.major.short()], "fixed", "{builds:?}");
    assert_eq!(status[even.keys.major.short()], "same", "{builds:?}");
}

#[test]
fn after_an_incomplete_fix_the_input_that_still_fails_is_shown() {
    let desk = Desk::new();
    let program = |least: u32| build_that_needs(&desk, least);
    let shown = || shown(&desk).0;
    program(1);
    desk.write("short", "z and more");
    desk.write("long", "z and more, and much more");
    desk.call("triage short -o out --minimize -q -- ./program")
        .exits(1);
    assert_eq!(shown(), b"z");
    // What is shown is no longer a crash, but longer inputs are.
    program(20);
    desk.call("check out -- ./program").exits(0);
    desk.call("triage long -o out --minimize -q -- ./program")
        .exits(1);
    assert_eq!(shown().len(), 20);
    // A build with which all of them fail changes nothing.
    program(15);
    desk.call("triage long -o out --minimize -q -- ./program");
    assert_eq!(shown().len(), 20);
    // The small result that is no longer a crash keeps no smaller input from being minimized.
    desk.write("middle", "zQ234567890");
    desk.call("triage middle -o out --minimize -q -- ./program");
    assert_eq!(shown().len(), 3);
}

/// A program that crashes by inputs of `least` bytes and more that begin with z, and by those of
/// three bytes and more that begin with zQ.
fn build_that_needs(desk: &Desk, least: u32) {
    let source = format!(
        "#include <unistd.h>\nvolatile int *volatile nowhere; volatile int least = {least};\n\
         int main(void) {{ char c[64]; long n = read(0, c, sizeof c);\n\
         if ((n >= least && c[0] == 'z') || (n >= 3 && c[0] == 'z' && c[1] == 'Q')) *nowhere = 1;\n\
         return 0; }}\n"
    );
    let file = desk.write("program.c", source);
    desk.compile(file.to_str().unwrap(), "program.new");
    std::fs::rename(desk.file("program.new"), desk.file("program")).unwrap();
}

/// The reproducer that is shown of the only group, and what is claimed of it.
fn shown(desk: &Desk) -> (Vec<u8>, Value) {
    let shown = desk.call("show out --json").exits(0).json();
    let groups = shown["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{shown}");
    let file = groups[0]["file"].as_str().unwrap();
    (std::fs::read(file).unwrap(), groups[0]["claim"].clone())
}

#[test]
fn a_result_that_an_incomplete_fix_has_fixed_is_minimized_again() {
    let desk = Desk::new();
    build_that_needs(&desk, 1);
    let input = desk.write("middle", "zQ234567890");
    desk.call("triage middle -o out --minimize -q -- ./program")
        .exits(1);
    assert_eq!(shown(&desk), (b"z".to_vec(), "1-minimal".into()));
    // The result passes now, and the input still crashes.
    build_that_needs(&desk, 50);
    let said = desk.call("run -o out --runs 1 --seed 3 --minimize off -- ./program");
    assert!(said.err.contains("1 passing result"), "{said:?}");
    let original = std::fs::read(input).unwrap();
    assert_eq!(shown(&desk), (original, Value::Null));
    let said = desk.call("min out -- ./program").exits(0);
    assert!(said.err.contains("11 → 3 bytes"), "{said:?}");
    let (bytes, claim) = shown(&desk);
    assert!(bytes.starts_with(b"zQ") && bytes.len() == 3, "{bytes:?}");
    assert_eq!(claim, "1-minimal");
    let said = desk.call("min out -- ./program").exits(0);
    assert!(said.out.contains("nothing to minimize"), "{said:?}");
    // When the fix is undone, the smaller result of then is found again.
    build_that_needs(&desk, 1);
    desk.call("min out -- ./program").exits(0);
    assert_eq!(shown(&desk), (b"z".to_vec(), "1-minimal".into()));
    desk.is_left_clean();
}

#[test]
fn a_program_that_does_not_read_its_input_any_more_shows_no_fix() {
    for (program, read) in [("./program", "read x"), ("./program @@", "read x < \"$1\"")] {
        let desk = Desk::new();
        let checked = |code| {
            let result = desk.call(&format!("check out --json -- {program}"));
            result.exits(code).json()["groups"][0].clone()
        };
        let crash = format!("{read}; case $x in *z*) kill -SEGV $$;; esac");
        desk.script("program", &crash);
        desk.write("in", "abcz");
        desk.call(&format!("min in -o out/ -- {program}")).exits(0);
        for (text, why) in [
            ("exec ./no-such-program", "exit 127"),
            (
                "echo no configuration >&2; exit 1",
                "reads nothing of its input",
            ),
        ] {
            desk.script("program", text);
            let group = checked(1);
            assert_eq!(group["status"], "cannot tell", "{program}: {group}");
            assert!(group["why"].as_str().unwrap().contains(why), "{group}");
        }
        desk.script("program", read);
        let group = checked(0);
        assert_eq!(group["status"], "fixed", "{program}: {group}");
    }
}
