//! Input files (`@@`): programs that write to them, that own them, and that look at their names; and
//! inputs that do not crash a program.

use crate::ddfuzz::Desk;

/// Ways of execution that run an unmodified program.
const WAYS: [&str; 3] = ["command", "inject", "snapshot"];

#[test]
fn a_program_may_open_its_input_file_for_writing_and_the_next_one_is_whole() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/read_write.c", "read_write");
    std::fs::create_dir(desk.file("in")).unwrap();
    for length in 1..20 {
        desk.write(&format!("in/passes-{length}"), "p".repeat(length * 3));
        desk.write(&format!("in/fails-{length}"), "k".repeat(40 / length));
    }
    desk.write("crash", "k and so on");
    for way in WAYS {
        let words = format!("triage in --exec {way} --jobs 1 --json -- ./read_write @@");
        let triaged = desk.call(&words).exits(1).json();
        for input in triaged["inputs"].as_array().unwrap() {
            let fails = input["file"].as_str().unwrap().contains("/fails-");
            let ended = if fails { "SIGABRT" } else { "exit 0" };
            assert_eq!(input["ended"], ended, "{way}: {input}");
        }
        let words = format!("min crash --exec {way} -o small --force -- ./read_write @@");
        desk.call(&words).exits(0);
        assert_eq!(desk.read("small"), b"k", "{way}");
        let words = "run --generator classic --runs 300 --seed 1 --max-len 60 --jobs 2";
        let words = format!("{words} --exec {way} -o {way} --json -- ./read_write @@");
        let result = desk.call(&words).json();
        let groups = result["groups"].as_array().unwrap();
        let is_own = |group: &serde_json::Value| group["class"] == "abrt";
        assert!(groups.iter().all(is_own), "{way}: {result}");
        assert!(result["runs"] == 300, "{way}: {result}");
    }
    desk.is_left_clean();
}

#[test]
fn a_program_that_refuses_a_file_by_its_name_is_quoted_and_the_name_advised() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/by_ending.c", "by_ending");
    for name in ["crash.asm", "crash"] {
        desk.write(name, "k and so on");
        for command in ["min", "explain"] {
            let call = format!("{command} {name} -- ./by_ending @@");
            let said = desk.call(&call).exits(3).err;
            assert!(
                said.contains("ended with exit 1; it wrote: not an .asm file"),
                "{said}"
            );
            let is_advised = said.contains("add --file-name crash.asm");
            assert_eq!(is_advised, name == "crash.asm", "{command}: {said}");
        }
    }
    // What passes for another reason gets no such advice.
    desk.write("other.asm", "o");
    let named = "--file-name other.asm -- ./by_ending @@";
    let said = desk.call(&format!("min other.asm {named}")).exits(3).err;
    assert!(!said.contains("add --file-name"), "{said}");
    let named = "--file-name crash.asm -- ./by_ending @@";
    desk.call(&format!("min crash.asm {named}")).exits(0);
    assert_eq!(desk.read("crash.asm.min"), b"k");
}

#[test]
fn what_kills_its_parent_or_its_group_is_said_to_be_no_crash() {
    let desk = Desk::new();
    let source = desk.write(
        "killer.c",
        "#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\nint main(void) {\n\
         if (getchar() == 'p') kill(getppid(), SIGKILL);\n\
         else kill(0, SIGKILL);\npause();\nreturn 0; }\n",
    );
    desk.compile(source.to_str().unwrap(), "killer");
    for whom in ["p", "g"] {
        desk.write(whom, whom);
        for way in WAYS {
            let call = format!("min {whom} --exec {way} -- ./killer");
            let said = desk.call(&call).exits(3).err;
            let parts = [
                "runs ended with SIGKILL",
                "its parent process or its process group",
            ];
            assert!(
                parts.iter().all(|part| said.contains(part)),
                "{call}: {said}"
            );
        }
    }
    desk.is_left_clean();
}
