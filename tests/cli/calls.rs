//! `ddfuzz min --args --env-vars`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::ddfuzz::Desk;
use crate::log_lines::without_speculative;

const CALL: &str = "min crash --json --args --env-vars --env MODE=deep --env FOO=bar";
const PROGRAM: &str = "-- ./options -v -x --some-depth=99 -z more @@";

/// A desk with the program and a crashing input.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/options.c", "options");
    desk.write("crash", "hello ! world");
    desk
}

/// The names of the logs of turns.
fn logs(desk: &Desk) -> Vec<String> {
    let names = std::fs::read_dir(desk.path()).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().into_string().unwrap());
    let mut logs: Vec<String> = names.filter(|name| name.ends_with(".log.jsonl")).collect();
    logs.sort();
    logs
}

/// Runs the script that shows the crash, in an environment of its own.
fn signal_of_script(desk: &Desk, script: &str) -> Option<i32> {
    let mut command = Command::new(desk.file(script));
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/");
    command.output().unwrap().status.code()
}

#[test]
fn input_arguments_and_variables_become_minimal_together() {
    let desk = desk();
    let record = desk.call(&format!("{CALL} {PROGRAM}")).exits(0).json();
    assert_eq!(desk.read("crash.min"), b"!");
    let program = desk.file("options");
    let program = program.to_str().unwrap();
    assert_eq!(record["args"], json!([program, "-x", "depth=9", "@@"]));
    assert_eq!(record["env"], json!([["MODE", "deep"]]));
    assert_eq!(record["claim"], "1-minimal");
    // One byte, two arguments with two and seven characters, and one variable.
    assert_eq!(record["proved"], json!({"done": 13, "of": 13}));
    assert_eq!(
        (&record["size_before"], &record["size_after"]),
        (&json!(13), &json!(1))
    );
    assert_eq!(
        signal_of_script(&desk, "crash.min.sh"),
        Some(128 + libc::SIGSEGV)
    );
    // The line is what a user pastes.
    let line = record["command"].as_str().unwrap();
    let status = Command::new("sh").arg("-c").arg(line).status().unwrap();
    assert_eq!(status.code(), Some(128 + libc::SIGSEGV), "{line}");
    assert_eq!(desk.read("crash"), b"hello ! world");
    desk.is_left_clean();
}

#[test]
fn each_turn_has_a_log_that_is_replayed_and_verified() {
    let desk = desk();
    let record = desk.call(&format!("{CALL} {PROGRAM}")).exits(0).json();
    let logs = logs(&desk);
    for name in ["args", "arg-1", "arg-2", "env", "args.2"] {
        let name = format!("crash.min.{name}.log.jsonl");
        assert!(logs.contains(&name), "{name}: {logs:?}");
    }
    assert_eq!(logs.len(), record["phases"].as_array().unwrap().len());
    for log in &logs {
        desk.call(&format!("log replay {log}")).exits(0);
        let verified = desk.call(&format!("log verify --json {log}")).exits(0);
        assert_eq!(verified.json()["holds"], true, "{log}");
        desk.call(&format!("log show {log}")).exits(0);
    }
    desk.call("log replay crash.min.arg-2.2.log.jsonl -o args")
        .exits(0);
    assert_eq!(desk.read("args"), b"-x\0depth=9\0@@\0");
    desk.call("log replay crash.min.env.log.jsonl -o env")
        .exits(0);
    assert_eq!(desk.read("env"), b"MODE=deep\0");
    // Of a program without the bug nothing of it is true.
    let said = desk.call("log verify --json crash.min.args.log.jsonl -- cat");
    assert_eq!(said.exits(1).json()["holds"], false);
    // The tests of all turns are those of the result.
    let of = |value: &Value| value["tests"]["executed"].as_u64().unwrap();
    let sum: u64 = record["phases"].as_array().unwrap().iter().map(of).sum();
    assert_eq!(of(&record), sum);
}

#[test]
fn a_call_that_crashes_alone_needs_no_input() {
    let desk = desk();
    let words = "min --json --args --env ALWAYS=1 --env MODE=deep -- ./options -v -x a depth=9 b";
    let record = desk.call(words).exits(0).json();
    let program = desk.file("options");
    assert_eq!(record["args"], json!([program, "-x", "depth=9"]));
    assert_eq!(record["env"], json!([["ALWAYS", "1"], ["MODE", "deep"]]));
    assert_eq!(record["output"], Value::Null);
    assert_eq!(record["size_after"], 0);
    assert!(!desk.file("options.min").exists());
    assert_eq!(
        signal_of_script(&desk, "options.min.sh"),
        Some(128 + libc::SIGSEGV)
    );
    for log in logs(&desk) {
        desk.call(&format!("log verify {log}")).exits(0);
    }
    // Without either there has to be an input.
    let error = desk.call("min --json -- ./options -x").exits(2).json();
    assert_eq!(error["error"]["kind"], "usage");
    // A call that does not crash is named.
    let error = desk
        .call("min --json --args -o other -- ./options -x")
        .exits(3)
        .json();
    assert_eq!(error["error"]["kind"], "not-failing");
    assert!(!desk.file("other.args.log.jsonl").exists());
}

#[test]
fn the_crash_stays_the_one_that_it_was() {
    let desk = desk();
    // Without -x, -z has another bug.
    let words = "min crash --json --args --env MODE=deep -- ./options -z -x depth=9";
    let record = desk.call(words).exits(0).json();
    let program = desk.file("options");
    assert_eq!(record["args"], json!([program, "-x", "depth=9"]));
    let slips = record["slips"].as_array().unwrap();
    assert_eq!(slips.len(), 1, "{record}");
    assert_ne!(slips[0]["major"], record["outcome"]["major"]);
    // The other bug is kept with the call that it takes.
    let file = slips[0]["file"].as_str().unwrap();
    let script = format!("{file}.sh");
    assert_eq!(slips[0]["script"], script);
    let said = Command::new(script)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    assert_eq!(said.status.code(), Some(128 + libc::SIGSEGV));
}

#[test]
fn arguments_of_any_bytes_are_minimized_by_characters() {
    let desk = desk();
    let odd = b"\xff\xfe depth=9 \xe2\x82";
    let umlauts = "äöü€depth=9ß".as_bytes();
    for (at, arg) in [odd.as_slice(), umlauts].into_iter().enumerate() {
        let words = format!("min crash --json --args --env MODE=deep -o out{at} -- ./options -x");
        let record = desk
            .call_with(&words, &[OsStr::from_bytes(arg)])
            .exits(0)
            .json();
        assert_eq!(record["args"][2], "depth=9", "{record}");
        assert_eq!(record["claim"], "1-minimal");
    }
    // What is left may be anything, too.
    desk.write("odd", "x");
    let script = "case $1 in *$2*) kill -SEGV $$ ;; esac";
    let more: [&OsStr; 4] = [
        script.as_ref(),
        "sh".as_ref(),
        OsStr::from_bytes(b"ab\xffcd"),
        OsStr::from_bytes(b"\xff"),
    ];
    let words = "min odd --json --args -- sh -c";
    let record = desk.call_with(words, &more).exits(0).json();
    assert_eq!(record["claim"], "1-minimal", "{record}");
}

#[test]
fn a_minimization_in_turns_is_resumed_wherever_it_was_cut_off() {
    let desk = desk();
    let whole = desk.call(&format!("{CALL} {PROGRAM}")).exits(0).json();
    let logs = logs(&desk);
    let order: Vec<&str> = whole["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| phase["log"].as_str().unwrap())
        .collect();
    for cut in [0, 2, 4, order.len() - 1] {
        // As if killed in the middle of this turn.
        let bytes = std::fs::read(order[cut]).unwrap();
        std::fs::write(order[cut], &bytes[..bytes.len() * 2 / 3]).unwrap();
        for later in &order[cut + 1..] {
            std::fs::remove_file(later).unwrap();
        }
        // In another terminal, with other variables.
        let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
        let words = format!("{CALL} --resume {PROGRAM}");
        command
            .args(words.split_whitespace())
            .env("WINDOWID", cut.to_string());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let again: Value = serde_json::from_slice(&output.stdout).unwrap();
        for key in ["args", "env", "claim", "size_after", "proved"] {
            assert_eq!(whole[key], again[key], "{key} after {cut}");
        }
        let [tests, whole] = [&again, &whole].map(|one| without_speculative(&one["tests"]));
        assert_eq!(tests, whole, "after {cut}");
        assert_eq!(self::logs(&desk), logs);
    }
    // Another variable on the command line is another target.
    let words = format!("{CALL} --env MORE=1 --resume {PROGRAM}");
    let error = desk.call(&words).exits(2).json();
    assert_eq!(error["error"]["kind"], "log");
}

#[test]
fn all_turns_share_one_budget() {
    let desk = desk();
    let words = format!("{CALL} --budget-tests 10 {PROGRAM}");
    let record = desk.call(&words).exits(0).json();
    assert_eq!(record["claim"], "best-so-far");
    assert_eq!(record["tests"]["executed"], 10);
    // What there is crashes.
    assert_eq!(
        signal_of_script(&desk, "crash.min.sh"),
        Some(128 + libc::SIGSEGV)
    );
    assert_eq!(desk.read("crash.min"), b"hello ! world");
    let words = format!("{CALL} --budget-time 0s -o other {PROGRAM}");
    let record = desk.call(&words).exits(0).json();
    assert_eq!(record["claim"], "best-so-far");
    assert_eq!(record["tests"]["executed"], 0);
}

/// Dies of each input that it is called with -x for, in one of two ways.
const TWO_WAYS: &str = "#include <stdio.h>\n#include <string.h>\n\
    int *volatile nowhere;\n\
    __attribute__((noinline)) static void marked(void) { *nowhere = 1; }\n\
    __attribute__((noinline)) static void other(void) { *nowhere = 2; }\n\
    int main(int count, char **words) {\n\
      char text[100]; size_t size = fread(text, 1, 100, stdin);\n\
      if (count < 2 || strcmp(words[count - 1], \"-x\") || !size) return 0;\n\
      if (memchr(text, '!', size)) marked(); else other();\n\
      return 0;\n\
    }\n";

#[test]
fn a_slip_while_the_input_is_minimized_has_its_call() {
    let desk = Desk::new();
    let source = desk.write("ways.c", TWO_WAYS);
    desk.compile(source.to_str().unwrap(), "ways");
    desk.write("crash", "hello ! world");
    let words = "min crash --json --args -- ./ways -v -x";
    let record = desk.call(words).exits(0).json();
    assert_eq!(desk.read("crash.min"), b"!");
    let slip = &record["slips"][0];
    assert_ne!(slip["major"], record["outcome"]["major"]);
    let script = slip["script"].as_str().unwrap();
    let text = std::fs::read_to_string(script).unwrap();
    assert!(text.contains("'-x'") && !text.contains("'-v'"), "{text}");
    assert_eq!(signal_of_script(&desk, script), Some(128 + libc::SIGSEGV));
}

/// Dies when it is called with -x, and takes itself away when it is called with nothing else.
const VANISHING: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
    int *volatile nowhere;\n\
    int main(int count, char **words) {\n\
      char text[100]; size_t size = fread(text, 1, 100, stdin);\n\
      if (count < 2 || strcmp(words[count - 1], \"-x\") || !size) return 0;\n\
      if (count == 2) rename(getenv(\"PROGRAM\"), getenv(\"GONE\"));\n\
      *nowhere = 1;\n\
      return 0;\n\
    }\n";

#[test]
fn an_input_from_stdin_stays_if_a_log_of_the_arguments_needs_it() {
    let desk = Desk::new();
    let source = desk.write("vanishing.c", VANISHING);
    // Everybody may write there: targets may run as nobody.
    let folder = desk.file("open");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let built = desk.compile(source.to_str().unwrap(), "vanishing");
    std::fs::rename(built, folder.join("vanishing")).unwrap();
    let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
    let path = folder.join("vanishing");
    let [program, gone] = ["", ".gone"].map(|end| format!("{}{end}", path.display()));
    command.args(["min", "-", "--args", "--exec", "command"]);
    command.args(["--env", &format!("PROGRAM={program}")]);
    command.args(["--env", &format!("GONE={gone}")]);
    command.args(["--", &program, "-v", "-x"]);
    command.stdin(std::fs::File::open(source).unwrap());
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    let logs = logs(&desk);
    assert!(logs.iter().any(|log| log.contains(".args.")), "{logs:?}");
    let names = std::fs::read_dir(desk.path()).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().into_string().unwrap());
    let is_input = |name: &String| name.starts_with("stdin-") && !name.contains('.');
    assert_eq!(names.filter(is_input).count(), 1);
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let desk = desk();
    for (at, name) in [
        "args.log.jsonl",
        "env.log.jsonl",
        "arg-2.log.jsonl",
        "args.2.log.jsonl",
        "sh",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("out{at}.{name}");
        desk.write(&name, "precious");
        let words = format!("{CALL} -o out{at} {PROGRAM}");
        let error = desk.call(&words).exits(2).json();
        assert_eq!(error["error"]["kind"], "exists", "{name}");
        assert_eq!(desk.read(&name), b"precious");
        let words = words.replacen("min", "min --force --budget-tests 1", 1);
        desk.call(&words).exits(0);
    }
    // Nor by a name that leads to the input.
    desk.write("x.sh", "hello ! world");
    for more in ["", "--force", "--resume"] {
        let words = format!("{CALL} -o x {more} {PROGRAM}").replacen("crash", "x.sh", 1);
        let error = desk.call(&words).exits(2).json();
        assert_eq!(error["error"]["kind"], "usage", "{more}");
        assert_eq!(desk.read("x.sh"), b"hello ! world");
    }
    for words in ["-o dir/", "-o tmp"] {
        let error = desk
            .call(&format!("{CALL} {words} {PROGRAM}"))
            .exits(2)
            .json();
        assert_eq!(error["error"]["kind"], "usage");
    }
    let error = desk
        .call("min crash --json --args --test ./options")
        .exits(2);
    assert_eq!(error.json()["error"]["kind"], "usage");
}

#[test]
fn the_result_for_people_names_the_call() {
    let desk = desk();
    let words = format!("{CALL} {PROGRAM}").replace(" --json", "");
    let said = desk.call(&words).exits(0);
    for part in [
        "1-minimal",
        "args   6 → 3",
        "→ 1\ncall",
        "env -i 'MODE=deep'",
        "crash.min.sh",
    ] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
}

#[test]
fn variables_of_a_bundled_target_are_minimized_and_not_exported() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    let words = "min crash --json --env-vars --env K=V --target crtplot --export-test test.sh";
    let record = desk.call(words).exits(0).json();
    assert_eq!(record["env"], json!([]));
    assert_eq!(record["args"], json!(["crtplot"]));
    assert_eq!(record["script"], Value::Null);
    assert_eq!(desk.read("crash.min"), b"t");
    let test = String::from_utf8(desk.read("test.sh")).unwrap();
    assert!(
        test.contains("--env='K=V'") && !test.contains("DESK="),
        "{test}"
    );
    for log in logs(&desk) {
        desk.call(&format!("log verify {log}")).exits(0);
    }
}

/// A budget that ends in an early search lets the later ones run on a command line that is not yet
/// minimal. With a larger budget the early search goes on, and the later ones begin anew.
#[test]
fn a_larger_budget_resumes_a_search_before_the_last() {
    let desk = desk();
    let whole = desk.call(&format!("{CALL} {PROGRAM}")).exits(0).json();
    for name in logs(&desk) {
        std::fs::remove_file(desk.file(&name)).unwrap();
    }
    let short = desk.call(&format!("{CALL} --force --budget-tests 3 {PROGRAM}"));
    assert_eq!(short.exits(0).json()["claim"], "best-so-far");
    let resumed = desk.call(&format!("{CALL} --resume --budget-tests 9 {PROGRAM}"));
    assert_eq!(resumed.exits(0).json()["claim"], "best-so-far");
    let resumed = desk.call(&format!("{CALL} --resume {PROGRAM}")).exits(0);
    let resumed = resumed.json();
    for field in ["args", "env", "claim", "proved", "size_after"] {
        assert_eq!(resumed[field], whole[field], "{field}");
    }
    assert_eq!(desk.read("crash.min"), b"!");
    desk.is_left_clean();
}
