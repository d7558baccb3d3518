//! `ddfuzz min`.

use crate::crashes;
use crate::ddfuzz::Desk;

#[test]
fn ul_is_minimized_to_517_bytes_and_the_proof_is_verified() {
    let desk = Desk::new();
    desk.write("crash", crashes::for_ul());
    let record = desk.call("min crash --json --target ul").exits(0).json();
    assert_eq!(record["size_after"], 517);
    assert_eq!(record["claim"], "1-minimal");
    assert_eq!(record["proved"]["done"], record["proved"]["of"]);
    assert_eq!(desk.read("crash.min").len(), 517);
    assert_eq!(desk.read("crash"), crashes::for_ul());
    desk.call("log verify crash.min.log.jsonl").exits(0);
    desk.is_left_clean();
}

#[test]
fn flex_is_minimized_to_2121_bytes_and_the_proof_is_verified() {
    let desk = Desk::new();
    desk.write("crash", crashes::for_flex());
    let record = desk.call("min crash --json --target flex").exits(0).json();
    assert_eq!(record["size_after"], 2121);
    assert_eq!(record["claim"], "1-minimal");
    let verified = desk.call("log verify --json crash.min.log.jsonl").exits(0);
    assert_eq!(verified.json()["holds"], true);
}

#[test]
fn the_result_goes_where_it_is_sent() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    desk.call("min crash --target crtplot -o small --log small.log")
        .exits(0);
    assert_eq!(desk.read("small"), b"t");
    desk.call("log replay small.log").exits(0);
    // A trailing slash makes an output directory.
    let words = "min crash --json --target crtplot -o dir/";
    let record = desk.call(words).exits(0).json();
    let output = record["output"].as_str().unwrap();
    assert_eq!(std::fs::read(output).unwrap(), b"t");
    assert!(output.starts_with(desk.file("dir/crashes").to_str().unwrap()));
    let shown = desk.call("show --json dir").exits(0).json();
    assert_eq!(shown["groups"][0]["size_after"], 1);
    assert_eq!(shown["groups"][0]["runs_seen"], 1);
    // The same again is the same.
    let again = desk.call(words).exits(0).json();
    assert_eq!(again["output"], record["output"]);
    assert_eq!(again["tests"], record["tests"]);
    let shown = desk.call("show --json dir").exits(0).json();
    assert_eq!(shown["groups"][0]["runs_seen"], 1);
}

#[test]
fn existing_results_are_only_overwritten_by_force() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    desk.write("crash.min", "precious");
    let error = desk
        .call("min crash --json --target crtplot")
        .exits(2)
        .json();
    assert_eq!(error["error"]["kind"], "exists");
    assert_eq!(desk.read("crash.min"), b"precious");
    // Force does not take the old result away before there is a new one.
    desk.write("healthy", "x");
    desk.call("min healthy --force --target crtplot -o crash.min")
        .exits(3);
    assert_eq!(desk.read("crash.min"), b"precious");
    desk.call("min crash --force --target crtplot").exits(0);
    assert_eq!(desk.read("crash.min"), b"t");
    // Nor is a log overwritten.
    std::fs::remove_file(desk.file("crash.min")).unwrap();
    desk.call("min crash --target crtplot").exits(2);
}

#[test]
fn the_input_is_never_written_to() {
    let desk = Desk::new();
    desk.write("crash", "a t b");
    std::fs::hard_link(desk.file("crash"), desk.file("link")).unwrap();
    for words in [
        "-o crash --force",
        "-o crash --resume",
        "-o ./crash --force",
        "-o link --force",
        "--log crash --force",
        "-o x --log x",
    ] {
        let said = desk.call(&format!("min crash --json --target crtplot {words}"));
        assert_eq!(said.exits(2).json()["error"]["kind"], "usage");
        assert_eq!(desk.read("crash"), b"a t b");
    }
}

#[test]
fn resuming_a_finished_minimization_gives_its_result_again() {
    let desk = Desk::new();
    desk.write("crash", "xx t yy");
    let record = desk
        .call("min crash --json --target crtplot")
        .exits(0)
        .json();
    let log = desk.read("crash.min.log.jsonl");
    let again = desk
        .call("min crash --json --resume --target crtplot")
        .exits(0)
        .json();
    for key in ["claim", "size_after", "tests", "proved", "outcome", "rate"] {
        assert_eq!(record[key], again[key], "{key}");
    }
    assert_eq!(desk.read("crash.min.log.jsonl"), log);
    // Of another input there is nothing to resume.
    desk.write("crash", "xx t zz");
    let error = desk
        .call("min crash --json --resume --target crtplot")
        .exits(2)
        .json();
    assert_eq!(error["error"]["kind"], "log");
    let path = error["error"]["path"].as_str().unwrap();
    assert!(path.ends_with("crash.min.log.jsonl"), "{path}");
    assert_eq!(desk.read("crash.min.log.jsonl"), log);
}

#[test]
fn an_input_that_fails_but_once_leaves_no_log_behind() {
    let desk = Desk::new();
    desk.write("crash", "x");
    std::fs::create_dir(desk.file("odd")).unwrap();
    let anybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(desk.file("odd"), anybody).unwrap();
    // Only the first run with this input fails: the one that names the crash.
    let script = desk.write(
        "once",
        "[ \"$(cat)\" = x ] && mkdir seen 2>/dev/null && exit 7; exit 0\n",
    );
    let words = format!(
        "min crash --json --crash-exit 7 --cwd odd --exec command -- sh {}",
        script.display()
    );
    let error = desk.call(&words).exits(3).json();
    assert_eq!(error["error"]["kind"], "not-failing");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("the last gave PASS"), "{message}");
    let path = error["error"]["path"].as_str().unwrap();
    assert!(path.ends_with("/crash"), "{path}");
    assert!(!desk.file("crash.min.log.jsonl").exists());
}

#[test]
fn a_crash_that_needs_randomized_addresses_is_told_as_one() {
    let desk = Desk::new();
    let source = "#include <stdlib.h>\n#include <sys/personality.h>\n\
        int main(void) { if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) abort(); return 0; }";
    let source = desk.write("moved.c", source);
    desk.compile(source.to_str().unwrap(), "moved");
    desk.write("crash", "x");
    let said = desk.call("min crash -- ./moved").exits(3);
    assert!(said.err.contains("had randomized addresses"), "{said:?}");
    assert!(said.err.contains("setarch -R"), "{said:?}");
    assert!(!desk.file("crash.min.log.jsonl").exists());
}

#[test]
fn a_program_gets_the_input_as_a_file_where_at_signs_stand() {
    let desk = Desk::new();
    desk.write("crash", "....b....");
    let script = "if grep -q b \"$0\"; then kill -SEGV $$; fi";
    let words = "min crash --json -- sh -c";
    let record = desk.call_with(words, &[script.as_ref(), "@@".as_ref()]);
    assert_eq!(record.exits(0).json()["size_after"], 1);
    assert_eq!(desk.read("crash.min"), b"b");
}

#[test]
fn a_slip_into_another_bug_is_filed_beside_the_result() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.write("crash", "even length, with a k.");
    let record = desk.call("min crash --json -- ./two_bugs").exits(0).json();
    assert_eq!(record["size_after"], 2);
    assert_eq!(record["claim"], "1-minimal");
    let [slip] = &record["slips"].as_array().unwrap()[..] else {
        panic!("one slip: {record}");
    };
    assert_ne!(slip["major"], record["outcome"]["major"]);
    let file = slip["file"].as_str().unwrap();
    let triaged = desk
        .call(&format!("triage --json {file} -- ./two_bugs"))
        .exits(1)
        .json();
    let shown = slip["major"].as_str().unwrap();
    let major = triaged["groups"][0]["major"].as_str().unwrap();
    assert!(shown.starts_with(major), "{shown} {major}");
}

#[test]
fn a_failing_call_leaves_no_file_of_stdin() {
    let desk = Desk::new();
    let call = |words: &str, bytes: &[u8]| {
        let stdin = std::fs::File::open(desk.write("given", bytes)).unwrap();
        let mut command = desk.command(env!("CARGO_BIN_EXE_ddfuzz"));
        let output = command
            .args(words.split(' '))
            .stdin(stdin)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let left = || {
        let entries = std::fs::read_dir(desk.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| name.starts_with("stdin"))
            .collect::<Vec<_>>()
    };
    for (words, code) in [
        ("min - --target ul", 3),
        ("min - -- ./no-such-program", 3),
        ("min - --test ./no-such-test", 3),
        ("max - --target ul", 3),
        ("diff --empty - -- ./no-such-program", 3),
        ("diff - no-such-file --target ul", 2),
    ] {
        let (exit, said) = call(words, b"no crash");
        assert_eq!((exit, left()), (Some(code), Vec::new()), "{words}: {said}");
        assert!(!said.contains("the input from stdin is in"), "{said}");
    }
    let (exit, said) = call("min - --target ul", &crashes::for_ul());
    assert_eq!(exit, Some(0), "{said}");
    assert!(said.contains("the input from stdin is in stdin-"), "{said}");
    assert_eq!(left().len(), 3, "{:?}", left());
}

#[test]
fn a_program_that_refuses_tracers_is_minimized_without_one() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/refuses_tracers.c", "refuses");
    desk.write("crash", "abxcd");
    let said = desk.call("min crash -- ./refuses").exits(0);
    assert_eq!(desk.read("crash.min"), b"x", "{said:?}");
    let warned = said.err.contains("does not fail under a tracer");
    assert!(warned && said.out.contains("1-minimal"), "{said:?}");
    let verified = desk.call("log verify --json crash.min.log.jsonl").exits(0);
    assert_eq!(verified.json()["holds"], true);
    let triaged = desk
        .call("triage crash --json -- ./refuses")
        .exits(1)
        .json();
    assert_eq!(triaged["groups"][0]["class"], "segv", "{triaged}");
}

#[test]
fn a_short_budget_of_time_bounds_the_runs_before_the_search() {
    let desk = Desk::new();
    desk.script("slow", "sleep 0.4; grep -q x");
    desk.write("crash", "abxcd");
    let words = "min crash --json --test ./slow --budget-time 300ms";
    let said = desk.call(words).exits(0);
    let record = said.json();
    assert_eq!(
        (&record["claim"], &record["size_after"]),
        (&"best-so-far".into(), &5.into())
    );
    assert_eq!(record["tests"]["checks"], 0, "{record}");
    assert!(
        said.err.contains("the time budget ended before the search"),
        "{said:?}"
    );
    let more = "min crash --json --test ./slow --budget-time 30s --resume --jobs 1";
    let record = desk.call(more).exits(0).json();
    assert_eq!(record["claim"], "1-minimal", "{record}");
}
