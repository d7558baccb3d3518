//! `ddfuzz triage`.

use crate::ddfuzz::Desk;

#[test]
fn crashes_are_grouped_by_bug_and_other_inputs_have_no_class() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    std::fs::create_dir(desk.file("found")).unwrap();
    for (name, text) in [("1", "k"), ("2", "kkk"), ("3", "kk"), ("4", "healthy")] {
        desk.write(&format!("found/{name}"), text);
    }
    let result = desk
        .call("triage --json found -- ./two_bugs")
        .exits(1)
        .json();
    let inputs = result["inputs"].as_array().unwrap();
    assert_eq!(inputs.len(), 4);
    assert_eq!(inputs[0]["major"], inputs[1]["major"]);
    assert_ne!(inputs[0]["major"], inputs[2]["major"]);
    assert_eq!(inputs[3]["class"], serde_json::Value::Null);
    let groups = result["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    let odd = groups.iter().find(|group| group["count"] == 2).unwrap();
    assert_eq!(odd["major"], inputs[0]["major"]);
    assert_eq!(
        odd["representative"],
        desk.file("found/1").to_str().unwrap()
    );
    desk.is_left_clean();
}

#[test]
fn healthy_inputs_alone_end_with_nothing_found() {
    let desk = Desk::new();
    desk.write("healthy", "x");
    let said = desk.call("triage healthy --target crtplot").exits(0);
    assert!(said.out.contains("exit 1"), "{}", said.out);
}

#[test]
fn crashes_can_be_filed_in_an_output_directory() {
    let desk = Desk::new();
    desk.write("one", "a t");
    desk.write("two", "t t");
    desk.call("triage one two -o out --target crtplot").exits(1);
    let shown = desk.call("show --json out").exits(0).json();
    assert_eq!(shown["groups"].as_array().unwrap().len(), 1);
    // A campaign there minimizes what triage filed.
    let words = "run --json --target crtplot --runs 0 -o out";
    let result = desk.call(words).exits(0).json();
    assert_eq!(result["groups"][0]["size_after"], 1);
}

#[test]
fn a_variable_of_the_target_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let desk = Desk::new();
    desk.write("input", "x");
    let value = std::ffi::OsStr::from_bytes(b"ODD=\xff");
    let program = b"[ \"$(printenv ODD | od -An -tx1)\" = ' ff 0a' ]".as_slice();
    let program = std::ffi::OsStr::from_bytes(program);
    let words = ["--", "sh", "-c"].map(std::ffi::OsStr::new);
    let more = [&[value][..], &words, &[program]].concat();
    let said = desk.call_with("triage input --json --env", &more).exits(0);
    assert_eq!(said.json()["inputs"][0]["ended"], "exit 0");
}

#[test]
fn the_verdicts_do_not_depend_on_the_number_of_workers() {
    let desk = Desk::new();
    for (index, text) in ["t", "x", "xxt", "", "ttt", "abc"].iter().enumerate() {
        std::fs::create_dir_all(desk.file("inputs")).unwrap();
        std::fs::write(desk.file(&format!("inputs/{index}")), text).unwrap();
    }
    let [one, four] = [1, 4].map(|jobs| {
        let words = format!("triage --json --jobs {jobs} --target crtplot inputs");
        desk.call(&words).exits(1).json()
    });
    assert_eq!(one, four);
    assert_eq!(one["inputs"].as_array().unwrap().len(), 6);
    assert_eq!(one["groups"][0]["count"], 3);
}

#[test]
fn an_input_that_crashes_once_is_flaky_wherever_it_stands_among_the_others() {
    let program = "case $(cat) in AAA) kill -SEGV $$ ;; \
                   A) [ -e $DESK/tmp/once ] || { >$DESK/tmp/once; kill -SEGV $$; } ;; esac; exit 0";
    for (small, large) in [("0", "1"), ("1", "0")] {
        let desk = Desk::new();
        std::fs::create_dir(desk.file("inputs")).unwrap();
        desk.write(&format!("inputs/{small}"), "A");
        desk.write(&format!("inputs/{large}"), "AAA");
        let more = ["--", "sh", "-c", program].map(std::ffi::OsStr::new);
        let call = "triage inputs --exec command --jobs 1 --json";
        let result = desk.call_with(call, &more).exits(1).json();
        let groups = result["groups"].as_array().unwrap().iter();
        let name = |path: &serde_json::Value| {
            path.as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned()
        };
        let mut found: Vec<_> = groups
            .map(|group| {
                (
                    group["kind"].as_str().unwrap(),
                    name(&group["representative"]),
                )
            })
            .collect();
        found.sort_unstable();
        let expected = [("crash", large.to_owned()), ("flaky", small.to_owned())];
        assert_eq!(found, expected, "{result}");
    }
}

#[test]
fn a_campaign_is_resumed_after_a_triage_into_its_directory() {
    let desk = Desk::new();
    desk.write("crash", "a t");
    let runs = "run --target ul --generator classic --minimize off -o out --json";
    let first = desk.call(&format!("{runs} --runs 50 --seed 7")).json();
    desk.call("triage crash -o out --target crtplot").exits(1);
    let again = desk.call(&format!("{runs} --runs 70 --resume")).json();
    assert_eq!(
        (&first["resumed"], &again["resumed"]),
        (&false.into(), &true.into())
    );
    let read = std::fs::read_to_string(desk.file("out/ddfuzz.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&read).unwrap();
    assert_eq!(record["seed"], 7, "{record}");
    // Where no campaign began, none is resumed.
    desk.call("triage crash -o other --target crtplot").exits(1);
    let call = "run --target crtplot --runs 5 --resume -o other --json";
    let error = desk.call(call).exits(2).json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("no campaign to resume"), "{message}");
}

#[test]
fn a_triage_of_another_program_takes_no_group_for_fixed() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    desk.compile("tests/cli/programs/two_letters.c", "two_letters");
    desk.write("crash", "XY");
    let runs = "run --generator classic --minimize off -o out --runs 40 --seed 1 -- ./two_bugs";
    desk.call(runs).exits(1);
    let builds = || {
        let read = std::fs::read_to_string(desk.file("out/ddfuzz.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&read).unwrap();
        record["builds"].clone()
    };
    let before = builds();
    assert_eq!(before.as_array().unwrap().len(), 1, "{before}");
    let said = desk.call("triage crash -o out --minimize -- ./two_letters");
    let said = said.exits(1);
    assert!(!said.err.contains("rebuilt"), "{said:?}");
    assert_eq!(builds(), before);
    let shown = desk.call("show out").exits(0);
    assert!(!shown.out.contains("fixed"), "{shown:?}");
    // When the campaign's own program is rebuilt, what the other one does is not asked of it.
    std::fs::copy("/bin/cat", desk.file("two_bugs")).unwrap();
    let runs = runs.replace("--runs 40 --seed 1", "--runs 45 --resume");
    let said = desk.call(&runs);
    assert!(
        said.err
            .contains("2 groups checked with the new build: 2 fixed"),
        "{said:?}"
    );
    let groups = &builds()[1]["groups"]["crash"];
    assert_eq!(groups.as_object().unwrap().len(), 2, "{groups}");
}

#[test]
fn an_input_whose_two_bugs_take_turns_is_no_steady_crash() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/alternates.c", "alternates");
    desk.write("crash", "aXb");
    let turns = desk.write("turns", "");
    // Targets have no privilege to write to files of others.
    let anybody = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&turns, anybody).unwrap();
    let call = format!(
        "triage crash --exec command --json -- ./alternates {}",
        turns.display()
    );
    let result = desk.call(&call).json();
    let group = &result["groups"][0];
    assert_eq!(group["kind"], "flaky", "{result}");
    assert!(turns.metadata().unwrap().len() > 2);
}

#[test]
fn a_path_that_is_no_text_is_given_whole() {
    use std::os::unix::ffi::OsStrExt;
    let desk = Desk::new();
    desk.compile("tests/cli/programs/two_bugs.c", "two_bugs");
    let name = std::ffi::OsStr::from_bytes(b"\xff");
    std::fs::create_dir(desk.file("found")).unwrap();
    std::fs::write(desk.file("found").join(name), "k").unwrap();
    let result = desk
        .call("triage --json found -- ./two_bugs")
        .exits(1)
        .json();
    let path: ddfuzz::files::OsText =
        serde_json::from_value(result["inputs"][0]["file"].clone()).unwrap();
    assert_eq!(path.0, desk.file("found").join(name));
    assert_eq!(
        result["groups"][0]["representative"],
        result["inputs"][0]["file"]
    );
}

#[test]
fn inputs_with_the_same_keys_are_told_to_end_as_each_has_ended() {
    let desk = Desk::new();
    // Both die of one fault; a handler makes another signal of it for one of them.
    desk.write(
        "fault.c",
        r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
static void on_fault(int signal) { (void)signal; abort(); }
int main(void)
{
    if (getchar() == 'h')
        signal(SIGSEGV, on_fault);
    *(volatile int *)0 = 1;
    return 0;
}
"#,
    );
    let mut compiler = std::process::Command::new("cc");
    let (source, program) = (desk.file("fault.c"), desk.file("fault"));
    let built = compiler.arg("-g").arg(source).arg("-o").arg(program);
    assert!(built.status().expect("the compiler runs").success());
    std::fs::create_dir(desk.file("in")).unwrap();
    desk.write("in/a", "h");
    desk.write("in/b", "n");
    let result = desk.call("triage in --jobs 1 -o out --json -- ./fault");
    let result = result.exits(1).json();
    let of = |at: usize, key: &str| result["inputs"][at][key].clone();
    assert_eq!(of(0, "minor"), of(1, "minor"), "{result}");
    assert_eq!(of(0, "ended"), "SIGABRT", "{result}");
    assert_eq!(of(1, "ended"), "SIGSEGV", "{result}");
}
